// Memory of the host that kernels and copies reach: registered, managed, and copied as a whole.
#include <hip/hip_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define EXPECT(condition)                                            \
    do {                                                             \
        if (!(condition)) {                                          \
            std::printf("%d: not so: %s\n", __LINE__, #condition);   \
            std::exit(1);                                            \
        }                                                            \
    } while (0)

__global__ void add(int* data, int n, int* sum) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        data[i] += i;
        atomicAdd(sum, 1);
    }
}

int main() {
    const int n = 100000;
    std::vector<int> host(n + 3, 7);
    int *device, sums[2] = {}, *sum;
    // Not at the start of a page.
    EXPECT(hipHostRegister(host.data() + 3, n * sizeof(int), hipHostRegisterDefault) == hipSuccess);
    EXPECT(hipHostGetDevicePointer(reinterpret_cast<void**>(&device), host.data() + 3, 0) == hipSuccess);
    EXPECT(hipHostRegister(sums, sizeof sums, hipHostRegisterDefault) == hipSuccess);
    EXPECT(hipHostGetDevicePointer(reinterpret_cast<void**>(&sum), sums, 0) == hipSuccess);
    add<<<(n + 255) / 256, 256>>>(device, n, sum + 1);
    EXPECT(hipDeviceSynchronize() == hipSuccess);
    for (int i = 0; i < n; ++i) EXPECT(host[i + 3] == 7 + i);
    EXPECT(sums[0] == 0 && sums[1] == n && host[2] == 7);
    EXPECT(hipHostUnregister(host.data() + 3) == hipSuccess);
    EXPECT(hipHostUnregister(sums) == hipSuccess);

    // Large enough to be pinned for the copy.
    const size_t large = 40 << 20;
    std::vector<char> from(large), back(large);
    for (size_t i = 0; i < large; ++i) from[i] = static_cast<char>(i * 7 + i / 4096);
    char* bytes;
    EXPECT(hipMalloc(&bytes, large) == hipSuccess);
    EXPECT(hipMemcpy(bytes, from.data(), large, hipMemcpyHostToDevice) == hipSuccess);
    EXPECT(hipMemcpy(back.data(), bytes, large, hipMemcpyDeviceToHost) == hipSuccess);
    EXPECT(from == back);
    std::printf("passed\n");
    return 0;
}
