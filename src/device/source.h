/* Our CUDA sources: one file as a text, and the digest that names it with all that it includes. */
#ifndef GEMMEPI_DEVICE_SOURCE_H
#define GEMMEPI_DEVICE_SOURCE_H

#include "../../kernels_src.h"
#include "../base/hash.h"
#include "../base/memory.h"
#include "../base/thread.h"

#define GPI__MAX_SOURCES 128

/* Bit i of all words: the i-th of the sources. */
typedef struct gpi__source_set {
    uint64_t words[GPI__MAX_SOURCES / 64];
} gpi__source_set;

static int gpi__has_source(const gpi__source_set *set, int i) {
    return (int)(set->words[i / 64] >> i % 64 & 1);
}

static void gpi__add_source(gpi__source_set *set, int i) {
    set->words[i / 64] |= (uint64_t)1 << i % 64;
}

static const gpi__source *gpi__find_source_in(const gpi__source *sources, const char *name) {
    while (sources->name && strcmp(sources->name, name) != 0)
        sources++;
    return sources->name ? sources : NULL;
}

static const gpi__source *gpi__find_source(const char *name) {
    return gpi__find_source_in(gpi__sources, name);
}

/* prologue and the source's parts as one text from the allocator */
static char *gpi__join_source(const gemmepi_allocator *allocator, const char *prologue,
                              const gpi__source *source) {
    const char *const *part;
    size_t length = strlen(prologue), size;
    char *text, *at;
    for (part = source->parts; *part; part++)
        length += strlen(*part);
    text = (char *)gpi__new(allocator, length + 1);
    if (!text)
        return NULL;
    size = strlen(prologue);
    memcpy(text, prologue, size);
    at = text + size;
    for (part = source->parts; *part; part++) {
        size = strlen(*part);
        memcpy(at, *part, size);
        at += size;
    }
    return text;
}

/* >>digests: a file's own, and the files that it includes itself. Those of the library's own sources are found once in a
   process. No lock guards them: who is first with a file publishes what it found, others that miss it find the same. */

typedef struct gpi__source_digest {
    unsigned char own[GPI__SHA256_SIZE];
    gpi__source_set includes;
} gpi__source_digest;

static gpi__source_digest gpi__source_digests[GPI__MAX_SOURCES];
static long gpi__source_claims[GPI__MAX_SOURCES];
static gpi__atomic_pointer gpi__source_known[GPI__MAX_SOURCES]; /* to the digest, once it is whole */

/* The number of the source that a line of the embedded text includes; -1: none. */
static int gpi__included_by_line(const gpi__source *sources, const char *line) {
    static const char directive[] = "#include \"";
    const char *end;
    char name[64];
    const gpi__source *source;
    if (strncmp(line, directive, strlen(directive)) != 0)
        return -1;
    line += strlen(directive);
    end = strchr(line, '"');
    if (!end || (size_t)(end - line) >= sizeof name)
        return -1;
    memcpy(name, line, (size_t)(end - line));
    name[end - line] = 0;
    source = gpi__find_source_in(sources, name);
    return source ? (int)(source - sources) : -1;
}

/* Adds those of all lines of a part, which begins at one. */
static void gpi__add_included(const gpi__source *sources, const char *part, gpi__source_set *set) {
    while (part) {
        int included = gpi__included_by_line(sources, part);
        if (included >= 0)
            gpi__add_source(set, included);
        part = strchr(part, '\n');
        part = part ? part + 1 : NULL;
    }
}

static void gpi__digest_source(const gpi__source *sources, int index, gpi__source_digest *digest) {
    const gpi__source *source = &sources[index];
    const char *const *part;
    gpi__sha256 sha;
    memset(&digest->includes, 0, sizeof digest->includes);
    gpi__sha256_init(&sha);
    gpi__sha256_update(&sha, source->name, strlen(source->name) + 1);
    for (part = source->parts; *part; part++) {
        gpi__sha256_update(&sha, *part, strlen(*part));
        gpi__add_included(sources, *part, &digest->includes);
    }
    gpi__sha256_final(&sha, digest->own);
}

static void gpi__know_source(int index, gpi__source_digest *digest) {
    const void *known = gpi__load_pointer(&gpi__source_known[index]);
    if (known) {
        memcpy(digest, known, sizeof *digest);
        return;
    }
    gpi__digest_source(gpi__sources, index, digest);
    if (gpi__add(&gpi__source_claims[index], 1) == 1) {
        gpi__source_digests[index] = *digest;
        gpi__publish_pointer(&gpi__source_known[index], &gpi__source_digests[index]);
    }
}

/* The first that is wanted and not done; -1: none. */
static int gpi__first_left(const gpi__source_set *wanted, const gpi__source_set *done) {
    int i;
    for (i = 0; i < GPI__MAX_SOURCES; i++)
        if (gpi__has_source(wanted, i) && !gpi__has_source(done, i))
            return i;
    return -1;
}

/* The digest of a file and of exactly those that it includes, directly or not. sources: gpi__sources, or a test's. */
static void gpi__digest_closure(const gpi__source *sources, const char *file,
                                char hex[GPI__SHA256_HEX_SIZE]) {
    const gpi__source *source = gpi__find_source_in(sources, file);
    gpi__source_set wanted, done;
    int index, i;
    unsigned char all[GPI__SHA256_SIZE];
    gpi__sha256 sha;
    memset(&wanted, 0, sizeof wanted);
    done = wanted;
    if (source)
        gpi__add_source(&wanted, (int)(source - sources));
    gpi__sha256_init(&sha);
    while ((index = gpi__first_left(&wanted, &done)) >= 0) {
        gpi__source_digest digest;
        if (sources == gpi__sources)
            gpi__know_source(index, &digest);
        else
            gpi__digest_source(sources, index, &digest);
        gpi__sha256_update(&sha, digest.own, sizeof digest.own);
        for (i = 0; i < GPI__MAX_SOURCES / 64; i++)
            wanted.words[i] |= digest.includes.words[i];
        gpi__add_source(&done, index);
    }
    gpi__sha256_final(&sha, all);
    gpi__sha256_hex(all, hex);
}

#endif
