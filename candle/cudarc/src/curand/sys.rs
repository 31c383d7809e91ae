//! cuRAND's names for types.
#![expect(non_camel_case_types, reason = "cuRAND's names")]

pub use super::generator::curandGenerator_st;

/// A generator.
pub type curandGenerator_t = *mut curandGenerator_st;

/// A queue, as [`CudaStream::cu_stream`](crate::driver::CudaStream::cu_stream) returns it.
pub type cudaStream_t = crate::driver::sys::CUstream;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum curandStatus_t {
    /// As it should.
    CURAND_STATUS_SUCCESS = 0,
    /// The generator is null.
    CURAND_STATUS_NOT_INITIALIZED = 101,
    /// There is no memory.
    CURAND_STATUS_ALLOCATION_FAILED = 102,
    /// There is no such generator here.
    CURAND_STATUS_TYPE_ERROR = 103,
    /// An argument is out of range.
    CURAND_STATUS_OUT_OF_RANGE = 104,
    /// The number of elements is impossible.
    CURAND_STATUS_LENGTH_NOT_MULTIPLE = 105,
    /// A launch has failed.
    CURAND_STATUS_LAUNCH_FAILURE = 201,
    /// The device does not have the kernel.
    CURAND_STATUS_ARCH_MISMATCH = 204,
    /// Something else has failed.
    CURAND_STATUS_INTERNAL_ERROR = 999,
}

/// A kind of generator. Those of pseudo-random numbers are all the same here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum curandRngType_t {
    /// A test of cuRAND's.
    CURAND_RNG_TEST = 0,
    /// The library's choice.
    CURAND_RNG_PSEUDO_DEFAULT = 100,
    /// XORWOW.
    CURAND_RNG_PSEUDO_XORWOW = 101,
    /// MRG32k3a.
    CURAND_RNG_PSEUDO_MRG32K3A = 121,
    /// A Mersenne twister.
    CURAND_RNG_PSEUDO_MTGP32 = 141,
    /// Another Mersenne twister.
    CURAND_RNG_PSEUDO_MT19937 = 142,
    /// Philox4x32-10, which there is here.
    CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161,
    /// Quasi-random numbers, which there are none of here.
    CURAND_RNG_QUASI_DEFAULT = 200,
    /// Sobol's.
    CURAND_RNG_QUASI_SOBOL32 = 201,
    /// Sobol's, scrambled.
    CURAND_RNG_QUASI_SCRAMBLED_SOBOL32 = 202,
    /// Sobol's of 64 bits.
    CURAND_RNG_QUASI_SOBOL64 = 203,
    /// Sobol's of 64 bits, scrambled.
    CURAND_RNG_QUASI_SCRAMBLED_SOBOL64 = 204,
}
