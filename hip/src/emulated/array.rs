//! Arrays: elements in rows and slices, in device memory that a program reaches by a handle alone.

use std::ffi::c_void;
use std::sync::Arc;

use super::Runtime;
use super::memory::{BlockKind, Region};
use crate::error::Error;
use crate::types::*;

/// Rows start at multiples of this.
const PITCH: usize = 256;

/// Flags that mean something where there are no textures, or nothing.
const FLAGS: u32 = HIP_ARRAY_LAYERED | HIP_ARRAY_SURFACE_LOAD_STORE | HIP_ARRAY_TEXTURE_GATHER;

/// What an element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Format {
    kind: hipChannelFormatKind,
    /// Of a channel.
    bits: u32,
    pub(crate) channels: u32,
}

impl Format {
    /// The kinds of channels, with their bits, and their numbers.
    const NUMBERS: [(hipChannelFormatKind, u32, hipArray_Format); 8] = [
        (HIP_CHANNEL_FORMAT_KIND_UNSIGNED, 8, HIP_AD_FORMAT_UNSIGNED_INT8),
        (HIP_CHANNEL_FORMAT_KIND_UNSIGNED, 16, HIP_AD_FORMAT_UNSIGNED_INT16),
        (HIP_CHANNEL_FORMAT_KIND_UNSIGNED, 32, HIP_AD_FORMAT_UNSIGNED_INT32),
        (HIP_CHANNEL_FORMAT_KIND_SIGNED, 8, HIP_AD_FORMAT_SIGNED_INT8),
        (HIP_CHANNEL_FORMAT_KIND_SIGNED, 16, HIP_AD_FORMAT_SIGNED_INT16),
        (HIP_CHANNEL_FORMAT_KIND_SIGNED, 32, HIP_AD_FORMAT_SIGNED_INT32),
        (HIP_CHANNEL_FORMAT_KIND_FLOAT, 16, HIP_AD_FORMAT_HALF),
        (HIP_CHANNEL_FORMAT_KIND_FLOAT, 32, HIP_AD_FORMAT_FLOAT),
    ];

    pub(crate) fn of_channels(desc: hipChannelFormatDesc) -> Result<Format, Error> {
        let hipChannelFormatDesc { x, y, z, w, f } = desc;
        let channels = match [y, z, w].map(|bits| {
            if bits == x {
                'x'
            } else if bits == 0 {
                '0'
            } else {
                '?'
            }
        }) {
            ['0', '0', '0'] => 1,
            ['x', '0', '0'] => 2,
            ['x', 'x', 'x'] => 4,
            _ => 0,
        };
        let known =
            Format::NUMBERS.iter().find(|(kind, bits, _)| *kind == f && i64::from(*bits) == i64::from(x));
        match known {
            Some(&(kind, bits, _)) if channels > 0 => Ok(Format { kind, bits, channels }),
            _ => Err(Error::Argument {
                name: "desc",
                value: format!("{x}, {y}, {z} and {w} bits of kind {f}"),
                expected: "an element has 1, 2 or 4 channels of 8, 16 or 32 bits, all the same, signed (0), unsigned (1) or float (2, \
                           not of 8 bits)",
            }),
        }
    }

    pub(crate) fn of_number(format: hipArray_Format, channels: u32) -> Result<Format, Error> {
        let known = Format::NUMBERS.iter().find(|(_, _, number)| *number == format);
        match known {
            Some(&(kind, bits, _)) if matches!(channels, 1 | 2 | 4) => Ok(Format { kind, bits, channels }),
            _ => Err(Error::Argument {
                name: "pAllocateArray",
                value: format!("{channels} channels of format {format:#x}"),
                expected: "an element has 1, 2 or 4 channels of a format of HIP_AD_FORMAT_UNSIGNED_INT8 to HIP_AD_FORMAT_FLOAT",
            }),
        }
    }

    /// Bytes of an element.
    pub(crate) fn bytes(self) -> usize {
        (self.bits / 8 * self.channels) as usize
    }

    pub(crate) fn desc(self) -> hipChannelFormatDesc {
        let bits = |channels| if self.channels >= channels { self.bits as i32 } else { 0 };
        hipChannelFormatDesc { x: bits(1), y: bits(2), z: bits(3), w: bits(4), f: self.kind }
    }

    pub(crate) fn number(self) -> hipArray_Format {
        let of = Format::NUMBERS.iter().find(|(kind, bits, _)| (*kind, *bits) == (self.kind, self.bits));
        of.map_or(0, |(_, _, number)| *number)
    }
}

/// An array.
pub(crate) struct Array {
    pub(crate) device: usize,
    base: u64,
    /// Bytes from row to row.
    pitch: usize,
    pub(crate) format: Format,
    /// Elements of a row, rows, and slices or layers; 0 is a dimension that the array has not.
    pub(crate) extent: [usize; 3],
    pub(crate) flags: u32,
}

impl Array {
    /// Elements of a row, rows and slices that there are.
    fn size(&self) -> [usize; 3] {
        self.extent.map(|size| size.max(1))
    }

    /// Bytes of a row, and rows of a slice.
    pub(crate) fn slice(&self) -> [usize; 2] {
        let [width, height, _] = self.size();
        [width * self.format.bytes(), height]
    }

