//! The part of hipBLAS, hipBLASLt and rocBLAS that programs call on emulated devices.
//!
//! Programs that use these libraries do not load without them, and AMD's bring kernels of their own for each card. Here
//! products are computed by the host, on the emulated devices' memory, which is the host's: a program's own kernels are
//! what it is emulated for. Each sum is taken in f64 and rounded once. Work is part of its stream: it waits
//! for what is before it, and a stream that is captured gets a host node.
//!
//! One file is all three libraries; the crate's README has the functions, and who calls them. On real devices every
//! call is refused: ROCm's own libraries belong there.

mod hip;
mod job;
mod lt;
mod matrix;
mod status;

use std::ffi::{c_int, c_void};
use std::sync::Arc;

pub use status::*;

use hip::Hip;
use job::{Batch, Gemm, Job, Scalar, Trsm};
use matrix::{Op, Type};

/// What a handle points to.
struct Context {
    hip: Arc<Hip>,
    stream: *mut c_void,
    /// Scalars lie in device memory.
    device_scalars: bool,
}

/// A handle of hipBLAS's or rocBLAS's: the two are the same here, as programs take them to be.
#[allow(non_camel_case_types)]
pub type hipblasHandle_t = *mut c_void;

/// # Safety
/// Null, or a handle that is in use by nobody else.
unsafe fn context<'a>(handle: hipblasHandle_t) -> Result<&'a mut Context, hipblasStatus_t> {
    // SAFETY: the caller's contract.
    unsafe { handle.cast::<Context>().as_mut() }.ok_or(HIPBLAS_STATUS_HANDLE_IS_NULLPTR)
}

fn code(result: Result<(), hipblasStatus_t>) -> hipblasStatus_t {
    result.err().unwrap_or(HIPBLAS_STATUS_SUCCESS)
}

/// Makes a handle, for the default stream.
///
/// # Safety
/// The pointer is null or valid.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn hipblasCreate(handle: *mut hipblasHandle_t) -> hipblasStatus_t {
    if handle.is_null() {
        return HIPBLAS_STATUS_HANDLE_IS_NULLPTR;
    }
    let Some(hip) = Hip::get() else { return HIPBLAS_STATUS_NOT_INITIALIZED };
    let context = Context { hip, stream: std::ptr::null_mut(), device_scalars: false };
    // SAFETY: the caller's contract.
    unsafe { *handle = Box::into_raw(Box::new(context)).cast() };
    HIPBLAS_STATUS_SUCCESS
}

/// Frees a handle.
///
/// # Safety
/// It is null, or nobody uses it any more.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn hipblasDestroy(handle: hipblasHandle_t) -> hipblasStatus_t {
    if handle.is_null() {
        return HIPBLAS_STATUS_HANDLE_IS_NULLPTR;
    }
    // SAFETY: `hipblasCreate` made it.
    drop(unsafe { Box::from_raw(handle.cast::<Context>()) });
    HIPBLAS_STATUS_SUCCESS
}

/// rocBLAS's [`hipblasCreate`].
///
/// # Safety
/// As for [`hipblasCreate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocblas_create_handle(handle: *mut hipblasHandle_t) -> c_int {
    // SAFETY: the caller's contract.
    match unsafe { hipblasCreate(handle) } {
        HIPBLAS_STATUS_SUCCESS => 0,
        // `rocblas_status_invalid_handle`
        _ => 1,
    }
}

/// rocBLAS's [`hipblasDestroy`].
///
/// # Safety
/// As for [`hipblasDestroy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocblas_destroy_handle(handle: hipblasHandle_t) -> c_int {
    // SAFETY: the caller's contract.
    c_int::from(unsafe { hipblasDestroy(handle) } != HIPBLAS_STATUS_SUCCESS)
}

/// Says which stream work goes to.
///
/// # Safety
/// The handle is null or valid.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn hipblasSetStream(handle: hipblasHandle_t, stream: *mut c_void) -> hipblasStatus_t {
    // SAFETY: the caller's contract.
    code(unsafe { context(handle) }.map(|context| context.stream = stream))
}

/// Says where scalars lie: 0 host, 1 device.
///
/// # Safety
/// The handle is null or valid.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn hipblasSetPointerMode(handle: hipblasHandle_t, mode: c_int) -> hipblasStatus_t {
    // SAFETY: the caller's contract.
    code(unsafe { context(handle) }.and_then(|context| {
        if !matches!(mode, 0 | 1) {
            return Err(HIPBLAS_STATUS_INVALID_ENUM);
        }
        context.device_scalars = mode == 1;
        Ok(())
    }))
}

