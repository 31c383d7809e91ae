//! Random numbers, by the names that cuRAND gives them.
//!
//! They are those of [`candle_amdgpu::rng`], Philox4x32-10 whatever generator is asked for, so that a seed gives the same numbers on every
//! device, and others than cuRAND's. Poisson's are made on the host from random bits of the device. Quasi-random numbers are a
//! [`CurandError`](result::CurandError).

use crate::driver::{CudaStream, DevicePtrMut};
use result::{CurandError, LogNormalFill, NormalFill, UniformFill};
use std::fmt;
use std::sync::Arc;

mod generator;
pub mod result;
pub mod sys;

/// The same items under the name that cudarc gives its safe layer.
pub mod safe {
    pub use super::CudaRng;
}

/// A generator of random numbers on a device: [`candle_amdgpu::rng::Rng`].
pub struct CudaRng {
    generator: sys::curandGenerator_t,
    stream: Arc<CudaStream>,
}

// SAFETY: what is behind the handle may be used from any thread, and so may the queue.
unsafe impl Send for CudaRng {}
// SAFETY: as above.
unsafe impl Sync for CudaRng {}

impl CudaRng {
    /// A generator whose numbers `seed` determines.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn new(seed: u64, stream: Arc<CudaStream>) -> Result<CudaRng, CurandError> {
        stream.context().bind_to_thread()?;
        let mut rng = CudaRng { generator: result::create_generator()?, stream };
        // SAFETY: both are live.
        unsafe { result::set_stream(rng.generator, rng.stream.cu_stream())? };
        rng.set_seed(seed)?;
        Ok(rng)
    }

    /// Makes later numbers in `stream`.
    ///
    /// # Safety
    /// None; the signature is cudarc's.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub unsafe fn set_stream(&mut self, stream: Arc<CudaStream>) -> Result<(), CurandError> {
        self.stream = stream;
        // SAFETY: both are live.
        unsafe { result::set_stream(self.generator, self.stream.cu_stream()) }
    }

    /// Begins the numbers of another seed.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn set_seed(&mut self, seed: u64) -> Result<(), CurandError> {
        // SAFETY: the generator is live.
        unsafe { result::set_seed(self.generator, seed) }
    }

    /// Goes on at another position: see [`result::set_offset`].
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn set_offset(&mut self, offset: u64) -> Result<(), CurandError> {
        // SAFETY: the generator is live.
        unsafe { result::set_offset(self.generator, offset) }
    }

    /// Fills memory with uniform numbers: floats in [0, 1), as Candle documents its random tensors, where cuRAND's interval and that
    /// of [`result::generate`] is (0, 1]; integers of any bits.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn fill_with_uniform<T, Dst: DevicePtrMut<T>>(&self, dst: &mut Dst) -> Result<(), CurandError>
    where
        sys::curandGenerator_t: UniformFill<T>,
    {
        let count = dst.len();
        let (dst, _order) = dst.device_ptr_mut(&self.stream);
        // SAFETY: the slice has as many elements; the guard orders other queues.
        unsafe { self.generator.fill_from_zero(dst as *mut T, count) }
    }

    /// Fills memory with normal numbers.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn fill_with_normal<T, Dst: DevicePtrMut<T>>(
        &self,
        dst: &mut Dst,
        mean: T,
        deviation: T,
    ) -> Result<(), CurandError>
    where
        sys::curandGenerator_t: NormalFill<T>,
    {
        let count = dst.len();
        let (dst, _order) = dst.device_ptr_mut(&self.stream);
        // SAFETY: as above.
        unsafe { NormalFill::fill(self.generator, dst as *mut T, count, mean, deviation) }
    }

    /// Fills memory with numbers whose logarithms are normal.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn fill_with_log_normal<T, Dst: DevicePtrMut<T>>(
        &self,
        dst: &mut Dst,
        mean: T,
        deviation: T,
    ) -> Result<(), CurandError>
    where
        sys::curandGenerator_t: LogNormalFill<T>,
    {
        let count = dst.len();
        let (dst, _order) = dst.device_ptr_mut(&self.stream);
        // SAFETY: as above.
        unsafe { LogNormalFill::fill(self.generator, dst as *mut T, count, mean, deviation) }
    }
}

impl Drop for CudaRng {
    fn drop(&mut self) {
        // SAFETY: it is this one's, and used nowhere else any more.
        let destroyed = unsafe { result::destroy_generator(self.generator) };
        debug_assert!(destroyed.is_ok(), "the generator is not null");
    }
}

impl fmt::Debug for CudaRng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaRng(in {:?})", self.stream)
    }
}
