/* Our CUDA sources to machine code, by NVRTC. */
#ifndef GEMMEPI_DEVICE_COMPILE_H
#define GEMMEPI_DEVICE_COMPILE_H

#include "../base/text.h"
#include "../cuda/load.h"
#include "source.h"

#define GPI__KERNEL_NAME 96 /* room for a kernel's name, as in gemmepi_plan_details */

/* What to compile for: cubin for an architecture that NVRTC knows, or PTX that the driver of a newer chip compiles. */
typedef struct gpi__target {
    char name[24]; /* "sm_90", "sm_90a", "compute_120" */
    int is_ptx;
    int keeps_ptx, reports; /* whether the image has PTX next to a cubin, and a report */
} gpi__target;

typedef struct gpi__image {
    char *data; /* cubin, or PTX with its final zero */
    size_t size;
    char *ptx, *report;   /* NULL: not asked for */
    int serialises_wgmma; /* ptxas says so (C7515 and its kin): each wgmma waits for the one before */
} gpi__image;

/* The best target of this NVRTC for a chip; arch is 90 for compute capability 9.0. */
static gemmepi_status gpi__choose_target(const gpi__nvrtc *nvrtc, int arch, gpi__target *target) {
    int archs[64], count = 0, best = 0, i;
    int result = nvrtc->get_num_supported_archs(&count);
    if (!result && count > 0 && count <= (int)GPI__COUNT(archs))
        result = nvrtc->get_supported_archs(archs);
    GPI__REFUSE_IF(result || count <= 0 || count > (int)GPI__COUNT(archs), GEMMEPI_COMPILE_ERROR,
                   "NVRTC does not tell the architectures it knows (%s, count %d)",
                   nvrtc->get_error_string(result), count);
    for (i = 0; i < count; i++)
        if (archs[i] <= arch && archs[i] > best)
            best = archs[i];
    GPI__UNSUPPORTED_IF(
        best == 0, "the GPU's compute capability is %d.%d, older than any that NVRTC %d.%d compiles for%s",
        arch / 10, arch % 10, nvrtc->version / 1000, nvrtc->version % 1000 / 10,
        nvrtc->version >= 13000 ? " (one of CUDA 12 compiles for 5.0 and later)" : "");
    target->is_ptx = best != arch;
    target->keeps_ptx = 0;
    snprintf(target->name, sizeof target->name, "%s_%d", target->is_ptx ? "compute" : "sm", best);
    return GEMMEPI_OK;
}

/* Every source by the name under which #include finds it, in memory from the allocator. */
typedef struct gpi__headers {
    int count;
    const char *names[GPI__MAX_SOURCES];
    char *texts[GPI__MAX_SOURCES];
} gpi__headers;

static void gpi__free_headers(const gemmepi_allocator *allocator, gpi__headers *headers) {
    int i;
    for (i = 0; i < headers->count; i++)
        gpi__delete(allocator, headers->texts[i]);
    headers->count = 0;
}

static int gpi__make_headers(const gemmepi_allocator *allocator, gpi__headers *headers) {
    const gpi__source *source;
    headers->count = 0;
    for (source = gpi__sources; source->name && headers->count < GPI__MAX_SOURCES; source++) {
        char *text;
        if (strstr(source->name, ".cu") && !strstr(source->name, ".cuh"))
            continue; /* a kernel file is never included */
        text = gpi__join_source(allocator, "", source);
        if (!text) {
            gpi__free_headers(allocator, headers);
            return 0;
        }
        headers->names[headers->count] = source->name;
        headers->texts[headers->count++] = text;
    }
    return 1;
}

/* NVRTC's log from the allocator, or NULL. */
static char *gpi__program_log(const gpi__nvrtc *nvrtc, const gemmepi_allocator *allocator,
                              gpi__nvrtc_program program) {
    size_t size = 0;
    char *log;
    if (nvrtc->get_program_log_size(program, &size) != 0 || size == 0)
        return NULL;
    log = (char *)gpi__new(allocator, size + 1);
    if (log && nvrtc->get_program_log(program, log) != 0)
        log[0] = 0;
    return log;
}

static void gpi__free_image(const gemmepi_allocator *allocator, gpi__image *image) {
    gpi__delete(allocator, image->data);
    gpi__delete(allocator, image->ptx);
    gpi__delete(allocator, image->report);
    image->data = image->ptx = image->report = NULL;
}

