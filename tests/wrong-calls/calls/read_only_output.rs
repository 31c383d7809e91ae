#![allow(dead_code)]

use candle_amdgpu::kernels::affine::affine_f32;
use candle_amdgpu::{DeviceBuffer, LaunchConfig, Layout, Stream};

fn launch(stream: &Stream, x: DeviceBuffer<f32>, y: DeviceBuffer<f32>) {
    let _ = affine_f32(stream, LaunchConfig::auto(), &Layout::flat(4), &x, &mut y.view(), 2.0, 0.5);
}

fn main() {}
