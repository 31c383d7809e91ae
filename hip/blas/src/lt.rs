//! hipBLASLt: products described by objects.

use std::ffi::{c_int, c_void};

use crate::hip::Hip;
use crate::job::{Batch, Gemm, Job, Scalar};
use crate::matrix::{Op, Type};
use crate::{code, hipblasStatus_t, status::*};

/// A matrix's type and shape.
#[derive(Clone, Copy)]
struct Layout {
    kind: Type,
    rows: u64,
    columns: u64,
    leading: i64,
}

/// What is computed.
#[derive(Clone, Copy)]
struct Description {
    scale: Type,
    ops: (Op, Op),
}

/// Makes an object that C knows by its address.
///
/// # Safety
/// The pointer is null or valid.
unsafe fn make<T>(into: *mut *mut c_void, value: Result<T, hipblasStatus_t>) -> hipblasStatus_t {
    if into.is_null() {
        return HIPBLAS_STATUS_INVALID_VALUE;
    }
    code(value.map(|value| {
        // SAFETY: the caller's contract.
        unsafe { *into = Box::into_raw(Box::new(value)).cast() };
    }))
}

/// # Safety
/// Null, or an object of this type that nobody uses any more.
unsafe fn destroy<T>(object: *mut c_void) -> hipblasStatus_t {
    if object.is_null() {
        return HIPBLAS_STATUS_INVALID_VALUE;
    }
    // SAFETY: the caller's contract.
    drop(unsafe { Box::from_raw(object.cast::<T>()) });
    HIPBLAS_STATUS_SUCCESS
}

/// A matrix's type, rows, columns, and elements from one column to the next.
///
/// # Safety
/// The pointer is null or valid.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn hipblasLtMatrixLayoutCreate(
    layout: *mut *mut c_void,
    kind: c_int,
    rows: u64,
    columns: u64,
    leading: i64,
) -> hipblasStatus_t {
    // SAFETY: the caller's contract.
    unsafe { make(layout, Type::of(kind).map(|kind| Layout { kind, rows, columns, leading })) }
}

/// Frees a layout.
///
/// # Safety
/// It is null, or nobody uses it any more.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn hipblasLtMatrixLayoutDestroy(layout: *mut c_void) -> hipblasStatus_t {
    // SAFETY: the caller's contract.
    unsafe { destroy::<Layout>(layout) }
}

/// What a product is computed in, and the type of its scalars.
///
/// # Safety
/// The pointer is null or valid.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn hipblasLtMatmulDescCreate(
    description: *mut *mut c_void,
    compute: c_int,
    scale: c_int,
) -> hipblasStatus_t {
    let value = || {
        let ops = (Op::None, Op::None);
        Type::of_compute(compute)?;
        Ok(Description { scale: Type::of(scale)?, ops })
    };
    // SAFETY: the caller's contract.
    unsafe { make(description, value()) }
}

/// Frees a description.
///
/// # Safety
/// It is null, or nobody uses it any more.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn hipblasLtMatmulDescDestroy(description: *mut c_void) -> hipblasStatus_t {
    // SAFETY: the caller's contract.
    unsafe { destroy::<Description>(description) }
}

/// Says what is done to an operand first (attributes 0 and 1); an epilogue (2) must be the default, and others are
/// refused.
///
/// # Safety
/// The description is null or valid, and the value as large as it says.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn hipblasLtMatmulDescSetAttribute(
    description: *mut c_void,
    attribute: c_int,
    value: *const c_void,
    size: usize,
) -> hipblasStatus_t {
    // SAFETY: the caller's contract.
    let Some(description) = (unsafe { description.cast::<Description>().as_mut() }) else {
        return HIPBLAS_STATUS_INVALID_VALUE;
    };
    if value.is_null() || size != size_of::<c_int>() {
        return HIPBLAS_STATUS_NOT_SUPPORTED;
    }
    // SAFETY: the caller's contract.
    let value = unsafe { value.cast::<c_int>().read_unaligned() };
    code(match (attribute, value) {
        (0, op) => Op::of(op).map(|op| description.ops.0 = op),
        (1, op) => Op::of(op).map(|op| description.ops.1 = op),
        (2, 1) => Ok(()),
        _ => Err(HIPBLAS_STATUS_NOT_SUPPORTED),
    })
}

/// What algorithms may need: nothing, here.
///
/// # Safety
/// The pointer is null or valid.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn hipblasLtMatmulPreferenceCreate(preference: *mut *mut c_void) -> hipblasStatus_t {
    // SAFETY: the caller's contract.
    unsafe { make(preference, Ok(0u64)) }
}

