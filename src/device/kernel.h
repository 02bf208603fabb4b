/* Kernels by file and prologue: in memory, else in a bundle, else on disk, else compiled. The build lock is held by every caller, and
   let go while NVRTC compiles, so that threads compile side by side.

   On disk a kernel lies under the digest of its file and of those that it includes, its prologue, the target and NVRTC's
   version. That version is not known before NVRTC is loaded, and a program whose kernels are all on disk never loads
   it: so a small entry for the architecture remembers the version and target used last. Where a kernel is missing under
   those, NVRTC is loaded and asked. */
#ifndef GEMMEPI_DEVICE_KERNEL_H
#define GEMMEPI_DEVICE_KERNEL_H

#include "code.h"
#include "compile.h"
#include "dump.h"

typedef struct gpi__kernel {
    gpi__cu_module module;
    gpi__cu_function function; /* NULL: not there, because it is being built or that has failed */
    int is_being_built;        /* by a thread; others wait for kernel_built */
    int arch;                  /* that it was compiled for, which may be older than the chip: 90 for 9.0 */
    unsigned
        shared; /* bytes of dynamic shared memory that it may have: the most that a launch of it asks for */
} gpi__kernel;

/* What NVRTC is or was, as far as the key on disk needs it. */
typedef struct gpi__compiler {
    int32_t nvrtc_version;
    int32_t is_ptx;
    char target[24];
} gpi__compiler;

/* What to build. */
typedef struct gpi__kernel_source {
    const char *file, *prologue;
    const char *entry; /* the kernel's name */
    char key[GPI__CODE_KEY_SIZE];
    size_t key_size;
} gpi__kernel_source;

static int gpi__arch_of(const gpi__compiler *compiler) {
    const char *number = strchr(compiler->target, '_');
    return number ? atoi(number + 1) : 0;
}

/* In a prologue: tensor cores multiply by scales of blocks of k. */
#define GPI__BLOCK_SCALES "#define GEMMEPI_BLOCK_SCALES"

/* Likewise: a network's products are by wgmma. */
#define GPI__NETWORK_WGMMA "#define NETWORK_WGMMA 1"

/* A kernel for one chip alone, by its file's name or prologue, uses what only that chip's own target has. */
static const char *gpi__target_suffix(const char *file, const char *prologue) {
    return strstr(file, "_sm90") || strstr(prologue, GPI__BLOCK_SCALES) ||
                   strstr(prologue, GPI__NETWORK_WGMMA)
               ? "a"
               : "";
}

/* On disk. Returns the key's length. */
static size_t gpi__kernel_key(char key[GPI__CODE_KEY_SIZE], const gpi__compiler *compiler, const char *file,
                              const char *prologue) {
    gpi__text text = gpi__text_in(key, GPI__CODE_KEY_SIZE);
    gpi__append(&text, "kernel 3\nnvrtc %d\ntarget %s\n", (int)compiler->nvrtc_version, compiler->target);
    gpi__append_kernel(&text, file, prologue);
    return text.length;
}

static size_t gpi__compiler_key(char key[64], int arch) {
    gpi__text text = gpi__text_in(key, 64);
    gpi__append(&text, "compiler 1\narch %d\n", arch);
    return text.length;
}

static int gpi__recall_compiler(gemmepi_context *context, gpi__compiler *compiler) {
    char key[64];
    void *payload = NULL;
    size_t size = 0;
    int found = gpi__disk_cache_get(&context->disk, "compiler", key, gpi__compiler_key(key, context->arch),
                                    &payload, &size);
    int usable = found && size == sizeof *compiler;
    if (usable) {
        memcpy(compiler, payload, sizeof *compiler);
        compiler->target[sizeof compiler->target - 1] = 0;
    }
    if (found)
        gpi__delete(&context->allocator, payload);
    return usable;
}

static void gpi__remember_compiler(gemmepi_context *context, const gpi__compiler *compiler) {
    char key[64];
    gpi__disk_cache_put(&context->disk, "compiler", key, gpi__compiler_key(key, context->arch), compiler,
                        sizeof *compiler);
}

