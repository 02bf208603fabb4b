/* Our declarations of the CUDA libraries agree with the toolkit's headers: every constant, struct and function that
   the lists in src/cuda name. There is nothing to run: the file compiles, or the compiler names what differs.

       g++ -std=c++17 -Isrc -isystem /usr/local/cuda/include -fsyntax-only tests/compile/declarations.cpp */

/* the header then declares the names without a suffix too, as the libraries export them, and the macros that rename
   them are gone */
#define __CUDA_API_VERSION_INTERNAL
#include <cublasLt.h>
#include <cuda.h>
#include <nvrtc.h>

#include "cuda/cublaslt.h"
#include "cuda/driver.h"
#include "cuda/nvrtc.h"

#include <type_traits>

/* Which struct of theirs each of ours stands for. */
template <class Ours> struct counterpart { using type = void; };
#define STANDS_FOR(ours, theirs)                                  \
    template <> struct counterpart<std::remove_pointer_t<ours>> { \
        using type = std::remove_pointer_t<theirs>;               \
    };
STANDS_FOR(gpi__cu_context, CUcontext)
STANDS_FOR(gpi__cu_module, CUmodule)
STANDS_FOR(gpi__cu_function, CUfunction)
STANDS_FOR(gpi__cu_event, CUevent)
STANDS_FOR(gpi__cu_graph, CUgraph)
STANDS_FOR(gpi__cu_graph_exec, CUgraphExec)
STANDS_FOR(gpi__cu_tensor_map, CUtensorMap)
STANDS_FOR(gpi__cu_launch_config, CUlaunchConfig)
STANDS_FOR(gpi__nvrtc_program, nvrtcProgram)
STANDS_FOR(gpi__lt_handle, cublasLtHandle_t)
STANDS_FOR(gpi__lt_matmul_desc, cublasLtMatmulDescOpaque_t)
STANDS_FOR(gpi__lt_layout, cublasLtMatrixLayoutOpaque_t)
STANDS_FOR(gpi__lt_preference, cublasLtMatmulPreferenceOpaque_t)
STANDS_FOR(gpi__lt_algo, cublasLtMatmulAlgo_t)
STANDS_FOR(gpi__lt_heuristic, cublasLtMatmulHeuristicResult_t)

/* What may differ between two types that a C function passes alike: the name of a struct as above, an enum and the
   integer of its size. A stream is a void pointer of ours. */
template <class Ours, class Theirs> constexpr bool same_value();

template <class T> constexpr bool is_number_like() {
    return std::is_integral<T>::value || std::is_enum<T>::value;
}

/* An enum that passes through an int keeps its size and, as its values are small, its meaning; two integers must agree
   in sign. */
template <class Ours, class Theirs> constexpr bool same_number() {
    if constexpr (std::is_enum<Theirs>::value || std::is_enum<Ours>::value)
        return sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs);
    else
        return sizeof(Ours) == sizeof(Theirs) && std::is_signed<Ours>::value == std::is_signed<Theirs>::value;
}

/* What is behind a pointer; the structs themselves are compared further below. */
template <class Ours, class Theirs> constexpr bool same_target() {
    using O = std::remove_cv_t<Ours>;
    using T = std::remove_cv_t<Theirs>;
    if (std::is_const<Ours>::value != std::is_const<Theirs>::value)
        return false;
    if constexpr (std::is_void<O>::value)
        return std::is_void<T>::value || std::is_same<T, std::remove_pointer_t<CUstream>>::value;
    else if constexpr (std::is_class<O>::value)
        return std::is_same<T, typename counterpart<O>::type>::value;
    else if constexpr (std::is_void<T>::value || std::is_class<T>::value)
        return false;
    else
        return same_value<O, T>();
}

template <class Ours, class Theirs> constexpr bool same_value() {
    if constexpr (std::is_void<Ours>::value || std::is_void<Theirs>::value)
        return std::is_void<Ours>::value && std::is_void<Theirs>::value;
    else if constexpr (std::is_pointer<Ours>::value && std::is_pointer<Theirs>::value)
        return same_target<std::remove_pointer_t<Ours>, std::remove_pointer_t<Theirs>>();
    else if constexpr (is_number_like<Ours>() && is_number_like<Theirs>())
        return same_number<Ours, Theirs>();
    else
        return std::is_same<Ours, Theirs>::value;
}

template <class Ours, class Theirs> struct same_function : std::false_type {};

template <class R1, class... P1, class R2, class... P2> struct same_function<R1 (*)(P1...), R2 (*)(P2...)> {
    static constexpr bool all() {
        if constexpr (sizeof...(P1) == sizeof...(P2))
            return same_value<R1, R2>() && (same_value<P1, P2>() && ...);
        else
            return false;
    }
    static constexpr bool value = all();
};

/* >>constants */

