/* Which networks are refused, with which status and a sentence that names the field, and nothing written; and what looks like it but is
   accepted. On the host. */
#include "network.h"

static test_device host;
static network net;
static const action named = {NULL, GEMMEPI_SILU, 1, 1, 0}, text = {"d = sin(2 * v)", 0, 2, 4, 0},
                    gain = {"d = v * sigmoid(beta * v)", 0, 3, 3, 0};
static int backward;

/* 4 rows, 3 to 6 to 6 to 2, with all flags that agree. */
static void use(int of_backward) {
    int i;
    if (net.count)
        close_network(&net);
    memset(&net, 0, sizeof net);
    backward = of_backward;
    net.on = &host, net.dtype = net.gradient = GEMMEPI_F32, net.rows = 4, net.input = 3, net.count = 3;
    net.flags = GEMMEPI_NETWORK_BIAS | GEMMEPI_NETWORK_DX | GEMMEPI_NETWORK_DW | GEMMEPI_NETWORK_SAVED;
    for (i = 0; i < 3; i++)
        net.width[i] = i == 2 ? 2 : 6, net.acts[i] = i == 0 ? &gain : i == 1 ? &text : &named;
    open_network(&net, 1, 0);
    must(gemmepi_alloc(host.context, 4096, &net.saved));
    net.args.saved = net.saved, net.args.saved_size = 4096;
}

static gemmepi_status call(void) {
    return backward ? gemmepi_network_backward(host.context, &net.desc, &net.args, NULL)
                    : gemmepi_network(host.context, &net.desc, &net.args, NULL);
}

static void check_unwritten(const held *h) {
    held now = *h;
    int i;
    now.at = (double *)malloc(((size_t)h->count + 1) * sizeof(double));
    fetch(&net, &now);
    for (i = 0; i < h->count; i++)
        CHECK(now.at[i] == h->at[i], "element %d was written", i);
    free(now.at);
}

static void refused(gemmepi_status status, const char *word, const char *another) {
    const gemmepi_status got = call();
    const char *says = gemmepi_last_error();
    CHECK(got == status && strstr(says, word) && strstr(says, another), "%s, not %s with '%s' and '%s': %s",
          gemmepi_status_name(got), gemmepi_status_name(status), word, another, says);
    check_unwritten(&net.y), check_unwritten(&net.dx), check_unwritten(&net.dw[0]);
}

static void invalid(const char *word, const char *another) {
    refused(GEMMEPI_INVALID_ARGUMENT, word, another);
}

static void accepted(void) {
    CHECK(call() == GEMMEPI_OK, "%s", gemmepi_last_error());
}

static void what_is_good_runs(void) {
    use(0), accepted();
    use(1), accepted();
}

static void extents_out_of_range_are_refused(void) {
    use(0), net.layers[1].width = 0, invalid("desc.layers[1].width is 0", "1 to 2^20");
    use(0), net.layers[0].width = -3, invalid("desc.layers[0].width is -3", "");
    use(0), net.layers[2].width = (1 << 20) + 1, invalid("desc.layers[2].width is 1048577", "");
    use(0), net.desc.input = 0, invalid("desc.input is 0", "1 to 2^20");
    use(0), net.desc.rows = -1, invalid("desc.rows is -1", "");
    use(0), net.desc.rows = (int64_t)1 << 31, invalid("desc.rows is 2147483648", "2^31 - 1");
    use(0), net.desc.layer_count = 0, invalid("desc.layer_count is 0", "1 to 16");
    use(0), net.desc.layer_count = 17, invalid("desc.layer_count is 17", "1 to 16");
    use(0), net.desc.layers = NULL, invalid("desc.layers is NULL", "");
    use(0), net.desc.x_ld = 2, invalid("desc.x_ld is 2", "3");
    use(0), net.desc.y_ld = 1, invalid("desc.y_ld is 1", "2");
    use(0), net.desc.alignment = 3, invalid("desc.alignment", "3");
}

static void types_without_networks_are_refused(void) {
    use(0), net.desc.dtype = GEMMEPI_E4M3, invalid("desc.dtype", "F32, F16, BF16 and F64");
    use(0), net.desc.dtype = (gemmepi_dtype)99, invalid("desc.dtype is 99", "");
    use(0), net.desc.bias_dtype = GEMMEPI_I8, invalid("desc.bias_dtype", "F32, F16 and BF16");
    use(1), net.desc.gradient_dtype = GEMMEPI_F64, invalid("desc.gradient_dtype", "F32, F16 and BF16");
    use(0), net.desc.x_dtype = GEMMEPI_F16, invalid("desc.x_dtype", "input_formula");
    use(0), net.desc.compute = GEMMEPI_COMPUTE_F64, invalid("desc.compute", "");
}

