/* SHA-256, for names and checksums on disk, and a hash for tables in memory. */
#ifndef GEMMEPI_BASE_HASH_H
#define GEMMEPI_BASE_HASH_H

#include "platform.h"

/* >>sha-256, as FIPS 180-4 defines it: https://doi.org/10.6028/NIST.FIPS.180-4 */

#define GPI__SHA256_SIZE     32
#define GPI__SHA256_HEX_SIZE 65 /* with the final zero */

typedef struct gpi__sha256 {
    uint32_t state[8];
    unsigned char block[64];
    uint64_t length; /* bytes taken so far; the last length % 64 of them wait in block */
} gpi__sha256;

static void gpi__sha256_init(gpi__sha256 *sha) {
    static const uint32_t start[8] = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                                      0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
    memcpy(sha->state, start, sizeof start);
    sha->length = 0;
}

static uint32_t gpi__rotate_right(uint32_t x, unsigned bits) {
    return x >> bits | x << (32 - bits);
}

static void gpi__sha256_block(uint32_t state[8], const unsigned char *block) {
    static const uint32_t constants[64] = {
        0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u,
        0xab1c5ed5u, 0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu,
        0x9bdc06a7u, 0xc19bf174u, 0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu,
        0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau, 0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u,
        0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u, 0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu,
        0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u, 0xa2bfe8a1u, 0xa81a664bu,
        0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u, 0x19a4c116u,
        0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
        0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u,
        0xc67178f2u};
    uint32_t w[64];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6],
             h = state[7];
    int i;
    for (i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | (uint32_t)block[4 * i + 3];
    for (; i < 64; i++) {
        uint32_t x = w[i - 15], y = w[i - 2];
        w[i] = w[i - 16] + (gpi__rotate_right(x, 7) ^ gpi__rotate_right(x, 18) ^ x >> 3) + w[i - 7] +
               (gpi__rotate_right(y, 17) ^ gpi__rotate_right(y, 19) ^ y >> 10);
    }
    for (i = 0; i < 64; i++) {
        uint32_t t1 = h + constants[i] + w[i] + ((e & f) ^ (~e & g)) +
                      (gpi__rotate_right(e, 6) ^ gpi__rotate_right(e, 11) ^ gpi__rotate_right(e, 25));
        uint32_t t2 = ((a & b) ^ (a & c) ^ (b & c)) +
                      (gpi__rotate_right(a, 2) ^ gpi__rotate_right(a, 13) ^ gpi__rotate_right(a, 22));
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
}

static void gpi__sha256_update(gpi__sha256 *sha, const void *data, size_t size) {
    const unsigned char *bytes = (const unsigned char *)data;
    while (size != 0) {
        size_t waiting = (size_t)(sha->length % 64);
        size_t take = 64 - waiting < size ? 64 - waiting : size;
        if (take == 64) { /* a whole block, from where it lies */
            gpi__sha256_block(sha->state, bytes);
            sha->length += 64;
            bytes += 64;
            size -= 64;
            continue;
        }
        memcpy(sha->block + waiting, bytes, take);
        sha->length += take;
        bytes += take;
        size -= take;
        if (waiting + take == 64)
            gpi__sha256_block(sha->state, sha->block);
    }
}

static void gpi__sha256_final(gpi__sha256 *sha, unsigned char digest[GPI__SHA256_SIZE]) {
    static const unsigned char padding[64] = {0x80};
    unsigned char bits[8];
    uint64_t length = sha->length * 8;
    int i;
    for (i = 0; i < 8; i++)
        bits[i] = (unsigned char)(length >> (56 - 8 * i));
    gpi__sha256_update(sha, padding, 1 + (size_t)((119 - sha->length % 64) % 64));
    gpi__sha256_update(sha, bits, sizeof bits);
    for (i = 0; i < GPI__SHA256_SIZE; i++)
        digest[i] = (unsigned char)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
}

static void gpi__sha256_of(const void *data, size_t size, unsigned char digest[GPI__SHA256_SIZE]) {
    gpi__sha256 sha;
    gpi__sha256_init(&sha);
    gpi__sha256_update(&sha, data, size);
    gpi__sha256_final(&sha, digest);
}

static void gpi__sha256_hex(const unsigned char digest[GPI__SHA256_SIZE], char text[GPI__SHA256_HEX_SIZE]) {
    int i;
    for (i = 0; i < GPI__SHA256_SIZE; i++) {
        text[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    text[2 * GPI__SHA256_SIZE] = 0;
}

/* >>for tables: eight bytes at a time, each word multiplied and its upper half folded into the lower, which chooses the
   bucket */

#define GPI__HASH_START 0xcbf29ce484222325u

static uint64_t gpi__hash_word(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u; /* the golden ratio's digits, as Knuth proposes */
    return hash ^ hash >> 32;
}

static uint64_t gpi__hash(const void *data, size_t size) {
    const unsigned char *bytes = (const unsigned char *)data;
    uint64_t hash = GPI__HASH_START, word;
    for (; size >= sizeof word; size -= sizeof word, bytes += sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = gpi__hash_word(hash, word);
    }
    for (; size > 0; size--, bytes++)
        hash = gpi__hash_word(hash, *bytes);
    return hash;
}

#endif
