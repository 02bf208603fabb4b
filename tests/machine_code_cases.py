#!/usr/bin/env python3
"""Whether machine_code.py sees what it is for: cubins and listings made here, good ones, and the same with one thing wrong.
Ends with 'N passed, N failed, N skipped'."""
import os
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import machine_code as reader  # noqa: E402

KERNEL = "gemmepi_sm80_bf16_64x128"
BOUNDS = "gemm_sm80.cu * HMMA 2 TILE_N=128 # for these cases\n"


def elf(registers=128, threads=128, shared=0, frame=0, is_reserved=False, kernel=KERNEL, has_constants=False):
    """A cubin with as much of it as is read."""
    names = ["", ".strtab", ".symtab", ".text." + kernel, ".nv.info", ".nv.info." + kernel, ".nv.shared." + kernel]
    names += [".nv.shared.reserved.0"] if is_reserved else [".nv.constant3"] if has_constants else []
    strings = b"\0" + b"\0".join(name.encode() for name in names[1:] + [kernel]) + b"\0"
    at = lambda name: strings.index(b"\0" + name.encode() + b"\0") + 1 if name else 0  # noqa: E731
    attribute = lambda number, *words: struct.pack("<BBH%dI" % len(words), 4, number, 4 * len(words), *words)  # noqa: E731
    symbols = struct.pack("<24x") + struct.pack("<IBBHQQ", at(kernel), 18, 0, 3, 0, 0)
    infos = attribute(0x2F, 1, registers) + attribute(0x11, 1, frame) + struct.pack("<BBH", 3, 0x1B, 255)
    bodies = [b"", strings, symbols, b"", infos, attribute(0x05, threads, 1, 1), b"", b""]
    kinds, sizes = [0, 3, 2, 1, 1, 1, 8, 8], [len(body) for body in bodies]
    sizes[6] = shared
    file, headers = b"\x7fELF\x02".ljust(64, b"\0"), b""
    for name, kind, body, size in zip(names, kinds, bodies, sizes):
        headers += struct.pack("<IIQQQQIIQQ", at(name), kind, 0, 0, len(file), size, 0, 0, 0, 0)
        file += body
    file = file[:0x28] + struct.pack("<Q", len(file)) + file[0x30:]
    file = file[:0x3A] + struct.pack("<HHH", 64, len(names), 1) + file[0x40:]
    return file + headers


LOOP = """
.L_x_1:
        {0}                   HMMA.16816.F32.BF16 R4, R68.reuse, R72, R4 ;
        {0}                   LDSM.16.M88.4 R68, [R2] ;
        {0}              @!P1 LDGSTS.E.BYPASS.LTC128B.128.ZFILL [R151], [R158.64], P4 ;
        {0}                   HMMA.16816.F32.BF16 R8, R68.reuse, R74, R8 ;
        {0}              @!P2 BRA `(.L_x_1) ;"""


def listing(inside="", before="", loop=LOOP, kernel=KERNEL):
    text = "\t.target\tsm_80\n\n\t.section\t.text.%s,\"ax\",@progbits\n" % kernel
    text += "\t.sectioninfo\t@\"SHI_REGISTERS=128\"\n.text.%s:\n" % kernel
    text += "        {0}                   MOV R1, c[0x0][0x28] ;\n" + before + loop.replace(":\n", ":\n" + inside, 1)
    text += "\n        {0}                   STG.E.128 [R2.64], R4 ;\n        {0}                   EXIT ;\n.L_x_9:\n"
    text += "        {0}                   BRA `(.L_x_9);\n"  # ptxas ends each kernel so
    return text.replace("{0}", "/*0a10*/") + "\n\t.section\t.nv.info,\"\",@\"SHT_CUDA_INFO\"\n        /*0000*/ \t.byte\t0x04\n"


def description(arch=80, file="gemm_sm80.cu", threads=128, shared=73728, kernel=KERNEL, **defines):
    every = dict(TILE_M=64, TILE_N=128, BLOCKS=2, A_UNIT=16, B_UNIT=16, ELEMENT=2)
    every.update(defines)
    lines = ["file " + file, "arch %d" % arch, "launch %s %d %d" % (kernel, threads, shared)]
    return "\n".join(lines + ["#define GEMMEPI_%s %s" % each for each in sorted(every.items())])


def one(operation, operands=""):
    return "        {0}   %s %s ;\n" % (operation, operands)


def faults_of(image=None, code=None, told=None, bounds=BOUNDS):
    faults, rows = reader.check_cubin(reader.Description(told or description()), image or elf(), listing() if code is None else code,
                                      reader.read_bounds(bounds))
    return faults, rows


def narrow(loop, before, after):
    assert before in loop
    return listing(loop=loop.replace(before, after))


