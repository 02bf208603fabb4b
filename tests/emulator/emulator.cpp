// A CUDA driver, NVRTC and cuBLASLt on the host, in one library under their three names: kernels are compiled to PTX by
// the NVRTC that EMULATOR_NVRTC names, and run by machine.h. tests/emulator/run.sh builds it and runs tests on it.
//
// What it finds: wrong results on any architecture that NVRTC compiles for; addresses out of bounds or misaligned; barriers
// and exchanges that not all reach; waits that are missing between warps and what runs beside them, because copies arrive
// and products happen as late or as early as they may; ordinary stores that TMA or wgmma reads without a fence. What it
// cannot: whatever takes ptxas or the chip (registers, speed), order between launches, or the order of memory between warps.
//
//   EMULATOR_ARCH        compute capability, 90 by default
//   EMULATOR_PROCESSORS  multiprocessors, 4 by default
//   EMULATOR_GPUS        1 by default, 16 at most; what one has allocated the others reach, too
//   EMULATOR_ANY_MEMORY  where it is set, all of the host's memory counts as the device's, which nothing checks then
//   EMULATOR_SEED        of what chance decides: the order of warps, when copies arrive
#include "compiler.h"
#include "products.h"
