/* gemmepi_pack against plain loops: codes by tables that are written here, scales by their definition; what a formula reads of it; refusals. */
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.in.h"

#include "test.h"

#include <math.h>

enum { ROWS = 7, COLUMNS = 12, LD = 15, PACKED_LD = 14, SPACE = 512, POISON = 0xa5 };

static float source[SPACE];
static unsigned char packed[SPACE], scales[SPACE], zeros[SPACE];
static gemmepi_pack_desc desc;

static const double e2m1[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

static void start(void) {
    int i;
    memset(&desc, 0, sizeof desc);
    memset(packed, POISON, sizeof packed);
    memset(scales, POISON, sizeof scales);
    memset(zeros, POISON, sizeof zeros);
    for (i = 0; i < SPACE; i++)
        source[i] = (float)((i * 37 % 101 - 50) * ldexp(1, i / LD % 5 - 5));
    desc.rows = ROWS, desc.columns = COLUMNS, desc.source = source, desc.source_ld = LD;
    desc.packed = packed, desc.ld = PACKED_LD;
    desc.scale_dtype = desc.zero_dtype = GEMMEPI_F32;
}

/* >>what is stored, decoded by hand */

static double code_as_number(gemmepi_dtype dtype, int64_t at) {
    unsigned code = dtype == GEMMEPI_I8 ? packed[at] : at % 2 ? packed[at / 2] / 16u : packed[at / 2] % 16u;
    switch (dtype) {
    case GEMMEPI_I4:
        return code < 8 ? (double)code : (double)code - 16;
    case GEMMEPI_E2M1:
        return code < 8 ? e2m1[code] : -e2m1[code - 8];
    case GEMMEPI_I8:
        return code < 128 ? (double)code : (double)code - 256;
    default:
        return (double)code;
    }
}

/* Whether a number that is stored is one of the nearest to x: none that the type has is nearer. */
static int is_nearest(gemmepi_dtype dtype, double got, double x) {
    double least = dtype == GEMMEPI_U4 ? 0 : dtype == GEMMEPI_I4 ? -8 : -128, off = fabs(got - x);
    double most = dtype == GEMMEPI_U4 ? 15 : dtype == GEMMEPI_I4 ? 7 : 127, nearest;
    int i;
    if (dtype == GEMMEPI_E2M1) {
        for (i = 0; i < 8; i++)
            if (fabs(e2m1[i] - x) < off || fabs(-e2m1[i] - x) < off)
                return 0;
        return 1;
    }
    nearest = x > most ? most : x < least ? least : floor(x + 0.5);
    if (nearest - x >= 0.5 && nearest - x <= 0.5 && fmod(nearest, 2) != 0) /* the even one */
        nearest -= 1;
    return got >= nearest && got <= nearest;
}

static int blocks_of(int extent, int block) {
    return block ? (extent + block - 1) / block : 1;
}

static int block_of(int i, int block) {
    return block ? i / block : 0;
}

/* All elements against scales and zeros as they are now, and the gaps as they were. */
static void check_packed(const char *what, const float *of_scales, const float *of_zeros) {
    int bits = desc.dtype == GEMMEPI_I8 ? 8 : 4, i, j;
    for (i = 0; i < ROWS; i++) {
        for (j = 0; j < COLUMNS; j++) {
            int at = block_of(i, (int)desc.block_rows) * blocks_of(COLUMNS, (int)desc.block_columns) +
                     block_of(j, (int)desc.block_columns);
            double x = (double)source[i * LD + j] / (desc.divisor > 0 ? desc.divisor : 1);
            x = x / (of_scales ? (double)of_scales[at] : 1) + (of_zeros ? (double)of_zeros[at] : 0);
            CHECK(is_nearest(desc.dtype, code_as_number(desc.dtype, i * PACKED_LD + j), x),
                  "%s: [%d, %d] is %g of %.17g", what, i, j, code_as_number(desc.dtype, i * PACKED_LD + j),
                  x);
        }
        for (j = COLUMNS * bits / 8; j < PACKED_LD * bits / 8; j++)
            CHECK(packed[i * PACKED_LD * bits / 8 + j] == POISON, "%s: a gap of row %d is written", what, i);
    }
}

static void run(const char *what) {
    CHECK(gemmepi_pack(&desc) == GEMMEPI_OK, "%s: %s", what, gemmepi_last_error());
}

/* >>tests */

static const gemmepi_dtype types[] = {GEMMEPI_I4, GEMMEPI_U4, GEMMEPI_E2M1, GEMMEPI_I8};
static const int blocks[][2] = {{0, 0}, {1, 0}, {1, 4}, {2, 5}, {3, 12}, {0, 1}, {100, 100}};

static void numbers_are_rounded_to_the_nearest_that_the_type_has(void) {
    int t;
    for (t = 0; t < 4; t++) {
        start();
        desc.dtype = types[t];
        run("without scales");
        check_packed("without scales", NULL, NULL);
    }
}

static void given_scales_and_zeros_are_those_of_the_block(void) {
    static float of_scales[SPACE], of_zeros[SPACE];
    int t, b, i;
    for (i = 0; i < SPACE; i++)
        of_scales[i] = (float)ldexp(1, i % 7 - 4), of_zeros[i] = (float)(i % 5 + 3);
    for (t = 0; t < 4; t++)
        for (b = 0; b < 7; b++) {
            start();
            desc.dtype = types[t], desc.block_rows = blocks[b][0], desc.block_columns = blocks[b][1];
            desc.scale = of_scales, desc.divisor = b % 2 ? 4 : 0;
            desc.zero = types[t] == GEMMEPI_E2M1 ? NULL : of_zeros;
            run("given");
            check_packed("given", of_scales, (float *)desc.zero);
        }
}

/* Least and largest of a block, and 0. */
static void reach_of(int bi, int bj, double *least, double *most) {
    int i, j;
    *least = *most = 0;
    for (i = 0; i < ROWS; i++)
        for (j = 0; j < COLUMNS; j++)
            if (block_of(i, (int)desc.block_rows) == bi && block_of(j, (int)desc.block_columns) == bj) {
                *least = fmin(*least, (double)source[i * LD + j]);
                *most = fmax(*most, (double)source[i * LD + j]);
            }
}

static void scales_are_found_for_each_block(void) {
    int t, b, with_zero, bi, bj;
    for (t = 0; t < 4; t++)
        for (b = 0; b < 7; b++)
            for (with_zero = 0; with_zero < 2; with_zero++) {
                const float *of_scales = (const float *)(const void *)scales,
                            *of_zeros = with_zero ? (const float *)(const void *)zeros : NULL;
                double top = types[t] == GEMMEPI_I4     ? 7
                             : types[t] == GEMMEPI_U4   ? 15
                             : types[t] == GEMMEPI_E2M1 ? 6
                                                        : 127;
                int at = 0;
                if (with_zero && types[t] == GEMMEPI_E2M1)
                    continue;
                start();
                desc.dtype = types[t], desc.block_rows = blocks[b][0], desc.block_columns = blocks[b][1];
                desc.scale = scales, desc.find = 1, desc.zero = with_zero ? zeros : NULL;
                run("found");
                for (bi = 0; bi < blocks_of(ROWS, (int)desc.block_rows); bi++)
                    for (bj = 0; bj < blocks_of(COLUMNS, (int)desc.block_columns); bj++, at++) {
                        double least, most, want, codes = types[t] == GEMMEPI_I8 ? 255 : 15, low;
                        reach_of(bi, bj, &least, &most);
                        want = with_zero ? (most - least) / codes : fmax(most, -least) / top;
                        CHECK(fabs((double)of_scales[at] - want) <= 1e-7 * want, "scale %d is %.9g, not %.9g",
                              at, (double)of_scales[at], want);
                        low = types[t] == GEMMEPI_U4 ? 0 : types[t] == GEMMEPI_I4 ? -8 : -128;
                        CHECK(!with_zero || fabs((double)of_zeros[at] - (low - least / want)) <= 0.5001,
                              "zero %d is %g", at, (double)of_zeros[at]);
                    }
                CHECK(scales[4 * at] == POISON, "more scales than blocks are written");
                check_packed("found", of_scales, of_zeros);
            }
}

static void a_scale_in_e8m0_is_rounded_up_so_that_nothing_saturates(void) {
    static float of_scales[SPACE];
    int b, i;
    for (b = 0; b < 7; b++) {
        start();
        desc.dtype = GEMMEPI_E2M1, desc.block_rows = blocks[b][0], desc.block_columns = blocks[b][1];
        desc.scale = scales, desc.scale_dtype = GEMMEPI_E8M0, desc.find = 1;
        run("E8M0");
        for (i = 0; i < blocks_of(ROWS, blocks[b][0]) * blocks_of(COLUMNS, blocks[b][1]); i++) {
            double least, most, amax;
            of_scales[i] = (float)ldexp(1, (int)scales[i] - 127);
            reach_of(i / blocks_of(COLUMNS, blocks[b][1]), i % blocks_of(COLUMNS, blocks[b][1]), &least,
                     &most);
            amax = fmax(most, -least);
            CHECK(amax <= 6 * (double)of_scales[i] && amax > 3 * (double)of_scales[i],
                  "scale %d is %g of amax %g", i, (double)of_scales[i], amax);
        }
        check_packed("E8M0", of_scales, NULL);
    }
}

static void scales_of_nothing_and_of_what_is_not_finite_are_1(void) {
    static const float values[] = {0, INFINITY, NAN, 1e-30f, 1e30f};
    static const unsigned char codes[] = {0x38, 0x38, 0x38, 0x01, 0x7e}; /* E4M3 */
    int i;
    for (i = 0; i < 5; i++) {
        uint16_t half;
        start();
        source[0] = values[i], desc.rows = 1, desc.columns = 2, source[1] = 0;
        desc.dtype = GEMMEPI_I4, desc.scale = scales, desc.find = 1, desc.scale_dtype = GEMMEPI_E4M3;
        run("of two");
        CHECK(scales[0] == codes[i], "%g: 0x%x", (double)values[i], scales[0]);
        desc.scale_dtype = GEMMEPI_F16;
        run("of two");
        memcpy(&half, scales, sizeof half);
        CHECK(half == (i < 3 ? 0x3c00 : i == 3 ? 1 : 0x7bff), "%g: 0x%x in F16", (double)values[i], half);
    }
}

/* -1 to 1 by the scale 1/4, rounded up from 2/15; -1e6 to 0 by 448, the largest. */
static void a_zero_goes_by_the_scale_that_is_stored_and_is_a_code(void) {
    int8_t zero;
    start();
    desc.rows = 1, desc.columns = 2, desc.dtype = GEMMEPI_U4, desc.find = 1, desc.zero_dtype = GEMMEPI_I8;
    desc.scale = scales, desc.zero = &zero;
    source[0] = -1, source[1] = 1, desc.scale_dtype = GEMMEPI_E8M0;
    run("E8M0");
    CHECK(scales[0] == 125 && zero == 4 && packed[0] == 0x80, "0x%x, %d, 0x%x", scales[0], zero, packed[0]);
    source[0] = -1e6f, source[1] = 0, desc.scale_dtype = GEMMEPI_E4M3;
    run("E4M3");
    CHECK(scales[0] == 0x7e && zero == 15 && packed[0] == 0xf0, "0x%x, %d, 0x%x", scales[0], zero, packed[0]);
}

/* By 8-bit types as any store has them, E8M0 among them. */
static void other_types_are_stored_as_everywhere(void) {
    static const float numbers[] = {1, -2, 448, 1e9f, 0.0009765625f, 3};
    static const unsigned char e4m3[] = {0x38, 0xc0, 0x7e, 0x7e, 0x00, 0x44},
                               e8m0[] = {127, 0, 136, 157, 117, 128};
    start();
    memcpy(source, numbers, sizeof numbers);
    desc.rows = 1, desc.columns = 6, desc.dtype = GEMMEPI_E4M3;
    run("E4M3");
    CHECK(memcmp(packed, e4m3, 6) == 0 && packed[6] == POISON, "0x%x 0x%x 0x%x 0x%x 0x%x 0x%x", packed[0],
          packed[1], packed[2], packed[3], packed[4], packed[5]);
    desc.dtype = GEMMEPI_E8M0;
    run("E8M0");
    CHECK(memcmp(packed, e8m0, 6) == 0 && packed[6] == POISON, "%d %d %d %d %d %d", packed[0], packed[1],
          packed[2], packed[3], packed[4], packed[5]);
}

/* d = (w - zero) * scale is within a scale of what was packed: zero is rounded, too. */
static void a_formula_has_the_numbers_back(void) {
    static float back[ROWS * COLUMNS];
    int64_t shape[2] = {ROWS, COLUMNS}, stride[2] = {PACKED_LD, 1}, of_rows[2] = {ROWS, 1};
    gemmepi_tensor w, scale, zero, y;
    gemmepi_operand operands[3];
    gemmepi_elementwise_desc read;
    gemmepi_context *host;
    gemmepi_config config;
    int i, j;
    memset(&config, 0, sizeof config), memset(&w, 0, sizeof w), memset(operands, 0, sizeof operands);
    memset(&read, 0, sizeof read);
    config.device = GEMMEPI_DEVICE_HOST;
    start();
    desc.dtype = GEMMEPI_U4, desc.block_rows = 1, desc.scale = scales, desc.zero = zeros, desc.find = 1;
    run("rows");
    w.rank = 2, w.shape = shape;
    scale = zero = y = w;
    w.data = packed, w.dtype = GEMMEPI_U4, w.stride = stride, y.data = back;
    scale.shape = zero.shape = of_rows, scale.data = scales, zero.data = zeros;
    operands[0].name = "w", operands[0].kind = GEMMEPI_FULL, operands[0].tensor = &w;
    operands[1].name = "scale", operands[1].kind = GEMMEPI_PER_ROW, operands[1].tensor = &scale;
    operands[2].name = "zero", operands[2].kind = GEMMEPI_PER_ROW, operands[2].tensor = &zero;
    read.formula = "d = (w - zero) * scale", read.operands = operands, read.operand_count = 3, read.y = &y;
    CHECK(gemmepi_create(&config, &host) == GEMMEPI_OK &&
              gemmepi_elementwise(host, &read, NULL, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    gemmepi_destroy(host);
    for (i = 0; i < ROWS; i++)
        for (j = 0; j < COLUMNS; j++) {
            double step = (double)((float *)(void *)scales)[i];
            CHECK(fabs((double)back[i * COLUMNS + j] - (double)source[i * LD + j]) <= 1.0001 * step,
                  "[%d, %d] is %g, not %g", i, j, (double)back[i * COLUMNS + j], (double)source[i * LD + j]);
        }
}

/* >>refusals */

static void refuse_as(gemmepi_status status, int line, const char *words) {
    unsigned char before[SPACE];
    gemmepi_status got;
    memcpy(before, packed, sizeof before);
    got = gemmepi_pack(&desc);
    CHECK(got == status && strstr(gemmepi_last_error(), words), "line %d: %s: %s", line,
          gemmepi_status_name(got), gemmepi_last_error());
    CHECK(memcmp(before, packed, sizeof before) == 0, "line %d: something is written", line);
    start();
    desc.dtype = GEMMEPI_I4;
}

#define REFUSED(words, ...) ((void)(__VA_ARGS__), refuse_as(GEMMEPI_INVALID_ARGUMENT, __LINE__, words))

static void what_cannot_be_packed_is_refused(void) {
    start();
    desc.dtype = GEMMEPI_I4;
    CHECK(gemmepi_pack(NULL) == GEMMEPI_INVALID_ARGUMENT, "NULL is accepted");
    REFUSED("desc.dtype is no gemmepi_dtype (0)", desc.dtype = GEMMEPI_DTYPE_DEFAULT);
    REFUSED("desc.dtype is F32 (1); accepted here: ", desc.dtype = GEMMEPI_F32);
    REFUSED("desc.dtype is no gemmepi_dtype (99)", desc.dtype = (gemmepi_dtype)99);
    REFUSED("desc.source_dtype is I64 (9); accepted here: F32", desc.source_dtype = GEMMEPI_I64);
    REFUSED("desc.scale_dtype is I8 (7); accepted here: F32",
            (desc.scale = scales, desc.scale_dtype = GEMMEPI_I8));
    REFUSED("desc.zero_dtype is U4 (11); accepted here: F32",
            (desc.zero_dtype = GEMMEPI_U4, desc.zero = zeros));
    REFUSED("desc.scale_dtype is 0: say the type here, and in the operand",
            (desc.scale = scales, desc.scale_dtype = GEMMEPI_DTYPE_DEFAULT));
    REFUSED("desc.zero_dtype is 0: say the type",
            (desc.zero = zeros, desc.zero_dtype = GEMMEPI_DTYPE_DEFAULT));
    REFUSED("desc.rows is -1", desc.rows = -1);
    REFUSED("desc.columns is -2", desc.columns = -2);
    REFUSED("desc.columns is 11; of I4 a byte has two", desc.columns = 11);
    REFUSED("desc.ld is 13; of I4 a byte has two", desc.ld = 13);
    REFUSED("desc.ld is 10; a row has 12", desc.ld = 10);
    REFUSED("desc.source_ld is 11; a row has 12", desc.source_ld = 11);
    REFUSED("desc.source_ld is -1; a row has 12", desc.source_ld = -1);
    REFUSED("more than 2^56", desc.ld = (int64_t)1 << 55);
    REFUSED("desc.block_rows is -1", desc.block_rows = -1);
    REFUSED("desc.block_columns is -3", desc.block_columns = -3);
    REFUSED("desc.find is 2", desc.find = 2);
    REFUSED("desc.find is 1, but desc.scale", desc.find = 1);
    REFUSED("desc.find is 1, but desc.dtype is E8M0",
            (desc.find = 1, desc.scale = scales, desc.dtype = GEMMEPI_E8M0));
    REFUSED("desc.zero is given, but desc.dtype is E2M1", (desc.zero = zeros, desc.dtype = GEMMEPI_E2M1));
    REFUSED("desc.divisor is -1", desc.divisor = -1);
    REFUSED("desc.divisor is inf", desc.divisor = (double)INFINITY);
    REFUSED("desc.divisor is nan", desc.divisor = (double)NAN);
    REFUSED("desc.source is NULL", desc.source = NULL);
    REFUSED("desc.packed is NULL", desc.packed = NULL);
    desc.source = (const char *)source + 2;
    refuse_as(GEMMEPI_MISALIGNED, __LINE__, "multiple of 4 bytes");
    REFUSED("overlaps desc.source", desc.packed = source);
    REFUSED("desc.scale", (desc.scale = packed, desc.find = 1));
    REFUSED("overlaps desc.scale", (desc.scale = scales, desc.zero = scales, desc.find = 1));
}

static void nothing_is_packed_of_nothing(void) {
    int i;
    start();
    desc.dtype = GEMMEPI_I4;
    for (i = 0; i < 2; i++) {
        desc.rows = i ? ROWS : 0, desc.columns = i ? 0 : COLUMNS;
        desc.source = NULL, desc.packed = NULL;
        desc.scale = scales, desc.find = 1;
        run("nothing");
        CHECK(scales[0] == POISON, "a scale is written");
    }
}

int main(void) {
    RUN(numbers_are_rounded_to_the_nearest_that_the_type_has);
    RUN(given_scales_and_zeros_are_those_of_the_block);
    RUN(scales_are_found_for_each_block);
    RUN(a_scale_in_e8m0_is_rounded_up_so_that_nothing_saturates);
    RUN(scales_of_nothing_and_of_what_is_not_finite_are_1);
    RUN(a_zero_goes_by_the_scale_that_is_stored_and_is_a_code);
    RUN(other_types_are_stored_as_everywhere);
    RUN(a_formula_has_the_numbers_back);
    RUN(what_cannot_be_packed_is_refused);
    RUN(nothing_is_packed_of_nothing);
    return test_finish();
}
