// What a kernel runs on: warps with their registers, blocks with shared memory and barriers, and a cluster of them.
//
// A warp's lanes that are at the same operation go together, those that are furthest behind first, so that lanes which
// part meet again where their ways do. An operation for all lanes waits until they are there, and fails if they cannot
// come. Which warp goes next, for how long, and when what runs beside the warps (copies, products) happens, chance
// decides, by a seed.
#ifndef EMULATOR_MACHINE_H
#define EMULATOR_MACHINE_H

#include <deque>
#include <functional>
#include <memory>

#include "memory.h"
#include "ptx.h"

struct block;
struct cluster;

typedef std::function<void()> deferred;

// Work that runs beside a warp or a lane, in groups of which all but the last few can be waited for.
struct groups {
    std::vector<deferred> open;
    std::deque<std::vector<deferred>> closed;
    u64 done = 0; // groups

    void commit(bool at_once) {
        closed.push_back(std::vector<deferred>());
        closed.back().swap(open);
        if (at_once)
            wait(0);
    }
    void wait(size_t left) {
        while (closed.size() > left) {
            for (const deferred &work : closed.front())
                work();
            closed.pop_front();
            done++;
        }
    }
    u64 committed() const {
        return done + closed.size();
    }
};

struct warp {
    block *in;
    const program *runs;
    u32 index;                 // in the block
    u32 live, parked, stalled; // lanes: not ended; at an operation for all; polling in vain in this turn
    u32 next[LANES];           // operation of each lane
    u32 now;                   // that which runs, or ran last
    bool blocked;              // by a barrier
    bool again;                // the operation that polls found nothing
    bool arrived_at_cluster;
    u64 cluster_phase;                        // in which it arrived
    groups products;                          // wgmma
    groups copies[LANES], bulk_copies[LANES]; // cp.async, and stores by tensor maps
    std::vector<u8> file;
    const device_block *last_block; // of device memory that it used

    template <class T> T *at(place of) {
        return (T *)(file.data() + of.at);
    }
    u32 &bits(place of) {
        return *(u32 *)(file.data() + of.at);
    }
    u32 address(const op &of, size_t operand, u32 lane) { // in shared memory
        place from = of.x[operand];
        return (u32)((from.bytes == 8 ? at<u64>(from)[lane] : at<u32>(from)[lane]) + (u64)of.offset);
    }

    void start(block *of, u32 number, u32 threads);
    u32 run(u32 budget); // how many operations it did
    void fail_here(const char *why) const;

  private:
    bool pick(u32 *lanes, u32 *pc, u32 *until) const;
};

struct barrier {
    u32 expected, arrived; // threads
    bool of_all;           // it is for all threads that have not ended
    std::vector<warp *> waiting;
};

struct phase_barrier { // mbarrier
    u32 count, pending;
    s64 bytes; // still to come
    u64 phase;
};

struct block {
    cluster *in;
    u32 rank, index; // in the cluster, in the grid
    std::vector<warp> warps;
    std::vector<u8> shared;
    std::vector<u8> written_by; // of each 16 bytes: warp + 1 whose store TMA and wgmma need not see yet
    barrier barriers[16];
    std::map<u32, phase_barrier> phase_barriers;

    u32 live_threads() const {
        u32 count = 0;
        for (const warp &w : warps)
            count += (u32)__builtin_popcount(w.live);
        return count;
    }
    void complete(barrier &b) {
        u32 live = b.of_all ? live_threads() : b.expected;
        if (!b.arrived || b.arrived < (live < b.expected ? live : b.expected))
            return;
        for (warp *other : b.waiting)
            other->blocked = false;
        b.waiting.clear();
        b.arrived = 0;
    }
    void threads_ended() {
        for (barrier &b : barriers)
            if (b.of_all)
                complete(b);
    }
    u8 *shared_at(u32 address, u32 bytes, u32 alignment) {
        if ((size_t)address + bytes > shared.size())
            fail("shared memory at %u, %u bytes, where there are %zu", address, bytes, shared.size());
        if (address % alignment)
            fail("shared memory at %u, which is no multiple of %u", address, alignment);
        return shared.data() + address;
    }
    void wrote(u32 address, u32 bytes, u32 by_warp) {
        for (u32 i = address / 16; i <= (address + bytes - 1) / 16; i++)
            written_by[i] = (u8)(by_warp + 1);
    }
    // For what reads past ordinary stores: they must have been fenced.
    const u8 *read_by_proxy(u32 address, u32 bytes) {
        const u8 *from = shared_at(address, bytes, 1);
        for (u32 i = address / 16; i <= (address + bytes - 1) / 16; i++)
            if (written_by[i])
                fail("TMA or wgmma reads shared memory at %u, which warp %u wrote without fence.proxy.async",
                     i * 16, written_by[i] - 1u);
        return from;
    }
    u8 *write_by_proxy(u32 address, u32 bytes) {
        u8 *to = shared_at(address, bytes, 1);
        for (u32 i = address / 16; i <= (address + bytes - 1) / 16; i++)
            written_by[i] = 0;
        return to;
    }
    phase_barrier &phase_barrier_at(u32 address) {
        std::map<u32, phase_barrier>::iterator found = phase_barriers.find(address);
        if (found == phase_barriers.end())
            fail("there is no mbarrier at %u", address);
        return found->second;
    }
};

