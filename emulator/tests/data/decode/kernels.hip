// Kernels whose code the decoder is compared with llvm-objdump on: whatever makes the compiler use another part of
// the instruction set.
#define KERNEL extern "C" __attribute__((global)) void
#define SHARED __attribute__((shared))
typedef unsigned u32;
typedef unsigned long long u64;
typedef _Float16 f16;
typedef _Float16 f16x2 __attribute__((ext_vector_type(2)));
typedef _Float16 f16x4 __attribute__((ext_vector_type(4)));
typedef _Float16 f16x8 __attribute__((ext_vector_type(8)));
typedef _Float16 f16x16 __attribute__((ext_vector_type(16)));
typedef short i16x2 __attribute__((ext_vector_type(2)));
typedef float f32x2 __attribute__((ext_vector_type(2)));
typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef float f32x8 __attribute__((ext_vector_type(8)));
typedef float f32x16 __attribute__((ext_vector_type(16)));
typedef float f32x32 __attribute__((ext_vector_type(32)));
typedef int i32x4 __attribute__((ext_vector_type(4)));
typedef unsigned char u8x4 __attribute__((ext_vector_type(4)));

#define DEVICE static __attribute__((device, always_inline))
DEVICE u32 lane() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE u32 index() { return __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + lane(); }

