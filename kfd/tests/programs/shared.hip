// Two processes on one piece of device memory: the second one, started with the handle as argument, adds to it.
#include <hip/hip_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define CHECK(call)                                                                             \
    do {                                                                                        \
        hipError_t code = (call);                                                               \
        if (code != hipSuccess) {                                                               \
            std::printf("%d: %s: %s\n", __LINE__, #call, hipGetErrorString(code));              \
            std::exit(1);                                                                       \
        }                                                                                       \
    } while (0)

__global__ void add(int* data, int n, int what) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] += what;
}

int main(int count, char** arguments) {
    const int n = 5000;
    int* data;
    hipIpcMemHandle_t handle;
    if (count > 1) {
        for (size_t i = 0; i < sizeof handle; ++i) {
            handle.reserved[i] = static_cast<char>(std::stoi(std::string(arguments[1] + 2 * i, 2), nullptr, 16));
        }
        CHECK(hipIpcOpenMemHandle(reinterpret_cast<void**>(&data), handle, hipIpcMemLazyEnablePeerAccess));
        add<<<(n + 63) / 64, 64>>>(data, n, 100);
        CHECK(hipDeviceSynchronize());
        CHECK(hipIpcCloseMemHandle(data));
        return 0;
    }
    CHECK(hipMalloc(&data, n * sizeof(int)));
    CHECK(hipMemset(data, 0, n * sizeof(int)));
    add<<<(n + 63) / 64, 64>>>(data, n, 1);
    CHECK(hipDeviceSynchronize());
    CHECK(hipIpcGetMemHandle(&handle, data));
    std::string command = arguments[0];
    command += ' ';
    for (char byte : handle.reserved) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
        command += digits;
    }
    if (std::system(command.c_str()) != 0) return 1;
    std::vector<int> host(n);
    CHECK(hipMemcpy(host.data(), data, n * sizeof(int), hipMemcpyDeviceToHost));
    for (int value : host) {
        if (value != 101) return std::printf("%d instead of 101\n", value), 1;
    }
    std::printf("passed\n");
    return 0;
}
