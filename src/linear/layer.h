/* A layer as its plan sees it: row-major, defaults filled in, every rule checked; and its tensors in the caller's words.

   A column-major layer is the row-major one with A and B exchanged, so it is folded first (desc.h), and what a sentence says of a
   field is put back into the caller's words. */
#ifndef GEMMEPI_LINEAR_LAYER_H
#define GEMMEPI_LINEAR_LAYER_H

#include "../problem/convert_arguments.h"

/* The tensors of a layer, the scales that go with the first seven, and what forward finds for Y in its scale's place, a row each: what it is
   called in args, and so in sentences. BEFORE is P of the layer before. */
/* clang-format off */
#define GPI__LAYER_ROWS(X)                                             \
    X(A, a) X(B, b) X(Y, y) X(PREACT, preact) X(RESIDUAL, residual)    \
    X(BEFORE, before->preact) X(DY, dy) X(BIAS, bias)                  \
    X(DA, da) X(DB, db) X(DBIAS, dbias)                                \
    X(SCALE_A, scale_a) X(SCALE_B, scale_b) X(SCALE_Y, scale_y)        \
    X(SCALE_PREACT, scale_preact) X(SCALE_RESIDUAL, scale_residual)    \
    X(SCALE_BEFORE, before->scale_preact) X(SCALE_DY, scale_dy)        \
    X(FOUND_SCALE_Y, found_scale_y) X(AMAX_HISTORY, amax_history)
/* clang-format on */

#define GPI__LAYER_NUMBER(NAME, name) GPI__L_##NAME,
enum { GPI__LAYER_ROWS(GPI__LAYER_NUMBER) GPI__L_COUNT };

/* Behind them, as pointers of a run alone, the operands of a formula, as the caller lists them, and their scales. */
#define GPI__LAYER_OPERANDS 28 /* what the layer adds has room among those of a formula */
enum {
    GPI__L_OPERANDS = GPI__L_COUNT,
    GPI__L_OPERAND_SCALES = GPI__L_OPERANDS + GPI__LAYER_OPERANDS,
    GPI__L_ALL = GPI__L_OPERAND_SCALES + GPI__LAYER_OPERANDS
};

#define GPI__L_SCALE_OF(tensor) (GPI__L_SCALE_A + (tensor)) /* of A to DY */

#define GPI__LAYER_NAME(NAME, name) #name,
static const char *const gpi__layer_names[GPI__L_COUNT] = {GPI__LAYER_ROWS(GPI__LAYER_NAME)};

/* What a column-major layer has exchanged: its own way back. */
static const int8_t gpi__exchanged_tensors[][2] = {
    {GPI__L_A, GPI__L_B}, {GPI__L_DA, GPI__L_DB}, {GPI__L_SCALE_A, GPI__L_SCALE_B}};

#define GPI__LINEAR_OUTPUTS (GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB | GEMMEPI_LINEAR_DBIAS)

/* The steps that may have a formula: that of Y or G, and the products of dA and dB. */
enum { GPI__OF_FIRST, GPI__OF_DA, GPI__OF_DB, GPI__LAYER_FORMULAS };

typedef struct gpi__step_formula {
    struct gpi__kept_formula *formula; /* NULL: the step has none, and nothing else counts */
    int8_t beside[4]; /* tensors of the layer that are behind the caller's operands; -1: none */
} gpi__step_formula;

/* What those steps run, each with its formula, and in the first what makes A and B: to be given to gpi__drop_layers_formulas. */
typedef struct gpi__layer_problems {
    gpi__problem of[GPI__LAYER_FORMULAS];
} gpi__layer_problems;

/* What a step leaves in workspace, to be added up over the items of a batch, or over rows and columns of blocks. */
typedef struct gpi__added {
    int32_t tensor;        /* dA, dB or d_NAME; 0: there is none */
    int32_t accumulates;   /* it is added to what is there */
    int64_t rows, columns; /* of `from` to one of `to` */
    gpi__view from,
        to; /* in workspace, and where it goes: with a batch_stride only where each item has its own */
} gpi__added;

#define GPI__LAYER_ADDED (GPI__LAYER_OPERANDS / 2 + 2) /* of operands each d_NAME has a NAME */

