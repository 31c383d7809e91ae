
define linkonce_odr hidden void @amdgpu_device_matrix_i8_16(ptr %sums, ptr %a, ptr %b) alwaysinline convergent nounwind {
  %av = load i32, ptr %a, align 4
  %bv = load i32, ptr %b, align 4
  %c = load <4 x i32>, ptr %sums, align 4
  %d = call <4 x i32> @llvm.amdgcn.mfma.i32.16x16x16i8(i32 %av, i32 %bv, <4 x i32> %c, i32 0, i32 0, i32 0)
  store <4 x i32> %d, ptr %sums, align 4
  ret void
}

; Two instructions of 4 bytes a lane.
define linkonce_odr hidden void @amdgpu_device_matrix_i8_32(ptr %sums, ptr %a, ptr %b) alwaysinline convergent nounwind {
  %a1 = getelementptr inbounds i8, ptr %a, i64 4
  %b1 = getelementptr inbounds i8, ptr %b, i64 4
  call void @amdgpu_device_matrix_i8_16(ptr %sums, ptr %a, ptr %b)
  call void @amdgpu_device_matrix_i8_16(ptr %sums, ptr %a1, ptr %b1)
  ret void
}

declare <4 x i32> @llvm.amdgcn.mfma.i32.16x16x16i8(i32, i32, <4 x i32>, i32 immarg, i32 immarg, i32 immarg)
