#if !defined(_WIN32) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#if !defined(_WIN32)
#include <sys/resource.h>

static int hides_limit; /* then the library does not learn of the limit, and a write fails midway */

static int ask_for_limit(int resource, struct rlimit *limit) {
    return hides_limit ? -1 : getrlimit(resource, limit);
}
#define getrlimit(resource, limit) ask_for_limit((int)(resource), limit)
#endif
#include "device/disk_cache.h"
#include "test.h"

#include <time.h>

#if GPI__WINDOWS
#include <sys/utime.h>
#else
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <utime.h>
#endif

/* >>a folder for each test, and what happens in it */

#define PATH_SIZE 1024

static char root[PATH_SIZE / 2]; /* where all of the tests' folders lie, made by main */
static int folders;

static gemmepi_allocator allocator;
static int log_warnings, log_lines;
static char log_last[2048];

static void log_keep(void *user, gemmepi_log_level level, const char *message) {
    (void)user;
    log_lines++;
    log_warnings += level <= GEMMEPI_LOG_WARNING;
    snprintf(log_last, sizeof log_last, "%s", message);
}

GPI__PRINTF(2, 3)
static void format_path(char path[PATH_SIZE], const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path, PATH_SIZE, format, arguments);
    va_end(arguments);
}

static const char *join(const char *folder, const char *name) {
    static char paths[4][PATH_SIZE]; /* so that a few can be in use at once */
    static int turn;
    turn = (turn + 1) % 4;
    format_path(paths[turn], "%s/%s", folder, name);
    return paths[turn];
}

/* A folder that does not exist yet, for the running test alone. */
static void new_place(char folder[PATH_SIZE]) {
    format_path(folder, "%s/%d", root, ++folders);
}

static gpi__disk_cache open_cache(const char *path, size_t bound) {
    gpi__disk_cache cache;
    gpi__log log = {NULL, NULL, 0};
    log.function = log_keep;
    log.user = NULL;
    log_warnings = log_lines = 0;
    log_last[0] = 0;
    gpi__disk_cache_open(&cache, &allocator, &log, path, bound);
    return cache;
}

static int exists(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file)
        fclose(file);
    return file != NULL;
}

static size_t read_file(const char *path, unsigned char *data, size_t size) {
    FILE *file = fopen(path, "rb");
    size_t got = file ? fread(data, 1, size, file) : 0;
    if (file)
        fclose(file);
    return got;
}

static void write_file(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(data, 1, size, file) == size, "cannot write %s", path);
    if (file)
        fclose(file);
#if !GPI__WINDOWS
    chmod(path, 0600);
#endif
}

static void set_age(const char *path, int seconds) {
    struct utimbuf times;
    times.actime = times.modtime = time(NULL) - seconds;
    CHECK(utime(path, &times) == 0, "cannot set the time of %s", path);
}

static void put_text(gpi__disk_cache *cache, const char *key, const char *payload) {
    gpi__disk_cache_put(cache, "cubin", key, strlen(key), payload, strlen(payload));
}

/* 1 on a hit with that payload, 0 on a miss, -1 on a hit with another. */
static int get_text(gpi__disk_cache *cache, const char *key, const char *payload) {
    void *data = NULL;
    size_t size = 0;
    int hit = gpi__disk_cache_get(cache, "cubin", key, strlen(key), &data, &size);
    if (hit && (size != strlen(payload) || memcmp(data, payload, size) != 0))
        hit = -1;
    gpi__delete(&allocator, data);
    return hit;
}

static const char *entry_path(const char *folder, const char *key) {
    char name[GPI__DISK_CACHE_NAME];
    gpi__disk_cache_name(name, "cubin", key, strlen(key));
    return join(folder, name);
}

typedef struct census {
    const gpi__folder *folder;
    int entries, asides, others;
    uint64_t bytes; /* of the entries */
} census;

static void count_file(void *user, const char *name) {
    census *all = (census *)user;
    gpi__file_info info;
    if (gpi__disk_cache_is_entry(name, strlen(name))) {
        all->entries++;
        if (gpi__file_get_info(all->folder, name, &info) == 0)
            all->bytes += info.size;
    } else if (gpi__file_aside_stem(name)) {
        all->asides++;
    } else {
        all->others++;
    }
}

static census count_files(const char *path) {
    gpi__folder folder;
    census all;
    memset(&all, 0, sizeof all);
    if (gpi__folder_open(&folder, path) == 0) {
        all.folder = &folder;
        gpi__folder_list(&folder, count_file, &all);
        gpi__folder_close(&folder);
    }
    return all;
}

static void remove_tree(const char *path);

static void remove_visited(void *user, const char *name) {
    char path[PATH_SIZE];
    format_path(path, "%s/%s", (const char *)user, name);
    if (remove(path) != 0)
        remove_tree(path);
}

static void remove_tree(const char *path) {
    char copy[PATH_SIZE];
    gpi__folder folder;
    format_path(copy, "%s", path);
    if (gpi__folder_open(&folder, copy) == 0) {
        gpi__folder_list(&folder, remove_visited, copy);
        gpi__folder_close(&folder);
    }
#if GPI__WINDOWS
    RemoveDirectoryA(copy);
#else
    rmdir(copy);
#endif
}

/* >>an entry's life */

static void what_is_put_is_found_by_another_cache_on_the_same_folder(void) {
    char folder[PATH_SIZE];
    gpi__disk_cache cold, warm;
    new_place(folder);
    cold = open_cache(folder, 0);
    CHECK(get_text(&cold, "key", "payload") == 0, "a hit in a folder that does not exist");
    CHECK(strcmp(gpi__disk_cache_path(&cold), folder) == 0, "path %s", gpi__disk_cache_path(&cold));
    {
        gpi__folder made;
        CHECK(gpi__file_is_missing(gpi__folder_open(&made, folder)), "a get made the folder");
    }
    put_text(&cold, "key", "payload");
    put_text(&cold, "empty", "");
    CHECK(get_text(&cold, "key", "payload") == 1, "no hit");
    gpi__disk_cache_close(&cold);
    warm = open_cache(folder, 0);
    CHECK(get_text(&warm, "key", "payload") == 1, "no hit after opening again");
    CHECK(get_text(&warm, "empty", "") == 1, "an empty payload is lost");
    CHECK(get_text(&warm, "ke", "payload") == 0, "a hit for another key");
    CHECK(get_text(&warm, "", "payload") == 0, "a hit for the empty key");
    CHECK(strcmp(gpi__disk_cache_path(&warm), folder) == 0, "path %s", gpi__disk_cache_path(&warm));
    CHECK(log_warnings == 0, "%s", log_last);
    gpi__disk_cache_close(&warm);
}