static void flags_that_do_not_agree_are_refused(void) {
    use(0), net.desc.flags |= GEMMEPI_LINEAR_SAVED, invalid("LINEAR_SAVED", "gemmepi_linear_desc");
    use(1), net.desc.flags &= ~(GEMMEPI_NETWORK_DX | GEMMEPI_NETWORK_DW), invalid("no output", "NETWORK_DX");
    use(1), net.desc.flags &= ~GEMMEPI_NETWORK_DX, net.desc.flags |= GEMMEPI_ACCUMULATE_DX,
        invalid("ACCUMULATE_DX without NETWORK_DX", "");
    use(1), net.desc.flags &= ~GEMMEPI_NETWORK_DW, net.desc.flags |= GEMMEPI_ACCUMULATE_DW,
        invalid("ACCUMULATE_DW without NETWORK_DW", "");
    use(0), net.layers[1].formula = NULL, net.layers[1].activation = GEMMEPI_SILU | GEMMEPI_GATED,
            refused(GEMMEPI_UNSUPPORTED, "desc.layers[1].activation has GATED", "width");
    use(0), net.layers[2].activation = 0x99, invalid("desc.layers[2].activation", "");
    use(0), net.layers[1].activation = GEMMEPI_RELU, invalid("desc.layers[1].activation", "formula");
    use(0), net.layers[2].has_parameter = 1, invalid("desc.layers[2].activation_parameter", "SILU has none");
}

static void formulas_that_are_no_activation_are_refused(void) {
    static gemmepi_operand operands[3], many[28];
    static void *pointers[3];
    int i;
    for (i = 0; i < 28; i++)
        many[i].name = "n", many[i].kind = GEMMEPI_NUMBER;
    use(0), net.layers[1].formula = "d = silu(v", invalid("desc.layers[1].formula", "");
    use(0), net.layers[1].formula = "d = silu(v) * up", invalid("desc.layers[1].formula", "up");
    use(0),
        net.layers[1].formula = "d = left(v) * right(v)",
        refused(GEMMEPI_UNSUPPORTED, "desc.layers[1].formula makes 3 columns", "desc.layers[1].width is 6");
    use(0), net.layers[1].formula = "d = pair(v, v)",
            refused(GEMMEPI_UNSUPPORTED, "desc.layers[1].formula makes 12 columns", "");
    use(1), net.layers[1].formula = "d = row_max(v)", invalid("desc.layers[1].formula", "reduction");
    use(0), net.desc.input_formula = "sin(", invalid("desc.input_formula", "");
    use(0), net.operands[0][0].scale.mode = GEMMEPI_SCALE_TENSOR, net.operands[0][0].dtype = GEMMEPI_E4M3;
    invalid("desc.layers[0].operands[0].scale.mode (of beta)", "have no scale");
    use(0), net.operands[0][0].output = 1, invalid("desc.layers[0].operands[0] (of beta) is an output", "");
    use(0), net.layers[0].operand_count = 29, invalid("desc.layers[0].operand_count", "28");
    use(0), net.layers[0].operands = net.layers[1].operands = many, net.layers[1].formula = "d = v * n";
    net.layers[0].operand_count = 20, net.layers[1].operand_count = 28, net.layers[2] = net.layers[0];
    net.layers[2].operand_count = 1, refused(GEMMEPI_UNSUPPORTED, "49 operands together", "48");
    use(0), net.layers[0].operands = NULL, invalid("desc.layers[0].operands is NULL", "");
    use(0), net.layers[2].operand_count = 1, invalid("desc.layers[2].operand_count is 1", "formula is NULL");
    memset(operands, 0, sizeof operands);
    operands[0].name = "s", operands[0].kind = GEMMEPI_PER_ROW, operands[0].output = 1;
    use(0), net.layers[1].formula = "d = v; s = row_sum(v)", net.layers[1].operands = operands;
    net.layers[1].operand_count = 1, net.lists[1] = pointers;
    invalid("desc.layers[1].operands[0] (of s) is an output", "gemmepi_linear");
    use(1), net.layers[1].formula = "d = row + rounded(1 / 0) * v; ", accepted();
}

