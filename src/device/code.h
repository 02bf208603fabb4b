/* Machine code by kernel: what a context keeps of the kernels that it used, so that a bundle can be made of them, and the
   bundles that it was given. The build lock guards both. What is in either stays as it is until the context goes. */
#ifndef GEMMEPI_DEVICE_CODE_H
#define GEMMEPI_DEVICE_CODE_H

#include "../base/map.h"
#include "context.h"
#include "source.h"

/* A kernel's file and prologue, and its key with what stands ahead of them there. */
#define GEMMEPI__KERNEL_KEY_SIZE 2048
#define GEMMEPI__CODE_KEY_SIZE   (GEMMEPI__KERNEL_KEY_SIZE + 256)
#define GEMMEPI__PROLOGUE_IN_KEY \
    (GEMMEPI__KERNEL_KEY_SIZE - 256) /* characters; of a longer one keys have the digest */

typedef struct gemmepi__code {
    const void *image; /* a cubin or PTX, at any address */
    size_t size;
    int arch; /* that it was compiled for, which may be older than the chip: 90 for 9.0 */
} gemmepi__code;

/* What bundle.h reads. */
typedef struct gemmepi__bundle {
    struct gemmepi__bundle *next;
    unsigned char *owned; /* its bytes, where they are not borrowed */
    gemmepi__code *codes; /* of all its kernels */
    gemmepi__map by_key;  /* to codes */
} gemmepi__bundle;

/* >>keys: what a kernel is made of, behind what it was made with or for */

/* The prologue, or its digest where a key has no room for it: a formula's is long. */
static void gemmepi__append_prologue(gemmepi__text *text, const char *prologue) {
    char digest[GEMMEPI__SHA256_HEX_SIZE];
    size_t length = strlen(prologue);
    gemmepi__sha256 sha;
    unsigned char bytes[GEMMEPI__SHA256_SIZE];
    if (length < GEMMEPI__PROLOGUE_IN_KEY) {
        gemmepi__append(text, "%s", prologue);
        return;
    }
    gemmepi__sha256_init(&sha);
    gemmepi__sha256_update(&sha, prologue, length);
    gemmepi__sha256_final(&sha, bytes);
    gemmepi__sha256_hex(bytes, digest);
    gemmepi__append(text, "digest of the prologue %s\n", digest);
}

static void gemmepi__append_kernel(gemmepi__text *text, const char *file, const char *prologue) {
    char sources[GEMMEPI__SHA256_HEX_SIZE];
    gemmepi__digest_closure(gemmepi__sources, file, sources);
    gemmepi__append(text, "sources %s\noptions --std=c++17\nfile %s\n", sources, file);
    gemmepi__append_prologue(text, prologue);
}

/* What the keys of all kernels for a chip begin with. */
static void gemmepi__append_chip(gemmepi__text *text, int arch) {
    gemmepi__append(text, "arch %d\n", arch);
}

/* In a bundle: for the chip, whatever compiled it. Returns the key's length. */
static size_t gemmepi__code_key(char key[GEMMEPI__CODE_KEY_SIZE], int arch, const char *file,
                                const char *prologue) {
    gemmepi__text text = gemmepi__text_in(key, GEMMEPI__CODE_KEY_SIZE);
    gemmepi__append_chip(&text, arch);
    gemmepi__append_kernel(&text, file, prologue);
    return text.length;
}

/* >>finding and keeping */

/* That of the first bundle that has it, or NULL. before: of those ahead of this one; NULL: of all. */
static const gemmepi__code *gemmepi__find_bundled(const gemmepi_context *context,
                                                  const gemmepi__bundle *before, const void *key,
                                                  size_t key_size) {
    const gemmepi__bundle *bundle;
    const gemmepi__code *code = NULL;
    for (bundle = context->bundles; bundle && bundle != before && !code; bundle = bundle->next)
        code = (const gemmepi__code *)gemmepi__map_find(&bundle->by_key, key, key_size);
    return code;
}

/* Keeps an image from the allocator, which it takes where it succeeds. */
static gemmepi_status gemmepi__keep_code(gemmepi_context *context, const void *key, size_t key_size,
                                         void *image, size_t size, int arch) {
    gemmepi__code *code = (gemmepi__code *)gemmepi__new(&context->allocator, sizeof *code);
    if (!code)
        return GEMMEPI_OUT_OF_MEMORY;
    code->image = image;
    code->size = size;
    code->arch = arch;
    if (gemmepi__map_insert(&context->codes, key, key_size, code))
        return GEMMEPI_OK;
    gemmepi__delete(&context->allocator, code);
    return GEMMEPI_OUT_OF_MEMORY;
}

/* >>freeing */

static void gemmepi__free_bundle(const gemmepi_allocator *allocator, gemmepi__bundle *bundle) {
    gemmepi__map_free(&bundle->by_key);
    gemmepi__delete(allocator, bundle->codes);
    gemmepi__delete(allocator, bundle->owned);
    gemmepi__delete(allocator, bundle);
}

static void gemmepi__free_kept_code(void *user, gemmepi__map_entry *entry) {
    const gemmepi_allocator *allocator = (const gemmepi_allocator *)user;
    gemmepi__code *code = (gemmepi__code *)entry->value;
    void *image;
    memcpy(&image, &code->image, sizeof image); /* which is const for bundles */
    gemmepi__delete(allocator, image);
    gemmepi__delete(allocator, code);
}

static void gemmepi__free_codes(gemmepi_context *context) {
    gemmepi__map_each(&context->codes, gemmepi__free_kept_code, &context->allocator);
    gemmepi__map_free(&context->codes);
    while (context->bundles) {
        gemmepi__bundle *bundle = context->bundles;
        context->bundles = bundle->next;
        gemmepi__free_bundle(&context->allocator, bundle);
    }
}

#endif
