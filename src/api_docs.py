#!/usr/bin/env python3
"""Makes docs/api.md, every public declaration with its comment, from the headers of src/api/.

    api_docs.py          writes it
    api_docs.py --check  fails, and says how to mend it, if what is there differs

A comment at the beginning of a line belongs to the code up to the next one. Those that begin with >> are headings.
"""
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent
OUTPUT = SOURCE.parent / "docs" / "api.md"
INTRODUCTION = """# The interface

Made from `src/api/` by `make gen`: the same text as in gemmepi.h. The manual at the top of that file teaches in steps; here is every
declaration with its contract.
"""
PARTS = ("functions", "types", "products", "grouped", "elementwise", "layers", "formulas", "networks", "ahead", "details")
NOT_SHOWN = [  # what the header needs and a reader does not
    r"#ifndef GEMMEPI_API_\w+_H\n#define GEMMEPI_API_\w+_H\n",
    r"#include .*\n",
    r'#ifdef __cplusplus\n(extern "C" \{|\})\n#endif\n',
    r"\n#endif\s*\Z",
]
NAMES = [
    r"^GEMMEPI_API [^;(]*?(gemmepi_\w+)\(",  # functions
    r"^typedef (?:struct|enum)(?: GEMMEPI_NODISCARD)? (gemmepi_\w+)",
    r"^typedef void \*?\(?\*?\(?\*?(gemmepi_\w+)",
    r"^typedef \w+ (gemmepi_\w+);",
    r"^#define (GEMMEPI_\w+)",
]


def items(text):
    """Pairs of a comment's text, without its marks, and the code behind it."""
    for pattern in NOT_SHOWN:
        text = re.sub(pattern, "", text)
    parts = re.split(r"^/\*(.*?)\*/[ \t]*$", text, flags=re.MULTILINE | re.DOTALL)
    yield "", parts[0]
    yield from zip(parts[1::2], parts[2::2])


def prose(comment):
    """As Markdown. What is indented in the comment is a block of code, and is not to be changed."""
    lines = [line[3:] if line.startswith("   ") else line.strip() for line in comment.strip("\n").split("\n")]
    out = []
    for line in lines:
        indented = line.startswith("    ")
        if indented and out and out[-1] and not out[-1].startswith("    "):
            out.append("")
        if not indented and out and out[-1].startswith("    "):
            out.append("")
        out.append(line if indented else re.sub(r"([*<>|\[\]`]|\b_|(?<!\w)_)", r"\\\1", line).rstrip())
    return "\n".join(out).strip("\n").rstrip()


def names(code):
    found = []
    for pattern in NAMES:
        found += re.findall(pattern, code, flags=re.MULTILINE)
    found = list(dict.fromkeys(found))
    return found if len(found) <= 6 else found[:1] + ["..."] + found[-1:]


def whole_guards(code, around):
    """The code with whole guards alone, and those that are open behind it. around: those open before it."""
    out, opened, around = [], [], list(around)
    for line in code.split("\n"):
        if line.startswith("#if"):
            opened.append(len(out))
        elif line.startswith("#endif"):
            if not opened:  # of what stands around
                around.pop()
                continue
            opened.pop()
        out.append(line)
    for start in reversed(opened):  # closed by code that comes later
        around.append(out[start].split()[1])
        if any(line.strip() for line in out[start + 1 :]):
            while not out[-1].strip():
                out.pop()
            out.append("#endif")
        else:
            out = out[:start]
    return "\n".join(out), around


def page():
    out, guards = [INTRODUCTION], []
    for name in PARTS:
        for comment, code in items((SOURCE / "api" / f"{name}.h").read_text(encoding="utf-8")):
            text = comment.strip()
            if text.startswith(">>"):
                title, _, text = text[2:].partition("\n")
                title, _, more = title.partition(": ")
                out.append("## " + title[:1].upper() + title[1:])
                text = (more[:1].upper() + more[1:] + "\n" + text).strip("\n") if more else text
                comment = text
            around, (code, guards) = guards, whole_guards(code, guards)
            code = code.strip("\n").rstrip()
            if code:
                titles = names(code)
                if titles:
                    out.append("### " + ", ".join(titles))
            if text.strip():
                out.append(prose(comment if comment is not text else "   " + text.lstrip()))
            if code and around:
                out.append("Left out with " + " and ".join(around) + ".")
            if code:
                out.append("```c\n" + code + "\n```")
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(out)) + "\n"


def main():
    text = page().encode("utf-8")
    if "--check" in sys.argv[1:]:
        if not OUTPUT.exists() or OUTPUT.read_bytes() != text:
            sys.exit("docs/api.md differs from src/api/: run 'make gen' and commit the result")
    else:
        OUTPUT.write_bytes(text)


if __name__ == "__main__":
    main()
