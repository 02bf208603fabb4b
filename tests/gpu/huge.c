/* Tensors of more than 2^31 elements, on a GPU with 14 GiB to spare: filled by broadcasting a row, run through in place, read
   transposed, and summed. What should be there is known for every element, and looked at around the ends and 2^31. */
#include "gemmepi.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>

enum { COLUMNS = 1003, PERIOD = 17 };
static const int64_t rows = ((int64_t)1 << 31) / COLUMNS + 777, columns = COLUMNS;

static gemmepi_context *context;
static gemmepi_stream stream;

/* Small whole numbers of both signs, exact in BF16. */
static float value_of(int64_t column) {
    return (float)(column % PERIOD - PERIOD / 2);
}

static float positive(float x) {
    return x > 0 ? x : 0;
}

static uint16_t bf16_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static float float_of(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

static gemmepi_tensor tensor(void *data, gemmepi_dtype dtype, int rank, const int64_t *shape,
                             const int64_t *stride) {
    gemmepi_tensor t;
    memset(&t, 0, sizeof t);
    t.data = data;
    t.dtype = dtype;
    t.rank = rank;
    t.shape = shape;
    t.stride = stride;
    return t;
}

static int succeeded(gemmepi_status status) {
    CHECK(status == GEMMEPI_OK, "%s", gemmepi_last_error());
    return status == GEMMEPI_OK;
}

/* `count` elements from `first` on. */
static void look(const void *data, int64_t first, int64_t count, float (*expected)(int64_t at)) {
    static uint16_t found[4096];
    int64_t i;
    int wrong = 0;
    if (!succeeded(
            gemmepi_download(context, found, (const char *)data + first * 2, (size_t)count * 2, stream)))
        return;
    for (i = 0; i < count; i++)
        wrong += float_of(found[i]) != expected(first + i);
    CHECK(wrong == 0, "%d of %lld elements from %lld on", wrong, (long long)count, (long long)first);
}

static void look_around(const void *data, float (*expected)(int64_t at)) {
    int64_t all = rows * columns, half = (int64_t)1 << 31;
    look(data, 0, 4096, expected);
    look(data, half - 2048, 4096, expected);
    look(data, half / 2 - 2048, 4096, expected);
    look(data, all - 4096, 4096, expected);
}

static float as_filled(int64_t at) {
    return value_of(at % columns);
}
static float after_relu(int64_t at) {
    return positive(value_of(at % columns));
}
static float transposed_after_relu(int64_t at) {
    return positive(value_of(at / rows));
}

static void sums_are_right(void *data, void *sums) {
    int64_t shape[2], kept;
    float *found = (float *)malloc(sizeof(float) * (size_t)rows);
    gemmepi_tensor a, y;
    float row = 0;
    int axis, wrong;
    int64_t i;
    shape[0] = rows;
    shape[1] = columns;
    for (i = 0; i < columns; i++)
        row += positive(value_of(i));
    for (axis = 0; axis < 2 && found; axis++) {
        kept = shape[axis];
        a = tensor(data, GEMMEPI_BF16, 2, shape, NULL);
        y = tensor(sums, GEMMEPI_F32, 1, &kept, NULL);
        if (!succeeded(gemmepi_bias_grad(context, &a, axis, 0, &y, stream)) ||
            !succeeded(gemmepi_download(context, found, sums, sizeof(float) * (size_t)kept, stream)))
            break;
        for (wrong = 0, i = 0; i < kept; i++)
            wrong += found[i] != (axis ? (float)((double)rows * (double)positive(value_of(i))) : row);
        CHECK(wrong == 0, "%d of the %lld sums along axis %d", wrong, (long long)kept, axis);
    }
    CHECK(found != NULL, "no host memory");
    free(found);
}

static void more_than_2_to_the_31_elements_are_right(void) {
    uint16_t line[COLUMNS];
    int64_t shape[2], turned[2], turned_stride[2], flat = rows * columns, i;
    size_t bytes = (size_t)flat * 2;
    char *first = NULL, *second = NULL;
    void *row = NULL;
    gemmepi_tensor a, y;
    shape[0] = turned[1] = rows;
    shape[1] = turned[0] = columns;
    turned_stride[0] = 1;
    turned_stride[1] = columns;
    if (gemmepi_alloc(context, bytes, (void **)&first) != GEMMEPI_OK ||
        gemmepi_alloc(context, bytes, (void **)&second) != GEMMEPI_OK ||
        gemmepi_alloc(context, (size_t)rows * 4, &row) != GEMMEPI_OK) {
        gemmepi_free(context, first);
        gemmepi_free(context, second);
        SKIP("the GPU has no 9 GiB to spare");
    }
    for (i = 0; i < columns; i++)
        line[i] = bf16_of(value_of(i));
    succeeded(gemmepi_upload(context, row, line, sizeof line, stream));
    a = tensor(row, GEMMEPI_BF16, 1, &columns, NULL);
    y = tensor(first, GEMMEPI_BF16, 2, shape, NULL);
    if (succeeded(gemmepi_cast(context, &a, &y, stream)))
        look_around(first, as_filled);
    a = y = tensor(first, GEMMEPI_BF16, 1, &flat, NULL);
    if (succeeded(gemmepi_activation(context, GEMMEPI_RELU, NAN, &a, &y, stream)))
        look_around(first, after_relu);
    a = tensor(first, GEMMEPI_BF16, 2, turned, turned_stride);
    y = tensor(second, GEMMEPI_BF16, 2, turned, NULL);
    if (succeeded(gemmepi_activation(context, GEMMEPI_RELU, NAN, &a, &y, stream)))
        look_around(second, transposed_after_relu);
    sums_are_right(first, row);
    gemmepi_free(context, first);
    gemmepi_free(context, second);
    gemmepi_free(context, row);
}

int main(void) {
    gemmepi_config config;
    const char *chosen = getenv("GEMMEPI_TEST_DEVICE");
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE(chosen && chosen[0] >= '0' && chosen[0] <= '9' ? atoi(chosen) : 0);
    if ((chosen && strcmp(chosen, "host") == 0) || gemmepi_create(&config, &context) != GEMMEPI_OK) {
        printf(
            "skip more_than_2_to_the_31_elements_are_right: there is no GPU\n0 passed, 0 failed, 1 skipped\n");
        return 0;
    }
    succeeded(gemmepi_stream_create(context, &stream));
    RUN(more_than_2_to_the_31_elements_are_right);
    gemmepi_stream_destroy(context, stream);
    gemmepi_destroy(context);
    return test_finish();
}
