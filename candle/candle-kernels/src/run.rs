//! The launches behind the C functions.

use candle_amdgpu::{CAST, DeviceBuffer, LaunchConfig, Module, QUANTIZED, Result, Stream};
use std::ffi::c_void;
use std::ptr;

/// Rows in one launch: the most workgroups in y that CUDA allows.
const MAX_ROWS: i64 = 65_535;

/// Values in one block of q8_1, and its bytes: scale and sum in f16, then a byte for each.
const Q8_1: (i64, i64) = (32, 36);

/// Bytes of this many values in q8_1.
pub(crate) fn q8_1_bytes(values: i64) -> i64 {
    values / Q8_1.0 * Q8_1.1
}

/// Work-items of a workgroup that quantizes.
const QUANTIZE_LANES: u32 = 256;

/// Type of what is multiplied by the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activation {
    F32,
    F16,
    Bf16,
}

impl Activation {
    fn name(self) -> &'static str {
        match self {
            Activation::F32 => "f32",
            Activation::F16 => "f16",
            Activation::Bf16 => "bf16",
        }
    }
}

/// Runs `work` on a stream; its error is for the stream's next synchronisation.
///
/// # Safety
/// `stream` is the address of a live stream.
pub(crate) unsafe fn report(stream: *mut c_void, work: impl FnOnce(&Stream) -> Result<()>) {
    // SAFETY: as promised by the caller.
    let stream = unsafe { &*stream.cast_const().cast::<Stream>() };
    if let Err(error) = work(stream) {
        stream.fail(error);
    }
}

/// Launches a kernel with its own geometry, or with this one.
///
/// # Safety
/// Each argument is the address of a value of the parameter's type; device memory is as large as the kernel needs.
pub(crate) unsafe fn launch(
    stream: &Stream,
    module: &Module,
    name: &str,
    grid: [u32; 3],
    block: [u32; 3],
    args: &[*const c_void],
) -> Result<()> {
    let function = stream.device().get_or_load_func(name, module)?;
    let config = function.own_geometry_or(LaunchConfig::explicit(grid, block, 0));
    // SAFETY: as promised by the caller.
    unsafe { function.launch(stream, config, args) }
}

/// The address of an argument's value.
pub(crate) fn arg<T>(value: &T) -> *const c_void {
    ptr::from_ref(value).cast()
}

/// Converts `len` values.
///
/// # Safety
/// Both addresses are device memory with as many.
unsafe fn convert(
    stream: &Stream,
    name: &str,
    len: usize,
    from: *const c_void,
    to: *mut c_void,
) -> Result<()> {
    let grid = u32::try_from(len.div_ceil(1024)).unwrap_or(u32::MAX);
    let args = [arg(&len), arg(&1_usize), arg(&ptr::null::<usize>()), arg(&from), arg(&to)];
    // SAFETY: as promised by the caller.
    unsafe { launch(stream, &CAST, name, [grid, 1, 1], [1024, 1, 1], &args) }
}

/// Quantizes `rows` rows of `k` values to q8_1, padded to `k_padded`.
///
/// # Safety
/// The addresses are device memory as large as that.
pub(crate) unsafe fn quantize(
    stream: &Stream,
    activation: Activation,
    x: *const c_void,
    y: *mut c_void,
    k: i64,
    k_padded: i64,
    rows: i64,
) -> Result<()> {
    if k <= 0 || rows <= 0 {
        return Ok(());
    }
    let values = usize::try_from(k * rows).unwrap_or(usize::MAX);
    let converted;
    let x = if activation == Activation::F32 {
        x
    } else {
        let mut buffer = DeviceBuffer::<f32>::alloc(stream, values)?;
        let name = format!("cast_{}_f32", activation.name());
        // SAFETY: as promised by the caller.
        unsafe { convert(stream, &name, values, x, buffer.as_mut_ptr().cast())? };
        converted = buffer;
        converted.as_ptr().cast()
    };
    let groups = (k_padded as u32).div_ceil(QUANTIZE_LANES);
    let (k32, padded32) = (k as i32, k_padded as i32);
    for first in (0..rows).step_by(MAX_ROWS as usize) {
        let count = (rows - first).min(MAX_ROWS) as u32;
        let x = x.wrapping_byte_offset((first * k * 4) as isize);
        let y = y.wrapping_byte_offset((first * q8_1_bytes(k_padded)) as isize);
        let args = [arg(&x), arg(&y), arg(&k32), arg(&padded32)];
        // SAFETY: as promised by the caller.
        unsafe {
            launch(stream, &QUANTIZED, "quantize_q8_1", [groups, count, 1], [QUANTIZE_LANES, 1, 1], &args)?;
        }
    }
    Ok(())
}

