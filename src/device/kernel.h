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

typedef struct gemmepi__kernel {
    gemmepi__cu_module module;
    gemmepi__cu_function function; /* NULL: not there, because it is being built or that has failed */
    int is_being_built;            /* by a thread; others wait for kernel_built */
    int arch; /* that it was compiled for, which may be older than the chip: 90 for 9.0 */
    unsigned
        shared; /* bytes of dynamic shared memory that it may have: the most that a launch of it asks for */
} gemmepi__kernel;

/* What NVRTC is or was, as far as the key on disk needs it. */
typedef struct gemmepi__compiler {
    int32_t nvrtc_version;
    int32_t is_ptx;
    char target[24];
} gemmepi__compiler;

/* What to build. */
typedef struct gemmepi__kernel_source {
    const char *file, *prologue;
    const char *entry; /* the kernel's name */
    char key[GEMMEPI__CODE_KEY_SIZE];
    size_t key_size;
} gemmepi__kernel_source;

static int gemmepi__arch_of(const gemmepi__compiler *compiler) {
    const char *number = strchr(compiler->target, '_');
    return number ? atoi(number + 1) : 0;
}

/* A kernel for one chip alone, by its file's name, uses what only that chip's own target has. */
static const char *gemmepi__target_suffix(const char *file) {
    return strstr(file, "_sm90") ? "a" : "";
}

/* On disk. Returns the key's length. */
static size_t gemmepi__kernel_key(char key[GEMMEPI__CODE_KEY_SIZE], const gemmepi__compiler *compiler,
                                  const char *file, const char *prologue) {
    gemmepi__text text = gemmepi__text_in(key, GEMMEPI__CODE_KEY_SIZE);
    gemmepi__append(&text, "kernel 3\nnvrtc %d\ntarget %s\n", (int)compiler->nvrtc_version, compiler->target);
    gemmepi__append_kernel(&text, file, prologue);
    return text.length;
}

static size_t gemmepi__compiler_key(char key[64], int arch) {
    gemmepi__text text = gemmepi__text_in(key, 64);
    gemmepi__append(&text, "compiler 1\narch %d\n", arch);
    return text.length;
}

static int gemmepi__recall_compiler(gemmepi_context *context, gemmepi__compiler *compiler) {
    char key[64];
    void *payload = NULL;
    size_t size = 0;
    int found = gemmepi__disk_cache_get(&context->disk, "compiler", key,
                                        gemmepi__compiler_key(key, context->arch), &payload, &size);
    int usable = found && size == sizeof *compiler;
    if (usable) {
        memcpy(compiler, payload, sizeof *compiler);
        compiler->target[sizeof compiler->target - 1] = 0;
    }
    if (found)
        gemmepi__delete(&context->allocator, payload);
    return usable;
}

static void gemmepi__remember_compiler(gemmepi_context *context, const gemmepi__compiler *compiler) {
    char key[64];
    gemmepi__disk_cache_put(&context->disk, "compiler", key, gemmepi__compiler_key(key, context->arch),
                            compiler, sizeof *compiler);
}

/* Whether a result of the driver's is of the image, and not of the device or of memory. */
static int gemmepi__is_of_image(gemmepi__cu_result result) {
    return result == GEMMEPI__CUDA_ERROR_INVALID_IMAGE || result == GEMMEPI__CUDA_ERROR_NO_BINARY_FOR_GPU ||
           result == GEMMEPI__CUDA_ERROR_INVALID_PTX ||
           result == GEMMEPI__CUDA_ERROR_JIT_COMPILER_NOT_FOUND ||
           result == GEMMEPI__CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
           result == GEMMEPI__CUDA_ERROR_INVALID_SOURCE || result == GEMMEPI__CUDA_ERROR_NOT_FOUND;
}

/* *is_refused: whether the driver does not take the image. */
static gemmepi_status gemmepi__load_module(gemmepi_context *context, const void *image, const char *entry,
                                           gemmepi__kernel *kernel, int *is_refused) {
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
    *is_refused = gemmepi__is_of_image(result);
    return gemmepi__cuda_failed(&context->driver, result, what);
}

/* Loads an image from the allocator and keeps it, for a bundle. It belongs to the context where that succeeds. */
static gemmepi_status gemmepi__load_and_keep(gemmepi_context *context, const gemmepi__kernel_source *source,
                                             void *image, size_t size, const gemmepi__compiler *compiler,
                                             gemmepi__kernel *kernel) {
    int is_refused;
    gemmepi_status status = gemmepi__load_module(context, image, source->entry, kernel, &is_refused);
    if (status)
        return status;
    kernel->arch = gemmepi__arch_of(compiler);
    status = gemmepi__keep_code(context, source->key, source->key_size, image, size, kernel->arch);
    if (status) {
        kernel->function = NULL;
        context->driver.module_unload(kernel->module);
    }
    return status;
}

