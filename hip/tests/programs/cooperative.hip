// Workgroups that wait for each other through the device library's grid barrier.
#include "check.h"
#include <hip/hip_cooperative_groups.h>

namespace cg = cooperative_groups;

// Each step takes the sum of both neighbours' values, in a ring: a step needs all workgroups of the one before.
__global__ void steps(int* from, int* to, int count) {
    cg::grid_group grid = cg::this_grid();
    int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int step = 0; step < count; ++step) {
        to[i] = from[(i + 1) % n] + from[(i + n - 1) % n];
        grid.sync();
        int* other = from;
        from = to;
        to = other;
    }
}

int main() {
    const int block = 64, grid = 12, n = block * grid, count = 5;
    int can = 0;
    CHECK(hipDeviceGetAttribute(&can, hipDeviceAttributeCooperativeLaunch, 0));
    EXPECT(can == 1);
    std::vector<int> values(n), next(n), result(n);
    for (int i = 0; i < n; ++i) values[i] = i * i % 17;
    int *from, *to, steps_wanted = count;
    CHECK(hipMalloc(&from, n * sizeof(int)));
    CHECK(hipMalloc(&to, n * sizeof(int)));
    CHECK(hipMemcpy(from, values.data(), n * sizeof(int), hipMemcpyHostToDevice));
    CHECK(hipMemset(to, 0, n * sizeof(int)));
    void* arguments[] = {&from, &to, &steps_wanted};
    CHECK(hipLaunchCooperativeKernel(reinterpret_cast<void*>(steps), dim3(grid), dim3(block), arguments, 0, nullptr));
    CHECK(hipDeviceSynchronize());
    for (int step = 0; step < count; ++step) {
        for (int i = 0; i < n; ++i) next[i] = values[(i + 1) % n] + values[(i + n - 1) % n];
        values = next;
    }
    CHECK(hipMemcpy(result.data(), count % 2 ? to : from, n * sizeof(int), hipMemcpyDeviceToHost));
    EXPECT(result == values);
    // More workgroups than the device holds at once.
    hipError_t code = hipLaunchCooperativeKernel(reinterpret_cast<void*>(steps), dim3(1 << 20), dim3(block), arguments, 0, nullptr);
    EXPECT(code == hipErrorCooperativeLaunchTooLarge);
    CHECK(hipFree(from));
    CHECK(hipFree(to));
    return passed("cooperative");
}
