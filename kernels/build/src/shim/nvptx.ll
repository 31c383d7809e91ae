; What amdgpu-device declares in shim.rs, for nvptx64.

@amdgpu_device_dynamic = external addrspace(3) global [0 x i8], align 16

define linkonce_odr hidden ptr @amdgpu_device_workgroup_memory() alwaysinline nounwind {
  ret ptr addrspacecast (ptr addrspace(3) @amdgpu_device_dynamic to ptr)
}

define linkonce_odr hidden void @amdgpu_device_barrier() alwaysinline convergent nounwind {
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  ret void
}

define linkonce_odr hidden void @amdgpu_device_barrier_local() alwaysinline convergent nounwind {
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  ret void
}

; ld.global.nc
define linkonce_odr hidden i64 @amdgpu_device_load_constant(ptr %address) alwaysinline nounwind {
  %global = addrspacecast ptr %address to ptr addrspace(1)
  %value = load i64, ptr addrspace(1) %global, align 8, !invariant.load !0, !noundef !0
  ret i64 %value
}

define linkonce_odr hidden void @amdgpu_device_atomic_add_f32(ptr %address, float %value) alwaysinline nounwind {
  %global = addrspacecast ptr %address to ptr addrspace(1)
  %old = atomicrmw fadd ptr addrspace(1) %global, float %value syncscope("device") monotonic, align 4
  ret void
}

define linkonce_odr hidden void @amdgpu_device_atomic_add_f64(ptr %address, double %value) alwaysinline nounwind {
  %global = addrspacecast ptr %address to ptr addrspace(1)
  %old = atomicrmw fadd ptr addrspace(1) %global, double %value syncscope("device") monotonic, align 8
  ret void
}

define linkonce_odr hidden i32 @amdgpu_device_atomic_add_u32(ptr %address, i32 %value) alwaysinline nounwind {
  %global = addrspacecast ptr %address to ptr addrspace(1)
  %old = atomicrmw add ptr addrspace(1) %global, i32 %value syncscope("device") monotonic, align 4
  ret i32 %old
}

define linkonce_odr hidden i64 @amdgpu_device_atomic_add_u64(ptr %address, i64 %value) alwaysinline nounwind {
  %global = addrspacecast ptr %address to ptr addrspace(1)
  %old = atomicrmw add ptr addrspace(1) %global, i64 %value syncscope("device") monotonic, align 8
  ret i64 %old
}

define linkonce_odr hidden i32 @amdgpu_device_atomic_load_u32(ptr %address) alwaysinline nounwind {
  %global = addrspacecast ptr %address to ptr addrspace(1)
  %value = load atomic i32, ptr addrspace(1) %global syncscope("device") monotonic, align 4
  ret i32 %value
}

define linkonce_odr hidden i32 @amdgpu_device_atomic_swap_if_u32(ptr %address, i32 %expected, i32 %new) alwaysinline nounwind {
  %global = addrspacecast ptr %address to ptr addrspace(1)
  %pair = cmpxchg ptr addrspace(1) %global, i32 %expected, i32 %new syncscope("device") monotonic monotonic, align 4
  %old = extractvalue { i32, i1 } %pair, 0
  ret i32 %old
}

declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32) convergent nounwind

!0 = !{}
