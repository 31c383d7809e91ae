
; Two v_fma_mix_f32: the CDNA targets' v_dot2_f32_f16 takes subnormal numbers as zeros.
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

declare float @llvm.fma.f32(float, float, float)
