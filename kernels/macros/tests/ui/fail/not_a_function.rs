use amdgpu_device::prelude::*;

#[amdgpu_kernel]
pub struct Kernel;

fn main() {}
