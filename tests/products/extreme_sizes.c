/* Sizes, strides and extents of every kind that no memory has, negative ones among them: each call refuses the desc that has one. Compiled
   with checks of arithmetic by unit/sanitized.sh, it says where one overflows on the way. On the host, whose plans compute nothing. */
#include "../test.h"
#include <stddef.h>

#include "gemmepi.h"

static gemmepi_context *host;

static const int64_t extremes[] = {INT64_MIN,
                                   INT64_MIN + 1,
                                   INT64_MIN / 2 - 1,
                                   INT64_MIN / 2,
                                   -129,
                                   -3,
                                   -2,
                                   -1,
                                   INT64_MAX / 2 + 1,
                                   INT64_MAX / 2 + 2,
                                   INT64_MAX - 129,
                                   INT64_MAX - 1,
                                   INT64_MAX,
                                   (int64_t)1 << 57,
                                   ((int64_t)1 << 62) + 2};
enum { EXTREMES = sizeof extremes / sizeof extremes[0] };

/* Writes a value at a field's place. */
static void set(void *desc, size_t place, int64_t value) {
    memcpy((char *)desc + place, &value, sizeof value);
}

static void is_refused(gemmepi_status status, const char *call, size_t place, int64_t value) {
    CHECK(status == GEMMEPI_INVALID_ARGUMENT || status == GEMMEPI_UNSUPPORTED,
          "%s takes %lld at byte %d of its desc: %s", call, (long long)value, (int)place,
          gemmepi_last_error());
}

/* What a case spoils is good. */
static void is_taken(gemmepi_status status, gemmepi_plan *plan, const char *call, int form) {
    CHECK(status == GEMMEPI_OK, "%s refuses form %d: %s", call, form, gemmepi_last_error());
    gemmepi_plan_destroy(plan);
}

/* >>products */

static const gemmepi_epilogue epilogues[] = {GEMMEPI_NONE,
                                             GEMMEPI_GELU_ERF | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL,
                                             GEMMEPI_RELU | GEMMEPI_AUX,
                                             GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
                                             GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_AUX,
                                             GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
                                             GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD |
                                                 GEMMEPI_UPSTREAM,
                                             GEMMEPI_BGRAD_A,
                                             GEMMEPI_BGRAD_B};
enum { EPILOGUES = sizeof epilogues / sizeof epilogues[0] };
static const char *const formulas[] = {"d = v * v", "d = left(v)", "d = pair(v, v)"};
enum { FORMULAS = 3, FORMS = EPILOGUES + FORMULAS };

static const size_t sizes[] = {offsetof(gemmepi_matmul_desc, m), offsetof(gemmepi_matmul_desc, n),
                               offsetof(gemmepi_matmul_desc, k), offsetof(gemmepi_matmul_desc, batch)};
static const size_t strides[] = {offsetof(gemmepi_matmul_desc, a.ld),
                                 offsetof(gemmepi_matmul_desc, a.batch_stride),
                                 offsetof(gemmepi_matmul_desc, b.ld),
                                 offsetof(gemmepi_matmul_desc, b.batch_stride),
                                 offsetof(gemmepi_matmul_desc, c.ld),
                                 offsetof(gemmepi_matmul_desc, c.batch_stride),
                                 offsetof(gemmepi_matmul_desc, d.ld),
                                 offsetof(gemmepi_matmul_desc, d.batch_stride),
                                 offsetof(gemmepi_matmul_desc, a.scale.batch_stride),
                                 offsetof(gemmepi_matmul_desc, d.scale.batch_stride)};

/* A small product with an epilogue or a formula; with scales that are found for D, too. */
static gemmepi_matmul_desc product(int form, int order, int finds) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = 6, desc.n = 12, desc.k = 5, desc.batch = 2;
    desc.order = order ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
    desc.a.batch_stride = 30, desc.b.batch_stride = 60, desc.d.batch_stride = 144;
    desc.aux.batch_stride = form < EPILOGUES && epilogues[form] & GEMMEPI_RELU ? 1536 : 144;
    desc.residual.batch_stride = 144;
    if (form >= EPILOGUES)
        desc.formula = formulas[form - EPILOGUES];
    else
        desc.epilogue = epilogues[form];
    if (desc.formula)
        desc.aux.batch_stride = desc.residual.batch_stride = 0;
    if (finds) {
        desc.a.dtype = desc.d.dtype = GEMMEPI_E4M3;
        desc.d.scale.mode = finds == 1 ? GEMMEPI_SCALE_OUTER : GEMMEPI_SCALE_VECTOR_128;
        desc.d.scale.batch_stride = 24;
        desc.flags = GEMMEPI_FIND_SCALE_D;
    }
    return desc;
}

