/* Races of the rows of formulas.c in the modes of race.h: ours, cuBLASLt's bare product, and a copy that reads and writes as many bytes as
   all tensors have. What is wanted is the larger of the row's bound of the bare product and the copy. Part of main.c. */

enum { FORMULA_NAME = 64 };

static const char *formula_name(const formula_form *f, char *name) {
    snprintf(name, FORMULA_NAME, "%s %d x %d x %d", f->name, (int)f->m, (int)f->n, (int)f->k);
    return name;
}

/* Bytes of all tensors that a run of ours reads and writes. */
static size_t formula_moves(const formula_work *w) {
    size_t bytes = 0;
    int i;
    for (i = 0; i < FM_COUNT; i++)
        bytes += i == FM_BARE ? 0 : w->sizes[i];
    return bytes;
}

/* The copy's target is behind the sets and the workspace. */
static size_t formula_race_memory(const formula_form *f) {
    formula_work w;
    formula_lay_out(&w, f);
    return w.set * (size_t)w.sets + LT_WORKSPACE + formula_moves(&w) / 2;
}

static int formula_copy_set(bench *b, const formula_work *w, int set) {
    return bench_copy(b, w->memory + w->set * (size_t)w->sets + LT_WORKSPACE,
                      w->memory + w->set * (size_t)set, bench_smaller(formula_moves(w) / 2, w->set));
}

static int formula_race_call(bench *b, void *user, int series, int set) {
    formula_work *w = user;
    return series == RACE_OURS   ? formula_run_set(b, w, set)
           : series == RACE_BARE ? formula_run_bare_set(b, w, set)
                                 : formula_copy_set(b, w, set);
}

static double formula_middle(const race *r, int series) {
    return report_quarter(r->times[series], r->rounds).middle;
}

static void formula_print_mode(const formula_form *f, const race *r, int mode) {
    double ours = formula_middle(r, RACE_OURS), bare = formula_middle(r, RACE_BARE),
           copy = formula_middle(r, RACE_PASS), wanted_time = f->bound * bare > copy ? f->bound * bare : copy;
    printf("  %s %.1f us, bare %.1f, copy %.1f: %.2f", race_mode_names[mode], ours, bare, copy, ours / bare);
    if (f->bound > 0)
        printf(" of at most %.2f%s", wanted_time / bare, ours > wanted_time ? " !" : "");
}

/* All modes, then the check, which all of them bear. */
static int formula_race(bench *b, formula_work *w, bench_job *job, const race_tools *tools,
                        const random_wishes *wishes) {
    static race r;
    int mode;
    memset(&r, 0, sizeof r);
    r.tools = tools, r.call = formula_race_call, r.user = w, r.sets = w->sets;
    r.scale = wishes->scale, r.most_rounds = BENCH_MOST_ROUNDS;
    r.has[RACE_OURS] = r.has[RACE_BARE] = r.has[RACE_PASS] = 1;
    if (!race_try(b, &r, RACE_OURS) || !race_try(b, &r, RACE_BARE) || !race_try(b, &r, RACE_PASS))
        return 0;
    for (mode = 0; mode < RACE_MODES; mode++) {
        if (!wishes->modes[mode])
            continue;
        if (!race_in_mode(b, &r, mode))
            return 0;
        formula_print_mode(w->form, &r, mode);
    }
    return job->check(b, w);
}

/* Once a plan has loaded NVRTC. */
static int formula_open_tools(bench *b, race_tools *tools) {
    nvrtc compiler;
    compiler.library = NULL;
    return tools->space || (nvrtc_open(b, &compiler) && race_tools_open(b, &compiler, tools));
}

static int formula_race_row(bench *b, const formula_form *f, race_tools *tools, const random_wishes *wishes) {
    bench_row row;
    bench_job job;
    char name[FORMULA_NAME];
    int raced;
    memset(&row, 0, sizeof row);
    memset(&job, 0, sizeof job);
    row.recipe = f;
    printf("%-36s", formula_name(f, name));
    raced = formula_open(b, &row, &job);
    if (raced) {
        raced = formula_open_tools(b, tools) && formula_race(b, job.user, &job, tools, wishes);
        formula_close(&job);
    }
    printf(raced ? "\n" : "  failed: %s\n", b->fault);
    fflush(stdout);
    return raced;
}

/* Returns the program's status. */
static int formula_race_all(bench *b, const random_wishes *wishes, const int *chosen, int count) {
    race_tools tools = {NULL, NULL, NULL, NULL};
    size_t most = 0;
    int i, failed = 0;
    for (i = 0; i < count; i++) {
        size_t memory = formula_race_memory(formula_forms + chosen[i]);
        most = memory > most ? memory : most;
    }
    if (!bench_open(b, most) || !bench_warm_up(b, most)) {
        fprintf(stderr, "%s\n", b->fault);
        return 1;
    }
    for (i = 0; i < count; i++)
        failed += !formula_race_row(b, formula_forms + chosen[i], &tools, wishes);
    race_tools_close(b, &tools);
    return failed != 0;
}
