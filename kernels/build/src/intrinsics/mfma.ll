
define linkonce_odr hidden zeroext i1 @amdgpu_device_has_matrix() alwaysinline nounwind {
  ret i1 true
}

; A lane has one chunk of its row of A and of B. The lanes of a row share k among them in any way, if only A and B agree.
define linkonce_odr hidden void @amdgpu_device_matrix_f16(ptr %sums, ptr %a, ptr %b) alwaysinline convergent nounwind {
  %av = load <8 x half>, ptr %a, align 4
  %bv = load <8 x half>, ptr %b, align 4
  %c = load <4 x float>, ptr %sums, align 4
  %a0 = shufflevector <8 x half> %av, <8 x half> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %b0 = shufflevector <8 x half> %bv, <8 x half> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %a1 = shufflevector <8 x half> %av, <8 x half> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %b1 = shufflevector <8 x half> %bv, <8 x half> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %d = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16(<4 x half> %a0, <4 x half> %b0, <4 x float> %c, i32 0, i32 0, i32 0)
  %e = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16(<4 x half> %a1, <4 x half> %b1, <4 x float> %d, i32 0, i32 0, i32 0)
  store <4 x float> %e, ptr %sums, align 4
  ret void
}

define linkonce_odr hidden void @amdgpu_device_matrix_bf16(ptr %sums, ptr %a, ptr %b) alwaysinline convergent nounwind {
  %av = load <8 x i16>, ptr %a, align 4
  %bv = load <8 x i16>, ptr %b, align 4
  %c = load <4 x float>, ptr %sums, align 4
  %a0 = shufflevector <8 x i16> %av, <8 x i16> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %b0 = shufflevector <8 x i16> %bv, <8 x i16> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %a1 = shufflevector <8 x i16> %av, <8 x i16> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %b1 = shufflevector <8 x i16> %bv, <8 x i16> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %d = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x16bf16.1k(<4 x i16> %a0, <4 x i16> %b0, <4 x float> %c, i32 0, i32 0, i32 0)
  %e = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x16bf16.1k(<4 x i16> %a1, <4 x i16> %b1, <4 x float> %d, i32 0, i32 0, i32 0)
  store <4 x float> %e, ptr %sums, align 4
  ret void
}

define linkonce_odr hidden void @amdgpu_device_matrix_f32(ptr %sums, ptr %a, ptr %b) alwaysinline convergent nounwind {
  %av = load <4 x float>, ptr %a, align 4
  %bv = load <4 x float>, ptr %b, align 4
  %c = load <4 x float>, ptr %sums, align 4
  %a0 = extractelement <4 x float> %av, i64 0
  %b0 = extractelement <4 x float> %bv, i64 0
  %a1 = extractelement <4 x float> %av, i64 1
  %b1 = extractelement <4 x float> %bv, i64 1
  %a2 = extractelement <4 x float> %av, i64 2
  %b2 = extractelement <4 x float> %bv, i64 2
  %a3 = extractelement <4 x float> %av, i64 3
  %b3 = extractelement <4 x float> %bv, i64 3
  %d = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x4f32(float %a0, float %b0, <4 x float> %c, i32 0, i32 0, i32 0)
  %e = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x4f32(float %a1, float %b1, <4 x float> %d, i32 0, i32 0, i32 0)
  %f = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x4f32(float %a2, float %b2, <4 x float> %e, i32 0, i32 0, i32 0)
  %g = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x4f32(float %a3, float %b3, <4 x float> %f, i32 0, i32 0, i32 0)
  store <4 x float> %g, ptr %sums, align 4
  ret void
}

define linkonce_odr hidden void @amdgpu_device_matrix_f64(ptr %sums, ptr %a, ptr %b) alwaysinline convergent nounwind {
  %av = load <2 x double>, ptr %a, align 4
  %bv = load <2 x double>, ptr %b, align 4
  %c = load <4 x double>, ptr %sums, align 8
  %a0 = extractelement <2 x double> %av, i64 0
  %b0 = extractelement <2 x double> %bv, i64 0
  %a1 = extractelement <2 x double> %av, i64 1
  %b1 = extractelement <2 x double> %bv, i64 1
  %d = call <4 x double> @llvm.amdgcn.mfma.f64.16x16x4f64(double %a0, double %b0, <4 x double> %c, i32 0, i32 0, i32 0)
  %e = call <4 x double> @llvm.amdgcn.mfma.f64.16x16x4f64(double %a1, double %b1, <4 x double> %d, i32 0, i32 0, i32 0)
  store <4 x double> %e, ptr %sums, align 8
  ret void
}

declare <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16(<4 x half>, <4 x half>, <4 x float>, i32 immarg, i32 immarg, i32 immarg)
declare <4 x float> @llvm.amdgcn.mfma.f32.16x16x16bf16.1k(<4 x i16>, <4 x i16>, <4 x float>, i32 immarg, i32 immarg, i32 immarg)
declare <4 x float> @llvm.amdgcn.mfma.f32.16x16x4f32(float, float, <4 x float>, i32 immarg, i32 immarg, i32 immarg)
declare <4 x double> @llvm.amdgcn.mfma.f64.16x16x4f64(double, double, <4 x double>, i32 immarg, i32 immarg, i32 immarg)
