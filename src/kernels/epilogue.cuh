// The epilogue on a run of eight accumulators of one row. Written once, for every kernel that ends in one.
//
// The body knows: the accumulators v, the item of the batch, the row, the first column, how many of the eight columns
// exist, and the tensors in `p`. It may read and write any tensor at (item, row, column), and leaves in v what D
// stores, before scale_d. Which tensors, scales and which activation are compile-time constants, so that what is not
// used costs nothing.
//
// The eight lie side by side, or SPREAD as wgmma leaves them: four pairs, eight columns apart. A row's four lanes then
// have pairs side by side, together 32 columns, and every lane of the warp takes part; what does not exist has valid 0.
//
// GATED: v is two runs, of the same column of both halves, which lie p.n columns apart wherever a tensor has both, or within
// groups of 2 HALF_GROUP columns. The product has them (HALVES_IN 2), or the result (HALVES_OUT 2), or both.
#pragma once
#include "epilogue_column_sums.cuh"
#include "epilogue_arithmetic.cuh"
#include "epilogue_found.cuh"
#include "epilogue_fragment.cuh"
#include "epilogue_inside.cuh"
#include "epilogue_mask.cuh"
#include "epilogue_staging.cuh"

__device__ inline Acc scalar(const double *on_device, double given) {
    return from_acc<Acc>(on_device ? *on_device : given);
}

template <bool Exists> __device__ inline Acc tensor_scale(const gpi__kernel_scale &scale, long long item) {
    if constexpr (Exists)
        return (Acc)scale.data[item * scale.stride];
    else
        return 1;
}

__device__ inline bool takes_c(const gpi__epilogue_params &p, const Epilogue_state &state) {
    return !GEMMEPI_UNIT_ALPHA && p.uses_c && state.beta != 0;
}

__device__ inline Epilogue_state begin_epilogue(const gpi__epilogue_params &p, const gpi__formula_place *beside, long long item,
                                                long long column, int valid) {
    Epilogue_state state = {};
    state.beside = beside;
    state.alpha = GEMMEPI_UNIT_ALPHA ? Acc(1) : scalar(p.device_alpha, p.alpha);
    state.beta = GEMMEPI_UNIT_ALPHA ? Acc(0) : scalar(p.device_beta, p.beta);
    if (GEMMEPI_SCALE_A == SCALE_TENSOR)
        state.alpha = product(state.alpha, tensor_scale<true>(p.scale_a, item));
    if (GEMMEPI_SCALE_B == SCALE_TENSOR)
        state.alpha = product(state.alpha, tensor_scale<true>(p.scale_b, item));
    if (COLUMNS_SCALED) {
#pragma unroll
        for (int half = 0; half < HALVES_IN; half++) {
            const float *scale = p.scale_b.data + item * p.scale_b.stride + column_of_half<HALVES_IN>(p, column, half);
#pragma unroll
            for (int i = 0; i < RUN; i++)
                state.column_factors[half][i] = place(i) < valid ? product(state.alpha, (Acc)scale[place(i)]) : Acc(0);
        }
    }
    state.scale_c = takes_c(p, state) ? tensor_scale<SCALES_C>(p.scale_c, item) : Acc(1); // else it may be missing
    state.scale_d = tensor_scale<SCALES_D>(p.scale_d, item);
    state.scale_aux = tensor_scale<SCALES_AUX>(p.scale_aux, item);
    state.scale_residual = tensor_scale<SCALES_RESIDUAL>(p.scale_residual, item);
    return state;
}

