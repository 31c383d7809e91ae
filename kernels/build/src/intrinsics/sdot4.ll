
define linkonce_odr hidden i32 @amdgpu_device_dot4(i32 %a, i32 %b, i32 %c) alwaysinline nounwind {
  %sum = call i32 @llvm.amdgcn.sdot4(i32 %a, i32 %b, i32 %c, i1 false)
  ret i32 %sum
}

declare i32 @llvm.amdgcn.sdot4(i32, i32, i32, i1) nounwind memory(none)
