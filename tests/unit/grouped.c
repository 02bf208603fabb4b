/* Grouped products on the fake GPU of fake_cuda.h: what each launch of a run is handed, where workspace has what, and what no run may have. */
#include "fake_program.h"

enum { MOST_LAUNCHES = 8 };

/* >>launches, as they were handed over */

typedef struct seen_launch {
    fake_launch launch;
    gpi__groups_params groups;
    gpi__gather_params gather;
    gpi__maps_params maps;
    gpi__reduce_params sums;
    gpi__sm90_params fused;
    gpi__plain_params plain;
    gpi__kernel_groups of_plain; /* behind plain */
} seen_launch;

static seen_launch seen[MOST_LAUNCHES];
static int seen_count;

/* By the first words of its kernel's name. */
static int is_entry(const seen_launch *one, const char *entry) {
    return strncmp(one->launch.entry, entry, strlen(entry)) == 0;
}

static void keep_launch(const fake_launch *launch) {
    seen_launch *one = &seen[seen_count < MOST_LAUNCHES ? seen_count++ : MOST_LAUNCHES - 1];
    memset(one, 0, sizeof *one);
    one->launch = *launch;
#define KEEP(name, field)    \
    if (is_entry(one, name)) \
    memcpy(&one->field, launch->params, sizeof one->field)
    KEEP("gemmepi_groups", groups);
    KEEP("gemmepi_gather", gather);
    KEEP("gemmepi_maps", maps);
    KEEP("gemmepi_sum_groups", sums);
    KEEP("gemmepi_sm90", fused);
    KEEP("gemmepi_plain", plain);
    if (is_entry(one, "gemmepi_plain"))
        one->of_plain = ((const gpi__plain_params *)launch->params)->groups;
}

static const seen_launch *launch_of(const char *entry, int nth) {
    static const seen_launch none;
    int i;
    for (i = 0; i < seen_count; i++)
        if (is_entry(&seen[i], entry) && nth-- == 0)
            return &seen[i];
    CHECK(0, "there is no launch of %s", entry);
    return &none;
}

/* >>a run */

typedef struct grouped_run {
    gemmepi_context *context;
    gemmepi_grouped_desc desc;
    gemmepi_grouped_args args;
    gemmepi_plan *plan;
    gemmepi_plan_details details;
} grouped_run;

static void *at(unsigned place) {
    return (void *)(uintptr_t)(0x10000000u * (uintptr_t)place);
}
static const int32_t *list_at(unsigned place) {
    return (const int32_t *)at(place);
}

enum {
    AT_A = 1,
    AT_B,
    AT_D,
    AT_C,
    AT_BIAS_GRAD,
    AT_ENDS,
    AT_INDEX_A,
    AT_INDEX_B,
    AT_INDEX_D,
    AT_WEIGHTS,
    AT_WORKSPACE
};

static grouped_run begin_run(int of_k) {
    gemmepi_config config = config_with_all_routes();
    grouped_run r;
    memset(&r, 0, sizeof r);
    r.context = open_fake(&config);
    gpu.is_untouched = 1;
    gpu.watch = keep_launch;
    r.desc.groups = 6;
    r.desc.grouping = of_k ? GEMMEPI_GROUPS_OF_K : GEMMEPI_GROUPS_OF_ROWS;
    r.desc.product.m = of_k ? 256 : 1000, r.desc.product.n = 384, r.desc.product.k = of_k ? 1000 : 192;
    r.desc.product.a.dtype = GEMMEPI_BF16;
    r.desc.product.a.transposed = of_k;
    r.args.product.a = at(AT_A), r.args.product.b = at(AT_B), r.args.product.d = at(AT_D);
    r.args.ends = list_at(AT_ENDS);
    return r;
}

static int plan_run(grouped_run *r) {
    int made = gemmepi_plan_grouped(r->context, &r->desc, &r->plan) == GEMMEPI_OK &&
               gemmepi_plan_info(r->plan, &r->details) == GEMMEPI_OK;
    CHECK(made, "%s", gemmepi_last_error());
    r->args.product.workspace = at(AT_WORKSPACE);
    r->args.product.workspace_size = r->details.workspace_size;
    return made;
}

static gemmepi_status run_it(grouped_run *r) {
    seen_count = 0;
    return gemmepi_run_grouped(r->plan, &r->args, NULL);
}

static void end_run(grouped_run *r) {
    gemmepi_plan_destroy(r->plan);
    gemmepi_destroy(r->context);
    gpu.watch = NULL;
    nothing_is_left();
}

/* >>workspace */

typedef struct room {
    const void *begin;
    size_t bytes;
} room;