// What all blocks of a launch have.
struct launch {
    const program *runs;
    u32 grid, block_x, block_y, dynamic_shared;
    std::vector<u8> parameters; // at a multiple of 64 in the copy
    u8 *parameters_at;
    u64 random;

    u32 chance(u32 of) { // 0 to of - 1
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        return (u32)((random >> 33) % of);
    }
};

struct cluster {
    launch *of;
    std::vector<std::unique_ptr<block>> blocks;
    std::deque<deferred> loads; // by tensor maps, on their way
    u32 arrived = 0;            // threads at the cluster's barrier
    u64 phase = 0;

    void run(u32 first_block);
    void arrive(u32 threads) {
        arrived += threads;
        complete();
    }
    // also when threads end, because the barrier is for those that have not
    void complete() {
        u32 live = 0;
        for (const std::unique_ptr<block> &b : blocks)
            live += b->live_threads();
        if (arrived && arrived >= live) {
            arrived = 0;
            phase++;
        }
    }
    // address of a block of the cluster, as mapa makes them, or of this one
    block &block_of(block &self, u32 *address) {
        u32 rank = *address >> 24;
        *address &= 0xffffff;
        if (!rank)
            return self;
        if (rank > blocks.size())
            fail("the cluster has no block %u", rank - 1);
        if (blocks[rank - 1]->live_threads() == 0)
            fail("shared memory of block %u of the cluster, which has ended", rank - 1);
        return *blocks[rank - 1];
    }
    void load_one(size_t which) {
        deferred work = loads[which];
        loads.erase(loads.begin() + (ptrdiff_t)which);
        work();
    }
};

template <class F> static inline void for_lanes(u32 lanes, F f) {
    if (lanes == ~0u) {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep // no lane reads what another writes
#endif
        for (u32 lane = 0; lane < LANES; lane++)
            f(lane);
    } else {
        for (; lanes; lanes &= lanes - 1)
            f((u32)__builtin_ctz(lanes));
    }
}

// >>warps

inline void warp::start(block *of, u32 number, u32 threads) {
    const launch &about = *of->in->of;
    in = of;
    runs = about.runs;
    index = number;
    live = threads >= LANES ? ~0u : (1u << threads) - 1;
    parked = stalled = 0;
    blocked = again = arrived_at_cluster = false;
    last_block = NULL;
    products = groups();
    now = 0;
    memset(next, 0, sizeof next);
    file.assign(runs->file_bytes, 0xcc);
    for (const constant &c : runs->constants)
        for (u32 lane = 0; lane < LANES; lane++) {
            u32 thread = number * LANES + lane;
            u64 value = c.value;
            if (c.kind == PARAMETERS)
                value = (u64)about.parameters_at;
            else if (c.kind == DYNAMIC_SHARED)
                value = runs->dynamic_begin();
            else if (c.kind == SPECIAL)
                value = c.name == "%tid.x"             ? thread % about.block_x
                        : c.name == "%tid.y"           ? thread / about.block_x
                        : c.name == "%ntid.x"          ? about.block_x
                        : c.name == "%ntid.y"          ? about.block_y
                        : c.name == "%ctaid.x"         ? of->index
                        : c.name == "%nctaid.x"        ? about.grid
                        : c.name == "%cluster_ctarank" ? of->rank
                        : c.name == "%laneid"          ? lane
                                                       : ~0ull;
            if (c.kind == SPECIAL && value == ~0ull)
                fail("the special register %s is unknown", c.name.c_str());
            if (c.to.bytes == 0)
                bits(c.to) = value & 1 ? ~0u : 0;
            else
                memcpy(at<u8>(c.to) + lane * c.to.bytes, &value, c.to.bytes);
        }
}

inline void warp::fail_here(const char *why) const {
    u32 line = runs->ops[now].line;
    fail("block %u, warp %u: %s\n    PTX, line %u: %s", in->index, index, why, line + 1,
         line < runs->lines->size() ? (*runs->lines)[line].c_str() : "");
}

