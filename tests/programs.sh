#!/bin/sh
# The programs that make builds, as tests: the demo learns at least 95 % of the test digits with each of five seeds, on this
# machine's device, and once more with SILU and once on the host; the fp8 example learns as well as F32; the gates example finds its
# gradients right; the gated network of mlp and the mixture of experts learn; the network of sines learns a picture and writes it as a PNG; the other
# examples of formulas agree with plain loops; what ship makes runs without a compiler;
# every cell of make table runs and is right on the host. Run from the repository's root after the programs were built.
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
    printf '%s\n' "$output" | grep -q -E '^of 449 digits .*F32 reads (9[4-9]|100)\.[0-9] % right and fp8 (9[4-9]|100)\.[0-9] %$' &&
    printf '%s\n' "$output" | awk '$1 == 12 { learnt = $2 < 0.15 && $3 < $2 + 0.02 } END { exit !learnt }'
verdict the_fp8_example_learns_as_f32_does $? "$output"

output=$(build/gates 2>&1 && build/gates --host 2>&1)
verdict the_gates_example_has_the_gradients_of_its_loss $? "$output"

for seed in 1 2 3; do
    output=$(build/mlp --seed $seed examples/data/digits.csv 2>&1) &&
        percent=$(printf '%s\n' "$output" | sed -n 's/^accuracy \([0-9]*\)\..*/\1/p') && [ -n "$percent" ] &&
        [ "$percent" -ge 95 ]
    verdict "the_gated_network_learns_with_seed_$seed" $? "$output"
done

# Each expert has its part of the digits, between a quarter and three times of an equal one.
for seed in 1 2 3; do
    output=$(build/moe --seed $seed examples/data/digits.csv 2>&1) &&
        percent=$(printf '%s\n' "$output" | sed -n 's/^accuracy \([0-9]*\)\..*/\1/p') && [ -n "$percent" ] &&
        [ "$percent" -ge 95 ] &&
        [ "$(printf '%s\n' "$output" | awk '/^ +[0-7] .*%/ && $2 > 3 && $2 < 38' | wc -l)" -eq 8 ]
    verdict "the_mixture_of_experts_learns_with_seed_$seed" $? "$output"
done

# A PNG whose chunks and pixels are whole, 388 x 128 of them; without python3 its first and last bytes.
is_png() {
    if command -v python3 >/dev/null 2>&1; then
        python3 - "$1" <<'EOF'
import struct, sys, zlib

data = open(sys.argv[1], "rb").read()
assert data[:8] == b"\x89PNG\r\n\x1a\n"
at, chunks = 8, {}
while at < len(data):
    size = struct.unpack(">I", data[at : at + 4])[0]
    name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
    assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(name + body)
    chunks[name] = body
    at += 12 + size
assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
assert chunks[b"IHDR"] == struct.pack(">IIBBBBB", 388, 128, 8, 2, 0, 0, 0)
assert len(zlib.decompress(chunks[b"IDAT"])) == 128 * (3 * 388 + 1)
EOF
    else
        [ "$(head -c 4 "$1" | tail -c 3)" = PNG ] && [ "$(tail -c 8 "$1" | head -c 4)" = IEND ]
    fi
}

draws() {
    name=the_network_of_sines_learns_a_picture_$1
    shift
    output=$(build/siren --small --epochs 8 --png build/siren_test.png "$@" examples/data/cat.ppm 2>&1) &&
        [ "$(printf '%s\n' "$output" | grep -c 'its gradient is the slope of the loss')" -eq 3 ] &&
        decibels=$(printf '%s\n' "$output" | sed -n 's/^learnt to \([0-9]*\)\..*/\1/p') && [ -n "$decibels" ] &&
        [ "$decibels" -ge 26 ] && is_png build/siren_test.png
    verdict "$name" $? "$output"
    rm -f build/siren_test.png
}

draws with_seed_1 --seed 1
draws with_seed_2 --seed 2
draws on_the_host --host

output=$(build/cross_entropy --small 2>&1 && build/cross_entropy --small --host 2>&1) &&
    [ "$(printf '%s\n' "$output" | grep -c 'against plain loops: loss within')" -eq 4 ] &&
    [ "$(printf '%s\n' "$output" | grep -c '^loss 7\.59[0-9]*, through memory 7\.59')" -eq 2 ]
verdict the_cross_entropy_example_has_the_loss_and_gradients_of_plain_loops $? "$output"

output=$(build/norm_layer --small 2>&1 && build/norm_layer --small --host 2>&1) &&
    [ "$(printf '%s\n' "$output" | grep -c 'y is that of plain loops')" -eq 4 ] &&
    [ "$(printf '%s\n' "$output" | grep -c '^saved: the normed matrix, 0.02 MB')" -eq 2 ]
verdict the_norm_example_gives_what_plain_loops_give $? "$output"

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
