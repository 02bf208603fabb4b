/* kernels [--jobs N] [--only FAMILY] [--share N] [--turn N] [--all] FOLDER: compiles a representative set of specialisations of every kernel family (or
   of one), with the NVRTC of this machine and the library's own code, for every architecture that the family is for, into
   FOLDER/NAME.ARCH.cubin. Needs no GPU. With --all every one for every architecture: 39,000, which take a processor five hours.
   With --share N one in N, others for each turn from 0 on; from turn N on for other architectures, and with shapes and layouts that an epilogue has not had before.
   The family drawn is what 300 random problems run on each of seven chips, one kernel in ten without --all. FOLDER/NAME.ARCH.txt says what was
   compiled, and what its launches ask for; machine_code.py reads both.

   A kernel fails if it does not compile, if ptxas puts anything of it into local memory (a spill or a stack frame), or if
   the log has a warning. Closes with the registers on sm_90 and 'N passed, N failed, N skipped'; exits with 77 if
   there is no NVRTC. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "drawn_kernels.h"
#include "row_factor.h"

#include <ctype.h>
#include <errno.h>
#include <time.h>
#if !GPI__WINDOWS
#include <sys/wait.h>
#include <unistd.h>
#endif

enum { EXIT_SKIP = 77, MAX_KERNELS = 65536, TABLE_ARCH = 90 };

/* >>families: what is compiled for what */

typedef struct family {
    const char *name, *file;
    int oldest; /* the first architecture                                                          */
    const char
        *alone; /* the only target, which NVRTC takes without listing it ("sm_90a"); NULL: all listed */
    int needs;  /* the architecture that the list must have for alone                               */
} family;

static const family pass = {"pass", "pass.cu", 0, NULL, 0};
static const family reduce = {"reduce", "reduce.cu", 0, NULL, 0};
static const family convert = {"convert", "convert.cu", 0, NULL, 0};
static const family pack = {"pack", "pack.cu", 0, NULL, 0};
static const family transpose = {"transpose", "transpose.cu", 0, NULL, 0};
static const family elementwise = {"elementwise", "elementwise.cu", 0, NULL, 0};
static const family sum = {"sum", "sum.cu", 0, NULL, 0};
static const family scaled = {"scaled", "scaled.cu", 0, NULL, 0};
static const family found = {"found", "gemm_sm90.cu", 0, "sm_90a", 90};
static const family history = {"history", "history.cu", 0, NULL, 0};
static const family found_rows = {"found_rows", "scaled_rows.cu", 0, NULL, 0};
static const family formula_pass = {"formula_pass", "formula_pass.cu", 0, NULL, 0};
static const family formula_reduce = {"formula_reduce", "formula_reduce.cu", 0, NULL, 0};
static const family plain = {"plain", "gemm_plain.cu", 0, NULL, 0};
static const family fused = {"fused", "gemm_sm90.cu", 0, "sm_90a", 90};
static const family fp8 = {"fp8", "gemm_sm90.cu", 0, "sm_90a", 90};
static const family mma = {"mma", "gemm_sm80.cu", 80, NULL, 0};
static const family mma_i8 = {"mma_i8", "gemm_sm80.cu", 80, NULL, 0};
static const family mma_fp8 = {"mma_fp8", "gemm_sm80.cu", 80, NULL, 0};
static const family mma_scaled = {"mma_scaled", "gemm_sm80.cu", 0, "sm_120a", 120};
static const family mma_turing = {"mma_turing", "gemm_sm80.cu", 0, "sm_75", 75};
static const family small = {"small", "gemm_small.cu", 75, NULL, 0};
static const family outer = {"outer", "gemm_outer.cu", 75, NULL, 0};
static const family small_parts = {"small_parts", "gemm_small.cu", 90, NULL,
                                   0}; /* clusters are Hopper's and later */
static const family weights = {"weights", "gemm_weights.cu", 80, NULL, 0};
static const family weights_parts = {"weights_parts", "gemm_weights.cu", 90, NULL,
                                     0}; /* clusters are Hopper's and later */
static const family weights_made = {"weights_made", "gemm_weights.cu", 80, NULL, 0};
static const family weights_made_parts = {"weights_made_parts", "gemm_weights.cu", 90, NULL, 0};
static const family weights_made_wgmma = {"weights_made_wgmma", "gemm_weights_sm90.cu", 0, "sm_90a", 90};
static const family weights_wgmma = {"weights_wgmma", "gemm_weights_sm90.cu", 0, "sm_90a", 90};
static const family scaled_rows = {"scaled_rows", "scaled_rows.cu", 0, NULL, 0};
static const family scaled_tensor = {"scaled_tensor", "scaled_tensor.cu", 0, NULL, 0};
static const family scaled_turned = {"scaled_turned", "scaled.cu", 0, NULL, 0};
static const family groups = {"groups", "groups.cu", 0, NULL, 0};
static const family maps = {"maps", "maps_sm90.cu", 0, "sm_90a", 90};
static const family grouped = {"grouped", "gemm_sm90.cu", 0, "sm_90a", 90};
static const family grouped_plain = {"grouped_plain", "gemm_plain.cu", 0, NULL, 0};
static const family fused_inside = {"fused_inside", "gemm_sm90.cu", 0, "sm_90a", 90};
static const family mma_inside = {"mma_inside", "gemm_sm80.cu", 80, NULL, 0};
static const family mma_fp8_inside = {"mma_fp8_inside", "gemm_sm80.cu", 80, NULL, 0};
static const family mma_turing_inside = {"mma_turing_inside", "gemm_sm80.cu", 0, "sm_75", 75};
static const family small_inside = {"small_inside", "gemm_small.cu", 75, NULL, 0};
static const family outer_inside = {"outer_inside", "gemm_outer.cu", 75, NULL, 0};
static const family small_parts_inside = {"small_parts_inside", "gemm_small.cu", 90, NULL, 0};
static const family weights_inside = {"weights_inside", "gemm_weights.cu", 90, NULL, 0};
static const family weights_wgmma_inside = {"weights_wgmma_inside", "gemm_weights_sm90.cu", 0, "sm_90a", 90};

static const family drawn = {"drawn", NULL, 0, NULL, 0};

static const family network = {"network", "network.cu", 80, NULL, 0};
static const family network_turing = {"network_turing", "network.cu", 0, "sm_75", 75};
static const family network_few = {"network_few", "network_few.cu", 80, NULL, 0};
static const family network_few_turing = {"network_few_turing", "network_few.cu", 0, "sm_75", 75};
static const family network_wgmma = {"network_wgmma", "network.cu", 0, "sm_90a", 90};
static const family network_backward_wgmma = {"network_backward_wgmma", "network_backward.cu", 0, "sm_90a",
                                              90};
static const family network_backward = {"network_backward", "network_backward.cu", 80, NULL, 0};
static const family network_backward_turing = {"network_backward_turing", "network_backward.cu", 0, "sm_75",
                                               75};

/* One cubin. */
typedef struct kernel {
    const family *family;
    const char *file;
    char name[96];
    char target[16];
    int arch;
    const char *prologue;
    uint64_t hash;        /* the prologue's */
    const char *launches; /* lines "launch ENTRY THREADS SHARED", of those that are drawn */
} kernel;

static kernel kernels[MAX_KERNELS];
static int kernel_count;

static int archs[64], arch_count;

static int is_listed(const family *of, const char *prologue, const char *target) {
    uint64_t hash = gpi__hash(prologue, strlen(prologue));
    int i;
    for (i = 0; i < kernel_count; i++)
        if (kernels[i].hash == hash && kernels[i].family == of && strcmp(kernels[i].target, target) == 0 &&
            strcmp(kernels[i].prologue, prologue) == 0)
            return 1;
    return 0;
}

static char *copy_of(const char *text) {
    char *copy = (char *)malloc(strlen(text) + 1);
    if (!copy) {
        printf("there is no memory for a prologue\n");
        exit(1);
    }
    return strcpy(copy, text);
}

static void add_target(const family *of, const char *name, const char *prologue, const char *target,
                       int arch) {
    kernel *added = &kernels[kernel_count];
    if (is_listed(of, prologue, target))
        return;
    if (kernel_count == MAX_KERNELS) {
        printf("there are more than %d kernels\n", MAX_KERNELS);
        exit(1);
    }
    kernel_count++;
    added->family = of;
    added->file = of->file;
    added->arch = arch;
    added->launches = "";
    snprintf(added->name, sizeof added->name, "%s_%s", of->name, name);
    snprintf(added->target, sizeof added->target, "%s", target);
    added->prologue = copy_of(prologue);
    added->hash = gpi__hash(prologue, strlen(prologue));
}

/* A few specialisations are for every architecture that their family is for, the others for the only one, or that of the table and one more:
   the oldest or the newest, by a coin that falls the same way each time, and from turn N on each in its turn. */
static int few_archs; /* 0: what is added now is for every architecture */
static int takes_all; /* --all: everything is */
/* >>layouts */

/* The layouts of A and B that a family's kernels take, a bit for each: 1 both as they are, 2 A transposed, 4 B, 8 both. Each is tried in each
   of its shapes, or, of families that are not for all shapes, in each that is tried. */
enum { MOST_SHAPES = 32 };
static struct layouts {
    const family *of;
    int shapes, are_all;
    unsigned taken, tried[MOST_SHAPES];
} all_layouts[] = {
    {&fused, GPI__COUNT(gpi__sm90_shapes), 1, 15, {0}},
    {&fp8, GPI__COUNT(gpi__sm90_fp8_shapes), 1, 4, {0}},
    {&found, GPI__COUNT(gpi__sm90_shapes), 0, 15, {0}},
    {&mma, GPI__COUNT(gpi__sm80_shapes), 1, 15, {0}},
    {&mma_fp8, GPI__COUNT(gpi__sm80_shapes), 0, 4, {0}},
    {&small, GPI__COUNT(gpi__small_shapes), 1, 15, {0}},
    {&outer, GPI__COUNT(gpi__outer_shapes), 1, 15, {0}},
    {&weights, GPI__COUNT(gpi__weights_shapes), 0, 4, {0}},
    {&grouped, GPI__COUNT(gpi__sm90_shapes), 0, 5, {0}},
    {&plain, 1, 1, 15, {0}},
    {&grouped_plain, 1, 1, 15, {0}},
    {&fused_inside, GPI__COUNT(gpi__sm90_shapes), 1, 15, {0}},
    {&mma_inside, GPI__COUNT(gpi__sm80_shapes), 1, 15, {0}},
    {&mma_turing_inside, GPI__COUNT(gpi__sm80_shapes), 0, 15, {0}},
    {&mma_fp8_inside, GPI__COUNT(gpi__sm80_shapes), 0, 4, {0}},
    {&small_inside, GPI__COUNT(gpi__small_shapes), 1, 15, {0}},
    {&outer_inside, GPI__COUNT(gpi__outer_shapes), 1, 15, {0}},
    {&weights_inside, GPI__COUNT(gpi__weights_shapes), 0, 4, {0}},
};

static void note_layout(const family *of, int shape, int layout) {
    size_t i = 0;
    while (all_layouts[i].of != of)
        i++;
    all_layouts[i].tried[shape] |= 1u << layout;
}

static void check_layouts(void) {
    size_t i;
    int shape, missing = 0;
    for (i = 0; i < GPI__COUNT(all_layouts); i++)
        for (shape = 0; shape < all_layouts[i].shapes; shape++) {
            unsigned tried = all_layouts[i].tried[shape], left = all_layouts[i].taken & ~tried;
            if (left && (tried || all_layouts[i].are_all)) {
                printf("no kernel of %s has shape %d and these layouts: bits 0x%x\n", all_layouts[i].of->name,
                       shape, left);
                missing++;
            }
        }
    if (missing)
        exit(1);
}

/* Of rows that take turns, two layouts of four: those where A and B lie alike, or those where they do not; --all: all four. */
static int takes_layout(int turn, int layout) {
    return takes_all || ((layout ^ layout >> 1 ^ turn) & 1) == 0;
}

static void transpose_operands(gemmepi_matmul_desc *desc, int layout) {
    desc->a.transposed = layout & 1;
    desc->b.transposed = layout >> 1;
}

/* The specialisation for what its family is for. */
static const char *only = ""; /* a family's name; "": all of them */
static int share = 1, asked;  /* --share: one in so many of what is asked for */
static int turn; /* --turn: which one of these; beyond them, other shapes and layouts for the epilogues */

/* Turns of all shares that lie behind this one. */
static int rounds(void) {
    return turn / share;
}

static int takes_arch(const family *of, const char *prologue, int i) {
    uint32_t coin = (uint32_t)(gpi__hash(prologue, strlen(prologue)) >> 32);
    int oldest = 0, other;
    while (oldest < arch_count - 1 && archs[oldest] < of->oldest)
        oldest++;
    other = coin & 1 ? arch_count - 1 : oldest;
    if (rounds())
        other = oldest + (int)((coin + (uint32_t)rounds()) % (uint32_t)(arch_count - oldest));
    return takes_all || !few_archs || of->alone || archs[i] == TABLE_ARCH || i == other;
}

static void add(const family *of, const char *name, const char *prologue) {
    char target[16];
    int i;
    if ((only[0] && strcmp(only, of->name) != 0) || asked++ % share != turn % share)
        return;
    for (i = 0; i < arch_count; i++) {
        if (archs[i] < of->oldest || !takes_arch(of, prologue, i))
            continue;
        if ((of == &mma_fp8 || of == &mma_fp8_inside) && !gpi__chip_has(archs[i], GPI__ANY_FP8))
            continue;
        snprintf(target, sizeof target, "sm_%d", archs[i]);
        if (of->alone && archs[i] == of->needs)
            add_target(of, name, prologue, of->alone, archs[i]);
        else if (!of->alone)
            add_target(of, name, prologue, target, archs[i]);
    }
}

/* One with an epilogue: the code of its formula stands behind the defines. */
static void add_product(const family *of, const char *name, const char *defines,
                        const gpi__problem *problem) {
    static char prologue[1 << 16];
    gpi__text text = gpi__text_in(prologue, sizeof prologue);
    gpi__append(&text, "%s", defines);
    gpi__append_inside_code(&text, problem);
    if (gpi__text_is_cut(&text)) {
        printf("%s: the prologue has %d characters\n", name, (int)text.length);
        exit(1);
    }
    add(of, name, prologue);
}

/* >>specialisations */

static void append_lower(gpi__text *text, const char *word) {
    char lower[64];
    size_t i;
    for (i = 0; word[i] && i + 1 < sizeof lower; i++)
        lower[i] = word[i] == '|' ? '_' : (char)tolower((unsigned char)word[i]);
    lower[i] = 0;
    gpi__append(text, "%s", lower);
}

static void append_dtype(gpi__text *text, int dtype) {
    append_lower(text, gpi__dtype((gemmepi_dtype)dtype)->name);
}

static int is_invariant;              /* what is added now has BATCH_INVARIANT */
static gemmepi_scale_mode found_mode; /* and FIND_SCALE_D with scales of this mode, 0: not */

static gemmepi_matmul_desc new_desc(gemmepi_dtype a, gemmepi_dtype b, gemmepi_dtype results,
                                    gemmepi_epilogue epilogue) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = desc.n = desc.k = 128;
    desc.batch = 1;
    desc.epilogue = epilogue;
    desc.a.dtype = a;
    desc.b.dtype = b;
    desc.d.dtype = results;
    desc.flags = is_invariant ? GEMMEPI_BATCH_INVARIANT : 0;
    if (found_mode) {
        desc.flags |= GEMMEPI_FIND_SCALE_D;
        desc.d.scale.mode = found_mode;
        desc.amax_history = found_mode == GEMMEPI_SCALE_TENSOR ? 16 : 0;
    }
    return desc;
}

static int has_row_factor; /* what is added now has a factor for each row */

static void append_results(gpi__text *text, const gemmepi_matmul_desc *desc) {
    char epilogue_name[160];
    gpi__text word = gpi__text_in(epilogue_name, sizeof epilogue_name);
    if (desc->d.dtype) {
        gpi__append(text, "_to_");
        append_dtype(text, desc->d.dtype);
    }
    gpi__append_epilogue(&word, desc->epilogue);
    gpi__append(text, "_");
    append_lower(text, epilogue_name);
    gpi__append(text, "%s%s", has_row_factor ? "_row_factor" : "", is_invariant ? "_invariant" : "");
}

static void normalise(const gemmepi_matmul_desc *desc, const char *name, gpi__problem *problem) {
    gemmepi_status status = gpi__normalise(desc, 16, problem);
    if (!status && has_row_factor)
        status = take_row_factor(problem, 0);
    if (!status)
        return;
    printf("%s is no problem: %s\n", name, gemmepi_last_error());
    exit(1);
}

/* product: the type of the finished product where it is not that of its sums, so an upstream gradient's; else 0. parts: in which
   it lies */
static void add_pass_in_parts(const gemmepi_matmul_desc *desc, gemmepi_dtype product, int parts, int aligned,
                              int unit_alpha) {
    gpi__problem problem;
    char name[80], prologue[2048];
    gpi__text text = gpi__text_in(name, sizeof name);
    gpi__text defines = gpi__text_in(prologue, sizeof prologue);
    append_dtype(&text, product ? (int)product : (int)desc->a.dtype);
    append_results(&text, desc);
    gpi__append(&text, "%s%s", product ? "_upstream" : "", unit_alpha ? "_unit_alpha" : "");
    gpi__append(&text, "%s%s", aligned ? "" : "_unaligned", desc->k ? "" : "_no_product");
    if (parts > 1)
        gpi__append(&text, "_%d_parts", parts);
    normalise(desc, name, &problem);
    gpi__append_epilogue_defines(&defines, &problem, aligned, (int)desc->a.scale.mode,
                                 (int)desc->b.scale.mode);
    gpi__append(&defines, "#define GEMMEPI_PRODUCT_TYPE %s\n",
                gpi__dtype(product ? product : (gemmepi_dtype)gpi__product_dtype(&problem))->name);
    gpi__append_pass_defines(&defines, &problem, parts, unit_alpha,
                             gpi__pass_blocks(&problem, parts, aligned),
                             aligned || !gpi__pass_may_cut(&problem) ? GPI__RUN : 1, 32);
    add_product(&pass, name, prologue, &problem);
}

static void add_pass_over(const gemmepi_matmul_desc *desc, gemmepi_dtype product, int aligned,
                          int unit_alpha) {
    add_pass_in_parts(desc, product, 1, aligned, unit_alpha);
}

/* cuBLASLt adds a C of its own type. */
static void add_pass_of(const gemmepi_matmul_desc *desc, int aligned) {
    int wide = desc->a.dtype == GEMMEPI_F32 || desc->a.dtype == GEMMEPI_F64;
    add_pass_over(desc, GEMMEPI_DTYPE_DEFAULT, aligned, wide && !desc->d.dtype && desc->k);
}

/* G of a layer: the pass over dY in `dy`, with P saved in it too. */
static void add_gradient_pass(gemmepi_dtype dy, gemmepi_dtype g, gemmepi_epilogue epilogue, int aligned) {
    gemmepi_dtype sums = dy == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32;
    gemmepi_matmul_desc desc = new_desc(sums, sums, g, epilogue);
    if (gpi__activation(epilogue) != GEMMEPI_RELU)
        desc.aux.dtype = dy;
    add_pass_over(&desc, dy, aligned, 1);
}

/* results: of c, d, aux, residual and the vectors; DEFAULT: as the operands. */
static void add_pass(gemmepi_dtype operands, gemmepi_dtype results, gemmepi_epilogue epilogue, int aligned,
                     int64_t k) {
    gemmepi_matmul_desc desc = new_desc(operands, operands, results, epilogue);
    desc.k = k;
    add_pass_of(&desc, aligned);
}

/* Every scale and amax that the types admit. */
static void add_scaled_pass(gemmepi_dtype operands, gemmepi_dtype results, gemmepi_epilogue epilogue,
                            gemmepi_scale_mode mode_a, gemmepi_scale_mode mode_b) {
    gemmepi_matmul_desc desc = new_desc(operands, operands, results, epilogue);
    desc.a.scale.mode = mode_a;
    desc.b.scale.mode = mode_b;
    desc.flags = GEMMEPI_AMAX_D;
    if (gpi__is_scaled_dtype(results)) {
        desc.c.dtype = results;
        desc.c.scale.mode = desc.d.scale.mode = GEMMEPI_SCALE_TENSOR;
        if (epilogue & (GEMMEPI_AUX | GEMMEPI_BACKWARD))
            desc.aux.scale.mode = GEMMEPI_SCALE_TENSOR;
        if (epilogue & GEMMEPI_RESIDUAL)
            desc.residual.scale.mode = GEMMEPI_SCALE_TENSOR;
    }
    if (epilogue & GEMMEPI_AUX)
        desc.flags |= GEMMEPI_AMAX_AUX;
    add_pass_of(&desc, 1);
}

