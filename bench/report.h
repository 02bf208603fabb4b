/* What a measurement says: the table, the progress, the file of all rounds. */
#ifndef GEMMEPI_BENCH_REPORT_H
#define GEMMEPI_BENCH_REPORT_H

#include <unistd.h>

#include "bench.h"

typedef struct report {
    FILE *csv;         /* NULL: none is wanted */
    const char *group; /* whose heading stands */
    int total, done, below, failed;
    int terminal; /* 1: stderr is one */
    int shown;    /* rows done when progress was last told, where it is none */
    double began;
} report;

/* >>progress */

static void report_begin(report *r, int total) {
    r->total = total;
    r->terminal = isatty(2);
    r->began = bench_seconds();
}

static void report_wipe(const report *r) {
    fflush(stdout);
    if (r->terminal)
        fprintf(stderr, "\r\033[K");
}

/* A bar, redrawn; or a line for each tenth. */
static void report_progress(report *r, const char *name, const char *dtype) {
    static const char full[] = "####################", none[] = "....................";
    int width = (int)sizeof full - 1, filled = width * r->done / r->total;
    if (r->terminal)
        fprintf(stderr, "\r\033[K[%.*s%.*s] %d/%d %s %s", filled, full, width - filled, none, r->done,
                r->total, name, dtype);
    else if (10 * r->done / r->total > 10 * r->shown / r->total) {
        fprintf(stderr, "%d %%: %d of %d rows, %.0f s\n", 100 * r->done / r->total, r->done, r->total,
                bench_seconds() - r->began);
        r->shown = r->done;
    }
    fflush(stderr);
}

/* >>statistics */

static int report_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What the part (0 to 1) of the sorted values does not exceed, between two of them on the line that joins them. */
static double report_quantile(const double *sorted, int count, double part) {
    double at = part * (count - 1);
    int i = (int)at;
    return i + 1 < count ? sorted[i] + (at - i) * (sorted[i + 1] - sorted[i]) : sorted[count - 1];
}

typedef struct report_quartiles {
    double low, middle, high;
} report_quartiles;

static report_quartiles report_quarter(const double *values, int count) {
    double sorted[BENCH_MOST_ROUNDS];
    report_quartiles quartiles;
    memcpy(sorted, values, (size_t)count * sizeof *values);
    qsort(sorted, (size_t)count, sizeof *sorted, report_compare);
    quartiles.low = report_quantile(sorted, count, 0.25);
    quartiles.middle = report_quantile(sorted, count, 0.5);
    quartiles.high = report_quantile(sorted, count, 0.75);
    return quartiles;
}

/* Of one round. A layer may take 2 % more than its bare products, 25 % more than the copy, and 2 us for each launch that
   is no product. */
static double report_ratio(const bench_row *row, const bench_result *result, int round) {
    double ours = result->ours[round], other = result->other[round];
    if (row->kind == BENCH_SPEED)
        return other / ours;
    if (row->kind != BENCH_LAYER)
        return ours / other;
    return ours / (1.02 * other + 1.25 * result->copy[round] + 2.0 * (result->launches - result->products));
}

static report_quartiles report_ratios(const bench_row *row, const bench_result *result) {
    double ratios[BENCH_MOST_ROUNDS];
    int i;
    for (i = 0; i < result->rounds; i++)
        ratios[i] = report_ratio(row, result, i);
    return report_quarter(ratios, result->rounds);
}

/* >>the table */

static void report_heading(report *r, const bench_row *row) {
    static const char *const ratios[] = {"copy time / ours", "ours / empty launch", "with / without",
                                         "ours / allowed"};
    int speed = row->kind == BENCH_SPEED;
    if (r->group && strcmp(r->group, row->group) == 0)
        return;
    r->group = row->group;
    printf("\n%-38s %-10s %8s  %-25s %s", row->group, "dtype", speed ? "GB/s" : "us", ratios[row->kind],
           speed ? "at least" : "at most");
    if (row->kind == BENCH_LAYER)
        printf("  / products  us: ours, bare products, copy of as many bytes");
    printf("\n");
}

static void report_failure(report *r, const bench_row *row, const char *why) {
    r->failed++;
    report_wipe(r);
    report_heading(r, row);
    printf("  %-36s %-10s FAILED: %s\n", row->name, row->dtype, why);
    fflush(stdout);
}

