/* Programs that leave fp8 out, on the host and on the fake GPU of fake_cuda.h: whatever has E4M3 or E5M2 is refused in words, the rest
   runs, and texts of kernels that only fp8 has are not there. */
#define GEMMEPI_NO_FP8
#include "explained.h"

#define SIDE 64

static gemmepi_context *context;

static gemmepi_matmul_desc a_product(void) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = desc.n = desc.k = SIDE;
    desc.a.dtype = GEMMEPI_BF16;
    return desc;
}

static gemmepi_status plan(gemmepi_any_desc any) {
    return gemmepi_precompile(context, &any, 1, 1, NULL, NULL);
}

static gemmepi_status plan_product(const gemmepi_matmul_desc *desc) {
    gemmepi_any_desc any;
    memset(&any, 0, sizeof any);
    any.matmul = desc;
    return plan(any);
}

static void is_refused(gemmepi_status status, const char *field) {
    CHECK(status == GEMMEPI_UNSUPPORTED && sentence_has("GEMMEPI_NO_FP8") && sentence_has(field),
          "%s: status %d, %s", field, (int)status, gemmepi_last_error());
}

static void check_products(gemmepi_dtype fp8) {
    static const struct {
        const char *name;
        size_t at;
        uint64_t epilogue;
    } fields[] = {
        {"desc.a.dtype", offsetof(gemmepi_matmul_desc, a.dtype), 0},
        {"desc.b.dtype", offsetof(gemmepi_matmul_desc, b.dtype), 0},
        {"desc.c.dtype", offsetof(gemmepi_matmul_desc, c.dtype), 0},
        {"desc.d.dtype", offsetof(gemmepi_matmul_desc, d.dtype), 0},
        {"desc.aux.dtype", offsetof(gemmepi_matmul_desc, aux.dtype), GEMMEPI_AUX | GEMMEPI_SILU},
        {"desc.aux.dtype", offsetof(gemmepi_matmul_desc, aux.dtype), GEMMEPI_BACKWARD | GEMMEPI_SILU},
    };
    size_t i;
    for (i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        gemmepi_matmul_desc desc = a_product();
        desc.epilogue = fields[i].epilogue;
        memcpy((char *)&desc + fields[i].at, &fp8, sizeof fp8);
        is_refused(plan_product(&desc), fields[i].name);
    }
}

static void check_formulas(gemmepi_dtype fp8) {
    gemmepi_matmul_desc desc = a_product();
    gemmepi_elementwise_desc over;
    gemmepi_operand operand;
    gemmepi_tensor tensor;
    gemmepi_any_desc any;
    int64_t shape[1] = {SIDE};
    memset(&operand, 0, sizeof operand);
    operand.name = "r";
    operand.kind = GEMMEPI_FULL;
    operand.dtype = fp8;
    desc.formula = "d = v + r";
    desc.operands = &operand;
    desc.operand_count = 1;
    is_refused(plan_product(&desc), "desc.operands[0].dtype (of r)");

    memset(&over, 0, sizeof over);
    memset(&tensor, 0, sizeof tensor);
    memset(&any, 0, sizeof any);
    tensor.dtype = fp8;
    tensor.rank = 1;
    tensor.shape = shape;
    operand.dtype = GEMMEPI_DTYPE_DEFAULT;
    operand.tensor = &tensor;
    over.formula = "d = 2 * r";
    over.operands = &operand;
    over.operand_count = 1;
    over.y = &tensor;
    any.elementwise = &over;
    is_refused(plan(any), "tensor.dtype");
}

static gemmepi_status plan_cast(gemmepi_dtype to, uint64_t flags, gemmepi_scale_mode mode) {
    gemmepi_elementwise_desc desc;
    gemmepi_tensor from, into;
    gemmepi_any_desc any;
    int64_t shape[2] = {SIDE, SIDE};
    memset(&desc, 0, sizeof desc);
    memset(&from, 0, sizeof from);
    memset(&any, 0, sizeof any);
    from.rank = 2;
    from.shape = shape;
    into = from;
    into.dtype = to;
    desc.operation = GEMMEPI_OP_CAST;
    desc.flags = flags;
    desc.scale_mode = mode;
    desc.a = &from;
    desc.y = &into;
    any.elementwise = &desc;
    return plan(any);
}

static void check_layers(gemmepi_dtype fp8) {
    gemmepi_linear_desc desc;
    gemmepi_any_desc any;
    memset(&desc, 0, sizeof desc);
    memset(&any, 0, sizeof any);
    desc.m = desc.n = desc.k = SIDE;
    desc.a.dtype = fp8;
    any.linear = &desc;
    is_refused(plan(any), "desc.a.dtype");
    desc.a.dtype = GEMMEPI_BF16;
    desc.y.dtype = fp8;
    is_refused(plan(any), "desc.y.dtype");
}

