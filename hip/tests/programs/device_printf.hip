// Calls the host from a kernel, which an emulated device refuses with an error that says so.
#include "check.h"

__global__ void say(int n) { printf("item %d of %d\n", (int)threadIdx.x, n); }

int main() {
    say<<<1, 3>>>(3);
    EXPECT(hipDeviceSynchronize() == hipErrorNotSupported);
    return passed("device_printf");
}
