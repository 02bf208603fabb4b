#!/bin/sh
# Runs every test that this machine can run, JOBS at a time (as many as there are processors), and adds up what they print.
# Called by `make test` from the repository's root with the test programs, which make has built if they compile.
#
# A test prints 'ok   name', 'FAIL name ...' or 'skip name: reason' for each thing it tests, and closes with
# 'N passed, N failed, N skipped'. One that crashes, or fails without saying what, counts as one failure more.
# What passed is not shown, unless V=1. Each test is shown when it has ended; long ones are divided where there are processors
# for all parts.
results=build/test_results
jobs=${JOBS:-$(getconf _NPROCESSORS_ONLN)}
parts=$((jobs < 4 ? 1 : jobs > 64 ? 64 : jobs))

# run_test NAME COMMAND...: what it has to say goes to the output in one piece, and its counts to a file.
run_test() {
    name=$1
    shift
    file=$results/$(printf '%s' "$name" | tr / _)
    started=$(date +%s)
    "$@" >"$file.output" 2>&1
    status=$?
    took=$(($(date +%s) - started))
    p=$(grep -c '^ok   ' "$file.output")
    f=$(grep -c '^FAIL ' "$file.output")
    s=$(grep -c '^skip ' "$file.output")
    closing=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$file.output" | tail -n 1)
    {
        if [ -n "$V" ]; then
            cat "$file.output"
        else
            grep -v -e '^ok   ' -e '^[0-9]* passed, [0-9]* failed, [0-9]* skipped$' "$file.output"
        fi
        if [ -z "$closing" ] || { [ $status -ne 0 ] && [ "$f" -eq 0 ]; }; then
            echo "FAIL $name: it ended with status $status, $(if [ -n "$closing" ]; then echo 'naming no failed test'
                else echo 'before its last line'; fi)"
            f=$((f + 1))
        elif [ "$closing" != "$p passed, $f failed, $s skipped" ] || { [ $status -eq 0 ] && [ "$f" -ne 0 ]; }; then
            echo "FAIL $name: it closes with '$closing' and status $status, but says: $p passed, $f failed, $s skipped"
            f=$((f + 1))
        fi
        echo "$name: $p passed, $f failed, $s skipped (${took} s)"
    } >"$file.report"
    echo "$p $f $s" >"$file.counts"
    cat "$file.report"
}

if [ "$1" = --one ]; then # NAME COMMAND, the words of both in one argument, none of which has blanks
    run_test $2
    exit 0
fi

# list PROGRAMS...: a line for each test, a name and a command
list() {
    for program in "$@"; do
        name=${program#build/tests/} part=0
        [ -x "$program" ] || continue
        case $name in
        */grid) of=$parts ;;
        */fuzz | gpu/fused) of=$((parts > 16 ? 16 : parts)) ;;
        *) of=1 ;;
        esac
        [ "$of" = 1 ] && echo "$name $program" && continue
        while [ $part -lt "$of" ]; do
            echo "$name/$part/$of env TEST_PART=$part/$of $program"
            part=$((part + 1))
        done
    done
    if command -v python3 >/dev/null 2>&1; then
        for name in pytorch pytorch_elementwise pytorch_linear; do
            echo "gpu/$name python3 tests/gpu/$name.py --count ${PYTORCH_COUNT:-300}"
        done
    fi
    echo 'unit/activations sh tests/unit/activations.sh'
    echo 'programs sh tests/programs.sh'
    echo 'docs sh tests/docs/run.sh'
    echo 'compile sh tests/compile/run.sh'
    echo 'windows sh tests/compile/windows.sh'
    echo 'cmake sh tests/compile/cmake.sh'
}

passed=0 failed=0 skipped=0
rm -rf "$results"
mkdir -p "$results"
for program in "$@"; do
    if ! [ -x "$program" ]; then
        echo "FAIL ${program#build/tests/}: it does not compile, see above"
        failed=$((failed + 1))
    fi
done
if ! command -v python3 >/dev/null 2>&1; then
    echo 'skip gpu/pytorch, gpu/pytorch_elementwise and gpu/pytorch_linear: there is no python3'
    skipped=$((skipped + 3))
fi
list "$@" >"$results/all"
long='^([a-z]*/grid|compile|windows|linear/)'
{ # what takes longest begins first
    grep -E "$long" "$results/all"
    grep -v -E "$long" "$results/all"
} >"$results/list"
xargs -P "$jobs" -I '{}' sh tests/run.sh --one '{}' <"$results/list"
while read -r name command; do
    if read -r p f s <"$results/$(printf '%s' "$name" | tr / _).counts"; then
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    else
        echo "FAIL $name: it left no counts"
        failed=$((failed + 1))
    fi
done <"$results/list"

rm -rf "$results"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