static void the_products_that_are_spoilt_are_good(void) {
    int form, order, finds;
    for (form = 0; form < FORMS; form++)
        for (order = 0; order < 2; order++)
            for (finds = 0; finds < 3; finds++) {
                gemmepi_matmul_desc desc = product(form, order, finds);
                gemmepi_plan *plan = NULL;
                is_taken(gemmepi_plan_matmul(host, &desc, &plan), plan, "gemmepi_plan_matmul",
                         form + 100 * order + 1000 * finds);
            }
}

static void sizes_of_products_are_refused_by_every_call(void) {
    int form, order, finds, e;
    size_t i;
    for (form = 0; form < FORMS; form++)
        for (order = 0; order < 2; order++)
            for (finds = 0; finds < 3; finds++)
                for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
                    for (e = 0; e < EXTREMES; e++) {
                        gemmepi_matmul_desc desc = product(form, order, finds);
                        gemmepi_matmul_args args;
                        gemmepi_epilogue_needs needs;
                        gemmepi_plan *plan = NULL;
                        memset(&args, 0, sizeof args);
                        set(&desc, sizes[i], extremes[e]);
                        is_refused(gemmepi_plan_matmul(host, &desc, &plan), "gemmepi_plan_matmul", sizes[i],
                                   extremes[e]);
                        is_refused(gemmepi_matmul(host, &desc, &args, NULL), "gemmepi_matmul", sizes[i],
                                   extremes[e]);
                        is_refused(gemmepi_epilogue_info(&desc, &needs), "gemmepi_epilogue_info", sizes[i],
                                   extremes[e]);
                    }
}

static void strides_of_products_are_refused(void) {
    int form, e;
    size_t i;
    for (form = 0; form < FORMS; form++)
        for (i = 0; i < sizeof strides / sizeof *strides; i++)
            for (e = 0; e < EXTREMES; e++) {
                gemmepi_matmul_desc desc = product(form, form & 1, 0);
                gemmepi_plan *plan = NULL;
                set(&desc, strides[i], extremes[e]);
                is_refused(gemmepi_plan_matmul(host, &desc, &plan), "gemmepi_plan_matmul", strides[i],
                           extremes[e]);
            }
}

/* >>grouped products */

static const size_t positions[] = {offsetof(gemmepi_grouped_desc, gather_a),
                                   offsetof(gemmepi_grouped_desc, gather_b),
                                   offsetof(gemmepi_grouped_desc, scatter_d)};

static void grouped_is_refused(const gemmepi_grouped_desc *desc, size_t place, int64_t value) {
    gemmepi_grouped_args args;
    gemmepi_plan *plan = NULL;
    gemmepi_any_desc any;
    memset(&args, 0, sizeof args);
    memset(&any, 0, sizeof any);
    any.grouped = desc;
    is_refused(gemmepi_plan_grouped(host, desc, &plan), "gemmepi_plan_grouped", place, value);
    is_refused(gemmepi_grouped(host, desc, &args, NULL), "gemmepi_grouped", place, value);
    is_refused(gemmepi_precompile(host, &any, 1, 1, NULL, NULL), "gemmepi_precompile", place, value);
}

static gemmepi_grouped_desc groups(int form, int of_k, int finds) {
    gemmepi_grouped_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.product = product(form, 0, finds);
    desc.product.batch = desc.product.a.batch_stride = desc.product.b.batch_stride = 0;
    desc.product.d.batch_stride = desc.product.aux.batch_stride = desc.product.residual.batch_stride = 0;
    desc.product.d.scale.batch_stride = 0;
    desc.groups = 3, desc.grouping = of_k ? GEMMEPI_GROUPS_OF_K : GEMMEPI_GROUPS_OF_ROWS;
    desc.product.a.transposed = of_k;
    return desc;
}

/* But for what groups do not go with: sums, and of k formulas and scales that are found. */
static void the_groups_that_are_spoilt_are_good(void) {
    int form, of_k, finds;
    for (form = 0; form < FORMS; form++)
        for (of_k = 0; of_k < 2; of_k++)
            for (finds = 0; finds < 3; finds += 2) {
                gemmepi_grouped_desc desc = groups(form, of_k, finds);
                gemmepi_plan *plan = NULL;
                if (form < EPILOGUES
                        ? epilogues[form] & (GEMMEPI_BGRAD | GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B) ||
                              (of_k && finds)
                        : of_k || finds)
                    continue;
                is_taken(gemmepi_plan_grouped(host, &desc, &plan), plan, "gemmepi_plan_grouped",
                         form + 100 * of_k + 1000 * finds);
            }
}

