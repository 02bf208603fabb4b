/* kernels/scaled_rows.cu: rows with a scale each, made of their amax, as casts and D have them. */
#ifndef GEMMEPI_ELEMENTWISE_SCALED_ROWS_H
#define GEMMEPI_ELEMENTWISE_SCALED_ROWS_H

#include "../device/launch.h"
#include "../kernels/params.h"

#define GPI__ROW_MOST_THREADS 1024
#define GPI__ROW_MOST_VECTORS 8 /* of a thread; four where that is enough, as more rows are under way then */

typedef struct gpi__row_way {
    int threads;             /* of a block */
    int group;               /* of a row */
    int vectors;             /* that each of them keeps; 0: rows are too long, and are read again */
    int aligned, rest, rank; /* the defines of these names */
} gpi__row_way;

/* vectors: of a row, each of some elements. Fours need so few registers that a thread may keep sixteen. */
static gpi__row_way gpi__row_way_for(int64_t vectors, int elements) {
    gpi__row_way way = {elements == 4 ? 256 : 128, 32, 0, 1, 0, 2};
    while (way.group < GPI__ROW_MOST_THREADS && vectors > (int64_t)way.group * GPI__ROW_MOST_VECTORS / 2)
        way.group *= 2;
    if (elements == 4 && way.group > 256 && vectors <= 256 * 16)
        way.group = 256;
    if (vectors <= GPI__ROW_MOST_THREADS * GPI__ROW_MOST_VECTORS)
        way.vectors = (int)gpi__divide_up(vectors, way.group);
    way.threads = way.group < way.threads ? way.threads : way.group;
    return way;
}

static void gpi__append_row_way(gpi__text *text, const gpi__row_way *way) {
    gpi__append(text, "#define GEMMEPI_THREADS %d\n#define GEMMEPI_GROUP %d\n", way->threads, way->group);
    gpi__append(text, "#define GEMMEPI_VECTORS %d\n#define GEMMEPI_ALIGNED %d\n", way->vectors, way->aligned);
    gpi__append(text, "#define GEMMEPI_REST %d\n#define GEMMEPI_RANK %d\n", way->rest, way->rank);
}

/* lines: rows of all items */
static void gpi__share_out_rows(int64_t lines, const gpi__row_way *way, gpi__launch *launch) {
    launch->blocks = (unsigned)gpi__divide_up(lines, way->threads / way->group);
    launch->threads_x = (unsigned)way->threads;
    launch->threads_y = 1;
}

#endif
