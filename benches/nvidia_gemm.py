#!/usr/bin/env python3
"""Our matrix products beside cuBLAS's, on one NVIDIA GPU.

    cargo xtask ptx PTX_DIR
    python3 benches/nvidia_gemm.py PTX_DIR [--only TEXT] [--json FILE]

Needs CuPy, PyTorch and NumPy, and no network. Each case is checked against a product in float64, within the bound that its
additions allow, and timed by device events, both sides taking turns; the last column is the share of cuBLAS's rate.
cuBLAS is called by PyTorch, which lets it use tensor cores for f16; CuPy's way to it does not. It computes f32 without TF32,
and f16 with f32 sums, as ours. Exit code 1 if a result is wrong.
"""
import argparse
import json
import os
import sys

import cupy as cp
import numpy as np
import torch

# Rows of a workgroup and bytes of shared memory of the kernels for one column, where the rows are contiguous.
ACROSS = {"f16": (128, 16 * 144 * 4), "f32": (64, 16 * 80 * 4), "f64": (32, 16 * 48 * 8)}
TILES = {"128x128": (128, 128, 256), "64x64": (64, 64, 128), "64x16": (64, 16, 64)}

# name, dtype, m, n, k, batch, transposed a, transposed b (column-major, as cuBLAS has them)
CASES = [
    ("square", "f32", 4096, 4096, 4096, 1, False, False),
    ("square", "f16", 4096, 4096, 4096, 1, False, False),
    ("square TN", "f32", 4096, 4096, 4096, 1, True, False),
    ("square TN", "f16", 4096, 4096, 4096, 1, True, False),
    ("square NT", "f16", 4096, 4096, 4096, 1, False, True),
    ("square TN", "f64", 2048, 2048, 2048, 1, True, False),
    ("odd sizes", "f32", 1023, 1021, 1019, 1, False, False),
    ("odd sizes", "f16", 1023, 1021, 1019, 1, True, False),
    ("attention", "f32", 128, 512, 64, 96, True, False),
    ("attention", "f16", 128, 512, 64, 96, True, False),
    ("16 tokens", "f32", 1536, 16, 384, 1, True, False),
    ("16 tokens", "f16", 4096, 16, 4096, 1, True, False),
    ("one token", "f32", 4096, 1, 4096, 1, True, False),
    ("one token", "f16", 14336, 1, 4096, 1, True, False),
    ("one token", "f16", 4096, 1, 14336, 1, True, False),
    ("one token N", "f32", 4096, 1, 4096, 1, False, False),
]

DTYPES = {"f32": (np.float32, 2.0**-24, 2.0**-23), "f16": (np.float16, 2.0**-24, 2.0**-10),
          "f64": (np.float64, 2.0**-53, 2.0**-52)}


