//! Reductions of contiguous rows to one result each, with long rows split over many workgroups.
//!
//! ```
//! use candle_amdgpu::reduce::{Extreme, max, position, sum};
//! use candle_amdgpu::{Device, DeviceBuffer};
//!
//! let stream = Device::new(0)?.stream()?;
//! let src = DeviceBuffer::from_slice(&stream, &[1.0_f32, 5.0, 2.0, 4.0, 3.0, 4.0])?;
//! let mut dst = DeviceBuffer::zeros(&stream, 2)?;
//! sum(&stream, &src.view(), 3, &mut dst.view_mut())?;
//! assert_eq!(dst.to_vec()?, [8.0, 11.0]);
//! max(&stream, &src.view(), 3, &mut dst.view_mut())?;
//! assert_eq!(dst.to_vec()?, [5.0, 4.0]);
//! let mut at = DeviceBuffer::zeros(&stream, 2)?;
//! position(&stream, &src.view(), 3, Extreme::Largest, &mut at.view_mut())?;
//! assert_eq!(at.to_vec()?, [1, 0]);
//! # Ok::<(), candle_amdgpu::Error>(())
//! ```

use crate::generated::{self, Slot};
use crate::{
    DeviceBuffer, DeviceRead, DeviceView, DeviceViewMut, DeviceWrite, Element, LaunchConfig, Layout, REDUCE,
    Result, Stream, bf16, f8e4m3, f16,
};

/// An element type that can be reduced.
pub trait Reducible: Element {
    /// Its name in kernels' names.
    const NAME: &'static str;
    /// Whether it is accumulated in f32 instead of its own type.
    const NARROW: bool;
}

macro_rules! reducible {
    ($($t:ident $narrow:literal)*) => {$(
        impl Reducible for $t {
            const NAME: &'static str = stringify!($t);
            const NARROW: bool = $narrow;
        }
    )*};
}
reducible!(bf16 true f16 true f32 false f64 false u8 false u32 false i16 false i32 false i64 false f8e4m3 true);

/// The element of a row to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// The smallest.
    Smallest,
    /// The largest.
    Largest,
}

/// Elements of a part: a workgroup's share of a row that is split.
const PART: usize = 1 << 13;
/// Rows that keep a device busy without being split.
const ENOUGH_ROWS: usize = 512;

/// Into how many parts of [`PART`] elements rows are split: 1, or all rows together have whole parts.
fn parts(rows: usize, columns: usize) -> usize {
    let splits = rows < ENOUGH_ROWS && columns >= 4 * PART && (rows == 1 || columns.is_multiple_of(PART));
    if splits { columns.div_ceil(PART) } else { 1 }
}

/// The sum of each row of `columns` elements, which may be 0: one for each element of `dst`. f16, bf16 and f8e4m3 are added in f32 and
/// rounded once; integers wrap.
///
/// # Errors
/// `src` is shorter than the rows, or what a launch reports.
pub fn sum<T: Reducible>(
    stream: &Stream,
    src: &DeviceView<'_, T>,
    columns: usize,
    dst: &mut DeviceViewMut<'_, T>,
) -> Result<()> {
    let rows = dst.len();
    if columns == 0 {
        return dst.fill_bytes(0);
    }
    let parts = parts(rows, columns);
    if parts == 1 || !T::NARROW {
        return fold(stream, "sum", src, columns, dst);
    }
    let mut partial = DeviceBuffer::<f32>::alloc(stream, rows * parts)?;
    let wide = format!("fast_sum_wide_{}", T::NAME);
    launch(
        stream,
        &wide,
        rows * parts,
        &[],
        &mut [Slot::value(rows * columns), Slot::value(PART), Slot::read(src), Slot::write(&mut partial)],
    )?;
    let narrow = format!("fast_sum_narrow_{}", T::NAME);
    launch(
        stream,
        &narrow,
        rows,
        &[],
        &mut [Slot::value(rows), Slot::value(parts), Slot::read(&partial), Slot::write(dst)],
    )
}

