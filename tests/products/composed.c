/* composed [count] [first seed]: random products whose epilogues are said as formulas, against the oracle of products, and on a GPU
   against the epilogue's own run: of a formula that explain calls an epilogue, to the byte. Gates' gradients stay formulas. A failure
   prints its seed: `composed 1 SEED` repeats it. */
#include "problem.h"

#include "composed.h"

static test_device *here;
static uint64_t first = 1, count = 600;
static int said, the_same;

/* What a formula is not asked for: a matrix that is read by halves may not be D. */
static int is_said(const problem *p, composed *c) {
    return !(problem_has(p, GEMMEPI_GATED) && p->in_place[T_AUX]) && composed_say(c, &p->desc);
}

static gemmepi_status run_formula(run *r, const problem *p, const composed *c, int *is_epilogue) {
    gemmepi_matmul_args args = run_args(r, p, here);
    composed_args formula;
    gemmepi_plan *plan = NULL;
    char text[6000];
    gemmepi_status status = run_upload(r, here);
    if (!status)
        args = run_args(r, p, here); /* where memory lies by now */
    composed_point(&formula, c, &args);
    if (!status)
        status = gemmepi_plan_matmul(here->context, &c->desc, &plan);
    *is_epilogue = !status && gemmepi_plan_explain(plan, text, sizeof text) > 0 &&
                   strstr(text, "  the formula is ") && !strstr(text, "inside the kernel");
    if (!status && p->by_plan)
        status = run_plan(plan, p, here, &formula.args);
    else if (!status)
        status = gemmepi_matmul(here->context, &c->desc, &formula.args, here->stream);
    gemmepi_plan_destroy(plan);
    return status ? status : run_download(r, here);
}

static int formula_holds(const problem *p, const composed *c) {
    unsigned char *of_epilogue;
    int right, is_epilogue = 0;
    gemmepi_status status;
    run r;
    run_make(&r, p);
    status = run_execute(&r, p, here, NULL);
    CHECK(status == GEMMEPI_OK, "the epilogue itself: %s", gemmepi_last_error());
    of_epilogue = (unsigned char *)malloc(r.size);
    memcpy(of_epilogue, r.after, r.size);
    status = run_formula(&r, p, c, &is_epilogue);
    CHECK(status == GEMMEPI_OK, "%s: %s", c->text, gemmepi_last_error());
    right = !status && run_compare(&r, p, here);
    if (is_epilogue && !status) {
        CHECK(memcmp(of_epilogue, r.after, r.size) == 0, "%s leaves other bytes than the epilogue", c->text);
        the_same++;
    }
    free(of_epilogue);
    run_free(&r);
    return right;
}

static void formulas_that_say_epilogues_are_within_their_bound(void) {
    uint64_t seed;
    said = the_same = 0;
    for (seed = first; seed < first + count; seed++) {
        problem p = problem_random(seed);
        composed c;
        if (!test_takes(problem_key(&p)) || !is_said(&p, &c))
            continue;
        said += !problem_is_empty(&p) && p.desc.k > 0; /* else there is no product */
        CHECK(formula_holds(&p, &c), "seed %llu: %s", (unsigned long long)seed, c.text);
    }
    CHECK(said > 0 || count < 100, "no formula says any of them");
    CHECK(here->is_host || the_same * 10 >= said * 4 || said < 20, "%d of %d ran as the epilogue", the_same,
          said);
    printf("  %d of %d formulas ran as the epilogue\n", the_same, said);
}

int main(int argc, char **argv) {
    test_device devices[TEST_MOST_DEVICES];
    int opened = test_devices_open_with_routes(devices), i;
    if (argc > 1)
        count = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        first = strtoull(argv[2], NULL, 10);
    for (i = 0; i < opened; i++) {
        here = devices + i;
        printf("on %s, seeds %llu to %llu:\n", here->name, (unsigned long long)first,
               (unsigned long long)(first + count - 1));
        RUN(formulas_that_say_epilogues_are_within_their_bound);
        test_device_close(here);
    }
    return test_finish() || opened == 0;
}