/* Another machine, or another container, that shares the folder may have a process with this one's id. */
static void a_file_that_another_writes_aside_is_not_touched(void) {
    char folder[PATH_SIZE], aside[3][PATH_SIZE];
    unsigned char data[16];
    int i;
    gpi__disk_cache cache;
    new_place(folder);
    cache = open_cache(folder, 0);
    put_text(&cache, "another key", "payload");
    for (i = 0; i < 3; i++) {
        format_path(aside[i], "%s.%lu-%ld.tmp", entry_path(folder, "key"), gpi__process_id(),
                    gpi__file_counter + 1 + i);
        write_file(aside[i], "theirs", 6);
    }
    put_text(&cache, "key", "payload");
    CHECK(get_text(&cache, "key", "payload") == 1, "no hit");
    for (i = 0; i < 3; i++)
        CHECK(read_file(aside[i], data, sizeof data) == 6 && memcmp(data, "theirs", 6) == 0, "file %d", i);
    gpi__disk_cache_close(&cache);
}

static void kinds_are_kept_apart(void) {
    char folder[PATH_SIZE], cubin[GPI__DISK_CACHE_NAME], tune[GPI__DISK_CACHE_NAME];
    unsigned char data[512];
    void *payload;
    size_t size;
    gpi__disk_cache cache;
    new_place(folder);
    cache = open_cache(folder, 0);
    put_text(&cache, "key", "payload");
    CHECK(!gpi__disk_cache_get(&cache, "tune", "key", 3, &payload, &size), "a cubin found as an answer");
    gpi__disk_cache_name(cubin, "cubin", "key", 3);
    gpi__disk_cache_name(tune, "tune", "key", 3);
    write_file(join(folder, tune), data, read_file(join(folder, cubin), data, sizeof data));
    CHECK(!gpi__disk_cache_get(&cache, "tune", "key", 3, &payload, &size),
          "a renamed cubin found as an answer");
    gpi__disk_cache_put(&cache, "tune", "key", 3, "answer", 6);
    CHECK(gpi__disk_cache_get(&cache, "tune", "key", 3, &payload, &size) && size == 6, "no hit");
    gpi__delete(&allocator, payload);
    CHECK(get_text(&cache, "key", "payload") == 1, "no hit");
    gpi__disk_cache_close(&cache);
}

static void putting_a_key_again_replaces_its_payload(void) {
    char folder[PATH_SIZE];
    gpi__disk_cache cache;
    new_place(folder);
    cache = open_cache(folder, 0);
    put_text(&cache, "key", "the first payload");
    put_text(&cache, "key", "the second");
    CHECK(get_text(&cache, "key", "the second") == 1, "no hit");
    CHECK(count_files(folder).entries == 1, "%d entries", count_files(folder).entries);
    CHECK(count_files(folder).asides == 0, "%d files left aside", count_files(folder).asides);
    gpi__disk_cache_close(&cache);
}

static void missing_parents_are_made_and_a_relative_path_is_made_absolute(void) {
    char folder[PATH_SIZE];
    gpi__disk_cache cache;
    new_place(folder);
    cache = open_cache(join(folder, "a/b/c"), 0);
    put_text(&cache, "key", "payload");
    CHECK(get_text(&cache, "key", "payload") == 1, "no hit: %s", log_last);
    gpi__disk_cache_close(&cache);
    cache = open_cache("a/b", 0);
    CHECK(gpi__is_absolute(gpi__disk_cache_path(&cache)), "path %s", gpi__disk_cache_path(&cache));
    gpi__disk_cache_close(&cache);
}

static void the_empty_path_writes_nothing(void) {
    gpi__disk_cache cache = open_cache("", 0);
    put_text(&cache, "key", "payload");
    CHECK(get_text(&cache, "key", "payload") == 0, "a hit");
    CHECK(strcmp(gpi__disk_cache_path(&cache), "") == 0, "path %s", gpi__disk_cache_path(&cache));
    CHECK(!exists(entry_path(".", "key")) && !exists(entry_path("", "key")), "something was written");
    CHECK(log_lines == 0, "%s", log_last);
    gpi__disk_cache_close(&cache);
}

/* >>the file */

/* The format of version 1, byte for byte; its checksum is from Python's hashlib. A change of the format that this test
   does not expect needs another GPI__DISK_CACHE_VERSION. */
static void the_file_is_laid_out_as_documented(void) {
    static const unsigned char expected[] = {
        'g',  'e',  'm',  'm',  'e',  'p',  'i',  '\n', 1,    0,    0,    0,    3,    0,    0,
        0,    'c',  'u',  'b',  'i',  'n',  0,    0,    0,    7,    0,    0,    0,    0,    0,
        0,    0,    0x6a, 0xa2, 0x57, 0x3f, 0x39, 0x5f, 0xd8, 0x7a, 0x29, 0x47, 0xa7, 0x32, 0xee,
        0x21, 0x2f, 0xf2, 0x85, 0x50, 0x47, 0x01, 0x91, 0x54, 0x27, 0xf0, 0xee, 0xc2, 0x61, 0xa7,
        0x06, 0x50, 0x39, 0xaa, 'k',  'e',  'y',  'p',  'a',  'y',  'l',  'o',  'a',  'd'};
    char folder[PATH_SIZE];
    unsigned char data[512];
    size_t size;
    gpi__disk_cache cache;
    new_place(folder);
    cache = open_cache(folder, 0);
    put_text(&cache, "key", "payload");
    size = read_file(
        join(folder, "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683.cubin.gemmepi"), data,
        sizeof data);
    CHECK(size == sizeof expected && memcmp(data, expected, size) == 0, "%d bytes", (int)size);
    gpi__disk_cache_close(&cache);
}

