#!/bin/sh
# Each part of src, given by path, compiles alone as C99 and as C++11. Called by `make parts` in the repository's root. With TEST_PART=I/N each
# N-th alone, from the I-th on.
. tests/compile/lines.sh
WARNINGS='-pedantic -Wall -Wextra -Wconversion -Wshadow -Werror -Wno-unused-function'

alone() { # COMPILER LANGUAGE STANDARD PART
    printf '#include "%s"\nextern int gemmepi_is_not_empty;\n' "${4#src/}" | $1 -x "$2" -std="$3" $WARNINGS -Isrc -fsyntax-only -
}

both() { # PART
    attempt "$1 alone as C99" alone "${CC:-cc}" c c99 "$1"
    ! has "${CXX:-g++}" || attempt "$1 alone as C++11" alone "${CXX:-g++}" c++ c++11 "$1"
}

for path in "$@"; do
    mine both "$path"
done
has "${CXX:-g++}" || skip "parts as C++11: there is no ${CXX:-g++}"
finish
