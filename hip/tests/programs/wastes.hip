// A kernel for each waste that a profile names.
#include <hip/hip_runtime.h>

extern "C" __global__ void scattered(const float* in, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i * 32] = in[i * 32] + 1.0f;
}

extern "C" __global__ void narrow(const unsigned char* in, unsigned char* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}

extern "C" __global__ void conflicts(float* out) {
    __shared__ float tile[32 * 32];
    int i = threadIdx.x;
    for (int k = 0; k < 32; ++k) tile[(i % 32) * 32 + (k + i / 32) % 32] = k;
    __syncthreads();
    out[blockIdx.x * blockDim.x + i] = tile[i];
}

extern "C" __global__ void divergent(float* out, int rounds) {
    float x = threadIdx.x;
    if (threadIdx.x % 32 == 5) {
        for (int k = 0; k < rounds; ++k) x = x * 1.5f + k;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

extern "C" __global__ void divides(unsigned* out, unsigned by) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = i / by;
}

extern "C" __global__ void counts(unsigned* out) {
    atomicAdd(&out[threadIdx.x % 7], 1u);
}

extern "C" __global__ void spills(const int* at, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float parts[160];
    for (int k = 0; k < 160; ++k) parts[at[k]] = i * k;
    out[i] = parts[at[i % 160]];
}

extern "C" __global__ void doubles(double* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double x = i;
    for (int k = 0; k < 8; ++k) x = x * 1.5 + 0.25;
    out[i] = x;
}
