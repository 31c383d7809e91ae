use amdgpu_device::prelude::*;

#[amdgpu_kernel]
pub extern "C" fn copy(n: u32) {
    let _ = n;
}

fn main() {}
