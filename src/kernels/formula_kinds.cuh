// Kinds of a formula's operands, as gemmepi_operand_kind numbers them, and reductions, as its table names them.
#pragma once
#include "types.cuh"

namespace kind {
enum { NUMBER = 1, SCALAR, PER_ROW, PER_COLUMN, FULL, BLOCKED };
}
namespace reduction { // as a formula's table names them
enum { none, row_sum, row_max, row_logsumexp, row_argmax, column_sum, column_max, column_logsumexp, column_argmax, all_sum, all_max, row_min, column_min };
}
// Those that a kernel's epilogue adds up column by column, and of them those that are largest numbers; the others are of rows, or not inside.
__device__ constexpr bool is_largest(int which) {
    return which == reduction::column_max || which == reduction::all_max || which == reduction::column_min;
}
// The smallest number is that of negatives, which is negated in the end.
__device__ constexpr bool is_of_negatives(int which) {
    return which == reduction::row_min || which == reduction::column_min;
}
__device__ constexpr bool is_of_columns(int which) {
    return which == reduction::column_sum || which == reduction::all_sum || is_largest(which);
}
__device__ constexpr int of_rows(int which) { // none: it is not
    return is_of_columns(which) ? reduction::none : which;
}

// What an operand's elements become: whole numbers stay such.
template <class Type, class Acc> __device__ inline auto taken_as() {
    if constexpr (SAME<Type, I32> || SAME<Type, long long>)
        return Type();
    else
        return Acc();
}
