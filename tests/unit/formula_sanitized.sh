#!/bin/sh
# The tests of formulas that read text, with the compiler's checks of memory and arithmetic: called by tests/run.sh in the repository's
# root.
. tests/compile/lines.sh
FLAGS='-std=c99 -O1 -g -w -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all -Isrc -Itests'

# sanitized NAME ARGUMENTS...
sanitized() {
    name=$1
    shift
    program=build/tests/unit/${name}_sanitized
    attempt "${name}_compile_sanitized" "$CC" $FLAGS "tests/unit/$name.c" -o "$program" -lm -ldl -lpthread || return
    said=$("$program" "$@" 2>&1)
    status=$?
    closing=$(printf '%s\n' "$said" | tail -n 1)
    case $closing in
    *' passed, '*' failed, '*' skipped')
        printf '%s\n' "$said" | sed '$d; s/^ok   /&sanitized: /; s/^FAIL /&sanitized: /; s/^skip /&sanitized: /'
        passed=$((passed + $(printf '%s\n' "$said" | grep -c '^ok   ')))
        failed=$((failed + $(printf '%s\n' "$said" | grep -c '^FAIL ')))
        skipped=$((skipped + $(printf '%s\n' "$said" | grep -c '^skip ')))
        ;;
    *)
        printf '%s\n' "$said" | tail -n 40
        fail "$name, sanitized, ended with status $status before its last line"
        ;;
    esac
}

mkdir -p build/tests/unit
: "${CC:=cc}"
printf 'int main(void) { return 0; }\n' >build/tests/unit/sanitized.c
if ! "$CC" $FLAGS build/tests/unit/sanitized.c -o build/tests/unit/sanitized 2>/dev/null || ! build/tests/unit/sanitized; then
    skip "formula_sanitized: $CC has no sanitizers here"
    finish
fi
sanitized formula_parse
sanitized formula_derive
sanitized formula_fuzz "${1:-4000}" "${2:-1}"
finish
