// An inclusive prefix sum in two levels: within workgroups, then over their totals.
#include "check.h"

const int BLOCK = 256;

__global__ void scan_blocks(const unsigned* in, unsigned* out, unsigned* totals, int n) {
    __shared__ unsigned sums[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    sums[threadIdx.x] = i < n ? in[i] : 0;
    __syncthreads();
    for (int step = 1; step < BLOCK; step *= 2) {
        unsigned add = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
        __syncthreads();
        sums[threadIdx.x] += add;
        __syncthreads();
    }
    if (i < n) out[i] = sums[threadIdx.x];
    if (threadIdx.x == BLOCK - 1) totals[blockIdx.x] = sums[BLOCK - 1];
}

__global__ void add_totals(unsigned* out, const unsigned* totals, int n) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n && blockIdx.x > 0) out[i] += totals[blockIdx.x - 1];
}

int main() {
    const int n = 50000, blocks = (n + BLOCK - 1) / BLOCK;
    EXPECT(blocks <= BLOCK);
    std::vector<unsigned> in(n), out(n);
    for (int i = 0; i < n; ++i) in[i] = (i * 2654435761u) >> 20;
    unsigned *din, *dout, *dtotals, *dscratch;
    CHECK(hipMalloc(&din, n * sizeof(unsigned)));
    CHECK(hipMalloc(&dout, n * sizeof(unsigned)));
    CHECK(hipMalloc(&dtotals, blocks * sizeof(unsigned)));
    CHECK(hipMalloc(&dscratch, sizeof(unsigned)));
    CHECK(hipMemcpy(din, in.data(), n * sizeof(unsigned), hipMemcpyHostToDevice));
    scan_blocks<<<blocks, BLOCK>>>(din, dout, dtotals, n);
    scan_blocks<<<1, BLOCK>>>(dtotals, dtotals, dscratch, blocks);
    add_totals<<<blocks, BLOCK>>>(dout, dtotals, n);
    CHECK(hipDeviceSynchronize());
    CHECK(hipMemcpy(out.data(), dout, n * sizeof(unsigned), hipMemcpyDeviceToHost));
    unsigned sum = 0;
    for (int i = 0; i < n; ++i) {
        sum += in[i];
        EXPECT(out[i] == sum);
    }
    return passed("prefix_sum");
}
