/* The rows of grouped products, BF16 with weights [n, k]: against a loop of cuBLASLt's best product of each group, whose sizes the host knows, in one
   CUDA graph; with SWIGLU against the same grouped product without; with a formula that writes an output p next to D against the product that
   makes p, and a pass from p to D. Part of main.c. */
#include "bench.h"
#include "lt.h"

enum { GROUPED_MOST = 64, GROUPED_CAPTURE_RELAXED = 2 };

typedef struct grouped_form {
    int groups, m, n, k;
    int is_zipf; /* group i has a share of the rows like 1 / (i + 1); else all have as many */
    gemmepi_epilogue epilogue;
    double bound;
    const char *pass; /* a formula from p to d; NULL: none */
    int halves;       /* of p, which d has one of */
} grouped_form;

#define GROUPED_SWIGLU (GEMMEPI_SILU | GEMMEPI_GATED)

static const grouped_form grouped_forms[] = {
    {8, 16384, 4096, 7168, 0, GEMMEPI_NONE, 1, NULL, 1},
    {8, 16384, 4096, 7168, 1, GEMMEPI_NONE, 1, NULL, 1},
    {8, 8192, 7168, 2048, 0, GEMMEPI_NONE, 1, NULL, 1},
    {64, 16384, 4096, 2048, 0, GEMMEPI_NONE, 1, NULL, 1},
    {64, 16384, 4096, 2048, 1, GEMMEPI_NONE, 1, NULL, 1},
    {8, 16384, 4096, 7168, 1, GROUPED_SWIGLU, 1.05, NULL, 1},
    {64, 16384, 4096, 2048, 0, GROUPED_SWIGLU, 1.05, NULL, 1},
    {8, 8192, 4096, 4096, 0, GEMMEPI_NONE, 1, "d = gelu_tanh(p)", 1},
    {8, 8192, 8192, 4096, 1, GEMMEPI_NONE, 1, "d = silu(left(p)) * right(p)", 2},
};

typedef struct grouped_work {
    const grouped_form *form;
    gemmepi_plan *plan, *bare, *pass;
    int32_t ends[GROUPED_MOST];
    char *a, *b, *d, *p, *device_ends, *space;
    const driver *driver;
    void *executable; /* of the loop */
    lt lt;
    lt_product products[GROUPED_MOST];
    int like[GROUPED_MOST]; /* the first group of as many rows */
    int tried;
} grouped_work;

/* >>sizes */

static void grouped_lay_out(grouped_work *w, const grouped_form *f, char *memory) {
    double sum = 0, all = 0;
    int i;
    memset(w, 0, sizeof *w);
    w->form = f;
    for (i = 0; i < f->groups; i++)
        all += 1.0 / (i + 1);
    for (i = 0; i < f->groups; i++) {
        sum += 1.0 / (i + 1);
        w->ends[i] = f->is_zipf ? (int32_t)(f->m * (sum / all)) : f->m / f->groups * (i + 1);
    }
    w->ends[f->groups - 1] = f->m;
    w->a = memory;
    w->b = w->a + bench_unit((size_t)f->m * (size_t)f->k * 2);
    w->d = w->b + bench_unit((size_t)f->groups * (size_t)f->n * (size_t)f->k * 2);
    w->p = w->d + bench_unit((size_t)f->m * (size_t)f->n * 2);
    w->device_ends = w->p + (f->pass ? bench_unit((size_t)f->m * (size_t)f->n * 2) : 0);
    w->space = w->device_ends + bench_unit(sizeof w->ends);
}

static size_t grouped_memory(const bench_row *row, size_t size) {
    static char first[1];
    grouped_work w;
    (void)size;
    grouped_lay_out(&w, row->recipe, first);
    return (size_t)(w.space - first) + LT_WORKSPACE;
}

static int grouped_first(const grouped_work *w, int group) {
    return group ? w->ends[group - 1] : 0;
}

static int grouped_rows_of(const grouped_work *w, int group) {
    return w->ends[group] - grouped_first(w, group);
}

/* >>runs */

static int grouped_run_plan(bench *b, const grouped_work *w, const gemmepi_plan *plan, void *d) {
    gemmepi_grouped_args args;
    void *p = w->p;
    memset(&args, 0, sizeof args);
    args.product.a = w->a, args.product.b = w->b, args.product.d = d;
    args.product.operands = w->pass && plan == w->plan ? &p : NULL;
    args.ends = (const int32_t *)(const void *)w->device_ends;
    return bench_ok(b, gemmepi_run_grouped(plan, &args, b->stream));
}

static int grouped_run(bench *b, void *user) {
    grouped_work *w = user;
    return grouped_run_plan(b, w, w->plan, w->d);
}

