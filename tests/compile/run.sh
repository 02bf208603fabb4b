#!/bin/sh
# What a user's compiler makes of gemmepi.h: copied alone into an empty folder and compiled as every language, with
# every option and after every header that programs use it with. Called by tests/run.sh in the repository's root; CC
# and CXX are tried beside whichever of gcc, g++, clang and clang++ there are. With TEST_PART=I/N every N-th group of tests, from the
# I-th on.
. tests/compile/lines.sh
WARNINGS='-pedantic -Wall -Wextra -Wconversion -Wshadow -Werror'
LIBS='-lm -ldl -lpthread'
ROOT=$(pwd)
FOLDER=$ROOT/build/compile/${part%/*}

rm -rf "$FOLDER"
mkdir -p "$FOLDER"
cp gemmepi.h "$FOLDER"
cd "$FOLDER" || exit 1

# >>the programs; all of them are C and C++ alike

cat >interface.c <<'END'
#include "gemmepi.h"
int uses_the_interface(void);
int uses_the_interface(void) {
    gemmepi_config config = {GEMMEPI_DEVICE_HOST, NULL, NULL, {NULL, NULL, NULL}, NULL, 0, NULL, NULL, NULL, 0, NULL, 0, 0, 0, 0, 0};
    gemmepi_context *context = NULL;
    if (gemmepi_create(&config, &context) != GEMMEPI_OK)
        return 1;
    gemmepi_destroy(context);
    return 0;
}
END
cat >implementation.c <<'END'
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
END
cat >twice.c <<'END'
#include "gemmepi.h"
#include "gemmepi.h"
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
#include "gemmepi.h"
#undef GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
END
cat >main.c <<'END'
#include "gemmepi.h"
#include <stdio.h>
#include <string.h>
int uses_the_interface(void);

#ifdef GEMMEPI_NO_HOST
/* there is nothing to run on */
int main(void) {
    gemmepi_config config;
    gemmepi_context *context = NULL;
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE_HOST;
    printf("%s\n", gemmepi_status_name(gemmepi_create(&config, &context)));
    return gemmepi_create(&config, &context) != GEMMEPI_NO_DEVICE || !uses_the_interface() ||
           !strstr(gemmepi_last_error(), "GEMMEPI_NO_HOST");
}
#else
/* 1 2 3 times its transpose is 14, plus 1 is 15 */
int main(void) {
    float a[3] = {1, 2, 3}, bias[1] = {1}, d[1] = {0};
    gemmepi_config config;
    gemmepi_context *context = NULL;
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    gemmepi_status status;
    memset(&config, 0, sizeof config);
    memset(&desc, 0, sizeof desc);
    memset(&args, 0, sizeof args);
    config.device = GEMMEPI_DEVICE_HOST;
    desc.m = desc.n = 1;
    desc.k = 3;
    desc.epilogue = GEMMEPI_RELU | GEMMEPI_BIAS;
    args.a = args.b = a;
    args.bias = bias;
    args.d = d;
    status = gemmepi_create(&config, &context);
    if (!status)
        status = gemmepi_matmul(context, &desc, &args, NULL);
    gemmepi_destroy(context);
    if (status || d[0] < 15 || d[0] > 15)
        printf("status %d, %s; got %g\n", (int)status, gemmepi_last_error(), (double)d[0]);
    return status || d[0] < 15 || d[0] > 15 || uses_the_interface();
}
#endif
END
cat >lost.c <<'END'
#include "gemmepi.h"
void loses_a_status(gemmepi_context *context);
void loses_a_status(gemmepi_context *context) {
    gemmepi_synchronize(context, NULL);
}
END
cat >system.c <<'END'
#include <assert.h>
#include <complex.h>
#include <ctype.h>
#include <errno.h>
#include <fenv.h>
#include <float.h>
#include <inttypes.h>
#include <iso646.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tgmath.h>
#include <time.h>
#include <wchar.h>
#include <wctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
END
# the reverse order: nothing that the header defines may disturb a system header
sed -n '/GEMMEPI_IMPLEMENTATION/,$p' system.c >before.c
sed '/GEMMEPI_IMPLEMENTATION/,$d' system.c >>before.c
sed '1,$s/^#include "gemmepi.h"$/#define GEMMEPI_IMPLEMENTATION\n&/' interface.c >static_interface.c
sed '1,$s/^#include "gemmepi.h"$/#define GEMMEPI_IMPLEMENTATION\n&/' main.c >static_main.c
cat >key.c <<'END'
#include "static_interface.c"
void key_in_another_file(void *key);
void key_in_another_file(void *key) {
    gpi__stream_key mine = gpi__key_of_stream((gemmepi_stream)(uintptr_t)GPI__CU_STREAM_PER_THREAD);
    memcpy(key, &mine, sizeof mine);
}
END
cat >keys.c <<'END'
#define main runs_on_the_host
#include "static_main.c"
#undef main
#include <pthread.h>
void key_in_another_file(void *key);

static void *in_a_thread(void *key) {
    key_in_another_file(key);
    return NULL;
}

/* each thread is the first of its file */
int main(void) {
    gpi__block theirs;
    gpi__stream_key mine = gpi__key_of_stream((gemmepi_stream)(uintptr_t)GPI__CU_STREAM_PER_THREAD);
    pthread_t thread;
    memset(&theirs, 0, sizeof theirs);
    if (pthread_create(&thread, NULL, in_a_thread, &theirs.stream) != 0 || pthread_join(thread, NULL) != 0)
        return 1;
    return theirs.stream.handle != mine.handle || gpi__is_of_stream(&theirs, mine) || runs_on_the_host();
}
END
cat >receivers.c <<'END'
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(gemmepi_status status) {
    if (status != GEMMEPI_OK) {
        fprintf(stderr, "%s: %s\n", gemmepi_status_name(status), gemmepi_last_error());
        exit(1);
    }
}

/* What a failed call would have filled in can be given back: it is NULL. */
static int failed_calls_leave_null(void) {
    gemmepi_config config;
    gemmepi_context *host = NULL, *context;
    gemmepi_stream stream;
    gemmepi_plan *plan, *layer, *operation;
    gemmepi_matmul_desc desc;
    gemmepi_plan_details details;
    void *memory, *none;
    int right = 1;
    memset(&desc, 0, sizeof desc);
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE_HOST;
    if (gemmepi_create(&config, &host) != GEMMEPI_OK)
        return puts(gemmepi_last_error()), 0;
    memset(&context, 1, sizeof context);
    memset(&stream, 1, sizeof stream);
    memset(&memory, 1, sizeof memory);
    memset(&none, 1, sizeof none);
    memset(&plan, 1, sizeof plan);
    memset(&layer, 1, sizeof layer);
    memset(&operation, 1, sizeof operation);
    memset(&details, 1, sizeof details);
    desc.m = -1;
    config.device = -7;
    right &= gemmepi_create(&config, &context) != GEMMEPI_OK && !context;
    right &= gemmepi_alloc(host, (size_t)-1, &memory) != GEMMEPI_OK && !memory;
    right &= gemmepi_alloc(NULL, 8, &none) != GEMMEPI_OK && !none;
    right &= gemmepi_stream_create(NULL, &stream) != GEMMEPI_OK && !stream;
    right &= gemmepi_plan_matmul(host, &desc, &plan) != GEMMEPI_OK && !plan;
    right &= gemmepi_plan_linear(host, NULL, &layer) != GEMMEPI_OK && !layer;
    right &= gemmepi_plan_elementwise(host, NULL, &operation) != GEMMEPI_OK && !operation;
    right &= gemmepi_plan_info(NULL, &details) != GEMMEPI_OK && !details.launches && !details.route_name;
    gemmepi_destroy(host);
    return right;
}

/* Nothing that a function fills in has a value before. */
int main(void) {
    float host[3] = {7, 0, 0};
    int64_t shape[1] = {1};
    gemmepi_config config;
    gemmepi_context *context;
    gemmepi_context_details about;
    gemmepi_stream stream;
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    gemmepi_linear_desc layer;
    gemmepi_elementwise_desc operation;
    gemmepi_tensor tensor;
    gemmepi_epilogue_needs needs;
    gemmepi_plan *plan, *forward, *backward, *elementwise;
    gemmepi_plan_details details;
    void *memory;
    memset(&config, 0, sizeof config);
    memset(&desc, 0, sizeof desc);
    memset(&args, 0, sizeof args);
    memset(&layer, 0, sizeof layer);
    memset(&operation, 0, sizeof operation);
    memset(&tensor, 0, sizeof tensor);
    desc.m = desc.n = desc.k = layer.m = layer.n = layer.k = 1;
    layer.flags = GEMMEPI_LINEAR_DB;
    tensor.rank = 1;
    tensor.shape = shape;
    operation.operation = GEMMEPI_OP_CAST;
    operation.a = operation.y = &tensor;
    config.device = GEMMEPI_DEVICE_HOST;
    check(gemmepi_create(&config, &context));
    check(gemmepi_context_info(context, &about));
    check(gemmepi_epilogue_info(&desc, &needs));
    check(gemmepi_plan_matmul(context, &desc, &plan));
    check(gemmepi_plan_linear(context, &layer, &forward));
    check(gemmepi_plan_linear_backward(context, &layer, &backward));
    check(gemmepi_plan_elementwise(context, &operation, &elementwise));
    check(gemmepi_plan_info(plan, &details));
    check(gemmepi_stream_create(context, &stream));
    check(gemmepi_alloc(context, 512, &memory));
    check(gemmepi_upload(context, memory, host, sizeof host[0], stream));
    args.a = args.b = memory;
    args.d = (char *)memory + 256;
    check(gemmepi_run_matmul(plan, &args, stream));
    check(gemmepi_download(context, host + 1, args.d, sizeof host[0], stream));
    gemmepi_plan_destroy(plan);
    gemmepi_plan_destroy(forward);
    gemmepi_plan_destroy(backward);
    gemmepi_plan_destroy(elementwise);
    check(gemmepi_free(context, memory));
    check(gemmepi_stream_destroy(context, stream));
    gemmepi_destroy(context);
    return strcmp(about.name, "host") != 0 || needs.reads_bias || details.route != GEMMEPI_ROUTE_HOST ||
           host[1] < 48.5f || host[1] > 49.5f || !failed_calls_leave_null();
}
END
cat >rest.c <<'END'
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
#include <stdio.h>
#include <string.h>

static int fails(gemmepi_status status) {
    if (status != GEMMEPI_OK)
        printf("%s: %s\n", gemmepi_status_name(status), gemmepi_last_error());
    return status != GEMMEPI_OK;
}

/* What is left out is refused by name, what is not runs. */
static int layers_are_right(gemmepi_context *context) {
    float a[3] = {1, 2, 3}, y[1] = {0};
    gemmepi_linear_desc desc;
    gemmepi_any_desc any;
    memset(&desc, 0, sizeof desc);
    memset(&any, 0, sizeof any);
    desc.m = desc.n = 1;
    desc.k = 3;
    any.linear = &desc;
#ifdef GEMMEPI_NO_LINEAR
    return gemmepi_precompile(context, &any, 1, 1, NULL, NULL) == GEMMEPI_UNSUPPORTED && a[0] > y[0] &&
           strstr(gemmepi_last_error(), "GEMMEPI_NO_LINEAR");
#else
    gemmepi_linear_args args;
    memset(&args, 0, sizeof args);
    args.a = args.b = a;
    args.y = y;
    return !fails(gemmepi_precompile(context, &any, 1, 1, NULL, NULL)) &&
           !fails(gemmepi_linear(context, &desc, &args, NULL)) && y[0] > 13.5f && y[0] < 14.5f;
#endif
}

static int operations_are_right(gemmepi_context *context) {
    float values[2] = {-1, 3};
    int64_t shape[1];
    gemmepi_tensor tensor;
    gemmepi_elementwise_desc desc;
    gemmepi_any_desc any;
    memset(&tensor, 0, sizeof tensor);
    memset(&desc, 0, sizeof desc);
    memset(&any, 0, sizeof any);
    shape[0] = 2;
    tensor.data = values;
    tensor.rank = 1;
    tensor.shape = shape;
    desc.operation = GEMMEPI_OP_ACTIVATION;
    desc.activation = GEMMEPI_RELU;
    desc.a = desc.y = &tensor;
    any.elementwise = &desc;
#ifdef GEMMEPI_NO_ELEMENTWISE
    return gemmepi_precompile(context, &any, 1, 1, NULL, NULL) == GEMMEPI_UNSUPPORTED &&
           strstr(gemmepi_last_error(), "GEMMEPI_NO_ELEMENTWISE");
#else
    return !fails(gemmepi_precompile(context, &any, 1, 1, NULL, NULL)) &&
           !fails(gemmepi_elementwise(context, &desc, NULL, NULL)) && values[0] >= 0 && values[0] <= 0 &&
           values[1] > 2.5f;
#endif
}

static int products_are_right(gemmepi_context *context) {
    float a[3] = {1, 2, 3}, d[1] = {0};
    char text[256];
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    gemmepi_plan_details details;
    gemmepi_plan *plan = NULL;
    memset(&desc, 0, sizeof desc);
    memset(&args, 0, sizeof args);
    desc.m = desc.n = 1;
    desc.k = 3;
    desc.alignment = sizeof(float);
    args.a = args.b = a;
    args.d = d;
    if (fails(gemmepi_plan_matmul(context, &desc, &plan)) || fails(gemmepi_plan_prepare(plan, NULL)) ||
        fails(gemmepi_run_matmul(plan, &args, NULL)) || fails(gemmepi_plan_info(plan, &details)) ||
        !gemmepi_plan_explain(plan, text, sizeof text))
        return 0;
    gemmepi_plan_destroy(plan);
    return d[0] > 13.5f && d[0] < 14.5f && details.route == GEMMEPI_ROUTE_HOST;
}

#ifndef GEMMEPI_NO_ELEMENTWISE
static int formulas_over_tensors_are_right(gemmepi_context *context) {
    float x[1] = {3}, y[1] = {0};
    gemmepi_tensor from, to;
    gemmepi_operand operand;
    gemmepi_elementwise_desc desc;
    memset(&from, 0, sizeof from);
    memset(&to, 0, sizeof to);
    memset(&operand, 0, sizeof operand);
    memset(&desc, 0, sizeof desc);
    from.data = x;
    to.data = y;
    operand.name = "x";
    operand.kind = GEMMEPI_SCALAR;
    operand.tensor = &from;
    desc.formula = "d = x * x";
    desc.operands = &operand;
    desc.operand_count = 1;
    desc.y = &to;
#ifdef GEMMEPI_NO_FORMULA
    return gemmepi_elementwise(context, &desc, NULL, NULL) == GEMMEPI_UNSUPPORTED && x[0] > y[0] &&
           strstr(gemmepi_last_error(), "GEMMEPI_NO_FORMULA");
#else
    return !fails(gemmepi_elementwise(context, &desc, NULL, NULL)) && y[0] > 8.5f && y[0] < 9.5f;
#endif
}
#endif

static int formulas_are_right(gemmepi_context *context) {
    float a[3] = {1, 2, 3}, d[1] = {0};
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    memset(&desc, 0, sizeof desc);
    memset(&args, 0, sizeof args);
    desc.m = desc.n = 1;
    desc.k = 3;
    desc.alignment = sizeof(float);
    desc.formula = "d = v / 2";
    args.a = args.b = a;
    args.d = d;
#ifdef GEMMEPI_NO_FORMULA
    return gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_UNSUPPORTED && a[0] > d[0] &&
           strstr(gemmepi_last_error(), "GEMMEPI_NO_FORMULA");
#else
    return !fails(gemmepi_matmul(context, &desc, &args, NULL)) && d[0] > 6.5f && d[0] < 7.5f;
#endif
}

int main(void) {
    gemmepi_config config;
    gemmepi_context *context = NULL;
    int right;
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE_HOST;
    if (fails(gemmepi_create(&config, &context)))
        return 1;
    right = products_are_right(context) && layers_are_right(context) && operations_are_right(context) &&
            formulas_are_right(context);
#ifndef GEMMEPI_NO_ELEMENTWISE
    right = right && formulas_over_tensors_are_right(context);
#endif
    gemmepi_destroy(context);
    return !right;
}
END
cat >uses_layers.c <<'END'
#include "gemmepi.h"
gemmepi_status uses(void);
gemmepi_status uses(void) {
    return gemmepi_linear(NULL, NULL, NULL, NULL);
}
END
sed 's/gemmepi_linear(/gemmepi_elementwise(/' uses_layers.c >uses_operations.c
sed 's/gemmepi_linear(/gemmepi_network(/' uses_layers.c >uses_networks.c
cat >uses_formulas.c <<'END'
#include "gemmepi.h"
size_t uses(void);
size_t uses(void) {
    return gemmepi_derive(NULL, NULL, 0);
}
END

cat >refused.c <<'END'
#include OTHER
#include <stdio.h>
#include <string.h>
/* The library was compiled with another header, and says so. */
int main(void) {
    gemmepi_config config;
    gemmepi_context *context = NULL;
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE_HOST;
    if (gemmepi_create(&config, &context) == GEMMEPI_INVALID_ARGUMENT && !context && strstr(gemmepi_last_error(), SENTENCE))
        return 0;
    printf("%s\n", gemmepi_last_error());
    return 1;
}
END
# the header with a field more, and that of the minor version before
minor=$(sed -n 's/^#define GEMMEPI_VERSION_MINOR *\([0-9]*\)$/\1/p' gemmepi.h)
sed 's/^typedef struct gemmepi_matmul_args {/&\n    void *another;/' gemmepi.h >larger.h
sed "s/^\(#define GEMMEPI_VERSION_MINOR\) .*/\1 $((minor - 1))/" gemmepi.h >older.h

# >>the tests

hidden='-DGEMMEPI_API=__attribute__((visibility("hidden")))'
exported='-DGEMMEPI_API=__attribute__((visibility("default")))'

# compile COMPILER STANDARD OPTIONS FILE OUTPUT [MACRO...]; the language follows from the standard. gcc looks at indentation for as long as
# it takes to compile the rest: at -O2 alone.
compile() {
    compiler=$1 standard=$2 options=$3 file=$4 output=$5
    shift 5
    case $standard in
    *++*) language=c++ ;;
    *) language=c ;;
    esac
    case $options in *-O2*) ;; *) options="$options -Wno-misleading-indentation" ;; esac
    "$compiler" -x $language -std="$standard" $WARNINGS $options "$@" -c "$file" -o "$output"
}

