// Transposes tiles through fixed and launch-sized LDS, and asks what the kernels need.
#include "check.h"

const int TILE = 16;

__global__ void fixed(const int* in, int* out, int n) {
    __shared__ int tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;
    out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

__global__ void launch_sized(const int* in, int* out, int n) {
    extern __shared__ int tile[];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    tile[threadIdx.y * (TILE + 1) + threadIdx.x] = in[y * n + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;
    out[y * n + x] = tile[threadIdx.x * (TILE + 1) + threadIdx.y];
}

int main() {
    const int n = 64;
    const size_t lds = TILE * (TILE + 1) * sizeof(int);
    std::vector<int> in(n * n), out(n * n);
    for (int i = 0; i < n * n; ++i) in[i] = i * 7;
    int *din, *dout;
    CHECK(hipMalloc(&din, n * n * sizeof(int)));
    CHECK(hipMalloc(&dout, n * n * sizeof(int)));
    CHECK(hipMemcpy(din, in.data(), n * n * sizeof(int), hipMemcpyHostToDevice));
    for (int round = 0; round < 2; ++round) {
        CHECK(hipMemset(dout, 0, n * n * sizeof(int)));
        dim3 grid(n / TILE, n / TILE), block(TILE, TILE);
        if (round == 0) fixed<<<grid, block>>>(din, dout, n);
        else launch_sized<<<grid, block, lds>>>(din, dout, n);
        CHECK(hipGetLastError());
        CHECK(hipMemcpy(out.data(), dout, n * n * sizeof(int), hipMemcpyDeviceToHost));
        for (int y = 0; y < n; ++y)
            for (int x = 0; x < n; ++x) EXPECT(out[y * n + x] == in[x * n + y]);
    }
    hipFuncAttributes attributes;
    CHECK(hipFuncGetAttributes(&attributes, reinterpret_cast<const void*>(fixed)));
    EXPECT(attributes.sharedSizeBytes == lds);
    CHECK(hipFuncGetAttributes(&attributes, reinterpret_cast<const void*>(launch_sized)));
    EXPECT(attributes.sharedSizeBytes == 0);
    int blocks = 0;
    CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, launch_sized, 256, lds));
    EXPECT(blocks > 0);
    // More LDS than there is: the launch is refused, and says so.
    launch_sized<<<1, 1, 100000>>>(din, dout, n);
    EXPECT(hipGetLastError() != hipSuccess);
    EXPECT(hipGetLastError() == hipSuccess);
    return passed("shared_memory");
}
