/* Plans and one-shot calls of element-wise operations: on the fake GPU of fake_cuda.h. */
#include "fake_operations.h"

static void elementwise_plans_launch_what_they_say(void) {
    int i;
    for (i = 0; i < ELEMENT_CALLS; i++) {
        gemmepi_config config = fake_config();
        gemmepi_context *context = open_fake(&config);
        const char *name = element_calls[i].name;
        int launches = element_calls[i].memsets + element_calls[i].kernels;
        gemmepi_plan_details details;
        gemmepi_plan *plan;
        element_call c;
        long before_host, before_device;
        char text[2000], wanted[40];
        element_calls[i].make(&c);
        plan = plan_elementwise(context, &c);
        CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(details.route == element_calls[i].route, "%s: route %s", name, details.route_name);
        CHECK(details.launches == launches, "%s: %d launches", name, details.launches);
        CHECK((details.workspace_size != 0) == element_calls[i].has_workspace, "%s: %d bytes", name,
              (int)details.workspace_size);
        gemmepi_plan_explain(plan, text, sizeof text);
        snprintf(wanted, sizeof wanted, "%d launches", launches);
        CHECK(strstr(text, wanted), "%s: explain tells %s", name, text);
        CHECK(!c.desc.formula || details.route != GEMMEPI_ROUTE_CONTIGUOUS || !strstr(text, "not aligned"),
              "%s: explain tells %s", name, text);
        CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        before_host = allocations, before_device = gpu.device_allocations;
        CHECK(before_device == OF_THE_CONTEXT + element_calls[i].has_workspace, "%s: %ld blocks", name,
              before_device);
        gpu.is_capturing = 1; /* so it may be captured */
        CHECK(gemmepi_run_elementwise(plan, &c.args, NULL) == GEMMEPI_OK, "%s: %s", name,
              gemmepi_last_error());
        CHECK(gpu.launches == element_calls[i].kernels && gpu.memsets == element_calls[i].memsets,
              "%s: %ld kernels, %ld memsets", name, gpu.launches, gpu.memsets);
        calls_of_the_driver();
        CHECK(call_at_any_time(context, &c, NULL) == GEMMEPI_OK, "%s: %s", name, gemmepi_last_error());
        CHECK(calls_of_the_driver() == launches, "%s: the one-shot call differs", name);
        gpu.is_capturing = 0;
        CHECK(gpu.device_allocations == before_device, "%s: a run allocates", name);
        before_host = allocations - before_host;
        CHECK(gemmepi_run_elementwise(plan, &c.args, NULL) == GEMMEPI_OK, "%s: %s", name,
              gemmepi_last_error());
        CHECK(gpu.wrong_context == 0 && before_host <= (c.desc.formula ? 8 : 4), "%s: %ld allocations", name,
              before_host);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left_and_cublaslt_was_not_loaded();
    }
}

