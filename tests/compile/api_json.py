#!/usr/bin/env python3
"""docs/api.json says what a C compiler finds in gemmepi.h: each struct, field, constant, type and function, and none is missing.

    python3 tests/compile/api_json.py          with the compiler CC

The compiler compares: a program is made of api.json that does not compile where something differs. That nothing is missing is told by the
names that the header has. Prints what differs, and ends with status 1 where something does.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def holds(condition, name):
    return "typedef char holds_%s[(%s) ? 1 : -1];" % (re.sub(r"\W", "_", name), condition)


def declared(kind, name):
    """The declaration of `name` in C; with "*name" that of a pointer to such."""
    array = re.fullmatch(r"(.*)(\[\d+\])", kind)
    if array:
        return "%s (%s)%s" % (array[1], name, array[2])
    return kind.replace("(*)", "(*%s)" % name, 1) if "(*)" in kind else "%s %s" % (kind, name)


def program(api):
    """Does not compile where api.json is wrong: sizes of arrays are negative, pointers or declarations do not go together."""
    lines = ['#include "gemmepi.h"']
    for name, value in api["constants"].items():
        lines.append(holds("%s == %d" % (name, value), name))
    for enum, values in api["enums"].items():
        lines.append(holds("sizeof(%s) == sizeof(int)" % enum, enum))
        lines += [holds("%s == %d" % (name, value), name) for name, value in values.items()]
    for name, kind in api["types"].items():
        lines.append("extern %s; extern %s *is_%s;" % (declared(kind, "*is_" + name), name, name))
    for struct, content in api["structs"].items():
        lines.append(holds("sizeof(%s) == %d" % (struct, content["size"]), struct))
        for field, kind, offset, size in content["fields"]:
            label, place = struct + "_" + field, "((%s *)0)->%s" % (struct, field)
            lines.append(holds("offsetof(%s, %s) == %d && sizeof(%s) == %d" % (struct, field, offset, place, size), label))
            lines.append("void of_%s(%s *s); void of_%s(%s *s) { %s = &s->%s; (void)p; }"
                         % (label, struct, label, struct, declared(kind, "*p"), field))
    lines.append("#define POSITION(type) POSITION_##type,\nenum {GEMMEPI_STRUCT_LIST(POSITION) POSITIONS};")
    lines.append(holds("POSITIONS == %d" % len(api["sizes"]), "sizes"))
    lines += [holds("POSITION_%s == %d" % (name, i), "position_" + name) for i, name in enumerate(api["sizes"])]
    for name, function in api["functions"].items():
        parameters = ", ".join(kind for _, kind in function["parameters"]) or "void"
        lines.append("extern %s %s(%s);" % (function["returns"], name, parameters))
    return "\n".join(lines) + "\n"


def missing(api):
    """Names that the header declares and api.json has not."""
    with open(os.path.join(ROOT, "gemmepi.h"), encoding="utf-8") as file:
        header = re.sub(r"/\*.*?\*/", "", file.read().split("#if defined(GEMMEPI_IMPLEMENTATION)")[0], flags=re.DOTALL)
    names = set(re.findall(r"\b(?:gemmepi_\w+|GEMMEPI_[A-Z0-9_]+)\b(?!\s*\()", header))
    names |= set(re.findall(r"\b(gemmepi_\w+)\(", header))
    known = set(api["constants"]) | set(api["structs"]) | set(api["types"]) | set(api["functions"]) | set(api["enums"]) | set(api["handles"])
    for values in api["enums"].values():
        known |= set(values)
    names -= set(re.findall(r"^static inline [^(]*\b(gemmepi_\w+)\(", header, re.MULTILINE))  # no library exports them
    spelling = r"GEMMEPI_(H|API|STATIC|NODISCARD|NO_\w+|STATUS_\w*|VERSION_STRING|STRUCT_LIST|SIZE_OF)"
    return sorted(name for name in names - known if not re.fullmatch(spelling, name))


def main():
    with open(os.path.join(ROOT, "docs", "api.json"), encoding="utf-8") as file:
        api = json.load(file)
    wrong = missing(api)
    if wrong:
        print("api.json lacks " + " ".join(wrong))
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "api.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write(program(api))
        done = subprocess.run([os.environ.get("CC", "cc"), "-std=c99", "-Wall", "-Wextra", "-Werror", "-I", ROOT, "-fsyntax-only", source])
    print("%d structs, %d functions, %d constants" % (len(api["structs"]), len(api["functions"]), len(api["constants"])))
    return int(bool(wrong) or done.returncode != 0 or len(api["functions"]) < 40)


if __name__ == "__main__":
    sys.exit(main())
