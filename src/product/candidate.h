/* A way to run a product, as a value: what is enumerated, compared, built and, in words, explained. */
#ifndef GEMMEPI_PRODUCT_CANDIDATE_H
#define GEMMEPI_PRODUCT_CANDIDATE_H

#include "../problem/problem.h"

/* How an operand is copied to workspace first. */
enum {
    GEMMEPI__AS_IT_LIES,
    GEMMEPI__IN_UNITS,    /* into lines that begin at multiples of 16 bytes */
    GEMMEPI__SIDE_BY_SIDE /* into such that lie along k */
};

typedef struct gemmepi__candidate {
    gemmepi_route route;
    int engine;          /* of FUSED: a row of gemmepi__engines */
    int shape;           /* of the engine: a row of its shapes */
    int parts;           /* of the engine: k in so many, whose sums are added up by a pass */
    int applied;         /* for runs alone whose alpha is 1 and which have no C */
    int copies[2];       /* of A and B */
    double microseconds; /* an estimate */
} gemmepi__candidate;

#define GEMMEPI__NEVER 1e300 /* microseconds */

#endif
