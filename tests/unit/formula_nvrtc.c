/* NVRTC compiles the code of formulas, for every architecture that the kernels around it are for. */
#include "device/compile.h"
#include "formula_cases.h"

static gpi__log no_log;

static int open_nvrtc(gpi__nvrtc *nvrtc) {
    gpi__loader loader;
    memset(&loader, 0, sizeof loader);
    loader.log = &no_log;
    return gpi__load_nvrtc(&loader, nvrtc) == GEMMEPI_OK;
}

/* A kernel that reads all that a formula reads, from memory, and stores all that it gives. */
static void append_kernel(gpi__text *out, const gpi__formula *f, int number) {
    int i;
    gpi__append(out, "namespace f%d {\n", number);
    gpi__emit_formula(out, f);
    gpi__append(
        out,
        "extern \"C\" __global__ void run%d(const Formula_in *in, Formula_out *out) {\n"
        "    Formula_out here;\n    formula(in[threadIdx.x], here);\n    out[threadIdx.x] = here;\n}\n}\n",
        number);
    for (i = 0; i < 13; i++) {
        static const char *const names[] = {"MEMBERS", "HALVES",   "GROUP",  "VALUE", "RESULT",
                                            "INDICES", "UNIFORMS", "ROUNDS", "WAVES", "EXACT",
                                            "INPUTS",  "OUTPUTS",  "TABLES"};
        gpi__append(out, "#undef FORMULA_%s\n", names[i]);
    }
}

static void make_source(gpi__text *out, gemmepi_dtype accumulator, gemmepi_dtype d, int *kernels) {
    size_t i, count = GPI__COUNT(smooth_formulas);
    gpi__append(out, "#define GEMMEPI_T %s\n#define GEMMEPI_INDEX int\n#define GEMMEPI_EXACT %d\n",
                accumulator == GEMMEPI_F64 ? "double" : "float", d != GEMMEPI_BF16);
    gpi__append(
        out,
        "#include \"types.cuh\"\n#include \"activation.cuh\"\n#include \"formula.cuh\"\n"
        "__device__ inline GEMMEPI_T formula_rounded(GEMMEPI_T x, GEMMEPI_T scale) { return to_acc<GEMMEPI_T>(from_acc<%s>(x * scale)) / scale; }\n",
        gpi__dtype(d)->name);
    for (i = 0; i < count + GPI__COUNT(other_formulas); i++) {
        const char *text = i < count ? smooth_formulas[i] : other_formulas[i - count];
        gpi__formula *f = parsed(text, accumulator, d);
        CHECK(f != NULL, "%s: %s", text, gemmepi_last_error());
        if (f)
            append_kernel(out, f, (*kernels)++);
        freed(f);
    }
}

static void check_compiles(const gpi__nvrtc *nvrtc, const char *source, const char *arch, int kernels) {
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__nvrtc_program program = NULL;
    gpi__headers headers;
    const char *options[2];
    char *log;
    size_t size = 0;
    int result, last;
    options[0] = arch;
    options[1] = "--std=c++17";
    CHECK(gpi__make_headers(&allocator, &headers), "%s", gemmepi_last_error());
    result = nvrtc->create_program(&program, source, "formulas.cu", headers.count,
                                   (const char *const *)headers.texts, headers.names);
    if (!result)
        result = nvrtc->compile_program(program, 2, options);
    log = program ? gpi__program_log(nvrtc, &allocator, program) : NULL;
    CHECK(result == 0, "%s: %.2000s", arch, log ? log : "");
    CHECK(!log || !strstr(log, "warning"), "%s: %.2000s", arch, log);
    if (!result && nvrtc->get_ptx_size(program, &size) == 0 && size) {
        char *ptx = (char *)malloc(size), name[32];
        nvrtc->get_ptx(program, ptx);
        last = snprintf(name, sizeof name, ".entry run%d(", kernels - 1);
        CHECK(last > 0 && strstr(ptx, name) != NULL, "%s is not in the PTX", name);
        free(ptx);
    }
    CHECK(size > 0, "there is no PTX");
    gpi__delete(&allocator, log);
    gpi__free_headers(&allocator, &headers);
    nvrtc->destroy_program(&program);
}

static void nvrtc_compiles(gemmepi_dtype accumulator, gemmepi_dtype d) {
    static char source[1 << 19];
    static const char *const archs[] = {"--gpu-architecture=sm_80", "--gpu-architecture=sm_90"};
    gpi__text out = gpi__text_in(source, sizeof source);
    gpi__nvrtc nvrtc;
    int i, kernels = 0;
    if (!open_nvrtc(&nvrtc))
        SKIP("there is no NVRTC on this machine");
    make_source(&out, accumulator, d, &kernels);
    CHECK(!gpi__text_is_cut(&out) && kernels > 60, "%d kernels in %d characters", kernels, (int)out.length);
    for (i = 0; i < 2; i++)
        check_compiles(&nvrtc, source, archs[i], kernels);
    gpi__unload_nvrtc(&nvrtc);
}

static void nvrtc_compiles_formulas_in_f32(void) {
    nvrtc_compiles(GEMMEPI_F32, GEMMEPI_F32);
}
static void nvrtc_compiles_formulas_for_16_bits(void) {
    nvrtc_compiles(GEMMEPI_F32, GEMMEPI_BF16);
}
static void nvrtc_compiles_formulas_in_f64(void) {
    nvrtc_compiles(GEMMEPI_F64, GEMMEPI_F64);
}

int main(void) {
    RUN(nvrtc_compiles_formulas_in_f32);
    RUN(nvrtc_compiles_formulas_for_16_bits);
    RUN(nvrtc_compiles_formulas_in_f64);
    return test_finish();
}
