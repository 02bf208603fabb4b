/* >>work ahead */
#ifndef GEMMEPI_API_AHEAD_H
#define GEMMEPI_API_AHEAD_H

#include "elementwise.h"
#include "grouped.h"
#include "layers.h"
#include "networks.h"

/* One problem of any kind: exactly one of the pointers is not NULL. */
typedef struct gemmepi_any_desc {
    const gemmepi_matmul_desc *matmul;
    const gemmepi_elementwise_desc *elementwise;
    const gemmepi_linear_desc *linear; /* a layer, forward */
    const gemmepi_linear_desc *linear_backward;
    const gemmepi_grouped_desc *grouped;
    const gemmepi_network_desc *network; /* forward */
    const gemmepi_network_desc *network_backward;
} gemmepi_any_desc;

/* Receives how many of `count` problems are done, from 1 on. Any working thread may call it, one at a time. It must not call back
   into the context. */
typedef void (*gemmepi_progress_function)(void *user, size_t done, size_t count);

/* What gemmepi_tune times. */
typedef enum gemmepi_tune_mode {
    GEMMEPI_TUNE_GRAPH = 0, /* calls in a CUDA graph, replayed: as in a captured step of training or inference */
    GEMMEPI_TUNE_BURST = 1, /* a few calls of a graph after a rest, at the clock of a GPU that is not hot */
    GEMMEPI_TUNE_STREAM = 2 /* calls one after another on a stream, with the host's time */
} gemmepi_tune_mode;

/* Options of gemmepi_tune. All zero is a good choice. */
typedef struct gemmepi_tune_options {
    /* For each problem, of timing, and as much again of compiling: later no other way is compiled or timed. The way that is chosen untuned and
       the best of each route and kernel by estimate are compiled and timed first, however long that is. 0: all are */
    double milliseconds;
    size_t memory; /* bytes of tensors at most; 0: 2 GiB. One set of tensors is always allocated */
    int again;     /* 1: also problems that have an answer, which stays where nothing is faster */
    int threads;   /* of the compiler; 0: one for each core */
    gemmepi_tune_mode mode;
} gemmepi_tune_options;

#endif
