//! Matrix products, by the names that cuBLAS gives them: column-major operands, `C = α·op(A)·op(B) + β·C`.
//!
//! They run on the maker's library where the device is real and it loads, otherwise on this project's kernels
//! ([`candle_amdgpu::gemm`]), which add f16 and bf16 in f32. [`result`] has them by addresses, [`sys`] as C functions, with those on
//! vectors that cudarc itself does not wrap. What there is not (integers, complex numbers, f8) is a
//! [`CublasError::NotOffered`](result::CublasError::NotOffered).

use crate::driver::{CudaStream, DevicePtr, DevicePtrMut, DeviceRepr};
use candle_amdgpu::gemm::GemmConfig as Config;
use result::CublasError;
use std::ffi::c_int;
use std::sync::Arc;

mod c_functions;
mod handle;
mod level1;
mod products;
pub mod result;
pub mod sys;

pub(crate) use handle::on_stream;
pub(crate) use products::{gemm_of, size};

/// The same items under the name that cudarc gives its safe layer.
pub mod safe {
    pub use super::{
        Asum, AsumConfig, CudaBlas, Gemm, GemmConfig, Gemv, GemvConfig, GroupedGemm, GroupedGemmConfig,
        GroupedGemmDtype, StridedBatchedConfig,
    };
}

/// A queue for matrix products.
#[derive(Debug)]
pub struct CudaBlas {
    handle: sys::cublasHandle_t,
    stream: Arc<CudaStream>,
}

// SAFETY: what is behind the handle may be used from any thread, and so may the queue.
unsafe impl Send for CudaBlas {}
// SAFETY: as above.
unsafe impl Sync for CudaBlas {}

impl CudaBlas {
    /// For products on `stream`.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn new(stream: Arc<CudaStream>) -> Result<CudaBlas, CublasError> {
        stream.context().bind_to_thread()?;
        let blas = CudaBlas { handle: result::create_handle()?, stream };
        // SAFETY: both are live.
        unsafe { result::set_stream(blas.handle, blas.stream.cu_stream())? };
        Ok(blas)
    }

    /// Makes later products run on `stream`; without one (`None`), on the device's own.
    ///
    /// # Safety
    /// None; the signature is cudarc's.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub unsafe fn set_stream(
        &mut self,
        stream: impl Into<Option<Arc<CudaStream>>>,
    ) -> Result<(), CublasError> {
        self.stream = stream.into().unwrap_or_else(|| self.stream.context().default_stream());
        // SAFETY: both are live.
        unsafe { result::set_stream(self.handle, self.stream.cu_stream()) }
    }

    /// What [`result`]'s functions take.
    pub fn handle(&self) -> &sys::cublasHandle_t {
        &self.handle
    }

    /// Says where [`result`]'s functions find factors, and leave numbers.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn set_pointer_mode(&self, pointer_mode: sys::cublasPointerMode_t) -> Result<(), CublasError> {
        // SAFETY: the handle is live.
        unsafe { sys::cublasSetPointerMode_v2(self.handle, pointer_mode) }.result()
    }

    /// Where that is; at first, in host memory.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn get_pointer_mode(&self) -> Result<sys::cublasPointerMode_t, CublasError> {
        let mut mode = sys::cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST;
        // SAFETY: the handle is live; writes the mode.
        unsafe { sys::cublasGetPointerMode_v2(self.handle, &mut mode) }.result()?;
        Ok(mode)
    }
}

impl Drop for CudaBlas {
    fn drop(&mut self) {
        // SAFETY: it is this one's, and used nowhere else any more.
        let destroyed = unsafe { result::destroy_handle(self.handle) };
        debug_assert!(destroyed.is_ok(), "the handle is not null");
    }
}

/// One product: `op(A)` is m × k, `op(B)` k × n, `C` m × n, all column-major.
#[derive(Clone, Copy, Debug)]
pub struct GemmConfig<T> {
    /// Whether `A` is transposed.
    pub transa: sys::cublasOperation_t,
    /// Whether `B` is transposed.
    pub transb: sys::cublasOperation_t,
    /// Rows of `op(A)` and `C`.
    pub m: c_int,
    /// Columns of `op(B)` and `C`.
    pub n: c_int,
    /// Columns of `op(A)`, rows of `op(B)`.
    pub k: c_int,
    /// Factor of the product.
    pub alpha: T,
    /// Elements from one column of `A` to the next.
    pub lda: c_int,
    /// Elements from one column of `B` to the next.
    pub ldb: c_int,
    /// Factor of what `C` holds; at 0 it is not read.
    pub beta: T,
    /// Elements from one column of `C` to the next.
    pub ldc: c_int,
}

