//! Compiles the kernels for each GPU and generates their launch wrappers.

fn main() {
    #[cfg(feature = "kernels")]
    amdgpu_build::build("kernels");
}