static void a_file_cut_short_or_grown_is_a_miss_and_goes(void) {
    char folder[PATH_SIZE], path[PATH_SIZE];
    unsigned char good[512];
    size_t size, cut;
    gpi__disk_cache cache;
    new_place(folder);
    cache = open_cache(folder, 0);
    put_text(&cache, "key", "payload");
    format_path(path, "%s", entry_path(folder, "key"));
    size = read_file(path, good, sizeof good);
    good[size] = 0;
    for (cut = 0; cut <= size + 1; cut++) {
        int whole = cut == size;
        write_file(path, good, cut);
        CHECK(get_text(&cache, "key", "payload") == whole, "cut to %d of %d bytes", (int)cut, (int)size);
        CHECK(exists(path) == whole, "cut to %d of %d bytes", (int)cut, (int)size);
    }
    CHECK(log_warnings == 0, "%s", log_last);
    put_text(&cache, "key", "payload");
    CHECK(get_text(&cache, "key", "payload") == 1, "it cannot be put again");
    gpi__disk_cache_close(&cache);
}

static void a_file_with_any_bit_flipped_is_a_miss_and_goes(void) {
    char folder[PATH_SIZE], path[PATH_SIZE];
    unsigned char file[512];
    size_t size, bit;
    gpi__disk_cache cache;
    new_place(folder);
    cache = open_cache(folder, 0);
    put_text(&cache, "key", "payload");
    format_path(path, "%s", entry_path(folder, "key"));
    size = read_file(path, file, sizeof file);
    for (bit = 0; bit < 8 * size; bit++) {
        file[bit / 8] = (unsigned char)(file[bit / 8] ^ 1u << bit % 8);
        write_file(path, file, size);
        CHECK(get_text(&cache, "key", "payload") == 0, "bit %d of byte %d", (int)bit % 8, (int)bit / 8);
        CHECK(!exists(path), "bit %d of byte %d", (int)bit % 8, (int)bit / 8);
        file[bit / 8] = (unsigned char)(file[bit / 8] ^ 1u << bit % 8);
    }
    gpi__disk_cache_close(&cache);
}

static void a_file_that_ends_inside_its_key_is_too_short(void) {
    static const char key[] = "the key of this entry";
    unsigned char file[GPI__DISK_CACHE_HEADER + sizeof key + 4];
    size_t size;
    gpi__disk_cache_header(file, "kind", key, sizeof key, "load", 4);
    memcpy(file + GPI__DISK_CACHE_HEADER, key, sizeof key);
    memcpy(file + GPI__DISK_CACHE_HEADER + sizeof key, "load", 4); /* which is there, behind the file's end */
    for (size = 0; size < GPI__DISK_CACHE_HEADER + sizeof key; size++) {
        const char *fault = gpi__disk_cache_fault(file, size, "kind", key, sizeof key);
        CHECK(fault && strcmp(fault, "it is too short") == 0, "%d bytes: %s", (int)size,
              fault ? fault : "no fault");
    }
    CHECK(!gpi__disk_cache_fault(file, sizeof file, "kind", key, sizeof key), "the whole file has a fault");
    CHECK(gpi__disk_cache_fault(file, sizeof file - 1, "kind", key, sizeof key) != NULL,
          "its payload is cut");
}

static void entries_are_sorted_by_seconds_then_nanoseconds_then_names(void) {
    static const struct {
        int64_t seconds, nanoseconds;
        const char *name;
    } in_order[] = {{1, 900, "d"}, {2, 5, "c"}, {2, 7, "b"}, {2, 7, "e"}, {3, 0, "a"}};
    int i, j, count = (int)GPI__COUNT(in_order);
    for (i = 0; i < count; i++)
        for (j = 0; j < count; j++) {
            gpi__disk_cache_found one, other;
            int order;
            memset(&one, 0, sizeof one), memset(&other, 0, sizeof other);
            strcpy(one.name, in_order[i].name), strcpy(other.name, in_order[j].name);
            one.info.modified = in_order[i].seconds, other.info.modified = in_order[j].seconds;
            one.info.modified_nanoseconds = in_order[i].nanoseconds;
            other.info.modified_nanoseconds = in_order[j].nanoseconds;
            order = gpi__disk_cache_by_age(&one, &other);
            CHECK((order < 0) == (i < j) && (order > 0) == (i > j), "%d and %d: %d", i, j, order);
        }
}

static void names_of_entries_are_64_digits_and_a_kind(void) {
    static const struct {
        const char *ending;
        int digits, is_entry;
    } cases[] = {{".cubin.gemmepi", 64, 1},  {".c.gemmepi", 64, 1},     {"..gemmepi", 64, 0},
                 {".cubin.gemmepi", 63, 0},  {".cubin.gemmepi", 65, 0}, {".cubin.gemmep", 64, 0},
                 {".cubin.gemmepix", 64, 0}, {".Cubin.gemmepi", 64, 0}, {".gemmepi", 64, 0},
                 {"cubin.gemmepi", 64, 0},   {".cubin", 64, 0}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        char name[200];
        memset(name, 'a', sizeof name);
        strcpy(name + cases[i].digits, cases[i].ending);
        CHECK(!gpi__disk_cache_is_entry(name, strlen(name)) == !cases[i].is_entry, "%s", name);
    }
}

static void another_keys_good_file_under_the_name_is_a_miss(void) {
    char folder[PATH_SIZE];
    unsigned char file[512];
    gpi__disk_cache cache;
    new_place(folder);
    cache = open_cache(folder, 0);
    put_text(&cache, "key 1", "payload 1");
    write_file(entry_path(folder, "key 2"), file, read_file(entry_path(folder, "key 1"), file, sizeof file));
    CHECK(get_text(&cache, "key 2", "payload 2") == 0, "a hit");
    /* a key whose bytes are the beginning of the other's key and payload */
    write_file(entry_path(folder, "key"), file, read_file(entry_path(folder, "key 1"), file, sizeof file));
    CHECK(get_text(&cache, "key", " 1payload 1") == 0, "a hit");
    CHECK(get_text(&cache, "key 1", "payload 1") == 1, "no hit");
    gpi__disk_cache_close(&cache);
}

