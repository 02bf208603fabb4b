#!/bin/sh
# The snippets of README.md, of the manual and of docs/ as a reader would use them: each section's files are written into an
# empty folder beside gemmepi.h, its commands are run there, and what they print is what the page shows. Programs in C are
# compiled and run as C++11, too. Called by tests/run.sh in the repository's root.
#
# A program of one file is read with all of gemmepi.h, but compiled with its interface and linked with the implementation, which make has
# compiled once: all but those of README.md and the manual.
# A snippet of code begins with a comment that is its file's name; headers, and C files that are named, are there for the other sections
# of its page, too.
# ```sh are a section's commands, ```text is what they print. With TEST_PART=I/N every N-th section, from the I-th on.
. tests/compile/lines.sh
CC=${CC:-cc} CXX=${CXX:-c++}
ROOT=$(pwd)
FOLDER=$ROOT/build/docs/${part%/*}
sections=0
LIBS='-lm -ldl -lpthread'
WARNINGS='-Wall -Wextra -Werror -Wno-missing-field-initializers -Wno-unused-function'

# extract PAGE FOLDER: the files of section N into FOLDER/N, its title, commands and output beside them.
extract() {
    awk -v folder="$2" '
        function complain(text) { print text >(folder "/wrong"); wrong = 1 }
        /^## / && !inside { section++; title = $0; sub(/^## /, "", title); at = folder "/" section; system("mkdir -p " at); print title >(at "/title") }
        /^```/ && inside { inside = 0; next }
        /^```[a-z]/ {
            inside = 1; language = substr($0, 4); first = 1; file = ""
            if (language == "sh") file = at "/commands"
            if (language == "text") file = at "/output"
            next
        }
        inside && first {
            first = 0
            if (file == "") {
                if (match($0, /^(\/\* |# |\/\/ )[A-Za-z_0-9.\/]+\.(c|cpp|h|py|rs|zig|txt)( |:|$)/)) {
                    name = $2; sub(/:$/, "", name); file = at "/" name
                    if (name ~ /\//) { folder_of = file; sub(/\/[^\/]*$/, "", folder_of); system("mkdir -p " folder_of) }
                } else complain("the snippet that begins with \"" $0 "\" does not name its file")
            }
        }
        inside && file != "" { print >file }
    ' "$1"
}

# shown FOLDER COMMAND...: runs the commands there, and their output is what the page shows, if it shows any
shown() {
    at=$1
    shift
    (cd "$at" && "$@" >printed 2>errors) || {
        tail -n 12 "$at/errors"
        return 1
    }
    [ ! -f "$at/output" ] || tr -d '\r' <"$at/printed" | diff "$at/output" -
}

as_cpp() { # FOLDER FILE [OBJECT]
    (cd "$1" && $CXX -x c++ -std=c++11 $WARNINGS "$2" ${3:+-x none "$3"} -o as_cpp $LIBS) && shown "$1" ./as_cpp
}

# The section makes programs of one file each, of everything in gemmepi.h.
can_be_linked() { # PAGE FOLDER
    [ "$1" != README.md ] && [ -f "$OBJECT" ] && ! grep -q -E '^(nvcc|cmake|make|x86_64-w64-mingw32-gcc|python3) |^cc .* (-c|-shared) ' "$2/commands" &&
        ! cat "$2"/*.[ch] | grep -q -E '^#define GEMMEPI_(STATIC|API|NO_)'
}

# read_whole FOLDER COMPILER...: each of its files in C, with the header that a reader has there
read_whole() (
    cd "$1" || exit
    shift
    for file in *.c; do "$@" -fsyntax-only "$file" || exit; done
)

# Why the commands of a section cannot run here; nothing if they can.
obstacle() { # FOLDER
    for tool in python3 cmake pkg-config nvcc make rustc zig x86_64-w64-mingw32-gcc wine; do
        if grep -q -E "^([A-Z_]+=[^ ]* )*$tool " "$1/commands" && ! has $tool; then
            echo "there is no $tool"
            return
        fi
    done
    if grep -q 'pip install' "$1/commands" && ! python3 -m pip --version >/dev/null 2>&1; then
        echo 'python3 has no pip'
    elif grep -q '^nvcc ' "$1/commands" && ! [ -e /dev/nvidiactl ]; then
        echo 'there is no GPU'
    elif grep -q '^import torch' "$1"/*.py 2>/dev/null && ! python3 -c 'import torch' 2>/dev/null; then
        echo 'there is no PyTorch'
    fi
}

# of_other_sections FROM TO: the C files that the commands name and the section does not have
of_other_sections() {
    for file in $(grep -o -E '[a-z_]+\.c\b' "$2/commands"); do
        [ -f "$2/$file" ] || cp "$1/$file" "$2" 2>/dev/null
    done
}

# counts sections
is_mine() {
    sections=$((sections + 1))
    [ $((sections % ${part#*/})) -eq "${part%/*}" ]
}

