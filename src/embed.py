#!/usr/bin/env python3
"""Makes src/kernels/codes.h (the public values that kernels know), kernels_src.h (the CUDA sources as C strings) and gemmepi.h
(every part in one file).

    embed.py          writes them
    embed.py --check  fails, and says how to mend it, if what is there differs

The output depends on the sources alone: no dates, LF line ends. CUDA sources are embedded without comments, indentation,
blank lines and most blanks, and with DEVICE for `__device__ inline` and UNROLL for `#pragma unroll`; the compiler still counts lines as
the files in src/kernels/ have them, and names those files.
"""
import itertools
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent
ROOT = SOURCE.parent
KERNELS = SOURCE / "kernels"
LITERAL_LIMIT = 4000  # C99 promises 4095 bytes in one literal after concatenation
PARTS = 16  # more than any source has, and a test adds one
LINE_LIMIT = 1000  # characters of a line of literals
WIDTH = 130  # of lines that others are joined to
IMPLEMENTATION = "#if defined(GEMMEPI_IMPLEMENTATION)"
# what a program may leave out: files, or folders, by one option or any of some
OPTIONS = {"gemm_sm80.cu": "GEMMEPI_NO_SM80", "sm80": "GEMMEPI_NO_SM80", "gemm_small.cu": "GEMMEPI_NO_SM80", "gemm_outer.cu": "GEMMEPI_NO_SM80", "gemm_weights.cu": "GEMMEPI_NO_SM80", "weights.cuh": "GEMMEPI_NO_SM80", "made.cuh": "GEMMEPI_NO_SM80",
           "gemm_weights_sm90.cu": "GEMMEPI_NO_SM90",
           "gemm_sm90.cu": "GEMMEPI_NO_SM90", "maps_sm90.cu": "GEMMEPI_NO_SM90", "sm90": "GEMMEPI_NO_SM90",
           "operations.cuh": "GEMMEPI_NO_ELEMENTWISE", "elementwise.cu": "GEMMEPI_NO_ELEMENTWISE",
           "sum.cu": "GEMMEPI_NO_ELEMENTWISE", "scaled.cu": "GEMMEPI_NO_ELEMENTWISE GEMMEPI_NO_FP8", "scaled.cuh": "GEMMEPI_NO_FP8",
           "scaled_rows.cu": "GEMMEPI_NO_FP8", "scaled_tensor.cu": "GEMMEPI_NO_ELEMENTWISE GEMMEPI_NO_FP8", "scaled_tile.cuh": "GEMMEPI_NO_ELEMENTWISE GEMMEPI_NO_FP8",
           "formula_pass.cu": "GEMMEPI_NO_FORMULA", "formula_run.cuh": "GEMMEPI_NO_FORMULA",
           "network.cu": "GEMMEPI_NO_NETWORK", "network_few.cu": "GEMMEPI_NO_NETWORK", "network_backward.cu": "GEMMEPI_NO_NETWORK",
           "network.cuh": "GEMMEPI_NO_NETWORK", "network_function.cuh": "GEMMEPI_NO_NETWORK", "network_wgmma.cuh": "GEMMEPI_NO_NETWORK",
           "history.cu": "GEMMEPI_NO_FP8", "sm90/scales.cuh": "GEMMEPI_NO_SM90 GEMMEPI_NO_FP8"}
INCLUDE = re.compile(r'#include "([^"]+)"$')  # not the indented ones of the manual


# a comment, or what may hold the beginning of one: a string or a character (but not the ' between digits)
TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'""", re.DOTALL)
LONGEST_GAP = 6  # lines left out that are counted by empty ones, which take two bytes each in the header


MARK = r"[,;=<>?:(){}\[\]|&*/%!]"
ALONE = r"[,;(){}\[\]]"  # never the beginning or the end of a longer mark
SIGN = r"[+-]"  # which go into numbers such as 0x1e: behind those letters a blank stays
BLANK = re.compile(rf"(?<=\w) (?={MARK})|(?<={MARK}) (?=\w)|(?<={ALONE}) | (?={ALONE})|(?<=[^\WeEpP]) (?={SIGN})|(?<= {SIGN}) (?=\w)")


