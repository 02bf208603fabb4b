// What the lanes of a warp do together: exchanges, barriers, products of matrices.
#ifndef EMULATOR_TOGETHER_H
#define EMULATOR_TOGETHER_H

#include "transfers.h"

// >>exchanges

template <u32 (*From)(u32 lane, u32 by, u32 segment)> static void shuffle(warp &w, const op &o, u32 lanes) {
    u32 values[LANES], reached = 0;
    memcpy(values, w.at<u32>(o.x[1]), sizeof values);
    for_lanes(lanes, [&](u32 lane) {
        u32 control = w.at<u32>(o.x[3])[lane], segment = control >> 8 & 31;
        u32 last = (lane & segment) | (control & 31 & ~segment),
            from = From(lane, w.at<u32>(o.x[2])[lane], segment);
        bool inside = from <= last;
        from = inside ? from : lane;
        if (!(lanes >> from & 1))
            fail("lane %u reads lane %u, which does not take part", lane, from);
        w.at<u32>(o.x[0])[lane] = values[from];
        reached |= (u32)inside << lane;
    });
    if (o.x.size() > 5)
        w.bits(o.x[5]) = (w.bits(o.x[5]) & ~lanes) | reached;
}
static u32 from_other_side(u32 lane, u32 by, u32) {
    return lane ^ (by & 31);
}
static u32 from_index(u32 lane, u32 by, u32 segment) {
    return (lane & segment) | (by & 31 & ~segment);
}
static void vote_all(warp &w, const op &o, u32 lanes) {
    bool all = (w.bits(o.x[1]) & lanes) == lanes;
    w.bits(o.x[0]) = (w.bits(o.x[0]) & ~lanes) | (all ? lanes : 0);
}
static void elect(warp &w, const op &o, u32 lanes) {
    u32 first = lanes & (0 - lanes);
    for_lanes(lanes, [&](u32 lane) { w.at<u32>(o.x[0])[lane] = (u32)__builtin_ctz(lanes); });
    w.bits(o.x[1]) = (w.bits(o.x[1]) & ~lanes) | first;
}

// >>barriers of the block and of the cluster

static void reach(warp &w, const op &o, bool waits) {
    u32 id = w.at<u32>(o.x[0])[__builtin_ctz(w.live)], all = w.in->in->of->block_x * w.in->in->of->block_y,
        count = o.x.size() > 1 ? w.at<u32>(o.x[1])[__builtin_ctz(w.live)] : all;
    if (id >= 16)
        fail("there are 16 barriers, no %u", id);
    barrier &b = w.in->barriers[id];
    if (b.arrived && b.expected != count)
        fail("barrier %u is for %u threads and for %u", id, b.expected, count);
    b.expected = count;
    b.of_all = o.x.size() < 2;
    b.arrived += (u32)__builtin_popcount(w.live);
    if (b.arrived > count)
        fail("barrier %u is for %u threads, and %u came", id, count, b.arrived);
    if (waits) {
        w.blocked = true;
        b.waiting.push_back(&w);
    }
    w.in->complete(b);
}
static void barrier_sync(warp &w, const op &o, u32) {
    reach(w, o, true);
}
static void barrier_arrive(warp &w, const op &o, u32) {
    reach(w, o, false);
}
static void cluster_arrive(warp &w, const op &, u32 lanes) {
    if (w.arrived_at_cluster)
        fail("it arrives at the cluster's barrier twice");
    w.arrived_at_cluster = true;
    w.cluster_phase = w.in->in->phase;
    w.in->in->arrive((u32)__builtin_popcount(lanes));
}
static void cluster_wait(warp &w, const op &, u32) {
    if (!w.arrived_at_cluster)
        fail("it waits at the cluster's barrier without having arrived");
    w.again = w.in->in->phase == w.cluster_phase;
    w.arrived_at_cluster = w.again;
}
static void map_address(warp &w, const op &o, u32 lanes) { // mapa: of this block, in that of a rank
    for_lanes(lanes, [&](u32 lane) {
        w.at<u32>(o.x[0])[lane] = w.at<u32>(o.x[1])[lane] | (w.at<u32>(o.x[2])[lane] + 1) << 24;
    });
}

// >>matrices in shared memory: 8 lines of 16 bytes, whose addresses lanes 8 i to 8 i + 7 have for the i-th

