#!/bin/sh
# The demo learns: at least 95 % of the test digits with each of five seeds, on this machine's device, and once more
# with SILU and once on the host. Run from the repository's root after build/digits was built.
passed=0 failed=0

learns() {
    name=$1
    shift
    if output=$(build/digits "$@" --svg build/demo_test.svg examples/data/digits.csv 2>&1) &&
        percent=$(printf '%s\n' "$output" | sed -n 's/^accuracy \([0-9]*\)\..*/\1/p') &&
        [ -n "$percent" ] && [ "$percent" -ge 95 ] && grep -q '</svg>' build/demo_test.svg; then
        echo "ok   the_demo_learns_$name"
        passed=$((passed + 1))
    else
        printf '%s\n' "$output" | tail -n 12
        echo "FAIL the_demo_learns_$name (accuracy ${percent:-none})"
        failed=$((failed + 1))
    fi
    rm -f build/demo_test.svg
}

for seed in 1 2 3 4 5; do
    learns "with_seed_$seed" --seed $seed
done
learns with_silu --silu
learns on_the_host --host
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
