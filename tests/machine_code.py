#!/usr/bin/env python3
"""Reads the machine code of kernels: `make kernels` writes FOLDER/NAME.TARGET.cubin, and next to each NAME.TARGET.txt with its file, its chip,
what its launches ask for and what it was compiled with (tests/kernels.c).

    machine_code.py [--all] [--bounds FILE] [--jobs N] [--print] FOLDER

What is asked of each kernel:

- no local memory: no LDL, no STL, no stack frame
- registers and shared memory are within the chip's limits, with as many blocks on a multiprocessor as it was compiled for (GEMMEPI_BLOCKS)
- instructions next to the multiplications of its inner loop: no more for each than tests/machine_code.txt says
- operands are loaded as widely as they are aligned (GEMMEPI_A_UNIT, GEMMEPI_B_UNIT), and fragments of 8 and 16 bits four at a time

nvdisasm reads the instructions: that of the toolkit, of a wheel (pip install nvidia-cuda-nvdisasm), or the file that NVDISASM names. Where there
is none, all is skipped. Without --all it reads what drawn problems run. --print shows the counts of every kernel. Ends with 'N passed, N failed, N skipped'.
"""
import argparse
import concurrent.futures
import glob
import os
import re
import shutil
import struct
import subprocess
import sys

# >>limits: CUDA C++ Programming Guide, compute capabilities

REGISTERS = 65536  # of a multiprocessor; a thread has them in multiples of 8
MOST_REGISTERS = 255  # of a thread
RESERVED = 1024  # bytes of shared memory that each block has for the system, from 8.0 on; files for 9.0 and later count them in

# bytes of shared memory: of a block at most, and of a multiprocessor
SHARED = {
    75: (64 << 10, 64 << 10),
    80: (163 << 10, 164 << 10),
    86: (99 << 10, 100 << 10),
    87: (163 << 10, 164 << 10),
    88: (99 << 10, 100 << 10),
    89: (99 << 10, 100 << 10),
    90: (227 << 10, 228 << 10),
    100: (227 << 10, 228 << 10),
    103: (227 << 10, 228 << 10),
    110: (227 << 10, 228 << 10),
    120: (99 << 10, 100 << 10),
    121: (99 << 10, 100 << 10),
}

# >>what was compiled


class Description:
    """The text next to a cubin: `file NAME`, `arch NUMBER`, `launch ENTRY THREADS SHARED` for each, and then a prologue of #define lines."""

    def __init__(self, text):
        self.file, self.arch, self.launches, self.defines = "", 0, {}, {}
        self.has_waves = "formula_sin(" in text or "formula_cos(" in text
        for line in text.splitlines():
            parts = line.split(None, 2)
            if len(parts) >= 2 and parts[0] == "#define":
                self.defines[parts[1]] = parts[2] if len(parts) > 2 else ""
            elif len(parts) == 3 and parts[0] == "launch":
                threads, shared = parts[2].split()
                self.launches[parts[1]] = int(threads), int(shared)
            elif len(parts) == 2 and parts[0] == "file":
                self.file = parts[1]
            elif len(parts) == 2 and parts[0] == "arch":
                self.arch = int(parts[1])

    def number(self, name, otherwise=0):
        try:
            return int(self.defines[name], 0)
        except (KeyError, ValueError):
            return otherwise


# >>the ELF file


class Entry:
    """A kernel of a cubin: registers of a thread, bytes of a stack frame, static shared memory, the most threads of a block."""

    def __init__(self):
        self.registers = self.frame = self.shared = self.threads = 0


ATTRIBUTES = {0x05: "threads", 0x11: "frame", 0x2F: "registers"}  # EIATTR_MAX_THREADS, FRAME_SIZE, REGCOUNT


