#!/bin/sh
# Runs tests JOBS at a time (as many as there are processors) and adds up what they print. Called by `make test` and `make test-all`
# from the repository's root with the test programs, which make has built if they compile:
#
#   run.sh --say MODE                 says what it will do and about how long that takes, by the time of one compilation
#   run.sh --first MODE PROGRAMS...   runs these ahead, so that a result is there soon; the next call counts them
#   run.sh quick|host PROGRAMS...     the programs on the host and the fake GPU, of the grids and fuzzers a smaller share
#   run.sh test PROGRAMS...           for some minutes: of the grids and the fuzzers a share
#   run.sh test-all PROGRAMS...       everything: every compiler, the documents, packages and sanitizers, too; with PART=I/N each N-th
#                                     alone, from the I-th on; with REST=1 what `test` does in full is left out
#
# A test prints 'ok   name', 'FAIL name ...' or 'skip name: reason' for each thing it tests, and closes with
# 'N passed, N failed, N skipped'. One that crashes, or fails without saying what, counts as one failure more.
# What passed is not shown, unless V=1. Each test is shown when it has ended, with how many are left; long ones are divided. Reasons to
# skip come at the end, and the programs that took longest; build/test_times.txt keeps when each test began and how long it took.
results=build/test_results
jobs=${JOBS:-$(getconf _NPROCESSORS_ONLN)}

# file_of NAME: where its results are, in `file`
file_of() {
    file=$results/ rest=$1
    while [ "$rest" != "${rest#*/}" ]; do
        file=$file${rest%%/*}_ rest=${rest#*/}
    done
    file=$file$rest
}

# run_test NAME COMMAND...: what it has to say goes to the output in one piece, and its counts to a file.
run_test() {
    name=$1
    shift
    file_of "$name"
    started=$(date +%s)
    "$@" >"$file.output" 2>&1
    status=$?
    took=$(($(date +%s) - started))
    set -- $(awk '/^ok   / { p++ } /^FAIL / { f++ } /^skip / { s++ } /^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { closing = $0 }
        END { print p + 0, f + 0, s + 0, closing }' "$file.output")
    p=$1 f=$2 s=$3
    shift 3
    closing=$*
    {
        if [ -n "$V" ]; then
            cat "$file.output"
        else
            grep -v -E -e '^(ok  |skip|skipped on a GPU:) ' -e '^on .*:$' \
                -e '^[0-9]* passed, [0-9]* failed, [0-9]* skipped$' "$file.output"
        fi
        if [ -z "$closing" ] || { [ $status -ne 0 ] && [ "$f" -eq 0 ]; }; then
            echo "FAIL $name: it ended with status $status, $(if [ -n "$closing" ]; then echo 'naming no failed test'
                else echo 'before its last line'; fi)"
            f=$((f + 1))
        elif [ "$closing" != "$p passed, $f failed, $s skipped" ] || { [ $status -eq 0 ] && [ "$f" -ne 0 ]; }; then
            echo "FAIL $name: it closes with '$closing' and status $status, but says: $p passed, $f failed, $s skipped"
            f=$((f + 1))
        fi
        echo "$p $f $s $started $took" >"$file.counts"
        echo "$name: $p passed, $f failed, $s skipped (${took} s)$(
            [ ! -f $results/list ] || echo ", $(($(wc -l <$results/list) - $(ls $results | grep -c 'counts$'))) left")"
    } >"$file.report"
    cat "$file.report"
}

if [ "$1" = --one ]; then # NAME COMMAND, the words of both in one argument, none of which has blanks
    run_test $2
    exit 0
fi

has_gpu() {
    [ "$GEMMEPI_TEST_DEVICE" != host ] && { [ -e /dev/nvidia0 ] || [ -e /dev/dxg ]; }
}

ahead=
case $1 in --say | --first)
    ahead=$1
    shift
    ;;
esac
mode=$1
shift
part=0 parts=1
if [ -n "$PART" ]; then
    part=${PART%%/*} parts=${PART##*/}
    case $part$parts in *[!0-9]* | '') part=0 parts=0 ;; esac
    if [ "$mode" != test-all ] || [ "$part" -lt 1 ] || [ "$part" -gt "$parts" ]; then
        echo "PART is $PART; accepted are 1/N to N/N, for test-all"
        exit 2
    fi
    part=$((part - 1))
fi

# how many of the cases run, in how many pieces a program goes at most (each begins with a second of CUDA on a GPU), and what all takes of one processor of which a compilation takes 700 ms
fused= inside= weights= random= problems=40 pieces=$((jobs < 4 ? 2 : jobs > 32 ? 32 : jobs))
case $mode in
test-all)
    share=1 pieces=32 problems=300 seconds=1300
    [ -n "$REST" ] && seconds=900
    has_gpu && seconds=18000
    ;;
test)
    share=4 seconds=240
    has_gpu && share=128 pieces=16 fused='1 -1 1' inside='-1 1' weights='1 -1 1' random=60 problems=24 seconds=3300
    ;;