two_files() { # COMPILER STANDARD OPTIONS [MACRO...]
    c=$1 s=$2 o=$3
    shift 3
    compile "$c" "$s" "$o" implementation.c i.o "$@" && compile "$c" "$s" "$o" main.c m.o "$@" &&
        compile "$c" "$s" "$o" interface.c u.o "$@" && "$c" i.o m.o u.o -o program $LIBS && ./program
}

# With i.o, which was compiled with gemmepi.h.
refuses_other_headers() { # COMPILER STANDARD
    compile "$1" "$2" -O0 refused.c o.o '-DOTHER="larger.h"' '-DSENTENCE="gemmepi_matmul_args has "' &&
        "$1" o.o i.o -o program $LIBS && ./program &&
        compile "$1" "$2" -O0 refused.c o.o '-DOTHER="older.h"' "-DSENTENCE=\"gemmepi.h of version 0.$((minor - 1))\"" &&
        "$1" o.o i.o -o program $LIBS && ./program
}

two_static_files() { # COMPILER STANDARD [MACRO...]
    c=$1 s=$2
    shift 2
    compile "$c" "$s" -O0 keys.c m.o -DGEMMEPI_STATIC "$@" && compile "$c" "$s" -O0 key.c u.o -DGEMMEPI_STATIC "$@" &&
        "$c" m.o u.o -o program $LIBS && ./program
}