/* lanes: that share a sum */
static void add_reduce(const gpi__addends *addends, int lanes) {
    char name[80], prologue[512];
    gpi__text text = gpi__text_in(name, sizeof name);
    append_dtype(&text, addends->dtype);
    gpi__append(&text, "_to_");
    append_dtype(&text, addends->out_dtype);
    if (addends->scale)
        gpi__append(&text, "_scale_%d", addends->scale);
    gpi__append(&text, "%s%s%s%s%s_%d_lanes", addends->of_network ? "_network" : "",
                addends->of_rows ? "_rows" : "", addends->grouped ? "_groups" : "",
                addends->gathered ? "_gathered" : "", addends->accumulate ? "_accumulate" : "", lanes);
    gpi__reduce_prologue(addends, lanes, prologue, sizeof prologue);
    add(&reduce, name, prologue);
}

/* What is summed, and into what: of rows, columns, groups and networks. */
static void add_reduces(void) {
    static const struct {
        gpi__addends addends;
        int lanes;
    } rows[] = {{{1, 1, GEMMEPI_F32, 0, GEMMEPI_BF16, 1, 0, 0, 0}, 4},
                {{0, 1, GEMMEPI_F32, 0, GEMMEPI_F32, 0, 0, 0, 0}, 8},
                {{0, 1, GEMMEPI_E4M3, GEMMEPI_SCALE_BLOCK_128, GEMMEPI_BF16, 1, 0, 0, 0}, 32},
                {{0, 1, GEMMEPI_F64, 0, GEMMEPI_F64, 1, 0, 0, 0}, 32},
                {{1, 1, GEMMEPI_F16, 0, GEMMEPI_F16, 0, 0, 0, 0}, 128},
                {{1, 1, GEMMEPI_BF16, 0, GEMMEPI_F32, 0, 0, 0, 0}, 32},
                {{0, 1, GEMMEPI_F64, 0, GEMMEPI_I32, 1, 0, 0, 0}, 8},
                {{1, 1, GEMMEPI_I8, 0, GEMMEPI_F64, 0, 0, 0, 0}, 8},
                {{0, 1, GEMMEPI_I8, GEMMEPI_SCALE_TENSOR, GEMMEPI_F32, 0, 0, 0, 0}, 32},
                {{1, 1, GEMMEPI_E5M2, GEMMEPI_SCALE_OUTER, GEMMEPI_F16, 1, 0, 0, 0}, 64},
                {{1, 1, GEMMEPI_E4M3, GEMMEPI_SCALE_VECTOR_128, GEMMEPI_F64, 0, 0, 0, 0}, 16},
                {{0, 1, GEMMEPI_BF16, 0, GEMMEPI_BF16, 1, 1, 0, 0}, 16},
                {{0, 1, GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_F32, 0, 1, 1, 0}, 32},
                {{0, 1, GEMMEPI_F32, 0, GEMMEPI_BF16, 1, 0, 0, 1}, 32},
                {{0, 1, GEMMEPI_F32, 0, GEMMEPI_F32, 0, 0, 0, 1}, 8}};
    size_t i;
    for (i = 0; i < GPI__COUNT(rows); i++)
        add_reduce(&rows[i].addends, rows[i].lanes);
}

static void add_packs(void) {
    char prologue[160];
    int bits, aligned;
    gpi__pack_prologue(prologue, sizeof prologue);
    add(&pack, "16_bits", prologue);
    for (bits = 8; bits <= 32; bits *= 2)
        for (aligned = bits == 32; aligned < 2; aligned++) {
            char name[32];
            snprintf(name, sizeof name, "%d_bits%s", bits, aligned ? "_aligned" : "");
            gpi__transpose_prologue(bits, aligned, prologue, sizeof prologue);
            add(&transpose, name, prologue);
        }
}

static void add_convert(int x, int out, int aligned) {
    char name[80], prologue[512];
    gpi__text text = gpi__text_in(name, sizeof name);
    gpi__text defines = gpi__text_in(prologue, sizeof prologue);
    append_dtype(&text, x);
    gpi__append(&text, "_to_");
    append_dtype(&text, out);
    gpi__append(&text, "%s", aligned ? "" : "_unaligned");
    gpi__append(&defines, "#define GEMMEPI_X_TYPE %s\n", gpi__dtype((gemmepi_dtype)x)->name);
    gpi__append(&defines, "#define GEMMEPI_OUT_TYPE %s\n", gpi__dtype((gemmepi_dtype)out)->name);
    gpi__append(&defines, "#define GEMMEPI_ALIGNED %d\n", aligned);
    add(&convert, name, prologue);
}

/* layout: which of A and B are transposed, "nt" and its like, in capitals where lines are not aligned */
typedef struct product_row {
    gemmepi_dtype a, b, d;
    char layout[3];
    gemmepi_scale_mode mode_a, mode_b;
    gemmepi_epilogue epilogue;
    int64_t k;
} product_row;

static void set_layout(gemmepi_matrix *matrix, char letter) {
    int aligned = islower((unsigned char)letter);
    matrix->transposed = tolower((unsigned char)letter) == 't';
    matrix->ld = aligned ? 1 << 20 : (1 << 20) + 1;
}

static void add_plain(const product_row *row) {
    gemmepi_matmul_desc desc = new_desc(row->a, row->b, row->d, row->epilogue);
    gpi__problem problem;
    char name[80], prologue[2048];
    gpi__text text = gpi__text_in(name, sizeof name);
    gpi__text defines = gpi__text_in(prologue, sizeof prologue);
    int aligned = islower((unsigned char)row->layout[0]);
    desc.k = row->k;
    set_layout(&desc.a, row->layout[0]);
    set_layout(&desc.b, row->layout[1]);
    desc.a.scale.mode = row->mode_a;
    desc.b.scale.mode = row->mode_b;
    if (gpi__is_scaled_dtype(row->d)) {
        desc.d.scale.mode = GEMMEPI_SCALE_TENSOR;
        desc.flags = GEMMEPI_AMAX_D;
    }
    append_dtype(&text, row->a);
    gpi__append(&text, "_");
    append_dtype(&text, row->b);
    gpi__append(&text, "_%c%c%s_scales_%d%d_k_%lld", tolower((unsigned char)row->layout[0]),
                tolower((unsigned char)row->layout[1]), aligned ? "" : "_unaligned", (int)row->mode_a,
                (int)row->mode_b, (long long)row->k);
    append_results(&text, &desc);
    normalise(&desc, name, &problem);
    gpi__append_epilogue_defines(&defines, &problem, aligned, (int)row->mode_a, (int)row->mode_b);
    gpi__append_operand_defines(&defines, &problem, GPI__A);
    gpi__append_operand_defines(&defines, &problem, GPI__B);
    gpi__append(&defines, "#define GEMMEPI_COMPUTE_TYPE %s\n",
                gpi__dtype((gemmepi_dtype)problem.common)->name);
    gpi__append(&defines, "#define GEMMEPI_CHUNK %d\n", gpi__plain_chunk(&problem));
    note_layout(&plain, 0, desc.a.transposed | desc.b.transposed << 1);
    add_product(&plain, name, prologue, &problem);
}

/* Every type in which plain multiplies, with every layout, scale mode and chunk. */
static const product_row products[] = {
    {GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32, "nn", 0, 0, GEMMEPI_BIAS, 128},
    {GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32, "TT", 0, 0, GEMMEPI_SILU | GEMMEPI_AUX, 128},
    {GEMMEPI_F32, GEMMEPI_E4M3, GEMMEPI_F32, "tn", 0, 4, GEMMEPI_NONE, 128},
    {GEMMEPI_I8, GEMMEPI_F32, GEMMEPI_I8, "NT", 3, 0, GEMMEPI_NONE, 128},
    {GEMMEPI_F16, GEMMEPI_BF16, GEMMEPI_F32, "nt", 0, 0, GEMMEPI_NONE, 128},
    {GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_F16, "nt", 0, 0, GEMMEPI_GELU_ERF | GEMMEPI_BIAS, 128},
    {GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_F16, "nt", 0, 0, GEMMEPI_GELU_ERF | GEMMEPI_BIAS, 1024},
    {GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_E4M3, "TN", 0, 0, GEMMEPI_NONE | GEMMEPI_BGRAD, 128},
    {GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_E5M2, "tt", 0, 0, GEMMEPI_RELU | GEMMEPI_AUX, 128},
    {GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_BF16, "NN", 0, 0, GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD, 128},
    {GEMMEPI_E4M3, GEMMEPI_E4M3, GEMMEPI_BF16, "nt", 1, 1, GEMMEPI_BIAS, 128},
    {GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_E4M3, "tn", 3, 4, GEMMEPI_SILU | GEMMEPI_RESIDUAL, 128},
    {GEMMEPI_E5M2, GEMMEPI_E5M2, GEMMEPI_F32, "NN", 2, 2, GEMMEPI_NONE, 128},
    {GEMMEPI_E5M2, GEMMEPI_E4M3, GEMMEPI_F16, "TT", 4, 3, GEMMEPI_BIAS, 128},
    {GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_BF16, "nn", 2, 0, GEMMEPI_NONE, 128},
    {GEMMEPI_I8, GEMMEPI_BF16, GEMMEPI_BF16, "TT", 0, 0, GEMMEPI_NONE, 128},
    {GEMMEPI_F16, GEMMEPI_I8, GEMMEPI_F16, "nt", 0, 3, GEMMEPI_NONE, 128},
    {GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_F32, "nn", 2, 2, GEMMEPI_SIGMOID, 128},
    {GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_BF16, "TN", 3, 4, GEMMEPI_BIAS, 128},
    {GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_I8, "nt", 1, 2, GEMMEPI_TANH, 100000},
    {GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_I32, "nt", 0, 0, GEMMEPI_BIAS | GEMMEPI_RELU, 128},
    {GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_I32, "TN", 0, 0, GEMMEPI_RESIDUAL, 128},
    {GEMMEPI_F64, GEMMEPI_F64, GEMMEPI_F64, "nn", 0, 0, GEMMEPI_SILU, 128},
    {GEMMEPI_F64, GEMMEPI_F64, GEMMEPI_F64, "TT", 0, 0, GEMMEPI_NONE | GEMMEPI_BGRAD, 128},
};
/* for every architecture, as conversions and tensor cores differ */
static const product_row products_everywhere[] = {
    {GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_E4M3, "nt", 1, 3, GEMMEPI_BIAS, 128},
    {GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_F32, "tn", 2, 2, GEMMEPI_BIAS, 100000},
};

/* >>element-wise operations */

/* A layout that kernels are made for: extents and strides of every tensor of a task. */
typedef struct layout_row {
    const char *name;
    int rank;
    int64_t shape[3], stride[2][3]; /* of inputs and of outputs; of w alone, all 0 if `repeats` */
    size_t offset;                  /* in elements, of inputs */
    int repeats;
} layout_row;

static const layout_row dense = {"dense", 1, {1 << 20, 0, 0}, {{1, 0, 0}, {1, 0, 0}}, 0, 0};
static const layout_row layouts[] = {
    {"w_repeats", 1, {1 << 20, 0, 0}, {{1, 0, 0}, {1, 0, 0}}, 0, 1},
    {"rows", 2, {1024, 1024, 0}, {{2048, 1, 0}, {1024, 1, 0}}, 0, 0},
    {"step", 2, {1024, 1024, 0}, {{2048, 2, 0}, {1024, 1, 0}}, 0, 0},
    {"step_out", 2, {1024, 1024, 0}, {{1024, 1, 0}, {3072, 3, 0}}, 0, 0},
    {"transposed", 2, {1024, 1024, 0}, {{1, 1024, 0}, {1024, 1, 0}}, 0, 0},
    {"transposed_out", 2, {1024, 1024, 0}, {{1024, 1, 0}, {1, 1024, 0}}, 0, 0},
    {"unaligned", 1, {1 << 20, 0, 0}, {{1, 0, 0}, {1, 0, 0}}, 1, 0},
    {"narrow", 3, {64, 1000, 3}, {{5000, 5, 1}, {3000, 3, 1}}, 0, 0},
};

/* The tensors of one operation, and the task made of them. */
typedef struct request {
    gemmepi_elementwise_desc desc;
    gemmepi_tensor inputs, outputs, w, sums;
    int64_t ones[3];
    gpi__task task;
} request;

static void take_request(request *made, gemmepi_operation operation, gemmepi_epilogue activation,
                         gemmepi_dtype dtype, const layout_row *layout) {
    static const int64_t zeros[3] = {0, 0, 0};
    memset(made, 0, sizeof *made);
    made->desc.operation = operation;
    made->desc.activation = activation;
    made->inputs.dtype = dtype;
    made->inputs.rank = layout->rank;
    made->inputs.shape = layout->shape;
    made->inputs.stride = layout->stride[0];
    made->outputs = made->w = made->inputs;
    made->outputs.stride = layout->stride[1];
    made->inputs.offset = layout->offset * gemmepi_dtype_size(dtype);
    if (layout->repeats)
        made->w.stride = zeros;
}

static void finish_request(request *made, const char *name) {
    if (gpi__convert_task(&made->desc, 16, &made->task) == GEMMEPI_OK)
        return;
    printf("%s is no task: %s\n", name, gemmepi_last_error());
    exit(1);
}

static void append_request(gpi__text *text, const request *made, const char *layout) {
    const gpi__operation_row *row = gpi__operation((int)made->desc.operation);
    append_lower(text, row->name);
    if (row->has_activation) {
        gpi__append(text, "_");
        append_lower(text, gpi__activation_name(made->desc.activation));
    }
    gpi__append(text, "_");
    append_dtype(text, made->inputs.dtype);
    gpi__append(text, "_%s", layout);
}

static int weight_is_number; /* lerp's, of what is added now: without w and dw */

/* Every other tensor that the operation may have. */
static void add_elementwise(gemmepi_operation operation, gemmepi_epilogue activation, gemmepi_dtype dtype,
                            const layout_row *layout) {
    const gpi__operation_row *row = gpi__operation((int)operation);
    uint32_t all =
        weight_is_number ? row->needs | (row->may & (GPI__BIT_DA | GPI__BIT_DB)) : row->needs | row->may;
    char name[96], prologue[GPI__OPERATION_TEXT];
    gpi__text text = gpi__text_in(name, sizeof name);
    gpi__text defines = gpi__text_in(prologue, sizeof prologue);
    gpi__loop loop;
    request made;
    take_request(&made, operation, activation, dtype, layout);
    made.desc.a = all & GPI__BIT_A ? &made.inputs : NULL;
    made.desc.b = all & GPI__BIT_B ? &made.inputs : NULL;
    made.desc.w = all & GPI__BIT_W ? &made.w : NULL;
    made.desc.dy = all & GPI__BIT_DY ? &made.inputs : NULL;
    made.desc.y = all & GPI__BIT_Y ? &made.outputs : NULL;
    made.desc.da = all & GPI__BIT_DA ? &made.outputs : NULL;
    made.desc.db = all & GPI__BIT_DB ? &made.outputs : NULL;
    made.desc.dw = all & GPI__BIT_DW ? &made.outputs : NULL;
    append_request(&text, &made, weight_is_number ? "weight_is_number" : layout->name);
    finish_request(&made, name);
    memset(&loop, 0, sizeof loop);
    if (gpi__describe_loop(&made.task, made.task.used & GPI__OUTPUTS, &loop, &defines) != GEMMEPI_OK)
        exit(1);
    add(&elementwise, name, prologue);
}

static void add_cast(gemmepi_dtype from, gemmepi_dtype to, uint64_t flags, const layout_row *layout) {
    char name[96], prologue[GPI__OPERATION_TEXT];
    gpi__text text = gpi__text_in(name, sizeof name);
    gpi__text defines = gpi__text_in(prologue, sizeof prologue);
    gpi__loop loop;
    request made;
    take_request(&made, GEMMEPI_OP_CAST, 0, from, layout);
    made.outputs.dtype = to;
    made.desc.flags = flags;
    made.desc.a = &made.inputs;
    made.desc.y = &made.outputs;
    append_request(&text, &made, layout->name);
    gpi__append(&text, "_to_");
    append_dtype(&text, to);
    gpi__append(&text, "_%x", (unsigned)(flags >> 32));
    finish_request(&made, name);
    memset(&loop, 0, sizeof loop);
    if (gpi__describe_loop(&made.task, GPI__BIT_Y, &loop, &defines) != GEMMEPI_OK)
        exit(1);
    add(&elementwise, name, prologue);
}

/* lerp's dw, and bias_grad, over the first or the last axis of the layout */
static void add_sum(gemmepi_operation operation, gemmepi_dtype dtype, gemmepi_dtype out, int first_axis,
                    uint64_t flags, const layout_row *layout) {
    char name[96], prologue[GPI__OPERATION_TEXT];
    gpi__text text = gpi__text_in(name, sizeof name);
    gpi__text defines = gpi__text_in(prologue, sizeof prologue);
    gpi__sum_step step;
    int64_t parts;
    int d;
    request made;
    take_request(&made, operation, 0, dtype, layout);
    for (d = 0; d < 3; d++)
        made.ones[d] = (d == 0) == first_axis ? 1 : layout->shape[d];
    made.sums.dtype = out;
    made.sums.rank = layout->rank;
    made.sums.shape = made.ones;
    made.desc.flags = flags;
    made.desc.a = &made.inputs;
    if (operation == GEMMEPI_OP_BIAS_GRAD) {
        made.sums.rank = 1;
        made.sums.shape = &layout->shape[first_axis ? layout->rank - 1 : 0];
        made.desc.axis = first_axis ? -1 : 0;
        made.desc.y = &made.sums;
    } else {
        made.desc.b = made.desc.dy = &made.inputs;
        made.desc.w = &made.w;
        made.desc.dw = &made.sums;
    }
    append_request(&text, &made, layout->name);
    gpi__append(&text, "_to_");
    append_dtype(&text, out);
    gpi__append(&text, "_%s%s", first_axis ? "columns" : "rows", flags ? "_accumulate" : "");
    finish_request(&made, name);
    memset(&step, 0, sizeof step);
    step.output = operation == GEMMEPI_OP_BIAS_GRAD ? GPI__OUT_Y : GPI__OUT_DW;
    gpi__convert_nest(&made.task, GPI__BIT(step.output), &step.nest);
    if (gpi__shape_sum(&made.task, 0, &step, &parts) != GEMMEPI_OK)
        exit(1);
    gpi__append_sum(&defines, &made.task, (int)operation, &step, 1);
    add(&sum, name, prologue);
}

static void add_scaled(gemmepi_dtype from, gemmepi_dtype to, gemmepi_scale_mode mode, uint64_t flags,
                       const layout_row *layout) {
    char name[96], prologue[1024];
    gpi__scaled_way ways[2];
    gpi__scaled_step step;
    request made;
    int i;
    take_request(&made, GEMMEPI_OP_CAST, 0, from, layout);
    made.outputs.dtype = to;
    made.desc.scale_mode = mode;
    made.desc.flags = flags;
    made.desc.a = &made.inputs;
    made.desc.y = &made.outputs;
    finish_request(&made, "a scaled cast");
    memset(&step, 0, sizeof step);
    if (gpi__describe_scaled(&made.task, &step, &ways[0], &ways[1]) != GEMMEPI_OK)
        exit(1);
    for (i = step.is_two ? 0 : 1; i < 2; i++) {
        gpi__text text = gpi__text_in(name, sizeof name);
        gpi__text defines = gpi__text_in(prologue, sizeof prologue);
        append_request(&text, &made, layout->name);
        gpi__append(&text, "_to_");
        append_dtype(&text, to);
        gpi__append(&text, "_mode_%d_%x_%d", (int)mode, (unsigned)(flags >> 32), i);
        gpi__append_scaled(&defines, &made.task, &ways[i]);
        add(&scaled, name, prologue);
    }
}

static void add_scaled_rows(gemmepi_dtype from, gemmepi_dtype to, uint64_t flags, int group, int vectors) {
    char name[96], prologue[1024];
    gpi__text text = gpi__text_in(name, sizeof name);
    gpi__text defines = gpi__text_in(prologue, sizeof prologue);
    gpi__row_way way = {group < 128 ? 128 : group, group, vectors, 1, 0, 2};
    request made;
    take_request(&made, GEMMEPI_OP_CAST, 0, from, &layouts[1]);
    made.outputs.dtype = to;
    made.desc.scale_mode = GEMMEPI_SCALE_OUTER;
    made.desc.flags = flags;
    made.desc.a = &made.inputs;
    made.desc.y = &made.outputs;
    finish_request(&made, "a scaled cast");
    append_dtype(&text, from);
    gpi__append(&text, "_to_");
    append_dtype(&text, to);
    gpi__append(&text, "_%x_%d_by_%d", (unsigned)(flags >> 32), group, vectors);
    gpi__append_row_defines(&defines, &made.task, &way);
    add(&scaled_rows, name, prologue);
}

static gemmepi_tensor turned_outputs;

