/* invariant [small] [all] [CASE]: BATCH_INVARIANT, of one case or of each. Rows of D and AUX have the bits that they have among all rows,
   however few are multiplied and wherever they stand; with `all` in every shape that the flag admits, too; and wherever tensors lie, in
   plans and calls. small: sizes for the emulator and the host. On the host and, if there is one, on the GPU that GEMMEPI_TEST_DEVICE
   numbers. */
#include "../products/problem.h"

static test_device *here;
static int is_small, takes_all, only = -1;

/* >>products */

typedef struct product_case {
    gemmepi_dtype dtype, d;
    gemmepi_compute compute;
    gemmepi_epilogue epilogue;
    int layout; /* bits: 1 A is stored transposed, 2 B */
    int64_t n, k;
    int has_c;
} product_case;

#define TF32 GEMMEPI_COMPUTE_TF32
static const product_case cases[] = {
    {GEMMEPI_BF16, 0, 0, GEMMEPI_BIAS, 2, 2048, 512, 0},
    {GEMMEPI_BF16, 0, 0, GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD, 0, 2048, 512, 0},
    {GEMMEPI_F32, 0, TF32, GEMMEPI_SILU | GEMMEPI_BIAS, 2, 512, 512, 0},
    {GEMMEPI_F32, 0, 0, GEMMEPI_GELU_TANH | GEMMEPI_BIAS, 2, 256, 512, 0},
    {GEMMEPI_BF16, 0, 0, GEMMEPI_SILU | GEMMEPI_BIAS, 1, 512, 512, 0},
    {GEMMEPI_E4M3, GEMMEPI_BF16, 0, GEMMEPI_BIAS, 2, 256, 256, 0},
    {GEMMEPI_BF16, 0, 0, GEMMEPI_SILU | GEMMEPI_BIAS, 2, 2048, 2560, 0},
    {GEMMEPI_BF16, 0, 0, GEMMEPI_SILU | GEMMEPI_BIAS, 0, 256, 8192, 0},
    {GEMMEPI_BF16, 0, 0, GEMMEPI_GELU_TANH | GEMMEPI_BIAS | GEMMEPI_AUX, 2, 2048, 512, 0},
    {GEMMEPI_F16, 0, 0, GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_AUX, 2, 1024, 512, 0},
    {GEMMEPI_BF16, 0, 0, GEMMEPI_GELU_ERF | GEMMEPI_BIAS, 2, 2048, 768, 0},
    {GEMMEPI_BF16, 0, 0, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS, 2, 2048, 512, 0},
    {GEMMEPI_F16, 0, 0, GEMMEPI_BIAS | GEMMEPI_RESIDUAL, 0, 1024, 512, 0},
    {GEMMEPI_F16, 0, 0, GEMMEPI_SILU | GEMMEPI_BACKWARD, 2, 1024, 512, 0},
    {GEMMEPI_BF16, 0, 0, GEMMEPI_GELU_ERF | GEMMEPI_BACKWARD | GEMMEPI_BGRAD, 0, 1024, 512, 0},
    {GEMMEPI_BF16, 0, 0, GEMMEPI_RELU | GEMMEPI_BACKWARD, 0, 1024, 512, 0},
    {GEMMEPI_BF16, 0, 0, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD, 2, 1024, 512, 0},
    {GEMMEPI_BF16, 0, 0, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BIAS, 2,
     2048, 512, 0},
    {GEMMEPI_BF16, GEMMEPI_F32, 0, GEMMEPI_NONE, 2, 1024, 512, 0},
    {GEMMEPI_BF16, 0, 0, GEMMEPI_BIAS, 2, 1024, 512, 1},
    {GEMMEPI_F16, 0, 0, GEMMEPI_SILU | GEMMEPI_BIAS, 0, 77, 129, 0},
    {GEMMEPI_F32, 0, 0, GEMMEPI_SILU | GEMMEPI_GATED, 0, 512, 2048, 0},
    {GEMMEPI_F32, GEMMEPI_BF16, TF32, GEMMEPI_RELU | GEMMEPI_BIAS, 0, 1024, 2048, 0},
    {GEMMEPI_F64, 0, 0, GEMMEPI_SILU | GEMMEPI_BIAS, 0, 64, 100, 0},
    {GEMMEPI_I8, GEMMEPI_BF16, 0, GEMMEPI_GELU_TANH | GEMMEPI_BIAS | GEMMEPI_AUX, 2, 256, 512, 0},
    {GEMMEPI_I8, GEMMEPI_F32, 0, GEMMEPI_SILU | GEMMEPI_GATED, 0, 96, 80, 0},
    {GEMMEPI_E4M3, GEMMEPI_E4M3, 0, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS, 2, 256, 208, 0},
    {GEMMEPI_E5M2, GEMMEPI_BF16, 0, GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_RESIDUAL, 0, 128, 192, 0},
    {GEMMEPI_F64, 0, 0, GEMMEPI_GELU_ERF | GEMMEPI_BACKWARD, 2, 72, 130, 1},
    {GEMMEPI_F32, 0, TF32, GEMMEPI_GELU_ERF | GEMMEPI_BIAS | GEMMEPI_AUX, 2, 200, 132, 0},
};
enum { CASES = GPI__COUNT(cases) };

