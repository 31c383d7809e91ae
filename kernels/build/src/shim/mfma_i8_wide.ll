
; Two instructions of 8 bytes a lane.
define linkonce_odr hidden void @amdgpu_device_matrix_i8(ptr %sums, ptr %a, ptr %b) alwaysinline convergent nounwind {
  %av = load <2 x i64>, ptr %a, align 4
  %bv = load <2 x i64>, ptr %b, align 4
  %c = load <4 x i32>, ptr %sums, align 4
  %a0 = extractelement <2 x i64> %av, i64 0
  %b0 = extractelement <2 x i64> %bv, i64 0
  %a1 = extractelement <2 x i64> %av, i64 1
  %b1 = extractelement <2 x i64> %bv, i64 1
  %d = call <4 x i32> @llvm.amdgcn.mfma.i32.16x16x32.i8(i64 %a0, i64 %b0, <4 x i32> %c, i32 0, i32 0, i32 0)
  %e = call <4 x i32> @llvm.amdgcn.mfma.i32.16x16x32.i8(i64 %a1, i64 %b1, <4 x i32> %d, i32 0, i32 0, i32 0)
  store <4 x i32> %e, ptr %sums, align 4
  ret void
}

declare <4 x i32> @llvm.amdgcn.mfma.i32.16x16x32.i8(i64, i64, <4 x i32>, i32 immarg, i32 immarg, i32 immarg)
