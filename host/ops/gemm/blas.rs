//! The GPU maker's BLAS, if the devices are real and it loads: rocBLAS on AMD GPUs, cuBLAS on NVIDIA GPUs.

use super::{GemmConfig, GemmType, Transpose};
use crate::stream::StreamRef;
use amdhip64::{BackendKind, load_makers_library};
use libloading::Library;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

/// With the value 0, the library is not used.
const VARIABLE: &str = "CANDLE_AMDGPU_BLAS";

type Handle = *mut c_void;
type Create = unsafe extern "C" fn(*mut Handle) -> c_int;
type Destroy = unsafe extern "C" fn(Handle) -> c_int;
type SetStream = unsafe extern "C" fn(Handle, *mut c_void) -> c_int;

/// `rocblas_gemm_strided_batched_ex`: handle, operations, m, n, k, alpha, A, B, beta, C, D (each with type, leading dimension and
/// stride), batch, type of the sums, algorithm, solution, flags.
type RocGemm = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const c_void,
    *const c_void,
    c_int,
    c_int,
    i64,
    *const c_void,
    c_int,
    c_int,
    i64,
    *const c_void,
    *const c_void,
    c_int,
    c_int,
    i64,
    *mut c_void,
    c_int,
    c_int,
    i64,
    c_int,
    c_int,
    c_int,
    i32,
    u32,
) -> c_int;

/// `cublasGemmStridedBatchedEx`: the same without D, solution and flags.
type CudaGemm = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const c_void,
    *const c_void,
    c_int,
    c_int,
    i64,
    *const c_void,
    c_int,
    c_int,
    i64,
    *const c_void,
    *mut c_void,
    c_int,
    c_int,
    i64,
    c_int,
    c_int,
    c_int,
) -> c_int;

#[derive(Clone, Copy)]
enum Gemm {
    Roc(RocGemm),
    Cuda(CudaGemm),
}

/// `rocblas_status_success`, `CUBLAS_STATUS_SUCCESS`
const SUCCESS: c_int = 0;

/// `CUBLAS_GEMM_DEFAULT`
const CUBLAS_DEFAULT: c_int = -1;

/// The functions of the library that are used.
pub(super) struct Blas {
    create: Create,
    set_stream: SetStream,
    gemm: Gemm,
    destroy: Destroy,
    /// A handle for each stream, since those of one handle would share its workspace; the lock is held while one is used.
    handles: Mutex<HashMap<usize, SendHandle>>,
    /// Keeps the functions where they are.
    _library: Option<Library>,
}

struct SendHandle(Handle);

// SAFETY: a handle may be used by any thread, one at a time.
unsafe impl Send for SendHandle {}

static LIBRARY: OnceLock<Option<Blas>> = OnceLock::new();

/// A stream is about to be destroyed.
pub(crate) fn forget(stream: *mut c_void) {
    if let Some(Some(library)) = LIBRARY.get() {
        library.forget(stream);
    }
}

/// The library, if there are real devices and it loads.
pub(super) fn library() -> Option<&'static Blas> {
    let load = || {
        if std::env::var_os(VARIABLE).is_some_and(|value| value == "0") {
            return None;
        }
        let (candidates, of): (_, fn(Library) -> Option<Blas>) = match amdhip64::backend_info().ok()?.kind {
            BackendKind::Hip { .. } => {
                let names = ["librocblas.so", "librocblas.so.5", "librocblas.so.4"];
                (candidates(&names, "ROCM_PATH", "/opt/rocm", "lib"), Blas::rocblas)
            }
            BackendKind::Cuda { .. } => {
                let names = ["libcublas.so.13", "libcublas.so.12", "libcublas.so"];
                (candidates(&names, "CUDA_PATH", "/usr/local/cuda", "lib64"), Blas::cublas)
            }
            BackendKind::Emulator(_) => return None,
        };
        candidates.iter().find_map(|path| of(load_makers_library(path).ok()?))
    };
    LIBRARY.get_or_init(load).as_ref()
}

/// Files to try: what the loader finds by name, then those in the folder that a variable names.
fn candidates(names: &[&str], variable: &str, default: &str, within: &str) -> Vec<PathBuf> {
    let folder = std::env::var_os(variable).map_or_else(|| PathBuf::from(default), PathBuf::from);
    let in_folder = names.iter().map(|name| folder.join(within).join(name));
    names.iter().map(PathBuf::from).chain(in_folder).collect()
}

impl Blas {
    fn new(
        create: Create,
        destroy: Destroy,
        set_stream: SetStream,
        gemm: Gemm,
        library: Option<Library>,
    ) -> Blas {
        Blas { create, destroy, set_stream, gemm, handles: Mutex::default(), _library: library }
    }

