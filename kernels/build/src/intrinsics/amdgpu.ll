; What amdgpu-device declares in intrinsics.rs, for amdgcn.

@amdgpu_device_dynamic = external addrspace(3) global [0 x i8], align 16

define linkonce_odr hidden ptr @amdgpu_device_workgroup_memory() alwaysinline nounwind {
  ret ptr addrspacecast (ptr addrspace(3) @amdgpu_device_dynamic to ptr)
}

; What the launch gave, from its AQL packet (group_segment_size): no kernel that asks has workgroup memory of its
; own.
define linkonce_odr hidden i32 @amdgpu_device_workgroup_memory_bytes() alwaysinline nounwind {
  %packet = call ptr addrspace(4) @llvm.amdgcn.dispatch.ptr()
  %at = getelementptr inbounds i8, ptr addrspace(4) %packet, i64 28
  %bytes = load i32, ptr addrspace(4) %at, align 4, !invariant.load !0, !noundef !0
  ret i32 %bytes
}

; What the launch gave beyond the kernel's own: the address of the former is the size of the latter.
define linkonce_odr hidden i32 @amdgpu_device_dynamic_bytes() alwaysinline nounwind {
  %all = call i32 @amdgpu_device_workgroup_memory_bytes()
  %own = ptrtoint ptr addrspace(3) @amdgpu_device_dynamic to i32
  %bytes = sub i32 %all, %own
  ret i32 %bytes
}

; Whether an error has been recorded since the host looked, and where it is to be recorded. The host finds it by name.
@amdgpu_device_error = linkonce_odr protected addrspace(1) externally_initialized global { i32, i32, ptr } zeroinitializer, align 16

define linkonce_odr hidden ptr @amdgpu_device_error_slot() alwaysinline nounwind {
  ret ptr addrspacecast (ptr addrspace(1) @amdgpu_device_error to ptr)
}

; How many workgroups have arrived, and how often all have.
@amdgpu_device_grid_words = internal addrspace(1) global [2 x i32] zeroinitializer, align 8

define linkonce_odr hidden ptr @amdgpu_device_grid_barrier() alwaysinline nounwind {
  ret ptr addrspacecast (ptr addrspace(1) @amdgpu_device_grid_words to ptr)
}

; Where the metadata has hidden_multigrid_sync_arg.
define linkonce_odr hidden ptr @amdgpu_device_grid_info() alwaysinline nounwind {
  %args = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %at = getelementptr inbounds i8, ptr addrspace(4) %args, i64 88
  %info = load ptr, ptr addrspace(4) %at, align 8, !invariant.load !0
  ret ptr %info
}

@amdgpu_device_fixed_4k = internal addrspace(3) global [4096 x i8] poison, align 16
@amdgpu_device_fixed_8k = internal addrspace(3) global [8192 x i8] poison, align 16
@amdgpu_device_fixed_16k = internal addrspace(3) global [16384 x i8] poison, align 16
@amdgpu_device_fixed_32k = internal addrspace(3) global [32768 x i8] poison, align 16
@amdgpu_device_fixed_40k = internal addrspace(3) global [40960 x i8] poison, align 16

define linkonce_odr hidden ptr @amdgpu_device_fixed_memory_4k() alwaysinline nounwind {
  ret ptr addrspacecast (ptr addrspace(3) @amdgpu_device_fixed_4k to ptr)
}

define linkonce_odr hidden ptr @amdgpu_device_fixed_memory_8k() alwaysinline nounwind {
  ret ptr addrspacecast (ptr addrspace(3) @amdgpu_device_fixed_8k to ptr)
}

define linkonce_odr hidden ptr @amdgpu_device_fixed_memory_16k() alwaysinline nounwind {
  ret ptr addrspacecast (ptr addrspace(3) @amdgpu_device_fixed_16k to ptr)
}

define linkonce_odr hidden ptr @amdgpu_device_fixed_memory_32k() alwaysinline nounwind {
  ret ptr addrspacecast (ptr addrspace(3) @amdgpu_device_fixed_32k to ptr)
}

define linkonce_odr hidden ptr @amdgpu_device_fixed_memory_40k() alwaysinline nounwind {
  ret ptr addrspacecast (ptr addrspace(3) @amdgpu_device_fixed_40k to ptr)
}

; The optimiser does not know that it is the same.
define linkonce_odr hidden float @amdgpu_device_opaque_f32(float %x) alwaysinline nounwind {
  %same = call float asm "", "=v,0"(float %x)
  ret float %same
}

