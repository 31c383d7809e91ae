//! Products by descriptors and addresses.

use super::Activation;
use super::sys;
use crate::cublas::result::not_offered;
use crate::cublas::sys::{cublasHandle_t, cublasOperation_t, cudaDataType};
use crate::cublas::{self, gemm_of, on_stream};
use crate::driver::sys::CUdeviceptr;
use crate::elementwise::{self, bytes_of};
use candle_amdgpu::DeviceBuffer;
use candle_amdgpu::gemm::{GemmConfig, GemmType};
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

pub use crate::cublas::result::CublasError;

/// What is behind a handle.
#[derive(Debug)]
#[expect(non_camel_case_types, reason = "cuBLASLt's name")]
pub struct cublasLtContext(cublasHandle_t);

/// What a matrix looks like.
#[derive(Clone, Copy, Debug)]
struct Shape {
    dtype: cudaDataType,
    rows: u64,
    columns: u64,
    leading: i64,
    batch: i32,
    stride: i64,
    order: sys::cublasLtOrder_t,
}

/// What is computed.
#[derive(Clone, Copy, Debug)]
struct Product {
    compute: sys::cublasComputeType_t,
    scale: cudaDataType,
    operations: [cublasOperation_t; 3],
    epilogue: sys::cublasLtEpilogue_t,
    bias: CUdeviceptr,
    bias_stride: i64,
    bias_type: Option<cudaDataType>,
}

/// Behind a [`cublasLtMatrixLayout_t`](sys::cublasLtMatrixLayout_t).
#[derive(Debug)]
#[expect(non_camel_case_types, reason = "cuBLASLt's name")]
pub struct cublasLtMatrixLayoutOpaque_t(Mutex<Shape>);

/// Behind a [`cublasLtMatmulDesc_t`](sys::cublasLtMatmulDesc_t).
#[derive(Debug)]
#[expect(non_camel_case_types, reason = "cuBLASLt's name")]
pub struct cublasLtMatmulDescOpaque_t(Mutex<Product>);

/// Behind a [`cublasLtMatmulPreference_t`](sys::cublasLtMatmulPreference_t).
#[derive(Debug)]
#[expect(non_camel_case_types, reason = "cuBLASLt's name")]
pub struct cublasLtMatmulPreferenceOpaque_t(());

/// What a handle refers to.
///
/// # Safety
/// It is null or live.
unsafe fn get<'a, T>(handle: *mut T) -> Result<&'a T, CublasError> {
    // SAFETY: as promised by the caller.
    unsafe { handle.as_ref() }.ok_or(CublasError::NoHandle)
}

/// Frees what a handle refers to.
///
/// # Safety
/// It is null or live, and came from a box.
unsafe fn free<T>(handle: *mut T) -> Result<(), CublasError> {
    if handle.is_null() {
        return Err(CublasError::NoHandle);
    }
    // SAFETY: as promised by the caller.
    drop(unsafe { Box::from_raw(handle) });
    Ok(())
}

/// The value of an attribute.
///
/// # Safety
/// There are as many bytes.
unsafe fn value<T: Copy>(
    name: impl std::fmt::Debug,
    from: *const c_void,
    bytes: usize,
) -> Result<T, CublasError> {
    if from.is_null() || bytes < size_of::<T>() {
        return not_offered(format!("{name:?} of {bytes} bytes: it has {}", size_of::<T>()));
    }
    // SAFETY: as promised by the caller; it need not be aligned.
    Ok(unsafe { from.cast::<T>().read_unaligned() })
}

/// A handle for the calling thread's device.
///
/// # Errors
/// If there is no device.
pub fn create_handle() -> Result<sys::cublasLtHandle_t, CublasError> {
    Ok(Box::into_raw(Box::new(cublasLtContext(cublas::result::create_handle()?))))
}

/// Frees a handle.
///
/// # Safety
/// It is live, and nobody uses it afterwards.
///
/// # Errors
/// If it is null.
pub unsafe fn destroy_handle(handle: sys::cublasLtHandle_t) -> Result<(), CublasError> {
    // SAFETY: as promised by the caller.
    unsafe {
        let inner = get(handle)?.0;
        free(handle)?;
        cublas::result::destroy_handle(inner)
    }
}

