/* The choice among candidates against what each of them took on an H100 (seed 931: an H200), in CUDA graphs and bursts: bench/candidates_h100.csv, which
   `make bench BENCH='--random N --seed S --candidates FILE'` writes. No GPU. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#define GEMMEPI_IMPLEMENTATION

#include "bench/draw.h"
#include "bench/candidates.h"

#include "test.h"

enum { MOST_ROWS = 20000 };

static candidates_row rows[MOST_ROWS];
static int count;

static int read_rows(const char *path) {
    FILE *file = fopen(path, "r");
    char line[CANDIDATES_LINE];
    while (file && fgets(line, sizeof line, file) && count < MOST_ROWS)
        count += candidates_read(line, &rows[count]);
    if (file)
        fclose(file);
    return count;
}

static int is_of(const candidates_row *r, const gpi__candidate *c) {
    return strcmp(r->route, gpi__route_names[c->route]) == 0 &&
           (c->route != GEMMEPI_ROUTE_FUSED ||
            (r->engine == c->engine && r->shape == c->shape && r->parts == c->parts &&
             r->copies[0] == c->copies[0] && r->copies[1] == c->copies[1]));
}

/* As bench/random.c draws it. */
static int drawn(const candidates_row *r, draw_problem *p, gpi__problem *problem) {
    int attempt = 0;
    while (draw((uint64_t)r->seed, r->row, &attempt, p))
        if (candidates_problem(p, problem))
            return 1;
    return 0;
}

/* Microseconds: where it was near the fastest of a large product, between those of a graph and of a burst. */
static double time_of(const candidates_row *r) {
    return r->burst > 0 ? sqrt(r->graph * r->burst) : r->graph;
}

/* Of the rows from first to before end, which are one product's: what the way of the least estimate took, of those that were measured,
   over what the best did. 0: none was. */
static double loss_of(const gemmepi_context *h100, int first, int end) {
    static gpi__ways ways;
    gpi__problem problem;
    draw_problem p;
    double best = time_of(&rows[first]), chosen = 0, least = GPI__NEVER;
    int way, i;
    if (!drawn(&rows[first], &p, &problem))
        return 0;
    for (i = first; i < end; i++)
        if (time_of(&rows[i]) < best)
            best = time_of(&rows[i]);
    gpi__enumerate_ways(h100, &problem, &ways);
    for (way = 0; way < ways.count; way++)
        for (i = first; i < end; i++)
            if (is_of(&rows[i], &ways.list[way]) && ways.list[way].rank < least) {
                least = ways.list[way].rank;
                chosen = time_of(&rows[i]);
            }
    return chosen / best;
}

static void the_choice_takes_at_most_a_twentieth_more_than_the_best(void) {
    static gemmepi_context h100;
    double sum = 0;
    int products = 0, first, end;
    h100.arch = 90, h100.multiprocessors = 132;
    CHECK(read_rows("bench/candidates_h100.csv") > 1500, "%d rows", count);
    for (first = 0; first < count; first = end) {
        double loss;
        for (end = first;
             end < count && rows[end].seed == rows[first].seed && rows[end].row == rows[first].row; end++) {
        }
        loss = loss_of(&h100, first, end);
        CHECK(loss >= 1, "seed %ld, row %d: nothing that may be chosen was measured", rows[first].seed,
              rows[first].row);
        if (loss > 1.2)
            printf("   seed %ld, row %d: the choice takes %.2f of the best\n", rows[first].seed,
                   rows[first].row, loss);
        sum += log(loss);
        products++;
    }
    printf("   %d products, %.3f of the best in the geometric mean\n", products, exp(sum / products));
    CHECK(exp(sum / products) < 1.05, "%.3f", exp(sum / products));
}

static void read_back(const candidates_row *row, candidates_row *read) {
    FILE *file = tmpfile();
    char line[CANDIDATES_LINE] = "";
    CHECK(file, "no file");
    candidates_write(file, row, "2x3x4 NN BF16 SILU|BIAS");
    rewind(file);
    CHECK(fgets(line, sizeof line, file) && candidates_read(line, read) && !fgets(line, sizeof line, file),
          "%s", line);
    fclose(file);
}

static void a_line_of_a_candidate_is_read_back_with_the_algorithm_of_an_answer(void) {
    candidates_row row, read, without;
    memset(&row, 0, sizeof row);
    row.seed = -2, row.row = 7, row.engine = 1, row.shape = 2, row.parts = 3;
    strcpy(row.route, "split");
    row.copies[0] = 1, row.copies[1] = 2;
    row.graph = 12.5, row.burst = 13.25, row.waves = 0.75;
    row.algorithm.id = 66, row.algorithm.tile = 20, row.algorithm.stages = 35, row.algorithm.split = 4;
    row.algorithm.reduction = 2, row.algorithm.swizzle = 1, row.algorithm.custom = 5;
    row.algorithm.inner = 6, row.algorithm.cluster = 8;
    read_back(&row, &without);
    CHECK(without.graph > 12.4 && without.burst > 13.2 && without.copies[1] == 2, "without an answer");
    CHECK(!without.nth && !without.algorithm.id && !without.algorithm.cluster, "an algorithm of no answer");
    row.nth = 8;
    read_back(&row, &read);
    CHECK(read.seed == -2 && read.row == 7 && !strcmp(read.route, "split") && read.parts == 3 &&
              read.nth == 8,
          "the candidate");
    CHECK(!memcmp(&read.algorithm, &row.algorithm, sizeof row.algorithm) && read.waves > 0.74 &&
              read.waves < 0.76,
          "the algorithm");
    CHECK(!candidates_read(CANDIDATES_ANSWERS_HEADING, &read), "a heading is a line");
}

int main(void) {
    RUN(a_line_of_a_candidate_is_read_back_with_the_algorithm_of_an_answer);
    RUN(the_choice_takes_at_most_a_twentieth_more_than_the_best);
    return test_finish();
}
