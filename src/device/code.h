/* Machine code by kernel: what a context keeps of the kernels that it used, so that a bundle can be made of them, and the
   bundles that it was given. The build lock guards both. What is in either stays as it is until the context goes. */
#ifndef GEMMEPI_DEVICE_CODE_H
#define GEMMEPI_DEVICE_CODE_H

#include "../base/map.h"
#include "context.h"
#include "source.h"

/* A kernel's file and prologue, and its key with what stands ahead of them there. */
#define GPI__KERNEL_KEY_SIZE 2048
#define GPI__CODE_KEY_SIZE   (GPI__KERNEL_KEY_SIZE + 256)
#define GPI__PROLOGUE_IN_KEY \
    (GPI__KERNEL_KEY_SIZE - 256) /* characters; of a longer one keys have the digest */

typedef struct gpi__code {
    const void *image; /* a cubin or PTX, at any address */
    size_t size;
    int arch; /* that it was compiled for, which may be older than the chip: 90 for 9.0 */
} gpi__code;

/* What bundle.h reads. */
typedef struct gpi__bundle {
    struct gpi__bundle *next;
    unsigned char *owned; /* its bytes, where they are not borrowed */
    gpi__code *codes;     /* of all its kernels */
    gpi__map by_key;      /* to codes */
} gpi__bundle;

/* >>keys: what a kernel is made of, behind what it was made with or for */

/* The prologue, or its digest where a key has no room for it: a formula's is long. */
static void gpi__append_prologue(gpi__text *text, const char *prologue) {
    char digest[GPI__SHA256_HEX_SIZE];
    size_t length = strlen(prologue);
    gpi__sha256 sha;
    unsigned char bytes[GPI__SHA256_SIZE];
    if (length < GPI__PROLOGUE_IN_KEY) {
        gpi__append(text, "%s", prologue);
        return;
    }
    gpi__sha256_init(&sha);
    gpi__sha256_update(&sha, prologue, length);
    gpi__sha256_final(&sha, bytes);
    gpi__sha256_hex(bytes, digest);
    gpi__append(text, "digest of the prologue %s\n", digest);
}

static void gpi__append_kernel(gpi__text *text, const char *file, const char *prologue) {
    char sources[GPI__SHA256_HEX_SIZE];
    gpi__digest_closure(gpi__sources, file, sources);
    gpi__append(text, "sources %s\noptions --std=c++17\nfile %s\n", sources, file);
    gpi__append_prologue(text, prologue);
}

/* What the keys of all kernels for a chip begin with. */
static void gpi__append_chip(gpi__text *text, int arch) {
    gpi__append(text, "arch %d\n", arch);
}

/* In a bundle: for the chip, whatever compiled it. Returns the key's length. */
static size_t gpi__code_key(char key[GPI__CODE_KEY_SIZE], int arch, const char *file, const char *prologue) {
    gpi__text text = gpi__text_in(key, GPI__CODE_KEY_SIZE);
    gpi__append_chip(&text, arch);
    gpi__append_kernel(&text, file, prologue);
    return text.length;
}

/* >>finding and keeping */

/* That of the first bundle that has it, or NULL. before: of those ahead of this one; NULL: of all. */
static const gpi__code *gpi__find_bundled(const gemmepi_context *context, const gpi__bundle *before,
                                          const void *key, size_t key_size) {
    const gpi__bundle *bundle;
    const gpi__code *code = NULL;
    for (bundle = context->bundles; bundle && bundle != before && !code; bundle = bundle->next)
        code = (const gpi__code *)gpi__map_find(&bundle->by_key, key, key_size);
    return code;
}

/* Keeps an image from the allocator, which it takes where it succeeds. */
static gemmepi_status gpi__keep_code(gemmepi_context *context, const void *key, size_t key_size, void *image,
                                     size_t size, int arch) {
    gpi__code *code = (gpi__code *)gpi__new(&context->allocator, sizeof *code);
    if (!code)
        return GEMMEPI_OUT_OF_MEMORY;
    code->image = image;
    code->size = size;
    code->arch = arch;
    if (gpi__map_insert(&context->codes, key, key_size, code))
        return GEMMEPI_OK;
    gpi__delete(&context->allocator, code);
    return GEMMEPI_OUT_OF_MEMORY;
}

/* >>freeing */

static void gpi__free_bundle(const gemmepi_allocator *allocator, gpi__bundle *bundle) {
    gpi__map_free(&bundle->by_key);
    gpi__delete(allocator, bundle->codes);
    gpi__delete(allocator, bundle->owned);
    gpi__delete(allocator, bundle);
}

static void gpi__free_kept_code(void *user, gpi__map_entry *entry) {
    const gemmepi_allocator *allocator = (const gemmepi_allocator *)user;
    gpi__code *code = (gpi__code *)entry->value;
    void *image;
    memcpy(&image, &code->image, sizeof image); /* which is const for bundles */
    gpi__delete(allocator, image);
    gpi__delete(allocator, code);
}

static void gpi__free_codes(gemmepi_context *context) {
    gpi__map_each(&context->codes, gpi__free_kept_code, &context->allocator);
    gpi__map_free(&context->codes);
    while (context->bundles) {
        gpi__bundle *bundle = context->bundles;
        context->bundles = bundle->next;
        gpi__free_bundle(&context->allocator, bundle);
    }
}

#endif
