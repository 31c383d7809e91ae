//! What the host pays for each operation: looking a kernel up, and a launch with nothing to do on the device.
//! `cargo bench --bench host`.

use candle_amdgpu::kernels::affine::affine_f32;
use candle_amdgpu::{AFFINE, Device, DeviceBuffer, LaunchConfig, Layout};
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;

fn lookups(c: &mut Criterion) {
    let device = Device::new(0).expect("a device");
    device.get_or_load_func("affine_f32", &AFFINE).expect("a kernel");
    c.bench_function("get_or_load_func, warm", |b| {
        b.iter(|| device.get_or_load_func(black_box("affine_f32"), &AFFINE));
    });
}

fn checks(c: &mut Criterion) {
    let stream = Device::new(0).and_then(|device| device.stream()).expect("a stream");
    let x = DeviceBuffer::<f32>::zeros(&stream, 0).expect("a buffer");
    let mut y = DeviceBuffer::<f32>::zeros(&stream, 0).expect("a buffer");
    let layout = Layout::flat(0);
    c.bench_function("a wrapper's checks, no elements", |b| {
        b.iter(|| affine_f32(&stream, LaunchConfig::auto(), black_box(&layout), &x, &mut y, 2.0, 1.0));
    });
}

/// What a launch costs the host while the device is idle most of the time: through the typed wrapper, and by the runtime's
/// function alone. The stream is waited for now and then, so that the device's queue does not fill up.
fn launches(c: &mut Criterion) {
    let stream = Device::new(0).and_then(|device| device.stream()).expect("a stream");
    let x = DeviceBuffer::<f32>::zeros(&stream, 256).expect("a buffer");
    let mut y = DeviceBuffer::<f32>::zeros(&stream, 256).expect("a buffer");
    let layout = Layout::flat(256);
    let each = |c: &mut Criterion, name: &str, mut launch: Box<dyn FnMut() + '_>| {
        let mut count = 0_u32;
        c.bench_function(name, |b| {
            b.iter(|| {
                launch();
                count += 1;
                if count.is_multiple_of(512) {
                    stream.synchronize().expect("the kernels are right");
                }
            });
        });
    };
    let function = stream.device().get_or_load_func("affine_f32", &AFFINE).expect("a kernel");
    let (mut numel, mut rank, mut info) = (256_usize, 1_usize, std::ptr::null::<usize>());
    let (mut from, mut to) = (x.as_ptr(), y.as_ptr());
    let (mut mul, mut add) = (2.0_f32, 1.0_f32);
    let raw = || {
        let mut params: [*mut std::ffi::c_void; 7] = [
            (&raw mut numel).cast(),
            (&raw mut rank).cast(),
            (&raw mut info).cast(),
            (&raw mut from).cast(),
            (&raw mut to).cast(),
            (&raw mut mul).cast(),
            (&raw mut add).cast(),
        ];
        // SAFETY: the arguments are the kernel's, and the memory has 256 elements.
        let code = unsafe {
            amdhip64::hipModuleLaunchKernel(
                function.as_raw(),
                1,
                1,
                1,
                256,
                1,
                1,
                0,
                stream.as_raw(),
                params.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        assert_eq!(code, 0);
    };
    each(c, "hipModuleLaunchKernel, 256 elements", Box::new(raw));
    let wrapper = || {
        affine_f32(&stream, LaunchConfig::auto(), black_box(&layout), &x, &mut y, 2.0, 1.0)
            .expect("a launch");
    };
    each(c, "a wrapper's launch, 256 elements", Box::new(wrapper));
}

criterion_group!(benches, lookups, checks, launches);
criterion_main!(benches);
