
define linkonce_odr hidden zeroext i1 @amdgpu_device_has_matrix() alwaysinline nounwind {
  ret i1 false
}

; Never called, since who calls them asks first.
define linkonce_odr hidden void @amdgpu_device_matrix_f16(ptr %sums, ptr %a, ptr %b) alwaysinline nounwind {
  unreachable
}

define linkonce_odr hidden void @amdgpu_device_matrix_bf16(ptr %sums, ptr %a, ptr %b) alwaysinline nounwind {
  unreachable
}

define linkonce_odr hidden void @amdgpu_device_matrix_i8_16(ptr %sums, ptr %a, ptr %b) alwaysinline nounwind {
  unreachable
}

define linkonce_odr hidden void @amdgpu_device_matrix_i8_32(ptr %sums, ptr %a, ptr %b) alwaysinline nounwind {
  unreachable
}
