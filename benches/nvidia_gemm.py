#!/usr/bin/env python3
"""Our matrix products beside cuBLAS's, on one NVIDIA GPU.

    cargo xtask ptx PTX_DIR gemm
    python3 benches/nvidia_gemm.py PTX_DIR [--cases N] [--only TEXT] [--json FILE] [--sm80]

Needs cuda-python (`cuda.bindings`), PyTorch, NumPy and ptxas, and no network.

First N random products for each kernel (100, or none with 0), within the bound that their additions allow of a product in float64: any
sizes, strides, transpositions, gaps, addresses, batches, factors and grids, with guards around the results. Then times: graphs of
launches, both sides taking turns, medians of seven rounds; weights of few columns change between launches, so that they do not stay in
the cache. cuBLAS is called by PyTorch: f32 without TF32, f16 and bf16 with f32 sums, as ours. Exit code 1 if a result is wrong.

On a GPU of compute capability 9.0 the text is that for sm_90a, as the host crate loads it; with --sm80 it is that for others.
"""
import argparse
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import torch
from cuda.bindings import driver as cuda

# Type, unit of a sum's rounding, unit of the result's own.
TYPES = {
    "f32": (torch.float32, 2.0**-24, 2.0**-23),
    "f16": (torch.float16, 2.0**-24, 2.0**-10),
    "bf16": (torch.bfloat16, 2.0**-24, 2.0**-7),
    "f64": (torch.float64, 2.0**-53, 2.0**-52),
}
BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
SIZES = [1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 127, 128, 129, 130, 136, 200, 255, 256, 257, 300, 384, 513, 640, 1000]
SIZE, POINTER = ctypes.c_uint64, ctypes.c_void_p
KERNELS = r"gemm_(f16|bf16|f32|f64)_(staged|128x128|64x64|64x16|16x32)|gemv_(f16|bf16|f32|f64)_(along_k|across)"
# Shared memory with which the 16-bit kernels of 128x128 have tiles of 256x128.
WIDE = 4 * 128 * (256 + 128)

# Type, m, n, k, batch, transposed a, transposed b (column-major, as cuBLAS has them), kernels
LARGE, SMALL = ["128x128", "staged"], ["128x128", "staged", "64x64"]
TIMED = [(t, s, s, s, 1, a, b, LARGE) for t in ("f16", "bf16") for s in (4096, 8192) for a in (1, 0) for b in (1, 0)]
TIMED += [(t, 4096, 4096, 4096, 1, a, b, LARGE) for t in ("f32", "f64") for a in (1, 0) for b in (1, 0)]
TIMED += [("f16", *shape, 1, 0, SMALL) for shape in (
    (512, 512, 512, 1), (1024, 1024, 1024, 1), (2048, 2048, 2048, 1), (3072, 3072, 3072, 1), (4096, 512, 4096, 1),
    (14336, 256, 4096, 1), (8192, 2048, 1024, 1), (512, 512, 64, 96), (128, 512, 64, 96))]
TIMED += [(t, m, n, k, 1, 1, 0, SMALL) for t in ("f16", "f32", "f64")
          for m, n, k in ((1024, 1024, 1024), (1023, 1021, 1019), (4096, 512, 4096), (4097, 511, 4095))]
TIMED += [("f16", m, n, k, 1, 1, 0, ["along_k"] if n == 1 else ["16x32", "64x16", "staged"])
          for m, k in ((4096, 4096), (14336, 4096), (4096, 14336)) for n in (1, 2, 4, 8, 16, 32, 64)]


def check(result):
    if result[0] != cuda.CUresult.CUDA_SUCCESS:
        raise RuntimeError(result[0])
    return result[1] if len(result) == 2 else None


def for_hopper(text):
    """What the host crate makes of a text for sm_90a."""
    lines = []
    for line in text.split("\n"):
        own = line.lstrip()
        if own.startswith("//sm_90a "):
            lines.append(own[len("//sm_90a "):])
        elif not line.rstrip().endswith("//sm_80"):
            lines.append(line)
    text = "\n".join(lines)
    return text.replace(".version 7.8", ".version 8.0", 1).replace(".target sm_80", ".target sm_90a", 1)


