//! Random numbers.

use crate::driver::{CudaStream, DevicePtrMut};
use candle_amdgpu::rng::{RandomElement, Rng};
use candle_amdgpu::{DeviceViewMut, Stream};
use result::CurandError;
use std::sync::{Arc, Mutex, PoisonError};

/// Errors of random numbers.
pub mod result {
    use crate::driver::DriverError;
    use std::fmt;

    /// An error of the generator.
    #[derive(Clone, PartialEq, Eq)]
    pub struct CurandError(pub DriverError);

    impl fmt::Display for CurandError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.fmt(f)
        }
    }

    impl fmt::Debug for CurandError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "CurandError({})", self.0)
        }
    }

    impl std::error::Error for CurandError {}
}

/// A generator of random numbers on a device: [`candle_amdgpu::rng::Rng`].
#[derive(Debug)]
pub struct CudaRng {
    rng: Mutex<Rng>,
    stream: Arc<CudaStream>,
}

impl CudaRng {
    /// A generator whose numbers `seed` determines.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn new(seed: u64, stream: Arc<CudaStream>) -> Result<CudaRng, CurandError> {
        Ok(CudaRng { rng: Mutex::new(Rng::new(seed)), stream })
    }

    /// Fills memory with uniform numbers in [0, 1), as Candle documents its random tensors; cuRAND's interval is
    /// (0, 1].
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn fill_with_uniform<T: RandomElement, Dst: DevicePtrMut<T>>(
        &self,
        dst: &mut Dst,
    ) -> Result<(), CurandError> {
        self.fill(dst, |rng, stream, dst| rng.fill_uniform(stream, dst))
    }

    /// Fills memory with normal numbers.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn fill_with_normal<T: RandomElement, Dst: DevicePtrMut<T>>(
        &self,
        dst: &mut Dst,
        mean: T,
        deviation: T,
    ) -> Result<(), CurandError> {
        self.fill(dst, |rng, stream, dst| rng.fill_normal(stream, mean, deviation, dst))
    }

    fn fill<T: RandomElement, Dst: DevicePtrMut<T>>(
        &self,
        dst: &mut Dst,
        fill: impl FnOnce(&mut Rng, &Stream, &mut DeviceViewMut<'_, T>) -> candle_amdgpu::Result<()>,
    ) -> Result<(), CurandError> {
        let (len, stream) = (dst.len(), self.stream.stream());
        let (address, _order) = dst.device_ptr_mut(&self.stream);
        // SAFETY: the slice has as many elements; the guard orders other queues.
        let mut dst = unsafe { DeviceViewMut::from_raw_parts(address as *mut T, len, stream) };
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        fill(&mut rng, stream, &mut dst).map_err(|error| CurandError(self.stream.context().error(error)))
    }
}
