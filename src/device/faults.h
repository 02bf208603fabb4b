/* What kernels find wrong in lists that only the device can read: a few numbers in memory of the host's that the device reaches, looked at by
   later calls. There from a context's first grouped plan on. */
#ifndef GEMMEPI_DEVICE_FAULTS_H
#define GEMMEPI_DEVICE_FAULTS_H

#include "../base/fault.h"
#include "context.h"

/* Of each list, as gpi__fault in kernels/params.h has them. */
enum { GPI__FAULT_IS_SET, GPI__FAULT_AT, GPI__FAULT_VALUE, GPI__FAULT_BESIDE, GPI__FAULT_NUMBERS };

/* With build_lock held, the primary context current. */
static gemmepi_status gpi__make_faults(gemmepi_context *context) {
    const size_t size = sizeof(int) * GPI__LISTS * GPI__FAULT_NUMBERS;
    void *faults = NULL;
    int result;
    if (gpi__load_pointer(&context->faults))
        return GEMMEPI_OK;
    result = context->driver.mem_host_alloc(&faults, size,
                                            GPI__CU_MEMHOSTALLOC_PORTABLE | GPI__CU_MEMHOSTALLOC_DEVICEMAP);
    if (result)
        return gpi__cuda_failed(&context->driver, result, "allocating memory that device and host share");
    memset(faults, 0, size);
    gpi__publish_pointer(&context->faults, faults);
    return GEMMEPI_OK;
}

/* The sentence about a run that has found something wrong since the last call, once. */
static gemmepi_status gpi__fetch_fault(gemmepi_context *context) {
    volatile int *faults = (volatile int *)gpi__load_pointer(&context->faults);
    int list, at, value, beside, is_set;
    for (list = 0; faults && list < GPI__LISTS; list++, faults += GPI__FAULT_NUMBERS) {
        if (!faults[GPI__FAULT_IS_SET])
            continue;
        gpi__lock(&context->lock);
        is_set = faults[GPI__FAULT_IS_SET];
        at = faults[GPI__FAULT_AT];
        value = faults[GPI__FAULT_VALUE];
        beside = faults[GPI__FAULT_BESIDE];
        faults[GPI__FAULT_IS_SET] = 0;
        gpi__unlock(&context->lock);
        if (is_set)
            return gpi__refuse_list(list, at, value, beside);
    }
    return GEMMEPI_OK;
}

#endif
