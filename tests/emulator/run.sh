#!/bin/sh
# Runs tests on the emulated GPU of this folder: `make emulate`, from the repository's root, after make has built the tests.
#
#   run.sh                             a sample of them
#   run.sh ARCH TEST [ARGUMENTS...]    one, on a GPU of that compute capability, as in: run.sh 120 products/fuzz 100 7;
#                                      TEST_SHARE=N may stand before it
#   run.sh --build                     builds it alone and says where NVRTC is; 77: something is missing
#
# TEST_PART and EMULATOR_SEED, and what else emulator.cpp names, may be set. A test fails also where the emulator has something to
# say: an address out of bounds, a barrier that nobody reaches, an operation of PTX that it does not know.
. tests/compile/lines.sh
folder=$(pwd)/build/emulator
flags='-std=c++17 -march=native -ffp-contract=off -fwrapv -fno-strict-aliasing -Wall -Wextra -Werror -Wno-unused-function -Wno-unknown-pragmas'

# The kernel for Hopper in shapes of each sort, each with another composition, all shapes of those for small products and a short k, those of
# Turing and RTX 30, fp8 in every pairing and mode of scales, and random problems on what came before it and after;
# fused SIZES SHAPE KERNELS, fuzz COUNT SEED. NVRTC takes most of the time.
sample() {
    for shape in 0 2 4 7 9 11 16; do
        echo "90 gpu/fused 1 $shape 1"
    done
    for shape in 31 32 33 34 35 36 37 38 39 40 41 42 43 44; do
        echo "90 gpu/fused 2 $shape 5"
    done
    cat <<'LIST'
75 gpu/fused 1 13 8
75 gpu/fused 1 14 4
75 gpu/fused 1 16 6
75 gpu/fused 1 17 3
75 gpu/fused 1 25 3
75 gpu/fused 1 33 4
75 gpu/fused 1 42 3
75 gpu/fused 1 19 4
75 gpu/fused 1 20 3
86 gpu/fused 1 13 4
86 gpu/fused 1 14 4
86 gpu/fused 1 23 3
86 gpu/fused 1 19 4
89 gpu/fused 1 20 3
120 gpu/fused 1 21 4
120 gpu/fused 1 29 2
90 gpu/weights 1 0 3
90 gpu/weights 1 12 3
90 gpu/weights 1 15 2
90 gpu/weights 1 17 3
90 gpu/weights 1 20 3
80 gpu/weights 1 14 2
75 gpu/fp8_shapes 1 16 4
75 gpu/fp8_shapes 1 19 3
86 gpu/fp8_shapes 1 17 3
90 gpu/weights_made 1 3 4
80 gpu/weights_made 1 10 4
90 gpu/weights_made 1 19 3
89 gpu/fp8_shapes 1 16 3
89 gpu/fp8_shapes 1 17 2
89 gpu/fp8_shapes 1 19 3
89 gpu/fp8_shapes 1 21 2
89 gpu/fp8_shapes 1 28 2
120 gpu/fp8_shapes 1 20 2
120 gpu/scaled_formats 1 0 8
120 gpu/scaled_formats 2 4 3
121 gpu/scaled_formats 1 11 2
80 gpu/scaled_formats 1
90 gpu/fp8_shapes 1 0 27
90 gpu/fp8_shapes 1 2 6
90 gpu/fp8_shapes 1 5 5
90 gpu/fp8_shapes 1 12 3
90 gpu/grouped_shapes 0
90 gpu/operands
90 gpu/casts small
90 gpu/formula_pass 16 1
90 gpu/formula_inside 0 3
90 gpu/formula_inside 1 3
90 gpu/formula_inside 3 2
90 gpu/formula_inside 3 1 47
90 gpu/formula_inside 3 2 58
90 gpu/formula_inside 3 1 71
90 gpu/formula_inside 16 2
90 gpu/formula_inside 24 2
90 gpu/formula_inside 29 2
90 gpu/formula_inside 37 2
90 gpu/formula_inside 20 2
75 gpu/formula_pass 6 2
TEST_SHARE=64 90 products/formula
TEST_SHARE=160 80 products/formula
90 gpu/invariant small
90 gpu/formula_invariant small
90 products/operand_formula 8 3
90 products/operand_docs
90 linear/operand_formula 3
80 gpu/invariant small
TEST_SHARE=150 90 products/found_scales
TEST_SHARE=180 80 products/found_scales
90 products/grouped
90 products/packed_operands
90 products/grouped_outputs
80 products/grouped_outputs
90 products/grouped_refused
90 products/fuzz 24 1
90 products/composed 24 1
90 linear/fuzz 10 1
TEST_SHARE=6 90 network/grid kernel
TEST_SHARE=20 80 network/grid kernel
TEST_SHARE=4 90 linear/bends
TEST_SHARE=16 90 linear/chain
90 elementwise/fuzz 60 1
90 elementwise/formula 1 1
80 elementwise/formula 1 2
80 gpu/operands
80 products/fuzz 16 2
75 products/fuzz 12 3
89 linear/fuzz 6 4
120 products/fuzz 16 5
LIST
}

