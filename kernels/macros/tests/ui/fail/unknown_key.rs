use amdgpu_device::prelude::*;

#[amdgpu_kernel(names = "copy")]
pub unsafe fn copy(to: *mut f32) {
    let _ = to;
}

#[amdgpu_kernel(launch(blocks = 4))]
pub unsafe fn other(to: *mut f32) {
    let _ = to;
}

#[amdgpu_kernel(launch(items = n, items = n))]
pub unsafe fn twice(n: usize, to: *mut f32) {
    let _ = (n, to);
}

fn main() {}