/// Several products, whose operands lie at equal distances.
#[derive(Clone, Copy, Debug)]
pub struct StridedBatchedConfig<T> {
    /// Each of them.
    pub gemm: GemmConfig<T>,
    /// How many.
    pub batch_size: c_int,
    /// Elements from one `A` to the next.
    pub stride_a: i64,
    /// Elements from one `B` to the next.
    pub stride_b: i64,
    /// Elements from one `C` to the next.
    pub stride_c: i64,
}

/// A product of a matrix and a vector: `A` is m × n, column-major, and `y = α·op(A)·x + β·y`.
#[derive(Clone, Copy, Debug)]
pub struct GemvConfig<T> {
    /// Whether `A` is transposed.
    pub trans: sys::cublasOperation_t,
    /// Rows of `A`.
    pub m: c_int,
    /// Columns of `A`.
    pub n: c_int,
    /// Factor of the product.
    pub alpha: T,
    /// Elements from one column of `A` to the next.
    pub lda: c_int,
    /// Elements from one number of `x` to the next, at least 1.
    pub incx: c_int,
    /// Factor of what `y` holds; at 0 it is not read.
    pub beta: T,
    /// Elements from one number of `y` to the next, at least 1.
    pub incy: c_int,
}

/// Products of a matrix and a vector of elements of type `T`.
pub trait Gemv<T> {
    /// One product.
    ///
    /// # Safety
    /// The operands are as large as the configuration says.
    ///
    /// # Errors
    /// If the sizes are impossible, or what the runtime reports.
    unsafe fn gemv<A: DevicePtr<T>, X: DevicePtr<T>, Y: DevicePtrMut<T>>(
        &self,
        config: GemvConfig<T>,
        a: &A,
        x: &X,
        y: &mut Y,
    ) -> Result<(), CublasError>;
}

impl<T> Gemv<T> for CudaBlas
where
    CudaBlas: Gemm<T>,
{
    unsafe fn gemv<A: DevicePtr<T>, X: DevicePtr<T>, Y: DevicePtrMut<T>>(
        &self,
        config: GemvConfig<T>,
        a: &A,
        x: &X,
        y: &mut Y,
    ) -> Result<(), CublasError> {
        let GemvConfig { trans, m, n, alpha, lda, incx, beta, incy } = config;
        products::distance("incx", incx)?;
        products::distance("incy", incy)?;
        // Rows have distances where columns have none: yᵀ = xᵀ·op(A)ᵀ.
        let flipped = trans.flipped();
        let (rows, columns) = if flipped == sys::cublasOperation_t::CUBLAS_OP_T { (m, n) } else { (n, m) };
        let config = GemmConfig {
            transa: sys::cublasOperation_t::CUBLAS_OP_N,
            transb: flipped,
            m: 1,
            n: rows,
            k: columns,
            alpha,
            lda: incx,
            ldb: lda,
            beta,
            ldc: incy,
        };
        // SAFETY: as promised by the caller.
        unsafe { self.gemm(config, x, a, y) }
    }
}

/// A vector whose absolute values are added.
#[derive(Clone, Copy, Debug)]
pub struct AsumConfig {
    /// How many numbers it has.
    pub n: c_int,
    /// Elements from one number to the next, at least 1.
    pub incx: c_int,
}

/// Sums of absolute values of elements of type `T`.
pub trait Asum<T> {
    /// One sum. `result` is in host memory, unless the handle's mode says otherwise.
    ///
    /// # Safety
    /// The vector is as large as the configuration says.
    ///
    /// # Errors
    /// If the sizes are impossible, or what the runtime reports.
    unsafe fn asum<X: DevicePtr<T>>(
        &self,
        config: AsumConfig,
        x: &X,
        result: &mut T,
    ) -> Result<(), CublasError>;
}

macro_rules! asum {
    ($($t:ty: $function:ident;)*) => {$(
        impl Asum<$t> for CudaBlas {
            unsafe fn asum<X: DevicePtr<$t>>(
                &self,
                config: AsumConfig,
                x: &X,
                result: &mut $t,
            ) -> Result<(), CublasError> {
                let (x, _x) = x.device_ptr(&self.stream);
                // SAFETY: as promised by the caller.
                unsafe { result::$function(self.handle, config.n, x as *const _, config.incx, result) }
            }
        }
    )*};
}

asum! {
    f32: sasum;
    f64: dasum;
}

