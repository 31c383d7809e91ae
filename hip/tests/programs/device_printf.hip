// Prints from a kernel, between two lines of the program's own.
#include "check.h"

__global__ void say(int n, unsigned* sum) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const char* is_even = i % 2 == 0 ? "true" : "false";
    int bytes = printf("item %d of %d: %.3f, %s, %s\n", i, n, i / 8.0f, "a string of more than one packet", is_even);
    atomicAdd(sum, (unsigned)bytes);
}

int main() {
    unsigned* sum;
    CHECK(hipMalloc(&sum, sizeof *sum));
    CHECK(hipMemset(sum, 0, sizeof *sum));
    printf("before\n");
    say<<<3, 128>>>(300, sum);
    CHECK(hipDeviceSynchronize());
    unsigned bytes = 0;
    CHECK(hipMemcpy(&bytes, sum, sizeof bytes, hipMemcpyDeviceToHost));
    printf("after\nprintf returned %u in all\n", bytes);
    return passed("device_printf");
}
