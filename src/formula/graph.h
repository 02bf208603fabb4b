/* A formula's graph while it is made: nodes in an order in which all that a node is made of comes before it, each there once. */
#ifndef GEMMEPI_FORMULA_GRAPH_H
#define GEMMEPI_FORMULA_GRAPH_H

#include "../base/hash.h"
#include "../base/memory.h"
#include "../numbers/dtype.h"
#include "number.h"
#include "operations.h"

enum {
    GPI__FORMULA_CHARACTERS = 4096,
    GPI__GRADIENT_CHARACTERS = 32000, /* of what is derived: places in a text have 16 bits */
    GPI__FORMULA_OPERANDS = 32,
    GPI__RESULT = GPI__FORMULA_OPERANDS, /* D's place among the operands */
    GPI__FORMULA_DEPTH = 64,
    GPI__FORMULA_NODES = 1024,  /* that are operations */
    GPI__FORMULA_LEAVES = 1536, /* more than there is room for in the text */
    GPI__FORMULA_NAME = 60,     /* characters of an operand's name */
    GPI__GRAPH_NODES = GPI__FORMULA_NODES + GPI__FORMULA_LEAVES,
    GPI__GRAPH_BUCKETS = 1024,
    GPI__SIMPLIFIED = 4096,
    GPI__MOST_PARTS = 16 /* of columns */
};

/* How wide a node is. Of a formula with halves NARROW is half of WIDE, of one with n parts an n-th, of one without everything is WIDE. ANY
   does not change along columns. */
enum { GPI__ANY, GPI__NARROW, GPI__WIDE };

/* What a node's values are: numbers of the accumulator, 0 or 1, or whole numbers that are read and compared exactly. */
enum { GPI__OF_NUMBERS, GPI__OF_TRUTH, GPI__OF_WHOLE };

typedef struct gpi__node {
    uint8_t op, type, width, unused;
    int16_t args[3];    /* -1: none */
    int16_t place;      /* operand, index, activation, upstream or part */
    int32_t unused_too; /* so that all bytes are fields: nodes are compared by them */
    double number;
} gpi__node;

/* What a formula is parsed for. */
typedef struct gpi__formula_desc {
    const char *text;
    const gemmepi_operand *operands;
    int operand_count;
    const char *value, *result; /* NULL: "v" and "d" */
    const char *value_field;    /* what the caller's struct calls value; NULL: "formula_value" */
    int without_value;          /* 1: there is no v */
    int without_result;         /* 1: there is no D */
    int is_of_operand;          /* 1: the text makes an operand: an expression ends it, which is D */
    gemmepi_dtype stored;       /* and what the value is stored in without a scale; 0: not known */
    int exchanged; /* 1: of column-major order, and the graph is of the row-major problem that it is folded into */
    gemmepi_dtype accumulator, d; /* F32, F64 or I32; of D */
    int of_any_type; /* 1: it may be run in F64, though accumulator is F32: numbers are those of F64 */
    int product; /* 0, or of a layer: 1 v comes first, 2 + i and v plus operand i, its bias, is read as v */
} gpi__formula_desc;

/* An output: of an operand, or, the last, of D. */
typedef struct gpi__assigned {
    int16_t node; /* -1: not yet */
    int16_t reduction;
    int16_t at; /* in the text */
} gpi__assigned;

/* What an operation of nodes came to. */
typedef struct gpi__simplified {
    int16_t args[3], op, result;
} gpi__simplified;

typedef struct gpi__graph {
    const gpi__formula_desc *desc;
    int count, operations, most; /* operations at most */
    int full;                    /* 1: there was no room; nothing more is made */
    int simplifies;              /* 1: also where that is exact for finite numbers alone */
    int product;                 /* what is read as v, if desc.product says so, else -1 */
    int mode, n_width;           /* of halves; whether n is NARROW or WIDE */
    int parts;                   /* of what is WIDE, where anything is NARROW: 2, halves, or more */
    int64_t group;               /* columns of a group; 0: all are one */
    gpi__assigned assigned[GPI__FORMULA_OPERANDS + 1];
    int16_t next[GPI__GRAPH_NODES], buckets[GPI__GRAPH_BUCKETS];
    gpi__node nodes[GPI__GRAPH_NODES];
    uint8_t masked[GPI__GRAPH_NODES]; /* whether a node is 0 by selection, and shows it: gpi__masks */
    gpi__simplified simplified[GPI__SIMPLIFIED]; /* found last; op 0: nothing */
    int16_t at; /* where in the text stands what is being made; -1: it is not of the text */
    int16_t places[GPI__GRAPH_NODES]; /* and of each node, where it was made first */
    int names
        [GPI__GRAPH_NODES]; /* where in the text the first name of a node stands, which is no output; -1: it has none */
} gpi__graph;

