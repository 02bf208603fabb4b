#include "base/map.h"
#include "test.h"

/* An allocator that counts its blocks and can run dry. */
typedef struct meter {
    int live;
    int left; /* allocations until it gives no more; negative: no end */
} meter;

static void *meter_alloc(void *user, size_t size) {
    meter *m = (meter *)user;
    void *pointer;
    if (m->left == 0)
        return NULL;
    if (m->left > 0)
        m->left--;
    pointer = malloc(size);
    m->live += pointer != NULL;
    return pointer;
}

static void meter_free(void *user, void *pointer) {
    ((meter *)user)->live--;
    free(pointer);
}

static gpi__map map_on(meter *m) {
    gemmepi_allocator allocator;
    gpi__map map;
    m->live = 0;
    m->left = -1;
    allocator.alloc = meter_alloc;
    allocator.free = meter_free;
    allocator.user = m;
    gpi__map_init(&map, &allocator);
    return map;
}

static int things[1000]; /* what values point to */

static void an_empty_map_finds_nothing_and_owns_nothing(void) {
    meter m;
    gpi__map map = map_on(&m);
    CHECK(gpi__map_find(&map, "key", 3) == NULL, "found something");
    CHECK(gpi__map_remove(&map, "key", 3) == NULL, "removed something");
    CHECK(m.live == 0, "%d blocks", m.live);
    gpi__map_free(&map);
    CHECK(m.live == 0, "%d blocks", m.live);
}

static void keys_are_copied_and_compared_whole(void) {
    meter m;
    gpi__map map = map_on(&m);
    char key[4] = {'a', 0, 'b', 0};
    CHECK(gpi__map_insert(&map, key, 3, &things[0]), "no memory");
    CHECK(gpi__map_insert(&map, "", 0, &things[1]), "no memory");
    CHECK(gpi__map_insert(&map, "a", 1, &things[2]), "no memory");
    key[2] = 'c';
    CHECK(gpi__map_find(&map, key, 3) == NULL, "the key was not copied, or compared as text");
    key[2] = 'b';
    CHECK(gpi__map_find(&map, key, 3) == &things[0], "lost");
    CHECK(gpi__map_find(&map, key, 4) == NULL, "a longer key is another key");
    CHECK(gpi__map_find(&map, NULL, 0) == &things[1], "the empty key");
    CHECK(gpi__map_find(&map, "a", 1) == &things[2], "lost");
    gpi__map_free(&map);
    CHECK(m.live == 0, "%d blocks are left", m.live);
}

/* The hash's start value hashes to zero, and a zero appended to what hashes to zero changes nothing: so both keys have
   one hash. */
static void keys_of_one_hash_are_told_apart(void) {
    static const uint64_t start = GPI__HASH_START;
    unsigned char key[9] = {0};
    meter m;
    gpi__map map = map_on(&m);
    memcpy(key, &start, sizeof start);
    CHECK(gpi__hash(key, 8) == 0 && gpi__hash(key, 9) == 0, "the hashes differ");
    gpi__map_insert(&map, key, 8, &things[8]);
    CHECK(gpi__map_find(&map, key, 9) == NULL, "taken for the shorter key");
    gpi__map_insert(&map, key, 9, &things[9]);
    CHECK(gpi__map_find(&map, key, 8) == &things[8], "the shorter key");
    CHECK(gpi__map_remove(&map, key, 9) == &things[9], "the longer key");
    CHECK(gpi__map_find(&map, key, 8) == &things[8], "the shorter key");
    gpi__map_free(&map);
}

static void inserting_a_key_again_replaces_its_value(void) {
    meter m;
    gpi__map map = map_on(&m);
    gpi__map_insert(&map, "key", 3, &things[0]);
    gpi__map_insert(&map, "key", 3, &things[1]);
    CHECK(map.count == 1, "%d entries", (int)map.count);
    CHECK(gpi__map_find(&map, "key", 3) == &things[1], "the old value");
    CHECK(gpi__map_remove(&map, "key", 3) == &things[1], "the old value");
    CHECK(gpi__map_find(&map, "key", 3) == NULL, "still there");
    gpi__map_free(&map);
}

