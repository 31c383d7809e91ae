use amdgpu_device::prelude::*;

#[amdgpu_kernel(name = "copy_{T}", T in [f32], U in [f32])]
pub unsafe fn copy<T: Scalar>(from: *const T, to: *mut T) {
    let _ = (from, to);
}

fn main() {}
