#!/bin/sh
# kernels.sh PROGRAM OPTIONS... FOLDER: `make kernels`. PROGRAM (kernels.c) compiles into FOLDER, machine_code.py reads what drawn problems run, with
# --all every kernel; closes with the counts of both, 'N passed, N failed, N skipped'. 77: there is no NVRTC.
program=$1
shift
folder='' all='' jobs=''
for option; do
    [ "$option" = --all ] && all=--all
    [ "$last" = --jobs ] && jobs="--jobs $option"
    last=$option folder=$option
done
rm -rf "$folder"
mkdir -p "$folder"
log=$folder/compiled.txt
{
    "$program" "$@"
    echo $? >"$folder/status"
} | tee "$log"
read -r status <"$folder/status"
[ "$status" = 0 ] || [ -n "$(ls "$folder"/*.cubin 2>/dev/null)" ] || exit "$status"
if command -v python3 >/dev/null 2>&1; then
    python3 tests/machine_code.py $all $jobs "$folder" >"$folder/read.txt" || status=1
else
    printf 'skip machine code: there is no python3\n0 passed, 0 failed, 1 skipped\n' >"$folder/read.txt"
fi
sed '$d' "$folder/read.txt"
tail -q -n 1 "$log" "$folder/read.txt" | awk -F '[ ,]+' '{ passed += $1; failed += $3; skipped += $5 } END {
    printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }'
exit "$status"
