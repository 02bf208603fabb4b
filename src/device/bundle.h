/* Bundles as bytes: the machine code of any number of kernels.

   Layout   A header, then sections up to the end. Numbers are little endian, nothing is filled up:

                header    0  16  "gemmepi bundle\r\n"
                         16   4  format version
                         20   4  GEMMEPI_VERSION of its maker
                         24   8  size of all of it
                         32   8  check: a hash of bytes 0 to 31 and of what follows
                section   0   8  kind, filled up with zeros
                          8   8  size of its content
                         16      the content
                kernel    0   4  size of the key
                          4   4  architecture that it was compiled for: 90 for 9.0
                          8   8  size of the image
                         16      the key, then the image: a cubin, or PTX with its final zero

   Kinds    "kernels" has kernels, one after another, and may come more than once. A bundle with a section of another
            kind is refused: what is not known cannot be kept for the next save.

   Key      As code.h makes it, with the digest of the kernel's sources. Any other text is a kernel that is never found.

   Check    The 64-bit hash finds damage; it is no signature. Every number is checked against what is left before it is
            used, also where the check fits. The image goes to the driver as it is: a bundle is code. */
#ifndef GEMMEPI_DEVICE_BUNDLE_H
#define GEMMEPI_DEVICE_BUNDLE_H

#include "code.h"

#define GPI__BUNDLE_FORMAT  1
#define GPI__BUNDLE_MAGIC   "gemmepi bundle\r\n"
#define GPI__BUNDLE_HEADER  40
#define GPI__BUNDLE_SECTION 16
#define GPI__BUNDLE_KERNEL  16

/* Far more than any program has kernels for: some tens of KB each. */
#define GPI__BUNDLE_MOST ((size_t)1 << 30)

static const char gpi__bundle_kernels[8] = {'k', 'e', 'r', 'n', 'e', 'l', 's', 0};

