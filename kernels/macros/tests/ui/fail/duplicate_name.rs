use amdgpu_device::prelude::*;

#[amdgpu_kernel(name = "copy", T in [f32, f64])]
pub unsafe fn copy<T: Scalar>(from: *const T, to: *mut T) {
    let _ = (from, to);
}

#[amdgpu_kernel(name = "cast_{S}_{T}", S in [f32], T in [f16])]
#[amdgpu_kernel(name = "cast_{S}_{T}", S in [f32, f64], T in [f16])]
pub unsafe fn cast<S: Scalar, T: Scalar>(from: *const S, to: *mut T) {
    let _ = (from, to);
}

fn main() {}
