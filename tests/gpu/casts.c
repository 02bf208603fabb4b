/* casts [small]: casts of whole tensors whose scale is made of their amax, by the kernel whose second launch begins before the first has
   ended. Large ones, again and again with other numbers, replayed from a graph, and on two streams at once. On the GPU that GEMMEPI_TEST_DEVICE
   numbers. */
#include "../products/problem.h"

static test_device *here;
static int is_small;

typedef struct tensors {
    int64_t rows, columns;
    char *a, *y, *turned; /* on the device */
    float *scale, *amax;
    uint16_t *from; /* what a holds: BF16 */
} tensors;

static int64_t count_of(const tensors *t) {
    return t->rows * t->columns;
}

static tensors tensors_of(int64_t rows, int64_t columns) {
    tensors t;
    void *block = NULL;
    size_t count = (size_t)(rows * columns), line = (count + 255) / 256 * 256;
    memset(&t, 0, sizeof t);
    t.rows = rows, t.columns = columns;
    t.from = (uint16_t *)malloc(count * 2);
    CHECK(gemmepi_alloc(here->context, 4 * line + 512, &block) == GEMMEPI_OK, "%s", gemmepi_last_error());
    t.a = (char *)block, t.y = t.a + 2 * line, t.turned = t.y + line;
    t.scale = (float *)(void *)(t.turned + line), t.amax = t.scale + 64;
    return t;
}

static void tensors_free(tensors *t) {
    gemmepi_free(here->context, t->a);
    free(t->from);
}

