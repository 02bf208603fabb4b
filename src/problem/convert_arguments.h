/* What a product's run is given: its args taken, and all that they point to listed and looked at. */
#ifndef GEMMEPI_PROBLEM_CONVERT_ARGUMENTS_H
#define GEMMEPI_PROBLEM_CONVERT_ARGUMENTS_H

#include "arguments.h"
#include "formula_arguments.h"

/* Pointers and scalars as they are. row_factor: of a problem that has it, else NULL. */
static void gpi__copy_arguments(const gpi__problem *problem, const gemmepi_matmul_args *args,
                                const float *row_factor, gpi__arguments *arguments) {
    int on_device = (problem->flags & GEMMEPI_DEVICE_SCALARS) != 0;
    gpi__list_pointers(problem, args, arguments->pointers);
    memcpy(&arguments->pointers[GPI__ROW_FACTOR], &row_factor, sizeof row_factor);
    arguments->alpha = 1;
    arguments->beta = 0;
    if (args->alpha && !on_device)
        memcpy(&arguments->alpha, args->alpha, sizeof arguments->alpha);
    if (args->beta && !on_device)
        memcpy(&arguments->beta, args->beta, sizeof arguments->beta);
    arguments->device_alpha = on_device ? args->alpha : NULL;
    arguments->device_beta = on_device ? args->beta : NULL;
    if (problem->flags & GEMMEPI_ACCUMULATE) {
        arguments->beta = 1;
        arguments->pointers[GPI__C] = args->d;
    }
}

/* args -> arguments and regions, or the sentence that says what is wrong with them; whether these are apart is not asked yet. row_factor: a
   grouped product's weights, or NULL. */
static gemmepi_status gpi__convert_arguments(const gpi__problem *problem, const gemmepi_matmul_args *args,
                                             const float *row_factor, gpi__arguments *arguments,
                                             gpi__regions *regions) {
    gemmepi_status status = gpi__check_c(problem, args);
    int has_formula = problem->formula || gpi__makes_operands(problem);
    if (!status && !has_formula && (args->operands || args->operand_scales || args->operand_amax))
        status = gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is given, but desc.formula is NULL",
                           args->operands         ? "operands"
                           : args->operand_scales ? "operand_scales"
                                                  : "operand_amax");
    if (status)
        return status;
    gpi__copy_arguments(problem, args, row_factor, arguments);
    status = gpi__check_arguments(problem, arguments, regions);
    arguments->inside = NULL;
    if (!status && has_formula)
        status = gpi__list_formula_arguments(problem, args, arguments, regions);
    return status;
}

#endif