/// A column-major matrix.
///
/// # Errors
/// None; the signature is cudarc's.
pub fn create_matrix_layout(
    matrix_type: sys::cudaDataType,
    rows: u64,
    cols: u64,
    ld: i64,
) -> Result<sys::cublasLtMatrixLayout_t, CublasError> {
    let order = sys::cublasLtOrder_t::CUBLASLT_ORDER_COL;
    let shape = Shape { dtype: matrix_type, rows, columns: cols, leading: ld, batch: 1, stride: 0, order };
    Ok(Box::into_raw(Box::new(cublasLtMatrixLayoutOpaque_t(Mutex::new(shape)))))
}

/// Sets an attribute of a layout.
///
/// # Safety
/// The layout is live, and `buf` has a value of the attribute's type.
///
/// # Errors
/// If the size is not that of the attribute, or for one that there is not.
pub unsafe fn set_matrix_layout_attribute(
    matrix_layout: sys::cublasLtMatrixLayout_t,
    attr: sys::cublasLtMatrixLayoutAttribute_t,
    buf: *const c_void,
    buf_size: usize,
) -> Result<(), CublasError> {
    use sys::cublasLtMatrixLayoutAttribute_t::*;
    // SAFETY: as promised by the caller.
    unsafe {
        let mut shape = get(matrix_layout)?.0.lock().unwrap_or_else(PoisonError::into_inner);
        match attr {
            CUBLASLT_MATRIX_LAYOUT_TYPE => shape.dtype = value(attr, buf, buf_size)?,
            CUBLASLT_MATRIX_LAYOUT_ORDER => shape.order = value(attr, buf, buf_size)?,
            CUBLASLT_MATRIX_LAYOUT_ROWS => shape.rows = value(attr, buf, buf_size)?,
            CUBLASLT_MATRIX_LAYOUT_COLS => shape.columns = value(attr, buf, buf_size)?,
            CUBLASLT_MATRIX_LAYOUT_LD => shape.leading = value(attr, buf, buf_size)?,
            CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT => shape.batch = value(attr, buf, buf_size)?,
            CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET => shape.stride = value(attr, buf, buf_size)?,
            CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET => return not_offered("matrices of complex numbers"),
        }
    }
    Ok(())
}

/// Frees a layout.
///
/// # Safety
/// It is live, and nobody uses it afterwards.
///
/// # Errors
/// If it is null.
pub unsafe fn destroy_matrix_layout(matrix_layout: sys::cublasLtMatrixLayout_t) -> Result<(), CublasError> {
    // SAFETY: as promised by the caller.
    unsafe { free(matrix_layout) }
}

/// A product without anything behind it.
///
/// # Errors
/// None; the signature is cudarc's.
pub fn create_matmul_desc(
    compute_type: sys::cublasComputeType_t,
    scale_type: sys::cudaDataType,
) -> Result<sys::cublasLtMatmulDesc_t, CublasError> {
    let product = Product {
        compute: compute_type,
        scale: scale_type,
        operations: [cublasOperation_t::CUBLAS_OP_N; 3],
        epilogue: sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_DEFAULT,
        bias: 0,
        bias_stride: 0,
        bias_type: None,
    };
    Ok(Box::into_raw(Box::new(cublasLtMatmulDescOpaque_t(Mutex::new(product)))))
}