# gemmepi_create is inline where it is not static
functions=$(sed -n 's/^GEMMEPI_API .*[ *]\(gemmepi_[a-z_]*\)(.*/\1/p' "$ROOT/src/api/functions.h" | grep -vx gemmepi_create | sort -u)

# Every public function is a global one of i.o, and nothing else is.
exports_the_interface() {
    nm -P -g --defined-only i.o | sed 's/^\([^ ]* [^ ]*\).*/\1/' | sort >names
    printf '%s\n' "$functions" | sed 's/$/ T/' | sort >wanted
    diff wanted names | sed -n -e 's/^</missing:/p' -e 's/^>/should not be there:/p' >differ
    cat differ
    [ ! -s differ ] && [ -s names ] && [ -s wanted ]
}

exports_nothing() { # COMPILER STANDARD OPTIONS
    compile "$1" "$2" "$3" implementation.c s.o -DGEMMEPI_STATIC || return 1
    nm -P -g --defined-only s.o >names
    cat names
    [ ! -s names ]
}

# As a shared library: hidden functions do not leave it, exported ones do. A program of the same object runs.
leaves_a_library() { # COMPILER STANDARD API EXPECTED
    compile "$1" "$2" '-O0 -fPIC -fvisibility=hidden' implementation.c i.o "$3" &&
        "$1" -shared i.o -o library.so $LIBS || return 1
    nm -D -P --defined-only library.so | sed -n 's/^\(gemmepi_[a-z_]*\) T.*/\1/p' | sort >names
    [ "$(cat names)" = "$4" ] || { echo "leaving the library:" $(cat names) && return 1; }
    compile "$1" "$2" -O0 main.c m.o "$3" && compile "$1" "$2" -O0 interface.c u.o "$3" &&
        "$1" i.o m.o u.o -o program $LIBS && ./program
}

