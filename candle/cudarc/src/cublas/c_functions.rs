//! cuBLAS's C functions by their names, as far as there are any here. Each returns a status; its
//! [`result`](super::sys::cublasStatus_t::result) has the text.
#![expect(non_snake_case, clippy::too_many_arguments, reason = "cuBLAS's")]
#![expect(clippy::missing_safety_doc, reason = "as the module says")]

use super::handle;
use super::level1;
use super::products::{self, Sizes};
use super::result::{self, CublasError, not_offered};
use super::sys::{
    cublasComputeType_t, cublasGemmAlgo_t, cublasHandle_t, cublasOperation_t, cublasPointerMode_t,
    cublasStatus_t, cudaDataType, cudaStream_t,
};
use candle_amdgpu::gemm::GemmType;
use candle_amdgpu::{DeviceView, f16};
use std::ffi::{c_int, c_longlong, c_void};

fn with_handle(
    handle: cublasHandle_t,
    f: impl FnOnce(&super::handle::cublasContext) -> Result<(), CublasError>,
) -> cublasStatus_t {
    // SAFETY: as promised by the caller of the C function, it is null or live.
    cublasStatus_t::of(unsafe { handle.as_ref() }.ok_or(CublasError::NoHandle).and_then(f))
}

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident = $function:ident($($arg:ident: $ty:ty),* $(,)?);)*) => {$(
        $(#[$doc])*
        pub unsafe fn $name($($arg: $ty),*) -> cublasStatus_t {
            // SAFETY: as promised by the caller.
            cublasStatus_t::of(unsafe { result::$function($($arg),*) })
        }
    )*};
}

/// A new handle.
pub unsafe fn cublasCreate_v2(handle: *mut cublasHandle_t) -> cublasStatus_t {
    cublasStatus_t::of(result::create_handle().map(|made| {
        // SAFETY: as promised by the caller, there is room for it.
        unsafe { handle.write(made) };
    }))
}

/// How factors and results are passed.
pub unsafe fn cublasSetPointerMode_v2(handle: cublasHandle_t, mode: cublasPointerMode_t) -> cublasStatus_t {
    with_handle(handle, |handle| {
        handle.set_mode(mode);
        Ok(())
    })
}

/// How factors and results are passed.
pub unsafe fn cublasGetPointerMode_v2(
    handle: cublasHandle_t,
    mode: *mut cublasPointerMode_t,
) -> cublasStatus_t {
    with_handle(handle, |handle| {
        // SAFETY: as promised by the caller, there is room for it.
        unsafe { mode.write(handle.mode()) };
        Ok(())
    })
}

