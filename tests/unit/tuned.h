/* What the tests of tuning share: problems of products, and what is planned for one. */
#ifndef GEMMEPI_TESTS_TUNED_H
#define GEMMEPI_TESTS_TUNED_H

#include "fake_program.h"

static gemmepi_any_desc any(const gemmepi_matmul_desc *desc) {
    gemmepi_any_desc problem;
    memset(&problem, 0, sizeof problem);
    problem.matmul = desc;
    return problem;
}

static gemmepi_plan_details details_for(gemmepi_context *context, const gemmepi_matmul_desc *desc) {
    gemmepi_plan_details details;
    gemmepi_plan *plan = NULL;
    memset(&details, 0, sizeof details);
    CHECK(gemmepi_plan_matmul(context, desc, &plan) == GEMMEPI_OK &&
              gemmepi_plan_info(plan, &details) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    return details;
}

#endif