/* Zeroed before it is filled, so that its bytes tell layers apart. */
typedef struct gpi__layer_task {
    int64_t
        tag; /* -2: a forward, -3: a backward; products begin with 0 or more, element-wise tasks with -1 */
    int64_t m, n, k, batch;
    double parameter;
    uint64_t epilogue; /* activation, GATED, GATE_FIRST */
    uint64_t before;   /* that of the layer before, by whose derivative dA is multiplied */
    double before_parameter;
    uint64_t flags;
    int32_t compute; /* as given */
    int32_t g_dtype;
    int32_t alignment;
    int32_t found_scale;  /* the gemmepi_scale_mode of the scales that forward finds for Y; 0: none are */
    int32_t amax_history; /* with TENSOR */
    int32_t exchanged;    /* column-major: a here is the caller's b */
    int32_t shares_b;     /* in a batch B is the same for all items: dB and dbias are sums over them */
    int32_t shares_a;     /* A and dA are: dA is a sum over them */
    int32_t adds_items; /* bits 1 << GPI__A and GPI__B: dA or dB is added up over items behind its product */
    int32_t has_before; /* there is a layer before */
    uint32_t used;      /* bit t: this direction has tensor t */
    uint32_t written;
    int32_t
        goes_through;  /* bits 1 << GPI__A and GPI__B: whose gradient goes through the text that makes it */
    gpi__made made[2]; /* A and B that text makes, whose views are of what is stored */
    gpi__step_formula formulas
        [GPI__LAYER_FORMULAS]; /* the layer's own; that of dA is by the layer before, or A's text; that of dB by B's */
    int32_t operand_count;   /* of the caller's, which are each formula's first ones */
    uint32_t formula_uses;   /* bit i: forward's formula has the caller's operand i. Backward's: */
    uint32_t ahead_uses;     /* those, where it runs forward */
    uint32_t outputs;        /* and which of them it writes */
    int32_t lacks_y;         /* the formula assigns no d: there is neither Y nor dY */
    int64_t workspace_limit; /* of a backward by blocks of rows; 0: it is none */
    int32_t added_count;
    int32_t
        lacks_gradient; /* bits as those: only operands' gradients are wanted of the product of dA or dB, whose flag is set here */
    gpi__added added[GPI__LAYER_ADDED];
    gpi__view views[GPI__L_COUNT];
} gpi__layer_task;

static int gpi__is_backward(const gpi__layer_task *task) {
    return task->tag == -3;
}

/* Whether the layer itself has a formula. */
static int gpi__has_own_formula(const gpi__layer_task *task) {
    return GPI__FORMULA(&task->formulas[GPI__OF_FIRST]) != NULL;
}

/* Whether dA goes through the formula of the layer before, whose operands all are then. */
static int gpi__has_befores_formula(const gpi__layer_task *task) {
    return task->has_before && GPI__FORMULA(&task->formulas[GPI__OF_DA]);
}

/* Which of the formulas is that of the product of dA or dB. */
static int gpi__nth_of_gradient(int tensor) {
    return tensor == GPI__L_DA ? GPI__OF_DA : GPI__OF_DB;
}
static int gpi__has_formula_of(const gpi__layer_task *task, int tensor) {
    return GPI__FORMULA(&task->formulas[gpi__nth_of_gradient(tensor)]) != NULL;
}

static int gpi__makes_factors(const gpi__layer_task *task) {
    return GPI__HAS_FORMULAS && (task->made[0].formula || task->made[1].formula);
}

/* Which of `added` a tensor is, or -1. */
static int gpi__added_of(const gpi__layer_task *task, int tensor) {
    int i = task->added_count - 1;
    while (i >= 0 && task->added[i].tensor != tensor)
        i--;
    return i;
}

/* The formula that an operand belongs to: the first that reads or assigns it, else any. NULL: there is none. */
static const gpi__kept_formula *gpi__layers_formula_with(const gpi__layer_task *task, int place) {
    const gpi__kept_formula *kept, *any = NULL;
    int i;
    for (i = 0; i < GPI__LAYER_FORMULAS + 2; i++) {
        kept = i < GPI__LAYER_FORMULAS ? GPI__FORMULA(&task->formulas[i])
                                       : GPI__FORMULA(&task->made[i - GPI__LAYER_FORMULAS]);
        if (kept && kept->placed.formula->operands[place].used)
            return kept;
        any = any ? any : kept;
    }
    return any;
}

/* How a tensor of the layer lies. Of a formula's operand, which no NUMBER is, and of its scale in the formula. */
static const gpi__view *gpi__layer_view(const gpi__layer_task *task, int tensor) {
    int added = gpi__added_of(task, tensor);
    if (added >= 0)
        return &task->added[added].to;
    if (tensor >= GPI__L_OPERAND_SCALES)
        return &gpi__one_f32;
    if (tensor >= GPI__L_OPERANDS)
        return &gpi__layers_formula_with(task, tensor - GPI__L_OPERANDS)->views[tensor - GPI__L_OPERANDS];
    return &task->views[tensor];
}

/* Whether a NUMBER of a formula stands there, which lies on the host. */
static int gpi__is_layers_number(const gpi__layer_task *task, int tensor) {
    int place = tensor - GPI__L_OPERANDS;
    return place >= 0 && place < task->operand_count &&
           gpi__layers_formula_with(task, place)->placed.formula->operands[place].kind == GEMMEPI_NUMBER;
}

