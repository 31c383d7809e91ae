//! Matrix products in the emulator's check mode, with waves in shuffled order: no lane reads workgroup memory that
//! another has not finished writing; check mode would notice.

mod common;

use candle_amdgpu::{Device, DeviceBuffer, Element, Error, Function, GEMM, Kernel, LaunchConfig, f16};
use candle_amdgpu_verify::{Options, family, verify_all};
use common::{alone, set_check_mode};

#[test]
fn all_kernels_agree_with_the_model_in_check_mode() {
    let _alone = alone();
    let gemm = family("gemm").unwrap();
    for arch in common::ARCHS {
        let device = common::device(arch);
        set_check_mode(&device, true);
        let jobs: Vec<_> = GEMM.kernels().iter().map(|kernel| (gemm, kernel, &device)).collect();
        let outcomes = verify_all(&jobs, Options { fixed: true, cases: 2, seed: 5 }, &|_| {}).unwrap();
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
            common::assert_each_barrier_is_needed(&device, name, object, |object| {
                launch(&device, kernel, object)
            });
        }
    }
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