; Workgroup scope: Rust's own fences are system-wide, and write the L2 cache back on gfx90a.
define linkonce_odr hidden void @amdgpu_device_barrier() alwaysinline convergent nounwind {
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  ret void
}

; Says that only workgroup memory is ordered: no invalidation of the vector cache.
define linkonce_odr hidden void @amdgpu_device_barrier_local() alwaysinline convergent nounwind {
  fence syncscope("workgroup") release, !mmra !1
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire, !mmra !1
  ret void
}

; Constant address space: a scalar load where the address is uniform.
define linkonce_odr hidden i64 @amdgpu_device_load_constant(ptr %address) alwaysinline nounwind {
  %constant = addrspacecast ptr %address to ptr addrspace(4)
  %value = load i64, ptr addrspace(4) %constant, align 8, !invariant.load !0, !noundef !0
  ret i64 %value
}

define linkonce_odr hidden i32 @amdgpu_device_workgroups_x() alwaysinline nounwind {
  %args = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %at = getelementptr inbounds i8, ptr addrspace(4) %args, i64 0
  %count = load i32, ptr addrspace(4) %at, align 4, !invariant.load !0, !noundef !0, !range !2
  ret i32 %count
}

define linkonce_odr hidden i32 @amdgpu_device_workgroup_size_x() alwaysinline nounwind {
  %args = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %at = getelementptr inbounds i8, ptr addrspace(4) %args, i64 12
  %size = load i16, ptr addrspace(4) %at, align 2, !invariant.load !0, !noundef !0, !range !3
  %wide = zext i16 %size to i32
  ret i32 %wide
}

define linkonce_odr hidden i32 @amdgpu_device_workgroups_y() alwaysinline nounwind {
  %args = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %at = getelementptr inbounds i8, ptr addrspace(4) %args, i64 4
  %count = load i32, ptr addrspace(4) %at, align 4, !invariant.load !0, !noundef !0, !range !2
  ret i32 %count
}

define linkonce_odr hidden i32 @amdgpu_device_workgroup_size_y() alwaysinline nounwind {
  %args = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %at = getelementptr inbounds i8, ptr addrspace(4) %args, i64 14
  %size = load i16, ptr addrspace(4) %at, align 2, !invariant.load !0, !noundef !0, !range !3
  %wide = zext i16 %size to i32
  ret i32 %wide
}

define linkonce_odr hidden i32 @amdgpu_device_workgroups_z() alwaysinline nounwind {
  %args = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %at = getelementptr inbounds i8, ptr addrspace(4) %args, i64 8
  %count = load i32, ptr addrspace(4) %at, align 4, !invariant.load !0, !noundef !0, !range !2
  ret i32 %count
}

define linkonce_odr hidden i32 @amdgpu_device_workgroup_size_z() alwaysinline nounwind {
  %args = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %at = getelementptr inbounds i8, ptr addrspace(4) %args, i64 16
  %size = load i16, ptr addrspace(4) %at, align 2, !invariant.load !0, !noundef !0, !range !3
  %wide = zext i16 %size to i32
  ret i32 %wide
}

; The build takes the result for the same in all of the workgroup.
define linkonce_odr hidden i32 @amdgpu_device_uniform_in_workgroup(i32 %value) alwaysinline nounwind {
  %first = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %value)
  %uniform = call i32 asm "; uniform in the workgroup", "=s,0"(i32 %first)
  ret i32 %uniform
}

declare i32 @llvm.amdgcn.readfirstlane.i32(i32) convergent nounwind memory(none)

define linkonce_odr hidden i32 @amdgpu_device_opaque(i32 %x) alwaysinline nounwind {
  %same = call i32 asm sideeffect "", "=v,0"(i32 %x)
  ret i32 %same
}

; A number, since of two address space casts the optimiser makes none.
define linkonce_odr hidden ptr @amdgpu_device_global(i64 %address) alwaysinline nounwind {
  %global = inttoptr i64 %address to ptr addrspace(1)
  %same = addrspacecast ptr addrspace(1) %global to ptr
  ret ptr %same
}

define linkonce_odr hidden void @amdgpu_device_sched_barrier() alwaysinline convergent nounwind {
  call void @llvm.amdgcn.sched.barrier(i32 0)
  ret void
}

