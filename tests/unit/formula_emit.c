/* The code of formulas for kernels, compiled for the host: it computes what the host's evaluation says, within its bound, with errors
   put into the hardware's functions. As shared libraries, by the compiler in CXX. */
#include "formula_cases.h"

#if GPI__WINDOWS
int main(void) {
    printf("skip formula_emit: it loads libraries as Linux does\n0 passed, 0 failed, 1 skipped\n");
    return 0;
}
#else
#include <dlfcn.h>

enum { MOST_FORMULAS = 128 };

/* >>the library */

typedef struct kind {
    const char *name, *type;
    gemmepi_dtype accumulator, d;
    int exact;
} kind;

static const kind kinds[] = {{"exact", "float", GEMMEPI_F32, GEMMEPI_F32, 1},
                             {"short", "float", GEMMEPI_F32, GEMMEPI_BF16, 0},
                             {"f64", "double", GEMMEPI_F64, GEMMEPI_F64, 1},
                             {"whole", "int", GEMMEPI_I32, GEMMEPI_I32, 1}};

static const char *const whole_formulas[] = {
    "d = v + r * u - 3",
    "d = -v * 65537 + 2147483648",
    "d = v > r ? max(v, u) : min(r, -u)",
    "d = relu(v) + (v == label) + 2 * (label > r && !(u == 3) || v < -7)",
    "d = v * column + row - item * columns",
    "d = left(v) * right(r) - left(column)",
    "d = cw[label] * v + lg[column] - rw[row]",
    "d = cw[v] + lg[r + u] + (cw[v > r] - rw[min(v, 2)]) * cw[5]",
};

static const char *shim =
    "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n"
    "#define __device__\n#define __constant__\n#define __forceinline__ inline\n#define GEMMEPI_HAS_FUNCTIONS\n"
    "typedef uint32_t u32;\ntypedef unsigned long long u64;\n"
    "static long long __double_as_longlong(double x) { long long b; memcpy(&b, &x, 8); return b; }\n"
    "static u64 __umul64hi(u64 x, u64 y) { return (u64)((unsigned __int128)x * y >> 64); }\n"
    "extern \"C\" { double off = 0; }\n"
    "static uint32_t __float_as_uint(float x) { uint32_t b; memcpy(&b, &x, 4); return b; }\n"
    "static float __uint_as_float(uint32_t b) { float x; memcpy(&x, &b, 4); return x; }\n"
    "static float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }\n"
    "static double erfcx(double x) { return x > 100 ? 0.56418958354775628695 / x : (double)(expl((long double)x * x) * "
    "erfcl(x)); }\n"
    "static float rsqrt(float x) { return (float)(1 / sqrt((double)x)); }\n"
    "static double rsqrt(double x) { return 1 / sqrt(x); }\n"
    "static float flushed(float x) { return fabsf(x) < 1.17549435e-38f ? copysignf(0, x) : x; }\n"
    "static float fast_power_of_2(float x) { return flushed((float)(exp2((double)flushed(x)) * (1 + off * 0x1p-22 * "
    "0.70710678))); }\n"
    "static float fast_reciprocal(float x) { double y = 1 / (double)flushed(x); return flushed((float)((float)y == y ? y : "
    "y * (1 + off * 0x1p-23))); }\n"
    "typedef double F32, F64, F16, BF16, I32;\n"
    "template <class A, class B> static A to_acc(B x) { return (A)x; }\n"
    "template <class A> static A element_of(const A *line, long long i) { return line[i]; }\n"
    "static double formula_rounded(double x, double) { return x; }\n"
    "static float formula_rounded(float x, float) {\n"
    "    if (!TO_BF16 || x != x) return x;\n"
    "    uint32_t b = __float_as_uint(x); return __uint_as_float((b + 0x7fff + (b >> 16 & 1)) & 0xffff0000); }\n"
    "#include \"kernels/activation.cuh\"\n#include \"kernels/formula.cuh\"\n"
    "extern \"C\" float by_chance(int cut, float x, float u) {\n"
    "    return cut == 13 ? formula_stochastic<13>(x, u) : formula_stochastic<16>(x, u); }\n";