    /// A place in the array, in bytes, rows and slices. `handle` is the array's.
    pub(crate) fn region(&self, handle: *mut c_void, at: [usize; 3]) -> Region {
        let [xsize, ysize] = self.slice();
        let within = Within { handle: handle as u64, element: self.format.bytes(), size: self.size() };
        Region { address: self.base, pitch: self.pitch, xsize, ysize, at, array: Some(within) }
    }
}

/// The array that a region is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Within {
    pub(crate) handle: u64,
    /// Bytes of an element.
    pub(crate) element: usize,
    /// Elements of a row, rows, slices.
    size: [usize; 3],
}

impl Within {
    /// Checks that a copy of `extent` at `at`, both in bytes, rows and slices, has whole elements of the array and no others.
    pub(super) fn check(&self, name: &'static str, at: [usize; 3], extent: [usize; 3]) -> Result<(), Error> {
        let Within { element, size, .. } = *self;
        let elements = |[bytes, rows, slices]: [usize; 3]| [bytes / element, rows, slices];
        let (first, count) = (elements(at), elements(extent));
        if !(0..3).all(|i| first[i].checked_add(count[i]).is_some_and(|end| end <= size[i])) {
            return Err(Error::OutsideArray { name, extent: count, at: first, size });
        }
        if !at[0].is_multiple_of(element) || !extent[0].is_multiple_of(element) {
            return Err(Error::Argument {
                name,
                value: format!(
                    "an array with elements of {element} bytes, of which {} at {} are copied",
                    extent[0], at[0]
                ),
                expected: "a copy has whole elements",
            });
        }
        Ok(())
    }
}

impl Runtime {
    /// Makes an array on the current device; the result is its handle. `name` is what an error calls the sizes.
    pub(crate) fn make_array(
        &self,
        name: &'static str,
        format: Format,
        extent: [usize; 3],
        flags: u32,
    ) -> Result<*mut c_void, Error> {
        let [width, height, depth] = extent;
        let sizes = || format!("{width} x {height} x {depth} elements, flags {flags:#x}");
        let wrong = |expected| Err(Error::Argument { name, value: sizes(), expected });
        if flags & HIP_ARRAY_CUBEMAP != 0 {
            return Err(Error::Unsupported("emulated devices have no arrays of cube maps".to_owned()));
        }
        if flags & !FLAGS != 0 {
            return wrong("there are the flags 0x1 (layered), 0x2 (surface) and 0x8 (gather)");
        }
        if width == 0 {
            return wrong("an array has a width");
        }
        if flags & HIP_ARRAY_LAYERED != 0 {
            if depth == 0 {
                return wrong("a layered array has as many layers as its depth says");
            }
        } else if height == 0 && depth > 0 {
            return wrong("an array with a depth has a height, or layers");
        }
        if flags & HIP_ARRAY_TEXTURE_GATHER != 0 && (height == 0 || depth > 0) {
            return wrong("an array for textures that gather has two dimensions");
        }
        let pitch = width.checked_mul(format.bytes()).and_then(|row| row.checked_next_multiple_of(PITCH));
        let bytes = pitch.and_then(|pitch| pitch.checked_mul(height.max(1))?.checked_mul(depth.max(1)));
        let (Some(pitch), Some(bytes)) = (pitch, bytes) else {
            return wrong("the elements together pass the end of the address space");
        };
        let device = self.current().ordinal;
        let base = self.allocate(bytes, BlockKind::Array)?;
        Ok(self.handles.insert(Arc::new(Array { device, base, pitch, format, extent, flags })))
    }

    /// The array that a handle stands for.
    pub(crate) fn array(&self, name: &'static str, handle: hipArray_t) -> Result<Arc<Array>, Error> {
        if handle.is_null() {
            return Err(Error::Null(name));
        }
        self.handles.get(handle)
    }

    /// Ends an array, once what is still running has ended.
    pub(crate) fn free_array(&self, handle: hipArray_t) -> Result<(), Error> {
        if handle.is_null() {
            return Err(Error::Null("array"));
        }
        let array = self.handles.remove::<Array>(handle)?;
        self.free(array.base as *mut c_void, "an array", |kind| kind == BlockKind::Array)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_channels_and_numbers() {
        let mut seen = 0;
        for &(kind, bits, number) in &Format::NUMBERS {
            for channels in [1, 2, 4] {
                let format = Format::of_number(number, channels).unwrap();
                assert_eq!((format.kind, format.bits, format.number()), (kind, bits, number));
                assert_eq!(format.bytes(), (bits / 8 * channels) as usize);
                assert_eq!(Format::of_channels(format.desc()).unwrap(), format);
                seen += 1;
            }
            assert!(Format::of_number(number, 3).is_err());
        }
        assert_eq!(seen, 24);
        let desc = |x, y, z, w, f| Format::of_channels(hipChannelFormatDesc { x, y, z, w, f });
        for wrong in [
            desc(0, 0, 0, 0, 0),
            desc(32, 32, 32, 0, 1),
            desc(32, 16, 0, 0, 1),
            desc(32, 0, 32, 0, 1),
            desc(8, 0, 0, 0, 2),
            desc(64, 0, 0, 0, 0),
            desc(32, 0, 0, 0, 3),
            desc(-8, 0, 0, 0, 0),
        ] {
            assert!(wrong.unwrap_err().to_string().contains("1, 2 or 4 channels"));
        }
    }
}