calls! {
    /// Frees a handle.
    cublasDestroy_v2 = destroy_handle(handle: cublasHandle_t);
    /// The queue of later calls.
    cublasSetStream_v2 = set_stream(handle: cublasHandle_t, stream: cudaStream_t);
    /// A product of f16.
    cublasHgemm = hgemm(
        handle: cublasHandle_t, transa: cublasOperation_t, transb: cublasOperation_t, m: c_int, n: c_int, k: c_int,
        alpha: *const f16, a: *const f16, lda: c_int, b: *const f16, ldb: c_int, beta: *const f16, c: *mut f16,
        ldc: c_int,
    );
    /// A product of f32.
    cublasSgemm_v2 = sgemm(
        handle: cublasHandle_t, transa: cublasOperation_t, transb: cublasOperation_t, m: c_int, n: c_int, k: c_int,
        alpha: *const f32, a: *const f32, lda: c_int, b: *const f32, ldb: c_int, beta: *const f32, c: *mut f32,
        ldc: c_int,
    );
    /// A product of f64.
    cublasDgemm_v2 = dgemm(
        handle: cublasHandle_t, transa: cublasOperation_t, transb: cublasOperation_t, m: c_int, n: c_int, k: c_int,
        alpha: *const f64, a: *const f64, lda: c_int, b: *const f64, ldb: c_int, beta: *const f64, c: *mut f64,
        ldc: c_int,
    );
    /// Products of f16.
    cublasHgemmStridedBatched = hgemm_strided_batched(
        handle: cublasHandle_t, transa: cublasOperation_t, transb: cublasOperation_t, m: c_int, n: c_int, k: c_int,
        alpha: *const f16, a: *const f16, lda: c_int, stride_a: c_longlong, b: *const f16, ldb: c_int,
        stride_b: c_longlong, beta: *const f16, c: *mut f16, ldc: c_int, stride_c: c_longlong, batch: c_int,
    );
    /// Products of f32.
    cublasSgemmStridedBatched = sgemm_strided_batched(
        handle: cublasHandle_t, transa: cublasOperation_t, transb: cublasOperation_t, m: c_int, n: c_int, k: c_int,
        alpha: *const f32, a: *const f32, lda: c_int, stride_a: c_longlong, b: *const f32, ldb: c_int,
        stride_b: c_longlong, beta: *const f32, c: *mut f32, ldc: c_int, stride_c: c_longlong, batch: c_int,
    );
    /// Products of f64.
    cublasDgemmStridedBatched = dgemm_strided_batched(
        handle: cublasHandle_t, transa: cublasOperation_t, transb: cublasOperation_t, m: c_int, n: c_int, k: c_int,
        alpha: *const f64, a: *const f64, lda: c_int, stride_a: c_longlong, b: *const f64, ldb: c_int,
        stride_b: c_longlong, beta: *const f64, c: *mut f64, ldc: c_int, stride_c: c_longlong, batch: c_int,
    );
    /// A product of elements of any type.
    cublasGemmEx = gemm_ex(
        handle: cublasHandle_t, transa: cublasOperation_t, transb: cublasOperation_t, m: c_int, n: c_int, k: c_int,
        alpha: *const c_void, a: *const c_void, a_type: cudaDataType, lda: c_int, b: *const c_void,
        b_type: cudaDataType, ldb: c_int, beta: *const c_void, c: *mut c_void, c_type: cudaDataType, ldc: c_int,
        compute: cublasComputeType_t, algorithm: cublasGemmAlgo_t,
    );
    /// Products of elements of any type.
    cublasGemmStridedBatchedEx = gemm_strided_batched_ex(
        handle: cublasHandle_t, transa: cublasOperation_t, transb: cublasOperation_t, m: c_int, n: c_int, k: c_int,
        alpha: *const c_void, a: *const c_void, a_type: cudaDataType, lda: c_int, stride_a: c_longlong,
        b: *const c_void, b_type: cudaDataType, ldb: c_int, stride_b: c_longlong, beta: *const c_void, c: *mut c_void,
        c_type: cudaDataType, ldc: c_int, stride_c: c_longlong, batch: c_int, compute: cublasComputeType_t,
        algorithm: cublasGemmAlgo_t,
    );
    /// A product of a matrix and a vector of f32.
    cublasSgemv_v2 = sgemv(
        handle: cublasHandle_t, trans: cublasOperation_t, m: c_int, n: c_int, alpha: *const f32, a: *const f32,
        lda: c_int, x: *const f32, incx: c_int, beta: *const f32, y: *mut f32, incy: c_int,
    );
    /// A product of a matrix and a vector of f64.
    cublasDgemv_v2 = dgemv(
        handle: cublasHandle_t, trans: cublasOperation_t, m: c_int, n: c_int, alpha: *const f64, a: *const f64,
        lda: c_int, x: *const f64, incx: c_int, beta: *const f64, y: *mut f64, incy: c_int,
    );
    /// A sum of absolute values.
    cublasSasum_v2 = sasum(handle: cublasHandle_t, n: c_int, x: *const f32, incx: c_int, result: *mut f32);
    /// A sum of absolute values.
    cublasDasum_v2 = dasum(handle: cublasHandle_t, n: c_int, x: *const f64, incx: c_int, result: *mut f64);
}