define linkonce_odr hidden i64 @amdgpu_device_opaque_uniform(i64 %x) alwaysinline nounwind {
  %same = call i64 asm sideeffect "", "=s,0"(i64 %x)
  ret i64 %same
}

; Where the metadata has hidden_hostcall_buffer.
define linkonce_odr hidden ptr @amdgpu_device_host_calls() alwaysinline nounwind {
  %args = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %at = getelementptr inbounds i8, ptr addrspace(4) %args, i64 80
  %buffer = load ptr, ptr addrspace(4) %at, align 8, !invariant.load !0
  ret ptr %buffer
}

; Message 1, with the event in m0.
define linkonce_odr hidden void @amdgpu_device_interrupt(i32 %event) alwaysinline nounwind {
  %low = and i32 %event, 255
  %same = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %low)
  call void @llvm.amdgcn.s.sendmsg(i32 1, i32 %same)
  ret void
}

declare void @llvm.amdgcn.s.sendmsg(i32 immarg, i32) nounwind

; A trap of whose message the emulator looks for in s[0:3]: address, length, and `TEXT`.
define linkonce_odr hidden void @amdgpu_device_fail(ptr %text, i32 %length) alwaysinline cold noreturn nounwind {
  %address = ptrtoint ptr %text to i64
  call void asm sideeffect "s_trap 2", "{s[0:1]},{s2},{s3}"(i64 %address, i32 %length, i32 1415071060)
  call void @llvm.amdgcn.endpgm()
  unreachable
}

define linkonce_odr hidden void @amdgpu_device_atomic_add_f32(ptr %address, float %value) alwaysinline nounwind {
  %global = addrspacecast ptr %address to ptr addrspace(1)
  %old = atomicrmw fadd ptr addrspace(1) %global, float %value syncscope("agent") monotonic, align 4, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret void
}

define linkonce_odr hidden void @amdgpu_device_atomic_add_f64(ptr %address, double %value) alwaysinline nounwind {
  %global = addrspacecast ptr %address to ptr addrspace(1)
  %old = atomicrmw fadd ptr addrspace(1) %global, double %value syncscope("agent") monotonic, align 8, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret void
}

define linkonce_odr hidden i32 @amdgpu_device_atomic_add_u32(ptr %address, i32 %value) alwaysinline nounwind {
  %global = addrspacecast ptr %address to ptr addrspace(1)
  %old = atomicrmw add ptr addrspace(1) %global, i32 %value syncscope("agent") monotonic, align 4, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i32 %old
}

define linkonce_odr hidden i64 @amdgpu_device_atomic_add_u64(ptr %address, i64 %value) alwaysinline nounwind {
  %global = addrspacecast ptr %address to ptr addrspace(1)
  %old = atomicrmw add ptr addrspace(1) %global, i64 %value syncscope("agent") monotonic, align 8, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i64 %old
}

define linkonce_odr hidden i32 @amdgpu_device_atomic_load_u32(ptr %address) alwaysinline nounwind {
  %global = addrspacecast ptr %address to ptr addrspace(1)
  %value = load atomic i32, ptr addrspace(1) %global syncscope("agent") monotonic, align 4
  ret i32 %value
}

define linkonce_odr hidden i32 @amdgpu_device_atomic_swap_if_u32(ptr %address, i32 %expected, i32 %new) alwaysinline nounwind {
  %global = addrspacecast ptr %address to ptr addrspace(1)
  %pair = cmpxchg ptr addrspace(1) %global, i32 %expected, i32 %new syncscope("agent") monotonic monotonic, align 4
  %old = extractvalue { i32, i1 } %pair, 0
  ret i32 %old
}

declare void @llvm.amdgcn.endpgm() cold noreturn nounwind
declare void @llvm.amdgcn.s.barrier() convergent nounwind
declare void @llvm.amdgcn.sched.barrier(i32 immarg) convergent nounwind
declare ptr addrspace(4) @llvm.amdgcn.dispatch.ptr() nounwind memory(none)
declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr() nounwind memory(none)

; Version 5, which ROCm 5.7 to 7 load; LLVM's own default, version 6, needs ROCm 6.3.
!llvm.module.flags = !{!4}

!0 = !{}
!1 = !{!"amdgpu-synchronize-as", !"local"}
!2 = !{i32 1, i32 0}
!3 = !{i16 1, i16 1025}
!4 = !{i32 1, !"amdhsa_code_object_version", i32 500}