def sections_of(image):
    """Returns [(name, type, info, data, size)] of a 64-bit ELF file."""
    offset, = struct.unpack_from("<Q", image, 0x28)
    size, count, names = struct.unpack_from("<HHH", image, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", image, offset + i * size) for i in range(count)]
    strings = image[headers[names][4]:headers[names][4] + headers[names][5]]
    found = []
    for name, kind, _, _, at, length, _, info, _, _ in headers:
        text = strings[name:strings.index(b"\0", name)].decode()
        found.append((text, kind, info, b"" if kind == 8 else image[at:at + length], length))
    return found


def attributes_of(data):
    """Yields (attribute, words) of a section .nv.info."""
    at = 0
    while at + 4 <= len(data):
        kind, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if kind == 4:  # with so many bytes behind it
            yield attribute, struct.unpack_from("<%dI" % (size // 4), data, at)
            at += size


def entries_of(image):
    """Returns {kernel: Entry} of a cubin."""
    if image[:5] != b"\x7fELF\x02":
        raise ValueError("it is no 64-bit ELF file")
    entries, symbols, strings = {}, [], b""
    sections = sections_of(image)
    counted = RESERVED if any(name.startswith(".nv.shared.reserved") for name, _, _, _, _ in sections) else 0
    for name, kind, _, data, _ in sections:
        if name == ".strtab":
            strings = data
        if kind == 2:
            symbols = [struct.unpack_from("<I", data, i)[0] for i in range(0, len(data), 24)]
        if name.startswith(".text."):
            entries[name[len(".text."):]] = Entry()
    for name, _, _, data, size in sections:
        kernel = name.rpartition(".nv.shared.")[2]
        if name.startswith(".nv.shared.") and kernel in entries:
            entries[kernel].shared = size - min(size, counted)
        if name.startswith(".nv.info"):
            for attribute, words in attributes_of(data):
                if attribute not in ATTRIBUTES:
                    continue
                if name == ".nv.info":
                    at = symbols[words[0]]
                    kernel, value = strings[at:strings.index(b"\0", at)].decode(), words[1]
                else:
                    kernel, value = name[len(".nv.info."):], words[0] * max(1, words[1]) * max(1, words[2])
                if kernel in entries:
                    setattr(entries[kernel], ATTRIBUTES[attribute], value)
    return entries


# >>instructions


class Instruction:
    def __init__(self, operation, operands, line):
        self.operation, self.operands, self.line = operation, operands, line
        self.stem = operation.partition(".")[0]


SECTION = re.compile(r"\s*\.section\s+\.text\.([^,\s]+)")
LABEL = re.compile(r"(\.L[\w.$]*):")
INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(?:@!?U?P\w+\s+)?([A-Z][\w.]*)\s*([^;]*);")


def read_listing(text):
    """Returns {kernel: (instructions, {label: index})} of what nvdisasm -c prints."""
    code, instructions, labels = {}, None, None
    for line in text.splitlines():
        section = SECTION.match(line)
        if section:
            instructions, labels = code.setdefault(section.group(1), ([], {}))
        elif re.match(r"\s*\.section\s", line):
            instructions = None
        if instructions is None:
            continue
        label, found = LABEL.match(line), INSTRUCTION.match(line)
        if label:
            labels[label.group(1)] = len(instructions)
        elif found:
            instructions.append(Instruction(found.group(1), found.group(2), line.strip()))
    return code


def loops_of(instructions, labels):
    """Returns [(first, last)] of branches backwards."""
    loops = []
    for i, each in enumerate(instructions):
        target = re.search(r"\((\.L[\w.$]*)\)", each.operands)
        if each.stem == "BRA" and target and labels.get(target.group(1), i + 1) < i:
            loops.append((labels[target.group(1)], i))
    return loops


# the tensor cores' and, where a kernel has none of these, multiply-adds
TENSOR = {"HMMA", "IMMA", "QMMA", "OMMA", "DMMA", "HGMMA", "IGMMA", "QGMMA"}
MULTIPLY_ADDS = {"FFMA", "FFMA2", "DFMA"}  # HFMA2 moves constants, too


def inner_loop(instructions, labels):
    """Returns (first, last, operation, count) of the innermost loop with the most multiplications, or None."""
    for wanted in (TENSOR, MULTIPLY_ADDS):
        of_these = [i for i, each in enumerate(instructions) if each.stem in wanted]
        if not of_these:
            continue
        best = None
        loops = [loop for loop in loops_of(instructions, labels) if any(loop[0] <= i <= loop[1] for i in of_these)]
        for first, last in loops:
            inside = [i for i in of_these if first <= i <= last]
            is_innermost = not any((first, last) != other and first <= other[0] and other[1] <= last for other in loops)
            if is_innermost and (best is None or len(inside) > best[3]):
                best = (first, last, instructions[inside[0]].operation, len(inside))
        return best
    return None


# >>bounds


class Bound:
    """A row of machine_code.txt: of kernels of a file, on chips, with this operation, so many other instructions for each at most."""

    def __init__(self, line):
        words, _, self.why = line.partition("#")
        self.file, archs, self.operation, most, *conditions = words.split()
        self.archs = None if archs == "*" else [int(arch) for arch in archs.split(",")]
        self.most = float(most)
        self.conditions = [condition.split("=") for condition in conditions]
        if not self.why.strip():
            raise ValueError("a bound without a reason: " + line)

    def is_for(self, described, operation):
        return (self.file == described.file and (self.archs is None or described.arch in self.archs) and
                operation.startswith(self.operation) and
                all(described.defines.get("GEMMEPI_" + name) in values.split(",") for name, values in self.conditions))


def read_bounds(text):
    return [Bound(line) for line in text.splitlines() if line.strip() and not line.startswith("#")]


# >>one kernel


def blocks_of(described, shared):
    """As many on a multiprocessor as it was compiled for, where shared memory has room for them."""
    blocks = described.number("GEMMEPI_BLOCKS", 1)
    if described.file == "pass.cu" and not 80 <= described.arch < 120:
        blocks = min(blocks, 2)  # as pass.cu has it
    return max(1, min(blocks, SHARED[described.arch][0] // shared if shared else blocks))


def check_resources(described, name, entry, complain):
    launched, asked = described.launches.get(name, (0, 0))
    shared, threads = entry.shared + asked, entry.threads or launched
    blocks = blocks_of(described, shared)
    of_block, of_all = SHARED[described.arch]
    reserved = RESERVED if described.arch >= 80 else 0
    if entry.frame:
        complain("a stack frame of %d bytes" % entry.frame)
    if not entry.registers or not threads:
        complain("its registers or its threads are not known")
    if launched > threads:
        complain("launches of %d threads, and it is compiled for %d" % (launched, threads))
    if entry.registers > MOST_REGISTERS:
        complain("%d registers" % entry.registers)
    if blocks * ((threads + 31) // 32 * 32) * ((entry.registers + 7) // 8 * 8) > REGISTERS:
        complain("%d registers for %d threads of %d blocks" % (entry.registers, threads, blocks))
    if shared > of_block:
        complain("%d bytes of shared memory, of %d" % (shared, of_block))
    if blocks * (shared + reserved) > of_all:
        complain("%d blocks of %d bytes of shared memory, of %d" % (blocks, shared, of_all))


def width_of(instruction):
    """Bytes that a thread loads."""
    parts = instruction.operation.split(".")
    for width in (256, 128, 64):
        if str(width) in parts:
            return width // 8
    return 1 if "U8" in parts or "S8" in parts else 2 if "U16" in parts or "S16" in parts else 4


def check_loads(described, loop, operation, complain):
    """Checks what the inner loop of the kernel for mma.sync loads: tiles, and fragments. On 7.5 what is next to a matrix's edge is loaded
    an element at a time, by the same loop."""
    units = [described.number("GEMMEPI_A_UNIT"), described.number("GEMMEPI_B_UNIT")]
    widths = {width_of(each) for each in loop if each.stem in ("LDGSTS", "LDG", "LD")}
    for unit in sorted(set(units)):
        if unit not in widths:
            complain("operands at multiples of %d bytes, and no load as wide" % unit)
    for width in sorted(widths) if described.arch >= 80 else []:
        if width < min(units):
            complain("a load of %d bytes, though operands are at multiples of %d and %d" % (width, units[0], units[1]))
    is_narrow = operation.startswith(("HMMA.16816", "IMMA", "QMMA")) or described.number("GEMMEPI_ELEMENT") == 2
    if operation.startswith("FFMA") or not is_narrow:
        return
    for each in loop:
        if each.stem == "LDSM" and not each.operation.endswith(".4"):
            complain("fewer than four matrices of a fragment at a time: " + each.line)
            break
        if each.stem == "LDS" and "RZ" not in each.operands:  # ptxas has loads that never happen ahead of LDGSTS
            complain("a fragment without ldmatrix: " + each.line)
            break


def check_multiplications(described, code, bounds, complain):
    """Returns (operation, count, others) of the inner loop, or None where there is none."""
    instructions, labels = code
    found = inner_loop(instructions, labels)
    if not found:
        if described.file in ("gemm_sm80.cu", "gemm_sm90.cu", "gemm_plain.cu"):
            complain("it has no loop that multiplies")
        return None
    first, last, operation, count = found
    others = last + 1 - first - count
    for_this = [bound for bound in bounds if bound.is_for(described, operation)]
    if for_this and others > for_this[0].most * count:
        complain("%d instructions next to %d %s of its inner loop: more than %g for each" %
                 (others, count, operation, for_this[0].most))
    if not for_this and any(bound.file == described.file for bound in bounds):
        complain("no bound in machine_code.txt for %s" % operation)
    if described.file == "gemm_sm80.cu":
        check_loads(described, instructions[first:last + 1], operation, complain)
    if described.file == "gemm_sm90.cu" and not any(each.stem == "UTMALDG" for each in instructions):
        complain("it loads nothing by TMA")
    return operation, count, others


def check_kernel(described, name, entry, code, bounds, complain):
    for each in code[0]:
        if each.stem in ("LDL", "STL"):
            complain("local memory: " + each.line)
            break
    check_resources(described, name, entry, complain)
    return check_multiplications(described, code, bounds, complain)


def check_cubin(described, image, listing, bounds):
    """Returns (faults, rows), a row for each kernel: its name, registers, shared memory, operation, count and others."""
    faults, rows = [], []
    entries, code = entries_of(image), read_listing(listing)
    if not entries or set(entries) != set(code) or described.arch not in SHARED:
        return ["the file's kernels are %s, and those of the listing %s" % (sorted(entries), sorted(code))], rows
    if not described.has_waves and any(name == ".nv.constant3" for name, _, _, _, _ in sections_of(image)):
        faults.append("a bank of constants, which costs each launch some 0.3 us, where nothing is a sine")
    for name in sorted(entries):
        found = check_kernel(described, name, entries[name], code[name], bounds, lambda fault: faults.append(fault))
        rows.append((name, entries[name].registers, entries[name].shared) + (found or ("-", 0, 0)))
    return faults, rows


# >>all kernels


def find_nvdisasm():
    """Returns the program's path, or None."""
    wheels = "nvidia/*/bin/nvdisasm"
    places = glob.glob("/usr/local/cuda*/bin/nvdisasm")
    for folder in sys.path + glob.glob(os.path.join(os.environ.get("VIRTUAL_ENV", "build/venv"), "lib/python3*/site-packages")):
        places += glob.glob(os.path.join(folder, wheels))
    return os.environ.get("NVDISASM") or shutil.which("nvdisasm") or (places[0] if places else None)


def read_file(path, mode="r"):
    with open(path, mode) as file:
        return file.read()


def look_at(nvdisasm, path, bounds):
    described = Description(read_file(path[:-len("cubin")] + "txt"))
    ran = subprocess.run([nvdisasm, "-c", "-ndf", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    if ran.returncode:
        return ["nvdisasm does not read it: " + ran.stdout.strip()[:200]], []
    return check_cubin(described, read_file(path, "rb"), ran.stdout, bounds)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--bounds", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "machine_code.txt"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--print", action="store_true", dest="prints")
    parser.add_argument("folder")
    options = parser.parse_args()
    paths = sorted(glob.glob(os.path.join(options.folder, "*.cubin" if options.all else "drawn_*.cubin")))
    nvdisasm = find_nvdisasm()
    if not paths:
        print("0 passed, 0 failed, 0 skipped")  # of other families alone
        return 0
    if not nvdisasm:
        print("skip machine code: there is no nvdisasm (pip install nvidia-cuda-nvdisasm)")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    bounds = read_bounds(read_file(options.bounds))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for path, (faults, rows) in zip(paths, pool.map(lambda path: look_at(nvdisasm, path, bounds), paths)):
            name = os.path.basename(path)[:-len(".cubin")]
            failed += bool(faults)
            for fault in faults:
                print("FAIL %s: %s" % (name, fault))
            for row in rows if options.prints else []:
                print("%s %s: %d registers, %d bytes of shared memory, %s x %d, %d others" % ((name,) + row))
    print("machine code of %d kernels read" % len(paths))
    print("%d passed, %d failed, 0 skipped" % (len(paths) - failed, failed))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
