use amdgpu_device::prelude::*;

#[amdgpu_kernel(name = "copy_{T}", T in [core::primitive::f32])]
pub unsafe fn copy<T: Scalar>(from: *const T, to: *mut T) {
    let _ = (from, to);
}

fn main() {}