interface() { # COMPILER STANDARD
    compile "$1" "$2" -O0 interface.c u.o && compile "$1" "$2" -O2 interface.c u.o
}

runs_static() { # COMPILER STANDARD OPTIONS FILE
    compile "$1" "$2" "$3" "$4" r.o -DGEMMEPI_STATIC && "$1" r.o -o program $LIBS && ./program
}

is_clang() { # COMPILER
    case $1 in *clang*) ;; *) return 1 ;; esac
}

runs_with() { # COMPILER STANDARD OPTIONS...
    c=$1 s=$2
    shift 2
    compile "$c" "$s" -O0 rest.c r.o "$@" && "$c" r.o -o program $LIBS && ./program
}

# Compiles, and with the options does not.
is_left_out() { # COMPILER STANDARD FILE OPTIONS...
    c=$1 s=$2 f=$3
    shift 3
    compile "$c" "$s" -O0 "$f" r.o && ! compile "$c" "$s" -O0 "$f" r.o "$@" 2>/dev/null
}

needs_no_layers() { # COMPILER STANDARD
    ! compile "$1" "$2" -O0 interface.c r.o -DGEMMEPI_NO_ELEMENTWISE 2>said && grep -q GEMMEPI_NO_LINEAR said
}

# What a program leaves out, and the least of all.
options_of() { # COMPILER STANDARD
    clang=clang runs='the rest runs'
    case $2 in *++*) clang=clang++ ;; esac
    # where there is clang it makes the programs, in a third of the time, and gcc reads them
    is_clang "$1" || ! has $clang || runs='the rest is read'
    for row in NO_NETWORK NO_LINEAR NO_LINEAR:NO_ELEMENTWISE NO_SM80 NO_SM90 NO_FP8 NO_FORMULA NO_LINEAR:NO_ELEMENTWISE:NO_SM80:NO_SM90:NO_FP8:NO_FORMULA; do
        options=$(printf '%s' "$row" | sed 's/[^:]*/-DGEMMEPI_&/g; s/:/ /g')
        if [ "$runs" = 'the rest runs' ]; then
            attempt "$1 -std=$2: $row, and $runs" runs_with "$1" "$2" $options
        else
            attempt "$1 -std=$2: $row, and $runs" compile "$1" "$2" -fsyntax-only rest.c r.o $options
        fi
    done
    attempt "$1 -std=$2: NO_HOST and all these" compile "$1" "$2" -O0 implementation.c i.o -DGEMMEPI_NO_HOST $options
    attempt "$1 -std=$2: layers that are left out are not declared" \
        is_left_out "$1" "$2" uses_layers.c -DGEMMEPI_NO_LINEAR
    attempt "$1 -std=$2: networks that are left out are not declared" \
        is_left_out "$1" "$2" uses_networks.c -DGEMMEPI_NO_NETWORK
    attempt "$1 -std=$2: operations that are left out are not declared" \
        is_left_out "$1" "$2" uses_operations.c -DGEMMEPI_NO_LINEAR -DGEMMEPI_NO_ELEMENTWISE
    attempt "$1 -std=$2: formulas that are left out are not declared" \
        is_left_out "$1" "$2" uses_formulas.c -DGEMMEPI_NO_FORMULA
    attempt "$1 -std=$2: layers need element-wise operations" needs_no_layers "$1" "$2"
}