/* Whether rooms are inside the workspace, begin at multiples of 256 and share no byte. */
static void check_rooms(const grouped_run *r, const room *rooms, int count) {
    uintptr_t whole = (uintptr_t)r->args.product.workspace, end = whole + r->details.workspace_size;
    int i, j;
    for (i = 0; i < count; i++) {
        uintptr_t begin = (uintptr_t)rooms[i].begin, behind = begin + rooms[i].bytes;
        CHECK(begin >= whole && behind <= end && begin % 256 == 0, "room %d is %lx to %lx of %lx to %lx", i,
              (unsigned long)begin, (unsigned long)behind, (unsigned long)whole, (unsigned long)end);
        for (j = 0; j < i; j++)
            CHECK((uintptr_t)rooms[j].begin >= behind || (uintptr_t)rooms[j].begin + rooms[j].bytes <= begin,
                  "rooms %d and %d share bytes", j, i);
    }
}

/* Of so many positions in so many groups: each group begins a tile. */
static size_t most_tiles(size_t positions, size_t groups, size_t tile) {
    return positions <= groups ? positions : groups + (positions - groups) / tile;
}

/* >>groups of rows */

static void check_groups_params(const grouped_run *r, const gpi__groups_params *p) {
    int of_k = r->desc.grouping == GEMMEPI_GROUPS_OF_K;
    CHECK(p->ends == r->args.ends && p->indices[0] == r->args.index_a && p->indices[1] == r->args.index_b &&
              p->indices[2] == r->args.index_d,
          "the lists are others");
    CHECK((!r->args.index_a || p->limits[0] == r->desc.gather_a) &&
              (!r->args.index_b || p->limits[1] == r->desc.gather_b) &&
              (!r->args.index_d || p->limits[2] == r->desc.scatter_d),
          "limits are %d, %d and %d", p->limits[0], p->limits[1], p->limits[2]);
    CHECK(p->groups == r->desc.groups && p->positions == (of_k ? r->desc.product.k : r->desc.product.m),
          "%d groups of %d positions", p->groups, p->positions);
    CHECK(p->faults == r->context->faults && p->faults, "faults are said elsewhere");
}

static void rows_of_groups_are_listed_gathered_and_multiplied(void) {
    grouped_run r = begin_run(0);
    const gpi__groups_params *p;
    const gpi__gather_params *g;
    const gpi__sm90_params *f;
    r.desc.gather_a = 70, r.desc.scatter_d = 1200, r.desc.weighted = 1;
    r.desc.product.a.ld = 200, r.desc.product.d.ld = 392;
    r.args.index_a = list_at(AT_INDEX_A), r.args.index_d = list_at(AT_INDEX_D);
    r.args.weights = (const float *)at(AT_WEIGHTS);
    if (plan_run(&r)) {
        unsigned tile, columns, parts;
        CHECK(run_it(&r) == GEMMEPI_OK && seen_count == 3 && r.details.launches == 3, "%d launches: %s",
              seen_count, gemmepi_last_error());
        p = &launch_of("gemmepi_groups", 0)->groups;
        g = &launch_of("gemmepi_gather", 0)->gather;
        f = &launch_of("gemmepi_sm90", 0)->fused;
        CHECK(is_entry(&seen[0], "gemmepi_groups") && is_entry(&seen[1], "gemmepi_gather"), "the order");
        check_groups_params(&r, p);
        /* a cluster's tile is listed, or where its blocks are one below the other and a group's last rows are few half of it */
        tile = (unsigned)p->tile, columns = (unsigned)p->columns;
        CHECK(tile % (unsigned)r.details.tile_m == 0 && f->cluster_columns == columns, "tiles of %u rows",
              tile);
        CHECK(p->low == (tile > (unsigned)r.details.tile_m ? r.details.tile_m : 0), "low is %d", p->low);
        CHECK(p->band > 0 && (!p->low || p->band % 2 == 0), "bands of %d", p->band);
        parts = (unsigned)most_tiles(1000, 6, tile) * columns;
        {
            const room rooms[] = {
                {p->count, 4}, {p->parts, parts * sizeof *p->parts}, {g->to, 1000 * 192 * 2}};
            check_rooms(&r, rooms, 3);
        }
        CHECK(g->from == at(AT_A) && g->index == r.args.index_a && g->ends == r.args.ends &&
                  g->count == p->count && g->groups == 6,
              "another gather");
        CHECK(g->ld == 200 / 8 && g->units == 192 / 8 && g->to_ld == 192 / 8, "%d units, %d and %d apart",
              g->units, (int)g->ld, (int)g->to_ld);
        CHECK(f->a.words[0] == (uintptr_t)g->to && f->a.words[1] == 192 && f->a.words[2] == 1000 &&
                  f->a.words[6] == 2 * 192,
              "A is not what was gathered");
        CHECK(f->b.words[0] == (uintptr_t)at(AT_B) && f->b_items && f->epilogue.d.data == at(AT_D) &&
                  f->epilogue.d.ld == 392,
              "B or D");
        CHECK(f->groups.count == p->count && f->groups.parts == p->parts &&
                  f->groups.index_d == r.args.index_d && f->epilogue.row_factor.data == at(AT_WEIGHTS),
              "the product's groups");
    }
    end_run(&r);
}