/* A cast to both layouts, or one of a whole tensor by blocks that meet. */
static void add_both_layouts(gemmepi_dtype from, gemmepi_dtype to, gemmepi_scale_mode mode, uint64_t flags,
                             int turns, int by_words) {
    char name[96], prologue[1024];
    int64_t exchanged[2], strides[2];
    gpi__text text = gpi__text_in(name, sizeof name);
    gpi__text defines = gpi__text_in(prologue, sizeof prologue);
    gpi__scaled_way ways[2];
    gpi__scaled_step step;
    request made;
    int vector;
    take_request(&made, GEMMEPI_OP_CAST, 0, from, &layouts[1]);
    made.outputs.dtype = to;
    made.desc.scale_mode = mode, made.desc.flags = flags;
    made.desc.a = &made.inputs, made.desc.y = &made.outputs;
    turned_outputs = made.outputs;
    exchanged[0] = made.outputs.shape[1], exchanged[1] = made.outputs.shape[0];
    strides[0] = made.outputs.shape[0] / 4 * 4 + (by_words ? 4 : 5), strides[1] = 1;
    turned_outputs.shape = exchanged, turned_outputs.stride = strides;
    made.desc.y_transposed = turns ? &turned_outputs : NULL;
    finish_request(&made, "a cast to both layouts");
    memset(&step, 0, sizeof step);
    vector = gpi__scaled_vector(&made.task);
    if (gpi__describe_scaled(&made.task, &step, &ways[0], &ways[1]) != GEMMEPI_OK)
        exit(1);
    append_dtype(&text, from);
    gpi__append(&text, "_to_");
    append_dtype(&text, to);
    gpi__append(&text, "_mode_%d_%x_turns_%d", (int)mode, (unsigned)(flags >> 32), ways[1].turns);
    if (gpi__is_of_tensor(&made.task, &step, &ways[0], vector)) {
        gpi__append_tensor_defines(&defines, &made.task, ways[1].turns, turns && by_words, !turns);
        add(&scaled_tensor, name, prologue);
    } else {
        gpi__append_scaled(&defines, &made.task, &ways[1]);
        add(&scaled_turned, name, prologue);
    }
}

static void list_both_layouts(void) {
    static const gemmepi_dtype floats[] = {GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_F16, GEMMEPI_E5M2, GEMMEPI_F64};
    size_t d;
    int turns, words;
    few_archs = 1;
    for (d = 0; d < GPI__COUNT(floats); d++)
        for (turns = 0; turns < 2; turns++)
            for (words = 0; words <= turns; words++) {
                gemmepi_dtype to = d % 2 ? GEMMEPI_E5M2 : GEMMEPI_E4M3;
                add_both_layouts(floats[d], to, GEMMEPI_SCALE_TENSOR,
                                 GEMMEPI_CAST_Y_SCALE | (d % 3 ? GEMMEPI_CAST_AMAX : 0), turns, words);
                if (!turns)
                    continue;
                add_both_layouts(floats[d], to, GEMMEPI_SCALE_TENSOR, GEMMEPI_CAST_SCALE | GEMMEPI_CAST_AMAX,
                                 1, words);
                add_both_layouts(floats[d], to, GEMMEPI_SCALE_VECTOR_128,
                                 GEMMEPI_CAST_Y_SCALE |
                                     (d % 2 ? GEMMEPI_CAST_AMAX | GEMMEPI_CAST_K_IS_ROWS : 0),
                                 1, words);
                add_both_layouts(floats[d], to, GEMMEPI_SCALE_BLOCK_128, GEMMEPI_CAST_Y_SCALE, 1, words);
            }
}

static void list_scaled_rows(void) {
    static const gemmepi_dtype floats[] = {GEMMEPI_F32, GEMMEPI_BF16, GEMMEPI_F16};
    static const int ways[][2] = {{32, 1},  {32, 4},   {64, 3},   {128, 4},
                                  {512, 4}, {1024, 5}, {1024, 8}, {256, 16}};
    size_t d, i;
    few_archs = 1;
    for (d = 0; d < GPI__COUNT(floats); d++)
        for (i = 0; i < GPI__COUNT(ways) - (floats[d] != GEMMEPI_F32);
             i++) /* sixteen vectors: of fours alone */
            add_scaled_rows(floats[d], i % 2 ? GEMMEPI_E4M3 : GEMMEPI_E5M2,
                            GEMMEPI_CAST_Y_SCALE | (i % 3 ? GEMMEPI_CAST_AMAX : 0), ways[i][0], ways[i][1]);
}

static void list_elementwise(void) {
    static const gemmepi_dtype floats[] = {GEMMEPI_F32, GEMMEPI_BF16, GEMMEPI_F16, GEMMEPI_F64};
    static const gemmepi_operation operations[] = {GEMMEPI_OP_ACTIVATION, GEMMEPI_OP_ACTIVATION_BACKWARD,
                                                   GEMMEPI_OP_GATED, GEMMEPI_OP_GATED_BACKWARD};
    uint32_t nth, i, d, mode;
    few_archs = 0;
    add_elementwise(GEMMEPI_OP_ACTIVATION, GEMMEPI_GELU_ERF, GEMMEPI_F32, &dense);
    add_elementwise(GEMMEPI_OP_GATED_BACKWARD, GEMMEPI_SILU, GEMMEPI_BF16, &dense);
    add_elementwise(GEMMEPI_OP_LERP_BACKWARD, 0, GEMMEPI_F16, &layouts[4]);
    add_cast(GEMMEPI_F32, GEMMEPI_E4M3, GEMMEPI_CAST_SCALE | GEMMEPI_CAST_AMAX, &dense);
    add_sum(GEMMEPI_OP_BIAS_GRAD, GEMMEPI_BF16, GEMMEPI_F32, 1, 0, &layouts[1]);
    add_sum(GEMMEPI_OP_BIAS_GRAD, GEMMEPI_F32, GEMMEPI_F32, 0, 0, &layouts[1]);
    add_scaled(GEMMEPI_BF16, GEMMEPI_E4M3, GEMMEPI_SCALE_VECTOR_128, GEMMEPI_CAST_Y_SCALE, &layouts[1]);
    few_archs = 1;
    for (nth = 1; nth < GPI__COUNT(gpi__activations); nth++)
        for (i = 0; i < GPI__COUNT(operations); i++) {
            gemmepi_epilogue activation = gpi__activations[nth].code;
            add_elementwise(operations[i], activation, GEMMEPI_F32, &dense);
            add_elementwise(operations[i], activation, GEMMEPI_BF16, &dense);
            if ((nth + i) % 4 == 0)
                add_elementwise(operations[i], activation, GEMMEPI_F64, &layouts[nth % GPI__COUNT(layouts)]);
        }
    for (d = 0; d < GPI__COUNT(floats); d++) {
        weight_is_number = 1;
        add_elementwise(d % 2 ? GEMMEPI_OP_LERP : GEMMEPI_OP_LERP_BACKWARD, 0, floats[d], &dense);
        weight_is_number = 0;
        for (i = 0; i < GPI__COUNT(layouts); i++)
            add_elementwise(i % 2 ? GEMMEPI_OP_LERP : GEMMEPI_OP_LERP_BACKWARD, 0, floats[d], &layouts[i]);
        add_elementwise(GEMMEPI_OP_LERP_BACKWARD, 0, floats[d], &layouts[4]);
        add_elementwise(GEMMEPI_OP_LERP_BACKWARD, 0, floats[d], &layouts[5]);
        for (i = 1; i < 4; i++) {
            add_sum(GEMMEPI_OP_BIAS_GRAD, floats[d], floats[d], i % 2 == 1, GEMMEPI_ACCUMULATE, &layouts[i]);
            add_sum(GEMMEPI_OP_LERP_BACKWARD, floats[d], floats[d], i % 2 == 0, 0, &layouts[i]);
        }
        for (mode = GEMMEPI_SCALE_TENSOR; mode <= GEMMEPI_SCALE_BLOCK_128; mode++) {
            uint64_t rows = mode > GEMMEPI_SCALE_TENSOR ? GEMMEPI_CAST_K_IS_ROWS : 0;
            add_scaled(floats[d], GEMMEPI_E4M3, (gemmepi_scale_mode)mode, GEMMEPI_CAST_Y_SCALE,
                       &layouts[mode % 2 ? 1 : 4]);
            add_scaled(floats[d], GEMMEPI_E5M2, (gemmepi_scale_mode)mode,
                       GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX | rows, &layouts[mode % 2 ? 2 : 1]);
        }
        add_scaled(floats[d], GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_SCALE | GEMMEPI_CAST_AMAX,
                   &layouts[1]);
        add_scaled(GEMMEPI_E4M3, floats[d], GEMMEPI_SCALE_VECTOR_128, GEMMEPI_CAST_SCALE,
                   &layouts[d % 2 ? 1 : 4]);
        add_cast(floats[d], GEMMEPI_E5M2, GEMMEPI_CAST_SCALE | GEMMEPI_CAST_AMAX, &layouts[d % 2 ? 4 : 6]);
        add_cast(GEMMEPI_E4M3, floats[d], GEMMEPI_CAST_SCALE, d % 2 ? &dense : &layouts[2]);
        add_cast(floats[d], floats[(d + 1) % 4], 0, &dense);
    }
}

/* Both halves of a gate, into one column or back, and the gradients of layers. */
static void add_gradient_passes(void) {
    static const gemmepi_epilogue back = GEMMEPI_BACKWARD | GEMMEPI_BGRAD;
    uint32_t nth;
    for (nth = 0; nth < GPI__COUNT(gpi__activations); nth++) {
        gemmepi_epilogue activation = gpi__activations[nth].code;
        gemmepi_epilogue gate = activation | GEMMEPI_GATED | (nth & 1 ? GEMMEPI_GATE_FIRST : 0);
        gemmepi_dtype one = nth & 1 ? GEMMEPI_BF16 : GEMMEPI_F32;
        gemmepi_dtype other = nth & 1 ? GEMMEPI_F32 : GEMMEPI_BF16;
        int alternate = (int)nth >> 1 & 1;
        add_pass(one, GEMMEPI_DTYPE_DEFAULT, gate | GEMMEPI_BIAS | GEMMEPI_AUX, alternate, 1);
        add_pass(other, GEMMEPI_DTYPE_DEFAULT, gate | back | GEMMEPI_UPSTREAM, !alternate, 1);
        add_pass(one, GEMMEPI_DTYPE_DEFAULT, activation | back | GEMMEPI_UPSTREAM | GEMMEPI_BIAS, 1, 1);
        add_gradient_pass(other, other, gate | back, alternate);
        if (activation != GEMMEPI_NONE)
            add_gradient_pass(one, one, activation | back, 1);
        add_gradient_pass(GEMMEPI_BF16, GEMMEPI_BF16, activation | GEMMEPI_BACKWARD, 1);
    }
    add_pass(GEMMEPI_F64, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS | GEMMEPI_AUX, 1,
             1);
    add_pass(GEMMEPI_I8, GEMMEPI_I32, GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_BIAS, 1, 1);
    add_scaled_pass(GEMMEPI_E4M3, GEMMEPI_E4M3, GEMMEPI_GELU_ERF | GEMMEPI_GATED | GEMMEPI_AUX,
                    GEMMEPI_SCALE_OUTER, GEMMEPI_SCALE_OUTER);
    add_gradient_pass(GEMMEPI_F64, GEMMEPI_F64, GEMMEPI_SILU | GEMMEPI_GATED | back, 1);
    add_gradient_pass(GEMMEPI_E5M2, GEMMEPI_BF16, GEMMEPI_MISH | back, 0);
    add_gradient_pass(GEMMEPI_F32, GEMMEPI_BF16, GEMMEPI_NONE | GEMMEPI_BGRAD, 1);
}

/* Lines of results that begin at odd elements: epilogues leave them by words. */
static void set_odd_lines(gemmepi_matmul_desc *desc) {
    desc->d.ld = 4097;
    if ((desc->epilogue & GEMMEPI_AUX) && !gpi__aux_is_mask(desc->epilogue))
        desc->aux.ld = 4097;
}

/* Nothing, and 0, where the shape does not take it. Results lie at odd lines for half of the shapes and layouts, for another half bias is
   of F32. With a short k, as for half of the layouts, there are fewer stages and more buffers. F32 operands are multiplied as TF32, in
   layout 2. */
static int add_fused(gemmepi_dtype operands, gemmepi_dtype results, gemmepi_epilogue epilogue, int shape,
                     int layout, int unit_alpha) {
    gemmepi_matmul_desc desc = new_desc(operands, operands, results, epilogue);
    const gpi__sm90_shape *cut = &gpi__sm90_shapes[shape];
    gpi__problem problem;
    gpi__sm90 sm90_kernel;
    char name[160], prologue[2048];
    gpi__text text = gpi__text_in(name, sizeof name);
    gpi__text defines = gpi__text_in(prologue, sizeof prologue);
    transpose_operands(&desc, layout);
    desc.compute = operands == GEMMEPI_F32 ? GEMMEPI_COMPUTE_TF32 : GEMMEPI_COMPUTE_DEFAULT;
    desc.k = cut->parts > 1 || layout >> 1 ? 2048 : 640; /* enough to be divided; sums short and long */
    if ((shape + layout) & 1) {
        desc.m = desc.n = 144; /* tiles reach beyond them */
        if (epilogue & GEMMEPI_BIAS)
            desc.bias.dtype = GEMMEPI_F32;
    }
    if (cut->tile_n < 256 && ((shape + layout / 2) & 1))
        set_odd_lines(&desc);
    append_dtype(&text, operands);
    append_results(&text, &desc);
    gpi__append(&text, "_shape_%d_layout_%d%s", shape, layout, unit_alpha ? "" : "_scaled");
    normalise(&desc, name, &problem);
    if (!gpi__shape_accepts(&problem, cut, unit_alpha))
        return 0;
    memset(&sm90_kernel, 0, sizeof sm90_kernel);
    gpi__cut_up(&problem, cut, unit_alpha, &sm90_kernel);
    gpi__append_sm90_defines(&defines, &problem, &sm90_kernel);
    note_layout(found_mode ? &found : &fused, shape, layout);
    add_product(found_mode ? &found : &fused, name, prologue, &problem);
    return 1;
}

/* In the next shape that takes it; there must be one. */
static void add_fused_from(gemmepi_dtype operands, gemmepi_dtype results, gemmepi_epilogue epilogue,
                           int shape, int layout, int unit_alpha) {
    int shapes = (int)GPI__COUNT(gpi__sm90_shapes), i = 0;
    while (i < shapes && !add_fused(operands, results, epilogue, (shape + i) % shapes, layout, unit_alpha))
        i++;
    if (i < shapes)
        return;
    printf("no shape takes the epilogue 0x%x\n", (unsigned)epilogue);
    exit(1);
}

/* Of fp8, with scales and promotion. fast: without. */
typedef struct fp8_row {
    gemmepi_dtype a, b, d;
    gemmepi_epilogue epilogue;
    gemmepi_scale_mode scale_a, scale_b;
    int fast;
} fp8_row;

/* Nothing, where the shape does not take it. odd: halves are no whole units of columns, nor lines of results of 16 bytes. */
static void add_fp8(const fp8_row *row, int shape, int odd, int unit_alpha) {
    gemmepi_matmul_desc desc = new_desc(row->a, row->b, row->d, row->epilogue);
    const gpi__sm90_shape *cut = &gpi__sm90_fp8_shapes[shape];
    gpi__problem problem;
    gpi__sm90 built;
    char name[200], prologue[2048];
    gpi__text text = gpi__text_in(name, sizeof name);
    gpi__text defines = gpi__text_in(prologue, sizeof prologue);
    desc.b.transposed = 1;
    desc.k = 2048;
    desc.m = 144, desc.n = odd ? 150 : 256;
    desc.a.scale.mode = row->scale_a, desc.b.scale.mode = row->scale_b;
    desc.flags |= row->fast ? GEMMEPI_FAST_ACCUMULATION : 0;
    append_dtype(&text, row->a);
    gpi__append(&text, "_");
    append_dtype(&text, row->b);
    append_results(&text, &desc);
    gpi__append(&text, "_scales_%d_%d%s_shape_%d%s%s", (int)row->scale_a, (int)row->scale_b,
                row->fast ? "_fast" : "", shape, odd ? "_odd" : "", unit_alpha ? "" : "_scaled");
    normalise(&desc, name, &problem);
    if (!gpi__shape_accepts(&problem, cut, unit_alpha))
        return;
    memset(&built, 0, sizeof built);
    gpi__cut_up(&problem, cut, unit_alpha, &built);
    gpi__append_sm90_defines(&defines, &problem, &built);
    note_layout(&fp8, shape, 2);
    add_product(&fp8, name, prologue, &problem);
}

/* On Turing the kernel has no BF16 and TF32, and less shared memory. */
static int mma_takes(const family *of, const gpi__problem *problem, const gpi__sm80_shape *shape) {
    int is_turing = of == &mma_turing || of == &mma_turing_inside;
    return gpi__sm80_shape_accepts(problem, shape, is_turing ? 75 : 90) &&
           (!is_turing || problem->common == GEMMEPI_F16 || problem->common == GEMMEPI_I8 ||
            gpi__is_fma(problem));
}

static void append_mma_defines(const family *of, const gpi__problem *problem, const gpi__sm80_cut *cut,
                               int unit_alpha, gpi__text *defines) {
    gpi__sm80 built;
    memset(&built, 0, sizeof built);
    gpi__cut_up_sm80(problem, cut, unit_alpha, of == &mma_turing || of == &mma_turing_inside ? 75 : 90,
                     &built);
    gpi__append_sm80_defines(defines, problem, &built);
}

/* The kernel for mma.sync, of fp8 and I8. */
static void add_bytes_by_mma(const family *of, const fp8_row *row, int shape, int odd, int unit_alpha) {
    gemmepi_matmul_desc desc = new_desc(row->a, row->b, row->d, row->epilogue);
    gpi__problem problem, own;
    gpi__sm80_cut cut;
    char name[200], prologue[2048];
    gpi__text text = gpi__text_in(name, sizeof name);
    gpi__text defines = gpi__text_in(prologue, sizeof prologue);
    cut.shape = &gpi__sm80_shapes[shape], cut.parts = shape % 4 == 3 && unit_alpha && of == &mma_fp8 ? 4 : 1;
    desc.b.transposed = 1;
    desc.k = 2048;
    desc.m = 144, desc.n = odd ? 150 : 256;
    desc.a.ld = 2048 + (odd ? cut.shape->unit > 4 ? cut.shape->unit : 4 : 16);
    desc.a.scale.mode = row->scale_a, desc.b.scale.mode = row->scale_b;
    desc.flags |= row->fast ? GEMMEPI_FAST_ACCUMULATION : 0;
    append_dtype(&text, row->a);
    gpi__append(&text, "_");
    append_dtype(&text, row->b);
    append_results(&text, &desc);
    gpi__append(&text, "_scales_%d_%d%s_shape_%d%s%s%s", (int)row->scale_a, (int)row->scale_b,
                row->fast ? "_fast" : "", shape, odd ? "_odd" : "", unit_alpha ? "" : "_scaled",
                cut.parts > 1 ? "_in_parts" : "");
    normalise(&desc, name, &problem);
    if (!mma_takes(of, &problem, cut.shape))
        return;
    own = cut.parts > 1 ? gpi__bare_problem(&problem) : problem;
    append_mma_defines(of, &own, &cut, unit_alpha, &defines);
    if (of == &mma_fp8)
        note_layout(&mma_fp8, shape, 2);
    add_product(of, name, prologue, &own);
}

