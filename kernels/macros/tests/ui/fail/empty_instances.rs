use amdgpu_device::prelude::*;

#[amdgpu_kernel(name = "copy_{T}", T in [])]
pub unsafe fn copy<T: Scalar>(from: *const T, to: *mut T) {
    let _ = (from, to);
}

fn main() {}
