/* The factor of rows for tests that look inside: only desc.weighted of grouped products asks for one. */
#ifndef GEMMEPI_TESTS_ROW_FACTOR_H
#define GEMMEPI_TESTS_ROW_FACTOR_H

/* Gives a problem a factor for each row as they are here: in a column-major problem those are the caller's columns. */
static gemmepi_status take_row_factor(gpi__problem *problem, int64_t batch_stride) {
    gpi__view *view = &problem->views[GPI__ROW_FACTOR];
    gemmepi_status status;
    if (problem->accumulator == GEMMEPI_I32)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.row_factor does not go with a result in I32");
    view->lines = 1;
    view->length = view->ld = problem->m;
    view->batch_stride = batch_stride;
    status = gpi__convert_scale_numbers(problem, GPI__ROW_FACTOR, GEMMEPI_F32, 4);
    if (!status)
        gpi__list_operands(problem);
    return status;
}

#endif
