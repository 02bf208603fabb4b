/* What a kernel's key depends on: its own file and exactly those that it includes. */
#include "device/create.h"
#include "test.h"

#include <time.h>

#define ACTIVATION                                                                                  \
    "activation.cuh", "activation_each.cuh", "activation_functions.cuh", "activation_logistic.cuh", \
        "activation_normal.cuh", "codes.h"
#define EPILOGUE                                                                                            \
    "epilogue.cuh", "epilogue_parameters.cuh", "epilogue_arithmetic.cuh", "epilogue_fragment.cuh",          \
        "epilogue_found.cuh", "found_scale.cuh", "epilogue_staging.cuh", "epilogue_mask.cuh",               \
        "epilogue_column_sums.cuh", "types.cuh", ACTIVATION, "amax.cuh", "params.h", "epilogue_inside.cuh", \
        "formula.cuh", "formula_kinds.cuh", "formula_reduce.cuh", "trig.cuh"
#define OPERATIONS     "operations.cuh", "types.cuh", ACTIVATION, "amax.cuh", "params.h"
#define COPY           "copy.cuh", "types.cuh", "params.h"
#define FORMULA_REDUCE "formula_reduce.cuh", "formula_kinds.cuh", "types.cuh", "amax.cuh", "params.h"
#define SM90                                                                                                \
    "sm90/barriers.cuh", "sm90/box.cuh", "sm90/box_memory.cuh", "sm90/column_sums.cuh", "sm90/columns.cuh", \
        "sm90/consume.cuh", "sm90/load.cuh", "sm90/mask.cuh", "sm90/multiply.cuh", "sm90/options.cuh",      \
        "sm90/parts.cuh", "sm90/pipeline.cuh", "sm90/ptx.cuh", "sm90/scales.cuh", "sm90/schedule.cuh",      \
        "sm90/shared.cuh", "sm90/totals.cuh", "sm90/wgmma.cuh", "wgmma_groups.cuh", "shared_memory.cuh"
#define SM80                                                                          \
    "sm80/block_scales.cuh", "sm80/finish.cuh", "sm80/load.cuh", "sm80/multiply.cuh", \
        "sm80/multiply_add.cuh", "sm80/options.cuh", "sm80/scales.cuh", "shared_memory.cuh"
#define NETWORK                                                                                      \
    "network.cuh", "network_function.cuh", "formula_kinds.cuh", "types.cuh", "params.h", ACTIVATION, \
        "formula.cuh", "trig.cuh", "mma.cuh", "shared_memory.cuh", "network_wgmma.cuh", "wgmma_groups.cuh"
#define MAX_INCLUDED 48

/* written down by hand from the #include lines of src/kernels/ */
static const char *const families[][MAX_INCLUDED] = {
    {"pass.cu", EPILOGUE},
    {"gemm_plain.cu", EPILOGUE, "groups.cuh", "mma.cuh"},
    {"gemm_sm80.cu", EPILOGUE, SM80, "mma.cuh"},
    {"gemm_sm90.cu", EPILOGUE, SM90, "groups.cuh"},
    {"groups.cu", "types.cuh", "params.h"},
    {"maps_sm90.cu", "types.cuh", "params.h"},
    {"gemm_small.cu", EPILOGUE},
    {"gemm_outer.cu", EPILOGUE},
    {"gemm_weights.cu", "weights.cuh", "made.cuh", "shared_memory.cuh", "mma.cuh", EPILOGUE},
    {"gemm_weights_sm90.cu", "weights.cuh", "made.cuh", "shared_memory.cuh", "sm90/ptx.cuh",
     "wgmma_groups.cuh", EPILOGUE},
    {"elementwise.cu", OPERATIONS},
    {"sum.cu", OPERATIONS},
    {"convert.cu", COPY},
    {"pack.cu", COPY},
    {"transpose.cu", "turn.cuh", "types.cuh", "params.h"},
    {"reduce.cu", "types.cuh", "params.h"},
    {"scaled.cu", "scaled_tile.cuh", "scaled.cuh", "found_scale.cuh", "amax.cuh", "types.cuh", "params.h",
     "turn.cuh"},
    {"scaled_rows.cu", "scaled.cuh", "found_scale.cuh", "amax.cuh", "types.cuh", "params.h"},
    {"scaled_tensor.cu", "scaled_tile.cuh", "scaled.cuh", "found_scale.cuh", "amax.cuh", "types.cuh",
     "params.h", "turn.cuh"},
    {"history.cu", "found_scale.cuh", "amax.cuh", "types.cuh", "params.h"},
    {"formula_pass.cu", "formula_run.cuh", FORMULA_REDUCE, "formula.cuh", "trig.cuh", ACTIVATION},
    {"network.cu", NETWORK},
    {"network_few.cu", NETWORK},
    {"network_backward.cu", NETWORK},
    {"formula_reduce.cu", FORMULA_REDUCE}};

