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

#define GEMMEPI__DISK_CACHE_VERSION 1
#define GEMMEPI__DISK_CACHE_HEADER  64
#define GEMMEPI__DISK_CACHE_NAME    96 /* room for an entry's name with its final zero: 64 + 1 + 8 + 8 + 1 */
#define GEMMEPI__DISK_CACHE_KIND    8

/* What gemmepi_config.cache_size promises for zero. */
#define GEMMEPI__DISK_CACHE_BOUND ((size_t)256 << 20)

/* No put takes an hour. */
#define GEMMEPI__DISK_CACHE_STALE_SECONDS 3600

typedef struct gemmepi__disk_cache {
    gemmepi_allocator allocator;
    gemmepi__log log;
    char *path; /* NULL: no cache */
    size_t bound;
    long times_refused, times_not_stored; /* counted so that the log has each once */
} gemmepi__disk_cache;

/* >>names */

static void gemmepi__disk_cache_name(char name[GEMMEPI__DISK_CACHE_NAME], const char *kind, const void *key,
                                     size_t key_size) {
    unsigned char digest[GEMMEPI__SHA256_SIZE];
    char hex[GEMMEPI__SHA256_HEX_SIZE];
    gemmepi__text text = gemmepi__text_in(name, GEMMEPI__DISK_CACHE_NAME);
    gemmepi__sha256_of(key, key_size, digest);
    gemmepi__sha256_hex(digest, hex);
    gemmepi__append(&text, "%s.%s.gemmepi", hex, kind);
}

/* Whether the first length characters of name are what gemmepi__disk_cache_name makes. */
static int gemmepi__disk_cache_is_entry(const char *name, size_t length) {
    static const char last[] = ".gemmepi";
    size_t hex = strspn(name, "0123456789abcdef");
    size_t kind = name[hex] == '.' ? strspn(name + hex + 1, "abcdefghijklmnopqrstuvwxyz") : 0;
    return hex == 64 && kind >= 1 && kind <= GEMMEPI__DISK_CACHE_KIND &&
           length == hex + 1 + kind + strlen(last) && strncmp(name + hex + 1 + kind, last, strlen(last)) == 0;
}

/* >>opening */

/* Takes copies of everything. path: NULL is gemmepi/ in the user's cache folder, "" is no cache. bound, in bytes: 0 is
   256 MiB. Touches no disk; the folder is made by the first put. */
static void gemmepi__disk_cache_open(gemmepi__disk_cache *cache, const gemmepi_allocator *allocator,
                                     const gemmepi__log *log, const char *path, size_t bound) {
    char full[GEMMEPI__PATH_SIZE];
    gemmepi__text text = gemmepi__text_in(full, sizeof full);
    memset(cache, 0, sizeof *cache);
    cache->allocator = *allocator;
    cache->log = *log;
    cache->bound = bound ? bound : GEMMEPI__DISK_CACHE_BOUND;
    if (path && path[0] == 0)
        return;
    if (!path) {
        if (!gemmepi__user_cache_folder(&text)) {
            gemmepi__say(
                &cache->log, GEMMEPI_LOG_INFO,
                "the environment names no cache folder of the user's: compiled kernels are not kept; "
                "set gemmepi_config.cache_path to keep them");
            return;
        }
        gemmepi__append(&text, "/gemmepi");
    } else {
        gemmepi__append_absolute(&text, path);
    }
    if (!gemmepi__text_is_cut(&text))
        cache->path = (char *)allocator->alloc(allocator->user, text.length + 1);
    if (cache->path)
        memcpy(cache->path, full, text.length + 1);
    else
        gemmepi__say(
            &cache->log, GEMMEPI_LOG_WARNING,
            "the cache folder's path, of %llu bytes, is too long or there is no memory for it: compiled "
            "kernels are not kept",
            (gemmepi__ull)text.length);
}

static void gemmepi__disk_cache_close(gemmepi__disk_cache *cache) {
    gemmepi__delete(&cache->allocator, cache->path);
    cache->path = NULL;
}

