#!/usr/bin/env python3
"""The structs of gemmepi.h that Python files write down once more are what a C compiler makes of them: each field's place and size.

    python3 tests/compile/structs.py FILE...

Of each file only what its structs are made of is run, so that it needs neither PyTorch nor a GPU: assignments at the left margin whose value is a
call of struct() or mirror(), these functions, imports of ctypes, and names of ctypes' types. A file finds the structs of the files
before it. Prints what differs, and ends with status 1 where something does.
"""
import ast
import ctypes
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def is_needed(node):
    """whether a statement defines a struct, or what those are made of"""
    if isinstance(node, ast.FunctionDef):
        return node.name in ("struct", "mirror")
    if not isinstance(node, ast.Assign):
        return False
    if isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") in ("struct", "mirror"):
        return True
    return ast.unparse(node.value).lstrip("(").startswith("ctypes.")


def structs_of(path, names):
    """{C's name: the class}; names: what files before have defined, which grows"""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    found = {}
    for node in tree.body:
        if not is_needed(node):
            continue
        exec(compile(ast.Module([node], []), path, "exec"), names)
        if isinstance(node, ast.Assign) and getattr(getattr(node.value, "func", None), "id", "") in ("struct", "mirror"):
            variable = node.targets[0].id
            name = node.value.args[0].value if isinstance(node.value.args[0], ast.Constant) else None
            found[name or "gemmepi_" + re.sub(r"(?<!^)(?=[A-Z])", "_", variable).lower()] = names[variable]
    return found


def layout_in_c(structs, folder):
    prints = []
    for name, fields in structs:
        prints.append('printf("%s %%d\\n", (int)sizeof(%s));' % (name, name))
        prints += ['printf("%s.%s %%d %%d\\n", (int)offsetof(%s, %s), (int)sizeof(((%s *)0)->%s));' % (name, field, name, field, name, field)
                   for field in fields]
    source, program = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
    with open(source, "w", encoding="utf-8") as file:
        file.write('#include <stdio.h>\n#include "gemmepi.h"\nint main(void) {\n%s\nreturn 0;\n}\n' % "\n".join(prints))
    subprocess.run([os.environ.get("CC", "cc"), "-I", ROOT, "-o", program, source], check=True)
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()


def main(paths):
    names, different, compared = {"ctypes": ctypes}, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            structs = structs_of(path, names)
            ours = []
            for name, mirror in structs.items():
                ours.append("%s %d" % (name, ctypes.sizeof(mirror)))
                ours += ["%s.%s %d %d" % (name, field, getattr(mirror, field).offset, getattr(mirror, field).size)
                         for field, _ in mirror._fields_ if name != "gemmepi_config" or field not in ("alloc", "free", "user")]
            fields = [(name, [line.split(".")[1].split()[0] for line in ours if line.startswith(name + ".")]) for name in structs]
            for mine, real in zip(ours, layout_in_c(fields, folder)):
                if mine != real:
                    print("%s: here %s, in C %s" % (path, mine, real))
                    different += 1
            compared += len(structs)
    print("%d structs, %d differences" % (compared, different))
    return int(different > 0 or compared == 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