def without_blanks(line):
    """Without those between a word and a mark, and around marks that stand alone; in strings they stay, in directives one of each."""
    if line.startswith("#"):
        return line if '"' in line else re.sub(r" {2,}", " ", line)
    out, end = [], 0
    for token in TOKEN.finditer(line):
        out += [BLANK.sub("", line[end:token.start()]), token.group(0)]
        end = token.end()
    return "".join(out) + BLANK.sub("", line[end:])


def without_comments(text):
    """A comment becomes a space, or as many line ends as it has."""
    def replace(match):
        token = match.group(0)
        if not token.startswith(("//", "/*")):
            return token
        return "\n" * token.count("\n") or " "
    assert not any(t.startswith("//") and t.endswith("\\") for t in TOKEN.findall(text)), "a comment goes on in the next line"
    return TOKEN.sub(replace, text)


def depth_after(line, depth):
    """Of parentheses: within those of a macro's arguments no directive may stand."""
    bare = TOKEN.sub("", line)
    return depth + bare.count("(") - bare.count(")")


def name_of(path):
    """As #include lines have it: from src/kernels/ on."""
    return path.relative_to(KERNELS).as_posix()


def shorter(line):
    """What stands before nearly every function and loop, for which types.cuh has one word."""
    if line.startswith("#"):
        return "UNROLL" if line == "#pragma unroll" else line
    return line.replace("__device__ inline ", "DEVICE ")


def stripped_lines(path):
    """Pairs of a line and how many line ends follow it; #line where more were left out."""
    lines = [shorter(without_blanks(line.strip())) for line in without_comments(path.read_text(encoding="utf-8")).split("\n")]
    out, depth, continued = [[f'#line 1 "src/kernels/{name_of(path)}"', 1]], 0, False
    expected = 1
    for number, line in enumerate(lines, 1):
        if not line and not continued:
            continue
        gap = number - expected
        if gap > LONGEST_GAP and depth == 0:
            out.append([f"#line {number}", 1])
        else:
            out[-1][1] += gap
        out.append([line, 1])
        continued = line.endswith("\\")
        depth = depth_after(line, depth)
        expected = number + 1
    return out


def escape(line, ends):
    return line.replace("\\", "\\\\").replace('"', '\\"').replace("??", '?""?') + "\\n" * ends


def row_of(path):
    """Name and text of a source: literals of some lines, joined by the compiler into strings below the limit."""
    out, size, parts = [f'{{"{name_of(path)}",\n{{'], 0, 1
    for line, ends in stripped_lines(path):
        text = escape(line, ends)
        if size and size + len(text) > LITERAL_LIMIT:
            out[-1] += ","
            size = 0
            parts += 1
        if size and len(out[-1]) + len(text) < LINE_LIMIT:
            out[-1] = out[-1][:-1] + text + '"'
        else:
            out.append(f'"{text}"')
        size += len(text)
    assert parts < PARTS - 1, f"{path} is of {parts} parts"
    return "\n".join(out) + "}},"


def codes(products):
    """Activations are the constants of two digits in api/products.h, the flags of an epilogue those of seven."""
    def constants(digits):
        return re.findall(rf"^#define GEMMEPI_(\w+) +0x([0-9a-f]{{{digits}}})ull /\*", products, re.MULTILINE)
    names = " ".join(f"X({name})" for name, _ in constants(2))
    return "\n".join(
        ["// Made by src/embed.py from src/api/products.h. Change that file, then run 'make gen'.",
         "// The public values of an epilogue's flags and activations, for kernels and their preprocessor.",
         "#ifndef GEMMEPI_KERNELS_CODES_H\n#define GEMMEPI_KERNELS_CODES_H\n"]
        + [f"#define FLAG_{name} 0x{value.lstrip('0')}" for name, value in constants(7)]
        + [f"#define CODE_{name} 0x{value}" for name, value in constants(2)]
        + [f"\n#define ACTIVATION_CODES(X) {names}\n\n#endif\n"])


def option_of(path):
    name = name_of(path)
    return OPTIONS.get(name) or OPTIONS.get(name.split("/")[0]) or ""


def unless(option):
    names = option.split()
    return f"#ifndef {option}" if len(names) == 1 else "#if " + " && ".join(f"!defined({name})" for name in names)