static int has_scale_a; /* of the product that was compiled */

static void look_for_scale_a(const char *file, const char *source) {
    (void)file;
    const char *at = strstr(source, "#define GEMMEPI_SCALE_A ");
    if (at)
        has_scale_a = at[24] - '0';
}

/* Rows that are gathered have the scales of A as it is stored. */
static void scales_of_gathered_rows_are_counted_as_a_is_stored(void) {
    int gathers;
    for (gathers = 0; gathers < 2; gathers++) {
        grouped_run r = begin_run(0);
        r.desc.product.a.dtype = GEMMEPI_E4M3, r.desc.product.d.dtype = GEMMEPI_BF16;
        r.desc.product.a.scale.mode = GEMMEPI_SCALE_VECTOR_128;
        r.desc.product.b.scale.mode = GEMMEPI_SCALE_BLOCK_128, r.desc.product.b.transposed = 1;
        r.desc.gather_a = gathers ? 77 : 0;
        r.args.index_a = gathers ? list_at(AT_INDEX_A) : NULL;
        gpu.reads = look_for_scale_a, has_scale_a = -1;
        r.args.product.scale_a = (const float *)at(AT_C),
        r.args.product.scale_b = (const float *)at(AT_WEIGHTS);
        if (plan_run(&r)) {
            const gpi__sm90_params *f;
            CHECK(run_it(&r) == GEMMEPI_OK, "%s", gemmepi_last_error());
            CHECK(r.details.route == GEMMEPI_ROUTE_FUSED, "%s", r.details.route_name);
            f = &launch_of("gemmepi_sm90", 0)->fused;
            CHECK(has_scale_a == GEMMEPI_SCALE_VECTOR_128, "the product knows scales of mode %d",
                  has_scale_a);
            CHECK(f->groups.rows_a == (gathers ? 77 : 1000), "%d rows of scales", (int)f->groups.rows_a);
            CHECK(f->groups.index_a == r.args.index_a, "the index of scales");
            CHECK(f->epilogue.scale_a.data == r.args.product.scale_a &&
                      f->epilogue.scale_b.data == r.args.product.scale_b &&
                      f->epilogue.scale_b.stride == 3 * 4,
                  "scales of b are %d apart", (int)f->epilogue.scale_b.stride);
        }
        end_run(&r);
    }
}

static void a_product_that_is_not_fused_reads_rows_by_their_index(void) {
    grouped_run r = begin_run(0);
    r.desc.product.k = 53, r.desc.gather_a = 70, r.desc.scatter_d = 1200;
    r.args.index_a = list_at(AT_INDEX_A), r.args.index_d = list_at(AT_INDEX_D);
    if (plan_run(&r)) {
        const gpi__groups_params *p;
        const seen_launch *product;
        CHECK(run_it(&r) == GEMMEPI_OK && seen_count == 2 && r.details.launches == 2, "%d launches: %s",
              seen_count, gemmepi_last_error());
        p = &launch_of("gemmepi_groups", 0)->groups;
        product = launch_of("gemmepi_plain", 0);
        check_groups_params(&r, p);
        CHECK(p->tile == GPI__PLAIN_TILE && p->columns == 1 && p->low == 0, "tiles of %d rows", p->tile);
        CHECK(product->plain.a.data == at(AT_A) && product->plain.b.data == at(AT_B) &&
                  product->plain.epilogue.d.data == at(AT_D) && product->plain.a.ld == 53 &&
                  product->plain.b.stride == 53 * 384 && product->plain.k == 53,
              "operands");
        CHECK(product->of_plain.index_a == r.args.index_a && product->of_plain.index_d == r.args.index_d &&
                  product->of_plain.count == p->count && product->of_plain.parts == p->parts,
              "the product's groups");
        CHECK(product->launch.grid >= most_tiles(1000, 6, (size_t)p->tile) * ((384 + 63) / 64), "%u blocks",
              product->launch.grid);
        {
            const room rooms[] = {{p->count, 4},
                                  {p->parts, most_tiles(1000, 6, (size_t)p->tile) * sizeof *p->parts}};
            check_rooms(&r, rooms, 2);
        }
    }
    end_run(&r);
}

/* >>groups of k */

