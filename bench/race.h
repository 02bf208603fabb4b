/* A race: series of calls that do the same work, timed by turns in four modes.

       graph    replays of one CUDA graph of many calls: what follows itself
       spaced   the same with another kernel ahead of each call, whose own time is taken off
       burst    after 25 ms of rest, two calls that do not count, then up to 16 that do: boost clocks
       stream   calls issued one by one, from the first to the end of the last, by the host's clock

   Each call takes the next set of tensors. */
#ifndef GEMMEPI_BENCH_RACE_H
#define GEMMEPI_BENCH_RACE_H

#include "bench.h"
#include "nvrtc.h"

/* What is raced. Ours is there twice: the second shows the noise. The routes are those forced. */
#define RACE_SERIES_LIST(X)      \
    X(RACE_OURS, "ours")         \
    X(RACE_AGAIN, "again")       \
    X(RACE_FUSED, "fused")       \
    X(RACE_LT, "lt")             \
    X(RACE_SPLIT, "split")       \
    X(RACE_PLAIN, "plain")       \
    X(RACE_CUBLASLT, "cublaslt") \
    X(RACE_PASS, "pass")         \
    X(RACE_BARE, "bare")         \
    X(RACE_TRITON, "triton")

enum {
#define RACE_ENUM(name, text) name,
    RACE_SERIES_LIST(RACE_ENUM)
#undef RACE_ENUM
        RACE_SERIES
};

static const char *const race_series_names[] = {
#define RACE_NAME(name, text) text,
    RACE_SERIES_LIST(RACE_NAME)
#undef RACE_NAME
};

enum { RACE_GRAPH, RACE_SPACED, RACE_BURST, RACE_STREAM, RACE_MODES };

static const char *const race_mode_names[] = {"graph", "spaced", "burst", "stream"};

enum {
    RACE_GRAPH_TIME = 1000,  /* microseconds of a graph's calls, about, */
    RACE_GRAPH_CALLS = 400,  /* but so many at most, or one for each set; */
    RACE_LEAD_TIME = 4000,   /* a replay shorter than this comes behind one that does not count, */
    RACE_STREAM_TIME = 2000, /* likewise of calls on a stream, */
    RACE_STREAM_LEAST = 4,   /* of which there are so many at least */
    RACE_STREAM_MOST = 400,
    RACE_BURST_REST = 25000, /* microseconds */
    RACE_BURST_FIRST = 2,    /* calls that do not count */
    RACE_BURST_CALLS = 16,   /* that do, at most, */
    RACE_BURST_TIME = 20000, /* or as many as take so many microseconds, but two */
    RACE_LEAST_ROUNDS = 5,
    RACE_SPACER = 8 << 20, /* bytes that the kernel between two calls reads and writes */
    RACE_SPACER_BLOCKS = RACE_SPACER / 16 / 256,
    RACE_HOLD = 150,      /* microseconds for which the stream waits while the host queues what is timed */
    RACE_SLOW = 5,        /* a route that takes so many times ours' time, */
    RACE_SLOW_TIME = 200, /* and so many microseconds, is not raced: what it took on trial stands for it */
    RACE_CAPTURE_RELAXED = 2
};

#define RACE_LEAST_SPACED \
    0.01 /* microseconds: a call may hide behind what is ahead of it, but takes some time */

/* Seconds for a mode's rounds of one problem, about. */
static const double race_seconds[RACE_MODES] = {0.7, 0.7, 1.2, 0.4};

/* One call on the set; in a capture as outside. */
typedef int (*race_call)(bench *b, void *user, int series, int set);

/* Kernels and memory of all races. */
typedef struct race_tools {
    void *module, *spacer, *hold;
    void *space; /* RACE_SPACER bytes */
} race_tools;

typedef struct race {
    const race_tools *tools;
    race_call call;
    void *user;
    int sets;
    int has[RACE_SERIES];     /* 1: raced, 2: only tried */
    int next[RACE_SERIES];    /* the set that comes next */
    double once[RACE_SERIES]; /* microseconds on trial */
    double scale;             /* of all times that are spent */
    int most_rounds;

    int rounds; /* of the mode that ran last, and its times */
    double times[RACE_SERIES][BENCH_MOST_ROUNDS];
} race;

/* >>tools */

static const char race_source[] = "extern \"C\" __global__ void bench_spacer(uint4 *at) {\n"
                                  "    uint4 *mine = at + blockIdx.x * blockDim.x + threadIdx.x, v = *mine;\n"
                                  "    v.x++, v.y++, v.z++, v.w++;\n"
                                  "    *mine = v;\n"
                                  "}\n"
                                  "__device__ unsigned long long nanoseconds() {\n"
                                  "    unsigned long long now;\n"
                                  "    asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(now));\n"
                                  "    return now;\n"
                                  "}\n"
                                  "extern \"C\" __global__ void bench_hold(unsigned microseconds) {\n"
                                  "    unsigned long long end = nanoseconds() + 1000ull * microseconds;\n"
                                  "    while (nanoseconds() < end)\n"
                                  "        __nanosleep(500);\n"
                                  "}\n";