# gcc's optimiser follows values through static functions, and warns of more than it does otherwise; clang warns of the same whatever it
# optimises. In one standard of each language; at -O2 all is compiled anyway.
receivers_of() { # COMPILER STANDARD
    level=-O3
    ! is_clang "$1" || level=-O0
    attempt "$1 -std=$2: GEMMEPI_STATIC $level, receivers that have no value, or NULL" runs_static "$1" "$2" $level receivers.c
}

tests_of() { # COMPILER STANDARD
    attempt "$1 -std=$2: the interface alone, -O0 and -O2" interface "$1" "$2"
    attempt "$1 -std=$2: implementation and user in two files, -O0" two_files "$1" "$2" -O0
    attempt "$1 -std=$2: a program with another header is refused in words" refuses_other_headers "$1" "$2"
}

# tcc compiles the interface; the implementation's first error, and its only one, says why not. Where there is no tcc its macro stands for it.
tells_tcc_why_not() {
    tcc="$C -D__TINYC__"
    ! has tcc || tcc=tcc
    $tcc -c "$FOLDER/interface.c" -o "$FOLDER/u.o" || return 1
    ! $tcc -c "$FOLDER/implementation.c" -o "$FOLDER/i.o" 2>"$FOLDER/said" || return 1
    [ "$(grep -c 'error:' "$FOLDER/said")" -eq 1 ] && grep -q 'tcc has no thread-local variables' "$FOLDER/said" ||
        { cat "$FOLDER/said" && return 1; }
}

