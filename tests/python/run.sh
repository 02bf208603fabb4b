#!/bin/sh
# The package in python/: installed into a folder as pip does it without a network, the C interface by ctypes; and with PyTorch, as it is in this
# checkout with the library of `make shared`, linear, network and formula against PyTorch's own gradients. Called by tests/run.sh in the repository's root; PYTHON names another python3. With TEST_PART=I/N every N-th
# file of tests, from the I-th on.
. tests/compile/lines.sh
PYTHON=${PYTHON:-python3}
ROOT=$(pwd)
FOLDER=$ROOT/build/python_test/${part%/*}
rm -rf "$FOLDER"
mkdir -p "$FOLDER/sdist"

# installed FROM INTO
installed() {
    "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-index --no-build-isolation --target "$2" "$1" && [ -f "$2/gemmepi/api.json" ]
}

# from a copy that has nothing around it; optimising takes long and changes nothing here
an_sdist_is_whole() {
    (cd "$FOLDER/sdist" && "$PYTHON" -c "import sys; sys.path.insert(0, '$ROOT/python'); import build_backend; print(build_backend.build_sdist('.'))" &&
        tar xzf gemmepi-*.tar.gz) && (export CFLAGS=-O0 && installed "$FOLDER/sdist/$(ls "$FOLDER/sdist" | grep -v gz)" "$FOLDER/from_sdist") &&
        cmp "$FOLDER/from_sdist/gemmepi/api.json" docs/api.json
}

leaves_nothing_behind() {
    left=$(cd python && ls | grep -v -x -e gemmepi -e build_backend.py -e pyproject.toml -e __pycache__)
    echo "$left"
    [ -z "$left" ]
}

without_a_compiler_it_says_so() {
    ! (cd python && CC=/nowhere/cc "$PYTHON" -c "import build_backend; build_backend.build_wheel('$FOLDER')") >"$FOLDER/said" 2>&1 &&
        grep -q 'gemmepi.h does not compile with /nowhere/cc' "$FOLDER/said"
}

# facts NAME: the lines of a file of tests
facts() {
    PYTHONPATH=$site PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1 GEMMEPI_OTHER_VERSION=$FOLDER/other.so "$PYTHON" "tests/python/$1.py" >"$FOLDER/$1" 2>"$FOLDER/errors"
    status=$?
    grep -E '^(ok  |FAIL|skip|  )' "$FOLDER/$1"
    passed=$((passed + $(grep -c '^ok ' "$FOLDER/$1")))
    f=$(grep -c '^FAIL ' "$FOLDER/$1")
    failed=$((failed + f))
    skipped=$((skipped + $(grep -c '^skip ' "$FOLDER/$1")))
    if ! grep -q ' passed, .* failed, ' "$FOLDER/$1" || { [ $status -ne 0 ] && [ "$f" -eq 0 ]; }; then
        sed 's/^/  /' "$FOLDER/errors" | tail -n 12
        fail "tests/python/$1.py: it ended with status $status before its last line, or naming no failed test"
    fi
}

if ! has "$PYTHON"; then
    skip 'the Python package: there is no python3'
    finish
elif ! "$PYTHON" -m pip --version >/dev/null 2>&1; then
    skip 'the Python package: python3 has no pip'
    finish
fi
package() {
    attempt 'pip install ./python, without a network and without setuptools' installed ./python "$FOLDER/site" || return
    attempt 'an sdist builds where there is no checkout' an_sdist_is_whole
    attempt 'a build leaves nothing in python/' leaves_nothing_behind
    attempt 'a compiler that is missing is named' without_a_compiler_it_says_so
    site=$FOLDER/site
    facts plain
}

# other_facts NAME, of the package as it is here
other_facts() {
    site=$ROOT/python GEMMEPI_LIBRARY=$ROOT/build/libgemmepi.so
    [ "$(uname -s)" != Darwin ] || GEMMEPI_LIBRARY=$ROOT/build/libgemmepi.dylib
    export GEMMEPI_LIBRARY
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL "${MAKE:-make}" --no-print-directory -s "${GEMMEPI_LIBRARY#"$ROOT/"}" && facts "$1"
}

# where `make emulate` or `sh tests/emulator/run.sh --build` has built it
emulated() {
    if [ -f build/emulator/emulator.so ] && nvrtc=$(sh tests/emulator/run.sh --build); then
        export EMULATOR_FOLDER="$ROOT/build/emulator" EMULATOR_NVRTC="$nvrtc" EMULATOR_ANY_MEMORY=1 XDG_CACHE_HOME="$ROOT/build/emulator/cache"
        export LD_LIBRARY_PATH="$EMULATOR_FOLDER:${nvrtc%/*}"
        other_facts emulated
    else
        skip 'the Python package on an emulated GPU: there is no build/emulator/emulator.so'
    fi
}

export TORCHINDUCTOR_COMPILE_THREADS=1 # else it starts as many processes as there are processors, for nothing
printf 'int gemmepi_version(void) { return 1; }\nconst char *gemmepi_last_error(void) { return ""; }\n' | "${CC:-cc}" -shared -fPIC -x c - -o "$FOLDER/other.so"
mine package
if "$PYTHON" -c 'import torch, sys; sys.exit(not hasattr(torch.library, "custom_op"))' 2>/dev/null; then
    mine other_facts linear
    mine other_facts network
    mine other_facts formula
    mine other_facts operands
    mine other_facts compiled
    [ "$GEMMEPI_TEST_DEVICE" = host ] || mine other_facts gpu
    mine emulated
else
    mine skip 'gemmepi.linear, gemmepi.network, gemmepi.formula and gemmepi.pack: there is no PyTorch of 2.4 or later'
fi
rm -rf "$FOLDER"
finish
