#!/bin/sh
# make install and make uninstall. Called by tests/run.sh in the repository's root.
. tests/compile/lines.sh
FOLDER=$(pwd)/build/install
rm -rf "$FOLDER"
mkdir -p "$FOLDER"

url=$(sed -n 's/^URL := //p' Makefile)

# installed FOLDER PREFIX: both files, and in the second the absolute prefix and the repository's address
installed() {
    [ -f "$1/include/gemmepi.h" ] && cmp gemmepi.h "$1/include/gemmepi.h" &&
        grep -x "prefix=$2" "$1/lib/pkgconfig/gemmepi.pc" && grep -F -x "URL: $url" "$1/lib/pkgconfig/gemmepi.pc" || {
        find "$FOLDER" -type f
        cat "$1/lib/pkgconfig/gemmepi.pc"
        return 1
    }
}

# goes ARGUMENTS...: make, whatever its caller has set
goes() {
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u PREFIX -u DESTDIR "${MAKE:-make}" --no-print-directory -s "$@"
}

into_an_absolute_prefix() {
    goes install PREFIX="$FOLDER/absolute" && installed "$FOLDER/absolute" "$FOLDER/absolute"
}
into_a_relative_prefix() {
    goes install PREFIX=build/install/relative && installed "$FOLDER/relative" "$FOLDER/relative"
}
into_a_staging_folder() {
    goes install DESTDIR="$FOLDER/stage" PREFIX=/opt/gemmepi && installed "$FOLDER/stage/opt/gemmepi" /opt/gemmepi
}
a_program_of_the_installed_header() {
    printf '#define GEMMEPI_IMPLEMENTATION\n#include <gemmepi.h>\nint main(void) {\n    return gemmepi_status_name(GEMMEPI_OK) == 0;\n}\n' \
        >"$FOLDER/program.c"
    flags=$(PKG_CONFIG_PATH="$FOLDER/relative/lib/pkgconfig" pkg-config --cflags --libs gemmepi) &&
        (cd "$FOLDER" && "${CC:-cc}" -std=c99 -O0 program.c -o program $flags && ./program)
}
nothing_is_left() {
    goes uninstall PREFIX="$FOLDER/absolute" && goes uninstall PREFIX=build/install/relative &&
        goes uninstall DESTDIR="$FOLDER/stage" PREFIX=/opt/gemmepi || return 1
    left=$(find "$FOLDER/absolute" "$FOLDER/relative" "$FOLDER/stage" -type f)
    echo "$left"
    [ -z "$left" ]
}

attempt 'install puts header and pkg-config file where PREFIX says' into_an_absolute_prefix
attempt 'the pkg-config file has absolute folders where PREFIX is relative' into_a_relative_prefix
attempt 'the pkg-config file does not name DESTDIR' into_a_staging_folder
if has pkg-config; then
    attempt 'pkg-config tells how to compile with the installed header' a_program_of_the_installed_header
else
    skip 'pkg-config tells how to compile with the installed header: there is no pkg-config'
fi
attempt 'uninstall takes away what install put there' nothing_is_left
rm -rf "$FOLDER"
finish
