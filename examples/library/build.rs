//! Compiles the kernels and generates their launch functions.

fn main() {
    amdgpu_build::build("kernels");
}
