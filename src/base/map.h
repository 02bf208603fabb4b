/* A table from keys of any bytes to pointers. It copies the keys and never looks at what the pointers point to. It
   takes no lock: the caller does. */
#ifndef GEMMEPI_BASE_MAP_H
#define GEMMEPI_BASE_MAP_H

#include "hash.h"
#include "memory.h"

/* The key's bytes follow the entry in the same block of memory. */
typedef struct gpi__map_entry {
    struct gpi__map_entry *next; /* in the same bucket */
    uint64_t hash;
    void *value;
    size_t key_size;
} gpi__map_entry;

typedef struct gpi__map {
    gemmepi_allocator allocator;
    gpi__map_entry **buckets;
    size_t bucket_count; /* a power of two, or 0 while nothing was inserted */
    size_t count;
} gpi__map;

static void gpi__map_init(gpi__map *map, const gemmepi_allocator *allocator) {
    memset(map, 0, sizeof *map);
    map->allocator = *allocator;
}

static const void *gpi__map_key(const gpi__map_entry *entry) {
    return entry + 1;
}

/* The place that holds the pointer to the key's entry, or to the NULL that ends its bucket. There are buckets. */
static gpi__map_entry **gpi__map_place(const gpi__map *map, uint64_t hash, const void *key, size_t key_size) {
    gpi__map_entry **place = &map->buckets[hash & (map->bucket_count - 1)];
    while (*place && !((*place)->hash == hash && (*place)->key_size == key_size &&
                       (key_size == 0 || memcmp(gpi__map_key(*place), key, key_size) == 0)))
        place = &(*place)->next;
    return place;
}

/* The key's entry, whose value may be read and set, or NULL. */
static gpi__map_entry *gpi__map_find_entry(const gpi__map *map, const void *key, size_t key_size) {
    if (map->count == 0)
        return NULL;
    return *gpi__map_place(map, gpi__hash(key, key_size), key, key_size);
}

/* The key's value, or NULL. */
static void *gpi__map_find(const gpi__map *map, const void *key, size_t key_size) {
    gpi__map_entry *entry = gpi__map_find_entry(map, key, key_size);
    return entry ? entry->value : NULL;
}

static int gpi__map_grow(gpi__map *map) {
    size_t count = map->bucket_count ? 2 * map->bucket_count : 16, i;
    gpi__map_entry **buckets = (gpi__map_entry **)gpi__new(&map->allocator, count * sizeof *buckets);
    if (!buckets)
        return 0;
    for (i = 0; i < map->bucket_count; i++) {
        while (map->buckets[i]) {
            gpi__map_entry *entry = map->buckets[i];
            gpi__map_entry **place = &buckets[entry->hash & (count - 1)];
            map->buckets[i] = entry->next;
            entry->next = *place;
            *place = entry;
        }
    }
    gpi__delete(&map->allocator, map->buckets);
    map->buckets = buckets;
    map->bucket_count = count;
    return 1;
}

/* Gives the key this value, in place of the one it may have. 0 if memory is exhausted: nothing changed then but the
   noted sentence. */
static int gpi__map_insert(gpi__map *map, const void *key, size_t key_size, void *value) {
    uint64_t hash = gpi__hash(key, key_size);
    gpi__map_entry *entry = gpi__map_find_entry(map, key, key_size);
    gpi__map_entry **bucket;
    if (entry) {
        entry->value = value;
        return 1;
    }
    if (map->count == map->bucket_count && !gpi__map_grow(map))
        return 0;
    entry = (gpi__map_entry *)gpi__new(&map->allocator, sizeof *entry + key_size);
    if (!entry)
        return 0;
    bucket = &map->buckets[hash & (map->bucket_count - 1)];
    entry->next = *bucket;
    entry->hash = hash;
    entry->value = value;
    entry->key_size = key_size;
    if (key_size != 0)
        memcpy(entry + 1, key, key_size);
    *bucket = entry;
    map->count++;
    return 1;
}

/* Forgets the key and returns the value it had, or NULL. */
static void *gpi__map_remove(gpi__map *map, const void *key, size_t key_size) {
    gpi__map_entry **place, *entry;
    void *value;
    if (map->count == 0)
        return NULL;
    place = gpi__map_place(map, gpi__hash(key, key_size), key, key_size);
    entry = *place;
    if (!entry)
        return NULL;
    value = entry->value;
    *place = entry->next;
    gpi__delete(&map->allocator, entry);
    map->count--;
    return value;
}

/* Calls visit for every entry, in no order. It may set the entry's value, but neither insert nor remove. */
static void gpi__map_each(const gpi__map *map, void (*visit)(void *user, gpi__map_entry *entry), void *user) {
    gpi__map_entry *entry;
    size_t i;
    for (i = 0; i < map->bucket_count; i++)
        for (entry = map->buckets[i]; entry; entry = entry->next)
            visit(user, entry);
}

/* Forgets everything; the map is empty afterwards and may be used again. What the values point to is the caller's,
   who frees it with gpi__map_each before. */
static void gpi__map_free(gpi__map *map) {
    size_t i;
    for (i = 0; i < map->bucket_count; i++) {
        while (map->buckets[i]) {
            gpi__map_entry *entry = map->buckets[i];
            map->buckets[i] = entry->next;
            gpi__delete(&map->allocator, entry);
        }
    }
    gpi__delete(&map->allocator, map->buckets);
    map->buckets = NULL;
    map->bucket_count = 0;
    map->count = 0;
}

#endif
