#!/usr/bin/env python3
"""Kernels of Triton without Hopper's instructions, for `bench --ampere`: reads names of products, as draw_name() writes them, a line each.

    triton_ampere.py FOLDER CAPABILITY < NAMES

Compiles for each product a matmul with its epilogue, but for the sums of bias_grad, for compute capability 8.0 by up to twelve tiles; ptxas makes
of that PTX machine code for CAPABILITY. Prints a line for each kernel: the name, its file, its entry, threads, bytes of shared memory and
blocks, with tabs between. What FOLDER has is not compiled again. Needs Triton, and no GPU."""
import concurrent.futures
import hashlib
import os
import re
import subprocess
import sys

import triton
import triton.backends.nvidia
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

# >>the kernel


@triton.jit
def softplus(x):
    return tl.maximum(x, 0.0) + tl.log(1 + tl.exp(-tl.abs(x)))


@triton.jit
def tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def gelu(x):
    return tl.sigmoid(1.5957691 * (x + 0.044715 * x * x * x))


@triton.jit
def activation(x, NAME: tl.constexpr):
    y = x
    if NAME == "RELU":
        y = tl.maximum(x, 0.0)
    elif NAME == "GELU_TANH":
        y = x * gelu(x)
    elif NAME == "GELU_ERF":
        y = 0.5 * x * (1 + tl.erf(0.70710678 * x))
    elif NAME == "SILU":
        y = x * tl.sigmoid(x)
    elif NAME == "SIGMOID":
        y = tl.sigmoid(x)
    elif NAME == "TANH":
        y = tanh(x)
    elif NAME == "LEAKY_RELU":
        y = tl.where(x > 0, x, 0.01 * x)
    elif NAME == "ELU":
        y = tl.where(x > 0, x, tl.exp(x) - 1)
    elif NAME == "SQUARED_RELU":
        y = tl.where(x > 0, x * x, 0.0)
    elif NAME == "QUICK_GELU":
        y = x * tl.sigmoid(1.702 * x)
    elif NAME == "SOFTPLUS":
        y = softplus(x)
    elif NAME == "HARDSWISH":
        y = x * tl.clamp(x + 3, 0.0, 6.0) / 6
    elif NAME == "MISH":
        y = x * tanh(softplus(x))
    elif NAME == "HARDSIGMOID":
        y = tl.clamp(x + 3, 0.0, 6.0) / 6
    else:
        tl.static_assert(NAME == "NONE")
    return y


@triton.jit
def slope(x, NAME: tl.constexpr):
    s = tl.sigmoid(x)
    y = tl.where(x > 0, 1.0, 0.0)
    if NAME == "GELU_TANH":
        y = gelu(x) + x * gelu(x) * (1 - gelu(x)) * 1.5957691 * (1 + 0.134145 * x * x)
    elif NAME == "GELU_ERF":
        y = 0.5 * (1 + tl.erf(0.70710678 * x)) + x * 0.39894228 * tl.exp(-0.5 * x * x)
    elif NAME == "SILU":
        y = s * (1 + x * (1 - s))
    elif NAME == "SIGMOID":
        y = s * (1 - s)
    elif NAME == "TANH":
        y = 1 - tanh(x) * tanh(x)
    elif NAME == "LEAKY_RELU":
        y = tl.where(x > 0, 1.0, 0.01)
    elif NAME == "ELU":
        y = tl.where(x > 0, 1.0, tl.exp(x))
    elif NAME == "SQUARED_RELU":
        y = tl.where(x > 0, 2 * x, 0.0)
    elif NAME == "QUICK_GELU":
        q = tl.sigmoid(1.702 * x)
        y = q * (1 + 1.702 * x * (1 - q))
    elif NAME == "SOFTPLUS":
        y = s
    elif NAME == "HARDSWISH":
        y = tl.where(x <= -3, 0.0, tl.where(x < 3, x / 3 + 0.5, 1.0))
    elif NAME == "MISH":
        t = tanh(softplus(x))
        y = t + x * s * (1 - t * t)
    elif NAME == "HARDSIGMOID":
        y = tl.where((x > -3) & (x < 3), 1 / 6, 0.0)
    else:
        tl.static_assert(NAME == "RELU")
    return y