page() { # PAGE
    name=$(basename "$1" .md)
    mkdir -p "$FOLDER/$name"
    extract "$1" "$FOLDER/$name"
    [ "${part%/*}" -ne 0 ] || attempt "$1: every snippet of code names its file" test ! -f "$FOLDER/$name/wrong" || cat "$FOLDER/$name/wrong"
    cp "$FOLDER/$name"/*/*.h "$FOLDER/$name"/*/*.c "$FOLDER/$name" 2>/dev/null
    for title in "$FOLDER/$name"/*/title; do
        [ -f "$title" ] || continue
        at=$(dirname "$title")
        [ -f "$at/commands" ] || continue
        is_mine || continue
        of_other_sections "$FOLDER/$name" "$at"
        grep -q -E '^(\./|python3 |cc |c\+\+ |nvcc |cmake |make |x86_64-w64-mingw32-gcc )' "$at/commands" && ls "$at" | grep -q -E '\.(c|cpp|cu|py)$' || continue
        object=
        ! can_be_linked "$1" "$at" || object=$OBJECT
        cp gemmepi.h "$FOLDER/$name"/*.h "$at" 2>/dev/null
        section="$1: $(cat "$title")"
        why=$(obstacle "$at")
        if [ -n "$why" ]; then
            skip "$section: $why"
            continue
        fi
        if [ -n "$object" ]; then
            attempt "$section, with all of the header" read_whole "$at" $CC -std=c99
            ! has "$CXX" || attempt "$section, with all of the header as C++11" read_whole "$at" $CXX -x c++ -std=c++11 $WARNINGS
            cp "$INTERFACE" "$at/gemmepi.h"
        fi
        # by the compilers that make test was given; optimising takes long and changes nothing here
        sed "s|^cc |$CC $object |; s|^c++ |$CXX |; s| -O2 | |" "$at/commands" >"$at/here"
        attempt "$section" shown "$at" env GEMMEPI="$ROOT" sh -e here
        has "$CXX" || continue
        for file in "$at"/*.c; do
            if grep -q " $(basename "$file") -lm" "$at/commands" && grep -q 'int main' "$file"; then
                attempt "$section, $(basename "$file") as C++11" as_cpp "$at" "$(basename "$file")" $object
            fi
        done
    done
}

# The manual's program as it stands, and the lines of all its steps one after another, with what they take for granted.
manual() {
    at=$FOLDER/manual
    mkdir -p "$at"
    cp gemmepi.h "$at"
    awk '/^   A WHOLE PROGRAM/ { on = 1; next } /^   [A-Z]/ && on { exit } on' src/api/manual.h | sed 's/^       //' >"$at/program.c"
    printf '%s\n' '0.630432 0.734228' '0.262161 -0.154286' >"$at/output"
    attempt "the manual's program" shown "$at" sh -e -c "$CC -std=c99 $WARNINGS program.c -o program $LIBS && ./program"
    has "$CXX" && attempt "the manual's program as C++11" as_cpp "$at" program.c
    rm -f "$at/output"
    {
        cat <<'C'
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
static void check(gemmepi_status status) {
    if (status != GEMMEPI_OK)
        fprintf(stderr, "%s: %s\n", gemmepi_status_name(status), gemmepi_last_error()), exit(1);
}
enum { tokens = 8, width = 16, inner = 24 };
static uint16_t input[tokens * width];
int main(void) {
    gemmepi_context *gpu;
    gemmepi_context_details details;
    gemmepi_matmul_desc desc = {0};
    gemmepi_matmul_args args = {0};
    gemmepi_linear_desc layer = {0};
    gemmepi_linear_args tensors = {0};
    gemmepi_tensor values = {0};
    gemmepi_any_desc problem = {0};
    gemmepi_stream stream = NULL;
    gemmepi_plan *plan;
    static char text[20000];
    static const int64_t shape[2] = {tokens, inner};
    void *x, *w, *bias, *y, *p, *dy, *dx, *dw, *dbias, **all[] = {&w, &bias, &y, &p, &dy, &dx, &dw, &dbias};
    size_t i;
C
        # the other tensors are there once the context is
        awk '/^   STEP BY STEP/ { on = 1 } /^   FUNCTIONS/ { exit } on && /^          / {
            print
            if (/gemmepi_create/) print "for (i = 0; i < sizeof all / sizeof *all; i++) check(gemmepi_alloc(gpu, inner * inner * 2, all[i]));"
        }' src/api/manual.h
        echo '    for (i = 0; i < sizeof all / sizeof *all; i++) check(gemmepi_free(gpu, *all[i]));'
        echo '    check(gemmepi_free(gpu, x)); gemmepi_destroy(gpu); return text[0] == 0; }'
    } >"$at/steps.c"
    attempt "the manual's steps, one after another" shown "$at" sh -e -c "$CC -std=c99 $WARNINGS steps.c -o steps $LIBS && ./steps"
    has "$CXX" && attempt "the manual's steps as C++11" as_cpp "$at" steps.c
}

ends_with_the_licence() {
    lines=$(wc -l <LICENSE)
    tail -n $((lines + 1)) gemmepi.h | sed '$d' | diff LICENSE -
}

# The first page's rows of figures are those of docs/performance.md, which has each in one place.
figures_are_those_of_performance() {
    grep -E '^[|] H[0-9]+, ' README.md >"$FOLDER/figures" || { echo 'README.md has no row of figures' && return 1; }
    ! grep -v -x -F -f docs/performance.md "$FOLDER/figures"
}

# The gradient that the first page shows is what the cookbook's program prints.
gradient_is_what_is_printed() {
    sed -n 's/^    \(\(t[0-9]\|d_[a-z]*\) = .*\)$/\1/p' README.md >"$FOLDER/gradient"
    [ "$(wc -l <"$FOLDER/gradient")" -ge 3 ] || { echo 'README.md shows no gradient' && return 1; }
    ! grep -v -x -F -f docs/cookbook.md "$FOLDER/gradient"
}

# Every file that a page links to is there.
links_lead_somewhere() {
    status=0
    for from in *.md */*.md; do
        folder=$(dirname "$from")
        for to in $(grep -o '](\([^)]*\))' "$from" | sed 's/^](//; s/)$//; s/#.*//'); do
            case $to in
            http*) ;;
            *) [ -e "$folder/$to" ] || { echo "$from links to $to" && status=1; } ;;
            esac
        done
    done
    return $status
}

