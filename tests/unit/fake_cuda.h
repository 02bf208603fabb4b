/* A GPU that is not there: config.resolve_symbol gives the library a driver, an NVRTC and a cuBLASLt made of the small
   functions below, which keep books and fail on demand. So what happens on a machine with a GPU when something fails,
   or when nothing does, is tested on one without.

   No fake computes anything: memory is malloc's, a launch is a number that goes up. */
#ifndef GEMMEPI_TESTS_FAKE_CUDA_H
#define GEMMEPI_TESTS_FAKE_CUDA_H

#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.in.h"

#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

/* >>books */

#define DEVICE_ARCH 90

static gpi__cu_context const primary =
    (gpi__cu_context)(uintptr_t)0x1000; /* of the first GPU, see primary_of */
static gpi__cu_context const callers_own = (gpi__cu_context)(uintptr_t)0x2000;

/* A launch, with the parameters of its kernel as they are handed over. */
typedef struct fake_launch {
    const char *entry;
    const void *params;
    unsigned grid, block_x, block_y, shared;
    int program; /* its kernel's place among all that were compiled */
} fake_launch;

/* What cublasLtMatmul was called with: hashes of what its descriptors were told. */
typedef struct fake_product {
    uint64_t described, layouts[4];
    const void *pointers[4], *workspace;
    float alpha, beta;
    size_t workspace_size;
} fake_product;

static struct {
    /* what is to go wrong */
    const char *fails; /* the function of this name returns fail_code */
    int fail_code;
    long spared;             /* so many calls of it succeed first */
    long fails_at;           /* the so-manyth call of all that may fail returns fail_code; 0: none */
    const char *failed_call; /* its function, once it has been made */
    const char *missing;     /* the resolver has no function of this name, or no library */
    size_t largest_block;    /* that there is device memory for; 0: any */
    int is_untouched;        /* addresses stand for memory that is not there */
    int device_count;
    int is_capturing;
    int heuristic_answers;
    gpi__lt_algorithm algorithms[32]; /* of the answers, in order; id 0: 100, 101, ... */
    int other_cublaslt;               /* its version; 0: 130100 */
    int lt_multiprocessors;           /* that cuBLASLt is to count on; 0: it was not told */
    int lt_aux_type;                  /* -1: it was not told */
    size_t lt_workspace;
    float lt_waves;      /* of each answer */
    int wrong_algorithm; /* changes the first numbers of D, in these bits: */
    unsigned char wrong_bits[4];
    long refusals; /* so many calls of cublasLtMatmul return refusal; negative: all */
    int refusal;
    int refuses_epilogues; /* calls with an epilogue return refusal */
    int refuses_fast;      /* there is no answer with fast accumulation */
    int archs_are_newer;   /* NVRTC knows newer architectures alone */
    int other_arch;        /* the chip's; 0: DEVICE_ARCH */
    int multiprocessors;   /* 0: 132 */
    int newest_target;     /* of NVRTC's; 0: the chip's architecture */
    int other_nvrtc;       /* NVRTC's version, 124 for 12.4; 0: 13.0 */
    int serialises_wgmma;  /* ptxas says so of every kernel */
    int memory_is_unknown; /* the driver gives 0 for its clock and width */
    const void *unknown;   /* host memory that CUDA does not know, and the device cannot reach */
    const void *short_one; /* memory of one byte; where any other ends is not known */
    long meeting;          /* a compilation waits until so many are under way, or some time: */
    long patience;         /* looks; 0: many */
    /* what happened */
    long calls; /* of functions that may fail */
    long retained, released;
    long streams;
    long device_blocks, device_allocations;
    size_t device_bytes; /* ever allocated */
    long modules, functions_taken;
    long lt_handles, heuristics, products, launches, copies, memsets;
    const float *last_alpha, *last_beta; /* that cublasLtMatmul was given */
    char last_kernel[200];               /* the name asked for, and the source compiled last */
    char last_source[4096];
    gpi__sm90_params last_fused; /* that gemmepi_fused was */
    long for_sm_90a;             /* compilations */
    long as_written;             /* likewise, that join no products and sums */
    long overlapping;            /* launches that may begin before those ahead of them end */
    unsigned last_shared;
    long lt_calls;    /* also those that failed */
    long lt_nowhere;  /* of them those whose result goes to NULL */
    int epilogues[8]; /* of the first calls of cublasLtMatmul */
    long compilations, programs, archs_told, archs_spared;
    long created;        /* programs, ever */
    long compiling, met; /* now; and most at a time */
    long wrong_context,
        spoiled_captures; /* calls that need the primary context to be current, and found another */
    long asked_cuda, asked_nvrtc, asked_lt;
    void *last_workspace;
    size_t last_workspace_size;
    unsigned last_grid;
    /* how long things take: see cuStreamBeginCapture_v2 */
    double launch_time, product_time, answer_time; /* the last for each answer before it */
    double now, captured;
    int captures;
    long graphs, events;
    long frees, frees_at_capture,
        stale_launches; /* graphs launched after memory was freed that they may have captured */
    /* what each launch is shown to, if to anything */
    void (*watch)(const fake_launch *launch);
    void (*reads)(const char *file, const char *source);              /* and each source that is compiled */
    void (*multiplies)(const fake_product *product);                  /* and each product of cuBLASLt's */
    void (*clears)(const void *to, unsigned char value, size_t size); /* and each memory that is set */
} gpu;

static __thread gpi__cu_context stack[16];
static __thread int depth;
static __thread int capture_mode;
static __thread int only_gpu = -1; /* whose context this thread's calls need to be current; -1: any GPU's */

static gpi__cu_context primary_of(int ordinal) {
    return (gpi__cu_context)((char *)(uintptr_t)primary + ordinal);
}
static int is_primary(gpi__cu_context context) {
    return (uintptr_t)context - (uintptr_t)primary < (uintptr_t)gpu.device_count;
}

/* Everything as it is when a machine has one GPU and all is well. */
static void plug_in(void) {
    memset(&gpu, 0, sizeof gpu);
    gpu.device_count = 1;
    gpu.heuristic_answers = 1;
    gpu.lt_workspace = 4096;
    gpu.refusal = GPI__CUBLAS_STATUS_NOT_SUPPORTED;
    stack[0] = NULL;
    depth = 0;
    capture_mode = 0;
}

static void break_function(const char *name, int code) {
    gpu.fails = name;
    gpu.fail_code = code;
    gpu.spared = 0;
}