    fn rocblas(library: Library) -> Option<Blas> {
        // SAFETY: the types are those of rocblas.h; the library is kept beside the functions.
        let (create, destroy, set_stream, gemm) = unsafe {
            (
                *library.get::<Create>(b"rocblas_create_handle\0").ok()?,
                *library.get::<Destroy>(b"rocblas_destroy_handle\0").ok()?,
                *library.get::<SetStream>(b"rocblas_set_stream\0").ok()?,
                *library.get::<RocGemm>(b"rocblas_gemm_strided_batched_ex\0").ok()?,
            )
        };
        Some(Blas::new(create, destroy, set_stream, Gemm::Roc(gemm), Some(library)))
    }

    fn cublas(library: Library) -> Option<Blas> {
        // SAFETY: the types are those of cublas_api.h; the library is kept beside the functions.
        let (create, destroy, set_stream, gemm) = unsafe {
            (
                *library.get::<Create>(b"cublasCreate_v2\0").ok()?,
                *library.get::<Destroy>(b"cublasDestroy_v2\0").ok()?,
                *library.get::<SetStream>(b"cublasSetStream_v2\0").ok()?,
                *library.get::<CudaGemm>(b"cublasGemmStridedBatchedEx\0").ok()?,
            )
        };
        Some(Blas::new(create, destroy, set_stream, Gemm::Cuda(gemm), Some(library)))
    }

    /// Whether there are products in TF32.
    pub(super) fn has_tf32(&self) -> bool {
        self.gemm.has_tf32()
    }

    /// Enqueues a product. `false` if the library cannot do it, and nothing was enqueued.
    ///
    /// # Safety
    /// The addresses are memory of the stream's device that holds the matrices.
    pub(super) unsafe fn gemm(
        &self,
        stream: &StreamRef<'_>,
        dtype: GemmType,
        config: &GemmConfig,
        [a, b]: [*const c_void; 2],
        c: *mut c_void,
        precision: Precision,
    ) -> bool {
        let Some(sizes) = sizes(config) else { return false };
        let [m, n, k, lda, ldb, ldc, batch] = sizes;
        let [stride_a, stride_b, stride_c] =
            [config.stride_a, config.stride_b, config.stride_c].map(|stride| stride as i64);
        let narrow = [config.alpha as f32, config.beta as f32];
        let wide = [config.alpha, config.beta];
        let [alpha, beta] = [0, 1].map(|i: usize| match dtype {
            GemmType::F64 => std::ptr::from_ref(&wide[i]).cast::<c_void>(),
            _ => std::ptr::from_ref(&narrow[i]).cast(),
        });
        let Some(Codes { operation, data, sums }) = self.gemm.codes(dtype, precision) else { return false };
        let [transa, transb] = [config.transa, config.transb]
            .map(|transpose| operation[usize::from(transpose == Transpose::Yes)]);
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(handle) = self.handle(&mut handles, stream) else { return false };
        // SAFETY: the handle is one of this library's; the factors live until the function has read them, as it does with
        // factors in host memory, the default; the rest is the caller's.
        let status = unsafe {
            match self.gemm {
                #[rustfmt::skip]
                Gemm::Roc(gemm) => gemm(
                    handle, transa, transb, m, n, k, alpha, a, data, lda, stride_a, b, data, ldb, stride_b, beta,
                    c, data, ldc, stride_c, c, data, ldc, stride_c, batch, sums, 0, 0, 0,
                ),
                #[rustfmt::skip]
                Gemm::Cuda(gemm) => gemm(
                    handle, transa, transb, m, n, k, alpha, a, data, lda, stride_a, b, data, ldb, stride_b, beta,
                    c, data, ldc, stride_c, batch, sums, CUBLAS_DEFAULT,
                ),
            }
        };
        status == SUCCESS
    }

    fn handle(&self, handles: &mut HashMap<usize, SendHandle>, stream: &StreamRef<'_>) -> Option<Handle> {
        if let Some(handle) = handles.get(&(stream.raw as usize)) {
            return Some(handle.0);
        }
        stream.device.make_current().ok()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes the handle; the stream is live.
        unsafe {
            if (self.create)(&mut handle) != SUCCESS {
                return None;
            }
            if (self.set_stream)(handle, stream.raw) != SUCCESS {
                (self.destroy)(handle);
                return None;
            }
        }
        handles.insert(stream.raw as usize, SendHandle(handle));
        Some(handle)
    }

