// Managed variables, and memory that a static object frees after main has returned.
#include "check.h"

__managed__ int counters[4] = {1, 2, 3, 4};
__device__ int step = 10;

__global__ void advance() { counters[threadIdx.x] += step; }

struct Holder {
    int* memory = nullptr;
    ~Holder() {
        hipError_t code = hipFree(memory);
        if (code != hipSuccess) {
            std::printf("hipFree behind main: %s\n", hipGetErrorString(code));
            std::_Exit(1);
        }
    }
};

static Holder holder;

int main() {
    CHECK(hipMalloc(&holder.memory, 100));
    EXPECT(counters[3] == 4);
    advance<<<1, 4>>>();
    CHECK(hipDeviceSynchronize());
    for (int i = 0; i < 4; ++i) EXPECT(counters[i] == i + 11);
    counters[0] = 100;
    advance<<<1, 4>>>();
    CHECK(hipDeviceSynchronize());
    EXPECT(counters[0] == 110 && counters[1] == 22);
    return passed("globals");
}
