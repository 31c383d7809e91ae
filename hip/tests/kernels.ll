; Kernels for the tests of launches. LLVM IR, because it compiles for every target and needs no headers.
target triple = "amdgcn-amd-amdhsa"

@dynamic = external addrspace(3) global [0 x i32], align 16
@fixed = internal addrspace(3) global [10240 x i32] poison, align 16
@table = addrspace(1) externally_initialized global [4 x i32] [i32 10, i32 20, i32 30, i32 40], align 16

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare void @llvm.amdgcn.s.barrier()
declare void @llvm.trap()
declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()

; out[i] = in[i] * mul + add, for workgroups of `block` work-items.
define amdgpu_kernel void @affine(i64 %n, i32 %block, ptr addrspace(1) %in, ptr addrspace(1) %out, float %mul, float %add) #0 {
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %item = call i32 @llvm.amdgcn.workitem.id.x()
  %start = mul i32 %group, %block
  %index = add i32 %start, %item
  %i = zext i32 %index to i64
  %inside = icmp ult i64 %i, %n
  br i1 %inside, label %work, label %done
work:
  %from = getelementptr float, ptr addrspace(1) %in, i64 %i
  %to = getelementptr float, ptr addrspace(1) %out, i64 %i
  %x = load float, ptr addrspace(1) %from, align 4
  %scaled = fmul float %x, %mul
  %y = fadd float %scaled, %add
  store float %y, ptr addrspace(1) %to, align 4
  br label %done
done:
  ret void
}

; Arguments of every size: out = a + b + c + d, as f64.
define amdgpu_kernel void @mixed(i8 %a, i16 %b, double %c, float %d, ptr addrspace(1) %out) #0 {
  %a64 = uitofp i8 %a to double
  %b64 = uitofp i16 %b to double
  %d64 = fpext float %d to double
  %ab = fadd double %a64, %b64
  %abc = fadd double %ab, %c
  %abcd = fadd double %abc, %d64
  store double %abcd, ptr addrspace(1) %out, align 8
  ret void
}

; Writes one word anywhere.
define amdgpu_kernel void @poke(ptr addrspace(1) %at, i64 %offset, i32 %value) #0 {
  %to = getelementptr i32, ptr addrspace(1) %at, i64 %offset
  store i32 %value, ptr addrspace(1) %to, align 4
  ret void
}

; Reverses 64 words through launch-sized LDS.
define amdgpu_kernel void @reverse(ptr addrspace(1) %data) #0 {
  %item = call i32 @llvm.amdgcn.workitem.id.x()
  %global = getelementptr i32, ptr addrspace(1) %data, i32 %item
  %x = load i32, ptr addrspace(1) %global, align 4
  %mine = getelementptr i32, ptr addrspace(3) @dynamic, i32 %item
  store i32 %x, ptr addrspace(3) %mine, align 4
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %mirror = sub i32 63, %item
  %theirs = getelementptr i32, ptr addrspace(3) @dynamic, i32 %mirror
  %y = load i32, ptr addrspace(3) %theirs, align 4
  store i32 %y, ptr addrspace(1) %global, align 4
  ret void
}

; Copies the module's variable.
define amdgpu_kernel void @read_table(ptr addrspace(1) %out) #0 {
  %all = load <4 x i32>, ptr addrspace(1) @table, align 16
  store <4 x i32> %all, ptr addrspace(1) %out, align 16
  ret void
}

; 40 KiB of LDS of its own, in workgroups of at most 64.
define amdgpu_kernel void @greedy(ptr addrspace(1) %out) #1 {
  %item = call i32 @llvm.amdgcn.workitem.id.x()
  %mine = getelementptr i32, ptr addrspace(3) @fixed, i32 %item
  store volatile i32 %item, ptr addrspace(3) %mine, align 4
  %x = load volatile i32, ptr addrspace(3) %mine, align 4
  %to = getelementptr i32, ptr addrspace(1) %out, i32 %item
  store i32 %x, ptr addrspace(1) %to, align 4
  ret void
}

; 88 scalar registers and on gfx90a 4 that the compiler adds.
define amdgpu_kernel void @scalars() #0 {
  call void asm sideeffect "", "~{s87}"()
  ret void
}

define amdgpu_kernel void @abort() #0 {
  call void @llvm.trap()
  unreachable
}

define amdgpu_kernel void @forever() #0 {
  br label %loop
loop:
  br label %loop
}

; data[group] = group + 1; behind a barrier of all workgroups, out[group] = the sum of data. The barrier is that of AMD's
; device library: a word at 32 of what the hidden argument at 88 points to, and the number of workgroups at 40.
define amdgpu_kernel void @grid_sum(ptr addrspace(1) %data, ptr addrspace(1) %out) #0 {
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %mine = getelementptr i32, ptr addrspace(1) %data, i32 %group
  %value = add i32 %group, 1
  store i32 %value, ptr addrspace(1) %mine, align 4
  %implicit = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %hidden = getelementptr i8, ptr addrspace(4) %implicit, i64 88
  %info = load ptr addrspace(1), ptr addrspace(4) %hidden, align 8
  %word = getelementptr i8, ptr addrspace(1) %info, i64 32
  %number = getelementptr i8, ptr addrspace(1) %info, i64 40
  %groups = load i32, ptr addrspace(1) %number, align 4
  fence syncscope("agent") release
  %old = atomicrmw add ptr addrspace(1) %word, i32 1 syncscope("agent") monotonic
  %come = and i32 %old, 65535
  %others = sub i32 %groups, 1
  %is_last = icmp eq i32 %come, %others
  br i1 %is_last, label %open, label %wait
open:
  %next = sub i32 65536, %groups
  %unused = atomicrmw add ptr addrspace(1) %word, i32 %next syncscope("agent") monotonic
  br label %passed
wait:
  %now = load atomic i32, ptr addrspace(1) %word syncscope("agent") monotonic, align 4
  %changed = xor i32 %now, %old
  %is_same = icmp ult i32 %changed, 65536
  br i1 %is_same, label %wait, label %passed
passed:
  fence syncscope("agent") acquire
  br label %add
add:
  %at = phi i32 [ 0, %passed ], [ %after, %add ]
  %sum = phi i32 [ 0, %passed ], [ %more, %add ]
  %from = getelementptr i32, ptr addrspace(1) %data, i32 %at
  %x = load i32, ptr addrspace(1) %from, align 4
  %more = add i32 %sum, %x
  %after = add i32 %at, 1
  %is_done = icmp eq i32 %after, %groups
  br i1 %is_done, label %done, label %add
done:
  %to = getelementptr i32, ptr addrspace(1) %out, i32 %group
  store i32 %more, ptr addrspace(1) %to, align 4
  ret void
}

define amdgpu_kernel void @nothing() #0 {
  ret void
}

attributes #0 = { nounwind "amdgpu-flat-work-group-size"="1,1024" }
attributes #1 = { nounwind "amdgpu-flat-work-group-size"="1,64" }

!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}
