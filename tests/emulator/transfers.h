// Loads and stores; copies that run beside the lanes (cp.async, boxes of tensor maps) and the barriers they report to.
#ifndef EMULATOR_TRANSFERS_H
#define EMULATOR_TRANSFERS_H

#include "arithmetic.h"

// >>loads and stores

static inline u64 extended(u64 value, const op &o) {
    return !o.is_signed   ? value
           : o.bytes == 1 ? (u64)(s8)value
           : o.bytes == 2 ? (u64)(s16)value
                          : (u64)(s32)value;
}

// elements of memory to registers, which may be wider, or back
static inline void to_registers(warp &w, const op &o, u32 lane, const u8 *from) {
    for (u32 i = 0; i < o.count; i++) {
        u64 value = 0;
        place to = o.x[i];
        memcpy(&value, from + i * o.bytes, o.bytes);
        value = extended(value, o);
        memcpy(w.at<u8>(to) + lane * to.bytes, &value, to.bytes);
    }
}
static inline void from_registers(warp &w, const op &o, u32 lane, size_t first, u8 *to) {
    for (u32 i = 0; i < o.count; i++)
        memcpy(to + i * o.bytes, w.at<u8>(o.x[first + i]) + lane * o.x[first + i].bytes, o.bytes);
}

// ld: x is the elements, then the address; st: the address, then the elements
static void load_global(warp &w, const op &o, u32 lanes) {
    u32 bytes = (u32)o.count * o.bytes;
    for_lanes(lanes, [&](u32 lane) {
        u64 address = w.at<u64>(o.x[o.count])[lane] + (u64)o.offset;
        to_registers(w, o, lane, device_at(&w.last_block, address, bytes, bytes));
    });
}
static void store_global(warp &w, const op &o, u32 lanes) {
    u32 bytes = (u32)o.count * o.bytes;
    for_lanes(lanes, [&](u32 lane) {
        u64 address = w.at<u64>(o.x[0])[lane] + (u64)o.offset;
        from_registers(w, o, lane, 1, device_at(&w.last_block, address, bytes, bytes));
    });
}
static void load_parameter(warp &w, const op &o, u32 lanes) {
    const launch &about = *w.in->in->of;
    u32 bytes = (u32)o.count * o.bytes;
    for_lanes(lanes, [&](u32 lane) {
        u64 from = w.at<u64>(o.x[o.count])[lane] + (u64)o.offset - (u64)about.parameters_at;
        if (from > w.runs->parameter_bytes || bytes > w.runs->parameter_bytes - from || from % bytes)
            fail("%u bytes of the parameters at %lld", bytes, (long long)from);
        to_registers(w, o, lane, about.parameters_at + from);
    });
}
static void load_constant(warp &w, const op &o, u32 lanes) {
    const std::vector<u8> &memory = *w.runs->constant_memory;
    u32 bytes = (u32)o.count * o.bytes;
    for_lanes(lanes, [&](u32 lane) {
        u64 from = w.at<u64>(o.x[o.count])[lane] + (u64)o.offset - (u64)memory.data();
        if (from > memory.size() || bytes > memory.size() - from || from % bytes)
            fail("%u bytes of the constants at %lld", bytes, (long long)from);
        to_registers(w, o, lane, memory.data() + from);
    });
}
static void load_shared(warp &w, const op &o, u32 lanes) {
    u32 bytes = (u32)o.count * o.bytes;
    for_lanes(lanes, [&](u32 lane) {
        u32 address = w.address(o, o.count, lane);
        block &of = w.in->in->block_of(*w.in, &address);
        to_registers(w, o, lane, of.shared_at(address, bytes, bytes));
    });
}
static void store_shared(warp &w, const op &o, u32 lanes) {
    u32 bytes = (u32)o.count * o.bytes;
    for_lanes(lanes, [&](u32 lane) {
        u32 address = w.address(o, 0, lane);
        block &of = w.in->in->block_of(*w.in, &address); // perhaps another of the cluster
        from_registers(w, o, lane, 1, of.shared_at(address, bytes, bytes));
        of.wrote(address, bytes, w.index);
    });
}
template <class T, bool Shared> static void atomic_max(warp &w, const op &o, u32 lanes) {
    for_lanes(lanes, [&](u32 lane) {
        T before, by = w.at<T>(o.x[2])[lane];
        u8 *at =
            Shared ? w.in->shared_at(w.address(o, 1, lane), sizeof(T), sizeof(T))
                   : device_at(&w.last_block, w.at<u64>(o.x[1])[lane] + (u64)o.offset, sizeof(T), sizeof(T));
        memcpy(&before, at, sizeof before);
        memcpy(at, before > by ? &before : &by, sizeof before);
        w.at<T>(o.x[0])[lane] = before;
        if (Shared)
            w.in->wrote(w.address(o, 1, lane), sizeof(T), w.index);
    });
}
// What a warp has stored so far may be read by TMA and wgmma.
static void fence_proxy(warp &w, const op &, u32 lanes) {
    if (lanes == w.live)
        for (u8 &by : w.in->written_by)
            by = by == w.index + 1 ? 0 : by;
}

