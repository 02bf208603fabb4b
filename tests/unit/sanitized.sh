#!/bin/sh
# Tests with the sanitizers of the compiler, and of clang, which sees more of pointers: called by tests/run.sh in the repository's root.
#
#   sanitized.sh formulas [COUNT] [SEED]     what reads text, with checks of memory and arithmetic
#   sanitized.sh sizes                       sizes that no memory has, with checks of arithmetic
#   sanitized.sh descs                       descs of every kind on the fake GPU and the host, and files, with the same checks
#   sanitized.sh threads                     threads that share a context, with checks of what they share
#
# The last two are built by clang alone where there is one: they take the longest.
. tests/compile/lines.sh
: "${CC:=cc}"

# usable FLAGS: whether $compiler makes a program of them that runs; else this says so
usable() {
    printf 'int main(void) { return 0; }\n' >build/tests/unit/sanitized.c
    "$compiler" $1 build/tests/unit/sanitized.c -o build/tests/unit/sanitized 2>/dev/null && build/tests/unit/sanitized && return
    skip "${subject}_sanitized: $compiler has no such sanitizer here"
    return 1
}

# sanitized NAME ARGUMENTS...
sanitized() {
    name=$1
    shift
    program=build/tests/${name}_sanitized
    attempt "${name}_compile_sanitized_by_$compiler" "$compiler" $FLAGS "tests/$name.c" $IMPLEMENTATION -o "$program" -lm -ldl -lpthread ||
        return
    said=$("$program" "$@" 2>&1)
    status=$?
    closing=$(printf '%s\n' "$said" | tail -n 1)
    case $closing in
    *' passed, '*' failed, '*' skipped')
        printf '%s\n' "$said" | sed '$d; s|^ok   |&sanitized by '"$compiler"': |; s|^FAIL |&sanitized by '"$compiler"': |; s|^skip |&sanitized by '"$compiler"': |'
        passed=$((passed + $(printf '%s\n' "$said" | grep -c '^ok   ')))
        failed=$((failed + $(printf '%s\n' "$said" | grep -c '^FAIL ')))
        skipped=$((skipped + $(printf '%s\n' "$said" | grep -c '^skip ')))
        ;;
    *)
        printf '%s\n' "$said" | tail -n 40
        fail "$name, sanitized by $compiler, ended with status $status before its last line"
        ;;
    esac
}

# Compiles the implementation for all programs of the subject, which see its declarations, as the Makefile has it.
implementation() {
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL "${MAKE:-make}" --no-print-directory -s build/tests/linked/made
    IMPLEMENTATION=build/tests/linked_${subject}_$compiler.o
    echo '#include "gemmepi.in.h"' >build/tests/linked_sanitized.c
    attempt "${subject}_implementation_compiles_sanitized_by_$compiler" "$compiler" $FLAGS -Ibuild/tests/linked/defined \
        -DGEMMEPI_IMPLEMENTATION= -c build/tests/linked_sanitized.c -o "$IMPLEMENTATION" || return
    FLAGS="$FLAGS -Ibuild/tests/linked/declared -Isrc -I. -Itests"
}

formulas() {
    FLAGS='-std=c99 -O1 -g -w -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all -Isrc -Itests' IMPLEMENTATION=
    usable "$FLAGS" || return
    sanitized unit/formula_parse
    sanitized unit/formula_derive
    sanitized unit/formula_fuzz "${1:-4000}" "${2:-1}"
}

sizes() {
    FLAGS='-std=c99 -O0 -w -fsanitize=undefined,float-cast-overflow -fno-sanitize-recover=all -I. -Itests -DGEMMEPI_IMPLEMENTATION=' IMPLEMENTATION=
    usable "$FLAGS" || return
    sanitized products/extreme_sizes
}

descs() {
    FLAGS='-std=c99 -O1 -g -w -DMOST_MILLISECONDS=20000 -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all'
    usable "$FLAGS" && implementation || return
    sanitized unit/planning_fuzz 3000
    sanitized unit/files_fuzz 300
}

threads() {
    FLAGS='-std=c99 -O1 -g -w -fsanitize=thread'
    TSAN_OPTIONS=halt_on_error=1 GEMMEPI_TEST_DEVICE=host
    export TSAN_OPTIONS GEMMEPI_TEST_DEVICE
    usable "$FLAGS" && implementation || return
    sanitized unit/threads
    sanitized products/threads
    sanitized elementwise/threads
}

mkdir -p build/tests/unit build/tests/products build/tests/elementwise
subject=$1
shift
compilers="$CC clang"
case $subject in threads | descs) ! command -v clang >/dev/null 2>&1 || compilers=clang ;; esac
for compiler in $compilers; do
    [ "$compiler" = "$CC" ] || command -v "$compiler" >/dev/null 2>&1 || continue
    "$subject" "$@"
    [ "$CC" = clang ] && break
done
finish