*)
    share=16 seconds=100
    [ "$mode" = quick ] && seconds=30
    GEMMEPI_TEST_DEVICE=host
    export GEMMEPI_TEST_DEVICE
    ;;
esac

# What a compilation takes here, in milliseconds; 700 where the system's date does not tell.
compilation() {
    begin=$(date +%s%N)
    case $begin in *[!0-9]*) echo 700 && return ;; esac
    "${CC:-cc}" -std=c99 -O2 -w -Isrc -Itests -c tests/unit/disk_cache.c -o $results/timed.o 2>/dev/null
    echo $((($(date +%s%N) - begin) / 1000000))
}

if [ "$ahead" = --say ]; then
    rm -rf "$results"
    mkdir -p "$results"
    [ "$mode" = quick ] || seconds=$((seconds * $(compilation) / 700))
    minutes=$(((seconds / parts / (jobs < 1 ? 1 : jobs) + 30) / 60))
    [ $minutes -gt 0 ] || minutes=1
    what="1 in $share of the grids' kernels and all else that is short"
    case $mode in quick | host) what="programs of tests, 1 in $share of the grids' cases" ;; esac
    [ "$mode" = test-all ] && what="all tests${PART:+, part $PART}${REST:+, but what make test runs in full}"
    on='the host; there is no GPU'
    has_gpu && on='the host and a GPU, whose kernels are compiled if they are not in the cache'
    echo "make $mode: $what, on $on. $jobs at a time: about $minutes min.$(
        case $mode in test) echo ' The rest: make test-all.' ;; quick) echo ' More: make host, make test.' ;; esac)"
    exit 0
fi

# Those that `test` does not run in full.
is_shared() {
    case $1 in
    */grid | */grid_* | */fuzz | */formula | */found_scales | linear/bends | products/composed | gpu/fused | gpu/fp8_shapes | gpu/weights | gpu/weights_made | gpu/pytorch* | unit/planning_fuzz | unit/invariant | products/formula_drawn* | unit/library_calls) return 0 ;;
    *) return 1 ;;
    esac
}

# scripts NAME MOST COMMAND: a script in so many pieces at most
scripts() {
    piece=0 of=$((pieces > $2 ? $2 : pieces))
    while [ $piece -lt "$of" ]; do
        echo "$1/$piece/$of env TEST_PART=$piece/$of $3"
        piece=$((piece + 1))
    done
}