// >>cp.async: shared, global, bytes written, and at last bytes read, the others being zeros

static void copy_async(warp &w, const op &o, u32 lanes) {
    u32 bytes = (u32)o.numbers[0];
    for_lanes(lanes, [&](u32 lane) {
        u32 to = (u32)(o.x[0].bytes == 8 ? w.at<u64>(o.x[0])[lane] : w.at<u32>(o.x[0])[lane]);
        u64 from = w.at<u64>(o.x[1])[lane];
        u32 read = o.x.size() > 2 ? w.at<u32>(o.x[2])[lane] : bytes;
        block *of = w.in;
        u32 writer = w.index;
        if (read > bytes)
            fail("cp.async of %u bytes reads %u", bytes, read);
        if (read)
            device_at(&w.last_block, from, read, bytes);
        memset(of->shared_at(to, bytes, bytes), 0xff, bytes);
        w.copies[lane].open.push_back([=] {
            u8 *there = of->shared_at(to, bytes, bytes);
            memset(there, 0, bytes);
            memcpy(there, (const void *)from, read);
            of->wrote(to, bytes, writer);
        });
    });
}
template <groups (warp::*Groups)[LANES]> static void commit_lanes(warp &w, const op &, u32 lanes) {
    launch &about = *w.in->in->of;
    for_lanes(lanes, [&](u32 lane) { (w.*Groups)[lane].commit(about.chance(2) == 0); });
}
template <groups (warp::*Groups)[LANES]> static void wait_lanes(warp &w, const op &o, u32 lanes) {
    for_lanes(lanes, [&](u32 lane) { (w.*Groups)[lane].wait((size_t)o.numbers[0]); });
}

// >>tensor maps

// What a CUtensorMap of ours holds. Extents, strides (of bytes, all but the first) and boxes from the innermost on.
struct tensor_map {
    enum { DIMENSIONS = 5, MARK = 0x7e450a };
    u64 address, extents[DIMENSIONS];
    u64 strides[DIMENSIONS - 1];
    u16 box[DIMENSIONS];
    u8 rank, bytes, swizzle; // 0, or the bytes of a line
    u32 mark;
};
static_assert(sizeof(tensor_map) <= 128, "it fits into a CUtensorMap");

// of lines of 128 bytes bits 4 to 6 of an address take part of bits 7 to 9; of shorter ones fewer
static inline u32 swizzled(u32 address, u32 line = 128) {
    return address ^ (address >> 3 & (line - 16));
}

static inline tensor_map tensor_map_at(warp &w, u64 address) {
    const launch &about = *w.in->in->of;
    tensor_map map;
    bool is_parameter = address >= (u64)about.parameters_at &&
                        address + 128 <= (u64)about.parameters_at + w.runs->parameter_bytes;
    if (address % 64)
        fail("no tensor map lies at %llx", (unsigned long long)address);
    memcpy(&map, is_parameter ? (const void *)address : device_at(&w.last_block, address, 128, 64),
           sizeof map);
    if (map.mark != tensor_map::MARK)
        fail("what lies at %llx is no tensor map", (unsigned long long)address);
    return map;
}

// map, number of the axis, extent: in device memory
static void replace_extent(warp &w, const op &o, u32 lanes) {
    for_lanes(lanes, [&](u32 lane) {
        u8 *at = device_at(&w.last_block, w.at<u64>(o.x[0])[lane] + (u64)o.offset, 128, 128);
        tensor_map map;
        memcpy(&map, at, sizeof map);
        if (map.mark != tensor_map::MARK || o.numbers[0] >= map.rank)
            fail("an extent of what is no tensor map is replaced");
        map.extents[o.numbers[0]] = w.at<u32>(o.x[1])[lane];
        memcpy(at, &map, sizeof map);
    });
}