static void *no_alloc(void *user, size_t size) {
    (void)user;
    (void)size;
    return NULL;
}

static void without_memory_a_get_misses_and_keeps_the_entry(void) {
    char folder[PATH_SIZE];
    gpi__disk_cache cache;
    new_place(folder);
    cache = open_cache(folder, 0);
    put_text(&cache, "key", "payload");
    cache.allocator.alloc = no_alloc;
    CHECK(get_text(&cache, "key", "payload") == 0, "a hit");
    put_text(&cache, "key 2", "payload");
    cache.allocator.alloc = allocator.alloc;
    CHECK(get_text(&cache, "key", "payload") == 1, "the entry is gone");
    CHECK(get_text(&cache, "key 2", "payload") == 1, "the entry was not put");
    CHECK(strcmp(gemmepi_last_error(), "") == 0, "the user was told: %s", gemmepi_last_error());
    gpi__disk_cache_close(&cache);
}

/* >>size */

/* Each entry of these is 64 + 5 + 131 = 200 bytes. */
static void put_numbered(gpi__disk_cache *cache, int number) {
    char key[16], payload[132];
    snprintf(key, sizeof key, "key %d", number);
    memset(payload, '0' + number, 131);
    payload[131] = 0;
    put_text(cache, key, payload);
}

static int has_numbered(const char *folder, int number) {
    char key[16];
    snprintf(key, sizeof key, "key %d", number);
    return exists(entry_path(folder, key));
}

static void age_numbered(const char *folder, int number, int seconds) {
    char key[16];
    snprintf(key, sizeof key, "key %d", number);
    set_age(entry_path(folder, key), seconds);
}

static void the_oldest_go_first_when_the_bound_is_exceeded(void) {
    static const int ages[5] = {300, 500, 100, 400, 200};
    char folder[PATH_SIZE];
    int i;
    gpi__disk_cache cache;
    new_place(folder);
    cache = open_cache(folder, 1000);
    for (i = 0; i < 5; i++)
        put_numbered(&cache, i);
    for (i = 0; i < 5; i++)
        age_numbered(folder, i, ages[i]);
    CHECK(count_files(folder).bytes == 1000, "%d bytes", (int)count_files(folder).bytes);
    put_numbered(&cache, 5); /* one must go: the one of 500 seconds */
    CHECK(!has_numbered(folder, 1) && count_files(folder).entries == 5, "%d entries",
          count_files(folder).entries);
    put_numbered(&cache, 6);
    CHECK(!has_numbered(folder, 3) && count_files(folder).entries == 5, "%d entries",
          count_files(folder).entries);
    put_numbered(&cache, 7);
    CHECK(!has_numbered(folder, 0) && count_files(folder).entries == 5, "%d entries",
          count_files(folder).entries);
    CHECK(has_numbered(folder, 2) && has_numbered(folder, 4), "younger ones went");
    gpi__disk_cache_close(&cache);
    cache = open_cache(folder, 450); /* a smaller bound: only two fit */
    put_numbered(&cache, 8);
    CHECK(has_numbered(folder, 8) && count_files(folder).bytes == 400, "%d bytes",
          (int)count_files(folder).bytes);
    CHECK(log_warnings == 0, "%s", log_last);
    gpi__disk_cache_close(&cache);
}

/* The list of entries grows at the 65th, when all have been counted: then another process evicts the three oldest. */
static const char *shared_folder;

static void *evict_and_alloc(void *user, size_t size) {
    int i;
    for (i = 0; i < 3 && size == 128 * sizeof(gpi__disk_cache_found); i++) {
        char key[16];
        snprintf(key, sizeof key, "key %d", i);
        CHECK(remove(entry_path(shared_folder, key)) == 0, "entry %d is not there", i);
    }
    return allocator.alloc(user, size);
}

static void entries_that_another_process_evicts_first_make_room_as_well(void) {
    char folder[PATH_SIZE];
    int i;
    gpi__disk_cache cache;
    new_place(folder);
    shared_folder = folder;
    cache = open_cache(folder, 0);
    for (i = 0; i < 65; i++)
        put_numbered(&cache, i);
    for (i = 0; i < 65; i++)
        age_numbered(folder, i, 1000 - i);
    cache.bound = (size_t)count_files(folder).bytes + 201 - 3 * 200;
    cache.allocator.alloc = evict_and_alloc;
    put_numbered(&cache, 65);
    CHECK(!has_numbered(folder, 2) && has_numbered(folder, 3) && count_files(folder).entries == 63,
          "%d entries", count_files(folder).entries);
    gpi__disk_cache_close(&cache);
}

static void a_hit_makes_an_entry_young(void) {
    char folder[PATH_SIZE];
    void *payload;
    size_t size;
    gpi__disk_cache cache;
    new_place(folder);
    cache = open_cache(folder, 400);
    put_numbered(&cache, 0);
    put_numbered(&cache, 1);
    age_numbered(folder, 0, 500);
    age_numbered(folder, 1, 300);
    CHECK(gpi__disk_cache_get(&cache, "cubin", "key 0", 5, &payload, &size), "no hit");
    gpi__delete(&allocator, payload);
    put_numbered(&cache, 2);
    CHECK(has_numbered(folder, 0), "the one that was hit went");
    CHECK(!has_numbered(folder, 1), "the older one stayed");
    gpi__disk_cache_close(&cache);
}

static void the_entry_just_put_stays_even_if_others_come_from_the_future(void) {
    char folder[PATH_SIZE];
    gpi__disk_cache cache;
    new_place(folder);
    cache = open_cache(folder, 400);
    put_numbered(&cache, 0);
    put_numbered(&cache, 1);
    age_numbered(folder, 0, -5000);
    age_numbered(folder, 1, -5000);
    put_numbered(&cache, 2);
    CHECK(has_numbered(folder, 2), "it went at once");
    CHECK(count_files(folder).entries == 2, "%d entries", count_files(folder).entries);
    gpi__disk_cache_close(&cache);
}