/* Each pairing, mode and kind of epilogue in every shape, by turns; --all: in each. */
static void list_fp8(void) {
    const gemmepi_dtype same = GEMMEPI_DTYPE_DEFAULT, x = GEMMEPI_E4M3, y = GEMMEPI_E5M2, half = GEMMEPI_BF16;
    const gemmepi_scale_mode none = GEMMEPI_SCALE_NONE, one = GEMMEPI_SCALE_TENSOR,
                             outer = GEMMEPI_SCALE_OUTER, vector = GEMMEPI_SCALE_VECTOR_128,
                             block = GEMMEPI_SCALE_BLOCK_128;
    const gemmepi_epilogue gate = GEMMEPI_SILU | GEMMEPI_GATED, back = GEMMEPI_BACKWARD | GEMMEPI_BGRAD;
    const fp8_row rows_of_i8[] = {
        {GEMMEPI_I8, GEMMEPI_I8, half, GEMMEPI_GELU_TANH | GEMMEPI_BIAS, one, outer, 0},
        {GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_F32, gate | GEMMEPI_AUX, outer, outer, 0},
        {GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_RELU | GEMMEPI_RESIDUAL, one, one, 0},
        {GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_F16, GEMMEPI_SILU | back, one, one, 0}};
    const fp8_row rows[] = {
        {x, x, half, GEMMEPI_NONE, one, one, 0},
        {x, y, GEMMEPI_F32, GEMMEPI_BIAS, none, outer, 0},
        {y, x, half, GEMMEPI_SILU, vector, block, 0},
        {y, y, GEMMEPI_F16, gate, block, vector, 0},
        {x, x, same, gate | GEMMEPI_BIAS, vector, block, 0},
        {x, x, same, GEMMEPI_GELU_TANH | GEMMEPI_BIAS | GEMMEPI_AUX, vector, vector, 0},
        {x, y, half, GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_AUX, block, block, 0},
        {y, x, half, GEMMEPI_GELU_TANH | back, outer, outer, 0},
        {x, y, half, gate | back, vector, block, 0},
        {y, x, half, GEMMEPI_SILU | back, vector, vector, 0},
        {x, x, half, GEMMEPI_GELU_ERF | GEMMEPI_BIAS | GEMMEPI_RESIDUAL, block, one, 0},
        {x, x, GEMMEPI_F32, gate | GEMMEPI_AUX | GEMMEPI_BIAS, outer, vector, 0},
        {x, x, half, gate | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BIAS, one, one, 0},
        {x, x, half, GEMMEPI_MISH | GEMMEPI_RESIDUAL | GEMMEPI_AUX, vector, block, 0},
        {x, x, half, GEMMEPI_NONE, one, one, 1},
        {x, y, same, gate | GEMMEPI_BIAS, outer, outer, 1},
        {y, x, half, GEMMEPI_GELU_TANH | GEMMEPI_BIAS, one, outer, 1},
        {x, x, GEMMEPI_F32, GEMMEPI_SILU | back, one, one, 1},
        {x, x, half, gate | back, one, one, 1},
        {x, x, half, gate | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BIAS, one, one, 1}};
    const fp8_row with_found[] = {{x, x, x, gate, vector, block, 0},
                                  {x, x, y, gate | GEMMEPI_BIAS, one, one, 0},
                                  {x, y, x, GEMMEPI_GELU_ERF | GEMMEPI_BIAS, vector, vector, 0},
                                  {y, x, x, GEMMEPI_SILU, block, block, 0},
                                  {x, x, x, GEMMEPI_NONE, outer, outer, 0},
                                  {x, x, y, GEMMEPI_TANH | GEMMEPI_BIAS, one, one, 1}};
    int i, shape, shapes = (int)GPI__COUNT(gpi__sm90_fp8_shapes);
    few_archs = 1;
    for (i = 0; i < (int)GPI__COUNT(rows); i++)
        for (shape = 0; shape < shapes; shape++)
            if (takes_all || (i + shape + shape / 7) % 3 == 0)
                add_fp8(&rows[i], shape, (i + shape / 3) % 4 == 3, (i + shape) % 2);
    for (i = 0; i < (int)GPI__COUNT(rows_of_i8); i++)
        for (shape = 0; shape < (int)GPI__COUNT(gpi__sm80_shapes); shape++)
            if (takes_all || (i + shape) % 2 == 0) {
                add_bytes_by_mma(&mma_i8, &rows_of_i8[i], shape, i % 2, (i + shape / 2) % 2);
                add_bytes_by_mma(&mma_turing, &rows_of_i8[i], shape, i % 2, (i + shape / 2) % 2);
            }
    for (i = 0; i < (int)GPI__COUNT(rows); i++)
        for (shape = 0; shape < (int)GPI__COUNT(gpi__sm80_shapes); shape++)
            if (takes_all || (i + shape) % 2 == 0)
                add_bytes_by_mma(&mma_fp8, &rows[i], shape, (i + shape / 3) % 4 == 3, (i / 2 + shape) % 2);
    found_mode = GEMMEPI_SCALE_VECTOR_128;
    for (i = 0; i < (int)GPI__COUNT(with_found); i++)
        for (shape = 0; shape < shapes; shape++)
            add_fp8(&with_found[i], shape, (i + shape) % 3 == 2, (i + shape) % 2);
    found_mode = GEMMEPI_SCALE_NONE;
}

/* Nothing where the shape does not take it. unit: bytes at whose multiples lines of operands begin; those of results at odd elements
   where that is less than 16 */
static void add_mma_in_parts(gemmepi_dtype operands, gemmepi_compute compute, gemmepi_dtype results,
                             gemmepi_epilogue epilogue, int shape, int parts, int layout, int unit,
                             int unit_alpha) {
    static const family *const families[] = {&mma, &mma_turing};
    gemmepi_matmul_desc desc = new_desc(operands, operands, results, epilogue);
    gpi__problem problem, own;
    gpi__sm80_cut cut;
    char name[160], prologue[2048];
    gpi__text text = gpi__text_in(name, sizeof name);
    size_t i;
    desc.compute = compute;
    transpose_operands(&desc, layout);
    desc.a.ld = 2048 + unit / (operands == GEMMEPI_F32 ? 4 : 2);
    desc.b.ld = desc.a.ld;
    if (unit < 16)
        set_odd_lines(&desc);
    append_dtype(&text, operands);
    if (operands == GEMMEPI_F32)
        gpi__append(&text, compute == GEMMEPI_COMPUTE_TF32 ? "_tf32" : "_strict");
    if (compute == GEMMEPI_COMPUTE_F16)
        gpi__append(&text, "_sums");
    append_results(&text, &desc);
    gpi__append(&text, "_shape_%d_layout_%d_by_%d%s", shape, layout, unit, unit_alpha ? "" : "_scaled");
    if (parts > 1)
        gpi__append(&text, "_in_parts");
    desc.k = 2048;
    normalise(&desc, name, &problem);
    cut.shape = &gpi__sm80_shapes[shape];
    cut.parts = parts;
    own = parts > 1 ? gpi__bare_problem(&problem) : problem;
    for (i = 0; i < GPI__COUNT(families); i++) {
        gpi__text defines = gpi__text_in(prologue, sizeof prologue);
        if (!mma_takes(families[i], &problem, cut.shape))
            continue;
        append_mma_defines(families[i], &own, &cut, unit_alpha, &defines);
        if (i == 0)
            note_layout(&mma, shape, layout);
        add_product(families[i], name, prologue, &own);
    }
}

static void add_mma(gemmepi_dtype operands, gemmepi_compute compute, gemmepi_dtype results,
                    gemmepi_epilogue epilogue, int shape, int layout, int unit, int unit_alpha) {
    add_mma_in_parts(operands, compute, results, epilogue, shape, 1, layout, unit, unit_alpha);
}

/* Sums in F16, in the shapes that have them. */
static void list_f16_sums(int shape) {
    const gemmepi_epilogue back = GEMMEPI_BACKWARD | GEMMEPI_BGRAD;
    const gemmepi_dtype f16 = GEMMEPI_F16, same = GEMMEPI_DTYPE_DEFAULT;
    const gemmepi_compute sums = GEMMEPI_COMPUTE_F16;
    int layout, unit = gpi__sm80_shapes[shape].unit;
    for (layout = 0; gpi__has_f16_sums(&gpi__sm80_shapes[shape]) && layout < 4; layout++) {
        add_mma_in_parts(f16, sums, same, GEMMEPI_SILU, shape, 4, layout, unit, 1);
        add_mma(f16, sums, same, GEMMEPI_SILU | GEMMEPI_BIAS, shape, layout, 16, 1);
        add_mma(f16, sums, GEMMEPI_F32, GEMMEPI_GELU_TANH | back, shape, layout, 16, 0);
        add_mma(f16, sums, same, GEMMEPI_SILU | back, shape, layout, unit, 1);
        add_mma(f16, sums, same, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS, shape, layout, 2 << layout, 1);
        add_mma(f16, sums, same, GEMMEPI_MISH | GEMMEPI_GATED | back, shape, layout, 16, 1);
        add_mma(f16, sums, same, GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_AUX, shape, layout, 8, 1);
    }
}

/* Likewise. */
static void list_mma(void) {
    const gemmepi_epilogue back = GEMMEPI_BACKWARD | GEMMEPI_BGRAD;
    uint32_t nth;
    int shape, layout, way, shapes = (int)GPI__COUNT(gpi__sm80_shapes);
    few_archs = 0;
    for (shape = 0; shape < shapes; shape++) {
        add_mma(GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_GELU_TANH | back, shape,
                shape % 4, 16, 1);
        add_mma(GEMMEPI_F32, shape % 2 ? GEMMEPI_COMPUTE_TF32 : GEMMEPI_COMPUTE_F32, GEMMEPI_DTYPE_DEFAULT,
                GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_AUX, shape, (shape + 1) % 4, 4 << (shape % 3), 1);
    }
    few_archs = 1;
    for (shape = 0; shape < shapes; shape++)
        list_f16_sums(shape);
    for (shape = 0; shape < shapes; shape++)
        for (layout = 0; layout < 4; layout++) {
            if (takes_layout(shape, layout)) {
                add_mma(GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_DTYPE_DEFAULT,
                        GEMMEPI_SILU | GEMMEPI_BIAS, shape, layout, 16, 1);
                add_mma(GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_DTYPE_DEFAULT,
                        GEMMEPI_GELU_TANH | back, shape, layout, 16, 1);
                add_mma_in_parts(GEMMEPI_F16, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_SILU,
                                 shape, 4, layout, gpi__sm80_shapes[shape].unit, 1);
            }
            if (takes_layout(shape + 1, layout)) {
                add_mma(GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_SILU | back,
                        shape, layout, gpi__sm80_shapes[shape].unit, 1);
                add_mma(GEMMEPI_F16, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_DTYPE_DEFAULT,
                        GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS, shape, layout, 2 << layout, 1);
                add_mma(GEMMEPI_F32, GEMMEPI_COMPUTE_F32, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_SILU | back, shape,
                        layout, 8, 1);
            }
            for (way = 0; way < 2; way++) { /* two of four by turns; --all: each */
                gemmepi_compute compute = way ? GEMMEPI_COMPUTE_TF32 : GEMMEPI_COMPUTE_F32;
                int turn = (shape + layout + way) & 1;
                if (!takes_layout(shape + way, layout) &&
                    gpi__sm80_shapes[shape].kinds &
                        (GPI__OF_16_BITS | GPI__OF_TF32)) /* others have no other rows */
                    continue;
                if (takes_all || turn) {
                    add_mma_in_parts(GEMMEPI_F32, compute, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_NONE, shape, 4,
                                     layout, 16, 1);
                    add_mma(GEMMEPI_F32, compute, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_GELU_TANH | back, shape,
                            layout, 16, 1);
                }
                if (takes_all || !turn) {
                    add_mma(GEMMEPI_F32, compute, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_SILU | GEMMEPI_BIAS, shape,
                            layout, 16, 1);
                    add_mma(GEMMEPI_F32, compute, GEMMEPI_DTYPE_DEFAULT,
                            GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_AUX, shape, layout, 4 << (layout % 3), 1);
                }
            }
        }
    for (nth = 0; nth < GPI__COUNT(gpi__activations); nth++) {
        gemmepi_epilogue activation = gpi__activations[nth].code;
        gemmepi_matmul_desc gate = new_desc(GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT,
                                            activation | GEMMEPI_GATED | GEMMEPI_BIAS);
        gemmepi_matmul_desc gradient = new_desc(GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_DTYPE_DEFAULT,
                                                activation | back | GEMMEPI_GATED | GEMMEPI_UPSTREAM);
        gemmepi_matmul_desc sums =
            new_desc(GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, activation | back);
        layout = (int)nth % 4;
        shape = (int)nth % shapes;
        add_mma(GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_DTYPE_DEFAULT,
                activation | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL, shape, layout, 16, 0);
        add_mma(GEMMEPI_F16, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_F32, activation | GEMMEPI_GATED | GEMMEPI_AUX,
                (shape + 1) % shapes, layout, 4, 1);
        add_mma(GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_E4M3, activation | GEMMEPI_BIAS,
                (shape + 2) % shapes, layout, 2, 1);
        add_mma(GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_DTYPE_DEFAULT, activation | back, shape,
                layout, 16, 1);
        add_mma(GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_DTYPE_DEFAULT,
                activation | back | GEMMEPI_GATED, (shape + 1) % shapes, layout, 8, 1);
        add_mma(GEMMEPI_F16, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_DTYPE_DEFAULT,
                activation | back | GEMMEPI_UPSTREAM | GEMMEPI_GATED, (shape + 2) % shapes, layout, 16, 0);
        add_mma(GEMMEPI_F32, nth % 2 ? GEMMEPI_COMPUTE_F32 : GEMMEPI_COMPUTE_TF32, GEMMEPI_BF16,
                activation | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL, shape, layout, 4, 0);
        add_pass_in_parts(&sums, GEMMEPI_DTYPE_DEFAULT, 2 + (int)nth, nth % 2, nth % 3 == 0);
        add_pass_in_parts(&gate, GEMMEPI_DTYPE_DEFAULT, nth % 2 ? 16 : 128, nth % 2, nth % 3 == 0);
        add_pass_in_parts(&gradient, GEMMEPI_DTYPE_DEFAULT, nth % 2 ? 128 : 16, nth % 3 != 0, nth % 2);
        add_mma(GEMMEPI_F32, nth % 2 ? GEMMEPI_COMPUTE_TF32 : GEMMEPI_COMPUTE_F32, GEMMEPI_DTYPE_DEFAULT,
                activation | back | GEMMEPI_GATED, (shape + 1) % shapes, layout, 8, 1);
    }
}

/* unit: bytes at whose multiples lines of operands begin; those of results at odd elements where that is less than 16 */
static void add_small(gemmepi_dtype operands, gemmepi_dtype results, gemmepi_epilogue epilogue, int shape,
                      int layout, int unit, int unit_alpha) {
    gemmepi_matmul_desc desc = new_desc(operands, operands, results, epilogue);
    const gpi__small_shape *cut = &gpi__small_shapes[shape];
    gpi__problem problem;
    char name[160], prologue[2048];
    gpi__text text = gpi__text_in(name, sizeof name);
    gpi__text defines = gpi__text_in(prologue, sizeof prologue);
    if (cut->tile_n % GPI__RUN)
        desc.n = cut->tile_n + cut->tile_n % 2 * ((epilogue & GEMMEPI_GATED) != 0);
    transpose_operands(&desc, layout);
    desc.a.ld = 8192 + unit / (operands == GEMMEPI_F32 ? 4 : 2);
    desc.b.ld = desc.a.ld;
    if (unit < 16)
        set_odd_lines(&desc);
    append_dtype(&text, operands);
    append_results(&text, &desc);
    gpi__append(&text, "_shape_%d_layout_%d_by_%d%s", shape, layout, unit, unit_alpha ? "" : "_scaled");
    normalise(&desc, name, &problem);
    if (!gpi__small_shape_accepts(&problem, cut, 90))
        return;
    gpi__append_small_defines(&defines, &problem, cut, unit_alpha);
    note_layout(&small, shape, layout);
    add_product(cut->parts > 1 ? &small_parts : &small, name, prologue, &problem);
}

/* Every shape in every layout, and every activation in some shape. */
static void list_small(void) {
    const gemmepi_epilogue back = GEMMEPI_BACKWARD | GEMMEPI_BGRAD;
    uint32_t nth;
    int shape, layout, shapes = (int)GPI__COUNT(gpi__small_shapes);
    few_archs = 1;
    for (shape = 0; shape < shapes; shape++)
        for (layout = 0; layout < 4; layout++) {
            int by = 2 << (shape + layout) % 4;
            add_small(GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_SILU | GEMMEPI_BIAS, shape, layout, 16, 1);
            add_small(GEMMEPI_F16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_SILU | GEMMEPI_GATED | back, shape, layout,
                      by, 0);
            add_small(GEMMEPI_F32, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_GELU_ERF | GEMMEPI_GATED | GEMMEPI_AUX,
                      shape, layout, by < 4 ? 4 : by, 1);
            add_small(GEMMEPI_F32, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_GELU_TANH | GEMMEPI_RESIDUAL | back, shape,
                      layout, 16, 0);
        }
    for (nth = 0; nth < GPI__COUNT(gpi__activations); nth++) {
        gemmepi_epilogue activation = gpi__activations[nth].code;
        layout = (int)nth % 4;
        shape = (int)nth % shapes;
        add_small(GEMMEPI_BF16, GEMMEPI_F32, activation | GEMMEPI_BIAS | GEMMEPI_AUX, shape, layout, 16, 0);
        add_small(GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, activation | back, (shape + 1) % shapes, layout, 2, 1);
        add_small(GEMMEPI_F16, GEMMEPI_DTYPE_DEFAULT, activation | back | GEMMEPI_UPSTREAM | GEMMEPI_GATED,
                  (shape + 2) % shapes, layout, 8, 1);
    }
}

static int64_t outer_k(int shape, int layout) {
    return GPI__OUTER_DEPTH - (5 * shape + 7 * layout + rounds()) % GPI__OUTER_DEPTH;
}

/* As add_small has them. */
static void add_outer(gemmepi_dtype operands, gemmepi_dtype results, gemmepi_epilogue epilogue, int shape,
                      int layout, int unit, int unit_alpha) {
    gemmepi_matmul_desc desc = new_desc(operands, operands, results, epilogue);
    gpi__problem problem;
    char name[160], prologue[2048];
    gpi__text text = gpi__text_in(name, sizeof name);
    gpi__text defines = gpi__text_in(prologue, sizeof prologue);
    transpose_operands(&desc, layout);
    desc.k = outer_k(shape, layout);
    desc.a.ld = desc.b.ld = 8192 + unit / (operands == GEMMEPI_F32 ? 4 : 2);
    if (desc.b.transposed && unit == 16)
        desc.b.ld = desc.k; /* lines with nothing between them */
    if (unit < 16)
        set_odd_lines(&desc);
    append_dtype(&text, operands);
    append_results(&text, &desc);
    gpi__append(&text, "_shape_%d_layout_%d_by_%d%s", shape, layout, unit, unit_alpha ? "" : "_scaled");
    normalise(&desc, name, &problem);
    gpi__append_outer_defines(&defines, &problem, &gpi__outer_shapes[shape], unit_alpha);
    note_layout(&outer, shape, layout);
    add_product(&outer, name, prologue, &problem);
}

/* Every shape in every layout, and every activation in some shape. */
static void list_outer(void) {
    const gemmepi_epilogue back = GEMMEPI_BACKWARD | GEMMEPI_BGRAD;
    uint32_t nth;
    int shape, layout, shapes = (int)GPI__COUNT(gpi__outer_shapes);
    few_archs = 1;
    for (shape = 0; shape < shapes; shape++)
        for (layout = 0; layout < 4; layout++) {
            add_outer(GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_SILU | GEMMEPI_BIAS, shape, layout, 16, 1);
            add_outer(GEMMEPI_F16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_SILU | GEMMEPI_GATED | back, shape, layout,
                      2, 0);
            add_outer(GEMMEPI_F32, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_GELU_ERF | GEMMEPI_GATED | GEMMEPI_AUX,
                      shape, layout, 8, 1);
        }
    for (nth = 0; nth < GPI__COUNT(gpi__activations); nth++) {
        gemmepi_epilogue activation = gpi__activations[nth].code;
        gemmepi_epilogue of_operand = nth % 2 ? GEMMEPI_BGRAD_A : GEMMEPI_BGRAD_B;
        add_outer(GEMMEPI_BF16, GEMMEPI_F32, activation | GEMMEPI_BIAS | GEMMEPI_AUX | of_operand,
                  (int)nth % shapes, (int)nth % 4, 16, 0);
        add_outer(GEMMEPI_F16, GEMMEPI_DTYPE_DEFAULT, activation | back | GEMMEPI_UPSTREAM | GEMMEPI_GATED,
                  (int)(nth + 2) % shapes, (int)nth % 4, 8, 1);
    }
}

static void add_weights(gemmepi_dtype a, gemmepi_dtype results, gemmepi_scale_mode scale,
                        gemmepi_epilogue epilogue, int shape, int unit_alpha) {
    gemmepi_matmul_desc desc = new_desc(a, GEMMEPI_I8, results, epilogue);
    const gpi__weights_shape *cut = &gpi__weights_shapes[shape];
    gpi__problem problem;
    char name[160], prologue[2048];
    gpi__text text = gpi__text_in(name, sizeof name);
    gpi__text defines = gpi__text_in(prologue, sizeof prologue);
    desc.k = 8192;
    desc.b.transposed = 1;
    desc.b.scale.mode = scale;
    append_dtype(&text, a);
    append_results(&text, &desc);
    gpi__append(&text, "_shape_%d_scale_%d%s", shape, (int)scale, unit_alpha ? "" : "_scaled");
    normalise(&desc, name, &problem);
    if (!gpi__weights_shape_accepts(&problem, cut, 90))
        return;
    gpi__append_weights_prologue(&defines, &problem, cut,
                                 gpi__weights_stages(&problem, cut, cut->parts > 1 || cut->wgmma ? 90 : 80),
                                 unit_alpha);
    note_layout(&weights, shape, 2);
    add_product(cut->wgmma       ? &weights_wgmma
                : cut->parts > 1 ? &weights_parts
                                 : &weights,
                name, prologue, &problem);
}

