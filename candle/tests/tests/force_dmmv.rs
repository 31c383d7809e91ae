//! Candle's older way through products with quantized weights, a switch of the whole process.

use candle_amdgpu_tests::ops::quantized::{FORMATS, difference};
use candle_core::quantized::cuda::set_force_dmmv;
use candle_core::{DType, Device, Result};

#[test]
fn products_with_dequantized_weights_are_near_the_exact_ones() -> Result<()> {
    set_force_dmmv(true);
    let device = Device::new_cuda(0)?;
    for format in FORMATS {
        for rows in [1, 3] {
            let off = difference(&device, format, rows, DType::F32, |x| Ok(x.clone()))?;
            assert!(off < 1e-5, "{format:?}, {rows} rows: off by {off} of the largest element");
        }
    }
    Ok(())
}