static void an_entry_larger_than_the_bound_is_not_put(void) {
    char folder[PATH_SIZE];
    gpi__disk_cache cache;
    new_place(folder);
    cache = open_cache(folder, 200);
    put_numbered(&cache, 0);
    CHECK(has_numbered(folder, 0), "one that just fits was not put");
    gpi__disk_cache_close(&cache);
    cache = open_cache(folder, 199);
    put_numbered(&cache, 1);
    CHECK(!has_numbered(folder, 1) && has_numbered(folder, 0), "it was put");
    gpi__disk_cache_close(&cache);
    cache = open_cache(folder, 100); /* less than the payload alone */
    put_numbered(&cache, 1);
    CHECK(!has_numbered(folder, 1) && has_numbered(folder, 0), "it was put");
    gpi__disk_cache_close(&cache);
}

static void only_what_is_ours_is_ever_removed(void) {
    static const char *const foreign[] = {
        "notes.txt",
        "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683",
        "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683.cubin",
        "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683.cubin.gemmepi.bak",
        "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683.cubin.gemmepi.tmp",
        "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683.cubin.gemmepi.1-.tmp",
        "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683.cubin.gemmepi.x1-1.tmp",
        "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683.1-1.tmp",
        "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683.waytoolong.gemmepi",
        "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683..gemmepi",
        "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b68.cubin.gemmepi",
        "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683a.cubin.gemmepi",
        "document.1-1.tmp",
        "1-1.tmp",
        ".tmp",
    };
    static const char old_aside[] =
        "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683.cubin.gemmepi.77-12.tmp";
    static const char new_aside[] =
        "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683.tune.gemmepi.77-13.tmp";
    char folder[PATH_SIZE], data[1000];
    size_t i;
    gpi__disk_cache cache;
    new_place(folder);
    cache = open_cache(folder, 450);
    memset(data, 'x', sizeof data);
    put_numbered(&cache, 0);
    for (i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        write_file(join(folder, foreign[i]), data, sizeof data);
        set_age(join(folder, foreign[i]), 90000);
    }
    gpi__make_one_folder(join(folder, "kept"));
    gpi__make_one_folder(entry_path(folder, "a folder under an entry's name"));
    write_file(join(folder, old_aside), data, sizeof data);
    set_age(join(folder, old_aside), 3700);
    write_file(join(folder, new_aside), data, sizeof data);
    set_age(join(folder, new_aside), 3500);
    age_numbered(folder, 0, 100);
    put_numbered(&cache, 1);
    CHECK(has_numbered(folder, 0), "foreign files count towards the bound");
    put_numbered(&cache, 2);
    CHECK(!has_numbered(folder, 0), "nothing was removed");
    for (i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        CHECK(exists(join(folder, foreign[i])), "removed %s", foreign[i]);
    CHECK(!exists(join(folder, old_aside)), "what an interrupted put left stayed");
    CHECK(exists(join(folder, new_aside)), "what another process is writing went");
    gpi__disk_cache_close(&cache);
}

/* >>trust, and processes: what Windows has otherwise */

#if !GPI__WINDOWS

/* A cache on this folder neither gets what lies there nor puts, and says so once, with these words. */
static void check_refused(const char *path, const char *words) {
    gpi__disk_cache cache = open_cache(path, 0);
    CHECK(get_text(&cache, "key", "payload") == 0, "a hit in a folder to be refused");
    put_text(&cache, "new key", "payload");
    CHECK(get_text(&cache, "new key", "payload") == 0, "a hit in a folder to be refused");
    CHECK(!exists(entry_path(path, "new key")), "a put into a folder to be refused");
    CHECK(strcmp(gpi__disk_cache_path(&cache), "") == 0, "path %s", gpi__disk_cache_path(&cache));
    CHECK(log_warnings == 1 && log_lines == 1, "%d warnings, %d lines", log_warnings, log_lines);
    CHECK(strstr(log_last, path) && strstr(log_last, words) && strstr(log_last, "cache_path"), "says: %s",
          log_last);
    gpi__disk_cache_close(&cache);
}

/* A folder with an entry for "key". */
static void new_filled_place(char folder[PATH_SIZE]) {
    gpi__disk_cache cache;
    new_place(folder);
    cache = open_cache(folder, 0);
    put_text(&cache, "key", "payload");
    CHECK(get_text(&cache, "key", "payload") == 1, "no hit: %s", log_last);
    gpi__disk_cache_close(&cache);
}

static void the_folder_and_its_files_are_private(void) {
    char folder[PATH_SIZE];
    struct stat status;
    mode_t mask = umask(0);
    new_filled_place(folder);
    umask(mask);
    CHECK(stat(folder, &status) == 0 && (status.st_mode & 0777) == 0700, "mode %o", (unsigned)status.st_mode);
    CHECK(stat(entry_path(folder, "key"), &status) == 0 && (status.st_mode & 0777) == 0600, "mode %o",
          (unsigned)status.st_mode);
}

static void a_folder_that_others_can_write_is_refused(void) {
    static const mode_t modes[] = {0770, 0720, 0702, 0777, 01777};
    char folder[PATH_SIZE];
    size_t i;
    new_filled_place(folder);
    for (i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        CHECK(chmod(folder, modes[i]) == 0, "cannot set the mode");
        check_refused(folder, "chmod go-w");
    }
    CHECK(chmod(folder, 0755) == 0, "cannot set the mode");
    {
        gpi__disk_cache cache = open_cache(folder, 0);
        CHECK(get_text(&cache, "key", "payload") == 1, "refused with mode 0755: %s", log_last);
        gpi__disk_cache_close(&cache);
    }
}

static void a_folder_that_another_user_owns_is_refused(void) {
    char folder[PATH_SIZE];
    if (geteuid() != 0) {
        check_refused("/usr", "owns it");
        return;
    }
    new_filled_place(folder);
    CHECK(chown(folder, 65534, 65534) == 0, "cannot give it away");
    check_refused(folder, "user 65534 owns it");
}

static void a_file_in_the_folders_place_is_refused(void) {
    char folder[PATH_SIZE];
    new_place(folder);
    write_file(folder, "text", 4);
    check_refused(folder, strerror(ENOTDIR));
    check_refused(join(folder, "below"), strerror(ENOTDIR));
}

static void a_link_counts_as_the_folder_it_leads_to(void) {
    char folder[PATH_SIZE], link[PATH_SIZE];
    gpi__disk_cache cache;
    new_filled_place(folder);
    new_place(link);
    CHECK(symlink(folder, link) == 0, "cannot make a link");
    cache = open_cache(link, 0);
    CHECK(get_text(&cache, "key", "payload") == 1, "a private folder is refused: %s", log_last);
    gpi__disk_cache_close(&cache);
    CHECK(chmod(folder, 0777) == 0, "cannot set the mode");
    check_refused(link, "chmod go-w");
    new_place(link);
    CHECK(symlink(join(folder, "none/none"), link) == 0, "cannot make a link");
    cache = open_cache(link, 0);
    put_text(&cache, "key", "payload");
    CHECK(get_text(&cache, "key", "payload") == 0, "a hit in a folder that does not exist");
    CHECK(log_warnings == 1 && strstr(log_last, strerror(ENOENT)), "%d warnings: %s", log_warnings, log_last);
    gpi__disk_cache_close(&cache);
}

static void a_link_in_an_entrys_place_is_not_followed(void) {
    char folder[PATH_SIZE], path[PATH_SIZE], elsewhere[PATH_SIZE];
    struct stat status;
    gpi__disk_cache cache;
    new_filled_place(folder);
    new_place(elsewhere);
    format_path(path, "%s", entry_path(folder, "key"));
    CHECK(rename(path, elsewhere) == 0 && symlink(elsewhere, path) == 0, "cannot make a link");
    cache = open_cache(folder, 0);
    CHECK(get_text(&cache, "key", "payload") == 0, "a hit through a link");
    CHECK(exists(elsewhere), "the link's target is gone");
    put_text(&cache, "key", "new payload");
    CHECK(get_text(&cache, "key", "new payload") == 1, "the link is in the way");
    CHECK(lstat(path, &status) == 0 && S_ISREG(status.st_mode), "still a link");
    CHECK(stat(elsewhere, &status) == 0 && status.st_size == 64 + 3 + 7, "the link's target was written");
    gpi__disk_cache_close(&cache);
}

static void a_file_that_is_not_only_this_users_is_a_miss(void) {
    static const mode_t modes[] = {0620, 0602, 0666};
    char folder[PATH_SIZE], path[PATH_SIZE];
    size_t i;
    gpi__disk_cache cache;
    new_filled_place(folder);
    format_path(path, "%s", entry_path(folder, "key"));
    cache = open_cache(folder, 0);
    for (i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        CHECK(chmod(path, modes[i]) == 0, "cannot set the mode");
        CHECK(get_text(&cache, "key", "payload") == 0, "a hit with mode %o", (unsigned)modes[i]);
    }
    put_text(&cache, "key", "payload");
    CHECK(get_text(&cache, "key", "payload") == 1, "it cannot be put again");
    if (geteuid() == 0) {
        CHECK(chown(path, 65534, 65534) == 0, "cannot give it away");
        CHECK(get_text(&cache, "key", "payload") == 0, "a hit in another user's file");
    }
    gpi__disk_cache_close(&cache);
}

static void what_is_no_file_in_an_entrys_place_is_a_miss_and_does_not_hang(void) {
    char folder[PATH_SIZE], path[PATH_SIZE];
    gpi__disk_cache cache;
    new_filled_place(folder);
    format_path(path, "%s", entry_path(folder, "key"));
    cache = open_cache(folder, 0);
    CHECK(remove(path) == 0 && mkfifo(path, 0600) == 0, "cannot make a pipe");
    alarm(20);
    CHECK(get_text(&cache, "key", "payload") == 0, "a hit");
    alarm(0);
    CHECK(remove(path) == 0 && mkdir(path, 0700) == 0, "cannot make a folder");
    CHECK(get_text(&cache, "key", "payload") == 0, "a hit");
    put_text(&cache, "key", "payload");
    put_text(&cache, "key", "payload");
    CHECK(log_warnings == 1, "%d warnings", log_warnings);
    CHECK(count_files(folder).asides == 0, "%d files left aside", count_files(folder).asides);
    put_text(&cache, "key 2", "payload");
    CHECK(get_text(&cache, "key 2", "payload") == 1, "no hit");
    gpi__disk_cache_close(&cache);
}

static int open_descriptors(void) {
    int descriptor, open = 0;
    for (descriptor = 0; descriptor < 256; descriptor++)
        open += fcntl(descriptor, F_GETFD) != -1;
    return open;
}

static void no_descriptor_stays_open(void) {
    char folder[PATH_SIZE], path[PATH_SIZE];
    int before = open_descriptors();
    gpi__disk_cache cache;
    new_filled_place(folder);
    format_path(path, "%s", entry_path(folder, "key"));
    cache = open_cache(folder, 0);
    CHECK(get_text(&cache, "key", "payload") == 1, "no hit");
    CHECK(get_text(&cache, "key 2", "payload") == 0, "a hit");
    write_file(path, "bad", 3);
    CHECK(get_text(&cache, "key", "payload") == 0, "a hit");
    put_text(&cache, "key", "payload");
    CHECK(chmod(path, 0666) == 0 && get_text(&cache, "key", "payload") == 0, "a hit");
    CHECK(remove(path) == 0 && mkdir(path, 0700) == 0, "cannot make a folder");
    put_text(&cache, "key", "payload");
    CHECK(chmod(folder, 0777) == 0 && get_text(&cache, "key", "payload") == 0, "a hit");
    put_text(&cache, "key", "payload");
    gpi__disk_cache_path(&cache);
    gpi__disk_cache_close(&cache);
    CHECK(open_descriptors() == before, "%d before, %d after", before, open_descriptors());
}

/* Runs body in a process of its own and returns how many checks failed there. */
static int in_child(void (*body)(const char *), const char *argument, int as_nobody) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        test_failures_here = 0;
        if (as_nobody && geteuid() == 0) {
            CHECK(setgid(65534) == 0 && setuid(65534) == 0, "cannot become nobody");
        }
        body(argument);
        fflush(stdout);
        _exit(test_failures_here > 100 ? 100 : test_failures_here);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return 1000;
    return WEXITSTATUS(status);
}

