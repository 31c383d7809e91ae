//! rocBLAS, if the devices are real and the library loads.

use super::{GemmConfig, GemmType, Transpose};
use crate::Device;
use crate::stream::StreamRef;
use amdhip64::BackendKind;
use libloading::Library;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// With the value 0, rocBLAS is not used.
const VARIABLE: &str = "CANDLE_AMDGPU_ROCBLAS";

type Handle = *mut c_void;
type Create = unsafe extern "C" fn(*mut Handle) -> c_int;
type SetStream = unsafe extern "C" fn(Handle, *mut c_void) -> c_int;
type Gemm = unsafe extern "C" fn(
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

/// `rocblas_status_success`
const SUCCESS: c_int = 0;

/// The functions of the library that are used.
pub(super) struct RocBlas {
    create: Create,
    set_stream: SetStream,
    gemm: Gemm,
    /// A handle for each device, by its number; the lock is held while one is used.
    handles: Mutex<HashMap<usize, SendHandle>>,
    /// Keeps the functions where they are.
    _library: Option<Library>,
}

struct SendHandle(Handle);

// SAFETY: a handle may be used by any thread, one at a time.
unsafe impl Send for SendHandle {}

/// The library, if there are real devices and it loads.
pub(super) fn library() -> Option<&'static RocBlas> {
    static LIBRARY: OnceLock<Option<RocBlas>> = OnceLock::new();
    let load = || {
        let real = matches!(amdhip64::backend_info().ok()?.kind, BackendKind::Hip { .. });
        let wanted = std::env::var_os(VARIABLE).is_none_or(|value| value != "0");
        if real && wanted { candidates().iter().find_map(|path| RocBlas::load(path)) } else { None }
    };
    LIBRARY.get_or_init(load).as_ref()
}

/// Names to try: what the loader finds, then ROCm's folder.
fn candidates() -> Vec<PathBuf> {
    let names = ["librocblas.so", "librocblas.so.5", "librocblas.so.4"].map(PathBuf::from);
    let folder = std::env::var_os("ROCM_PATH").map_or_else(|| PathBuf::from("/opt/rocm"), PathBuf::from);
    let in_folder = names.clone().map(|name| folder.join("lib").join(name));
    names.into_iter().chain(in_folder).collect()
}

impl RocBlas {
    #[cfg(unix)]
    fn load(path: &Path) -> Option<RocBlas> {
        use libloading::os::unix::{Library as UnixLibrary, RTLD_LOCAL, RTLD_NOW};
        // The library's calls of HIP go to the real one, whatever this process defines.
        const RTLD_DEEPBIND: c_int = if cfg!(all(target_os = "linux", target_env = "gnu")) { 8 } else { 0 };
        // SAFETY: loading runs the library's initialisers, which are made to be run so.
        let library = unsafe { UnixLibrary::open(Some(path), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) };
        RocBlas::of(library.ok()?.into())
    }

    #[cfg(not(unix))]
    fn load(path: &Path) -> Option<RocBlas> {
        // SAFETY: loading runs the library's initialisers, which are made to be run so.
        RocBlas::of(unsafe { Library::new(path) }.ok()?)
    }

    fn of(library: Library) -> Option<RocBlas> {
        // SAFETY: the types are those of rocblas.h; the library is kept beside the functions.
        unsafe {
            Some(RocBlas {
                create: *library.get::<Create>(b"rocblas_create_handle\0").ok()?,
                set_stream: *library.get::<SetStream>(b"rocblas_set_stream\0").ok()?,
                gemm: *library.get::<Gemm>(b"rocblas_gemm_strided_batched_ex\0").ok()?,
                handles: Mutex::default(),
                _library: Some(library),
            })
        }
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
    ) -> bool {
        let Some(sizes) = sizes(config) else { return false };
        let [m, n, k, lda, ldb, ldc, batch] = sizes;
        let [stride_a, stride_b, stride_c] =
            [config.stride_a, config.stride_b, config.stride_c].map(|stride| stride as i64);
        let operation = |transpose| if transpose == Transpose::Yes { 112 } else { 111 };
        // rocblas_datatype
        let (data, compute) = match dtype {
            GemmType::F16 => (150, 151),
            GemmType::F32 => (151, 151),
            GemmType::F64 => (152, 152),
            GemmType::Bf16 => (168, 151),
        };
        let narrow = [config.alpha as f32, config.beta as f32];
        let wide = [config.alpha, config.beta];
        let factor = |i: usize| match dtype {
            GemmType::F64 => std::ptr::from_ref(&wide[i]).cast::<c_void>(),
            _ => std::ptr::from_ref(&narrow[i]).cast(),
        };
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(handle) = self.handle(&mut handles, &stream.device) else { return false };
        // SAFETY: the handle is one of this library's; the factors live until the function has read them, as it does with
        // factors in host memory, the default; the rest is the caller's.
        unsafe {
            (self.set_stream)(handle, stream.raw) == SUCCESS
                && (self.gemm)(
                    handle,
                    operation(config.transa),
                    operation(config.transb),
                    m,
                    n,
                    k,
                    factor(0),
                    a,
                    data,
                    lda,
                    stride_a,
                    b,
                    data,
                    ldb,
                    stride_b,
                    factor(1),
                    c,
                    data,
                    ldc,
                    stride_c,
                    c,
                    data,
                    ldc,
                    stride_c,
                    batch,
                    compute,
                    0,
                    0,
                    0,
                ) == SUCCESS
        }
    }

