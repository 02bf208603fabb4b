#include "problem/overlap.h"
#include "test.h"

#include <time.h>

/* The generator is Knuth's MMIX one; the result lies in from .. to. */
static uint64_t seed = 1;
static int pick(int from, int to) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return from + (int)((seed >> 33) % (uint64_t)(to - from + 1));
}

static gpi__layout vector(int64_t size, int64_t count, int64_t stride) {
    gpi__layout layout;
    memset(&layout, 0, sizeof layout);
    layout.rank = 1;
    layout.size = size;
    layout.shape[0] = count;
    layout.stride[0] = stride;
    return layout;
}

static gpi__layout matrix(int64_t size, int64_t rows, int64_t row, int64_t columns, int64_t column) {
    gpi__layout layout = vector(size, rows, row);
    layout.rank = 2;
    layout.shape[1] = columns;
    layout.stride[1] = column;
    return layout;
}

/* `count` times what a layout is, `stride` apart. */
static gpi__layout stack(gpi__layout layout, int64_t count, int64_t stride) {
    layout.shape[layout.rank] = count;
    layout.stride[layout.rank++] = stride;
    return layout;
}

/* The answer for typical views, which must come without a search, both ways round. */
static int share(gpi__layout p, gpi__layout q, int64_t distance) {
    gpi__equation equation;
    int steps = 1, answer = gpi__layouts_share(&p, &q, distance);
    CHECK(gpi__layouts_share(&q, &p, -distance) == answer, "not the same from the other side");
    if (gpi__share_equation(&p, &q, distance, &equation))
        gpi__has_solution(equation, &steps);
    CHECK(steps >= 0, "searched");
    return answer;
}

static int repeats(gpi__layout p) {
    return gpi__layout_repeats(&p);
}

static const int64_t huge = (int64_t)1 << 56;

static void empty_layouts_share_and_repeat_nothing(void) {
    gpi__layout scalar = vector(4, 1, 0);
    scalar.rank = 0;
    CHECK(share(scalar, scalar, 0) && share(scalar, scalar, 3) && share(scalar, scalar, -3), "a scalar");
    CHECK(!share(scalar, scalar, 4) && !share(scalar, scalar, -4), "neighbours");
    CHECK(!repeats(scalar), "one element alone");
    CHECK(!share(vector(4, 0, 4), scalar, 0) && !repeats(vector(4, 0, 0)), "no elements");
    CHECK(!share(matrix(4, 0, 0, huge, 0), scalar, 0) && !repeats(matrix(4, 0, 0, huge, 0)), "no rows");
    CHECK(!share(vector(0, 9, 4), scalar, 0) && !repeats(vector(0, 9, 0)), "no bytes");
}

static void strides_of_one_element_do_not_count(void) {
    gpi__layout p = matrix(4, 1, INT64_MIN, 10, 4);
    CHECK(share(p, p, 36) && !share(p, p, 40) && !repeats(p), "a row");
}

static void even_and_odd_elements_share_nothing(void) {
    CHECK(!share(vector(4, 1000, 8), vector(4, 1000, 8), 4), "x[::2], x[1::2]");
    CHECK(!share(vector(4, 1000, 8), vector(4, 1000, -8), 999 * 8 + 4), "x[::2], x[1::2] reversed");
    CHECK(!share(vector(1, huge, 3), vector(1, huge, 3), -3 * 1000 + 1), "thirds");
    CHECK(share(vector(4, 1000, 8), vector(4, 1000, 8), 5), "off by a byte");
    CHECK(share(vector(4, 1000, 8), vector(4, 1000, 12), 4), "every second, every third");
    CHECK(!share(vector(4, 1000, 24), vector(4, 1000, 36), 4), "6 x is not 9 y + 1");
    /* rows of 7: row r, even column c, is element 7 r + c, which is odd in every other row; yet all differ */
    CHECK(!share(matrix(4, 100, 28, 4, 8), matrix(4, 100, 28, 3, 8), 4), "x[:, ::2], x[:, 1::2]");
    CHECK(share(matrix(4, 100, 28, 4, 8), matrix(4, 100, 28, 4, 8), 4), "one column more");
}