static int grouped_run_bare(bench *b, void *user) {
    grouped_work *w = user;
    return grouped_run_plan(b, w, w->bare, w->d);
}

static int grouped_run_pass(bench *b, void *user) {
    grouped_work *w = user;
    gemmepi_elementwise_args args;
    void *p = w->p;
    memset(&args, 0, sizeof args);
    args.y = w->d, args.operands = &p;
    return grouped_run_plan(b, w, w->bare, w->p) &&
           bench_ok(b, gemmepi_run_elementwise(w->pass, &args, b->stream));
}

static int grouped_run_group(bench *b, grouped_work *w, int group) {
    const grouped_form *f = w->form;
    lt_pointers pointers = {NULL, NULL, NULL, NULL, NULL, NULL};
    int64_t first = grouped_first(w, group);
    pointers.a = w->b + (int64_t)group * f->n * f->k * 2;
    pointers.b = w->a + first * f->k * 2;
    pointers.d = w->d + first * f->n * 2;
    return lt_run(b, &w->lt, &w->products[w->like[group]], &pointers);
}

static int grouped_run_tried(bench *b, void *user) {
    grouped_work *w = user;
    return grouped_run_group(b, w, w->tried);
}

static int grouped_run_loop(bench *b, void *user) {
    grouped_work *w = user;
    return bench_did(b, b->driver.graph_launch(w->executable, b->stream), "cuGraphLaunch");
}

/* >>cuBLASLt's loop */

static int grouped_choose(bench *b, grouped_work *w, int group) {
    lt_form like;
    w->like[group] = 0;
    while (grouped_rows_of(w, w->like[group]) != grouped_rows_of(w, group))
        w->like[group]++;
    if (w->like[group] < group || !grouped_rows_of(w, group))
        return 1;
    memset(&like, 0, sizeof like);
    like.rows = w->form->n, like.columns = grouped_rows_of(w, group), like.inner = w->form->k;
    like.a_transposed = 1;
    like.type = LT_REAL_16BF;
    w->tried = group;
    return lt_describe(b, &w->lt, &w->products[group], &like) &&
           lt_choose_bare(b, &w->lt, &w->products[group], grouped_run_tried, w);
}

/* The capture is ended whatever happens. */
static int grouped_capture(bench *b, grouped_work *w) {
    void *graph = NULL;
    int ran = 1, ended, i;
    if (!bench_did(b, b->driver.begin_capture(b->stream, GROUPED_CAPTURE_RELAXED), "cuStreamBeginCapture"))
        return 0;
    for (i = 0; i < w->form->groups && ran; i++)
        ran = !grouped_rows_of(w, i) || grouped_run_group(b, w, i);
    ended = b->driver.end_capture(b->stream, &graph);
    ran = ran && bench_did(b, ended, "cuStreamEndCapture") &&
          bench_did(b, b->driver.instantiate(&w->executable, graph, 0), "cuGraphInstantiateWithFlags");
    if (graph)
        b->driver.graph_destroy(graph);
    return ran;
}

static int grouped_open_loop(bench *b, grouped_work *w) {
    int i;
    if (!lt_open(b, &w->lt))
        return 0;
    w->lt.workspace = w->space;
    for (i = 0; i < w->form->groups; i++)
        if (!grouped_choose(b, w, i))
            return 0;
    return grouped_capture(b, w);
}

/* >>a row */

static int grouped_fill(bench *b, const grouped_work *w) {
    const grouped_form *f = w->form;
    return bench_fill(b, w->a, GEMMEPI_BF16, (size_t)f->m * (size_t)f->k * 2, 0) &&
           bench_fill(b, w->b, GEMMEPI_BF16, (size_t)f->groups * (size_t)f->n * (size_t)f->k * 2, 1) &&
           bench_ok(b, gemmepi_upload(b->context, w->device_ends, w->ends, sizeof w->ends, b->stream));
}

/* The last element is written. */
static int grouped_check(bench *b, void *user) {
    grouped_work *w = user;
    size_t columns = (size_t)(w->form->epilogue || w->form->halves > 1 ? w->form->n / 2 : w->form->n),
           last = 2 * ((size_t)w->form->m * columns - 1);
    unsigned char element[2];
    if (!bench_set_bytes(b, w->d, 0xff, last + 2) || !grouped_run(b, w) ||
        !bench_ok(b, gemmepi_download(b->context, element, w->d + last, 2, b->stream)))
        return 0;
    return (element[0] == 0xff && element[1] == 0xff) ? bench_fail(b, "the last element was not written") : 1;
}