/// A product, as the functions' arguments have it.
struct Call {
    ops: (c_int, c_int),
    size: (c_int, c_int, c_int),
    scalars: (*const c_void, *const c_void),
    types: (Type, Type, Type),
    compute: Type,
    operands: (*const c_void, *const c_void, *mut c_void),
    leading: (i64, i64, i64),
    batch: Batch,
}

impl Context {
    /// # Safety
    /// The scalars are null, or valid as the pointer mode has it.
    unsafe fn gemm(&self, call: Call) -> Result<(), hipblasStatus_t> {
        let size = |n: c_int| usize::try_from(n).map_err(|_| HIPBLAS_STATUS_INVALID_VALUE);
        let (a, b, c) = call.operands;
        let scalar = |value| {
            // SAFETY: the caller's contract.
            unsafe { Scalar::new(value, call.compute, self.device_scalars) }
                .ok_or(HIPBLAS_STATUS_INVALID_VALUE)
        };
        let gemm = Gemm {
            ops: (Op::of(call.ops.0)?, Op::of(call.ops.1)?),
            size: (size(call.size.0)?, size(call.size.1)?, size(call.size.2)?),
            alpha: scalar(call.scalars.0)?,
            beta: scalar(call.scalars.1)?,
            types: (call.types.0, call.types.1, call.types.2, call.types.2),
            operands: (a as usize, b as usize, c as usize, c as usize),
            leading: (call.leading.0, call.leading.1, call.leading.2, call.leading.2),
            batch: call.batch,
        };
        gemm.check()?;
        self.hip.enqueue(self.stream, Job::Gemm(gemm))
    }
}

/// Products.
macro_rules! products {
    ($($(#[$doc:meta])* fn $name:ident($handle:ident, $($arg:ident: $type:ty),*) = $call:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As hipBLAS says of the arguments.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name($handle: hipblasHandle_t, $($arg: $type),*) -> hipblasStatus_t {
            // SAFETY: the caller's contract.
            code(unsafe { context($handle) }.and_then(|context| {
                let call: Call = $call;
                // SAFETY: the caller's contract.
                unsafe { context.gemm(call) }
            }))
        }
    )*};
}