static void use_unwritable(const char *folder) {
    gpi__disk_cache cache = open_cache(folder, 0);
    CHECK(get_text(&cache, "key", "payload") == 1, "no hit in a folder that can be read");
    put_text(&cache, "key 2", "payload");
    put_text(&cache, "key 2", "payload");
    CHECK(get_text(&cache, "key 2", "payload") == 0, "written into an unwritable folder");
    CHECK(log_warnings == 1 && strstr(log_last, strerror(EACCES)), "%d warnings: %s", log_warnings, log_last);
    gpi__disk_cache_close(&cache);
    cache = open_cache(join(folder, "below"), 0);
    put_text(&cache, "key", "payload");
    put_text(&cache, "key", "payload");
    CHECK(get_text(&cache, "key", "payload") == 0, "a hit in a folder that cannot be made");
    CHECK(log_warnings == 1 && strstr(log_last, strerror(EACCES)), "%d warnings: %s", log_warnings, log_last);
    gpi__disk_cache_close(&cache);
}

static void an_unwritable_folder_is_read_and_the_log_says_so_once(void) {
    char folder[PATH_SIZE];
    int failed;
    new_filled_place(folder);
    if (geteuid() == 0)
        CHECK(chown(entry_path(folder, "key"), 65534, 65534) == 0 && chown(folder, 65534, 65534) == 0 &&
                  chmod(root, 0755) == 0,
              "cannot give it away");
    CHECK(chmod(folder, 0500) == 0, "cannot set the mode");
    failed = in_child(use_unwritable, folder, 1);
    CHECK(failed == 0, "%d checks in the child", failed);
    chmod(folder, 0700);
}

