/* An extra operand of the epilogue for tests that look inside: no desc has one so far. */
#ifndef GEMMEPI_TESTS_EXTRA_H
#define GEMMEPI_TESTS_EXTRA_H

/* Gives a problem an extra operand, which runs along its rows and columns as they are here: in a column-major problem those are the
   caller's columns and rows. ld: of one that runs along both, 0 for the least. */
static gemmepi_status take_extra(gpi__problem *problem, int operand, int64_t ld, int64_t batch_stride) {
    int along = gpi__extra_along[operand - GPI__FIRST_EXTRA];
    int64_t columns = gpi__half_columns(problem) * gpi__halves_out(problem);
    gpi__view *view = &problem->views[operand];
    gemmepi_status status;
    if (problem->accumulator == GEMMEPI_I32)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s does not go with a result in I32",
                         gpi__operand_names[operand]);
    view->lines = along == GPI__ALONG_BOTH ? problem->m : 1;
    view->length = along == GPI__ALONG_ROWS ? problem->m : columns;
    view->ld = ld ? ld : view->length;
    view->batch_stride = batch_stride;
    status = gpi__convert_scale_numbers(
        problem, operand, GEMMEPI_F32,
        along == GPI__ALONG_ROWS || problem->alignment < 4 ? 4 : problem->alignment);
    if (!status)
        gpi__list_operands(problem);
    return status;
}

#endif