template <bool Transposed> static void load_matrices(warp &w, const op &o, u32) {
    for (u32 lane = 0; lane < LANES; lane++)
        for (u32 i = 0; i < 4; i++) {
            u16 pair[2];
            for (u32 j = 0; j < 2; j++) {
                u32 row = Transposed ? 2 * (lane % 4) + j : lane / 4,
                    column = Transposed ? lane / 4 : 2 * (lane % 4) + j;
                memcpy(&pair[j], w.in->shared_at(w.address(o, 4, 8 * i + row), 16, 16) + 2 * column, 2);
            }
            w.at<u32>(o.x[i])[lane] = pair[0] | (u32)pair[1] << 16;
        }
}
static void store_matrices(warp &w, const op &o, u32) {
    for (u32 lane = 0; lane < LANES; lane++)
        for (u32 i = 0; i < 4; i++) {
            u32 to = w.address(o, 0, 8 * i + lane / 4);
            memcpy(w.in->shared_at(to, 16, 16) + 4 * (lane % 4), &w.at<u32>(o.x[1 + i])[lane], 4);
            w.in->wrote(to, 16, w.index);
        }
}

// >>mma: of A [16, k], B [k, 8] and sums [16, 8]. A lane has pairs of rows lane / 4 and that + 8, B's of column lane / 4

static inline float element(u32 word, u32 which, bool is_bf16) {
    u16 bits = (u16)(word >> 16 * which);
    return is_bf16 ? f32_of_bf16(bits) : f32_of_f16(bits);
}

// a and b from lanes' words to matrices, B by columns; x is sums, two of each 8 rows, A's words, B's, sums before
struct f16_kind {
    enum { K = 16, PER_WORD = 2 };
    typedef float sum;
    static double of(u32 word, u32 which) {
        return element(word, which, false);
    }
};
struct bf16_kind {
    enum { K = 16, PER_WORD = 2 };
    typedef float sum;
    static double of(u32 word, u32 which) {
        return element(word, which, true);
    }
};
struct tf32_kind {
    enum { K = 8, PER_WORD = 1 };
    typedef float sum;
    static double of(u32 word, u32) {
        return same_bits<float>(word & 0xffffe000u);
    }
};
struct s8_kind {
    enum { K = 32, PER_WORD = 4 };
    typedef s32 sum;
    static double of(u32 word, u32 which) {
        return (s8)(word >> 8 * which);
    }
};

// Of F16 with sums in F16, of which a lane has pairs: rounded behind each four of k, as often as docs/numerics.md grants.
template <u32 Words> static void multiply_in_f16(warp &w, const op &o, u32) {
    enum : u32 { K = Words * 8, A = 2, B = A + 2 * Words, C = B + Words };
    double a[16][K], b[8][K];
    u32 sums[2][LANES];
    for (u32 lane = 0; lane < LANES; lane++)
        for (u32 j = 0; j < 2; j++) {
            u32 k = lane % 4 * 2 + j;
            for (u32 i = 0; i < 2 * Words; i++)
                a[lane / 4 + i % 2 * 8][k + i / 2 * 8] = f16_kind::of(w.at<u32>(o.x[A + i])[lane], j);
            for (u32 i = 0; i < Words; i++)
                b[lane / 4][k + i * 8] = f16_kind::of(w.at<u32>(o.x[B + i])[lane], j);
        }
    for (u32 lane = 0; lane < LANES; lane++)
        for (u32 i = 0; i < 4; i++) {
            u32 row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2, place = i % 2 * 16;
            u16 sum = (u16)(w.at<u32>(o.x[C + i / 2])[lane] >> place);
            for (u32 k = 0; k < K; k += 4) {
                double exact = f32_of_f16(sum);
                for (u32 j = k; j < k + 4; j++)
                    exact += a[row][j] * b[column][j];
                sum = (u16)to_bits(exact, 5, 10, 0, false);
            }
            sums[i / 2][lane] = (i % 2 ? sums[i / 2][lane] : 0) | (u32)sum << place;
        }
    for (u32 i = 0; i < 2; i++)
        memcpy(w.at<u32>(o.x[i]), sums[i], sizeof sums[i]);
}