__device__ inline void load_saved(const gpi__epilogue_params &p, const Epilogue_state &state, long long item,
                                  long long row, long long column, int valid, Saved &saved) {
    if (!BACKWARD || (!SPREAD && valid == 0))
        return;
    if constexpr (LOADS_MASK) {
        saved.mask = state.loaded_mask >> 2 * lane_of_row();
    } else if constexpr (AUX_IS_MASK && SPREAD) {
        saved.mask = load_spread_mask(p, item, row, column, valid);
    } else if constexpr (AUX_IS_MASK) {
        saved.mask = ((const u8 *)p.aux.data)[offset(p.aux, item, row, column) / 8];
    } else {
#pragma unroll
        for (int half = 0; half < HALVES_SAVED; half++)
            if constexpr (LOADS_AUX)
                saved.runs[half] = unstage_run<GEMMEPI_AUX_TYPE, HALVES_SAVED>(state.loaded_aux[half]);
            else
                saved.runs[half] = read<GEMMEPI_AUX_TYPE, HALVES_SAVED>(
                    (const GEMMEPI_AUX_TYPE *)p.aux.data + offset(p.aux, item, row, column_of_half<HALVES_SAVED>(p, column, half)),
                    valid_of_half<HALVES_SAVED>(valid, half));
    }
}

#if GEMMEPI_BRINGS
__device__ inline void load_residual(const gpi__epilogue_params &p, const Run_of_formula &at, Saved &saved) {
#pragma unroll
    for (int half = 0; half < (HAS_RESIDUAL ? HALVES_OUT : 0); half++)
        saved.residual[half] = read_residual<HALVES_OUT>(p, at, half);
}
#endif

// v with its factors and C. at: a half's.
__device__ inline void finish_product(const gpi__epilogue_params &p, const Epilogue_state &state, const Run_of_formula &at, int half,
                                      Acc (&v)[RUN]) {
    Acc other[RUN];
    Acc row_factor = COLUMNS_SCALED ? Acc(1) : state.alpha;
    if (ROWS_SCALED)
        row_factor = product(row_factor, (Acc)p.scale_a.data[at.item * p.scale_a.stride + at.row]);
    multiply_by_factors(row_factor, state.column_factors[half], v);
    if (takes_c(p, state)) {
        load<GEMMEPI_C_TYPE, HALVES_IN>(p.c, at.item, at.row, at.column, at.valid, other);
        add_product(SCALES_C ? product(state.beta, state.scale_c) : state.beta, other, v);
    }
}
__device__ inline Run_of_formula half_of_run(const gpi__epilogue_params &p, const Run_of_formula &at, int half) {
    return {at.item, at.row, IN_GROUPS ? column_of_half<HALVES_IN>(p, at.column, half) : at.column + half * p.n,
            valid_of_half<HALVES_IN>(at.valid, half)};
}

// v: HALVES_IN runs of the product go in, HALVES_OUT of the result come out.
__device__ inline void epilogue(const gpi__epilogue_params &p, Epilogue_state &state, const Of_columns &of,
                                const Saved &saved, long long item, long long row, long long column, int valid,
                                Acc (&v)[HALVES][RUN]) {
#pragma unroll
    for (int half = 0; half < HALVES_IN; half++) {
        if (!FINISHES_FIRST)
            finish_product(p, state, half_of_run(p, {item, row, column, valid}, half), half, v[half]);
        if (GEMMEPI_ADDS_BIAS) { // half after half: fewer registers
            Acc bias[RUN];
            to_accs(of.bias[half], bias);
            add_product(Acc(1), bias, v[half]);
        }
    }
    if constexpr (HALVES_IN == 2)
        regroup<false>(v);
    apply_formula(p, state, of, saved, {item, row, column, valid}, v);
}

// Of what the epilogue left: amax_d, and D.
__device__ inline void store_result(const gpi__epilogue_params &p, Epilogue_state &state, long long item,
                                    long long row, long long column, int valid, const Acc (&v)[HALVES][RUN]) {
#pragma unroll
    for (int half = 0; half < (AMAX_D ? HALVES_OUT : 0); half++)
        keep_largest_of_run(v[half], valid, state.largest_d);
    if (GEMMEPI_STORES_D)
        store_halves<GEMMEPI_D_TYPE, STAGES_D, SCALES_D, HALVES_OUT>(p, p.d, state.staged_d, state.scale_d, item, row, column, valid, v);
}

// After a thread's last run; every thread of a warp takes part.
__device__ inline void end_epilogue(const gpi__epilogue_params &p, const Epilogue_state &state) {
    if (AMAX_D)
        store_largest(p.amax_d, state.largest_d);
    if (AMAX_AUX)
        store_largest(p.amax_aux, state.largest_aux);
}
