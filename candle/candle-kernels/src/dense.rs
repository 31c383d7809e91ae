//! Quantized weights times many columns by way of f32: the weights are dequantized, and the device's library multiplies them
//! with its matrix units, in TF32. From [`COLUMNS`] on this is faster than the kernels that multiply quantized weights, and more
//! exact, since the other matrix is not quantized to q8_1.

use crate::run::{self, MatrixSizes, arg};
use candle_amdgpu::gemm::{GemmConfig, Transpose, gemm_tf32_raw, has_tf32};
use candle_amdgpu::{DeviceBuffer, DeviceView, QUANTIZED, Result, Stream};
use std::cell::RefCell;
use std::ffi::c_void;

/// Columns from which on it is worth the dequantization.
const COLUMNS: i64 = 64;

/// Elements of the weights that are dequantized at a time: 256 MiB.
const ELEMENTS: i64 = 1 << 26;

/// A matrix that was quantized: its values, and where they went.
struct Source {
    values: DeviceBuffer<f32>,
    quantized: *const c_void,
    columns: i64,
    rows: i64,
}

thread_local! {
    /// Of the latest quantization of this thread, until it is multiplied: Candle does both in one go.
    static SOURCE: RefCell<Option<Source>> = const { RefCell::new(None) };
}

/// Keeps a copy of `rows` rows of `k` values that are quantized to `quantized`, if they are so many that they will be multiplied
/// as they are.
///
/// # Safety
/// `x` is device memory with the values.
pub(crate) unsafe fn keep(
    stream: &Stream,
    x: *const c_void,
    quantized: *const c_void,
    k: i64,
    rows: i64,
) -> Result<()> {
    let worth = rows >= COLUMNS && k > 0 && has_tf32();
    // SAFETY: as promised by the caller.
    let source = if worth { Some(unsafe { Source::new(stream, x, quantized, k, rows)? }) } else { None };
    SOURCE.set(source);
    Ok(())
}

/// Multiplies weights by what was quantized to `y`; `false` if its values were not kept or the library refuses, and the product is
/// left to the caller.
///
/// # Safety
/// The addresses are device memory as large as the sizes say; `y` is as the quantization left it.
pub(crate) unsafe fn multiply(
    stream: &Stream,
    weight: &str,
    x: *const c_void,
    y: *const c_void,
    dst: *mut c_void,
    sizes: &MatrixSizes,
) -> Result<bool> {
    let Some(source) = SOURCE.take().filter(|source| source.is(stream, y, sizes)) else { return Ok(false) };
    // SAFETY: as promised by the caller.
    unsafe {
        source.multiply(weight, x, dst, sizes, ELEMENTS, |config, a, b, c| {
            gemm_tf32_raw(stream, config, a, b, c)
        })
    }
}

impl Source {
    /// # Safety
    /// `x` is device memory with the values.
    unsafe fn new(
        stream: &Stream,
        x: *const c_void,
        quantized: *const c_void,
        columns: i64,
        rows: i64,
    ) -> Result<Source> {
        let len = usize::try_from(columns.saturating_mul(rows)).unwrap_or(usize::MAX);
        let mut values = DeviceBuffer::alloc(stream, len)?;
        // SAFETY: as promised by the caller.
        values.copy_from(&unsafe { DeviceView::from_raw_parts(x.cast::<f32>(), len, stream) })?;
        Ok(Source { values, quantized, columns, rows })
    }

    /// Whether it is what was quantized to `y`.
    fn is(&self, stream: &Stream, y: *const c_void, sizes: &MatrixSizes) -> bool {
        let MatrixSizes { ncols_x, ncols_y, .. } = *sizes;
        self.quantized == y
            && (self.columns, self.rows) == (ncols_x, ncols_y)
            && self.values.stream() == stream
    }