# Two choices at once.
choices_of() { # COMPILER STANDARD
    attempt "$1 -std=$2: GEMMEPI_API exported, GEMMEPI_NO_HOST" two_files "$1" "$2" -O0 "$exported" -DGEMMEPI_NO_HOST
    attempt "$1 -std=$2: GEMMEPI_STATIC, GEMMEPI_NO_HOST in two files" two_static_files "$1" "$2" -DGEMMEPI_NO_HOST
}

warns_of_a_lost_status() { # COMPILER STANDARD
    if compile "$1" "$2" -O0 lost.c l.o 2>said; then
        echo 'it compiles'
        return 1
    fi
    grep nodiscard said || { cat said && return 1; }
}

now() {
    date +%s%N
}

milliseconds() { # of a command, by one: the quickest of ten runs
    least=
    for i in 1 2 3 4 5 6 7 8 9 10; do
        begin=$(now)
        "$@" || return 1
        took=$((($(now) - begin) / 1000000))
        [ -n "$least" ] && [ "$took" -ge "$least" ] || least=$took
    done
    echo "$least"
}

# Times are printed, not tested: a busy machine is no fault of the header.
time_of_the_interface() { # COMPILER STANDARD
    echo 'extern int nothing;' >nothing.c
    (cat nothing.c && echo '#include "gemmepi.h"') >something.c
    none=$(milliseconds compile "$1" "$2" -O2 nothing.c n.o)
    some=$(milliseconds compile "$1" "$2" -O2 something.c n.o)
    echo "$1 -std=$2: the interface costs $((some - none)) ms of compilation"
}