/* Of these a product with an activation or its derivative is emitted as one node, as graphs of epilogues and operations have it. */
static const char *const joined_formulas[] = {
    "d = left(v) * silu(right(v))",
    "d = left(v + b) * gelu_tanh(right(v + b))",
    "d = r * d_tanh(v)",
    "d = left(v) * elu(right(v), 0.75)",
    "d = pair(v * silu(right(w)), v * left(w) * d_silu(right(w)))",
    "d = u * leaky_relu(v, 0.25) + u * r * d_leaky_relu(v, 0.25)",
    "d = r * d_relu(v)",
    "d = r * u * d_squared_relu(v)",
};

/* These are emitted for a kernel of a product, which adds the bias b, and stores o, if that is v as it comes. */
static const char *const product_formulas[] = {
    "d = gelu_tanh(v + b)",           "d = left(v + b) * gelu_tanh(right(v + b))",
    "d = silu(v + b) * u; o = v + b", "d = v * r; o = v",
    "d = gelu_tanh(v + b) * (v + b)", "d = r * b + (v + b)",
};
static const int is_added[] = {
    0, 0, 1,
    0, 1, 0}; /* gelu_tanh adds it, or nobody beforehand; where results are not short the kernel does */

static int operand_called(const gpi__formula *f, const char *name) {
    int i;
    for (i = 0; i < f->operand_count; i++)
        if (strcmp(f->names + f->operands[i].name, name) == 0)
            return i;
    return -1;
}

/* The parameter of what was joined, which is no argument then. */
static double join_activations(const gpi__formula *f) {
    gpi__node *nodes = (gpi__node *)(uintptr_t)f->nodes, *n, *x, *y;
    double parameter = 0;
    int i;
    for (i = 0; i < f->node_count; i++) {
        n = &nodes[i];
        if (n->op != GPI__OP_MUL || !gpi__is_of_activation(nodes[n->args[1]].op))
            continue;
        x = &nodes[n->args[0]], y = &nodes[n->args[1]];
        n->op = y->op == GPI__OP_DERIVE ? GPI__OP_GRADIENT : GPI__OP_GATE;
        n->place = y->place;
        n->args[1] = y->args[0];
        if (y->args[1] >= 0)
            parameter = nodes[y->args[1]].number;
        if (n->op == GPI__OP_GRADIENT && x->op == GPI__OP_MUL) {
            n->args[2] = x->args[1];
            n->args[0] = x->args[0];
        }
    }
    for (i = 0; i < f->node_count; i++)
        if (nodes[i].op == GPI__OP_ACTIVATE || nodes[i].op == GPI__OP_DERIVE)
            nodes[i].op = GPI__OP_NEG; /* nobody reads it */
    return parameter;
}