static int race_function(bench *b, void **function, void *module, const char *name) {
    return bench_did(b, b->driver.module_function(function, module, name), name);
}

/* race_tools_close takes whatever this leaves. */
static int race_tools_open(bench *b, const nvrtc *n, race_tools *t) {
    char *cubin = NULL;
    int opened = nvrtc_compile(b, n, race_source, b->details.compute_capability, &cubin) &&
                 bench_did(b, b->driver.module_load(&t->module, cubin), "loading the bench's kernels") &&
                 race_function(b, &t->spacer, t->module, "bench_spacer") &&
                 race_function(b, &t->hold, t->module, "bench_hold") &&
                 bench_ok(b, gemmepi_alloc(b->context, RACE_SPACER, &t->space)) &&
                 bench_set_bytes(b, t->space, 0, RACE_SPACER);
    free(cubin);
    return opened;
}

static void race_tools_close(bench *b, race_tools *t) {
    gemmepi_status freed = gemmepi_free(b->context, t->space);
    (void)freed;
    if (t->module)
        b->driver.module_unload(t->module);
    memset(t, 0, sizeof *t);
}

static int race_space(bench *b, const race_tools *t) {
    void *space = t->space, *parameters[1];
    parameters[0] = &space;
    return bench_did(
        b, b->driver.launch(t->spacer, RACE_SPACER_BLOCKS, 1, 1, 256, 1, 1, 0, b->stream, parameters, NULL),
        "launching the kernel between two calls");
}

static int race_hold(bench *b, const race_tools *t) {
    unsigned microseconds = RACE_HOLD;
    void *parameters[1];
    parameters[0] = &microseconds;
    return bench_did(b, b->driver.launch(t->hold, 1, 1, 1, 1, 1, 1, 0, b->stream, parameters, NULL),
                     "launching a kernel that waits");
}

/* >>graphs */

/* What is captured: calls of a series (negative: none), each behind a spacer or not. */
typedef struct race_body {
    int series, count, spaced;
} race_body;

static int race_issue(bench *b, race *r, const race_body *body) {
    int i;
    for (i = 0; i < body->count; i++) {
        int s = body->series;
        if (body->spaced && !race_space(b, r->tools))
            return 0;
        if (s < 0)
            continue;
        if (!r->call(b, r->user, s, r->next[s]))
            return 0;
        r->next[s] = (r->next[s] + 1) % r->sets;
    }
    return 1;
}

/* The capture is ended whatever happens, and the first fault is the one that is told. */
static int race_capture(bench *b, race *r, const race_body *body, void **executable) {
    void *graph = NULL;
    int issued, ended;
    *executable = NULL;
    if (!bench_did(b, b->driver.begin_capture(b->stream, RACE_CAPTURE_RELAXED), "cuStreamBeginCapture"))
        return 0;
    issued = race_issue(b, r, body);
    ended = b->driver.end_capture(b->stream, &graph);
    issued = issued && bench_did(b, ended, "cuStreamEndCapture") &&
             bench_did(b, b->driver.instantiate(executable, graph, 0), "cuGraphInstantiateWithFlags");
    if (graph)
        b->driver.graph_destroy(graph);
    return issued;
}

static int race_launch(bench *b, void *executable) {
    return bench_did(b, b->driver.graph_launch(executable, b->stream), "cuGraphLaunch");
}

static int race_wait(bench *b) {
    return bench_did(b, b->driver.stream_synchronize(b->stream), "cuStreamSynchronize");
}

static int race_mark(bench *b, void *event) {
    return bench_did(b, b->driver.event_record(event, b->stream), "cuEventRecord");
}

/* From `began` to `ended`, in microseconds. */
static int race_elapsed(bench *b, double *microseconds) {
    float milliseconds = 0;
    if (!bench_did(b, b->driver.event_synchronize(b->ended), "cuEventSynchronize") ||
        !bench_did(b, b->driver.event_elapsed(&milliseconds, b->began, b->ended), "cuEventElapsedTime"))
        return 0;
    *microseconds = 1e3 * (double)milliseconds;
    return 1;
}

/* A replay, in microseconds. `about` is what it may take: a short one is queued behind another, so that launching it is not
   timed. */
static int race_replay(bench *b, void *executable, double about, double *microseconds) {
    return (about >= RACE_LEAD_TIME || race_launch(b, executable)) && race_mark(b, b->began) &&
           race_launch(b, executable) && race_mark(b, b->ended) && race_elapsed(b, microseconds);
}

