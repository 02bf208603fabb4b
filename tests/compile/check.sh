#!/bin/sh
# Every static check. Called by `make check` in the repository's root with the files that clang-format rules.
. tests/compile/lines.sh

# The rooms that the parts of a room may include.
rooms_below() {
    case $1 in
    api) echo api ;;
    base) echo api base ;;
    numbers) echo api base numbers ;;
    formula) echo api base numbers formula ;;
    problem) echo api base numbers formula kernels problem ;;
    cuda) echo api base cuda ;;
    device) echo api base cuda device ;;
    shell) echo api base numbers formula kernels problem cuda device shell ;;
    host) echo api base numbers formula kernels problem host ;;
    elementwise) echo api base numbers formula problem cuda device shell host kernels elementwise ;;
    product) echo api base numbers formula problem cuda device shell host kernels elementwise product ;;
    grouped) echo api base numbers formula problem cuda device shell host kernels elementwise product grouped ;;
    linear) echo api base numbers formula problem cuda device shell host kernels elementwise product linear ;;
    network) echo api base numbers formula problem cuda device shell host kernels elementwise product linear network ;;
    plans) echo api base numbers formula problem cuda device shell host kernels elementwise product grouped linear network plans ;;
    ahead) echo api base numbers formula problem cuda device shell host kernels elementwise product grouped linear network plans ahead ;;
    kernels) echo kernels ;;
    esac
}

# A part includes parts of its own room and of those below it, by their place beside it (kernels by that in src/kernels/, as NVRTC
# is given them), and device the generated kernels_src.h.
rooms_stack() {
    status=0
    for part in src/*/*.h src/*/*/*.h src/*/*.cu src/*/*.cuh src/*/*/*.cu src/*/*/*.cuh; do
        [ -f "$part" ] || continue
        room=${part#src/}
        room=${room%%/*}
        beside=${part%/*}
        [ "$room" != kernels ] || beside=src/kernels
        for included in $(sed -n 's/^#include "\([^"]*\)"$/\1/p' "$part"); do
            from=$(cd "$beside" && cd "$(dirname "$included")" 2>/dev/null && pwd)/
            case $included in
            ../../kernels_src.h) from=api && [ "$room" != device ] && from=kernels_src.h ;;
            *) from=${from#"$PWD/src/"} && from=${from%%/*} ;;
            esac
            case " $(rooms_below "$room") " in
            *" $from "*) ;;
            *)
                echo "$part includes $included; parts of $room may include those of: $(rooms_below "$room")"
                status=1
                ;;
            esac
            if [ ! -f "$beside/$included" ]; then
                echo "$part includes $included, which is not there"
                status=1
            fi
        done
    done
    return $status
}

every_file() {
    if [ -e .git ] && has git && git ls-files --error-unmatch Makefile >/dev/null 2>&1; then
        git ls-files -co --exclude-standard
    else
        find . -type f ! -path './.git/*' ! -path './build/*' | sed 's,^\./,,'
    fi
}

# The folder of this checkout, of its user, and whatever looks like somebody's home.
no_paths_of_a_machine() {
    every_file | while IFS= read -r file; do
        [ -f "$file" ] || continue
        grep -nIHE '/hom[e]/[a-z]|/User[s]/[A-Za-z]|/roo[t]/|[A-Z]:\\+User[s]' "$file"
        grep -nIHF -e "$(pwd)/" "$file"
        case $HOME in
        /*/*) grep -nIHF -e "$HOME/" "$file" ;;
        esac
    done | sort -u >build/paths.txt
    cat build/paths.txt
    [ ! -s build/paths.txt ]
}

# Each of the files ends in a newline and has no carriage return, tab or blank at a line's end.
clean_text() {
    status=0
    tab=$(printf '\t')
    cr=$(printf '\r')
    every_file | grep -E '\.(h|c|cpp|cu|cuh|py|sh|md)$' | while IFS= read -r file; do
        [ -f "$file" ] || continue
        grep -nIH -e "$tab" -e "$cr" -e ' $' "$file"
        [ -z "$(tail -c 1 "$file")" ] || echo "$file: the last line has no end"
    done >build/text.txt
    head -n 12 build/text.txt
    [ ! -s build/text.txt ]
}

# The version's numbers, its text, the manual's first line and the changelog's first heading say the same.
one_version() {
    numbers=$(sed -n 's/^#define GEMMEPI_VERSION_M[A-Z]* *\([0-9]*\)$/\1/p; s/^#define GEMMEPI_VERSION_PATCH *\([0-9]*\)$/\1/p' gemmepi.h)
    numbers=$(echo $numbers | tr ' ' .)
    text=$(sed -n 's/^#define GEMMEPI_VERSION_STRING "\(.*\)"$/\1/p' gemmepi.h)
    manual=$(sed -n 's/.*in one C header (version \([0-9.]*\),.*/\1/p' gemmepi.h)
    changes=$(sed -n 's/^## \([0-9.]*\).*/\1/p' CHANGELOG.md | head -n 1)
    echo "numbers $numbers, text $text, manual $manual, CHANGELOG.md $changes"
    [ -n "$numbers" ] && [ "$numbers" = "$text" ] && [ "$text" = "$manual" ] && [ "$manual" = "$changes" ]
}

