//! What device memory can hold and what a kernel can be given by value.

pub use float8::F8E4M3 as f8e4m3;
pub use half::{bf16, f16};

/// A type with the same layout on host and device and no invalid bit pattern, so that memory that a kernel wrote can be
/// read as this type.
///
/// # Safety
/// The type has no padding and no invalid bit pattern, and the device's type of the same name has its layout.
pub unsafe trait Element: Copy + Send + Sync + 'static {}

/// A type that is passed to a kernel by value, in at most 16 bytes.
///
/// # Safety
/// The device's type of the same name has its layout, no byte of it is padding, and [`integer`](Self::integer) gives the
/// value that the device sees.
pub unsafe trait KernelValue: Copy + 'static {
    /// The value, if the type is an integer: lengths and geometries are computed from it.
    fn integer(self) -> Option<i128> {
        None
    }
}

/// A structure that is passed to a kernel by value. amdgpu-build makes those of kernels.
///
/// # Safety
/// The device's structure of the same name has its layout.
pub unsafe trait KernelStructure: Copy + 'static {}

macro_rules! integers {
    ($($t:ident)*) => {$(
        // SAFETY: a plain integer, laid out the same on both sides.
        unsafe impl Element for $t {}
        // SAFETY: as above.
        unsafe impl KernelValue for $t {
            fn integer(self) -> Option<i128> {
                Some(self as i128)
            }
        }
    )*};
}

macro_rules! floats {
    ($($t:ident)*) => {$(
        // SAFETY: a plain float (or a transparent integer that holds one), the same on both sides.
        unsafe impl Element for $t {}
        // SAFETY: as above.
        unsafe impl KernelValue for $t {}
    )*};
}

integers!(u8 i8 u16 i16 u32 i32 u64 i64 usize isize);
floats!(f32 f64 f16 bf16 f8e4m3);

// SAFETY: one byte, 0 or 1, on both sides. It is not an `Element`: a kernel could write a 2.
unsafe impl KernelValue for bool {
    fn integer(self) -> Option<i128> {
        Some(self.into())
    }
}
