/* grouped_outputs [CASE]: formulas of groups of rows that write outputs next to D: groups of no, one and odd numbers of rows, rows that are scattered,
   the gradient of experts with a gate. On the host and, where there is one, a GPU by each route. TEST_SHARE=N: every N-th case. */
#include "grouped_formula.h"

static int only = -1;

static void outputs_are_written_where_the_rows_of_d_are(void) {
    const char *share = getenv("TEST_SHARE");
    size_t i, step = share && atoi(share) > 0 ? (size_t)atoi(share) : 1;
    for (i = 0; i < sizeof outputs_cases / sizeof *outputs_cases; i++)
        if (only < 0 ? i % step == 0 : i == (size_t)only)
            run_outputs_case(&outputs_cases[i], 500 + i);
}

/* The input is read before its element is written: p is x. */
static void run_in_place(const outputs_case *c) {
    static outputs_run r;
    char has_row[O_ALL_ROWS] = {0};
    int t;
    make_outputs_run(c, &r, 600);
    send_outputs_run(c, &r);
    r.pointers[2] = r.pointers[0];
    CHECK(gemmepi_grouped(here->context, &r.desc, &r.args, here->stream) == GEMMEPI_OK, "on %s: %s",
          here->name, gemmepi_last_error());
    for (t = 2; t <= O_D; t++)
        CHECK(gemmepi_download(here->context, r.tensors[t].at.data,
                               t == 2 ? r.pointers[0] : r.tensors[t].device, r.tensors[t].bytes,
                               here->stream) == GEMMEPI_OK,
              "%s", gemmepi_last_error());
    compare_outputs(c, &r, has_row);
    free_outputs_run(&r);
}

static void an_output_may_be_an_input(void) {
    run_in_place(&outputs_cases[4]);
    run_in_place(&outputs_cases[5]); /* scattered */
}

static void wrong_ends_write_no_output(void) {
    static outputs_run r;
    const outputs_case *c = &outputs_cases[5];
    const int32_t wrong[O_GROUPS] = {0, 1, 1, 38, 175, 176, O_ROWS + 1};
    const char no_row[O_ALL_ROWS] = {0};
    void *ends = send(wrong, sizeof wrong);
    gemmepi_status status;
    int t;
    make_outputs_run(c, &r, 650);
    send_outputs_run(c, &r);
    r.args.ends = (const int32_t *)ends;
    status = gemmepi_grouped(here->context, &r.desc, &r.args, here->stream);
    if (!status)
        status = gemmepi_synchronize(here->context, here->stream);
    CHECK(status == GEMMEPI_INVALID_ARGUMENT && strstr(gemmepi_last_error(), "args.ends[6] "), "on %s: %s",
          here->name, gemmepi_last_error());
    for (t = 0; t <= O_D; t++)
        if (is_written(&r, t)) {
            CHECK(gemmepi_download(here->context, r.tensors[t].at.data, r.tensors[t].device,
                                   r.tensors[t].bytes, here->stream) == GEMMEPI_OK,
                  "%s", gemmepi_last_error());
            check_outputs_rest(c, &r, t, no_row);
        }
    gemmepi_free(here->context, ends);
    free_outputs_run(&r);
}

static void refused(const outputs_case *c, void (*change)(outputs_run *r), const char *says) {
    static outputs_run r;
    gemmepi_plan *plan = NULL;
    make_outputs_run(c, &r, 700);
    change(&r);
    CHECK(gemmepi_plan_grouped(here->context, &r.desc, &plan) != GEMMEPI_OK &&
              strstr(gemmepi_last_error(), says),
          "on %s '%s' should be said, and is: %s", here->name, says, plan ? "nothing" : gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    free_outputs_run(&r);
}

static void with_batch_stride(outputs_run *r) {
    r->operands[1].batch_stride = 1 << 20;
}
static void with_narrow_lines(outputs_run *r) {
    r->operands[1].ld = 8;
}
static void with_sums_of_rows(outputs_run *r) {
    r->operands[1].kind = GEMMEPI_PER_ROW, r->operands[1].ld = 0;
    r->desc.product.formula = "x = v + bias; d = x; p = row_sum(x)";
}
static void with_sums_of_columns(outputs_run *r) {
    r->operands[1].kind = GEMMEPI_PER_COLUMN, r->operands[1].ld = 0;
    r->desc.product.formula = "x = v + bias; d = x; p = column_sum(x)";
}
static void without_d(outputs_run *r) {
    r->desc.product.formula = "p = v + bias", r->desc.product.d.ld = 0;
}
static void with_an_amax(outputs_run *r) {
    r->operands[1].dtype = GEMMEPI_E4M3, r->operands[1].amax = 1;
}
static void with_weights(outputs_run *r) {
    r->desc.weighted = 1;
}

static void what_groups_do_not_write_is_refused_in_words(void) {
    const outputs_case *c = &outputs_cases[1];
    refused(c, with_batch_stride, "desc.product.operands[1] (p) has a batch_stride");
    refused(c, with_narrow_lines, "desc.product.operands[1].ld is 8");
    refused(c, with_sums_of_rows, "desc.product.operands[1] (p) is a reduction");
    refused(c, with_sums_of_columns, "desc.product.operands[1] (p) is a reduction");
    refused(c, with_an_amax, "desc.product.operands[1] (p) has an amax");
    refused(c, without_d, "desc.product.formula does not assign d");
    refused(c, with_weights, "desc.product.formula is given with weighted");
}

int main(int argc, char **argv) {
    test_device devices[TEST_MOST_DEVICES];
    int count = test_devices_open_with_routes(devices), i;
    if (count == 0)
        return 1;
    if (argc > 1)
        only = atoi(argv[1]);
    wants_fused = 1;
    for (i = 0; i < count; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        wants_fused = strstr(here->name, "without fused") == NULL;
        RUN(outputs_are_written_where_the_rows_of_d_are);
        if (only < 0) {
            RUN(an_output_may_be_an_input);
            RUN(wrong_ends_write_no_output);
            RUN(what_groups_do_not_write_is_refused_in_words);
        }
        test_device_close(here);
    }
    return test_finish();
}
