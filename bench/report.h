/* What a measurement says: the table, the file of all rounds, the chart. */
#ifndef GEMMEPI_BENCH_REPORT_H
#define GEMMEPI_BENCH_REPORT_H

#include "bench.h"
#include "chart.h"
#include "progress.h"

typedef struct report {
    FILE *csv, *svg;   /* NULL: none is wanted */
    const char *group; /* whose heading stands */
    int below, failed;
    progress progress;
    chart chart; /* of the products so far */
} report;

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
    double ours = result->times[BENCH_OURS][round], other = result->times[BENCH_OTHER][round];
    if (row->kind == BENCH_SPEED)
        return other / ours;
    if (row->kind != BENCH_LAYER)
        return ours / other;
    return ours / (1.02 * other + 1.25 * result->times[BENCH_COPY][round] +
                   2.0 * (result->launches - result->products));
}

static report_quartiles report_ratios(const bench_row *row, const bench_result *result) {
    double ratios[BENCH_MOST_ROUNDS];
    int i;
    for (i = 0; i < result->rounds; i++)
        ratios[i] = report_ratio(row, result, i);
    return report_quarter(ratios, result->rounds);
}

static report_quartiles report_series(const bench_result *result, int series) {
    return report_quarter(result->times[series], result->rounds);
}

/* Of a series to the other, round by round; 0 where the row has not measured it. */
static report_quartiles report_to_other(const bench_result *result, int series) {
    double ratios[BENCH_MOST_ROUNDS];
    report_quartiles none = {0, 0, 0};
    int i;
    for (i = 0; i < result->rounds; i++)
        ratios[i] = result->times[series][i] / result->times[BENCH_OTHER][i];
    return result->measured[series] ? report_quarter(ratios, result->rounds) : none;
}

/* >>the table */

static void report_heading(report *r, const bench_row *row) {
    static const char *const ratios[] = {"copy time / ours", "ours / empty launch", "with / without",
                                         "ours / allowed"};
    int speed = row->kind == BENCH_SPEED;
    if (r->group && strcmp(r->group, row->group) == 0)
        return;
    r->group = row->group;
    if (row->kind == BENCH_PRODUCT) {
        printf("\n%-53s %-6s %8s %-21s %7s  %-6s %-8s %-25s %6s %6s  at most\n", row->group, "dtype", "us",
               "quartiles", "TFLOP/s", "route", "tile", "ours / plain", "lt's", "pass");
        return;
    }
    printf("\n%-38s %-10s %8s  %-25s %s", row->group, "dtype", speed ? "GB/s" : "us", ratios[row->kind],
           speed ? "at least" : "at most");
    if (row->kind == BENCH_LAYER)
        printf("  / products  us: ours, bare products, copy of as many bytes");
    printf("\n");
}

static void report_failure(report *r, const bench_row *row, const char *why) {
    r->failed++;
    progress_wipe(&r->progress);
    report_heading(r, row);
    printf("  %-36s %-10s FAILED: %s\n", row->name, row->dtype, why);
    fflush(stdout);
}

static void report_times(const char *before, const bench_result *result, int series) {
    report_quartiles t = report_series(result, series);
    printf("%s%.1f [%.1f .. %.1f]", before, t.middle, t.low, t.high);
}

/* What follows in a layer's row. */
static void report_parts(const bench_result *result) {
    double products = report_series(result, BENCH_OTHER).middle;
    printf("  %10.3f  ", report_series(result, BENCH_OURS).middle / products);
    report_times("", result, BENCH_OURS);
    report_times(", ", result, BENCH_OTHER);
    report_times(", ", result, BENCH_COPY);
}

static void report_part_of_product(double ratio) {
    if (ratio > 0)
        printf(" %6.3f", ratio);
    else
        printf(" %6s", "-");
}

/* lt's and pass: cuBLASLt's own epilogue, and a bare product with a pass of ours, to the bare product. */
static void report_product(report *r, const bench_row *row, const bench_result *result) {
    report_quartiles time = report_series(result, BENCH_OURS), ratio = report_ratios(row, result);
    double lt = report_to_other(result, BENCH_EPILOGUE).middle;
    double pass = report_to_other(result, BENCH_PASS).middle;
    double operations = 2.0 * (double)row->m * (double)row->n * (double)row->k;
    const gemmepi_plan_details *plan = &result->plan;
    int off = row->bound > 0 && ratio.middle > row->bound;
    char tile[32] = "-";
    r->below += off;
    progress_wipe(&r->progress);
    report_heading(r, row);
    if (plan->tile_m)
        snprintf(tile, sizeof tile, "%dx%d", plan->tile_m, plan->tile_n);
    printf("  %-51s %-6s %8.1f [%8.1f .. %8.1f] %7.0f  %-6s %-8s %5.3f [%5.3f .. %5.3f]   ", row->name,
           row->dtype, time.middle, time.low, time.high, operations / time.middle * 1e-6, plan->route_name,
           tile, ratio.middle, ratio.low, ratio.high);
    report_part_of_product(lt);
    report_part_of_product(pass);
    if (row->bound > 0)
        printf("  %5.2f  %s", row->bound, off ? "BEYOND" : "ok");
    printf("\n");
    fflush(stdout);
    chart_add(&r->chart, row, ratio.middle, lt, pass);
}