def kernels_for(module, dtype):
    """The kernels of a type, by name."""
    names = [f"gemm_{dtype}_{tile}" for tile in TILES] + [f"gemv_{dtype}_{way}" for way in ("along_k", "across")]
    if dtype == "f64":
        names.remove("gemm_f64_128x128")
    return [(name, module.get_function(name)) for name in names]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ptx", help="folder of gemm.ptx")
    parser.add_argument("--only", default="", help="cases whose line has this text")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", help="where the numbers go")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    module = cp.RawModule(path=os.path.join(options.ptx, "gemm.ptx"))
    print(cp.cuda.runtime.getDeviceProperties(0)["name"].decode())
    print(f"{'case':<14}{'type':<5}{'m':>6}{'n':>6}{'k':>6}{'batch':>6}  {'kernel':<20}"
          f"{'ours us':>10}{'TFLOP/s':>9}{'cuBLAS us':>10}{'TFLOP/s':>9}{'share':>7}  error/bound")
    rows, wrong = [], False
    for case in CASES:
        if options.only in f"{case[0]} {case[1]}":
            try:
                for row in run(module, options.seed, *case):
                    rows.append(row)
                    wrong |= not row["right"]
            except Exception as error:
                wrong = True
                print(f"{case}: {type(error).__name__}: {error}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)
    sys.exit(1 if wrong else 0)


def run(module, seed, name, dtype, m, n, k, batch, trans_a, trans_b):
    real, unit, own = DTYPES[dtype]
    random = cp.random.RandomState(seed)
    # Column-major matrices are row-major ones transposed: a[z] has shape (columns, rows) in memory.
    make = lambda shape: (random.random_sample(shape, dtype=np.float32) - 0.5).astype(real)
    a = make((batch, m, k) if trans_a else (batch, k, m))
    b = make((batch, k, n) if trans_b else (batch, n, k))
    op_a = a if trans_a else a.transpose(0, 2, 1)  # (batch, m, k)
    op_b = b if trans_b else b.transpose(0, 2, 1)  # (batch, k, n)
    exact = cp.matmul(op_a.astype(np.float64), op_b.astype(np.float64))
    magnitude = cp.matmul(cp.abs(op_a).astype(np.float64), cp.abs(op_b).astype(np.float64))
    bound = 1.01 * (k + 4) * unit * magnitude + own * cp.abs(exact) + 1e-30
    # One product is not a batch of one, for which cuBLAS has other kernels.
    alone = (lambda x: x[0]) if batch == 1 else (lambda x: x)
    their_a, their_b = (torch.from_dlpack(alone(x)) for x in (op_a, op_b))
    theirs = torch.empty_like(torch.from_dlpack(alone(cp.empty((batch, m, n), real))))
    cublas = lambda: torch.matmul(their_a, their_b, out=theirs)
    a_i, a_k = (k, 1) if trans_a else (1, m)
    b_j, b_k = (1, n) if trans_b else (k, 1)
    factor = np.float64 if dtype == "f64" else np.float32
    c = cp.empty((batch, n, m), real)
    size = np.uint64
    args = (size(m), size(n), size(k), size(batch), factor(1), a, size(a_i), size(a_k), size(m * k),
            b, size(b_j), size(b_k), size(n * k), factor(0), c, size(1), size(m), size(m * n))
    for kernel, function in kernels_for(module, dtype):
        launch = geometry(kernel, m, n, batch)
        if launch is None:
            continue
        grid, lanes, shared = launch
        c.fill(np.nan)
        ours = lambda: function(grid, (lanes, 1, 1), args, shared_mem=shared)
        ours()
        error = float(cp.max(cp.abs(c.transpose(0, 2, 1).astype(np.float64) - exact) / bound))
        right = error <= 1.0
        our_time, their_time = clock(ours, cublas)
        flop = 2.0 * m * n * k * batch
        share = their_time / our_time
        print(f"{name:<14}{dtype:<5}{m:>6}{n:>6}{k:>6}{batch:>6}  {kernel:<20}{our_time:>10.1f}"
              f"{flop / our_time / 1e6:>9.2f}{their_time:>10.1f}{flop / their_time / 1e6:>9.2f}{share:>7.0%}"
              f"  {error:.3f}{'' if right else ' WRONG'}", flush=True)
        yield {"case": name, "type": dtype, "m": m, "n": n, "k": k, "batch": batch, "kernel": kernel,
               "ours_us": our_time, "cublas_us": their_time, "share": share, "error": error, "right": right}


def geometry(kernel, m, n, batch):
    """Grid, lanes and bytes of shared memory, as the kernel's attribute says."""
    ceil = lambda x, y: -(-x // y)
    if kernel.startswith("gemv"):
        if n > 4:
            return None
        dtype = kernel.split("_")[1]
        rows, shared = (16, 0) if kernel.endswith("along_k") else ACROSS[dtype]
        return ((ceil(m, rows), n, batch), 256, shared)
    rows, columns, lanes = TILES[kernel.rsplit("_", 1)[1]]
    if n <= 16 and columns > 64 or m * n > 1 << 22 and columns < 64:
        return None
    return ((ceil(m, rows), ceil(n, columns), batch), lanes, 2 * 64 * (rows + columns))


def clock(*functions):
    """Microseconds of each: medians of several rounds, the functions taking turns."""
    start, stop = cp.cuda.Event(), cp.cuda.Event()
    times = [[] for _ in functions]
    for round in range(9):
        for function, of in zip(functions, times):
            function()
            count = 1 if round == 0 else max(1, min(50, int(2000 / of[0])))
            start.record()
            for _ in range(count):
                function()
            stop.record()
            stop.synchronize()
            of.append(cp.cuda.get_elapsed_time(start, stop) * 1000 / count)
    return [float(np.median(of[1:])) for of in times]


if __name__ == "__main__":
    main()
