use amdgpu_device::prelude::*;

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
pub struct Matrix {
    pub rows: u32,
    pub elements: *const f32,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C, align(64))]
pub struct Line {
    pub bytes: [u8; 64],
}

#[amdgpu_kernel(launch(workgroup = 64))]
pub unsafe fn copy(matrix: Matrix, line: Line, to: *mut f32) {
    let _ = (matrix, line, to);
}

fn main() {}