/* Every other shape (--all: every one) with every sort of scale, and every activation in some shape. Clusters are Hopper's and later. */
static void list_weights(void) {
    const gemmepi_epilogue back = GEMMEPI_BACKWARD | GEMMEPI_BGRAD;
    int shape, shapes = (int)GPI__COUNT(gpi__weights_shapes);
    uint32_t nth;
    few_archs = 1;
    for (shape = 0; shape < shapes; shape += takes_all ? 1 : 2) {
        gemmepi_dtype a = shape % 2 ? GEMMEPI_BF16 : GEMMEPI_F16, b = shape % 2 ? GEMMEPI_F16 : GEMMEPI_BF16;
        add_weights(a, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_SCALE_OUTER, GEMMEPI_SILU | GEMMEPI_BIAS, shape, 1);
        add_weights(b, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_SCALE_VECTOR_128, GEMMEPI_NONE, shape, 1);
        add_weights(a, GEMMEPI_F32, GEMMEPI_SCALE_VECTOR_128,
                    GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS | GEMMEPI_AUX, shape, 0);
        add_weights(b, GEMMEPI_F32, GEMMEPI_SCALE_BLOCK_128, GEMMEPI_GELU_TANH | GEMMEPI_RESIDUAL | back,
                    shape, 0);
        add_weights(a, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_SCALE_NONE, GEMMEPI_GELU_ERF | GEMMEPI_GATED | back,
                    shape, 1);
    }
    for (nth = 0; nth < GPI__COUNT(gpi__activations); nth++) {
        gemmepi_epilogue activation = gpi__activations[nth].code;
        shape = (int)nth % shapes;
        add_weights(GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_SCALE_OUTER, activation | GEMMEPI_BIAS | GEMMEPI_AUX,
                    shape, 0);
        add_weights(GEMMEPI_F16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_SCALE_VECTOR_128,
                    activation | back | GEMMEPI_UPSTREAM | GEMMEPI_GATED, (shape + 5) % shapes, 1);
    }
}

/* Weights of which a formula makes 16 bits, each type and text in every third shape or so. */
static const struct {
    gemmepi_dtype stored, a;
    const char *text;
    gemmepi_dtype zero, scale;
    int group;
} makings[] = {
    {GEMMEPI_U4, GEMMEPI_F16, "(b - zero) * scale", GEMMEPI_F16, GEMMEPI_F16, 128},
    {GEMMEPI_U4, GEMMEPI_BF16, "(b - zero) * scale", GEMMEPI_F32, GEMMEPI_F32, 64},
    {GEMMEPI_I4, GEMMEPI_BF16, "b * scale", GEMMEPI_F16, GEMMEPI_BF16, 128},
    {GEMMEPI_E2M1, GEMMEPI_BF16, "b * scale", GEMMEPI_F16, GEMMEPI_E8M0, 32},
    {GEMMEPI_E2M1, GEMMEPI_F16, "b * scale * number", GEMMEPI_F16, GEMMEPI_E4M3, 16},
    {GEMMEPI_I8, GEMMEPI_BF16, "(b - zero) * scale", GEMMEPI_I8, GEMMEPI_F32, 128},
    {GEMMEPI_E4M3, GEMMEPI_BF16, "b * scale", GEMMEPI_F16, GEMMEPI_E8M0, 32},
    {GEMMEPI_E5M2, GEMMEPI_F16, "exp(b) / scale", GEMMEPI_F16, GEMMEPI_F16, 1024},
};

static void describe_operand(gemmepi_operand *operand, const char *name, gemmepi_dtype dtype, int group) {
    memset(operand, 0, sizeof *operand);
    operand->name = name;
    operand->kind = group ? GEMMEPI_BLOCKED : GEMMEPI_NUMBER;
    operand->dtype = dtype;
    operand->block_rows = group;
    operand->block_columns = group != 0;
}

static void add_made(int making, int shape, gemmepi_epilogue epilogue, int unit_alpha) {
    static char prologue[1 << 16];
    gemmepi_matmul_desc desc =
        new_desc(makings[making].a, makings[making].stored, GEMMEPI_DTYPE_DEFAULT, epilogue);
    const gpi__weights_shape *cut = &gpi__weights_shapes[shape];
    gemmepi_allocator allocator = gpi__default_allocator();
    gemmepi_operand operands[3];
    gpi__problem problem;
    char name[160];
    gpi__text text = gpi__text_in(name, sizeof name), defines = gpi__text_in(prologue, sizeof prologue);
    desc.n = desc.k = 8192;
    desc.b.transposed = 1;
    desc.b.formula = makings[making].text;
    desc.operands = operands;
    desc.operand_count = 3;
    describe_operand(&operands[0], "zero", makings[making].zero, makings[making].group);
    describe_operand(&operands[1], "scale", makings[making].scale, makings[making].group);
    describe_operand(&operands[2], "number", GEMMEPI_DTYPE_DEFAULT, 0);
    append_dtype(&text, makings[making].a);
    append_results(&text, &desc);
    gpi__append(&text, "_shape_%d_making_%d%s", shape, making, unit_alpha ? "" : "_scaled");
    if (gpi__normalise_in(&allocator, &desc, NULL, NULL, 16, &problem)) {
        printf("%s is no problem: %s\n", name, gemmepi_last_error());
        exit(1);
    }
    if (gpi__made_rule(problem.made[GPI__B].formula, problem.alignment)) {
        printf("%s is not made: %s\n", name, gpi__made_rule(problem.made[GPI__B].formula, problem.alignment));
        exit(1);
    }
    if (gpi__weights_shape_accepts(&problem, cut, 90)) {
        gpi__append_weights_prologue(
            &defines, &problem, cut,
            gpi__weights_stages(&problem, cut, cut->parts > 1 || cut->wgmma ? 90 : 80), unit_alpha);
        add_product(cut->wgmma       ? &weights_made_wgmma
                    : cut->parts > 1 ? &weights_made_parts
                                     : &weights_made,
                    name, prologue, &problem);
    }
    gpi__free_formulas(&problem, &allocator);
}

/* Formats whose scales tensor cores multiply by: a and b are of which types, and their scales. s is a scale of the whole. */
static const struct {
    gemmepi_dtype a, b, scale;
    const char *text;
} scaled_formats[] = {
    {GEMMEPI_E4M3, GEMMEPI_E4M3, GEMMEPI_E8M0, "b * q"},
    {GEMMEPI_E2M1, GEMMEPI_E2M1, GEMMEPI_E8M0, "b * q"},
    {GEMMEPI_E2M1, GEMMEPI_E2M1, GEMMEPI_E4M3, "b * q * s"},
    {GEMMEPI_E5M2, GEMMEPI_E4M3, GEMMEPI_E8M0, "b * q * s"},
};

static void add_scaled_format(int format, int shape, int parts, gemmepi_epilogue epilogue, int unit_alpha) {
    gemmepi_matmul_desc desc =
        new_desc(scaled_formats[format].a, scaled_formats[format].b, GEMMEPI_BF16, epilogue);
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__sm80_cut cut = {&gpi__sm80_shapes[shape], parts};
    int group = scaled_formats[format].scale == GEMMEPI_E4M3 ? 16 : 32;
    gemmepi_operand operands[3];
    gpi__problem problem, own;
    char name[160], prologue[2048];
    gpi__text text = gpi__text_in(name, sizeof name), defines = gpi__text_in(prologue, sizeof prologue);
    desc.n = desc.k = 8192;
    desc.b.transposed = 1;
    desc.a.formula = "a * p", desc.b.formula = scaled_formats[format].text;
    desc.operands = operands, desc.operand_count = 3;
    describe_operand(&operands[0], "p", scaled_formats[format].scale, group);
    operands[0].block_rows = 1, operands[0].block_columns = group;
    describe_operand(&operands[1], "q", scaled_formats[format].scale, group);
    describe_operand(&operands[2], "s", GEMMEPI_F32, 0);
    operands[2].kind = GEMMEPI_SCALAR;
    append_dtype(&text, scaled_formats[format].a);
    append_results(&text, &desc);
    gpi__append(&text, "_shape_%d_format_%d%s%s", shape, format, unit_alpha ? "" : "_scaled",
                parts > 1 ? "_in_parts" : "");
    if (gpi__normalise_in(&allocator, &desc, NULL, NULL, 16, &problem) ||
        gpi__scaled_operand_rule(&problem, GPI__A) || gpi__scaled_operand_rule(&problem, GPI__B)) {
        printf("%s is no product of scaled formats: %s\n", name, gemmepi_last_error());
        exit(1);
    }
    if (gpi__sm80_shape_accepts(&problem, cut.shape, 120)) {
        own = gpi__with_whole_scales(&problem);
        own = parts > 1 ? gpi__bare_problem(&own) : own;
        append_mma_defines(&mma_scaled, &own, &cut, unit_alpha, &defines);
        add_product(&mma_scaled, name, prologue, &own);
    }
    gpi__free_formulas(&problem, &allocator);
}

static void list_scaled_formats(void) {
    int shape, i;
    few_archs = 0; /* there is one target */
    for (shape = 0; shape < (int)GPI__COUNT(gpi__sm80_shapes); shape++)
        for (i = 0; i < (int)GPI__COUNT(scaled_formats); i++) {
            add_scaled_format(i, shape, 1,
                              GEMMEPI_SILU | GEMMEPI_GATED | (i % 2 ? GEMMEPI_BIAS : GEMMEPI_AUX), 1);
            add_scaled_format(i, shape, 1, GEMMEPI_GELU_TANH | GEMMEPI_BIAS | GEMMEPI_RESIDUAL, shape % 2);
            add_scaled_format(i, shape, 4, GEMMEPI_NONE, 1);
        }
}

static void list_made(void) {
    const int count = (int)GPI__COUNT(makings);
    int shape, i;
    few_archs = 1;
    for (shape = 0; shape < (int)GPI__COUNT(gpi__weights_shapes); shape++)
        for (i = 0; i < (takes_all ? count : 3); i++) {
            add_made((shape + i * 3) % count, shape,
                     i == 1 ? GEMMEPI_SILU | GEMMEPI_GATED : GEMMEPI_SILU | GEMMEPI_BIAS, i != 2);
        }
}

/* Every shape in its layouts, with sums of each operand too, a mask and a bias by turns (--all: both), and every activation in some
   shape, and beside AUX. */
static void list_fused(void) {
    const gemmepi_epilogue back = GEMMEPI_BACKWARD | GEMMEPI_BGRAD, gate = back | GEMMEPI_GATED,
                           recomputed = gate | GEMMEPI_UPSTREAM | GEMMEPI_BIAS;
    const gemmepi_epilogue two_halves[] = {gate | GEMMEPI_RESIDUAL, recomputed, gate,
                                           recomputed | GEMMEPI_RESIDUAL};
    const gemmepi_epilogue with_bias[] = {GEMMEPI_NONE, GEMMEPI_RELU, GEMMEPI_GELU_ERF};
    const gemmepi_epilogue of_words[] = {GEMMEPI_NONE, GEMMEPI_GELU_TANH | GEMMEPI_BIAS | GEMMEPI_AUX,
                                         GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_GATED, GEMMEPI_SILU | back};
    uint32_t nth;
    int shape, layout, way, shapes = (int)GPI__COUNT(gpi__sm90_shapes);
    few_archs = 1;
    for (shape = 0; shape < shapes; shape++)
        for (layout = 0; layout < 4; layout++) {
            gemmepi_dtype type = shape & 1 ? GEMMEPI_F16 : GEMMEPI_BF16;
            int gated = !(layout & 1), turn = takes_layout(shape, layout),
                other = takes_layout(shape + 1, layout);
            if (turn)
                add_fused(type, GEMMEPI_DTYPE_DEFAULT,
                          GEMMEPI_SILU | GEMMEPI_BIAS | (gated ? GEMMEPI_GATED : GEMMEPI_NONE), shape, layout,
                          1);
            if (takes_all || (other && ((shape + layout) & 1)))
                add_fused(type, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_AUX, shape,
                          layout, layout & 1);
            for (way = 0; way < 3; way++)
                if (takes_all || (other && !((shape + layout) & 1) && way == shape % 3))
                    add_fused(type, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_BIAS | with_bias[way], shape, layout, 1);
            if (turn)
                add_fused(type, GEMMEPI_F32, GEMMEPI_BGRAD_A, shape, layout, 0);
            if (other)
                add_fused(type, GEMMEPI_DTYPE_DEFAULT,
                          GEMMEPI_SILU | GEMMEPI_BGRAD_B | GEMMEPI_ACCUMULATE_BIAS_GRAD |
                              (gated ? GEMMEPI_GATED : GEMMEPI_NONE),
                          shape, layout, 1);
        }
    for (shape = 0; shape < 2; shape++)
        add_fused(GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_GELU_TANH | GEMMEPI_BIAS | GEMMEPI_AUX, shape,
                  1, 1);
    for (shape = 0; shape < shapes; shape++) {
        add_fused(GEMMEPI_F32, GEMMEPI_BF16, GEMMEPI_SILU | GEMMEPI_BIAS, shape, 2, 1);
        add_fused_from(GEMMEPI_F32, GEMMEPI_F32, of_words[shape % 4], shape, 2, shape & 1);
    }
    for (nth = 0; nth < GPI__COUNT(gpi__activations); nth++) {
        gemmepi_epilogue activation = gpi__activations[nth].code;
        add_fused_from(GEMMEPI_F32, GEMMEPI_F32,
                       activation | (nth % 3 == 0   ? GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_GATED
                                     : nth % 3 == 1 ? back | GEMMEPI_GATED
                                                    : back | GEMMEPI_RESIDUAL),
                       (int)nth, 2, (int)nth & 1);
        add_fused(GEMMEPI_BF16, GEMMEPI_F32, activation | GEMMEPI_BACKWARD | GEMMEPI_GATED, 0, 0,
                  (int)nth & 1);
        add_fused(GEMMEPI_BF16, GEMMEPI_F32, activation | GEMMEPI_BACKWARD | GEMMEPI_GATED | GEMMEPI_UPSTREAM,
                  2, 3, (int)nth & 1);
        layout = ((int)nth + rounds()) % 4;
        add_fused(nth & 1 ? GEMMEPI_F16 : GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, activation | GEMMEPI_BIAS,
                  (int)nth / 2 % 2, 1, 1);
        shape = ((int)nth + rounds() / 4) % shapes;
        add_fused(GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT,
                  activation | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL, shape, layout, 0);
        add_fused(GEMMEPI_F16, GEMMEPI_F32, activation | GEMMEPI_GATED | GEMMEPI_AUX, (shape + 3) % shapes,
                  layout, 1);
        add_fused(GEMMEPI_F16, GEMMEPI_DTYPE_DEFAULT, activation | GEMMEPI_GATED | GEMMEPI_AUX | GEMMEPI_BIAS,
                  (shape + 5) % shapes, layout, 0);
        add_fused(GEMMEPI_BF16, GEMMEPI_F32, activation, (shape + 6) % shapes, layout, 1);
        add_fused(GEMMEPI_BF16, GEMMEPI_E4M3, activation | GEMMEPI_BIAS, (shape + 4) % shapes, layout, 0);
        add_fused_from(GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, activation | back, shape, layout, 1);
        add_fused_from(GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, activation | back | GEMMEPI_GATED, shape + 2,
                       layout, 1);
        if (nth & 1)
            add_fused_from(GEMMEPI_F16, GEMMEPI_F32, activation | back | GEMMEPI_RESIDUAL, shape + 1, layout,
                           0);
        else
            add_fused_from(GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, activation | back | GEMMEPI_RESIDUAL,
                           shape + 1, layout, 1);
        if (nth / 2 & 1)
            add_fused_from(GEMMEPI_F16, GEMMEPI_DTYPE_DEFAULT, activation | back | GEMMEPI_UPSTREAM,
                           shape + 3, layout, 1);
        else
            add_fused_from(GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT,
                           activation | back | GEMMEPI_UPSTREAM | GEMMEPI_GATED, shape + 4, layout, 1);
        /* two halves, and all that takes registers beside them, by turns; --all: each */
        for (way = takes_all ? 0 : (int)nth % 4; way < 4; way += takes_all ? 1 : 4)
            add_fused_from(GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, activation | two_halves[way], shape + 5 + way,
                           (layout + way) % 4, way == 1);
    }
}

/* In every shape, where it takes registers beside what else does, by turns; --all: beside each. */
static void list_row_factors(void) {
    const gemmepi_epilogue back = GEMMEPI_BACKWARD | GEMMEPI_BGRAD;
    const gemmepi_epilogue beside[] = {GEMMEPI_SILU | GEMMEPI_BIAS,
                                       GEMMEPI_GELU_TANH | back,
                                       GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS | GEMMEPI_AUX,
                                       GEMMEPI_GELU_ERF | GEMMEPI_BIAS | GEMMEPI_RESIDUAL,
                                       GEMMEPI_MISH | GEMMEPI_GATED | back,
                                       GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_AUX};
    int i, shape, beside_count = (int)GPI__COUNT(beside);
    has_row_factor = 1;
    few_archs = 1;
    for (i = 0; i < beside_count; i++) {
        gemmepi_dtype type = i & 1 ? GEMMEPI_F16 : GEMMEPI_BF16;
        for (shape = 0; shape < (int)GPI__COUNT(gpi__sm90_shapes); shape++)
            if (takes_all || (shape + i) % 3 == 0)
                add_fused_from(type, GEMMEPI_DTYPE_DEFAULT, beside[i], shape, (shape + i) % 4, shape & 1);
        for (shape = 0; shape < (int)GPI__COUNT(gpi__sm80_shapes); shape++)
            if (takes_all || (shape + i) % 3 == 0) {
                add_mma(type, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_DTYPE_DEFAULT, beside[i], shape,
                        (shape + i) % 4, 16, 1);
                add_mma(GEMMEPI_F32, GEMMEPI_COMPUTE_F32, GEMMEPI_DTYPE_DEFAULT, beside[i], shape,
                        (shape + i) % 4, 16, 1);
            }
        add_pass(type, GEMMEPI_DTYPE_DEFAULT, beside[i], i & 1, 1);
    }
    for (i = 0; i < (int)GPI__COUNT(products); i += 6)
        add_plain(&products[i]);
    has_row_factor = 0;
}

static int grouped_rows; /* that have been added: B is transposed by turns */

/* Of groups in every shape that takes them. way: bits 1 rows of D scattered, 2 of A gathered, 4 groups of k, 8 odd sizes. */
static void add_scaled_groups(gemmepi_dtype operands, gemmepi_dtype results, gemmepi_epilogue epilogue,
                              int way, int unit_alpha, gemmepi_scale_mode of_a, gemmepi_scale_mode of_b,
                              uint64_t flags) {
    int is_fp8 = operands == GEMMEPI_E4M3 || operands == GEMMEPI_E5M2;
    const gpi__sm90_shape *shapes = is_fp8 ? gpi__sm90_fp8_shapes : gpi__sm90_shapes;
    int count = (int)(is_fp8 ? GPI__COUNT(gpi__sm90_fp8_shapes) : GPI__COUNT(gpi__sm90_shapes));
    gemmepi_grouped_desc desc;
    gpi__problem problem, inner;
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__sm90 sm90_kernel;
    int shape;
    memset(&desc, 0, sizeof desc);
    desc.product = new_desc(operands, operands, results, epilogue);
    desc.product.a.transposed = desc.grouping = way & 4 ? GEMMEPI_GROUPS_OF_K : GEMMEPI_GROUPS_OF_ROWS;
    desc.product.m = way & 8 ? 144 : 4096, desc.product.n = way & 8 ? 144 : 4096, desc.product.k = 2048;
    desc.product.b.transposed = is_fp8; /* else by turns below */
    desc.product.a.scale.mode = of_a, desc.product.b.scale.mode = of_b;
    desc.product.flags = flags;
    if (flags & GEMMEPI_FIND_SCALE_D)
        desc.product.d.scale.mode = GEMMEPI_SCALE_VECTOR_128;
    desc.groups = 8;
    desc.scatter_d = way & 1 ? 5000 : 0;
    desc.gather_a = way & 2 ? 5000 : 0;
    desc.weighted = way & 1;
    for (shape = 0; shape < count; shape++) {
        char name[160], prologue[2048];
        gpi__text text = gpi__text_in(name, sizeof name);
        gpi__text defines = gpi__text_in(prologue, sizeof prologue);
        if (!is_fp8 && !(way & 4))
            desc.product.b.transposed = (shape + grouped_rows) & 1;
        if (gpi__convert_grouped(&allocator, &desc, 16, &problem)) {
            printf("a grouped product is refused: %s\n", gpi__error_text);
            exit(1);
        }
        inner = gpi__inner_problem(&problem);
        if (!gpi__shape_accepts(&inner, &shapes[shape], unit_alpha))
            continue;
        append_dtype(&text, operands);
        append_results(&text, &desc.product);
        gpi__append(&text, "_way_%d_shape_%d%s%s", way, shape, unit_alpha ? "" : "_scaled",
                    desc.product.b.transposed ? "" : "_b_as_it_is");
        if (of_a)
            gpi__append(&text, "_scales_%d_%d", (int)of_a, (int)of_b);
        if (flags)
            gpi__append(&text, flags & GEMMEPI_FIND_SCALE_D ? "_found" : "_fast");
        memset(&sm90_kernel, 0, sizeof sm90_kernel);
        gpi__cut_up(&inner, &shapes[shape], unit_alpha, &sm90_kernel);
        gpi__append_sm90_defines(&defines, &inner, &sm90_kernel);
        if (!is_fp8 && !(way & 4))
            note_layout(&grouped, shape, desc.product.b.transposed << 1);
        add_product(&grouped, name, prologue, &inner);
    }
    grouped_rows++;
}