/// Sets an attribute of a product.
///
/// # Safety
/// The product is live, and `buf` has a value of the attribute's type.
///
/// # Errors
/// If the size is not that of the attribute, or for one that there is not.
pub unsafe fn set_matmul_desc_attribute(
    matmul_desc: sys::cublasLtMatmulDesc_t,
    attr: sys::cublasLtMatmulDescAttributes_t,
    buf: *const c_void,
    buf_size: usize,
) -> Result<(), CublasError> {
    use sys::cublasLtMatmulDescAttributes_t::*;
    // SAFETY: as promised by the caller.
    unsafe {
        let mut product = get(matmul_desc)?.0.lock().unwrap_or_else(PoisonError::into_inner);
        match attr {
            CUBLASLT_MATMUL_DESC_COMPUTE_TYPE => product.compute = value(attr, buf, buf_size)?,
            CUBLASLT_MATMUL_DESC_SCALE_TYPE => product.scale = value(attr, buf, buf_size)?,
            CUBLASLT_MATMUL_DESC_TRANSA => product.operations[0] = value(attr, buf, buf_size)?,
            CUBLASLT_MATMUL_DESC_TRANSB => product.operations[1] = value(attr, buf, buf_size)?,
            CUBLASLT_MATMUL_DESC_TRANSC => product.operations[2] = value(attr, buf, buf_size)?,
            CUBLASLT_MATMUL_DESC_EPILOGUE => product.epilogue = value(attr, buf, buf_size)?,
            CUBLASLT_MATMUL_DESC_BIAS_POINTER => product.bias = value(attr, buf, buf_size)?,
            CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE => product.bias_stride = value(attr, buf, buf_size)?,
            CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE => product.bias_type = Some(value(attr, buf, buf_size)?),
            CUBLASLT_MATMUL_DESC_POINTER_MODE if value::<u32>(attr, buf, buf_size)? == 0 => {}
            CUBLASLT_MATMUL_DESC_FILL_MODE if value::<u32>(attr, buf, buf_size)? == 2 => {}
            other => return not_offered(format!("this value of {other:?}")),
        }
    }
    Ok(())
}

/// Frees a product's description.
///
/// # Safety
/// It is live, and nobody uses it afterwards.
///
/// # Errors
/// If it is null.
pub unsafe fn destroy_matmul_desc(matmul_desc: sys::cublasLtMatmulDesc_t) -> Result<(), CublasError> {
    // SAFETY: as promised by the caller.
    unsafe { free(matmul_desc) }
}

/// No preference.
///
/// # Errors
/// None; the signature is cudarc's.
pub fn create_matmul_pref() -> Result<sys::cublasLtMatmulPreference_t, CublasError> {
    Ok(Box::into_raw(Box::new(cublasLtMatmulPreferenceOpaque_t(()))))
}

/// Sets an attribute of a preference. It makes no difference here.
///
/// # Safety
/// The preference is live.
///
/// # Errors
/// If it is null.
pub unsafe fn set_matmul_pref_attribute(
    matmul_pref: sys::cublasLtMatmulPreference_t,
    _attr: sys::cublasLtMatmulPreferenceAttributes_t,
    _buf: *const c_void,
    _buf_size: usize,
) -> Result<(), CublasError> {
    // SAFETY: as promised by the caller.
    unsafe { get(matmul_pref) }.map(drop)
}

/// Frees a preference.
///
/// # Safety
/// It is live, and nobody uses it afterwards.
///
/// # Errors
/// If it is null.
pub unsafe fn destroy_matmul_pref(matmul_pref: sys::cublasLtMatmulPreference_t) -> Result<(), CublasError> {
    // SAFETY: as promised by the caller.
    unsafe { free(matmul_pref) }
}

/// What [`matmul`] works with.
struct Plan {
    types: [GemmType; 3],
    config: GemmConfig,
    /// Layout of C, which may be elsewhere than the result.
    c: Shape,
    activation: Option<&'static str>,
    /// Address and stride.
    bias: Option<(CUdeviceptr, usize)>,
}

