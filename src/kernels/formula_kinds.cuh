// Kinds of a formula's operands, as gemmepi_operand_kind numbers them, and reductions, as its table names them.
#pragma once

namespace kind {
enum { NUMBER = 1, SCALAR, PER_ROW, PER_COLUMN, FULL };
}
namespace reduction { // as a formula's table names them
enum { none, row_sum, row_max, row_logsumexp, row_argmax, column_sum, column_max, column_logsumexp, column_argmax, all_sum, all_max };
}
