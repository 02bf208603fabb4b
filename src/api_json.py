#!/usr/bin/env python3
"""Makes docs/api.json, the interface for programs that make bindings, from the headers of src/api/.

    api_json.py          writes it
    api_json.py --check  fails, and says how to mend it, if what is there differs

constants   of #define, by name          enums     by name, with their values
structs     size, and of each field name, type in C, offset and size, as 64-bit compilers have them
functions   what they return, and name and type of each parameter; "unless": the option that leaves it out
types       other names of types         handles   structs that are never looked into
sizes       the structs whose sizes gemmepi_create_for is given, in this order

What the header has inline, as gemmepi_create, is left out: no library exports it.
"""
import json
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent
OUTPUT = SOURCE.parent / "docs" / "api.json"
PARTS = ("types", "products", "grouped", "elementwise", "layers", "formulas", "networks", "ahead", "details", "functions")
SIZES = {"int": 4, "unsigned": 4, "float": 4, "double": 8, "char": 1, "size_t": 8, "int32_t": 4, "int64_t": 8, "uint64_t": 8}
POINTER = 8


def spelled(text):
    """A type as clang-format has it: void *const *, int."""
    return re.sub(r"\s+", " ", text.replace("struct ", "")).strip()


def fields_of(declaration):
    """Pairs of name and type of `const void *a, *b`, `char name[96]` or `void (*free)(void *user, void *pointer)`."""
    function = re.fullmatch(r"(.*?)\(\*(\w+)\)\((.*)\)", declaration)
    if function:
        kinds = [fields_of(parameter)[0][1] for parameter in function[3].split(",")]
        return [(function[2], "%s(*)(%s)" % (function[1], ", ".join(kinds)))]
    base, rest = re.fullmatch(r"((?:const )?\w+) ?(.*)", spelled(declaration)).groups()
    found = []
    for part in rest.split(","):
        stars, name, length = re.fullmatch(r" ?((?:\*(?:const )?)*)(\w+)(\[\d+\])?", part).groups()
        found.append((name, base + (" " + stars.strip() if stars else "") + (length or "")))
    return found