static void slices_of_one_matrix_share_nothing(void) {
    gpi__layout half = matrix(2, 1000, 2000, 500, 2), rows = matrix(2, 500, 4000, 1000, 2);
    gpi__layout big = matrix(2, huge >> 26, 2 * (huge >> 26), huge >> 27, 2);
    CHECK(!share(half, half, 1000), "left and right half");
    CHECK(share(half, half, 998) && share(half, half, 1002), "halves with a column in common");
    CHECK(!share(rows, rows, 2000), "even and odd rows");
    CHECK(share(rows, rows, 2001), "even and odd rows, off by a byte");
    CHECK(!share(big, big, huge >> 26), "halves of a huge matrix");
    CHECK(share(big, big, (huge >> 26) + 1), "halves of a huge matrix, off by a byte");
    CHECK(!share(stack(half, 8, 2000000), stack(half, 8, 2000000), 1000), "halves of a batch");
    CHECK(!share(stack(half, 8, 4000000), matrix(2, 8000, 2000, 500, 2), 1000), "every second item");
    CHECK(!share(stack(half, 8, 4000000), stack(matrix(2, 1000, 2000, 1000, 2), 8, 4000000), 2000000),
          "items in turn");
    CHECK(!share(matrix(4, 64, 1024, 8, 4), matrix(4, 64, -1024, 8, -4), 63 * 1024 + 128 + 28),
          "blocks of columns, one reversed");
}

static void transposed_views_share(void) {
    CHECK(share(matrix(4, 100, 400, 100, 4), matrix(4, 100, 4, 100, 400), 0), "a dense one");
    CHECK(share(matrix(4, 100, 512, 100, 4), matrix(4, 100, 4, 100, 512), 0), "a padded one");
    CHECK(share(matrix(4, 100, 512, 50, 8), matrix(4, 50, 8, 100, 512), 512), "one with steps");
    CHECK(!share(matrix(4, 100, 512, 50, 8), matrix(4, 50, 8, 100, 512), 4), "beside it");
    CHECK(!share(matrix(4, 100, 512, 100, 4), vector(4, 28, 4), 400), "the padding");
}

static void a_dense_output_repeats_nothing(void) {
    CHECK(!repeats(matrix(4, 100, 400, 100, 4)), "dense");
    CHECK(!repeats(matrix(4, 100, 4, 100, -512)), "transposed, padded, reversed");
    CHECK(!repeats(stack(matrix(2, 1 << 20, 1 << 21, 1 << 20, 2), 1 << 15, (int64_t)1 << 41)), "a huge one");
    CHECK(repeats(vector(4, huge, 0)) && repeats(matrix(4, 10, 4, 2, 0)), "broadcast");
    CHECK(repeats(vector(4, 2, 3)) && repeats(vector(4, huge, -3)), "steps below an element");
    CHECK(repeats(matrix(4, 100, 396, 100, 4)), "rows that overlap by an element");
    CHECK(!repeats(matrix(4, 3, 8, 2, 12)), "0 8 16, 12 20 28: interleaved");
    CHECK(repeats(matrix(4, 4, 8, 3, 12)), "three eights are two twelves");
    CHECK(repeats(stack(matrix(4, 100, 400, 100, 4), 2, 39996)), "items that overlap by an element");
    CHECK(!repeats(stack(matrix(4, 100, 800, 100, 4), 2, 400)), "items side by side");
}

/* The bytes of a small layout, counted. */
#define ORIGIN 1024
static int count_bytes(const gpi__layout *layout, int64_t at, int *bytes) {
    int64_t index[8] = {0};
    int i, most = 0;
    for (i = 0; i < layout->rank; i++)
        if (layout->shape[i] == 0)
            return 0;
    for (;;) {
        int64_t begin = ORIGIN + at, byte;
        for (i = 0; i < layout->rank; i++)
            begin += index[i] * layout->stride[i];
        for (byte = begin; byte < begin + layout->size; byte++)
            if (++bytes[byte] > most)
                most = bytes[byte];
        for (i = 0; i < layout->rank && ++index[i] == layout->shape[i]; i++)
            index[i] = 0;
        if (i == layout->rank)
            return most;
    }
}

static int bytes_meet(const gpi__layout *p, const gpi__layout *q, int64_t distance) {
    int p_bytes[2 * ORIGIN] = {0}, q_bytes[2 * ORIGIN] = {0};
    int i;
    count_bytes(p, 0, p_bytes);
    count_bytes(q, distance, q_bytes);
    for (i = 0; i < 2 * ORIGIN; i++)
        if (p_bytes[i] && q_bytes[i])
            return 1;
    return 0;
}

/* Strides of up to `reach` units, where a unit is a byte or, as in tensors, an element. */
static gpi__layout random_layout(int size, int unit, int rank, int reach) {
    gpi__layout layout;
    int i;
    memset(&layout, 0, sizeof layout);
    layout.rank = rank;
    layout.size = size;
    for (i = 0; i < rank; i++) {
        layout.shape[i] = pick(0, 63) ? pick(1, 5) : 0;
        layout.stride[i] = pick(0, 15) ? unit * pick(-reach, reach) : 0;
    }
    return layout;
}