/* Each axis but the last two lies between others' elements, so that none merge where the formula asks for the item. */
static void items_of_six_axes_that_do_not_merge_are_refused(void) {
    static const int64_t shape[8] = {2, 2, 2, 2, 2, 2, 2, 2}, apart[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_plan *plan = NULL;
    element_call c;
    dense_formula(&c);
    c.t[A].rank = c.t[Y].rank = 8, c.t[A].shape = c.t[Y].shape = shape, c.t[A].stride = apart;
    c.desc.formula = "d = x + item";
    CHECK(gemmepi_plan_elementwise(context, &c.desc, &plan) == GEMMEPI_UNSUPPORTED && sentence_has("up to 5"),
          "%s", gemmepi_last_error());
    c.desc.formula = "d = x + column";
    CHECK(gemmepi_plan_elementwise(context, &c.desc, &plan) == GEMMEPI_UNSUPPORTED && sentence_has("up to 5"),
          "%s", gemmepi_last_error());
    c.t[A].stride = NULL;
    CHECK(gemmepi_plan_elementwise(context, &c.desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* What a one-shot call adds to the plans that are kept, the kernels compiled and the memory that is held. */
typedef struct added {
    long plans, kernels, blocks;
} added;

static added added_by(gemmepi_context *context, const element_call *c, gemmepi_stream stream) {
    added before = {0, 0, 0};
    before.plans = (long)context->plans.count, before.kernels = gpu.compilations, before.blocks = live;
    CHECK(call_at_any_time(context, c, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    before.plans = (long)context->plans.count - before.plans;
    before.kernels = gpu.compilations - before.kernels;
    before.blocks = live - before.blocks;
    return before;
}

static void one_shot_calls_of_an_operation_build_one_plan(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_stream other = (gemmepi_stream)(uintptr_t)0x7000;
    element_call c;
    added more;
    int i;
    for (i = 0; i < ELEMENT_CALLS; i++) {
        element_calls[i].make(&c);
        more = added_by(context, &c, NULL);
        CHECK(more.plans == 1, "%s: %ld plans", element_calls[i].name, more.plans);
        more = added_by(context, &c, NULL);
        CHECK(more.plans == 0 && more.kernels == 0 && more.blocks == 0, "%s: %ld plans again",
              element_calls[i].name, more.plans);
        more = added_by(context, &c, other);
        CHECK(more.plans == 0 && more.kernels == 0, "%s: another plan for another stream",
              element_calls[i].name);
    }
    dense_call(&c);
    c.t[A].data = element_pointer(B, 512), c.t[Y].data = element_pointer(DY, 16);
    more = added_by(context, &c, NULL);
    CHECK(more.plans == 0, "other pointers, as aligned, are another plan");
    c.t[A].data = element_pointer(B, 4);
    more = added_by(context, &c, NULL);
    CHECK(more.plans == 1 && more.kernels == 1, "less aligned: %ld plans, %ld kernels", more.plans,
          more.kernels);
    c.t[Y].data = element_pointer(DY, 12);
    more = added_by(context, &c, NULL);
    CHECK(more.plans == 0, "the least alignment is the same");
    activation_call(&c, EDGE, EDGE - 1);
    more = added_by(context, &c, NULL);
    CHECK(more.plans == 1 && more.kernels == 0, "another shape: %ld plans, %ld kernels", more.plans,
          more.kernels);
    dense_call(&c);
    c.desc.activation = GEMMEPI_TANH;
    more = added_by(context, &c, NULL);
    CHECK(more.plans == 1 && more.kernels == 1, "another function: %ld plans, %ld kernels", more.plans,
          more.kernels);
    lerp_call(&c);
    c.t[A].data = c.t[B].data = c.t[DW].data = NULL; /* a and b go with dw alone */
    end_call(&c);
    more = added_by(context, &c, NULL);
    CHECK(more.plans == 1, "without dw: %ld plans", more.plans);
    c.t[W].data = NULL;
    end_call(&c);
    more = added_by(context, &c, NULL);
    CHECK(more.plans == 1, "without w: %ld plans", more.plans);
    c.args.weight = 0.25;
    more = added_by(context, &c, NULL);
    CHECK(more.plans == 0, "a weight is an argument, not another plan");
    gemmepi_destroy(context);
    nothing_is_left_and_cublaslt_was_not_loaded();
}

/* Of a tensor without an element they have no meaning, however large: they neither overflow nor tell problems apart. */
static void strides_of_nothing_are_all_the_same(void) {
    static const int64_t strides[][2] = {{INT64_MAX, INT64_MAX}, {INT64_MIN, 1}, {SUM_COLUMNS, 1}};
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    int i;
    for (i = 0; i < (int)GPI__COUNT(strides); i++) {
        gemmepi_matmul_desc desc = pass_alone();
        gemmepi_matmul_args args = args_for(&desc);
        desc.m = EDGE / 2, desc.batch = 2;
        desc.d.batch_stride = EDGE * EDGE / 2;
        desc.a.ld = desc.a.batch_stride = i == 1 ? 0 : strides[i][0];
        CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        CHECK(context->plans.count == 1, "%d: %d plans of one product", i, (int)context->plans.count);
    }
    for (i = 0; i < (int)GPI__COUNT(strides); i++) {
        element_call c;
        sum_of_nothing_call(&c);
        c.t[A].stride = strides[i];
        CHECK(call_at_any_time(context, &c, NULL) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        CHECK(context->plans.count == 2, "%d: %d plans of one sum", i, (int)context->plans.count - 1);
    }
    gemmepi_destroy(context);
    nothing_is_left();
}

/* Products and element-wise operations share the places. */
static void of_many_one_shot_calls_the_oldest_is_dropped(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    static element_call used, unused, c;
    long held = 0, before;
    int i;
    activation_call(&used, 1, 5);
    activation_call(&unused, 1, 6);
    CHECK(added_by(context, &unused, NULL).plans == 1, "no plan");
    CHECK(added_by(context, &used, NULL).plans == 1, "no plan");
    for (i = 0; i <= (GPI__MAX_KEPT + 200) / EDGE; i++) { /* kernels for all that come, which stay */
        gemmepi_matmul_desc desc = pass_alone();
        gemmepi_matmul_args args;
        desc.m = 2, desc.n = 1 + i;
        args = args_for(&desc);
        CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    }
    for (i = 0; i < GPI__MAX_KEPT + 200; i++) {
        if (i == GPI__MAX_KEPT) {
            CHECK(context->plans.count == GPI__MAX_KEPT, "%d plans", (int)context->plans.count);
            held = live;
        }
        if (i % 3 == 0) {
            gemmepi_matmul_desc desc = pass_alone();
            gemmepi_matmul_args args;
            desc.m = 1 + i % EDGE, desc.n = 1 + i / EDGE;
            args = args_for(&desc);
            CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        } else {
            activation_call(&c, 1, 1000 + i);
            CHECK(call_at_any_time(context, &c, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        }
        before = allocations;
        CHECK(call_at_any_time(context, &used, NULL) == GEMMEPI_OK && allocations == before,
              "after %d others one in use was dropped", i);
    }
    CHECK(context->plans.count == GPI__MAX_KEPT, "%d plans", (int)context->plans.count);
    CHECK(live == held, "200 more plans hold %ld blocks more", live - held);
    before = allocations;
    CHECK(call_at_any_time(context, &c, NULL) == GEMMEPI_OK && allocations == before,
          "the newest was dropped");
    CHECK(call_at_any_time(context, &unused, NULL) == GEMMEPI_OK && allocations > before,
          "the oldest was not dropped");
    CHECK(live == held, "%ld blocks more", live - held);
    gemmepi_destroy(context);
    nothing_is_left_and_cublaslt_was_not_loaded();
}

/* Spoils a call so that it is refused with `status` and a sentence that has `word`. */
typedef struct spoiled {
    const char *call, *word;
    gemmepi_status status;
    void (*spoil)(element_call *c);
} spoiled;

static void spoil_null(element_call *c) {
    c->args.a = c->t[A].data = NULL;
}
static void spoil_alignment(element_call *c) {
    c->args.a = c->t[A].data = element_pointer(A, 2);
}
static void spoil_overlap(element_call *c) {
    c->args.y = c->t[Y].data = element_pointer(A, 16);
}
static void spoil_sum_overlap(element_call *c) {
    c->args.db = c->t[DB].data = element_pointer(A, 0);
}
static void spoil_sums_overlap(element_call *c) {
    c->args.db = c->t[DB].data = element_pointer(DW, 16);
}
static void spoil_amax(element_call *c) {
    c->args.amax = element_pointer(Y, 4);
}
static void spoil_amax_alignment(element_call *c) {
    c->args.amax = (char *)number_memory[2] + 2;
}
static void spoil_y_scale(element_call *c) {
    c->args.y_scale = (float *)element_pointer(A, 64);
}
static void spoil_y_scale_and_amax(element_call *c) {
    c->args.amax = c->args.y_scale + 1;
}
static void spoil_scale_and_amax(element_call *c) {
    c->args.amax = (float *)number_memory[0];
}

static const spoiled spoileds[] = {
    {"dense", "a is NULL", GEMMEPI_INVALID_ARGUMENT, spoil_null},
    {"dense", "a is", GEMMEPI_MISALIGNED, spoil_alignment},
    {"dense", "overlaps a", GEMMEPI_INVALID_ARGUMENT, spoil_overlap},
    {"transposed", "overlaps a", GEMMEPI_INVALID_ARGUMENT, spoil_overlap},
    {"large sum", "a is NULL", GEMMEPI_INVALID_ARGUMENT, spoil_null},
    {"large sum", "overlaps a", GEMMEPI_INVALID_ARGUMENT, spoil_overlap},
    {"sums beside a loop", "overlaps a", GEMMEPI_INVALID_ARGUMENT, spoil_sum_overlap},
    {"sums beside a loop", "overlaps dw", GEMMEPI_INVALID_ARGUMENT, spoil_sums_overlap},
    {"cast of new rows", "overlaps a", GEMMEPI_INVALID_ARGUMENT, spoil_overlap},
    {"cast of new rows", "y_scale", GEMMEPI_INVALID_ARGUMENT, spoil_y_scale},
    {"cast with amax", "amax", GEMMEPI_INVALID_ARGUMENT, spoil_amax},
    {"cast with amax", "amax", GEMMEPI_MISALIGNED, spoil_amax_alignment},
    {"cast of new rows with amax", "y_scale", GEMMEPI_INVALID_ARGUMENT, spoil_y_scale_and_amax},
    {"cast with amax", "scale", GEMMEPI_INVALID_ARGUMENT, spoil_scale_and_amax},
};

static void refused_elementwise_arguments_launch_nothing(void) {
    size_t i;
    int k;
    for (i = 0; i < GPI__COUNT(spoileds); i++) {
        const spoiled *s = &spoileds[i];
        gemmepi_config config = fake_config();
        gemmepi_context *context = open_fake(&config);
        gemmepi_plan *plan;
        gemmepi_status status;
        element_call c;
        for (k = 0; strcmp(element_calls[k].name, s->call) != 0; k++) {
        }
        element_calls[k].make(&c);
        plan = plan_elementwise(context, &c);
        CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        s->spoil(&c);
        status = gemmepi_run_elementwise(plan, &c.args, NULL);
        CHECK(status == s->status && sentence_has(s->word), "%s, %s: %s: %s", s->call, s->word,
              gemmepi_status_name(status), status ? gemmepi_last_error() : "");
        status = call_at_any_time(context, &c, NULL);
        CHECK(status == s->status && sentence_has(s->word), "%s, %s, one-shot: %s: %s", s->call, s->word,
              gemmepi_status_name(status), status ? gemmepi_last_error() : "");
        CHECK(calls_of_the_driver() == 0, "%s, %s: something was launched", s->call, s->word);
        element_calls[k].make(&c);
        CHECK(gemmepi_run_elementwise(plan, &c.args, NULL) == GEMMEPI_OK &&
                  call_at_any_time(context, &c, NULL) == GEMMEPI_OK,
              "%s, %s: afterwards: %s", s->call, s->word, gemmepi_last_error());
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left_and_cublaslt_was_not_loaded();
    }
}

int main(void) {
    keep_libraries_open();
    RUN(elementwise_plans_launch_what_they_say);
    RUN(items_of_six_axes_that_do_not_merge_are_refused);
    RUN(one_shot_calls_of_an_operation_build_one_plan);
    RUN(strides_of_nothing_are_all_the_same);
    RUN(of_many_one_shot_calls_the_oldest_is_dropped);
    RUN(refused_elementwise_arguments_launch_nothing);
    return test_finish();
}