static void add_grouped(gemmepi_dtype operands, gemmepi_dtype results, gemmepi_epilogue epilogue, int way,
                        int unit_alpha) {
    add_scaled_groups(operands, results, epilogue, way, unit_alpha, GEMMEPI_SCALE_NONE, GEMMEPI_SCALE_NONE,
                      0);
}

static void list_fp8_groups(void) {
    const gemmepi_epilogue swiglu = GEMMEPI_SILU | GEMMEPI_GATED;
    const uint64_t find = GEMMEPI_FIND_SCALE_D;
    const gemmepi_scale_mode vector = GEMMEPI_SCALE_VECTOR_128, block = GEMMEPI_SCALE_BLOCK_128,
                             outer = GEMMEPI_SCALE_OUTER;
    add_scaled_groups(GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_NONE, 0, 1, vector, block, 0);
    add_scaled_groups(GEMMEPI_E4M3, GEMMEPI_BF16, swiglu, 2, 1, vector, block, 0);
    add_scaled_groups(GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_NONE, 1, 1, vector, block, 0);
    add_scaled_groups(GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_SILU | GEMMEPI_BIAS, 11, 0, vector, vector, 0);
    add_scaled_groups(GEMMEPI_E4M3, GEMMEPI_BF16, swiglu | GEMMEPI_AUX, 8, 1, block, block, 0);
    add_scaled_groups(GEMMEPI_E4M3, GEMMEPI_E4M3, swiglu, 2, 1, outer, outer, 0);
    add_scaled_groups(GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_GELU_ERF | GEMMEPI_BIAS | GEMMEPI_AUX, 10, 1, outer,
                      outer, GEMMEPI_FAST_ACCUMULATION);
    add_scaled_groups(GEMMEPI_E5M2, GEMMEPI_BF16, swiglu | GEMMEPI_BACKWARD, 2, 1, outer, outer,
                      GEMMEPI_FAST_ACCUMULATION);
    add_scaled_groups(GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD, 0, 0, vector, block,
                      0);
    add_scaled_groups(GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_RESIDUAL | GEMMEPI_BIAS, 9, 0, vector, block, 0);
    add_scaled_groups(GEMMEPI_E4M3, GEMMEPI_F32, GEMMEPI_SILU | GEMMEPI_AUX, 9, 1, vector, vector, 0);
    add_scaled_groups(GEMMEPI_E4M3, GEMMEPI_E4M3, swiglu, 0, 1, vector, block, find);
    add_scaled_groups(GEMMEPI_E4M3, GEMMEPI_E4M3, swiglu | GEMMEPI_BIAS, 11, 0, vector, block, find);
    add_scaled_groups(GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_NONE, 1, 1, outer, outer, find);
    add_scaled_groups(GEMMEPI_BF16, GEMMEPI_E4M3, swiglu, 0, 1, GEMMEPI_SCALE_NONE, GEMMEPI_SCALE_NONE, find);
    add_scaled_groups(GEMMEPI_BF16, GEMMEPI_E4M3, swiglu | GEMMEPI_BIAS, 9, 0, GEMMEPI_SCALE_NONE,
                      GEMMEPI_SCALE_NONE, find);
    add_scaled_groups(GEMMEPI_BF16, GEMMEPI_E4M3, GEMMEPI_GELU_TANH | GEMMEPI_BIAS | GEMMEPI_AUX, 8, 1,
                      GEMMEPI_SCALE_NONE, GEMMEPI_SCALE_NONE, find);
}

/* way: besides, 16 B transposed. */
static void add_grouped_plain(gemmepi_dtype operands, gemmepi_dtype results, gemmepi_epilogue epilogue,
                              int way, gemmepi_scale_mode mode) {
    gemmepi_grouped_desc desc;
    gpi__problem problem;
    gemmepi_allocator allocator = gpi__default_allocator();
    char name[160], prologue[2048];
    gpi__text text = gpi__text_in(name, sizeof name);
    gpi__text defines = gpi__text_in(prologue, sizeof prologue);
    memset(&desc, 0, sizeof desc);
    desc.product = new_desc(operands, operands, results, epilogue);
    desc.product.a.transposed = desc.grouping = way & 4 ? GEMMEPI_GROUPS_OF_K : GEMMEPI_GROUPS_OF_ROWS;
    desc.product.a.scale.mode = desc.product.b.scale.mode = mode;
    desc.product.b.transposed = way >> 4;
    desc.groups = 8;
    desc.scatter_d = way & 1 ? 5000 : 0;
    desc.gather_a = way & 2 ? 5000 : 0;
    if (gpi__convert_grouped(&allocator, &desc, 16, &problem)) {
        printf("a grouped product is refused: %s\n", gpi__error_text);
        exit(1);
    }
    append_dtype(&text, operands);
    append_results(&text, &desc.product);
    gpi__append(&text, "_way_%d_scales_%d", way, (int)mode);
    gpi__append_plain_defines(&defines, &problem);
    note_layout(&grouped_plain, 0, desc.product.a.transposed | desc.product.b.transposed << 1);
    add_product(&grouped_plain, name, prologue, &problem);
}

static void list_groups(void) {
    const gemmepi_epilogue swiglu = GEMMEPI_SILU | GEMMEPI_GATED;
    add(&groups, "of_any", "");
    add(&maps, "of_any", "");
    few_archs = 1;
    add_grouped(GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_NONE, 0, 1);
    add_grouped(GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, swiglu, 2, 1);
    add_grouped(GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_NONE, 1, 1);
    add_grouped(GEMMEPI_F16, GEMMEPI_F32, GEMMEPI_GELU_TANH | GEMMEPI_BIAS | GEMMEPI_AUX, 9, 1);
    add_grouped(GEMMEPI_F16, GEMMEPI_DTYPE_DEFAULT, swiglu | GEMMEPI_BIAS | GEMMEPI_AUX, 8, 1);
    add_grouped(GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, swiglu | GEMMEPI_BACKWARD, 0, 1);
    add_grouped(GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_GELU_ERF | GEMMEPI_BACKWARD, 0, 1);
    add_grouped(GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_RELU | GEMMEPI_AUX | GEMMEPI_BIAS, 0, 1);
    add_grouped(GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_RESIDUAL, 0, 0);
    add_grouped(GEMMEPI_BF16, GEMMEPI_E4M3, GEMMEPI_SILU | GEMMEPI_BIAS, 0, 0);
    add_grouped(GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_NONE, 4, 1);
    add_grouped(GEMMEPI_F16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_RESIDUAL, 12, 1);
    add_grouped(GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_NONE, 4, 0);
    list_fp8_groups();
    add_grouped_plain(GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, swiglu, 3, GEMMEPI_SCALE_NONE);
    add_grouped_plain(GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_NONE, 4, GEMMEPI_SCALE_NONE);
    add_grouped_plain(GEMMEPI_E4M3, GEMMEPI_BF16, swiglu, 18, GEMMEPI_SCALE_BLOCK_128);
    add_grouped_plain(GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_SILU | GEMMEPI_BIAS, 3, GEMMEPI_SCALE_VECTOR_128);
    add_grouped_plain(GEMMEPI_E4M3, GEMMEPI_F32, GEMMEPI_NONE, 22, GEMMEPI_SCALE_OUTER);
    add_grouped_plain(GEMMEPI_F32, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_GELU_ERF | GEMMEPI_BIAS, 19,
                      GEMMEPI_SCALE_NONE);
    add_grouped_plain(GEMMEPI_F64, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_NONE, 2, GEMMEPI_SCALE_NONE);
    add_grouped_plain(GEMMEPI_I8, GEMMEPI_I32, GEMMEPI_RELU, 2, GEMMEPI_SCALE_NONE);
    few_archs = 0;
}

/* With BATCH_INVARIANT, where the bias comes after all sums but those of a gate made anew, in every shape by turns; --all: each. */
static void list_invariant(void) {
    const gemmepi_epilogue back = GEMMEPI_BACKWARD, gate = GEMMEPI_SILU | GEMMEPI_GATED;
    const gemmepi_epilogue of[] = {GEMMEPI_BIAS,
                                   GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_AUX,
                                   GEMMEPI_GELU_ERF | GEMMEPI_BIAS,
                                   GEMMEPI_GELU_TANH | GEMMEPI_BIAS | GEMMEPI_AUX,
                                   GEMMEPI_BIAS | GEMMEPI_RESIDUAL,
                                   gate | GEMMEPI_BIAS,
                                   gate | back,
                                   gate | back | GEMMEPI_UPSTREAM | GEMMEPI_BIAS,
                                   GEMMEPI_GELU_TANH | back,
                                   GEMMEPI_GELU_ERF | back | GEMMEPI_BGRAD};
    int i, shape, count = (int)GPI__COUNT(of);
    is_invariant = 1;
    few_archs = 1;
    for (i = 0; i < count; i++) {
        gemmepi_dtype type = i & 1 ? GEMMEPI_F16 : GEMMEPI_BF16;
        for (shape = 0; shape < (int)GPI__COUNT(gpi__sm90_shapes); shape++)
            if (takes_all || (shape + i) % 4 == 0)
                add_fused(type, GEMMEPI_DTYPE_DEFAULT, of[i], shape, (shape + i) % 4, shape % 3 != 0);
        for (shape = 0; shape < (int)GPI__COUNT(gpi__sm80_shapes); shape++)
            if (takes_all || (shape + i) % 6 == 0) {
                add_mma(type, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_DTYPE_DEFAULT, of[i], shape, i % 4, 16, 1);
                add_mma(GEMMEPI_F32, i & 2 ? GEMMEPI_COMPUTE_TF32 : GEMMEPI_COMPUTE_F32,
                        GEMMEPI_DTYPE_DEFAULT, of[i], shape, i % 4, 16, 1);
            }
    }
    for (i = 0; i < (int)GPI__COUNT(products); i += 9)
        add_plain(&products[i]);
    is_invariant = 0;
}

/* FIND_SCALE_D: what the kernel for Hopper finds of each activation, a pass, and the launches around other products. */
static void list_found(void) {
    const gemmepi_epilogue of[] = {GEMMEPI_BIAS,
                                   GEMMEPI_GATED,
                                   GEMMEPI_BIAS | GEMMEPI_AUX,
                                   GEMMEPI_GATED | GEMMEPI_BIAS,
                                   GEMMEPI_BACKWARD,
                                   GEMMEPI_RESIDUAL | GEMMEPI_BIAS};
    int i, shape, count = (int)GPI__COUNT(of);
    uint32_t nth;
    few_archs = 1;
    found_mode = GEMMEPI_SCALE_VECTOR_128;
    for (nth = 0; nth < GPI__COUNT(gpi__activations); nth++)
        for (i = 0; i < count; i++) {
            gemmepi_epilogue epilogue = gpi__activations[nth].code | of[i];
            for (shape = 0; shape < (int)GPI__COUNT(gpi__sm90_shapes); shape++)
                if (takes_all || (shape + i + (int)nth) % 4 == rounds() % 4)
                    add_fused(GEMMEPI_BF16, GEMMEPI_E4M3, epilogue, shape,
                              (shape + i + (int)nth / 4 + rounds()) % 4,
                              (shape + (int)nth + rounds() / 4) % 3 != 0);
            if ((i + (int)nth) % 5 == 0)
                add_pass(GEMMEPI_F32, nth % 2 ? GEMMEPI_E4M3 : GEMMEPI_E5M2, epilogue, i & 1, 1);
        }
    for (i = 0; i < 12; i++) {
        char prologue[512], name[64];
        gpi__text text = gpi__text_in(prologue, sizeof prologue);
        gemmepi_matmul_desc desc;
        gpi__problem problem;
        found_mode = (gemmepi_scale_mode)(1 + i % 3);
        desc = new_desc(GEMMEPI_BF16, GEMMEPI_BF16, i & 4 ? GEMMEPI_E5M2 : GEMMEPI_E4M3, GEMMEPI_NONE);
        desc.flags |= i & 1 ? GEMMEPI_POWER_OF_TWO_SCALE : 0;
        desc.alignment = i < 6 ? 16 : 1;
        desc.n = i % 4 == 1 ? 14336 : i % 4 == 2 ? 3000 : i % 4 == 3 ? 40000 : 128;
        snprintf(name, sizeof name, "%d", i);
        normalise(&desc, name, &problem);
        gpi__append_found_defines(&text, &problem);
        add(found_mode == GEMMEPI_SCALE_TENSOR ? &history : &found_rows, name, prologue);
    }
    found_mode = GEMMEPI_SCALE_NONE;
    few_archs = 0;
}

/* >>formulas */

#define OPERAND(name, kind, width, dtype, output) \
    { name, kind, width, dtype, output, 0, 0, 0, 0, 0, {GEMMEPI_SCALE_NONE, 0}, 0, NULL, 0, 0 }
#define BLOCKS(name, rows, columns, output)                                                                  \
    {                                                                                                        \
        name, GEMMEPI_BLOCKED, GEMMEPI_WIDTH_N, GEMMEPI_F32, output, 0, 0, 0, 0, 0, {GEMMEPI_SCALE_NONE, 0}, \
            0, NULL, rows, columns                                                                           \
    }
/* Those that are in a formula's text, each as ", NAME" or so; the others are not read. */
static const gemmepi_operand formula_operands[] = {
    OPERAND("residual", GEMMEPI_FULL, GEMMEPI_WIDTH_N, GEMMEPI_DTYPE_DEFAULT, 0),
    OPERAND("up", GEMMEPI_FULL, GEMMEPI_WIDTH_N, GEMMEPI_DTYPE_DEFAULT, 0),
    OPERAND("pre", GEMMEPI_FULL, GEMMEPI_WIDTH_DOUBLE, GEMMEPI_DTYPE_DEFAULT, 0),
    OPERAND("bias", GEMMEPI_PER_COLUMN, GEMMEPI_WIDTH_N, GEMMEPI_DTYPE_DEFAULT, 0),
    OPERAND("rstd", GEMMEPI_PER_ROW, GEMMEPI_WIDTH_N, GEMMEPI_F32, 0),
    OPERAND("label", GEMMEPI_PER_ROW, GEMMEPI_WIDTH_N, GEMMEPI_I64, 0),
    OPERAND("seed", GEMMEPI_SCALAR, GEMMEPI_WIDTH_N, GEMMEPI_I64, 0),
    OPERAND("cosine", GEMMEPI_FULL, GEMMEPI_WIDTH_HALF, GEMMEPI_DTYPE_DEFAULT, 0),
    OPERAND("sine", GEMMEPI_FULL, GEMMEPI_WIDTH_HALF, GEMMEPI_DTYPE_DEFAULT, 0),
    OPERAND("squares", GEMMEPI_PER_ROW, GEMMEPI_WIDTH_N, GEMMEPI_DTYPE_DEFAULT, 1),
    OPERAND("lse", GEMMEPI_PER_ROW, GEMMEPI_WIDTH_N, GEMMEPI_DTYPE_DEFAULT, 1),
    OPERAND("best", GEMMEPI_PER_ROW, GEMMEPI_WIDTH_N, GEMMEPI_DTYPE_DEFAULT, 1),
    OPERAND("sums", GEMMEPI_PER_COLUMN, GEMMEPI_WIDTH_N, GEMMEPI_DTYPE_DEFAULT, 1),
    OPERAND("total", GEMMEPI_SCALAR, GEMMEPI_WIDTH_N, GEMMEPI_DTYPE_DEFAULT, 1),
    BLOCKS("fine", 1, 128, 0),
    BLOCKS("heads", 1, 128, 1),
    BLOCKS("coarse", 128, 96, 0),
    BLOCKS("uneven", 2, 12, 0),
};

static const struct formula_row {
    const char *name, *text;
} formula_rows[] = {
    {"norm", "d = v * rstd * bias"},
    {"gate", "d = silu(v + bias) * up + residual; squares = row_sum(d * d)"},
    {"dropout", "d = (uniform(seed, 0) >= 0.25 ? (v + bias) / 0.75 : 0) + residual"},
    {"rotate",
     "d = pair(left(v, 128) * cosine - right(v, 128) * sine, right(v, 128) * cosine + left(v, 128) * sine, 128)"},
    {"rotate_pairs", "d = interleave(even(v) * cosine - odd(v) * sine, odd(v) * cosine + even(v) * sine)"},
    {"swiglu", "d = left(v) * silu(right(v))"},
    {"swiglu_backward", "d = pair(v * silu(right(pre)), v * left(pre) * d_silu(right(pre)))"},
    {"loss", "lse = row_logsumexp(v); squares = row_sum(column == label ? v : 0)"},
    {"argmax", "best = row_argmax(v)"},
    {"sums", "sums = column_sum(v * residual); total = all_sum(v * v); d = gelu_erf(v)"},
    {"columns", "sums = column_logsumexp(v)"},
    {"rounded", "d = v * up; squares = row_sum(rounded(d) * rounded(v))"},
    {"by_index", "d = silu(v) * bias[label] + up[column]"},
    {"blocks", "d = v * fine + uneven"},
    {"groups", "d = v; heads = row_sum(v * v, 128)"},
};

static void place_formula(const gpi__formula *formula, gpi__placed_formula *placed) {
    int i;
    memset(placed, 0, sizeof *placed);
    placed->formula = formula;
    placed->rows = placed->columns = placed->depth = 1024;
    placed->items = 1;
    for (i = 0; i <= GPI__RESULT; i++)
        placed->operands[i].ld = 2048;
    placed->operands[GPI__RESULT].amax = placed->operands[GPI__RESULT].scale =
        gpi__is_scaled_dtype(formula->d);
}

/* Items of two axes, and every second column of each operand, as element-wise formulas have them; there v is an operand. */
static const gpi__any_strides *any_strides(void) {
    static gpi__any_strides strides;
    int i;
    strides.axes = 2;
    strides.extents[0] = strides.extents[1] = 3;
    for (i = 0; i <= GPI__RESULT; i++) {
        strides.operands[i].column = 2, strides.operands[i].row = 4096;
        strides.operands[i].items[0] = 1 << 20, strides.operands[i].items[1] = 1 << 25;
    }
    return &strides;
}

static struct {
    int how, mode; /* by which the pass that is added finds D's scales; 0: it does not */
} finding;

static void add_formula(const struct formula_row *row, gemmepi_dtype accumulator, gemmepi_dtype d,
                        int aligned, int unit_alpha, int strided) {
    static char prologue[1 << 16];
    gemmepi_operand operands[GPI__FORMULA_OPERANDS];
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__formula_desc desc;
    gpi__placed_formula placed;
    gpi__formula_source source;
    gpi__formula *formula;
    gpi__text text = gpi__text_in(prologue, sizeof prologue);
    char name[80];
    size_t i;
    int way;
    memset(&desc, 0, sizeof desc), memset(&source, 0, sizeof source);
    for (i = 0; i < GPI__COUNT(formula_operands); i++)
        if (strstr(row->text, formula_operands[i].name)) {
            operands[desc.operand_count] = formula_operands[i];
            if (accumulator == GEMMEPI_F64 && operands[desc.operand_count].dtype == GEMMEPI_F32)
                operands[desc.operand_count].dtype = GEMMEPI_F64;
            desc.operand_count++;
        }
    desc.text = row->text, desc.operands = operands;
    desc.accumulator = accumulator, desc.d = d;
    if (gpi__parse_formula(&allocator, &desc, &formula) != GEMMEPI_OK) {
        printf("%s is no formula: %s\n", row->name, gemmepi_last_error());
        exit(1);
    }
    place_formula(formula, &placed);
    placed.strides = strided ? any_strides() : NULL;
    source.matrices[0].dtype = accumulator, source.matrices[0].ld = 1024;
    source.matrices[0].scale = d == GEMMEPI_E4M3 ? GEMMEPI_SCALE_OUTER : GEMMEPI_SCALE_NONE;
    source.alignment = aligned ? 256 : (int64_t)gpi__dtype(d)->size;
    source.matrices[1].dtype = unit_alpha ? 0 : (int)d;
    source.found = finding.how ? GEMMEPI_E4M3 : 0, source.found_mode = finding.mode;
    gpi__formula_pass_prologue(&text, &placed, &source, finding.how);
    snprintf(name, sizeof name, "%s_%s%s%s%s", row->name, gpi__dtype(d)->name, unit_alpha ? "" : "_c",
             aligned ? "" : "_unaligned", strided ? "_strided" : "");
    if (finding.how)
        snprintf(name, sizeof name, "%s_found%d_%d", row->name, finding.how, finding.mode);
    add(&formula_pass, name, prologue);
    for (way = 0; way < 3 && gpi__has_reductions(formula, GPI__OF_ANY_SORT); way++) {
        text = gpi__text_in(prologue, sizeof prologue);
        gpi__formula_reduce_prologue(&text, &placed, way == 1,
                                     way && accumulator != GEMMEPI_F64 ? GPI__REDUCE_MOST_THREADS
                                                                       : GPI__FORMULA_THREADS);
        add(&formula_reduce, name, prologue);
    }
    gpi__delete(&allocator, formula);
}