static const int some_rows[] = {1, 2, 7, 64, 65, 128, 300, 1024, 4096};

enum { SLICES = 15 };
static int slice; /* one of so many of the cases, by itself: a GPU compiles kernels for each */

static int is_of_slice(int which) {
    return only < 0 ? which % SLICES == slice : only == which && slice == 0;
}

static int64_t all_rows(void) {
    return is_small ? 150 : 4096;
}

static product_case case_of(int which) {
    product_case c = cases[which];
    if (is_small) {
        c.n = c.n > 160 ? 160 : c.n;
        c.k = c.k > 96 ? 96 : c.k;
    }
    return c;
}

/* Where the tensors of a run lie. */
typedef struct places {
    int operand; /* the one that does not lie as others; -1: all */
    int offset;  /* elements that it begins behind a multiple of 256 bytes (of RELU's mask: bytes) */
    int padding; /* elements between its lines (of the mask none) */
    int is_plan; /* else a call, which looks at its pointers */
} places;
static const places as_they_are = {-1, 0, 0, 1};

static int pads(const places *where, int operand) {
    return where->operand < 0 || where->operand == operand ? where->padding : 0;
}

static void pad_lines(const places *where, gemmepi_matmul_desc *desc) {
    gemmepi_matrix *const matrices[] = {&desc->a, &desc->b, &desc->c, &desc->d, &desc->aux, &desc->residual};
    int64_t along = gpi__result_columns(desc->epilogue, desc->n);
    int64_t aux = gpi__aux_columns(desc->epilogue, desc->n);
    const int64_t lengths[] = {desc->a.transposed ? desc->m : desc->k,
                               desc->b.transposed ? desc->k : desc->n,
                               desc->n,
                               along,
                               aux,
                               along};
    int i;
    for (i = GPI__A; i <= GPI__RESIDUAL; i++)
        if (pads(where, i) && !(i == GPI__AUX && gpi__aux_is_mask(desc->epilogue)))
            matrices[i]->ld = lengths[i] + where->padding;
}

static gemmepi_matmul_desc desc_of(const product_case *c, int64_t m, const places *where) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = m, desc.n = c->n, desc.k = c->k;
    desc.a.dtype = c->dtype, desc.d.dtype = c->d;
    desc.compute = c->compute;
    desc.a.transposed = c->layout & 1, desc.b.transposed = c->layout >> 1;
    desc.epilogue = c->epilogue;
    desc.flags = GEMMEPI_BATCH_INVARIANT;
    desc.alignment = !where->is_plan ? 0 : where->offset ? 1 : c->k % 8 || c->n % 8 ? 2 : 0;
    pad_lines(where, &desc);
    return desc;
}

static gpi__problem problem_of(const product_case *c, int64_t m, const places *where) {
    gpi__problem problem;
    gemmepi_matmul_desc desc = desc_of(c, m, where);
    CHECK(gpi__normalise(&desc, 16, &problem) == GEMMEPI_OK, "%s", gemmepi_last_error());
    return problem;
}