    /// Destroys the handle of a stream, whose work is done.
    fn forget(&self, stream: *mut c_void) {
        let handle = self.handles.lock().unwrap_or_else(PoisonError::into_inner).remove(&(stream as usize));
        if let Some(SendHandle(handle)) = handle {
            // SAFETY: the handle is this library's, and used nowhere else any more.
            unsafe { (self.destroy)(handle) };
        }
    }
}

/// The numbers that a library has for things: an operation as it is and transposed, the elements' type, the type of the sums.
struct Codes {
    operation: [c_int; 2],
    data: c_int,
    sums: c_int,
}

/// How exact products of f32 are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    /// As f32.
    Full,
    /// Operands have the 10 bits of TF32.
    Tf32,
}

impl Gemm {
    /// Whether there are products in TF32.
    fn has_tf32(self) -> bool {
        matches!(self, Gemm::Cuda(_))
    }

    /// Sums of narrow types are f32.
    fn codes(self, dtype: GemmType, precision: Precision) -> Option<Codes> {
        let by_type = |[f16, f32, f64, bf16]: [(c_int, c_int); 4]| match dtype {
            GemmType::F16 => f16,
            GemmType::F32 => f32,
            GemmType::F64 => f64,
            GemmType::Bf16 => bf16,
        };
        let (operation, (data, mut sums)) = match self {
            // rocblas_operation, rocblas_datatype twice
            Gemm::Roc(_) => ([111, 112], by_type([(150, 151), (151, 151), (152, 152), (168, 151)])),
            // cublasOperation_t, cudaDataType, cublasComputeType_t
            Gemm::Cuda(_) => ([0, 1], by_type([(2, 68), (0, 68), (1, 70), (14, 68)])),
        };
        if precision == Precision::Tf32 {
            if !self.has_tf32() {
                return None;
            }
            // CUBLAS_COMPUTE_32F_FAST_TF32
            sums = 77;
        }
        Some(Codes { operation, data, sums })
    }
}

