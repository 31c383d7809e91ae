// Work in several streams with events between them, page-locked and managed memory, and a callback.
#include "check.h"

__global__ void scale(int* data, int factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] *= factor;
}

static void called(hipStream_t, hipError_t status, void* data) { *static_cast<hipError_t*>(data) = status; }

int main() {
    const int n = 1000, streams = 4;
    hipStream_t stream[streams];
    hipEvent_t start, stop;
    CHECK(hipEventCreate(&start));
    CHECK(hipEventCreate(&stop));
    int* host;
    CHECK(hipHostMalloc(reinterpret_cast<void**>(&host), streams * n * sizeof(int), hipHostMallocDefault));
    for (int i = 0; i < streams * n; ++i) host[i] = i;
    int* device;
    CHECK(hipMalloc(&device, streams * n * sizeof(int)));
    CHECK(hipEventRecord(start, nullptr));
    for (int s = 0; s < streams; ++s) {
        CHECK(s % 2 ? hipStreamCreateWithFlags(&stream[s], hipStreamNonBlocking) : hipStreamCreate(&stream[s]));
        int* part = device + s * n;
        CHECK(hipMemcpyAsync(part, host + s * n, n * sizeof(int), hipMemcpyHostToDevice, stream[s]));
        scale<<<(n + 127) / 128, 128, 0, stream[s]>>>(part, s + 2, n);
        CHECK(hipMemcpyAsync(host + s * n, part, n * sizeof(int), hipMemcpyDeviceToHost, stream[s]));
    }
    hipError_t status = hipErrorUnknown;
    CHECK(hipStreamAddCallback(stream[0], called, &status, 0));
    for (int s = 0; s < streams; ++s) {
        CHECK(hipEventRecord(stop, stream[s]));
        CHECK(hipStreamWaitEvent(nullptr, stop, 0));
        CHECK(hipStreamSynchronize(stream[s]));
        CHECK(hipStreamQuery(stream[s]));
    }
    EXPECT(status == hipSuccess);
    for (int i = 0; i < streams * n; ++i) EXPECT(host[i] == i * (i / n + 2));
    CHECK(hipEventSynchronize(stop));
    float ms = -1;
    CHECK(hipEventElapsedTime(&ms, start, stop));
    EXPECT(ms >= 0);

    int* managed;
    CHECK(hipMallocManaged(&managed, n * sizeof(int)));
    for (int i = 0; i < n; ++i) managed[i] = i;
    scale<<<(n + 127) / 128, 128>>>(managed, -3, n);
    CHECK(hipDeviceSynchronize());
    for (int i = 0; i < n; ++i) EXPECT(managed[i] == i * -3);
    for (int s = 0; s < streams; ++s) CHECK(hipStreamDestroy(stream[s]));
    CHECK(hipEventDestroy(start));
    CHECK(hipEventDestroy(stop));
    CHECK(hipFree(managed));
    CHECK(hipFree(device));
    CHECK(hipHostFree(host));
    return passed("streams");
}