find_nvrtc() {
    for nvrtc in "$EMULATOR_NVRTC" "$VIRTUAL_ENV"/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.1[23] \
        /usr/local/cuda*/lib64/libnvrtc.so.1[23] \
        $(ldconfig -p 2>/dev/null | sed -n 's/.*libnvrtc\.so\.1[23] .*=> //p'); do
        [ -f "$nvrtc" ] && return
    done
    return 1
}

build() {
    mkdir -p "$folder"
    [ -f "$folder/emulator.so" ] && [ -z "$(find tests/emulator src/cuda src/base -newer "$folder/emulator.so")" ] && return
    "$CXX" $flags -O2 -fvisibility=hidden -shared -fPIC tests/emulator/emulator.cpp -o "$folder/emulator.so" -ldl || return
    for name in libcuda.so.1 libcublasLt.so.13 libnvrtc.so.12 libnvrtc.so.13; do
        ln -sf emulator.so "$folder/$name"
    done
}

# on_emulator [TEST_SHARE=N] ARCH TEST [ARGUMENTS...]
on_emulator() (
    case $1 in TEST_SHARE=*) export "$1" && shift ;; esac
    export EMULATOR_ARCH="$1" EMULATOR_NVRTC="$nvrtc" GEMMEPI_TEST_DEVICE=0 XDG_CACHE_HOME="$folder/cache"
    export LD_LIBRARY_PATH="$folder:${nvrtc%/*}"
    shift
    program=build/tests/$1
    shift
    "$program" "$@"
)

# one TEST...: its lines, with the architecture before each name
one() {
    output=$folder/$(echo "$*" | tr ' /' __)_$$.txt started=$(date +%s)
    on_emulator "$@" >"$output" 2>&1
    status=$?
    sed -n "/^ok   /!p" "$output" | grep -v -E '^([0-9]+ passed, [0-9]+ failed, [0-9]+ skipped|on .*:)$'
    if [ $status -ne 0 ] || grep -q '^emulator: ' "$output" || ! grep -q '^ok   ' "$output"; then
        echo "FAIL emulated $*: status $status"
    else
        echo "ok   emulated $*: $(tail -n 1 "$output") ($(($(date +%s) - started)) s)"
    fi
    rm -f "$output"
}

if [ "$1" = --one ]; then
    nvrtc=$EMULATOR_NVRTC
    one $2
    exit 0
fi

if [ "$1" = --build ]; then
    has "${CXX:=g++}" && find_nvrtc && build && echo "$nvrtc" && exit
    exit 77
fi

if ! has "${CXX:=g++}"; then
    skip "emulated: there is no $CXX"
    finish
fi
if ! find_nvrtc; then
    skip 'emulated: there is no NVRTC'
    finish
fi
attempt 'the emulator compiles' build || finish

finds_it() {
    TEST_PART=0/1000 on_emulator 90 products/grid_exact | grep '^on emulated 9.0:$'
}
attempt 'tests find the emulator' finds_it || finish

instructions() (
    [ -x "$folder/instructions" ] && [ -z "$(find tests/emulator src/cuda src/base -newer "$folder/instructions")" ] ||
        "$CXX" $flags -O1 tests/emulator/instructions.cpp -o "$folder/instructions" -ldl || exit
    "$folder/instructions"
)
[ $# -gt 0 ] || attempt 'mma.sync is that of the manual, to the bit' instructions

# examples/parallel.c on GPUs, with streams, events and tests/fake_nccl.c's sums
several_gpus() (
    export EMULATOR_ARCH=80 EMULATOR_GPUS=2 EMULATOR_NVRTC="$nvrtc" XDG_CACHE_HOME="$folder/cache" LD_LIBRARY_PATH="$folder:${nvrtc%/*}"
    build/parallel --nccl build/fake_nccl --overlap --ctas 1 --epochs 1 --steps 1 --data examples/data/digits.csv --svg "$folder/chart.svg" >"$folder/several.txt" &&
        grep -q "^2 GPUs: .*losses within .* of one GPU's" "$folder/several.txt" && grep -q '^GPU 1: emulated' "$folder/several.txt" &&
        build/parallel --gpus 3 2>&1 | grep -q 'more GPUs than there are: there are 2 GPUs'
)
[ $# -gt 0 ] || attempt 'several emulated GPUs learn as one does' several_gpus

export CXX EMULATOR_NVRTC="$nvrtc"
if [ $# -gt 0 ]; then
    echo "$*"
else
    sample
fi >"$folder/list.txt"
xargs -P "${JOBS:-$(getconf _NPROCESSORS_ONLN)}" -I '{}' sh tests/emulator/run.sh --one '{}' <"$folder/list.txt" >"$folder/said.txt"
cat "$folder/said.txt"
said=$(grep -c -E '^(ok  |FAIL) emulated ' "$folder/said.txt") listed=$(wc -l <"$folder/list.txt")
[ "$said" -eq "$listed" ] || fail "emulated: $said of $listed tests said how they ended"
passed=$((passed + $(grep -c '^ok   ' "$folder/said.txt"))) failed=$((failed + $(grep -c '^FAIL ' "$folder/said.txt")))
finish
