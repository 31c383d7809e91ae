use amdgpu_device::prelude::*;

#[amdgpu_kernel(launch(workgroup = 512, max_workgroup = 256))]
pub unsafe fn copy(to: *mut f32) {
    let _ = to;
}

fn main() {}