/* A layout in which every byte is `factor` bytes: the answers stay. */
static gpi__layout scaled(gpi__layout layout, int64_t factor) {
    int i;
    layout.size *= factor;
    for (i = 0; i < layout.rank; i++)
        layout.stride[i] *= factor;
    return layout;
}

static const int64_t prime = ((int64_t)1 << 50) - 27;

static void random_layouts_share_what_their_bytes_say(void) {
    int round, apart = 0;
    for (round = 0; round < 200000; round++) {
        int size = pick(1, 8), unit = pick(0, 1) ? size : 1, reach = 1 + pick(0, 31) / unit;
        gpi__layout p = random_layout(size, unit, pick(0, 4), reach), p_scaled = scaled(p, prime);
        gpi__layout q = random_layout(unit == 1 ? pick(1, 8) : size, unit, pick(0, 4), reach);
        gpi__layout q_scaled = scaled(q, prime);
        int64_t distance = unit * pick(-60 / unit, 60 / unit);
        int expected = bytes_meet(&p, &q, distance);
        apart += !expected;
        CHECK(gpi__layouts_share(&p, &q, distance) == expected, "round %d: not %d", round, expected);
        CHECK(gpi__layouts_share(&q, &p, -distance) == expected, "round %d: not %d", round, expected);
        CHECK(gpi__layouts_share(&p_scaled, &q_scaled, distance * prime) == expected,
              "round %d: not %d, scaled", round, expected);
    }
    CHECK(apart > 50000 && apart < 150000, "%d share nothing", apart);
}

static void random_layouts_repeat_what_their_bytes_say(void) {
    int round, once = 0;
    for (round = 0; round < 200000; round++) {
        int bytes[2 * ORIGIN] = {0};
        int size = pick(1, 8), unit = pick(0, 1) ? size : 1;
        gpi__layout p = random_layout(size, unit, pick(0, 4), 1 + 31 / unit), p_scaled = scaled(p, prime);
        int expected = count_bytes(&p, 0, bytes) > 1;
        once += !expected;
        CHECK(gpi__layout_repeats(&p) == expected, "round %d: not %d", round, expected);
        CHECK(gpi__layout_repeats(&p_scaled) == expected, "round %d: not %d, scaled", round, expected);
    }
    CHECK(once > 50000 && once < 150000, "%d repeat nothing", once);
}

/* With strides that have no common divisor, and fewer elements than strides, two vectors meet in one place at most:
   where both reach elements x and y. */
static void long_vectors_meet_where_they_must(void) {
    int round;
    for (round = 0; round < 2000; round++) {
        int64_t b = ((int64_t)pick(1, 1 << 30) << 6) + 64, a = b - 1, x = pick(1, 63), y = pick(1, 63);
        gpi__layout p, q;
        if (round % 2) { /* far apart, and far along */
            a = (int64_t)pick(1 << 20, 1 << 30) * pick(1, 4) * 2 + 1, b = (int64_t)1 << 31;
            x = pick(1, 1 << 28), y = pick(1, 1 << 28);
        }
        p = vector(1, x + 1, a);
        q = vector(1, y + 1, b);
        CHECK(share(p, q, a * x - b * y), "round %d: the last elements", round);
        p.shape[0]--;
        CHECK(!share(p, q, a * x - b * y), "round %d: one element less", round);
    }
}

/* Of two matrices of random steps, lines and widths, held against counting: all that two matrices alone can be. */
static int lines_meet(const gpi__layout *p, const gpi__layout *q, int64_t distance) {
    int64_t i;
    for (i = 0; i < p->shape[0]; i++) {
        /* the last line of q that begins before the end of line i of p */
        int64_t begin = i * p->stride[0] - distance, last = begin + p->size - 1, j;
        if (last < 0)
            continue;
        j = q->shape[0] == 1 ? 0 : last / q->stride[0];
        j = j < q->shape[0] ? j : q->shape[0] - 1;
        if (j * q->stride[0] + q->size > begin)
            return 1;
    }
    return 0;
}

