// Reductions, broadcasts and votes within a wave, whatever its size.
#include "check.h"

__global__ void waves(const int* in, int* sums, int* rotated, unsigned long long* votes) {
    int i = threadIdx.x, lane = i % warpSize;
    int value = in[i], sum = value;
    for (int step = warpSize / 2; step > 0; step /= 2) sum += __shfl_xor(sum, step);
    sums[i] = sum;
    rotated[i] = __shfl(value, (lane + 1) % warpSize) + __shfl_up(value, 1) * 1000 + __shfl_down(value, 2) * 1000000;
    unsigned long long ballot = __ballot(value % 3 == 0);
    if (lane == 0) votes[i / warpSize] = ballot;
    if (__any(value < 0) || !__all(value >= 0)) sums[i] = -1;
}

int main() {
    const int n = 256;
    hipDeviceProp_t properties;
    CHECK(hipGetDeviceProperties(&properties, 0));
    const int wave = properties.warpSize;
    std::vector<int> in(n), sums(n), rotated(n);
    std::vector<unsigned long long> votes(n / wave);
    for (int i = 0; i < n; ++i) in[i] = (i * 37) % 101;
    int *din, *dsums, *drotated;
    unsigned long long* dvotes;
    CHECK(hipMalloc(&din, n * sizeof(int)));
    CHECK(hipMalloc(&dsums, n * sizeof(int)));
    CHECK(hipMalloc(&drotated, n * sizeof(int)));
    CHECK(hipMalloc(&dvotes, votes.size() * sizeof votes[0]));
    CHECK(hipMemcpy(din, in.data(), n * sizeof(int), hipMemcpyHostToDevice));
    waves<<<1, n>>>(din, dsums, drotated, dvotes);
    CHECK(hipMemcpy(sums.data(), dsums, n * sizeof(int), hipMemcpyDeviceToHost));
    CHECK(hipMemcpy(rotated.data(), drotated, n * sizeof(int), hipMemcpyDeviceToHost));
    CHECK(hipMemcpy(votes.data(), dvotes, votes.size() * sizeof votes[0], hipMemcpyDeviceToHost));
    for (int first = 0; first < n; first += wave) {
        int sum = 0;
        unsigned long long ballot = 0;
        for (int lane = 0; lane < wave; ++lane) {
            sum += in[first + lane];
            if (in[first + lane] % 3 == 0) ballot |= 1ull << lane;
        }
        EXPECT(votes[first / wave] == ballot);
        for (int lane = 0; lane < wave; ++lane) {
            const int *values = &in[first];
            EXPECT(sums[first + lane] == sum);
            // At a wave's edge the shuffles give a lane its own value.
            int up = values[lane ? lane - 1 : 0], down = values[lane + 2 < wave ? lane + 2 : lane];
            EXPECT(rotated[first + lane] == values[(lane + 1) % wave] + up * 1000 + down * 1000000);
        }
    }
    return passed("shuffles");
}