static void groups_of_k_have_maps_and_sums_of_their_own(void) {
    grouped_run r = begin_run(1);
    r.desc.gather_a = 90, r.desc.gather_b = 80;
    r.desc.product.epilogue = GEMMEPI_BGRAD_B, r.desc.product.d.dtype = GEMMEPI_F32;
    r.desc.product.flags = GEMMEPI_ACCUMULATE;
    r.desc.product.a.ld = 264, r.desc.product.b.ld = 400, r.desc.product.bias_grad.batch_stride = 500;
    r.args.index_a = list_at(AT_INDEX_A), r.args.index_b = list_at(AT_INDEX_B);
    r.args.product.bias_grad = at(AT_BIAS_GRAD);
    if (plan_run(&r)) {
        const gpi__groups_params *p;
        const gpi__gather_params *a, *b;
        const gpi__maps_params *maps;
        const gpi__reduce_params *sums;
        const gpi__sm90_params *f;
        long compiled = gpu.compilations;
        CHECK(run_it(&r) == GEMMEPI_OK && seen_count == 6 && r.details.launches == 6, "%d launches: %s",
              seen_count, gemmepi_last_error());
        CHECK(gpu.compilations == compiled, "what is added to D has a kernel of its own");
        p = &launch_of("gemmepi_groups", 0)->groups, maps = &launch_of("gemmepi_maps", 0)->maps;
        a = &launch_of("gemmepi_gather", 0)->gather, b = &launch_of("gemmepi_gather", 1)->gather;
        sums = &launch_of("gemmepi_sum_groups", 0)->sums, f = &launch_of("gemmepi_sm90", 0)->fused;
        check_groups_params(&r, p);
        CHECK(p->tile == 0 && p->columns == 1, "a group is one part");
        CHECK(a->from == at(AT_A) && a->index == r.args.index_a && a->ld == 264 / 8 && a->units == 256 / 8 &&
                  b->from == at(AT_B) && b->index == r.args.index_b && b->ld == 400 / 8 &&
                  b->units == 384 / 8,
              "gathers");
        CHECK(a->count == p->count && b->count == p->count && a->ends == r.args.ends &&
                  b->ends == r.args.ends,
              "gathers count others");
        CHECK(maps->a.words[0] == (uintptr_t)a->to && maps->b.words[0] == (uintptr_t)b->to &&
                  maps->count == p->count && maps->parts == p->parts && maps->maps == f->groups.maps,
              "maps of others");
        CHECK(launch_of("gemmepi_maps", 0)->launch.grid * launch_of("gemmepi_maps", 0)->launch.block_x >= 6,
              "threads of maps");
        {
            const room rooms[] = {{p->count, 4},
                                  {p->parts, 6 * sizeof *p->parts},
                                  {maps->maps, 6 * 2 * 128},
                                  {a->to, 1000 * 256 * 2},
                                  {b->to, 1000 * 384 * 2}};
            check_rooms(&r, rooms, 5);
        }
        CHECK(sums->x.data == at(AT_B) && sums->x.ld == 400 && sums->groups.index_a == r.args.index_b &&
                  sums->out == at(AT_BIAS_GRAD) && sums->out_stride == 500 && sums->results == 384 &&
                  sums->groups.count == p->count && sums->groups.parts == p->parts,
              "sums of others");
        CHECK(launch_of("gemmepi_sum_groups", 0)->launch.grid == 6 * 384 / 32, "blocks of sums");
        CHECK(f->epilogue.residual.data == at(AT_D) && f->epilogue.d.data == at(AT_D) &&
                  !f->epilogue.uses_c && f->epilogue.d.stride == 256 * 384,
              "D is not added to");
        CHECK(f->groups.count == p->count && f->groups.parts == p->parts, "the product's groups");
    }
    end_run(&r);
}

/* The engine's shape for products of so large a k, as of each of the groups. */
static int tile_n_of_k(const grouped_run *r, int64_t k) {
    const gpi__grouped_plan *plan = (const gpi__grouped_plan *)r->plan;
    gpi__problem like = plan->inner;
    gpi__candidate candidate;
    memset(&candidate, 0, sizeof candidate);
    candidate.unit_alpha = candidate.parts = 1;
    like.k = k;
    gpi__choose_shape(r->context, &like, plan->engine, &candidate);
    return gpi__sm90_shapes[candidate.shape].tile_n;
}

static void groups_of_k_are_cut_up_by_a_groups_part_of_k(void) {
    int n, k, differ = 0;
    for (n = 384; n <= 2048; n += 128)
        for (k = 64; k <= 512; k *= 2) {
            grouped_run r = begin_run(1);
            r.context->multiprocessors = 132;
            r.desc.groups = 16;
            r.desc.product.m = 1024, r.desc.product.n = n, r.desc.product.k = 16 * k;
            if (plan_run(&r)) {
                CHECK(r.details.tile_n == tile_n_of_k(&r, k), "n %d, k %d: a tile has %d columns", n, k,
                      r.details.tile_n);
                differ += tile_n_of_k(&r, k) != tile_n_of_k(&r, 16 * k);
            }
            end_run(&r);
        }
    CHECK(differ > 0, "all of k is cut up like a part of it");
}