# In one standard for each compiler, these four. clang++ makes of the header what clang does.
exports_of() { # COMPILER STANDARD
    c=$1 s=$2 n="$1 -std=$2" level=-O2
    [ "$1" != clang++ ] || level=-O0
    begin=$(date +%s)
    attempt "$n: the implementation, $level" compile "$c" "$s" $level implementation.c i.o
    echo "$n: the implementation costs $(($(date +%s) - begin)) s at $level"
    if has nm; then
        attempt "$n: exports the public functions and nothing else" exports_the_interface
        attempt "$n: exports nothing with GEMMEPI_STATIC" exports_nothing "$c" "$s" -O0
        attempt "$n: hidden functions stay in their library" leaves_a_library "$c" "$s" "$hidden" ''
        attempt "$n: exported functions leave their library" leaves_a_library "$c" "$s" "$exported" "$functions"
    else
        skip "$n: exported names: there is no nm"
    fi
}

files_of() { # COMPILER STANDARD
    c=$1 s=$2 n="$1 -std=$2"
    attempt "$n: included twice" compile "$c" "$s" -fsyntax-only twice.c t.o
    attempt "$n: GEMMEPI_NO_HOST" two_files "$c" "$s" -O0 -DGEMMEPI_NO_HOST
}

static_files_of() { # COMPILER STANDARD
    attempt "$1 -std=$2: GEMMEPI_STATIC in two files, with default streams of threads" two_static_files "$1" "$2"
}

headers_of() { # COMPILER STANDARD
    c=$1 s=$2 n="$1 -std=$2"
    attempt "$n: after every C99 and POSIX header" compile "$c" "$s" -fsyntax-only system.c s.o
    attempt "$n: the same with _GNU_SOURCE" compile "$c" "$s" -fsyntax-only system.c s.o -D_GNU_SOURCE
    attempt "$n: the same with _POSIX_C_SOURCE=200809L" compile "$c" "$s" -fsyntax-only system.c s.o -D_POSIX_C_SOURCE=200809L
    attempt "$n: before every C99 and POSIX header" compile "$c" "$s" -fsyntax-only before.c s.o
    case $(now) in *[!0-9]*) ;; *) time_of_the_interface "$c" "$s" ;; esac
}

others='gcc clang'
found=
for compiler in "${CC:-cc}" $others; do
    case " $found " in *" $compiler "*) continue ;; esac
    if ! has "$compiler"; then
        skip "$compiler: there is none"
        continue
    fi
    # cc is another name of gcc or clang, tested as itself
    case $compiler in cc) has gcc && continue ;; esac
    found="$found $compiler"
    mine tests_of "$compiler" c99
    mine tests_of "$compiler" c11
    mine receivers_of "$compiler" c99
    mine exports_of "$compiler" c99
    mine files_of "$compiler" c99
    mine options_of "$compiler" c99
    mine choices_of "$compiler" c99
    mine static_files_of "$compiler" c99
    mine headers_of "$compiler" c99