static void check_groups(gemmepi_dtype fp8) {
    gemmepi_grouped_desc desc;
    gemmepi_any_desc any;
    memset(&desc, 0, sizeof desc);
    memset(&any, 0, sizeof any);
    desc.product = a_product();
    desc.product.a.dtype = fp8;
    desc.groups = 2;
    any.grouped = &desc;
    is_refused(plan(any), "a.dtype");
}

static void check_all(gemmepi_dtype fp8) {
    check_products(fp8);
    check_formulas(fp8);
    check_layers(fp8);
    check_groups(fp8);
    is_refused(plan_cast(fp8, 0, GEMMEPI_SCALE_NONE), "y.dtype");
}

static void what_has_fp8_is_refused(void) {
    check_all(GEMMEPI_E4M3);
    check_all(GEMMEPI_E5M2);
    is_refused(plan_cast(GEMMEPI_BF16, GEMMEPI_CAST_AMAX, GEMMEPI_SCALE_OUTER), "desc.scale_mode");
}

static void names_no_fp8(gemmepi_status status) {
    CHECK(status == GEMMEPI_INVALID_ARGUMENT && sentence_has("BF16") && !sentence_has("E4M3"), "%s",
          gemmepi_last_error());
}

static void sentences_about_dtypes_do_not_name_fp8(void) {
    gemmepi_matmul_desc desc = a_product();
    gemmepi_operand operand;
    desc.c.dtype = GEMMEPI_I64;
    names_no_fp8(plan_product(&desc));
    desc = a_product();
    memset(&operand, 0, sizeof operand);
    operand.name = "r";
    operand.kind = GEMMEPI_FULL;
    operand.dtype = GEMMEPI_F64;
    desc.formula = "d = v + r";
    desc.operands = &operand;
    desc.operand_count = 1;
    names_no_fp8(plan_product(&desc));
}

static void the_rest_is_planned(void) {
    gemmepi_matmul_desc desc = a_product();
    CHECK(!plan_product(&desc), "%s", gemmepi_last_error());
    desc.a.dtype = desc.b.dtype = GEMMEPI_I8;
    desc.d.dtype = GEMMEPI_F32;
    desc.a.scale.mode = desc.b.scale.mode = GEMMEPI_SCALE_OUTER;
    CHECK(!plan_product(&desc), "%s", gemmepi_last_error());
    CHECK(!plan_cast(GEMMEPI_F16, GEMMEPI_CAST_SCALE | GEMMEPI_CAST_AMAX, GEMMEPI_SCALE_TENSOR), "%s",
          gemmepi_last_error());
}

static void on_every_device(void (*check)(void)) {
    gemmepi_config config = config_with_all_routes();
    context = open_fake(&config);
    check();
    gemmepi_destroy(context);
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE_HOST;
    CHECK(!gemmepi_create(&config, &context), "%s", gemmepi_last_error());
    check();
    gemmepi_destroy(context);
}

static void fp8_is_refused_on_every_device(void) {
    on_every_device(what_has_fp8_is_refused);
    on_every_device(sentences_about_dtypes_do_not_name_fp8);
}

static void the_rest_is_planned_on_every_device(void) {
    on_every_device(the_rest_is_planned);
}

static const gpi__source *source_of(const char *name, size_t length) {
    const gpi__source *source = gpi__sources;
    while (source->name && (strncmp(source->name, name, length) != 0 || source->name[length]))
        source++;
    return source;
}

/* A text reads what is not there only where a condition says so, in the line ahead. */
static void check_includes(const gpi__source *source, const char *line, const char *before) {
    static const char directive[] = "#include \"";
    const char *name = line + sizeof directive - 1;
    if (strncmp(line, directive, sizeof directive - 1) == 0 && !source_of(name, strcspn(name, "\""))->name)
        CHECK(before && strncmp(before, "#if ", 4) == 0, "%s reads %.40s", source->name, name);
}

static void texts_of_fp8_are_left_out(void) {
    const gpi__source *source;
    const char *const *part;
    CHECK(!source_of("scaled.cu", 9)->name && !source_of("history.cu", 10)->name &&
              !source_of("sm90/scales.cuh", 15)->name,
          "a text of fp8 is there");
    for (source = gpi__sources; source->name; source++)
        for (part = source->parts; *part; part++) {
            const char *line = *part, *before = NULL, *end;
            for (; (end = strchr(line, '\n')) != NULL; before = line, line = end + 1)
                check_includes(source, line, before);
        }
}

int main(void) {
    RUN(fp8_is_refused_on_every_device);
    RUN(the_rest_is_planned_on_every_device);
    RUN(texts_of_fp8_are_left_out);
    return test_finish();
}