static void use_full(const char *folder) {
    static char payload[5000];
    struct rlimit limit;
    gpi__disk_cache cache = open_cache(folder, 0);
    memset(payload, 'p', sizeof payload - 1);
    limit.rlim_cur = limit.rlim_max = 1000; /* bytes in a file: what goes beyond fails as on a full disk */
    if (hides_limit)
        signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0, "cannot set the limit");
    put_text(&cache, "key", payload);
    put_text(&cache, "key 2", payload);
    CHECK(get_text(&cache, "key", "payload") == 1, "the old entry is gone");
    CHECK(get_text(&cache, "key 2", payload) == 0, "a hit");
    CHECK(log_warnings == 1 && strstr(log_last, strerror(EFBIG)), "%d warnings: %s", log_warnings, log_last);
    gpi__disk_cache_close(&cache);
}

static void a_put_that_is_stopped_midway_leaves_nothing(void) {
    char folder[PATH_SIZE];
    int failed;
    new_filled_place(folder);
    hides_limit = 1;
    failed = in_child(use_full, folder, 0);
    hides_limit = 0;
    CHECK(failed == 0, "%d checks in the child", failed);
    CHECK(count_files(folder).entries == 1 && count_files(folder).asides == 0,
          "%d entries, %d files left aside", count_files(folder).entries, count_files(folder).asides);
}

static void a_limit_on_the_size_of_files_does_not_end_the_program(void) {
    char folder[PATH_SIZE];
    int failed;
    new_filled_place(folder);
    failed = in_child(use_full, folder, 0);
    CHECK(failed == 0, "%d checks in the child", failed);
    CHECK(count_files(folder).entries == 1 && count_files(folder).asides == 0,
          "%d entries, %d files left aside", count_files(folder).entries, count_files(folder).asides);
}

static void use_environment(const char *folder) {
    char path[PATH_SIZE];
    gpi__disk_cache cache;
    setenv("XDG_CACHE_HOME", join(folder, "xdg"), 1);
    setenv("HOME", folder, 1);
    cache = open_cache(NULL, 0);
    put_text(&cache, "key", "payload");
    format_path(path, "%s/xdg/gemmepi", folder);
    CHECK(exists(entry_path(path, "key")), "not in %s", path);
    gpi__disk_cache_close(&cache);
    setenv("XDG_CACHE_HOME", "relative/paths/are/invalid", 1);
    cache = open_cache(NULL, 0);
    put_text(&cache, "key", "payload");
    format_path(path, "%s/.cache/gemmepi", folder);
    CHECK(exists(entry_path(path, "key")), "not in %s", path);
    gpi__disk_cache_close(&cache);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    cache = open_cache(NULL, 0);
    put_text(&cache, "key", "payload");
    CHECK(get_text(&cache, "key", "payload") == 0, "a hit");
    CHECK(strcmp(gpi__disk_cache_path(&cache), "") == 0, "path %s", gpi__disk_cache_path(&cache));
    CHECK(log_lines == 1 && log_warnings == 0, "%d lines", log_lines);
    gpi__disk_cache_close(&cache);
}

static void the_default_folder_is_where_the_environment_says(void) {
    char folder[PATH_SIZE];
    int failed;
    new_place(folder);
    failed = in_child(use_environment, folder, 0);
    CHECK(failed == 0, "%d checks in the child", failed);
}

/* >>races */

#define RACERS      8
#define RACE_ROUNDS 150
#define RACE_KEYS   12
#define RACE_BOUND \
    30000 /* about half of what the keys would take, so that entries are removed all the time */

static void race_payload(int key, char *payload, size_t *size) {
    size_t i;
    *size = (size_t)(key * 997 % 6000);
    for (i = 0; i < *size; i++)
        payload[i] = (char)((size_t)key * 31 + i * 7);
}

/* Gets and puts, keys of all racers' and keys of its own. Returns hits, or -1 if one was wrong. */
static int race(gpi__disk_cache *cache, int racer) {
    char expected[6000], key[32];
    uint64_t random = (uint64_t)racer + 1;
    int round, hits = 0;
    for (round = 0; round < RACE_ROUNDS; round++) {
        int number;
        size_t expected_size, size;
        void *payload;
        random = random * 6364136223846793005u + 1442695040888963407u;
        number = (int)((random >> 33) % RACE_KEYS);
        if (number >= RACE_KEYS - 2)
            number += 100 * (racer + 1);
        snprintf(key, sizeof key, "race %d", number);
        race_payload(number, expected, &expected_size);
        if (gpi__disk_cache_get(cache, "cubin", key, strlen(key), &payload, &size)) {
            int right = size == expected_size && memcmp(payload, expected, size) == 0;
            gpi__delete(&allocator, payload);
            if (!right)
                return -1;
            hits++;
        }
        if (random >> 63)
            gpi__disk_cache_put(cache, "cubin", key, strlen(key), expected, expected_size);
    }
    return hits;
}

