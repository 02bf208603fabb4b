/* Bundles saved and loaded: the machine code of kernels, in a file or in memory. */
#ifndef GEMMEPI_AHEAD_BUNDLE_H
#define GEMMEPI_AHEAD_BUNDLE_H

#include "../device/bundle.h"
#include "../device/create.h"

/* >>saving */

/* Entries of the context's maps to gpi__code, which stay until the context goes. */
typedef struct gpi__code_list {
    const gemmepi_context *context;
    const gpi__bundle *bundle; /* whose entries are listed; NULL: those that the context keeps */
    const gpi__map_entry **entries;
    size_t count;
} gpi__code_list;

/* Each key once: of a kernel that a bundle has and that was compiled all the same, what was compiled. */
static void gpi__list_code(void *user, gpi__map_entry *entry) {
    gpi__code_list *list = (gpi__code_list *)user;
    const void *key = gpi__map_key(entry);
    if (list->bundle && (gpi__map_find(&list->context->codes, key, entry->key_size) ||
                         gpi__find_bundled(list->context, list->bundle, key, entry->key_size)))
        return;
    list->entries[list->count++] = entry;
}

static int gpi__by_key(const void *left, const void *right) {
    const gpi__map_entry *a = *(const gpi__map_entry *const *)left;
    const gpi__map_entry *b = *(const gpi__map_entry *const *)right;
    int order =
        memcmp(gpi__map_key(a), gpi__map_key(b), a->key_size < b->key_size ? a->key_size : b->key_size);
    return order ? order : a->key_size < b->key_size ? -1 : a->key_size > b->key_size;
}

/* All that the context has, sorted, so that the same kernels give the same bytes. list->entries is the caller's to free. */
static gemmepi_status gpi__list_codes(gemmepi_context *context, gpi__code_list *list) {
    const gpi__bundle *bundle;
    size_t most;
    memset(list, 0, sizeof *list);
    list->context = context;
    gpi__lock(&context->build_lock);
    most = context->codes.count;
    for (bundle = context->bundles; bundle; bundle = bundle->next)
        most += bundle->by_key.count;
    list->entries = (const gpi__map_entry **)gpi__new(&context->allocator, most * sizeof *list->entries);
    if (list->entries) {
        gpi__map_each(&context->codes, gpi__list_code, list);
        for (bundle = context->bundles; bundle; bundle = bundle->next) {
            list->bundle = bundle;
            gpi__map_each(&bundle->by_key, gpi__list_code, list);
        }
    }
    gpi__unlock(&context->build_lock);
    if (!list->entries)
        return GEMMEPI_OUT_OF_MEMORY;
    if (list->count != 0)
        qsort(list->entries, list->count, sizeof *list->entries, gpi__by_key);
    return GEMMEPI_OK;
}

/* The list, and how large a bundle of it is. Where that fails there is nothing to free. */
static gemmepi_status gpi__plan_bundle(gemmepi_context *context, gpi__code_list *list, size_t *size) {
    gemmepi_status status = gpi__list_codes(context, list);
    if (status)
        return status;
    *size = gpi__bundle_size(list->entries, list->count);
    if (*size == 0)
        status =
            gpi__fail(GEMMEPI_FILE_ERROR, "a bundle of the context's %llu kernels is larger than %llu bytes",
                      (gpi__ull)list->count, (gpi__ull)GPI__BUNDLE_MOST);
    else if (context->is_host && list->count == 0)
        status = gpi__fail(
            GEMMEPI_UNSUPPORTED,
            "there are no kernels: the context is on the host (%s). A bundle is made on a GPU, or of bundles that "
            "were loaded",
            context->fallback_reason[0] ? context->fallback_reason : "config.device asks for it");
    if (status) {
        *size = 0;
        gpi__delete(&context->allocator, list->entries);
    }
    return status;
}

static gemmepi_status gpi__store_bundle(gemmepi_context *context, const char *path, const void *data,
                                        size_t size) {
    char reason[256];
    gpi__text why = gpi__text_in(reason, sizeof reason);
    gpi__file_piece piece;
    int code;
    piece.data = data;
    piece.size = size;
    code = gpi__file_store_path(path, GPI__FILE_FOR_ALL, &piece, 1);
    if (!code) {
        gpi__say(&context->log, GEMMEPI_LOG_INFO, "wrote a bundle of %llu bytes to %s", (gpi__ull)size, path);
        return GEMMEPI_OK;
    }
    gpi__file_error(&why, code);
    return gpi__fail(GEMMEPI_FILE_ERROR, "no bundle can be written to %.1000s: %s", path, reason);
}

/* >>loading */

/* Whether a bundle of the context's has this very code for the key: of another compiler's the driver may take one and not the other. */
static int gpi__has_code(const gemmepi_context *context, const gpi__map_entry *entry) {
    const gpi__code *code = (const gpi__code *)entry->value, *other;
    const gpi__bundle *bundle;
    for (bundle = context->bundles; bundle; bundle = bundle->next) {
        other = (const gpi__code *)gpi__map_find(&bundle->by_key, gpi__map_key(entry), entry->key_size);
        if (other && other->size == code->size && memcmp(other->image, code->image, code->size) == 0)
            return 1;
    }
    return 0;
}

/* How many of its kernels the context does not have yet. */
static size_t gpi__count_new(const gemmepi_context *context, const gpi__bundle *bundle) {
    size_t i, count = 0;
    for (i = 0; i < bundle->by_key.bucket_count; i++) {
        const gpi__map_entry *entry = bundle->by_key.buckets[i];
        for (; entry; entry = entry->next)
            count += !gpi__has_code(context, entry);
    }
    return count;
}

