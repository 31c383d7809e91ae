//! Matrix products in the emulator's check mode, with waves in shuffled order: no lane reads workgroup memory that
//! another has not finished to write, and check mode would notice.

mod common;

use candle_amdgpu::verify::{Options, family, verify_all};
use candle_amdgpu::{
    CodeObject, Device, DeviceBuffer, Element, Error, Function, GEMM, Kernel, LaunchConfig, f16,
};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The options of a device are the process's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn set_check_mode(device: &Device, on: bool) {
    let mut options = amdhip64::launch_options(device.ordinal()).unwrap();
    (options.check, options.shuffle) = (on, on.then_some(17));
    amdhip64::set_launch_options(device.ordinal(), options).unwrap();
}

#[test]
fn all_kernels_agree_with_the_model_in_check_mode() {
    let _alone = alone();
    let gemm = family("gemm").unwrap();
    for arch in common::ARCHS {
        let device = common::device(arch);
        set_check_mode(&device, true);
        let jobs: Vec<_> = GEMM.kernels().iter().map(|kernel| (gemm, kernel, &device)).collect();
        let outcomes = verify_all(&jobs, Options { cases: 2, seed: 5 }, &|_| {}).unwrap();
        set_check_mode(&device, false);
        for outcome in outcomes {
            assert_eq!(outcome.failure, None, "{} on {arch}", outcome.kernel);
        }
    }
}

#[test]
fn every_missing_barrier_is_noticed() {
    let _alone = alone();
    for arch in common::ARCHS {
        let device = common::device(arch);
        for name in ["gemm_f16_64x64", "gemm_f32_64x64", "gemm_plain_f16", "gemv_f32_across"] {
            let kernel = GEMM.kernel(name).unwrap();
            let object = GEMM.object(arch).unwrap().bytes;
            let barriers = barriers(&device, kernel, object);
            assert!(barriers.len() >= 2, "{name} on {arch} has barriers at {barriers:?}");
            set_check_mode(&device, true);
            let whole = launch(&device, kernel, object);
            let broken = barriers.iter().map(|&at| launch(&device, kernel, &without_barrier(object, at)));
            let broken: Vec<_> = broken.collect();
            set_check_mode(&device, false);
            assert_eq!(whole, Ok(()), "{name} on {arch}");
            for (at, result) in barriers.iter().zip(broken) {
                let text = result.err().map_or_else(|| "no error".to_owned(), |error| error.to_string());
                let noticed = text.contains("races with") || text.contains("uninitialised LDS");
                assert!(noticed, "{name} on {arch} without its barrier at {at:#x}: {text}");
            }
        }
    }
}

/// Addresses of the barriers that a launch executes.
fn barriers(device: &Device, kernel: &'static Kernel, object: &[u8]) -> Vec<usize> {
    amdhip64::set_profile(device.ordinal(), true).unwrap();
    launch(device, kernel, object).unwrap();
    let record = amdhip64::take_profile(device.ordinal()).unwrap().pop().unwrap();
    amdhip64::set_profile(device.ordinal(), false).unwrap();
    let profile = record.report.profile.unwrap();
    let barriers =
        profile.instructions.iter().filter(|instruction| instruction.text.starts_with("s_barrier"));
    barriers.map(|instruction| instruction.pc as usize).collect()
}

/// The code object with `s_nop` in place of an instruction.
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

/// Several steps along k and, for one workgroup, several tiles. An odd number of steps: the last one then reads the half
/// of the memory that the next tile begins with.
fn launch(device: &Device, kernel: &'static Kernel, object: &[u8]) -> Result<(), Error> {
    let function = device.load_code_object("gemm", object)?.function(kernel.name)?;
    match kernel.args[5].ty.element() {
        "f16" => launch_of::<f16>(device, kernel, &function),
        _ => launch_of::<f32>(device, kernel, &function),
    }
}

fn launch_of<T: Element>(device: &Device, kernel: &'static Kernel, function: &Function) -> Result<(), Error> {
    let stream = device.stream()?;
    let (m, n, k) = (130, if kernel.name.starts_with("gemv") { 1 } else { 70 }, 70);
    let (a, b) = (DeviceBuffer::<T>::zeros(&stream, m * k)?, DeviceBuffer::<T>::zeros(&stream, n * k)?);
    let mut c = DeviceBuffer::<T>::zeros(&stream, m * n)?;
    let config = LaunchConfig::explicit([1; 3], kernel.geometry.workgroup, kernel.geometry.lds_bytes);
    let launch = function.launch_builder(&stream);
    let launch = [m, n, k, 1].into_iter().fold(launch, |launch, size| launch.value(size)).value(1.0_f32);
    let launch = [1, m, 0].into_iter().fold(launch.memory(&a), |launch, stride| launch.value(stride));
    let launch = [1, n, 0].into_iter().fold(launch.memory(&b), |launch, stride| launch.value(stride));
    let launch = launch.value(0.0_f32).memory_mut(&mut c).value(1_usize).value(m).value(0_usize);
    // SAFETY: these are the kernel's parameters, and the buffers hold the matrices
    unsafe { launch.launch(config)? };
    stream.synchronize()
}