/* Whether a result of the driver's is of the image, and not of the device or of memory. */
static int gpi__is_of_image(gpi__cu_result result) {
    return result == GPI__CUDA_ERROR_INVALID_IMAGE || result == GPI__CUDA_ERROR_NO_BINARY_FOR_GPU ||
           result == GPI__CUDA_ERROR_INVALID_PTX || result == GPI__CUDA_ERROR_JIT_COMPILER_NOT_FOUND ||
           result == GPI__CUDA_ERROR_UNSUPPORTED_PTX_VERSION || result == GPI__CUDA_ERROR_INVALID_SOURCE ||
           result == GPI__CUDA_ERROR_NOT_FOUND;
}

/* *is_refused: whether the driver does not take the image. */
static gemmepi_status gpi__load_module(gemmepi_context *context, const void *image, const char *entry,
                                       gpi__kernel *kernel, int *is_refused) {
    const char *what = "cuModuleLoadData";
    int result = context->driver.module_load_data(&kernel->module, image);
    if (!result) {
        what = entry;
        result = context->driver.module_get_function(&kernel->function, kernel->module, entry);
        if (!result)
            return GEMMEPI_OK;
        kernel->function = NULL;
        context->driver.module_unload(kernel->module);
    }
    *is_refused = gpi__is_of_image(result);
    return gpi__cuda_failed(&context->driver, result, what);
}

/* An image that the driver does not take, although NVRTC is no newer than it by its major version. */
static gemmepi_status gpi__refused_image(const gemmepi_context *context, const gpi__compiler *compiler,
                                         gemmepi_status status) {
    int driver = context->driver.version, nvrtc = compiler->nvrtc_version;
    return gpi__fail(
        status,
        "%s; the driver, of CUDA %d.%d, does not accept what NVRTC %d.%d made for %s: update the driver, or "
        "name the folder of an NVRTC of CUDA %d.%d or older in config.library_path",
        gpi__error_text, driver / 1000, driver % 1000 / 10, nvrtc / 1000, nvrtc % 1000 / 10, compiler->target,
        driver / 1000, driver % 1000 / 10);
}

/* Loads an image from the allocator and keeps it, for a bundle. It belongs to the context where that succeeds. */
static gemmepi_status gpi__load_and_keep(gemmepi_context *context, const gpi__kernel_source *source,
                                         void *image, size_t size, const gpi__compiler *compiler,
                                         gpi__kernel *kernel) {
    int is_refused = 0;
    gemmepi_status status = gpi__load_module(context, image, source->entry, kernel, &is_refused);
    if (status)
        return is_refused ? gpi__refused_image(context, compiler, status) : status;
    kernel->arch = gpi__arch_of(compiler);
    status = gpi__keep_code(context, source->key, source->key_size, image, size, kernel->arch);
    if (status) {
        kernel->function = NULL;
        context->driver.module_unload(kernel->module);
    }
    return status;
}

/* The driver is given a copy, aligned and with a zero behind it, which ends PTX. An image that it does not take leaves kernel as it is. */
static gemmepi_status gpi__load_bundled(gemmepi_context *context, const gpi__kernel_source *source,
                                        const gpi__code *code, gpi__kernel *kernel) {
    gemmepi_status status;
    int is_refused = 0;
    char *copy = (char *)gpi__new(&context->allocator, code->size + 1);
    if (!copy)
        return GEMMEPI_OUT_OF_MEMORY;
    memcpy(copy, code->image, code->size);
    status = gpi__load_module(context, copy, source->entry, kernel, &is_refused);
    gpi__delete(&context->allocator, copy);
    if (status && is_refused) {
        gpi__say(&context->log, GEMMEPI_LOG_WARNING, "%s is in a bundle and cannot be loaded: %s",
                 source->entry, gpi__error_text);
        return GEMMEPI_OK;
    }
    if (status)
        return status;
    kernel->arch = code->arch;
    context->kernels_from_bundle++;
    return GEMMEPI_OK;
}

/* Fills in kernel where a bundle has it that the driver takes. */
static gemmepi_status gpi__kernel_from_bundle(gemmepi_context *context, const gpi__kernel_source *source,
                                              gpi__kernel *kernel) {
    gemmepi_status status = GEMMEPI_OK;
    const gpi__bundle *bundle;
    for (bundle = context->bundles; bundle && !status && !kernel->function; bundle = bundle->next) {
        const gpi__code *code =
            (const gpi__code *)gpi__map_find(&bundle->by_key, source->key, source->key_size);
        if (code)
            status = gpi__load_bundled(context, source, code, kernel);
    }
    return status;
}

