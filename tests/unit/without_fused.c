/* Neither kernel of the route fused. */
#define GEMMEPI_NO_SM80
#define GEMMEPI_NO_SM90
#include "left_out.h"
