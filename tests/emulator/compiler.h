// NVRTC's functions, passed on to the real one, which is made to hand out PTX where it is asked for machine code.
#ifndef EMULATOR_COMPILER_H
#define EMULATOR_COMPILER_H

#include <dlfcn.h>

#include "driver.h"

#include "../../src/cuda/nvrtc.h"

static void *real_function(const char *name) {
    static void *library = dlopen(getenv("EMULATOR_NVRTC"), RTLD_NOW | RTLD_LOCAL);
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "emulator: EMULATOR_NVRTC names no NVRTC with %s\n", name);
        exit(1);
    }
    return found;
}

#define PASSED_ON(name, result, parameters, arguments)                \
    EXPORTED result name parameters {                                 \
        return ((result(*) parameters)real_function(#name))arguments; \
    }
typedef gpi__nvrtc_program nvrtc_program;
PASSED_ON(nvrtcVersion, int, (int *major, int *minor), (major, minor))
PASSED_ON(nvrtcGetErrorString, const char *, (int result), (result))
PASSED_ON(nvrtcGetNumSupportedArchs, int, (int *count), (count))
PASSED_ON(nvrtcGetSupportedArchs, int, (int *archs), (archs))
PASSED_ON(nvrtcCreateProgram, int,
          (nvrtc_program * made, const char *source, const char *name, int count, const char *const *headers,
           const char *const *names),
          (made, source, name, count, headers, names))
PASSED_ON(nvrtcDestroyProgram, int, (nvrtc_program * of), (of))
PASSED_ON(nvrtcGetPTXSize, int, (nvrtc_program of, size_t *size), (of, size))
PASSED_ON(nvrtcGetPTX, int, (nvrtc_program of, char *ptx), (of, ptx))
PASSED_ON(nvrtcGetProgramLogSize, int, (nvrtc_program of, size_t *size), (of, size))
PASSED_ON(nvrtcGetProgramLog, int, (nvrtc_program of, char *log), (of, log))

EXPORTED int nvrtcGetCUBINSize(nvrtc_program of, size_t *size) {
    return nvrtcGetPTXSize(of, size);
}
EXPORTED int nvrtcGetCUBIN(nvrtc_program of, char *cubin) {
    return nvrtcGetPTX(of, cubin);
}
EXPORTED int nvrtcCompileProgram(nvrtc_program of, int count, const char *const *options) {
    std::vector<std::string> made;
    std::vector<const char *> pointers;
    int major = 0, minor = 0;
    for (int i = 0; i < count; i++) {
        std::string option = options[i];
        size_t machine = option.find("architecture=sm_");
        if (option.find("--ptxas-options") == 0 || option == "--no-cache")
            continue;
        if (machine != std::string::npos)
            option.replace(machine, strlen("architecture=sm_"), "architecture=compute_");
        made.push_back(option);
    }
    nvrtcVersion(&major, &minor);
    if (major * 10 + minor >= 129) /* its cache asks the driver for functions that are not here */
        made.push_back("--no-cache");
    for (const std::string &option : made)
        pointers.push_back(option.c_str());
    return ((int (*)(nvrtc_program, int, const char *const *))real_function("nvrtcCompileProgram"))(
        of, (int)pointers.size(), pointers.data());
}

#endif
