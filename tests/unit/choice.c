/* The choice among candidates against what each of them took on an H100, in CUDA graphs and bursts: bench/candidates_h100.csv, which
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

int main(void) {
    RUN(the_choice_takes_at_most_a_twentieth_more_than_the_best);
    return test_finish();
}
