// Histograms with atomics in global memory and LDS, and device variables that host and kernels share.
#include "check.h"

const int BINS = 64;

__device__ unsigned histogram[BINS];
__constant__ unsigned weights[4];
__device__ unsigned long long total = 5;

__global__ void count(const unsigned* data, int n) {
    __shared__ unsigned local[BINS];
    if (threadIdx.x < BINS) local[threadIdx.x] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(&local[data[i] % BINS], weights[data[i] % 4]);
        atomicAdd(&total, (unsigned long long)data[i]);
    }
    __syncthreads();
    if (threadIdx.x < BINS) atomicAdd(&histogram[threadIdx.x], local[threadIdx.x]);
}

__global__ void extremes(const unsigned* data, int n, unsigned* out, float* sum) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicMin(&out[0], data[i]);
    atomicMax(&out[1], data[i]);
    atomicXor(&out[2], data[i]);
    atomicCAS(&out[3], 77u, data[i]);
    atomicAdd(sum, 0.5f);
}

int main() {
    const int n = 5000;
    std::vector<unsigned> data(n);
    for (int i = 0; i < n; ++i) data[i] = (i * 2654435761u) >> 12;
    unsigned* ddata;
    CHECK(hipMalloc(&ddata, n * sizeof(unsigned)));
    CHECK(hipMemcpy(ddata, data.data(), n * sizeof(unsigned), hipMemcpyHostToDevice));
    const unsigned w[4] = {1, 10, 100, 1000}, zeros[BINS] = {};
    CHECK(hipMemcpyToSymbol(HIP_SYMBOL(weights), w, sizeof w));
    CHECK(hipMemcpyToSymbol(HIP_SYMBOL(histogram), zeros, sizeof zeros));
    count<<<(n + 255) / 256, 256>>>(ddata, n);
    unsigned result[BINS], expected[BINS] = {};
    unsigned long long sum, expected_sum = 5;
    CHECK(hipMemcpyFromSymbol(result, HIP_SYMBOL(histogram), sizeof result));
    CHECK(hipMemcpyFromSymbol(&sum, HIP_SYMBOL(total), sizeof sum));
    unsigned low = ~0u, high = 0, all = 0;
    for (unsigned value : data) {
        expected[value % BINS] += w[value % 4];
        expected_sum += value;
        low = value < low ? value : low, high = value > high ? value : high, all ^= value;
    }
    for (int i = 0; i < BINS; ++i) EXPECT(result[i] == expected[i]);
    EXPECT(sum == expected_sum);
    size_t size;
    void* address;
    CHECK(hipGetSymbolSize(&size, HIP_SYMBOL(histogram)));
    CHECK(hipGetSymbolAddress(&address, HIP_SYMBOL(histogram)));
    EXPECT(size == sizeof result && address != nullptr);

    unsigned found[4] = {~0u, 0, 0, 77}, *dfound;
    float fsum = 0, *dsum;
    CHECK(hipMalloc(&dfound, sizeof found));
    CHECK(hipMalloc(&dsum, sizeof fsum));
    CHECK(hipMemcpy(dfound, found, sizeof found, hipMemcpyHostToDevice));
    CHECK(hipMemcpy(dsum, &fsum, sizeof fsum, hipMemcpyHostToDevice));
    extremes<<<(n + 255) / 256, 256>>>(ddata, n, dfound, dsum);
    CHECK(hipMemcpy(found, dfound, sizeof found, hipMemcpyDeviceToHost));
    CHECK(hipMemcpy(&fsum, dsum, sizeof fsum, hipMemcpyDeviceToHost));
    EXPECT(found[0] == low && found[1] == high && found[2] == all && found[3] != 77);
    EXPECT(fsum == n * 0.5f);
    return passed("atomics");
}
