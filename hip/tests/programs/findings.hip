// Does several things wrong that do no harm in ascending order, and one at the end that ends it: for `candle-amdgpu run-hip`.
#include "check.h"

__global__ void sum(const int* in, int* out) {
    __shared__ int part[128];
    int i = threadIdx.x;
    part[i] = in[i];
    if (i == 127) {
        int all = 0;
        for (int k = 0; k < 128; ++k) all += part[k];
        *out = all;
    }
}

__global__ void last(int* out) {
    out[0] = blockIdx.x;  // every workgroup
}

__global__ void unwritten(const int* in, int* out) {
    if (in[threadIdx.x] == 7) out[0] = 1;
}

__global__ void shift(int* data, int n) {
    int i = threadIdx.x;
    data[i + (i == n - 1)] = i;  // the last work-item
}

int main(int count, char** arguments) {
    std::vector<int> in(128, 3);
    int *din, *dout, *raw, out = 0;
    CHECK(hipMalloc(&din, 128 * sizeof(int)));
    CHECK(hipMalloc(&dout, sizeof(int)));
    CHECK(hipMalloc(&raw, 128 * sizeof(int)));
    CHECK(hipMemcpy(din, in.data(), 128 * sizeof(int), hipMemcpyHostToDevice));
    for (int again = 0; again < 3; ++again) sum<<<1, 128>>>(din, dout);
    CHECK(hipMemcpy(&out, dout, sizeof(int), hipMemcpyDeviceToHost));
    EXPECT(out == 384);
    last<<<4, 1>>>(dout);
    unwritten<<<1, 128>>>(raw, dout);
    CHECK(hipDeviceSynchronize());
    if (count > 1) {
        std::printf("ends with %s\n", arguments[1]);
        std::fflush(stdout);
        if (arguments[1][0] == 'a') std::abort();
        shift<<<1, 128>>>(din, 128);
        CHECK(hipDeviceSynchronize());
    }
    return passed("findings");
}
