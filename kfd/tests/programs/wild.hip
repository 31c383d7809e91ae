// Writes far behind an allocation, where no card has memory.
#include <hip/hip_runtime.h>
#include <cstdio>

__global__ void wild(int* data, long far) { data[far] = 1; }

int main() {
    int* data;
    if (hipMalloc(&data, 4096) != hipSuccess) return 1;
    wild<<<1, 1>>>(data, 1L << 28);
    std::printf("%s\n", hipGetErrorString(hipDeviceSynchronize()));
    return 0;
}
