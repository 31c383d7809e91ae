//! Random numbers by addresses.

use super::generator::curandGenerator_st;
use super::sys::{cudaStream_t, curandGenerator_t, curandRngType_t, curandStatus_t};
use crate::driver::DriverError;

/// An error of a generator.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum CurandError {
    /// The runtime's.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// A generator that is null.
    #[error("the generator is null: make one with `create_generator`")]
    NoGenerator,
    /// A mean that Poisson's numbers cannot have.
    #[error("numbers of Poisson's distribution with a mean of {0}: it must be above 0 and below 2^31")]
    Lambda(String),
    /// What cuRAND can do and candle-amdgpu's cudarc cannot.
    #[error("candle-amdgpu's cudarc does not offer {0}")]
    NotOffered(String),
    /// A status of which no more is known.
    #[error("{0:?}")]
    Status(curandStatus_t),
}

/// The text: it is what people read if `main` returns the error.
impl std::fmt::Debug for CurandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CurandError({self})")
    }
}

impl curandStatus_t {
    /// The error, if it is one.
    ///
    /// # Errors
    /// If the status is not success.
    pub fn result(self) -> Result<(), CurandError> {
        match self {
            curandStatus_t::CURAND_STATUS_SUCCESS => Ok(()),
            status => Err(CurandError::Status(status)),
        }
    }
}

/// A generator for the calling thread's device, with the seed 0.
///
/// # Errors
/// If there is no device.
pub fn create_generator() -> Result<curandGenerator_t, CurandError> {
    create_generator_kind(curandRngType_t::CURAND_RNG_PSEUDO_DEFAULT)
}

/// The same of a kind.
///
/// # Errors
/// If there is no device, or for quasi-random numbers.
pub fn create_generator_kind(kind: curandRngType_t) -> Result<curandGenerator_t, CurandError> {
    curandGenerator_st::create(kind)
}

/// Begins the numbers of another seed.
///
/// # Safety
/// The generator is null or live.
///
/// # Errors
/// If it is null.
pub unsafe fn set_seed(generator: curandGenerator_t, seed: u64) -> Result<(), CurandError> {
    // SAFETY: as promised by the caller.
    unsafe { curandGenerator_st::get(generator) }.map(|generator| generator.set_seed(seed))
}

/// Goes on at another position, counted in numbers of 32 bits: at the next multiple of 4, which is where the numbers behind that many
/// `f32` begin.
///
/// # Safety
/// The generator is null or live.
///
/// # Errors
/// If it is null.
pub unsafe fn set_offset(generator: curandGenerator_t, offset: u64) -> Result<(), CurandError> {
    // SAFETY: as promised by the caller.
    unsafe { curandGenerator_st::get(generator) }.map(|generator| generator.set_offset(offset))
}

/// Makes later numbers in a queue, which is kept alive by the generator.
///
/// # Safety
/// The generator is null or live, and so is the queue.
///
/// # Errors
/// If the generator is null.
pub unsafe fn set_stream(generator: curandGenerator_t, stream: cudaStream_t) -> Result<(), CurandError> {
    // SAFETY: as promised by the caller.
    unsafe { curandGenerator_st::get(generator).map(|generator| generator.set_stream(stream)) }
}

/// Frees a generator.
///
/// # Safety
/// It is null or live, and nobody uses it afterwards.
///
/// # Errors
/// If it is null.
pub unsafe fn destroy_generator(generator: curandGenerator_t) -> Result<(), CurandError> {
    if generator.is_null() {
        return Err(CurandError::NoGenerator);
    }
    // SAFETY: as promised by the caller, it came from a box.
    drop(unsafe { Box::from_raw(generator) });
    Ok(())
}

/// Functions for each type and distribution.
pub mod generate {
    use super::{CurandError, curandGenerator_st, curandGenerator_t};
    use candle_amdgpu::gemm::GemmType;

    macro_rules! floats {
        ($($t:ident $data:ident: $uniform:ident $normal:ident $log_normal:ident;)*) => {$(
            /// Uniform numbers in (0, 1].
            ///
            /// # Safety
            /// The generator is null or live, and there are as many elements in the device's memory.
            ///
            /// # Errors
            /// What the runtime reports.
            pub unsafe fn $uniform(
                generator: curandGenerator_t,
                out: *mut $t,
                num: usize,
            ) -> Result<(), CurandError> {
                // SAFETY: as promised by the caller.
                unsafe {
                    let generator = curandGenerator_st::get(generator)?;
                    generator.fill(out, num, |rng, stream, out| rng.fill_uniform_above_zero(stream, out))
                }
            }

            /// Normal numbers.
            ///
            /// # Safety
            /// As for [`uniform_f32`].
            ///
            /// # Errors
            /// What the runtime reports.
            pub unsafe fn $normal(
                generator: curandGenerator_t,
                out: *mut $t,
                num: usize,
                mean: $t,
                std: $t,
            ) -> Result<(), CurandError> {
                // SAFETY: as promised by the caller.
                unsafe {
                    let generator = curandGenerator_st::get(generator)?;
                    generator.fill(out, num, |rng, stream, out| rng.fill_normal(stream, mean, std, out))
                }
            }

            /// Numbers whose logarithms are normal.
            ///
            /// # Safety
            /// As for [`uniform_f32`].
            ///
            /// # Errors
            /// What the runtime reports.
            pub unsafe fn $log_normal(
                generator: curandGenerator_t,
                out: *mut $t,
                num: usize,
                mean: $t,
                std: $t,
            ) -> Result<(), CurandError> {
                // SAFETY: as promised by the caller.
                unsafe {
                    let generator = curandGenerator_st::get(generator)?;
                    generator.fill_log_normal(GemmType::$data, out, num, mean, std)
                }
            }
        )*};
    }