/* Of one formula: its code, and a function that gives it what it reads and takes what comes out. */
static void write_formula(FILE *file, const gpi__formula *f, int number, const char *type, double parameter,
                          const gpi__emitted_beside *beside) {
    static char code[1 << 16];
    gpi__text text = gpi__text_in(code, sizeof code);
    int i, member;
    gpi__emit_formula_of_product(&text, f, beside);
    CHECK(!gpi__text_is_cut(&text), "the code has %d characters", (int)text.length);
    fprintf(file, "namespace f%d {\n%s", number, code);
    fprintf(
        file,
        "extern \"C\" void run%d(const double *v, const double *a, const long long *whole, const long long *index, const "
        "long long *column, const double *tables, double *to) {\n    Formula_in in = {};\n    Formula_out out = {};\n"
        "    (void)v, (void)a, (void)whole, (void)index, (void)column, (void)tables;\n",
        number);
    if (f->reads_value)
        fprintf(file, "    for (int m = 0; m < FORMULA_VALUE; m++) in.v[m] = (%s)v[m];\n", type);
    for (i = 0; i < f->operand_count; i++)
        for (member = 0;
             member < f->operands[i].members && f->operands[i].used & GPI__BY_PLACE && !f->operands[i].output;
             member++)
            if (i == beside->added)
                fprintf(file, "    in.v[%d] += (%s)a[%d];\n", member, type, GPI__MOST_PARTS * i + member);
            else if (f->operands[i].dtype == GEMMEPI_I32 || f->operands[i].dtype == GEMMEPI_I64)
                fprintf(file, "    in.a%d[%d] = whole[%d];\n", i, member, GPI__MOST_PARTS * i + member);
            else
                fprintf(file, "    in.a%d[%d] = (%s)a[%d];\n", i, member, type, GPI__MOST_PARTS * i + member);
    for (i = 0; i < f->operand_count; i++)
        if (f->operands[i].used & GPI__BY_INDEX)
            fprintf(file, "    in.b%d = {tables + %d, %d, 1, 1};\n", i, COLUMNS * i,
                    f->operands[i].kind == GEMMEPI_PER_ROW ? (int)ROWS : (int)COLUMNS);
    for (i = 0; i < GPI__INDICES; i++)
        if (f->indices >> i & 1 && i != GPI__INDEX_COLUMN)
            fprintf(file, "    in.%s = index[%d];\n", gpi__index_names[i], i);
        else if (f->indices >> i & 1)
            fprintf(file, "    for (int m = 0; m < FORMULA_MEMBERS; m++) in.column[m] = column[m];\n");
    if (parameter != 0)
        fprintf(file, "    in.parameter = (%s)%.17g;\n", type, parameter);
    if (gpi__may_be_far(f))
        fprintf(
            file,
            "    in.is_near = true;\n    formula(in, out);\n    in.is_near = false;\n    if (out.is_far)\n    ");
    fprintf(file, "    formula(in, out);\n");
    for (i = 0; i <= GPI__RESULT; i++)
        for (member = 0; f->operands[i].output && f->operands[i].used && member < f->operands[i].members;
             member++)
            if (i == beside->written)
                fprintf(file, "    to[%d] = in.v[%d];\n", GPI__MOST_PARTS * i + member, member);
            else if (i == GPI__RESULT)
                fprintf(file, "    to[%d] = out.d[%d];\n", GPI__MOST_PARTS * i + member, member);
            else
                fprintf(file, "    to[%d] = out.a%d[%d];\n", GPI__MOST_PARTS * i + member, i, member);
    fprintf(file, "}\n}\n");
    fprintf(
        file,
        "#undef FORMULA_MEMBERS\n#undef FORMULA_HALVES\n#undef FORMULA_GROUP\n#undef FORMULA_VALUE\n"
        "#undef FORMULA_RESULT\n#undef FORMULA_INDICES\n#undef FORMULA_UNIFORM\n#undef FORMULA_ROUNDS\n#undef FORMULA_WAVES\n#undef FORMULA_PARAMETER\n#undef FORMULA_EXACT\n"
        "#undef FORMULA_INPUTS\n#undef FORMULA_TABLES\n#undef FORMULA_OUTPUTS\n");
}

/* Where code and what is compiled of it go: TMPDIR, or next to the programs. */
static const char *file_of(const kind *k, const char *ending) {
    static char path[2][700];
    static int which;
    const char *folder = getenv("TMPDIR");
    which = !which;
    snprintf(path[which], sizeof path[0], "%.600s/formula_emit_%s%s", folder ? folder : "./build/tests/unit",
             k->name, ending);
    return path[which];
}

