use amdgpu_device::prelude::*;

#[amdgpu_kernel(name = "copy_{T}")]
pub unsafe fn copy<T: Scalar>(from: *const T, to: *mut T) {
    let _ = (from, to);
}

#[amdgpu_kernel(name = "fill_{N}")]
pub unsafe fn fill<const N: usize>(to: *mut f32) {
    let _ = to;
}

fn main() {}