// Of fp8 the products and the sum before are cut below 2^-13 of the largest of them, as was measured of wgmma.
static float sum_of_fp8(float before, const double *products, u32 count) {
    double largest = std::fabs(before), sum = 0, unit;
    int exponent;
    for (u32 i = 0; i < count; i++)
        largest = std::fmax(largest, std::fabs(products[i]));
    if (largest == 0 || !std::isfinite(largest))
        exponent = 0;
    else
        frexp(largest, &exponent);
    unit = ldexp(1, exponent - 1 - 13);
    for (u32 i = 0; i <= count; i++) {
        double x = i < count ? products[i] : before;
        sum += std::isfinite(x) ? std::trunc(x / unit) * unit : x;
    }
    return (float)sum;
}

template <int Exponents, int Fractions, u32 Top> struct fp8_kind {
    enum { K = 32, PER_WORD = 4 };
    typedef float sum;
    static double of(u32 word, u32 which) {
        return from_bits(word >> 8 * which & 0xff, Exponents, Fractions, Top);
    }
};
typedef fp8_kind<4, 3, 0x7e> e4m3_kind;
typedef fp8_kind<5, 2, 0> e5m2_kind;

static inline float total(float before, double more) {
    return (float)(before + more);
}
static inline s32 total(s32 before, double more) {
    return (s32)((u32)before + (u32)(s32)more);
}

// Of E2M1: 1, 1.5, 2, 3, 4, 6 from the codes 2 to 7 on.
struct e2m1_kind {
    enum { K = 64, PER_WORD = 8 };
    typedef float sum;
    static double of(u32 word, u32 which) {
        return from_bits(word >> 4 * which & 15, 2, 1, 7);
    }
};

// A lane's words as parts of the matrices, B by columns. Words of B: one for each four of a line's words of k. Rows: 8 or 16.
template <class Kind, class Of_b, u32 Words, u32 Rows>
static void spread(warp &w, const op &o, double (*a)[4 * Kind::PER_WORD * Words],
                   double (*b)[4 * Kind::PER_WORD * Words]) {
    enum : u32 { PER = Kind::PER_WORD, PART = 4 * PER, EIGHTS = Rows / 8, SUMS = 2 * EIGHTS };
    for (u32 lane = 0; lane < LANES; lane++)
        for (u32 j = 0; j < PER; j++) {
            u32 k = lane % 4 * PER + j;
            for (u32 i = 0; i < EIGHTS * Words; i++)
                a[lane / 4 + i % EIGHTS * 8][k + i / EIGHTS * PART] =
                    Kind::of(w.at<u32>(o.x[SUMS + i])[lane], j);
            for (u32 i = 0; i < Words; i++)
                b[lane / 4][k + i * PART] = Of_b::of(w.at<u32>(o.x[SUMS + EIGHTS * Words + i])[lane], j);
        }
}
template <class Kind, u32 Words, u32 Rows>
static void add_products(warp &w, const op &o, double (*a)[4 * Kind::PER_WORD * Words],
                         double (*b)[4 * Kind::PER_WORD * Words]) {
    enum : u32 { PER = Kind::PER_WORD, K = 4 * PER * Words, EIGHTS = Rows / 8, SUMS = 2 * EIGHTS };
    typedef typename Kind::sum sum;
    for (u32 lane = 0; lane < LANES; lane++)
        for (u32 i = 0; i < SUMS; i++) {
            u32 row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
            double products[K], more = 0;
            sum before = w.at<sum>(o.x[SUMS + EIGHTS * Words + Words + i])[lane];
            for (u32 k = 0; k < K; k++)
                more += products[k] = a[row][k] * b[column][k];
            if constexpr (PER >= 4 && std::is_same<sum, float>::value)
                w.at<sum>(o.x[i])[lane] = sum_of_fp8(before, products, K);
            else
                w.at<sum>(o.x[i])[lane] = total(before, more);
        }
}
template <class Kind, class Of_b = Kind, u32 Words = 2, u32 Rows = 16>
static void multiply(warp &w, const op &o, u32) {
    double a[Rows][4 * Kind::PER_WORD * Words], b[8][4 * Kind::PER_WORD * Words];
    spread<Kind, Of_b, Words, Rows>(w, o, a, b);
    add_products<Kind, Words, Rows>(w, o, a, b);
}