// The lanes that go next, and the operation at which others would join them.
inline bool warp::pick(u32 *lanes, u32 *pc, u32 *until) const {
    u32 free = live & ~parked & ~stalled;
    *pc = *until = ~0u;
    *lanes = 0;
    if (!free)
        return false;
    for_lanes(free, [&](u32 lane) {
        if (next[lane] < *pc)
            *pc = next[lane];
    });
    for_lanes(live & ~stalled, [&](u32 lane) {
        if (next[lane] == *pc)
            *lanes |= 1u << lane;
        else if (next[lane] > *pc && next[lane] < *until)
            *until = next[lane];
    });
    return true;
}

inline u32 warp::run(u32 budget) {
    u32 lanes, pc, until, count = 0;
    bool unparked = false; // parked lanes look once more: those they wait for may have ended
    stalled = 0;
    while (live && !blocked && count < budget) {
        if (!pick(&lanes, &pc, &until)) {
            if (stalled)
                break;
            if (unparked)
                fail("lanes wait for others that wait elsewhere");
            parked = 0;
            unparked = true;
            continue;
        }
        for (bool on = true; on;) {
            const op &o = runs->ops[pc];
            u32 taking = !o.guarded ? lanes : lanes & (o.negated ? ~bits(o.guard) : bits(o.guard));
            now = pc;
            count++;
            switch (o.kind) {
            case STRAIGHT:
                if (taking)
                    o.run(*this, o, taking);
                on = ++pc != until;
                break;
            case BRANCH:
                if (lanes == live && (taking == lanes || !taking)) {
                    pc = taking ? o.target : pc + 1;
                    on = count < budget;
                    break;
                }
                for_lanes(taking, [&](u32 lane) { next[lane] = o.target; });
                lanes &= ~taking;
                pc++;
                on = false;
                break;
            case EXIT:
                live &= ~taking;
                lanes &= ~taking;
                pc++;
                in->threads_ended();
                in->in->complete();
                on = false;
                break;
            case TOGETHER:
            case POLLED:
            case POLLED_TOGETHER:
                on = false;
                if (taking != lanes)
                    fail("an operation for several lanes, behind a predicate that some of them have not");
                if (o.kind != POLLED) {
                    u32 members = o.members < 0 ? ~0u : at<u32>(o.x[o.members])[__builtin_ctz(lanes)];
                    if (~members & lanes)
                        fail("a lane is not of those that it names");
                    if (members & live & ~lanes) {
                        parked |= lanes;
                        break;
                    }
                }
                parked &= ~lanes;
                again = false;
                o.run(*this, o, lanes);
                if (again) {
                    stalled |= lanes;
                    count--;
                } else {
                    unparked = false;
                    pc++;
                }
                break;
            }
        }
        for_lanes(lanes, [&](u32 lane) { next[lane] = pc; });
    }
    return count;
}

// >>blocks and clusters

inline void cluster::run(u32 first_block) {
    u32 threads = of->block_x * of->block_y, count = (threads + LANES - 1) / LANES;
    std::vector<warp *> order;
    if (blocks.empty())
        for (u32 rank = 0; rank < of->runs->cluster; rank++) {
            blocks.push_back(std::unique_ptr<block>(new block()));
            blocks[rank]->warps.resize(count);
        }
    for (u32 rank = 0; rank < blocks.size(); rank++) {
        block &b = *blocks[rank];
        u32 size = of->runs->dynamic_begin() + of->dynamic_shared;
        b.in = this;
        b.rank = rank;
        b.index = first_block + rank;
        b.shared.assign(size, 0xff);
        b.written_by.assign(size / 16 + 1, 0);
        b.phase_barriers.clear();
        for (barrier &one : b.barriers)
            one = barrier();
        for (u32 w = 0; w < count; w++) {
            b.warps[w].start(&b, w, threads - w * LANES);
            order.push_back(&b.warps[w]);
        }
    }
    arrived = 0;
    for (;;) {
        bool progress = false, lives = false;
        for (size_t i = 0; i < order.size(); i++) {
            std::swap(order[i], order[i + of->chance((u32)(order.size() - i))]);
            warp &w = *order[i];
            if (!w.live)
                continue;
            lives = true;
            try {
                if (!w.blocked && w.run(1 + of->chance(4000)))
                    progress = true;
            } catch (const std::exception &error) {
                w.fail_here(error.what());
            }
        }
        if (!lives)
            break;
        for (size_t i = loads.size(); i-- > 0;)
            if (of->chance(2)) {
                load_one(i);
                progress = true;
            }
        if (!progress && !loads.empty()) {
            load_one(of->chance((u32)loads.size()));
            progress = true;
        }
        if (!progress)
            for (const warp *w : order)
                if (w->live)
                    w->fail_here("all warps wait, and nothing is on its way");
    }
    if (!loads.empty())
        fail("the blocks have ended with loads on their way");
    for (warp *w : order) {
        w->products.wait(0);
        for (u32 lane = 0; lane < LANES; lane++) {
            w->copies[lane].commit(true);
            w->bulk_copies[lane].commit(true);
        }
    }
}

#endif