static uint64_t gpi__read_little_endian(const unsigned char *bytes, int count) {
    uint64_t value = 0;
    int i;
    for (i = 0; i < count; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

/* Of a whole bundle; the field itself is left out. */
static uint64_t gpi__bundle_check(const unsigned char *data, size_t size) {
    uint64_t header = gpi__hash(data, 32);
    return gpi__hash_word(header, gpi__hash(data + GPI__BUNDLE_HEADER, size - GPI__BUNDLE_HEADER));
}

/* >>reading. What is wrong is said by gpi__fail, as the end of a sentence about the bundle. */

/* What is left of a bundle or a section. */
typedef struct gpi__bundle_rest {
    const unsigned char *at;
    size_t left;
} gpi__bundle_rest;

/* The next size bytes, or NULL where there are fewer. */
static const unsigned char *gpi__parse_bytes(gpi__bundle_rest *rest, uint64_t size) {
    const unsigned char *taken = rest->at;
    if (size > rest->left)
        return NULL;
    rest->at += (size_t)size;
    rest->left -= (size_t)size;
    return taken;
}

static gemmepi_status gpi__check_bundle(const unsigned char *data, size_t size) {
    unsigned version;
    GPI__REFUSE_IF(size < GPI__BUNDLE_HEADER || memcmp(data, GPI__BUNDLE_MAGIC, 16) != 0, GEMMEPI_FILE_ERROR,
                   "it does not begin as a bundle does");
    version = (unsigned)gpi__read_little_endian(data + 20, 4);
    GPI__REFUSE_IF(version != GEMMEPI_VERSION, GEMMEPI_FILE_ERROR,
                   "gemmepi %u.%u.%u made it, and this is %s: make it again with this version",
                   version / 10000, version / 100 % 100, version % 100, GEMMEPI_VERSION_STRING);
    GPI__REFUSE_IF(gpi__read_little_endian(data + 16, 4) != GPI__BUNDLE_FORMAT, GEMMEPI_FILE_ERROR,
                   "its format is %u, and this version reads %d",
                   (unsigned)gpi__read_little_endian(data + 16, 4), GPI__BUNDLE_FORMAT);
    GPI__REFUSE_IF(gpi__read_little_endian(data + 24, 8) != size, GEMMEPI_FILE_ERROR,
                   "it has %llu bytes and says that these are %llu: it was cut short, or grew",
                   (gpi__ull)size, (gpi__ull)gpi__read_little_endian(data + 24, 8));
    GPI__REFUSE_IF(gpi__read_little_endian(data + 32, 8) != gpi__bundle_check(data, size), GEMMEPI_FILE_ERROR,
                   "its check does not fit: it is damaged");
    return GEMMEPI_OK;
}

/* A kernel as it lies in a bundle. */
typedef struct gpi__bundled {
    const unsigned char *key;
    size_t key_size;
    gpi__code code;
} gpi__bundled;

/* Takes the next kernel of a section; 0 where sizes do not fit. */
static int gpi__parse_kernel(gpi__bundle_rest *section, gpi__bundled *kernel) {
    const unsigned char *head = gpi__parse_bytes(section, GPI__BUNDLE_KERNEL);
    uint64_t size;
    if (!head)
        return 0;
    kernel->key_size = (size_t)gpi__read_little_endian(head, 4);
    kernel->key = gpi__parse_bytes(section, kernel->key_size);
    if (!kernel->key || kernel->key_size == 0 || kernel->key_size >= GPI__CODE_KEY_SIZE)
        return 0;
    size = gpi__read_little_endian(head + 8, 8);
    kernel->code.image = gpi__parse_bytes(section, size);
    kernel->code.size = (size_t)size;
    kernel->code.arch = (int)(gpi__read_little_endian(head + 4, 4) & 0xffff);
    return kernel->code.image && size != 0;
}

/* Takes the next section; 0 where sizes do not fit. */
static int gpi__parse_section(gpi__bundle_rest *bundle, const unsigned char **kind,
                              gpi__bundle_rest *section) {
    uint64_t size;
    *kind = gpi__parse_bytes(bundle, GPI__BUNDLE_SECTION);
    if (!*kind)
        return 0;
    size = gpi__read_little_endian(*kind + 8, 8);
    section->at = gpi__parse_bytes(bundle, size);
    section->left = (size_t)size;
    return section->at != NULL;
}

/* Goes through the kernels of a section, counts and checks them. to: has room for their codes and takes them, or is NULL. Of two
   with one key the first is found. */
static gemmepi_status gpi__walk_kernels(gpi__bundle_rest section, gpi__bundle *to, size_t *count) {
    while (section.left != 0) {
        gpi__bundled kernel;
        GPI__REFUSE_IF(!gpi__parse_kernel(&section, &kernel), GEMMEPI_FILE_ERROR,
                       "the sizes of its kernels do not fit together");
        if (to) {
            to->codes[*count] = kernel.code;
            if (!gpi__map_find(&to->by_key, kernel.key, kernel.key_size) &&
                !gpi__map_insert(&to->by_key, kernel.key, kernel.key_size, &to->codes[*count]))
                return GEMMEPI_OUT_OF_MEMORY;
        }
        ++*count;
    }
    return GEMMEPI_OK;
}

static gemmepi_status gpi__walk_bundle(const unsigned char *data, size_t size, gpi__bundle *to,
                                       size_t *count) {
    gpi__bundle_rest rest, section;
    const unsigned char *kind;
    gemmepi_status status = GEMMEPI_OK;
    rest.at = data + GPI__BUNDLE_HEADER;
    rest.left = size - GPI__BUNDLE_HEADER;
    *count = 0;
    while (!status && rest.left != 0) {
        GPI__REFUSE_IF(!gpi__parse_section(&rest, &kind, &section), GEMMEPI_FILE_ERROR,
                       "the sizes of its sections do not fit together");
        GPI__REFUSE_IF(memcmp(kind, gpi__bundle_kernels, sizeof gpi__bundle_kernels) != 0, GEMMEPI_FILE_ERROR,
                       "it has a section of a kind that this version does not know");
        status = gpi__walk_kernels(section, to, count);
    }
    return status;
}

/* Checks all of data, which stays the caller's and is pointed into. */
static gemmepi_status gpi__parse_bundle(const gemmepi_allocator *allocator, const unsigned char *data,
                                        size_t size, gpi__bundle **result) {
    gpi__bundle *bundle;
    size_t count = 0;
    gemmepi_status status = gpi__check_bundle(data, size);
    if (!status)
        status = gpi__walk_bundle(data, size, NULL, &count);
    if (status)
        return status;
    bundle = (gpi__bundle *)gpi__new(allocator, sizeof *bundle);
    if (!bundle)
        return GEMMEPI_OUT_OF_MEMORY;
    gpi__map_init(&bundle->by_key, allocator);
    bundle->codes = (gpi__code *)gpi__new(allocator, count * sizeof *bundle->codes);
    status = bundle->codes ? gpi__walk_bundle(data, size, bundle, &count) : GEMMEPI_OUT_OF_MEMORY;
    if (status)
        gpi__free_bundle(allocator, bundle);
    else
        *result = bundle;
    return status;
}

/* >>writing: entries of maps to gpi__code */

/* 0: more than a bundle may have. */
static size_t gpi__bundle_size(const gpi__map_entry *const *entries, size_t count) {
    size_t size = GPI__BUNDLE_HEADER + GPI__BUNDLE_SECTION, i;
    for (i = 0; i < count; i++) {
        const gpi__code *code = (const gpi__code *)entries[i]->value;
        if (code->size > GPI__BUNDLE_MOST)
            return 0;
        size += GPI__BUNDLE_KERNEL + entries[i]->key_size + code->size;
        if (size > GPI__BUNDLE_MOST)
            return 0;
    }
    return size;
}

static unsigned char *gpi__write_kernel(unsigned char *to, const gpi__map_entry *entry) {
    const gpi__code *code = (const gpi__code *)entry->value;
    gpi__write_little_endian(to, 4, entry->key_size);
    gpi__write_little_endian(to + 4, 4, (uint64_t)code->arch);
    gpi__write_little_endian(to + 8, 8, code->size);
    to += GPI__BUNDLE_KERNEL;
    memcpy(to, gpi__map_key(entry), entry->key_size);
    memcpy(to + entry->key_size, code->image, code->size);
    return to + entry->key_size + code->size;
}

/* size: what gpi__bundle_size gives for them, which to has. */
static void gpi__write_bundle(const gpi__map_entry *const *entries, size_t count, unsigned char *to,
                              size_t size) {
    unsigned char *at = to + GPI__BUNDLE_HEADER;
    size_t i;
    memcpy(to, GPI__BUNDLE_MAGIC, 16);
    gpi__write_little_endian(to + 16, 4, GPI__BUNDLE_FORMAT);
    gpi__write_little_endian(to + 20, 4, GEMMEPI_VERSION);
    gpi__write_little_endian(to + 24, 8, size);
    memcpy(at, gpi__bundle_kernels, sizeof gpi__bundle_kernels);
    gpi__write_little_endian(at + 8, 8, size - GPI__BUNDLE_HEADER - GPI__BUNDLE_SECTION);
    at += GPI__BUNDLE_SECTION;
    for (i = 0; i < count; i++)
        at = gpi__write_kernel(at, entries[i]);
    gpi__write_little_endian(to + 32, 8, gpi__bundle_check(to, size));
}

#endif