class Interface:
    def __init__(self, text):
        self.text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).replace("\\\n", " ")
        self.types = {name: spelled(kind) for kind, name in re.findall(r"^typedef (\w+ \*?)(gemmepi_\w+);", self.text, re.MULTILINE)}
        for declaration in re.findall(r"^typedef ([^;{}]*\(\*gemmepi_\w+\)\([^;]*\));", self.text, re.MULTILINE):
            self.types.update(fields_of(spelled(declaration)))
        self.handles = re.findall(r"^typedef struct (gemmepi_\w+) \1;", self.text, re.MULTILINE)
        self.enums = dict(self.find_enums())
        self.structs = {}
        for name, body in re.findall(r"^typedef struct (gemmepi_\w+) \{(.*?)^\} \1;", self.text, re.MULTILINE | re.DOTALL):
            self.structs[name] = self.laid_out(body)

    def find_enums(self):
        for name, body in re.findall(r"^typedef enum(?: GEMMEPI_NODISCARD)? (gemmepi_\w+) \{(.*?)^\} \1;", self.text, re.MULTILINE | re.DOTALL):
            listed = re.search(r"^ *(GEMMEPI_\w+)\(GEMMEPI_\w+\)$", body, re.MULTILINE)
            if listed:  # an X-macro
                rows = re.search(r"#define %s\(X\)(.*)" % listed[1], self.text)[1]
                found = re.findall(r"X\((\w+), (\d+),", rows)
            else:
                found = re.findall(r"(GEMMEPI_\w+) = (\d+)", body)
            yield name, {constant: int(value) for constant, value in found}

    def size_and_alignment(self, kind):
        array = re.fullmatch(r"(.*)\[(\d+)\]", kind)
        if array:
            size, alignment = self.size_and_alignment(array[1])
            return size * int(array[2]), alignment
        if "*" in kind:
            return POINTER, POINTER
        if kind in self.structs:
            return self.structs[kind]["size"], self.structs[kind]["alignment"]
        size = SIZES["int"] if kind in self.enums else SIZES.get(kind) or self.size_and_alignment(self.types[kind])[0]
        return size, size

    def laid_out(self, body):
        fields, end, widest = [], 0, 1
        for declaration in body.split(";")[:-1]:
            for name, kind in fields_of(spelled(declaration)):
                size, alignment = self.size_and_alignment(kind)
                end += -end % alignment
                fields.append([name, kind, end, size])
                end, widest = end + size, max(widest, alignment)
        return {"size": end + -end % widest, "alignment": widest, "fields": fields}

    def constants(self):
        found = {}
        for name, value in re.findall(r"^#define (GEMMEPI_\w+) +(.+)$", self.text, re.MULTILINE):
            value = re.sub(r"GEMMEPI_\w+", lambda other: str(found.get(other[0], other[0])), value)
            value = re.sub(r"\b(0x[0-9a-f]+|\d+)ull\b", r"\1", value)
            if re.fullmatch(r"[-0-9a-fx()|*+ ]+", value):
                found[name] = eval(value)  # of numbers and operators, as matched
        return found

    def functions(self):
        found, guards = {}, []
        for line in re.sub(r"\n {8,}", " ", self.text).split("\n"):
            if line.startswith("#if"):
                guards.append(line.split()[-1])
            elif line.startswith("#endif"):
                guards.pop()
            declaration = re.fullmatch(r"GEMMEPI_API (.*?)(gemmepi_\w+)\((.*)\);", line)
            if not declaration or "GEMMEPI_STATIC" in guards:
                continue
            parameters = [] if declaration[3] == "void" else [list(fields_of(part)[0]) for part in declaration[3].split(",")]
            found[declaration[2]] = {"returns": spelled(declaration[1]), "parameters": parameters}
            option = [guard for guard in guards if guard.startswith("GEMMEPI_NO_")]
            if option:
                found[declaration[2]]["unless"] = option[-1]
        return found


    def sizes(self):
        return re.findall(r"X\((\w+)\)", re.search(r"#define GEMMEPI_STRUCT_LIST\(X\)(.*)", self.text)[1])


def lines_of(name, items):
    """A line for each item, sorted."""
    rows = ["%s: %s" % (json.dumps(key), json.dumps(items[key])) for key in sorted(items)]
    return '"%s": {\n%s\n}' % (name, ",\n".join(rows))


def text_of(interface):
    structs = []
    for name in sorted(interface.structs):
        rows = ",\n".join(json.dumps(field) for field in interface.structs[name]["fields"])
        structs.append('"%s": {"size": %d, "fields": [\n%s]}' % (name, interface.structs[name]["size"], rows))
    version = re.search(r'#define GEMMEPI_VERSION_STRING "(.*)"', interface.text)[1]
    return "{\n%s\n}\n" % ",\n".join([
        '"version": "%s"' % version, lines_of("constants", interface.constants()), lines_of("enums", interface.enums),
        lines_of("functions", interface.functions()), '"handles": %s' % json.dumps(sorted(interface.handles)),
        '"sizes": %s' % json.dumps(interface.sizes()),
        '"structs": {\n%s\n}' % ",\n".join(structs), lines_of("types", interface.types)])


def main():
    text = text_of(Interface("\n".join((SOURCE / "api" / f"{name}.h").read_text(encoding="utf-8") for name in PARTS))).encode("utf-8")
    if "--check" in sys.argv[1:]:
        if not OUTPUT.exists() or OUTPUT.read_bytes() != text:
            sys.exit("docs/api.json differs from src/api/: run 'make gen' and commit the result")
    else:
        OUTPUT.write_bytes(text)


if __name__ == "__main__":
    main()
