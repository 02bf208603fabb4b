# Makes two copies of parts of src/, for programs that look into the implementation and link it: below OUT/defined/ functions and variables
# are global, with the lines that they have in src/; below OUT/declared/ they are only declared. Tables that never change are in both, as
# their sizes are asked for. A copy that would be the same is left as it is, so that a change inside functions compiles no program again.
# It relies on clang-format: a definition begins in the first column, and its body ends there.
#
#   awk -v out=OUT -f tests/linked.awk src/base/map.h ...

function complain(what) {
    print FILENAME ":" FNR ": " what >"/dev/stderr"
    exit failed = 1
}

function define(line) {
    defined = defined line "\n"
}

function declare(line) {
    declared = declared line "\n"
}

function store(path, text, line, there) {
    while ((getline line <path) > 0)
        there = there line "\n"
    close(path)
    if (there != text) {
        printf "%s", text >path
        close(path)
    }
}

function store_both() {
    if (part)
        store(out "/defined/" part, defined)
    if (part)
        store(out "/declared/" part, declared)
}

# What begins with lines[1] and ends, but for a body, with lines[count]. text: all of them, without a comment at the end.
function finish(text, is_function, is_object, is_variable, is_prototype, i) {
    is_function = text ~ /\) \{$/ && text !~ / = /
    is_object = text ~ /^static const [^=[]* = /
    is_variable = text ~ /;$/ && text !~ /[=(]/
    is_prototype = text ~ /^[^=]*\(.*;$/
    if (text ~ / = / && text !~ /^static const |\*const /)
        complain("a variable that changes has a value; linked.awk does not know what to declare")
    if (is_function || is_object || is_variable || is_prototype)
        sub(/^static /, "", lines[1])
    for (i = 1; i <= count; i++)
        define(lines[i])
    if (is_object) {
        named = lines[1]
        sub(/ =( .*)?$/, "", named)
        declare("extern " named ";")
    } else if (!is_function || text ~ /^static /) { # or it is public, or a thread's body
        if (is_function)
            sub(/ \{$/, ";", lines[count])
        for (i = 1; i <= count; i++)
            declare((is_variable && i == 1 ? "extern " : "") lines[i])
    }
    ends_with = is_function ? "^}$" : is_object && text ~ /\{$/ ? "};$" : ""
    count = 0
}

FNR == 1 {
    store_both()
    part = substr(FILENAME, 5)
    defined = declared = ends_with = in_macro = count = ""
    define("#line 1 \"" FILENAME "\"")
}
ends_with {
    define($0)
    if ($0 ~ ends_with)
        ends_with = ""
    next
}
part ~ /^api\// || in_macro || /^#/ { # the interface is as it is
    define($0)
    declare($0)
    in_macro = /\\$/
    next
}
count || /^(static|GEMMEPI_API|GPI__THREAD_BODY)/ {
    lines[++count] = $0
    text = (count == 1 ? "" : text) $0
    sub(/ *\/\*.*\*\/$/, "", text)
    if (text ~ /[;{]$/)
        finish(text)
    next
}
{
    define($0)
    declare($0)
}
END {
    if (!failed)
        store_both()
    exit failed
}
