#!/bin/sh
# Programs that take gemmepi.h by CMake: as a subdirectory, by FetchContent (without a network), and by find_package after an
# installation, each in C and in C++ in a folder of its own. Called by tests/run.sh in the repository's root.
. tests/compile/lines.sh
ROOT=$(pwd)
FOLDER=$ROOT/build/cmake_test

if ! has cmake; then
    skip 'programs built with CMake: there is no cmake'
    finish
fi
version=$(sed -n 's/^#define GEMMEPI_VERSION_STRING *"\(.*\)"/\1/p' gemmepi.h)
rm -rf "$FOLDER"
mkdir -p "$FOLDER"

# project NAME LANGUAGE SUFFIX TEXT [TARGET]: a program that uses the library, and no other language than its own; with the target
# gemmepi::shared it compiles no implementation
project() {
    mkdir -p "$FOLDER/$1"
    printf '%s\n' "$([ -n "$5" ] || echo '#define GEMMEPI_IMPLEMENTATION')" '#include "gemmepi.h"' \
        'int main(void) { return gemmepi_dtype_size(GEMMEPI_F64) != 8; }' >"$FOLDER/$1/main.$3"
    printf '%s\n' 'cmake_minimum_required(VERSION 3.14)' "project(user LANGUAGES $2)" "$4" "add_executable(user main.$3)" \
        "target_link_libraries(user PRIVATE ${5:-gemmepi::gemmepi})" >"$FOLDER/$1/CMakeLists.txt"
}

configure() { # NAME [OPTIONS...]
    name=$1
    shift
    cmake -S "$FOLDER/$name" -B "$FOLDER/$name/build" "$@"
}

runs() { # NAME [OPTIONS...]
    configure "$@" && cmake --build "$FOLDER/$name/build" && "$FOLDER/$name/build/user"
}

install() {
    cmake -S . -B "$FOLDER/package" && cmake --install "$FOLDER/package" --prefix "$FOLDER/prefix"
}

installs_these_files_alone() {
    (cd "$FOLDER/prefix" && find . -type f | sort) >"$FOLDER/files"
    printf './%s\n' include/gemmepi.h share/cmake/gemmepi/gemmepiConfig.cmake \
        share/cmake/gemmepi/gemmepiConfigVersion.cmake share/cmake/gemmepi/gemmepiTargets.cmake | diff - "$FOLDER/files" &&
        cmp gemmepi.h "$FOLDER/prefix/include/gemmepi.h"
}

# The project's page is the address that the Makefile has.
knows_the_repository() {
    grep -F -x "CMAKE_PROJECT_HOMEPAGE_URL:STATIC=$(sed -n 's/^URL := //p' Makefile)" "$FOLDER/package/CMakeCache.txt"
}

# Asks for another version and must be told which one there is.
refuses_version() { # VERSION
    project version C c "find_package(gemmepi $1 REQUIRED)"
    ! configure version -DCMAKE_PREFIX_PATH="$FOLDER/prefix" >"$FOLDER/said" 2>&1 && grep -q "version: $version" "$FOLDER/said"
}

# Nothing is installed beside the program's own files.
installs_nothing() {
    cmake --install "$FOLDER/subdirectory_c/build" --prefix "$FOLDER/nothing" && [ ! -e "$FOLDER/nothing/include" ]
}

# The program's own library, which links with gemmepi and is exported with it.
exports_with_a_library() {
    mkdir -p "$FOLDER/library"
    printf '%s\n' 'cmake_minimum_required(VERSION 3.14)' 'project(own LANGUAGES C)' 'set(GEMMEPI_INSTALL ON)' \
        "add_subdirectory(\"$ROOT\" gemmepi)" 'add_library(own INTERFACE)' \
        'target_link_libraries(own INTERFACE gemmepi::gemmepi)' 'install(TARGETS own EXPORT own)' \
        'install(EXPORT own FILE ownConfig.cmake DESTINATION share/cmake/own)' >"$FOLDER/library/CMakeLists.txt"
    configure library && cmake --install "$FOLDER/library/build" --prefix "$FOLDER/library/prefix" &&
        [ -f "$FOLDER/library/prefix/include/gemmepi.h" ]
}

attempt 'cmake --install, with no build before' install
attempt 'the installed files are the header and its package' installs_these_files_alone
attempt "the project's page is the repository" knows_the_repository
for row in C:c CXX:cpp; do
    language=${row%:*} suffix=${row#*:}
    if [ $language = CXX ] && ! has "${CXX:-g++}"; then
        skip "C++ programs built with CMake: there is no ${CXX:-g++}"
        continue
    fi
    project subdirectory_$suffix $language $suffix "add_subdirectory(\"$ROOT\" gemmepi)"
    attempt "$language: add_subdirectory" runs subdirectory_$suffix
    project shared_$suffix $language $suffix "add_subdirectory(\"$ROOT\" gemmepi)" gemmepi::shared
    attempt "$language: gemmepi::shared" runs shared_$suffix
    project fetch_$suffix $language $suffix "include(FetchContent)
FetchContent_Declare(gemmepi URL https://example.invalid/not-asked.tar.gz)
FetchContent_MakeAvailable(gemmepi)"
    attempt "$language: FetchContent" runs fetch_$suffix -DFETCHCONTENT_SOURCE_DIR_GEMMEPI="$ROOT"
    project package_$suffix $language $suffix "find_package(gemmepi $version REQUIRED)"
    attempt "$language: find_package" runs package_$suffix -DCMAKE_PREFIX_PATH="$FOLDER/prefix"
done
attempt 'as a subdirectory it installs nothing' installs_nothing
attempt 'with GEMMEPI_INSTALL it is exported with a library of the program' exports_with_a_library
attempt 'find_package refuses another minor version' refuses_version 0.99
finish
