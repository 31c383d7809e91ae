//! What arrays are described with.

use super::*;

handles! {
    /// An array: elements in rows and slices, in device memory that copies reach by the handle.
    hipArray_t;
}

/// What a channel of an element is.
pub type hipChannelFormatKind = c_uint;
pub const HIP_CHANNEL_FORMAT_KIND_SIGNED: hipChannelFormatKind = 0;
pub const HIP_CHANNEL_FORMAT_KIND_UNSIGNED: hipChannelFormatKind = 1;
pub const HIP_CHANNEL_FORMAT_KIND_FLOAT: hipChannelFormatKind = 2;
pub const HIP_CHANNEL_FORMAT_KIND_NONE: hipChannelFormatKind = 3;

/// Bits of each channel of an array's or a texture's element, and what they are.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct hipChannelFormatDesc {
    pub x: c_int,
    pub y: c_int,
    pub z: c_int,
    pub w: c_int,
    pub f: hipChannelFormatKind,
}

/// What a channel of an element is, and its bits, in one number.
pub type hipArray_Format = c_uint;
pub const HIP_AD_FORMAT_UNSIGNED_INT8: hipArray_Format = 0x01;
pub const HIP_AD_FORMAT_UNSIGNED_INT16: hipArray_Format = 0x02;
pub const HIP_AD_FORMAT_UNSIGNED_INT32: hipArray_Format = 0x03;
pub const HIP_AD_FORMAT_SIGNED_INT8: hipArray_Format = 0x08;
pub const HIP_AD_FORMAT_SIGNED_INT16: hipArray_Format = 0x09;
pub const HIP_AD_FORMAT_SIGNED_INT32: hipArray_Format = 0x0a;
pub const HIP_AD_FORMAT_HALF: hipArray_Format = 0x10;
pub const HIP_AD_FORMAT_FLOAT: hipArray_Format = 0x20;

/// The slices of an array are layers.
pub const HIP_ARRAY_LAYERED: c_uint = 1;
/// The array may be a surface's.
pub const HIP_ARRAY_SURFACE_LOAD_STORE: c_uint = 2;
/// The layers of an array are faces of cubes.
pub const HIP_ARRAY_CUBEMAP: c_uint = 4;
/// The array may be that of a texture that gathers.
pub const HIP_ARRAY_TEXTURE_GATHER: c_uint = 8;

/// An array of up to two dimensions as the driver's functions have it, in elements.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HIP_ARRAY_DESCRIPTOR {
    pub Width: usize,
    pub Height: usize,
    pub Format: hipArray_Format,
    pub NumChannels: c_uint,
}

/// An array as the driver's functions have it, in elements.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HIP_ARRAY3D_DESCRIPTOR {
    pub Width: usize,
    pub Height: usize,
    pub Depth: usize,
    pub Format: hipArray_Format,
    pub NumChannels: c_uint,
    pub Flags: c_uint,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes that a C compiler gives for HIP's header on x86-64.
    #[test]
    fn layouts_are_those_of_c() {
        use std::mem::{offset_of, size_of};
        assert_eq!(size_of::<hipChannelFormatDesc>(), 20);
        assert_eq!(size_of::<HIP_ARRAY_DESCRIPTOR>(), 24);
        assert_eq!(size_of::<HIP_ARRAY3D_DESCRIPTOR>(), 40);
        assert_eq!(offset_of!(HIP_ARRAY3D_DESCRIPTOR, Flags), 32);
    }
}
