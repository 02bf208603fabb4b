/* Hopper's kernel alone. */
#define GEMMEPI_NO_SM80
#include "left_out.h"