/* 1 with the folder opened; 0 if it does not exist, unless `make` makes it; -1 if it cannot or must not be used, which
   the log is told once. */
static int gemmepi__disk_cache_enter(gemmepi__disk_cache *cache, int make, gemmepi__folder *folder) {
    char reason[512];
    gemmepi__text why = gemmepi__text_in(reason, sizeof reason);
    int code;
    if (!cache->path)
        return 0;
    code = gemmepi__folder_open(folder, cache->path);
    if (gemmepi__file_is_missing(code)) {
        if (!make)
            return 0;
        code = gemmepi__folder_make(cache->path);
        if (!code)
            code = gemmepi__folder_open(folder, cache->path);
    }
    if (code) {
        gemmepi__file_error(&why, code);
    } else {
        if (gemmepi__folder_is_private(folder, &why))
            return 1;
        gemmepi__folder_close(folder);
    }
    if (gemmepi__add(&cache->times_refused, 1) == 1)
        gemmepi__say(
            &cache->log, GEMMEPI_LOG_WARNING,
            "the cache folder %s is not used, so kernels are compiled anew in each process: %s; or set "
            "gemmepi_config.cache_path to another folder",
            cache->path, reason);
    return -1;
}

/* The folder in use, which need not exist yet; "" if there is none or it is refused. */
static const char *gemmepi__disk_cache_path(gemmepi__disk_cache *cache) {
    gemmepi__folder folder;
    int entered = gemmepi__disk_cache_enter(cache, 0, &folder);
    if (entered > 0)
        gemmepi__folder_close(&folder);
    return cache->path && entered >= 0 ? cache->path : "";
}

/* >>the file */

