#!/bin/sh
# The shared libraries of `make shared`: which names they export, and a program that links with one. Called by tests/run.sh in the
# repository's root.
. tests/compile/lines.sh
FOLDER=build/shared_test
MINGW=x86_64-w64-mingw32
rm -rf $FOLDER
mkdir -p $FOLDER
sed -n 's/^"\(gemmepi_[a-z_]*\)": {"returns".*/\1/p' docs/api.json | sort >$FOLDER/declared

goes() {
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL "${MAKE:-make}" --no-print-directory -s "$@"
}

exports_what_is_declared() {
    nm -D --defined-only build/libgemmepi.so | awk '{ print $3 }' | sort | diff $FOLDER/declared -
}

the_dll_exports_what_is_declared() {
    $MINGW-objdump -p build/gemmepi.dll | awk '/Ordinal.Name Pointer. Table/ { on = 1; next } /^$/ { on = 0 } on { print $NF }' | sort | diff $FOLDER/declared -
}

a_program_links_with_it() {
    printf '%s\n' '#include "gemmepi.h"' 'int main(void) {' '    return gemmepi_version() != GEMMEPI_VERSION;' '}' >$FOLDER/program.c
    "${CC:-cc}" -std=c99 -I. $FOLDER/program.c -Lbuild -lgemmepi -Wl,-rpath,"$(pwd)/build" -o $FOLDER/program && $FOLDER/program
}

# optimising takes long and changes nothing here
attempt 'make shared builds' goes shared CFLAGS=-O0
if has nm && [ -f build/libgemmepi.so ]; then
    attempt 'libgemmepi.so exports the functions of docs/api.json and nothing else' exports_what_is_declared
    attempt 'a program that includes the header plainly links with libgemmepi.so' a_program_links_with_it
else
    skip 'libgemmepi.so: there is no nm, or the system has other names for it'
fi
if has $MINGW-gcc; then
    attempt 'gemmepi.dll exports the functions of docs/api.json and nothing else' the_dll_exports_what_is_declared
else
    skip "gemmepi.dll: there is no $MINGW-gcc"
fi
rm -rf $FOLDER
finish