/// Matrix products of elements of type `T`.
pub trait Gemm<T> {
    /// Several products.
    ///
    /// # Safety
    /// The operands are as large as the configuration says.
    ///
    /// # Errors
    /// If the sizes are impossible, or what the runtime reports.
    unsafe fn gemm_strided_batched<A: DevicePtr<T>, B: DevicePtr<T>, C: DevicePtrMut<T>>(
        &self,
        config: StridedBatchedConfig<T>,
        a: &A,
        b: &B,
        c: &mut C,
    ) -> Result<(), CublasError>;

    /// One product.
    ///
    /// # Safety
    /// The operands are as large as the configuration says.
    ///
    /// # Errors
    /// If the sizes are impossible, or what the runtime reports.
    unsafe fn gemm<A: DevicePtr<T>, B: DevicePtr<T>, C: DevicePtrMut<T>>(
        &self,
        config: GemmConfig<T>,
        a: &A,
        b: &B,
        c: &mut C,
    ) -> Result<(), CublasError> {
        let one = StridedBatchedConfig { gemm: config, batch_size: 1, stride_a: 0, stride_b: 0, stride_c: 0 };
        // SAFETY: as promised by the caller.
        unsafe { self.gemm_strided_batched(one, a, b, c) }
    }
}

macro_rules! gemm {
    ($($t:ty: $data:ident, $scalar:ty;)*) => {$(
        impl Gemm<$t> for CudaBlas {
            unsafe fn gemm_strided_batched<A: DevicePtr<$t>, B: DevicePtr<$t>, C: DevicePtrMut<$t>>(
                &self,
                config: StridedBatchedConfig<$t>,
                a: &A,
                b: &B,
                c: &mut C,
            ) -> Result<(), CublasError> {
                let StridedBatchedConfig { gemm, batch_size, stride_a, stride_b, stride_c } = config;
                let sizes = products::Sizes {
                    operations: [gemm.transa, gemm.transb],
                    mnk: [gemm.m, gemm.n, gemm.k],
                    leading: [gemm.lda, gemm.ldb, gemm.ldc],
                    strides: [stride_a, stride_b, stride_c],
                    batch: batch_size,
                };
                // The factors are here, whatever the handle's mode is.
                let config = sizes.config([gemm.alpha, gemm.beta].map(|factor| <$scalar>::from(factor).into()))?;
                let types = [sys::cudaDataType_t::$data.element()?; 3];
                let (a, _a) = a.device_ptr(&self.stream);
                let (b, _b) = b.device_ptr(&self.stream);
                let (c, _c) = c.device_ptr_mut(&self.stream);
                // SAFETY: as promised by the caller.
                unsafe {
                    handle::on(self.handle, |queue| {
                        products::gemm_of(queue, types, &config, [a as *const _, b as *const _], c as *mut _)
                    })
                }
            }
        }
    )*};
}

gemm! {
    f32: CUDA_R_32F, f32;
    f64: CUDA_R_64F, f64;
    half::f16: CUDA_R_16F, f32;
    half::bf16: CUDA_R_16BF, f32;
}

/// A type of elements that groups of products can be of.
pub trait GroupedGemmDtype: DeviceRepr {
    /// Type of their factors.
    type ComputeType: DeviceRepr + Copy + Into<f64>;

    /// cuBLAS's name for it.
    fn data_type() -> sys::cudaDataType_t;

    /// What products of it are summed in.
    fn compute_type() -> sys::cublasComputeType_t;
}

macro_rules! grouped {
    ($($t:ty: $data:ident, $scalar:ty, $compute:ident;)*) => {$(
        impl GroupedGemmDtype for $t {
            type ComputeType = $scalar;

            fn data_type() -> sys::cudaDataType_t {
                sys::cudaDataType_t::$data
            }

            fn compute_type() -> sys::cublasComputeType_t {
                sys::cublasComputeType_t::$compute
            }
        }
    )*};
}

grouped! {
    f32: CUDA_R_32F, f32, CUBLAS_COMPUTE_32F;
    f64: CUDA_R_64F, f64, CUBLAS_COMPUTE_64F;
    half::f16: CUDA_R_16F, f32, CUBLAS_COMPUTE_32F;
    half::bf16: CUDA_R_16BF, f32, CUBLAS_COMPUTE_32F;
}