static void sums_are_of_scaled_rows_where_these_have_scales(void) {
    static float scales[2][4];
    int of_b;
    for (of_b = 0; of_b < 2; of_b++) {
        grouped_run r = begin_run(1);
        r.desc.product.a.dtype = GEMMEPI_E4M3, r.desc.product.d.dtype = GEMMEPI_F32;
        r.desc.product.epilogue = of_b ? GEMMEPI_BGRAD_B : GEMMEPI_BGRAD_A;
        r.desc.product.a.scale.mode = r.desc.product.b.scale.mode = GEMMEPI_SCALE_TENSOR;
        r.args.product.scale_a = scales[0], r.args.product.scale_b = scales[1];
        r.args.product.bias_grad = at(AT_BIAS_GRAD);
        if (plan_run(&r)) {
            CHECK(run_it(&r) == GEMMEPI_OK, "%s", gemmepi_last_error());
            CHECK(launch_of("gemmepi_sum_groups", 0)->sums.scale.data == scales[of_b] &&
                      launch_of("gemmepi_sum_groups", 0)->sums.x.data == at(of_b ? AT_B : AT_A),
                  "the scale of another operand than %s", of_b ? "b" : "a");
        }
        end_run(&r);
    }
}

/* A call with a formula is looked for by its text: what it has beside its product is in that key. */
static void calls_with_formulas_are_told_apart_by_their_groups(void) {
    int round, change;
    grouped_run r = begin_run(0);
    r.desc.product.formula = "d = v * 2 + column";
    r.args.index_a = list_at(AT_INDEX_A), r.args.index_d = list_at(AT_INDEX_D);
    r.args.weights = (const float *)at(AT_WEIGHTS);
    for (round = 0; round < 2; round++) /* once more they are all kept */
        for (change = 0; change < 6; change++) {
            grouped_run other = r;
            const gpi__groups_params *p;
            long compiled = gpu.programs;
            if (change == 1)
                other.desc.groups = 7;
            other.desc.gather_a = change == 2 ? 80 : change == 3 ? 90 : 0;
            other.desc.scatter_d = change == 4 ? 5000 : 0;
            other.desc.weighted = change == 5;
            other.args.index_a = other.desc.gather_a ? r.args.index_a : NULL;
            other.args.index_d = other.desc.scatter_d ? r.args.index_d : NULL;
            other.args.weights = other.desc.weighted ? r.args.weights : NULL;
            seen_count = 0;
            if (change == 5) { /* which no formula goes with */
                CHECK(gemmepi_grouped(r.context, &other.desc, &other.args, NULL) == GEMMEPI_UNSUPPORTED,
                      "change %d", change);
                continue;
            }
            CHECK(gemmepi_grouped(r.context, &other.desc, &other.args, NULL) == GEMMEPI_OK, "%d: %s", change,
                  gemmepi_last_error());
            p = &launch_of("gemmepi_groups", 0)->groups;
            CHECK(p->groups == other.desc.groups && p->indices[0] == other.args.index_a &&
                      (!p->indices[0] || p->limits[0] == other.desc.gather_a) &&
                      p->indices[2] == other.args.index_d && (!p->indices[2] || p->limits[2] == 5000),
                  "change %d ran as another", change);
            CHECK(!round || gpu.programs == compiled, "change %d is not kept", change);
        }
    end_run(&r);
}

/* A is summed as it is stored, also where D is empty. */
static void sums_beside_an_empty_d_are_launched_alone(void) {
    grouped_run r = begin_run(1);
    r.desc.product.n = 0;
    r.desc.product.epilogue = GEMMEPI_BGRAD_A;
    r.args.product.bias_grad = at(AT_BIAS_GRAD);
    r.args.product.b = r.args.product.d = NULL;
    if (plan_run(&r)) {
        const gpi__reduce_params *sums;
        CHECK(run_it(&r) == GEMMEPI_OK && seen_count == 2, "%d launches: %s", seen_count,
              gemmepi_last_error());
        sums = &launch_of("gemmepi_sum_groups", 0)->sums;
        CHECK(sums->x.data == at(AT_A) && sums->results == 256 && sums->out_stride == 256 &&
                  !sums->groups.index_a,
              "sums of others");
    }
    end_run(&r);
}

/* >>what the device found wrong, and what a run may not have */

