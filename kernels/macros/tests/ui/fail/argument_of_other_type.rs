use amdgpu_device::prelude::*;

pub struct Shape {
    pub rows: usize,
}

#[amdgpu_kernel]
pub unsafe fn copy(shape: Shape, to: *mut f32) {
    let _ = (shape, to);
}

#[amdgpu_kernel]
pub unsafe fn text(from: *const str) {
    let _ = from;
}

fn main() {}