/// Groups of products; those of a group have the same sizes. Each list but `problem_sizes` has an entry for each group, as it has.
#[derive(Clone, Debug)]
pub struct GroupedGemmConfig<T: GroupedGemmDtype> {
    /// Whether `B` is transposed.
    pub transbs: Vec<sys::cublasOperation_t>,
    /// Whether `A` is transposed.
    pub transas: Vec<sys::cublasOperation_t>,
    /// Rows of `op(A)` and `C`.
    pub ms: Vec<usize>,
    /// Columns of `op(B)` and `C`.
    pub ns: Vec<usize>,
    /// Columns of `op(A)`, rows of `op(B)`.
    pub ks: Vec<usize>,
    /// Factor of the product.
    pub alphas: Vec<T::ComputeType>,
    /// Factor of what `C` holds; at 0 it is not read.
    pub betas: Vec<T::ComputeType>,
    /// Elements from one column of `A` to the next.
    pub ldas: Vec<usize>,
    /// Elements from one column of `B` to the next.
    pub ldbs: Vec<usize>,
    /// Elements from one column of `C` to the next.
    pub ldcs: Vec<usize>,
    /// How many products the group has.
    pub problem_sizes: Vec<usize>,
}

impl<T: GroupedGemmDtype> GroupedGemmConfig<T> {
    /// How many products there are.
    pub fn problem_count(&self) -> usize {
        self.problem_sizes.iter().sum()
    }

    /// How many groups there are.
    pub fn group_count(&self) -> usize {
        self.problem_sizes.len()
    }

    /// Panics if the lists are not as long as each other.
    ///
    /// # Panics
    /// As it says.
    pub fn validate(&self) {
        let groups = self.group_count();
        let lists = [
            ("transas", self.transas.len()),
            ("transbs", self.transbs.len()),
            ("ms", self.ms.len()),
            ("ns", self.ns.len()),
            ("ks", self.ks.len()),
            ("alphas", self.alphas.len()),
            ("betas", self.betas.len()),
            ("ldas", self.ldas.len()),
            ("ldbs", self.ldbs.len()),
            ("ldcs", self.ldcs.len()),
        ];
        for (name, len) in lists {
            assert_eq!(len, groups, "{name} must have an entry for each group");
        }
    }

    /// Sizes and factors of a group's products.
    fn of(&self, group: usize) -> Config {
        Config {
            transa: self.transas[group].transpose(),
            transb: self.transbs[group].transpose(),
            alpha: self.alphas[group].into(),
            lda: self.ldas[group],
            ldb: self.ldbs[group],
            beta: self.betas[group].into(),
            ldc: self.ldcs[group],
            ..Config::new(self.ms[group], self.ns[group], self.ks[group])
        }
    }
}

/// Groups of products of elements of type `T`.
pub trait GroupedGemm<T: GroupedGemmDtype> {
    /// All of them, one after another in the queue.
    ///
    /// # Safety
    /// The operands are as large as the configuration says.
    ///
    /// # Errors
    /// If the sizes are impossible, or what the runtime reports.
    ///
    /// # Panics
    /// If a list does not have an entry for each group, or each product.
    unsafe fn grouped_gemm<A: DevicePtr<T>, B: DevicePtr<T>, C: DevicePtrMut<T>>(
        &self,
        config: GroupedGemmConfig<T>,
        a_slices: &[&A],
        b_slices: &[&B],
        c_slices: &mut [&mut C],
    ) -> Result<(), CublasError>;
}

impl<T: GroupedGemmDtype> GroupedGemm<T> for CudaBlas {
    unsafe fn grouped_gemm<A: DevicePtr<T>, B: DevicePtr<T>, C: DevicePtrMut<T>>(
        &self,
        config: GroupedGemmConfig<T>,
        a_slices: &[&A],
        b_slices: &[&B],
        c_slices: &mut [&mut C],
    ) -> Result<(), CublasError> {
        config.validate();
        let count = config.problem_count();
        for (name, len) in [("A", a_slices.len()), ("B", b_slices.len()), ("C", c_slices.len())] {
            assert_eq!(len, count, "there must be a matrix {name} for each product");
        }
        let types = [T::data_type().element()?; 3];
        let groups = config.problem_sizes.iter().enumerate();
        let groups = groups.flat_map(|(group, &count)| std::iter::repeat_n(group, count));
        for (((group, a), b), c) in groups.zip(a_slices).zip(b_slices).zip(c_slices) {
            let (a, _a) = a.device_ptr(&self.stream);
            let (b, _b) = b.device_ptr(&self.stream);
            let (c, _c) = c.device_ptr_mut(&self.stream);
            // SAFETY: as promised by the caller.
            unsafe {
                handle::on(self.handle, |queue| {
                    let operands = [a as *const _, b as *const _];
                    products::gemm_of(queue, types, &config.of(group), operands, c as *mut _)
                })?;
            }
        }
        Ok(())
    }
}