def load(path, hopper):
    """The kernels by name. ptxas says what it spills."""
    head, *parts = re.split(r"(?m)^(?=\t// \.globl)", open(path).read())
    shared = ".extern .shared .align 16 .b8 amdgpu_device_dynamic[];\n"
    major, minor = torch.cuda.get_device_capability()
    arch = "sm_90a" if hopper else f"sm_{major}{minor}"
    jobs, functions = [], {}
    folder = tempfile.mkdtemp()
    for part in parts:
        name = re.search(r"\.entry (\w+)", part)
        if name and re.fullmatch(KERNELS, name[1]):
            text = head + shared + part.replace(shared, "")
            file = os.path.join(folder, name[1])
            with open(file + ".ptx", "w") as out:
                out.write(for_hopper(text) if hopper else text)
            command = ["ptxas", "-v", f"-arch={arch}", file + ".ptx", "-o", file + ".cubin"]
            jobs.append((name[1], file, subprocess.Popen(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True)))
    for name, file, job in jobs:
        said = job.communicate()[0]
        if job.returncode:
            sys.exit(f"{name}: {said}")
        spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", said)
        if spills[1] != "0":
            print(f"{name}: {spills[0]}, {re.search(r'Used [0-9]+ registers', said)[0]}")
        with open(file + ".cubin", "rb") as cubin:
            module = check(cuda.cuModuleLoadData(cubin.read()))
        functions[name] = check(cuda.cuModuleGetFunction(module, name.encode()))
    return functions


