
; Four instructions of 4 bytes a lane.
define linkonce_odr hidden void @amdgpu_device_matrix_i8(ptr %sums, ptr %a, ptr %b) alwaysinline convergent nounwind {
  %av = load <4 x i32>, ptr %a, align 4
  %bv = load <4 x i32>, ptr %b, align 4
  %c = load <4 x i32>, ptr %sums, align 4
  %a0 = extractelement <4 x i32> %av, i64 0
  %b0 = extractelement <4 x i32> %bv, i64 0
  %a1 = extractelement <4 x i32> %av, i64 1
  %b1 = extractelement <4 x i32> %bv, i64 1
  %a2 = extractelement <4 x i32> %av, i64 2
  %b2 = extractelement <4 x i32> %bv, i64 2
  %a3 = extractelement <4 x i32> %av, i64 3
  %b3 = extractelement <4 x i32> %bv, i64 3
  %d = call <4 x i32> @llvm.amdgcn.mfma.i32.16x16x16i8(i32 %a0, i32 %b0, <4 x i32> %c, i32 0, i32 0, i32 0)
  %e = call <4 x i32> @llvm.amdgcn.mfma.i32.16x16x16i8(i32 %a1, i32 %b1, <4 x i32> %d, i32 0, i32 0, i32 0)
  %f = call <4 x i32> @llvm.amdgcn.mfma.i32.16x16x16i8(i32 %a2, i32 %b2, <4 x i32> %e, i32 0, i32 0, i32 0)
  %g = call <4 x i32> @llvm.amdgcn.mfma.i32.16x16x16i8(i32 %a3, i32 %b3, <4 x i32> %f, i32 0, i32 0, i32 0)
  store <4 x i32> %g, ptr %sums, align 4
  ret void
}

declare <4 x i32> @llvm.amdgcn.mfma.i32.16x16x16i8(i32, i32, <4 x i32>, i32 immarg, i32 immarg, i32 immarg)
