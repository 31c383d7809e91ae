// An assertion that two work-items break.
#include "check.h"
#include <cassert>

__global__ void positive(const int* values) { assert(values[threadIdx.x] > 0); }

int main() {
    int values[4] = {1, 0, 2, -3}, *device;
    CHECK(hipMalloc(&device, sizeof values));
    CHECK(hipMemcpy(device, values, sizeof values, hipMemcpyHostToDevice));
    positive<<<1, 4>>>(device);
    EXPECT(hipDeviceSynchronize() == hipErrorLaunchFailure);
    return passed("device_assert");
}
