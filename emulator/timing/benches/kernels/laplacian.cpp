// The 7-point Laplacian in f64, after the descriptions of AMD's lab notes: K1 a point for each work-item, K3 m points along y with
// loads in order, K5 the same with a store that caches do not keep.
#include "common.h"

template <u32 M, bool ONCE>
static __attribute__((always_inline)) void points(double *f, const double *u, u32 nx, u32 ny, u32 nz, double ix, double iy,
                                                  double iz, double ixyz) {
    u32 i = GX * 256 + LX, j = GY * M, k = GZ;
    if (i == 0 || i >= nx - 1 || k == 0 || k >= nz - 1) return;
    u64 slice = (u64)nx * ny, pos = i + (u64)nx * j + slice * k;
    double out[M] = {};
    double front[M + 2];
    if (M == 1 && (j == 0 || j >= ny - 1)) return;
#pragma unroll
    for (u32 m = 0; m < M; m++) {
        u64 at = pos + (u64)nx * m;
        out[m] += u[at - slice] * iz;
    }
#pragma unroll
    for (int m = -1; m <= (int)M; m++) {
        u64 at = pos + (long)nx * m;
        bool edge = (m == -1 && j == 0) || (m == (int)M && j + M >= ny);
        front[m + 1] = edge ? 0 : u[at];
    }
#pragma unroll
    for (u32 m = 0; m < M; m++) {
        u64 at = pos + (u64)nx * m;
        out[m] += front[m + 1] * ixyz + (u[at - 1] + u[at + 1]) * ix + (front[m] + front[m + 2]) * iy;
    }
#pragma unroll
    for (u32 m = 0; m < M; m++) {
        u64 at = pos + (u64)nx * m;
        out[m] += u[at + slice] * iz;
        if (j + m > 0 && j + m < ny - 1) {
            if (ONCE) __builtin_nontemporal_store(out[m], &f[at]);
            else f[at] = out[m];
        }
    }
}
#define POINTS(name, m, once)                                                                                              \
    KERNEL SIZE(256) void name(double *f, double *u, u32 nx, u32 ny, u32 nz, double ix, double iy, double iz, double ixyz) { \
        points<m, once>(f, u, nx, ny, nz, ix, iy, iz, ixyz);                                                               \
    }
POINTS(k1, 1, false)
POINTS(k3m2, 2, false)
POINTS(k3m4, 4, false)
POINTS(k3m8, 8, false)
POINTS(k5m8, 8, true)
POINTS(k5m16, 16, true)
