use amdgpu_device::prelude::*;

#[amdgpu_kernel(launch(items = n, grid = [n]))]
pub unsafe fn copy(n: usize, to: *mut f32) {
    let _ = (n, to);
}

fn main() {}