/* Numbers of all magnitudes to `highest`, which stands at one place alone. */
static void fill_with(tensors *t, unsigned seed, int highest) {
    int64_t i;
    for (i = 0; i < count_of(t); i++) {
        uint64_t drawn = random_hash((uint64_t)i * 31 + seed);
        t->from[i] = (uint16_t)((drawn >> 40 & 0x8000) | (unsigned)(highest - 1 - (int)(drawn % 12)) << 7 |
                                (drawn >> 20 & 127));
    }
    t->from[random_hash(seed) % (uint64_t)count_of(t)] = (uint16_t)(highest << 7 | 0x55);
    CHECK(gemmepi_upload(here->context, t->a, t->from, (size_t)count_of(t) * 2, here->stream) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
}

static gemmepi_plan *plan_of(const tensors *t, int turns) {
    int64_t shape[2], exchanged[2];
    gemmepi_tensor a, y, turned;
    gemmepi_elementwise_desc desc;
    gemmepi_plan *plan = NULL;
    memset(&a, 0, sizeof a);
    memset(&desc, 0, sizeof desc);
    shape[0] = exchanged[1] = t->rows, shape[1] = exchanged[0] = t->columns;
    a.rank = 2, a.shape = shape, a.dtype = GEMMEPI_BF16;
    y = turned = a;
    y.dtype = turned.dtype = GEMMEPI_E4M3, turned.shape = exchanged;
    desc.operation = GEMMEPI_OP_CAST, desc.flags = GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX;
    desc.a = &a, desc.y = &y, desc.y_transposed = turns ? &turned : NULL;
    CHECK(gemmepi_plan_elementwise(here->context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(!plan || ((gpi__elementwise_plan *)(void *)plan)->scaled.is_tensor, "another kernel has it");
    return plan;
}

static gemmepi_elementwise_args args_of(const tensors *t, int turns) {
    gemmepi_elementwise_args args;
    memset(&args, 0, sizeof args);
    args.a = t->a, args.y = t->y, args.y_transposed = turns ? t->turned : NULL;
    args.y_scale = t->scale, args.amax = t->amax;
    return args;
}

static unsigned char *take(const void *from, size_t bytes) {
    unsigned char *taken = (unsigned char *)malloc(bytes);
    CHECK(gemmepi_download(here->context, taken, from, bytes, here->stream) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    return taken;
}

static double value_of(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

/* amax, the scale, each element of y within half a step of a / scale, and y_transposed the very bytes. */
static void check_results(const tensors *t, int turns, const char *when) {
    double of_byte[256], amax = 0;
    unsigned char *y = take(t->y, (size_t)count_of(t)), *turned = take(t->turned, (size_t)count_of(t));
    float *numbers = (float *)(void *)take(t->scale, 512);
    int64_t i, wrong = 0, misplaced = 0;
    for (i = 0; i < 256; i++)
        of_byte[i] = oracle_decode_e4m3((uint8_t)i);
    for (i = 0; i < count_of(t); i++)
        amax = fabs(value_of(t->from[i])) > amax ? fabs(value_of(t->from[i])) : amax;
    CHECK((double)numbers[64] == amax && numbers[0] == (float)(amax / 448), "%s: amax %g, scale %g, want %g",
          when, (double)numbers[64], (double)numbers[0], amax);
    for (i = 0; i < count_of(t); i++) {
        double want = value_of(t->from[i]) / (double)numbers[0], size = fabs(want);
        double half = size < ldexp(1, -6) ? ldexp(1, -10) : size / 16;
        wrong += !(fabs(of_byte[y[i]] - want) <= half * 1.00001);
        if (turns)
            misplaced += turned[i % t->columns * t->rows + i / t->columns] != y[i];
    }
    CHECK(wrong == 0 && misplaced == 0, "%s: of %lld x %lld %lld are wrong, %lld misplaced", when,
          (long long)t->rows, (long long)t->columns, (long long)wrong, (long long)misplaced);
    free(y), free(turned), free(numbers);
}

static void poison(const tensors *t) {
    unsigned char *bytes = (unsigned char *)malloc((size_t)count_of(t) + 512);
    memset(bytes, 0x7f, (size_t)count_of(t) + 512);
    CHECK(gemmepi_upload(here->context, t->y, bytes, (size_t)count_of(t), here->stream) == GEMMEPI_OK &&
              gemmepi_upload(here->context, t->turned, bytes, (size_t)count_of(t), here->stream) ==
                  GEMMEPI_OK &&
              gemmepi_upload(here->context, t->scale, bytes, 512, here->stream) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    free(bytes);
}

static void run_once(const gemmepi_plan *plan, const tensors *t, int turns) {
    gemmepi_elementwise_args args = args_of(t, turns);
    CHECK(gemmepi_plan_prepare(plan, here->stream) == GEMMEPI_OK &&
              gemmepi_run_elementwise(plan, &args, here->stream) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
}

static const int64_t large[][2] = {{4096, 2312}, {1000, 8200}, {128, 96}, {6000, 2056}, {131, 1048}},
                     smaller[][2] = {{130, 136}, {512, 392}, {1, 128}};

static void large_casts_are_right(void) {
    int i, turns, again, count = is_small ? (int)GPI__COUNT(smaller) : (int)GPI__COUNT(large);
    for (i = 0; i < count; i++)
        for (turns = 0; turns < 2; turns++) {
            tensors t =
                is_small ? tensors_of(smaller[i][0], smaller[i][1]) : tensors_of(large[i][0], large[i][1]);
            gemmepi_plan *plan = plan_of(&t, turns);
            for (again = 0; again < 2; again++) {
                fill_with(&t, (unsigned)(4 * i + 2 * again + turns), 120 + i - 3 * again);
                poison(&t);
                run_once(plan, &t, turns);
                check_results(&t, turns, "by itself");
            }
            gemmepi_plan_destroy(plan);
            tensors_free(&t);
        }
}

/* A kernel before writes what the cast reads, and one behind it what the cast has read. */
static void a_cast_waits_for_what_is_ahead_of_it_and_is_waited_for(void) {
    tensors t[3];
    gemmepi_plan *plan;
    int64_t shape[2];
    int i, turn;
    for (i = 0; i < 3; i++) {
        t[i] = is_small ? tensors_of(130, 136) : tensors_of(1024, 2312);
        fill_with(&t[i], 50u + (unsigned)i, 110 + 12 * i);
    }
    plan = plan_of(&t[2], 1);
    CHECK(gemmepi_plan_prepare(plan, here->stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    shape[0] = t[2].rows, shape[1] = t[2].columns;
    for (turn = 1; turn < (is_small ? 3 : 12); turn++) {
        gemmepi_elementwise_args args = args_of(&t[2], 1);
        gemmepi_tensor from, to;
        memset(&from, 0, sizeof from);
        from.dtype = GEMMEPI_BF16, from.rank = 2, from.shape = shape;
        to = from;
        for (i = 0; i < turn % 7 + 1; i++) {
            from.data = t[(turn + i) % 2].a, to.data = t[2].a;
            CHECK(gemmepi_cast(here->context, &from, &to, here->stream) == GEMMEPI_OK &&
                      gemmepi_run_elementwise(plan, &args, here->stream) == GEMMEPI_OK,
                  "%s", gemmepi_last_error());
        }
        memcpy(t[2].from, t[(turn + i - 1) % 2].from, (size_t)count_of(&t[2]) * 2);
        from.data = t[(turn + i) % 2].a;
        CHECK(gemmepi_cast(here->context, &from, &to, here->stream) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        check_results(&t[2], 1, "between others");
    }
    gemmepi_plan_destroy(plan);
    for (i = 0; i < 3; i++)
        tensors_free(&t[i]);
}

static void a_graph_may_hold_such_casts(void) {
    gpi__driver *driver = &here->context->driver;
    gemmepi_stream before = here->stream;
    tensors t = is_small ? tensors_of(130, 136) : tensors_of(2048, 2304);
    gemmepi_plan *plan = plan_of(&t, 1);
    gemmepi_elementwise_args args = args_of(&t, 1);
    gpi__cu_graph graph = NULL;
    gpi__cu_graph_exec replays = NULL;
    gpi__entry entry;
    int i;
    CHECK(gemmepi_stream_create(here->context, &here->stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    fill_with(&t, 77, 130);
    run_once(plan, &t, 1);
    if (driver->stream_begin_capture(here->stream, GPI__CU_STREAM_CAPTURE_MODE_RELAXED)) {
        gemmepi_plan_destroy(plan);
        tensors_free(&t);
        gemmepi_stream_destroy(here->context, here->stream);
        here->stream = before;
        SKIP("this GPU captures nothing");
    }
    for (i = 0; i < 3; i++) /* one behind the other */
        CHECK(gemmepi_run_elementwise(plan, &args, here->stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(driver->stream_end_capture(here->stream, &graph) == 0 && graph, "the capture does not end");
    CHECK(gpi__enter(here->context, &entry) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(graph && driver->graph_instantiate(&replays, graph, 0) == 0, "the graph cannot be instantiated");
    gpi__leave(here->context, &entry);
    gemmepi_plan_destroy(plan);
    for (i = 0; i < 12 && replays; i++) {
        fill_with(&t, 100u + (unsigned)i, 100 + 3 * i);
        poison(&t);
        CHECK(gpi__enter(here->context, &entry) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(driver->graph_launch(replays, here->stream) == 0, "the graph cannot be launched");
        gpi__leave(here->context, &entry);
        if (i % 3 == 0)
            check_results(&t, 1, "replayed");
    }
    if (replays)
        driver->graph_exec_destroy(replays);
    if (graph)
        driver->graph_destroy(graph);
    tensors_free(&t);
    gemmepi_stream_destroy(here->context, here->stream);
    here->stream = before;
}

static void casts_on_two_streams_do_not_disturb_each_other(void) {
    tensors t[2];
    gemmepi_plan *plan;
    gemmepi_stream streams[2] = {NULL, NULL};
    gemmepi_elementwise_args args[2];
    int i, s;
    for (s = 0; s < 2; s++) {
        t[s] = is_small ? tensors_of(64, 136) : tensors_of(512, 2304);
        args[s] = args_of(&t[s], 1);
        fill_with(&t[s], 5u + (unsigned)s, 110 + 10 * s);
        poison(&t[s]);
        CHECK(gemmepi_stream_create(here->context, &streams[s]) == GEMMEPI_OK, "%s", gemmepi_last_error());
    }
    plan = plan_of(&t[0], 1);
    for (s = 0; s < 2; s++)
        CHECK(gemmepi_plan_prepare(plan, streams[s]) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_synchronize(here->context, here->stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    for (i = 0; i < (is_small ? 2 : 200); i++)
        for (s = 0; s < 2; s++)
            CHECK(gemmepi_run_elementwise(plan, &args[s], streams[s]) == GEMMEPI_OK, "%s",
                  gemmepi_last_error());
    for (s = 0; s < 2; s++) {
        CHECK(gemmepi_synchronize(here->context, streams[s]) == GEMMEPI_OK, "%s", gemmepi_last_error());
        check_results(&t[s], 1, "on a stream of its own");
        tensors_free(&t[s]);
    }
    gemmepi_plan_destroy(plan);
    for (s = 0; s < 2; s++)
        gemmepi_stream_destroy(here->context, streams[s]);
}

int main(int argc, char **argv) {
    test_device devices[2];
    int opened, i, found = 0;
    is_small = argc > 1 && strcmp(argv[1], "small") == 0;
    opened = test_devices_open(devices);
    for (i = 0; i < opened; i++) {
        here = &devices[i];
        if (!here->is_host) {
            found = 1;
            printf("on %s:\n", here->name);
            RUN(large_casts_are_right);
            RUN(a_cast_waits_for_what_is_ahead_of_it_and_is_waited_for);
            RUN(a_graph_may_hold_such_casts);
            RUN(casts_on_two_streams_do_not_disturb_each_other);
        }
        test_device_close(here);
    }
    if (!found) {
        printf("skip casts of whole tensors: there is no GPU\n0 passed, 0 failed, 1 skipped\n");
        return 0;
    }
    return test_finish();
}