    /// Dequantizes up to `elements` weights at a time, whole rows of them, and multiplies them by `gemm`; `false` if that cannot.
    ///
    /// # Safety
    /// The addresses are device memory as large as the sizes say.
    unsafe fn multiply(
        &self,
        weight: &str,
        x: *const c_void,
        dst: *mut c_void,
        sizes: &MatrixSizes,
        elements: i64,
        gemm: impl Fn(&GemmConfig, *const c_void, *const c_void, *mut c_void) -> Result<bool>,
    ) -> Result<bool> {
        let &MatrixSizes { ncols_x: k, nrows_x: rows, ncols_y: columns, nrows_dst, .. } = sizes;
        let (values, bytes) = block(weight);
        let at_a_time = (elements / k).clamp(1, rows);
        let stream = self.values.stream();
        let mut dense = DeviceBuffer::<f32>::alloc(stream, (at_a_time * k) as usize)?;
        for first in (0..rows).step_by(at_a_time as usize) {
            let count = at_a_time.min(rows - first);
            let from = x.wrapping_byte_offset((first * k / values * bytes) as isize);
            // Both matrices are row-major, and so is the result.
            let config = GemmConfig {
                transa: Transpose::Yes,
                lda: k as usize,
                ldb: k as usize,
                ldc: nrows_dst as usize,
                ..GemmConfig::new(count as usize, columns as usize, k as usize)
            };
            // SAFETY: as promised by the caller; there is room for as many rows.
            unsafe { dequantize(stream, weight, from, dense.as_mut_ptr().cast(), (count * k) as usize)? };
            let to = dst.wrapping_byte_offset((first * 4) as isize);
            if !gemm(&config, dense.as_ptr().cast(), self.values.as_ptr().cast(), to)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Values and bytes of a block.
fn block(weight: &str) -> (i64, i64) {
    match weight {
        "q4_0" => (32, 18),
        "q4_1" => (32, 20),
        "q5_0" => (32, 22),
        "q5_1" => (32, 24),
        "q8_0" => (32, 34),
        "q2_K" => (256, 84),
        "q3_K" => (256, 110),
        "q4_K" => (256, 144),
        "q5_K" => (256, 176),
        _ => (256, 210),
    }
}

/// Dequantizes `count` weights, as Candle launches it.
///
/// # Safety
/// The addresses are device memory with as many.
unsafe fn dequantize(
    stream: &Stream,
    weight: &str,
    from: *const c_void,
    to: *mut c_void,
    count: usize,
) -> Result<()> {
    let name = format!("dequantize_block_{weight}_f32");
    let (groups, lanes, number) = match weight {
        "q4_0" | "q4_1" | "q8_0" => (count.div_ceil(256), 32, count / 32),
        "q5_0" | "q5_1" => (count.div_ceil(512), 256, count),
        "q4_K" => (count / 256, 32, 0),
        _ => (count / 256, 64, 0),
    };
    let (number, grid) = (number as i32, [groups as u32, 1, 1]);
    let args = [arg(&from), arg(&to), arg(&number)];
    let args = if number == 0 { &args[..2] } else { &args[..] };
    // SAFETY: as promised by the caller.
    unsafe { run::launch(stream, &QUANTIZED, &name, grid, [lanes, 1, 1], args) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_amdgpu::Device;
    use candle_amdgpu::gemm::{GemmType, gemm_raw};

    /// Full precision stands for TF32, which emulated devices do not have.
    #[test]
    fn products_are_those_of_the_dequantized_weights() {
        const K: usize = 512;
        const ROWS: usize = 21;
        const COLUMNS: usize = 19;
        const STRIDE: usize = 23;
        let stream = Device::new(0).unwrap().stream().unwrap();
        let x: Vec<f32> = (0..K * COLUMNS).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0).collect();
        let x = DeviceBuffer::from_slice(&stream, &x).unwrap();
        for weight in ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_K", "q3_K", "q4_K", "q5_K", "q6_K"] {
            let (values, bytes) = block(weight);
            // Scales below 1, wherever they are.
            let bytes: Vec<u8> =
                (0..ROWS * K / values as usize * bytes as usize).map(|i| (i * 29 % 0x3b) as u8).collect();
            let weights = DeviceBuffer::from_slice(&stream, &bytes).unwrap();
            let mut dense = DeviceBuffer::<f32>::alloc(&stream, ROWS * K).unwrap();
            let mut out = DeviceBuffer::from_slice(&stream, &[7.0_f32; STRIDE * COLUMNS]).unwrap();
            let sizes = MatrixSizes {
                ncols_x: K as i64,
                nrows_x: ROWS as i64,
                ncols_y: COLUMNS as i64,
                nrows_y: K as i64,
                nrows_dst: STRIDE as i64,
            };
            let y = std::ptr::without_provenance(64);
            // SAFETY: the memory has as many elements; `y` is not read.
            unsafe {
                dequantize(&stream, weight, weights.as_ptr().cast(), dense.as_mut_ptr().cast(), ROWS * K)
                    .unwrap();
                let source = Source::new(&stream, x.as_ptr().cast(), y, K as i64, COLUMNS as i64).unwrap();
                assert!(source.is(&stream, y, &sizes));
                assert!(!source.is(&stream, y, &MatrixSizes { ncols_y: 5, ..sizes }));
                assert!(!source.is(&stream, y.wrapping_byte_add(1), &sizes));
                // Five rows at a time, and one at the end.
                let done = source.multiply(
                    weight,
                    weights.as_ptr().cast(),
                    out.as_mut_ptr().cast(),
                    &sizes,
                    5 * K as i64 + 3,
                    |config, a, b, c| gemm_raw(&stream, GemmType::F32, config, a, b, c).map(|()| true),
                );
                assert!(done.unwrap());
            }
            let (dense, x, out) = (dense.to_vec().unwrap(), x.to_vec().unwrap(), out.to_vec().unwrap());
            for (at, &found) in out.iter().enumerate() {
                let (column, row) = (at / STRIDE, at % STRIDE);
                if row >= ROWS {
                    assert_eq!(found, 7.0, "{weight}: row {row} is not the result's");
                    continue;
                }
                let terms = (0..K).map(|k| f64::from(dense[row * K + k]) * f64::from(x[column * K + k]));
                let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
                let distance = (f64::from(found) - sum).abs();
                assert!(distance <= 1e-6 * size, "{weight} at {row}, {column}: {found}, not {sum}");
            }
        }
    }
}