macro_rules! vectors {
    ($($t:ident $dtype:ident: $dot:ident $nrm2:ident $iamax:ident $scal:ident $axpy:ident $copy:ident $swap:ident;)*) => {$(
        #[doc = concat!("The product of two vectors of ", stringify!($t), ".")]
        pub unsafe fn $dot(
            handle: cublasHandle_t, n: c_int, x: *const $t, incx: c_int, y: *const $t, incy: c_int, result: *mut $t,
        ) -> cublasStatus_t {
            let (x, y) = ((x.cast(), incx), (y.cast(), incy));
            // SAFETY: as promised by the caller.
            cublasStatus_t::of(unsafe { level1::dot(handle, GemmType::$dtype, n, x, y, result.cast()) })
        }

        #[doc = concat!("The root of the sum of squares of ", stringify!($t), " numbers.")]
        pub unsafe fn $nrm2(
            handle: cublasHandle_t, n: c_int, x: *const $t, incx: c_int, result: *mut $t,
        ) -> cublasStatus_t {
            // SAFETY: as promised by the caller.
            cublasStatus_t::of(unsafe {
                level1::nrm2(handle, GemmType::$dtype, n, (x.cast(), incx), result.cast())
            })
        }

        #[doc = concat!("The position, from 1, of the largest absolute value of ", stringify!($t), " numbers.")]
        pub unsafe fn $iamax(
            handle: cublasHandle_t, n: c_int, x: *const $t, incx: c_int, result: *mut c_int,
        ) -> cublasStatus_t {
            // SAFETY: as promised by the caller.
            cublasStatus_t::of(unsafe { level1::iamax(handle, GemmType::$dtype, n, (x.cast(), incx), result) })
        }

        #[doc = concat!("Multiplies ", stringify!($t), " numbers by a factor.")]
        pub unsafe fn $scal(
            handle: cublasHandle_t, n: c_int, alpha: *const $t, x: *mut $t, incx: c_int,
        ) -> cublasStatus_t {
            // SAFETY: as promised by the caller.
            cublasStatus_t::of(unsafe {
                level1::scal(handle, GemmType::$dtype, n, alpha.cast(), (x.cast(), incx))
            })
        }

        #[doc = concat!("`y += α·x` of ", stringify!($t), ".")]
        pub unsafe fn $axpy(
            handle: cublasHandle_t, n: c_int, alpha: *const $t, x: *const $t, incx: c_int, y: *mut $t, incy: c_int,
        ) -> cublasStatus_t {
            let (x, y) = ((x.cast(), incx), (y.cast(), incy));
            // SAFETY: as promised by the caller.
            cublasStatus_t::of(unsafe { level1::axpy(handle, GemmType::$dtype, n, alpha.cast(), x, y) })
        }

        #[doc = concat!("Copies ", stringify!($t), " numbers.")]
        pub unsafe fn $copy(
            handle: cublasHandle_t, n: c_int, x: *const $t, incx: c_int, y: *mut $t, incy: c_int,
        ) -> cublasStatus_t {
            // SAFETY: as promised by the caller.
            cublasStatus_t::of(unsafe {
                level1::copy(handle, GemmType::$dtype, n, (x.cast(), incx), (y.cast(), incy))
            })
        }

        #[doc = concat!("Exchanges ", stringify!($t), " numbers.")]
        pub unsafe fn $swap(
            handle: cublasHandle_t, n: c_int, x: *mut $t, incx: c_int, y: *mut $t, incy: c_int,
        ) -> cublasStatus_t {
            // SAFETY: as promised by the caller.
            cublasStatus_t::of(unsafe {
                level1::swap(handle, GemmType::$dtype, n, (x.cast(), incx), (y.cast(), incy))
            })
        }
    )*};
}

vectors! {
    f32 F32: cublasSdot_v2 cublasSnrm2_v2 cublasIsamax_v2 cublasSscal_v2 cublasSaxpy_v2 cublasScopy_v2 cublasSswap_v2;
    f64 F64: cublasDdot_v2 cublasDnrm2_v2 cublasIdamax_v2 cublasDscal_v2 cublasDaxpy_v2 cublasDcopy_v2 cublasDswap_v2;
}

/// Products of matrices whose addresses are listed in the device's memory: one after another here.
pub unsafe fn cublasGemmBatchedEx(
    handle: cublasHandle_t,
    transa: cublasOperation_t,
    transb: cublasOperation_t,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: *const c_void,
    a: *const *const c_void,
    a_type: cudaDataType,
    lda: c_int,
    b: *const *const c_void,
    b_type: cudaDataType,
    ldb: c_int,
    beta: *const c_void,
    c: *const *mut c_void,
    c_type: cudaDataType,
    ldc: c_int,
    batch: c_int,
    compute: cublasComputeType_t,
    _algorithm: cublasGemmAlgo_t,
) -> cublasStatus_t {
    let sizes = Sizes {
        operations: [transa, transb],
        mnk: [m, n, k],
        leading: [lda, ldb, ldc],
        strides: [0; 3],
        batch: 1,
    };
    let problem = Problem { sizes, types: [a_type, b_type, c_type], compute };
    // SAFETY: as promised by the caller.
    cublasStatus_t::of(unsafe {
        handle::on(handle, |queue| {
            let addresses = Addresses::read(Some(queue), a, b, c, products::size("batch", batch.into())?)?;
            problem.each(queue, [alpha, beta], &addresses)
        })
    })
}