/// Frees a preference.
///
/// # Safety
/// It is null, or nobody uses it any more.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn hipblasLtMatmulPreferenceDestroy(preference: *mut c_void) -> hipblasStatus_t {
    // SAFETY: the caller's contract.
    unsafe { destroy::<u64>(preference) }
}

/// Any preference is met.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub extern "C" fn hipblasLtMatmulPreferenceSetAttribute(
    _preference: *mut c_void,
    _attribute: c_int,
    _value: *const c_void,
    _size: usize,
) -> hipblasStatus_t {
    HIPBLAS_STATUS_SUCCESS
}

/// An algorithm for a product: there is one, which needs no workspace.
#[repr(C)]
struct Heuristic {
    algorithm: [u8; 16],
    most_workspace: usize,
    workspace: usize,
    state: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

/// Gives the one algorithm.
///
/// # Safety
/// There is room for as many as are asked for.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn hipblasLtMatmulAlgoGetHeuristic(
    _handle: *mut c_void,
    _description: *mut c_void,
    _a: *mut c_void,
    _b: *mut c_void,
    _c: *mut c_void,
    _d: *mut c_void,
    _preference: *mut c_void,
    asked: c_int,
    results: *mut c_void,
    given: *mut c_int,
) -> hipblasStatus_t {
    if asked < 1 || results.is_null() || given.is_null() {
        return HIPBLAS_STATUS_INVALID_VALUE;
    }
    let only = Heuristic {
        algorithm: [0; 16],
        most_workspace: 0,
        workspace: 0,
        state: HIPBLAS_STATUS_SUCCESS,
        waves: 1.0,
        reserved: [0; 4],
    };
    // SAFETY: the caller's contract.
    unsafe {
        results.cast::<Heuristic>().write_unaligned(only);
        *given = 1;
    }
    HIPBLAS_STATUS_SUCCESS
}

/// `D = alpha op(A) op(B) + beta C`, in a stream.
///
/// # Safety
/// As hipBLASLt says of the arguments; the scalars lie in host memory.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn hipblasLtMatmul(
    _handle: *mut c_void,
    description: *mut c_void,
    alpha: *const c_void,
    a: *const c_void,
    layout_a: *mut c_void,
    b: *const c_void,
    layout_b: *mut c_void,
    beta: *const c_void,
    c: *const c_void,
    layout_c: *mut c_void,
    d: *mut c_void,
    layout_d: *mut c_void,
    _algorithm: *const c_void,
    _workspace: *mut c_void,
    _workspace_bytes: usize,
    stream: *mut c_void,
) -> hipblasStatus_t {
    // SAFETY: the caller's contract.
    let (description, layouts) = unsafe {
        (
            description.cast::<Description>().as_ref(),
            [layout_a, layout_b, layout_c, layout_d].map(|layout| layout.cast::<Layout>().as_ref()),
        )
    };
    let (Some(description), [Some(of_a), Some(of_b), Some(of_c), Some(of_d)]) = (description, layouts) else {
        return HIPBLAS_STATUS_INVALID_VALUE;
    };
    let Some(hip) = Hip::get() else { return HIPBLAS_STATUS_NOT_INITIALIZED };
    let shape = |layout: &Layout, op: Op| op.stored(layout.rows as usize, layout.columns as usize);
    let ((m, k), (k_of_b, n)) = (shape(of_a, description.ops.0), shape(of_b, description.ops.1));
    if k != k_of_b || shape(of_c, Op::None) != (m, n) || shape(of_d, Op::None) != (m, n) {
        return HIPBLAS_STATUS_INVALID_VALUE;
    }
    // SAFETY: the caller's contract.
    let scalar = |value| unsafe { Scalar::new(value, description.scale, false) };
    let (Some(alpha), Some(beta)) = (scalar(alpha), scalar(beta)) else {
        return HIPBLAS_STATUS_INVALID_VALUE;
    };
    let gemm = Gemm {
        ops: description.ops,
        size: (m, n, k),
        alpha,
        beta,
        types: (of_a.kind, of_b.kind, of_c.kind, of_d.kind),
        operands: (a as usize, b as usize, c as usize, d as usize),
        leading: (of_a.leading, of_b.leading, of_c.leading, of_d.leading),
        batch: Batch::Strided(1, [0; 3]),
    };
    code(gemm.check().and_then(|()| hip.enqueue(stream, Job::Gemm(gemm))))
}
