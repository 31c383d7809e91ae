
; Without v_dot4: four products of sign-extended bytes.
define linkonce_odr hidden i32 @amdgpu_device_dot4(i32 %a, i32 %b, i32 %c) alwaysinline nounwind {
  %av = bitcast i32 %a to <4 x i8>
  %bv = bitcast i32 %b to <4 x i8>
  %aw = sext <4 x i8> %av to <4 x i32>
  %bw = sext <4 x i8> %bv to <4 x i32>
  %products = mul <4 x i32> %aw, %bw
  %dot = call i32 @llvm.vector.reduce.add.v4i32(<4 x i32> %products)
  %sum = add i32 %dot, %c
  ret i32 %sum
}

declare i32 @llvm.vector.reduce.add.v4i32(<4 x i32>)
