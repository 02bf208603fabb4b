// Device memory: the host's, in blocks whose ends every access is checked against.
#ifndef EMULATOR_MEMORY_H
#define EMULATOR_MEMORY_H

#include <map>
#include <mutex>

#include "ptx.h"

struct device_block {
    u64 from, size;
};

class device_memory {
  public:
    u64 allocate(size_t size) {
        void *made = NULL;
        std::lock_guard<std::mutex> hold(lock);
        if (!size || posix_memalign(&made, 512, size))
            return 0;
        memset(made, 0xff, size);
        device_block of = {(u64)made, size};
        blocks[of.from] = of;
        return of.from;
    }
    bool release(u64 from) {
        std::lock_guard<std::mutex> hold(lock);
        if (!blocks.erase(from))
            return false;
        free((void *)from);
        return true;
    }
    // The block that has these bytes; NULL: there is none. It stays where it is until it is released.
    const device_block *find(u64 from, u64 bytes) {
        static const device_block all = {1, ~(u64)0 >> 1};
        static const device_block *const otherwise = getenv("EMULATOR_ANY_MEMORY") ? &all : NULL;
        std::lock_guard<std::mutex> hold(lock);
        std::map<u64, device_block>::const_iterator after = blocks.upper_bound(from);
        if (after == blocks.begin())
            return otherwise;
        --after;
        return from - after->first <= after->second.size &&
                       bytes <= after->second.size - (from - after->first)
                   ? &after->second
                   : otherwise;
    }

  private:
    std::mutex lock;
    std::map<u64, device_block> blocks;
};

static device_memory device;

// last is the block of the access before: most are in the same one.
static inline u8 *device_at(const device_block **last, u64 address, u64 bytes, u64 alignment) {
    if (address % alignment)
        fail("device memory at %llx, which is no multiple of %llu", (unsigned long long)address,
             (unsigned long long)alignment);
    if (!*last || address < (*last)->from || address + bytes > (*last)->from + (*last)->size) {
        *last = device.find(address, bytes);
        if (!*last)
            fail("device memory at %llx, %llu bytes: not allocated", (unsigned long long)address,
                 (unsigned long long)bytes);
    }
    return (u8 *)address;
}

#endif