static void gemmepi__write_little_endian(unsigned char *bytes, int count, uint64_t value) {
    int i;
    for (i = 0; i < count; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
}

/* The header of the one file that this entry can be. */
static void gemmepi__disk_cache_header(unsigned char header[GEMMEPI__DISK_CACHE_HEADER], const char *kind,
                                       const void *key, size_t key_size, const void *payload,
                                       size_t payload_size) {
    gemmepi__sha256 sha;
    memset(header, 0, GEMMEPI__DISK_CACHE_HEADER);
    memcpy(header, "gemmepi\n", 8);
    gemmepi__write_little_endian(header + 8, 4, GEMMEPI__DISK_CACHE_VERSION);
    gemmepi__write_little_endian(header + 12, 4, key_size);
    memcpy(header + 16, kind, strlen(kind));
    gemmepi__write_little_endian(header + 24, 8, payload_size);
    gemmepi__sha256_init(&sha);
    gemmepi__sha256_update(&sha, header, 32);
    gemmepi__sha256_update(&sha, key, key_size);
    gemmepi__sha256_update(&sha, payload, payload_size);
    gemmepi__sha256_final(&sha, header + 32);
}

/* What is wrong with the file, or NULL: then the key is exactly this one, and the payload is all that follows it.
   The fields are not read but compared with what they have to be. */
static const char *gemmepi__disk_cache_fault(const unsigned char *file, size_t size, const char *kind,
                                             const void *key, size_t key_size) {
    unsigned char header[GEMMEPI__DISK_CACHE_HEADER];
    const unsigned char *rest = file + GEMMEPI__DISK_CACHE_HEADER;
    if (size < GEMMEPI__DISK_CACHE_HEADER || size - GEMMEPI__DISK_CACHE_HEADER < key_size)
        return "it is too short";
    size -= GEMMEPI__DISK_CACHE_HEADER;
    if (key_size != 0 && memcmp(rest, key, key_size) != 0)
        return "it has another key";
    gemmepi__disk_cache_header(header, kind, key, key_size, rest + key_size, size - key_size);
    if (memcmp(file, header, 8) != 0)
        return "it does not begin as a cache file does";
    if (memcmp(file + 8, header + 8, 4) != 0)
        return "it has another format version";
    if (memcmp(file + 12, header + 12, 20) != 0)
        return "its sizes or its kind do not fit";
    if (memcmp(file + 32, header + 32, GEMMEPI__SHA256_SIZE) != 0)
        return "its checksum does not fit";
    return NULL;
}

/* >>getting and putting */

/* 1 on a hit: *payload is from the allocator, aligned as its memory is, and the caller's to free. 0 on a miss. */
static int gemmepi__disk_cache_get(gemmepi__disk_cache *cache, const char *kind, const void *key,
                                   size_t key_size, void **payload, size_t *payload_size) {
    char name[GEMMEPI__DISK_CACHE_NAME];
    gemmepi__folder folder;
    unsigned char *file = NULL;
    size_t size = 0;
    const char *fault = NULL;
    *payload = NULL;
    *payload_size = 0;
    if (gemmepi__disk_cache_enter(cache, 0, &folder) <= 0)
        return 0;
    gemmepi__disk_cache_name(name, kind, key, key_size);
    if (gemmepi__file_read(&folder, name, &cache->allocator, cache->bound, &file, &size) == 0) {
        fault = gemmepi__disk_cache_fault(file, size, kind, key, key_size);
        if (fault) {
            gemmepi__file_remove(&folder, name);
            gemmepi__say(&cache->log, GEMMEPI_LOG_DEBUG, "removed the cache file %s: %s", name, fault);
            gemmepi__delete(&cache->allocator, file);
            file = NULL;
        } else {
            gemmepi__file_touch(&folder, name);
        }
    }
    gemmepi__folder_close(&folder);
    if (!file)
        return 0;
    *payload_size = size - GEMMEPI__DISK_CACHE_HEADER - key_size;
    memmove(file, file + GEMMEPI__DISK_CACHE_HEADER + key_size, *payload_size);
    *payload = file;
    return 1;
}

typedef struct gemmepi__disk_cache_found {
    char name[GEMMEPI__DISK_CACHE_NAME];
    gemmepi__file_info info;
} gemmepi__disk_cache_found;

typedef struct gemmepi__disk_cache_scan {
    gemmepi__disk_cache *cache;
    const gemmepi__folder *folder;
    const char *newest;               /* the name just put: it counts, and stays whatever its time says */
    gemmepi__disk_cache_found *found; /* the other entries */
    size_t count, capacity;
    uint64_t total; /* bytes of all entries */
} gemmepi__disk_cache_scan;

static int gemmepi__disk_cache_make_room(gemmepi__disk_cache_scan *scan) {
    const gemmepi_allocator *allocator = &scan->cache->allocator;
    size_t capacity = scan->capacity ? 2 * scan->capacity : 64;
    gemmepi__disk_cache_found *found;
    if (scan->count < scan->capacity)
        return 1;
    found = (gemmepi__disk_cache_found *)allocator->alloc(allocator->user, capacity * sizeof *found);
    if (!found)
        return 0;
    if (scan->count != 0)
        memcpy(found, scan->found, scan->count * sizeof *found);
    gemmepi__delete(allocator, scan->found);
    scan->found = found;
    scan->capacity = capacity;
    return 1;
}

static void gemmepi__disk_cache_visit(void *user, const char *name) {
    gemmepi__disk_cache_scan *scan = (gemmepi__disk_cache_scan *)user;
    gemmepi__file_info info;
    size_t stem = gemmepi__file_aside_stem(name);
    int is_entry = gemmepi__disk_cache_is_entry(name, strlen(name));
    if (!is_entry && !(stem != 0 && gemmepi__disk_cache_is_entry(name, stem)))
        return;
    if (gemmepi__file_get_info(scan->folder, name, &info) != 0 || !info.is_regular)
        return;
    if (!is_entry) {
        if (info.modified < gemmepi__file_now() - GEMMEPI__DISK_CACHE_STALE_SECONDS)
            gemmepi__file_remove(scan->folder, name);
        return;
    }
    scan->total += info.size;
    /* without memory for it the entry is not a candidate this time */
    if (strcmp(name, scan->newest) != 0 && gemmepi__disk_cache_make_room(scan)) {
        memcpy(scan->found[scan->count].name, name, strlen(name) + 1);
        scan->found[scan->count].info = info;
        scan->count++;
    }
}

static int gemmepi__disk_cache_by_age(const void *left, const void *right) {
    const gemmepi__disk_cache_found *a = (const gemmepi__disk_cache_found *)left;
    const gemmepi__disk_cache_found *b = (const gemmepi__disk_cache_found *)right;
    if (a->info.modified != b->info.modified)
        return a->info.modified < b->info.modified ? -1 : 1;
    if (a->info.modified_nanoseconds != b->info.modified_nanoseconds)
        return a->info.modified_nanoseconds < b->info.modified_nanoseconds ? -1 : 1;
    return strcmp(a->name, b->name); /* so that processes that do this at once choose alike */
}

static void gemmepi__disk_cache_evict(gemmepi__disk_cache *cache, const gemmepi__folder *folder,
                                      const char *newest) {
    gemmepi__disk_cache_scan scan;
    size_t i;
    memset(&scan, 0, sizeof scan);
    scan.cache = cache;
    scan.folder = folder;
    scan.newest = newest;
    gemmepi__folder_list(folder, gemmepi__disk_cache_visit, &scan);
    if (scan.total > cache->bound && scan.count != 0)
        qsort(scan.found, scan.count, sizeof *scan.found, gemmepi__disk_cache_by_age);
    for (i = 0; i < scan.count && scan.total > cache->bound; i++) {
        int code = gemmepi__file_remove(folder, scan.found[i].name);
        if (code == 0 || gemmepi__file_is_missing(code)) /* another process was quicker */
            scan.total -= scan.found[i].info.size;
    }
    gemmepi__delete(&cache->allocator, scan.found);
}

/* Keeps the payload for later gets, in any process, until it is the oldest and there is no room. */
static void gemmepi__disk_cache_put(gemmepi__disk_cache *cache, const char *kind, const void *key,
                                    size_t key_size, const void *payload, size_t payload_size) {
    char name[GEMMEPI__DISK_CACHE_NAME], reason[256];
    unsigned char header[GEMMEPI__DISK_CACHE_HEADER];
    gemmepi__file_piece pieces[3];
    gemmepi__folder folder;
    gemmepi__text why = gemmepi__text_in(reason, sizeof reason);
    int code;
    if (key_size > cache->bound || (uint64_t)key_size > 0xffffffffu ||
        payload_size > cache->bound - key_size ||
        cache->bound - key_size - payload_size < GEMMEPI__DISK_CACHE_HEADER) {
        gemmepi__say(&cache->log, GEMMEPI_LOG_DEBUG, "%llu bytes are too many for a cache of %llu: not kept",
                     (gemmepi__ull)payload_size, (gemmepi__ull)cache->bound);
        return;
    }
    if (gemmepi__disk_cache_enter(cache, 1, &folder) <= 0)
        return;
    gemmepi__disk_cache_name(name, kind, key, key_size);
    gemmepi__disk_cache_header(header, kind, key, key_size, payload, payload_size);
    pieces[0].data = header;
    pieces[0].size = sizeof header;
    pieces[1].data = key;
    pieces[1].size = key_size;
    pieces[2].data = payload;
    pieces[2].size = payload_size;
    code = gemmepi__file_store(&folder, name, GEMMEPI__FILE_FOR_USER, pieces, 3);
    if (code == 0) {
        gemmepi__disk_cache_evict(cache, &folder, name);
    } else if (gemmepi__add(&cache->times_not_stored, 1) == 1) {
        gemmepi__file_error(&why, code);
        gemmepi__say(
            &cache->log, GEMMEPI_LOG_WARNING,
            "nothing can be stored in the cache folder %s, so kernels are compiled anew in each process: "
            "%s; make room there, or set gemmepi_config.cache_path to another folder",
            cache->path, reason);
    }
    gemmepi__folder_close(&folder);
}

#endif