impl Plan {
    /// # Safety
    /// The handles are null or live.
    unsafe fn new(
        desc: sys::cublasLtMatmulDesc_t,
        layouts: [sys::cublasLtMatrixLayout_t; 4],
    ) -> Result<Plan, CublasError> {
        use sys::cublasLtEpilogue_t::*;
        let shape = |layout| {
            // SAFETY: as promised by the caller.
            let layout = unsafe { get::<cublasLtMatrixLayoutOpaque_t>(layout) }?;
            Ok::<_, CublasError>(*layout.0.lock().unwrap_or_else(PoisonError::into_inner))
        };
        let [a, b, c, d] = layouts.map(shape);
        let (a, b, c, d) = (a?, b?, c?, d?);
        // SAFETY: as promised by the caller.
        let product = *unsafe { get(desc) }?.0.lock().unwrap_or_else(PoisonError::into_inner);
        if [a, b, c, d].iter().any(|shape| shape.order != sys::cublasLtOrder_t::CUBLASLT_ORDER_COL) {
            return not_offered("matrices that are stored row after row: exchange the operands");
        }
        let [transa, transb, transc] = product.operations.map(cublasOperation_t::transpose);
        if transc != candle_amdgpu::gemm::Transpose::No {
            return not_offered("a result that is transposed: exchange and transpose the operands");
        }
        let stored = |shape: &Shape, transpose| match transpose {
            candle_amdgpu::gemm::Transpose::No => [shape.rows, shape.columns],
            candle_amdgpu::gemm::Transpose::Yes => [shape.columns, shape.rows],
        };
        let ([m, k], [b_rows, n]) = (stored(&a, transa), stored(&b, transb));
        let fits = k == b_rows && [c, d].iter().all(|shape| [shape.rows, shape.columns] == [m, n]);
        let batched = [a, b, c, d].iter().all(|shape| shape.batch == d.batch || shape.batch == 1);
        if !fits || !batched || c.dtype != d.dtype || c.batch != d.batch {
            return not_offered(format!("a product of {a:?} and {b:?} to {d:?} from {c:?}: they do not fit"));
        }
        let types = [a.dtype.element()?, b.dtype.element()?, d.dtype.element()?];
        if product.scale.element()? != product.compute.factor_type()? {
            return not_offered(format!("factors of {:?} for {:?}", product.scale, product.compute));
        }
        let (activation, with_bias) = match product.epilogue {
            CUBLASLT_EPILOGUE_DEFAULT => (None, false),
            CUBLASLT_EPILOGUE_BIAS => (None, true),
            CUBLASLT_EPILOGUE_RELU => (Some("relu"), false),
            CUBLASLT_EPILOGUE_RELU_BIAS => (Some("relu"), true),
            CUBLASLT_EPILOGUE_GELU => (Some("gelu"), false),
            CUBLASLT_EPILOGUE_GELU_BIAS => (Some("gelu"), true),
            other => return not_offered(format!("{other:?}")),
        };
        if product.bias_type.is_some_and(|dtype| dtype != d.dtype) {
            return not_offered("a bias of another type than the result");
        }
        if with_bias && product.bias == 0 {
            return not_offered("a bias at address 0: set CUBLASLT_MATMUL_DESC_BIAS_POINTER");
        }
        let size = |name, value: i64| cublas::size(name, value);
        let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        let stride =
            |name, shape: &Shape| if shape.batch == d.batch { size(name, shape.stride) } else { Ok(0) };
        let config = GemmConfig {
            transa,
            transb,
            m: number(m),
            n: number(n),
            k: number(k),
            alpha: 1.0,
            lda: size("lda", a.leading)?,
            stride_a: stride("stride_a", &a)?,
            ldb: size("ldb", b.leading)?,
            stride_b: stride("stride_b", &b)?,
            beta: 0.0,
            ldc: size("ldd", d.leading)?,
            stride_c: stride("stride_d", &d)?,
            batch: size("batch", d.batch.into())?,
        };
        let bias =
            if with_bias { Some((product.bias, size("stride_bias", product.bias_stride)?)) } else { None };
        Ok(Plan { types, config, c, activation, bias })
    }
}

/// An algorithm for a product: the one that there is.
///
/// # Safety
/// All handles are live.
///
/// # Errors
/// If there is no such product here.
pub unsafe fn get_matmul_algo_heuristic(
    _handle: sys::cublasLtHandle_t,
    matmul_desc: sys::cublasLtMatmulDesc_t,
    a_layout: sys::cublasLtMatrixLayout_t,
    b_layout: sys::cublasLtMatrixLayout_t,
    c_layout: sys::cublasLtMatrixLayout_t,
    d_layout: sys::cublasLtMatrixLayout_t,
    _matmul_pref: sys::cublasLtMatmulPreference_t,
) -> Result<sys::cublasLtMatmulHeuristicResult_t, CublasError> {
    // SAFETY: as promised by the caller.
    unsafe { Plan::new(matmul_desc, [a_layout, b_layout, c_layout, d_layout])? };
    Ok(sys::cublasLtMatmulHeuristicResult_t {
        algo: sys::cublasLtMatmulAlgo_t::default(),
        workspaceSize: 0,
        state: sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS,
        wavesCount: 0.0,
        reserved: [0; 4],
    })
}