static int race_clamp(double value, int least, int most) {
    return value < least ? least : value > most ? most : (int)value;
}

/* Calls of a graph: each set as often as the others, where that is not too much. */
static int race_graph_calls(const race *r, double once) {
    int count = race_clamp(ceil(RACE_GRAPH_TIME / once), 2, RACE_GRAPH_CALLS);
    return (count + r->sets - 1) / r->sets * r->sets;
}

/* >>rounds by turns */

/* A mode: what a series needs, made once, and one measurement of it in microseconds a call. */
typedef struct race_lane {
    void *first, *second; /* graphs */
    int count;            /* calls that are timed */
} race_lane;

typedef struct race_mode {
    int (*prepare)(bench *b, race *r, int series, race_lane *lane);
    int (*measure)(bench *b, race *r, int series, const race_lane *lane, double *microseconds);
    double (*cost)(const race *r, const race_lane *lane,
                   int series); /* microseconds of a measurement, about */
} race_mode;

static void race_drop(bench *b, race_lane *lane) {
    if (lane->first)
        b->driver.executable_destroy(lane->first);
    if (lane->second)
        b->driver.executable_destroy(lane->second);
    memset(lane, 0, sizeof *lane);
}

/* The raced ones into list, of which the count is returned. The opponents are first. */
static int race_list(const race *r, int *list) {
    int count = 0, i;
    for (i = RACE_SERIES - 1; i >= 0; i--)
        if (r->has[i] == 1)
            list[count++] = i;
    return count;
}

/* Rounds by turns: those that begin before `warm` seconds have gone do not count. */
static int race_rounds(bench *b, race *r, const race_mode *mode, race_lane *lanes, double warm) {
    int list[RACE_SERIES], count = race_list(r, list), i;
    double began = bench_seconds(), unused;
    for (i = 0; i % count || bench_seconds() - began < warm; i++) {
        int s = list[bench_turn(i / count, i % count, count)];
        if (!mode->measure(b, r, s, &lanes[s], &unused))
            return 0;
    }
    for (i = 0; i < count * r->rounds; i++) {
        int s = list[bench_turn(i / count, i % count, count)];
        if (!mode->measure(b, r, s, &lanes[s], &r->times[s][i / count]))
            return 0;
    }
    return 1;
}

/* As many rounds as there is time for. */
static int race_count_rounds(const race *r, const race_mode *mode, const race_lane *lanes, double seconds) {
    double cost = 0;
    int s;
    for (s = 0; s < RACE_SERIES; s++)
        if (r->has[s] == 1)
            cost += mode->cost(r, &lanes[s], s);
    return race_clamp(1e6 * seconds * r->scale / cost, RACE_LEAST_ROUNDS, r->most_rounds);
}

static int race_run(bench *b, race *r, const race_mode *mode, double seconds, double warm) {
    race_lane lanes[RACE_SERIES];
    int done = 1, s;
    memset(lanes, 0, sizeof lanes);
    for (s = 0; s < RACE_SERIES && done; s++)
        done = r->has[s] != 1 || mode->prepare(b, r, s, &lanes[s]);
    if (done) {
        r->rounds = race_count_rounds(r, mode, lanes, seconds);
        done = race_rounds(b, r, mode, lanes, warm * r->scale);
    }
    for (s = 0; s < RACE_SERIES; s++)
        race_drop(b, &lanes[s]);
    return done;
}

/* >>graph */

static int race_graph_prepare(bench *b, race *r, int series, race_lane *lane) {
    race_body body;
    body.series = series, body.spaced = 0;
    body.count = lane->count = race_graph_calls(r, r->once[series]);
    return race_capture(b, r, &body, &lane->first) && race_launch(b, lane->first);
}

static int race_graph_measure(bench *b, race *r, int series, const race_lane *lane, double *microseconds) {
    double all;
    if (!race_replay(b, lane->first, lane->count * r->once[series], &all))
        return 0;
    *microseconds = all / lane->count;
    return 1;
}

static double race_graph_cost(const race *r, const race_lane *lane, int series) {
    double all = lane->count * r->once[series];
    return all < RACE_LEAD_TIME ? 2 * all : all;
}

/* >>spaced */

static int race_spaced_prepare(bench *b, race *r, int series, race_lane *lane) {
    race_body body;
    body.series = series, body.spaced = 1;
    body.count = lane->count = race_graph_calls(r, r->once[series]);
    if (!race_capture(b, r, &body, &lane->first) || !race_launch(b, lane->first))
        return 0;
    body.series = -1;
    return race_capture(b, r, &body, &lane->second) && race_launch(b, lane->second);
}

