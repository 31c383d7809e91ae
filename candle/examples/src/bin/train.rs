//! A small training loop: a network with two hidden layers learns which of three spirals a point is on, on the device
//! and on Candle's CPU backend, from the same first weights.
//!
//!     cargo run --bin train
//!
//! Exit status: 0 if the loss falls below half of its first value and both loss curves agree within 1 %.

use std::process::ExitCode;

use anyhow::Result;
use candle_amdgpu_examples::{Gpu, Noise, exit_code};
use candle_core::{Device, Tensor, Var};
use candle_nn::loss::cross_entropy;
use candle_nn::optim::{AdamW, Optimizer, ParamsAdamW};
use clap::Parser;

/// The most that a loss may differ from the CPU's, as a fraction of it.
const TOLERANCE: f32 = 0.01;

const SPIRALS: usize = 3;
const POINTS: usize = 40;
const WIDTH: usize = 32;

#[derive(Parser)]
struct Cli {
    /// How many steps.
    #[arg(long, default_value_t = 60)]
    steps: usize,
}

fn main() -> ExitCode {
    exit_code(run(&Cli::parse()))
}

/// Whether it learns, and as the CPU does.
fn run(cli: &Cli) -> Result<bool> {
    let gpu = Gpu::new()?;
    println!("device {}", gpu.name());
    let (ours, cost) = gpu.measure(|| train(&gpu.device, cli.steps))?;
    let theirs = train(&Device::Cpu, cli.steps)?;
    print!("{}", plot(&ours, &theirs));
    println!("{} steps: {cost}", ours.len());
    let worst = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs() / b).fold(0.0, f32::max);
    let (first, last) = (ours[0], ours[ours.len() - 1]);
    let learns = last < first / 2.0 || cli.steps < 60;
    println!(
        "loss {first:.3} at first, {last:.3} at last; differs from the CPU's by {:.2} % at most",
        worst * 100.0
    );
    Ok(learns && worst <= TOLERANCE)
}

/// The loss at each step.
fn train(device: &Device, steps: usize) -> Result<Vec<f32>> {
    let (points, labels) = spirals(device)?;
    let mut noise = Noise::new(3);
    let mut matrix = |inputs: usize, outputs: usize| -> Result<[Var; 2]> {
        let scale = (6.0 / (inputs + outputs) as f32).sqrt();
        let weights = noise.tensor(&[inputs, outputs], scale, device)?;
        Ok([Var::from_tensor(&weights)?, Var::from_tensor(&noise.tensor(&[outputs], 0.1, device)?)?])
    };
    let layers = [matrix(2, WIDTH)?, matrix(WIDTH, WIDTH)?, matrix(WIDTH, SPIRALS)?];
    let params = ParamsAdamW { lr: 0.02, ..ParamsAdamW::default() };
    let mut optimizer = AdamW::new(layers.iter().flatten().cloned().collect(), params)?;
    let mut losses = Vec::with_capacity(steps);
    for _ in 0..steps {
        let mut x = points.clone();
        for (i, [weights, bias]) in layers.iter().enumerate() {
            x = x.matmul(weights)?.broadcast_add(bias)?;
            if i + 1 < layers.len() {
                x = x.gelu()?;
            }
        }
        let loss = cross_entropy(&x, &labels)?;
        optimizer.backward_step(&loss)?;
        losses.push(loss);
    }
    // Read at the end, so that nothing waits for the device in between.
    losses.iter().map(|loss| Ok(loss.to_scalar::<f32>()?)).collect()
}

/// Points on three spirals, and which one each is on.
fn spirals(device: &Device) -> Result<(Tensor, Tensor)> {
    let mut points = Vec::new();
    for spiral in 0..SPIRALS {
        for i in 0..POINTS {
            let radius = (i + 1) as f32 / POINTS as f32;
            let angle = radius * 4.0 + spiral as f32 * std::f32::consts::TAU / SPIRALS as f32;
            points.extend([radius * angle.cos(), radius * angle.sin()]);
        }
    }
    let labels: Vec<u32> = (0..SPIRALS * POINTS).map(|i| (i / POINTS) as u32).collect();
    Ok((Tensor::from_vec(points, (SPIRALS * POINTS, 2), device)?, Tensor::new(labels, device)?))
}

/// Both curves: `*` where they are the same, `o` for the device's and `x` for the CPU's where not.
fn plot(ours: &[f32], theirs: &[f32]) -> String {
    const HEIGHT: usize = 12;
    let top = ours.iter().chain(theirs).copied().fold(f32::MIN_POSITIVE, f32::max);
    let line = |loss: f32| ((1.0 - loss / top) * (HEIGHT - 1) as f32).round() as usize;
    (0..HEIGHT)
        .map(|y| {
            let mark = |(&a, &b): (&f32, &f32)| match (line(a) == y, line(b) == y) {
                (true, true) => '*',
                (true, false) => 'o',
                (false, true) => 'x',
                (false, false) => ' ',
            };
            let marks: String = ours.iter().zip(theirs).map(mark).collect();
            format!("{:>7.3} |{}\n", top * (1.0 - y as f32 / (HEIGHT - 1) as f32), marks.trim_end())
        })
        .collect()
}
