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

/* What operations compute: nodes of one graph, X(name, op, arguments, number), of which each operation's outputs are some. The first are
   inputs, in their order. Of a weight that is no tensor, w and 1 - w are numbers of a run. */
/* clang-format off */
#define GPI__OPERATION_NODES(X)                                                                                 \
    X(A, OPERAND, NONE, NONE, NONE, 0) X(B, OPERAND, NONE, NONE, NONE, 0)                                       \
    X(W, OPERAND, NONE, NONE, NONE, 0) X(DY, OPERAND, NONE, NONE, NONE, 0)                                      \
    X(WEIGHT, OPERAND, NONE, NONE, NONE, 0) X(WITHOUT_WEIGHT, OPERAND, NONE, NONE, NONE, 0)                     \
    X(SCALE, OPERAND, NONE, NONE, NONE, 0) X(SCALED, MUL, A, SCALE, NONE, 0)                                    \
    X(ACTIVATED, ACTIVATE, A, NONE, NONE, 0) X(DERIVED, GRADIENT, DY, A, NONE, 0)  /* act(a), dy act'(a) */     \
    X(GATED, GATE, A, B, NONE, 0)                                                  /* a act(b) */               \
    X(OF_VALUE, GATE, DY, B, NONE, 0) X(OF_GATE, GRADIENT, DY, B, A, 0)            /* dy act(b), dy act'(b) a */ \
    X(ONE, NUMBER, NONE, NONE, NONE, 1) X(REST, SUB, ONE, W, NONE, 0) X(RISE, SUB, B, A, NONE, 0)               \
    X(HALF, NUMBER, NONE, NONE, NONE, 0.5) X(SIZE, ABS, W, NONE, NONE, 0) X(IS_NEAR, LT, SIZE, HALF, NONE, 0)   \
    X(NEAREST, SELECT, IS_NEAR, A, B, 0)  /* where |w| < 1/2 it is a + w (b - a), else b - (b - a) (1 - w) */   \
    X(BACK, NEG, REST, NONE, NONE, 0) X(FROM_NEAREST, SELECT, IS_NEAR, W, BACK, 0)                              \
    X(WAY, MUL, FROM_NEAREST, RISE, NONE, 0) X(MIXED, ADD, NEAREST, WAY, NONE, 0)                               \
    X(OF_A, MUL, REST, DY, NONE, 0) X(OF_B, MUL, W, DY, NONE, 0) X(OF_W, MUL, DY, RISE, NONE, 0)
/* clang-format on */

#define GPI__NODE_NUMBER(name, op, x, y, z, number) GPI__NODE_##name,
enum { GPI__OPERATION_NODES(GPI__NODE_NUMBER) GPI__OPERATION_NODE_COUNT, GPI__NODE_NONE = -1 };

typedef struct gpi__operation_node {
    int op, args[3];
    double number;
} gpi__operation_node;

#define GPI__NODE_ROW(name, op, x, y, z, number) \
    {GPI__OP_##op, {GPI__NODE_##x, GPI__NODE_##y, GPI__NODE_##z}, number},
static const gpi__operation_node gpi__operation_nodes[] = {GPI__OPERATION_NODES(GPI__NODE_ROW)};

/* An operation: the tensors that it must and may have, and the nodes that its outputs are, which is all that there is of it. */
typedef struct gpi__operation_row {
    gemmepi_operation operation;
    const char *name; /* as in GEMMEPI_OP_GATED, and as kernels name it */
    uint32_t needs, may;
    int8_t made[5]; /* y, da, db, dw, y_transposed */
    int has_activation, has_halves;
    uint64_t flags; /* that go with it */
} gpi__operation_row;

#define GPI__OPERATION(name) GEMMEPI_OP_##name, #name

/* clang-format off */
static const gpi__operation_row gpi__operations[] = {
    {GPI__OPERATION(ACTIVATION), GPI__BIT_A | GPI__BIT_Y, 0, {GPI__NODE_ACTIVATED, 0, 0, 0, 0}, 1, 0, 0},
    {GPI__OPERATION(ACTIVATION_BACKWARD), GPI__BIT_A | GPI__BIT_DY | GPI__BIT_DA, 0, {0, GPI__NODE_DERIVED, 0, 0, 0}, 1, 0, 0},
    {GPI__OPERATION(GATED), GPI__BIT_A | GPI__BIT_Y, GPI__BIT_B, {GPI__NODE_GATED, 0, 0, 0, 0}, 1, 1, 0},
    {GPI__OPERATION(GATED_BACKWARD), GPI__BIT_A | GPI__BIT_DY, GPI__BIT_B | GPI__BIT_DA | GPI__BIT_DB,
     {0, GPI__NODE_OF_VALUE, GPI__NODE_OF_GATE, 0, 0}, 1, 1, 0},
    {GPI__OPERATION(LERP), GPI__BIT_A | GPI__BIT_B | GPI__BIT_Y, GPI__BIT_W, {GPI__NODE_MIXED, 0, 0, 0, 0}, 0, 0, 0},
    {GPI__OPERATION(LERP_BACKWARD), GPI__BIT_DY, GPI__BIT_A | GPI__BIT_B | GPI__BIT_W | GPI__BIT_DA | GPI__BIT_DB | GPI__BIT_DW,
     {0, GPI__NODE_OF_A, GPI__NODE_OF_B, GPI__NODE_OF_W, 0}, 0, 0, 0},
    {GPI__OPERATION(BIAS_GRAD), GPI__BIT_A | GPI__BIT_Y, 0, {GPI__NODE_A, 0, 0, 0, 0}, 0, 0, GEMMEPI_ACCUMULATE},
    {GPI__OPERATION(CAST), GPI__BIT_A | GPI__BIT_Y, GPI__BIT_TURNED, {GPI__NODE_A, 0, 0, 0, GPI__NODE_A}, 0, 0, GPI__CAST_FLAGS},
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

/* The tensors that a node is made of. */
static uint32_t gpi__inputs_of_node(int node) {
    const gpi__operation_node *of = &gpi__operation_nodes[node];
    uint32_t inputs = node < GPI__NODE_WEIGHT ? GPI__BIT(node) : 0;
    int a;
    for (a = 0; a < 3; a++)
        if (of->args[a] != GPI__NODE_NONE)
            inputs |= gpi__inputs_of_node(of->args[a]);
    return inputs;
}

#endif