static void sizes_of_grouped_products_are_refused_by_every_call(void) {
    int form, grouping, finds, e;
    size_t i;
    for (form = 0; form < FORMS; form++)
        for (grouping = 0; grouping < 2; grouping++)
            for (finds = 0; finds < 3; finds++)
                for (e = 0; e < EXTREMES; e++) {
                    gemmepi_grouped_desc good = groups(form, grouping, finds), desc;
                    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                        desc = good;
                        set(&desc.product, sizes[i], extremes[e]);
                        grouped_is_refused(&desc, sizes[i], extremes[e]);
                    }
                    for (i = 0; i < sizeof strides / sizeof *strides; i++) {
                        desc = good;
                        set(&desc.product, strides[i], extremes[e]);
                        grouped_is_refused(&desc, strides[i], extremes[e]);
                    }
                    for (i = 0; i < sizeof positions / sizeof *positions; i++) {
                        desc = good;
                        set(&desc, positions[i], extremes[e]);
                        grouped_is_refused(&desc, positions[i], extremes[e]);
                    }
                }
}

/* >>layers */

static const size_t of_layer[] = {offsetof(gemmepi_linear_desc, m),
                                  offsetof(gemmepi_linear_desc, n),
                                  offsetof(gemmepi_linear_desc, k),
                                  offsetof(gemmepi_linear_desc, batch),
                                  offsetof(gemmepi_linear_desc, a.ld),
                                  offsetof(gemmepi_linear_desc, b.ld),
                                  offsetof(gemmepi_linear_desc, a.batch_stride),
                                  offsetof(gemmepi_linear_desc, b.batch_stride),
                                  offsetof(gemmepi_linear_desc, y.ld),
                                  offsetof(gemmepi_linear_desc, y.batch_stride),
                                  offsetof(gemmepi_linear_desc, preact.ld),
                                  offsetof(gemmepi_linear_desc, preact.batch_stride),
                                  offsetof(gemmepi_linear_desc, dy.ld),
                                  offsetof(gemmepi_linear_desc, dy.batch_stride),
                                  offsetof(gemmepi_linear_desc, da.ld),
                                  offsetof(gemmepi_linear_desc, da.batch_stride),
                                  offsetof(gemmepi_linear_desc, db.ld),
                                  offsetof(gemmepi_linear_desc, db.batch_stride),
                                  offsetof(gemmepi_linear_desc, bias.batch_stride),
                                  offsetof(gemmepi_linear_desc, dbias.batch_stride)};

static gemmepi_linear_desc layer(int form, int order) {
    static const gemmepi_epilogue activations[] = {GEMMEPI_SILU, GEMMEPI_RELU, GEMMEPI_SILU | GEMMEPI_GATED};
    gemmepi_linear_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = 6, desc.n = 12, desc.k = 5, desc.batch = 2;
    desc.order = order ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
    desc.a.batch_stride = desc.da.batch_stride = 30;
    desc.b.batch_stride = desc.db.batch_stride = 60;
    desc.y.batch_stride = desc.dy.batch_stride = desc.preact.batch_stride = 1536;
    desc.bias.batch_stride = desc.dbias.batch_stride = 12;
    desc.flags = GEMMEPI_LINEAR_BIAS | GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB |
                 GEMMEPI_LINEAR_DBIAS;
    if (form < 3)
        desc.activation = activations[form];
    else
        desc.formula = formulas[form - 3];
    return desc;
}

static void the_layers_that_are_spoilt_are_good(void) {
    int form, order;
    for (form = 0; form < 3 + FORMULAS; form++)
        for (order = 0; order < 2; order++) {
            gemmepi_linear_desc desc = layer(form, order);
            gemmepi_plan *plan = NULL;
            is_taken(gemmepi_plan_linear(host, &desc, &plan), plan, "gemmepi_plan_linear", form);
            plan = NULL;
            is_taken(gemmepi_plan_linear_backward(host, &desc, &plan), plan, "gemmepi_plan_linear_backward",
                     form);
        }
}

/* Forward does not look at gradients, nor backward at y: one direction at least refuses. */
static void sizes_of_layers_are_refused(void) {
    int form, order, e;
    size_t i;
    for (form = 0; form < 3 + FORMULAS; form++)
        for (order = 0; order < 2; order++)
            for (i = 0; i < sizeof of_layer / sizeof *of_layer; i++)
                for (e = 0; e < EXTREMES; e++) {
                    gemmepi_linear_desc desc = layer(form, order);
                    gemmepi_plan *plan = NULL;
                    gemmepi_status status, backward;
                    set(&desc, of_layer[i], extremes[e]);
                    status = gemmepi_plan_linear(host, &desc, &plan);
                    gemmepi_plan_destroy(plan);
                    backward = gemmepi_plan_linear_backward(host, &desc, &plan);
                    gemmepi_plan_destroy(plan);
                    is_refused(status ? status : backward, "a layer", of_layer[i], extremes[e]);
                }
}