/* A spacer takes some 5 us. */
static int race_spaced_measure(bench *b, race *r, int series, const race_lane *lane, double *microseconds) {
    double with, without;
    if (!race_replay(b, lane->second, lane->count * 5.0, &without) ||
        !race_replay(b, lane->first, lane->count * (r->once[series] + 5), &with))
        return 0;
    *microseconds = (with - without) / lane->count;
    if (*microseconds < RACE_LEAST_SPACED)
        *microseconds = RACE_LEAST_SPACED;
    return 1;
}

static double race_spaced_cost(const race *r, const race_lane *lane, int series) {
    return race_graph_cost(r, lane, series) + 4 * 5.0 * lane->count;
}

/* >>burst */

static int race_burst_calls(double once) {
    return race_clamp(RACE_BURST_TIME / once, 2, RACE_BURST_CALLS);
}

static int race_burst_prepare(bench *b, race *r, int series, race_lane *lane) {
    race_body body;
    body.series = series, body.spaced = 0, body.count = RACE_BURST_FIRST;
    if (!race_capture(b, r, &body, &lane->first) || !race_launch(b, lane->first))
        return 0;
    body.count = lane->count = race_burst_calls(r->once[series]);
    return race_capture(b, r, &body, &lane->second) && race_launch(b, lane->second) && race_wait(b);
}

static void race_rest(void) {
    struct timespec rest;
    rest.tv_sec = 0;
    rest.tv_nsec = 1000L * RACE_BURST_REST;
    nanosleep(&rest, NULL);
}

/* The stream waits until all is queued. */
static int race_burst_measure(bench *b, race *r, int series, const race_lane *lane, double *microseconds) {
    double all;
    (void)series;
    if (!race_wait(b))
        return 0;
    race_rest();
    if (!race_hold(b, r->tools) || !race_launch(b, lane->first) || !race_mark(b, b->began) ||
        !race_launch(b, lane->second) || !race_mark(b, b->ended) || !race_elapsed(b, &all))
        return 0;
    *microseconds = all / lane->count;
    return 1;
}

static double race_burst_cost(const race *r, const race_lane *lane, int series) {
    return RACE_BURST_REST + RACE_HOLD + (lane->count + RACE_BURST_FIRST) * r->once[series];
}

/* >>stream */

static int race_stream_prepare(bench *b, race *r, int series, race_lane *lane) {
    lane->count = race_clamp(ceil(RACE_STREAM_TIME / r->once[series]), RACE_STREAM_LEAST, RACE_STREAM_MOST);
    return race_wait(b);
}

static int race_stream_measure(bench *b, race *r, int series, const race_lane *lane, double *microseconds) {
    race_body body;
    double began = bench_seconds();
    body.series = series, body.spaced = 0, body.count = lane->count;
    if (!race_issue(b, r, &body) || !race_wait(b))
        return 0;
    *microseconds = 1e6 * (bench_seconds() - began) / lane->count;
    return 1;
}

static double race_stream_cost(const race *r, const race_lane *lane, int series) {
    return lane->count * r->once[series];
}

/* >>the modes */

static const race_mode race_modes[RACE_MODES] = {
    {race_graph_prepare, race_graph_measure, race_graph_cost},
    {race_spaced_prepare, race_spaced_measure, race_spaced_cost},
    {race_burst_prepare, race_burst_measure, race_burst_cost},
    {race_stream_prepare, race_stream_measure, race_stream_cost},
};

/* In graph mode the clock comes down to what the problem's own series leave of it before a round counts. */
static int race_in_mode(bench *b, race *r, int mode) {
    return race_run(b, r, &race_modes[mode], race_seconds[mode], mode == RACE_GRAPH ? 0.1 : 0) &&
           race_wait(b);
}

/* Runs the series a few times, as any first run may load or build something, and notes how long a call takes. */
static int race_try(bench *b, race *r, int series) {
    race_body body;
    double all;
    body.series = series, body.spaced = 0, body.count = 1;
    if (!race_issue(b, r, &body) || !race_wait(b) || !race_mark(b, b->began) || !race_issue(b, r, &body) ||
        !race_mark(b, b->ended) || !race_elapsed(b, &all))
        return 0;
    body.count = all < 1000 ? 5 : 1;
    if (!race_mark(b, b->began) || !race_issue(b, r, &body) || !race_mark(b, b->ended) ||
        !race_elapsed(b, &all))
        return 0;
    r->once[series] = all / body.count > 0.5 ? all / body.count : 0.5;
    return 1;
}

/* Once ours has been tried: routes that are far slower are left at what they took. */
static void race_leave_out_slow(race *r) {
    int s;
    for (s = RACE_FUSED; s <= RACE_PLAIN; s++)
        if (r->has[s] && r->once[s] > RACE_SLOW * r->once[RACE_OURS] && r->once[s] > RACE_SLOW_TIME)
            r->has[s] = 2;
}

#endif
