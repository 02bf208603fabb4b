#!/bin/sh
# report.sh FOLDER: `make report`. Runs tests, the races of 60 random products, and the same tuned, on this machine's GPU for ten minutes, or
# REPORT_SECONDS, and writes FOLDER/report.txt: what the card is, what passed, and what products took. The kernels and answers of the report are in
# a cache of its own. No name of a user, a machine or a folder gets into the file. Says so and ends with 77 where there is no GPU.
#
# FOLDER has the programs that make has built: bench, and tests/.
folder=$1
seconds=${REPORT_SECONDS:-600}
work=$folder/report
report=$folder/report.txt
rm -rf "$work"
mkdir -p "$work"
XDG_CACHE_HOME=$(cd "$work" && pwd)/cache GEMMEPI_TEST_DEVICE=${GEMMEPI_TEST_DEVICE:-0}
export XDG_CACHE_HOME GEMMEPI_TEST_DEVICE
case $seconds in *[!0-9]* | '' | ?) echo "REPORT_SECONDS is '$seconds'; accepted are seconds, from 10 on" && exit 2 ;; esac

began=$(date +%s)
left() { # PERCENT: of the time that the report has, until so much of it is gone
    echo $((began + seconds * $1 / 100 - $(date +%s)))
}

# What names a folder or a machine is left out of it.
clean() {
    sed -e "s|$(pwd)|.|g" -e "s|${HOME:-/nonexistent}|~|g" -e "s|$(uname -n)|this machine|g"
}

# within SECONDS COMMAND...: 124 where it takes longer, or there is no time left
within() {
    [ "$1" -gt 0 ] || return 124
    timeout "$@"
}

the_card() {
    echo "== the card"
    cat "$work/card"
    ! command -v nvidia-smi >/dev/null 2>&1 ||
        nvidia-smi -i "$GEMMEPI_TEST_DEVICE" --query-gpu=name,driver_version,memory.total,power.limit,clocks.max.sm --format=csv,noheader 2>/dev/null |
        sed 's/^/nvidia-smi: /'
    echo "system: $(uname -sm)"
}

# TEST_SHARE, which is the share of the grids' cases that runs, and a program with its options
programs() {
    cat <<'END'
1 gpu/graph
1 gpu/fused 1 -1 1
1 gpu/fp8_shapes 1 -1 1
1 gpu/scaled_formats 1 -1 1
1 gpu/weights 1 -1 1
200 products/grid
200 products/grid_gradients
96 products/formula
96 products/found_scales
1 products/fuzz 60 2026
96 linear/grid
1 linear/chain
96 elementwise/grid
1 gpu/casts
12 network/grid
END
}

# A line for each program, its failures, and the sum. Each has its part of the time, and what those before it have left; one that is cut
# off counts with the tests that it has run.
the_tests() {
    echo "== tests"
    to_run=$(programs | wc -l)
    programs | while read -r share name options; do
        limit=$(($(left 25) * 2 / (to_run + 1))) to_run=$((to_run - 1))
        TEST_SHARE=$share within "$limit" "$folder/tests/$name" $options >"$work/output" 2>&1 </dev/null
        status=$?
        counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$work/output" | tail -n 1)
        [ $status -ne 124 ] || counts="$(grep -c '^ok ' "$work/output") passed, $(grep -c '^FAIL ' "$work/output") failed, 1 skipped (no time left)"
        echo "$name: ${counts:-0 passed, 1 failed, 0 skipped (status $status)}"
        grep -A 2 '^FAIL ' "$work/output" | grep -v ' passed, ' | head -n 20
    done | tee "$work/tests"
    awk '/ passed, / { sub(/^[^:]*: /, ""); split($0, n, /[ ,]+/); p += n[1]; f += n[3]; s += n[5] }
        END { printf "all: %d passed, %d failed, %d skipped\n", p, f, s }' "$work/tests"
}

# Rows of 60 random products, ten at a time, until so many percent of the time are gone
races() { # PERCENT OPTIONS...
    until=$1 row=0
    shift
    while [ $row -lt 60 ]; do
        within "$(left "$until")" "$folder/bench" --random 60 --seed 2026 --rows $row..$((row + 10)) --modes graph --seconds "$race" \
            --device "$GEMMEPI_TEST_DEVICE" --csv "$work/random.csv" "$@" >"$work/output" 2>&1
        status=$?
        grep 'FAILED' "$work/output"
        [ $status -ne 124 ] || {
            echo "no time was left for all rows from $row on${1:+ ($1)}"
            return
        }
        row=$((row + 10))
    done
}

# A line for each product: microseconds untuned, tuned, and of the best alternative, which is what the report's ratios are over
the_table() {
    echo 'row  problem | route | untuned us | tuned us | cublaslt us | pass us | bare us'
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { row = $at["row"]; name[row] = $at["problem"]; time[row, $at["tuned"]] = $at["ours_us"]; route[row, $at["tuned"]] = $at["route"]
          other[row] = $at["cublaslt_us"] " | " $at["pass_us"] " | " $at["bare_us"]; if (row > last) last = row }
        END { for (row = 0; row <= last; row++) if (row in name)
            print row, " " name[row] " | " route[row, 0] (route[row, 1] == route[row, 0] || !((row, 1) in time) ? "" : ", tuned " route[row, 1]) " | " \
                time[row, 0] " | " time[row, 1] " | " other[row] }' "$work/random.csv"
}

the_products() {
    echo "== random products, in graphs; ratios are times over the best alternative's"
    races 60
    races 100 --tuned
    if [ -s "$work/random.csv" ]; then
        "$folder/bench" --report "$work/random.csv"
        the_table
    fi
}

race=$(awk "BEGIN { print $seconds / 600 }")
"$folder/bench" --card --device "$GEMMEPI_TEST_DEVICE" >"$work/card" 2>&1
status=$?
if [ $status -ne 0 ]; then
    clean <"$work/card"
    [ $status -ne 77 ] || echo 'make report measures a GPU: there is nothing to report'
    exit $status
fi
{
    echo "gemmepi's report, by make report, $(date -u +%Y-%m-%d)"
    the_card
    the_tests
    the_products
    echo "$(($(date +%s) - began)) s of $seconds"
} 2>&1 | clean | tee "$report"
echo
echo "This is in $report. Please read it, and send it in: docs/performance.md says how."