KERNEL arithmetic_f32(float *o, const float *a, const float *b, float s) {
    u32 i = index();
    float x = a[i], y = b[i];
    o[i] = __builtin_fmaf(x, y, s) / (x - y) + __builtin_fmaxf(x, -y) * __builtin_fabsf(__builtin_floorf(y));
    o[i + 1] = __builtin_sqrtf(x) + __builtin_exp2f(y) + __builtin_logf(x) + __builtin_expf(y) + __builtin_truncf(s);
    o[i + 2] = __builtin_amdgcn_fmed3f(x, y, s) + __builtin_ldexpf(x, (int)y) + __builtin_rintf(x) + __builtin_amdgcn_fractf(y);
}
KERNEL arithmetic_f64(double *o, const double *a, const double *b, double s) {
    u32 i = index();
    double x = a[i], y = b[i];
    o[i] = __builtin_fma(x, y, s) / (x - y) + __builtin_fmax(x, -y) * __builtin_floor(y) + __builtin_sqrt(x);
    o[i + 1] = (double)(long long)x + (double)(u32)y + (double)(float)x + __builtin_ldexp(x, (int)y) + (x < y ? 2.5 : s);
}
KERNEL arithmetic_f16(f16 *o, const f16 *a, const f16 *b, f16 s) {
    u32 i = index();
    f16 x = a[i], y = b[i];
    o[i] = x * y + s;
    o[i + 1] = (f16)((float)x / (float)y) + (x < y ? x : (f16)1.5) + (f16)(short)y;
    o[i + 2] = __builtin_elementwise_max(x, y) - __builtin_elementwise_sqrt(x) + (f16)__builtin_elementwise_floor(y);
}
KERNEL packed(f16x2 *o, const f16x2 *a, i16x2 *p, const i16x2 *q, f32x2 *w) {
    u32 i = index();
    o[i] = a[i] * a[i + 1] + a[i + 2];
    o[i + 3] = __builtin_elementwise_max(a[i], a[i].yx);
    p[i] = q[i] * q[i + 1] + q[i + 2] - (q[i] << q[i + 1]) + __builtin_elementwise_min(q[i], q[i].yx);
    w[i] = w[i] * w[i + 1] + w[i + 2];
}
KERNEL integers(int *o, const int *a, const u32 *b, u64 *w, const long long *z) {
    u32 i = index();
    int x = a[i];
    u32 y = b[i];
    o[i] = x / (int)(y | 1) + x % (int)(y | 2) + (x << (y & 31)) + (x >> 3) + __builtin_popcount(y) + __builtin_clz(y | 1);
    o[i + 1] = (x < (int)y ? x : -x) + (int)__builtin_bitreverse32(y) + __builtin_ctz(y) + (int)__builtin_amdgcn_ubfe(y, 3, 7);
    w[i] = (u64)x * y + w[i + 1] / (w[i + 2] | 1) + ((u64)y << (x & 63)) + (u64)(z[i] >> 5) + (z[i] < z[i + 1] ? 1 : z[i]);
    o[i + 2] = (int)((u64)y * b[i + 1] >> 32) + __builtin_amdgcn_perm(x, y, 0x01020304) + (int)__builtin_amdgcn_alignbit(x, y, 7);
    o[i + 3] = __builtin_amdgcn_sad_u8(x, y, 5) + __builtin_amdgcn_lerp(x, y, x) + (x & ~(int)y) + (x ^ (int)y ^ 77) + (x | 3 | (int)y);
}
KERNEL bytes(u8x4 *o, const u8x4 *a, short *s, const unsigned char *b, signed char *c) {
    u32 i = index();
    o[i] = a[i] + a[i + 1];
    s[i] = (short)(b[i] * c[i] + s[i + 1]);
    c[i] = (signed char)((float)b[i + 1] * 0.5f);
}
KERNEL reduction(float *o, const float *a, u32 n) {
    SHARED float lds[256];
    u32 i = index(), l = lane();
    float sum = 0;
    for (u32 k = i; k < n; k += 1024) sum += a[k];
    lds[l] = sum;
    __builtin_amdgcn_s_barrier();
    for (u32 w = 128; w; w >>= 1) {
        if (l < w) lds[l] += lds[l + w];
        __builtin_amdgcn_s_barrier();
    }
    if (l == 0) o[__builtin_amdgcn_workgroup_id_x()] = lds[0];
}
KERNEL lds_widths(i32x4 *o, const i32x4 *a, u64 *w, short *s) {
    SHARED i32x4 wide[128];
    SHARED u64 pairs[256];
    SHARED short shorts[512];
    u32 l = lane();
    wide[l] = a[l];
    pairs[l] = w[l];
    pairs[l + 64] = w[l + 64];
    shorts[l * 2] = s[l];
    __builtin_amdgcn_s_barrier();
    o[l] = wide[l ^ 1];
    w[l] = pairs[l ^ 3] + pairs[(l ^ 3) + 64];
    s[l] = shorts[l];
}
KERNEL atomics(int *o, float *f, double *d, u64 *w, u32 *p) {
    SHARED int lds[64];
    u32 l = lane();
    lds[l] = 0;
    __builtin_amdgcn_s_barrier();
    o[l] = __atomic_fetch_add(&lds[l & 7], 3, __ATOMIC_RELAXED);
    __atomic_fetch_max(o + 5, 7, __ATOMIC_RELAXED);
    o[l + 1] = __atomic_exchange_n(o + 9, 2, __ATOMIC_SEQ_CST);
    int expected = 4;
    __atomic_compare_exchange_n(o + 11, &expected, 5, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    o[l + 2] = expected;
    __atomic_fetch_add(w + l, 9, __ATOMIC_ACQUIRE);
    __atomic_fetch_xor(p + l, 9, __ATOMIC_RELEASE);
    __atomic_fetch_add(f, 1.5f, __ATOMIC_RELAXED);
    __atomic_fetch_add(d, 1.5, __ATOMIC_RELAXED);
}
KERNEL lanes(int *o, const int *a) {
    u32 i = index();
    int x = a[i];
    o[i] = __builtin_amdgcn_mov_dpp(x, 0x111, 0xf, 0xf, true) + __builtin_amdgcn_update_dpp(1, x, 0x1b, 0xa, 0x5, false);
    o[i + 1] = __builtin_amdgcn_ds_swizzle(x, 0x401f) + __builtin_amdgcn_ds_bpermute(x, x) + __builtin_amdgcn_readfirstlane(x);
    o[i + 2] = __builtin_amdgcn_readlane(x, 5) + __builtin_amdgcn_mbcnt_hi(x, __builtin_amdgcn_mbcnt_lo(x, 0));
    o[i + 3] = x + __builtin_amdgcn_update_dpp(0, x, 0x140, 0xf, 0xf, true);
}
KERNEL scratch(int *o, const int *a, u32 n) {
    int local[64];
    u32 i = index();
    for (u32 k = 0; k < 64; ++k) local[(k * n) & 63] = a[i + k];
    int sum = 0;
    for (u32 k = 0; k < 64; ++k) sum += local[(k + i) & 63] * (int)k;
    o[i] = sum;
}
KERNEL branches(int *o, const int *a, int n) {
    u32 i = index();
    int x = a[i];
    while (x > n) {
        switch (x & 7) {
        case 0: x -= 3; break;
        case 1: x = x * 3 - 7; break;
        case 2: x >>= 1; break;
        case 3: x ^= 0x1234567; continue;
        case 5: x = o[x]; break;
        default: x -= 11;
        }
        if (x == 77) __builtin_trap();
    }
    o[i] = x;
}
KERNEL dots(int *o, const int *a, float *f, const f16x2 *h) {
    u32 i = index();
    f[i] = __builtin_amdgcn_fdot2(h[i], h[i + 1], f[i], false);
    f[i + 1] = (float)h[i].x * (float)h[i].y + f[i];
    o[i] = a[i] + 1;
}
#if defined(__gfx90a__) || defined(__gfx942__)
KERNEL matrix(f32x16 *o, f32x4 *p, const f16x4 *a, const f16x4 *b, const double *x, f32x32 *q, const float *y) {
    u32 i = lane();
    o[i] = __builtin_amdgcn_mfma_f32_32x32x8f16(a[i], b[i], o[i], 0, 0, 0);
    p[i] = __builtin_amdgcn_mfma_f32_16x16x16f16(a[i + 1], b[i + 1], p[i], 0, 0, 0);
    q[i] = __builtin_amdgcn_mfma_f32_32x32x1f32(y[i], y[i + 1], q[i], 1, 0, 2);
}
#endif
#if defined(__gfx1100__) || defined(__gfx1151__)
KERNEL matrix(f32x8 *o, const f16x16 *a, const f16x16 *b) {
    u32 i = lane();
    o[i] = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a[i], b[i], o[i]);
}
#endif
#if defined(__gfx1201__)
KERNEL matrix(f32x8 *o, const f16x8 *a, const f16x8 *b) {
    u32 i = lane();
    o[i] = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a[i], b[i], o[i]);
}
#endif
