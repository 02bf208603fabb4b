#!/bin/sh
# report.sh with programs of no GPU in place of those that it runs: what it writes, what it leaves out, and where it ends. Run from the
# repository's root.
. tests/compile/lines.sh
FOLDER=build/report_test
rm -rf "$FOLDER"
mkdir -p "$FOLDER/tests/gpu" "$FOLDER/tests/products" "$FOLDER/tests/linear" "$FOLDER/tests/elementwise" "$FOLDER/tests/network"

# program NAME LINES...: a script
program() {
    path=$FOLDER/$1
    shift
    printf '%s\n' '#!/bin/sh' "$@" >"$path"
    chmod +x "$path"
}

for name in gpu/graph gpu/fused gpu/fp8_shapes gpu/weights products/grid products/grid_gradients products/formula products/found_scales \
    products/fuzz linear/grid elementwise/grid network/grid; do
    program "tests/$name" 'echo "ok   a test"' 'echo "1 passed, 0 failed, 0 skipped"'
done
program tests/linear/chain 'echo "FAIL a_chain"' "echo \"  \$PWD/tests/linear/chain.c:7: not so\"" 'echo "2 passed, 1 failed, 0 skipped"' 'exit 1'
program tests/gpu/casts 'exit 3'
program tests/gpu/scaled_formats 'echo "ok   one"' 'echo "ok   another"' 'exec sleep 30'
# A race: its rows are a CSV's lines, tuned ones at half of the time; the first row fails.
program bench 'case $1 in' \
    '--card) echo "gemmepi 1.2.3"; echo "a card, compute capability 7.5"; exit ${CARD:-0} ;;' \
    '--report) echo "graph: $(grep -c "^2026," "$2") lines"; exit 0 ;;' 'esac' \
    'tuned=0 time=8' 'while [ $# -gt 0 ]; do case $1 in --rows) row=${2%..*} ;; --csv) csv=$2 ;; --tuned) tuned=1 time=4 ;; esac; shift; done' \
    'echo "cache $XDG_CACHE_HOME" >>"$csv.caches"' \
    '[ -f "$csv" ] || echo "seed,row,tuned,route,problem,ours_us,cublaslt_us,pass_us,bare_us" >"$csv"' \
    'echo "2026,$row,$tuned,fused,8x8x$row NT F16,$time,16,17,15" >>"$csv"' \
    '[ "$row" -ne 0 ] || { echo "    0 a product FAILED: $HOME/secret"; exit 1; }'

REPORT_SECONDS=60 sh tests/report.sh "$FOLDER" >"$FOLDER/said" 2>&1
status=$?

# has TEXT [TIMES]: the report has so many lines with the text
tells() {
    [ "$(grep -c -F -e "$1" "$FOLDER/report.txt")" -eq "${2:-1}" ]
}
one_row_has_both_times() {
    tells '20  8x8x20 NT F16 | fused | 8 | 4 | 16 | 17 | 15'
}
names_no_folder() {
    ! grep -F -e "$HOME/" -e "$(pwd)" -e "$(uname -n)" "$FOLDER/report.txt"
}
has_a_cache_of_its_own() {
    [ "$(sort -u "$FOLDER/report/random.csv.caches")" = "cache $(pwd)/$FOLDER/report/cache" ]
}
ends_without_a_gpu() {
    rm -f "$FOLDER/report.txt"
    CARD=77 sh tests/report.sh "$FOLDER" >"$FOLDER/said" 2>&1
    [ $? -eq 77 ] && grep -q 'there is nothing to report' "$FOLDER/said" && [ ! -e "$FOLDER/report.txt" ]
}
refuses_other_times() {
    REPORT_SECONDS=soon sh tests/report.sh "$FOLDER" >"$FOLDER/said" 2>&1
    [ $? -eq 2 ] && grep -q "REPORT_SECONDS is 'soon'" "$FOLDER/said"
}

attempt 'it ends well' [ $status -eq 0 ]
attempt 'it says what the card is' tells 'a card, compute capability 7.5'
attempt 'tests are counted, failures, crashes and those cut off, too' tells 'all: 16 passed, 2 failed, 1 skipped'
attempt 'what is cut off has the tests that it has run' tells 'gpu/scaled_formats: 2 passed, 0 failed, 1 skipped (no time left)'
attempt 'a failure has its lines' tells './tests/linear/chain.c:7: not so'
attempt 'all rows run, though one fails' tells 'graph: 12 lines'
attempt 'the row that fails is told' tells 'a product FAILED: ~/secret' 2
attempt 'a row has its times untuned and tuned' one_row_has_both_times
attempt 'no folder and no machine is named' names_no_folder
attempt 'kernels and answers have a cache of their own' has_a_cache_of_its_own
attempt 'without a GPU it says so' ends_without_a_gpu
attempt 'other times are refused' refuses_other_times
finish
