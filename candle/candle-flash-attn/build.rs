//! Compiles the kernels for each target and generates their launch wrappers.

fn main() {
    amdgpu_build::build("kernels");
}
