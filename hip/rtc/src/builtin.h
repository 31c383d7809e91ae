// What a program compiled by hiprtc has where HIP's headers are not installed: the language's words, indices, barriers, atomics,
// and the mathematics that a GPU has instructions for.
#pragma once

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) __hiprtc_bounds(__VA_ARGS__, 1)
#define __hiprtc_bounds(threads, ...) __attribute__((amdgpu_flat_work_group_size(1, threads)))

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    constexpr __host__ __device__ dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

// Indices: a member is read where it is used.
#define __HIPRTC_INDEX(type, x_of, y_of, z_of)                                                                     \
    struct type {                                                                                                  \
        struct X { __device__ __forceinline__ operator unsigned() const { return x_of; } };                       \
        struct Y { __device__ __forceinline__ operator unsigned() const { return y_of; } };                       \
        struct Z { __device__ __forceinline__ operator unsigned() const { return z_of; } };                       \
        [[no_unique_address]] X x;                                                                                 \
        [[no_unique_address]] Y y;                                                                                 \
        [[no_unique_address]] Z z;                                                                                 \
        __device__ __forceinline__ operator dim3() const { return dim3(x_of, y_of, z_of); }                       \
        __device__ __forceinline__ operator uint3() const { return uint3{x_of, y_of, z_of}; }                     \
    }
#define __HIPRTC_SIZE(axis) ((unsigned)__builtin_amdgcn_workgroup_size_##axis())
__HIPRTC_INDEX(__hiprtc_thread, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(),
               __builtin_amdgcn_workitem_id_z());
__HIPRTC_INDEX(__hiprtc_block, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
               __builtin_amdgcn_workgroup_id_z());
__HIPRTC_INDEX(__hiprtc_block_size, __HIPRTC_SIZE(x), __HIPRTC_SIZE(y), __HIPRTC_SIZE(z));
__HIPRTC_INDEX(__hiprtc_grid_size, __builtin_amdgcn_grid_size_x() / __HIPRTC_SIZE(x),
               __builtin_amdgcn_grid_size_y() / __HIPRTC_SIZE(y), __builtin_amdgcn_grid_size_z() / __HIPRTC_SIZE(z));
#undef __HIPRTC_INDEX
static const __device__ __hiprtc_thread threadIdx;
static const __device__ __hiprtc_block blockIdx;
static const __device__ __hiprtc_block_size blockDim;
static const __device__ __hiprtc_grid_size gridDim;
static constexpr int warpSize = __AMDGCN_WAVEFRONT_SIZE;

#define __HIPRTC static __device__ __forceinline__

__HIPRTC void __syncthreads() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
__HIPRTC void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
__HIPRTC void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
__HIPRTC void __threadfence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }

// Atomics of the whole device, in no order with others.
#define __HIPRTC_ATOMIC(name, operation)                                                            \
    template <typename T> __HIPRTC T name(T* at, T value) {                                         \
        return operation(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);                    \
    }
__HIPRTC_ATOMIC(atomicAdd, __hip_atomic_fetch_add)
__HIPRTC_ATOMIC(atomicMin, __hip_atomic_fetch_min)
__HIPRTC_ATOMIC(atomicMax, __hip_atomic_fetch_max)
__HIPRTC_ATOMIC(atomicAnd, __hip_atomic_fetch_and)
__HIPRTC_ATOMIC(atomicOr, __hip_atomic_fetch_or)
__HIPRTC_ATOMIC(atomicXor, __hip_atomic_fetch_xor)
__HIPRTC_ATOMIC(atomicExch, __hip_atomic_exchange)
#undef __HIPRTC_ATOMIC
template <typename T> __HIPRTC T atomicCAS(T* at, T expected, T value) {
    __hip_atomic_compare_exchange_strong(at, &expected, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                         __HIP_MEMORY_SCOPE_AGENT);
    return expected;
}

#define __HIPRTC_MATH1(name) \
    __HIPRTC float name##f(float x) { return __builtin_##name##f(x); } \
    __HIPRTC double name(double x) { return __builtin_##name(x); }
__HIPRTC_MATH1(sqrt)
__HIPRTC_MATH1(fabs)
__HIPRTC_MATH1(floor)
__HIPRTC_MATH1(ceil)
__HIPRTC_MATH1(trunc)
__HIPRTC_MATH1(rint)
#undef __HIPRTC_MATH1
#define __HIPRTC_MATH2(name) \
    __HIPRTC float name##f(float x, float y) { return __builtin_##name##f(x, y); } \
    __HIPRTC double name(double x, double y) { return __builtin_##name(x, y); }
__HIPRTC_MATH2(fmin)
__HIPRTC_MATH2(fmax)
__HIPRTC_MATH2(copysign)
#undef __HIPRTC_MATH2
__HIPRTC float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
__HIPRTC double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
template <typename T> __HIPRTC T min(T x, T y) { return y < x ? y : x; }
template <typename T> __HIPRTC T max(T x, T y) { return x < y ? y : x; }
