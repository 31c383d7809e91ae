// What a launch of one wave costs: alone, and among many before the host waits.
#include <hip/hip_runtime.h>
#include <chrono>
#include <cstdio>

__global__ void nothing(int* data) { if (data == nullptr) __builtin_trap(); }

int main() {
    int* data;
    if (hipMalloc(&data, 4) != hipSuccess) return 1;
    auto micros = [](std::chrono::steady_clock::time_point from) {
        return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - from).count();
    };
    auto launch = [&] { nothing<<<1, 64>>>(data); };
    launch();
    if (hipDeviceSynchronize() != hipSuccess) return 1;
    for (int round = 0; round < 3; ++round) {
        const int alone = 500, many = 5000;
        auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < alone; ++i) {
            launch();
            if (hipDeviceSynchronize() != hipSuccess) return 1;
        }
        const double each = micros(start) / alone;
        start = std::chrono::steady_clock::now();
        for (int i = 0; i < many; ++i) launch();
        const double submitted = micros(start) / many;
        if (hipDeviceSynchronize() != hipSuccess) return 1;
        std::printf("alone %.1f us, among %d: %.1f us, of which the call %.1f us\n", each, many, micros(start) / many, submitted);
    }
}