static int compile(const kind *k) {
    char command[2048];
    const char *compiler = getenv("CXX");
    snprintf(
        command, sizeof command,
        "%s -std=c++17 -O1 -w -shared -fPIC -DGEMMEPI_T=%s -DGEMMEPI_INDEX='long long' -DGEMMEPI_EXACT=%d -DTO_BF16=%d "
        "-Isrc %s -o %s",
        compiler && *compiler ? compiler : "g++", k->type, k->exact, k->d == GEMMEPI_BF16, file_of(k, ".cpp"),
        file_of(k, ".so"));
    return system(command) == 0;
}

/* >>one formula against its evaluation */

typedef void run_function(const double *v, const double *a, const long long *whole, const long long *index,
                          const long long *column, const double *tables, double *to);

static int within(double got, estimate want, int is_f32) {
    if (want.bound > DBL_MAX || (got != got && want.value != want.value))
        return 1;
    if (got == want.value)
        return 1;
    if (got > DBL_MAX || got < -DBL_MAX) /* what rounds there */
        return is_f32 && fabs(want.value) + want.bound >= 3.4028235e38;
    return fabs(got - want.value) <= want.bound;
}

static long held; /* outputs that a finite bound holds */

/* of_v: by how much of itself v may be off */
static void check_formula(const char *text, const gpi__formula *f, run_function *run, double *off, int is_f32,
                          double of_v) {
    static data d;
    estimate *values = (estimate *)malloc(sizeof *values * (size_t)(f->parts * (f->node_count + 1)));
    double v[GPI__MOST_PARTS], a[GPI__MOST_PARTS * GPI__FORMULA_OPERANDS];
    double to[GPI__MOST_PARTS * (GPI__FORMULA_OPERANDS + 1)], tables[COLUMNS * GPI__FORMULA_OPERANDS];
    long long whole[GPI__MOST_PARTS * GPI__FORMULA_OPERANDS], index[GPI__INDICES], column[GPI__MOST_PARTS];
    bounded_unit unit;
    int turn, row, u, i, member;
    for (turn = 0; turn < 6; turn++) {
        fill_randomly(f, &d);
        *off = turn % 3 - 1;
        for (i = 0; i < MOST && turn > 2; i++) /* far out, where numbers are small and large */
            d.value.at[i].value *= turn == 3 ? 8 : turn == 4 ? 64 : 0x1p-12;
        for (i = 0; i < MOST && f->accumulator == GEMMEPI_I32; i++)
            d.value.at[i].value = (double)(int32_t)(random_state >> 32), random_number();
        for (row = 0; row < ROWS; row++)
            for (u = 0; u < units_of(f); u++) {
                fill_unit(f, &d, row, u, &unit);
                for (i = 0; i < GPI__MOST_PARTS * f->operand_count; i++) {
                    int o = i / GPI__MOST_PARTS;
                    member = i % GPI__MOST_PARTS;
                    if (f->accumulator == GEMMEPI_I32)
                        unit.whole[o][member] = (int32_t)(random_state >> 33), random_number();
                    a[i] = unit.operands[o][member].value;
                    whole[i] = unit.whole[o][member];
                }
                for (i = 0; i < COLUMNS * f->operand_count; i++)
                    tables[i] = look_up(unit.tables, i / COLUMNS, i % COLUMNS).value;
                for (i = 0; i < GPI__INDICES; i++)
                    index[i] = unit.indices[i];
                for (i = 0; i < GPI__MOST_PARTS; i++)
                    v[i] = unit.value[i].value, column[i] = unit.column[i],
                    unit.value[i].bound = of_v * fabs(v[i]);
                evaluate_bounded(f, &unit, values);
                run(v, a, whole, index, column, tables, to);
                for (i = 0; i <= GPI__RESULT; i++)
                    for (member = 0;
                         f->operands[i].output && f->operands[i].used && member < f->operands[i].members;
                         member++) {
                        estimate want = bounded_output(f, values, i, member);
                        if (reduces_by(f, i) == SMALLEST) /* of negatives the largest */
                            want.value = -want.value;
                        held += want.bound <= DBL_MAX && want.value == want.value;
                        CHECK(within(to[GPI__MOST_PARTS * i + member], want, is_f32),
                              "%s: %.17g, not %.17g +- %.3g (v %.9g)", text, to[GPI__MOST_PARTS * i + member],
                              want.value, want.bound, v[0]);
                        CHECK(want.bound > DBL_MAX || want.bound <= 1e-2 * (1 + fabs(want.value)) ||
                                  strstr(text, "d_") || strchr(text, '<') || strchr(text, '>') ||
                                  strstr(text, "exp") || strstr(text, "mod") || strstr(text, "rounded") ||
                                  turn == 4,
                              "%s: %.9g +- %.3g says little", text, want.value, want.bound);
                    }
            }
    }
    free(values);
}

