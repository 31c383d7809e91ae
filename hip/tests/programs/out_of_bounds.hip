// Writes past the end of an allocation: not a program that should pass.
#include "check.h"

__global__ void shift(int* data, int n) {
    int i = threadIdx.x;
    data[i + (i == n - 1)] = i;  // the last work-item
}

int main() {
    int* data;
    CHECK(hipMalloc(&data, 64 * sizeof(int)));
    shift<<<1, 64>>>(data, 64);
    CHECK(hipGetLastError());
    CHECK(hipDeviceSynchronize());
    return passed("out_of_bounds");
}
