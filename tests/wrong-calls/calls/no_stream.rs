#![allow(dead_code)]

use candle_amdgpu::kernels::fill::fill_f32;
use candle_amdgpu::{DeviceBuffer, LaunchConfig, Stream};

fn launch(stream: &Stream, mut y: DeviceBuffer<f32>) {
    let _ = fill_f32(stream.device(), LaunchConfig::auto(), &mut y, 1.0, 4);
}

fn main() {}
