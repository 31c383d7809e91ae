// C = A B in f16 with WMMA, after the first steps of a series of kernels on RDNA 3: a wave for each 16 by 16 of C.
#include "common.h"
typedef half v16 __attribute__((ext_vector_type(16)));

// A column-major, B row-major, C row-major; four by four waves a workgroup.
KERNEL SIZE(512) void naive(half *a, half *b, half *c, u32 m, u32 n, u32 k) {
    u32 lane = LX % 16;
    u32 row = (GY * 4 + LY) * 16, column = (GX * 4 + LX / 32) * 16;
    v16 out = {};
    for (u32 i = 0; i < k; i += 16) {
        v16 x, y;
#pragma unroll
        for (u32 e = 0; e < 16; e++) x[e] = a[(i + e) * m + row + lane];
#pragma unroll
        for (u32 e = 0; e < 16; e++) y[e] = b[(i + e) * n + column + lane];
        out = __builtin_amdgcn_wmma_f16_16x16x16_f16_w32(x, y, out, false);
    }
#pragma unroll
    for (u32 e = 0; e < 8; e++) c[(row + e * 2 + LX % 32 / 16) * n + column + lane] = out[e * 2];
}
