// Many small kernels in several streams, with barriers between the streams: each says which was before it.
// Arguments: streams, kernels of each stream.
#include <hip/hip_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                             \
    do {                                                                                        \
        hipError_t code = (call);                                                               \
        if (code != hipSuccess) {                                                               \
            std::printf("%d: %s: %s\n", __LINE__, #call, hipGetErrorString(code));              \
            std::exit(1);                                                                       \
        }                                                                                       \
    } while (0)

// Step `n` of a stream: notes how many were before it, and whether the other stream has got as far as a barrier said.
__global__ void step(unsigned* log, unsigned* done, unsigned n, const unsigned* other, unsigned least, unsigned* early) {
    log[n] = *done;
    *done = n + 1;
    if (__hip_atomic_load(other, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) < least) atomicAdd(early, 1);
}

int main(int, char** arguments) {
    const unsigned streams = std::atoi(arguments[1]), steps = std::atoi(arguments[2]), between = 50;
    std::vector<hipStream_t> stream(streams);
    std::vector<hipEvent_t> event(streams);
    unsigned *log, *done, *early;
    CHECK(hipMalloc(&log, streams * steps * sizeof *log));
    CHECK(hipMalloc(&done, streams * 64 * sizeof *done));
    CHECK(hipMalloc(&early, sizeof *early));
    CHECK(hipMemset(log, 0xff, streams * steps * sizeof *log));
    CHECK(hipMemset(done, 0, streams * 64 * sizeof *done));
    CHECK(hipMemset(early, 0, sizeof *early));
    for (unsigned s = 0; s < streams; ++s) {
        CHECK(hipStreamCreateWithFlags(&stream[s], hipStreamNonBlocking));
        CHECK(hipEventCreateWithFlags(&event[s], hipEventDisableTiming));
    }
    CHECK(hipDeviceSynchronize());
    for (unsigned n = 0; n < steps; ++n) {
        const bool barrier = n % between == 0 && n != 0;
        for (unsigned s = 0; s < streams && barrier; ++s) CHECK(hipEventRecord(event[s], stream[s]));
        for (unsigned s = 0; s < streams; ++s) {
            const unsigned other = (s + 1) % streams;
            if (barrier) CHECK(hipStreamWaitEvent(stream[s], event[other], 0));
            step<<<1, 1, 0, stream[s]>>>(log + s * steps, done + s * 64, n, done + other * 64, n - n % between, early);
        }
    }
    CHECK(hipGetLastError());
    CHECK(hipDeviceSynchronize());
    std::vector<unsigned> order(streams * steps);
    unsigned too_early;
    CHECK(hipMemcpy(order.data(), log, order.size() * sizeof *log, hipMemcpyDeviceToHost));
    CHECK(hipMemcpy(&too_early, early, sizeof too_early, hipMemcpyDeviceToHost));
    unsigned wrong = 0;
    for (unsigned s = 0; s < streams; ++s)
        for (unsigned n = 0; n < steps; ++n) wrong += order[s * steps + n] != n;
    std::printf("%u of %u kernels out of order, %u before a barrier\n", wrong, streams * steps, too_early);
    return wrong != 0 || too_early != 0;
}
