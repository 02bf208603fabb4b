#!/bin/sh
# gemmepi.h as mingw compiles it for Windows, and the tests of the host under wine. Called by tests/run.sh in the
# repository's root.
. tests/compile/lines.sh
COMPILER=x86_64-w64-mingw32-gcc
WARNINGS='-pedantic -Wall -Wextra -Wconversion -Wshadow -Werror'
FOLDER=build/windows

if ! has $COMPILER; then
    skip "windows: there is no $COMPILER"
    finish
fi
rm -f "$FOLDER"/*.exe
mkdir -p "$FOLDER"

compile() { # STANDARD [OPTION...]
    standard=$1
    shift
    language=c
    case $standard in *++*) language=c++ ;; esac
    { echo '#define GEMMEPI_IMPLEMENTATION' && cat gemmepi.h; } |
        $COMPILER -x $language -std="$standard" $WARNINGS "$@" -I. -c - -o "$FOLDER/implementation.o"
}
attempt 'mingw -std=c99 -O2: the implementation' compile c99 -O2
attempt 'mingw -std=c11: GEMMEPI_STATIC' compile c11 -DGEMMEPI_STATIC
attempt 'mingw -std=c99: GEMMEPI_NO_HOST' compile c99 -DGEMMEPI_NO_HOST
attempt 'mingw -std=c99: GEMMEPI_API is dllexport' compile c99 '-DGEMMEPI_API=__declspec(dllexport)'
if echo 'int main() {}' | $COMPILER -x c++ -fsyntax-only - 2>/dev/null; then
    attempt 'mingw -std=c++11: the implementation' compile c++11
else
    skip 'mingw as C++: it has no C++ compiler'
fi

# run_there NAME SOURCE OPTIONS [ARGUMENT...]: the program's own lines, under its name
run_there() {
    name=$1 source=$2 options=$3
    shift 3
    program=$FOLDER/$name.exe
    if ! said=$($COMPILER -std=c99 -O0 "$source" $options -o "$program" -static -lpthread 2>&1); then
        printf '%s\n' "$said" | sed -n '1,12s/^/  /p'
        fail "mingw $name: it does not compile"
        return
    fi
    if [ -z "$wine" ]; then
        skip "wine $name: there is no wine"
        return
    fi
    # the log from a file: wine's server keeps a pipe open
    timeout 600 "$wine" "$program" "$@" >"$FOLDER/output.txt" 2>/dev/null
    status=$?
    tr -d '\r' <"$FOLDER/output.txt" | sed -n -e "s/^ok   /ok   wine $name: /p" -e "s/^FAIL /FAIL wine $name: /p" \
        -e "s/^skip /skip wine $name: /p" -e 's/^  /  /p' | tee "$FOLDER/lines.txt"
    passed=$((passed + $(grep -c '^ok ' "$FOLDER/lines.txt")))
    f=$(grep -c '^FAIL ' "$FOLDER/lines.txt")
    failed=$((failed + f))
    skipped=$((skipped + $(grep -c '^skip ' "$FOLDER/lines.txt")))
    if ! grep -q ' passed, .* failed, ' "$FOLDER/output.txt" || { [ $status -ne 0 ] && [ "$f" -eq 0 ]; }; then
        fail "wine $name: it ended with status $status before its last line, or naming no failed test"
    fi
}

wine=
for name in wine wine64; do
    [ -n "$wine" ] || { has $name && wine=$name; }
done
[ -x /usr/lib/wine/wine64 ] && [ -z "$wine" ] && wine=/usr/lib/wine/wine64
WINEPREFIX=$(pwd)/build/wine WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml=' GEMMEPI_TEST_DEVICE=host
export WINEPREFIX WINEDEBUG WINEDLLOVERRIDES GEMMEPI_TEST_DEVICE
# the first start makes the folder of settings, which takes a while
if [ -n "$wine" ] && ! timeout 300 "$wine" cmd /c ver >/dev/null 2>&1; then
    wine=
fi

for test in hash map disk_cache libraries contexts bundle; do
    run_there $test tests/unit/$test.c '-Isrc -Itests'
done
# as the Makefile has them: the implementation is compiled once
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL "${MAKE:-make}" --no-print-directory -s build/tests/linked/made
echo '#include "gemmepi.in.h"' | $COMPILER -x c -std=c99 -O0 -DGEMMEPI_IMPLEMENTATION= -Ibuild/tests/linked/defined -c - -o "$FOLDER/linked.o"
for test in host_memory workspace failures kernels_kept precompile refusals routes launches estimates kernel_names elementwise threads; do
    run_there $test tests/unit/$test.c "-Ibuild/tests/linked/declared -Isrc -I. -Itests $FOLDER/linked.o"
done
# these in two files, as windows.h has macros called near and far
echo '#include "gemmepi.h"' | $COMPILER -x c -std=c99 -O0 -DGEMMEPI_IMPLEMENTATION -I. -c - -o "$FOLDER/gemmepi.o"
for test in bad_input fuzz; do
    [ -f tests/products/$test.c ] && run_there $test tests/products/$test.c "-I. $FOLDER/gemmepi.o" 60
done
finish
