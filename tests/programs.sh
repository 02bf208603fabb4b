#!/bin/sh
# The programs that make builds, as tests: the demo learns at least 95 % of the test digits with each of five seeds, on this
# machine's device, and once more with SILU and once on the host; the fp8 example reads as many; the gates example finds its
# gradients right; the gated network of mlp learns; that of PyTorch has its gradients, too; what ship makes runs
# without a compiler; every cell of make table runs and is right on the host. Run from the repository's root after the programs
# were built.
passed=0 failed=0 skipped=0

# verdict NAME STATUS OUTPUT
verdict() {
    if [ "$2" -eq 0 ]; then
        echo "ok   $1"
        passed=$((passed + 1))
    else
        printf '%s\n' "$3" | tail -n 12
        echo "FAIL $1"
        failed=$((failed + 1))
    fi
}

learns() {
    name=the_demo_learns_$1
    shift
    output=$(build/digits "$@" --svg build/demo_test.svg examples/data/digits.csv 2>&1) &&
        percent=$(printf '%s\n' "$output" | sed -n 's/^accuracy \([0-9]*\)\..*/\1/p') &&
        [ -n "$percent" ] && [ "$percent" -ge 95 ] && grep -q '</svg>' build/demo_test.svg
    verdict "$name" $? "$output"
    rm -f build/demo_test.svg
}

for seed in 1 2 3 4 5; do
    learns "with_seed_$seed" --seed $seed
done
learns with_silu --silu
learns on_the_host --host

output=$(build/fp8 examples/data/digits.csv 2>&1) &&
    [ "$(printf '%s\n' "$output" | grep -c -E '^(F32|E4M3|E5M2|I8) +(9[5-9]|100)\.[0-9] % right$')" -eq 4 ]
verdict the_fp8_example_reads_digits_in_eight_bits $? "$output"

output=$(build/gates 2>&1 && build/gates --host 2>&1)
verdict the_gates_example_has_the_gradients_of_its_loss $? "$output"

for seed in 1 2 3; do
    output=$(build/mlp --seed $seed examples/data/digits.csv 2>&1) &&
        percent=$(printf '%s\n' "$output" | sed -n 's/^accuracy \([0-9]*\)\..*/\1/p') && [ -n "$percent" ] &&
        [ "$percent" -ge 95 ]
    verdict "the_gated_network_learns_with_seed_$seed" $? "$output"
done

# 77: PyTorch or python3 is missing, and the example has said so
name=the_pytorch_example_has_the_gradients_of_autograd
if ! command -v python3 >/dev/null 2>&1; then
    echo "skip $name: there is no python3"
    skipped=$((skipped + 1))
else
    output=$(python3 examples/torch_ctypes.py 2>&1)
    status=$?
    if [ $status -eq 77 ]; then
        echo "skip $name: $output"
        skipped=$((skipped + 1))
    else
        verdict "$name" $status "$output"
    fi
fi

# Where there is no GPU both commands say so, and run takes the host.
output=$(build/ship make build/ship_test.gemmepi 2>&1)
status=$?
case $output in
'no bundle: '*'the context is on the host'*) [ $status -ne 0 ] && output=$(build/ship run build/ship_test.gemmepi 2>&1) &&
    echo "$output" | grep -q '^no GPU is used' && echo "$output" | grep -q '^kernels: 0 from the bundle, 0 compiled$' ;;
*) [ $status -eq 0 ] && output=$(build/ship run build/ship_test.gemmepi 2>&1) &&
    echo "$output" | grep -q '^kernels: [1-9][0-9]* from the bundle, 0 compiled$' ;;
esac
verdict the_ship_example_compiles_nothing_where_it_runs $? "$output"
rm -f build/ship_test.gemmepi

output=$(build/tests/table --host 2>&1)
verdict every_cell_of_the_table_is_right_on_the_host $? "$output"

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