/* >>rounding by chance */

/* Numbers of every exponent and a few that are special, with u of all sizes: the bits that the host says, as F32 has them. */
static void check_by_chance(void *library) {
    static const float special[] = {0,     -0.f,           65504,         65520,        65519.996f,
                                    65536, -3.4028235e38f, 6.1035156e-5f, 6.1035153e-5f};
    float (*by_chance)(int cut, float x, float u), x, u, got, want;
    uint32_t bits;
    int i, cut;
    *(void **)(void *)&by_chance = dlsym(library, "by_chance");
    CHECK(by_chance != NULL, "by_chance");
    for (i = 0; by_chance && i < 200000; i++) {
        bits = (uint32_t)(random_number(), random_state >> 32);
        if (i % 4 == 0) /* the upper bits alone, or all but them */
            bits = i % 8 ? bits & 0xffff0000 : bits | 0xffff;
        memcpy(&x, &bits, sizeof x);
        if (i % 16 == 1)
            x = (float)(random_number() * 0x1p-14);
        if (i % 32 == 2)
            x = special[i / 32 % (int)GPI__COUNT(special)];
        u = (float)((random_number(), random_state >> 40) * 0x1p-24);
        u = i % 5 ? u : i % 2 ? 0 : 1 - 0x1p-24f;
        for (cut = 13; cut <= 16; cut += 3) {
            got = by_chance(cut, x, u);
            want = (float)gpi__as_stored(GEMMEPI_F32,
                                         gpi__round_by_chance(cut == 13 ? GEMMEPI_F16 : GEMMEPI_BF16, x, u));
            CHECK((got == want && !signbit(got) == !signbit(want)) || (got != got && want != want),
                  "%a with %a, less %d bits, is %a, not %a", x, u, cut, got, want);
        }
    }
}

/* >>all of a kind */