/* The books order no threads: what a sanitizer sees of the library's own locks is all that there is. */
static long book(long *counter, long amount) {
    return __atomic_add_fetch(counter, amount, __ATOMIC_RELAXED);
}
static void count(long *counter, long amount) {
    book(counter, amount);
}
static void copy_to_book(void *to, const void *from, size_t size) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    memcpy(to, from, size);
    pthread_mutex_unlock(&lock);
}

/* The last byte of the book is 0, and stays so. */
static void copy_text(char *to, size_t size, const char *from) {
    size_t length = strlen(from);
    copy_to_book(to, from, length < size ? length + 1 : size - 1);
}

/* Asked once in each call of a function that may fail. */
static int broken(const char *name) {
    if (book(&gpu.calls, 1) == gpu.fails_at) {
        gpu.failed_call = name;
        return gpu.fail_code;
    }
    if (!gpu.fails || strcmp(gpu.fails, name) != 0)
        return 0;
    if (gpu.spared > 0) {
        gpu.spared--;
        return 0;
    }
    return gpu.fail_code;
}

static void needs_context(void) {
    if (only_gpu < 0 ? !is_primary(stack[depth]) : stack[depth] != primary_of(only_gpu))
        count(&gpu.wrong_context, 1);
}
/* What a capture of another thread must not be spoiled by. */
static void needs_relaxed_capture(void) {
    needs_context();
    count(&gpu.spoiled_captures, capture_mode != GPI__CU_STREAM_CAPTURE_MODE_RELAXED);
}

/* What is slow on a real machine lets the other threads go on here too. */
static void take_time(void) {
    int i;
    for (i = 0; i < 50; i++)
        sched_yield();
}

