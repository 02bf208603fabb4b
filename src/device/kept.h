/* The plans that one-shot calls keep: found by what they were made for, the least recently used one goes first. */
#ifndef GEMMEPI_DEVICE_KEPT_H
#define GEMMEPI_DEVICE_KEPT_H

#include "context.h"

/* By gemmepi_route. */
static const char *const gpi__route_names[] = {"empty",   "lt",  "split",  "host",   "plain", "contiguous",
                                               "strided", "sum", "scaled", "linear", "fused"};

/* How each kind of plan begins. It counts its references: one of who made it, one of the cache that keeps it, one of each call
   under way. */
struct gemmepi_plan {
    gemmepi_plan_kind kind;
    gemmepi_context *context;
    int block_number; /* of the stream's block of workspace that its runs use: see gpi__key_of_block */
    long references;
    long last_used;                      /* by the context's plan_clock, under its lock */
    long generation;                     /* the context's when it began to be made */
    long is_tried;                       /* not 0: with config.tune it was tuned, or cannot be */
    void (*destroy)(gemmepi_plan *plan); /* of the last reference; NULL: the plan has been destroyed */
};

/* By gemmepi_plan_kind. */
static const char *const gpi__plan_kind_names[] = {
    "", "matmul", "elementwise", "linear", "linear_backward", "grouped", "network", "network_backward"};

/* A new plan's beginning. */
static gemmepi_plan gpi__plan_base(gemmepi_context *context, gemmepi_plan_kind kind,
                                   void (*destroy)(gemmepi_plan *plan)) {
    gemmepi_plan base;
    memset(&base, 0, sizeof base);
    base.kind = kind;
    base.context = context;
    base.references = 1;
    base.generation = gpi__read(&context->generation);
    base.destroy = destroy;
    return base;
}

/* 1 with the sentence if the plan, or its context, is none that this process may use. A destroyed plan is known as long as its memory is
   not used again. */
static int gpi__has_ended(const gemmepi_plan *plan) {
    if (plan->destroy)
        return gpi__came_by_fork(plan->context);
    (void)gpi__fail(GEMMEPI_INVALID_ARGUMENT, "the plan has been destroyed");
    return 1;
}

/* What every run asks first: whether there are plan and args, and the plan is of this process and of the run's kind. */
static gemmepi_status gpi__check_plan(const gemmepi_plan *plan, const void *args, gemmepi_plan_kind kind) {
    GPI__INVALID_IF(!plan || !args, "%s is NULL", plan ? "args" : "plan");
    if (gpi__has_ended(plan))
        return GEMMEPI_INVALID_ARGUMENT;
    GPI__INVALID_IF(plan->kind != kind,
                    "plan was made by gemmepi_plan_%s; gemmepi_run_%s runs those of gemmepi_plan_%s",
                    gpi__plan_kind_names[plan->kind], gpi__plan_kind_names[kind], gpi__plan_kind_names[kind]);
    return GEMMEPI_OK;
}

/* Plans are 5 to 17 KB; a program with more problems than this builds the least recently used ones anew. */
#define GPI__MAX_KEPT 1024

static void gpi__release_plan(gemmepi_plan *plan) {
    void (*destroy)(gemmepi_plan *) = plan->destroy;
    if (gpi__add(&plan->references, -1) != 0)
        return;
    plan->destroy = NULL;
    destroy(plan);
}

/* What building leaves: a plan for the caller, or why there is none. */
static gemmepi_status gpi__finish_plan(gemmepi_plan *plan, gemmepi_status status, gemmepi_plan **result) {
    if (status)
        gpi__release_plan(plan);
    else
        *result = plan;
    return status;
}

/* Puts a plan that was built into a place of another one, where runs find it, unless another thread has filled that; else releases it.
   Whether it is there. */
static int gpi__publish_plan(gpi__atomic_pointer *place, gemmepi_status status, gemmepi_plan *plan) {
    gemmepi_context *context = plan->context;
    int is_first;
    gpi__lock(&context->lock);
    is_first = !status && !gpi__load_pointer(place);
    if (is_first)
        gpi__publish_pointer(place, plan);
    gpi__unlock(&context->lock);
    if (!is_first)
        gpi__release_plan(plan);
    return is_first;
}

static void gpi__consider_oldest(void *user, gpi__map_entry *entry) {
    gpi__map_entry **oldest = (gpi__map_entry **)user;
    if (!*oldest || ((gemmepi_plan *)entry->value)->last_used < ((gemmepi_plan *)(*oldest)->value)->last_used)
        *oldest = entry;
}

static void gpi__drop_oldest(gemmepi_context *context) {
    gpi__map_entry *oldest = NULL;
    gemmepi_plan *plan;
    gpi__map_each(&context->plans, gpi__consider_oldest, &oldest);
    plan = (gemmepi_plan *)oldest->value;
    gpi__map_remove(&context->plans, gpi__map_key(oldest), oldest->key_size);
    gpi__release_plan(plan);
}

/* With the lock held: the plan with one more reference, or NULL. */
static gemmepi_plan *gpi__find_locked(gemmepi_context *context, const void *key, size_t size) {
    gemmepi_plan *plan = (gemmepi_plan *)gpi__map_find(&context->plans, key, size);
    if (plan) {
        gpi__add(&plan->references, 1);
        plan->last_used = ++context->plan_clock;
    }
    return plan;
}

/* The plan with a reference for the caller to release, or NULL. */
static gemmepi_plan *gpi__find_kept(gemmepi_context *context, const void *key, size_t size) {
    gemmepi_plan *plan;
    gpi__lock(&context->lock);
    plan = gpi__find_locked(context, key, size);
    gpi__unlock(&context->lock);
    return plan;
}

/* Keeps a new plan, if there is memory for it and what plans are chosen by has not changed meanwhile. The caller's reference goes over to
   what is returned: where another thread was quicker, its plan, which is as good. */
static gemmepi_plan *gpi__keep(gemmepi_context *context, const void *key, size_t size, gemmepi_plan *plan) {
    gemmepi_plan *other;
    gpi__lock(&context->lock);
    other = gpi__find_locked(context, key, size);
    if (!other && plan->generation == gpi__read(&context->generation)) {
        if (context->plans.count >= GPI__MAX_KEPT)
            gpi__drop_oldest(context);
        plan->last_used = ++context->plan_clock;
        if (gpi__map_insert(&context->plans, key, size, plan))
            gpi__add(&plan->references, 1);
    }
    gpi__unlock(&context->lock);
    if (other)
        gpi__release_plan(plan);
    return other ? other : plan;
}

/* One-shot calls make their plans anew, as what these were chosen by has changed. */
static void gpi__forget_all_kept(gemmepi_context *context) {
    gpi__lock(&context->lock);
    gpi__add(&context->generation, 1);
    while (context->plans.count)
        gpi__drop_oldest(context);
    gpi__unlock(&context->lock);
}

static void gpi__release_entry(void *user, gpi__map_entry *entry) {
    (void)user;
    gpi__release_plan((gemmepi_plan *)entry->value);
}

#endif
