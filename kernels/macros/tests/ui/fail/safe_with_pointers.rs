use amdgpu_device::prelude::*;

#[amdgpu_kernel(name = "copy_{T}", T in [f32])]
pub fn copy<T: Scalar>(count: usize, from: *const T, to: *mut T) {
    let _ = (count, from, to);
}

fn main() {}
