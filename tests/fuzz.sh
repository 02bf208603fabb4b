#!/bin/sh
# fuzz.sh TARGET [SECONDS] [OPTIONS of libFuzzer]: builds a fuzzer of tests/unit/ with clang's libFuzzer and sanitizers and runs it, from
# the repository's root. TARGET is one of
#
#   planning_fuzz   descs of every kind, planned, explained, precompiled and run on the fake GPU and the host
#   formula_fuzz    texts of formulas
#   files_fuzz      bundles and files of answers
#
# It begins with the seeds of tests/unit/TARGET_seeds.txt (or the texts of formula_corpus.txt) and keeps what it finds in build/fuzz/TARGET.
# An input that fails is written to build/fuzz: `build/fuzz/TARGET.run FILE` repeats it. As a line of hex in the seeds `make test` runs it.
target=$1 seconds=${2:-300}
[ $# -gt 2 ] && shift 2 || shift $#
: "${CLANG:=clang}"
case $target in planning_fuzz | formula_fuzz | files_fuzz) ;; *)
    sed -n '2,11s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
mkdir -p "build/fuzz/$target"
"$CLANG" -std=c99 -O1 -g -w -DGEMMEPI_LIBFUZZER -fsanitize=fuzzer,address,undefined,float-cast-overflow -fno-sanitize-recover=all \
    -Isrc -Itests "tests/unit/$target.c" -o "build/fuzz/$target.run" -lm -ldl -lpthread || exit 1
python3 - "$target" <<'PYTHON' || exit 1
import os, sys
target = sys.argv[1]
seeds = f"tests/unit/{target}_seeds.txt"
if os.path.exists(seeds):
    lines = [bytes.fromhex(line.split("#")[0]) for line in open(seeds) if line.split("#")[0].strip()]
else:
    lines = [bytes(8) + line.rstrip("\n").encode() for line in open("tests/unit/formula_corpus.txt")]
for i, line in enumerate(lines):
    open(f"build/fuzz/{target}/seed{i:03d}", "wb").write(line)
PYTHON
exec "build/fuzz/$target.run" -max_total_time="$seconds" -max_len=2048 -timeout=25 -rss_limit_mb=4096 -artifact_prefix=build/fuzz/ "$@" \
    "build/fuzz/$target"
