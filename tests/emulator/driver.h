// The CUDA driver's functions: one GPU or more, whose memory is the host's and whose launches have ended when they return.
#ifndef EMULATOR_DRIVER_H
#define EMULATOR_DRIVER_H

#include "decode.h"

#include "../../src/cuda/driver.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

static int setting(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static int arch() {
    static const int set = setting("EMULATOR_ARCH", 90);
    return set;
}

static int gpus() {
    static const int set = std::min(setting("EMULATOR_GPUS", 1), 16);
    return set;
}

static gpi__cu_result refuse(const char *what) {
    fprintf(stderr, "emulator: %s\n", what);
    return GPI__CUDA_ERROR_INVALID_VALUE;
}

EXPORTED int cuInit(unsigned) {
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuDriverGetVersion(int *version) {
    *version = 13000;
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuDeviceGet(int *gpu, int ordinal) {
    *gpu = ordinal;
    return ordinal >= gpus() ? GPI__CUDA_ERROR_INVALID_DEVICE : GPI__CUDA_SUCCESS;
}
EXPORTED int cuDeviceGetCount(int *count) {
    *count = gpus();
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuDeviceGetName(char *name, int size, int) {
    snprintf(name, (size_t)size, "emulated %d.%d", arch() / 10, arch() % 10);
    return GPI__CUDA_SUCCESS;
}
static int largest_shared() { // of a block; CUDA C++ Programming Guide, compute capabilities
    switch (arch()) {
    case 75:
        return 64 << 10;
    case 86:
    case 89:
    case 120:
    case 121:
        return 99 << 10;
    case 80:
    case 87:
        return 163 << 10;
    }
    return arch() < 75 ? 48 << 10 : 227 << 10;
}
EXPORTED int cuDeviceGetAttribute(int *value, int attribute, int) {
    switch (attribute) {
    case GPI__CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = setting("EMULATOR_PROCESSORS", 4);
        return GPI__CUDA_SUCCESS;
    case GPI__CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        *value = 4 << 20;
        return GPI__CUDA_SUCCESS;
    case GPI__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = arch() / 10;
        return GPI__CUDA_SUCCESS;
    case GPI__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = arch() % 10;
        return GPI__CUDA_SUCCESS;
    case GPI__CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
    case GPI__CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: // it does not say
    case GPI__CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
        *value = 0;
        return GPI__CUDA_SUCCESS;
    case GPI__CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = largest_shared();
        return GPI__CUDA_SUCCESS;
    }
    return refuse("an attribute of the device that is not known");
}

// >>contexts and streams: each GPU has one context, and nothing waits

static thread_local std::vector<gpi__cu_context> current_contexts;
static char places[16]; // of contexts, by GPU

EXPORTED int cuDeviceCanAccessPeer(int *can, int, int) {
    *can = 1;
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuDevicePrimaryCtxRetain(gpi__cu_context *context, int gpu) {
    *context = (gpi__cu_context)&places[gpu];
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuDevicePrimaryCtxRelease_v2(int) {
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuCtxGetCurrent(gpi__cu_context *context) {
    *context = current_contexts.empty() ? NULL : current_contexts.back();
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuCtxSetCurrent(gpi__cu_context context) {
    if (!current_contexts.empty())
        current_contexts.pop_back();
    if (context)
        current_contexts.push_back(context);
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuCtxPushCurrent_v2(gpi__cu_context context) {
    current_contexts.push_back(context);
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuCtxPopCurrent_v2(gpi__cu_context *context) {
    if (current_contexts.empty())
        return GPI__CUDA_ERROR_INVALID_CONTEXT;
    if (context)
        *context = current_contexts.back();
    current_contexts.pop_back();
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuCtxGetDevice(int *gpu) {
    if (current_contexts.empty())
        return GPI__CUDA_ERROR_INVALID_CONTEXT;
    *gpu = (int)((char *)current_contexts.back() - places);
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuCtxSynchronize() {
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuStreamCreate(gpi__cu_stream *stream, unsigned) {
    *stream = (gpi__cu_stream)malloc(1);
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    *least = 0, *greatest = -5;
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuStreamCreateWithPriority(gpi__cu_stream *stream, unsigned flags, int) {
    return cuStreamCreate(stream, flags);
}
EXPORTED int cuStreamQuery(gpi__cu_stream) {
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuStreamWaitEvent(gpi__cu_stream, void *, unsigned) {
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuStreamDestroy_v2(gpi__cu_stream stream) {
    free((void *)stream);
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuStreamSynchronize(gpi__cu_stream) {
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuPointerGetAttribute(void *value, int, uint64_t) {
    *static_cast<unsigned *>(value) = 2; // CU_MEMORYTYPE_DEVICE
    return 0;
}
EXPORTED int cuStreamIsCapturing(gpi__cu_stream, int *status) {
    *status = GPI__CU_STREAM_CAPTURE_STATUS_NONE;
    return GPI__CUDA_SUCCESS;
}
// Nothing is captured here, and nothing takes time that means something.
constexpr int ERROR_NOT_SUPPORTED = 801;
EXPORTED int cuStreamBeginCapture_v2(gpi__cu_stream, int) {
    return ERROR_NOT_SUPPORTED;
}
EXPORTED int cuStreamEndCapture(gpi__cu_stream, void **) {
    return ERROR_NOT_SUPPORTED;
}
EXPORTED int cuGraphInstantiateWithFlags(void **, void *, unsigned long long) {
    return ERROR_NOT_SUPPORTED;
}
EXPORTED int cuGraphLaunch(void *, gpi__cu_stream) {
    return ERROR_NOT_SUPPORTED;
}
EXPORTED int cuGraphExecDestroy(void *) {
    return ERROR_NOT_SUPPORTED;
}
EXPORTED int cuGraphDestroy(void *) {
    return ERROR_NOT_SUPPORTED;
}
EXPORTED int cuEventCreate(void **event, unsigned) {
    *event = malloc(1);
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuEventDestroy_v2(void *event) {
    free(event);
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuEventRecord(void *, gpi__cu_stream) {
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuEventSynchronize(void *) {
    return ERROR_NOT_SUPPORTED;
}
EXPORTED int cuEventElapsedTime(float *, void *, void *) {
    return ERROR_NOT_SUPPORTED;
}
EXPORTED int cuThreadExchangeStreamCaptureMode(int *) {
    return GPI__CUDA_SUCCESS;
}

// >>memory

EXPORTED int cuMemAlloc_v2(gpi__cu_deviceptr *pointer, size_t size) {
    *pointer = device.allocate(size);
    return *pointer ? GPI__CUDA_SUCCESS : GPI__CUDA_ERROR_OUT_OF_MEMORY;
}
EXPORTED int cuMemFree_v2(gpi__cu_deviceptr pointer) {
    return device.release(pointer) ? GPI__CUDA_SUCCESS : refuse("memory that is not allocated is freed");
}
EXPORTED int cuMemHostAlloc(void **pointer, size_t size, unsigned) {
    *pointer = (void *)device.allocate(size);
    return *pointer ? GPI__CUDA_SUCCESS : GPI__CUDA_ERROR_OUT_OF_MEMORY;
}
EXPORTED int cuMemFreeHost(void *pointer) {
    return cuMemFree_v2((gpi__cu_deviceptr)pointer);
}
static bool has(gpi__cu_deviceptr from, size_t size) {
    return size == 0 || device.find(from, size);
}
EXPORTED int cuMemcpyHtoDAsync_v2(gpi__cu_deviceptr to, const void *from, size_t size, gpi__cu_stream) {
    if (!has(to, size))
        return refuse("a copy to memory that is not allocated");
    memcpy((void *)to, from, size);
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuMemcpyDtoHAsync_v2(void *to, gpi__cu_deviceptr from, size_t size, gpi__cu_stream) {
    if (!has(from, size))
        return refuse("a copy from memory that is not allocated");
    memcpy(to, (const void *)from, size);
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuMemsetD8Async(gpi__cu_deviceptr to, unsigned char value, size_t size, gpi__cu_stream) {
    if (!has(to, size))
        return refuse("memory that is not allocated is set");
    memset((void *)to, value, size);
    return GPI__CUDA_SUCCESS;
}

// >>modules and launches

EXPORTED int cuModuleLoadData(gpi__cu_module *module, const void *image) {
    try {
        std::string text((const char *)image);
        parser of(text);
        of.parse();
        *module = (gpi__cu_module) new std::vector<program>(of.kernels);
        return GPI__CUDA_SUCCESS;
    } catch (const std::exception &error) {
        fprintf(stderr, "emulator: %s\n", error.what());
        return GPI__CUDA_ERROR_INVALID_IMAGE;
    }
}
EXPORTED int cuModuleUnload(gpi__cu_module module) {
    delete (std::vector<program> *)module;
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuModuleGetFunction(gpi__cu_function *function, gpi__cu_module module, const char *name) {
    for (program &kernel : *(std::vector<program> *)module)
        if (kernel.name == name) {
            *function = (gpi__cu_function)&kernel;
            return GPI__CUDA_SUCCESS;
        }
    return GPI__CUDA_ERROR_NOT_FOUND;
}
EXPORTED int cuFuncSetAttribute(gpi__cu_function, int attribute, int value) {
    return attribute == GPI__CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value <= largest_shared()
               ? GPI__CUDA_SUCCESS
               : refuse("an attribute of a kernel that it cannot have");
}

enum { CUDA_ERROR_LAUNCH_FAILED = 719 };

static int run_kernel(const program &runs, u32 grid, u32 block_x, u32 block_y, u32 shared_size,
                      void **parameters) {
    static std::mutex one_at_a_time;
    static u64 random = (u64)setting("EMULATOR_SEED", 1);
    std::lock_guard<std::mutex> hold(one_at_a_time);
    launch of = {&runs, grid, block_x, block_y, shared_size, std::vector<u8>(), NULL, random};
    cluster blocks;
    if (grid % runs.cluster || block_x * block_y > (runs.threads ? runs.threads : 1024) ||
        runs.dynamic_begin() + shared_size > (u32)largest_shared())
        return refuse("a launch that the kernel is not for");
    of.parameters.resize(runs.parameter_bytes + 64);
    of.parameters_at = (u8 *)(((u64)of.parameters.data() + 63) / 64 * 64);
    memcpy(of.parameters_at, parameters[0], runs.parameter_bytes);
    blocks.of = &of;
    try {
        for (u32 first = 0; first < grid; first += runs.cluster)
            blocks.run(first);
    } catch (const std::exception &error) {
        fprintf(stderr, "emulator: %s: %s\n", runs.name.c_str(), error.what());
        return CUDA_ERROR_LAUNCH_FAILED;
    }
    random = of.random;
    return GPI__CUDA_SUCCESS;
}

EXPORTED int cuLaunchKernel(gpi__cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_size,
                            gpi__cu_stream, void **parameters, void **) {
    if (!grid_x || !block_x || !block_y || grid_y != 1 || grid_z != 1 || block_z != 1)
        return refuse("a launch of no size, or of one in z");
    return run_kernel(*(const program *)function, grid_x, block_x, block_y, shared_size, parameters);
}
EXPORTED int cuLaunchKernelEx(const gpi__cu_launch_config *config, gpi__cu_function function,
                              void **parameters, void **extra) {
    return cuLaunchKernel(function, config->grid_x, config->grid_y, config->grid_z, config->block_x,
                          config->block_y, config->block_z, config->shared_size, config->stream, parameters,
                          extra);
}

EXPORTED int cuTensorMapEncodeTiled(gpi__cu_tensor_map *to, int type, uint32_t rank, void *address,
                                    const uint64_t *extents, const uint64_t *strides, const uint32_t *box,
                                    const uint32_t *steps, int interleave, int swizzle, int, int fill) {
    tensor_map map = tensor_map();
    map.bytes = type == GPI__CU_TENSOR_MAP_DATA_TYPE_FLOAT16 || type == GPI__CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                    ? 2
                : type == GPI__CU_TENSOR_MAP_DATA_TYPE_FLOAT32 ? 4
                : type == GPI__CU_TENSOR_MAP_DATA_TYPE_UINT8   ? 1
                                                               : 0;
    if (!map.bytes || rank < 1 || rank > tensor_map::DIMENSIONS ||
        interleave != GPI__CU_TENSOR_MAP_INTERLEAVE_NONE || fill != GPI__CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE ||
        (u64)address % 16)
        return refuse("a tensor map of a kind that is not known");
    map.address = (u64)address;
    map.rank = (u8)rank;
    map.swizzle = (u8)(swizzle ? 16 << swizzle : 0); /* 1 to 3: of 32, 64 and 128 bytes */
    map.mark = tensor_map::MARK;
    for (uint32_t i = 0; i < rank; i++) {
        map.extents[i] = extents[i];
        map.box[i] = (u16)box[i];
        if (i)
            map.strides[i - 1] = strides[i - 1];
        if (!extents[i] || extents[i] > (u64)1 << 32 || !box[i] || box[i] > 256 || steps[i] != 1 ||
            (i && (strides[i - 1] % 16 || strides[i - 1] >= (u64)1 << 40)))
            return refuse("a tensor map of a size that is not allowed");
    }
    if (map.box[0] * map.bytes % 16 || (map.swizzle && map.box[0] * map.bytes > map.swizzle))
        return refuse("a tensor map whose box is not allowed");
    memset(to, 0, sizeof *to);
    memcpy(to, &map, sizeof map);
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuTensorMapReplaceAddress(gpi__cu_tensor_map *to, void *address) {
    tensor_map map;
    memcpy(&map, to, sizeof map);
    if (map.mark != tensor_map::MARK || (u64)address % 16)
        return refuse("an address for what is no tensor map, or not at a multiple of 16");
    map.address = (u64)address;
    memcpy(to, &map, sizeof map);
    return GPI__CUDA_SUCCESS;
}

EXPORTED int cuGetErrorName(int error, const char **name) {
    *name = error == CUDA_ERROR_LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED" : "an error of the emulator";
    return GPI__CUDA_SUCCESS;
}
EXPORTED int cuGetErrorString(int, const char **text) {
    *text = "see what the emulator said";
    return GPI__CUDA_SUCCESS;
}

#endif
