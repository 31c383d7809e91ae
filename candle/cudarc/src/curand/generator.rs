//! What a generator of cuRAND's is.

use super::result::CurandError;
use super::sys::{cudaStream_t, curandGenerator_t, curandRngType_t};
use crate::driver::DriverError;
use crate::driver::result::device;
use crate::elementwise;
use candle_amdgpu::gemm::GemmType;
use candle_amdgpu::rng::{RandomElement, Rng};
use candle_amdgpu::{Device, DeviceBuffer, DeviceViewMut, Element, Stream};
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// What is behind a generator.
#[expect(non_camel_case_types, reason = "cuRAND's name")]
pub struct curandGenerator_st {
    device: Device,
    state: Mutex<State>,
}

struct State {
    rng: Rng,
    /// The queue that it was given.
    given: Option<Stream>,
}

impl fmt::Debug for curandGenerator_st {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "curandGenerator_st({:?})", self.device)
    }
}

/// Numbers of 32 bits that are generated at once.
const BLOCK: u64 = 4;

impl curandGenerator_st {
    pub(super) fn create(kind: curandRngType_t) -> Result<curandGenerator_t, CurandError> {
        if kind as u32 >= curandRngType_t::CURAND_RNG_QUASI_DEFAULT as u32
            || kind == curandRngType_t::CURAND_RNG_TEST
        {
            return Err(CurandError::NotOffered(format!("{kind:?}: its generators are pseudo-random")));
        }
        let state = Mutex::new(State { rng: Rng::new(0), given: None });
        Ok(Box::into_raw(Box::new(curandGenerator_st { device: device::current()?, state })))
    }

    /// # Safety
    /// It is null or live.
    pub(super) unsafe fn get<'a>(generator: curandGenerator_t) -> Result<&'a Self, CurandError> {
        // SAFETY: as promised by the caller.
        unsafe { generator.as_ref() }.ok_or(CurandError::NoGenerator)
    }

    fn state<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_seed(&self, seed: u64) {
        self.state(|state| state.rng = Rng::new(seed));
    }

    pub(super) fn set_offset(&self, offset: u64) {
        self.state(|state| state.rng.set_position(offset.div_ceil(BLOCK)));
    }

    /// # Safety
    /// The queue is null or live.
    pub(super) unsafe fn set_stream(&self, stream: cudaStream_t) {
        // SAFETY: as promised by the caller.
        let given = unsafe { stream.cast::<Stream>().as_ref() }.cloned();
        self.state(|state| state.given = given);
    }

    /// Fills memory in the generator's queue; without one, the device waits before and after.
    ///
    /// # Safety
    /// There are as many elements.
    pub(super) unsafe fn fill<T: Element>(
        &self,
        out: *mut T,
        count: usize,
        fill: impl FnOnce(&mut Rng, &Stream, &mut DeviceViewMut<'_, T>) -> candle_amdgpu::Result<()>,
    ) -> Result<(), CurandError> {
        let done = self.state(|state| {
            let stream = match &state.given {
                Some(stream) => stream.clone(),
                None => {
                    self.device.synchronize()?;
                    Stream::new(&self.device)?
                }
            };
            // SAFETY: as promised by the caller.
            let mut out = unsafe { DeviceViewMut::from_raw_parts(out, count, &stream) };
            fill(&mut state.rng, &stream, &mut out)?;
            if state.given.is_none() { stream.synchronize() } else { Ok(()) }
        });
        done.map_err(|error| DriverError::new(&self.device, error).into())
    }

    /// Numbers whose logarithms are normal.
    ///
    /// # Safety
    /// There are as many elements.
    pub(super) unsafe fn fill_log_normal<T: RandomElement>(
        &self,
        dtype: GemmType,
        out: *mut T,
        count: usize,
        mean: T,
        deviation: T,
    ) -> Result<(), CurandError> {
        // SAFETY: as promised by the caller.
        unsafe {
            self.fill(out, count, |rng, stream, view| {
                rng.fill_normal(stream, mean, deviation, view)?;
                elementwise::unary(stream, "exp", dtype, count, (out.cast(), 1), out.cast())
            })
        }
    }

    /// Numbers of events whose mean is `lambda`.
    ///
    /// # Safety
    /// There are as many elements.
    pub(super) unsafe fn fill_poisson(
        &self,
        out: *mut u32,
        count: usize,
        lambda: f64,
    ) -> Result<(), CurandError> {
        let table = Poisson::new(lambda).ok_or(CurandError::Lambda(lambda.to_string()))?;
        // SAFETY: as promised by the caller.
        unsafe {
            self.fill(out, count, |rng, stream, out| {
                let mut uniform = DeviceBuffer::<f64>::alloc(stream, count)?;
                rng.fill_uniform(stream, &mut uniform)?;
                let numbers: Vec<u32> = uniform.to_vec()?.into_iter().map(|x| table.number(x)).collect();
                out.upload(&numbers)
            })
        }
    }
}

/// The sums of Poisson's probabilities, from the first number that is not too improbable for f64 on.
struct Poisson {
    first: u32,
    sums: Vec<f64>,
}

impl Poisson {
    /// None if `lambda` is not a number above 0, or so large that numbers may not fit.
    fn new(lambda: f64) -> Option<Poisson> {
        if !(lambda > 0.0 && lambda < f64::from(u32::MAX / 2)) {
            return None;
        }
        // Beyond, a probability is less than 2^-53 of the whole.
        let reach = 12.0 * lambda.sqrt() + 40.0;
        let (first, last) = ((lambda - reach).max(0.0).floor(), (lambda + reach).ceil());
        // From the most probable number in both directions, as parts of its probability.
        let mode = lambda.floor();
        let mut parts = vec![1.0];
        let mut number = mode;
        while number > first {
            parts.push(parts[parts.len() - 1] * number / lambda);
            number -= 1.0;
        }
        parts.reverse();
        let (mut part, mut number) = (1.0, mode);
        while number < last {
            number += 1.0;
            part *= lambda / number;
            parts.push(part);
        }
        let mut sum = 0.0;
        let mut sums: Vec<f64> = parts
            .into_iter()
            .map(|part| {
                sum += part;
                sum
            })
            .collect();
        for value in &mut sums {
            *value /= sum;
        }
        Some(Poisson { first: first as u32, sums })
    }

    /// The number that so much of the probability lies below.
    fn number(&self, uniform: f64) -> u32 {
        let at = self.sums.partition_point(|&sum| sum <= uniform).min(self.sums.len() - 1);
        self.first + at as u32
    }
}

#[cfg(test)]
mod tests {
    use super::Poisson;

    #[test]
    fn poissons_numbers_have_their_probabilities() {
        let table = Poisson::new(0.5).unwrap();
        // e^-0.5 = 0.6065, and half of that once more
        assert_eq!([0.0, 0.60, 0.61, 0.90, 0.92].map(|x| table.number(x)), [0, 0, 1, 1, 2]);
        let table = Poisson::new(1e6).unwrap();
        assert!(table.number(0.5).abs_diff(1_000_000) <= 1);
        // a deviation of 1,000 above the mean is 0.8413
        assert!(table.number(0.8413).abs_diff(1_001_000) <= 2);
        assert!([0.0, -1.0, f64::NAN, 1e12].iter().all(|&lambda| Poisson::new(lambda).is_none()));
    }
}
