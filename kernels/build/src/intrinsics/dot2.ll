
; v_dot2_f32_f16: two fused multiply-adds, the lower half first.
define linkonce_odr hidden float @amdgpu_device_dot2_f16(i32 %a, i32 %b, float %sum) alwaysinline nounwind {
  %av = bitcast i32 %a to <2 x half>
  %bv = bitcast i32 %b to <2 x half>
  %dot = call float @llvm.amdgcn.fdot2(<2 x half> %av, <2 x half> %bv, float %sum, i1 false)
  ret float %dot
}

declare float @llvm.amdgcn.fdot2(<2 x half>, <2 x half>, float, i1)