static void gpi__clear_graph(gpi__graph *graph, const gpi__formula_desc *desc, int n_width) {
    int i;
    graph->parts = 2;
    graph->desc = desc;
    graph->count = graph->operations = graph->full = graph->simplifies = 0;
    graph->most = GPI__FORMULA_NODES;
    graph->mode = GPI__NO_HALVES;
    graph->group = 0;
    graph->n_width = n_width;
    graph->at = -1;
    graph->product = -1;
    for (i = 0; i < GPI__GRAPH_BUCKETS; i++)
        graph->buckets[i] = -1;
    for (i = 0; i < GPI__SIMPLIFIED; i++)
        graph->simplified[i].op = 0;
    for (i = 0; i <= GPI__FORMULA_OPERANDS; i++)
        graph->assigned[i].node = graph->assigned[i].at = -1, graph->assigned[i].reduction = 0;
}

static gpi__node gpi__node_of(int op, int x, int y, int z) {
    gpi__node node;
    memset(&node, 0, sizeof node);
    node.op = (uint8_t)op;
    node.args[0] = (int16_t)x;
    node.args[1] = (int16_t)y;
    node.args[2] = (int16_t)z;
    return node;
}

/* The part of what JOIN joins. It is a list: of all parts up to node.place the first argument is it, of those behind the second, which is the
   last part or the rest of the list. */
static int gpi__joined_part(const gpi__node *nodes, int join, int part) {
    while (part > nodes[join].place && nodes[nodes[join].args[1]].op == GPI__OP_JOIN)
        join = nodes[join].args[1];
    return nodes[join].args[part > nodes[join].place];
}

/* Whether a node is 0 by selection, and shows it: c ? x : 0, a sum or a choice of two such, a pair that has one, and its negative. 0 is so
   itself. */
static int gpi__masks(const gpi__graph *graph, const gpi__node *node) {
    const gpi__node *nodes = graph->nodes;
    const uint8_t *masked = graph->masked;
    int x = node->args[0], y = node->args[1], z = node->args[2];
    switch (node->op) {
    case GPI__OP_NUMBER:
        return node->number == 0;
    case GPI__OP_SELECT:
        return (masked[y] && (masked[z] || nodes[y].op == GPI__OP_NUMBER)) ||
               (masked[z] && nodes[z].op == GPI__OP_NUMBER);
    case GPI__OP_ADD:
    case GPI__OP_SUB:
        return masked[x] && masked[y];
    case GPI__OP_JOIN:
        return masked[x] || masked[y];
    case GPI__OP_NEG:
        return masked[x];
    default:
        return 0;
    }
}

/* The node's number: of one that is there, or a new one; -1: there is no room. */
static int gpi__intern(gpi__graph *graph, const gpi__node *node) {
    uint64_t hash = GPI__HASH_START;
    int bucket, i;
    hash = gpi__hash_word(gpi__hash(node, sizeof *node), hash);
    bucket = (int)(hash % GPI__GRAPH_BUCKETS);
    for (i = graph->buckets[bucket]; i >= 0; i = graph->next[i])
        if (memcmp(&graph->nodes[i], node, sizeof *node) == 0)
            return i;
    if (graph->count == GPI__GRAPH_NODES || (node->op >= GPI__LEAVES && graph->operations == graph->most)) {
        graph->full = 1;
        return -1;
    }
    graph->operations += node->op >= GPI__LEAVES;
    i = graph->count++;
    graph->nodes[i] = *node;
    graph->masked[i] = (uint8_t)gpi__masks(graph, node);
    graph->names[i] = -1;
    graph->places[i] = graph->at;
    graph->next[i] = graph->buckets[bucket];
    graph->buckets[bucket] = (int16_t)i;
    return i;
}

