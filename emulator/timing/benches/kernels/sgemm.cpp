// C = alpha A B + beta C in f32, row-major, after the descriptions of seb-v's kernels on RDNA 3.
#include "common.h"

typedef float v4 __attribute__((ext_vector_type(4)));
typedef __attribute__((address_space(3))) float lds_float;
typedef __attribute__((address_space(3))) v4 lds_v4;

// An element by its number of 32 bits, which keeps addresses in scalar registers.
static __attribute__((always_inline)) float *at(float *base, u32 i) { return (float *)((char *)base + i * 4); }

// One output for each work-item, straight from memory.
KERNEL SIZE(256) void k1(float *a, float *b, float *c, u32 m, u32 n, u32 k, float alpha, float beta) {
    u32 row = GY * 16 + LY, column = GX * 16 + LX;
    float sum = 0;
    for (u32 i = 0; i < k; i++) sum += a[row * k + i] * b[i * n + column];
    c[row * n + column] = alpha * sum + beta * c[row * n + column];
}

// One output for each work-item, tiles of 32 by 32 in LDS.
KERNEL SIZE(1024) void k2(float *a, float *b, float *c, u32 m, u32 n, u32 k, float alpha, float beta) {
    LDS float tile_a[32][32];
    LDS float tile_b[32][32];
    u32 row = GY * 32 + LY, column = GX * 32 + LX;
    float sum = 0;
    for (u32 i = 0; i < k; i += 32) {
        tile_a[LY][LX] = a[row * k + i + LX];
        tile_b[LY][LX] = b[(i + LY) * n + column];
        BARRIER();
#pragma unroll
        for (u32 j = 0; j < 32; j++) sum += tile_a[LY][j] * tile_b[j][LX];
        BARRIER();
    }
    c[row * n + column] = alpha * sum + beta * c[row * n + column];
}

// 128 by 128 outputs a workgroup, 8 by 8 a work-item as 2 by 2 blocks of 4 by 4 in a wave's 64 by 32; double-buffered in
// registers.
template <u32 GROUP, u32 PER_ROW, u32 PER_COLUMN, u32 PAD>
static __attribute__((always_inline)) void tiled(float *a, float *b, float *c, u32 n, u32 k, float alpha, float beta,
                                                 __attribute__((address_space(3))) float *as,
                                                 __attribute__((address_space(3))) float *bs) {
    const u32 BM = 128, BN = 128, BK = 8, LOADS = BM * BK / GROUP;
    const u32 BROWS = PER_ROW / 4, BCOLS = PER_COLUMN / 4;
    u32 t = LX;
    u32 wave = t / 32, lane = t % 32;
    // A wave has WM by WN outputs; lanes are 8 by 4.
    const u32 WAVES_N = 2, WM = PER_ROW * 8, WN = PER_COLUMN * 4;
    u32 wave_row = wave / WAVES_N * WM, wave_column = wave % WAVES_N * WN;
    u32 lane_row = lane / 4, lane_column = lane % 4;
    float out[PER_ROW][PER_COLUMN] = {};
    float next_a[LOADS], next_b[LOADS];
    u32 group_row = GY * BM, group_column = GX * BN;
    auto load = [&](u32 i) {
#pragma unroll
        for (u32 l = 0; l < LOADS; l++) {
            u32 e = l * GROUP + t;
            next_a[l] = *at(a, (group_row + e / BK) * k + i + e % BK);
            next_b[l] = *at(b, (i + e / BN) * n + group_column + e % BN);
        }
    };
    auto put = [&]() {
#pragma unroll
        for (u32 l = 0; l < LOADS; l++) {
            u32 e = l * GROUP + t;
            as[e % BK * (BM + PAD) + e / BK] = next_a[l];
            bs[e / BN * BN + e % BN] = next_b[l];
        }
    };
    load(0);
    put();
    BARRIER();
    for (u32 i = 0; i < k; i += BK) {
        if (i + BK < k) load(i + BK);
#pragma unroll
        for (u32 j = 0; j < BK; j++) {
            // Keeps the loads of one step of K from moving up to those of another.
            __builtin_amdgcn_sched_barrier(0);
            float x[PER_ROW], y[PER_COLUMN];
#pragma unroll
            for (u32 r = 0; r < BROWS; r++)
                *(v4 *)&x[r * 4] = *(lds_v4 *)&as[j * (BM + PAD) + wave_row + r * 32 + lane_row * 4];
#pragma unroll
            for (u32 r = 0; r < BCOLS; r++)
                *(v4 *)&y[r * 4] = *(lds_v4 *)&bs[j * BN + wave_column + r * 16 + lane_column * 4];
#pragma unroll
            for (u32 r = 0; r < PER_ROW; r++)
#pragma unroll
                for (u32 q = 0; q < PER_COLUMN; q++) out[r][q] += x[r] * y[q];
        }
        BARRIER();
        if (i + BK < k) put();
        BARRIER();
    }
#pragma unroll
    for (u32 r = 0; r < PER_ROW; r++) {
        __builtin_amdgcn_sched_barrier(0);
#pragma unroll
        for (u32 q = 0; q < PER_COLUMN; q++) {
            u32 row = group_row + wave_row + r / 4 * 32 + lane_row * 4 + r % 4;
            u32 column = group_column + wave_column + q / 4 * 16 + lane_column * 4 + q % 4;
            float *to = at(c, row * n + column);
            *to = alpha * out[r][q] + beta * *to;
        }
    }
}

// 256 work-items; a wave has 32 by 64 of the outputs.
KERNEL SIZE(256) void k4(float *a, float *b, float *c, u32 m, u32 n, u32 k, float alpha, float beta) {
    LDS __attribute__((aligned(16))) float as[8 * 128];
    LDS __attribute__((aligned(16))) float bs[8 * 128];
    tiled<256, 4, 16, 0>(a, b, c, n, k, alpha, beta, as, bs);
}
