#!/bin/sh
# Runs every test that this machine can run and adds up what they print. Called by `make test` from the repository's
# root with the test programs, which make has built if they compile.
#
# A test prints 'ok   name', 'FAIL name ...' or 'skip name: reason' for each thing it tests, and closes with
# 'N passed, N failed, N skipped'. One that crashes, or fails without saying what, counts as one failure more.
# What passed is not shown, unless V=1.
passed=0 failed=0 skipped=0
mkdir -p build

# run_test NAME COMMAND...
run_test() {
    name=$1
    shift
    started=$(date +%s)
    "$@" >build/output.txt 2>&1
    status=$?
    took=$(($(date +%s) - started))
    p=$(grep -c '^ok   ' build/output.txt)
    f=$(grep -c '^FAIL ' build/output.txt)
    s=$(grep -c '^skip ' build/output.txt)
    closing=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' build/output.txt | tail -n 1)
    if [ -n "$V" ]; then
        cat build/output.txt
    else
        grep -v -e '^ok   ' -e '^[0-9]* passed, [0-9]* failed, [0-9]* skipped$' build/output.txt
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
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

for program in "$@"; do
    name=${program#build/tests/}
    if [ -x "$program" ]; then
        run_test "$name" "$program"
    else
        echo "FAIL $name: it does not compile, see above"
        failed=$((failed + 1))
    fi
done
if command -v python3 >/dev/null 2>&1; then
    run_test gpu/pytorch python3 tests/gpu/pytorch.py --count "${PYTORCH_COUNT:-300}"
    run_test gpu/pytorch_elementwise python3 tests/gpu/pytorch_elementwise.py --count "${PYTORCH_COUNT:-300}"
    run_test gpu/pytorch_linear python3 tests/gpu/pytorch_linear.py --count "${PYTORCH_COUNT:-300}"
else
    echo 'skip gpu/pytorch, gpu/pytorch_elementwise and gpu/pytorch_linear: there is no python3'
    skipped=$((skipped + 3))
fi
run_test programs sh tests/programs.sh
run_test compile sh tests/compile/run.sh
run_test windows sh tests/compile/windows.sh

rm -f build/output.txt
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
