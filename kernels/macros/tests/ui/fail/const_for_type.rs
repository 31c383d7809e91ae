use amdgpu_device::prelude::*;

#[amdgpu_kernel(name = "copy_{T}", const T in [4])]
pub unsafe fn copy<T: Scalar>(from: *const T, to: *mut T) {
    let _ = (from, to);
}

fn main() {}