#define CHECK_CONSTANT(name, value)                                  \
    static_assert((long long)GPI__##name == (long long)name, #name); \
    static_assert(GPI__##name == value, #name);

GPI__DRIVER_CONSTANTS(CHECK_CONSTANT)
GPI__NVRTC_CONSTANTS(CHECK_CONSTANT)
GPI__CUBLASLT_CONSTANTS(CHECK_CONSTANT)

/* >>functions */

#define CHECK_FUNCTION(table, field, symbol) \
    static_assert(same_function<decltype(table::field), decltype(&symbol)>::value, #symbol);

#define CHECK_DRIVER(field, symbol, result, parameters)   CHECK_FUNCTION(gpi__driver, field, symbol)
#define CHECK_NVRTC(field, symbol, result, parameters)    CHECK_FUNCTION(gpi__nvrtc, field, symbol)
#define CHECK_CUBLASLT(field, symbol, result, parameters) CHECK_FUNCTION(gpi__cublaslt, field, symbol)

GPI__DRIVER_FUNCTIONS(CHECK_DRIVER)
GPI__NVRTC_FUNCTIONS(CHECK_NVRTC)
GPI__CUBLASLT_FUNCTIONS(CHECK_CUBLASLT)

/* >>types */

#define CHECK_VALUE(ours, theirs) static_assert(same_value<ours, theirs>(), #ours);

CHECK_VALUE(gpi__cu_result, CUresult)
CHECK_VALUE(gpi__cu_device, CUdevice)
CHECK_VALUE(gpi__cu_deviceptr, CUdeviceptr)
CHECK_VALUE(gpi__cu_stream, CUstream)
CHECK_VALUE(gpi__cu_stream, cudaStream_t)
CHECK_VALUE(gpi__cu_context, CUcontext)
CHECK_VALUE(gpi__cu_module, CUmodule)
CHECK_VALUE(gpi__cu_function, CUfunction)
CHECK_VALUE(gpi__nvrtc_result, nvrtcResult)
CHECK_VALUE(gpi__nvrtc_program, nvrtcProgram)
CHECK_VALUE(gpi__lt_status, cublasStatus_t)
CHECK_VALUE(gpi__lt_handle, cublasLtHandle_t)

/* >>structs: what the library fills must have room; what it lays out in arrays must be as large exactly */

#define CHECK_ROOM(ours, theirs) \
    static_assert(sizeof(ours) >= sizeof(theirs) && alignof(ours) >= alignof(theirs), #ours);
#define CHECK_STRUCT(ours, theirs) \
    static_assert(sizeof(ours) == sizeof(theirs) && alignof(ours) == alignof(theirs), #ours);
#define CHECK_MEMBER(ours, our_member, theirs, their_member)                      \
    static_assert(offsetof(ours, our_member) == offsetof(theirs, their_member) && \
                      sizeof(ours::our_member) == sizeof(theirs::their_member),   \
                  #ours "." #our_member);

CHECK_ROOM(gpi__lt_matmul_desc, cublasLtMatmulDescOpaque_t)
CHECK_ROOM(gpi__lt_layout, cublasLtMatrixLayoutOpaque_t)
CHECK_ROOM(gpi__lt_preference, cublasLtMatmulPreferenceOpaque_t)
static_assert(sizeof(gpi__cu_tensor_map) == sizeof(CUtensorMap), "aligned where it is made");
CHECK_STRUCT(gpi__cu_launch_attribute, CUlaunchAttribute)
CHECK_MEMBER(gpi__cu_launch_attribute, id, CUlaunchAttribute, id)
CHECK_MEMBER(gpi__cu_launch_attribute, value, CUlaunchAttribute, value)
CHECK_STRUCT(gpi__cu_launch_config, CUlaunchConfig)
CHECK_MEMBER(gpi__cu_launch_config, grid_x, CUlaunchConfig, gridDimX)
CHECK_MEMBER(gpi__cu_launch_config, block_x, CUlaunchConfig, blockDimX)
CHECK_MEMBER(gpi__cu_launch_config, shared_size, CUlaunchConfig, sharedMemBytes)
CHECK_MEMBER(gpi__cu_launch_config, stream, CUlaunchConfig, hStream)
CHECK_MEMBER(gpi__cu_launch_config, attributes, CUlaunchConfig, attrs)
CHECK_MEMBER(gpi__cu_launch_config, attribute_count, CUlaunchConfig, numAttrs)
CHECK_STRUCT(gpi__lt_algo, cublasLtMatmulAlgo_t)
CHECK_STRUCT(gpi__lt_heuristic, cublasLtMatmulHeuristicResult_t)
CHECK_MEMBER(gpi__lt_heuristic, algo, cublasLtMatmulHeuristicResult_t, algo)
CHECK_MEMBER(gpi__lt_heuristic, workspace_size, cublasLtMatmulHeuristicResult_t, workspaceSize)
CHECK_MEMBER(gpi__lt_heuristic, state, cublasLtMatmulHeuristicResult_t, state)
CHECK_MEMBER(gpi__lt_heuristic, waves, cublasLtMatmulHeuristicResult_t, wavesCount)
CHECK_MEMBER(gpi__lt_heuristic, reserved, cublasLtMatmulHeuristicResult_t, reserved)

/* >>the comparison itself: what it must tell apart */

typedef int (*two_ints)(int, int);
static_assert(!same_function<two_ints, int (*)(int)>::value, "arity");
static_assert(!same_function<two_ints, int (*)(int, long long)>::value, "size");
static_assert(!same_function<two_ints, int (*)(int, unsigned)>::value, "sign");
static_assert(!same_function<two_ints, int (*)(int, float)>::value, "kind");
static_assert(!same_function<two_ints, void (*)(int, int)>::value, "result");
static_assert(!same_function<two_ints, int (*)(int, int *)>::value, "pointer");
static_assert(!same_value<int *, size_t *>(), "target's size");
static_assert(!same_value<char *, const char *>(), "const");
static_assert(!same_value<void *, char **>(), "depth");
static_assert(!same_value<void *, char *>(), "void stands for a stream only");
static_assert(!same_value<gpi__lt_layout *, cublasLtMatmulPreference_t>(), "structs of one size");
static_assert(same_value<void *, CUstream>(), "handles are pointers");
static_assert(same_value<int *, CUstreamCaptureStatus *>(), "enums are ints");
