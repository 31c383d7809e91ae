//! Compiles the kernels and generates their launch functions: with checks in debug builds, and so in tests.

fn main() {
    amdgpu_build::Build::new("kernels")
        .checks(cfg!(debug_assertions))
        .run();
}