def geometry(name, m, n, batch, hopper):
    """Grid, lanes and bytes of shared memory, as the host crate has them."""
    kind, dtype, way = name.split("_", 2)
    size = {"f64": 8, "f32": 4}.get(dtype, 2)
    if kind == "gemv":
        rows = 16 if way == "along_k" else 256 // size
        tile, lanes, shared = (rows, 1), 256, 0 if way == "along_k" else 16 * (rows + 16) * max(size, 4)
    elif way == "128x128" and size == 2 and hopper:
        tile, lanes, shared = (256, 128), 256, WIDE
    elif way == "staged":
        tile = (128, 64 if size == 8 else 128)
        lanes, shared = 128, 4 * 64 * sum(tile)
    elif way == "16x32":
        tile, lanes, shared = (16, 32), 256, 8 * 32 * 32 * 4
    else:
        tile = tuple(map(int, way.split("x")))
        lanes, shared = {"128x128": 256, "64x64": 128, "64x16": 64}[way], 2 * 64 * sum(tile)
    return (-(-m // tile[0]), -(-n // tile[1]), batch), lanes, shared


class Launcher:
    def __init__(self, functions, hopper):
        self.functions, self.hopper = functions, hopper

    def __call__(self, name, sizes, alpha, a, b, beta, c, grid=None):
        """Matrices are address and strides: of their own dimension, of the common one, of the batch."""
        m, n, k, batch = sizes
        factor = ctypes.c_double if "_f64_" in name else ctypes.c_float
        arguments = [(size, SIZE) for size in sizes] + [(alpha, factor)]
        for matrix in (a, b, c):
            if matrix is c:
                arguments.append((beta, factor))
            arguments += [(matrix[0], POINTER)] + [(stride, SIZE) for stride in matrix[1]]
        own, lanes, shared = geometry(name, m, n, batch, self.hopper)
        function = self.functions[name]
        limit = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        check(cuda.cuFuncSetAttribute(function, limit, shared))
        stream = torch.cuda.current_stream().cuda_stream
        values, types = zip(*arguments)
        check(cuda.cuLaunchKernel(function, *(grid or own), lanes, 1, 1, shared, stream, (values, types), 0))


def random_products(launch, name, count, random):
    """How many of `count` products are wrong, and the largest error as a share of what is allowed."""
    dtype = name.split("_")[1]
    real, unit, own = TYPES[dtype]
    few = name.endswith("16x32") or name.startswith("gemv")
    wrong, worst = 0, 0.0
    for _ in range(count):
        m, n, k = (int(size) for size in random.choice(SIZES, 3))
        n = int(random.integers(1, 70)) if few else n
        k = 0 if random.random() < 0.05 else k
        batch = int(random.choice([1, 1, 1, 2, 3]))
        alpha, beta = float(random.choice([1, 1, -0.75, 2.5])), float(random.choice([0, 0, 1, -0.5]))

        def matrix(rows, columns, shared):
            """Elements, address, strides, and a view."""
            transposed, gap = random.random() < 0.5, int(random.choice([0, 0, 0, 1, 4, 8, 16]))
            inner = 2 if random.random() < 0.06 else 1
            line, lines = (columns, rows) if transposed else (rows, columns)
            pitch = inner * line + gap
            all = pitch * lines + int(random.choice([0, 0, 8, 1]))
            z = 0 if shared and random.random() < 0.25 else all
            strides = (pitch, inner, z) if transposed else (inner, pitch, z)
            first = int(random.choice([0, 0, 0, 1, 4, 8]))
            data = (torch.rand(all * batch + first + 8, device="cuda", dtype=torch.float64) - 0.5).to(real)
            view = lambda of: torch.as_strided(of, (batch, rows, columns), (z, strides[0], strides[1]), first)
            return data, (data.data_ptr() + first * data.element_size(), strides), view

        (a_data, a, a_view), (b_data, b, b_view) = matrix(m, max(k, 1), True), matrix(n, max(k, 1), True)
        c_data, c, c_view = matrix(m, n, False)
        if beta == 0:
            c_data.fill_(float("nan"))
        before = c_data.clone()
        left, right = a_view(a_data)[..., :k].double(), b_view(b_data)[..., :k].double().transpose(1, 2)
        exact, magnitude = alpha * (left @ right), abs(alpha) * (left.abs() @ right.abs())
        if beta:
            old = c_view(before).double()
            exact, magnitude = exact + beta * old, magnitude + abs(beta) * old.abs()
        bound = 1.01 * (k + 4) * unit * magnitude + own * exact.abs() + (6e-8 if dtype == "f16" else 1e-30)
        grid = tuple(int(x) for x in random.integers(1, 4, 3)) if random.random() < 0.25 else None
        launch(name, (m, n, k, batch), alpha, a, b, beta, c, grid)
        error = ((c_view(c_data).double() - exact).abs() / bound).max().item()
        guard = torch.ones_like(c_data, dtype=torch.bool)
        c_view(guard).fill_(False)
        bits = BITS[c_data.element_size()]
        intact = torch.equal(c_data[guard].view(bits), before[guard].view(bits))
        worst = max(worst, error)
        if not (error <= 1 and intact):
            wrong += 1
            print(f"WRONG {name} {m}x{n}x{k} batch {batch} alpha {alpha} beta {beta} a {a[1]} b {b[1]} c {c[1]} grid {grid}: "
                  f"error {error}, guards {'intact' if intact else 'overwritten'}", flush=True)
    return wrong, worst


def clock(*functions):
    """Microseconds of each: medians of several rounds, the functions taking turns."""
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def once(function, count):
        start.record()
        function()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) * 1000 / count

    graphs = []
    for function in functions:
        function()
        count = max(2, min(40, int(2500 / once(function, 1))))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(count):
                function()
        graphs.append((graph, count))
    times = [[once(graph.replay, count) for graph, count in graphs] for _ in range(8)]
    return [float(np.median(of)) for of in zip(*times[1:])]


def copy_rate():
    """GB/s of copies by a kernel; in a graph the driver copies otherwise."""
    x = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    y = torch.empty_like(x)
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(2):
        start.record()
        for _ in range(10):
            y.copy_(x)
        stop.record()
        stop.synchronize()
    return 2 * 10 * x.numel() / start.elapsed_time(stop) / 1e6


def timed(launch, dtype, m, n, k, batch, trans_a, trans_b, ways):
    real = TYPES[dtype][0]
    make = lambda *shape: (torch.rand(shape, device="cuda") - 0.5).to(real)
    # Weights of few columns are read from memory, so there are several.
    many = [make(batch, m, k) if trans_a else make(batch, k, m) for _ in range(8 if n <= 64 else 1)]
    b = make(batch, k, n) if trans_b else make(batch, n, k)
    c = torch.empty((batch, n, m), device="cuda", dtype=real)
    alone = (lambda x: x[0]) if batch == 1 else (lambda x: x)
    left = [alone(a if trans_a else a.transpose(1, 2)) for a in many]
    right = alone(b if trans_b else b.transpose(1, 2))
    out = torch.empty_like(alone(torch.empty((batch, m, n), device="cuda", dtype=real)))
    a_strides = (k, 1, m * k) if trans_a else (1, m, m * k)
    b_strides = (1, n, n * k) if trans_b else (k, 1, n * k)
    turn = 0

    def next_one():
        nonlocal turn
        turn = (turn + 1) % len(many)
        return turn

    def ours(name):
        a = (many[next_one()].data_ptr(), a_strides)
        launch(name, (m, n, k, batch), 1.0, a, (b.data_ptr(), b_strides), 0.0, (c.data_ptr(), (1, m, m * n)))

    names = [name for way in ways for name in (f"gemm_{dtype}_{way}", f"gemv_{dtype}_{way}") if name in launch.functions]
    functions = [lambda: torch.matmul(left[next_one()], right, out=out)]
    functions += [lambda name=name: ours(name) for name in names]
    theirs, *times = clock(*functions)
    flop, size = 2.0 * m * n * k * batch, (m * k + n * k + m * n) * batch * c.element_size()
    shape = f"{dtype:<5}{m:>6}{n:>6}{k:>6}{batch:>4} {'NT'[trans_a]}{'NT'[trans_b]}"
    for name, time in zip(names, times):
        print(f"{shape}  {name.split('_', 2)[2]:<8}{time:>10.1f}{flop / time / 1e6:>8.1f}{size / time / 1e3:>7.0f}"
              f"{theirs:>10.1f}{flop / theirs / 1e6:>8.1f}{theirs / time:>6.0%}", flush=True)
        yield {"type": dtype, "m": m, "n": n, "k": k, "batch": batch, "layout": shape[-2:], "kernel": name, "us": time, "cublas_us": theirs}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ptx", help="folder of gemm.ptx")
    parser.add_argument("--cases", type=int, default=100, help="random products for each kernel")
    parser.add_argument("--only", default="", help="kernels whose name has this text")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", help="where the numbers go")
    parser.add_argument("--sm80", action="store_true", help="the text for other GPUs than those of sm_90a")
    options = parser.parse_args()
    torch.zeros(1, device="cuda")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.manual_seed(options.seed)
    hopper = torch.cuda.get_device_capability() == (9, 0) and not options.sm80
    print(torch.cuda.get_device_name(), "sm_90a" if hopper else "")
    launch = Launcher(load(os.path.join(options.ptx, "gemm.ptx"), hopper), hopper)
    launch.functions = {name: f for name, f in launch.functions.items() if options.only in name}
    random, wrong = np.random.default_rng(options.seed), 0
    for name in sorted(launch.functions):
        bad, worst = random_products(launch, name, options.cases, random)
        wrong += bad
        print(f"{name:<20} {options.cases} products, {bad} wrong, {worst:.2f} of the bound", flush=True)
    print(f"a copy reads and writes {copy_rate():.0f} GB/s")
    print(f"{'type':<5}{'m':>6}{'n':>6}{'k':>6}{'z':>4}     {'kernel':<8}{'us':>10}{'TFLOP/s':>8}{'GB/s':>7}{'cuBLAS us':>10}{'TFLOP/s':>8}{'share':>6}")
    rows = [row for case in TIMED for row in timed(launch, *case)]
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
