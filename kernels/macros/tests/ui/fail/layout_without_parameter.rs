use amdgpu_device::prelude::*;

#[amdgpu_kernel]
pub unsafe fn missing(
    numel: usize,
    #[layout(numel, num_dims, of(inp))] info: *const usize,
    inp: *const f32,
) {
    let _ = (numel, info, inp);
}

#[amdgpu_kernel]
pub unsafe fn no_pointer(
    numel: usize,
    num_dims: usize,
    #[layout(numel, num_dims, of(num_dims))] info: *const usize,
) {
    let _ = (numel, num_dims, info);
}

#[amdgpu_kernel]
pub unsafe fn no_layout(numel: usize, num_dims: usize, #[layout(numel, num_dims, of(inp))] info: usize, inp: *const f32) {
    let _ = (numel, num_dims, info, inp);
}

fn main() {}