/* >>element-wise operations */

static gemmepi_status plan_tensors(int operation, int64_t *shape, int64_t *stride, const char *formula) {
    gemmepi_elementwise_desc desc;
    gemmepi_operand operand;
    gemmepi_tensor a, y;
    gemmepi_plan *plan = NULL;
    gemmepi_status status;
    memset(&desc, 0, sizeof desc), memset(&a, 0, sizeof a), memset(&operand, 0, sizeof operand);
    a.rank = 3, a.shape = shape, a.stride = stride;
    y = a;
    desc.y = &y;
    if (formula) {
        operand.name = "x", operand.kind = GEMMEPI_FULL, operand.tensor = &a;
        desc.formula = formula, desc.operands = &operand, desc.operand_count = 1;
    } else {
        desc.operation = (gemmepi_operation)operation, desc.a = &a, desc.activation = GEMMEPI_SILU;
        if (operation == GEMMEPI_OP_CAST)
            desc.activation = 0;
    }
    status = gemmepi_plan_elementwise(host, &desc, &plan);
    gemmepi_plan_destroy(plan);
    return status;
}

static void extents_of_tensors_are_refused(void) {
    static const int operations[] = {GEMMEPI_OP_ACTIVATION, GEMMEPI_OP_CAST};
    int axis, e, i;
    int64_t good[3] = {2, 6, 12}, dense[3] = {72, 12, 1};
    is_taken(plan_tensors(operations[0], good, dense, NULL), NULL, "an activation", 0);
    is_taken(plan_tensors(operations[1], good, dense, NULL), NULL, "a cast", 0);
    is_taken(plan_tensors(0, good, dense, "d = x * x"), NULL, "a formula", 0);
    for (axis = 0; axis < 3; axis++)
        for (e = 0; e < EXTREMES; e++) {
            int64_t shape[3] = {2, 6, 12}, stride[3] = {72, 12, 1};
            for (i = 0; i < 2; i++) {
                shape[axis] = extremes[e];
                is_refused(plan_tensors(operations[i], shape, NULL, NULL), "an operation", (size_t)axis,
                           extremes[e]);
                is_refused(plan_tensors(operations[i], shape, stride, NULL), "an operation", (size_t)axis,
                           extremes[e]);
            }
            is_refused(plan_tensors(0, shape, NULL, "d = x * x"), "a formula", (size_t)axis, extremes[e]);
            is_refused(plan_tensors(0, shape, NULL, "d = left(x)"), "a formula", (size_t)axis, extremes[e]);
            is_refused(plan_tensors(0, shape, stride, "d = pair(x, x)"), "a formula", (size_t)axis,
                       extremes[e]);
        }
}

/* A stride of few elements may be negative. */
static void strides_of_tensors_are_refused(void) {
    int axis, e;
    for (axis = 0; axis < 3; axis++)
        for (e = 0; e < EXTREMES; e++) {
            int64_t shape[3] = {2, 6, 12}, stride[3] = {72, 12, 1};
            if (extremes[e] < 0 && extremes[e] > -1000)
                continue;
            stride[axis] = extremes[e];
            is_refused(plan_tensors(GEMMEPI_OP_ACTIVATION, shape, stride, NULL), "an operation", (size_t)axis,
                       extremes[e]);
            is_refused(plan_tensors(GEMMEPI_OP_CAST, shape, stride, NULL), "an operation", (size_t)axis,
                       extremes[e]);
            is_refused(plan_tensors(0, shape, stride, "d = x * x"), "a formula", (size_t)axis, extremes[e]);
        }
}

int main(void) {
    gemmepi_config config;
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE_HOST;
    if (gemmepi_create(&config, &host) != GEMMEPI_OK) {
        printf("the host does not open: %s\n", gemmepi_last_error());
        return 1;
    }
    RUN(the_products_that_are_spoilt_are_good);
    RUN(sizes_of_products_are_refused_by_every_call);
    RUN(strides_of_products_are_refused);
    RUN(the_groups_that_are_spoilt_are_good);
    RUN(sizes_of_grouped_products_are_refused_by_every_call);
    RUN(the_layers_that_are_spoilt_are_good);
    RUN(sizes_of_layers_are_refused);
    RUN(extents_of_tensors_are_refused);
    RUN(strides_of_tensors_are_refused);
    gemmepi_destroy(host);
    return test_finish();
}
