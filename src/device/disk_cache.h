/* The cache folder: compiled kernels and tuning answers that outlive the process.

   Layout   One file for each entry, all in one folder: <SHA-256 of the key, 64 hex digits>.<kind>.gemmepi. The kind
            ("cubin", "tune") is 1 to 8 lower-case letters. Numbers are little endian:

                0   8  "gemmepi\n"                    32  32  SHA-256 of bytes 0 to 31, the key and the payload
                8   4  format version                 64      the key
                12  4  size of the key                        the payload
                16  8  kind, filled up with zeros             (nothing follows)
                24  8  size of the payload

   Key      Any bytes; the caller puts everything in that the payload depends on. The name only finds the file, what
            decides is the whole key in it.

   Trust    Code is loaded from here. So the folder must be this user's and writable by nobody else, and so must a
            file, which must be a regular one and no link; all of this is checked on what was opened, at every call.
            Every field is checked before it is used. A file that fails is a miss, never an error; one whose content
            is bad is removed.

   Sharing  Any number of threads, processes and machines may use a folder at once, without a lock: files are written
            aside and renamed into place, so a name has a whole file or none, and who finds it keeps it open while
            others replace or remove it. Two that miss the same key both put it; the last stays. Nobody relies on an
            entry being there.

   Size     After a put the oldest entries go until the rest is within the bound; a hit makes an entry young again.
            What an interrupted put left behind goes after an hour. Nothing else in the folder is touched.

   Nothing here fails: without a usable folder gets miss, puts do nothing, and the log says so once. */
#ifndef GEMMEPI_DEVICE_DISK_CACHE_H
#define GEMMEPI_DEVICE_DISK_CACHE_H

#include "../base/file.h"
#include "../base/hash.h"
#include "../base/log.h"

#define GPI__DISK_CACHE_VERSION 1
#define GPI__DISK_CACHE_HEADER  64
#define GPI__DISK_CACHE_NAME    96 /* room for an entry's name with its final zero: 64 + 1 + 8 + 8 + 1 */
#define GPI__DISK_CACHE_KIND    8

/* What gemmepi_config.cache_size promises for zero. */
#define GPI__DISK_CACHE_BOUND ((size_t)256 << 20)

/* No put takes an hour. */
#define GPI__DISK_CACHE_STALE_SECONDS 3600

typedef struct gpi__disk_cache {
    gemmepi_allocator allocator;
    gpi__log log;
    char *path; /* NULL: no cache */
    size_t bound;
    long times_refused, times_not_stored; /* counted so that the log has each once */
} gpi__disk_cache;

/* >>names */

static void gpi__disk_cache_name(char name[GPI__DISK_CACHE_NAME], const char *kind, const void *key,
                                 size_t key_size) {
    unsigned char digest[GPI__SHA256_SIZE];
    char hex[GPI__SHA256_HEX_SIZE];
    gpi__text text = gpi__text_in(name, GPI__DISK_CACHE_NAME);
    gpi__sha256_of(key, key_size, digest);
    gpi__sha256_hex(digest, hex);
    gpi__append(&text, "%s.%s.gemmepi", hex, kind);
}

/* Whether the first length characters of name are what gpi__disk_cache_name makes. */
static int gpi__disk_cache_is_entry(const char *name, size_t length) {
    static const char last[] = ".gemmepi";
    size_t hex = strspn(name, "0123456789abcdef");
    size_t kind = name[hex] == '.' ? strspn(name + hex + 1, "abcdefghijklmnopqrstuvwxyz") : 0;
    return hex == 64 && kind >= 1 && kind <= GPI__DISK_CACHE_KIND &&
           length == hex + 1 + kind + strlen(last) && strncmp(name + hex + 1 + kind, last, strlen(last)) == 0;
}

/* >>opening */

/* Takes copies of everything. path: NULL is gemmepi/ in the user's cache folder, "" is no cache. bound, in bytes: 0 is
   256 MiB. Touches no disk; the folder is made by the first put. */