static int gpi__number(gpi__graph *graph, double number) {
    gpi__node node = gpi__node_of(GPI__OP_NUMBER, -1, -1, -1);
    node.number = number;
    return gpi__intern(graph, &node);
}

/* What an output is assigned, which a later statement reads: the number before it is rounded; -1: nothing yet. */
static int gpi__unrounded(const gpi__graph *graph, int output) {
    int node = graph->assigned[output].node;
    return node >= 0 && graph->nodes[node].op == GPI__OP_STOCHASTIC ? graph->nodes[node].args[0] : node;
}

/* >>folding */

static int gpi__is_number(const gpi__graph *graph, int node) {
    return node >= 0 && graph->nodes[node].op == GPI__OP_NUMBER;
}

static int gpi__is_the_number(const gpi__graph *graph, int node, double number) {
    return gpi__is_number(graph, node) && graph->nodes[node].number == number;
}

/* Whether a node is a whole number that is read, or one of the text's that is below 2^53, which no other is rounded to. */
static int gpi__is_whole_node(const gpi__node *node, int accumulator) {
    if (node->op == GPI__OP_NUMBER)
        return node->number > -9007199254740992.0 && node->number < 9007199254740992.0 &&
               floor(node->number) == node->number;
    return node->type == GPI__OF_WHOLE || accumulator == GEMMEPI_I32;
}

/* Whether F32, and so every accumulator but I32, holds it. */
static int gpi__f32_holds(double x) {
    return x <= FLT_MAX && x >= -FLT_MAX && (double)(float)x == x;
}

/* 1 where *out is what the operation gives of these numbers, in F32, F64 and exact arithmetic alike. */
static int gpi__fold_arithmetic(int op, double x, double y, double *out) {
    switch (op) {
    case GPI__OP_NEG:
        *out = -x;
        return 1;
    case GPI__OP_ADD:
    case GPI__OP_SUB:
        y = op == GPI__OP_SUB ? -y : y;
        *out = x + y;
        return *out - x == y && *out - y == x;
    case GPI__OP_MUL:
        *out = x * y;
        return *out != 0 || x == 0 || y == 0;
    case GPI__OP_DIV:
        *out = y != 0 ? x / y : 0;
        return y != 0 && *out * y == x;
    default:
        return 0;
    }
}

/* Comparisons by what x may be to y: 1 less, 2 equal, 4 greater, 8 neither. */
static int gpi__fold_truth(int op, double x, double y, double *out) {
    static const uint8_t holds[] = {2, 13, 1, 3, 4, 6}; /* == != < <= > >= */
    if (op == GPI__OP_OR)
        *out = x != 0 || y != 0;
    else if (op == GPI__OP_AND)
        *out = x != 0 && y != 0;
    else if (op == GPI__OP_NOT)
        *out = x == 0;
    else if (op >= GPI__OP_EQ && op <= GPI__OP_GE)
        *out = (holds[op - GPI__OP_EQ] & (x < y ? 1 : x == y ? 2 : x > y ? 4 : 8)) != 0;
    else
        return 0;
    return 1;
}

/* An operation of numbers alone, or c ? x : y of a number c; -1: it stays. */
static int gpi__fold(gpi__graph *graph, const gpi__node *node) {
    double x, y = 0, out;
    int of_whole = graph->desc->accumulator == GEMMEPI_I32;
    if (!gpi__is_number(graph, node->args[0]))
        return -1;
    x = graph->nodes[node->args[0]].number;
    if (!gpi__f32_holds(x))
        return node->op == GPI__OP_NEG ? gpi__number(graph, -x) : -1;
    if (node->op == GPI__OP_SELECT)
        return graph->nodes[node->args[1]].width == graph->nodes[node->args[2]].width
                   ? node->args[x != 0 ? 1 : 2]
                   : -1;
    if (node->args[1] >= 0) {
        if (!gpi__is_number(graph, node->args[1]) || node->args[2] >= 0)
            return -1;
        y = graph->nodes[node->args[1]].number;
        if (!gpi__f32_holds(y))
            return -1;
    }
    if (gpi__fold_truth(node->op, x, y, &out))
        return gpi__number(graph, out);
    if (!gpi__fold_arithmetic(node->op, x, y, &out) || !gpi__f32_holds(out) ||
        (of_whole && (out < -2147483648.0 || out > 2147483647.0)))
        return -1;
    return gpi__number(graph, out);
}

#endif
