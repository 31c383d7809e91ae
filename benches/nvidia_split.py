#!/usr/bin/env python3
"""The sum of one long row as the typed function launches it, on an NVIDIA card: a workgroup for each 2^13 elements, then the
parts' sums. Needs CuPy, and reduce.ptx and geometry.json of `cargo xtask ptx DIR`: `nvidia_split.py DIR`.
"""
import json
import sys

import cupy as cp
import numpy as np

PART = 1 << 13  # of host/reduce.rs
ROUNDS = 20


def main(folder):
    kernel = cp.RawModule(path=f"{folder}/reduce.ptx").get_function("fast_sum_f32")
    with open(f"{folder}/geometry.json") as file:
        geometry = json.load(file)["fast_sum_f32"]
    block = tuple(geometry["block"])
    null = np.uint64(0)

    def fast_sum(numel, length, src, dst):
        kernel((-(-numel // length), 1, 1), block, (np.uint64(numel), np.uint64(length), null, null, src, dst))

    n = 1 << 26
    # Several rows, so that none is left in the cache from the last round.
    rows = [cp.random.uniform(-1, 1, n, dtype=cp.float32) for _ in range(4)]
    partial, total = cp.empty(n // PART, cp.float32), cp.empty(1, cp.float32)
    copy = cp.empty(n, cp.float32)

    def split(row):
        fast_sum(n, PART, row, partial)
        fast_sum(n // PART, n // PART, partial, total)

    def time(run):
        start, stop = cp.cuda.Event(), cp.cuda.Event()
        for row in rows:
            run(row)
        start.record()
        for round in range(ROUNDS):
            run(rows[round % len(rows)])
        stop.record()
        stop.synchronize()
        return cp.cuda.get_elapsed_time(start, stop) / ROUNDS * 1e3

    split(rows[0])
    want = float(rows[0].sum(dtype=cp.float64))
    assert abs(float(total[0]) - want) < 0.05, (float(total[0]), want)
    ours, copied = time(split), time(lambda row: cp.copyto(copy, row))
    rate, ceiling = 4 * n / ours / 1e3, 8 * n / copied / 1e3
    print(f"{cp.cuda.runtime.getDeviceProperties(0)['name'].decode()}: one row of 2^26 f32 in {ours:.1f} us, "
          f"{rate:.0f} GB/s, {100 * rate / ceiling:.0f} % of the copy's {ceiling:.0f} GB/s")


if __name__ == "__main__":
    main(sys.argv[1])
