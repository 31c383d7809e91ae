// What the kernels of the benchmark stand on: plain C++ for amdgcn, without headers.
typedef unsigned int u32;
typedef unsigned long long u64;
typedef _Float16 half;
#define KERNEL extern "C" __attribute__((amdgpu_kernel))
#define SIZE(most) __attribute__((amdgpu_flat_work_group_size(most, most)))
#define LDS static __attribute__((address_space(3), loader_uninitialized))
#define GX __builtin_amdgcn_workgroup_id_x()
#define GY __builtin_amdgcn_workgroup_id_y()
#define GZ __builtin_amdgcn_workgroup_id_z()
#define LX __builtin_amdgcn_workitem_id_x()
#define LY __builtin_amdgcn_workitem_id_y()
#define BARRIER() do { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"); } while (0)