/* NULL where there is none. */
static char *gpi__load_ptx(const gpi__nvrtc *nvrtc, const gemmepi_allocator *allocator,
                           gpi__nvrtc_program program) {
    size_t size = 0;
    char *ptx = NULL;
    if (nvrtc->get_ptx_size(program, &size) == 0 && size != 0)
        ptx = (char *)gpi__new(allocator, size + 1);
    if (ptx && nvrtc->get_ptx(program, ptx) != 0)
        ptx[0] = 0;
    return ptx;
}

static gemmepi_status gpi__load_image(const gpi__nvrtc *nvrtc, const gemmepi_allocator *allocator,
                                      gpi__nvrtc_program program, int is_ptx, gpi__image *image) {
    int result =
        is_ptx ? nvrtc->get_ptx_size(program, &image->size) : nvrtc->get_cubin_size(program, &image->size);
    if (result)
        return gpi__nvrtc_failed(nvrtc, result, "asking for the size of the machine code");
    image->data = (char *)gpi__new(allocator, image->size);
    if (!image->data)
        return GEMMEPI_OUT_OF_MEMORY;
    result = is_ptx ? nvrtc->get_ptx(program, image->data) : nvrtc->get_cubin(program, image->data);
    if (!result)
        return GEMMEPI_OK;
    gpi__delete(allocator, image->data);
    image->data = NULL;
    return gpi__nvrtc_failed(nvrtc, result, "reading the machine code");
}

/* In a prologue: products and sums are rounded one by one, as they are written. Else the compiler joins some of them, in one kernel
   other ones than in the next. */
#define GPI__AS_WRITTEN "#define GEMMEPI_INVARIANT 1\n"

/* Compiles file (a name in gpi__sources) after prologue. The image is the caller's, also where it failed. */
static gemmepi_status gpi__compile(const gpi__nvrtc *nvrtc, const gemmepi_allocator *allocator,
                                   const char *file, const char *prologue, const gpi__target *target,
                                   gpi__image *image) {
    const gpi__source *source = gpi__find_source(file);
    gpi__nvrtc_program program = NULL;
    gpi__headers headers;
    gemmepi_status status;
    char arch[48], *text, *messages;
    const char *options[5];
    int count = 2, result;
    memset(image, 0, sizeof *image);
    GPI__REFUSE_IF(!source, GEMMEPI_COMPILE_ERROR, "there is no kernel file called %s", file);
    text = gpi__join_source(allocator, prologue, source);
    if (!text || !gpi__make_headers(allocator, &headers)) {
        gpi__delete(allocator, text);
        return GEMMEPI_OUT_OF_MEMORY;
    }
    snprintf(arch, sizeof arch, "--gpu-architecture=%s", target->name);
    options[0] = arch;
    options[1] = "--std=c++17";
    if (strstr(prologue, GPI__AS_WRITTEN))
        options[count++] = "--fmad=false";
    if (target->reports && !target->is_ptx)
        options[count++] = "--ptxas-options=-v";
    if (target->reports &&
        nvrtc->version >= 12090) /* what NVRTC finds in its own cache comes without a report */
        options[count++] = "--no-cache";
    result = nvrtc->create_program(&program, text, file, headers.count, (const char *const *)headers.texts,
                                   headers.names);
    if (!result)
        result = nvrtc->compile_program(program, count, options);
    messages = program ? gpi__program_log(nvrtc, allocator, program) : NULL;
    image->serialises_wgmma =
        messages && strstr(messages, "wgmma.mma_async instructions are serialized") != NULL;
    if (result)
        status = gpi__fail(result == GPI__NVRTC_ERROR_OUT_OF_MEMORY ? GEMMEPI_OUT_OF_MEMORY
                                                                    : GEMMEPI_COMPILE_ERROR,
                           "NVRTC did not compile %s for %s: %s\n%s", file, target->name,
                           nvrtc->get_error_string(result), messages ? messages : "");
    else
        status = gpi__load_image(nvrtc, allocator, program, target->is_ptx, image);
    if (!status && target->keeps_ptx && !target->is_ptx)
        image->ptx = gpi__load_ptx(nvrtc, allocator, program);
    if (target->reports)
        image->report = messages;
    else
        gpi__delete(allocator, messages);
    if (program)
        nvrtc->destroy_program(&program);
    gpi__free_headers(allocator, &headers);
    gpi__delete(allocator, text);
    return status;
}

#endif
