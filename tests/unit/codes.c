/* The numbers of epilogues and flags: kernels have the interface's, none can be mistaken for another, and a flag in a field that does
   not take it is refused by a sentence that names the one that does. */
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.in.h"

#include "kernels/codes.h"

#include "activations.h"
#include "test.h"

/* >>what there is */

enum { EPILOGUE, PRODUCT, OPERATION, GATE, LAYER, LAYERS_ACTIVATION, NETWORK, FIELDS };

/* By the enum above. */
static const struct {
    const char *desc, *name;
} fields[FIELDS] = {{"gemmepi_matmul_desc", "epilogue"},   {"gemmepi_matmul_desc", "flags"},
                    {"gemmepi_elementwise_desc", "flags"}, {"gemmepi_elementwise_desc", "activation"},
                    {"gemmepi_linear_desc", "flags"},      {"gemmepi_linear_desc", "activation"},
                    {"gemmepi_network_desc", "flags"}};

/* fields: bits 1 << the enum above of those that take it. in_a_layer: what a layer has in its stead, in its flags; NULL: nothing */
typedef struct flag_row {
    uint64_t flag;
    const char *name;
    int fields;
    const char *in_a_layer;
} flag_row;

#define ROW(name, fields, in_a_layer) \
    { GEMMEPI_##name, #name, fields, in_a_layer }

static const flag_row flags[] = {
    ROW(BIAS, 1 << EPILOGUE, "LINEAR_BIAS"),
    ROW(AUX, 1 << EPILOGUE, "LINEAR_SAVED"),
    ROW(BACKWARD, 1 << EPILOGUE, NULL),
    ROW(RESIDUAL, 1 << EPILOGUE, "LINEAR_RESIDUAL"),
    ROW(BGRAD, 1 << EPILOGUE, "LINEAR_DBIAS"),
    ROW(BGRAD_A, 1 << EPILOGUE, NULL),
    ROW(BGRAD_B, 1 << EPILOGUE, NULL),
    ROW(ACCUMULATE_BIAS_GRAD, 1 << EPILOGUE, "ACCUMULATE_DBIAS"),
    ROW(GATED, 1 << EPILOGUE | 1 << LAYERS_ACTIVATION, NULL),
    ROW(GATE_FIRST, 1 << EPILOGUE | 1 << GATE | 1 << LAYERS_ACTIVATION, NULL),
    ROW(UPSTREAM, 1 << EPILOGUE, NULL),
    ROW(RELAXED, 1 << PRODUCT | 1 << LAYER | 1 << NETWORK, NULL),
    ROW(DEVICE_SCALARS, 1 << PRODUCT, NULL),
    ROW(FAST_ACCUMULATION, 1 << PRODUCT | 1 << LAYER, NULL),
    ROW(AMAX_D, 1 << PRODUCT, NULL),
    ROW(AMAX_AUX, 1 << PRODUCT, NULL),
    ROW(ACCUMULATE, 1 << PRODUCT | 1 << OPERATION, "ACCUMULATE_DB"),
    ROW(BATCH_INVARIANT, 1 << PRODUCT | 1 << LAYER | 1 << NETWORK, NULL),
    ROW(FIND_SCALE_D, 1 << PRODUCT | 1 << LAYER, NULL),
    ROW(FIND_SCALE_A, 1 << PRODUCT, NULL),
    ROW(FIND_SCALE_B, 1 << PRODUCT, NULL),
    ROW(POWER_OF_TWO_SCALE, 1 << PRODUCT | 1 << LAYER, NULL),
    ROW(CAST_SCALE, 1 << OPERATION, NULL),
    ROW(CAST_Y_SCALE, 1 << OPERATION, NULL),
    ROW(CAST_AMAX, 1 << OPERATION, NULL),
    ROW(CAST_K_IS_ROWS, 1 << OPERATION, NULL),
    ROW(LINEAR_BIAS, 1 << LAYER, NULL),
    ROW(LINEAR_RESIDUAL, 1 << LAYER, NULL),
    ROW(LINEAR_DY_IS_G, 1 << LAYER, NULL),
    ROW(LINEAR_FORWARD, 1 << LAYER, NULL),
    ROW(LINEAR_SAVED, 1 << LAYER, NULL),
    ROW(LINEAR_RECOMPUTE, 1 << LAYER, NULL),
    ROW(LINEAR_DA, 1 << LAYER, NULL),
    ROW(LINEAR_DB, 1 << LAYER, NULL),
    ROW(LINEAR_DBIAS, 1 << LAYER, NULL),
    ROW(ACCUMULATE_DA, 1 << LAYER, NULL),
    ROW(ACCUMULATE_DB, 1 << LAYER, NULL),
    ROW(ACCUMULATE_DBIAS, 1 << LAYER, NULL),
    ROW(NETWORK_BIAS, 1 << NETWORK, NULL),
    ROW(NETWORK_TRANSPOSED, 1 << NETWORK, NULL),
    ROW(NETWORK_SAVED, 1 << NETWORK, NULL),
    ROW(NETWORK_DX, 1 << NETWORK, NULL),
    ROW(NETWORK_DW, 1 << NETWORK, NULL),
    ROW(ACCUMULATE_DX, 1 << NETWORK, NULL),
    ROW(ACCUMULATE_DW, 1 << NETWORK, NULL),
};

enum { FLAGS = (int)GPI__COUNT(flags) };

/* cublasLtEpilogue_t, DEFAULT to BGRADB. */
static const uint64_t cublaslt_numbers[16] = {1,  2,   130, 4,   6,   134, 136, 152,
                                              32, 160, 36,  164, 192, 208, 256, 512};

static int is_code(uint64_t number) {
    int i = 0;
    while (i < ACTIVATION_COUNT && activation_codes[i] != number)
        i++;
    return i < ACTIVATION_COUNT;
}

/* >>numbers */

static void kernels_have_the_interfaces_numbers(void) {
#define SAME_FLAG(name) CHECK(FLAG_##name == GEMMEPI_##name, "%s: 0x%x", #name, (unsigned)FLAG_##name)
#define SAME_CODE(name, parameter, slope, traits) \
    CHECK(CODE_##name == GEMMEPI_##name, "%s: 0x%x", #name, (unsigned)CODE_##name);
    SAME_FLAG(BIAS);
    SAME_FLAG(AUX);
    SAME_FLAG(BACKWARD);
    SAME_FLAG(RESIDUAL);
    SAME_FLAG(BGRAD);
    SAME_FLAG(GATED);
    SAME_FLAG(GATE_FIRST);
    SAME_FLAG(UPSTREAM);
    ACTIVATION_LIST(SAME_CODE)
}

#define COUNT_CODE(name) +1

static void the_librarys_tables_have_every_activation(void) {
    int i;
    CHECK((0 ACTIVATION_CODES(COUNT_CODE)) == ACTIVATION_COUNT, "kernels have others");
    CHECK(GPI__COUNT(gpi__activations) == ACTIVATION_COUNT, "the host has others");
    for (i = 0; i < ACTIVATION_COUNT; i++) {
        const gpi__activation_row *row = &gpi__activations[i];
        CHECK(row->code == activation_codes[i] && strcmp(row->name, activation_names[i]) == 0 &&
                  row->parameter == activation_parameters[i],
              "the row of %s is %s, 0x%x, with parameter %g", activation_names[i], row->name,
              (unsigned)row->code, row->parameter);
    }
}

/* The lists above have every number that gemmepi.h's interface defines, and no other. */
static void tests_know_every_flag_and_code(void) {
    FILE *file = fopen("gemmepi.h", "r");
    char line[400], name[64];
    unsigned long long number;
    int found = 0, known = 0, i;
    if (!file)
        SKIP("gemmepi.h is not here: run it in the repository's root");
    while (fgets(line, sizeof line, file) && !strstr(line, "defined(GEMMEPI_IMPLEMENTATION)")) {
        char suffix[8] = "";
        if (sscanf(line, "#define GEMMEPI_%63[A-Z0-9_] 0x%llx%7[a-z]", name, &number, suffix) != 3 ||
            strcmp(suffix, "ull") != 0 || strcmp(name, "ACTIVATION_MASK") == 0)
            continue;
        for (i = 0; i < FLAGS; i++)
            known += strcmp(flags[i].name, name) == 0 && flags[i].flag == number;
        for (i = 0; i < ACTIVATION_COUNT; i++)
            known += strcmp(activation_names[i], name) == 0 && activation_codes[i] == number;
        CHECK(++found == known, "%s is in neither list, or in both", name);
    }
    fclose(file);
    CHECK(found == FLAGS + ACTIVATION_COUNT, "%d names, where %d are known", found, FLAGS + ACTIVATION_COUNT);
}

static void no_two_flags_share_a_bit(void) {
    uint64_t all = 0;
    int i;
    for (i = 0; i < FLAGS; i++) {
        uint64_t flag = flags[i].flag;
        CHECK(flag != 0 && (flag & (flag - 1)) == 0, "%s is not one bit", flags[i].name);
        CHECK((flag & all) == 0, "%s is another flag, too", flags[i].name);
        CHECK(flag >> 10, "%s is a bit of activations, or of cuBLASLt's epilogues", flags[i].name);
        all |= flag;
    }
}

static void activations_or_ed_are_no_activation(void) {
    int i, j, k;
    for (i = 1; i < ACTIVATION_COUNT; i++) /* NONE is 0 */
        for (j = 1; j < i; j++) {
            uint64_t two = activation_codes[i] | activation_codes[j];
            CHECK(!is_code(two), "%s | %s is an activation", activation_names[i], activation_names[j]);
            for (k = 1; k < j; k++)
                CHECK(!is_code(two | activation_codes[k]), "%s | %s | %s is an activation",
                      activation_names[i], activation_names[j], activation_names[k]);
        }
}

static void cublaslts_numbers_are_no_activations(void) {
    int i, n;
    for (n = 0; n < 16; n++) {
        CHECK(!is_code(cublaslt_numbers[n]), "%d is an activation", (int)cublaslt_numbers[n]);
        for (i = 1; i < ACTIVATION_COUNT; i++) {
            uint64_t both = activation_codes[i] | cublaslt_numbers[n];
            CHECK(both == activation_codes[i] || !is_code(both), "%s | %d is an activation",
                  activation_names[i], (int)cublaslt_numbers[n]);
        }
    }
}

static void the_version_is_the_headers(void) {
    CHECK(gemmepi_version() == GEMMEPI_VERSION, "%d, not %d", gemmepi_version(), GEMMEPI_VERSION);
    CHECK(GEMMEPI_VERSION ==
              GEMMEPI_VERSION_MAJOR * 10000 + GEMMEPI_VERSION_MINOR * 100 + GEMMEPI_VERSION_PATCH,
          "%d", GEMMEPI_VERSION);
}

/* >>fields */

static gemmepi_context *host;

/* A desc of each kind, which is right as it stands. */
typedef struct descs {
    gemmepi_matmul_desc matmul;
    gemmepi_elementwise_desc elementwise;
    gemmepi_linear_desc linear;
    gemmepi_network_desc network;
    gemmepi_network_layer layer;
    gemmepi_tensor a, y;
    int64_t shape[2];
} descs;

static void make_descs(descs *d, gemmepi_operation operation) {
    memset(d, 0, sizeof *d);
    d->matmul.m = d->matmul.n = d->matmul.k = 4;
    d->linear.m = d->linear.n = d->linear.k = 4;
    d->linear.flags = GEMMEPI_LINEAR_DB;
    d->layer.width = d->network.input = d->network.rows = 4;
    d->network.layers = &d->layer, d->network.layer_count = 1, d->network.flags = GEMMEPI_NETWORK_DX;
    d->shape[0] = d->shape[1] = 4;
    d->a.rank = 2;
    d->a.shape = d->shape;
    d->y = d->a;
    d->elementwise.operation = operation;
    d->elementwise.activation = operation == GEMMEPI_OP_ACTIVATION ? GEMMEPI_RELU : GEMMEPI_NONE;
    d->elementwise.a = &d->a;
    d->elementwise.y = &d->y;
}

static uint64_t *field_of(descs *d, int field) {
    uint64_t *places[FIELDS];
    places[EPILOGUE] = &d->matmul.epilogue;
    places[PRODUCT] = &d->matmul.flags;
    places[OPERATION] = &d->elementwise.flags;
    places[GATE] = &d->elementwise.activation;
    places[LAYER] = &d->linear.flags;
    places[LAYERS_ACTIVATION] = &d->linear.activation;
    places[NETWORK] = &d->network.flags;
    return places[field];
}

/* forward: of a layer, else its backward. */
static gemmepi_status plan_of(const descs *d, int field, int forward) {
    gemmepi_plan *plan = NULL;
    gemmepi_status status = field == NETWORK && forward ? gemmepi_plan_network(host, &d->network, &plan)
                            : field == NETWORK ? gemmepi_plan_network_backward(host, &d->network, &plan)
                            : field <= PRODUCT ? gemmepi_plan_matmul(host, &d->matmul, &plan)
                            : field <= GATE    ? gemmepi_plan_elementwise(host, &d->elementwise, &plan)
                            : forward          ? gemmepi_plan_linear(host, &d->linear, &plan)
                                               : gemmepi_plan_linear_backward(host, &d->linear, &plan);
    CHECK(!status == (plan != NULL), "%s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    return status;
}

/* Plans it with these bits more in the field: both operations that differ, and both directions of a layer. */
enum { WAYS = 2 };

static gemmepi_status plan_with(int field, uint64_t more, int way) {
    descs d;
    make_descs(&d, way ? GEMMEPI_OP_CAST : GEMMEPI_OP_ACTIVATION);
    *field_of(&d, field) |= more;
    return plan_of(&d, field, way);
}

static int sentence_has(const char *what) {
    return strstr(gemmepi_last_error(), what) != NULL;
}

/* Whether the sentence names a field that takes the flag, as "desc.flags" where it is one of the same desc. */
static int names_its_place(const flag_row *row, int field) {
    int other, is_near = 0;
    char place[80];
    for (other = 0; other < FIELDS; other++)
        is_near |= row->fields >> other & 1 && strcmp(fields[other].desc, fields[field].desc) == 0;
    if ((field == LAYER || field == LAYERS_ACTIVATION) && row->in_a_layer)
        return sentence_has(row->in_a_layer) && sentence_has("in desc.flags");
    for (other = 0; other < FIELDS; other++) {
        int is_here = strcmp(fields[other].desc, fields[field].desc) == 0;
        if (!(row->fields >> other & 1) || is_here != is_near)
            continue;
        snprintf(place, sizeof place, "belongs in %s.%s", is_near ? "desc" : fields[other].desc,
                 fields[other].name);
        if (sentence_has(place))
            return 1;
    }
    return 0;
}

static void a_flag_in_a_field_of_others_is_refused_and_its_place_named(void) {
    int i, field, way;
    for (i = 0; i < FLAGS; i++)
        for (field = 0; field < FIELDS; field++)
            for (way = 0; way < WAYS; way++) {
                char here[80];
                if (flags[i].fields >> field & 1)
                    continue;
                snprintf(here, sizeof here, "desc.%s has %s", fields[field].name, flags[i].name);
                CHECK(plan_with(field, flags[i].flag, way) == GEMMEPI_INVALID_ARGUMENT &&
                          sentence_has(here) && names_its_place(&flags[i], field),
                      "%s in %s.%s, way %d: %s", flags[i].name, fields[field].desc, fields[field].name, way,
                      gemmepi_last_error());
            }
}

/* It may be refused for what it lacks. */
static void a_flag_in_its_field_is_not_sent_elsewhere(void) {
    int i, field, way;
    for (i = 0; i < FLAGS; i++)
        for (field = 0; field < FIELDS; field++)
            for (way = 0; way < WAYS; way++)
                CHECK(!(flags[i].fields >> field & 1) || !plan_with(field, flags[i].flag, way) ||
                          (!sentence_has("belongs in") && !sentence_has("none of its flags")),
                      "%s in %s.%s: %s", flags[i].name, fields[field].desc, fields[field].name,
                      gemmepi_last_error());
}

static void a_bit_that_is_no_flag_is_refused_in_every_field(void) {
    uint64_t all = GEMMEPI_ACTIVATION_MASK;
    int bit, i, field;
    for (i = 0; i < FLAGS; i++)
        all |= flags[i].flag;
    for (bit = 0; bit < 64; bit++)
        for (field = 0; field < FIELDS; field++) {
            char here[80];
            snprintf(here, sizeof here, "desc.%s is", fields[field].name);
            if (!(all >> bit & 1))
                CHECK(
                    plan_with(field, (uint64_t)1 << bit, 0) == GEMMEPI_INVALID_ARGUMENT && sentence_has(here),
                    "bit %d in %s.%s: %s", bit, fields[field].desc, fields[field].name, gemmepi_last_error());
        }
}

static void what_is_no_activation_is_refused_wherever_one_is(void) {
    static const int places[] = {EPILOGUE, GATE, LAYERS_ACTIVATION};
    int i, number;
    for (i = 0; i < 3; i++)
        for (number = 0; number < 256; number++) {
            descs d;
            char here[80];
            gemmepi_status status;
            make_descs(&d, GEMMEPI_OP_ACTIVATION);
            d.linear.flags |= number != 0 && is_code((uint64_t)number) ? GEMMEPI_LINEAR_SAVED : 0;
            *field_of(&d, places[i]) = (uint64_t)number;
            snprintf(here, sizeof here, "desc.%s is", fields[places[i]].name);
            status = plan_of(&d, places[i], 1);
            CHECK(is_code((uint64_t)number) ? status == GEMMEPI_OK
                                            : status == GEMMEPI_INVALID_ARGUMENT && sentence_has(here),
                  "0x%x in %s: %s", (unsigned)number, fields[places[i]].desc, gemmepi_last_error());
        }
}

/* A number that a code has all bits of leaves that code. */
static void a_number_of_cublaslts_is_refused_alone_and_or_ed(void) {
    int i, n;
    for (n = 0; n < 16; n++) {
        uint64_t number = cublaslt_numbers[n];
        CHECK(plan_with(EPILOGUE, number, 0) == GEMMEPI_INVALID_ARGUMENT && sentence_has("GEMMEPI_EPILOGUE_"),
              "%d: %s", (int)number, gemmepi_last_error());
        CHECK(plan_with(EPILOGUE, number | GEMMEPI_BIAS, 0) == GEMMEPI_INVALID_ARGUMENT,
              "%d with BIAS is accepted", (int)number);
        for (i = 0; i < ACTIVATION_COUNT; i++)
            CHECK((activation_codes[i] | number) == activation_codes[i] ||
                      plan_with(EPILOGUE, activation_codes[i] | number, 0) == GEMMEPI_INVALID_ARGUMENT,
                  "%s | %d is accepted", activation_names[i], (int)number);
    }
}

static void types_have_the_sizes_of_their_elements(void) {
    static const struct {
        gemmepi_dtype dtype;
        size_t size;
    } sizes[] = {
        {GEMMEPI_DTYPE_DEFAULT, 0}, {GEMMEPI_F32, 4},  {GEMMEPI_F64, 8},       {GEMMEPI_F16, 2},
        {GEMMEPI_BF16, 2},          {GEMMEPI_E4M3, 1}, {GEMMEPI_E5M2, 1},      {GEMMEPI_I8, 1},
        {GEMMEPI_I32, 4},           {GEMMEPI_I64, 8},  {GEMMEPI_I4, 1},        {GEMMEPI_U4, 1},
        {GEMMEPI_E2M1, 1},          {GEMMEPI_E8M0, 1}, {(gemmepi_dtype)14, 0}, {(gemmepi_dtype)-1, 0}};
    size_t i;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
        CHECK(gemmepi_dtype_size(sizes[i].dtype) == sizes[i].size, "%d has %d bytes", (int)sizes[i].dtype,
              (int)gemmepi_dtype_size(sizes[i].dtype));
}

int main(void) {
    gemmepi_config config;
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE_HOST;
    if (gemmepi_create(&config, &host) != GEMMEPI_OK) {
        printf("FAIL there is no host: %s\n", gemmepi_last_error());
        return 1;
    }
    RUN(types_have_the_sizes_of_their_elements);
    RUN(kernels_have_the_interfaces_numbers);
    RUN(the_librarys_tables_have_every_activation);
    RUN(tests_know_every_flag_and_code);
    RUN(no_two_flags_share_a_bit);
    RUN(activations_or_ed_are_no_activation);
    RUN(cublaslts_numbers_are_no_activations);
    RUN(the_version_is_the_headers);
    RUN(a_flag_in_a_field_of_others_is_refused_and_its_place_named);
    RUN(a_flag_in_its_field_is_not_sent_elsewhere);
    RUN(a_bit_that_is_no_flag_is_refused_in_every_field);
    RUN(what_is_no_activation_is_refused_wherever_one_is);
    RUN(a_number_of_cublaslts_is_refused_alone_and_or_ed);
    gemmepi_destroy(host);
    return test_finish();
}
