//! Emulated devices for tests.

use amdhip64::BackendKind;
use candle_amdgpu::{CodeObject, Device, Result, Stream};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The targets that every kernel is tested on.
#[allow(dead_code)]
pub const ARCHS: [&str; 3] = ["gfx1030", "gfx1100", "gfx90a"];

/// The device of a target: an emulated one, unless `CANDLE_AMDGPU_DEVICE` says otherwise. NVIDIA GPUs stand for all targets, AMD's
/// for those that no card is of.
pub fn device(arch: &str) -> Device {
    static CHOSEN: OnceLock<()> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        if std::env::var_os(amdhip64::DEVICE_VARIABLE).is_none() {
            amdhip64::choose("emulator").expect("no test has used a device yet");
        }
    });
    match amdhip64::backend_info().expect("there are devices").kind {
        BackendKind::Cuda { .. } => Device::new(0).expect("there is a GPU"),
        BackendKind::Hip { .. } => Device::of_arch(arch).or_else(|_| Device::new(0)).expect("there is a GPU"),
        _ => Device::of_arch(arch).expect("all three targets are emulated"),
    }
}

/// A new stream on the device of a target.
#[allow(dead_code)]
pub fn stream(arch: &str) -> Stream {
    device(arch).stream().expect("a stream")
}

/// Launch options belong to the process, and an error goes to the next synchronisation: tests that change options or cause
/// errors have the devices to themselves.
#[allow(dead_code)]
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a device is emulated, so that there is a check mode and a report of each instruction.
#[allow(dead_code)]
pub fn is_emulated(device: &Device) -> bool {
    amdhip64::emulator(device.ordinal()).is_some()
}

/// Turns the emulator's check mode, with waves in shuffled order, on or off. A card has none.
#[allow(dead_code)]
pub fn set_check_mode(device: &Device, on: bool) {
    if !is_emulated(device) {
        return;
    }
    let mut options = amdhip64::launch_options(device.ordinal()).unwrap();
    (options.check, options.shuffle) = (on, on.then_some(17));
    amdhip64::set_launch_options(device.ordinal(), options).unwrap();
}

/// Launches a kernel's code object as it is, and without each of the barriers that it executes, which must be at least two:
/// check mode must find nothing in the former, and a fault in each of the latter.
#[allow(dead_code)]
pub fn assert_each_barrier_is_needed(
    device: &Device,
    name: &str,
    object: &[u8],
    launch: impl Fn(&[u8]) -> Result<()>,
) {
    let barriers = barriers(device, || launch(object));
    assert!(barriers.len() >= 2, "{name} on {device} has barriers at {barriers:?}");
    set_check_mode(device, true);
    let whole = launch(object);
    let broken: Vec<_> = barriers.iter().map(|&at| launch(&without_barrier(object, at))).collect();
    set_check_mode(device, false);
    assert_eq!(whole, Ok(()), "{name} on {device}");
    for (at, result) in barriers.iter().zip(broken) {
        let text = result.err().map_or_else(|| "no error".to_owned(), |error| error.to_string());
        let races = text.contains("races with") && text.contains("\n  the other access at 0x");
        let noticed = races || text.contains("uninitialised LDS");
        assert!(noticed, "{name} on {device} without its barrier at {at:#x}: {text}");
    }
}

/// Addresses of the barriers that a launch executes.
#[allow(dead_code)]
fn barriers(device: &Device, launch: impl Fn() -> Result<()>) -> Vec<usize> {
    amdhip64::set_profile(device.ordinal(), true).unwrap();
    launch().unwrap();
    let record = amdhip64::take_profile(device.ordinal()).unwrap().pop().unwrap();
    amdhip64::set_profile(device.ordinal(), false).unwrap();
    let profile = record.report.profile.unwrap();
    let barriers =
        profile.instructions.iter().filter(|instruction| instruction.text.starts_with("s_barrier"));
    barriers.map(|instruction| instruction.pc as usize).collect()
}

/// The code object with `s_nop` in place of an instruction.
#[allow(dead_code)]
fn without_barrier(object: &[u8], at: usize) -> Vec<u8> {
    const S_NOP: [u8; 4] = [0, 0, 0x80, 0xbf];
    let code = CodeObject::parse(object).unwrap();
    // Kernels can have the same code: which of its places in the image it is, that it is in the file.
    let around = &code.image()[at - 64..at + 64];
    let places = |bytes: &[u8]| -> Vec<usize> {
        (0..bytes.len() - 127).filter(|&i| bytes[i..i + 128] == *around).collect()
    };
    let number = places(code.image()).iter().position(|&place| place == at - 64).unwrap();
    let place = places(object)[number] + 64;
    let mut patched = object.to_vec();
    patched[place..place + 4].copy_from_slice(&S_NOP);
    patched
}
