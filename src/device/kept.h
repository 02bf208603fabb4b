/* The plans that one-shot calls keep: found by what they were made for, the least recently used one goes first. */
#ifndef GEMMEPI_DEVICE_KEPT_H
#define GEMMEPI_DEVICE_KEPT_H

#include "context.h"

/* By gemmepi_route. */
static const char *const gemmepi__route_names[] = {
    "empty", "lt", "split", "host", "plain", "contiguous", "strided", "sum", "scaled", "linear", "fused"};

/* A plan counts its references: one of who made it, one of the cache that keeps it, one of each call under way. */
typedef struct gemmepi__kept {
    long references;
    long last_used; /* by the context's plan_clock, under its lock */
    void *plan;
    void (*destroy)(void *plan); /* of the last reference */
} gemmepi__kept;

/* Plans are 5 to 17 KB; a program with more problems than this builds the least recently used ones anew. */
#define GEMMEPI__MAX_KEPT 1024

static void gemmepi__release_kept(gemmepi__kept *kept) {
    if (gemmepi__add(&kept->references, -1) == 0)
        kept->destroy(kept->plan);
}

static void gemmepi__consider_oldest(void *user, gemmepi__map_entry *entry) {
    gemmepi__map_entry **oldest = (gemmepi__map_entry **)user;
    if (!*oldest ||
        ((gemmepi__kept *)entry->value)->last_used < ((gemmepi__kept *)(*oldest)->value)->last_used)
        *oldest = entry;
}

static void gemmepi__drop_oldest(gemmepi_context *context) {
    gemmepi__map_entry *oldest = NULL;
    gemmepi__kept *kept;
    gemmepi__map_each(&context->plans, gemmepi__consider_oldest, &oldest);
    kept = (gemmepi__kept *)oldest->value;
    gemmepi__map_remove(&context->plans, gemmepi__map_key(oldest), oldest->key_size);
    gemmepi__release_kept(kept);
}

/* With the lock held: the plan with one more reference, or NULL. */
static gemmepi__kept *gemmepi__find_locked(gemmepi_context *context, const void *key, size_t size) {
    gemmepi__kept *kept = (gemmepi__kept *)gemmepi__map_find(&context->plans, key, size);
    if (kept) {
        gemmepi__add(&kept->references, 1);
        kept->last_used = ++context->plan_clock;
    }
    return kept;
}

/* The plan with a reference for the caller to release, or NULL. */
static gemmepi__kept *gemmepi__find_kept(gemmepi_context *context, const void *key, size_t size) {
    gemmepi__kept *kept;
    gemmepi__lock(&context->lock);
    kept = gemmepi__find_locked(context, key, size);
    gemmepi__unlock(&context->lock);
    return kept;
}

/* Keeps a new plan, if there is memory for it. The caller's reference goes over to what is returned: where another thread
   was quicker, its plan, which is as good. */
static gemmepi__kept *gemmepi__keep(gemmepi_context *context, const void *key, size_t size,
                                    gemmepi__kept *kept) {
    gemmepi__kept *other;
    gemmepi__lock(&context->lock);
    other = gemmepi__find_locked(context, key, size);
    if (!other) {
        if (context->plans.count >= GEMMEPI__MAX_KEPT)
            gemmepi__drop_oldest(context);
        kept->last_used = ++context->plan_clock;
        if (gemmepi__map_insert(&context->plans, key, size, kept))
            gemmepi__add(&kept->references, 1);
    }
    gemmepi__unlock(&context->lock);
    if (other)
        gemmepi__release_kept(kept);
    return other ? other : kept;
}

static void gemmepi__release_entry(void *user, gemmepi__map_entry *entry) {
    (void)user;
    gemmepi__release_kept((gemmepi__kept *)entry->value);
}

#endif
