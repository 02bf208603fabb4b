#!/bin/sh
# Compiles activations.cpp for each precision of the kernels' activations, and trig.cpp, and runs them. Called by tests/run.sh in the
# repository's root.
. tests/compile/lines.sh

# of_precision NAME DEFINES...
of_precision() {
    compiled activations_$1 tests/unit/activations.cpp "$@"
}

# compiled PROGRAM SOURCE NAME DEFINES...
compiled() {
    program=build/tests/unit/$1 source=$2 name=$3 compiles=$1_compiles
    shift 3
    attempt "$compiles" "$CXX" -std=c++17 -O2 -ffp-contract=off -Wall -Wextra -Werror -Wno-unknown-pragmas -Wno-unused-function "$@" \
        -Isrc -Itests -I. "$source" -o "$program" || return
    said=$("$program")
    status=$?
    closing=$(printf '%s\n' "$said" | tail -n 1)
    printf '%s\n' "$said" | sed "\$d; s/^ok   /&$name: /; s/^FAIL /&$name: /"
    case $closing in
    *' passed, '*' failed, 0 skipped')
        passed=$((passed + ${closing%% *}))
        closing=${closing#*, }
        failed=$((failed + ${closing%% *}))
        ;;
    *) fail "$program ended with status $status before its last line" ;;
    esac
}

if ! has "${CXX:=g++}"; then
    skip "activations: there is no $CXX"
    finish
fi
mkdir -p build/tests/unit
of_precision exact -DGEMMEPI_EXACT=1
of_precision short -DGEMMEPI_EXACT=0
of_precision long_sums -DGEMMEPI_EXACT=0 -DGEMMEPI_LONG_SUMS=1
compiled trig tests/unit/trig.cpp trig
compiled trig_short tests/unit/trig.cpp trig_short -DGEMMEPI_EXACT=0
finish