/* On all cores. */
static void compile_ahead(void) {
    static gemmepi_matmul_desc descs[CASES * GPI__COUNT(some_rows)];
    static gemmepi_any_desc problems[CASES * GPI__COUNT(some_rows)];
    size_t count = 0, i;
    int which;
    for (which = 0; which < CASES; which++)
        for (i = 0; i < GPI__COUNT(some_rows) && is_of_slice(which); i++) {
            descs[count] = desc_of(&cases[which], some_rows[i], &as_they_are);
            problems[count].matmul = &descs[count];
            count++;
        }
    CHECK(gemmepi_precompile(here->context, problems, count, 0, NULL, NULL) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
}

/* >>their tensors: those of all rows on the host, of which a run has a window */

typedef struct tensors {
    char *at[GPI__OPERANDS];
} tensors;

static size_t line_bytes(const gpi__view *view) {
    return (size_t)((view->ld * view->bits + 7) / 8);
}

/* Whether it has a line of each row of the product. */
static int has_rows(int operand) {
    return operand != GPI__B && operand != GPI__BIAS && operand != GPI__BIAS_GRAD;
}

/* Of aux some numbers lie far out, in a few rows alone. */
static double number_at(int operand, int64_t row, int64_t i) {
    uint64_t drawn = random_hash((uint64_t)(operand * 1000003 + i));
    double number = (double)(drawn >> 11) / 4503599627370496.0 - 1;
    return operand == GPI__AUX ? number * (row % 29 == 5 ? 60 : 3) : operand == GPI__B ? number / 4 : number;
}

static void fill_view(const gpi__view *view, int operand, char *to) {
    double factor = view->dtype == GEMMEPI_I8 ? 100 : 1;
    int64_t line, i;
    for (line = 0; line < view->lines; line++)
        for (i = 0; i < view->length; i++) {
            double number = factor * number_at(operand, line, line * view->length + i);
            int64_t at = line * view->ld + i;
            if (view->bits > 1)
                gpi__store_run(view->dtype, to, at, 1, &number);
            else if (number > 0)
                to[at / 8] = (char)(to[at / 8] | 1 << at % 8);
        }
}

/* A as it lies untransposed, whatever the case says. */
static tensors all_tensors(const product_case *c) {
    product_case straight = *c;
    gpi__problem problem;
    tensors t;
    int i;
    straight.layout &= 2;
    problem = problem_of(&straight, all_rows(), &as_they_are);
    memset(&t, 0, sizeof t);
    for (i = 0; i < problem.count; i++) {
        int operand = problem.list[i];
        const gpi__view *view = &problem.views[operand];
        t.at[operand] = (char *)calloc((size_t)view->lines + 1, line_bytes(view));
        if (!view->written)
            fill_view(view, operand, t.at[operand]);
    }
    return t;
}

static void free_tensors(tensors *t) {
    int i;
    for (i = 0; i < GPI__OPERANDS; i++)
        free(t->at[i]);
}

/* >>a run of a window */

/* The line of a view, of the window whose rows are from `first` on in dense ones; A may lie transposed. */
static void copy_line(const gpi__problem *problem, int operand, const char *rows, int64_t first, int64_t line,
                      char *to) {
    const gpi__view *view = &problem->views[operand];
    size_t element = (size_t)view->bits / 8, dense = (size_t)(view->length * view->bits / 8);
    int64_t row;
    if (view->bits == 1) {
        memcpy(to, rows + (size_t)(first + line) * line_bytes(view), line_bytes(view));
        return;
    }
    if (operand != GPI__A || !view->transposed) {
        memcpy(to, rows + (size_t)((has_rows(operand) ? first : 0) + line) * dense, dense);
        return;
    }
    for (row = 0; row < problem->m; row++)
        memcpy(to + (size_t)row * element, rows + (size_t)((first + row) * problem->k + line) * element,
               element);
}

/* Bytes of a window's tensor, with what stands ahead of it. */
static size_t ahead_of(const gpi__view *view, const places *where, int operand) {
    size_t element = view->bits > 8 ? (size_t)view->bits / 8 : 1;
    return where->operand < 0 || where->operand == operand ? (size_t)where->offset * element : 0;
}
static size_t room_for(const gpi__view *view, const places *where, int operand) {
    return ((size_t)view->bytes + ahead_of(view, where, operand) + 511) / 256 * 256;
}

/* A window's tensors one behind the other on the device; what is between their lines is NaN, or no number of theirs. */
static char *upload(const gpi__problem *problem, const tensors *all, int64_t first, const places *where,
                    char *at[]) {
    size_t size = 0, done = 0;
    char *host;
    void *device = NULL;
    int64_t line;
    int i;
    for (i = 0; i < problem->count; i++)
        size += room_for(&problem->views[problem->list[i]], where, problem->list[i]);
    host = (char *)malloc(size);
    memset(host, 0xff, size);
    CHECK(gemmepi_alloc(here->context, size, &device) == GEMMEPI_OK, "%s", gemmepi_last_error());
    for (i = 0; i < problem->count; i++) {
        int operand = problem->list[i];
        const gpi__view *view = &problem->views[operand];
        size_t begin = done + ahead_of(view, where, operand);
        at[operand] = (char *)device + begin;
        for (line = 0; line < view->lines && !view->written; line++)
            copy_line(problem, operand, all->at[operand], first, line,
                      host + begin + (size_t)line * line_bytes(view));
        done += room_for(view, where, operand);
    }
    CHECK(gemmepi_upload(here->context, device, host, size, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    free(host);
    return (char *)device;
}

/* An output as it would lie dense. */
static char *download(const gpi__view *view, const char *from) {
    size_t dense = view->bits == 1 ? line_bytes(view) : (size_t)(view->length * view->bits / 8);
    char *whole = (char *)calloc(1, (size_t)view->bytes + 1),
         *out = (char *)calloc((size_t)view->lines + 1, dense);
    int64_t line;
    CHECK(gemmepi_download(here->context, whole, from, (size_t)view->bytes, NULL) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    for (line = 0; line < view->lines; line++)
        memcpy(out + (size_t)line * dense, whole + (size_t)line * line_bytes(view),
               view->bits == 1 ? (size_t)(view->length + 7) / 8 : dense);
    free(whole);
    return out;
}

static gemmepi_matmul_args args_of(const product_case *c, char *const at[]) {
    static const double alpha = 0.7, beta = 1.3;
    gemmepi_matmul_args args;
    memset(&args, 0, sizeof args);
    args.a = at[GPI__A], args.b = at[GPI__B], args.d = at[GPI__D];
    args.bias = at[GPI__BIAS], args.aux = at[GPI__AUX];
    args.residual = at[GPI__RESIDUAL], args.bias_grad = at[GPI__BIAS_GRAD];
    if (c->has_c)
        args.c = at[GPI__C], args.alpha = &alpha, args.beta = &beta;
    return args;
}

/* The plan that is chosen or, on a GPU, that of a candidate. */
static gemmepi_plan *plan_of(const gpi__problem *problem, const gpi__candidate *candidate) {
    gpi__matmul_plan *plan;
    gemmepi_plan *built = NULL;
    gpi__entry entry;
    gemmepi_status status;
    if (!candidate) {
        status = gpi__build_plan(here->context, problem, &built);
    } else {
        plan = gpi__new_plan(here->context, problem);
        built = &plan->base;
        CHECK(!gpi__enter_relaxed(here->context, &entry), "%s", gemmepi_last_error());
        gpi__lock(&here->context->build_lock);
        status = gpi__build_by(plan, candidate->route, candidate);
        gpi__unlock(&here->context->build_lock);
        gpi__leave_relaxed(here->context, &entry);
    }
    CHECK(!status && gemmepi_plan_prepare(built, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    return status ? NULL : built;
}

static int runs;

/* By a plan, whose kernel is named, or a call. */
static void run_product(const product_case *c, const gpi__problem *problem, const gpi__candidate *candidate,
                        const places *where, const gemmepi_matmul_args *args, char name[96]) {
    gemmepi_matmul_desc desc = desc_of(c, problem->m, where);
    gemmepi_plan *plan = where->is_plan ? plan_of(problem, candidate) : NULL;
    gemmepi_plan_details details;
    runs++;
    if (!where->is_plan) {
        CHECK(gemmepi_matmul(here->context, &desc, args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        snprintf(name, 96, "a call");
    } else if (plan) {
        CHECK(gemmepi_run_matmul(plan, args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
        snprintf(name, 96, "%s", details.kernel);
    }
    gemmepi_plan_destroy(plan);
}

/* Rows from `first` on; D and AUX as they come out to `out`, dense. name: the kernel's */
static void run_window(const product_case *c, const gpi__problem *problem, const gpi__candidate *candidate,
                       const places *where, const tensors *all, int64_t first, tensors *out, char name[96]) {
    char *at[GPI__OPERANDS] = {0}, *block = upload(problem, all, first, where, at);
    gemmepi_matmul_args args = args_of(c, at);
    int i;
    run_product(c, problem, candidate, where, &args, name);
    for (i = 0; i < problem->outputs; i++)
        out->at[problem->list[i]] = download(&problem->views[problem->list[i]], at[problem->list[i]]);
    gemmepi_free(here->context, block);
}

/* >>rows of a window are those of all */

static int64_t count_other_rows(const gpi__problem *problem, const tensors *reference, const tensors *got,
                                int64_t first) {
    static const int compared[] = {GPI__D, GPI__AUX};
    int64_t row, others = 0;
    int i;
    for (i = 0; i < 2; i++) {
        const gpi__view *view = &problem->views[compared[i]];
        size_t used = (size_t)(view->length * view->bits / 8),
               line = view->bits == 1 ? line_bytes(view) : used;
        for (row = 0; view->written && row < problem->m; row++)
            others += memcmp(reference->at[compared[i]] + (size_t)(first + row) * line,
                             got->at[compared[i]] + (size_t)row * line, used) != 0;
    }
    return others;
}

/* Of the rounding of a type, of TF32, and of short forms of activations. */
static double units_of(int dtype) {
    static const double units[] = {0,        2e-3,    1e-12,  1.0 / 512,
                                   1.0 / 64, 1.0 / 8, 1.0 / 4}; /* to E4M3 and E5M2 */
    CHECK(dtype > 0 && dtype < (int)GPI__COUNT(units), "no unit of dtype %d", dtype);
    return units[dtype];
}

/* Elements of D that are not near those of the host's arithmetic. */
static int64_t count_wrong(const product_case *c, const gpi__problem *problem, const tensors *all,
                           int64_t first, const tensors *got) {
    const gpi__view *view = &problem->views[GPI__D];
    char *places[GPI__OPERANDS] = {0}, *d = (char *)calloc((size_t)view->lines, line_bytes(view));
    char *sums = (char *)calloc(1, (size_t)problem->views[GPI__BIAS_GRAD].bytes + 1);
    char *aux = (char *)calloc(1, (size_t)problem->views[GPI__AUX].bytes + 1);
    gpi__arguments arguments;
    gpi__regions regions;
    gemmepi_matmul_args args;
    int64_t i, wrong = 0;
    int operand;
    for (operand = 0; operand < GPI__OPERANDS; operand++)
        if (all->at[operand])
            places[operand] = all->at[operand] +
                              (has_rows(operand) ? (size_t)first * line_bytes(&problem->views[operand]) : 0);
    places[GPI__D] = d;
    if (problem->views[GPI__BIAS_GRAD].written)
        places[GPI__BIAS_GRAD] = sums;
    if (problem->views[GPI__AUX].written)
        places[GPI__AUX] = aux;
    args = args_of(c, places);
    CHECK(gpi__convert_arguments(problem, &args, NULL, &arguments, &regions) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    gpi__host_flags(problem, &arguments, NULL);
    for (i = 0; i < view->bytes * 8 / view->bits; i++) {
        double x, y;
        gpi__load_run(view->dtype, got->at[GPI__D], i, 1, 1, &x);
        gpi__load_run(view->dtype, d, i, 1, 1, &y);
        wrong += !(fabs(x - y) <= units_of(view->dtype) * (fabs(y) + 4));
    }
    free(d), free(sums), free(aux);
    return wrong;
}

static void window_holds(int which, int64_t m, const gpi__candidate *candidate, const places *where,
                         const tensors *all, const tensors *reference) {
    product_case c = case_of(which);
    gpi__problem problem = problem_of(&c, m, where);
    int64_t first = m * 37 % (all_rows() - m + 1), others;
    char name[96] = "none";
    tensors got;
    memset(&got, 0, sizeof got);
    run_window(&c, &problem, candidate, where, all, first, &got, name);
    others = count_other_rows(&problem, reference, &got, first);
    CHECK(others == 0,
          "case %d, m %lld from row %lld by %s, shape %d, operand %d at %d, lines %d apart: %lld rows differ",
          which, (long long)m, (long long)first, name, candidate ? candidate->shape : -1, where->operand,
          where->offset, where->padding, (long long)others);
    if (m == 7 && where == &as_they_are && !problem.views[GPI__A].transposed) {
        others = count_wrong(&c, &problem, all, first, &got);
        CHECK(others == 0, "case %d by %s: %lld elements are wrong", which, name, (long long)others);
    }
    free_tensors(&got);
}

static int has_shape(const gpi__problem *problem, const gpi__candidate *candidate) {
    if (gpi__engines[candidate->engine] == &gpi__sm90_engine)
        return candidate->shape < (int)GPI__COUNT(gpi__sm90_shapes) &&
               gpi__shape_accepts(problem, &gpi__sm90_shapes[candidate->shape], candidate->unit_alpha);
    return candidate->shape < (int)GPI__COUNT(gpi__sm80_shapes) &&
           gpi__sm80_shape_accepts(problem, &gpi__sm80_shapes[candidate->shape], here->context->arch);
}

/* In each shape of the kernel for it. */
static void shapes_hold(int which, const tensors *all, const tensors *reference) {
    product_case c = case_of(which);
    int64_t m = is_small ? 130 : 300;
    gpi__problem problem = problem_of(&c, m, &as_they_are);
    gpi__candidates candidates;
    gpi__candidate candidate;
    const gpi__candidate *least;
    memset(&candidates, 0, sizeof candidates);
    gpi__enumerate(here->context, &problem, !c.has_c, &candidates);
    least = gpi__least(&candidates);
    if (least->route != GEMMEPI_ROUTE_FUSED)
        return;
    candidate = *least;
    for (candidate.shape = 0; candidate.shape < 32; candidate.shape++)
        if (has_shape(&problem, &candidate))
            window_holds(which, m, &candidate, &as_they_are, all, reference);
}

/* Each operand by itself and all at once begin, and have lines, so many elements further on than at multiples of 256 bytes. */
static void places_hold(int which, const tensors *all, const tensors *reference) {
    product_case c = case_of(which);
    gpi__problem problem = problem_of(&c, 7, &as_they_are);
    places where;
    int i;
    for (where.offset = 1; where.offset <= 16; where.offset += is_small ? 7 : 1)
        for (i = -1; i < problem.count; i++) {
            where.operand = i < 0 ? -1 : problem.list[i];
            where.padding = where.offset % 2 ? where.offset / 2 : 0;
            where.is_plan = (where.offset + i) % 2;
            if (i < 0 || !is_small || (where.offset + i) % 3 == 0)
                window_holds(which, i % 2 ? 7 : 65, NULL, &where, all, reference);
        }
}

static void case_holds(int which) {
    product_case c = case_of(which);
    tensors all = all_tensors(&c), reference;
    gpi__problem problem = problem_of(&c, all_rows(), &as_they_are);
    char name[96] = "none";
    size_t i;
    memset(&reference, 0, sizeof reference);
    run_window(&c, &problem, NULL, &as_they_are, &all, 0, &reference, name);
    for (i = 0; i < GPI__COUNT(some_rows); i++)
        if (some_rows[i] < all_rows() && (!is_small || some_rows[i] < 128))
            window_holds(which, some_rows[i], NULL, &as_they_are, &all, &reference);
    places_hold(which, &all, &reference);
    if (takes_all && !here->is_host)
        shapes_hold(which, &all, &reference);
    free_tensors(&all);
    free_tensors(&reference);
}

static void rows_have_the_same_bits_whatever_m_is(void) {
    int which, keeps_small = is_small;
    is_small |= here->is_host;
    if (!is_small)
        compile_ahead();
    for (which = 0; which < CASES; which++)
        if (is_of_slice(which))
            case_holds(which);
    is_small = keeps_small;
}

int main(int argc, char **argv) {
    test_device devices[2];
    int count = test_devices_open(devices), i;
    for (i = 1; i < argc; i++) {
        is_small |= strcmp(argv[i], "small") == 0;
        takes_all |= strcmp(argv[i], "all") == 0;
        if (argv[i][0] >= '0' && argv[i][0] <= '9')
            only = atoi(argv[i]);
    }
    for (i = 0; i < count; i++) {
        here = &devices[i];
        runs = 0;
        for (slice = 0; slice < SLICES; slice++)
            RUN(rows_have_the_same_bits_whatever_m_is);
        printf("   %s: %d runs\n", here->name, runs);
        test_device_close(here);
    }
    return test_finish();
}