    floats! {
        f32 F32: uniform_f32 normal_f32 log_normal_f32;
        f64 F64: uniform_f64 normal_f64 log_normal_f64;
    }

    /// Random bits.
    ///
    /// # Safety
    /// As for [`uniform_f32`].
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn uniform_u32(
        generator: curandGenerator_t,
        out: *mut u32,
        num: usize,
    ) -> Result<(), CurandError> {
        // SAFETY: as promised by the caller.
        unsafe {
            let generator = curandGenerator_st::get(generator)?;
            generator.fill(out, num, |rng, stream, out| rng.fill_bits(stream, out))
        }
    }

    /// Random bits.
    ///
    /// # Safety
    /// As for [`uniform_f32`].
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn uniform_u64(
        generator: curandGenerator_t,
        out: *mut u64,
        num: usize,
    ) -> Result<(), CurandError> {
        // SAFETY: as promised by the caller; each has two numbers of 32 bits.
        unsafe { uniform_u32(generator, out.cast(), 2 * num) }
    }

    /// Numbers of events whose mean is `lambda`, made on the host: the queue is waited for.
    ///
    /// # Safety
    /// As for [`uniform_f32`].
    ///
    /// # Errors
    /// If `lambda` is not above 0 and below 2^31, or what the runtime reports.
    pub unsafe fn poisson_u32(
        generator: curandGenerator_t,
        out: *mut u32,
        num: usize,
        lambda: f64,
    ) -> Result<(), CurandError> {
        // SAFETY: as promised by the caller.
        unsafe { curandGenerator_st::get(generator)?.fill_poisson(out, num, lambda) }
    }
}

/// Filling with uniform numbers of type `T`.
pub trait UniformFill<T>: Sized {
    /// Floats in (0, 1], integers of any bits.
    ///
    /// # Safety
    /// The generator is null or live, and there are as many elements in the device's memory.
    ///
    /// # Errors
    /// What the runtime reports.
    unsafe fn fill(self, out: *mut T, num: usize) -> Result<(), CurandError>;

    /// Floats in [0, 1), integers of any bits.
    ///
    /// # Safety
    /// As for [`UniformFill::fill`].
    ///
    /// # Errors
    /// What the runtime reports.
    unsafe fn fill_from_zero(self, out: *mut T, num: usize) -> Result<(), CurandError> {
        // SAFETY: as promised by the caller.
        unsafe { self.fill(out, num) }
    }
}

macro_rules! uniform {
    (integers: $($t:ident $function:ident;)*) => {$(
        impl UniformFill<$t> for curandGenerator_t {
            unsafe fn fill(self, out: *mut $t, num: usize) -> Result<(), CurandError> {
                // SAFETY: as promised by the caller.
                unsafe { generate::$function(self, out, num) }
            }
        }
    )*};
    (floats: $($t:ident $function:ident;)*) => {$(
        impl UniformFill<$t> for curandGenerator_t {
            unsafe fn fill(self, out: *mut $t, num: usize) -> Result<(), CurandError> {
                // SAFETY: as promised by the caller.
                unsafe { generate::$function(self, out, num) }
            }

            unsafe fn fill_from_zero(self, out: *mut $t, num: usize) -> Result<(), CurandError> {
                // SAFETY: as promised by the caller.
                unsafe {
                    let generator = curandGenerator_st::get(self)?;
                    generator.fill(out, num, |rng, stream, out| rng.fill_uniform(stream, out))
                }
            }
        }
    )*};
}

uniform! { floats: f32 uniform_f32; f64 uniform_f64; }
uniform! { integers: u32 uniform_u32; u64 uniform_u64; }

/// Filling with normal numbers of type `T`.
pub trait NormalFill<T> {
    /// Numbers of mean `m` and deviation `s`.
    ///
    /// # Safety
    /// As for [`UniformFill::fill`].
    ///
    /// # Errors
    /// What the runtime reports.
    unsafe fn fill(self, o: *mut T, n: usize, m: T, s: T) -> Result<(), CurandError>;
}

/// Filling with numbers of type `T` whose logarithms are normal.
pub trait LogNormalFill<T> {
    /// Numbers whose logarithms have the mean `m` and the deviation `s`.
    ///
    /// # Safety
    /// As for [`UniformFill::fill`].
    ///
    /// # Errors
    /// What the runtime reports.
    unsafe fn fill(self, o: *mut T, n: usize, m: T, s: T) -> Result<(), CurandError>;
}

macro_rules! normal {
    ($($trait:ident<$t:ident> $function:ident;)*) => {$(
        impl $trait<$t> for curandGenerator_t {
            unsafe fn fill(self, o: *mut $t, n: usize, m: $t, s: $t) -> Result<(), CurandError> {
                // SAFETY: as promised by the caller.
                unsafe { generate::$function(self, o, n, m, s) }
            }
        }
    )*};
}

normal! {
    NormalFill<f32> normal_f32;
    NormalFill<f64> normal_f64;
    LogNormalFill<f32> log_normal_f32;
    LogNormalFill<f64> log_normal_f64;
}
