//! A kernel that does not compile for the device.

#![no_std]

#[cfg(all(feature = "broken", target_arch = "amdgpu"))]
compile_error!("this kernel is broken on purpose");
