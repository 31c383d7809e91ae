use amdgpu_device::prelude::*;

#[amdgpu_kernel(name = "copy_{U}", T in [f32])]
pub unsafe fn copy<T: Scalar>(from: *const T, to: *mut T) {
    let _ = (from, to);
}

#[amdgpu_kernel(name = "no-name")]
pub unsafe fn other(to: *mut f32) {
    let _ = to;
}

fn main() {}
