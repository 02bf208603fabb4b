/* Our CUDA sources: one file as a text, and the digest that names it with all that it includes. */
#ifndef GEMMEPI_DEVICE_SOURCE_H
#define GEMMEPI_DEVICE_SOURCE_H

#include "../../kernels_src.h"
#include "../base/hash.h"
#include "../base/memory.h"
#include "../base/thread.h"

#define GEMMEPI__MAX_SOURCES 128

/* Bit i of all words: the i-th of the sources. */
typedef struct gemmepi__source_set {
    uint64_t words[GEMMEPI__MAX_SOURCES / 64];
} gemmepi__source_set;

static int gemmepi__has_source(const gemmepi__source_set *set, int i) {
    return (int)(set->words[i / 64] >> i % 64 & 1);
}

static void gemmepi__add_source(gemmepi__source_set *set, int i) {
    set->words[i / 64] |= (uint64_t)1 << i % 64;
}

static const gemmepi__source *gemmepi__find_source_in(const gemmepi__source *sources, const char *name) {
    while (sources->name && strcmp(sources->name, name) != 0)
        sources++;
    return sources->name ? sources : NULL;
}

static const gemmepi__source *gemmepi__find_source(const char *name) {
    return gemmepi__find_source_in(gemmepi__sources, name);
}

/* prologue and the source's parts as one text from the allocator */
static char *gemmepi__join_source(const gemmepi_allocator *allocator, const char *prologue,
                                  const gemmepi__source *source) {
    const char *const *part;
    size_t length = strlen(prologue), size;
    char *text, *at;
    for (part = source->parts; *part; part++)
        length += strlen(*part);
    text = (char *)gemmepi__new(allocator, length + 1);
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

typedef struct gemmepi__source_digest {
    unsigned char own[GEMMEPI__SHA256_SIZE];
    gemmepi__source_set includes;
} gemmepi__source_digest;

static gemmepi__source_digest gemmepi__source_digests[GEMMEPI__MAX_SOURCES];
static long gemmepi__source_claims[GEMMEPI__MAX_SOURCES];
static gemmepi__atomic_pointer
    gemmepi__source_known[GEMMEPI__MAX_SOURCES]; /* to the digest, once it is whole */

/* The number of the source that a line of the embedded text includes; -1: none. */
static int gemmepi__included_by_line(const gemmepi__source *sources, const char *line) {
    static const char directive[] = "#include \"";
    const char *end;
    char name[64];
    const gemmepi__source *source;
    if (strncmp(line, directive, strlen(directive)) != 0)
        return -1;
    line += strlen(directive);
    end = strchr(line, '"');
    if (!end || (size_t)(end - line) >= sizeof name)
        return -1;
    memcpy(name, line, (size_t)(end - line));
    name[end - line] = 0;
    source = gemmepi__find_source_in(sources, name);
    return source ? (int)(source - sources) : -1;
}

/* Adds those of all lines of a part, which begins at one. */
static void gemmepi__add_included(const gemmepi__source *sources, const char *part,
                                  gemmepi__source_set *set) {
    while (part) {
        int included = gemmepi__included_by_line(sources, part);
        if (included >= 0)
            gemmepi__add_source(set, included);
        part = strchr(part, '\n');
        part = part ? part + 1 : NULL;
    }
}

static void gemmepi__digest_source(const gemmepi__source *sources, int index,
                                   gemmepi__source_digest *digest) {
    const gemmepi__source *source = &sources[index];
    const char *const *part;
    gemmepi__sha256 sha;
    memset(&digest->includes, 0, sizeof digest->includes);
    gemmepi__sha256_init(&sha);
    gemmepi__sha256_update(&sha, source->name, strlen(source->name) + 1);
    for (part = source->parts; *part; part++) {
        gemmepi__sha256_update(&sha, *part, strlen(*part));
        gemmepi__add_included(sources, *part, &digest->includes);
    }
    gemmepi__sha256_final(&sha, digest->own);
}

static void gemmepi__know_source(int index, gemmepi__source_digest *digest) {
    const void *known = gemmepi__load_pointer(&gemmepi__source_known[index]);
    if (known) {
        memcpy(digest, known, sizeof *digest);
        return;
    }
    gemmepi__digest_source(gemmepi__sources, index, digest);
    if (gemmepi__add(&gemmepi__source_claims[index], 1) == 1) {
        gemmepi__source_digests[index] = *digest;
        gemmepi__publish_pointer(&gemmepi__source_known[index], &gemmepi__source_digests[index]);
    }
}

/* The first that is wanted and not done; -1: none. */
static int gemmepi__first_left(const gemmepi__source_set *wanted, const gemmepi__source_set *done) {
    int i;
    for (i = 0; i < GEMMEPI__MAX_SOURCES; i++)
        if (gemmepi__has_source(wanted, i) && !gemmepi__has_source(done, i))
            return i;
    return -1;
}

/* The digest of a file and of exactly those that it includes, directly or not. sources: gemmepi__sources, or a test's. */
static void gemmepi__digest_closure(const gemmepi__source *sources, const char *file,
                                    char hex[GEMMEPI__SHA256_HEX_SIZE]) {
    const gemmepi__source *source = gemmepi__find_source_in(sources, file);
    gemmepi__source_set wanted, done;
    int index, i;
    unsigned char all[GEMMEPI__SHA256_SIZE];
    gemmepi__sha256 sha;
    memset(&wanted, 0, sizeof wanted);
    done = wanted;
    if (source)
        gemmepi__add_source(&wanted, (int)(source - sources));
    gemmepi__sha256_init(&sha);
    while ((index = gemmepi__first_left(&wanted, &done)) >= 0) {
        gemmepi__source_digest digest;
        if (sources == gemmepi__sources)
            gemmepi__know_source(index, &digest);
        else
            gemmepi__digest_source(sources, index, &digest);
        gemmepi__sha256_update(&sha, digest.own, sizeof digest.own);
        for (i = 0; i < GEMMEPI__MAX_SOURCES / 64; i++)
            wanted.words[i] |= digest.includes.words[i];
        gemmepi__add_source(&done, index);
    }
    gemmepi__sha256_final(&sha, all);
    gemmepi__sha256_hex(all, hex);
}

#endif