// For each line of the box: f(where it is in the box, the address of its first element; how many elements of it the tensor
// has before it and in it). Calls it with 0 elements for a line outside.
template <class F> static void for_lines(const tensor_map &map, const s32 *from, F f) {
    u32 lines = 1, line_bytes = map.box[0] * map.bytes;
    s64 begin = from[0] < 0 ? -(s64)from[0] : 0, end = (s64)map.extents[0] - from[0];
    end = end > map.box[0] ? map.box[0] : end;
    for (u32 i = 1; i < map.rank; i++)
        lines *= map.box[i];
    for (u32 line = 0; line < lines; line++) {
        u64 address = map.address + (u64)((s64)from[0] * map.bytes);
        bool outside = end <= begin;
        for (u32 i = 1, left = line; i < map.rank; i++) {
            s64 at = from[i] + (s64)(left % map.box[i]);
            left /= map.box[i];
            outside = outside || at < 0 || at >= (s64)map.extents[i];
            address += (u64)at * map.strides[i - 1];
        }
        f(line * line_bytes, address, (u32)(outside ? 0 : begin), (u32)(outside ? 0 : end - begin));
    }
}

// the addresses of a line's 16 bytes in shared memory
static inline u32 in_box(const tensor_map &map, u32 box, u32 at) {
    return map.swizzle ? swizzled(box + at, map.swizzle) : box + at;
}

static inline u32 box_bytes(const tensor_map &map) {
    u32 bytes = map.bytes;
    for (u32 i = 0; i < map.rank; i++)
        bytes *= map.box[i];
    return bytes;
}

static void load_box(const tensor_map &map, const s32 *from, block &to, u32 at) {
    for_lines(map, from, [&](u32 line, u64 address, u32 before, u32 count) {
        const device_block *last = NULL;
        u32 size = map.box[0] * map.bytes;
        std::vector<u8> bytes(size, 0);
        if (count)
            memcpy(bytes.data() + before * map.bytes,
                   device_at(&last, address + before * map.bytes, count * map.bytes, 1), count * map.bytes);
        for (u32 i = 0; i < size; i += 16)
            memcpy(to.write_by_proxy(in_box(map, at, line + i), 16), bytes.data() + i, 16);
    });
}

static void store_box(const tensor_map &map, const s32 *to, block &from, u32 at) {
    for_lines(map, to, [&](u32 line, u64 address, u32 before, u32 count) {
        const device_block *last = NULL;
        u32 size = map.box[0] * map.bytes;
        std::vector<u8> bytes(size);
        for (u32 i = 0; i < size; i += 16)
            memcpy(bytes.data() + i, from.read_by_proxy(in_box(map, at, line + i), 16), 16);
        if (count)
            memcpy(device_at(&last, address + before * map.bytes, count * map.bytes, 1),
                   bytes.data() + before * map.bytes, count * map.bytes);
    });
}

// >>mbarriers

static inline void complete_if_done(phase_barrier &b) {
    if (b.pending == 0 && b.bytes == 0) {
        b.phase++;
        b.pending = b.count;
    }
}
static inline void arrive(phase_barrier &b) {
    if (b.pending == 0)
        fail("an mbarrier for %u arrivals gets one more", b.count);
    b.pending--;
    complete_if_done(b);
}

static void phase_init(warp &w, const op &o, u32 lanes) {
    for_lanes(lanes, [&](u32 lane) {
        u32 address = w.address(o, 0, lane), count = w.at<u32>(o.x[1])[lane];
        phase_barrier made = {count, count, 0, 0};
        w.in->shared_at(address, 8, 8);
        w.in->phase_barriers[address] = made;
    });
}
static void phase_arrive(warp &w, const op &o, u32 lanes) { // perhaps of another block
    for_lanes(lanes, [&](u32 lane) {
        u32 address = w.address(o, 0, lane);
        block &of = w.in->in->block_of(*w.in, &address);
        arrive(of.phase_barrier_at(address));
    });
}
// When all copies of a lane so far have come: here now.
static void phase_arrive_behind_copies(warp &w, const op &o, u32 lanes) {
    for_lanes(lanes, [&](u32 lane) { w.copies[lane].commit(true); });
    phase_arrive(w, o, lanes);
}
static void phase_expect(warp &w, const op &o, u32 lanes) {
    for_lanes(lanes, [&](u32 lane) {
        phase_barrier &b = w.in->phase_barrier_at(w.address(o, 0, lane));
        b.bytes += w.at<u32>(o.x[1])[lane];
        arrive(b);
    });
}
static void phase_wait(warp &w, const op &o, u32 lanes) {
    bool all = true;
    for_lanes(lanes, [&](u32 lane) {
        const phase_barrier &b = w.in->phase_barrier_at(w.address(o, 1, lane));
        all = all && (b.phase & 1) != (w.at<u32>(o.x[2])[lane] & 1);
    });
    if (all)
        w.bits(o.x[0]) |= lanes;
    w.again = !all;
}

