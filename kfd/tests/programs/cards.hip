// Several cards: kernels on each, copies between them, and a kernel of one on the memory of another.
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

__global__ void add(int* data, int n, int what) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] += what;
}

int main() {
    const int n = 3000;
    int cards;
    CHECK(hipGetDeviceCount(&cards));
    std::vector<int*> data(cards);
    for (int card = 0; card < cards; ++card) {
        CHECK(hipSetDevice(card));
        CHECK(hipMalloc(&data[card], n * sizeof(int)));
        CHECK(hipMemset(data[card], 0, n * sizeof(int)));
        add<<<(n + 127) / 128, 128>>>(data[card], n, card + 1);
        CHECK(hipDeviceSynchronize());
    }
    // Each takes the sum of those before it.
    for (int card = 1; card < cards; ++card) {
        int can = 0;
        CHECK(hipDeviceCanAccessPeer(&can, card, card - 1));
        CHECK(hipSetDevice(card));
        int* before;
        CHECK(hipMalloc(&before, n * sizeof(int)));
        CHECK(hipMemcpyPeer(before, card, data[card - 1], card - 1, n * sizeof(int)));
        std::vector<int> host(n);
        CHECK(hipMemcpy(host.data(), before, n * sizeof(int), hipMemcpyDeviceToHost));
        for (int value : host) {
            if (value != card) return std::printf("%d of card %d instead of %d\n", value, card - 1, card), 1;
        }
        if (can) {
            CHECK(hipDeviceEnablePeerAccess(card - 1, 0));
            add<<<(n + 127) / 128, 128>>>(data[card - 1], n, 1000);
            CHECK(hipDeviceSynchronize());
            CHECK(hipMemcpy(host.data(), data[card - 1], n * sizeof(int), hipMemcpyDeviceToHost));
            for (int value : host) {
                if (value != card + 1000) return std::printf("%d instead of %d\n", value, card + 1000), 1;
            }
        }
        std::printf("card %d %s card %d\n", card, can ? "reaches" : "does not reach", card - 1);
    }
    std::printf("%d cards passed\n", cards);
    return 0;
}