/// Sizes as `launch_mmvq_*` has them.
#[derive(Clone, Copy)]
pub(crate) struct VectorSizes {
    pub ncols_x: i32,
    pub nrows_x: i32,
    pub stride_col_y: i32,
    pub stride_col_dst: i32,
    pub b_size: i32,
}

/// Quantized weights times 1 to 8 vectors.
///
/// # Safety
/// The addresses are device memory as large as the sizes say.
pub(crate) unsafe fn multiply_vectors(
    stream: &Stream,
    weight: &str,
    activation: Activation,
    x: *const c_void,
    y: *const c_void,
    dst: *mut c_void,
    sizes: VectorSizes,
) -> Result<()> {
    let VectorSizes { ncols_x, nrows_x, stride_col_y, stride_col_dst, b_size } = sizes;
    if nrows_x <= 0 || b_size <= 0 {
        return Ok(());
    }
    let nrows_y = stride_col_y * Q8_1.0 as i32;
    let name = format!("mul_mat_vec_{weight}_q8_1_cuda{b_size}");
    let rows = nrows_x as u32;
    let (groups, waves) = match b_size {
        1 => (rows, 4),
        2..=4 => (rows.div_ceil(2), 4),
        _ => (rows.div_ceil(2), 2),
    };
    let multiply = |dst: *mut c_void| {
        let args =
            [arg(&x), arg(&y), arg(&dst), arg(&ncols_x), arg(&nrows_x), arg(&nrows_y), arg(&stride_col_dst)];
        // SAFETY: as promised by the caller.
        unsafe { launch(stream, &QUANTIZED, &name, [groups, 1, 1], [32, waves, 1], &args) }
    };
    if activation == Activation::F32 {
        return multiply(dst);
    }
    let values = stride_col_dst as usize * b_size as usize;
    let mut sums = DeviceBuffer::<f32>::alloc(stream, values)?;
    multiply(sums.as_mut_ptr().cast())?;
    // SAFETY: as promised by the caller.
    unsafe { convert(stream, &format!("cast_f32_{}", activation.name()), values, sums.as_ptr().cast(), dst) }
}

/// Sizes as `launch_mmq_*` has them; `nrows_y` is `ncols_x` padded.
#[derive(Clone, Copy)]
pub(crate) struct MatrixSizes {
    pub ncols_x: i64,
    pub nrows_x: i64,
    pub ncols_y: i64,
    pub nrows_y: i64,
    pub nrows_dst: i64,
}

/// Quantized weights times a matrix.
///
/// # Safety
/// The addresses are device memory as large as the sizes say.
pub(crate) unsafe fn multiply_matrix(
    stream: &Stream,
    weight: &str,
    x: *const c_void,
    y: *const c_void,
    dst: *mut c_void,
    sizes: MatrixSizes,
) -> Result<()> {
    let MatrixSizes { ncols_x, nrows_x, ncols_y, nrows_y, nrows_dst } = sizes;
    if nrows_x <= 0 || ncols_y <= 0 {
        return Ok(());
    }
    // Rows of the weights and columns of the other matrix that one workgroup computes in Candle's launch.
    let (rows, columns) = match weight {
        "q5_0" | "q5_1" | "q8_0" => (64, 128),
        "q3_K" => (128, 128),
        "q6_K" => (64, 64),
        _ => (128, 64),
    };
    let grid = [(nrows_x as u32).div_ceil(rows), (ncols_y as u32).div_ceil(columns), 1];
    let sizes = [ncols_x, nrows_x, ncols_y, nrows_y, nrows_dst].map(|size| size as i32);
    let [a, b, c, d, e] = sizes.each_ref().map(arg);
    let args = [arg(&x), arg(&y), arg(&dst), a, b, c, d, e];
    // SAFETY: as promised by the caller.
    unsafe { launch(stream, &QUANTIZED, &format!("mul_mat_{weight}"), grid, [32, 4, 1], &args) }
}
