use amdgpu_device::prelude::*;

#[amdgpu_kernel]
pub fn answer() -> u32 {
    42
}

fn main() {}