programs() {
    for program in "$@"; do
        name=${program#build/tests/} piece=0 options=
        [ -x "$program" ] || continue
        [ "$name" = kernels ] && continue # that it compiles is all that is asked here; make kernels runs it
        [ -n "$REST" ] && ! is_shared "$name" && continue
        case $name in
        gpu/fused | gpu/fp8_shapes) options=$fused ;;
        gpu/formula_inside) options=$inside ;;
        gpu/weights | gpu/weights_made) options=$weights ;;
        */fuzz | products/composed) options=$random ;;
        unit/formula_fuzz | unit/planning_fuzz) [ "$mode" = quick ] && options=5000 ;;
        esac
        if [ "$name" = unit/planning_fuzz ] && [ "$mode" = test-all ]; then
            for seed in 1000001 2000001 3000001 4000001; do echo "$name/$seed $program ${FUZZ_CASES:-200000} $seed"; done # five minutes in all
            continue
        fi
        every=$share
        [ "$name" = products/grouped ] && [ "$mode" != test ] && every=1 # a share is for the emulator and for some minutes
        most=1
        case $name in
        network/grid) most=4 ;;
        */grid) most=32 ;;
        products/grid_exact) most=8 ;;
        */grid_*) most=4 ;;
        unit/library_calls) most=4 ;;
        gpu/fused | gpu/formula_inside) has_gpu && most=16 ;;
        */fuzz | products/composed | */bad_input) has_gpu && most=4 ;;
        products/found_scales | products/formula | products/grouped | gpu/*_shapes | gpu/weights* | gpu/formula_pass | gpu/invariant) has_gpu && most=8 ;;
        esac
        of=$((pieces > most ? most : pieces))
        while [ $piece -lt "$of" ]; do
            echo "$name$([ "$of" = 1 ] || echo "/$piece/$of") env TEST_PART=$piece/$of TEST_SHARE=$every $program $options"
            piece=$((piece + 1))
        done
    done
}

has_pytorch() {
    python3 -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("torch"))' 2>/dev/null
}

# list PROGRAMS...: a line for each test, a name and a command
list() {
    case $mode in
    quick | host)
        programs "$@"
        return
        ;;
    esac
    # a compiler at a time
    if [ "$mode" = test-all ]; then
        scripts compile 16 'sh tests/compile/run.sh'
        echo 'windows sh tests/compile/windows.sh'
        scripts docs 8 'sh tests/docs/run.sh'
        for kind in formulas threads sizes descs; do echo "unit/${kind}_sanitized sh tests/unit/sanitized.sh $kind"; done
        echo 'unit/formula_text sh tests/unit/formula_text.sh'
        echo 'cmake sh tests/compile/cmake.sh'
        echo 'shared sh tests/compile/shared.sh'
        echo 'install sh tests/install.sh'
    fi
    programs "$@"
    if command -v python3 >/dev/null 2>&1; then
        for name in pytorch pytorch_elementwise pytorch_linear; do
            of=1 first=0 count=${PYTORCH_COUNT:-$problems}
            has_gpu && [ "$count" -ge 4 ] && of=2
            while [ $first -lt "$count" ]; do
                echo "gpu/$name$([ $of = 1 ] || echo "/$first") python3 tests/gpu/$name.py --first $first --count $((count / of))"
                first=$((first + count / of))
            done
        done
        scripts products/formula_drawn 5 "python3 tests/products/formula_drawn.py --count $((problems > 80 ? 80 : problems)) --gradients $((problems > 80 ? 80 : problems))"
    fi
    echo "unit/activations env TEST_SHARE=$((share > 4 ? 4 : share)) sh tests/unit/activations.sh"
    [ -n "$REST" ] && return
    scripts programs 8 'sh tests/programs.sh'
    echo 'parallel sh tests/parallel.sh'
    scripts python $(has_pytorch && echo 7 || echo 1) 'sh tests/python/run.sh'
    echo 'report sh tests/report_cases.sh'
    ! command -v python3 >/dev/null 2>&1 || echo 'machine_code python3 tests/machine_code_cases.py'
    ! command -v python3 >/dev/null 2>&1 || echo 'mutants python3 tests/mutants.py --jobs 1 --file ^base/(map|hash).h'
}

passed=0 failed=0 skipped=0
mkdir -p "$results"
if [ "$ahead" = --first ]; then
    programs "$@" | xargs -P "$jobs" -I '{}' sh tests/run.sh --one '{}'
    exit 0
fi
for program in "$@"; do
    if ! [ -x "$program" ]; then
        echo "FAIL ${program#build/tests/}: it does not compile, see above"
        failed=$((failed + 1))
    fi
done
if [ "${mode#test}" != "$mode" ] && ! command -v python3 >/dev/null 2>&1; then
    echo 'skip gpu/pytorch, gpu/pytorch_elementwise, gpu/pytorch_linear and products/formula_drawn: there is no python3' >"$results/python.output"
    skipped=$((skipped + 4))
fi
list "$@" >"$results/all"
# What takes longest begins first, so that nothing long is left for the end: kinds of tests in that order, by the longest of each.
longest='compile windows docs python gpu/pytorch gpu/lt_checked gpu/invariant programs gpu/fused gpu/fp8 linear/grid linear/loss products/found_scales products/grouped
gpu/weights gpu/formula gpu/operands products/formula parallel unit/activations linear/formula products/grid_edges products/bad_input products/grid
gpu/grouped_shapes products/packed unit/library_calls linear/ network/ products/operand elementwise/'
awk -v longest="$longest" 'BEGIN { kinds = split(longest, kind) }
{
    for (i = 1; i <= kinds && index($1, kind[i]) != 1; i++) {
    }
    printf "%02d %s\n", i, $0
}' "$results/all" | sort -s -n -k 1,1 | cut -d ' ' -f 2- |
    awk -v part=$part -v parts=$parts 'NR % parts == (part + 1) % parts' >"$results/list"
while read -r line; do
    file_of "${line%% *}"
    [ -f "$file.counts" ] || printf '%s\n' "$line" # it has run ahead
done <"$results/list" | xargs -P "$jobs" -I '{}' sh tests/run.sh --one '{}'
: >"$results/times"
while read -r name command; do
    file_of "$name"
    if read -r p f s began took <"$file.counts"; then
        echo "$began $took $name" >>"$results/times"
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    else
        echo "FAIL $name: it left no counts"
        failed=$((failed + 1))
    fi
done <"$results/list"

# each reason once, with the first that gave it and how many others did
sed -n -e 's/^skip //p' -e 's/^skipped on a GPU: /on a GPU: /p' "$results"/*.output | awk '{
    at = index($0, ": ")
    reason = at ? substr($0, at + 2) : "it does not say why"
    name = at ? substr($0, 1, at - 1) : $0
    if (!count[reason]++) { order[++n] = reason; first[reason] = name }
}
END {
    for (i = 1; i <= n; i++) {
        reason = order[i]
        others = count[reason] - 1
        printf "skipped: %s: %s%s\n", first[reason], reason, others ? " (and " others " more)" : ""
    }
}'

# The programs that took at least three seconds, the pieces of one added up.
sort -n "$results/times" | awk '!first { first = $1 } { printf "%d %d %s\n", $1 - first, $2, $3 }' >build/test_times.txt
awk '{
    name = $3
    sub("/[0-9]+(/[0-9]+)?$", "", name)
    took[name] += $2
    pieces[name]++
    if ($2 > longest[name]) longest[name] = $2
}
END {
    for (name in took)
        if (took[name] > 2)
            print took[name] " s " name (pieces[name] == 1 ? "" : ", in " pieces[name] " pieces of at most " longest[name] " s")
}' build/test_times.txt | sort -rn | sed -n '1,10s/^/slow: /p'
rm -rf "$results"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