done
others='g++ clang++'
found=
for compiler in "${CXX:-g++}" $others; do
    case " $found " in *" $compiler "*) continue ;; esac
    if ! has "$compiler"; then
        skip "$compiler: there is none"
        found="$found $compiler"
        continue
    fi
    case $compiler in c++) has g++ && continue ;; esac
    found="$found $compiler"
    newest=c++20
    echo 'int main() {}' | "$compiler" -x c++ -std=$newest -fsyntax-only - 2>/dev/null || newest=c++17
    mine tests_of "$compiler" c++11
    mine tests_of "$compiler" $newest
    mine attempt "$compiler -std=$newest: warns of a status that nobody looks at" warns_of_a_lost_status "$compiler" $newest
    mine receivers_of "$compiler" $newest
    mine exports_of "$compiler" c++11
    mine files_of "$compiler" c++11
    mine options_of "$compiler" c++11
    mine choices_of "$compiler" c++11
    mine static_files_of "$compiler" c++11
    mine headers_of "$compiler" c++11
done

# >>the rest

cd "$ROOT" || exit 1
C=${CC:-cc}

# They are read with the implementation, as their readers have it, and compiled with the interface; or with both, where all functions are static.
compiles_as_readers_have_it() { # COMPILER STANDARD FILE
    if grep -q '^#define GEMMEPI_STATIC' "$3"; then
        "$1" -std="$2" -O1 $WARNINGS -I. -c "$3" -o "$FOLDER/example.o"
        return
    fi
    "$1" -std="$2" $WARNINGS -I. -fsyntax-only "$3" && "$1" -std="$2" -O1 $WARNINGS -I"$FOLDER/interface" -I. -c "$3" -o "$FOLDER/example.o"
}
mkdir -p "$FOLDER/interface"
sed '/^#if defined(GEMMEPI_IMPLEMENTATION)/,$d' gemmepi.h >"$FOLDER/interface/gemmepi.h"
for example in examples/*.c examples/*.cpp; do
    [ -f "$example" ] || continue
    case $example in
    *.cpp) compiler=${CXX:-g++} standard=c++11 ;;
    *) compiler=$C standard=c99 ;;
    esac
    if has "$compiler"; then
        mine attempt "$example compiles without a warning" compiles_as_readers_have_it "$compiler" $standard "$example"
    else
        skip "$example: there is no $compiler"
    fi
done

# what is left, in the last part
[ $((${part%/*} + 1)) -eq "${part#*/}" ] || finish
printf '#include "kernels_src.h"\nextern const void *a_use;\nconst void *a_use = gpi__sources;\n' >"$FOLDER/literals.c"
if "$C" --version 2>&1 | grep -q -i -e gcc -e 'Free Software'; then
    attempt 'no literal of kernels_src.h is longer than 4095 bytes' "$C" -std=c99 -pedantic -Woverlength-strings \
        -Werror -I. -c "$FOLDER/literals.c" -o "$FOLDER/l.o"
else
    skip "no literal of kernels_src.h is longer than 4095 bytes: $C is no gcc"
fi

attempt 'tcc compiles the interface, and of the implementation one sentence says why not' tells_tcc_why_not

name="docs/api.json says what the compiler finds in gemmepi.h"
if command -v python3 >/dev/null 2>&1; then
    attempt "$name" python3 tests/compile/api_json.py
else
    skip "$name: there is no python3"
fi

toolkit=
for folder in "$CUDA_PATH" "$CUDA_HOME" /usr/local/cuda /opt/cuda; do
    [ -n "$toolkit" ] || { [ -n "$folder" ] && [ -f "$folder/include/cublasLt.h" ] && toolkit=$folder/include; }
done
name='our declarations agree with the CUDA toolkit'\''s headers'
if [ -z "$toolkit" ]; then
    skip "$name: there is no toolkit with cublasLt.h (looked in CUDA_PATH, CUDA_HOME, /usr/local/cuda, /opt/cuda)"
elif ! has "${CXX:-g++}" || ! echo 'int main() {}' | "${CXX:-g++}" -x c++ -std=c++17 -fsyntax-only - 2>/dev/null; then
    skip "$name: there is no C++17 compiler"
else
    attempt "$name" "${CXX:-g++}" -std=c++17 -Isrc -isystem "$toolkit" -fsyntax-only tests/compile/declarations.cpp
fi

name='nvcc: the implementation in a .cu file compiles without a warning'
nvcc=$(command -v nvcc || ls "${toolkit%/include}/bin/nvcc" 2>/dev/null)
if [ -z "$nvcc" ]; then
    skip "$name: there is no nvcc"
else
    attempt "$name" "$nvcc" -std=c++17 -O1 -Werror all-warnings -I. -x cu -c "$FOLDER/implementation.c" -o "$FOLDER/nvcc.o"
fi

finish