/// `D = f(α·op(A)·op(B) + β·C + bias)`.
///
/// # Safety
/// Handles are live, the queue null or live; the addresses are device memory as large as the layouts say; `alpha` and `beta` point to
/// values of the description's scale type.
///
/// # Errors
/// If the sizes do not fit, for what there is not here, or what the runtime reports.
#[expect(clippy::too_many_arguments, reason = "the C function has them")]
pub unsafe fn matmul(
    handle: sys::cublasLtHandle_t,
    matmul_desc: sys::cublasLtMatmulDesc_t,
    alpha: *const c_void,
    beta: *const c_void,
    a: *const c_void,
    a_layout: sys::cublasLtMatrixLayout_t,
    b: *const c_void,
    b_layout: sys::cublasLtMatrixLayout_t,
    c: *const c_void,
    c_layout: sys::cublasLtMatrixLayout_t,
    d: *mut c_void,
    d_layout: sys::cublasLtMatrixLayout_t,
    _algo: *const sys::cublasLtMatmulAlgo_t,
    _workspace: *mut c_void,
    _workspace_size: usize,
    stream: sys::cudaStream_t,
) -> Result<(), CublasError> {
    // SAFETY: as promised by the caller.
    unsafe {
        let plan = Plan::new(matmul_desc, [a_layout, b_layout, c_layout, d_layout])?;
        let scale =
            get(matmul_desc)?.0.lock().unwrap_or_else(PoisonError::into_inner).compute.factor_type()?;
        let inner = get(handle)?.0;
        on_stream(inner, stream, |queue| {
            let Plan { types, mut config, c: shape, activation, bias } = plan;
            config.alpha = queue.factor(alpha, scale)?;
            config.beta = queue.factor(beta, scale)?;
            let (stream, dtype) = (queue.stream(), types[2]);
            let GemmConfig { m, n, ldc, stride_c, batch, .. } = config;
            let at =
                |from: *const c_void, z: usize, stride: usize| from.byte_add(z * stride * bytes_of(dtype));
            if config.beta != 0.0 && c != d.cast_const() {
                let leading = cublas::size("ldc", shape.leading)?;
                let stride = cublas::size("stride_c", shape.stride)?;
                for z in 0..batch {
                    let (from, to) = (at(c, z, stride), at(d, z, stride_c).cast_mut());
                    queue.checked(elementwise::copy_rows(
                        stream,
                        dtype,
                        [n, m],
                        (from, leading),
                        (to, ldc),
                    ))?;
                }
            }
            gemm_of(queue, types, &config, [a, b], d)?;
            if activation.is_none() && bias.is_none() {
                return Ok(());
            }
            let follow = |to: *mut c_void| {
                if let Some((bias, step)) = bias {
                    let bias = (bias as *const c_void, step);
                    elementwise::add_to_columns(stream, dtype, [batch, n, m], to, bias)?;
                }
                match activation {
                    Some(name) => elementwise::unary(stream, name, dtype, batch * n * m, (to, 1), to),
                    None => Ok(()),
                }
            };
            if ldc == m && (batch == 1 || stride_c == m * n) {
                return queue.checked(follow(d));
            }
            // The kernels write without gaps.
            let memory = queue.checked(DeviceBuffer::<u8>::alloc(stream, batch * n * m * bytes_of(dtype)))?;
            let dense = memory.as_ptr().cast_mut().cast::<c_void>();
            let rows = |z: usize| (at(dense, z, n * m).cast_mut(), at(d, z, stride_c).cast_mut());
            for z in 0..batch {
                let (to, from) = rows(z);
                queue.checked(elementwise::copy_rows(stream, dtype, [n, m], (from, ldc), (to, m)))?;
            }
            queue.checked(follow(dense))?;
            for z in 0..batch {
                let (from, to) = rows(z);
                queue.checked(elementwise::copy_rows(stream, dtype, [n, m], (from, m), (to, ldc)))?;
            }
            Ok(())
        })
    }
}

