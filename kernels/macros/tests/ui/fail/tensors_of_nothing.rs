use amdgpu_device::prelude::*;

#[amdgpu_kernel]
pub unsafe fn no_pointer(n: usize, #[tensors(n[a, b])] info: *const usize) {
    let _ = (n, info);
}

#[amdgpu_kernel]
pub unsafe fn name_of_a_parameter(n: usize, x: *const f32, #[tensors(x[n])] info: *const usize) {
    let _ = (n, x, info);
}

#[amdgpu_kernel]
pub unsafe fn counted_by_nothing(x: *const f32, #[tensors(x[..rank])] info: *const usize) {
    let _ = (x, info);
}

#[amdgpu_kernel]
pub unsafe fn along_nothing(n: usize, x: *const f32, #[along(n, of(x))] info: *const usize) {
    let _ = (n, x, info);
}

#[amdgpu_kernel]
pub unsafe fn no_comparison(n: usize, #[requires(n + 1)] x: *const f32) {
    let _ = (n, x);
}

#[amdgpu_kernel]
pub unsafe fn value_of_a_pointer(n: usize, #[value(n)] x: *const f32) {
    let _ = (n, x);
}

#[amdgpu_kernel(launch(items = x.numel()))]
pub unsafe fn items_of_a_tensor(n: usize, x: *const f32, #[tensors(x[..n])] info: *const usize) {
    let _ = (n, x, info);
}

fn main() {}