// The scales of blocks of k. UE4M3's highest bit is not used.
static double scale_of(u32 code, bool is_e4m3) {
    if (is_e4m3 && code > 0x7f)
        fail("a scale %x of ue4m3 has a sign", code);
    return is_e4m3 ? from_bits(code, 4, 3, 0x7e) : code == 255 ? NAN : ldexp(1, (int)code - 127);
}
// Behind the sums before: scales of A in a word, by two lanes of four, of row lane / 4 and that + 8, which byte is the first, and which two;
// likewise of B, by one lane of four.
template <class Kind, class Of_b, u32 Blocks, bool Is_e4m3>
static void multiply_scaled(warp &w, const op &o, u32) {
    enum : u32 { K = Kind::K, SCALES = 14 };
    double a[16][K], b[8][K];
    u32 byte_a = w.at<u16>(o.x[SCALES + 1])[0], two = w.at<u16>(o.x[SCALES + 2])[0];
    u32 byte_b = w.at<u16>(o.x[SCALES + 4])[0], one = w.at<u16>(o.x[SCALES + 5])[0];
    if (byte_a % Blocks || byte_a > 3 || byte_b % Blocks || byte_b > 3 || two > 1 || one > 3)
        fail("scales of an mma are in byte %u of threads %u, and %u of %u", byte_a, two, byte_b, one);
    spread<Kind, Of_b, 2, 16>(w, o, a, b);
    for (u32 k = 0; k < K; k++) {
        u32 block = k / (K / Blocks);
        for (u32 row = 0; row < 16; row++)
            a[row][k] *= scale_of(
                w.at<u32>(o.x[SCALES])[row % 8 * 4 + two * 2 + row / 8] >> 8 * (byte_a + block) & 255,
                Is_e4m3);
        for (u32 column = 0; column < 8; column++)
            b[column][k] *=
                scale_of(w.at<u32>(o.x[SCALES + 3])[column * 4 + one] >> 8 * (byte_b + block) & 255, Is_e4m3);
    }
    add_products<Kind, 2, 16>(w, o, a, b);
}

// >>wgmma: of A [64, k] and B [k, n], of which each of four warps makes 16 rows; it runs until it is waited for

enum { WGMMA_K = 32 }; // at most: 32 bytes

// k by 8 elements of an operand that a descriptor tells, at `first` along m or n: to[k][8]
template <class Kind>
static void load_operand(block &of, u64 descriptor, bool is_k_major, u32 first, double to[][8]) {
    enum { K = Kind::K, UNIT = K / 2, BYTES = 16 / UNIT }; // elements of 16 bytes
    u32 begin = (u32)(descriptor & 0x3fff) << 4, from_64 = (u32)(descriptor >> 16 & 0x3fff) << 4,
        from_8 = (u32)(descriptor >> 32 & 0x3fff) << 4;
    u32 words[4];
    if (descriptor >> 62 ==
        0) { // blocks of 128 bytes, eight lines of 16: from_64 to the next along k, from_8 along m or n
        for (u32 i = 0; i < (is_k_major ? 16 : K); i++) {
            u32 at = begin + first / 8 * from_8 + i / 8 * from_64 + i % 8 * 16;
            memcpy(words, of.read_by_proxy(at, 16), 16);
            for (u32 j = 0; j < (is_k_major ? UNIT : 8); j++)
                (is_k_major ? to[i / 8 * UNIT + j][i % 8] : to[i][j]) =
                    Kind::of(words[j / Kind::PER_WORD], j % Kind::PER_WORD);
        }
        return;
    }
    if (descriptor >> 62 != 1 || (descriptor >> 49 & 7))
        fail("a wgmma descriptor %llx, which is not of lines of 128 bytes at a multiple of 1024",
             (unsigned long long)descriptor);
    if (is_k_major) // lines of k, eight of them in 1024 bytes
        for (u32 i = 0; i < 8; i++)
            for (u32 half = 0; half < 2; half++) {
                u32 at = begin + first / 8 * from_8 + i * 128 + half * 16;
                memcpy(words, of.read_by_proxy(swizzled(at), 16), 16);
                for (u32 j = 0; j < UNIT; j++)
                    to[half * UNIT + j][i] = Kind::of(words[j / Kind::PER_WORD], j % Kind::PER_WORD);
            }
    else // lines of 64 along m or n, for eight k in 1024 bytes
        for (u32 k = 0; k < K; k++) {
            u32 at = begin + first / 64 * from_64 + k / 8 * from_8 + k % 8 * 128 + first % 64 * BYTES;
            memcpy(words, of.read_by_proxy(swizzled(at), 16), 16);
            for (u32 j = 0; j < 8; j++)
                to[k][j] = Kind::of(words[j / 2], j % 2);
        }
}