# Every heading of the changelog is a version and its day, the newest first; the first version may have no day yet.
releases_have_dates() {
    awk '/^## / {
        day = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
        split($2, part, ".")
        version = part[1] * 1000000 + part[2] * 1000 + part[3]
        if (!($0 ~ "^## [0-9]+[.][0-9]+[.][0-9]+ - " day "$") && !(count == 0 && $4 == "unreleased" && NF == 4))
            wrong = wrong "\n" $0 ": the heading of a release is ## VERSION - YEAR-MONTH-DAY"
        if (count && version >= before) wrong = wrong "\n" $0 ": it is no older than the version above it"
        if (count > 1 && $4 > date) wrong = wrong "\n" $0 ": its day is after that of the version above it"
        before = version
        date = $4
        count++
    }
    END { if (wrong || !count) { print substr(wrong, 2); exit 1 } }' CHANGELOG.md
}

# The repository's address is a line of the Makefile. make gen writes it to the pages that link to [repository]; nothing else has one.
one_address() {
    url=$(sed -n 's/^URL := //p' Makefile)
    [ "$(grep -l -F -x "[repository]: $url" README.md SECURITY.md)" = "README.md
SECURITY.md" ] || { echo "README.md and SECURITY.md need the line [repository]: $url (make gen writes it)" && return 1; }
    every_file | while IFS= read -r file; do
        [ ! -f "$file" ] || grep -nIHiE '(://|git@)[^ ]*gemmep[i]' "$file"
    done | grep -v -E '^(Makefile:[0-9]+:URL := |(README|SECURITY)[.]md:[0-9]+:\[repository\]: )' >build/address.txt
    cat build/address.txt
    [ -n "$url" ] && [ ! -s build/address.txt ]
}

# gemmepi_create compares the size of every struct of the interface.
structs_are_compared() {
    grep -o 'X(gemmepi_[a-z_]*)' src/api/functions.h | sed 's/X(\(.*\))/\1/' | sort >build/text.txt
    sed -n 's/^typedef struct \(gemmepi_[a-z_]*\) {$/\1/p' src/api/*.h | sort | diff build/text.txt -
}

# What asks for a formula asks GPI__FORMULA, of which compilers make nothing where formulas are left out: only what users see has directives.
formulas_are_asked_for() {
    ! grep -rl '^ *# *if.*GEMMEPI_NO_FORMULA' src --include='*.h' |
        grep -v -E '^src/(gemmepi[.]in|api/functions|base/platform|formula/(derivation|derive|derived_operands)|problem/pack)[.]h$'
}

# one process for each processor
parts() {
    jobs=${JOBS:-$(getconf _NPROCESSORS_ONLN)} piece=0
    while [ $piece -lt "$jobs" ]; do
        TEST_PART=$piece/$jobs sh tests/compile/parts.sh src/*/*.h src/*/*/*.h >build/parts_$piece.txt &
        piece=$((piece + 1))
    done
    wait
    cat build/parts_*.txt >build/parts.txt
    rm -f build/parts_*.txt
    grep -v -e '^ok ' -e ' 0 failed' build/parts.txt
    [ "$(grep -c '^ok ' build/parts.txt)" -ge "$(ls src/*/*.h src/*/*/*.h | wc -l)" ] && [ "$(grep -c ' 0 failed' build/parts.txt)" -eq "$jobs" ]
}

mkdir -p build
if has python3; then
    attempt 'gemmepi.h and kernels_src.h are what src makes' python3 src/embed.py --check
    attempt 'the changes of tests/mutants.txt are in src' python3 tests/mutants.py --check
    attempt 'docs/api.md is what src/api makes' python3 src/api_docs.py --check
    attempt 'docs/api.json is what src/api makes' python3 src/api_json.py --check
else
    skip 'check-gen: there is no python3'
fi
attempt "each part compiles alone" parts
has "${CXX:-g++}" || skip "parts as C++11: there is no ${CXX:-g++}"
if has clang-format; then
    attempt "clang-format has nothing to change (else: make format)" clang-format --dry-run -Werror "$@"
else
    skip 'format: there is no clang-format'
fi
attempt 'no part includes upward' rooms_stack
attempt 'no file names a path of a machine' no_paths_of_a_machine
attempt 'the version is the same in all places' one_version
attempt 'every release of the changelog has its day' releases_have_dates
attempt "the repository's address is one line of the Makefile" one_address
attempt 'GEMMEPI_STRUCT_LIST has every struct of src/api' structs_are_compared
attempt 'few parts have directives for formulas that are left out' formulas_are_asked_for
attempt 'texts have plain line ends, and no tabs or blanks there' clean_text
rm -f build/paths.txt build/text.txt build/parts.txt build/address.txt
finish
