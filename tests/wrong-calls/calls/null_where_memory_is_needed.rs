#![allow(dead_code)]

use candle_amdgpu::kernels::fill::copy2d_f32;
use candle_amdgpu::{DeviceBuffer, LaunchConfig, Null, Stream};

fn launch(stream: &Stream, mut y: DeviceBuffer<f32>) {
    let _ = copy2d_f32(stream, LaunchConfig::auto(), &Null, &mut y, 1, 4, 4, 4);
}

fn main() {}