static void what_the_device_found_wrong_is_said_by_the_next_call_once(void) {
    static const struct {
        int list, at, value, beside;
        const char *says;
    } faults[] = {
        {GPI__FAULT_ENDS, 3, 7, 9, "args.ends[3] of a grouped product is 7, but 9 comes before it"},
        {GPI__FAULT_ENDS, 5, 1001, 1000, "args.ends[5] of a grouped product is 1001, but there are 1000"},
        {GPI__FAULT_A, 2, 70, 70, "args.index_a[2] of a grouped product is 70; accepted are 0 to 69"},
        {GPI__FAULT_D, 8, -1, 40, "args.index_d[8] of a grouped product is -1; accepted are 0 to 39"}};
    grouped_run r = begin_run(0);
    size_t i;
    if (plan_run(&r)) {
        gpi__fault *set = (gpi__fault *)r.context->faults;
        for (i = 0; i < GPI__COUNT(faults); i++) {
            gpi__fault *fault = set + faults[i].list;
            fault->is_set = 1, fault->at = faults[i].at, fault->value = faults[i].value;
            fault->beside = faults[i].beside;
            CHECK(gemmepi_synchronize(r.context, NULL) == GEMMEPI_INVALID_ARGUMENT &&
                      sentence_has(faults[i].says),
                  "'%s' is said for '%s'", gemmepi_last_error(), faults[i].says);
            CHECK(gemmepi_synchronize(r.context, NULL) == GEMMEPI_OK, "once more: %s", gemmepi_last_error());
            fault->is_set = 1;
            CHECK(run_it(&r) == GEMMEPI_INVALID_ARGUMENT && sentence_has(faults[i].says) && seen_count == 0,
                  "a run begins: %s", gemmepi_last_error());
            CHECK(run_it(&r) == GEMMEPI_OK, "%s", gemmepi_last_error());
        }
    }
    end_run(&r);
}

static void lists_share_no_byte_with_workspace_or_outputs(void) {
    grouped_run r = begin_run(0);
    r.desc.gather_a = 70;
    r.args.index_a = list_at(AT_INDEX_A);
    if (plan_run(&r)) {
        char *workspace = (char *)at(AT_WORKSPACE), *d = (char *)at(AT_D);
        size_t size = r.details.workspace_size, d_size = 1000 * 384 * 2;
#define REFUSED(list, place, with, says)                                             \
    do {                                                                             \
        const int32_t *kept_ = r.args.list;                                          \
        r.args.list = (const int32_t *)(const void *)(place);                        \
        CHECK(run_it(&r) == with && sentence_has(says), "%s", gemmepi_last_error()); \
        r.args.list = kept_;                                                         \
    } while (0)
#define ACCEPTED(list, place)                                        \
    do {                                                             \
        const int32_t *kept_ = r.args.list;                          \
        r.args.list = (const int32_t *)(const void *)(place);        \
        CHECK(run_it(&r) == GEMMEPI_OK, "%s", gemmepi_last_error()); \
        r.args.list = kept_;                                         \
    } while (0)
        REFUSED(ends, workspace + size - 4, GEMMEPI_INVALID_ARGUMENT, "overlaps args.ends");
        REFUSED(ends, workspace - 4 * 6 + 4, GEMMEPI_INVALID_ARGUMENT, "overlaps args.ends");
        ACCEPTED(ends, workspace + size);
        ACCEPTED(ends, workspace - 4 * 6);
        REFUSED(index_a, workspace - 4 * 1000 + 4, GEMMEPI_INVALID_ARGUMENT, "overlaps args.index_a");
        ACCEPTED(index_a, workspace - 4 * 1000);
        REFUSED(ends, d + d_size - 4, GEMMEPI_INVALID_ARGUMENT, "args.product.d");
        REFUSED(ends, d - 4 * 6 + 4, GEMMEPI_INVALID_ARGUMENT, "overlaps args.ends");
        ACCEPTED(ends, d + d_size);
        ACCEPTED(ends, d - 4 * 6);
        REFUSED(index_a, d - 4 * 1000 + 4, GEMMEPI_INVALID_ARGUMENT, "overlaps args.index_a");
        ACCEPTED(index_a, d - 4 * 1000);
        REFUSED(ends, (char *)at(AT_ENDS) + 2, GEMMEPI_MISALIGNED, "multiple of 4 bytes");
        r.args.product.workspace_size--;
        REFUSED(ends, at(AT_ENDS), GEMMEPI_BUFFER_TOO_SMALL, "workspace_size");
    }
    end_run(&r);
}

