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

criterion_group!(benches, lookups, checks);
criterion_main!(benches);