/* 1 if the kernel came from disk. A cubin that this driver does not take is a miss. */
static int gpi__kernel_from_disk(gemmepi_context *context, const gpi__compiler *compiler,
                                 const gpi__kernel_source *source, gpi__kernel *kernel) {
    char key[GPI__CODE_KEY_SIZE];
    size_t key_size = gpi__kernel_key(key, compiler, source->file, source->prologue), size = 0;
    void *image = NULL;
    if (!gpi__disk_cache_get(&context->disk, "cubin", key, key_size, &image, &size))
        return 0;
    if (gpi__load_and_keep(context, source, image, size, compiler, kernel)) {
        gpi__delete(&context->allocator, image);
        return 0;
    }
    context->kernels_from_disk++;
    return 1;
}

/* Once for a context, where the log of a compilation says so: NVRTC 12.0 to 12.3 did so to earlier kernels for Hopper. */
static void gpi__warn_of_nvrtc(gemmepi_context *context, const char *entry) {
    int version = context->nvrtc.version;
    if (!context->warned_of_nvrtc)
        gpi__say(
            &context->log, GEMMEPI_LOG_WARNING,
            "NVRTC %d.%d has wgmma wait after each instruction of %s, which makes it slow; another version may not",
            version / 1000, version % 1000 / 10, entry);
    context->warned_of_nvrtc = 1;
}

/* Where it is not there and bundles were to do without it, the sentence says what they lack. */
static gemmepi_status gpi__open_nvrtc(gemmepi_context *context, const char *entry) {
    gemmepi_status status;
    if (context->has_nvrtc)
        return GEMMEPI_OK;
    status = gpi__load_nvrtc(&context->loader, &context->nvrtc);
    if (!status)
        context->has_nvrtc = 1;
    else if (context->bundles)
        status = gpi__fail(status, "no bundle has %s for compute capability %d.%d, and %s", entry,
                           context->arch / 10, context->arch % 10, gpi__error_text);
    return status;
}

static gemmepi_status gpi__compile_kernel(gemmepi_context *context, const gpi__compiler *compiler,
                                          const gpi__kernel_source *source, gpi__kernel *kernel) {
    char key[GPI__CODE_KEY_SIZE];
    size_t key_size = gpi__kernel_key(key, compiler, source->file, source->prologue);
    gpi__target target;
    gpi__image image;
    gemmepi_status status;
    snprintf(target.name, sizeof target.name, "%.20s%s", compiler->target,
             gpi__target_suffix(source->file, source->prologue));
    target.is_ptx = compiler->is_ptx;
    target.keeps_ptx = context->dump_path != NULL;
    target.reports = 0;
    gpi__unlock(&context->build_lock);
    status =
        gpi__compile(&context->nvrtc, &context->allocator, source->file, source->prologue, &target, &image);
    if (!status && context->dump_path)
        gpi__dump_kernel(context, gpi__find_source(source->file), source->prologue, source->entry, &target,
                         &image);
    gpi__lock(&context->build_lock);
    if (status)
        return status;
    if (image.serialises_wgmma)
        gpi__warn_of_nvrtc(context, source->entry);
    status = gpi__load_and_keep(context, source, image.data, image.size, compiler, kernel);
    if (!status) {
        context->kernels_compiled++;
        gpi__say(&context->log, GEMMEPI_LOG_DEBUG, "compiled %s for %s", source->file, target.name);
        gpi__disk_cache_put(&context->disk, "cubin", key, key_size, image.data, image.size);
        gpi__remember_compiler(context, compiler);
        image.data = NULL; /* it is kept */
    }
    gpi__free_image(&context->allocator, &image);
    return status;
}