static void pointers_that_do_not_fit_are_refused(void) {
    use(0), net.args.x = NULL, invalid("args.x is NULL", "forward");
    use(0), net.args.y = NULL, invalid("args.y is NULL", "forward");
    use(0), net.args.w = NULL, invalid("args.w is NULL", "3 layers");
    use(0), net.ws[1] = NULL, invalid("args.w[1] is NULL", "");
    use(0), net.biases[2] = NULL, invalid("args.bias[2] is NULL", "NETWORK_BIAS");
    use(0), net.args.bias = NULL, invalid("args.bias is NULL", "");
    use(0), net.desc.flags &= ~GEMMEPI_NETWORK_BIAS, invalid("args.bias is given", "NETWORK_BIAS");
    use(0), net.args.saved = NULL, invalid("args.saved is NULL", "NETWORK_SAVED");
    use(0), net.args.saved_size = 8, refused(GEMMEPI_BUFFER_TOO_SMALL, "args.saved_size is 8", "needs");
    use(0), net.desc.flags &= ~GEMMEPI_NETWORK_SAVED, invalid("args.saved is given", "NETWORK_SAVED");
    use(1), net.args.dy = NULL, invalid("args.dy is NULL", "backward");
    use(1), net.args.dx = NULL, invalid("args.dx is NULL", "NETWORK_DX");
    use(1), net.dws[0] = NULL, invalid("args.dw[0] is NULL", "NETWORK_DW");
    use(1), net.dbiases[1] = NULL, invalid("args.dbias[1] is NULL", "");
    use(1), net.desc.flags &= ~GEMMEPI_NETWORK_DX, invalid("args.dx is given", "NETWORK_DX");
    use(1), net.desc.flags &= ~GEMMEPI_NETWORK_DW, invalid("args.dw is given", "NETWORK_DW");
    use(1), net.desc.flags &= ~GEMMEPI_NETWORK_BIAS, net.args.bias = NULL,
                                                     invalid("args.dbias is given", "NETWORK_BIAS");
    use(0), net.args.operands = NULL, invalid("args.operands is NULL", "desc.layers[0]");
    use(0), net.lists[0] = NULL, invalid("args.operands[0] is NULL", "desc.layers[0]");
    use(0), net.pointers[0][0] = NULL, invalid("args.operands[0][0] (of beta) is NULL", "");
    use(0), net.args.x = (const char *)net.args.x + 4,
            refused(GEMMEPI_MISALIGNED, "args.x", "16 bytes, which desc.alignment says");
    use(0), net.args.x = (const char *)net.args.x + 4, net.desc.alignment = 4, accepted();
    use(0), net.args.saved = (char *)net.args.saved + 16, refused(GEMMEPI_MISALIGNED, "args.saved", "256");
    use(0), net.pointers[0][0] = (char *)net.pointers[0][0] + 4,
            refused(GEMMEPI_MISALIGNED, "args.operands[0][0] (of beta)", "16 bytes");
    use(1), net.args.y = NULL, accepted(); /* forward's alone */
    use(0), net.args.dy = net.args.dx = NULL, net.args.dw = net.args.dbias = NULL, accepted();
}

static void outputs_that_overlap_are_refused(void) {
    use(0), net.args.y = (void *)net.x.there, invalid("args.y", "overlaps args.x");
    use(0), net.args.y = (void *)net.w[2].there, invalid("args.y", "overlaps args.w[2]");
    use(1), net.dws[2] = net.dws[1], invalid("args.dw[1]", "overlaps args.dw[2]");
    use(1), net.dws[2] = (char *)net.dws[1] + 16, invalid("args.dw[1]", "overlaps args.dw[2]");
    use(0), net.args.x = net.args.saved, invalid("args.saved", "overlaps args.x");
    use(1), net.dbiases[0] = (void *)net.bias[1].there, invalid("args.dbias[0]", "overlaps args.bias[1]");
    use(1), net.args.dx = net.args.saved, invalid("args.dx", "overlaps args.saved");
    use(0), net.args.y = (char *)net.args.saved + 256, invalid("args.y", "overlaps args.saved");
    use(0), net.args.workspace = net.args.saved, net.args.workspace_size = 4096;
    invalid("args.workspace", "overlaps args.saved");
}

/* Rows of both in one matrix, next to each other. */
static void x_and_y_may_be_columns_of_one_matrix(void) {
    int r, j;
    use(0), close_network(&net), net.count = 0;
    use(0);
    net.desc.x_ld = net.desc.y_ld = 8;
    drop(&net, &net.x);
    net.x = hold(&net, GEMMEPI_F32, 32, NULL, 0, 0);
    net.args.x = net.x.there, net.args.y = (char *)net.x.there + 16;
    accepted();
    fetch(&net, &net.x);
    for (r = 0; r < 4; r++)
        for (j = 0; j < 8; j++)
            CHECK((net.x.at[8 * r + j] != .25) == (j == 4 || j == 5), "%d, %d", r, j);
}

static void plans_of_another_kind_are_refused(void) {
    gemmepi_plan *plan = NULL;
    use(0);
    must(gemmepi_plan_network(host.context, &net.desc, &plan));
    CHECK(gemmepi_run_network_backward(plan, &net.args, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              strstr(gemmepi_last_error(), "gemmepi_plan_network_backward"),
          "%s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    CHECK(gemmepi_plan_network(host.context, NULL, &plan) == GEMMEPI_INVALID_ARGUMENT && !plan &&
              strstr(gemmepi_last_error(), "desc is NULL"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_network(host.context, &net.desc, NULL, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              strstr(gemmepi_last_error(), "args"),
          "%s", gemmepi_last_error());
}

int main(void) {
    if (!test_device_open(&host, GEMMEPI_DEVICE_HOST, 0))
        return 1;
    RUN(what_is_good_runs);
    RUN(extents_out_of_range_are_refused);
    RUN(types_without_networks_are_refused);
    RUN(flags_that_do_not_agree_are_refused);
    RUN(formulas_that_are_no_activation_are_refused);
    RUN(pointers_that_do_not_fit_are_refused);
    RUN(outputs_that_overlap_are_refused);
    RUN(x_and_y_may_be_columns_of_one_matrix);
    RUN(plans_of_another_kind_are_refused);
    close_network(&net);
    test_device_close(&host);
    return test_finish();
}
