use amdgpu_device::prelude::*;

#[amdgpu_kernel]
pub fn slice(out: &mut [f32]) {
    let _ = out;
}

#[amdgpu_kernel]
pub fn pair(pair: (f32, f32)) {
    let _ = pair;
}

fn main() {}