// 16 of k by 8 rows of A from a register of each lane and the one two further, as mma has them: to[k][8]
template <class Kind> static void load_registers(warp &w, const op &o, u32 first, double to[][8]) {
    for (u32 lane = 0; lane < LANES; lane++)
        for (u32 i = 0; i < 4; i++) {
            u32 word = w.at<u32>(o.x[first + i / 2 * 2])[lane];
            to[i / 2 * 8 + lane % 4 * 2 + i % 2][lane / 4] = Kind::of(word, i % 2);
        }
}

// x: n / 2 sums, A's descriptor or its four registers, B's descriptor, whether sums are added to. numbers: A's and B's sign, whether they
// are transposed, but A not where it is in registers. Those are read when it runs.
template <class Kind, class Of_b = Kind, bool In_registers = false>
static void multiply_group(warp &w, const op &o, u32) {
    u32 sums = o.count, b_at = sums + (In_registers ? 4 : 1), lane = 0;
    u64 a_descriptor = In_registers ? 0 : w.at<u64>(o.x[sums])[lane],
        b_descriptor = w.at<u64>(o.x[b_at])[lane];
    bool adds = w.bits(o.x[b_at + 1]) & 1;
    for_lanes(w.live, [&](u32 i) {
        if ((!In_registers && w.at<u64>(o.x[sums])[i] != a_descriptor) ||
            w.at<u64>(o.x[b_at])[i] != b_descriptor)
            fail("lanes have different descriptors");
    });
    warp *by = &w;
    const op *of = &o;
    w.products.open.push_back([=] {
        double a[2][WGMMA_K][8], b[WGMMA_K][8], sign = (double)(of->numbers[0] * of->numbers[1]);
        for (u32 i = 0; i < 2; i++)
            if constexpr (In_registers)
                load_registers<Kind>(*by, *of, of->count + i, a[i]);
            else
                load_operand<Kind>(*by->in, a_descriptor, of->numbers[2] == 0, by->index % 4 * 16 + i * 8,
                                   a[i]);
        for (u32 columns = 0; columns < 2 * sums; columns += 8) {
            double made[2][8][8] = {};
            load_operand<Of_b>(*by->in, b_descriptor, of->numbers[In_registers ? 2 : 3] == 0, columns, b);
            for (u32 half = 0; half < 2; half++)
                for (u32 k = 0; k < Kind::K; k++)
                    for (u32 row = 0; row < 8; row++)
                        for (u32 column = 0; column < 8; column++)
                            made[half][row][column] += a[half][k][row] * b[k][column];
            for (u32 i = 0; i < 4; i++) {
                float *to = by->at<float>(of->x[columns / 2 + i]);
                for (u32 of_lane = 0; of_lane < LANES; of_lane++)
                    to[of_lane] = (float)((adds ? to[of_lane] : 0) +
                                          sign * made[i / 2][of_lane / 4][of_lane % 4 * 2 + i % 2]);
            }
        }
    });
}
static void commit_products(warp &w, const op &, u32) {
    w.products.commit(w.in->in->of->chance(2) == 0);
}
// A product is one of four warps: it is done for all of them or for none, so it has to have been begun by all.
static void wait_products(warp &w, const op &o, u32) {
    u64 left = w.products.closed.size(), until;
    left = left < (u64)o.numbers[0] ? left : (u64)o.numbers[0];
    until = w.products.committed() - left;
    warp *four = &w.in->warps[w.index / 4 * 4];
    w.again = false;
    for (u32 i = 0; i < 4; i++)
        w.again = w.again || four[i].products.committed() < until;
    for (u32 i = 0; i < 4 && !w.again; i++)
        if (four[i].products.done < until)
            four[i].products.wait((size_t)(four[i].products.committed() - until));
}

#endif
