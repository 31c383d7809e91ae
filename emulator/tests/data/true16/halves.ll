; The kernels of tests/true16.rs, which has the machine code that LLVM 22 makes of them:
; opt -O2 -mtriple=amdgcn-amd-amdhsa -mcpu=TARGET | llc -mattr=+real-true16
target triple = "amdgcn-amd-amdhsa"

@shared = internal addrspace(3) global [32 x i16] poison

declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier()
declare half @llvm.fma.f16(half, half, half)
declare half @llvm.sqrt.f16(half)
declare half @llvm.fabs.f16(half)
declare i16 @llvm.smax.i16(i16, i16)

; Eight halves of a pair of them.
define amdgpu_kernel void @floats(ptr addrspace(1) noalias readonly %in, ptr addrspace(1) noalias %out) #0 {
  %id = call i32 @llvm.amdgcn.workitem.id.x()
  %from = getelementptr <2 x half>, ptr addrspace(1) %in, i32 %id
  %pair = load <2 x half>, ptr addrspace(1) %from
  %a = extractelement <2 x half> %pair, i32 0
  %b = extractelement <2 x half> %pair, i32 1
  %sum = fadd half %a, %b
  %product = fmul half %a, %b
  %fused = call half @llvm.fma.f16(half %b, half %b, half %a)
  %is_less = fcmp olt half %a, %b
  %smaller = select i1 %is_less, half %a, half %b
  %wide = fpext half %product to float
  %quarter = fmul float %wide, 0.25
  %plus = fadd float %quarter, 0x3FE0000000000000
  %narrow = fptrunc float %plus to half
  %square = fmul half %b, %b
  %root = call half @llvm.sqrt.f16(half %square)
  %difference = fsub half %b, %a
  %integer = fptosi half %product to i16
  %bits = bitcast i16 %integer to half
  %o0 = insertelement <8 x half> poison, half %product, i32 0
  %o1 = insertelement <8 x half> %o0, half %sum, i32 1
  %o2 = insertelement <8 x half> %o1, half %fused, i32 2
  %o3 = insertelement <8 x half> %o2, half %smaller, i32 3
  %o4 = insertelement <8 x half> %o3, half %narrow, i32 4
  %o5 = insertelement <8 x half> %o4, half %difference, i32 5
  %o6 = insertelement <8 x half> %o5, half %root, i32 6
  %o7 = insertelement <8 x half> %o6, half %bits, i32 7
  %to = getelementptr <8 x half>, ptr addrspace(1) %out, i32 %id
  store <8 x half> %o7, ptr addrspace(1) %to
  ret void
}

; Six integers of a pair of them, a byte, and the neighbour's sum; the second again, by itself.
define amdgpu_kernel void @integers(ptr addrspace(1) noalias readonly %in, ptr addrspace(1) noalias %out) #0 {
  %id = call i32 @llvm.amdgcn.workitem.id.x()
  %from = getelementptr i16, ptr addrspace(1) %in, i32 %id
  %a = load i16, ptr addrspace(1) %from
  %from_b = getelementptr i16, ptr addrspace(1) %from, i64 32
  %b = load i16, ptr addrspace(1) %from_b
  %from_byte = getelementptr i8, ptr addrspace(1) %from, i64 129
  %byte = load i8, ptr addrspace(1) %from_byte
  %signed = sext i8 %byte to i16
  %sum = add i16 %a, %b
  %own = getelementptr i16, ptr addrspace(3) @shared, i32 %id
  store i16 %sum, ptr addrspace(3) %own
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %other_id = xor i32 %id, 1
  %other = getelementptr i16, ptr addrspace(3) @shared, i32 %other_id
  %neighbour = load i16, ptr addrspace(3) %other
  %product = mul i16 %b, %signed
  %xor = xor i16 %product, %a
  %shifted = lshr i16 %xor, 3
  %negative = ashr i16 %signed, 2
  %below = icmp ult i16 %b, %product
  %chosen = select i1 %below, i16 %shifted, i16 %negative
  %most = call i16 @llvm.smax.i16(i16 %signed, i16 %a)
  %float = sitofp i16 %signed to half
  %bits = bitcast half %float to i16
  %o0 = insertelement <6 x i16> poison, i16 %product, i32 0
  %o1 = insertelement <6 x i16> %o0, i16 %shifted, i32 1
  %o2 = insertelement <6 x i16> %o1, i16 %chosen, i32 2
  %o3 = insertelement <6 x i16> %o2, i16 %neighbour, i32 3
  %o4 = insertelement <6 x i16> %o3, i16 %most, i32 4
  %o5 = insertelement <6 x i16> %o4, i16 %bits, i32 5
  %to = getelementptr [8 x i16], ptr addrspace(1) %out, i32 %id
  store <6 x i16> %o5, ptr addrspace(1) %to, align 4
  %behind = getelementptr i16, ptr addrspace(1) %to, i64 7
  store i16 %shifted, ptr addrspace(1) %behind
  ret void
}

attributes #0 = { nounwind "amdgpu-flat-work-group-size"="32,32" "uniform-work-group-size"="true" }