/* A compilation: it goes on once as many as are to meet are under way, but does not wait for ever. */
static void meet(void) {
    long here = gpi__add(&gpu.compiling, 1), patience = gpu.patience ? gpu.patience : 20000000;
    long met = __atomic_load_n(&gpu.met, __ATOMIC_ACQUIRE);
    while (here > met &&
           !__atomic_compare_exchange_n(&gpu.met, &met, here, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        continue;
    take_time();
    while (__atomic_load_n(&gpu.met, __ATOMIC_ACQUIRE) < gpu.meeting && patience-- > 0)
        sched_yield();
    count(&gpu.compiling, -1);
}

/* >>the driver */

#define FAKE(name) static int GPI__CUDA_CALL fake_##name
#define BREAKS(name)                \
    do {                            \
        int broken_ = broken(name); \
        if (broken_)                \
            return broken_;         \
    } while (0)

FAKE(cuInit)(unsigned flags) {
    (void)flags;
    return broken("cuInit");
}
FAKE(cuDriverGetVersion)(int *version) {
    *version = 13000;
    return broken("cuDriverGetVersion");
}
FAKE(cuDeviceGet)(gpi__cu_device *device, int ordinal) {
    *device = 7 + ordinal;
    return broken("cuDeviceGet");
}
FAKE(cuDeviceGetCount)(int *devices) {
    *devices = gpu.device_count;
    return broken("cuDeviceGetCount");
}
FAKE(cuDeviceGetName)(char *name, int size, gpi__cu_device device) {
    snprintf(name, (size_t)size, "fake %d", device);
    return broken("cuDeviceGetName");
}
static int device_arch(void) {
    return gpu.other_arch ? gpu.other_arch : DEVICE_ARCH;
}
FAKE(cuDeviceGetAttribute)(int *value, int attribute, gpi__cu_device device) {
    (void)device;
    *value = attribute == GPI__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? device_arch() / 10
             : attribute == GPI__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? device_arch() % 10
             : attribute == GPI__CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS   ? 0
             : attribute == GPI__CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE
                 ? (gpu.memory_is_unknown ? 0 : 2619000) /* an H100's */
             : attribute == GPI__CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH
                 ? (gpu.memory_is_unknown ? 0 : 5120)
             : gpu.multiprocessors ? gpu.multiprocessors
                                   : 132;
    return broken("cuDeviceGetAttribute");
}
FAKE(cuDevicePrimaryCtxRetain)(gpi__cu_context *context, gpi__cu_device device) {
    *context = primary_of(device - 7); /* whatever stands there after a failure must not be used */
    BREAKS("cuDevicePrimaryCtxRetain");
    count(&gpu.retained, 1);
    return 0;
}
FAKE(cuDevicePrimaryCtxRelease_v2)(gpi__cu_device device) {
    (void)device;
    count(&gpu.released, 1);
    return broken("cuDevicePrimaryCtxRelease_v2");
}
FAKE(cuCtxGetCurrent)(gpi__cu_context *context) {
    BREAKS("cuCtxGetCurrent");
    *context = stack[depth];
    return 0;
}
FAKE(cuCtxSetCurrent)(gpi__cu_context context) {
    BREAKS("cuCtxSetCurrent");
    stack[depth] = context;
    return 0;
}
FAKE(cuCtxPushCurrent_v2)(gpi__cu_context context) {
    BREAKS("cuCtxPushCurrent_v2");
    stack[++depth] = context;
    return 0;
}
FAKE(cuCtxPopCurrent_v2)(gpi__cu_context *context) {
    *context = stack[depth--];
    return broken("cuCtxPopCurrent_v2");
}
FAKE(cuCtxGetDevice)(gpi__cu_device *device) {
    BREAKS("cuCtxGetDevice");
    *device = 7;
    return 0;
}
FAKE(cuCtxSynchronize)(void) {
    needs_context();
    BREAKS("cuCtxSynchronize");
    return 0;
}
/* A multiple of 256 with malloc's pointer just before it. */
FAKE(cuMemAlloc_v2)(gpi__cu_deviceptr *pointer, size_t size) {
    char *block, *aligned;
    needs_relaxed_capture();
    BREAKS("cuMemAlloc_v2");
    if (gpu.largest_block && size > gpu.largest_block)
        return GPI__CUDA_ERROR_OUT_OF_MEMORY;
    block = (char *)malloc(size + 512);
    if (!block)
        return GPI__CUDA_ERROR_OUT_OF_MEMORY;
    aligned = block + 512 - (uintptr_t)block % 256;
    memcpy(aligned - sizeof block, &block, sizeof block);
    *pointer = (gpi__cu_deviceptr)(uintptr_t)aligned;
    count(&gpu.device_blocks, 1);
    count(&gpu.device_allocations, 1);
    __atomic_add_fetch(&gpu.device_bytes, size, __ATOMIC_RELAXED);
    return 0;
}
FAKE(cuMemFree_v2)(gpi__cu_deviceptr pointer) {
    char *block;
    needs_context();
    memcpy(&block, (char *)(uintptr_t)pointer - sizeof block, sizeof block);
    free(block);
    count(&gpu.device_blocks, -1);
    count(&gpu.frees, 1);
    return broken("cuMemFree_v2");
}
FAKE(cuMemHostAlloc)(void **pointer, size_t size, unsigned flags) {
    (void)flags;
    needs_context();
    BREAKS("cuMemHostAlloc");
    *pointer = malloc(size);
    if (!*pointer)
        return GPI__CUDA_ERROR_OUT_OF_MEMORY;
    count(&gpu.device_blocks, 1);
    return 0;
}
FAKE(cuMemFreeHost)(void *pointer) {
    needs_context();
    free(pointer);
    count(&gpu.device_blocks, -1);
    return broken("cuMemFreeHost");
}
FAKE(cuPointerGetAttribute)(void *value, int attribute, gpi__cu_deviceptr pointer) {
    const unsigned type = 2; /* the device's */
    needs_context();
    BREAKS("cuPointerGetAttribute");
    if (attribute != GPI__CU_POINTER_ATTRIBUTE_MEMORY_TYPE && gpu.short_one &&
        (const void *)(uintptr_t)pointer == gpu.short_one) {
        const size_t size = 1;
        if (attribute == GPI__CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
            memcpy(value, &pointer, sizeof pointer);
        else
            memcpy(value, &size, sizeof size);
        return 0;
    }
    if (attribute != GPI__CU_POINTER_ATTRIBUTE_MEMORY_TYPE || (const void *)(uintptr_t)pointer == gpu.unknown)
        return GPI__CUDA_ERROR_INVALID_VALUE;
    memcpy(value, &type, sizeof type);
    return 0;
}
FAKE(cuMemcpyHtoDAsync_v2)
(gpi__cu_deviceptr to, const void *from, size_t size, gpi__cu_stream stream) {
    (void)stream;
    needs_relaxed_capture();
    BREAKS("cuMemcpyHtoDAsync_v2");
    memcpy((void *)(uintptr_t)to, from, size);
    count(&gpu.copies, 1);
    return 0;
}
FAKE(cuMemcpyDtoHAsync_v2)(void *to, gpi__cu_deviceptr from, size_t size, gpi__cu_stream stream) {
    (void)stream;
    needs_relaxed_capture();
    BREAKS("cuMemcpyDtoHAsync_v2");
    memcpy(to, (void *)(uintptr_t)from, size);
    count(&gpu.copies, 1);
    return 0;
}
FAKE(cuMemsetD8Async)
(gpi__cu_deviceptr to, unsigned char value, size_t size, gpi__cu_stream stream) {
    (void)stream;
    needs_context();
    BREAKS("cuMemsetD8Async");
    if (!gpu.is_untouched)
        memset((void *)(uintptr_t)to, value, size);
    if (gpu.clears)
        gpu.clears((const void *)(uintptr_t)to, value, size);
    count(&gpu.memsets, 1);
    return 0;
}
FAKE(cuStreamCreate)(gpi__cu_stream *stream, unsigned flags) {
    (void)flags;
    needs_relaxed_capture();
    *stream = (gpi__cu_stream)(uintptr_t)0x5000;
    BREAKS("cuStreamCreate");
    count(&gpu.streams, 1);
    return 0;
}
FAKE(cuStreamDestroy_v2)(gpi__cu_stream stream) {
    (void)stream;
    needs_relaxed_capture();
    count(&gpu.streams, -1);
    return broken("cuStreamDestroy_v2");
}
FAKE(cuStreamSynchronize)(gpi__cu_stream stream) {
    (void)stream;
    needs_relaxed_capture();
    return broken("cuStreamSynchronize");
}
FAKE(cuStreamIsCapturing)(gpi__cu_stream stream, int *status) {
    BREAKS("cuStreamIsCapturing");
    if (stream == (gpi__cu_stream)(uintptr_t)GPI__CU_STREAM_LEGACY && gpu.is_capturing)
        return GPI__CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    *status = gpu.is_capturing;
    return 0;
}
/* Launches and products take gpu.launch_time and gpu.product_time microseconds of gpu.now, in a capture of the graph's. An event is
   what the clock showed. */
FAKE(cuStreamBeginCapture_v2)(gpi__cu_stream stream, int mode) {
    (void)stream, (void)mode;
    BREAKS("cuStreamBeginCapture_v2");
    gpu.captured = 0;
    gpu.captures = 1;
    if (!gpu.graphs)
        gpu.frees_at_capture = gpu.frees;
    return 0;
}
FAKE(cuStreamEndCapture)(gpi__cu_stream stream, gpi__cu_graph *graph) {
    double *cost = (double *)malloc(sizeof *cost);
    (void)stream;
    gpu.captures = 0;
    *cost = gpu.captured;
    *graph = (gpi__cu_graph)(void *)cost;
    count(&gpu.graphs, 1);
    return broken("cuStreamEndCapture");
}
FAKE(cuGraphInstantiateWithFlags)
(gpi__cu_graph_exec *exec, gpi__cu_graph graph, unsigned long long flags) {
    double *cost;
    (void)flags;
    BREAKS("cuGraphInstantiateWithFlags");
    cost = (double *)malloc(sizeof *cost);
    memcpy(cost, (void *)graph, sizeof *cost);
    *exec = (gpi__cu_graph_exec)(void *)cost;
    count(&gpu.graphs, 1);
    return 0;
}
FAKE(cuGraphLaunch)(gpi__cu_graph_exec exec, gpi__cu_stream stream) {
    double cost;
    (void)stream;
    BREAKS("cuGraphLaunch");
    count(&gpu.stale_launches, gpu.frees != gpu.frees_at_capture);
    memcpy(&cost, (void *)exec, sizeof cost);
    gpu.now += cost;
    return 0;
}
FAKE(cuGraphExecDestroy)(gpi__cu_graph_exec exec) {
    free((void *)exec);
    count(&gpu.graphs, -1);
    return broken("cuGraphExecDestroy");
}
FAKE(cuGraphDestroy)(gpi__cu_graph graph) {
    free((void *)graph);
    count(&gpu.graphs, -1);
    return broken("cuGraphDestroy");
}
FAKE(cuEventCreate)(gpi__cu_event *event, unsigned flags) {
    (void)flags;
    BREAKS("cuEventCreate");
    *event = (gpi__cu_event)malloc(sizeof(double));
    count(&gpu.events, 1);
    return 0;
}
FAKE(cuEventDestroy_v2)(gpi__cu_event event) {
    free((void *)event);
    count(&gpu.events, -1);
    return broken("cuEventDestroy_v2");
}
FAKE(cuEventRecord)(gpi__cu_event event, gpi__cu_stream stream) {
    (void)stream;
    BREAKS("cuEventRecord");
    memcpy((void *)event, &gpu.now, sizeof gpu.now);
    return 0;
}
FAKE(cuEventSynchronize)(gpi__cu_event event) {
    (void)event;
    BREAKS("cuEventSynchronize");
    return 0;
}
FAKE(cuEventElapsedTime)(float *milliseconds, gpi__cu_event from, gpi__cu_event to) {
    double began, ended;
    BREAKS("cuEventElapsedTime");
    memcpy(&began, (void *)from, sizeof began);
    memcpy(&ended, (void *)to, sizeof ended);
    *milliseconds = (float)(1e-3 * (ended - began));
    return 0;
}
static void pass_time(double microseconds) {
    if (microseconds > 0)
        *(gpu.captures ? &gpu.captured : &gpu.now) += microseconds;
}
FAKE(cuThreadExchangeStreamCaptureMode)(int *mode) {
    int previous = capture_mode;
    BREAKS("cuThreadExchangeStreamCaptureMode");
    capture_mode = *mode;
    *mode = previous;
    return 0;
}
/* A module is what its launches may ask for of shared memory, until more is given, its program's number, and the kernel that was taken of it. */
typedef struct fake_module {
    int shared, program;
    char entry[100];
} fake_module;
FAKE(cuModuleLoadData)(gpi__cu_module *module, const void *image) {
    needs_relaxed_capture();
    BREAKS("cuModuleLoadData");
    if (memcmp(image, "fake cubin", 10) != 0 && memcmp(image, "fake ptx", 8) != 0)
        return GPI__CUDA_ERROR_INVALID_IMAGE;
    *module = (gpi__cu_module)calloc(1, sizeof(fake_module));
    ((fake_module *)(void *)*module)->shared = 48 << 10;
    ((fake_module *)(void *)*module)->program =
        ((const char *)image)[5] == 'c' ? atoi((const char *)image + strlen("fake cubin ")) : -1;
    count(&gpu.modules, 1);
    return 0;
}
FAKE(cuModuleUnload)(gpi__cu_module module) {
    needs_context();
    free(module);
    count(&gpu.modules, -1);
    return broken("cuModuleUnload");
}
FAKE(cuModuleGetFunction)(gpi__cu_function *function, gpi__cu_module module, const char *name) {
    BREAKS("cuModuleGetFunction");
    if (strncmp(name, "gemmepi_", 8) != 0)
        return GPI__CUDA_ERROR_NOT_FOUND;
    *function = (gpi__cu_function)(void *)module;
    copy_text(((fake_module *)(void *)module)->entry, sizeof((fake_module *)(void *)module)->entry, name);
    copy_text(gpu.last_kernel, sizeof gpu.last_kernel, name);
    count(&gpu.functions_taken, 1);
    return 0;
}
FAKE(cuFuncSetAttribute)(gpi__cu_function function, int attribute, int value) {
    needs_context();
    BREAKS("cuFuncSetAttribute");
    if (!function || attribute != GPI__CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value > 232448)
        return GPI__CUDA_ERROR_INVALID_VALUE;
    ((fake_module *)(void *)function)->shared = value;
    return 0;
}
/* A map is its address, its extents and its box, of 32, 64 or 128 bytes a line. */
FAKE(cuTensorMapEncodeTiled)
(gpi__cu_tensor_map *map, int type, uint32_t rank, void *address, const uint64_t *extents,
 const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave, int swizzle,
 int promotion, int fill) {
    uint32_t i, bytes = type == GPI__CU_TENSOR_MAP_DATA_TYPE_FLOAT32 ? 4
                        : type == GPI__CU_TENSOR_MAP_DATA_TYPE_UINT8 ? 1
                                                                     : 2;
    (void)steps, (void)interleave, (void)fill;
    BREAKS("cuTensorMapEncodeTiled");
    if ((uintptr_t)map % 64 || (uintptr_t)address % 16 || rank < 3 || rank > 4 || strides[0] % 16 ||
        strides[1] % 16 || (rank > 3 && (strides[2] % 16 || box[3] != 1 || extents[3] == 0)) ||
        strides[0] < bytes * extents[0] || swizzle < GPI__CU_TENSOR_MAP_SWIZZLE_32B ||
        swizzle > GPI__CU_TENSOR_MAP_SWIZZLE_128B || box[0] * bytes != 16u << swizzle || box[1] > 256 ||
        box[2] != 1 || extents[0] == 0 || extents[1] == 0 || extents[2] == 0)
        return GPI__CUDA_ERROR_INVALID_VALUE;
    memset(map, 0, sizeof *map);
    map->words[0] = (uintptr_t)address;
    memcpy(&map->words[1], extents, rank * sizeof *extents);
    map->words[5] = box[1];
    map->words[10] = (uint64_t)promotion;
    memcpy(&map->words[6], strides, (rank - 1) * sizeof *strides);
    for (i = 0; i + 1 < rank; i++)
        if (strides[i] >= (uint64_t)1 << 40)
            return GPI__CUDA_ERROR_INVALID_VALUE;
    return 0;
}
FAKE(cuTensorMapReplaceAddress)(gpi__cu_tensor_map *map, void *address) {
    BREAKS("cuTensorMapReplaceAddress");
    if ((uintptr_t)map % 64 || (uintptr_t)address % 16)
        return GPI__CUDA_ERROR_INVALID_VALUE;
    map->words[0] = (uintptr_t)address;
    return 0;
}
static int launch_fake(gpi__cu_function function, unsigned grid_x, unsigned block_x, unsigned block_y,
                       unsigned shared_size, void **parameters) {
    const fake_module *module = (const fake_module *)(const void *)function;
    needs_context();
    if (!function || !parameters || !grid_x || grid_x > INT_MAX || block_x * block_y == 0 ||
        block_x * block_y > 1024 || (int)shared_size > module->shared)
        return GPI__CUDA_ERROR_INVALID_VALUE;
    if (gpu.watch) {
        fake_launch launch;
        launch.entry = module->entry, launch.params = parameters[0];
        launch.grid = grid_x, launch.block_x = block_x, launch.block_y = block_y, launch.shared = shared_size;
        launch.program = module->program;
        gpu.watch(&launch);
    }
    if (block_x == GPI__SM90_THREADS && strncmp(module->entry, "gemmepi_network", 15) != 0) {
        if ((uintptr_t)parameters[0] % 64)
            return GPI__CUDA_ERROR_INVALID_VALUE;
        copy_to_book(&gpu.last_fused, parameters[0], sizeof gpu.last_fused);
        copy_to_book(&gpu.last_shared, &shared_size, sizeof gpu.last_shared);
    }
    pass_time(gpu.launch_time);
    count(&gpu.launches, 1);
    return 0;
}
FAKE(cuLaunchKernelEx)
(const gpi__cu_launch_config *config, gpi__cu_function function, void **parameters, void **extra) {
    int allowed = 0;
    (void)extra;
    BREAKS("cuLaunchKernelEx");
    if (config->grid_y != 1 || config->grid_z != 1 || config->block_z != 1 || config->attribute_count != 1)
        return GPI__CUDA_ERROR_INVALID_VALUE;
    memcpy(&allowed, config->attributes->value, sizeof allowed);
    if (config->attributes->id != GPI__CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION || allowed != 1)
        return GPI__CUDA_ERROR_INVALID_VALUE;
    count(&gpu.overlapping, 1);
    return launch_fake(function, config->grid_x, config->block_x, config->block_y, config->shared_size,
                       parameters);
}
FAKE(cuLaunchKernel)
(gpi__cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
 unsigned block_y, unsigned block_z, unsigned shared_size, gpi__cu_stream stream, void **parameters,
 void **extra) {
    (void)stream, (void)extra;
    BREAKS("cuLaunchKernel");
    if (grid_y != 1 || grid_z != 1 || block_z != 1)
        return GPI__CUDA_ERROR_INVALID_VALUE;
    return launch_fake(function, grid_x, block_x, block_y, shared_size, parameters);
}
FAKE(cuGetErrorName)(int error, const char **name) {
    *name = error == GPI__CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
    return 0;
}
FAKE(cuGetErrorString)(int error, const char **text) {
    (void)error;
    *text = "made up by the test";
    return 0;
}

/* >>NVRTC */

FAKE(nvrtcVersion)(int *major, int *minor) {
    *major = gpu.other_nvrtc ? gpu.other_nvrtc / 10 : 13;
    *minor = gpu.other_nvrtc % 10;
    return broken("nvrtcVersion");
}
static const char *GPI__CUDA_CALL fake_nvrtcGetErrorString(gpi__nvrtc_result result) {
    return result == GPI__NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR_FAKE";
}
FAKE(nvrtcGetNumSupportedArchs)(int *archs) {
    *archs = 2;
    return broken("nvrtcGetNumSupportedArchs");
}
FAKE(nvrtcGetSupportedArchs)(int *archs) {
    BREAKS("nvrtcGetSupportedArchs");
    archs[0] = gpu.archs_are_newer ? device_arch() + 10 : 75;
    archs[1] = gpu.newest_target ? gpu.newest_target : device_arch() + (gpu.archs_are_newer ? 30 : 0);
    return book(&gpu.archs_told, 1) > 100 + gpu.archs_spared ? 11
                                                             : 0; /* whoever asks without end is stopped */
}
FAKE(nvrtcCreateProgram)
(gpi__nvrtc_program *program, const char *source, const char *name, int header_count,
 const char *const *headers, const char *const *header_names) {
    BREAKS("nvrtcCreateProgram");
    if (!strstr(source, strstr(name, "network") ? "#define NETWORK_" : "#define GEMMEPI_") ||
        !strstr(name, ".cu") || header_count < 1 || !headers[0] || !header_names[0])
        return GPI__NVRTC_ERROR_INVALID_INPUT;
    if (gpu.reads)
        gpu.reads(name, source);
    *program = (gpi__nvrtc_program)malloc(sizeof(long));
    *(long *)(void *)*program = book(&gpu.created, 1) - 1;
    if (!gpu.meeting)
        copy_text(gpu.last_source, sizeof gpu.last_source, source);
    count(&gpu.programs, 1);
    return 0;
}
FAKE(nvrtcDestroyProgram)(gpi__nvrtc_program *program) {
    free(*program);
    *program = NULL;
    count(&gpu.programs, -1);
    return broken("nvrtcDestroyProgram");
}
FAKE(nvrtcCompileProgram)(gpi__nvrtc_program program, int option_count, const char *const *options) {
    char target[40], own[48];
    (void)program;
    snprintf(target, sizeof target, "--gpu-architecture=%s_%d", gpu.newest_target ? "compute" : "sm",
             gpu.newest_target ? gpu.newest_target : device_arch());
    snprintf(own, sizeof own, "%sa", target); /* of 9.0, 12.0 and 12.1: what only that chip has */
    if (option_count < 2 ||
        (strcmp(options[0], target) != 0 && strcmp(options[0], "--gpu-architecture=sm_90a") != 0 &&
         (device_arch() < 120 || strcmp(options[0], own) != 0)))
        return GPI__NVRTC_ERROR_INVALID_OPTION;
    if (strcmp(options[0], "--gpu-architecture=sm_90a") == 0)
        count(&gpu.for_sm_90a, 1);
    if (option_count > 2 && strcmp(options[2], "--fmad=false") == 0)
        count(&gpu.as_written, 1);
    count(&gpu.compilations, 1);
    meet();
    return broken("nvrtcCompileProgram");
}
enum { CUBIN_SIZE = 24 };
FAKE(nvrtcGetCUBINSize)(gpi__nvrtc_program program, size_t *size) {
    (void)program;
    *size = CUBIN_SIZE;
    return broken("nvrtcGetCUBINSize");
}
FAKE(nvrtcGetCUBIN)(gpi__nvrtc_program program, char *to) {
    snprintf(to, CUBIN_SIZE, "fake cubin %012ld", *(const long *)(const void *)program);
    return broken("nvrtcGetCUBIN");
}
static const char fake_ptx[] = "fake ptx";
FAKE(nvrtcGetPTXSize)(gpi__nvrtc_program program, size_t *size) {
    (void)program;
    *size = sizeof fake_ptx;
    return broken("nvrtcGetPTXSize");
}
FAKE(nvrtcGetPTX)(gpi__nvrtc_program program, char *to) {
    (void)program;
    memcpy(to, fake_ptx, sizeof fake_ptx);
    return broken("nvrtcGetPTX");
}
static const char compile_log[] = "pass.cu(7): error: the test wants it so";
static const char *told_log(void) {
    return gpu.serialises_wgmma
               ? "ptxas info    : (C7515) Potential Performance Loss: wgmma.mma_async instructions are serialized due to non "
                 "wgmma instructions defining accumulator registers"
               : compile_log;
}
FAKE(nvrtcGetProgramLogSize)(gpi__nvrtc_program program, size_t *size) {
    (void)program;
    BREAKS("nvrtcGetProgramLogSize");
    *size = strlen(told_log()) + 1;
    return 0;
}
FAKE(nvrtcGetProgramLog)(gpi__nvrtc_program program, char *log) {
    (void)program;
    BREAKS("nvrtcGetProgramLog");
    strcpy(log, told_log());
    return 0;
}

/* >>cuBLASLt */

static size_t GPI__CUDA_CALL fake_cublasLtGetVersion(void) {
    return gpu.other_cublaslt ? (size_t)gpu.other_cublaslt : 130100;
}
static const char *GPI__CUDA_CALL fake_cublasLtGetStatusName(gpi__lt_status status) {
    return status == GPI__CUBLAS_STATUS_EXECUTION_FAILED ? "CUBLAS_STATUS_EXECUTION_FAILED"
                                                         : "CUBLAS_STATUS_FAKE";
}
static const char *GPI__CUDA_CALL fake_cublasLtGetStatusString(gpi__lt_status status) {
    (void)status;
    return "made up by the test";
}
FAKE(cublasLtCreate)(gpi__lt_handle *handle) {
    needs_context();
    BREAKS("cublasLtCreate");
    *handle = (gpi__lt_handle)malloc(1);
    count(&gpu.lt_handles, 1);
    return 0;
}
FAKE(cublasLtDestroy)(gpi__lt_handle handle) {
    needs_context();
    free(handle);
    count(&gpu.lt_handles, -1);
    return broken("cublasLtDestroy");
}
/* A descriptor is its epilogue and, in its second word, a hash of all that was set; a layout that hash alone. */
static void note_attribute(uint64_t *hash, int attribute, const void *value, size_t size) {
    *hash = gpi__hash_word(gpi__hash_word(*hash, (uint64_t)attribute), gpi__hash(value, size));
}
static int epilogue_of(const gpi__lt_matmul_desc *desc) {
    int32_t epilogue;
    memcpy(&epilogue, desc, sizeof epilogue);
    return epilogue ? epilogue : GPI__CUBLASLT_EPILOGUE_DEFAULT;
}
FAKE(cublasLtMatmul)
(gpi__lt_handle handle, gpi__lt_matmul_desc *desc, const void *alpha, const void *a, gpi__lt_layout *a_layout,
 const void *b, gpi__lt_layout *b_layout, const void *beta, const void *c, gpi__lt_layout *c_layout, void *d,
 gpi__lt_layout *d_layout, const gpi__lt_algo *algo, void *workspace, size_t workspace_size,
 gpi__cu_stream stream) {
    long call = book(&gpu.lt_calls, 1);
    count(&gpu.lt_nowhere, d == NULL);
    (void)stream;
    needs_context();
    if (gpu.multiplies) {
        fake_product product;
        product.described = desc->data[1];
        product.layouts[0] = a_layout->data[0], product.layouts[1] = b_layout->data[0];
        product.layouts[2] = c_layout->data[0], product.layouts[3] = d_layout->data[0];
        product.pointers[0] = a, product.pointers[1] = b, product.pointers[2] = c, product.pointers[3] = d;
        memcpy(&product.alpha, alpha, sizeof product.alpha), memcpy(&product.beta, beta, sizeof product.beta);
        product.workspace = workspace, product.workspace_size = workspace_size;
        gpu.multiplies(&product);
    }
    if (call <= (long)GPI__COUNT(gpu.epilogues))
        gpu.epilogues[call - 1] = epilogue_of(desc);
    BREAKS("cublasLtMatmul");
    if (gpu.refusals < 0 || call <= gpu.refusals ||
        (gpu.refuses_epilogues && epilogue_of(desc) != GPI__CUBLASLT_EPILOGUE_DEFAULT))
        return gpu.refusal;
    if (!handle || !desc || !alpha || !a || !b || !beta || !c || !d || !algo)
        return GPI__CUBLAS_STATUS_INVALID_VALUE;
    if (workspace_size && !gpu.is_untouched)
        memset(workspace, 1, workspace_size); /* it must be there */
    if (gpu.wrong_algorithm && gpu.algorithms[algo->data[0]].id == gpu.wrong_algorithm && !gpu.is_untouched) {
        int byte;
        for (byte = 0; byte < 4; byte++)
            ((unsigned char *)d)[byte] ^= gpu.wrong_bits[byte];
    }
    __atomic_store_n(&gpu.last_alpha, (const float *)alpha, __ATOMIC_RELAXED);
    __atomic_store_n(&gpu.last_beta, (const float *)beta, __ATOMIC_RELAXED);
    __atomic_store_n(&gpu.last_workspace, workspace, __ATOMIC_RELAXED);
    __atomic_store_n(&gpu.last_workspace_size, workspace_size, __ATOMIC_RELAXED);
    pass_time(gpu.product_time + gpu.answer_time * (double)(algo->data[0] & 15));
    count(&gpu.products, 1);
    return 0;
}
FAKE(cublasLtMatmulDescInit_internal)(gpi__lt_matmul_desc *desc, size_t size, int compute, int scale) {
    memset(desc, 0, size);
    note_attribute(&desc->data[1], compute, &scale, sizeof scale);
    return broken("cublasLtMatmulDescInit_internal");
}
FAKE(cublasLtMatmulDescSetAttribute)
(gpi__lt_matmul_desc *desc, int attribute, const void *value, size_t size) {
    BREAKS("cublasLtMatmulDescSetAttribute");
    note_attribute(&desc->data[1], attribute, value, size);
    if (attribute == GPI__CUBLASLT_MATMUL_DESC_EPILOGUE)
        memcpy(desc, value, size);
    if (attribute == GPI__CUBLASLT_MATMUL_DESC_FAST_ACCUM)
        memcpy(&desc->data[2], value, size);
    if (attribute == GPI__CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET)
        memcpy(&gpu.lt_multiprocessors, value, size);
    if (attribute == GPI__CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE)
        memcpy(&gpu.lt_aux_type, value, size);
    return 0;
}
FAKE(cublasLtMatmulDescGetAttribute)
(gpi__lt_matmul_desc *desc, int attribute, void *value, size_t size, size_t *written) {
    (void)desc, (void)attribute;
    BREAKS("cublasLtMatmulDescGetAttribute");
    memset(value, 0, size);
    *written = size;
    return 0;
}
FAKE(cublasLtMatrixLayoutInit_internal)
(gpi__lt_layout *layout, size_t size, int type, uint64_t rows, uint64_t cols, int64_t ld) {
    int64_t told[4];
    BREAKS("cublasLtMatrixLayoutInit_internal");
    memset(layout, 0, size);
    told[0] = type, told[1] = (int64_t)rows, told[2] = (int64_t)cols, told[3] = ld;
    note_attribute(&layout->data[0], -1, told, sizeof told);
    return 0;
}
FAKE(cublasLtMatrixLayoutSetAttribute)
(gpi__lt_layout *layout, int attribute, const void *value, size_t size) {
    BREAKS("cublasLtMatrixLayoutSetAttribute");
    note_attribute(&layout->data[0], attribute, value, size);
    return 0;
}
FAKE(cublasLtMatmulPreferenceInit_internal)(gpi__lt_preference *preference, size_t size) {
    BREAKS("cublasLtMatmulPreferenceInit_internal");
    memset(preference, 0, size);
    return 0;
}
FAKE(cublasLtMatmulPreferenceSetAttribute)
(gpi__lt_preference *preference, int attribute, const void *value, size_t size) {
    (void)preference, (void)attribute, (void)value, (void)size;
    BREAKS("cublasLtMatmulPreferenceSetAttribute");
    return 0;
}
FAKE(cublasLtMatmulAlgoGetHeuristic)
(gpi__lt_handle handle, gpi__lt_matmul_desc *desc, gpi__lt_layout *a, gpi__lt_layout *b, gpi__lt_layout *c,
 gpi__lt_layout *d, gpi__lt_preference *preference, int requested, gpi__lt_heuristic *results,
 int *returned) {
    int i;
    (void)handle, (void)a, (void)b, (void)c, (void)d, (void)preference;
    count(&gpu.heuristics, 1);
    take_time();
    *returned = gpu.heuristic_answers < requested ? gpu.heuristic_answers : requested;
    if (gpu.refuses_fast && desc->data[2])
        *returned = 0;
    for (i = 0; i < (*returned ? *returned : 1); i++) {
        memset(&results[i], 0, sizeof results[i]);
        results[i].workspace_size = gpu.lt_workspace;
        results[i].waves = gpu.lt_waves;
        results[i].algo.data[0] = (uint64_t)i;
    }
    BREAKS("cublasLtMatmulAlgoGetHeuristic");
    return 0;
}
FAKE(cublasLtMatmulAlgoConfigGetAttribute)
(const gpi__lt_algo *algo, int attribute, void *value, size_t size, size_t *written) {
    int nth = (int)algo->data[0];
    const gpi__lt_algorithm *own = &gpu.algorithms[nth];
    int32_t is = attribute == GPI__CUBLASLT_ALGO_CONFIG_ID           ? (own->id ? own->id : 100 + nth)
                 : attribute == GPI__CUBLASLT_ALGO_CONFIG_TILE_ID    ? own->tile
                 : attribute == GPI__CUBLASLT_ALGO_CONFIG_STAGES_ID  ? own->stages
                 : attribute == GPI__CUBLASLT_ALGO_CONFIG_SPLITK_NUM ? own->split
                                                                     : 0;
    BREAKS("cublasLtMatmulAlgoConfigGetAttribute");
    memset(value, 0, size);
    memcpy(value, &is, size < sizeof is ? size : sizeof is);
    *written = size;
    return 0;
}

/* >>the resolver */

typedef void (*any_function)(void);

/* What the library may ask for but no test here makes it call. */
static void not_faked(void) {
    printf("a function was called that tests/unit/fake_cuda.h has no fake of\n");
    fflush(stdout);
    abort();
}

static const struct {
    const char *name;
    any_function function;
} fakes[] = {
#define IS_FAKED(name) \
    { #name, (any_function)fake_##name }
    IS_FAKED(cuInit),
    IS_FAKED(cuDriverGetVersion),
    IS_FAKED(cuDeviceGet),
    IS_FAKED(cuDeviceGetCount),
    IS_FAKED(cuDeviceGetName),
    IS_FAKED(cuDeviceGetAttribute),
    IS_FAKED(cuDevicePrimaryCtxRetain),
    IS_FAKED(cuDevicePrimaryCtxRelease_v2),
    IS_FAKED(cuCtxGetCurrent),
    IS_FAKED(cuCtxSetCurrent),
    IS_FAKED(cuCtxPushCurrent_v2),
    IS_FAKED(cuCtxPopCurrent_v2),
    IS_FAKED(cuCtxGetDevice),
    IS_FAKED(cuCtxSynchronize),
    IS_FAKED(cuMemAlloc_v2),
    IS_FAKED(cuMemFree_v2),
    IS_FAKED(cuMemHostAlloc),
    IS_FAKED(cuMemFreeHost),
    IS_FAKED(cuPointerGetAttribute),
    IS_FAKED(cuMemcpyHtoDAsync_v2),
    IS_FAKED(cuMemcpyDtoHAsync_v2),
    IS_FAKED(cuMemsetD8Async),
    IS_FAKED(cuStreamCreate),
    IS_FAKED(cuStreamDestroy_v2),
    IS_FAKED(cuStreamSynchronize),
    IS_FAKED(cuStreamIsCapturing),
    IS_FAKED(cuThreadExchangeStreamCaptureMode),
    IS_FAKED(cuStreamBeginCapture_v2),
    IS_FAKED(cuStreamEndCapture),
    IS_FAKED(cuGraphInstantiateWithFlags),
    IS_FAKED(cuGraphLaunch),
    IS_FAKED(cuGraphExecDestroy),
    IS_FAKED(cuGraphDestroy),
    IS_FAKED(cuEventCreate),
    IS_FAKED(cuEventDestroy_v2),
    IS_FAKED(cuEventRecord),
    IS_FAKED(cuEventSynchronize),
    IS_FAKED(cuEventElapsedTime),
    IS_FAKED(cuModuleLoadData),
    IS_FAKED(cuModuleUnload),
    IS_FAKED(cuModuleGetFunction),
    IS_FAKED(cuFuncSetAttribute),
    IS_FAKED(cuTensorMapEncodeTiled),
    IS_FAKED(cuTensorMapReplaceAddress),
    IS_FAKED(cuLaunchKernel),
    IS_FAKED(cuLaunchKernelEx),
    IS_FAKED(cuGetErrorName),
    IS_FAKED(cuGetErrorString),
    IS_FAKED(nvrtcVersion),
    IS_FAKED(nvrtcGetErrorString),
    IS_FAKED(nvrtcGetNumSupportedArchs),
    IS_FAKED(nvrtcGetSupportedArchs),
    IS_FAKED(nvrtcCreateProgram),
    IS_FAKED(nvrtcDestroyProgram),
    IS_FAKED(nvrtcCompileProgram),
    IS_FAKED(nvrtcGetCUBINSize),
    IS_FAKED(nvrtcGetCUBIN),
    IS_FAKED(nvrtcGetPTXSize),
    IS_FAKED(nvrtcGetPTX),
    IS_FAKED(nvrtcGetProgramLogSize),
    IS_FAKED(nvrtcGetProgramLog),
    IS_FAKED(cublasLtGetVersion),
    IS_FAKED(cublasLtGetStatusName),
    IS_FAKED(cublasLtGetStatusString),
    IS_FAKED(cublasLtCreate),
    IS_FAKED(cublasLtDestroy),
    IS_FAKED(cublasLtMatmul),
    IS_FAKED(cublasLtMatmulDescInit_internal),
    IS_FAKED(cublasLtMatmulDescSetAttribute),
    IS_FAKED(cublasLtMatmulDescGetAttribute),
    IS_FAKED(cublasLtMatrixLayoutInit_internal),
    IS_FAKED(cublasLtMatrixLayoutSetAttribute),
    IS_FAKED(cublasLtMatmulPreferenceInit_internal),
    IS_FAKED(cublasLtMatmulPreferenceSetAttribute),
    IS_FAKED(cublasLtMatmulAlgoGetHeuristic),
    IS_FAKED(cublasLtMatmulAlgoConfigGetAttribute),
};

/* The same whether this machine has the library or not: a machine with a GPU gets the fakes too. */
static void *resolve(void *user, const char *library, const char *symbol, void *found) {
    any_function function = not_faked;
    void *address;
    size_t i;
    (void)user, (void)found;
    count(library[0] == 'n'                  ? &gpu.asked_nvrtc
          : strcmp(library, "cublasLt") == 0 ? &gpu.asked_lt
                                             : &gpu.asked_cuda,
          1);
    if (gpu.missing && (strcmp(gpu.missing, symbol) == 0 || strcmp(gpu.missing, library) == 0))
        return NULL;
    for (i = 0; i < GPI__COUNT(fakes); i++)
        if (strcmp(fakes[i].name, symbol) == 0)
            function = fakes[i].function;
    memcpy(&address, &function, sizeof address);
    return address;
}

/* >>an allocator that keeps books and fails on demand */

static long live, allocations, fails_at; /* the fails_at-th allocation fails, 0: none */

static void *book_alloc(void *user, size_t size) {
    void *pointer;
    (void)user;
    if (book(&allocations, 1) == fails_at)
        return NULL;
    pointer = malloc(size);
    if (pointer) {
        memset(pointer, 0xa5, size); /* nobody may count on zeros */
        count(&live, 1);
    }
    return pointer;
}

static void book_free(void *user, void *pointer) {
    (void)user;
    count(&live, -1);
    free(pointer);
}

static char logged[4096];

static void keep_log(void *user, gemmepi_log_level level, const char *message) {
    size_t length = strlen(logged);
    (void)user;
    snprintf(logged + length, sizeof logged - length, "%d %s\n", (int)level, message);
}

/* Most tests are of cuBLASLt's routes, which the route fused would take problems from. */
enum { NOT_FUSED = 1 << GEMMEPI_ROUTE_LT | 1 << GEMMEPI_ROUTE_SPLIT | 1 << GEMMEPI_ROUTE_PLAIN };

/* For the fake GPU, without a cache folder and without a look into the system's, and clean books. */
static gemmepi_config fake_config(void) {
    gemmepi_config config;
    plug_in();
    live = allocations = fails_at = 0;
    logged[0] = 0;
    memset(&config, 0, sizeof config);
    config.resolve_symbol = resolve;
    config.allocator.alloc = book_alloc;
    config.allocator.free = book_free;
    config.cache_path = "";
    config.library_path = "relative-folder-that-is-not-there";
    config.library_path_only = 1;
    config.routes = NOT_FUSED;
    return config;
}

static gemmepi_config config_with_all_routes(void) {
    gemmepi_config config = fake_config();
    config.routes = 0;
    return config;
}

static void nothing_is_left(void) {
    CHECK(live == 0, "%ld blocks of host memory", live);
    CHECK(gpu.device_blocks == 0, "%ld blocks of device memory", gpu.device_blocks);
    CHECK(gpu.retained == gpu.released, "retained %ld times, released %ld times", gpu.retained, gpu.released);
    CHECK(gpu.modules == 0 && gpu.programs == 0, "%ld modules, %ld programs", gpu.modules, gpu.programs);
    CHECK(gpu.streams == 0, "%ld streams", gpu.streams);
    CHECK(gpu.lt_handles == 0, "%ld handles of cuBLASLt", gpu.lt_handles);
    CHECK(depth == 0 && capture_mode == 0, "stack depth %d, capture mode %d", depth, capture_mode);
    CHECK(gpu.wrong_context == 0, "%ld calls without the primary context", gpu.wrong_context);
    CHECK(gpu.spoiled_captures == 0, "%ld calls that spoil another thread's capture", gpu.spoiled_captures);
}

static int sentence_has(const char *what) {
    return strstr(gemmepi_last_error(), what) != NULL;
}

enum { OF_THE_CONTEXT = 1 }; /* device blocks that a context has from the start */

static gemmepi_context *open_fake(const gemmepi_config *config) {
    gemmepi_context *context = NULL;
    CHECK(gemmepi_create(config, &context) == GEMMEPI_OK, "%s", gemmepi_last_error());
    return context;
}

#endif