/* Whether this direction needs a pointer to it. */
static int gpi__layer_has(const gpi__layer_task *task, int tensor) {
    int is_scale = tensor >= GPI__L_OPERAND_SCALES;
    int place = tensor - (is_scale ? (int)GPI__L_OPERAND_SCALES : (int)GPI__L_OPERANDS);
    if (place >= 0 && place < task->operand_count) {
        const gpi__placed_formula *placed = &gpi__layers_formula_with(task, place)->placed;
        return (placed->formula->operands[place].used || task->ahead_uses >> place & 1) &&
               (!is_scale || placed->operands[place].scale);
    }
    if (place >= 0)
        return 0;
    return (int)(task->used >> tensor & 1);
}

static int gpi__layer_writes(const gpi__layer_task *task, int tensor) {
    int place = tensor - GPI__L_OPERANDS;
    if (place >= 0)
        return tensor < GPI__L_OPERAND_SCALES && gpi__layer_has(task, tensor) &&
               (task->outputs >> place & 1 ||
                gpi__layers_formula_with(task, place)->placed.formula->operands[place].output);
    return (int)(task->written >> tensor & 1);
}

/* Whether G is dY itself up to its type: there is no activation. */
static int gpi__is_affine(uint64_t epilogue) {
    return gpi__activation(epilogue) == GEMMEPI_NONE && !(epilogue & GEMMEPI_GATED);
}

/* >>sentences in the caller's words */

typedef struct gpi__renaming {
    const char *from, *to;
} gpi__renaming;

/* Exchanges whole words "desc.x" in this thread's sentence, all at once. */
static void gpi__rename_error(const gpi__renaming *names, size_t count) {
    char renamed[GPI__ERROR_TEXT_SIZE];
    gpi__text text = gpi__text_in(renamed, sizeof renamed);
    const char *at = gpi__error_text;
    while (*at) {
        size_t length = 1,
               i = at > gpi__error_text && gpi__is_word(at[-1]) ? count : 0; /* not of matmul_desc.x */
        for (; i < count; i++) {
            length = strlen(names[i].from);
            if (strncmp(at, names[i].from, length) == 0 && !gpi__is_word(at[length]))
                break;
        }
        if (i < count) {
            gpi__append(&text, "%s", names[i].to);
            at += length;
        } else {
            gpi__append(&text, "%c", *at++);
        }
    }
    (void)gpi__fail(GEMMEPI_OK, "%s", renamed);
}

/* What a product of the layer calls its matrices, in the layer's words. */
static gemmepi_status gpi__in_layers_words(gemmepi_status status, int exchanged, const char *a, const char *b,
                                           const char *d, const char *aux) {
    static const char *const folded[][2] = {{"desc.a", "desc.b"},   {"desc.b", "desc.a"},
                                            {"desc.da", "desc.db"}, {"desc.db", "desc.da"},
                                            {"desc.m", "desc.n"},   {"desc.n", "desc.m"}};
    gpi__renaming names[] = {{"desc.a", NULL},
                             {"desc.b", NULL},
                             {"desc.d", NULL},
                             {"desc.aux", NULL},
                             {"desc.bias_grad", "desc.dbias"},
                             {"desc.epilogue", "desc.activation"},
                             {"desc.m", "desc.m"},
                             {"desc.n", "desc.n"}};
    size_t i, j;
    if (!status)
        return status;
    names[0].to = a;
    names[1].to = b;
    names[2].to = d;
    names[3].to = aux;
    for (i = 0; exchanged && i < GPI__COUNT(names); i++)
        for (j = 0; j < GPI__COUNT(folded); j++)
            if (strcmp(names[i].to, folded[j][0]) == 0) {
                names[i].to = folded[j][1];
                break;
            }
    gpi__rename_error(names, GPI__COUNT(names));
    return status;
}

/* The caller's name of a tensor. */
static const char *gpi__layer_name(const gpi__layer_task *task, int tensor) {
    size_t i;
    for (i = 0; task->exchanged && i < GPI__COUNT(gpi__exchanged_tensors); i++) {
        const int8_t *pair = gpi__exchanged_tensors[i];
        if (tensor == pair[0] || tensor == pair[1])
            return gpi__layer_names[pair[0] + pair[1] - tensor];
    }
    return gpi__layer_names[tensor];
}

/* That of anything that a run has a pointer to: in room, where it is an operand of a formula. */
static const char *gpi__layer_pointers_name(const gpi__layer_task *task, int tensor, char room[128]) {
    int is_scale = tensor >= GPI__L_OPERAND_SCALES;
    int place = tensor - (is_scale ? (int)GPI__L_OPERAND_SCALES : (int)GPI__L_OPERANDS);
    if (place >= 0) {
        const gpi__formula *formula = gpi__layers_formula_with(task, place)->placed.formula;
        snprintf(room, 128, "%s%s[%d] (of %s)", gpi__has_befores_formula(task) ? "before->" : "",
                 is_scale ? "operand_scales" : "operands", place,
                 formula->names + formula->operands[place].name);
        return room;
    }
    (void)room;
    return gpi__layer_name(task, tensor);
}

#endif
