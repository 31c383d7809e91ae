//! Emulated devices for tests.

use candle_amdgpu::{Device, Stream};
use std::sync::OnceLock;

/// The targets that every kernel is tested on.
#[allow(dead_code)]
pub const ARCHS: [&str; 3] = ["gfx1030", "gfx1100", "gfx90a"];

/// The device of a target: an emulated one, unless `CANDLE_AMDGPU_DEVICE` says otherwise.
pub fn device(arch: &str) -> Device {
    static CHOSEN: OnceLock<()> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        if std::env::var_os(amdhip64::DEVICE_VARIABLE).is_none() {
            amdhip64::choose("emulator").expect("no test has used a device yet");
        }
    });
    Device::of_arch(arch).expect("all three targets are emulated")
}

/// A new stream on the device of a target.
#[allow(dead_code)]
pub fn stream(arch: &str) -> Stream {
    device(arch).stream().expect("a stream")
}
