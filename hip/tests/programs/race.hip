// Sums in LDS and lacks a barrier, which makes no difference in ascending order on one core: not a program that should pass
// in check mode. The barrier after the first loop is there if SAFE is defined.
#include "check.h"

__global__ void sum(const int* in, int* out) {
    __shared__ int part[128];
    int i = threadIdx.x;
    part[i] = in[i];
#ifdef SAFE
    __syncthreads();
#endif
    if (i == 127) {
        int all = 0;
        for (int k = 0; k < 128; ++k) all += part[k];
        *out = all;
    }
}

int main() {
    std::vector<int> in(128, 3);
    int *din, *dout, out = 0;
    CHECK(hipMalloc(&din, 128 * sizeof(int)));
    CHECK(hipMalloc(&dout, sizeof(int)));
    CHECK(hipMemcpy(din, in.data(), 128 * sizeof(int), hipMemcpyHostToDevice));
    sum<<<1, 128>>>(din, dout);
    CHECK(hipGetLastError());
    CHECK(hipMemcpy(&out, dout, sizeof(int), hipMemcpyDeviceToHost));
    EXPECT(out == 384);
    return passed("race");
}