static void operands_of_a_formula_share_no_byte_with_workspace(void) {
    grouped_run r = begin_run(0);
    gemmepi_operand operand;
    void *pointer = at(AT_C);
    memset(&operand, 0, sizeof operand);
    operand.name = "t", operand.kind = GEMMEPI_PER_COLUMN, operand.dtype = GEMMEPI_F32;
    r.desc.product.formula = "d = v * t";
    r.desc.product.operands = &operand, r.desc.product.operand_count = 1;
    r.args.product.operands = &pointer;
    if (plan_run(&r)) {
        char *workspace = (char *)at(AT_WORKSPACE);
        int i;
        CHECK(run_it(&r) == GEMMEPI_OK, "%s", gemmepi_last_error());
        for (i = 0; i < 2; i++) {
            pointer = i ? workspace + r.details.workspace_size - 16 : workspace - 384 * 4 + 16;
            CHECK(run_it(&r) == GEMMEPI_INVALID_ARGUMENT && sentence_has("workspace"), "%d: %s", i,
                  gemmepi_last_error());
            pointer = i ? workspace + r.details.workspace_size : workspace - 384 * 4;
            CHECK(run_it(&r) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        }
    }
    end_run(&r);
}

static void sentences_say_weights(void) {
    grouped_run r = begin_run(0);
    r.desc.weighted = 1;
    r.args.weights = (const float *)at(AT_WEIGHTS);
    if (plan_run(&r)) {
        CHECK(run_it(&r) == GEMMEPI_OK, "%s", gemmepi_last_error());
        r.args.weights = (const float *)(const void *)((char *)at(AT_WEIGHTS) + 2);
        CHECK(run_it(&r) == GEMMEPI_MISALIGNED && sentence_has("args.weights is 0x"), "%s",
              gemmepi_last_error());
        r.args.weights = (const float *)at(AT_D);
        CHECK(run_it(&r) == GEMMEPI_INVALID_ARGUMENT && sentence_has("args.product.d (") &&
                  sentence_has("overlaps args.weights ("),
              "%s", gemmepi_last_error());
        r.args.weights = (const float *)at(AT_WORKSPACE);
        CHECK(run_it(&r) == GEMMEPI_INVALID_ARGUMENT && sentence_has("args.product.workspace (") &&
                  sentence_has("overlaps args.weights ("),
              "%s", gemmepi_last_error());
        r.args.weights = NULL;
        CHECK(run_it(&r) == GEMMEPI_INVALID_ARGUMENT && sentence_has("args.weights is NULL"), "%s",
              gemmepi_last_error());
    }
    end_run(&r);
}

/* >>which kernel */

/* Why a product of groups is not fused, as explain says. */
static void check_reason(grouped_run *r, const char *says) {
    if (plan_run(r)) {
        CHECK(r->details.route == GEMMEPI_ROUTE_PLAIN && explain_has(r->plan, says), "'%s' is not said",
              says);
        CHECK(run_it(r) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(!launch_of("gemmepi_plain", 0)->fused.k, "plain");
    }
    end_run(r);
}

static void what_the_kernel_for_hopper_does_not_take_is_told(void) {
    grouped_run r = begin_run(0);
    r.context->multiprocessors = 1;
    check_reason(&r, "two multiprocessors");
    r = begin_run(0);
    r.context->routes = 1u << GEMMEPI_ROUTE_PLAIN;
    check_reason(&r, "config.routes leaves it out");
    r = begin_run(0);
    r.desc.product.a.transposed = 1;
    check_reason(&r, "groups of rows that are contiguous along k");
    r = begin_run(1);
    r.desc.product.b.transposed = 1;
    check_reason(&r, "b [k, n]");
    r = begin_run(1);
    r.desc.product.a.transposed = 0;
    check_reason(&r, "a is stored [k, m]");
    r = begin_run(0);
    r.desc.product.k = 188, r.desc.product.a.ld = 192, r.desc.product.b.ld = 384, r.desc.gather_a = 70;
    r.args.index_a = list_at(AT_INDEX_A);
    check_reason(&r, "gathered rows are copied in units of 16 bytes");
    r = begin_run(0);
    r.desc.product.n = 388;
    check_reason(&r, "16 bytes");
}

/* NVRTC does not compile what makes tensor maps. */
static void refuse_maps(const char *file, const char *source) {
    (void)file;
    gpu.fails = strstr(source, "gemmepi_maps") ? "nvrtcCompileProgram" : NULL;
    gpu.fail_code = GPI__NVRTC_ERROR_COMPILATION;
}

/* So it is before CUDA 12.3: groups of k are plain then, and of what was built for the other kernel nothing is left. */
static void groups_of_k_are_plain_where_nvrtc_does_not_compile_their_maps(void) {
    int version;
    for (version = 122; version <= 123; version++) {
        grouped_run r = begin_run(1);
        r.desc.gather_a = 90, r.desc.gather_b = 80;
        r.args.index_a = list_at(AT_INDEX_A), r.args.index_b = list_at(AT_INDEX_B);
        gpu.other_nvrtc = version;
        gpu.reads = refuse_maps;
        if (version == 123) {
            CHECK(gemmepi_plan_grouped(r.context, &r.desc, &r.plan) == GEMMEPI_COMPILE_ERROR, "%s",
                  gemmepi_last_error());
        } else if (plan_run(&r)) {
            const gpi__plain_params *plain;
            CHECK(explain_has(r.plan, "not fused: NVRTC before CUDA 12.3"), "explain");
            CHECK(run_it(&r) == GEMMEPI_OK && seen_count == 2, "%d launches: %s", seen_count,
                  gemmepi_last_error());
            plain = &launch_of("gemmepi_plain", 0)->plain;
            CHECK(plain->a.data == at(AT_A) && plain->groups.index_a == r.args.index_a,
                  "A is not read by its index");
            CHECK(launch_of("gemmepi_groups", 0)->groups.tile == 0 &&
                      launch_of("gemmepi_groups", 0)->groups.low == 0,
                  "tiles");
            CHECK(r.details.workspace_size == 512, "%d bytes of workspace", (int)r.details.workspace_size);
        }
        gpu.reads = NULL;
        end_run(&r);
    }
}

static void a_route_that_config_leaves_out_is_not_planned(void) {
    grouped_run r = begin_run(0);
    r.context->routes = 1u << GEMMEPI_ROUTE_FUSED;
    CHECK(gemmepi_plan_grouped(r.context, &r.desc, &r.plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_plan_destroy(r.plan);
    r.desc.product.k = 53;
    CHECK(gemmepi_plan_grouped(r.context, &r.desc, &r.plan) == GEMMEPI_UNSUPPORTED &&
              sentence_has("no route runs"),
          "%s", gemmepi_last_error());
    end_run(&r);
}

/* Two blocks of 128 x 256, or four of 128 x 128: weights take registers, so that with alpha there are only these. */
static void rows_whose_kernel_for_alpha_has_too_many_tiles_are_precompiled_without(void) {
    static const double two = 2;
    grouped_run r = begin_run(0);
    gemmepi_any_desc any;
    memset(&any, 0, sizeof any);
    any.grouped = &r.desc;
    r.desc.weighted = 1;
    r.desc.product.m = ((int64_t)1 << 30) - 1, r.desc.product.n = 3 << 14, r.desc.product.k = 4096;
    r.args.weights = (const float *)at(AT_WEIGHTS);
    r.args.product.a = (void *)((uintptr_t)1 << 46), r.args.product.d = (void *)((uintptr_t)1 << 48);
    CHECK(gemmepi_precompile(r.context, &any, 1, 1, NULL, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    if (plan_run(&r)) {
        CHECK(r.details.tile_n == 256, "a tile has %d columns", r.details.tile_n);
        r.args.product.alpha = &two;
        CHECK(run_it(&r) == GEMMEPI_UNSUPPORTED && strstr(gemmepi_last_error(), "more tiles than a grid"),
              "%s", gemmepi_last_error());
    }
    end_run(&r);
}

/* Runs with alpha or C have a kernel of their own, built once; ACCUMULATE is compiled in. */
static void runs_with_alpha_or_c_have_their_own_kernel(void) {
    static const double two = 2;
    grouped_run r = begin_run(0);
    r.desc.product.c.dtype = GEMMEPI_BF16;
    if (plan_run(&r)) {
        long compiled = gpu.compilations;
        int run;
        CHECK(explain_has(r.plan, "runs with alpha or C have a kernel of their own"), "explain");
        for (run = 0; run < 4; run++) {
            const gpi__sm90_params *f;
            r.args.product.alpha = run == 1 ? &two : NULL, r.args.product.beta = run == 2 ? &two : NULL;
            r.args.product.c = run == 2 ? at(AT_C) : NULL;
            CHECK(run_it(&r) == GEMMEPI_OK, "%d: %s", run, gemmepi_last_error());
            f = &launch_of("gemmepi_sm90", 0)->fused;
            CHECK(f->epilogue.alpha == (run == 1 ? 2 : 1) && f->epilogue.uses_c == (run == 2) &&
                      (run != 2 || f->epilogue.c.data == at(AT_C)),
                  "%d: alpha %g", run, f->epilogue.alpha);
            CHECK(gpu.compilations - compiled == (run > 0), "%d: %ld kernels", run,
                  gpu.compilations - compiled);
        }
    }
    end_run(&r);
}

int main(void) {
    keep_libraries_open();
    RUN(rows_of_groups_are_listed_gathered_and_multiplied);
    RUN(scales_of_gathered_rows_are_counted_as_a_is_stored);
    RUN(a_product_that_is_not_fused_reads_rows_by_their_index);
    RUN(groups_of_k_have_maps_and_sums_of_their_own);
    RUN(groups_of_k_are_cut_up_by_a_groups_part_of_k);
    RUN(sums_are_of_scaled_rows_where_these_have_scales);
    RUN(calls_with_formulas_are_told_apart_by_their_groups);
    RUN(sums_beside_an_empty_d_are_launched_alone);
    RUN(what_the_device_found_wrong_is_said_by_the_next_call_once);
    RUN(lists_share_no_byte_with_workspace_or_outputs);
    RUN(operands_of_a_formula_share_no_byte_with_workspace);
    RUN(sentences_say_weights);
    RUN(what_the_kernel_for_hopper_does_not_take_is_told);
    RUN(groups_of_k_are_plain_where_nvrtc_does_not_compile_their_maps);
    RUN(a_route_that_config_leaves_out_is_not_planned);
    RUN(rows_whose_kernel_for_alpha_has_too_many_tiles_are_precompiled_without);
    RUN(runs_with_alpha_or_c_have_their_own_kernel);
    return test_finish();
}
