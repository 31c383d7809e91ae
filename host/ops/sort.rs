//! Stable sorting of rows of any length, in several launches if rows are long.
//!
//! ```
//! use candle_amdgpu::sort::{Order, argsort};
//! use candle_amdgpu::{Device, DeviceBuffer};
//!
//! let stream = Device::new(0)?.stream()?;
//! let x = DeviceBuffer::from_slice(&stream, &[3.0_f32, 1.0, 2.0, 5.0, 5.0, 4.0])?;
//! let mut positions = DeviceBuffer::zeros(&stream, 6)?;
//! argsort(&stream, &x, 3, Order::Descending, &mut positions)?;
//! assert_eq!(positions.to_vec()?, [0, 2, 1, 0, 1, 2]);
//! # Ok::<(), candle_amdgpu::Error>(())
//! ```

use crate::generated::{self, Slot};
use crate::{AsStream, DeviceRead, DeviceWrite, Element, LaunchConfig, Result, SORT, bf16, f8e4m3, f16};

/// The order of sorted elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The smallest element first.
    Ascending,
    /// The largest element first.
    Descending,
}

/// An element type that can be sorted.
pub trait Sortable: Element {
    /// Its name in kernels' names.
    const NAME: &'static str;
}

macro_rules! sortable {
    ($($t:ident)*) => {$(
        impl Sortable for $t {
            const NAME: &'static str = stringify!($t);
        }
    )*};
}
sortable!(bf16 f16 f32 f64 u8 u32 i16 i32 i64 f8e4m3);

/// Elements that a workgroup can sort on its own.
const TILE: usize = 2048;

/// Writes the positions of each row's `columns` elements in their order to `positions`: stable, NaN last.
///
/// `x` and `positions` are contiguous rows; there are as many as `positions` has. Rows of more than 2,048 elements are
/// merged in launches over all workgroups, which for n elements are about log²(n / 2048) / 2.
///
/// # Errors
/// `x` is shorter than `positions`, or what a launch reports.
pub fn argsort<T: Sortable>(
    stream: &impl AsStream,
    x: &impl DeviceRead<T>,
    columns: usize,
    order: Order,
    positions: &mut impl DeviceWrite<u32>,
) -> Result<()> {
    let rows = positions.memory_mut().len / columns.max(1);
    let direction = match order {
        Order::Ascending => "asc",
        Order::Descending => "desc",
    };
    let name = format!("asort_step_{direction}_{}", T::NAME);
    let kernel = SORT.known_kernel(&name)?;
    let mut step = |size: usize, distance: usize, last: bool| {
        let mut slots = [
            Slot::read(x),
            Slot::write(positions),
            Slot::value(rows),
            Slot::value(columns),
            Slot::value(size),
            Slot::value(distance),
            Slot::value(u32::from(last)),
        ];
        // SAFETY: the slots have the types of `asort_step`, which has no promises.
        unsafe { generated::launch(&SORT, kernel, stream, LaunchConfig::auto(), &[], &mut slots) }
    };
    step(TILE, 0, false)?;
    let mut size = 2 * TILE;
    // The last merge is of the largest block that has a second half.
    while size / 2 < columns {
        step(size, size, false)?;
        let mut distance = size / 4;
        while distance >= TILE {
            step(size, distance, false)?;
            distance /= 2;
        }
        step(size, distance, true)?;
        size *= 2;
    }
    Ok(())
}
