//! Random numbers in device memory: uniform and normal, reproducible from a seed.
//!
//! ```
//! use candle_amdgpu::rng::Rng;
//! use candle_amdgpu::{Device, DeviceBuffer};
//!
//! let stream = Device::new(0)?.stream()?;
//! let mut x = DeviceBuffer::<f32>::zeros(&stream, 1000)?;
//! Rng::new(42).fill_uniform(&stream, &mut x)?;
//! assert!(x.to_vec()?.iter().all(|x| (0.0..1.0).contains(x)));
//! # Ok::<(), candle_amdgpu::Error>(())
//! ```

use crate::generated::{self, Slot};
use crate::{AsStream, DeviceWrite, Element, KernelValue, LaunchConfig, RNG, Result};

/// A sequence of random numbers: Philox4x32-10 (Salmon and others, "Parallel random numbers: as easy as 1, 2, 3", SC
/// 2011) with the seed as its key. Each fill continues where the last one ended, at the next block of 128 bits; the numbers
/// depend on seed and position alone, not on device or launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    seed: u64,
    sequence: u64,
    position: u64,
}

/// A type whose numbers can be drawn: `f32` and `f64`.
pub trait RandomElement: Element + KernelValue + private::Sealed {}
impl RandomElement for f32 {}
impl RandomElement for f64 {}

mod private {
    pub trait Sealed {
        const NAME: &'static str;
    }
    impl Sealed for f32 {
        const NAME: &'static str = "f32";
    }
    impl Sealed for f64 {
        const NAME: &'static str = "f64";
    }
}

/// Bytes of random bits that are generated at once.
const BLOCK: usize = 16;

impl Rng {
    /// The sequence of a seed.
    pub const fn new(seed: u64) -> Rng {
        Rng { seed, sequence: 0, position: 0 }
    }

    /// Another of the 2^64 sequences of a seed, which do not overlap.
    #[must_use]
    pub const fn sequence(self, sequence: u64) -> Rng {
        Rng { sequence, ..self }
    }

    /// The seed.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// How many blocks of 128 random bits have been used.
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Continues at another position.
    pub const fn set_position(&mut self, position: u64) {
        self.position = position;
    }

    /// Fills memory with uniform numbers in [0, 1): multiples of 2^-24 (f64: 2^-53).
    ///
    /// # Errors
    /// If the memory is of another device than the stream, or what the runtime reports.
    pub fn fill_uniform<T: RandomElement>(
        &mut self,
        stream: &impl AsStream,
        out: &mut impl DeviceWrite<T>,
    ) -> Result<()> {
        self.uniform(stream, out, false)
    }

    /// Fills memory with uniform numbers in (0, 1], cuRAND's interval.
    ///
    /// # Errors
    /// As for [`fill_uniform`](Self::fill_uniform).
    pub fn fill_uniform_above_zero<T: RandomElement>(
        &mut self,
        stream: &impl AsStream,
        out: &mut impl DeviceWrite<T>,
    ) -> Result<()> {
        self.uniform(stream, out, true)
    }

    /// Fills memory with normal numbers, by the method of Box and Muller.
    ///
    /// # Errors
    /// As for [`fill_uniform`](Self::fill_uniform).
    pub fn fill_normal<T: RandomElement>(
        &mut self,
        stream: &impl AsStream,
        mean: T,
        deviation: T,
        out: &mut impl DeviceWrite<T>,
    ) -> Result<()> {
        let values = [Slot::value(mean), Slot::value(deviation)];
        self.fill(&format!("rng_normal_{}", T::NAME), stream, &values, out)
    }

    /// Fills memory with random bits.
    ///
    /// # Errors
    /// As for [`fill_uniform`](Self::fill_uniform).
    pub fn fill_bits(&mut self, stream: &impl AsStream, out: &mut impl DeviceWrite<u32>) -> Result<()> {
        self.fill("rng_bits_u32", stream, &[], out)
    }

    fn uniform<T: RandomElement>(
        &mut self,
        stream: &impl AsStream,
        out: &mut impl DeviceWrite<T>,
        upper: bool,
    ) -> Result<()> {
        self.fill(&format!("rng_uniform_{}", T::NAME), stream, &[Slot::value(u32::from(upper))], out)
    }

    fn fill<T>(
        &mut self,
        kernel: &str,
        stream: &impl AsStream,
        values: &[Slot<'_>],
        out: &mut impl DeviceWrite<T>,
    ) -> Result<()> {
        let kernel = RNG.known_kernel(kernel)?;
        let memory = out.memory_mut();
        let count = memory.len;
        let numbers = [Slot::value(count), Slot::value(self.seed), Slot::value(self.position)];
        let mut slots = numbers.to_vec();
        slots.push(Slot::value(self.sequence));
        slots.extend_from_slice(values);
        slots.push(Slot::memory(memory, size_of::<T>()));
        // SAFETY: count, seed, position and sequence, what the callers give of the kernel's own, and memory of its elements.
        unsafe { generated::launch(&RNG, kernel, stream, LaunchConfig::auto(), &[], &mut slots)? };
        self.position = self.position.wrapping_add(count.div_ceil(BLOCK / size_of::<T>()) as u64);
        Ok(())
    }
}