/* How many of its kernels are for the context's chip. */
static size_t gpi__count_for_chip(const gemmepi_context *context, const gpi__bundle *bundle) {
    char chip[32];
    gpi__text text = gpi__text_in(chip, sizeof chip);
    size_t i, count = 0;
    gpi__append_chip(&text, context->arch);
    for (i = 0; i < bundle->by_key.bucket_count; i++) {
        const gpi__map_entry *entry = bundle->by_key.buckets[i];
        for (; entry; entry = entry->next)
            count += entry->key_size > text.length && memcmp(gpi__map_key(entry), chip, text.length) == 0;
    }
    return count;
}

static void gpi__say_of_bundle(const gemmepi_context *context, const gpi__bundle *bundle, const char *name) {
    gpi__ull count = bundle->by_key.count, fitting;
    if (context->is_host) {
        gpi__say(&context->log, GEMMEPI_LOG_INFO, "kernels in %s: %llu; the host needs none", name, count);
        return;
    }
    fitting = gpi__count_for_chip(context, bundle);
    gpi__say(&context->log, count && !fitting ? GEMMEPI_LOG_WARNING : GEMMEPI_LOG_INFO,
             "kernels in %s: %llu, of these for compute capability %d.%d, which this GPU has: %llu", name,
             count, context->arch / 10, context->arch % 10, fitting);
}

/* Gives it to the context, behind those that it has; one that adds nothing is freed. */
static void gpi__add_bundle(gemmepi_context *context, gpi__bundle *bundle) {
    gpi__bundle **last = &context->bundles;
    gpi__lock(&context->build_lock);
    if (gpi__count_new(context, bundle) == 0) {
        gpi__free_bundle(&context->allocator, bundle);
    } else {
        while (*last)
            last = &(*last)->next;
        *last = bundle;
    }
    gpi__unlock(&context->build_lock);
}

/* owned: data, where that is the context's from now on; it is freed where this fails. name: of the bundle, for sentences. */
static gemmepi_status gpi__load_bundle(gemmepi_context *context, const unsigned char *data, size_t size,
                                       unsigned char *owned, const char *name) {
    gpi__bundle *bundle = NULL;
    gemmepi_status status = gpi__parse_bundle(&context->allocator, data, size, &bundle);
    if (status) {
        gpi__delete(&context->allocator, owned);
        return status == GEMMEPI_FILE_ERROR
                   ? gpi__fail(status, "%.1000s is refused: %s", name, gpi__error_text)
                   : status;
    }
    bundle->owned = owned;
    gpi__say_of_bundle(context, bundle, name);
    gpi__add_bundle(context, bundle);
    return GEMMEPI_OK;
}

/* >>the functions */

GEMMEPI_API gemmepi_status gemmepi_bundle_save(gemmepi_context *context, const char *path) {
    gpi__code_list list;
    size_t size = 0;
    unsigned char *data;
    gemmepi_status status = gpi__check_call(context, path, "path");
    if (!status)
        status = gpi__plan_bundle(context, &list, &size);
    if (status)
        return status;
    data = (unsigned char *)gpi__new(&context->allocator, size);
    if (data) {
        gpi__write_bundle(list.entries, list.count, data, size);
        status = gpi__store_bundle(context, path, data, size);
    } else {
        status = GEMMEPI_OUT_OF_MEMORY;
    }
    gpi__delete(&context->allocator, data);
    gpi__delete(&context->allocator, list.entries);
    return status;
}

GEMMEPI_API gemmepi_status gemmepi_bundle_write(gemmepi_context *context, void *buffer, size_t capacity,
                                                size_t *size) {
    gpi__code_list list;
    gemmepi_status status;
    if (size)
        *size = 0;
    status = gpi__check_call(context, size, "size");
    if (!status)
        status = gpi__plan_bundle(context, &list, size);
    if (status)
        return status;
    if (buffer && capacity < *size)
        status = gpi__fail(GEMMEPI_BUFFER_TOO_SMALL, "capacity is %llu, and the bundle needs %llu bytes",
                           (gpi__ull)capacity, (gpi__ull)*size);
    else if (buffer)
        gpi__write_bundle(list.entries, list.count, (unsigned char *)buffer, *size);
    gpi__delete(&context->allocator, list.entries);
    return status;
}

GEMMEPI_API gemmepi_status gemmepi_bundle_load(gemmepi_context *context, const char *path) {
    char reason[256], name[1024];
    gpi__text why = gpi__text_in(reason, sizeof reason);
    unsigned char *data = NULL;
    size_t size = 0;
    int code;
    gemmepi_status status = gpi__check_call(context, path, "path");
    if (status)
        return status;
    code = gpi__file_read_path(path, &context->allocator, GPI__BUNDLE_MOST, &data, &size);
    GPI__REFUSE_IF(code == GPI__FILE_NO_MEMORY, GEMMEPI_OUT_OF_MEMORY,
                   "there is no memory for the bundle %.1000s", path);
    if (code) {
        gpi__file_error(&why, code);
        return gpi__fail(GEMMEPI_FILE_ERROR, "the bundle %.1000s cannot be read: %s", path, reason);
    }
    snprintf(name, sizeof name, "the bundle %.1000s", path);
    return gpi__load_bundle(context, data, size, data, name);
}

GEMMEPI_API gemmepi_status gemmepi_bundle_read(gemmepi_context *context, const void *data, size_t size) {
    gemmepi_status status = gpi__check_call(context, data, "data");
    if (status)
        return status;
    return gpi__load_bundle(context, (const unsigned char *)data, size, NULL, "the bundle in memory");
}

#endif
