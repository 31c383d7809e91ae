// rocRAND's generators beside the algorithms as they were published, and the moments that their numbers should have.
#include <hip/hip_runtime.h>
#include <rocrand/rocrand.h>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                             \
    do {                                                                                        \
        int code = static_cast<int>(call);                                                      \
        if (code != 0) {                                                                        \
            std::printf("%d: %s: %d\n", __LINE__, #call, code);                                 \
            std::exit(1);                                                                       \
        }                                                                                       \
    } while (0)

const uint64_t SEED = 0x123456789abc;

// Salmon and others, "Parallel random numbers: as easy as 1, 2, 3" (2011): Philox4x32 with ten rounds.
static std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, uint64_t seed) {
    uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
    for (int round = 0; round < 10; ++round) {
        uint64_t a = 0xd2511f53ull * counter[0], b = 0xcd9e8d57ull * counter[2];
        counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
                   static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
        key[0] += 0x9e3779b9;
        key[1] += 0xbb67ae85;
    }
    return counter;
}

// L'Ecuyer, "Good parameters and implementations for combined multiple recursive random number generators" (1999): MRG32k3a,
// whose substreams are 2^76 numbers apart (L'Ecuyer and others, 2002).
const uint64_t M1 = 4294967087, M2 = 4294944443;
using Matrix = std::array<std::array<uint64_t, 3>, 3>;
using State = std::array<uint64_t, 3>;
const Matrix A1 = {{{0, 1, 0}, {0, 0, 1}, {M1 - 810728, 1403580, 0}}};
const Matrix A2 = {{{0, 1, 0}, {0, 0, 1}, {M2 - 1370589, 0, 527612}}};

static Matrix product(const Matrix& a, const Matrix& b, uint64_t m) {
    Matrix c{};
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            for (int k = 0; k < 3; ++k) c[i][j] = (c[i][j] + static_cast<unsigned __int128>(a[i][k]) * b[k][j]) % m;
    return c;
}

static State apply(const Matrix& a, const State& s, uint64_t m) {
    State t{};
    for (int i = 0; i < 3; ++i)
        for (int k = 0; k < 3; ++k) t[i] = (t[i] + static_cast<unsigned __int128>(a[i][k]) * s[k]) % m;
    return t;
}

struct Mrg {
    State a, b;
    // The next number, 1 to M1.
    uint64_t next() {
        a = apply(A1, a, M1);
        b = apply(A2, b, M2);
        return a[2] > b[2] ? a[2] - b[2] : a[2] + M1 - b[2];
    }
};

static void moments(const char* what, const std::vector<double>& x, double mean, double variance, double kurtosis) {
    double n = x.size(), sum = 0, square = 0, neighbours = 0;
    for (double v : x) sum += v;
    for (double v : x) square += (v - mean) * (v - mean);
    for (size_t i = 1; i < x.size(); ++i) neighbours += (x[i] - mean) * (x[i - 1] - mean);
    // Each within six standard deviations of what is expected.
    double off_mean = std::fabs(sum / n - mean) / std::sqrt(variance / n);
    double off_variance = std::fabs(square / n - variance) / (variance * std::sqrt((kurtosis - 1) / n));
    double off_neighbours = std::fabs(neighbours / (n - 1)) / (variance / std::sqrt(n - 1));
    if (!(off_mean < 6 && off_variance < 6 && off_neighbours < 6)) {
        std::printf("%s: off by %g, %g and %g standard deviations\n", what, off_mean, off_variance, off_neighbours);
        std::exit(1);
    }
}

template <typename T>
static std::vector<double> fetch(const T* data, size_t n) {
    std::vector<T> host(n);
    CHECK(hipMemcpy(host.data(), data, n * sizeof(T), hipMemcpyDeviceToHost));
    return std::vector<double>(host.begin(), host.end());
}

static void distributions(const char* name, rocrand_generator generator) {
    const size_t n = 40000;
    void* data;
    CHECK(hipMalloc(&data, n * sizeof(double)));
    float* floats = static_cast<float*>(data);
    double* doubles = static_cast<double*>(data);
    CHECK(rocrand_generate_uniform(generator, floats, n));
    moments(name, fetch(floats, n), 0.5, 1.0 / 12, 1.8);
    CHECK(rocrand_generate_uniform_double(generator, doubles, n));
    moments(name, fetch(doubles, n), 0.5, 1.0 / 12, 1.8);
    CHECK(rocrand_generate_normal(generator, floats, n, 3, 2));
    moments(name, fetch(floats, n), 3, 4, 3);
    CHECK(rocrand_generate_normal_double(generator, doubles, n, -1, 0.5));
    moments(name, fetch(doubles, n), -1, 0.25, 3);
    CHECK(rocrand_generate_poisson(generator, static_cast<unsigned*>(data), n, 7.0));
    moments(name, fetch(static_cast<unsigned*>(data), n), 7, 7, 3 + 1.0 / 7);
    CHECK(hipFree(data));
}

int main() {
    const size_t n = 4096;
    unsigned* data;
    CHECK(hipMalloc(&data, n * sizeof(unsigned)));
    std::vector<unsigned> host(n);
    rocrand_generator generator;

    CHECK(rocrand_create_generator(&generator, ROCRAND_RNG_PSEUDO_PHILOX4_32_10));
    CHECK(rocrand_set_seed(generator, SEED));
    CHECK(rocrand_generate(generator, data, n));
    CHECK(hipMemcpy(host.data(), data, n * sizeof(unsigned), hipMemcpyDeviceToHost));
    for (size_t i = 0; i < n; ++i) {
        unsigned expected = philox({static_cast<uint32_t>(i / 4), 0, 0, 0}, SEED)[i % 4];
        if (host[i] != expected) return std::printf("Philox: number %zu is %u, not %u\n", i, host[i], expected), 1;
    }
    distributions("Philox", generator);
    CHECK(rocrand_destroy_generator(generator));

    CHECK(rocrand_create_generator(&generator, ROCRAND_RNG_PSEUDO_MRG32K3A));
    CHECK(rocrand_set_seed(generator, SEED));
    CHECK(rocrand_generate(generator, data, n));
    CHECK(hipMemcpy(host.data(), data, n * sizeof(unsigned), hipMemcpyDeviceToHost));
    // rocRAND's choice: how a seed becomes six numbers, and that each work-item has a substream of its own.
    uint64_t x = (SEED & 0xffffffff) ^ 0x55555555, y = SEED >> 32 ^ 0xaaaaaaaa;
    auto seeded = [](uint64_t part, uint64_t m) { return static_cast<uint64_t>(static_cast<unsigned __int128>(part) * SEED % m); };
    Mrg stream = {{seeded(x, M1), seeded(y, M1), seeded(x, M1)}, {seeded(y, M2), seeded(x, M2), seeded(y, M2)}};
    Matrix far1 = A1, far2 = A2;
    for (int i = 0; i < 76; ++i) {
        far1 = product(far1, far1, M1);
        far2 = product(far2, far2, M2);
    }
    for (size_t i = 0; i < n; ++i) {
        Mrg substream = stream;
        // 1 to M1 becomes 0 to 2^32 - 1.
        unsigned expected = static_cast<unsigned>((substream.next() - 1) * 1.000000048661607);
        if (host[i] != expected) return std::printf("MRG32k3a: number %zu is %u, not %u\n", i, host[i], expected), 1;
        stream = {apply(far1, stream.a, M1), apply(far2, stream.b, M2)};
    }
    distributions("MRG32k3a", generator);
    CHECK(rocrand_destroy_generator(generator));

    std::printf("random passed\n");
    return 0;
}
