#![allow(dead_code)]

use candle_amdgpu::kernels::fill::copy2d_f32;
use candle_amdgpu::{LaunchConfig, Stream};

fn launch(stream: &Stream) {
    let x = vec![1.0_f32; 4];
    let mut y = [0.0_f32; 4];
    let _ = copy2d_f32(stream, LaunchConfig::auto(), &x, &mut y, 1, 4, 4, 4);
}

fn main() {}
