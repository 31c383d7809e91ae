; What amdgpu-device declares in intrinsics.rs, for nvptx64.

@amdgpu_device_dynamic = external addrspace(3) global [0 x i8], align 16

define linkonce_odr hidden ptr @amdgpu_device_workgroup_memory() alwaysinline nounwind {
  ret ptr addrspacecast (ptr addrspace(3) @amdgpu_device_dynamic to ptr)
}

define linkonce_odr hidden i32 @amdgpu_device_workgroup_memory_bytes() alwaysinline nounwind {
  %bytes = call i32 @llvm.nvvm.read.ptx.sreg.dynamic_smem_size()
  ret i32 %bytes
}

define linkonce_odr hidden i32 @amdgpu_device_dynamic_bytes() alwaysinline nounwind {
  %bytes = call i32 @llvm.nvvm.read.ptx.sreg.dynamic_smem_size()
  ret i32 %bytes
}

; Whether an error has been recorded since the host looked, and where it is to be recorded. The host finds it by name.
@amdgpu_device_error = linkonce_odr addrspace(1) externally_initialized global { i32, i32, ptr } zeroinitializer, align 16

define linkonce_odr hidden ptr @amdgpu_device_error_slot() alwaysinline nounwind {
  ret ptr addrspacecast (ptr addrspace(1) @amdgpu_device_error to ptr)
}

; The build takes the result for the same in all lanes of the warp.
define linkonce_odr hidden i32 @amdgpu_device_uniform(i32 %value) alwaysinline nounwind {
  %uniform = call i32 asm "mov.b32 $0, $1; // uniform in the wave", "=r,r"(i32 %value)
  ret i32 %uniform
}

; The same for the block.
define linkonce_odr hidden i32 @amdgpu_device_uniform_in_workgroup(i32 %value) alwaysinline nounwind {
  %uniform = call i32 asm "mov.b32 $0, $1; // uniform in the workgroup", "=r,r"(i32 %value)
  ret i32 %uniform
}

; How many workgroups have arrived, and how often all have.
@amdgpu_device_grid_words = internal addrspace(1) global [2 x i32] zeroinitializer, align 8

define linkonce_odr hidden ptr @amdgpu_device_grid_barrier() alwaysinline nounwind {
  ret ptr addrspacecast (ptr addrspace(1) @amdgpu_device_grid_words to ptr)
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
  %same = call float asm "", "=f,0"(float %x)
  ret float %same
}

define linkonce_odr hidden i32 @amdgpu_device_dot4(i32 %a, i32 %b, i32 %c) alwaysinline nounwind {
  %sum = call i32 @llvm.nvvm.idp4a.s.s(i32 %a, i32 %b, i32 %c)
  ret i32 %sum
}

define linkonce_odr hidden void @amdgpu_device_stream_copy(ptr %to, ptr %from) alwaysinline nounwind {
  %shared = addrspacecast ptr %to to ptr addrspace(3)
  %global = addrspacecast ptr %from to ptr addrspace(1)
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %shared, ptr addrspace(1) %global)
  ret void
}

define linkonce_odr hidden void @amdgpu_device_stream_end_group() alwaysinline nounwind {
  call void @llvm.nvvm.cp.async.commit.group()
  ret void
}

define linkonce_odr hidden void @amdgpu_device_stream_wait_1() alwaysinline nounwind {
  call void @llvm.nvvm.cp.async.wait.group(i32 1)
  ret void
}

define linkonce_odr hidden void @amdgpu_device_stream_wait_2() alwaysinline nounwind {
  call void @llvm.nvvm.cp.async.wait.group(i32 2)
  ret void
}

