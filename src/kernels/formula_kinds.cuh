// Kinds of a formula's operands, as its table names them and gemmepi_operand_kind numbers them.
#pragma once

namespace kind {
enum { NUMBER = 1, SCALAR, PER_ROW, PER_COLUMN, FULL };
}
