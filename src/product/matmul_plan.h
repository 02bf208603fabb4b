/* A product's plan, as its route has it. */
#ifndef GEMMEPI_PRODUCT_MATMUL_PLAN_H
#define GEMMEPI_PRODUCT_MATMUL_PLAN_H

#include "../base/thread.h"
#include "../device/kept.h"
#include "candidate.h"

#define GPI__REASON_SIZE 512

struct gpi__route;
struct gpi__around;
typedef struct gpi__matmul_plan {
    gemmepi_plan base;
    gpi__problem problem; /* of the product that the route runs */
    const struct gpi__route *route;
    int unit_alpha;
    gpi__tuned tuned; /* what an answer says of it */
    const gpi__candidate
        *forced; /* while it is built: what is to be taken, and nothing else; NULL: what is best */
    gpi__lt_algorithm algorithm; /* cuBLASLt's that it runs; id 0: none */
    size_t workspace_size;
    struct gpi__around *around; /* on a GPU: what is launched around the product (around.h), or NULL */
    void *built;                /* what the route has made: a struct of its own */
    gpi__candidates candidates; /* what it was chosen from */
    char reasons[GPI__COUNT(gpi__route_names)][GPI__REASON_SIZE]; /* why a route failed, or "" */
    /* The plan that runs in place of this one once cuBLASLt has refused it: a field of its own plan, reached by a pointer
       because users hold plans as const. */
    gpi__atomic_pointer replacement;
    gpi__atomic_pointer *replacement_place;
    /* Likewise the plan for runs that this one's kernel cannot do: cuBLASLt would round D = alpha A B + D twice, or unit_alpha. */
    gpi__atomic_pointer general;
    gpi__atomic_pointer *general_place;
} gpi__matmul_plan;

/* The plan that stands for this one now. */
static const gpi__matmul_plan *gpi__current_plan(const gpi__matmul_plan *plan) {
    const gpi__matmul_plan *next;
    while ((next = (const gpi__matmul_plan *)gpi__load_pointer(plan->replacement_place)) != NULL)
        plan = next;
    return plan;
}

#endif