    fn handle(&self, handles: &mut HashMap<usize, SendHandle>, device: &Device) -> Option<Handle> {
        if let Some(handle) = handles.get(&device.ordinal()) {
            return Some(handle.0);
        }
        device.make_current().ok()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes the handle.
        if unsafe { (self.create)(&mut handle) } != SUCCESS {
            return None;
        }
        handles.insert(device.ordinal(), SendHandle(handle));
        Some(handle)
    }
}

/// The sizes, if there is a product and rocBLAS's integers hold them.
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
    use crate::AsStream;

    /// # Safety
    /// `handle` can be written.
    unsafe extern "C" fn create(handle: *mut Handle) -> c_int {
        // SAFETY: the caller's
        unsafe { *handle = std::ptr::dangling_mut::<u8>().cast() };
        SUCCESS
    }

    /// # Safety
    /// None: it does nothing.
    unsafe extern "C" fn set_stream(_: Handle, _: *mut c_void) -> c_int {
        SUCCESS
    }

    /// rocBLAS's definition, for f32 in host memory.
    ///
    /// # Safety
    /// The matrices are as the sizes say.
    unsafe extern "C" fn gemm(
        _: Handle,
        transa: c_int,
        transb: c_int,
        m: c_int,
        n: c_int,
        k: c_int,
        alpha: *const c_void,
        a: *const c_void,
        a_type: c_int,
        lda: c_int,
        stride_a: i64,
        b: *const c_void,
        _: c_int,
        ldb: c_int,
        stride_b: i64,
        beta: *const c_void,
        c: *const c_void,
        _: c_int,
        ldc: c_int,
        stride_c: i64,
        d: *mut c_void,
        d_type: c_int,
        ldd: c_int,
        stride_d: i64,
        batch: c_int,
        compute: c_int,
        _: c_int,
        _: i32,
        _: u32,
    ) -> c_int {
        assert_eq!((a_type, d_type, compute), (151, 151, 151));
        // SAFETY: the test's matrices
        unsafe {
            let at = |from: *const c_void, i: i64| from.cast::<f32>().offset(i as isize).read();
            for z in 0..i64::from(batch) {
                for (i, j) in (0..i64::from(m)).flat_map(|i| (0..i64::from(n)).map(move |j| (i, j))) {
                    let element = |from, transpose, row, column, ld: c_int, z| {
                        let (row, column) = if transpose == 112 { (column, row) } else { (row, column) };
                        at(from, row + column * i64::from(ld) + z)
                    };
                    let sum: f32 = (0..i64::from(k))
                        .map(|l| {
                            element(a, transa, i, l, lda, z * stride_a)
                                * element(b, transb, l, j, ldb, z * stride_b)
                        })
                        .sum();
                    let old = at(c, i + j * i64::from(ldc) + z * stride_c);
                    let value = at(alpha, 0) * sum + at(beta, 0) * old;
                    d.cast::<f32>().offset((i + j * i64::from(ldd) + z * stride_d) as isize).write(value);
                }
            }
        }
        SUCCESS
    }

    #[test]
    fn arguments_arrive_where_rocblas_has_them() {
        let library = RocBlas { create, set_stream, gemm, handles: Mutex::default(), _library: None };
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
        let mut c = [5.0_f32; 4];
        // SAFETY: the function above reads host memory
        let done = unsafe {
            let operands = [a.as_ptr().cast(), b.as_ptr().cast()];
            library.gemm(
                &stream.stream_ref().unwrap(),
                GemmType::F32,
                &config,
                operands,
                c.as_mut_ptr().cast(),
            )
        };
        assert!(done);
        assert_eq!(c, [637.0, 1303.0, 9.0, 15.0]);
        assert_eq!(sizes(&GemmConfig { k: 0, ..config }), None);
        assert_eq!(sizes(&GemmConfig { lda: 1 << 31, ..config }), None);
    }
}
