/* What kernels find wrong in lists that only the device can read: a few numbers in memory of the host's that the device reaches, looked at by
   later calls. There from a context's first grouped plan on. */
#ifndef GEMMEPI_DEVICE_FAULTS_H
#define GEMMEPI_DEVICE_FAULTS_H

#include "../base/fault.h"
#include "context.h"

/* Of each list, as gemmepi__fault in kernels/params.h has them. */
enum {
    GEMMEPI__FAULT_IS_SET,
    GEMMEPI__FAULT_AT,
    GEMMEPI__FAULT_VALUE,
    GEMMEPI__FAULT_BESIDE,
    GEMMEPI__FAULT_NUMBERS
};

/* With build_lock held, the primary context current. */
static gemmepi_status gemmepi__make_faults(gemmepi_context *context) {
    const size_t size = sizeof(int) * GEMMEPI__LISTS * GEMMEPI__FAULT_NUMBERS;
    void *faults = NULL;
    int result;
    if (gemmepi__load_pointer(&context->faults))
        return GEMMEPI_OK;
    result = context->driver.mem_host_alloc(
        &faults, size, GEMMEPI__CU_MEMHOSTALLOC_PORTABLE | GEMMEPI__CU_MEMHOSTALLOC_DEVICEMAP);
    if (result)
        return gemmepi__cuda_failed(&context->driver, result, "allocating memory that device and host share");
    memset(faults, 0, size);
    gemmepi__publish_pointer(&context->faults, faults);
    return GEMMEPI_OK;
}

/* The sentence about a run that has found something wrong since the last call, once. */
static gemmepi_status gemmepi__take_fault(gemmepi_context *context) {
    volatile int *faults = (volatile int *)gemmepi__load_pointer(&context->faults);
    int list, at, value, beside, is_set;
    for (list = 0; faults && list < GEMMEPI__LISTS; list++, faults += GEMMEPI__FAULT_NUMBERS) {
        if (!faults[GEMMEPI__FAULT_IS_SET])
            continue;
        gemmepi__lock(&context->lock);
        is_set = faults[GEMMEPI__FAULT_IS_SET];
        at = faults[GEMMEPI__FAULT_AT];
        value = faults[GEMMEPI__FAULT_VALUE];
        beside = faults[GEMMEPI__FAULT_BESIDE];
        faults[GEMMEPI__FAULT_IS_SET] = 0;
        gemmepi__unlock(&context->lock);
        if (is_set)
            return gemmepi__refuse_list(list, at, value, beside);
    }
    return GEMMEPI_OK;
}

#endif