static void report_times(const char *before, const double *times, int count) {
    report_quartiles t = report_quarter(times, count);
    printf("%s%.1f [%.1f .. %.1f]", before, t.middle, t.low, t.high);
}

/* What follows in a layer's row. */
static void report_parts(const bench_result *result) {
    report_quartiles products = report_quarter(result->other, result->rounds);
    printf("  %10.3f  ", report_quarter(result->ours, result->rounds).middle / products.middle);
    report_times("", result->ours, result->rounds);
    report_times(", ", result->other, result->rounds);
    report_times(", ", result->copy, result->rounds);
}

static void report_row(report *r, const bench_row *row, const bench_result *result) {
    report_quartiles ratio = report_ratios(row, result);
    double time = report_quarter(result->ours, result->rounds).middle, rate = result->bytes / time * 1e-3;
    int speed = row->kind == BENCH_SPEED,
        off = row->bound > 0 && (speed ? ratio.middle < row->bound : ratio.middle > row->bound);
    r->below += off;
    report_wipe(r);
    report_heading(r, row);
    printf("  %-36s %-10s %8.*f  %6.3f [%6.3f .. %6.3f]", row->name, row->dtype, speed && rate > 10 ? 0 : 2,
           speed ? rate : time, ratio.middle, ratio.low, ratio.high);
    if (row->bound > 0)
        printf("  %5.2f", row->bound);
    if (row->kind == BENCH_LAYER)
        report_parts(result);
    if (row->kind == BENCH_ADDED)
        report_times("  without: ", result->other, result->rounds);
    if (off)
        printf("  %s", speed ? "BELOW" : "ABOVE");
    if (!speed && result->launches > 1)
        printf("  (%d launches)", result->launches);
    printf("\n");
    fflush(stdout);
}

static void report_rounds(const report *r, const bench_row *row, const bench_result *result) {
    int i;
    for (i = 0; r->csv && i < result->rounds; i++)
        fprintf(r->csv, "%s,%s,%d,%.3f,%.3f,%.0f,%.3f,%d\n", row->name, row->dtype, i, result->ours[i],
                row->kind == BENCH_LAYER ? result->copy[i] : result->other[i], result->bytes,
                row->kind == BENCH_LAYER ? result->other[i] : 0.0, result->launches);
}

static int report_open_csv(report *r, const char *path) {
    r->csv = fopen(path, "w");
    if (r->csv)
        fprintf(r->csv, "row,dtype,round,ours_us,copy_us,bytes,products_us,launches\n");
    return r->csv != NULL;
}

/* 1 if all of it was written. */
static int report_close_csv(report *r) {
    int whole = !ferror(r->csv);
    return fclose(r->csv) == 0 && whole;
}

/* >>the closing lines */

static void report_version(const char *name, int version, int major_unit, int minor_unit) {
    if (version)
        printf(", %s %d.%d", name, version / major_unit, version % major_unit / minor_unit);
}

static void report_end(const report *r, bench *b, int argc, char **argv) {
    const gemmepi_context_details *d = &b->details;
    int i;
    report_wipe(r);
    gemmepi_context_info(b->context, &b->details); /* NVRTC has loaded since */
    printf("\nrows: %d, beyond their bound: %d, failed: %d\n", r->done, r->below, r->failed);
    printf("%s", d->name);
    report_version("driver", d->driver_version, 1000, 10);
    report_version("NVRTC", d->nvrtc_version, 1000, 10);
    report_version("cuBLASLt", d->cublaslt_version, 10000, 100);
    printf(", gemmepi %s\n", GEMMEPI_VERSION_STRING);
    printf("%.1f s, of which %.1f s made plans (%ld kernels compiled, %ld from disk)\n",
           bench_seconds() - r->began, b->plan_seconds, (long)d->kernels_compiled,
           (long)d->kernels_from_disk);
    printf("tensors of %lu MiB, %d rounds:", (unsigned long)(b->size >> 20), b->rounds);
    for (i = 0; i < argc; i++)
        printf(strchr(argv[i], ' ') ? " '%s'" : " %s", argv[i]);
    printf("\n");
}

#endif
