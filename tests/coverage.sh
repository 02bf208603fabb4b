#!/bin/sh
# Which lines of src/ the tests of the host run, by file, and the functions that none runs: `make coverage`, from the repository's root. The unit tests and the tests of
# products, layers and element-wise operations are compiled with -O0 and --coverage, run on the host, and asked by gcov, or by
# llvm-cov where CC is clang. The tests include the parts of src/, so that lines are those of the sources.
. tests/compile/lines.sh
ROOT=$(pwd)
FOLDER=$ROOT/build/coverage
C=${CC:-cc}
gcov=gcov
"$C" --version 2>/dev/null | grep -q clang && gcov='llvm-cov gcov'
if ! has "${gcov%% *}"; then
    skip "coverage: there is no ${gcov%% *}"
    finish
fi
# one SOURCE: compiles and runs it; says how that ended
one() {
    name=$(echo "${1#tests/}" | tr / _)
    name=${name%.c}
    mkdir -p "$FOLDER/$name"
    case $1 in
    tests/unit/*) options='' ;;
    *) options='-DGEMMEPI_IMPLEMENTATION=' ;;
    esac
    cd "$FOLDER/$name" || return
    "$C" -std=c99 -O0 -w --coverage $options -I"$FOLDER" -I"$ROOT/src" -I"$ROOT/tests" -I"$ROOT" "$ROOT/$1" -o program \
        -lm -ldl -lpthread >said.txt 2>&1 || {
        echo "FAIL coverage $1: it does not compile"
        return
    }
    cd "$ROOT" || return
    if GEMMEPI_TEST_DEVICE=host TEST_SHARE=4 "$FOLDER/$name/program" >"$FOLDER/$name/said.txt" 2>&1; then
        echo "ok   coverage $1"
    else
        grep '^FAIL ' "$FOLDER/$name/said.txt"
        echo "FAIL coverage $1"
    fi
    cd "$FOLDER/$name" && $gcov -b -p ./*.gcda >/dev/null 2>&1
}

if [ "$1" = --one ]; then
    one "$2"
    exit 0
fi
rm -rf "$FOLDER"
mkdir -p "$FOLDER"
echo '#include "gemmepi.in.h"' >"$FOLDER/gemmepi.h"
ls tests/unit/*.c tests/products/*.c tests/elementwise/*.c tests/linear/*.c tests/network/*.c >"$FOLDER/list"
xargs -P "${JOBS:-$(getconf _NPROCESSORS_ONLN)}" -I '{}' sh tests/coverage.sh --one '{}' <"$FOLDER/list" >"$FOLDER/said.txt"
grep -v '^ok ' "$FOLDER/said.txt"
passed=$(grep -c '^ok ' "$FOLDER/said.txt") failed=$(grep -c '^FAIL coverage ' "$FOLDER/said.txt")

# A line that any test ran is run; 'count: line: text', count '-' for no code and '#####' for never.
cat "$FOLDER"/*/*src#*.h.gcov | awk -F: '
    $2 + 0 == 0 && $3 == "Source" { file = $4; sub(/.*\/src\//, "", file); next }
    { count = $1; gsub(/[ *]/, "", count) }
    $2 + 0 > 0 && count != "-" {
        key = file ":" $2 + 0
        if (!(key in seen)) { seen[key] = 1; all[file]++; total++ }
        if (count + 0 > 0 && !(key in ran)) { ran[key] = 1; done[file]++; total_done++ }
    }
    END {
        for (file in all) printf "%-28s %6d of %6d lines %5.1f %%\n", file, done[file], all[file], 100 * done[file] / all[file]
        if (total) printf "~ %-26s %6d of %6d lines %5.1f %%\n", "all", total_done, total, 100 * total_done / total
    }' | sort | sed 's/^~ //' | tee "$FOLDER/table.txt"
attempt 'there is a table' test -s "$FOLDER/table.txt"

# 'function NAME called COUNT', for each program. One runs in children alone, which leave no counts.
awk '/^function gemmepi/ { called[$2] += $4 } END { for (name in called) if (!called[name] && name != "gpi__count_fork") print name }' \
    "$FOLDER"/*/*src#*.h.gcov | sort >"$FOLDER/never.txt"
sed 's/^/never run: /' "$FOLDER/never.txt"
attempt 'every function runs' test ! -s "$FOLDER/never.txt"
finish