@triton.jit
def product(a, b, d, bias, aux, residual, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, A_M: tl.constexpr, A_K: tl.constexpr,
            B_K: tl.constexpr, B_N: tl.constexpr, D_LD: tl.constexpr, AUX_LD: tl.constexpr, RESIDUAL_LD: tl.constexpr, ACT: tl.constexpr,
            BIAS: tl.constexpr, AUX: tl.constexpr, BACKWARD: tl.constexpr, RESIDUAL: tl.constexpr, GATED: tl.constexpr,
            GATE_FIRST: tl.constexpr, ADDS: tl.constexpr, MASK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    TWO: tl.constexpr = GATED and not BACKWARD  # the tile has the same columns of both halves, each of N
    VALUE: tl.constexpr = N if GATED and GATE_FIRST else 0
    GATE: tl.constexpr = N if GATED and not GATE_FIRST else 0
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = tl.program_id(0) // (8 * columns)
    height = min(rows - group * 8, 8)
    m = (group * 8 + tl.program_id(0) % (8 * columns) % height) * BM + tl.arange(0, BM)[:, None]
    n = tl.program_id(0) % (8 * columns) // height * BN + tl.arange(0, BN)[None, :]
    k = tl.arange(0, BK)
    from_a = a + m * A_M + k[None, :] * A_K
    from_b = b + k[:, None] * B_K + n * B_N
    sums = tl.zeros((BM, BN), tl.float32)
    more = tl.zeros((BM, BN), tl.float32)
    for i in range(tl.cdiv(K, BK)):
        inside_a, inside_b = m < M, n < N
        if K % BK:
            inside_a, inside_b = inside_a & (k[None, :] < K - i * BK), inside_b & (k[:, None] < K - i * BK)
        x = tl.load(from_a, inside_a, 0)
        sums = tl.dot(x, tl.load(from_b, inside_b, 0), sums)
        if TWO:
            more = tl.dot(x, tl.load(from_b + N * B_N, inside_b, 0), more)
        from_a += BK * A_K
        from_b += BK * B_K
    inside = (m < M) & (n < N)
    saved = aux + m * AUX_LD + n
    to = d + m * D_LD + n
    if BACKWARD:
        if MASK:
            sums *= (tl.load(aux + m * AUX_LD + n // 8, inside, 0).to(tl.int32) >> n % 8) & 1
        else:
            gate = tl.load(saved + GATE, inside, 0).to(tl.float32)
            if GATED:
                tl.store(to + VALUE, sums * activation(gate, ACT), inside)
                sums *= tl.load(saved + VALUE, inside, 0)
            sums *= slope(gate, ACT)
        tl.store(to + GATE, sums, inside)
    else:
        if BIAS:
            sums += tl.load(bias + n, n < N, 0)
            if TWO:
                more += tl.load(bias + N + n, n < N, 0)
        if AUX and MASK:
            bits = tl.reshape((sums > 0).to(tl.int32), (BM, BN // 8, 8)) << tl.arange(0, 8)[None, None, :]
            byte = tl.program_id(0) % (8 * columns) // height * (BN // 8) + tl.arange(0, BN // 8)[None, :]
            tl.store(aux + m * AUX_LD + byte, tl.sum(bits, 2), (m < M) & (byte * 8 < N))
        elif AUX:
            tl.store(saved, sums, inside)
            if TWO:
                tl.store(saved + N, more, inside)
        if TWO and GATE_FIRST:
            sums = activation(sums, ACT) * more
        elif TWO:
            sums *= activation(more, ACT)
        else:
            sums = activation(sums, ACT)
        if ADDS:
            sums += tl.load(to, inside, 0)
        if RESIDUAL:
            sums += tl.load(residual + m * RESIDUAL_LD + n, inside, 0)
        tl.store(to, sums, inside)


# >>what is compiled

ENTRY = "product"
TYPES = {"BF16": "*bf16", "F16": "*fp16", "F32": "*fp32"}
MOST_SHARED = 163 << 10  # bytes of a block on 8.0
MOST_TILES = 12
TILES = (  # M, N, K, warps, stages
    (128, 256, 64, 8, 3), (256, 128, 64, 8, 4), (128, 256, 32, 8, 4), (128, 128, 64, 8, 3), (128, 128, 64, 4, 4), (128, 128, 32, 4, 4),
    (64, 256, 32, 4, 4), (64, 128, 64, 4, 4), (128, 64, 64, 4, 4), (64, 64, 64, 4, 5), (64, 64, 128, 4, 3), (32, 128, 64, 4, 4), (128, 32, 64, 4, 4),
    (32, 64, 64, 4, 5), (64, 32, 64, 4, 5), (32, 32, 128, 4, 4), (16, 128, 64, 4, 4), (128, 16, 64, 4, 4), (16, 64, 128, 4, 4), (64, 16, 128, 4, 4),
    (16, 32, 256, 4, 3), (32, 16, 256, 4, 3), (16, 16, 256, 4, 3), (16, 16, 128, 2, 4))  # fmt: skip


def read_name(name):
    """The constants of the kernel, and its operands' types."""
    sizes, layout, types, epilogue, *rest = name.split()
    m, n, k = (int(size) for size in sizes.split("x"))
    flags, pads = set(epilogue.split("|")), dict(pad.split("+") for pad in rest if pad != "D+=")
    gated, backward = "GATED" in flags, "BACKWARD" in flags
    other = {"BIAS", "AUX", "BACKWARD", "RESIDUAL", "BGRAD", "BGRAD_A", "BGRAD_B", "GATED", "GATE_FIRST"}
    act = (flags - other or {"NONE"}).pop()
    mask = act == "RELU" and not gated and (backward or "AUX" in flags)
    ld = lambda which, columns: columns + int(pads.get(which, 0))  # noqa: E731
    a, b = ld("a", m if layout[0] == "T" else k), ld("b", k if layout[1] == "T" else n)
    of_d = n // 2 if gated and not backward else 2 * n if gated else n
    constants = dict(
        M=m, N=n // 2 if gated and not backward else n, K=k, A_M=1 if layout[0] == "T" else a, A_K=a if layout[0] == "T" else 1,
        B_K=1 if layout[1] == "T" else b, B_N=b if layout[1] == "T" else 1, D_LD=ld("d", of_d), RESIDUAL_LD=ld("residual", of_d),
        AUX_LD=(n + 127) // 128 * 16 if mask else ld("aux", 2 * n if gated and backward else n), ACT=act, ADDS="D+=" in rest, MASK=mask,
        **{flag: flag in flags for flag in ("BIAS", "AUX", "BACKWARD", "RESIDUAL", "GATED", "GATE_FIRST")})  # fmt: skip
    operand, result = types.split("->")[0], types.split("->")[-1]
    return constants, {"a": TYPES[operand], "b": TYPES[operand], "d": TYPES[result], "bias": TYPES[result],
                       "aux": "*u8" if mask else TYPES[operand], "residual": TYPES[result]}  # fmt: skip


def tiles_of(constants):
    """Those that are no larger than the product, nor far too small for it."""
    m, n, k = (max(16, triton.next_power_of_2(constants[extent])) for extent in "MNK")
    halves = constants["GATED"] and not constants["BACKWARD"]
    kept = []
    for bm, bn, bk, warps, stages in TILES:
        bn = max(16, bn // 2) if halves else bn
        tile = bm, bn, min(bk, k), warps, stages
        too_small = (bm == 16 and m > 256) or (bn == 16 and n > 256) or (m * n >= 1 << 22 and bm * bn < (2048 if halves else 4096))
        if bm <= m and bn <= n and not too_small and tile not in kept:
            kept.append(tile)
    return kept[-MOST_TILES:] if m * n < 1 << 20 else kept[:MOST_TILES]


def compile_one(folder, capability, name, tile):
    """Its line of the list; "": it does not fit."""
    with open(os.path.abspath(__file__), "rb") as file:
        key = hashlib.sha256(repr((triton.__version__, file.read(), capability, name, tile)).encode()).hexdigest()[:24]
    path = os.path.join(folder, key)
    if not os.path.exists(path + ".line"):
        constants, types = read_name(name)
        bm, bn, bk, warps, stages = tile
        constants.update(BM=bm, BN=bn, BK=bk)
        source = ASTSource(product, dict(types, **dict.fromkeys(constants, "constexpr")), constants,
                           {(i,): [["tt.divisibility", 16]] for i in range(len(types))})  # fmt: skip
        options = {"num_warps": warps, "num_stages": stages}
        made = triton.compile(source, target=GPUTarget("cuda", 80, 32), options=options)
        ptx, line = made.asm["ptx"], ""
        if not re.search(r"^\.target sm_80", ptx, re.M) or "mma.sync" not in ptx:
            raise RuntimeError("Triton's code for %s is not that of 8.0" % name)
        if made.metadata.shared <= MOST_SHARED:
            with open(path + ".ptx", "w") as file:
                file.write(ptx)
            ptxas = os.path.join(os.path.dirname(triton.backends.nvidia.__file__), "bin", "ptxas")
            subprocess.run([ptxas, "-arch=sm_" + capability, "-o", path + ".cubin", path + ".ptx"], check=True)
            os.remove(path + ".ptx")
            blocks = triton.cdiv(constants["M"], bm) * triton.cdiv(constants["N"], bn)
            fields = name, path + ".cubin", ENTRY, 32 * warps, made.metadata.shared, blocks
            line = "\t".join(str(field) for field in fields) + "\n"
        with open(path + ".line", "w") as file:
            file.write(line)
    with open(path + ".line") as file:
        return file.read()


def main():
    folder, capability = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    names = [line.strip() for line in sys.stdin if line.strip()]
    with concurrent.futures.ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        jobs = [pool.submit(compile_one, folder, capability, name, tile) for name in names for tile in tiles_of(read_name(name)[0])]
        sys.stdout.writelines([job.result() for job in jobs])


if __name__ == "__main__":
    main()