/* Against a plain table, through growth and shrinking; the generator is Knuth's MMIX one. */
static void a_long_random_walk_agrees_with_a_plain_table(void) {
    static void *expected[1000];
    meter m;
    gpi__map map = map_on(&m);
    uint64_t random = 1;
    size_t count = 0;
    int step, i;
    memset(expected, 0, sizeof expected);
    for (step = 0; step < 20000; step++) {
        int key, insert;
        random = random * 6364136223846793005u + 1442695040888963407u;
        key = (int)(random >> 33) % 1000;
        insert = (int)(random >> 60) < (step < 10000 ? 11 : 5);
        if (insert) {
            void *value = &things[step % 1000];
            count += expected[key] == NULL;
            CHECK(gpi__map_insert(&map, &key, sizeof key, value), "no memory");
            expected[key] = value;
        } else {
            count -= expected[key] != NULL;
            CHECK(gpi__map_remove(&map, &key, sizeof key) == expected[key], "key %d", key);
            expected[key] = NULL;
        }
        CHECK(map.count == count, "%d entries, expected %d", (int)map.count, (int)count);
    }
    for (i = 0; i < 1000; i++)
        CHECK(gpi__map_find(&map, &i, sizeof i) == expected[i], "key %d", i);
    gpi__map_free(&map);
    CHECK(m.live == 0, "%d blocks are left", m.live);
}

static void count_visit(void *user, gpi__map_entry *entry) {
    int key;
    memcpy(&key, gpi__map_key(entry), sizeof key);
    if (entry->value == &things[key] && entry->key_size == sizeof key)
        ((int *)user)[key]++;
}

static void each_visits_every_entry_once(void) {
    static int visits[1000];
    meter m;
    gpi__map map = map_on(&m);
    int i;
    for (i = 0; i < 1000; i++)
        gpi__map_insert(&map, &i, sizeof i, &things[i]);
    memset(visits, 0, sizeof visits);
    gpi__map_each(&map, count_visit, visits);
    for (i = 0; i < 1000; i++)
        CHECK(visits[i] == 1, "key %d was visited %d times", i, visits[i]);
    gpi__map_free(&map);
    memset(visits, 0, sizeof visits);
    gpi__map_each(&map, count_visit, visits);
    CHECK(visits[0] == 0, "a freed map has entries");
}

static void an_insert_without_memory_changes_nothing(void) {
    meter m;
    gpi__map map = map_on(&m);
    int i, j, refused = 0;
    for (i = 0; i < 100; i++) {
        m.left = 0;
        for (;;) {
            int fits = gpi__map_insert(&map, &i, sizeof i, &things[i]);
            if (fits)
                break;
            refused++;
            CHECK(map.count == (size_t)i, "%d entries", (int)map.count);
            CHECK(gpi__map_find(&map, &i, sizeof i) == NULL, "half inserted");
            for (j = 0; j < i; j++)
                CHECK(gpi__map_find(&map, &j, sizeof j) == &things[j], "lost %d", j);
            m.left = refused % 3;
        }
    }
    CHECK(refused >= 100, "only %d refused", refused);
    gpi__map_free(&map);
    CHECK(m.live == 0, "%d blocks are left", m.live);
}

/* So that the lower bits of a hash reach each of them. */
static void buckets_are_a_power_of_two_and_entries_are_spread_over_them(void) {
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__map map;
    size_t i, taken = 0;
    gpi__map_init(&map, &allocator);
    for (i = 0; i < 1000; i++) {
        CHECK(gpi__map_insert(&map, &i, sizeof i, &map), "no memory");
        CHECK((map.bucket_count & (map.bucket_count - 1)) == 0 && map.bucket_count >= map.count,
              "%d buckets for %d entries", (int)map.bucket_count, (int)map.count);
    }
    for (i = 0; i < map.bucket_count; i++)
        taken += map.buckets[i] != NULL;
    CHECK(taken > map.bucket_count / 2, "%d of %d buckets are taken", (int)taken, (int)map.bucket_count);
    gpi__map_free(&map);
}

int main(void) {
    RUN(an_empty_map_finds_nothing_and_owns_nothing);
    RUN(keys_are_copied_and_compared_whole);
    RUN(keys_of_one_hash_are_told_apart);
    RUN(inserting_a_key_again_replaces_its_value);
    RUN(a_long_random_walk_agrees_with_a_plain_table);
    RUN(each_visits_every_entry_once);
    RUN(an_insert_without_memory_changes_nothing);
    RUN(buckets_are_a_power_of_two_and_entries_are_spread_over_them);
    return test_finish();
}