static void code_computes_what_the_host_says(const kind *k) {
    static gpi__formula *formulas[MOST_FORMULAS];
    const char *texts[MOST_FORMULAS];
    char name[128];
    gpi__node *nodes;
    size_t size;
    gpi__emitted_beside beside;
    int i, first_joined, first_of_product, count = 0, is_whole = k->accumulator == GEMMEPI_I32;
    FILE *file;
    void *library;
    double *off;
    if (system("${CXX:-g++} --version >/dev/null 2>&1") != 0)
        SKIP("there is no C++ compiler");
    file = fopen(file_of(k, ".cpp"), "w");
    CHECK(file != NULL, "%s cannot be written", file_of(k, ".cpp"));
    if (!file)
        return;
    fprintf(file, "%s", shim);
    for (i = 0; i < (int)GPI__COUNT(smooth_formulas) && !is_whole; i++)
        texts[count++] = smooth_formulas[i];
    for (i = 0; i < (int)GPI__COUNT(other_formulas) && !is_whole; i++)
        texts[count++] = other_formulas[i];
    for (i = 0; i < (int)GPI__COUNT(whole_formulas) && is_whole; i++)
        texts[count++] = whole_formulas[i];
    first_joined = count;
    for (i = 0; i < (int)GPI__COUNT(joined_formulas) && !is_whole; i++)
        texts[count++] = joined_formulas[i];
    first_of_product = count;
    for (i = 0; i < (int)GPI__COUNT(product_formulas) && !is_whole; i++)
        texts[count++] = product_formulas[i];
    for (i = 0; i < count; i++) {
        formulas[i] = parsed(texts[i], k->accumulator, k->d);
        CHECK(formulas[i] != NULL, "%s: %s", texts[i], gemmepi_last_error());
        if (!formulas[i]) {
            fclose(file);
            return;
        }
        formulas[i]->is_short = !k->exact; /* of reductions, too */
        size = (size_t)formulas[i]->node_count * sizeof *nodes;
        nodes = (gpi__node *)malloc(size);
        memcpy(nodes, formulas[i]->nodes, size);
        beside = gpi__nothing_beside;
        if (i >= first_of_product) {
            const gpi__formula *f = formulas[i];
            int which = i - first_of_product;
            beside = gpi__beside_product(f, operand_called(f, "b"), operand_called(f, "o"), 1);
            CHECK((beside.added >= 0) == (is_added[which] || (which < 2 && k->d != GEMMEPI_BF16)),
                  "%s: %d is added", texts[i], beside.added);
            CHECK((beside.written >= 0) == (strstr(texts[i], "; o = v") != NULL), "%s: %d is written",
                  texts[i], beside.written);
        }
        write_formula(file, formulas[i], i, k->type,
                      i >= first_joined && i < first_of_product ? join_activations(formulas[i]) : 0, &beside);
        memcpy((void *)(uintptr_t)formulas[i]->nodes, nodes, size);
        free(nodes);
    }
    fclose(file);
    CHECK(compile(k), "%s does not compile", file_of(k, ".cpp"));
    library = dlopen(file_of(k, ".so"), RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL, "%s", library ? "" : dlerror());
    if (!library)
        return;
    off = (double *)dlsym(library, "off");
    held = 0;
    check_by_chance(library);
    for (i = 0; i < count; i++) {
        run_function *run;
        snprintf(name, sizeof name, "run%d", i);
        *(void **)(void *)&run = dlsym(library, name);
        CHECK(run && off, "%s", name);
        if (run && off)
            check_formula(texts[i], formulas[i], run, off, k->accumulator == GEMMEPI_F32,
                          i < first_of_product || k->exact ? 0 : 4 * 0x1p-24); /* a product is off by more */
        freed(formulas[i]);
    }
    CHECK(held > 500L * count / 10, "%ld outputs were held to a bound", held);
    dlclose(library);
}

static void exact_code_computes_what_the_host_says(void) {
    code_computes_what_the_host_says(&kinds[0]);
}
static void short_code_computes_what_the_host_says(void) {
    code_computes_what_the_host_says(&kinds[1]);
}
static void code_in_f64_computes_what_the_host_says(void) {
    code_computes_what_the_host_says(&kinds[2]);
}
static void code_of_whole_numbers_computes_what_the_host_says(void) {
    code_computes_what_the_host_says(&kinds[3]);
}

/* >>its table */

/* >>quotients by a number of the text's, where results are short: made with its reciprocal */

/* What x is multiplied by, as the code has it; 0: the code divides. */
static float factor_in(const gpi__formula *f) {
    static char code[1 << 14];
    gpi__text text = gpi__text_in(code, sizeof code);
    const char *at;
    gpi__emit_formula(&text, f);
    at = strstr(code, " * GEMMEPI_T(");
    return at ? strtof(at + strlen(" * GEMMEPI_T("), NULL) : 0;
}

/* Numbers of all sizes in F32, those whose bits are nearly all set among them. */
static float number_of_any_size(int i) {
    double x = i % 3 ? random_number() : 1.9999998807907104;
    return (float)ldexp(x, i % 220 - 110);
}