define linkonce_odr hidden void @amdgpu_device_stream_meet() alwaysinline convergent nounwind {
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  ret void
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

define linkonce_odr hidden i32 @amdgpu_device_opaque(i32 %x) alwaysinline nounwind {
  %same = call i32 asm sideeffect "", "=r,0"(i32 %x)
  ret i32 %same
}

define linkonce_odr hidden void @amdgpu_device_prefetch(ptr %address) alwaysinline nounwind {
  call void asm sideeffect "prefetch.L2 [$0];", "l"(ptr %address)
  ret void
}

; Comments that `ptx.rs` looks for: LLVM has no such loads and stores.
define linkonce_odr hidden void @amdgpu_device_loads_once() alwaysinline nounwind {
  call void asm sideeffect "// loads once", ""()
  ret void
}

define linkonce_odr hidden void @amdgpu_device_stores_once() alwaysinline nounwind {
  call void asm sideeffect "// stores once", ""()
  ret void
}

define linkonce_odr hidden i64 @amdgpu_device_opaque_uniform(i64 %x) alwaysinline nounwind {
  %same = call i64 asm sideeffect "", "=l,0"(i64 %x)
  ret i64 %same
}

@amdgpu_device_fail_file = internal addrspace(4) constant [1 x i8] zeroinitializer

; The driver's own function prints the text and traps.
define linkonce_odr hidden void @amdgpu_device_fail(ptr %text, i32 %length) alwaysinline cold noreturn nounwind {
  %file = addrspacecast ptr addrspace(4) @amdgpu_device_fail_file to ptr
  call void @__assertfail(ptr %text, ptr %file, i32 0, ptr %file, i64 1)
  unreachable
}

declare void @__assertfail(ptr, ptr, i32, ptr, i64) noreturn nounwind

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

; 16 rows of A by 8 of B over 16 or 32 bytes each. Lane l has words l mod 4 (and 4 + l mod 4) of rows l div 4 and l div 4 + 8
; of A, and of row l div 4 of B; sums of these rows of A with rows 2·(l mod 4) and the next of B.
define linkonce_odr hidden void @amdgpu_device_tile_s8_16(ptr %sums, ptr %a, ptr %b) alwaysinline convergent nounwind {
  %c = load <4 x i32>, ptr %sums, align 4
  %av = load <2 x i32>, ptr %a, align 4
  %b0 = load i32, ptr %b, align 4
  %a0 = extractelement <2 x i32> %av, i64 0
  %a1 = extractelement <2 x i32> %av, i64 1
  %c0 = extractelement <4 x i32> %c, i64 0
  %c1 = extractelement <4 x i32> %c, i64 1
  %c2 = extractelement <4 x i32> %c, i64 2
  %c3 = extractelement <4 x i32> %c, i64 3
  %d = call { i32, i32, i32, i32 } @llvm.nvvm.mma.m16n8k16.row.col.s8(i32 %a0, i32 %a1, i32 %b0, i32 %c0, i32 %c1, i32 %c2, i32 %c3)
  %d0 = extractvalue { i32, i32, i32, i32 } %d, 0
  %d1 = extractvalue { i32, i32, i32, i32 } %d, 1
  %d2 = extractvalue { i32, i32, i32, i32 } %d, 2
  %d3 = extractvalue { i32, i32, i32, i32 } %d, 3
  %v0 = insertelement <4 x i32> poison, i32 %d0, i64 0
  %v1 = insertelement <4 x i32> %v0, i32 %d1, i64 1
  %v2 = insertelement <4 x i32> %v1, i32 %d2, i64 2
  %v3 = insertelement <4 x i32> %v2, i32 %d3, i64 3
  store <4 x i32> %v3, ptr %sums, align 4
  ret void
}

define linkonce_odr hidden void @amdgpu_device_tile_s8_32(ptr %sums, ptr %a, ptr %b) alwaysinline convergent nounwind {
  %c = load <4 x i32>, ptr %sums, align 4
  %av = load <4 x i32>, ptr %a, align 4
  %bv = load <2 x i32>, ptr %b, align 4
  %a0 = extractelement <4 x i32> %av, i64 0
  %a1 = extractelement <4 x i32> %av, i64 1
  %a2 = extractelement <4 x i32> %av, i64 2
  %a3 = extractelement <4 x i32> %av, i64 3
  %b0 = extractelement <2 x i32> %bv, i64 0
  %b1 = extractelement <2 x i32> %bv, i64 1
  %c0 = extractelement <4 x i32> %c, i64 0
  %c1 = extractelement <4 x i32> %c, i64 1
  %c2 = extractelement <4 x i32> %c, i64 2
  %c3 = extractelement <4 x i32> %c, i64 3
  %d = call { i32, i32, i32, i32 } @llvm.nvvm.mma.m16n8k32.row.col.s8(i32 %a0, i32 %a1, i32 %a2, i32 %a3, i32 %b0, i32 %b1, i32 %c0, i32 %c1, i32 %c2, i32 %c3)
  %d0 = extractvalue { i32, i32, i32, i32 } %d, 0
  %d1 = extractvalue { i32, i32, i32, i32 } %d, 1
  %d2 = extractvalue { i32, i32, i32, i32 } %d, 2
  %d3 = extractvalue { i32, i32, i32, i32 } %d, 3
  %v0 = insertelement <4 x i32> poison, i32 %d0, i64 0
  %v1 = insertelement <4 x i32> %v0, i32 %d1, i64 1
  %v2 = insertelement <4 x i32> %v1, i32 %d2, i64 2
  %v3 = insertelement <4 x i32> %v2, i32 %d3, i64 3
  store <4 x i32> %v3, ptr %sums, align 4
  ret void
}

declare { i32, i32, i32, i32 } @llvm.nvvm.mma.m16n8k16.row.col.s8(i32, i32, i32, i32, i32, i32, i32) nounwind memory(none)
declare { i32, i32, i32, i32 } @llvm.nvvm.mma.m16n8k32.row.col.s8(i32, i32, i32, i32, i32, i32, i32, i32, i32, i32) nounwind memory(none)
declare void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3), ptr addrspace(1))
declare void @llvm.nvvm.cp.async.commit.group()
declare void @llvm.nvvm.cp.async.wait.group(i32 immarg)
declare void @llvm.nvvm.bar.warp.sync(i32) convergent
declare i32 @llvm.nvvm.idp4a.s.s(i32, i32, i32) nounwind memory(none)
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32) convergent nounwind

