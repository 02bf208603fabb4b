/* An element-wise operation as every launch sees it: what it reads and writes for each index of one shape. And the table of operations. */
#ifndef GEMMEPI_PROBLEM_TASK_H
#define GEMMEPI_PROBLEM_TASK_H

#include "problem.h"

#define GPI__MAX_RANK 8

/* The tensors of an operation, in the order of every table below and of the kernels, a row each: what it is called in desc and args. No nest has
   y_transposed, of a cast by scaled.h. */
/* clang-format off */
#define GPI__TENSOR_ROWS(X)                                     \
    X(IN_A, a) X(IN_B, b) X(IN_W, w) X(IN_DY, dy)               \
    X(OUT_Y, y) X(OUT_DA, da) X(OUT_DB, db) X(OUT_DW, dw)       \
    X(OUT_Y_TRANSPOSED, y_transposed)
/* clang-format on */

#define GPI__TENSOR_NUMBER(NAME, name) GPI__##NAME,
enum { GPI__TENSOR_ROWS(GPI__TENSOR_NUMBER) GPI__TENSORS };

#define GPI__TENSOR_NAME(NAME, name) #name,
static const char *const gpi__tensor_names[GPI__TENSORS] = {GPI__TENSOR_ROWS(GPI__TENSOR_NAME)};

#define GPI__BIT(tensor) (1u << (tensor))
#define GPI__BIT_A       GPI__BIT(GPI__IN_A)
#define GPI__BIT_B       GPI__BIT(GPI__IN_B)
#define GPI__BIT_W       GPI__BIT(GPI__IN_W)
#define GPI__BIT_DY      GPI__BIT(GPI__IN_DY)
#define GPI__BIT_Y       GPI__BIT(GPI__OUT_Y)
#define GPI__BIT_DA      GPI__BIT(GPI__OUT_DA)
#define GPI__BIT_DB      GPI__BIT(GPI__OUT_DB)
#define GPI__BIT_DW      GPI__BIT(GPI__OUT_DW)
#define GPI__BIT_TURNED  GPI__BIT(GPI__OUT_Y_TRANSPOSED)
#define GPI__INPUTS      0x00fu
#define GPI__OUTPUTS     0x1f0u

#define GPI__CAST_FLAGS \
    (GEMMEPI_CAST_SCALE | GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX | GEMMEPI_CAST_K_IS_ROWS)

/* An operation: the tensors that it must and may have, and of which inputs each output is made. With its function in
   kernels/operations.cuh and that in host/elementwise.h this is all that there is of it. */
typedef struct gpi__operation_row {
    gemmepi_operation operation;
    const char *name; /* as in GEMMEPI_OP_GATED, and as kernels name it */
    uint32_t needs, may;
    uint32_t reads[5]; /* for y, da, db, dw, y_transposed */
    int has_activation, has_halves;
    uint64_t flags; /* that go with it */
} gpi__operation_row;

#define GPI__OPERATION(name) GEMMEPI_OP_##name, #name

/* clang-format off */
static const gpi__operation_row gpi__operations[] = {
    {GPI__OPERATION(ACTIVATION), GPI__BIT_A | GPI__BIT_Y, 0, {GPI__BIT_A, 0, 0, 0, 0}, 1, 0, 0},
    {GPI__OPERATION(ACTIVATION_BACKWARD), GPI__BIT_A | GPI__BIT_DY | GPI__BIT_DA, 0,
     {0, GPI__BIT_A | GPI__BIT_DY, 0, 0, 0}, 1, 0, 0},
    {GPI__OPERATION(GATED), GPI__BIT_A | GPI__BIT_Y, GPI__BIT_B, {GPI__BIT_A | GPI__BIT_B, 0, 0, 0, 0}, 1, 1, 0},
    {GPI__OPERATION(GATED_BACKWARD), GPI__BIT_A | GPI__BIT_DY, GPI__BIT_B | GPI__BIT_DA | GPI__BIT_DB,
     {0, GPI__BIT_DY | GPI__BIT_B, GPI__BIT_DY | GPI__BIT_A | GPI__BIT_B, 0, 0}, 1, 1, 0},
    {GPI__OPERATION(LERP), GPI__BIT_A | GPI__BIT_B | GPI__BIT_Y, GPI__BIT_W,
     {GPI__BIT_A | GPI__BIT_B | GPI__BIT_W, 0, 0, 0, 0}, 0, 0, 0},
    {GPI__OPERATION(LERP_BACKWARD), GPI__BIT_DY, GPI__BIT_A | GPI__BIT_B | GPI__BIT_W | GPI__BIT_DA | GPI__BIT_DB | GPI__BIT_DW,
     {0, GPI__BIT_DY | GPI__BIT_W, GPI__BIT_DY | GPI__BIT_W, GPI__BIT_DY | GPI__BIT_A | GPI__BIT_B, 0}, 0, 0, 0},
    {GPI__OPERATION(BIAS_GRAD), GPI__BIT_A | GPI__BIT_Y, 0, {GPI__BIT_A, 0, 0, 0, 0}, 0, 0, GEMMEPI_ACCUMULATE},
    {GPI__OPERATION(CAST), GPI__BIT_A | GPI__BIT_Y, GPI__BIT_TURNED, {GPI__BIT_A, 0, 0, 0, GPI__BIT_A}, 0, 0, GPI__CAST_FLAGS},
};
/* clang-format on */

/* A tensor broadcast to the operation's shape. dtype 0: the operation does not have it. */
typedef struct gpi__operand {
    int32_t dtype;
    int32_t pointer;               /* the tensor whose pointer it goes by: halves are two operands of one */
    int32_t is_sum;                /* an output that is added up over the axes below, or added to */
    int32_t summed;                /* bit d: over axis d */
    int64_t offset;                /* bytes from the pointer to the element of index 0 */
    int64_t stride[GPI__MAX_RANK]; /* elements; 0 on axes that repeat or are summed */
} gpi__operand;

/* Zeroed before it is filled, so that its bytes tell tasks apart. */
typedef struct gpi__task {
    int64_t tag; /* -1, with which no product begins: both are keys of the same table */
    int32_t operation, activation;
    uint64_t flags;
    int32_t scale_mode; /* CAST; TENSOR where it has a scale or amax, or y_transposed, and none is given */
    double parameter;   /* of the activation */
    int32_t accumulator;
    int32_t alignment; /* bytes that all pointers are multiples of */
    uint32_t used;     /* bit t: the operation has tensor t */
    uint32_t given;    /* bit t: a pointer goes with tensor t */
    int32_t rank;
    int32_t is_empty; /* no output has an element */
    int64_t shape[GPI__MAX_RANK];
    gpi__operand operands[GPI__TENSORS];
} gpi__task;

static int gpi__task_has(const gpi__task *task, int tensor) {
    return (int)(task->used >> tensor & 1);
}

static const gpi__operation_row *gpi__operation(int operation) {
    return &gpi__operations[operation - 1];
}

#endif
