#!/bin/sh
# The tests of formulas that read text, with the compiler's checks of memory and arithmetic, and with those of clang, which sees more of
# pointers: called by tests/run.sh in the repository's root.
. tests/compile/lines.sh
FLAGS='-std=c99 -O1 -g -w -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all -Isrc -Itests'

# sanitized COMPILER NAME ARGUMENTS...
sanitized() {
    compiler=$1
    name=$2
    shift 2
    program=build/tests/unit/${name}_sanitized
    attempt "${name}_compile_sanitized_by_$compiler" "$compiler" $FLAGS "tests/unit/$name.c" -o "$program" -lm -ldl -lpthread || return
    said=$("$program" "$@" 2>&1)
    status=$?
    closing=$(printf '%s\n' "$said" | tail -n 1)
    case $closing in
    *' passed, '*' failed, '*' skipped')
        printf '%s\n' "$said" | sed '$d; s/^ok   /&sanitized by '"$compiler"': /; s/^FAIL /&sanitized by '"$compiler"': /; s/^skip /&sanitized by '"$compiler"': /'
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

mkdir -p build/tests/unit
: "${CC:=cc}"
printf 'int main(void) { return 0; }\n' >build/tests/unit/sanitized.c
for compiler in "$CC" clang; do
    [ "$compiler" = "$CC" ] || command -v "$compiler" >/dev/null 2>&1 || continue
    if ! "$compiler" $FLAGS build/tests/unit/sanitized.c -o build/tests/unit/sanitized 2>/dev/null || ! build/tests/unit/sanitized; then
        skip "formula_sanitized: $compiler has no sanitizers here"
        continue
    fi
    sanitized "$compiler" formula_parse
    sanitized "$compiler" formula_derive
    sanitized "$compiler" formula_fuzz "${1:-4000}" "${2:-1}"
    [ "$CC" = clang ] && break
done
finish