static int needs(const char *const *family, const char *name) {
    int i;
    for (i = 0; i < MAX_INCLUDED && family[i]; i++)
        if (strcmp(family[i], name) == 0)
            return 1;
    return 0;
}

/* The sources with one more line in one of them. */
static void change_source(gpi__source *changed, size_t index) {
    size_t count = 0;
    memcpy(changed, gpi__sources, sizeof gpi__sources);
    while (changed[index].parts[count])
        count++;
    changed[index].parts[count] = "int one_more;\n"; /* there is room: embed.py looks */
}

static void a_kernels_digest_follows_its_file_and_what_that_includes_and_nothing_else(void) {
    static gpi__source changed[GPI__COUNT(gpi__sources)];
    size_t family, file;
    for (family = 0; family < GPI__COUNT(families); family++)
        for (file = 0; gpi__sources[file].name; file++) {
            char before[GPI__SHA256_HEX_SIZE], after[GPI__SHA256_HEX_SIZE];
            change_source(changed, file);
            gpi__digest_closure(gpi__sources, families[family][0], before);
            gpi__digest_closure(changed, families[family][0], after);
            CHECK((strcmp(before, after) != 0) == needs(families[family], gpi__sources[file].name),
                  "%s after a change of %s: %s, then %s", families[family][0], gpi__sources[file].name,
                  before, after);
        }
}

static void all_kernel_files_are_in_the_list_of_this_test(void) {
    size_t file, family;
    CHECK(GPI__COUNT(gpi__sources) - 1 <= GPI__MAX_SOURCES, "more sources than there is room for");
    for (file = 0; gpi__sources[file].name; file++) {
        const char *end = strrchr(gpi__sources[file].name, '.');
        for (family = 0; family < GPI__COUNT(families); family++)
            if (strcmp(families[family][0], gpi__sources[file].name) == 0)
                break;
        CHECK(strcmp(end, ".cu") != 0 || family < GPI__COUNT(families), "%s is new", gpi__sources[file].name);
    }
}

static void a_kernels_key_costs_next_to_nothing_after_the_first(void) {
    static const gpi__compiler compiler = {13000, 0, "sm_90"};
    char first[GPI__CODE_KEY_SIZE], key[GPI__CODE_KEY_SIZE];
    size_t length = gpi__kernel_key(first, &compiler, "gemm_sm90.cu", "#define A 1\n");
    clock_t start = clock();
    double seconds;
    int i;
    for (i = 0; i < 500; i++) {
        size_t again = gpi__kernel_key(key, &compiler, "gemm_sm90.cu", "#define A 1\n");
        CHECK(length && again == length && memcmp(first, key, length) == 0, "another key the %dth time", i);
    }
    seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    CHECK(seconds < 0.2, "500 keys took %.3f s", seconds);
}

static void long_prologues_have_keys_by_their_digest(void) {
    static const gpi__compiler compiler = {13000, 0, "sm_90"};
    static char text[3 * GPI__KERNEL_KEY_SIZE];
    char first[GPI__CODE_KEY_SIZE], key[GPI__CODE_KEY_SIZE];
    size_t length, other;
    memset(text, ' ', sizeof text - 1);
    length = gpi__kernel_key(first, &compiler, "formula_pass.cu", text);
    CHECK(length < GPI__CODE_KEY_SIZE, "%d characters", (int)length);
    text[sizeof text - 2] = '\n';
    other = gpi__kernel_key(key, &compiler, "formula_pass.cu", text);
    CHECK(length == other && memcmp(first, key, length) != 0, "the last character makes no difference");
    text[GPI__PROLOGUE_IN_KEY - 1] = 0;
    length = gpi__kernel_key(first, &compiler, "formula_pass.cu", text);
    CHECK(length > GPI__PROLOGUE_IN_KEY && length < GPI__CODE_KEY_SIZE, "%d characters", (int)length);
}

int main(void) {
    RUN(a_kernels_digest_follows_its_file_and_what_that_includes_and_nothing_else);
    RUN(all_kernel_files_are_in_the_list_of_this_test);
    RUN(long_prologues_have_keys_by_their_digest);
    RUN(a_kernels_key_costs_next_to_nothing_after_the_first);
    return test_finish();
}