SMALL = dict(file="gemm_small.cu", kernel=KERNEL)
# (what it is, keywords of faults_of, a word of the fault, or None for a good kernel)
CASES = [
    ("a good kernel", {}, None),
    ("two instructions for each mma", {"code": listing(inside=one("IADD3", "R1, R1, R2, RZ"))}, None),
    ("one more than two", {"code": listing(inside=2 * one("IADD3", "R1, R1, R2, RZ"))}, "more than 2 for each"),
    ("many ahead of the loop", {"code": listing(before=50 * one("IADD3", "R1, R1, R2, RZ"))}, None),
    ("a bound of another tile", {"told": description(TILE_N=64)}, "no bound"),
    ("a spill", {"code": listing(before=one("STL", "[R1], R0"))}, "local memory: /*0a10*/   STL"),
    ("a wide spill behind a predicate", {"code": listing(inside=one("@P0 LDL.LU.64", "R0, [R1+0x8]"))}, "local memory"),
    ("a stack frame", {"image": elf(frame=16)}, "stack frame of 16"),
    ("registers for one block, compiled for two", {"image": elf(registers=255), "told": description(shared=1024)}, None),
    ("too many threads", {"image": elf(registers=168, threads=256), "told": description(shared=1024)}, "168 registers for 256"),
    ("fewer blocks where shared memory has no room", {"image": elf(registers=168, threads=384),
                                                      "told": description(threads=384, shared=98304)}, None),
    ("registers in eights", {"image": elf(registers=129, threads=256), "told": description(shared=1024)}, "129 registers"),
    ("more shared memory than a block may have", {"told": description(shared=163 * 1024 + 1)}, "166913 bytes"),
    ("the most that it may", {"told": description(shared=163 * 1024)}, None),
    ("as much on an 8.6", {"told": description(arch=86, shared=99 * 1024 + 16)}, "101392 bytes"),
    ("static shared memory counts", {"image": elf(shared=1024), "told": description(arch=86, shared=99 * 1024)}, "102400"),
    ("what a file for 9.0 has for the system does not", {"image": elf(shared=1024, is_reserved=True),
                                                         "told": description(arch=90, shared=227 * 1024)}, None),
    ("launches of more threads", {"told": description(threads=256)}, "launches of 256 threads"),
    ("registers that nobody tells", {"image": elf(registers=0)}, "not known"),
    ("a narrow load", {"code": narrow(LOOP, "LTC128B.128.ZFILL", "LTC128B")}, "no load as wide"),
    ("a narrow load next to a wide one", {"code": listing(inside=one("LDGSTS.E", "[R1], [R2.64]"))}, "a load of 4 bytes"),
    ("an operand that is aligned less", {"code": listing(inside=one("LDGSTS.E", "[R1], [R2.64]")), "told": description(B_UNIT=4)},
     None),
    ("elements at the edge, on 7.5", {"code": listing(loop=LOOP.replace("LDGSTS.E.BYPASS.LTC128B.128.ZFILL", "LD.E.128.SYS"),
                                                      inside=one("@P0 LD.E.U16.SYS", "R1, [R2]")),
                                      "told": description(arch=75, shared=49152)}, None),
    ("two matrices of a fragment at a time", {"code": narrow(LOOP, "M88.4", "M88.2")}, "fewer than four"),
    ("a fragment by loads of 32 bits", {"code": narrow(LOOP, "LDSM.16.M88.4 R68, [R2]", "LDS R68, [R2]")}, "without ldmatrix"),
    ("a load that never happens", {"code": narrow(LOOP, "LDSM.16.M88.4", "LDS RZ, [RZ] ;\n        {0}  LDSM.16.M88.4")}, None),
    ("no loop", {"code": listing(loop=LOOP.replace("BRA `(.L_x_1)", "NOP"))}, "no loop that multiplies"),
    ("the kernel for Hopper without TMA", {"told": description(arch=90, file="gemm_sm90.cu"), "bounds": ""}, "by TMA"),
    ("a kernel that is not in the file", {"code": listing(kernel="another")}, "those of the listing ['another']"),
    ("a listing without instructions of its own", {"code": ""}, "those of the listing"),
    ("constants of a kernel with sines", {"image": elf(has_constants=True), "told": description() + "\n  formula_sin(x)"}, None),
    ("constants of any other", {"image": elf(has_constants=True)}, "a bank of constants"),
    ("a spill elsewhere", {"code": listing(before=one("LDL", "R0, [R1]")), "told": description(**SMALL)}, "local memory"),
]


def inner_loops_are_found():
    """An outer loop around it, a smaller one without multiplications next to it, and one with fewer of them."""
    text = listing(before=".L_x_0:\n" + one("IADD3", "R0, R0, R0, RZ") + ".L_x_3:\n" + one("BRA", "`(.L_x_3)"),
                   loop=LOOP + "\n.L_x_4:\n        {0}  HMMA.16816.F32 R4, R5, R6, R7 ;\n        {0}  BRA.U UP0, `(.L_x_4) ;\n"
                   "        {0}  @P0 BRA P3, `(.L_x_0) ;")
    code = reader.read_listing(text.replace("{0}", "/*0010*/"))[KERNEL]
    first, last, operation, count = reader.inner_loop(*code)
    return count == 2 and last - first == 4 and operation == "HMMA.16816.F32.BF16"


def tables_are_refused():
    """A bound without a reason."""
    try:
        reader.read_bounds("gemm_sm80.cu * HMMA 2\n")
    except ValueError:
        return True
    return False


def the_table_is_read():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "machine_code.txt")
    return len(reader.read_bounds(reader.read_file(path))) > 10


def main():
    failed = passed = 0
    for what, how, fault in CASES:
        faults, rows = faults_of(**how)
        if bool(faults) == bool(fault) and (not fault or any(fault in each for each in faults)):
            passed += 1
            print("ok   %s" % what)
        else:
            failed += 1
            print("FAIL %s: %s, and not '%s'" % (what, faults, fault))
    for test in (inner_loops_are_found, tables_are_refused, the_table_is_read):
        if test():
            passed += 1
            print("ok   %s" % test.__name__)
        else:
            failed += 1
            print("FAIL %s" % test.__name__)
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
