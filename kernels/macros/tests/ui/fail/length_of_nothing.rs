use amdgpu_device::prelude::*;

#[amdgpu_kernel]
pub unsafe fn unknown(#[len(count)] to: *mut f32) {
    let _ = to;
}

#[amdgpu_kernel]
pub unsafe fn pointer(#[len(to)] to: *mut f32) {
    let _ = to;
}

#[amdgpu_kernel]
pub unsafe fn formula(count: u32, #[len(count as usize)] to: *mut f32) {
    let _ = (count, to);
}

#[amdgpu_kernel]
pub fn value(#[len(1)] count: u32) {
    let _ = count;
}

fn main() {}
