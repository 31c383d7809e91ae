
define linkonce_odr hidden void @amdgpu_device_matrix_f32(ptr %sums, ptr %a, ptr %b) alwaysinline nounwind {
  unreachable
}

define linkonce_odr hidden void @amdgpu_device_matrix_f64(ptr %sums, ptr %a, ptr %b) alwaysinline nounwind {
  unreachable
}
