/* The end of a formula's reductions that are inside a kernel: the kernel leaves states in workspace, of each row or of lines of some rows, and
   a launch behind it joins them in a fixed order. */
#ifndef GEMMEPI_PRODUCT_PARTS_REDUCTIONS_H
#define GEMMEPI_PRODUCT_PARTS_REDUCTIONS_H

#include "inside.h"
#include "../../elementwise/formula_launch.h"

typedef struct gpi__end_of_reductions {
    size_t bytes;           /* of states */
    gpi__formula_pass pass; /* its last launch alone */
} gpi__end_of_reductions;

/* lines: of some rows each, that the kernel leaves of an item. Nothing where there are no reductions. */
static gemmepi_status gpi__build_end_of_reductions(gemmepi_context *context, const gpi__problem *inside,
                                                   int64_t lines, gpi__end_of_reductions *reductions) {
    if (GPI__HAS_FORMULAS && gpi__leaves_states(inside)) {
        gpi__state_counts states;
        gemmepi_status status;
        states.of_row = gpi__states_of_row(inside);
        states.lines = lines;
        states.of_line = gpi__states_of_line(inside);
        states.span = gpi__state_columns(inside);
        status = gpi__build_reductions(context, &inside->formula->placed, &states, &reductions->pass);
        reductions->bytes = reductions->pass.state_bytes;
        return status;
    }
    return GEMMEPI_OK;
}

/* Has the kernel leave its states in workspace. */
static void gpi__point_states(const gpi__end_of_reductions *reductions, char *workspace,
                              gpi__formula_place *places) {
    int u;
    for (u = 0; u < reductions->pass.used_count; u++)
        places[reductions->pass.used[u]].data =
            gpi__states_of(&reductions->pass, workspace, reductions->pass.used[u]);
}

static gemmepi_status gpi__run_end_of_reductions(const gemmepi_context *context,
                                                 const gpi__end_of_reductions *reductions,
                                                 const gpi__arguments *arguments, char *workspace,
                                                 gemmepi_stream stream) {
    if (GPI__HAS_FORMULAS && reductions->pass.used_count) {
        gpi__formula_run run;
        memset(&run, 0, sizeof run);
        run.operands = arguments->operands;
        run.scales = arguments->operand_scales;
        run.amax = arguments->operand_amax;
        run.states = workspace;
        return gpi__run_formula_pass(context, &reductions->pass, &run, stream);
    }
    return GEMMEPI_OK;
}

#endif
