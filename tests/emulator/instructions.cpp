// The emulator's mma.sync against the tables of PTX's manual ("Matrix Fragments for mma"), which say which element of which matrix is
// where in a lane's registers: whole numbers, to the bit. Closes with 'N passed, N failed, N skipped'.
#include "driver.h"

enum kind { F16, BF16, TF32, E4M3, E5M2, S8, E2M1 };
enum sums { IN_F32, IN_F16 };
static const char *const names[] = {"f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "e2m1"};
static const u32 bits_of[] = {16, 16, 32, 8, 8, 8, 4};
// Of -3 to 3.
static const u32 codes[][7] = {{0xc200, 0xc000, 0xbc00, 0, 0x3c00, 0x4000, 0x4200},
                               {0xc040, 0xc000, 0xbf80, 0, 0x3f80, 0x4000, 0x4040},
                               {0xc0400000, 0xc0000000, 0xbf800000, 0, 0x3f800000, 0x40000000, 0x40400000},
                               {0xc4, 0xc0, 0xb8, 0, 0x38, 0x40, 0x44},
                               {0xc2, 0xc0, 0xbc, 0, 0x3c, 0x40, 0x42},
                               {0xfd, 0xfe, 0xff, 0, 1, 2, 3},
                               {0xd, 0xc, 0xa, 0, 2, 4, 5}};

// blocks: of k, that have a scale in E8M0 or, four of them, in E4M3; 0: none. Their first byte in a word, and the lanes that have it:
// "Matrix scaling" in the manual.
struct instruction {
    u32 m, k;
    kind a, b;
    sums in = IN_F32; // S8: s32
    u32 blocks = 0, byte_a = 0, thread_a = 0, byte_b = 0, thread_b = 0;
};
static const instruction instructions[] = {{16, 8, F16, F16},
                                           {16, 16, F16, F16},
                                           {16, 8, F16, F16, IN_F16},
                                           {16, 16, F16, F16, IN_F16},
                                           {16, 16, BF16, BF16},
                                           {16, 8, TF32, TF32},
                                           {16, 32, E4M3, E4M3},
                                           {16, 32, E4M3, E5M2},
                                           {16, 32, E5M2, E4M3},
                                           {16, 32, E5M2, E5M2},
                                           {16, 32, S8, S8},
                                           {8, 16, S8, S8},
                                           {16, 32, E4M3, E4M3, IN_F32, 1},
                                           {16, 32, E4M3, E5M2, IN_F32, 1, 3, 0, 1, 2},
                                           {16, 32, E5M2, E4M3, IN_F32, 1, 2, 1, 0, 3},
                                           {16, 32, E5M2, E5M2, IN_F32, 1, 1, 1, 2, 1},
                                           {16, 64, E2M1, E2M1, IN_F32, 2},
                                           {16, 64, E2M1, E2M1, IN_F32, 2, 2, 1, 0, 3},
                                           {16, 64, E2M1, E2M1, IN_F32, 4},
                                           {16, 64, E2M1, E2M1, IN_F32, 4, 0, 1, 0, 2}};

struct spot {
    u32 row, column;
};
// The manual's tables: g is the lane over 4, t the lane modulo 4, i the element among a lane's.
static spot spot_of_a(const instruction &of, u32 g, u32 t, u32 i) {
    switch (of.m * 100 + of.k * 2 + (of.a == TF32)) {
    case 16 * 100 + 8 * 2: // .f16
        return {i < 2 ? g : g + 8, t * 2 + (i & 1)};
    case 16 * 100 + 8 * 2 + 1: // .tf32
        return {i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4};
    case 16 * 100 + 16 * 2:
        return {i < 2 || (4 <= i && i < 6) ? g : g + 8, t * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
    case 16 * 100 + 32 * 2:
        return {i < 4 || (8 <= i && i < 12) ? g : g + 8, t * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
    case 16 * 100 + 64 * 2:
        return {i < 8 || (16 <= i && i < 24) ? g : g + 8, t * 8 + (i & 7) + (i >= 16 ? 32 : 0)};
    }
    return {g, t * 4 + i}; // m8n8k16
}
static spot spot_of_b(const instruction &of, u32 g, u32 t, u32 i) {
    switch (of.m * 100 + of.k * 2 + (of.a == TF32)) {
    case 16 * 100 + 8 * 2:
        return {t * 2 + i, g};
    case 16 * 100 + 8 * 2 + 1:
        return {i == 0 ? t : t + 4, g};
    case 16 * 100 + 16 * 2:
        return {t * 2 + (i & 1) + (i >= 2 ? 8 : 0), g};
    case 16 * 100 + 32 * 2:
        return {t * 4 + (i & 3) + (i >= 4 ? 16 : 0), g};
    case 16 * 100 + 64 * 2:
        return {t * 8 + (i & 7) + (i >= 8 ? 32 : 0), g};
    }
    return {t * 4 + i, g};
}
static spot spot_of_c(const instruction &, u32 g, u32 t, u32 i) {
    return {i < 2 ? g : g + 8, t * 2 + (i & 1)};
}

enum { LANE_WORDS = 16 }; // of a lane in memory: A's, B's, the sums before, scales of both, the sums
struct matrices {
    u32 a[16][64], b[64][8]; // as bits
    s64 c[16][8];
    u32 scale_a[16][4], scale_b[4][8]; // in E8M0 or E4M3
};

static std::string list(u32 first, u32 count) {
    std::string text = "{";
    for (u32 i = 0; i < count; i++)
        text += (i ? ", %r" : "%r") + std::to_string(first + i);
    return text + "}";
}
static std::string pair(u32 first, u32 second) {
    return "{" + std::to_string(first) + ", " + std::to_string(second) + "}";
}
// Registers of a lane's sums: of F16 pairs.
static u32 words_of_c(const instruction &of) {
    return of.m / (of.in == IN_F16 ? 8 : 4);
}
static std::string text_of(const instruction &of) {
    const char *sum = of.a == S8 ? "s32" : of.in == IN_F16 ? "f16" : "f32";
    u32 a = of.m * of.k * bits_of[of.a] / 1024, b = of.k * 8 * bits_of[of.b] / 1024, c = words_of_c(of), i;
    u32 scales = a + b + c, d = scales + 2;
    std::string text =
        ".version 8.7\n.target sm_120a\n.address_size 64\n.visible .entry gemmepi_one(.param .align 8 .b8 p[8])\n{\n"
        ".reg .b32 %r<64>;\n.reg .b64 %rd<8>;\nld.param.u64 %rd1, [p];\nmov.u32 %r40, %tid.x;\n"
        "mul.wide.u32 %rd2, %r40, 64;\nadd.s64 %rd3, %rd1, %rd2;\n";
    for (i = 0; i < d; i++)
        text += "ld.global.u32 %r" + std::to_string(i) + ", [%rd3+" + std::to_string(4 * i) + "];\n";
    text += "mma.sync.aligned.m" + std::to_string(of.m) + "n8k" + std::to_string(of.k) + ".row.col" +
            (of.blocks ? std::string(of.blocks == 1 ? ".kind::mxf8f6f4" : ".kind::mxf4nvf4") +
                             ".block_scale.scale_vec::" + std::to_string(of.blocks) + "X"
                       : "") +
            "." + sum + "." + names[of.a] + "." + names[of.b] + "." + sum +
            (of.blocks ? of.blocks == 4 ? ".ue4m3" : ".ue8m0" : "") + " " + list(d, c) + ", " + list(0, a) +
            ", " + list(a, b) + ", " + list(a + b, c);
    if (of.blocks)
        text += ", " + list(scales, 1) + ", " + pair(of.byte_a, of.thread_a) + ", " + list(scales + 1, 1) +
                ", " + pair(of.byte_b, of.thread_b);
    text += ";\n";
    for (i = 0; i < c; i++)
        text += "st.global.u32 [%rd3+" + std::to_string(4 * (LANE_WORDS - c + i)) + "], %r" +
                std::to_string(d + i) + ";\n";
    return text + "ret;\n}\n";
}

static void put(u32 *words, u32 i, u32 bits, u32 code) {
    words[i * bits / 32] |= code << i * bits % 32;
}

// The lane's words of scales: all bytes are 0xff, which is no number, but for those that the instruction names.
static void put_scales(const instruction &of, const matrices &x, u32 lane, u32 *words) {
    u32 row = lane / 4 + lane % 2 * 8;
    words[0] = words[1] = ~0u;
    for (u32 i = 0; i < of.blocks; i++) {
        if (lane % 4 / 2 == of.thread_a)
            words[0] ^= (x.scale_a[row][i] ^ 0xff) << 8 * (of.byte_a + i);
        if (lane % 4 == of.thread_b)
            words[1] ^= (x.scale_b[i][lane / 4] ^ 0xff) << 8 * (of.byte_b + i);
    }
}

// What the instruction leaves of c, as numbers.
static bool run(const instruction &of, const matrices &x, double d[16][8]) {
    u32 a = of.m * of.k * bits_of[of.a] / 1024, b = of.k * 8 * bits_of[of.b] / 1024, c = words_of_c(of);
    u32 bits = of.in == IN_F16 ? 16 : 32;
    gpi__cu_module module;
    gpi__cu_function function;
    gpi__cu_deviceptr memory;
    void *parameters[1] = {&memory};
    if (cuMemAlloc_v2(&memory, LANES * LANE_WORDS * 4) || cuModuleLoadData(&module, text_of(of).c_str()) ||
        cuModuleGetFunction(&function, module, "gemmepi_one"))
        return false;
    u32(*lanes)[LANE_WORDS] = (u32(*)[LANE_WORDS])memory;
    memset(lanes, 0, LANES * LANE_WORDS * 4);
    for (u32 lane = 0; lane < LANES; lane++) {
        for (u32 i = 0; i < a * 32 / bits_of[of.a]; i++) {
            spot at = spot_of_a(of, lane / 4, lane % 4, i);
            put(lanes[lane], i, bits_of[of.a], x.a[at.row][at.column]);
        }
        for (u32 i = 0; i < b * 32 / bits_of[of.b]; i++) {
            spot at = spot_of_b(of, lane / 4, lane % 4, i);
            put(lanes[lane] + a, i, bits_of[of.b], x.b[at.row][at.column]);
        }
        for (u32 i = 0; i < of.m / 4; i++) {
            spot at = spot_of_c(of, lane / 4, lane % 4, i);
            s64 whole = x.c[at.row][at.column];
            put(lanes[lane] + a + b, i, bits,
                of.a == S8        ? (u32)whole
                : of.in == IN_F16 ? f16_of_f32((float)whole)
                                  : same_bits<u32>((float)whole));
        }
        if (of.blocks)
            put_scales(of, x, lane, lanes[lane] + a + b + c);
    }
    if (cuLaunchKernel(function, 1, 1, 1, LANES, 1, 1, 0, NULL, parameters, NULL))
        return false;
    for (u32 lane = 0; lane < LANES; lane++)
        for (u32 i = 0; i < of.m / 4; i++) {
            spot at = spot_of_c(of, lane / 4, lane % 4, i);
            u32 word = lanes[lane][LANE_WORDS - c + i * bits / 32] >> i * bits % 32;
            d[at.row][at.column] = of.a == S8        ? (double)(s32)word
                                   : of.in == IN_F16 ? (double)f32_of_f16((u16)word)
                                                     : (double)same_bits<float>(word);
        }
    cuModuleUnload(module);
    cuMemFree_v2(memory);
    return true;
}

static u32 power_code(const instruction &of, u32 power) {
    return of.blocks == 4 ? 0x38 + 8 * power : 127 + power;
}
static s64 power_of(const instruction &of, u32 code) {
    return 1 << (of.blocks == 4 ? (code - 0x38) / 8 : code - 127);
}

// Every element of A, B and C is another number than most of its neighbours.
static bool multiplies(const instruction &of) {
    static matrices x;
    static double d[16][8];
    s64 a[16][64], b[64][8];
    u32 seed = 1;
    auto draw = [&](u32 most) {
        return (seed = seed * 1664525u + 1013904223u) >> 16 & 0xffff ? (seed >> 16) % most : 0;
    };
    for (u32 row = 0; row < 16; row++)
        for (u32 k = 0; k < 64; k++) {
            u32 which = draw(7);
            a[row][k] = (s64)which - 3, x.a[row][k] = codes[of.a][which];
        }
    for (u32 k = 0; k < 64; k++)
        for (u32 column = 0; column < 8; column++) {
            u32 which = draw(7);
            b[k][column] = (s64)which - 3, x.b[k][column] = codes[of.b][which];
        }
    for (u32 row = 0; row < 16; row++)
        for (u32 column = 0; column < 8; column++)
            x.c[row][column] = (s64)draw(100) - 50;
    for (u32 i = 0; i < 4; i++) { // 1, 2 or 4
        for (u32 row = 0; row < 16; row++)
            x.scale_a[row][i] = power_code(of, draw(3));
        for (u32 column = 0; column < 8; column++)
            x.scale_b[i][column] = power_code(of, draw(3));
    }
    if (!run(of, x, d))
        return false;
    for (u32 row = 0; row < of.m; row++)
        for (u32 column = 0; column < 8; column++) {
            s64 exact = x.c[row][column];
            for (u32 k = 0; k < of.k; k++) {
                u32 block = of.blocks ? k / (of.k / of.blocks) : 0;
                exact +=
                    a[row][k] * b[k][column] *
                    (of.blocks ? power_of(of, x.scale_a[row][block]) * power_of(of, x.scale_b[block][column])
                               : 1);
            }
            if (d[row][column] != (double)exact)
                return false;
        }
    return true;
}

// 256 256 and thirty-one times 1 1, of E5M2: below 2^-13 of the largest, ones go. In row 1 they are alone, and stay; in row 2 one is NaN.
static bool cuts_sums_of_fp8() {
    static matrices x;
    static double d[16][8];
    memset(&x, 0, sizeof x);
    for (u32 k = 0; k < 32; k++) {
        x.a[0][k] = k ? 0x3c : 0x5c, x.b[k][0] = k ? 0x3c : 0x5c;
        x.a[1][k] = k ? 0x3c : 0, x.a[2][k] = k ? 0x3c : 0x7f;
    }
    return run({16, 32, E5M2, E5M2}, x, d) && d[0][0] == 65536 && d[1][0] == 31 && d[2][0] != d[2][0];
}

// F16 has every second whole number from 2048 on, ties go to even ones; below 2^-14 multiples of 2^-24; nothing above 65504. Infinity times 0
// is NaN in its row alone.
static bool rounds_sums_in_f16(u32 of_k) {
    static matrices x;
    static double d[16][8];
    memset(&x, 0, sizeof x);
    for (u32 row = 0; row < 16; row++)
        for (u32 column = 0; column < 8; column++)
            x.c[row][column] = row == 0 ? 2048 : row == 1 ? 2050 : row == 2 ? 60000 : row == 3 ? -60000 : 0;
    for (u32 k = 0; k < of_k; k++)
        x.b[k][0] = 0x3c00, x.b[k][1] = k ? 0 : 0x0001; // ones; 2^-24
    x.a[0][0] = x.a[1][0] = 0x3c00;                     // 2048 + 1, 2050 + 1
    x.a[2][0] = 0x7000, x.a[3][0] = 0xf000;             // 60000 + 8192
    x.a[4][0] = 0x3c00, x.a[5][0] = 0x3800;             // column 1: 2^-24, and a half of it
    x.a[6][0] = 0x7c00;                                 // times 0
    return run({16, of_k, F16, F16, IN_F16}, x, d) && d[0][0] == 2048 && d[1][0] == 2052 &&
           d[2][0] == HUGE_VAL && d[3][0] == -HUGE_VAL && d[4][1] == ldexp(1, -24) && d[5][1] == 0 &&
           d[6][2] != d[6][2] && d[7][2] == 0;
}

int main() {
    int passed = 0, failed = 0;
    auto say = [&](bool holds, const std::string &what) {
        printf("%s %s\n", holds ? "ok  " : "FAIL", what.c_str());
        (holds ? passed : failed)++;
    };
    for (const instruction &of : instructions)
        say(multiplies(of), "m" + std::to_string(of.m) + "n8k" + std::to_string(of.k) + " of " + names[of.a] +
                                " and " + names[of.b] +
                                (of.blocks ? ", " + std::to_string(of.blocks) + " scales, byte and thread " +
                                                 pair(of.byte_a, of.thread_a) + pair(of.byte_b, of.thread_b)
                                           : "") +
                                (of.in == IN_F16 ? " with sums in F16" : "") + " is the manual's");
    say(rounds_sums_in_f16(8) && rounds_sums_in_f16(16),
        "sums in F16 are rounded to even, and infinite beyond 65504");
    say(cuts_sums_of_fp8(), "sums of fp8 are cut below 2^-13 of the largest product");
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
