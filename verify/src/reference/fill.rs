//! Fill: constants, and rows copied to other strides. Bits go through unchanged.

use super::{Array, Value};
use candle_amdgpu::Layout;

/// `out` with `value` at each element of `layout`.
pub fn const_set(out: &Array, layout: &Layout, value: Value) -> Array {
    let mut out = out.clone();
    for i in layout.indices() {
        out.set(i, value);
    }
    out
}

/// `to` with `rows` rows of `columns` elements from `from`; the strides are from row to row.
pub fn copy2d(
    from: &Array,
    from_stride: usize,
    to: &Array,
    to_stride: usize,
    rows: usize,
    columns: usize,
) -> Array {
    let mut to = to.clone();
    for row in 0..rows {
        for column in 0..columns {
            to.set(row * to_stride + column, from.get(row * from_stride + column));
        }
    }
    to
}