static void gpi__disk_cache_open(gpi__disk_cache *cache, const gemmepi_allocator *allocator,
                                 const gpi__log *log, const char *path, size_t bound) {
    char full[GPI__PATH_SIZE];
    gpi__text text = gpi__text_in(full, sizeof full);
    memset(cache, 0, sizeof *cache);
    cache->allocator = *allocator;
    cache->log = *log;
    cache->bound = bound ? bound : GPI__DISK_CACHE_BOUND;
    if (path && path[0] == 0)
        return;
    if (!path) {
        if (!gpi__user_cache_folder(&text)) {
            gpi__say(&cache->log, GEMMEPI_LOG_INFO,
                     "the environment names no cache folder of the user's: compiled kernels are not kept; "
                     "set gemmepi_config.cache_path to keep them");
            return;
        }
        gpi__append(&text, "/gemmepi");
    } else {
        gpi__append_absolute(&text, path);
    }
    if (!gpi__text_is_cut(&text))
        cache->path = (char *)allocator->alloc(allocator->user, text.length + 1);
    if (cache->path)
        memcpy(cache->path, full, text.length + 1);
    else
        gpi__say(&cache->log, GEMMEPI_LOG_WARNING,
                 "the cache folder's path, of %llu bytes, is too long or there is no memory for it: compiled "
                 "kernels are not kept",
                 (gpi__ull)text.length);
}

static void gpi__disk_cache_close(gpi__disk_cache *cache) {
    gpi__delete(&cache->allocator, cache->path);
    cache->path = NULL;
}

/* 1 with the folder opened; 0 if it does not exist, unless `make` makes it; -1 if it cannot or must not be used, which
   the log is told once. */
static int gpi__disk_cache_enter(gpi__disk_cache *cache, int make, gpi__folder *folder) {
    char reason[512];
    gpi__text why = gpi__text_in(reason, sizeof reason);
    int code;
    if (!cache->path)
        return 0;
    code = gpi__folder_open(folder, cache->path);
    if (gpi__file_is_missing(code)) {
        if (!make)
            return 0;
        code = gpi__folder_make(cache->path);
        if (!code)
            code = gpi__folder_open(folder, cache->path);
    }
    if (code) {
        gpi__file_error(&why, code);
    } else {
        if (gpi__folder_is_private(folder, &why))
            return 1;
        gpi__folder_close(folder);
    }
    if (gpi__add(&cache->times_refused, 1) == 1)
        gpi__say(&cache->log, GEMMEPI_LOG_WARNING,
                 "the cache folder %s is not used, so kernels are compiled again in each process: %s; or set "
                 "gemmepi_config.cache_path to another folder",
                 cache->path, reason);
    return -1;
}

/* The folder in use, which need not exist yet; "" if there is none or it is refused. */
static const char *gpi__disk_cache_path(gpi__disk_cache *cache) {
    gpi__folder folder;
    int entered = gpi__disk_cache_enter(cache, 0, &folder);
    if (entered > 0)
        gpi__folder_close(&folder);
    return cache->path && entered >= 0 ? cache->path : "";
}

/* >>the file */

