// What the programs share: a check of codes, and the last line that the test looks for.
#pragma once
#include <hip/hip_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                      \
    do {                                                                                                 \
        hipError_t code = (call);                                                                        \
        if (code != hipSuccess) {                                                                        \
            std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hipGetErrorString(code));          \
            std::exit(1);                                                                                \
        }                                                                                                \
    } while (0)

#define EXPECT(condition)                                                         \
    do {                                                                          \
        if (!(condition)) {                                                       \
            std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);   \
            std::exit(1);                                                         \
        }                                                                         \
    } while (0)

inline int passed(const char* what) {
    hipDeviceProp_t properties;
    CHECK(hipGetDeviceProperties(&properties, 0));
    std::printf("%s passed on %s\n", what, properties.gcnArchName);
    return 0;
}