/// Groups of products of matrices whose addresses are listed in the host's memory: one after another here.
pub unsafe fn cublasGemmGroupedBatchedEx(
    handle: cublasHandle_t,
    transa: *const cublasOperation_t,
    transb: *const cublasOperation_t,
    m: *const c_int,
    n: *const c_int,
    k: *const c_int,
    alpha: *const c_void,
    a: *const *const c_void,
    a_type: cudaDataType,
    lda: *const c_int,
    b: *const *const c_void,
    b_type: cudaDataType,
    ldb: *const c_int,
    beta: *const c_void,
    c: *const *mut c_void,
    c_type: cudaDataType,
    ldc: *const c_int,
    groups: c_int,
    sizes: *const c_int,
    compute: cublasComputeType_t,
) -> cublasStatus_t {
    // SAFETY: as promised by the caller, each list has an entry for each group, and those of addresses one for each product.
    cublasStatus_t::of(unsafe {
        handle::on(handle, |queue| {
            if queue.mode == cublasPointerMode_t::CUBLAS_POINTER_MODE_DEVICE {
                return not_offered("groups of products whose factors are in the device's memory");
            }
            let groups = products::size("groups", groups.into())?;
            let counts: Vec<usize> = (0..groups)
                .map(|group| products::size("sizes", (*sizes.add(group)).into()))
                .collect::<Result<_, _>>()?;
            let all = Addresses::read(None, a, b, c, counts.iter().sum())?;
            let factor = match compute.factor_type()? {
                GemmType::F64 => 8,
                GemmType::F32 => 4,
                GemmType::F16 | GemmType::Bf16 => 2,
            };
            let mut start = 0;
            for (group, count) in counts.into_iter().enumerate() {
                let sizes = Sizes {
                    operations: [*transa.add(group), *transb.add(group)],
                    mnk: [*m.add(group), *n.add(group), *k.add(group)],
                    leading: [*lda.add(group), *ldb.add(group), *ldc.add(group)],
                    strides: [0; 3],
                    batch: 1,
                };
                let problem = Problem { sizes, types: [a_type, b_type, c_type], compute };
                let factors = [alpha, beta].map(|factors| factors.byte_add(group * factor));
                problem.each(queue, factors, &all.part(start, count))?;
                start += count;
            }
            Ok(())
        })
    })
}

/// Products of the same sizes.
struct Problem {
    sizes: Sizes,
    types: [cudaDataType; 3],
    compute: cublasComputeType_t,
}

/// The operands of each product.
struct Addresses([Vec<usize>; 3]);

impl Addresses {
    /// From lists in the device's memory, or in the host's if there is no queue.
    ///
    /// # Safety
    /// There are as many.
    unsafe fn read(
        queue: Option<&handle::Queue>,
        a: *const *const c_void,
        b: *const *const c_void,
        c: *const *mut c_void,
        count: usize,
    ) -> Result<Addresses, CublasError> {
        let list = |at: *const usize| {
            if count == 0 {
                return Ok(Vec::new());
            }
            let Some(queue) = queue else {
                // SAFETY: as promised by the caller.
                return Ok(unsafe { std::slice::from_raw_parts(at, count) }.to_vec());
            };
            // SAFETY: as promised by the caller.
            let view = unsafe { DeviceView::from_raw_parts(at, count, queue.stream()) };
            queue.checked(view.to_vec())
        };
        Ok(Addresses([list(a.cast())?, list(b.cast())?, list(c.cast())?]))
    }

    fn part(&self, start: usize, count: usize) -> Addresses {
        Addresses([0, 1, 2].map(|i: usize| self.0[i][start..start + count].to_vec()))
    }
}

impl Problem {
    /// # Safety
    /// The addresses are device memory as large as the sizes say, and the factors are of the computation's type.
    unsafe fn each(
        &self,
        queue: &handle::Queue,
        factors: [*const c_void; 2],
        addresses: &Addresses,
    ) -> Result<(), CublasError> {
        let [a_type, b_type, c_type] = self.types;
        let types = [a_type.element()?, b_type.element()?, c_type.element()?];
        let factor = self.compute.factor_type()?;
        // SAFETY: as promised by the caller.
        let factors = unsafe { [queue.factor(factors[0], factor)?, queue.factor(factors[1], factor)?] };
        let [a, b, c] = &addresses.0;
        for ((a, b), c) in a.iter().zip(b).zip(c) {
            let operands = [*a as *const _, *b as *const _];
            // SAFETY: as promised by the caller.
            unsafe { products::gemm(queue, types, self.sizes, factors, operands, *c as *mut _)? };
        }
        Ok(())
    }
}
