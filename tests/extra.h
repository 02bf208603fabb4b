/* An extra operand of the epilogue for tests that look inside: no desc has one so far. */
#ifndef GEMMEPI_TESTS_EXTRA_H
#define GEMMEPI_TESTS_EXTRA_H

/* Gives a problem an extra operand, which runs along its rows and columns as they are here: in a column-major problem those are the
   caller's columns and rows. ld: of one that runs along both, 0 for the least. */
static gemmepi_status take_extra(gemmepi__problem *problem, int operand, int64_t ld, int64_t batch_stride) {
    int along = gemmepi__extra_along[operand - GEMMEPI__FIRST_EXTRA];
    int64_t columns = gemmepi__half_columns(problem) * gemmepi__halves_out(problem);
    gemmepi__view *view = &problem->views[operand];
    gemmepi_status status;
    if (problem->accumulator == GEMMEPI_I32)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s does not go with a result in I32",
                             gemmepi__operand_names[operand]);
    view->lines = along == GEMMEPI__ALONG_BOTH ? problem->m : 1;
    view->length = along == GEMMEPI__ALONG_ROWS ? problem->m : columns;
    view->ld = ld ? ld : view->length;
    view->batch_stride = batch_stride;
    status = gemmepi__take_numbers(
        problem, operand, GEMMEPI_F32,
        along == GEMMEPI__ALONG_ROWS || problem->alignment < 4 ? 4 : problem->alignment);
    if (!status)
        gemmepi__list_operands(problem);
    return status;
}

#endif