/* The driver is given a copy, aligned and with a zero behind it, which ends PTX. An image that it does not take leaves kernel as it is. */
static gemmepi_status gemmepi__load_bundled(gemmepi_context *context, const gemmepi__kernel_source *source,
                                            const gemmepi__code *code, gemmepi__kernel *kernel) {
    gemmepi_status status;
    int is_refused = 0;
    char *copy = (char *)gemmepi__new(&context->allocator, code->size + 1);
    if (!copy)
        return GEMMEPI_OUT_OF_MEMORY;
    memcpy(copy, code->image, code->size);
    status = gemmepi__load_module(context, copy, source->entry, kernel, &is_refused);
    gemmepi__delete(&context->allocator, copy);
    if (status && is_refused) {
        gemmepi__say(&context->log, GEMMEPI_LOG_WARNING, "%s is in a bundle and cannot be loaded: %s",
                     source->entry, gemmepi__error_text);
        return GEMMEPI_OK;
    }
    if (status)
        return status;
    kernel->arch = code->arch;
    context->kernels_from_bundle++;
    return GEMMEPI_OK;
}

/* Fills in kernel where a bundle has it that the driver takes. */
static gemmepi_status gemmepi__kernel_from_bundle(gemmepi_context *context,
                                                  const gemmepi__kernel_source *source,
                                                  gemmepi__kernel *kernel) {
    gemmepi_status status = GEMMEPI_OK;
    const gemmepi__bundle *bundle;
    for (bundle = context->bundles; bundle && !status && !kernel->function; bundle = bundle->next) {
        const gemmepi__code *code =
            (const gemmepi__code *)gemmepi__map_find(&bundle->by_key, source->key, source->key_size);
        if (code)
            status = gemmepi__load_bundled(context, source, code, kernel);
    }
    return status;
}

/* 1 if the kernel came from disk. A cubin that this driver does not take is a miss. */
static int gemmepi__kernel_from_disk(gemmepi_context *context, const gemmepi__compiler *compiler,
                                     const gemmepi__kernel_source *source, gemmepi__kernel *kernel) {
    char key[GEMMEPI__CODE_KEY_SIZE];
    size_t key_size = gemmepi__kernel_key(key, compiler, source->file, source->prologue), size = 0;
    void *image = NULL;
    if (!gemmepi__disk_cache_get(&context->disk, "cubin", key, key_size, &image, &size))
        return 0;
    if (gemmepi__load_and_keep(context, source, image, size, compiler, kernel)) {
        gemmepi__delete(&context->allocator, image);
        return 0;
    }
    context->kernels_from_disk++;
    return 1;
}

/* Once for a context, where the log of a compilation says so: NVRTC 12.0 to 12.3 did so to earlier kernels for Hopper. */
static void gemmepi__warn_of_nvrtc(gemmepi_context *context, const char *entry) {
    int version = context->nvrtc.version;
    if (!context->warned_of_nvrtc)
        gemmepi__say(
            &context->log, GEMMEPI_LOG_WARNING,
            "NVRTC %d.%d has wgmma wait after each instruction of %s, which makes it slow; another version may not",
            version / 1000, version % 1000 / 10, entry);
    context->warned_of_nvrtc = 1;
}

/* Where it is not there and bundles were to do without it, the sentence says what they lack. */
static gemmepi_status gemmepi__open_nvrtc(gemmepi_context *context, const char *entry) {
    gemmepi_status status;
    if (context->has_nvrtc)
        return GEMMEPI_OK;
    status = gemmepi__load_nvrtc(&context->loader, &context->nvrtc);
    if (!status)
        context->has_nvrtc = 1;
    else if (context->bundles)
        status = gemmepi__fail(status, "no bundle has %s for compute capability %d.%d, and %s", entry,
                               context->arch / 10, context->arch % 10, gemmepi__error_text);
    return status;
}

static gemmepi_status gemmepi__compile_kernel(gemmepi_context *context, const gemmepi__compiler *compiler,
                                              const gemmepi__kernel_source *source, gemmepi__kernel *kernel) {
    char key[GEMMEPI__CODE_KEY_SIZE];
    size_t key_size = gemmepi__kernel_key(key, compiler, source->file, source->prologue);
    gemmepi__target target;
    gemmepi__image image;
    gemmepi_status status;
    snprintf(target.name, sizeof target.name, "%.20s%s", compiler->target,
             gemmepi__target_suffix(source->file));
    target.is_ptx = compiler->is_ptx;
    target.keeps_ptx = context->dump_path != NULL;
    gemmepi__unlock(&context->build_lock);
    status = gemmepi__compile(&context->nvrtc, &context->allocator, source->file, source->prologue, &target,
                              &image, NULL);
    if (!status && context->dump_path)
        gemmepi__dump_kernel(context, gemmepi__find_source(source->file), source->prologue, source->entry,
                             &target, &image);
    gemmepi__lock(&context->build_lock);
    if (status)
        return status;
    if (image.serialises_wgmma)
        gemmepi__warn_of_nvrtc(context, source->entry);
    status = gemmepi__load_and_keep(context, source, image.data, image.size, compiler, kernel);
    if (!status) {
        context->kernels_compiled++;
        gemmepi__say(&context->log, GEMMEPI_LOG_DEBUG, "compiled %s for %s", source->file, target.name);
        gemmepi__disk_cache_put(&context->disk, "cubin", key, key_size, image.data, image.size);
        gemmepi__remember_compiler(context, compiler);
        image.data = NULL; /* it is kept */
    }
    gemmepi__free_image(&context->allocator, &image);
    return status;
}