static void list_formulas(void) {
    size_t i;
    few_archs = 1;
    for (i = 0; i < GPI__COUNT(formula_rows); i++) {
        add_formula(&formula_rows[i], GEMMEPI_F32, GEMMEPI_BF16, 1, 1, 0);
        add_formula(&formula_rows[i], GEMMEPI_F32, GEMMEPI_BF16, 1, 1, 1);
        add_formula(&formula_rows[i], GEMMEPI_F32, GEMMEPI_F32, 0, 0, 0);
        add_formula(&formula_rows[i], GEMMEPI_F32, GEMMEPI_E4M3, 1, 0, 0);
        add_formula(&formula_rows[i], GEMMEPI_F64, GEMMEPI_F64, 1, 1, 0);
    }
    finding.mode = GEMMEPI_SCALE_VECTOR_128;
    for (finding.how = GPI__FIND_AT_ONCE; finding.how <= (int)GPI__FIND_BY_AMAX; finding.how++)
        add_formula(&formula_rows[finding.how == GPI__FIND_AT_ONCE ? 0 : 3], GEMMEPI_F32, GEMMEPI_F32, 1, 1,
                    0);
    finding.mode = GEMMEPI_SCALE_OUTER;
    for (finding.how = GPI__FIND_AMAX; finding.how <= (int)GPI__FIND_BY_AMAX; finding.how++)
        add_formula(&formula_rows[0], GEMMEPI_F32, GEMMEPI_F32, 1, 1, 0);
    finding.how = 0;
}

/* >>formulas inside kernels */

static const struct formula_row inside_rows[] = {
    {"norm", "d = v * rstd * bias"},
    {"gate", "d = silu(v + bias) * up + residual"},
    {"by_index", "d = silu(v) * bias[label] + up[column]"},
    {"blocks", "d = v * fine + coarse"},
    {"norms_of_heads", "d = v * rstd; heads = row_sum(d * d, 128)"},
    {"dropout", "d = (uniform(seed, 0) >= 0.25 ? (v + bias) / 0.75 : 0) + residual"},
    {"rotate", "x = left(v); y = right(v); d = pair(x * cosine - y * sine, y * cosine + x * sine)"},
    {"swiglu", "d = left(v) * silu(right(v))"},
    {"swiglu_backward", "d = pair(v * silu(right(pre)), v * left(pre) * d_silu(right(pre)))"},
    {"swiglu_anew", "d = pair(cosine * silu(right(v)), cosine * left(v) * d_silu(right(v)))"},
    {"waves", "d = sin(30 * (v + bias))"},
    {"by_chance", "kept = stochastic((v + bias) * rstd, seed); d = v"},
    {"kept", "kept = v + bias; d = gelu_erf(kept)"},
    {"four", "d = (v + bias) * up * rstd + residual * column; kept = d - up"},
    {"loss", "lse = row_logsumexp(v); squares = row_sum(column == label ? v : 0)"},
    {"statistics", "d = silu(v + bias) * up + residual; squares = row_sum(d * d)"},
    {"argmax", "best = row_argmax(v); d = v"},
    {"bias_gradient", "d = v * d_gelu_tanh(up); kept = gelu_tanh(up); sums = column_sum(d)"},
    {"columns", "sums = column_sum(v + bias); total = all_max(v)"},
    {"gate_sums",
     "d = silu(v + bias) * up + residual; sums = column_max(d); total = all_sum(d * d); squares = row_sum(d)"},
    {"swiglu_sums", "d = pair(v * silu(right(pre)), v * left(pre) * d_silu(right(pre))); total = all_sum(d)"},
    {"swiglu_anew_sums",
     "d = left(v) * silu(right(v)) + cosine; sums = column_sum(v); total = all_sum(left(v))"},
    {"rounded", "d = v * up; squares = row_sum(rounded(d) * rounded(v))"},
    {"rotate_heads",
     "x = left(v, 128); y = right(v, 128); d = pair(x * cosine - y * sine, y * cosine + x * sine, 128)"},
    {"rotate_narrow_heads",
     "x = left(v, 64); y = right(v, 64); d = pair(x * cosine - y * sine, y * cosine + x * sine, 64)"},
    {"rotate_biased_heads",
     "z = v + bias; x = left(z, 64); y = right(z, 64); d = pair(x * cosine - y * sine, y * cosine + x * sine, 64)"},
    {"scaled_halves", "x = v + bias; d = pair(left(x), right(x) * rstd) + residual"},
    {"swiglu_groups", "x = v + bias; d = left(x, 384) * silu(right(x, 384)) + cosine"},
    {"swiglu_groups_backward",
     "d = pair(v * silu(right(pre, 64)), v * left(pre, 64) * d_silu(right(pre, 64)), 64)"},
    {"every_second", "x = v + bias; d = even(x) * silu(odd(x)) + cosine; kept = v"},
    {"every_second_backward",
     "d = interleave(v * silu(odd(pre)), v * even(pre) * d_silu(odd(pre))); kept = even(pre) * silu(odd(pre))"},
    {"rotate_neighbours",
     "x = even(v); y = odd(v); d = interleave(x * cosine - y * sine, y * cosine + x * sine) + residual"},
    {"every_second_counted", "d = even(v) * odd(column) - odd(v) * even(column)"},
    {"groups_anew",
     "x = v + bias; g = right(x, 64); d = pair(cosine * silu(g), cosine * left(x, 64) * d_silu(g), 64) + residual"},
};

/* A way to have a formula inside: types and sizes follow from its number. F32 operands are of the families that take them in the layout. */
typedef struct inside_way {
    gemmepi_dtype operands, d;
    gemmepi_compute compute;
    int odd, unit_alpha, layout;
    int groups; /* of rows; 0: none */
    int scattered;
    int columns; /* 0: as many as there are mostly, odd or not */
} inside_way;

static inside_way nth_way(const family *of, int nth, int layout) {
    int is_turing = of == &mma_turing_inside;
    int takes_f32 = of == &mma_inside || is_turing || of == &small_inside || of == &outer_inside ||
                    (of == &fused_inside && layout == 2);
    int is_tf32 = of == &fused_inside || (of == &mma_inside && nth / 3 % 2);
    inside_way way;
    memset(&way, 0, sizeof way);
    way.operands = takes_f32 && nth % 3 == 2 ? GEMMEPI_F32
                   : is_turing               ? GEMMEPI_F16
                   : of == &mma_fp8_inside   ? GEMMEPI_E4M3
                                             : GEMMEPI_BF16;
    way.compute = is_tf32 && way.operands == GEMMEPI_F32 ? GEMMEPI_COMPUTE_TF32 : GEMMEPI_COMPUTE_DEFAULT;
    way.d = nth & 1 ? GEMMEPI_F32 : GEMMEPI_BF16;
    way.odd = nth % 4 == 2;
    way.unit_alpha = nth % 4 != 3;
    way.layout = layout;
    return way;
}

/* The problem of a kernel with the formula inside: its operands are the allocator's, and are left to it. */
static gpi__problem inside_problem(const struct formula_row *row, const inside_way *way) {
    static const gemmepi_operand kept =
        OPERAND("kept", GEMMEPI_FULL, GEMMEPI_WIDTH_N, GEMMEPI_DTYPE_DEFAULT, 1);
    gemmepi_allocator allocator = gpi__default_allocator();
    gemmepi_operand operands[GPI__FORMULA_OPERANDS];
    gemmepi_matmul_desc desc;
    gpi__problem problem;
    size_t i;
    memset(&desc, 0, sizeof desc);
    desc.m = way->odd ? 144 : 4096, desc.n = way->odd ? 144 : 4096, desc.k = 2048;
    if (strstr(row->name, "heads") || strstr(row->name, "groups"))
        desc.n = way->odd ? 768 : 4608;
    else if (way->columns)
        desc.n = strstr(row->text, "left(") || strstr(row->text, "even(") ? way->columns + way->columns % 2
                                                                          : way->columns;
    desc.a.dtype = way->operands, desc.d.dtype = way->d;
    desc.compute = way->compute;
    transpose_operands(&desc, way->layout);
    desc.formula = row->text, desc.operands = operands;
    for (i = 0; i <= GPI__COUNT(formula_operands); i++) {
        const gemmepi_operand *operand = i < GPI__COUNT(formula_operands) ? &formula_operands[i] : &kept;
        if (strstr(row->text, operand->name))
            operands[desc.operand_count++] = *operand;
    }
    if (gpi__normalise_in(&allocator, &desc, NULL, NULL, 16, &problem) != GEMMEPI_OK ||
        gpi__not_inside(&problem)) {
        printf("%s is not inside: %s\n", row->name,
               problem.formula ? gpi__not_inside(&problem) : gemmepi_last_error());
        exit(1);
    }
    problem = gpi__problem_inside(&problem);
    problem.grouping.groups = way->groups;
    problem.grouping.scattered = way->scattered;
    return problem;
}

/* What stands before a kernel of the family in that shape; 0: it does not take the problem. */
static int append_inside_defines(const family *of, const gpi__problem *problem, int shape, int unit_alpha,
                                 gpi__text *defines) {
    if (of != &fused_inside && gpi__half_group(problem))
        return 0;
    if (of == &fused_inside) {
        gpi__sm90 built;
        if (!gpi__shape_accepts(problem, &gpi__sm90_shapes[shape], unit_alpha))
            return 0;
        memset(&built, 0, sizeof built);
        gpi__cut_up(problem, &gpi__sm90_shapes[shape], unit_alpha, &built);
        gpi__append_sm90_defines(defines, problem, &built);
    } else if (of == &mma_inside || of == &mma_turing_inside || of == &mma_fp8_inside) {
        gpi__sm80_cut cut;
        cut.shape = &gpi__sm80_shapes[shape], cut.parts = 1;
        if (!mma_takes(of, problem, cut.shape))
            return 0;
        append_mma_defines(of, problem, &cut, unit_alpha, defines);
    } else if (of == &weights_inside) {
        const gpi__weights_shape *cut = &gpi__weights_shapes[shape];
        if (gpi__leaves_states(problem) || !gpi__weights_shape_accepts(problem, cut, 90))
            return 0;
        gpi__append_weights_prologue(defines, problem, cut,
                                     gpi__weights_stages(problem, cut, cut->wgmma ? 90 : 80), unit_alpha);
    } else if (of == &outer_inside) {
        if (gpi__leaves_states(problem))
            return 0;
        gpi__append_outer_defines(defines, problem, &gpi__outer_shapes[shape], unit_alpha);
    } else {
        if (gpi__leaves_states(problem) || !gpi__small_shape_accepts(problem, &gpi__small_shapes[shape], 90))
            return 0;
        gpi__append_small_defines(defines, problem, &gpi__small_shapes[shape], unit_alpha);
    }
    return 1;
}

/* Weights in I8. */
static void narrow_b(gpi__problem *problem, gemmepi_scale_mode scale) {
    problem->views[GPI__B].dtype = GEMMEPI_I8;
    problem->views[GPI__B].bits = 8;
    problem->views[GPI__B].scale = scale;
}

/* 0, and nothing, where the shape does not take the formula. */
static int add_inside(const family *of, const struct formula_row *row, int shape, inside_way way) {
    static char prologue[1 << 16];
    gpi__text defines = gpi__text_in(prologue, sizeof prologue);
    gpi__problem problem;
    char name[96];
    if (of == &small_inside && gpi__small_shapes[shape].tile_n % GPI__RUN)
        way.columns = gpi__small_shapes[shape].tile_n; /* which is for no more */
    if ((of == &mma_inside || of == &mma_turing_inside) && gpi__has_f16_sums(&gpi__sm80_shapes[shape]))
        way.operands = GEMMEPI_F16, way.compute = GEMMEPI_COMPUTE_F16;
    problem = inside_problem(row, &way);
    if (of == &outer_inside)
        problem.k = outer_k(shape, way.layout);
    if (of == &weights_inside)
        narrow_b(&problem, shape % 2 ? GEMMEPI_SCALE_OUTER : GEMMEPI_SCALE_VECTOR_128);
    if (!append_inside_defines(of, &problem, shape, way.unit_alpha, &defines))
        return 0;
    snprintf(name, sizeof name, "%s_%s%s_to_%s_shape_%d_layout_%d%s%s%s%s", row->name,
             gpi__dtype(way.operands)->name,
             way.compute == GEMMEPI_COMPUTE_F16 ? "_sums"
             : way.compute                      ? "_tf32"
                                                : "",
             gpi__dtype(way.d)->name, shape, way.layout, way.odd ? "_odd" : "",
             way.unit_alpha ? "" : "_scaled", way.groups ? "_of_rows" : "",
             way.scattered ? "_scattered" : "");
    if (!way.groups)
        note_layout(of, shape, way.layout);
    if (of == &weights_inside && gpi__weights_shapes[shape].wgmma)
        of = &weights_wgmma_inside;
    if (of == &small_inside && gpi__small_shapes[shape].parts > 1)
        of = &small_parts_inside;
    add_product(of, name, prologue, &problem);
    return 1;
}

/* Of groups of rows, which have no reductions and no halves of groups of columns; of every third kernel rows are scattered. */
static void list_inside_groups(void) {
    static const struct formula_row rows[] = {
        {"norm", "d = v * rstd * bias"},
        {"gate", "d = silu(v + bias) * up + residual"},
        {"swiglu", "d = left(v) * silu(right(v))"},
        {"clamped",
         "x = v + bias; g = min(left(x), 7); d = g * sigmoid(1.702 * g) * (clamp(right(x), -7, 7) + 1)"},
        {"swiglu_backward", "d = pair(v * silu(right(pre)), v * left(pre) * d_silu(right(pre)))"},
        {"waves", "d = sin(30 * (v + bias))"},
        {"kept", "kept = v + bias; d = gelu_tanh(kept)"},
        {"four", "d = (v + bias) * up * rstd + residual; kept = d - up"},
        {"kept_halves", "kept = v; d = left(v) * silu(right(v))"},
        {"swiglu_both_ways",
         "g = silu(right(pre)); d = pair(v * g, v * left(pre) * d_silu(right(pre))); kept = left(pre) * g"},
    };
    size_t i;
    int shape;
    for (i = 0; i < GPI__COUNT(rows); i++)
        for (shape = 0; shape < (int)GPI__COUNT(gpi__sm90_shapes); shape++) {
            inside_way way = nth_way(&grouped, (int)i + shape, (((int)i / 2 + shape) & 1) * 2);
            way.groups = 8;
            way.scattered = (i + (size_t)shape) % 3 == 0 ? 8192 : 0;
            add_inside(&fused_inside, &rows[i], shape, way);
        }
}

/* In each shape and layout some formulas, from another one on each time; --all: each. */
static void list_inside(void) {
    static const struct {
        const family *of;
        int shapes, first_layout, last_layout, formulas;
    } engines[] = {{&fused_inside, GPI__COUNT(gpi__sm90_shapes), 0, 3, 2},
                   {&mma_inside, GPI__COUNT(gpi__sm80_shapes), 0, 3, 1},
                   {&mma_turing_inside, GPI__COUNT(gpi__sm80_shapes), 0, 3, 1},
                   {&mma_fp8_inside, GPI__COUNT(gpi__sm80_shapes), 2, 2, 3},
                   {&small_inside, GPI__COUNT(gpi__small_shapes), 0, 3, 1},
                   {&outer_inside, GPI__COUNT(gpi__outer_shapes), 0, 3, 1},
                   {&weights_inside, GPI__COUNT(gpi__weights_shapes), 2, 2, 1}};
    const int rows = (int)GPI__COUNT(inside_rows);
    size_t e;
    int shape, layout, i, turn = 0;
    few_archs = 1;
    for (e = 0; e < GPI__COUNT(engines); e++)
        for (shape = 0; shape < engines[e].shapes; shape++)
            for (layout = engines[e].first_layout; layout <= engines[e].last_layout; layout++, turn += 3) {
                int wanted = takes_all ? rows : engines[e].formulas, added = 0;
                for (i = 0; added < wanted && (i < rows || (!added && i < 3 * rows)); i++)
                    added += add_inside(engines[e].of, &inside_rows[(turn + i) % rows], shape,
                                        nth_way(engines[e].of, turn + i, layout));
            }
}

static void list_kernels(void) {
    static const gemmepi_epilogue few[] = {GEMMEPI_GELU_TANH | GEMMEPI_BIAS | GEMMEPI_AUX,
                                           GEMMEPI_GELU_ERF | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
                                           GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_RESIDUAL};
    uint32_t nth, i;
    list_fused();
    list_fp8();
    list_mma();
    list_row_factors();
    list_invariant();
    list_found();
    list_small();
    list_outer();
    list_weights();
    list_made();
    list_scaled_formats();
    list_scaled_rows();
    list_both_layouts();
    list_groups();
    few_archs = 1;
    for (nth = 0; nth < GPI__COUNT(gpi__activations); nth++) {
        gemmepi_epilogue activation = gpi__activations[nth].code;
        gemmepi_epilogue forward = activation | GEMMEPI_BIAS | GEMMEPI_AUX;
        gemmepi_epilogue backward = activation | GEMMEPI_BACKWARD | GEMMEPI_BGRAD;
        int alternate = (int)nth & 1; /* so that each is seen both ways */
        add_pass(GEMMEPI_F32, GEMMEPI_DTYPE_DEFAULT, forward, alternate, 1);
        add_pass(GEMMEPI_F32, GEMMEPI_DTYPE_DEFAULT, backward, !alternate, 1);
        add_pass(GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, forward, !alternate, 1);
        add_pass(GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, backward, alternate, 1);
    }
    few_archs = 0;
    for (i = 0; i < GPI__COUNT(few); i++) {
        add_pass(GEMMEPI_F64, GEMMEPI_DTYPE_DEFAULT, few[i], i != 1, 1);
        add_pass(GEMMEPI_F16, GEMMEPI_DTYPE_DEFAULT, few[i], i != 2, 1);
    }
    add_pass(GEMMEPI_F32, GEMMEPI_DTYPE_DEFAULT, few[2], 1, 1);
    add_pass(GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, few[2], 1, 1);
    add_pass(GEMMEPI_F16, GEMMEPI_F32, few[0], 1, 1);
    add_pass(GEMMEPI_BF16, GEMMEPI_F32, few[1], 0, 1);
    add_pass(GEMMEPI_F32, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_TANH | GEMMEPI_BIAS, 1, 0);
    add_scaled_pass(GEMMEPI_E4M3, GEMMEPI_E4M3, GEMMEPI_GELU_TANH | GEMMEPI_BIAS | GEMMEPI_AUX,
                    GEMMEPI_SCALE_TENSOR, GEMMEPI_SCALE_TENSOR);
    add_scaled_pass(GEMMEPI_I8, GEMMEPI_BF16, GEMMEPI_BIAS, GEMMEPI_SCALE_OUTER, GEMMEPI_SCALE_OUTER);
    add_reduces();
    add_packs();
    add_convert(GEMMEPI_E4M3, GEMMEPI_F16, 1);
    for (i = 0; i < GPI__COUNT(products_everywhere); i++)
        add_plain(&products_everywhere[i]);
    few_archs = 1;
    add_scaled_pass(GEMMEPI_E5M2, GEMMEPI_E5M2, GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
                    GEMMEPI_SCALE_OUTER, GEMMEPI_SCALE_TENSOR);
    add_scaled_pass(GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_TANH | GEMMEPI_RESIDUAL, GEMMEPI_SCALE_TENSOR,
                    GEMMEPI_SCALE_OUTER);
    add_scaled_pass(GEMMEPI_E4M3, GEMMEPI_F16, GEMMEPI_RELU | GEMMEPI_BIAS, GEMMEPI_SCALE_OUTER,
                    GEMMEPI_SCALE_OUTER);
    add_pass(GEMMEPI_I8, GEMMEPI_I32, GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_RESIDUAL, 1, 1);
    add_pass(GEMMEPI_I8, GEMMEPI_F32, GEMMEPI_BIAS, 0, 1);
    add_gradient_passes();
    add_convert(GEMMEPI_E5M2, GEMMEPI_F16, 0);
    add_convert(GEMMEPI_E4M3, GEMMEPI_BF16, 1);
    add_convert(GEMMEPI_E5M2, GEMMEPI_BF16, 1);
    add_convert(GEMMEPI_E4M3, GEMMEPI_F32, 0);
    add_convert(GEMMEPI_I8, GEMMEPI_F16, 1);
    add_convert(GEMMEPI_I8, GEMMEPI_BF16, 0);
    add_convert(GEMMEPI_F16, GEMMEPI_F32, 1);
    add_convert(GEMMEPI_BF16, GEMMEPI_F32, 0);
    for (i = 0; i < GPI__COUNT(products); i++)
        add_plain(&products[i]);
}

/* >>what drawn problems run */

enum { DRAWN_PROBLEMS = 300, DRAWN_SHARE = 10 };

