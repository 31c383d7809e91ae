// Rows of 4-bit weights times a vector, a wave for each row: blocks of 256 weights with a scale and a zero point of f32 in front of
// 128 bytes (packed), or apart (split); of the first there is a version that only reads.
#include "common.h"

static __attribute__((always_inline)) float sum_wave(float value) {
#pragma unroll
    for (int by = 16; by > 0; by /= 2)
        value += __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute((int)((LX ^ by) * 4), __builtin_bit_cast(int, value)));
    return value;
}

template <bool SPLIT, bool READ>
static __attribute__((always_inline)) void row(const char *weights, const float *scales, const float *x, float *y, u32 k) {
    u32 blocks = k / 256, lane = LX;
    float sum = 0;
    const char *base = weights + (u64)GX * blocks * (SPLIT ? 128 : 136);
    for (u32 block = 0; block < blocks; block++) {
        const char *at = base + block * (SPLIT ? 128 : 136);
        const float *head = SPLIT ? scales + ((u64)GX * blocks + block) * 2 : (const float *)at;
        float scale = head[0], zero = head[1];
        u32 packed = *(const u32 *)(at + (SPLIT ? 0 : 8) + lane * 4);
        if (READ) {
            sum += scale + zero + __builtin_bit_cast(float, packed);
            continue;
        }
        const float *xs = x + block * 256 + lane * 8;
#pragma unroll
        for (u32 e = 0; e < 8; e++) sum += (scale * (float)(packed >> (e * 4) & 15) + zero) * xs[e];
    }
    sum = sum_wave(sum);
    if (lane == 0) y[GX] = sum;
}
KERNEL SIZE(32) void packed(char *w, float *s, float *x, float *y, u32 k) { row<false, false>(w, s, x, y, k); }
KERNEL SIZE(32) void split(char *w, float *s, float *x, float *y, u32 k) { row<true, false>(w, s, x, y, k); }
KERNEL SIZE(32) void packed_read(char *w, float *s, float *x, float *y, u32 k) { row<false, true>(w, s, x, y, k); }
KERNEL SIZE(32) void split_read(char *w, float *s, float *x, float *y, u32 k) { row<true, true>(w, s, x, y, k); }
