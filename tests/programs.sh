#!/bin/sh
# The programs that make builds, as tests: the demo learns at least 95 % of the test digits with each of five seeds, on this
# machine's device, and once more with SILU and once on the host; the fp8 example learns as well as F32; the gates example finds its
# gradients right; the gated network of mlp and the mixture of experts learn; the network of sines learns a picture and writes it as a PNG; the policy
# learns to land; the texture is stored and read again; the other
# examples of formulas agree with plain loops; what ship makes runs without a compiler;
# every cell of make table runs and is right on the host. Run from the repository's root after the programs were built. With TEST_PART=I/N
# every N-th of them, from the I-th on.
. tests/compile/lines.sh
FOLDER=build/programs_test/${part%/*}
mkdir -p "$FOLDER"

# goes COMMAND...: its output is in `output`, and is shown if it fails
goes() {
    output=$("$@" 2>&1) || {
        printf '%s\n' "$output" | tail -n 12
        return 1
    }
}

# says WORDS [TIMES]: the output has lines with these words, a regular expression; so many, or some
says() {
    lines=$(printf '%s\n' "$output" | grep -c -E -e "$1")
    [ "$lines" -eq "${2:-$lines}" ] && [ "$lines" -gt 0 ] || {
        printf '%s\n' "$output" | tail -n 11
        echo "$lines lines have \"$1\"${2:+, not $2}"
        return 1
    }
}

# learns COMMAND...
learns() {
    goes "$@" && says '^accuracy (9[5-9]|100)\.'
}

draws_its_loss() {
    learns build/digits --svg "$FOLDER/loss.svg" "$@" examples/data/digits.csv && grep -q '</svg>' "$FOLDER/loss.svg"
}

the_demo() {
    for seed in 1 2 3 4 5; do
        attempt "the_demo_learns_with_seed_$seed" draws_its_loss --seed $seed
    done
    attempt the_demo_learns_on_the_host draws_its_loss --host
}

as_f32_does() {
    goes build/fp8 examples/data/digits.csv &&
        says '^of 449 digits .*F32 reads (9[4-9]|100)\.[0-9] % right and fp8 (9[4-9]|100)\.[0-9] %$' &&
        printf '%s\n' "$output" | awk '$1 == 12 { learnt = $2 < 0.15 && $3 < $2 + 0.02 } END { exit !learnt }'
}

has_the_gradients_of_its_loss() {
    goes build/gates && goes build/gates --host
}

gated_networks() {
    for seed in 1 2 3; do
        attempt "the_gated_network_learns_with_seed_$seed" learns build/mlp --seed $seed examples/data/digits.csv
    done
}

# Each expert has its part of the digits, between a quarter and three times of an equal one.
with_every_expert() {
    learns build/moe --seed "$1" examples/data/digits.csv &&
        [ "$(printf '%s\n' "$output" | awk '/^ +[0-7] .*%/ && $2 > 3 && $2 < 38' | wc -l)" -eq 8 ]
}

mixtures_of_experts() {
    for seed in 1 2 3; do
        attempt "the_mixture_of_experts_learns_with_seed_$seed" with_every_expert $seed
    done
}

# A PNG whose chunks and pixels are whole, 388 x 128 of them; without python3 its first and last bytes.
is_png() {
    if has python3; then
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
    goes build/siren --small --epochs 8 --png "$FOLDER/siren.png" "$@" examples/data/cat.ppm &&
        says 'its gradient is the slope of the loss' 3 && says '^learnt to (2[6-9]|[3-9][0-9])\.' && is_png "$FOLDER/siren.png"
}

networks_of_sines() {
    attempt the_network_of_sines_learns_a_picture_with_seed_1 draws --seed 1
    attempt the_network_of_sines_learns_a_picture_with_seed_2 draws --seed 2
    attempt the_network_of_sines_learns_a_picture_on_the_host draws --host
}

has_the_loss_of_plain_loops() {
    goes build/cross_entropy --small "$@" && says 'against plain loops: loss within' 2 && says '^loss 7\.85[0-9]*, through memory 7\.85' 1
}

reads_packed_weights() {
    goes build/quantise --svg "$FOLDER/bits.svg" "$@" examples/data/digits.csv && says 'logits are those of plain loops' 1 &&
        says '^4 bits, groups of (32|64|128) .* 9[4-9]\.' 3 && grep -q '</svg>' "$FOLDER/bits.svg"
}

has_the_norms_of_plain_loops() {
    goes build/norm_layer --small "$@" && says 'y is that of plain loops' 2 && says '^norm trained: the loss goes from' 1 && says '^saved: the normed matrix, 0.02 MB' 1
}

lands() {
    goes build/policy "$@" && says '^landed (9[0-9]|100)\.' 1 && says '#####' 1
}

# It is read back from what was stored, in 16 bits a weight.
stores_a_picture() {
    goes build/texture --small --epochs 20 --png "$FOLDER/texture.png" --bin "$FOLDER/texture.bin" "$@" examples/data/cat.ppm &&
        says ' has 4430 bytes; 64 x 64 pixels have 12288: 2\.8 to 1, at 2[2-9]\.' 1 && [ "$(wc -c <"$FOLDER/texture.bin")" -eq 4430 ]
}

on_both() { # COMMAND
    "$1" && "$1" --host
}

# Where there is no GPU both commands say so, and run takes the host.
compiles_nothing_where_it_runs() {
    bundle=$FOLDER/ship.gemmepi
    output=$(build/ship make "$bundle" 2>&1)
    status=$?
    case $output in
    'no bundle: '*'the context is on the host'*)
        [ $status -ne 0 ] && goes build/ship run "$bundle" && says '^no GPU is used' && says '^kernels: 0 from the bundle, 0 compiled$'
        ;;
    *) [ $status -eq 0 ] && goes build/ship run "$bundle" && says '^kernels: [1-9][0-9]* from the bundle, 0 compiled$' ;;
    esac
}

mine networks_of_sines
mine the_demo
mine mixtures_of_experts
mine gated_networks
mine attempt the_demo_learns_with_silu draws_its_loss --silu
mine attempt the_fp8_example_learns_as_f32_does as_f32_does
mine attempt the_gates_example_has_the_gradients_of_its_loss has_the_gradients_of_its_loss
mine attempt the_cross_entropy_example_has_the_loss_and_gradients_of_plain_loops on_both has_the_loss_of_plain_loops
mine attempt the_norm_example_gives_what_plain_loops_give on_both has_the_norms_of_plain_loops
mine attempt weights_in_4_bits_read_digits_as_16_bits_do on_both reads_packed_weights
mine attempt a_policy_learns_to_land lands
mine attempt a_texture_is_stored_in_a_third_of_its_bytes on_both stores_a_picture
mine attempt the_ship_example_compiles_nothing_where_it_runs compiles_nothing_where_it_runs
mine attempt every_cell_of_the_table_is_right_on_the_host goes build/tests/table --host
rm -rf "$FOLDER"
finish
