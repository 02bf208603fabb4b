#!/bin/sh
# examples/parallel.c on contexts of the host: its gradients are slopes of the loss and its losses those of one rank (it looks itself),
# with plain sums and with those of tests/fake_nccl.c, in threads and in processes; bad input is refused in words; and when a rank
# fails, hangs or is killed every other says so and ends. With a GPU also what this machine has. From the repository's root, after
# make has built both.
. tests/compile/lines.sh
fake=build/fake_nccl
mkdir -p build/parallel_test
folder=$(mktemp -d build/parallel_test/XXXXXX) || exit 1
export TMPDIR="$folder" # where the fake leaves files, if it is stopped
trap 'rm -rf "$folder"' EXIT

parallel() {
    build/parallel --data examples/data/digits.csv --svg "$folder/chart.svg" --steps 1 "$@" 2>&1
}
host() {
    parallel --host "$@"
}

learns_alike() { # RANKS OPTIONS...
    said=$(host --gpus "$@") || {
        echo "$said" | tail -n 12
        return 1
    }
    [ "$(echo "$said" | grep -c 'gradients are the slopes of the loss within ')" -eq "$1" ] &&
        [ "$(echo "$said" | grep -c -E '^[0-9] ranks?: 9[5-9]\.[0-9]* % of the test digits right')" -eq "$1" ] &&
        [ "$(echo "$said" | grep -c "losses within .* of one rank's")" -eq $(($1 - 1)) ] &&
        grep -q '</svg>' "$folder/chart.svg"
}

# says WORDS COMMAND...: the command fails, and what it says has these words, a regular expression
says() {
    words=$1
    shift
    said=$("$@")
    if [ $? -ne 1 ] || ! echo "$said" | grep -q -E -e "$words"; then
        echo "$said" | tail -n 4
        return 1
    fi
}

# Each of RANKS ranks has a line at the end, and one of them has these words.
all_say() { # RANKS WORDS COMMAND...
    ranks=$1
    shift
    says "$@" && [ "$(echo "$said" | grep -c '^rank [0-9]: ')" -eq "$ranks" ]
}

attempt 'one to five ranks learn alike, whose gates five do not divide' learns_alike 5
attempt 'and so with overlap' learns_alike 3 --overlap
attempt 'and with the sums of a library' learns_alike 3 --overlap --nccl "$fake"
attempt 'overlap in blocks changes nothing' host --bench --overlap --gpus 3 --tokens 24 --width 20 --hidden 18 --steps 1 --last 5
attempt 'shares of uneven gates are those of one' host --bench --no-overlap --gpus 5 --tokens 24 --width 20 --hidden 19 --steps 1

# tells WORDS OPTIONS...: two ranks say so
tells() {
    words=$1
    shift
    said=$(host --gpus 2 --epochs 1 "$@") && echo "$said" | grep -q -E -e "$words"
}
attempt 'sums run after products where they are small' tells '^sums run after products: a sum has 8192 bytes, and overlap is for 33554432 and more'
attempt 'and at the same time where they are large' says '^sums run at the same time as products: a sum has 33554432 bytes' \
    host --gpus 2 --bench --tokens 65536 --width 128 --hidden 2 --fail 0
attempt 'an option has the last word' tells '^sums run at the same time as products, as --overlap says' --overlap
attempt 'times are those of both, whichever is taken' tells '^ +2( +[0-9.]+){5} +[0-9.]+ %$' --no-overlap

# Without overlap sums have the multiprocessors that NCCL likes, beside products those of --ctas.
two_kinds_of_sums() {
    FAKE_NCCL=tell
    export FAKE_NCCL
    said=$(host --gpus 2 --epochs 1 --nccl "$fake" --ctas 3 "$@")
    unset FAKE_NCCL
    [ "$(echo "$said" | grep -c 'of 2: [1-9][0-9]* sums of 0 multiprocessors')" -eq 2 ] &&
        [ "$(echo "$said" | grep -c 'of 2: 20 sums of 3 multiprocessors')" -eq 2 ]
}
attempt 'sums behind products are of a communicator of their own' two_kinds_of_sums
attempt 'on what this machine has it learns, too' parallel --epochs 2

processes() {
    for rank in 0 1 2; do
        host --rank $rank --ranks 3 --id "$folder/id" --nccl "$fake" --epochs 2 >"$folder/$rank" &
    done
    wait
    grep -q '^3 ranks: .* of the test digits right' "$folder/0" && [ ! -s "$folder/1" ] && [ ! -e "$folder/id" ]
}
attempt 'ranks may be processes' processes

killed() {
    host --rank 0 --ranks 2 --id "$folder/id" --nccl "$fake" --epochs 100000 --timeout 5 >"$folder/0" &
    waits=$!
    build/parallel --data examples/data/digits.csv --host --rank 1 --ranks 2 --id "$folder/id" --nccl "$fake" --epochs 100000 &
    dies=$!
    for i in 1 2 3 4 5 6 7 8 9 10; do
        grep -q 'slopes' "$folder/0" && break
        sleep 1
    done
    kill -9 $dies
    wait $waits
    [ $? -eq 1 ] && grep -q '^rank 0: has been adding up over the ranks for 5 s, and gives up: ' "$folder/0" || ! cat "$folder/0"
}
attempt 'a process that is killed ends the others' killed
attempt 'a process whose rank 0 never comes ends' says 'waiting for the file .* for 1 s, and gives up' \
    host --rank 1 --ranks 2 --id "$folder/nobody" --nccl "$fake" --timeout 1

attempt 'a rank that fails ends the others' all_say 2 '^rank 1: fails, as --fail says' host --gpus 2 --fail 1 --epochs 1
attempt 'also while a library adds up' all_say 2 '^rank 1: fails, as --fail says' host --gpus 2 --fail 1 --epochs 1 --nccl "$fake"
attempt 'a rank that hangs ends the others' all_say 2 '^rank 1: has been idle .* for 1 s, and gives up' \
    host --gpus 2 --stall 1 --timeout 1 --epochs 1
export FAKE_NCCL=init
attempt 'no communicator' all_say 2 '^rank [01]: ncclCommInitRank: ' host --gpus 2 --epochs 1 --nccl "$fake"
export FAKE_NCCL=sum
attempt 'a sum that fails' all_say 2 '^rank [01]: ncclAllReduce: remote process exited' host --gpus 2 --epochs 1 --nccl "$fake"
export FAKE_NCCL=old
attempt 'an NCCL that is too old' says 'NCCL cannot be used: .* older than 2.17' host --nccl "$fake"
unset FAKE_NCCL

attempt 'no NCCL at the path' says 'NCCL cannot be used: .*nowhere' host --nccl "$folder/nowhere"
attempt 'a library that is no NCCL' says 'NCCL cannot be used: .*(is no NCCL|invalid ELF header|file too short)' host --nccl Makefile
attempt 'more ranks than gates' says '4 gates are too few for 5 ranks' host --bench --gpus 5 --tokens 8 --width 8 --hidden 4
attempt 'a last block without rows' says 'there are 32 rows, and one in 33 would be none' host --last 33
if [ -e /dev/nvidia0 ] || [ -e /dev/dxg ]; then
    attempt 'more GPUs than there are' says 'more GPUs than there are' parallel --gpus 96
else
    skip 'more GPUs than there are: there is no GPU'
fi
attempt 'a bench that the host is too slow for' says 'would take the host hours' host --bench
attempt 'half of what a process needs' says 'they need --rank R' host --rank 0
attempt 'processes without a library' says 'they need GPUs and NCCL' host --rank 0 --ranks 2 --id "$folder/id"
attempt 'an option that is not there' says '--gpu: is not known' host --gpu 2
attempt 'a number that is none' says 'a number from 1 to 1000000 is needed' host --gpus many
attempt 'an option without its value' says 'something must follow it' host --last
attempt 'no digits' says 'cannot be read' host --data "$folder/nowhere"
finish