static void check_after_race(const char *folder, int hits, int wrong) {
    census all = count_files(folder);
    CHECK(wrong == 0, "%d racers got a wrong payload", wrong);
    CHECK(hits > 0, "nobody ever hit");
    CHECK(all.bytes <= RACE_BOUND, "%d bytes", (int)all.bytes);
    CHECK(all.asides == 0 && all.others == 0, "%d files left aside", all.asides + all.others);
    CHECK(log_warnings == 0, "%s", log_last);
}

static void processes_that_race_get_right_payloads_or_none(void) {
    char folder[PATH_SIZE];
    pid_t children[RACERS];
    int i, hits = 0, wrong = 0;
    new_place(folder);
    for (i = 0; i < RACERS; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            gpi__disk_cache cache = open_cache(folder, RACE_BOUND);
            int got = race(&cache, i);
            gpi__disk_cache_close(&cache);
            _exit(got < 0 || log_warnings ? 2 : got > 0 ? 1 : 0);
        }
    }
    for (i = 0; i < RACERS; i++) {
        int status = 0;
        CHECK(children[i] > 0 && waitpid(children[i], &status, 0) == children[i], "a child is lost");
        hits += WIFEXITED(status) && WEXITSTATUS(status) == 1;
        wrong += !WIFEXITED(status) || WEXITSTATUS(status) > 1;
    }
    check_after_race(folder, hits, wrong);
}

typedef struct racer {
    gpi__disk_cache *cache;
    int number, hits;
} racer;

static void *run_racer(void *argument) {
    racer *r = (racer *)argument;
    r->hits = race(r->cache, r->number);
    return NULL;
}

static void threads_that_race_on_one_cache_get_right_payloads_or_none(void) {
    char folder[PATH_SIZE];
    pthread_t threads[RACERS];
    racer racers[RACERS];
    int i, hits = 0, wrong = 0;
    gpi__disk_cache cache;
    new_place(folder);
    cache = open_cache(folder, RACE_BOUND);
    for (i = 0; i < RACERS; i++) {
        racers[i].cache = &cache;
        racers[i].number = i;
        racers[i].hits = -1;
        CHECK(pthread_create(&threads[i], NULL, run_racer, &racers[i]) == 0, "no thread");
    }
    for (i = 0; i < RACERS; i++) {
        pthread_join(threads[i], NULL);
        hits += racers[i].hits > 0;
        wrong += racers[i].hits < 0;
    }
    check_after_race(folder, hits, wrong);
    gpi__disk_cache_close(&cache);
}

static int make_root(void) {
    const char *temporary = getenv("TMPDIR");
    snprintf(root, sizeof root, "%s/gemmepi-test-XXXXXX",
             temporary && temporary[0] == '/' ? temporary : "/tmp");
    return mkdtemp(root) != NULL;
}

#else

static int make_root(void) {
    char temporary[PATH_SIZE / 4];
    if (GetTempPathA(sizeof temporary, temporary) == 0)
        return 0;
    snprintf(root, sizeof root, "%sgemmepi-test-%lu", temporary, GetCurrentProcessId());
    return CreateDirectoryA(root, NULL);
}

#endif

int main(void) {
    allocator = gpi__default_allocator();
    if (!make_root()) {
        printf("cannot make a temporary folder (%s)\n", root);
        return 1;
    }
#if !GPI__WINDOWS
    RUN(no_descriptor_stays_open); /* first: a leak in the others would leave it none to count */
#endif
    RUN(what_is_put_is_found_by_another_cache_on_the_same_folder);
    RUN(a_file_that_another_writes_aside_is_not_touched);
    RUN(kinds_are_kept_apart);
    RUN(putting_a_key_again_replaces_its_payload);
    RUN(missing_parents_are_made_and_a_relative_path_is_made_absolute);
    RUN(the_empty_path_writes_nothing);
    RUN(the_file_is_laid_out_as_documented);
    RUN(a_file_cut_short_or_grown_is_a_miss_and_goes);
    RUN(a_file_with_any_bit_flipped_is_a_miss_and_goes);
    RUN(a_file_that_ends_inside_its_key_is_too_short);
    RUN(entries_are_sorted_by_seconds_then_nanoseconds_then_names);
    RUN(names_of_entries_are_64_digits_and_a_kind);
    RUN(another_keys_good_file_under_the_name_is_a_miss);
    RUN(without_memory_a_get_misses_and_keeps_the_entry);
    RUN(the_oldest_go_first_when_the_bound_is_exceeded);
    RUN(entries_that_another_process_evicts_first_make_room_as_well);
    RUN(a_hit_makes_an_entry_young);
    RUN(the_entry_just_put_stays_even_if_others_come_from_the_future);
    RUN(an_entry_larger_than_the_bound_is_not_put);
    RUN(only_what_is_ours_is_ever_removed);
#if !GPI__WINDOWS
    RUN(the_folder_and_its_files_are_private);
    RUN(a_folder_that_others_can_write_is_refused);
    RUN(a_folder_that_another_user_owns_is_refused);
    RUN(a_file_in_the_folders_place_is_refused);
    RUN(a_link_counts_as_the_folder_it_leads_to);
    RUN(a_link_in_an_entrys_place_is_not_followed);
    RUN(a_file_that_is_not_only_this_users_is_a_miss);
    RUN(what_is_no_file_in_an_entrys_place_is_a_miss_and_does_not_hang);
    RUN(an_unwritable_folder_is_read_and_the_log_says_so_once);
    RUN(a_limit_on_the_size_of_files_does_not_end_the_program);
    RUN(a_put_that_is_stopped_midway_leaves_nothing);
    RUN(the_default_folder_is_where_the_environment_says);
    RUN(processes_that_race_get_right_payloads_or_none);
    RUN(threads_that_race_on_one_cache_get_right_payloads_or_none);
#endif
    remove_tree(root);
    return test_finish();
}