/// The largest element of each row of `columns` (at least 1) elements: one for each element of `dst`. f32,
/// f64 and f8e4m3 ignore NaN, f16 and bf16 keep it.
///
/// # Errors
/// As for [`sum`].
pub fn max<T: Reducible>(
    stream: &Stream,
    src: &DeviceView<'_, T>,
    columns: usize,
    dst: &mut DeviceViewMut<'_, T>,
) -> Result<()> {
    fold(stream, "max", src, columns, dst)
}

/// The smallest element of each row; otherwise as [`max`].
///
/// # Errors
/// As for [`sum`].
pub fn min<T: Reducible>(
    stream: &Stream,
    src: &DeviceView<'_, T>,
    columns: usize,
    dst: &mut DeviceViewMut<'_, T>,
) -> Result<()> {
    fold(stream, "min", src, columns, dst)
}

/// The lowest position of each row's extreme; NaN is skipped, and a row of nothing else gives 0.
///
/// # Errors
/// As for [`sum`].
pub fn position<T: Reducible>(
    stream: &Stream,
    src: &DeviceView<'_, T>,
    columns: usize,
    extreme: Extreme,
    dst: &mut DeviceViewMut<'_, u32>,
) -> Result<()> {
    let rows = dst.len();
    let name = match extreme {
        Extreme::Smallest => "argmin",
        Extreme::Largest => "argmax",
    };
    let parts = parts(rows, columns);
    if parts == 1 {
        return fast(stream, name, T::NAME, src, rows * columns, columns, dst);
    }
    let mut found = DeviceBuffer::<u32>::alloc(stream, rows * parts)?;
    fast(stream, name, T::NAME, src, rows * columns, PART, &mut found)?;
    let sizes = [rows, columns, parts, PART].map(Slot::value);
    let [a, b, c, d] = sizes;
    let join = format!("fast_{name}_join_{}", T::NAME);
    launch(stream, &join, rows, &[], &mut [a, b, c, d, Slot::read(src), Slot::read(&found), Slot::write(dst)])
}

/// A reduction whose parts' results are reduced in the same way.
fn fold<T: Reducible>(
    stream: &Stream,
    name: &str,
    src: &DeviceView<'_, T>,
    columns: usize,
    dst: &mut DeviceViewMut<'_, T>,
) -> Result<()> {
    let rows = dst.len();
    let parts = parts(rows, columns);
    if parts == 1 {
        return fast(stream, name, T::NAME, src, rows * columns, columns, dst);
    }
    let mut partial = DeviceBuffer::<T>::alloc(stream, rows * parts)?;
    fast(stream, name, T::NAME, src, rows * columns, PART, &mut partial)?;
    fast(stream, name, T::NAME, &partial, rows * parts, parts, dst)
}

/// `fast_NAME_T` of contiguous elements in rows of `columns`.
fn fast<T: Reducible, U: Element>(
    stream: &Stream,
    name: &str,
    dtype: &str,
    src: &impl DeviceRead<T>,
    numel: usize,
    columns: usize,
    dst: &mut impl DeviceWrite<U>,
) -> Result<()> {
    // As many workgroups as the elements ask for; but a row of a part's length has work for one alone.
    let most = if columns < PART { usize::MAX } else { numel.div_ceil(columns) };
    let layout = Layout::flat(numel);
    let [numel, num_dims, info] = [Slot::FILLED_IN; 3];
    let mut slots = [numel, Slot::value(columns), num_dims, info, Slot::read(src), Slot::write(dst)];
    launch(stream, &format!("fast_{name}_{dtype}"), most, &[&[&layout]], &mut slots)
}

/// Launches a kernel of the family under its own geometry; `most` is how many workgroups have work.
fn launch(
    stream: &Stream,
    name: &str,
    most: usize,
    layouts: &[&[&Layout]],
    slots: &mut [Slot<'_>],
) -> Result<()> {
    let kernel = REDUCE.known_kernel(name)?;
    let config = match u32::try_from(most) {
        Ok(most) => LaunchConfig::explicit([most.max(1), 1, 1], kernel.geometry.workgroup, 0),
        Err(_) => LaunchConfig::auto(),
    };
    // SAFETY: the slots are what the functions above give to a kernel of this name, in its types.
    unsafe { generated::launch(&REDUCE, kernel, stream, config, layouts, slots) }
}