rm -rf "$FOLDER"
mkdir -p "$FOLDER"
OBJECT=$ROOT/build/tests/gemmepi.o INTERFACE=$ROOT/build/tests/interface/gemmepi.h
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL "${MAKE:-make}" --no-print-directory -s "${OBJECT#"$ROOT/"}" "${INTERFACE#"$ROOT/"}" CC="$CC" >/dev/null
XDG_CACHE_HOME=$FOLDER/cache WINEPREFIX=$FOLDER/wine WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml='
export XDG_CACHE_HOME WINEPREFIX WINEDEBUG WINEDLLOVERRIDES
if [ "${part%/*}" -eq 0 ]; then
    attempt 'README.md has at most 150 lines' test "$(wc -l <README.md)" -le 150
    attempt 'the manual has at most 120 lines' test "$(wc -l <src/api/manual.h)" -le 120
    attempt 'gemmepi.h ends with the text of LICENSE' ends_with_the_licence
    attempt 'the figures of README.md are rows of docs/performance.md' figures_are_those_of_performance
    attempt 'the gradient in README.md is printed by a program of docs/cookbook.md' gradient_is_what_is_printed
    attempt 'links between pages lead to files that are there' links_lead_somewhere
    manual
fi
for page in README.md docs/*.md; do # api.md is declarations, made from the header
    [ "$page" = docs/api.md ] && continue
    page "$page"
done
finish