// >>copies of boxes

// to, map, coordinates, mbarrier[, blocks of the cluster]; numbers[0] is the rank
static void load_tensor(warp &w, const op &o, u32 lanes) {
    for_lanes(lanes, [&](u32 lane) {
        u32 rank = (u32)o.numbers[0], to = w.address(o, 0, lane), phase = w.address(o, 2 + rank, lane);
        tensor_map map = tensor_map_at(w, w.at<u64>(o.x[1])[lane]);
        u32 ranks = o.x.size() > 3 + rank ? w.at<u16>(o.x[3 + rank])[lane] : 1u << w.in->rank;
        s32 from[tensor_map::DIMENSIONS] = {0};
        cluster *in = w.in->in;
        u32 bytes = box_bytes(map);
        if (map.rank != rank)
            fail("a box of rank %u of a tensor of rank %u", rank, map.rank);
        if (to >> 24 || phase >> 24 || ranks >> in->blocks.size() || !ranks)
            fail("a box for blocks that are not of the cluster");
        if (to % 128 || (map.swizzle && map.box[0] * map.bytes != map.swizzle))
            fail("a box to %u", to);
        for (u32 i = 0; i < rank; i++)
            from[i] = w.at<s32>(o.x[2 + i])[lane];
        std::vector<s32> begin(from, from + tensor_map::DIMENSIONS);
        for (u32 i = 0; i < in->blocks.size(); i++)
            if (ranks >> i & 1) {
                block *of = in->blocks[i].get();
                if (of->live_threads() == 0)
                    fail("a box for a block that has ended");
                memset(of->shared_at(to, bytes, 1), 0xff, bytes);
                in->loads.push_back([=] {
                    load_box(map, begin.data(), *of, to);
                    phase_barrier &b = of->phase_barrier_at(phase);
                    b.bytes -= bytes;
                    complete_if_done(b);
                });
            }
    });
}

// map, coordinates, from
static void store_tensor(warp &w, const op &o, u32 lanes) {
    for_lanes(lanes, [&](u32 lane) {
        u32 rank = (u32)o.numbers[0], from = w.address(o, 1 + rank, lane);
        tensor_map map = tensor_map_at(w, w.at<u64>(o.x[0])[lane]);
        std::vector<s32> to(tensor_map::DIMENSIONS);
        block *of = w.in;
        if (map.rank != rank)
            fail("a box of rank %u of a tensor of rank %u", rank, map.rank);
        if (from % 128)
            fail("a box from %u", from);
        for (u32 i = 0; i < rank; i++)
            to[i] = w.at<s32>(o.x[1 + i])[lane];
        w.bulk_copies[lane].open.push_back([=] { store_box(map, to.data(), *of, from); });
    });
}

// >>stores that an mbarrier of the same block counts

// to, four numbers, mbarrier
static void store_async(warp &w, const op &o, u32 lanes) {
    for_lanes(lanes, [&](u32 lane) {
        u32 to = w.address(o, 0, lane), phase = w.address(o, 5, lane);
        cluster *in = w.in->in;
        block *of = &in->block_of(*w.in, &to), *counts = &in->block_of(*w.in, &phase);
        std::vector<u8> bytes(16);
        for (u32 i = 0; i < 4; i++)
            memcpy(bytes.data() + i * 4, &w.at<u32>(o.x[1 + i])[lane], 4);
        if (of != counts)
            fail("st.async to one block and an mbarrier of another");
        memset(of->shared_at(to, 16, 16), 0xff, 16);
        in->loads.push_back([=] {
            memcpy(of->shared_at(to, 16, 16), bytes.data(), 16);
            phase_barrier &b = of->phase_barrier_at(phase);
            b.bytes -= 16;
            complete_if_done(b);
        });
    });
}

#endif