/// The sizes, if there is a product and the libraries' integers hold them.
fn sizes(config: &GemmConfig) -> Option<[c_int; 7]> {
    let GemmConfig { m, n, k, lda, ldb, ldc, batch, .. } = *config;
    if config.alpha == 0.0 || m == 0 || n == 0 || k == 0 || batch == 0 {
        return None;
    }
    let mut sizes = [0; 7];
    for (size, value) in sizes.iter_mut().zip([m, n, k, lda, ldb, ldc, batch]) {
        *size = c_int::try_from(value).ok()?;
    }
    Some(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AsStream, Device};
    use std::cell::Cell;

    thread_local! {
        static DESTROYED: Cell<usize> = const { Cell::new(0) };
    }

    /// # Safety
    /// `handle` can be written.
    unsafe extern "C" fn create(handle: *mut Handle) -> c_int {
        // SAFETY: the caller's
        unsafe { *handle = std::ptr::dangling_mut::<u8>().cast() };
        SUCCESS
    }

    /// # Safety
    /// None: it only counts.
    unsafe extern "C" fn destroy(_: Handle) -> c_int {
        DESTROYED.with(|count| count.set(count.get() + 1));
        SUCCESS
    }

    /// # Safety
    /// None: it does nothing.
    unsafe extern "C" fn set_stream(_: Handle, _: *mut c_void) -> c_int {
        SUCCESS
    }

    /// What both libraries compute, for f32 in host memory.
    struct Product {
        transposed: [bool; 2],
        sizes: [c_int; 3],
        factors: [*const c_void; 2],
        a: (*const c_void, c_int, i64),
        b: (*const c_void, c_int, i64),
        c: (*const c_void, c_int, i64),
        d: (*mut c_void, c_int, i64),
        batch: c_int,
    }

    impl Product {
        /// # Safety
        /// The matrices are as the sizes say.
        unsafe fn compute(self) -> c_int {
            let at = |from: *const c_void, i: i64| {
                // SAFETY: the caller's
                unsafe { from.cast::<f32>().offset(i as isize).read() }
            };
            let [m, n, k] = self.sizes.map(i64::from);
            let element = |(from, leading, stride): (_, c_int, i64), transposed, row, column, z| {
                let (row, column) = if transposed { (column, row) } else { (row, column) };
                at(from, row + column * i64::from(leading) + z * stride)
            };
            for z in 0..i64::from(self.batch) {
                for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                    let sum: f32 = (0..k)
                        .map(|l| {
                            element(self.a, self.transposed[0], i, l, z)
                                * element(self.b, self.transposed[1], l, j, z)
                        })
                        .sum();
                    let [alpha, beta] = self.factors.map(|factor| at(factor, 0));
                    let value = alpha * sum + beta * element(self.c, false, i, j, z);
                    let (to, leading, stride) = self.d;
                    let place = i + j * i64::from(leading) + z * stride;
                    // SAFETY: the caller's
                    unsafe { to.cast::<f32>().offset(place as isize).write(value) };
                }
            }
            SUCCESS
        }
    }

    /// # Safety
    /// The matrices are as the sizes say.
    #[rustfmt::skip]
    unsafe extern "C" fn roc_gemm(
        _: Handle, transa: c_int, transb: c_int, m: c_int, n: c_int, k: c_int,
        alpha: *const c_void, a: *const c_void, a_type: c_int, lda: c_int, stride_a: i64,
        b: *const c_void, b_type: c_int, ldb: c_int, stride_b: i64,
        beta: *const c_void, c: *const c_void, c_type: c_int, ldc: c_int, stride_c: i64,
        d: *mut c_void, d_type: c_int, ldd: c_int, stride_d: i64,
        batch: c_int, sums: c_int, _: c_int, _: i32, _: u32,
    ) -> c_int {
        assert_eq!([a_type, b_type, c_type, d_type, sums], [151; 5]);
        let product = Product {
            transposed: [transa, transb].map(|operation| operation == 112),
            sizes: [m, n, k],
            factors: [alpha, beta],
            a: (a, lda, stride_a),
            b: (b, ldb, stride_b),
            c: (c, ldc, stride_c),
            d: (d, ldd, stride_d),
            batch,
        };
        // SAFETY: the caller's
        unsafe { product.compute() }
    }

    /// # Safety
    /// The matrices are as the sizes say.
    #[rustfmt::skip]
    unsafe extern "C" fn cuda_gemm(
        _: Handle, transa: c_int, transb: c_int, m: c_int, n: c_int, k: c_int,
        alpha: *const c_void, a: *const c_void, a_type: c_int, lda: c_int, stride_a: i64,
        b: *const c_void, b_type: c_int, ldb: c_int, stride_b: i64,
        beta: *const c_void, c: *mut c_void, c_type: c_int, ldc: c_int, stride_c: i64,
        batch: c_int, sums: c_int, algorithm: c_int,
    ) -> c_int {
        assert!([a_type, b_type, c_type, algorithm] == [0, 0, 0, -1] && [68, 77].contains(&sums));
        let product = Product {
            transposed: [transa, transb].map(|operation| operation == 1),
            sizes: [m, n, k],
            factors: [alpha, beta],
            a: (a, lda, stride_a),
            b: (b, ldb, stride_b),
            c: (c.cast_const(), ldc, stride_c),
            d: (c, ldc, stride_c),
            batch,
        };
        // SAFETY: the caller's
        unsafe { product.compute() }
    }

    #[test]
    fn arguments_arrive_where_the_libraries_have_them() {
        let stream = Device::new(0).unwrap().stream().unwrap();
        let config = GemmConfig {
            transa: Transpose::Yes,
            alpha: 2.0,
            lda: 3,
            stride_a: 6,
            stride_b: 3,
            beta: -1.0,
            ldc: 2,
            stride_c: 2,
            batch: 2,
            ..GemmConfig::new(2, 1, 3)
        };
        let a: Vec<f32> = (1..=12).map(|x| x as f32).collect();
        let b = [1.0_f32, 10.0, 100.0, 1.0, 0.0, 0.0];
        for gemm in [Gemm::Roc(roc_gemm), Gemm::Cuda(cuda_gemm)] {
            let library = Blas::new(create, destroy, set_stream, gemm, None);
            let mut c = [5.0_f32; 4];
            let on = stream.stream_ref().unwrap();
            let operands = [a.as_ptr().cast(), b.as_ptr().cast()];
            // SAFETY: the functions above read host memory
            let mut multiply = |precision| unsafe {
                library.gemm(&on, GemmType::F32, &config, operands, c.as_mut_ptr().cast(), precision)
            };
            assert_eq!(multiply(Precision::Tf32), library.has_tf32());
            assert!(multiply(Precision::Full));
            let once = [637.0, 1303.0, 9.0, 15.0];
            // The product that is added again takes the old values away, which were those of the first.
            let twice = [642.0 - 637.0, 1308.0 - 1303.0, 14.0 - 9.0, 20.0 - 15.0];
            assert_eq!(c, if library.has_tf32() { twice } else { once });
            let destroyed = DESTROYED.get();
            library.forget(on.raw);
            library.forget(on.raw);
            assert_eq!(DESTROYED.get(), destroyed + 1);
        }
        assert_eq!(sizes(&GemmConfig { k: 0, ..config }), None);
        assert_eq!(sizes(&GemmConfig { lda: 1 << 31, ..config }), None);
    }
}
