//! Compiles the kernels for each target and generates their launch wrappers: with checks in debug builds, and so in tests.

fn main() {
    amdgpu_build::Build::new("kernels")
        .checks(cfg!(debug_assertions))
        .run();
}