/* Chips with the multiprocessors of one card of each: RTX 2080 Ti, A100, RTX 3080 Ti, RTX 4090, H100, B200, RTX 5090. */
static const struct {
    int arch, multiprocessors;
} drawn_chips[] = {{75, 68}, {80, 108}, {86, 80}, {89, 128}, {90, 132}, {100, 148}, {120, 170}};

static int is_known_arch(int arch) {
    int i = 0;
    while (i < arch_count && archs[i] != arch)
        i++;
    return i < arch_count;
}

static void add_drawn(int i, int arch) {
    const drawn_kernel *from = &drawn_kernels[i];
    int before = kernel_count, j;
    char name[96], launches[512];
    gpi__text text = gpi__text_in(launches, sizeof launches);
    int of = takes_all ? share : share * DRAWN_SHARE;
    if (asked++ % of != turn % of)
        return;
    snprintf(name, sizeof name, "%d_%.60s", i, from->file);
    add_target(&drawn, name, from->prologue, from->target, arch);
    if (kernel_count == before)
        return;
    for (j = 0; j < MOST_ENTRIES && from->launches[j].entry[0]; j++)
        gpi__append(&text, "launch %s %d %d\n", from->launches[j].entry, from->launches[j].threads,
                    from->launches[j].shared);
    kernels[before].file = from->file;
    kernels[before].launches = copy_of(launches);
}

static void list_drawn(void) {
    size_t chip;
    int i;
    if (only[0] && strcmp(only, drawn.name) != 0)
        return;
    asked = 0;
    for (chip = 0; chip < GPI__COUNT(drawn_chips); chip++) {
        if (!is_known_arch(drawn_chips[chip].arch))
            continue;
        if (draw_kernels(drawn_chips[chip].arch, drawn_chips[chip].multiprocessors, DRAWN_PROBLEMS) <
            DRAWN_PROBLEMS) {
            printf("a drawn problem does not run on sm_%d: %s\n", drawn_chips[chip].arch,
                   gemmepi_last_error());
            exit(1);
        }
        for (i = 0; i < drawn_count; i++) {
            add_drawn(i, drawn_chips[chip].arch);
            free(drawn_kernels[i].prologue);
        }
    }
}

/* >>one kernel */

typedef struct outcome {
    int index;
    int passed;
    int registers; /* the most of its entries */
    char message[2600];
} outcome;

static void complain(outcome *result, const char *format, const char *text) {
    if (!result->message[0])
        snprintf(result->message, sizeof result->message, format, text);
    result->passed = 0;
}

/* "ptxas  .  16 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads" and "Used 40 registers"; one of each for every
   entry of the file */
static void read_report(const char *log, outcome *result) {
    const char *line, *end;
    int entries = 0, reports = 0;
    for (line = log; *line; line = *end ? end + 1 : end) {
        char text[512];
        const char *used, *sizes;
        int frame, stores, loads, registers;
        size_t length;
        end = strchr(line, '\n');
        end = end ? end : line + strlen(line);
        length = (size_t)(end - line) < sizeof text ? (size_t)(end - line) : sizeof text - 1;
        memcpy(text, line, length);
        text[length] = 0;
        for (sizes = strstr(text, " bytes stack frame"); sizes && sizes > text && sizes[-1] != ' ';)
            sizes--;
        if (sizes && sscanf(sizes, "%d bytes stack frame, %d bytes spill stores, %d bytes spill loads",
                            &frame, &stores, &loads) == 3) {
            reports++;
            if (frame || stores || loads)
                complain(result, "it uses local memory: %s", sizes);
        }
        used = strstr(text, "Used ");
        if (used && sscanf(used, "Used %d registers", &registers) == 1) {
            entries++;
            if (registers > result->registers)
                result->registers = registers;
        }
        /* ptxas tells of lost performance as information with a number, (C7508) and its like */
        if (strstr(text, "warning") || strstr(text, "(C7") || strstr(text, "Potential Performance Loss"))
            complain(result, "the log has a warning: %s", text);
    }
    if (entries == 0 || reports < entries)
        complain(result, "ptxas does not report registers and local memory:\n%s", log);
}

static int write_file(const char *path, const gpi__image *image) {
    FILE *file = fopen(path, "wb");
    int whole = file && fwrite(image->data, 1, image->size, file) == image->size;
    return (!file || fclose(file) == 0) && whole;
}

/* What machine_code.py reads next to a cubin. */
static int write_description(const kernel *what, const char *folder) {
    char path[1024];
    FILE *file;
    int whole;
    snprintf(path, sizeof path, "%s/%s.%s.txt", folder, what->name, what->target);
    file = fopen(path, "wb");
    whole = file && fprintf(file, "file %s\narch %d\n%s%s", what->file, what->arch, what->launches,
                            what->prologue) > 0;
    return (!file || fclose(file) == 0) && whole;
}

static int can_write_in(const char *folder) {
    char path[1024];
    FILE *file;
    snprintf(path, sizeof path, "%s/written", folder);
    file = fopen(path, "wb");
    if (!file)
        return 0;
    fclose(file);
    return remove(path) == 0;
}

static void compile_kernel(const gpi__nvrtc *nvrtc, int index, const char *folder, outcome *result) {
    gemmepi_allocator allocator = gpi__default_allocator();
    const kernel *what = &kernels[index];
    gpi__target target;
    gpi__image image;
    char path[1024];
    memset(result, 0, sizeof *result);
    memset(&target, 0, sizeof target);
    result->index = index;
    result->passed = 1;
    memcpy(target.name, what->target, sizeof what->target);
    target.reports = 1;
    if (gpi__compile(nvrtc, &allocator, what->file, what->prologue, &target, &image) != GEMMEPI_OK) {
        complain(result, "%s", gemmepi_last_error());
    } else {
        read_report(image.report ? image.report : "", result);
        snprintf(path, sizeof path, "%s/%s.%s.cubin", folder, what->name, what->target);
        if (image.size < 4 || memcmp(image.data, "\177ELF", 4) != 0)
            complain(result, "the cubin is no ELF file%s", "");
        else if (!write_file(path, &image) || !write_description(what, folder))
            complain(result, "cannot write %s", path);
    }
    gpi__free_image(&allocator, &image);
}

/* >>all kernels: each of the jobs is a process, because NVRTC compiles one program at a time in one */

static outcome outcomes[MAX_KERNELS];
static int has_outcome[MAX_KERNELS];

static void take_outcome(const outcome *result) {
    const kernel *what = &kernels[result->index];
    int i, left = 0, of = 0;
    outcomes[result->index] = *result;
    has_outcome[result->index] = 1;
    if (!result->passed)
        printf("FAIL %s.%s: %s\n", what->name, what->target, result->message);
    for (i = 0; i < kernel_count; i++)
        if (strcmp(kernels[i].target, what->target) == 0) {
            of++;
            left += !has_outcome[i];
        }
    if (left == 0)
        printf("     %s: %d kernels compiled\n", what->target, of);
    fflush(stdout);
}

#if GPI__WINDOWS
static int default_jobs(void) {
    return 1;
}

static void compile_all(const gpi__nvrtc *nvrtc, const char *folder, int jobs) {
    static outcome result;
    int i;
    (void)jobs;
    for (i = 0; i < kernel_count; i++) {
        compile_kernel(nvrtc, i, folder, &result);
        take_outcome(&result);
    }
}
#else
static int default_jobs(void) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return processors < 1 ? 1 : processors > 16 ? 16 : (int)processors;
}

/* An outcome is below the 4096 bytes that Linux writes into a pipe at once (PIPE_BUF), so those of several processes
   do not mix. */
static void work(const gpi__nvrtc *nvrtc, const char *folder, int job, int jobs, int pipe_end) {
    static outcome result;
    int i;
    for (i = job; i < kernel_count; i += jobs) {
        compile_kernel(nvrtc, i, folder, &result);
        if (write(pipe_end, &result, sizeof result) != (ssize_t)sizeof result)
            _exit(1);
    }
    _exit(0);
}

static void compile_all(const gpi__nvrtc *nvrtc, const char *folder, int jobs) {
    static outcome result;
    size_t have = 0;
    int ends[2], job;
    if (pipe(ends) != 0) {
        printf("the system gives no pipe\n");
        exit(1);
    }
    fflush(stdout);
    for (job = 0; job < jobs; job++)
        if (fork() == 0)
            work(nvrtc, folder, job, jobs, ends[1]);
    close(ends[1]);
    for (;;) {
        ssize_t got = read(ends[0], (char *)&result + have, sizeof result - have);
        if (got <= 0)
            break;
        have += (size_t)got;
        if (have == sizeof result) {
            take_outcome(&result);
            have = 0;
        }
    }
    while (wait(NULL) > 0) {
    }
}
#endif

/* >>the report */

static void print_registers(void) {
    int i, column = 0;
    printf("registers for sm_%d:\n", TABLE_ARCH);
    for (i = 0; i < kernel_count; i++)
        if (kernels[i].arch == TABLE_ARCH && has_outcome[i])
            printf("  %-54s %3d%s", kernels[i].name, outcomes[i].registers, column++ % 2 ? "\n" : "");
    if (column % 2)
        printf("\n");
}

static int report(void) {
    int i, passed = 0, failed = 0;
    for (i = 0; i < kernel_count; i++) {
        if (!has_outcome[i])
            printf("FAIL %s.%s: its process ended before\n", kernels[i].name, kernels[i].target);
        if (has_outcome[i] && outcomes[i].passed)
            passed++;
        else
            failed++;
    }
    print_registers();
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}

static int list_archs(const gpi__nvrtc *nvrtc) {
    int result = nvrtc->get_num_supported_archs(&arch_count);
    if (!result && arch_count <= (int)GPI__COUNT(archs))
        result = nvrtc->get_supported_archs(archs);
    return !result && arch_count > 0 && arch_count <= (int)GPI__COUNT(archs);
}

/* >>networks */

/* Widths from x on. text, gradient: of a formula in place of the activation, with operands of the layer's beside them. */
static const struct network_row {
    const char *name;
    gemmepi_dtype dtype;
    uint64_t activation, flags;
    int widths[GPI__NETWORK_LAYERS + 1];
    const char *text, *gradient;
    int rows; /* 0: many */
} network_rows[] = {
    {"64x4_relu", GEMMEPI_F16, GEMMEPI_RELU, GEMMEPI_NETWORK_BIAS, {64, 64, 64, 64, 64}, NULL, NULL, 0},
    {"64x4_silu",
     GEMMEPI_BF16,
     GEMMEPI_SILU,
     GEMMEPI_NETWORK_TRANSPOSED,
     {64, 64, 64, 64, 64},
     NULL,
     NULL,
     0},
    {"64x4_relu_few", GEMMEPI_F16, GEMMEPI_RELU, GEMMEPI_NETWORK_BIAS, {64, 64, 64, 64, 64}, NULL, NULL, 16},
    {"128x3_sines_few",
     GEMMEPI_BF16,
     0,
     GEMMEPI_NETWORK_BIAS,
     {2, 128, 128, 3},
     "d = sin(30 * (product + bias))",
     "d = dy * 30 * cos(30 * (product + bias))",
     64},
    {"64x5_tanh", GEMMEPI_F16, GEMMEPI_TANH, GEMMEPI_NETWORK_BIAS, {3, 64, 64, 64, 64, 3}, NULL, NULL, 0},
    {"32x2_gelu", GEMMEPI_F16, GEMMEPI_GELU_TANH, GEMMEPI_NETWORK_BIAS, {32, 32, 32}, NULL, NULL, 0},
    {"20x3_elu",
     GEMMEPI_BF16,
     GEMMEPI_ELU,
     GEMMEPI_NETWORK_BIAS | GEMMEPI_NETWORK_TRANSPOSED,
     {40, 20, 24, 7},
     NULL,
     NULL,
     0},
    {"128x4_mish", GEMMEPI_F16, GEMMEPI_MISH, GEMMEPI_NETWORK_BIAS, {128, 128, 128, 128, 128}, NULL, NULL, 0},
    {"128x2_relu", GEMMEPI_F16, GEMMEPI_RELU, GEMMEPI_NETWORK_BIAS, {3, 128, 3}, NULL, NULL, 0},
    {"100x3_silu", GEMMEPI_F16, GEMMEPI_SILU, GEMMEPI_NETWORK_BIAS, {100, 128, 72, 7}, NULL, NULL, 0},
    {"128_silu", GEMMEPI_F16, GEMMEPI_SILU, 0, {128, 128}, NULL, NULL, 0},
    {"64x4_sines",
     GEMMEPI_F16,
     0,
     GEMMEPI_NETWORK_BIAS,
     {2, 64, 64, 64, 3},
     "d = sin(30 * (product + bias))",
     "d = dy * 30 * cos(30 * (product + bias))",
     0},
    {"48x4_long",
     GEMMEPI_BF16,
     0,
     GEMMEPI_NETWORK_BIAS,
     {48, 48, 48, 48, 48},
     "v = product + bias; d = log1p(exp(gain * v)) * atan(v)",
     "v = product + bias; s = log1p(exp(gain * v)); d = dy * (gain * sigmoid(gain * v) * atan(v) + s / (1 + v * v))",
     0},
    {"64x4_silu_tf32", GEMMEPI_F32, GEMMEPI_SILU, GEMMEPI_NETWORK_BIAS, {64, 64, 64, 64, 64}, NULL, NULL, 0},
    {"64x4_sines_tf32",
     GEMMEPI_F32,
     0,
     GEMMEPI_NETWORK_BIAS | GEMMEPI_NETWORK_TRANSPOSED,
     {2, 64, 64, 64, 3},
     "d = sin(30 * (product + bias))",
     "d = dy * 30 * cos(30 * (product + bias))",
     0},
    {"96x3_gelu_tf32", GEMMEPI_F32, GEMMEPI_GELU_ERF, GEMMEPI_NETWORK_BIAS, {96, 96, 96, 20}, NULL, NULL, 0},
    {"64x4_relu_tf32_few",
     GEMMEPI_F32,
     GEMMEPI_RELU,
     GEMMEPI_NETWORK_BIAS,
     {64, 64, 64, 64, 64},
     NULL,
     NULL,
     16},
};

static gemmepi_operand network_operand(const char *name, gemmepi_operand_kind kind, gemmepi_dtype dtype) {
    gemmepi_operand operand;
    memset(&operand, 0, sizeof operand);
    operand.name = name, operand.kind = kind, operand.dtype = dtype;
    return operand;
}

/* gain is the caller's; bias and dy are of the layer. */
static void take_network_formula(const struct network_row *row, int backward, gpi__kept_formula *kept) {
    gemmepi_operand operands[3];
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__formula_desc desc;
    gpi__formula *formula;
    memset(&desc, 0, sizeof desc), memset(kept, 0, sizeof *kept);
    operands[0] = network_operand("gain", GEMMEPI_PER_COLUMN, GEMMEPI_F32);
    operands[1] = network_operand("bias", GEMMEPI_PER_COLUMN, row->dtype);
    operands[2] = network_operand("dy", GEMMEPI_FULL, row->dtype);
    desc.text = backward ? row->gradient : row->text, desc.operands = operands;
    desc.operand_count = backward ? 3 : 2;
    desc.value = "product", desc.accumulator = GEMMEPI_F32, desc.d = row->dtype;
    if (gpi__parse_formula(&allocator, &desc, &formula) != GEMMEPI_OK) {
        printf("%s is no formula: %s\n", row->name, gemmepi_last_error());
        exit(1);
    }
    kept->placed.formula = formula;
}

static void take_network(const struct network_row *row, int backward, gpi__kept_formula kept[2],
                         gpi__network_task *task) {
    int i, is_formula = row->text != NULL;
    memset(task, 0, sizeof *task);
    task->tag = backward ? GPI__NETWORK_BACKWARD : GPI__NETWORK_FORWARD;
    task->rows = row->rows ? row->rows : 1 << 20;
    task->flags = row->flags | (backward ? GEMMEPI_NETWORK_DW | GEMMEPI_NETWORK_DX : 0);
    task->dtype = task->x_dtype = task->bias_dtype = (int)row->dtype;
    task->gradient_dtype = GEMMEPI_F32;
    task->compute = GEMMEPI_COMPUTE_TF32; /* of F32 */
    task->alignment = 16;
    task->x.ld = row->widths[0];
    for (i = 0; i < GPI__NETWORK_LAYERS && row->widths[i + 1]; i++) {
        gpi__network_layer *layer = &task->layers[task->layer_count++];
        layer->inputs = row->widths[i];
        task->y.ld = layer->width = row->widths[i + 1];
        layer->activation = row->activation;
        layer->formula = is_formula ? &kept[0] : NULL, layer->gradient = is_formula ? &kept[1] : NULL;
        layer->operand_count = is_formula;
        memset(layer->beside, -1, sizeof layer->beside);
        layer->beside[0][0] = layer->beside[1][0] = GPI__L_BIAS;
        layer->beside[1][1] = GPI__L_DY;
    }
}

static void add_network(const struct network_row *row, int backward) {
    static char prologue[1 << 16];
    gpi__kept_formula kept[2];
    gpi__network_task task;
    gpi__text text = gpi__text_in(prologue, sizeof prologue);
    int is_few;
    if (row->text) {
        take_network_formula(row, 0, &kept[0]);
        take_network_formula(row, 1, &kept[1]);
    }
    take_network(row, backward, kept, &task);
    is_few = gpi__has_few_rows(&task);
    if (!backward ||
        (row->dtype != GEMMEPI_F32 && gpi__registers_of_backward(&task, 80) <= GPI__REGISTERS_OF_THREAD)) {
        gpi__network_prologue(&text, &task, 80);
        add(backward ? &network_backward : is_few ? &network_few : &network, row->name, prologue);
        if (row->dtype == GEMMEPI_F16)
            add(backward ? &network_backward_turing
                : is_few ? &network_few_turing
                         : &network_turing,
                row->name, prologue);
    }
    if (gpi__network_shape_of(&task, 90).wgmma &&
        (!backward || gpi__registers_of_backward(&task, 90) <= GPI__REGISTERS_OF_THREAD)) {
        text = gpi__text_in(prologue, sizeof prologue);
        gpi__network_prologue(&text, &task, 90);
        add(backward ? &network_backward_wgmma : &network_wgmma, row->name, prologue);
    }
    if (row->text) {
        gemmepi_allocator allocator = gpi__default_allocator();
        gpi__delete(&allocator, (void *)(uintptr_t)kept[0].placed.formula);
        gpi__delete(&allocator, (void *)(uintptr_t)kept[1].placed.formula);
    }
}

static void list_networks(void) {
    size_t i;
    few_archs = 1;
    for (i = 0; i < GPI__COUNT(network_rows); i++) {
        add_network(&network_rows[i], 0);
        add_network(&network_rows[i], 1);
    }
}

int main(int argc, char **argv) {
    gpi__log log = {NULL, NULL, 0};
    gpi__loader loader;
    gpi__nvrtc nvrtc;
    const char *folder = NULL;
    int jobs = default_jobs(), i;
    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--jobs") == 0 && i + 1 < argc)
            jobs = atoi(argv[++i]);
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            only = argv[++i];
        else if (strcmp(argv[i], "--share") == 0 && i + 1 < argc)
            share = atoi(argv[++i]);
        else if (strcmp(argv[i], "--turn") == 0 && i + 1 < argc)
            turn = atoi(argv[++i]);
        else if (strcmp(argv[i], "--all") == 0)
            takes_all = 1;
        else if (folder || argv[i][0] == '-')
            jobs = 0; /* not understood */
        else
            folder = argv[i];
    }
    if (!folder || jobs < 1 || share < 1 || turn < 0) {
        printf("usage: kernels [--jobs N] [--only FAMILY] [--share N] [--turn N] [--all] FOLDER\n");
        return 1;
    }
    if (!can_write_in(folder)) {
        printf("FAIL kernels: cannot write in %s: %s\n0 passed, 1 failed, 0 skipped\n", folder,
               strerror(errno));
        return 1;
    }
    memset(&loader, 0, sizeof loader);
    loader.log = &log;
    if (gpi__load_nvrtc(&loader, &nvrtc) != GEMMEPI_OK) {
        printf("skip kernels: %s\n0 passed, 0 failed, 1 skipped\n", gemmepi_last_error());
        return EXIT_SKIP;
    }
    if (!list_archs(&nvrtc)) {
        printf("FAIL kernels: NVRTC does not tell its architectures\n0 passed, 1 failed, 0 skipped\n");
        return 1;
    }
    list_kernels();
    list_elementwise();
    list_formulas();
    list_inside();
    list_inside_groups();
    list_drawn();
    list_networks();
    check_layouts();
    if (kernel_count == 0) {
        printf("FAIL kernels: there is no family %s\n0 passed, 1 failed, 0 skipped\n", only);
        return 1;
    }
    printf("NVRTC %d.%d, %d architectures, %d cubins by %d processes\n", nvrtc.version / 1000,
           nvrtc.version % 1000 / 10, arch_count, kernel_count, jobs);
    compile_all(&nvrtc, folder, jobs);
    return report();
}