def kernels_source():
    files = [path for path in KERNELS.rglob("*") if path.suffix in (".cu", ".cuh", ".h")]
    files.sort(key=lambda path: (option_of(path), path))
    rows = []
    for option, of_option in itertools.groupby(files, option_of):
        texts = [row_of(path) for path in of_option]
        rows += [unless(option), *texts, "#endif"] if option else texts
    return "\n".join(
        ["/* Made by src/embed.py from src/kernels/. Change those files, then run 'make gen'. */",
         "#ifndef GEMMEPI_KERNELS_SRC_H\n#define GEMMEPI_KERNELS_SRC_H\n\n#include <stddef.h>\n",
         "/* By the name that #include lines have; a source is its parts one after another, up to NULL. */",
         f"typedef struct gpi__source {{\n    const char *name;\n    const char *parts[{PARTS}];\n}} gpi__source;\n",
         "static const gpi__source gpi__sources[] = {", *rows, "{NULL, {NULL}}};\n", "#endif\n"])


def without_guard(text):
    """Each part is inlined once, so its guard does nothing."""
    text, found = re.subn(r"^#ifndef (GEMMEPI_\w+_H)\n#define \1\n", "", text, count=1, flags=re.MULTILINE)
    return re.sub(r"#endif\n*\Z", "", text) if found else text


def join(first, second):
    """Two lines of an expression; a string that goes on becomes one."""
    if first.endswith('"') and second.startswith('"') and not re.search(r'\\[0-9a-fx]*"$', first):
        return first[:-1] + second[1:]
    return first + ("" if first.endswith("(") else " ") + second


def narrower(text):
    """Half the indentation. Lines that go on within parentheses join those before them, where there is room again, or have two blanks
    more than their first one. One blank at a comment's ends and ahead of a backslash."""
    out, depth, first, in_comment = [], 0, 0, False
    for line in text.split("\n"):
        blanks = len(line) - len(line.lstrip(" "))
        goes_on = depth > 0 and not in_comment and not line.startswith(("#", '"'))
        if not goes_on:
            first = min(blanks // 2, 8)
        joined = join(out[-1], line[blanks:]) if goes_on else ""
        if goes_on and len(joined) <= WIDTH and not out[-1].endswith("\\") and "/*" not in joined:
            out[-1] = joined
        else:
            out.append(" " * (first + 2 if goes_on else min(blanks // 2, 8)) + line[blanks:])
        bare = re.sub(r"/\*.*?\*/", "", TOKEN.sub(lambda token: "" if token.group(0)[0] in "\"'" else token.group(0), line))
        if "*/" in bare:
            bare, in_comment = bare.split("*/", 1)[1], False
        if "/*" in bare:
            bare, in_comment = bare.split("/*", 1)[0], True
        elif in_comment:
            bare = ""
        depth += bare.count("(") - bare.count(")")
    assert depth == 0 and not in_comment, "what is in parentheses was miscounted"
    return re.sub(r"(?<=\S) {2,}(?=/\*|\*/|\\$)", " ", "\n".join(out), flags=re.MULTILINE)


def inline(path, seen, generated):
    """The text of path with its quoted includes in place, each file once."""
    path = path.resolve()
    if path in seen:
        return ""
    seen.add(path)
    text = generated.get(path.name) if path.parent == ROOT else path.read_text(encoding="utf-8")
    if seen != {path}:
        text = without_guard(text)
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


def write(outputs, checks):
    """The names of those that were not so yet."""
    stale = [path for path, text in outputs.items() if not path.exists() or path.read_bytes() != text.encode("utf-8")]
    for path in [] if checks else stale:
        path.write_bytes(outputs[path].encode("utf-8"))
    return [str(path.relative_to(ROOT)) for path in stale]


def main():
    checks = "--check" in sys.argv[1:]
    stale = write({SOURCE / "kernels/codes.h": codes((SOURCE / "api/products.h").read_text(encoding="utf-8"))}, checks)
    kernels = kernels_source()
    header = inline(SOURCE / "gemmepi.in.h", set(), {"kernels_src.h": kernels})
    first, rest = header.split("\n", 1)
    assert first.startswith("/* gemmepi.h is made")
    public, implementation = rest.split(IMPLEMENTATION)
    rest = public + IMPLEMENTATION + narrower(implementation)
    stale += write({ROOT / "kernels_src.h": kernels,
                    ROOT / "gemmepi.h": re.sub(r"\n{3,}", "\n\n", rest.rstrip("\n")) + "\n"}, checks)
    if stale and checks:
        sys.exit(f"{' and '.join(stale)} differ from src/: run 'make gen' and commit the result")


if __name__ == "__main__":
    main()