static void gpi__write_little_endian(unsigned char *bytes, int count, uint64_t value) {
    int i;
    for (i = 0; i < count; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
}

/* The header of the one file that this entry can be. */
static void gpi__disk_cache_header(unsigned char header[GPI__DISK_CACHE_HEADER], const char *kind,
                                   const void *key, size_t key_size, const void *payload,
                                   size_t payload_size) {
    gpi__sha256 sha;
    memset(header, 0, GPI__DISK_CACHE_HEADER);
    memcpy(header, "gemmepi\n", 8);
    gpi__write_little_endian(header + 8, 4, GPI__DISK_CACHE_VERSION);
    gpi__write_little_endian(header + 12, 4, key_size);
    memcpy(header + 16, kind, strlen(kind));
    gpi__write_little_endian(header + 24, 8, payload_size);
    gpi__sha256_init(&sha);
    gpi__sha256_update(&sha, header, 32);
    gpi__sha256_update(&sha, key, key_size);
    gpi__sha256_update(&sha, payload, payload_size);
    gpi__sha256_final(&sha, header + 32);
}

/* What is wrong with the file, or NULL: then the key is exactly this one, and the payload is all that follows it.
   The fields are not read but compared with what they have to be. */
static const char *gpi__disk_cache_fault(const unsigned char *file, size_t size, const char *kind,
                                         const void *key, size_t key_size) {
    unsigned char header[GPI__DISK_CACHE_HEADER];
    const unsigned char *rest = file + GPI__DISK_CACHE_HEADER;
    if (size < GPI__DISK_CACHE_HEADER || size - GPI__DISK_CACHE_HEADER < key_size)
        return "it is too short";
    size -= GPI__DISK_CACHE_HEADER;
    if (key_size != 0 && memcmp(rest, key, key_size) != 0)
        return "it has another key";
    gpi__disk_cache_header(header, kind, key, key_size, rest + key_size, size - key_size);
    if (memcmp(file, header, 8) != 0)
        return "it does not begin as a cache file does";
    if (memcmp(file + 8, header + 8, 4) != 0)
        return "it has another format version";
    if (memcmp(file + 12, header + 12, 20) != 0)
        return "its sizes or its kind do not fit";
    if (memcmp(file + 32, header + 32, GPI__SHA256_SIZE) != 0)
        return "its checksum does not fit";
    return NULL;
}

/* >>getting and putting */

/* 1 on a hit: *payload is from the allocator, aligned as its memory is, and the caller's to free. 0 on a miss. */
static int gpi__disk_cache_get(gpi__disk_cache *cache, const char *kind, const void *key, size_t key_size,
                               void **payload, size_t *payload_size) {
    char name[GPI__DISK_CACHE_NAME];
    gpi__folder folder;
    unsigned char *file = NULL;
    size_t size = 0;
    const char *fault = NULL;
    *payload = NULL;
    *payload_size = 0;
    if (gpi__disk_cache_enter(cache, 0, &folder) <= 0)
        return 0;
    gpi__disk_cache_name(name, kind, key, key_size);
    if (gpi__file_read(&folder, name, &cache->allocator, cache->bound, &file, &size) == 0) {
        fault = gpi__disk_cache_fault(file, size, kind, key, key_size);
        if (fault) {
            gpi__file_remove(&folder, name);
            gpi__say(&cache->log, GEMMEPI_LOG_DEBUG, "removed the cache file %s: %s", name, fault);
            gpi__delete(&cache->allocator, file);
            file = NULL;
        } else {
            gpi__file_touch(&folder, name);
        }
    }
    gpi__folder_close(&folder);
    if (!file)
        return 0;
    *payload_size = size - GPI__DISK_CACHE_HEADER - key_size;
    memmove(file, file + GPI__DISK_CACHE_HEADER + key_size, *payload_size);
    *payload = file;
    return 1;
}

typedef struct gpi__disk_cache_found {
    char name[GPI__DISK_CACHE_NAME];
    gpi__file_info info;
} gpi__disk_cache_found;

typedef struct gpi__disk_cache_scan {
    gpi__disk_cache *cache;
    const gpi__folder *folder;
    const char *newest;           /* the name just put: it counts, and stays whatever its time says */
    gpi__disk_cache_found *found; /* the other entries */
    size_t count, capacity;
    uint64_t total; /* bytes of all entries */
} gpi__disk_cache_scan;

static int gpi__disk_cache_make_room(gpi__disk_cache_scan *scan) {
    const gemmepi_allocator *allocator = &scan->cache->allocator;
    size_t capacity = scan->capacity ? 2 * scan->capacity : 64;
    gpi__disk_cache_found *found;
    if (scan->count < scan->capacity)
        return 1;
    found = (gpi__disk_cache_found *)allocator->alloc(allocator->user, capacity * sizeof *found);
    if (!found)
        return 0;
    if (scan->count != 0)
        memcpy(found, scan->found, scan->count * sizeof *found);
    gpi__delete(allocator, scan->found);
    scan->found = found;
    scan->capacity = capacity;
    return 1;
}

static void gpi__disk_cache_visit(void *user, const char *name) {
    gpi__disk_cache_scan *scan = (gpi__disk_cache_scan *)user;
    gpi__file_info info;
    size_t stem = gpi__file_aside_stem(name);
    int is_entry = gpi__disk_cache_is_entry(name, strlen(name));
    if (!is_entry && !(stem != 0 && gpi__disk_cache_is_entry(name, stem)))
        return;
    if (gpi__file_get_info(scan->folder, name, &info) != 0 || !info.is_regular)
        return;
    if (!is_entry) {
        if (info.modified < gpi__file_now() - GPI__DISK_CACHE_STALE_SECONDS)
            gpi__file_remove(scan->folder, name);
        return;
    }
    scan->total += info.size;
    /* without memory for it the entry is not a candidate this time */
    if (strcmp(name, scan->newest) != 0 && gpi__disk_cache_make_room(scan)) {
        memcpy(scan->found[scan->count].name, name, strlen(name) + 1);
        scan->found[scan->count].info = info;
        scan->count++;
    }
}

static int gpi__disk_cache_by_age(const void *left, const void *right) {
    const gpi__disk_cache_found *a = (const gpi__disk_cache_found *)left;
    const gpi__disk_cache_found *b = (const gpi__disk_cache_found *)right;
    if (a->info.modified != b->info.modified)
        return a->info.modified < b->info.modified ? -1 : 1;
    if (a->info.modified_nanoseconds != b->info.modified_nanoseconds)
        return a->info.modified_nanoseconds < b->info.modified_nanoseconds ? -1 : 1;
    return strcmp(a->name, b->name); /* so that processes that do this at once choose alike */
}

static void gpi__disk_cache_evict(gpi__disk_cache *cache, const gpi__folder *folder, const char *newest) {
    gpi__disk_cache_scan scan;
    size_t i;
    memset(&scan, 0, sizeof scan);
    scan.cache = cache;
    scan.folder = folder;
    scan.newest = newest;
    gpi__folder_list(folder, gpi__disk_cache_visit, &scan);
    if (scan.total > cache->bound && scan.count != 0)
        qsort(scan.found, scan.count, sizeof *scan.found, gpi__disk_cache_by_age);
    for (i = 0; i < scan.count && scan.total > cache->bound; i++) {
        int code = gpi__file_remove(folder, scan.found[i].name);
        if (code == 0 || gpi__file_is_missing(code)) /* another process was quicker */
            scan.total -= scan.found[i].info.size;
    }
    gpi__delete(&cache->allocator, scan.found);
}

/* Keeps the payload for later gets, in any process, until it is the oldest and there is no room. */
static void gpi__disk_cache_put(gpi__disk_cache *cache, const char *kind, const void *key, size_t key_size,
                                const void *payload, size_t payload_size) {
    char name[GPI__DISK_CACHE_NAME], reason[256];
    unsigned char header[GPI__DISK_CACHE_HEADER];
    gpi__file_piece pieces[3];
    gpi__folder folder;
    gpi__text why = gpi__text_in(reason, sizeof reason);
    int code;
    if (key_size > cache->bound || (uint64_t)key_size > 0xffffffffu ||
        payload_size > cache->bound - key_size ||
        cache->bound - key_size - payload_size < GPI__DISK_CACHE_HEADER) {
        gpi__say(&cache->log, GEMMEPI_LOG_DEBUG, "%llu bytes are too many for a cache of %llu: not kept",
                 (gpi__ull)payload_size, (gpi__ull)cache->bound);
        return;
    }
    if (gpi__disk_cache_enter(cache, 1, &folder) <= 0)
        return;
    gpi__disk_cache_name(name, kind, key, key_size);
    gpi__disk_cache_header(header, kind, key, key_size, payload, payload_size);
    pieces[0].data = header;
    pieces[0].size = sizeof header;
    pieces[1].data = key;
    pieces[1].size = key_size;
    pieces[2].data = payload;
    pieces[2].size = payload_size;
    code = gpi__file_store(&folder, name, GPI__FILE_FOR_USER, pieces, 3);
    if (code == 0) {
        gpi__disk_cache_evict(cache, &folder, name);
    } else if (gpi__add(&cache->times_not_stored, 1) == 1) {
        gpi__file_error(&why, code);
        gpi__say(
            &cache->log, GEMMEPI_LOG_WARNING,
            "nothing can be stored in the cache folder %s, so kernels are compiled again in each process: "
            "%s; make room there, or set gemmepi_config.cache_path to another folder",
            cache->path, reason);
    }
    gpi__folder_close(&folder);
}

#endif
