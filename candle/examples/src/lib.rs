//! What the examples share: the device and what it counted, and comparisons with Candle's CPU backend.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use candle_core::{Device, Tensor};

/// Success if everything is as it should be; prints an error.
pub fn exit_code(result: Result<bool>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Device 0: an AMD GPU, or an emulated one (`CANDLE_AMDGPU_DEVICE=emulator:gfx90a` selects which).
pub struct Gpu {
    /// For tensors.
    pub device: Device,
    name: String,
}

impl Gpu {
    /// Opens it.
    ///
    /// # Errors
    /// If there is none.
    pub fn new() -> Result<Gpu> {
        let device = Device::new_cuda(0).context("no device 0")?;
        let context = device.as_cuda_device()?.cuda_stream().context().clone();
        Ok(Gpu { name: context.device().to_string(), device })
    }

    /// Its number, name and target.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `work`, waits for it, and says what it took.
    ///
    /// # Errors
    /// What `work` returns, or the fault of a kernel.
    pub fn measure<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(T, Cost)> {
        let (before, start) = (counters(), Instant::now());
        let value = work()?;
        self.device.synchronize()?;
        let time = start.elapsed();
        let counts = before.zip(counters()).map(|(a, b)| (b.0 - a.0, b.1 - a.1));
        Ok((value, Cost { time, counts }))
    }
}

/// The kernels that an emulated device launches for `work`, with the number of launches and of wave instructions, the
/// largest first; `None` on a real device, which does not count.
///
/// # Errors
/// What `work` returns, or the fault of a kernel.
pub fn kernels(gpu: &Gpu, work: impl FnOnce() -> Result<()>) -> Result<Option<Vec<(String, u64, u64)>>> {
    if amdhip64::set_profile(0, true).is_err() {
        return Ok(None);
    }
    let done = work().and_then(|()| Ok(gpu.device.synchronize()?));
    let records = amdhip64::take_profile(0)?;
    amdhip64::set_profile(0, false)?;
    done?;
    let mut sums = BTreeMap::<String, (u64, u64)>::new();
    for record in records {
        let (launches, instructions) = sums.entry(record.kernel).or_default();
        *launches += 1;
        *instructions += record.report.wave_instructions;
    }
    let mut sums: Vec<_> =
        sums.into_iter().map(|(kernel, (n, instructions))| (kernel, n, instructions)).collect();
    sums.sort_by_key(|(_, _, instructions)| Reverse(*instructions));
    Ok(Some(sums))
}

/// What work took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// On the clock.
    pub time: Duration,
    /// Kernels launched and wave instructions executed, which only an emulated device counts.
    counts: Option<(u64, u64)>,
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.time += other.time;
        let sum = |(a, b): (u64, u64)| other.counts.map(|(c, d)| (a + c, b + d));
        self.counts = self.counts.map_or(other.counts, sum);
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some((launches, instructions)) = self.counts {
            write!(f, "{launches} kernels, {:.1} million wave instructions, ", instructions as f64 / 1e6)?;
        }
        write!(f, "{:.2} s", self.time.as_secs_f64())
    }
}

fn counters() -> Option<(u64, u64)> {
    let counters = amdhip64::counters(0).ok()?;
    Some((counters.launches, counters.wave_instructions))
}

/// The largest difference between two f32 tensors of one shape, wherever they are.
///
/// # Errors
/// If the shapes differ, or a value is not finite.
pub fn largest_difference(a: &Tensor, b: &Tensor) -> Result<f32> {
    ensure!(a.dims() == b.dims(), "shapes differ: {:?} and {:?}", a.dims(), b.dims());
    let [a, b] = [a, b].map(|t| t.flatten_all()?.to_vec1::<f32>());
    let (a, b) = (a?, b?);
    ensure!(a.iter().chain(&b).all(|x| x.is_finite()), "a value is infinite or not a number");
    Ok(a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max))
}

/// A row of numbers in (-1, 1) that is the same everywhere and each time.
pub struct Noise(u64);

impl Noise {
    /// The row with this number.
    pub fn new(seed: u64) -> Noise {
        Noise(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A tensor of the next numbers, times `scale`.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn tensor(&mut self, shape: &[usize], scale: f32, device: &Device) -> Result<Tensor> {
        let len = shape.iter().product();
        let data: Vec<f32> = (0..len).map(|_| self.next() * scale).collect();
        Ok(Tensor::from_vec(data, shape, device)?)
    }

    /// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators", 2016).
    fn next(&mut self) -> f32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40) as f32;
        bits / (1 << 23) as f32 - 1.0
    }
}
