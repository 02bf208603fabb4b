# The lines of a test script, for tests/run.sh to add up. Sourced.
passed=0 failed=0 skipped=0
part=${TEST_PART:-0/1} groups=0

ok() {
    passed=$((passed + 1))
    echo "ok   $*"
}
fail() {
    failed=$((failed + 1))
    echo "FAIL $*"
}
skip() {
    skipped=$((skipped + 1))
    echo "skip $*"
}

# attempt NAME COMMAND...: a test that is the command's success; what it says is shown if it fails
attempt() {
    what=$1
    shift
    if said=$("$@" 2>&1); then
        ok "$what"
    else
        printf '%s\n' "$said" | sed -n '1,12s/^/  /p'
        fail "$what"
        return 1
    fi
}

# mine COMMAND...: a group of tests, if it is of the part that TEST_PART=I/N names: each N-th, from the I-th on
mine() {
    groups=$((groups + 1))
    [ $((groups % ${part#*/})) -ne "${part%/*}" ] || "$@"
}

has() {
    command -v "$1" >/dev/null 2>&1
}

finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
    exit
}