static void report_other_row(report *r, const bench_row *row, const bench_result *result) {
    report_quartiles ratio = report_ratios(row, result);
    double time = report_series(result, BENCH_OURS).middle, rate = result->bytes / time * 1e-3;
    int speed = row->kind == BENCH_SPEED,
        off = row->bound > 0 && (speed ? ratio.middle < row->bound : ratio.middle > row->bound);
    r->below += off;
    progress_wipe(&r->progress);
    report_heading(r, row);
    printf("  %-36s %-10s %8.*f  %6.3f [%6.3f .. %6.3f]", row->name, row->dtype, speed && rate > 10 ? 0 : 2,
           speed ? rate : time, ratio.middle, ratio.low, ratio.high);
    if (row->bound > 0)
        printf("  %5.2f", row->bound);
    if (row->kind == BENCH_LAYER)
        report_parts(result);
    if (row->kind == BENCH_ADDED)
        report_times("  without: ", result, BENCH_OTHER);
    if (off)
        printf("  %s", speed ? "BELOW" : "ABOVE");
    if (!speed && result->launches > 1)
        printf("  (%d launches)", result->launches);
    printf("\n");
    fflush(stdout);
}

static void report_row(report *r, const bench_row *row, const bench_result *result) {
    if (row->kind == BENCH_PRODUCT)
        report_product(r, row, result);
    else
        report_other_row(r, row, result);
}

/* >>files */

static void report_cell(const report *r, const bench_result *result, int series, int round) {
    if (result->measured[series])
        fprintf(r->csv, "%.3f,", result->times[series][round]);
    else
        fprintf(r->csv, ",");
}

/* What only products have: columns that other rows leave empty. */
static void report_columns_of_product(const report *r, const bench_row *row, const bench_result *result,
                                      int round) {
    fprintf(r->csv, ",%ld,%ld,%ld,%s,", (long)row->m, (long)row->n, (long)row->k, row->epilogue);
    report_cell(r, result, BENCH_EPILOGUE, round);
    report_cell(r, result, BENCH_PASS, round);
    fprintf(r->csv, "%s,%d,%d\n", result->plan.route_name, result->plan.tile_m, result->plan.tile_n);
}

static void report_rounds(const report *r, const bench_row *row, const bench_result *result) {
    const double *ours = result->times[BENCH_OURS], *other = result->times[BENCH_OTHER];
    const double *copy = result->times[BENCH_COPY];
    int has_products = row->kind == BENCH_LAYER || row->kind == BENCH_PRODUCT, i;
    for (i = 0; r->csv && i < result->rounds; i++) {
        fprintf(r->csv, "%s,%s,%d,%.3f,%.3f,%.0f,%.3f,%d", row->name, row->dtype, i, ours[i],
                row->kind == BENCH_PRODUCT ? 0.0
                : has_products             ? copy[i]
                                           : other[i],
                result->bytes, has_products ? other[i] : 0.0, result->launches);
        if (row->kind == BENCH_PRODUCT)
            report_columns_of_product(r, row, result, i);
        else
            fprintf(r->csv, ",,,,,,,,,\n");
    }
}

static int report_open_csv(report *r, const char *path) {
    r->csv = fopen(path, "w");
    if (r->csv)
        fprintf(r->csv,
                "row,dtype,round,ours_us,copy_us,bytes,products_us,launches,m,n,k,epilogue,lt_us,pass_us,"
                "route,tile_m,tile_n\n");
    return r->csv != NULL;
}

static int report_open_svg(report *r, const char *path) {
    r->svg = fopen(path, "w");
    return r->svg != NULL;
}

/* 1 if all of it was written. */
static int report_close(FILE *file) {
    int whole = !ferror(file);
    return fclose(file) == 0 && whole;
}

/* >>the closing lines */

static void report_version(const char *name, int version, int major_unit, int minor_unit) {
    if (version)
        printf(", %s %d.%d", name, version / major_unit, version % major_unit / minor_unit);
}

static void report_end(const report *r, bench *b, int argc, char **argv) {
    const gemmepi_context_details *d = &b->details;
    int i;
    progress_wipe(&r->progress);
    gemmepi_context_info(b->context, &b->details); /* NVRTC has loaded since */
    printf("\nrows: %d, beyond their bound: %d, failed: %d\n", r->progress.done, r->below, r->failed);
    printf("%s", d->name);
    report_version("driver", d->driver_version, 1000, 10);
    report_version("NVRTC", d->nvrtc_version, 1000, 10);
    report_version("cuBLASLt", d->cublaslt_version ? d->cublaslt_version : b->cublaslt_version, 10000, 100);
    printf(", gemmepi %s\n", GEMMEPI_VERSION_STRING);
    printf("%.1f s, of which %.1f s made plans (%ld kernels compiled, %ld from disk)\n",
           bench_seconds() - r->progress.began, b->plan_seconds, (long)d->kernels_compiled,
           (long)d->kernels_from_disk);
    printf("tensors of %lu MiB, %d rounds, of products after %.0f ms of such:",
           (unsigned long)(b->size >> 20), b->rounds, 1e3 * b->warm);
    for (i = 0; i < argc; i++)
        printf(strchr(argv[i], ' ') ? " '%s'" : " %s", argv[i]);
    printf("\n");
}

#endif