static void check_quotients(const gpi__formula *f, double divisor) {
    estimate *values = (estimate *)malloc(sizeof *values * (size_t)(f->parts * (f->node_count + 1)));
    float factor = factor_in(f);
    bounded_unit unit;
    int i;
    CHECK(factor != 0, "the code of v / %g divides", divisor);
    for (i = 0; i < 3000; i++) {
        volatile float v = number_of_any_size(i), got = v * factor; /* rounded to F32 */
        estimate want;
        memset(&unit, 0, sizeof unit);
        unit.value[0].value = v;
        evaluate_bounded(f, &unit, values);
        want = bounded_output(f, values, GPI__RESULT, 0);
        CHECK(within(got, want, 1), "%.9g / %.17g is %.9g, not %.17g +- %.3g", v, divisor, got, want.value,
              want.bound);
        CHECK(fabs(v / divisor - want.value) <= want.bound, "%.9g / %.17g lies outside %.17g +- %.3g", v,
              divisor, want.value, want.bound);
        CHECK(want.bound > DBL_MAX || want.bound <= 4 * 0x1p-24 * fabs(want.value) + 2 * FLT_MIN,
              "%g +- %g says little", want.value, want.bound);
    }
    free(values);
}

static void quotients_by_a_number_are_within_their_bound(void) {
    static const double divisors[] = {0.9, 3, 7, 0.1, -1.1, 1.0000001, 16777215, 1e-30, 1e30, 3e-37, 9e36};
    char text[60];
    size_t i;
    for (i = 0; i < sizeof divisors / sizeof *divisors; i++) {
        gpi__formula *f;
        snprintf(text, sizeof text, "d = v / %.17g", divisors[i]);
        f = parsed(text, GEMMEPI_F32, GEMMEPI_BF16);
        CHECK(f != NULL, "%s: %s", text, gemmepi_last_error());
        if (f)
            check_quotients(f, divisors[i]);
        freed(f);
        f = parsed(text, GEMMEPI_F32, GEMMEPI_F32);
        CHECK(f && factor_in(f) == 0, "%s is no quotient in F32", text);
        freed(f);
    }
}

static void the_table_says_what_a_kernel_must_bring(void) {
    static const char *const lines[] = {
        "#define FORMULA_MEMBERS 2\n",
        "#define FORMULA_HALVES 1\n",
        "#define FORMULA_GROUP 4\n",
        "#define FORMULA_VALUE 2\n",
        "#define FORMULA_RESULT 1\n",
        "#define FORMULA_INDICES 0x2\n",
        "#define FORMULA_EXACT 1\n",
        " X(0, a0, FULL, 1, BF16, 0) X(1, a1, PER_ROW, 1, BF16, 0)\n",
        " X(2, a2, PER_ROW, 2, F32, row_sum, 0)\n",
        "    GEMMEPI_T v[2];\n",
        "    GEMMEPI_T a0[1];\n",
        "    GEMMEPI_INDEX column[2];\n",
    };
    static char code[8192];
    gpi__text text = gpi__text_in(code, sizeof code);
    gpi__formula *f =
        parsed("d = left(v, 4) * h * p + right(column, 4); rs = row_sum(silu(v))", GEMMEPI_F32, GEMMEPI_BF16);
    size_t i;
    CHECK(f != NULL, "%s", gemmepi_last_error());
    if (!f)
        return;
    gpi__emit_formula(&text, f);
    for (i = 0; i < GPI__COUNT(lines); i++)
        CHECK(strstr(code, lines[i]) != NULL, "%s is not in\n%s", lines[i], code);
    freed(f);
}

int main(void) {
    RUN(exact_code_computes_what_the_host_says);
    RUN(short_code_computes_what_the_host_says);
    RUN(code_in_f64_computes_what_the_host_says);
    RUN(code_of_whole_numbers_computes_what_the_host_says);
    RUN(quotients_by_a_number_are_within_their_bound);
    RUN(the_table_says_what_a_kernel_must_bring);
    return test_finish();
}
#endif
