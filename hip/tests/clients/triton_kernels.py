"""Triton 3.9: kernels compiled by it, launched through HIP's module functions, against the same in f64."""

import ctypes
import math
import random
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from common import *

hip, tests = Hip(), Tests()
ARCH = sys.argv[2]
WAVE = 64 if ARCH.startswith("gfx9") else 32


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < columns
    row = tl.load(x + tl.program_id(0) * columns + at, mask=inside, other=-float("inf"))
    powers = tl.exp(row - tl.max(row, 0))
    tl.store(out + tl.program_id(0) * columns + at, powers / tl.sum(powers, 0), mask=inside)


@triton.jit
def layer_norm(x, weight, bias, out, columns, epsilon, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < columns
    row = tl.load(x + tl.program_id(0) * columns + at, mask=inside, other=0.0)
    mean = tl.sum(row, 0) / columns
    centred = tl.where(inside, row - mean, 0.0)
    variance = tl.sum(centred * centred, 0) / columns
    normed = centred * (1.0 / tl.sqrt(variance + epsilon))
    result = normed * tl.load(weight + at, mask=inside) + tl.load(bias + at, mask=inside)
    tl.store(out + tl.program_id(0) * columns + at, result, mask=inside)


@triton.jit
def matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, SUM: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), dtype=SUM)
    for start in range(0, k, K):
        left = (rows[:, None] < m) & (inner[None, :] + start < k)
        right = (inner[:, None] + start < k) & (columns[None, :] < n)
        of_a = tl.load(a + rows[:, None] * k + inner[None, :] + start, mask=left, other=0)
        of_b = tl.load(b + (inner[:, None] + start) * n + columns[None, :], mask=right, other=0)
        total = tl.dot(of_a, of_b, total, out_dtype=SUM)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=inside)


class Kernel:
    def __init__(self, function, types, constants):
        signature = dict(types) | {name: "constexpr" for name in constants}
        constexprs = {(function.arg_names.index(name),): value for name, value in constants.items()}
        source = ASTSource(function, signature, constexprs)
        made = triton.compile(source, target=GPUTarget("hip", ARCH, WAVE))
        self.threads = made.metadata.num_warps * WAVE
        self.shared = made.metadata.shared
        self.module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        hip.call("hipModuleLoadData", ctypes.byref(self.module), made.asm["hsaco"])
        name = made.metadata.name.encode()
        hip.call("hipModuleGetFunction", ctypes.byref(self.function), self.module, name)

    def __call__(self, grid, *arguments):
        # Behind its own arguments a kernel has pointers to scratch memory, which these do not use.
        values = [*arguments, ctypes.c_void_p(), ctypes.c_void_p()]
        params = (ctypes.c_void_p * len(values))(*(ctypes.cast(ctypes.pointer(v), ctypes.c_void_p) for v in values))
        sizes = (*grid, *(1,) * (3 - len(grid)), self.threads, 1, 1)
        hip.call("hipModuleLaunchKernel", self.function, *sizes, self.shared, None, params, None)
        hip.wait()


def close(actual, expected, tolerance):
    return all(abs(a - e) <= tolerance * max(1.0, abs(e)) for a, e in zip(actual, expected))


random.seed(4)
i32, f32 = ctypes.c_int32, ctypes.c_float
for n in (1, 127, 1000, 4096):
    x, y = ([random.gauss(0, 1) for _ in range(n)] for _ in range(2))
    kernel = Kernel(add, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 256})
    out = hip.empty(4 * n)
    kernel((-(-n // 256),), hip.upload(floats(x)), hip.upload(floats(y)), out, i32(n))
    expected = [a + b for a, b in zip(x, y)]
    tests.check(f"add of {n}", close(from_floats(hip.download(out, 4 * n)), expected, 1e-6))
for rows, columns in ((3, 50), (4, 256), (2, 781)):
    block = 1 << (columns - 1).bit_length()
    x = [random.gauss(0, 2) for _ in range(rows * columns)]
    out = hip.empty(4 * len(x))
    kernel = Kernel(softmax, {"x": "*fp32", "out": "*fp32", "columns": "i32"}, {"BLOCK": block})
    kernel((rows,), hip.upload(floats(x)), out, i32(columns))
    expected, normed = [], []
    weight, bias = ([random.gauss(0, 1) for _ in range(columns)] for _ in range(2))
    for row in range(rows):
        values = x[row * columns : (row + 1) * columns]
        powers = [math.exp(value - max(values)) for value in values]
        expected += [power / sum(powers) for power in powers]
        mean = sum(values) / columns
        deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / columns + 1e-5)
        normed += [(value - mean) / deviation * w + b for value, w, b in zip(values, weight, bias)]
    tests.check(f"softmax of {rows} x {columns}", close(from_floats(hip.download(out, 4 * len(x))), expected, 1e-6))
    types = {"x": "*fp32", "weight": "*fp32", "bias": "*fp32", "out": "*fp32", "columns": "i32", "epsilon": "fp32"}
    kernel = Kernel(layer_norm, types, {"BLOCK": block})
    of = [hip.upload(floats(part)) for part in (x, weight, bias)]
    kernel((rows,), *of, out, i32(columns), f32(1e-5))
    tests.check(f"layer norm of {rows} x {columns}", close(from_floats(hip.download(out, 4 * len(x))), normed, 1e-5))
for kind, name in (("fp16", "f16"), ("bf16", "bf16"), ("i8", "i8")):
    for m, n, k in ((32, 32, 32), (33, 40, 70), (64, 32, 128)):
        if kind == "i8":
            a, b = ([random.randrange(-128, 128) for _ in range(size)] for size in (m * k, k * n))
            pack = lambda values: struct.pack(f"{len(values)}b", *values)
        else:
            a, b = ([to_bfloat(random.gauss(0, 1)) for _ in range(size)] for size in (m * k, k * n))
            pack = halves if kind == "fp16" else bfloats
            if kind == "fp16":
                a, b = from_halves(halves(a)), from_halves(halves(b))
        sums = tl.int32 if kind == "i8" else tl.float32
        types = {"a": f"*{kind}", "b": f"*{kind}", "c": "*i32" if kind == "i8" else "*fp32"}
        types |= {"m": "i32", "n": "i32", "k": "i32"}
        kernel = Kernel(matmul, types, {"M": 32, "N": 32, "K": 32, "SUM": sums})
        out = hip.empty(4 * m * n)
        kernel((-(-m // 32), -(-n // 32)), hip.upload(pack(a)), hip.upload(pack(b)), out, i32(m), i32(n), i32(k))
        data = hip.download(out, 4 * m * n)
        actual = list(struct.unpack(f"<{m * n}i", data)) if kind == "i8" else from_floats(data)
        expected = [sum(a[i * k + p] * b[p * n + j] for p in range(k)) for i in range(m) for j in range(n)]
        tests.check(f"matmul of {name}, {m} x {n} x {k}", close(actual, expected, 0 if kind == "i8" else 1e-5))
tests.end()
