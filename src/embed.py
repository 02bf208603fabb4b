#!/usr/bin/env python3
"""Makes kernels_src.h (the CUDA sources as C strings) and gemmepi.h (every part in one file).

    embed.py          writes both into the repository's root
    embed.py --check  fails, and says how to mend it, if what is there differs

The output depends on the sources alone: no dates, LF line ends.
"""
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent
ROOT = SOURCE.parent
LITERAL_LIMIT = 4000  # C99 promises 4095 bytes in one literal after concatenation
INCLUDE = re.compile(r'#include "([^"]+)"$')  # not the indented ones of the manual


def escape(line):
    return '"' + line.replace("\\", "\\\\").replace('"', '\\"').replace("??", '?""?') + '\\n"'


def string_array(path):
    """One literal a line, joined by the compiler into strings below the limit, as an array ended by NULL."""
    name = "gemmepi__source_" + re.sub(r"\W", "_", path.name)
    out, size = [f"static const char *const {name}[] = {{"], 0
    for line in path.read_text(encoding="utf-8").splitlines():
        literal = escape(line)
        if size and size + len(literal) > LITERAL_LIMIT:
            out[-1] += ","
            size = 0
        out.append("    " + literal)
        size += len(literal)
    out[-1] += ","
    out.append("    NULL};")
    return name, "\n".join(out)


def kernels_source():
    files = sorted(path for path in (SOURCE / "kernels").iterdir() if path.suffix in (".cu", ".cuh", ".h"))
    arrays = [string_array(path) for path in files]
    rows = ",\n".join(f'    {{"{path.name}", {name}}}' for path, (name, _) in zip(files, arrays))
    return "\n\n".join(
        ["/* Made by src/embed.py from src/kernels/. Change those files, then run 'make gen'. */\n"
         "#ifndef GEMMEPI_KERNELS_SRC_H\n#define GEMMEPI_KERNELS_SRC_H\n\n#include <stddef.h>"]
        + [text for _, text in arrays]
        + ["/* By file name; a source is its parts one after another. */\n"
           "typedef struct gemmepi__source {\n    const char *name;\n    const char *const *parts;\n} gemmepi__source;",
           "static const gemmepi__source gemmepi__sources[] = {\n" + rows + ",\n    {NULL, NULL}};",
           "#endif\n"])


def inline(path, seen, generated):
    """The text of path with its quoted includes in place, each file once."""
    path = path.resolve()
    if path in seen:
        return ""
    seen.add(path)
    text = generated.get(path.name) if path.parent == ROOT else path.read_text(encoding="utf-8")
    lines = []
    for line in text.split("\n"):
        match = INCLUDE.match(line)
        if match:
            part = inline(path.parent / match.group(1), seen, generated)
            if part:
                lines.append(part.rstrip("\n"))
        else:
            lines.append(line)
    return "\n".join(lines)


def main():
    kernels = kernels_source()
    header = inline(SOURCE / "gemmepi.in.h", set(), {"kernels_src.h": kernels})
    first, rest = header.split("\n", 1)
    assert first.startswith("/* gemmepi.h is made")
    outputs = {"kernels_src.h": kernels, "gemmepi.h": re.sub(r"\n{3,}", "\n\n", rest.rstrip("\n")) + "\n"}
    stale = []
    for name, text in outputs.items():
        path = ROOT / name
        data = text.encode("utf-8")
        if not path.exists() or path.read_bytes() != data:
            stale.append(name)
            if "--check" not in sys.argv[1:]:
                path.write_bytes(data)
    if stale and "--check" in sys.argv[1:]:
        sys.exit(f"{' and '.join(stale)} differ from src/: run 'make gen' and commit the result")


if __name__ == "__main__":
    main()