// Types are hipBLAS 2's (150 and on) or HIP's, and so is what is computed in.
products! {
    /// A product of two f32 matrices.
    fn hipblasSgemm(handle, op_a: c_int, op_b: c_int, m: c_int, n: c_int, k: c_int, alpha: *const f32, a: *const
        f32, lda: c_int, b: *const f32, ldb: c_int, beta: *const f32, c: *mut f32, ldc: c_int) = Call {
        ops: (op_a, op_b),
        size: (m, n, k),
        scalars: (alpha.cast(), beta.cast()),
        types: (Type::F32, Type::F32, Type::F32),
        compute: Type::F32,
        operands: (a.cast(), b.cast(), c.cast()),
        leading: (lda.into(), ldb.into(), ldc.into()),
        batch: Batch::one()?,
    };
    /// Products of f32 matrices at a stride.
    fn hipblasSgemmStridedBatched(handle, op_a: c_int, op_b: c_int, m: c_int, n: c_int, k: c_int, alpha: *const
        f32, a: *const f32, lda: c_int, stride_a: i64, b: *const f32, ldb: c_int, stride_b: i64, beta: *const f32,
        c: *mut f32, ldc: c_int, stride_c: i64, count: c_int) = Call {
        ops: (op_a, op_b),
        size: (m, n, k),
        scalars: (alpha.cast(), beta.cast()),
        types: (Type::F32, Type::F32, Type::F32),
        compute: Type::F32,
        operands: (a.cast(), b.cast(), c.cast()),
        leading: (lda.into(), ldb.into(), ldc.into()),
        batch: Batch::strided(count, stride_a, stride_b, stride_c)?,
    };
    /// Products of f32 matrices whose addresses lie in device memory.
    fn hipblasSgemmBatched(handle, op_a: c_int, op_b: c_int, m: c_int, n: c_int, k: c_int, alpha: *const f32, a:
        *const *const f32, lda: c_int, b: *const *const f32, ldb: c_int, beta: *const f32, c: *const *mut f32, ldc:
        c_int, count: c_int) = Call {
        ops: (op_a, op_b),
        size: (m, n, k),
        scalars: (alpha.cast(), beta.cast()),
        types: (Type::F32, Type::F32, Type::F32),
        compute: Type::F32,
        operands: (a.cast(), b.cast(), c.cast_mut().cast()),
        leading: (lda.into(), ldb.into(), ldc.into()),
        batch: Batch::pointers(count)?,
    };
    /// A product of two matrices.
    fn hipblasGemmEx(handle, op_a: c_int, op_b: c_int, m: c_int, n: c_int, k: c_int, alpha: *const c_void, a:
        *const c_void, type_a: c_int, lda: c_int, b: *const c_void, type_b: c_int, ldb: c_int, beta: *const c_void,
        c: *mut c_void, type_c: c_int, ldc: c_int, compute: c_int, algorithm: c_int) = Call {
        ops: (op_a, op_b),
        size: (m, n, k),
        scalars: (alpha, beta),
        types: (Type::of(type_a)?, Type::of(type_b)?, Type::of(type_c)?),
        compute: {
            let _ = algorithm;
            Type::of_compute(compute)?
        },
        operands: (a.cast(), b.cast(), c.cast()),
        leading: (lda.into(), ldb.into(), ldc.into()),
        batch: Batch::one()?,
    };
    /// Products of matrices at a stride.
    fn hipblasGemmStridedBatchedEx(handle, op_a: c_int, op_b: c_int, m: c_int, n: c_int, k: c_int, alpha: *const
        c_void, a: *const c_void, type_a: c_int, lda: c_int, stride_a: i64, b: *const c_void, type_b: c_int, ldb:
        c_int, stride_b: i64, beta: *const c_void, c: *mut c_void, type_c: c_int, ldc: c_int, stride_c: i64, count:
        c_int, compute: c_int, algorithm: c_int) = Call {
        ops: (op_a, op_b),
        size: (m, n, k),
        scalars: (alpha, beta),
        types: (Type::of(type_a)?, Type::of(type_b)?, Type::of(type_c)?),
        compute: {
            let _ = algorithm;
            Type::of_compute(compute)?
        },
        operands: (a.cast(), b.cast(), c.cast()),
        leading: (lda.into(), ldb.into(), ldc.into()),
        batch: Batch::strided(count, stride_a, stride_b, stride_c)?,
    };
    /// Products of matrices whose addresses lie in device memory.
    fn hipblasGemmBatchedEx(handle, op_a: c_int, op_b: c_int, m: c_int, n: c_int, k: c_int, alpha: *const
        c_void, a: *const *const c_void, type_a: c_int, lda: c_int, b: *const *const c_void, type_b: c_int, ldb:
        c_int, beta: *const c_void, c: *mut *mut c_void, type_c: c_int, ldc: c_int, count: c_int, compute: c_int,
        algorithm: c_int) = Call {
        ops: (op_a, op_b),
        size: (m, n, k),
        scalars: (alpha, beta),
        types: (Type::of(type_a)?, Type::of(type_b)?, Type::of(type_c)?),
        compute: {
            let _ = algorithm;
            Type::of_compute(compute)?
        },
        operands: (a.cast(), b.cast(), c.cast()),
        leading: (lda.into(), ldb.into(), ldc.into()),
        batch: Batch::pointers(count)?,
    };
}

/// Solves `A X = alpha B` or `X A = alpha B` for triangular f32 matrices whose addresses lie in device memory; X takes
/// B's place.
///
/// # Safety
/// As hipBLAS says of the arguments.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn hipblasStrsmBatched(
    handle: hipblasHandle_t,
    side: c_int,
    fill: c_int,
    op: c_int,
    diagonal: c_int,
    m: c_int,
    n: c_int,
    alpha: *const f32,
    a: *const *const f32,
    lda: c_int,
    b: *const *mut f32,
    ldb: c_int,
    count: c_int,
) -> hipblasStatus_t {
    // SAFETY: the caller's contract.
    code(unsafe { context(handle) }.and_then(|context| {
        let size = |n: c_int| usize::try_from(n).map_err(|_| HIPBLAS_STATUS_INVALID_VALUE);
        let choice = |value: c_int, no: c_int, yes: c_int| match value {
            _ if value == no => Ok(false),
            _ if value == yes => Ok(true),
            _ => Err(HIPBLAS_STATUS_INVALID_ENUM),
        };
        // SAFETY: the caller's contract.
        let alpha = unsafe { Scalar::new(alpha.cast(), Type::F32, context.device_scalars) };
        let trsm = Trsm {
            is_right: choice(side, 141, 142)?,
            is_lower: choice(fill, 121, 122)?,
            op: Op::of(op)?,
            is_unit: choice(diagonal, 131, 132)?,
            size: (size(m)?, size(n)?),
            alpha: alpha.ok_or(HIPBLAS_STATUS_INVALID_VALUE)?,
            operands: (a as usize, b as usize),
            leading: (lda.into(), ldb.into()),
            count: size(count)?,
        };
        trsm.check()?;
        context.hip.enqueue(context.stream, Job::Trsm(trsm))
    }))
}