/* Fills in kernel. The primary context is current. */
static gemmepi_status gemmepi__build_kernel(gemmepi_context *context, const gemmepi__kernel_source *source,
                                            gemmepi__kernel *kernel) {
    gemmepi__compiler recalled, compiler;
    gemmepi__target target;
    gemmepi_status status;
    int knows;
    status = gemmepi__kernel_from_bundle(context, source, kernel);
    if (status || kernel->function)
        return status;
    knows = gemmepi__recall_compiler(context, &recalled);
    if (knows && gemmepi__kernel_from_disk(context, &recalled, source, kernel))
        return GEMMEPI_OK;
    memset(&target, 0, sizeof target); /* all of its bytes go into a key */
    status = gemmepi__open_nvrtc(context, source->entry);
    if (!status)
        status = gemmepi__choose_target(&context->nvrtc, context->arch, &target);
    if (status)
        return status;
    memset(&compiler, 0, sizeof compiler);
    compiler.nvrtc_version = context->nvrtc.version;
    compiler.is_ptx = target.is_ptx;
    memcpy(compiler.target, target.name, sizeof compiler.target);
    if ((!knows || memcmp(&compiler, &recalled, sizeof compiler) != 0) &&
        gemmepi__kernel_from_disk(context, &compiler, source, kernel))
        return GEMMEPI_OK;
    return gemmepi__compile_kernel(context, &compiler, source, kernel);
}

static gemmepi_status gemmepi__build_source(gemmepi_context *context, const char *file, const char *prologue,
                                            const char *entry, gemmepi__kernel *kernel) {
    gemmepi__kernel_source source;
    source.file = file;
    source.prologue = prologue;
    source.entry = entry;
    source.key_size = gemmepi__code_key(source.key, context->arch, file, prologue);
    return gemmepi__build_kernel(context, &source, kernel);
}

/* The kernel of a key, which is known to the context from then on, without its code at first. */
static gemmepi_status gemmepi__know_kernel(gemmepi_context *context, const char *key, size_t length,
                                           gemmepi__kernel **found) {
    gemmepi__kernel *kernel = (gemmepi__kernel *)gemmepi__map_find(&context->kernels, key, length);
    if (!kernel) {
        kernel = (gemmepi__kernel *)gemmepi__new(&context->allocator, sizeof *kernel);
        if (!kernel)
            return GEMMEPI_OUT_OF_MEMORY;
        if (!gemmepi__map_insert(&context->kernels, key, length, kernel)) {
            gemmepi__delete(&context->allocator, kernel);
            return GEMMEPI_OUT_OF_MEMORY;
        }
    }
    *found = kernel;
    return GEMMEPI_OK;
}

/* The kernel `entry` of `file` under `prologue`, renamed to `name`, which profilers show; stays until the context goes. */
static gemmepi_status gemmepi__find_kernel(gemmepi_context *context, const char *file, const char *prologue,
                                           const char *entry, const char *name, gemmepi__kernel **found) {
    char key[GEMMEPI__KERNEL_KEY_SIZE], room[GEMMEPI__KERNEL_KEY_SIZE]; /* for all but formulas */
    gemmepi__text text = gemmepi__text_in(key, sizeof key);
    size_t size = strlen(entry) + strlen(name) + strlen(prologue) + 16;
    char *longer = size > sizeof room ? (char *)gemmepi__new(&context->allocator, size) : NULL;
    char *renamed = longer ? longer : room;
    gemmepi__kernel *kernel = NULL;
    gemmepi_status status;
    if (size > sizeof room && !longer)
        return GEMMEPI_OUT_OF_MEMORY;
    snprintf(renamed, size, "#define %s %s\n%s", entry, name, prologue);
    gemmepi__append(&text, "%s\n", file);
    gemmepi__append_prologue(&text, renamed);
    status = gemmepi__know_kernel(context, key, text.length, &kernel);
    while (!status && kernel->is_being_built)
        gemmepi__wait(&context->kernel_built, &context->build_lock);
    if (!status && !kernel->function) { /* and where it could not be built before, it is tried again */
        kernel->is_being_built = 1;
        status = gemmepi__build_source(context, file, renamed, name, kernel);
        kernel->is_being_built = 0;
        gemmepi__wake_all(&context->kernel_built);
    }
    gemmepi__delete(&context->allocator, longer);
    *found = kernel;
    return status;
}

static void gemmepi__free_kernel(void *user, gemmepi__map_entry *entry) {
    gemmepi_context *context = (gemmepi_context *)user;
    gemmepi__kernel *kernel = (gemmepi__kernel *)entry->value;
    if (context->entered_to_destroy && kernel->function)
        context->driver.module_unload(kernel->module);
    gemmepi__delete(&context->allocator, kernel);
}

#endif
