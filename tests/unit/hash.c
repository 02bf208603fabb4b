#include "base/hash.h"
#include "test.h"

/* From FIPS 180-4's examples, https://csrc.nist.gov/projects/cryptographic-standards-and-guidelines/example-values */
static void sha256_gives_the_published_digests(void) {
    static const struct {
        const char *message, *digest;
    } vectors[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstno"
         "pqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    unsigned char digest[GPI__SHA256_SIZE];
    char hex[GPI__SHA256_HEX_SIZE];
    size_t i;
    for (i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        gpi__sha256_of(vectors[i].message, strlen(vectors[i].message), digest);
        gpi__sha256_hex(digest, hex);
        CHECK(strcmp(hex, vectors[i].digest) == 0, "'%s' gives %s", vectors[i].message, hex);
    }
}

static void sha256_of_a_million_letters_given_in_pieces_is_the_published_one(void) {
    unsigned char digest[GPI__SHA256_SIZE];
    char piece[1000], hex[GPI__SHA256_HEX_SIZE];
    gpi__sha256 sha;
    int i;
    memset(piece, 'a', sizeof piece);
    gpi__sha256_init(&sha);
    for (i = 0; i < 1000; i++)
        gpi__sha256_update(&sha, piece, sizeof piece);
    gpi__sha256_final(&sha, digest);
    gpi__sha256_hex(digest, hex);
    CHECK(strcmp(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0") == 0, "got %s",
          hex);
}

/* Every way the padding can fall. The expected value is Python's hashlib.sha256 over its digests, one after another,
   of bytes((7 * i + 3) % 256 for i in range(n)), n from 0 to 299. */
static void sha256_is_right_at_every_length(void) {
    unsigned char message[300], digest[GPI__SHA256_SIZE];
    char hex[GPI__SHA256_HEX_SIZE];
    gpi__sha256 all;
    size_t i;
    for (i = 0; i < sizeof message; i++)
        message[i] = (unsigned char)(7 * i + 3);
    gpi__sha256_init(&all);
    for (i = 0; i < sizeof message; i++) {
        gpi__sha256_of(message, i, digest);
        gpi__sha256_update(&all, digest, sizeof digest);
    }
    gpi__sha256_final(&all, digest);
    gpi__sha256_hex(digest, hex);
    CHECK(strcmp(hex, "7b074096cabb18dd0d1b468a173cb2f97f80e952525bca29542e606fd6d0753a") == 0, "got %s",
          hex);
}

static void sha256_does_not_depend_on_how_the_message_is_cut(void) {
    unsigned char message[200], whole[GPI__SHA256_SIZE], cut[GPI__SHA256_SIZE];
    size_t first, second;
    memset(message, 0x5a, sizeof message);
    gpi__sha256_of(message, sizeof message, whole);
    for (first = 0; first <= sizeof message; first++) {
        for (second = first; second <= sizeof message; second += 13) {
            gpi__sha256 sha;
            gpi__sha256_init(&sha);
            gpi__sha256_update(&sha, message, first);
            gpi__sha256_update(&sha, message + first, second - first);
            gpi__sha256_update(&sha, message + second, sizeof message - second);
            gpi__sha256_final(&sha, cut);
            CHECK(memcmp(whole, cut, sizeof cut) == 0, "cut at %d and %d", (int)first, (int)second);
        }
    }
}

/* Among the 1,024 buckets that the lower bits choose, keys that differ in one bit fall as at random: of 320 of them at
   least 200 different ones are taken (about 275 by chance). */
static void every_bit_of_a_key_moves_it_to_another_bucket(void) {
    unsigned char key[40], taken[1024] = {0};
    uint64_t first;
    int bit, buckets = 0;
    memset(key, 7, sizeof key);
    first = gpi__hash(key, sizeof key);
    for (bit = 0; bit < 8 * (int)sizeof key; bit++) {
        uint64_t hash;
        key[bit / 8] ^= (unsigned char)(1 << bit % 8);
        hash = gpi__hash(key, sizeof key);
        key[bit / 8] ^= (unsigned char)(1 << bit % 8);
        CHECK(hash != first, "bit %d is lost", bit);
        buckets += !taken[hash & 1023];
        taken[hash & 1023] = 1;
    }
    CHECK(buckets >= 200, "%d buckets", buckets);
    CHECK(gpi__hash(key, 39) != first && gpi__hash(key, 0) == GPI__HASH_START, "the length is lost");
}

/* Also where a key is no whole number of words. */
static void every_byte_of_a_key_of_any_length_counts(void) {
    unsigned char key[24];
    size_t size, at;
    memset(key, 7, sizeof key);
    for (size = 1; size <= sizeof key; size++)
        for (at = 0; at < size; at++) {
            uint64_t first = gpi__hash(key, size);
            key[at] ^= 0x10;
            CHECK(gpi__hash(key, size) != first, "byte %d of %d is lost", (int)at, (int)size);
            key[at] ^= 0x10;
        }
}

int main(void) {
    RUN(sha256_gives_the_published_digests);
    RUN(sha256_of_a_million_letters_given_in_pieces_is_the_published_one);
    RUN(sha256_is_right_at_every_length);
    RUN(sha256_does_not_depend_on_how_the_message_is_cut);
    RUN(every_bit_of_a_key_moves_it_to_another_bucket);
    RUN(every_byte_of_a_key_of_any_length_counts);
    return test_finish();
}