/// A layout that is freed when it is dropped.
pub(super) struct Layout(pub sys::cublasLtMatrixLayout_t);

impl Layout {
    pub fn new(
        dtype: sys::cudaDataType,
        rows: u64,
        columns: u64,
        leading: i64,
    ) -> Result<Layout, CublasError> {
        Ok(Layout(create_matrix_layout(dtype, rows, columns, leading)?))
    }

    pub fn set_batch(&self, batch: i32, stride: i64) -> Result<(), CublasError> {
        use sys::cublasLtMatrixLayoutAttribute_t::*;
        let (batch, stride) = ((&raw const batch).cast(), (&raw const stride).cast());
        // SAFETY: the layout is live, and the values have the attributes' types.
        unsafe {
            set_matrix_layout_attribute(self.0, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, batch, 4)?;
            set_matrix_layout_attribute(self.0, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride, 8)
        }
    }
}

impl Drop for Layout {
    fn drop(&mut self) {
        // SAFETY: it is this one's, and used nowhere else any more.
        let freed = unsafe { destroy_matrix_layout(self.0) };
        debug_assert!(freed.is_ok(), "the layout is not null");
    }
}

/// A product's description that is freed when it is dropped.
pub(super) struct Desc(pub sys::cublasLtMatmulDesc_t);

impl Desc {
    pub fn new(compute: sys::cublasComputeType_t, scale: sys::cudaDataType) -> Result<Desc, CublasError> {
        Ok(Desc(create_matmul_desc(compute, scale)?))
    }

    fn set<T>(&self, attr: sys::cublasLtMatmulDescAttributes_t, value: T) -> Result<(), CublasError> {
        // SAFETY: the description is live, and the value has the attribute's type.
        unsafe { set_matmul_desc_attribute(self.0, attr, (&raw const value).cast(), size_of::<T>()) }
    }

    pub fn set_operations(&self, transposed: [bool; 3]) -> Result<(), CublasError> {
        use sys::cublasLtMatmulDescAttributes_t::*;
        let attributes =
            [CUBLASLT_MATMUL_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSB, CUBLASLT_MATMUL_DESC_TRANSC];
        for (attr, transposed) in attributes.into_iter().zip(transposed) {
            let operation =
                if transposed { cublasOperation_t::CUBLAS_OP_T } else { cublasOperation_t::CUBLAS_OP_N };
            self.set(attr, operation)?;
        }
        Ok(())
    }

    pub fn set_epilogue(
        &self,
        activation: Option<&Activation>,
        bias: Option<CUdeviceptr>,
        stride: Option<i64>,
    ) -> Result<(), CublasError> {
        use sys::cublasLtEpilogue_t::*;
        use sys::cublasLtMatmulDescAttributes_t::*;
        if let Some(bias) = bias {
            self.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias)?;
            self.set(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, stride.unwrap_or(0))?;
        }
        let epilogue = match (activation, bias.is_some()) {
            (None, false) => CUBLASLT_EPILOGUE_DEFAULT,
            (None, true) => CUBLASLT_EPILOGUE_BIAS,
            (Some(Activation::Relu), false) => CUBLASLT_EPILOGUE_RELU,
            (Some(Activation::Relu), true) => CUBLASLT_EPILOGUE_RELU_BIAS,
            (Some(Activation::Gelu), false) => CUBLASLT_EPILOGUE_GELU,
            (Some(Activation::Gelu), true) => CUBLASLT_EPILOGUE_GELU_BIAS,
        };
        self.set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue)
    }
}

impl Drop for Desc {
    fn drop(&mut self) {
        // SAFETY: it is this one's, and used nowhere else any more.
        let freed = unsafe { destroy_matmul_desc(self.0) };
        debug_assert!(freed.is_ok(), "the description is not null");
    }
}
