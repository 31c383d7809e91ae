
define linkonce_odr hidden zeroext i1 @amdgpu_device_has_matrix() alwaysinline nounwind {
  ret i1 true
}

; A lane has 64 bytes of its row of A and of B: two instructions of 16 elements.
define linkonce_odr hidden void @amdgpu_device_matrix_f16(ptr %sums, ptr %a, ptr %b) alwaysinline convergent nounwind {
  %a1 = getelementptr inbounds i8, ptr %a, i64 32
  %b1 = getelementptr inbounds i8, ptr %b, i64 32
  %av0 = load <16 x half>, ptr %a, align 4
  %bv0 = load <16 x half>, ptr %b, align 4
  %av1 = load <16 x half>, ptr %a1, align 4
  %bv1 = load <16 x half>, ptr %b1, align 4
  %c = load <8 x float>, ptr %sums, align 4
  %d = call <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v16f16(<16 x half> %av0, <16 x half> %bv0, <8 x float> %c)
  %e = call <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v16f16(<16 x half> %av1, <16 x half> %bv1, <8 x float> %d)
  store <8 x float> %e, ptr %sums, align 4
  ret void
}

define linkonce_odr hidden void @amdgpu_device_matrix_bf16(ptr %sums, ptr %a, ptr %b) alwaysinline convergent nounwind {
  %a1 = getelementptr inbounds i8, ptr %a, i64 32
  %b1 = getelementptr inbounds i8, ptr %b, i64 32
  %av0 = load <16 x i16>, ptr %a, align 4
  %bv0 = load <16 x i16>, ptr %b, align 4
  %av1 = load <16 x i16>, ptr %a1, align 4
  %bv1 = load <16 x i16>, ptr %b1, align 4
  %c = load <8 x float>, ptr %sums, align 4
  %d = call <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.bf16.v8f32.v16i16(<16 x i16> %av0, <16 x i16> %bv0, <8 x float> %c)
  %e = call <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.bf16.v8f32.v16i16(<16 x i16> %av1, <16 x i16> %bv1, <8 x float> %d)
  store <8 x float> %e, ptr %sums, align 4
  ret void
}

declare <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v16f16(<16 x half>, <16 x half>, <8 x float>)
declare <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.bf16.v8f32.v16i16(<16 x i16>, <16 x i16>, <8 x float>)

define linkonce_odr hidden void @amdgpu_device_matrix_i8_16(ptr %sums, ptr %a, ptr %b) alwaysinline convergent nounwind {
  %av = load <4 x i32>, ptr %a, align 4
  %bv = load <4 x i32>, ptr %b, align 4
  %c = load <8 x i32>, ptr %sums, align 4
  %d = call <8 x i32> @llvm.amdgcn.wmma.i32.16x16x16.iu8.v8i32.v4i32(i1 true, <4 x i32> %av, i1 true, <4 x i32> %bv, <8 x i32> %c, i1 false)
  store <8 x i32> %d, ptr %sums, align 4
  ret void
}

; Two instructions of 16 bytes.
define linkonce_odr hidden void @amdgpu_device_matrix_i8_32(ptr %sums, ptr %a, ptr %b) alwaysinline convergent nounwind {
  %a1 = getelementptr inbounds i8, ptr %a, i64 16
  %b1 = getelementptr inbounds i8, ptr %b, i64 16
  call void @amdgpu_device_matrix_i8_16(ptr %sums, ptr %a, ptr %b)
  call void @amdgpu_device_matrix_i8_16(ptr %sums, ptr %a1, ptr %b1)
  ret void
}

declare <8 x i32> @llvm.amdgcn.wmma.i32.16x16x16.iu8.v8i32.v4i32(i1 immarg, <4 x i32>, i1 immarg, <4 x i32>, <8 x i32>, i1 immarg)