/* ours: with the epilogue or formula. */
static int grouped_plan(bench *b, const grouped_form *f, int ours, gemmepi_plan **plan) {
    gemmepi_grouped_desc desc;
    gemmepi_operand p;
    char formula[64];
    memset(&desc, 0, sizeof desc);
    memset(&p, 0, sizeof p);
    if (ours && f->pass) {
        snprintf(formula, sizeof formula, "p = v; %s", f->pass);
        p.name = "p", p.kind = GEMMEPI_FULL, p.output = 1;
        desc.product.formula = formula, desc.product.operands = &p, desc.product.operand_count = 1;
    }
    desc.product.m = f->m, desc.product.n = f->n, desc.product.k = f->k;
    desc.product.a.dtype = GEMMEPI_BF16;
    desc.product.b.transposed = 1;
    desc.product.epilogue = ours ? f->epilogue : GEMMEPI_NONE;
    desc.groups = f->groups;
    return bench_ok(b, gemmepi_plan_grouped(b->context, &desc, plan)) &&
           bench_ok(b, gemmepi_plan_prepare(*plan, b->stream));
}

/* p -> d */
static int grouped_plan_pass(bench *b, const grouped_form *f, gemmepi_plan **plan) {
    int64_t of_p[2], of_d[2];
    gemmepi_elementwise_desc desc;
    gemmepi_tensor p, d;
    gemmepi_operand operand;
    memset(&desc, 0, sizeof desc), memset(&p, 0, sizeof p), memset(&operand, 0, sizeof operand);
    of_p[0] = of_d[0] = f->m, of_p[1] = f->n, of_d[1] = f->n / f->halves;
    p.dtype = GEMMEPI_BF16, p.rank = 2, p.shape = of_p;
    d = p, d.shape = of_d;
    operand.name = "p", operand.kind = GEMMEPI_FULL, operand.tensor = &p;
    desc.formula = f->pass, desc.operands = &operand, desc.operand_count = 1, desc.y = &d;
    return bench_ok(b, gemmepi_plan_elementwise(b->context, &desc, plan)) &&
           bench_ok(b, gemmepi_plan_prepare(*plan, b->stream));
}

static void grouped_close(bench_job *job) {
    grouped_work *w = job->user;
    int i;
    for (i = 0; i < GROUPED_MOST; i++)
        lt_forget(&w->lt, &w->products[i]);
    lt_close(&w->lt);
    if (w->executable)
        w->driver->executable_destroy(w->executable);
    gemmepi_plan_destroy(w->plan);
    gemmepi_plan_destroy(w->bare);
    gemmepi_plan_destroy(w->pass);
    free(w);
}

static int grouped_open(bench *b, const bench_row *row, bench_job *job) {
    const grouped_form *f = row->recipe;
    grouped_work *w = malloc(sizeof *w);
    gemmepi_plan_details details;
    double began = bench_seconds();
    int planned;
    memset(&details, 0, sizeof details);
    if (!w)
        return bench_fail(b, "out of memory");
    grouped_lay_out(w, f, b->memory);
    w->driver = &b->driver;
    job->user = w;
    job->calls[BENCH_OURS] = grouped_run;
    job->calls[BENCH_OTHER] = f->pass ? grouped_run_pass : f->epilogue ? grouped_run_bare : grouped_run_loop;
    job->check = grouped_check;
    planned =
        grouped_plan(b, f, 1, &w->plan) && ((!f->epilogue && !f->pass) || grouped_plan(b, f, 0, &w->bare)) &&
        (!f->pass || grouped_plan_pass(b, f, &w->pass)) && bench_ok(b, gemmepi_plan_info(w->plan, &details));
    b->plan_seconds += bench_seconds() - began;
    job->launches = planned ? details.launches : 0;
    if (planned && grouped_fill(b, w) && (w->bare || grouped_open_loop(b, w)))
        return 1;
    grouped_close(job);
    return 0;
}

static void grouped_rows(bench_list *list) {
    int i;
    for (i = 0; i < COUNT(grouped_forms) && list->count < BENCH_MOST_ROWS; i++) {
        const grouped_form *f = grouped_forms + i;
        bench_row *row = list->rows + list->count++;
        memset(row, 0, sizeof *row);
        row->kind = BENCH_ADDED;
        row->group = "grouped";
        snprintf(row->name, sizeof row->name, "grouped%s by %d %s %d x %d x %d",
                 f->epilogue     ? " SWIGLU"
                 : !f->pass      ? ""
                 : f->halves > 1 ? " SWIGLU and p"
                                 : " GELU and p",
                 f->groups, f->is_zipf ? "Zipf" : "even", f->m, f->n, f->k);
        snprintf(row->dtype, sizeof row->dtype, "BF16");
        row->bound = f->bound;
        row->recipe = f;
        row->memory = grouped_memory;
        row->open = grouped_open;
        row->close = grouped_close;
    }
}