!0 = !{}

define linkonce_odr hidden zeroext i1 @amdgpu_device_has_matrix() alwaysinline nounwind {
  ret i1 true
}

define linkonce_odr hidden float @amdgpu_device_dot2_f16(i32 %a, i32 %b, float %sum) alwaysinline nounwind {
  %av = bitcast i32 %a to <2 x half>
  %bv = bitcast i32 %b to <2 x half>
  %aw = fpext <2 x half> %av to <2 x float>
  %bw = fpext <2 x half> %bv to <2 x float>
  %a0 = extractelement <2 x float> %aw, i64 0
  %b0 = extractelement <2 x float> %bw, i64 0
  %a1 = extractelement <2 x float> %aw, i64 1
  %b1 = extractelement <2 x float> %bw, i64 1
  %s0 = call float @llvm.fma.f32(float %a0, float %b0, float %sum)
  %s1 = call float @llvm.fma.f32(float %a1, float %b1, float %s0)
  ret float %s1
}

; Two instructions for each 8 of the 16 rows of B. A lane's chunk of a row is 8 elements: the first four are those of the
; first instruction, the last four of the second. Rows g and g + 8 are in the first and the second chunk.
define linkonce_odr hidden void @amdgpu_device_matrix_f16(ptr %sums, ptr %a, ptr %b) alwaysinline convergent nounwind {
  %av = load <16 x half>, ptr %a, align 4
  %bv = load <16 x half>, ptr %b, align 4
  %c = load <8 x float>, ptr %sums, align 4
  %a00 = shufflevector <16 x half> %av, <16 x half> poison, <2 x i32> <i32 0, i32 1>
  %a01 = shufflevector <16 x half> %av, <16 x half> poison, <2 x i32> <i32 2, i32 3>
  %a02 = shufflevector <16 x half> %av, <16 x half> poison, <2 x i32> <i32 4, i32 5>
  %a03 = shufflevector <16 x half> %av, <16 x half> poison, <2 x i32> <i32 6, i32 7>
  %a10 = shufflevector <16 x half> %av, <16 x half> poison, <2 x i32> <i32 8, i32 9>
  %a11 = shufflevector <16 x half> %av, <16 x half> poison, <2 x i32> <i32 10, i32 11>
  %a12 = shufflevector <16 x half> %av, <16 x half> poison, <2 x i32> <i32 12, i32 13>
  %a13 = shufflevector <16 x half> %av, <16 x half> poison, <2 x i32> <i32 14, i32 15>
  %b00 = shufflevector <16 x half> %bv, <16 x half> poison, <2 x i32> <i32 0, i32 1>
  %b01 = shufflevector <16 x half> %bv, <16 x half> poison, <2 x i32> <i32 2, i32 3>
  %b02 = shufflevector <16 x half> %bv, <16 x half> poison, <2 x i32> <i32 4, i32 5>
  %b03 = shufflevector <16 x half> %bv, <16 x half> poison, <2 x i32> <i32 6, i32 7>
  %b10 = shufflevector <16 x half> %bv, <16 x half> poison, <2 x i32> <i32 8, i32 9>
  %b11 = shufflevector <16 x half> %bv, <16 x half> poison, <2 x i32> <i32 10, i32 11>
  %b12 = shufflevector <16 x half> %bv, <16 x half> poison, <2 x i32> <i32 12, i32 13>
  %b13 = shufflevector <16 x half> %bv, <16 x half> poison, <2 x i32> <i32 14, i32 15>
  %c0 = extractelement <8 x float> %c, i64 0
  %c1 = extractelement <8 x float> %c, i64 1
  %c2 = extractelement <8 x float> %c, i64 2
  %c3 = extractelement <8 x float> %c, i64 3
  %c4 = extractelement <8 x float> %c, i64 4
  %c5 = extractelement <8 x float> %c, i64 5
  %c6 = extractelement <8 x float> %c, i64 6
  %c7 = extractelement <8 x float> %c, i64 7
  %l0 = call { float, float, float, float } @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %a00, <2 x half> %a10, <2 x half> %a01, <2 x half> %a11, <2 x half> %b00, <2 x half> %b01, float %c0, float %c1, float %c2, float %c3)
  %h0 = call { float, float, float, float } @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %a00, <2 x half> %a10, <2 x half> %a01, <2 x half> %a11, <2 x half> %b10, <2 x half> %b11, float %c4, float %c5, float %c6, float %c7)
  %d0 = extractvalue { float, float, float, float } %l0, 0
  %d1 = extractvalue { float, float, float, float } %l0, 1
  %d2 = extractvalue { float, float, float, float } %l0, 2
  %d3 = extractvalue { float, float, float, float } %l0, 3
  %d4 = extractvalue { float, float, float, float } %h0, 0
  %d5 = extractvalue { float, float, float, float } %h0, 1
  %d6 = extractvalue { float, float, float, float } %h0, 2
  %d7 = extractvalue { float, float, float, float } %h0, 3
  %l1 = call { float, float, float, float } @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %a02, <2 x half> %a12, <2 x half> %a03, <2 x half> %a13, <2 x half> %b02, <2 x half> %b03, float %d0, float %d1, float %d2, float %d3)
  %h1 = call { float, float, float, float } @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %a02, <2 x half> %a12, <2 x half> %a03, <2 x half> %a13, <2 x half> %b12, <2 x half> %b13, float %d4, float %d5, float %d6, float %d7)
  store { float, float, float, float } %l1, ptr %sums, align 4
  %upper = getelementptr inbounds i8, ptr %sums, i64 16
  store { float, float, float, float } %h1, ptr %upper, align 4
  ret void
}

