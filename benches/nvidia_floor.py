#!/usr/bin/env python3
"""The least that a kernel of so many megabytes takes on an NVIDIA card: one that reads them, 16 bytes at a time, and adds them
up; and one that does nothing. Timed as matrices by one vector are: launches behind each other, over buffers that together are
larger than the cache. Needs CuPy and nvcc.
"""
import cupy as cp
import numpy as np

SOURCE = r"""
extern "C" __global__ void nothing() {}

extern "C" __global__ void spin(unsigned long long cycles) {
    long long start = clock64();
    while ((unsigned long long)(clock64() - start) < cycles) {}
}

template <int N> __device__ void add_up(const uint4* from, unsigned count, unsigned* out) {
    unsigned first = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x, sum = 0;
    for (unsigned i = first; i < count; i += N * all) {
        uint4 loaded[N];
#pragma unroll
        for (int k = 0; k < N; k++) loaded[k] = i + k * all < count ? from[i + k * all] : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int k = 0; k < N; k++) sum += loaded[k].x + loaded[k].y + loaded[k].z + loaded[k].w;
    }
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
    if (threadIdx.x % 32 == 0) out[first / 32] = sum;
}
extern "C" __global__ void add_up_4(const uint4* from, unsigned count, unsigned* out) { add_up<4>(from, count, out); }
extern "C" __global__ void add_up_16(const uint4* from, unsigned count, unsigned* out) { add_up<16>(from, count, out); }
"""
LANES = 512
LAUNCHES = 20
SAMPLES = 25
# Bytes of 4096 rows of 14336 elements.
MATRICES = {"q4_0, q4_K": 4096 * 14336 * 18 // 32, "q6_K": 4096 * 14336 * 210 // 256, "q8_0": 4096 * 14336 * 34 // 32}


def main():
    module = cp.RawModule(code=SOURCE, backend="nvcc", options=("-O3",))
    spin, nothing = module.get_function("spin"), module.get_function("nothing")

    def time(launch):
        """Median microseconds of one launch; the device waits until the host has queued them all."""
        times = []
        for _ in range(SAMPLES + 2):
            start, stop = cp.cuda.Event(), cp.cuda.Event()
            spin((1,), (1,), (np.uint64(1_000_000),))
            start.record()
            for number in range(LAUNCHES):
                launch(number)
            stop.record()
            stop.synchronize()
            times.append(cp.cuda.get_elapsed_time(start, stop) / LAUNCHES * 1e3)
        return sorted(times[2:])[SAMPLES // 2]

    big = [cp.ones(1 << 28, cp.float32) for _ in range(2)]
    copy = 2 * big[0].nbytes / time(lambda _: cp.copyto(big[1], big[0])) / 1e3
    del big
    print(f"{cp.cuda.runtime.getDeviceProperties(0)['name'].decode()}: copy {copy:.0f} GB/s, "
          f"a kernel that does nothing {time(lambda _: nothing((1,), (32,), ())):.1f} us")
    for formats, size in MATRICES.items():
        buffers = [cp.random.randint(0, 1 << 32, size // 4, dtype=cp.uint32) for _ in range(-(-320_000_000 // size))]
        best = None
        for each in (4, 16):
            kernel, count = module.get_function(f"add_up_{each}"), size // 16
            grid = (-(-count // (LANES * each)),)
            out = cp.zeros(grid[0] * LANES // 32, cp.uint32)
            kernel(grid, (LANES,), (buffers[0], np.uint32(count), out))
            assert int(out.sum(dtype=cp.uint64)) % 2**32 == int(buffers[0].sum(dtype=cp.uint64)) % 2**32

            def launch(number):
                kernel(grid, (LANES,), (buffers[number % len(buffers)], np.uint32(count), out))

            took = time(launch)
            best = took if best is None else min(best, took)
        rate = size / best / 1e3
        print(f"{size / 1e6:.0f} MB ({formats}): {best:.1f} us, {rate:.0f} GB/s, {100 * rate / copy:.0f} % of the copy")
        del buffers


if __name__ == "__main__":
    main()