static void lines_of_two_matrices_meet_as_counting_says(void) {
    int round, apart = 0;
    for (round = 0; round < 100000; round++) {
        int64_t wide = pick(1, 4), far = pick(0, 1) ? 1 : pick(1, 1 << 20);
        gpi__layout p = vector(wide * far, pick(1, 300), (int64_t)pick(4, 400) * far + pick(0, 5));
        gpi__layout q = vector(pick(1, 4) * far, pick(1, 300), (int64_t)pick(4, 400) * far + pick(0, 5));
        int64_t distance = pick(-60000, 60000) * far + pick(0, 9);
        int expected = lines_meet(&p, &q, distance);
        gpi__equation equation;
        int steps = 1;
        apart += !expected;
        CHECK(gpi__layouts_share(&p, &q, distance) == expected, "round %d: not %d", round, expected);
        if (gpi__share_equation(&p, &q, distance, &equation))
            gpi__has_solution(equation, &steps);
        CHECK(steps >= 0, "round %d: searched", round);
    }
    CHECK(apart > 20000 && apart < 90000, "%d share nothing", apart);
}

static double milliseconds(void) {
    return 1e3 * (double)clock() / CLOCKS_PER_SEC;
}

/* Lines of two pitches that never meet, 2^32 of them, and such of three pitches in batches. */
static void long_matrices_take_no_time(void) {
    int64_t lines = (int64_t)1 << 32;
    gpi__layout p = vector(2, lines, 8), q = vector(2, lines, 12);
    double began = milliseconds();
    int round;
    CHECK(!gpi__layouts_share(&p, &q, 2), "of 8 and 12 bytes");
    CHECK(gpi__layouts_share(&p, &q, 3), "of 8 and 12 bytes, off by one");
    for (round = 0; round < 20; round++) {
        gpi__layout batch =
            stack(vector(4, 1 << 20, 4096 + 4 * pick(0, 9)), 1000 + pick(0, 9), 4 * pick(1, 999));
        gpi__layout other =
            stack(vector(4, 1 << 20, 4096 + 4 * pick(10, 19)), 1000 + pick(0, 9), 4 * pick(1, 999));
        gpi__layouts_share(&batch, &other, 2 + pick(0, 1 << 20));
    }
    CHECK(milliseconds() - began < 22 * 10.0, "%.1f ms", milliseconds() - began);
}

/* Sums of 16 numbers without a pattern: nothing but a search can tell, and it gives up. */
static void what_is_not_settled_is_said_to_be(void) {
    gpi__layout p, q;
    gpi__equation equation;
    int i, steps = GPI__OVERLAP_STEPS;
    memset(&p, 0, sizeof p);
    p.rank = 8;
    p.size = 1;
    q = p;
    for (i = 0; i < 8; i++) {
        p.shape[i] = q.shape[i] = 3;
        p.stride[i] = ((int64_t)pick(1 << 20, 1 << 24) << 30) + pick(0, 1 << 30);
        q.stride[i] = ((int64_t)pick(1 << 20, 1 << 24) << 30) + pick(0, 1 << 30);
    }
    CHECK(gpi__share_equation(&p, &q, 12345, &equation), "the ranges are apart");
    CHECK(gpi__has_solution(equation, &steps) && steps < 0, "settled, %d steps left", steps);
    CHECK(gpi__layouts_share(&p, &q, 12345) == GPI__UNDECIDED, "not said to be undecided");
    CHECK(gpi__layouts_share(&p, &q, 0), "the first elements are the same");
}

static void the_first_multiple_within_is_what_a_search_finds(void) {
    int64_t a, m, low, high, most;
    for (m = 1; m <= 13; m++)
        for (a = 0; a < m; a++)
            for (low = 0; low < m; low++)
                for (high = low; high < m; high++)
                    for (most = 0; most <= 14; most++) {
                        int64_t t = 0, found = gpi__first_within(a, m, low, high, most);
                        while (t <= most && (a * t % m < low || a * t % m > high))
                            t++;
                        CHECK(found == (t <= most ? t : -1), "%d t modulo %d within %d .. %d: t is %d",
                              (int)a, (int)m, (int)low, (int)high, (int)found);
                    }
}

int main(void) {
    RUN(the_first_multiple_within_is_what_a_search_finds);
    RUN(empty_layouts_share_and_repeat_nothing);
    RUN(strides_of_one_element_do_not_count);
    RUN(even_and_odd_elements_share_nothing);
    RUN(slices_of_one_matrix_share_nothing);
    RUN(transposed_views_share);
    RUN(a_dense_output_repeats_nothing);
    RUN(random_layouts_share_what_their_bytes_say);
    RUN(random_layouts_repeat_what_their_bytes_say);
    RUN(long_vectors_meet_where_they_must);
    RUN(lines_of_two_matrices_meet_as_counting_says);
    RUN(long_matrices_take_no_time);
    RUN(what_is_not_settled_is_said_to_be);
    return test_finish();
}
