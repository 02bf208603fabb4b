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
#include "epilogue_formula.cuh"
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
    return !GEMMEPI_APPLIED && p.uses_c && state.beta != 0;
}

__device__ inline Epilogue_state begin_epilogue(const gpi__epilogue_params &p, const gpi__formula_place *beside, long long item,
                                                long long column, int valid) {
    Epilogue_state state = {};
#if GEMMEPI_FORMULA
    state.beside = beside;
#endif
    state.alpha = GEMMEPI_APPLIED ? Acc(1) : scalar(p.device_alpha, p.alpha);
    state.beta = GEMMEPI_APPLIED ? Acc(0) : scalar(p.device_beta, p.beta);
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
__device__ inline void load_residual(const gpi__epilogue_params &p, long long item, long long row, long long column, int valid,
                                     Saved &saved) {
    if constexpr (HAS_RESIDUAL)
#pragma unroll
        for (int half = 0; half < HALVES_OUT; half++)
            saved.residual[half] = read((const GEMMEPI_RESIDUAL_TYPE *)p.residual.data +
                                            offset(p.residual, item, row, column_of_half<HALVES_OUT>(p, column, half)),
                                        valid);
}
#endif

// v up to the activation, or what SCALES_SUM makes of it: factors, C, bias, and what AUX keeps of it. column is that of the half.
__device__ inline void finish_product(const gpi__epilogue_params &p, Epilogue_state &state, const Of_columns &of,
                                      int half, long long item, long long row, long long column, int valid,
                                      Acc (&v)[RUN]) {
    Acc other[RUN];
    Acc row_factor = COLUMNS_SCALED ? Acc(1) : state.alpha;
    if (ROWS_SCALED)
        row_factor = product(row_factor, (Acc)p.scale_a.data[item * p.scale_a.stride + row]);
    multiply_by_factors(row_factor, state.column_factors[half], v);
    if (takes_c(p, state)) {
        load<GEMMEPI_C_TYPE, HALVES_IN>(p.c, item, row, column, valid, other);
        add_product(SCALES_C ? product(state.beta, state.scale_c) : state.beta, other, v);
    }
    if (HAS_BIAS && !GEMMEPI_FORMULA) {
        to_accs(of.bias[half], other);
        add_bias(half, other, v);
    }
    if (AMAX_AUX)
        keep_largest_of_run(v, valid, state.largest_aux);
    if (WRITES_AUX && !GEMMEPI_FORMULA) { // an output of a formula leaves as AUX does, where it is finished
        if (KEEPS_MASK)
            keep_mask(state, v);
        else if (AUX_IS_MASK)
            store_mask(p.aux, item, row, column, valid, v);
        else if (SCALES_AUX)
            store_scaled<GEMMEPI_AUX_TYPE, STAGES_AUX>(p.aux, state.staged_aux[half], state.scale_aux, item, row, column,
                                                       valid, v);
        else
            store<GEMMEPI_AUX_TYPE, STAGES_AUX>(p.aux, state.staged_aux[half], item, row, column, valid, v);
    }
}

// From the saved aux and v to the gradient. A gate's loop stands here, because registers are given out otherwise where it is a function.
__device__ inline void apply_derivative(const gpi__epilogue_params &p, const Epilogue_state &state, const Saved &saved,
                                        Acc (&v)[HALVES][RUN]) {
    if constexpr (AUX_IS_MASK) {
#pragma unroll
        for (int i = 0; i < RUN; i++)
            v[0][i] = saved.mask >> place(i) & 1 ? v[0][i] : Acc(0);
    } else if constexpr (!SAME<Acc, I32>) {
        Acc aside[HALVES_SAVED][RUN];
#pragma unroll
        for (int half = 0; half < HALVES_SAVED; half++) {
            to_accs(saved.runs[half], aside[half]);
#pragma unroll
            for (int i = 0; SCALES_AUX && i < RUN; i++)
                aside[half][i] *= state.scale_aux;
        }
        if constexpr (GATED) {
            const Acc *dy = UPSTREAM ? aside[0] : v[0];
            const Acc(*pair)[RUN] = UPSTREAM ? v : aside;
#pragma unroll
            for (int i = 0; i < RUN; i += TOGETHER) {
                Acc upstream[TOGETHER], value[TOGETHER], gate[TOGETHER], of_gate[TOGETHER];
                memcpy(upstream, dy + i, sizeof upstream);
                memcpy(value, pair[VALUE] + i, sizeof value);
                memcpy(gate, pair[GATE] + i, sizeof gate);
                gate_gradients<ACTIVATION>(upstream, value, gate, (Acc)p.parameter, of_gate);
#pragma unroll
                for (int j = 0; j < TOGETHER; j++)
                    v[VALUE][i + j] = times_activation<ACTIVATION>(upstream[j], gate[j], (Acc)p.parameter);
                memcpy(v[GATE] + i, of_gate, sizeof of_gate);
            }
        } else {
            differentiate((Acc)p.parameter, aside, v);
        }
    }
}

// v: HALVES_IN runs of the product go in, HALVES_OUT of the result come out.
__device__ inline void epilogue(const gpi__epilogue_params &p, Epilogue_state &state, const Of_columns &of,
                                const Saved &saved, long long item, long long row, long long column, int valid,
                                Acc (&v)[HALVES][RUN]) {
#if GEMMEPI_FORMULA
#pragma unroll
    for (int half = 0; half < HALVES_IN; half++)
        finish_product(p, state, of, half, item, row, IN_GROUPS ? column_of_half<HALVES_IN>(p, column, half) : column + half * p.n,
                       valid_of_half<HALVES_IN>(valid, half), v[half]);
    if constexpr (HALVES_IN == 2)
        regroup<false>(v);
    apply_formula(p, state, of, saved, {item, row, column, valid}, v);
#else
    Acc row_factor = 0;
    if (GEMMEPI_ROW_FACTOR && valid > 0) // on its way while the rest is computed
        row_factor = (Acc)p.row_factor.data[item * p.row_factor.stride + row];
#pragma unroll
    for (int half = 0; half < HALVES_IN; half++)
        finish_product(p, state, of, half, item, row, column + half * p.n, valid, v[half]);
    if constexpr (BACKWARD) {
        apply_derivative(p, state, saved, v);
    } else if constexpr (GATED) {
        multiply_halves((Acc)p.parameter, v);
    } else {
#pragma unroll
        for (int i = 0; i < RUN; i++)
            v[0][i] = activate_finished((Acc)p.parameter, v[0][i]);
    }
    if (GEMMEPI_ROW_FACTOR)
#pragma unroll
        for (int i = 0; i < HALVES_OUT * RUN; i++)
            v[i / RUN][i % RUN] = product(v[i / RUN][i % RUN], row_factor);
    if (HAS_RESIDUAL)
#pragma unroll
        for (int half = 0; half < HALVES_OUT; half++) {
            Acc other[RUN];
#if GEMMEPI_BRINGS
            to_accs(saved.residual[half], other);
#else
            if constexpr (LOADS_RESIDUAL)
                to_accs(unstage_run<GEMMEPI_RESIDUAL_TYPE>(state.loaded_residual[half]), other);
            else
                load<GEMMEPI_RESIDUAL_TYPE>(p.residual, item, row, column_of_half<HALVES_OUT>(p, column, half), valid, other);
#endif
            add_residual(state.scale_residual, other, v[half]);
        }
#endif
}

// Of what the epilogue left: amax_d, and D.
__device__ inline void store_result(const gpi__epilogue_params &p, Epilogue_state &state, long long item,
                                    long long row, long long column, int valid, const Acc (&v)[HALVES][RUN]) {
    Acc scaled[HALVES_OUT][RUN];
#pragma unroll
    for (int half = 0; half < HALVES_OUT; half++) {
        if (AMAX_D)
            keep_largest_of_run(v[half], valid, state.largest_d);
#pragma unroll
        for (int i = 0; i < RUN; i++)
            scaled[half][i] = SCALES_D ? product(v[half][i], state.scale_d) : v[half][i];
    }
    if (GEMMEPI_STORES_D)
        store_halves<GEMMEPI_D_TYPE, STAGES_D>(p, p.d, state.staged_d, item, row, column, valid, scaled);
}

// After a thread's last run; every thread of a warp takes part.
__device__ inline void end_epilogue(const gpi__epilogue_params &p, const Epilogue_state &state) {
    if (AMAX_D)
        store_largest(p.amax_d, state.largest_d);
    if (AMAX_AUX)
        store_largest(p.amax_aux, state.largest_aux);
}