/* Fills in kernel. The primary context is current. */
static gemmepi_status gpi__build_kernel(gemmepi_context *context, const gpi__kernel_source *source,
                                        gpi__kernel *kernel) {
    gpi__compiler recalled, compiler;
    gpi__target target;
    gemmepi_status status;
    int knows;
    status = gpi__kernel_from_bundle(context, source, kernel);
    if (status || kernel->function)
        return status;
    knows = gpi__recall_compiler(context, &recalled);
    if (knows && gpi__kernel_from_disk(context, &recalled, source, kernel))
        return GEMMEPI_OK;
    memset(&target, 0, sizeof target); /* all of its bytes go into a key */
    status = gpi__open_nvrtc(context, source->entry);
    if (!status)
        status = gpi__choose_target(&context->nvrtc, context->arch, &target);
    if (status)
        return status;
    memset(&compiler, 0, sizeof compiler);
    compiler.nvrtc_version = context->nvrtc.version;
    compiler.is_ptx = target.is_ptx;
    memcpy(compiler.target, target.name, sizeof compiler.target);
    if ((!knows || memcmp(&compiler, &recalled, sizeof compiler) != 0) &&
        gpi__kernel_from_disk(context, &compiler, source, kernel))
        return GEMMEPI_OK;
    return gpi__compile_kernel(context, &compiler, source, kernel);
}

static gemmepi_status gpi__build_source(gemmepi_context *context, const char *file, const char *prologue,
                                        const char *entry, gpi__kernel *kernel) {
    gpi__kernel_source source;
    source.file = file;
    source.prologue = prologue;
    source.entry = entry;
    source.key_size = gpi__code_key(source.key, context->arch, file, prologue);
    return gpi__build_kernel(context, &source, kernel);
}

/* The kernel of a key, which is known to the context from then on, without its code at first. */
static gemmepi_status gpi__know_kernel(gemmepi_context *context, const char *key, size_t length,
                                       gpi__kernel **found) {
    gpi__kernel *kernel = (gpi__kernel *)gpi__map_find(&context->kernels, key, length);
    if (!kernel) {
        kernel = (gpi__kernel *)gpi__new(&context->allocator, sizeof *kernel);
        if (!kernel)
            return GEMMEPI_OUT_OF_MEMORY;
        if (!gpi__map_insert(&context->kernels, key, length, kernel)) {
            gpi__delete(&context->allocator, kernel);
            return GEMMEPI_OUT_OF_MEMORY;
        }
    }
    *found = kernel;
    return GEMMEPI_OK;
}

/* The kernel `entry` of `file` under `prologue`, renamed to `name`, which profilers show; stays until the context goes. */
static gemmepi_status gpi__find_kernel(gemmepi_context *context, const char *file, const char *prologue,
                                       const char *entry, const char *name, gpi__kernel **found) {
    char key[GPI__KERNEL_KEY_SIZE], room[GPI__KERNEL_KEY_SIZE]; /* for all but formulas */
    gpi__text text = gpi__text_in(key, sizeof key);
    size_t size = strlen(entry) + strlen(name) + strlen(prologue) + 16;
    char *longer = size > sizeof room ? (char *)gpi__new(&context->allocator, size) : NULL;
    char *renamed = longer ? longer : room;
    gpi__kernel *kernel = NULL;
    gemmepi_status status;
    if (size > sizeof room && !longer)
        return GEMMEPI_OUT_OF_MEMORY;
    snprintf(renamed, size, "#define %s %s\n%s", entry, name, prologue);
    gpi__append(&text, "%s\n", file);
    gpi__append_prologue(&text, renamed);
    status = gpi__know_kernel(context, key, text.length, &kernel);
    while (!status && kernel->is_being_built)
        gpi__wait(&context->kernel_built, &context->build_lock);
    if (!status && !kernel->function) { /* and where it could not be built before, it is tried again */
        kernel->is_being_built = 1;
        status = gpi__build_source(context, file, renamed, name, kernel);
        kernel->is_being_built = 0;
        gpi__wake_all(&context->kernel_built);
    }
    gpi__delete(&context->allocator, longer);
    *found = kernel;
    return status;
}

static void gpi__free_kernel(void *user, gpi__map_entry *entry) {
    gemmepi_context *context = (gemmepi_context *)user;
    gpi__kernel *kernel = (gpi__kernel *)entry->value;
    if (context->entered_to_destroy && kernel->function)
        context->driver.module_unload(kernel->module);
    gpi__delete(&context->allocator, kernel);
}

#endif
