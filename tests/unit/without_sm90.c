/* The kernel for Ampere and later alone. */
#define GEMMEPI_NO_SM90
#include "left_out.h"
