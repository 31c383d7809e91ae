
; The instruction takes 8 bytes a lane: half of them are 0.
define linkonce_odr hidden void @amdgpu_device_matrix_i8_16(ptr %sums, ptr %a, ptr %b) alwaysinline convergent nounwind {
  %av = load i32, ptr %a, align 4
  %bv = load i32, ptr %b, align 4
  %c = load <4 x i32>, ptr %sums, align 4
  %aw = zext i32 %av to i64
  %bw = zext i32 %bv to i64
  %d = call <4 x i32> @llvm.amdgcn.mfma.i32.16x16x32.i8(i64 %aw, i64 %bw, <4 x i32> %c, i32 0, i32 0, i32 0)
  store <4 x i32> %d, ptr %sums, align 4
  ret void
}

define linkonce_odr hidden void @amdgpu_device_matrix_i8_32(ptr %sums, ptr %a, ptr %b) alwaysinline convergent nounwind {
  %av = load i64, ptr %a, align 4
  %bv = load i64, ptr %b, align 4
  %c = load <4 x i32>, ptr %sums, align 4
  %d = call <4 x i32> @llvm.amdgcn.mfma.i32.16x16x32.i8(i64 %av, i64 %bv, <4 x i32> %c, i32 0, i32 0, i32 0)
  store <4 x i32> %d, ptr %sums, align 4
  ret void
}

declare <4 x i32> @llvm.amdgcn.mfma.i32.16x16x32.i8(i64, i64, <4 x i32>, i32 immarg, i32 immarg, i32 immarg)
