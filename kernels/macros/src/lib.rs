//! The attribute `#[amdgpu_kernel]`.
