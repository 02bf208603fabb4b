/* Triton's kernels of products, without Hopper's instructions: triton_ampere.py compiles them for 8.0 while ours are compiled, and they are loaded
   here. */
#ifndef GEMMEPI_BENCH_TRITON_H
#define GEMMEPI_BENCH_TRITON_H

#include "race.h"
#include "tensors.h"

enum {
    TRITON_KERNELS = 12,    /* of a product at most */
    TRITON_MOST_SHARED = 8, /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
    TRITON_READ = 1 << 16
};

#define TRITON_NAMES "build/triton_names.txt"

/* What triton_ampere.py prints: a line for each kernel. */
typedef struct triton_list {
    FILE *output; /* NULL: it does not run */
    char *text;   /* NULL: there are no kernels */
    size_t length;
} triton_list;

typedef struct triton_kernel {
    void *module, *function;
    unsigned threads, shared, blocks;
} triton_kernel;

typedef struct triton_kernels {
    triton_kernel all[TRITON_KERNELS];
    int count;
} triton_kernels;

/* >>all of them */

/* Of the names in TRITON_NAMES; it goes on by itself until triton_end. */
static void triton_begin(const bench *b, triton_list *list) {
    char command[160];
    snprintf(command, sizeof command, "python3 bench/triton_ampere.py build/triton %d <" TRITON_NAMES " 2>&1",
             b->details.compute_capability);
    fflush(stdout);
    list->output = popen(command, "r");
}

static void triton_close(triton_list *list) {
    free(list->text);
    memset(list, 0, sizeof *list);
}

/* The last line of a text, ended in place. */
static const char *triton_last_line(char *text) {
    char *line = strrchr(text, '\n');
    if (line)
        *line = 0;
    line = strrchr(text, '\n');
    return line ? line + 1 : text;
}

/* Where it fails there are no kernels, which is told. */
static void triton_end(triton_list *list) {
    size_t more = list->output ? TRITON_READ : 0;
    while (more) {
        char *larger = realloc(list->text, list->length + TRITON_READ + 1);
        if (!larger)
            break;
        list->text = larger;
        more = fread(list->text + list->length, 1, TRITON_READ, list->output);
        list->length += more;
        list->text[list->length] = 0;
    }
    if (!list->output || pclose(list->output)) {
        printf("Triton's kernels are not raced: %s\n",
               list->text ? triton_last_line(list->text) : "bench/triton_ampere.py does not run");
        triton_close(list);
    }
    list->output = NULL;
}

/* >>those of a product */

static int triton_load(bench *b, triton_kernel *k, const char *file, const char *entry) {
    return bench_did(b, b->driver.module_open(&k->module, file), file) &&
           race_function(b, &k->function, k->module, entry) &&
           bench_did(b, b->driver.function_set(k->function, TRITON_MOST_SHARED, (int)k->shared),
                     "a kernel of Triton's that asks for shared memory");
}

/* triton_unload takes whatever this leaves. */
static int triton_open(bench *b, const triton_list *list, const draw_problem *p, triton_kernels *kernels) {
    char name[DRAW_NAME], file[256], entry[64];
    const char *line = list->text;
    size_t length;
    draw_name(p, name);
    length = strlen(name);
    for (; line && kernels->count < TRITON_KERNELS;
         line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        triton_kernel *k = &kernels->all[kernels->count];
        if (strncmp(line, name, length) != 0 || sscanf(line + length, "\t%255[^\t]\t%63[^\t]\t%u\t%u\t%u",
                                                       file, entry, &k->threads, &k->shared, &k->blocks) != 5)
            continue;
        kernels->count++;
        if (!triton_load(b, k, file, entry))
            return 0;
    }
    return 1;
}

static void triton_unload(bench *b, triton_kernels *kernels) {
    int i;
    for (i = 0; i < kernels->count; i++)
        if (kernels->all[i].module)
            b->driver.module_unload(kernels->all[i].module);
    kernels->count = 0;
}

/* Behind its tensors a kernel may have memory of its own, which these do not use. */
static int triton_launch(bench *b, const triton_kernel *k, const tensors *t, int set) {
    static const int operands[] = {OF_A, OF_B, OF_D, OF_BIAS, OF_AUX, OF_RESIDUAL};
    void *pointers[COUNT(operands) + 2], *parameters[COUNT(operands) + 2];
    int i;
    memset(pointers, 0, sizeof pointers);
    for (i = 0; i < COUNT(pointers); i++) {
        if (i < COUNT(operands))
            pointers[i] = tensors_at(t, set, operands[i]);
        parameters[i] = &pointers[i];
    }
    return bench_did(b,
                     b->driver.launch(k->function, k->blocks, 1, 1, k->threads, 1, 1, k->shared, b->stream,
                                      parameters, NULL),
                     "launching a kernel of Triton's");
}

#endif