define linkonce_odr hidden void @amdgpu_device_matrix_bf16(ptr %sums, ptr %a, ptr %b) alwaysinline convergent nounwind {
  %av = load <8 x i32>, ptr %a, align 4
  %bv = load <8 x i32>, ptr %b, align 4
  %c = load <8 x float>, ptr %sums, align 4
  %a00 = extractelement <8 x i32> %av, i64 0
  %a01 = extractelement <8 x i32> %av, i64 1
  %a02 = extractelement <8 x i32> %av, i64 2
  %a03 = extractelement <8 x i32> %av, i64 3
  %a10 = extractelement <8 x i32> %av, i64 4
  %a11 = extractelement <8 x i32> %av, i64 5
  %a12 = extractelement <8 x i32> %av, i64 6
  %a13 = extractelement <8 x i32> %av, i64 7
  %b00 = extractelement <8 x i32> %bv, i64 0
  %b01 = extractelement <8 x i32> %bv, i64 1
  %b02 = extractelement <8 x i32> %bv, i64 2
  %b03 = extractelement <8 x i32> %bv, i64 3
  %b10 = extractelement <8 x i32> %bv, i64 4
  %b11 = extractelement <8 x i32> %bv, i64 5
  %b12 = extractelement <8 x i32> %bv, i64 6
  %b13 = extractelement <8 x i32> %bv, i64 7
  %c0 = extractelement <8 x float> %c, i64 0
  %c1 = extractelement <8 x float> %c, i64 1
  %c2 = extractelement <8 x float> %c, i64 2
  %c3 = extractelement <8 x float> %c, i64 3
  %c4 = extractelement <8 x float> %c, i64 4
  %c5 = extractelement <8 x float> %c, i64 5
  %c6 = extractelement <8 x float> %c, i64 6
  %c7 = extractelement <8 x float> %c, i64 7
  %l0 = call { float, float, float, float } @llvm.nvvm.mma.m16n8k16.row.col.bf16(i32 %a00, i32 %a10, i32 %a01, i32 %a11, i32 %b00, i32 %b01, float %c0, float %c1, float %c2, float %c3)
  %h0 = call { float, float, float, float } @llvm.nvvm.mma.m16n8k16.row.col.bf16(i32 %a00, i32 %a10, i32 %a01, i32 %a11, i32 %b10, i32 %b11, float %c4, float %c5, float %c6, float %c7)
  %d0 = extractvalue { float, float, float, float } %l0, 0
  %d1 = extractvalue { float, float, float, float } %l0, 1
  %d2 = extractvalue { float, float, float, float } %l0, 2
  %d3 = extractvalue { float, float, float, float } %l0, 3
  %d4 = extractvalue { float, float, float, float } %h0, 0
  %d5 = extractvalue { float, float, float, float } %h0, 1
  %d6 = extractvalue { float, float, float, float } %h0, 2
  %d7 = extractvalue { float, float, float, float } %h0, 3
  %l1 = call { float, float, float, float } @llvm.nvvm.mma.m16n8k16.row.col.bf16(i32 %a02, i32 %a12, i32 %a03, i32 %a13, i32 %b02, i32 %b03, float %d0, float %d1, float %d2, float %d3)
  %h1 = call { float, float, float, float } @llvm.nvvm.mma.m16n8k16.row.col.bf16(i32 %a02, i32 %a12, i32 %a03, i32 %a13, i32 %b12, i32 %b13, float %d4, float %d5, float %d6, float %d7)
  store { float, float, float, float } %l1, ptr %sums, align 4
  %upper = getelementptr inbounds i8, ptr %sums, i64 16
  store { float, float, float, float } %h1, ptr %upper, align 4
  ret void
}

declare float @llvm.fma.f32(float, float, float)
declare { float, float, float, float } @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half>, <2 x half>, <2 x half>, <2 x half>, <2 x half>, <2 x half>, float, float, float, float)
declare { float, float, float, float } @llvm.nvvm.mma.m16n8k16.row.col.bf16(i32, i32, i32, i32, i32, i32, float, float, float, float)
declare i32 @llvm.nvvm.read.ptx.sreg.dynamic_smem_size()
