//! Arrays, and copies between them and memory. There are no textures or surfaces that would read them.

use std::ffi::{c_uint, c_void};

use super::per_thread::own;
use super::{give, not_null};
use crate::emulated::Runtime;
use crate::emulated::array::{Array, Format};
use crate::emulated::memory::{CopyParams, Region};
use crate::error::Error;
use crate::types::*;

const DEFAULT: hipStream_t = std::ptr::null_mut();
/// The handle of the thread's own default stream.
const OWN: hipStream_t = 2 as hipStream_t;

/// # Safety
/// `pointer` is null or valid for writing, `desc` null or valid for reading.
unsafe fn allocate(
    runtime: &Runtime,
    pointer: *mut hipArray_t,
    desc: *const hipChannelFormatDesc,
    extent: [usize; 3],
    flags: c_uint,
) -> Result<(), Error> {
    not_null("array", pointer)?;
    not_null("desc", desc)?;
    runtime.refuse_unsafe("allocating memory")?;
    // SAFETY: the caller's contract.
    unsafe {
        let format = Format::of_channels(*desc)?;
        give("array", pointer, runtime.make_array("extent", format, extent, flags)?)
    }
}

/// # Safety
/// `pointer` is null or valid for writing.
unsafe fn create(
    runtime: &Runtime,
    pointer: *mut hipArray_t,
    desc: HIP_ARRAY3D_DESCRIPTOR,
) -> Result<(), Error> {
    runtime.refuse_unsafe("allocating memory")?;
    let format = Format::of_number(desc.Format, desc.NumChannels)?;
    let extent = [desc.Width, desc.Height, desc.Depth];
    // SAFETY: the caller's contract.
    unsafe { give("array", pointer, runtime.make_array("pAllocateArray", format, extent, desc.Flags)?) }
}

fn free(runtime: &Runtime, array: hipArray_t) -> Result<(), Error> {
    runtime.refuse_unsafe("freeing memory")?;
    runtime.free_array(array)
}

/// A place in an array's first slice: bytes and a row.
fn place(
    runtime: &Runtime,
    name: &'static str,
    handle: hipArray_t,
    [x, y]: [usize; 2],
) -> Result<Region, Error> {
    Ok(runtime.array(name, handle)?.region(handle, [x, y, 0]))
}

/// # Safety
/// Host memory that is named is valid for the copy.
unsafe fn copy(runtime: &Runtime, params: CopyParams, stream: hipStream_t) -> Result<(), Error> {
    // SAFETY: the caller's contract.
    unsafe { runtime.copy_regions(params, &runtime.stream(stream)?) }
}

/// As [`copy`]; the caller waits for all of them.
///
/// # Safety
/// As for [`copy`].
unsafe fn copy_and_wait(
    runtime: &Runtime,
    copies: impl IntoIterator<Item = CopyParams>,
    stream: hipStream_t,
) -> Result<(), Error> {
    runtime.refuse_synchronous()?;
    let stream = runtime.stream(stream)?;
    // SAFETY: the caller's contract.
    unsafe { runtime.copy_all(copies, &stream)? };
    runtime.wait(&stream)
}

/// Rows of memory to an array; `to` and the extent are bytes and rows.
fn to_array(
    runtime: &Runtime,
    dst: hipArray_t,
    to: [usize; 2],
    src: *const c_void,
    pitch: usize,
    [width, height]: [usize; 2],
    kind: hipMemcpyKind,
) -> Result<CopyParams, Error> {
    let (dst, src) = (place(runtime, "dst", dst, to)?, Region::rows(src as u64, pitch, [width, height]));
    Ok(CopyParams { dst, src, extent: [width, height, 1], kind })
}

/// Rows of an array to memory; `from` and the extent are bytes and rows.
fn from_array(
    runtime: &Runtime,
    dst: *mut c_void,
    pitch: usize,
    src: hipArray_t,
    from: [usize; 2],
    [width, height]: [usize; 2],
    kind: hipMemcpyKind,
) -> Result<CopyParams, Error> {
    let (dst, src) = (Region::rows(dst as u64, pitch, [width, height]), place(runtime, "src", src, from)?);
    Ok(CopyParams { dst, src, extent: [width, height, 1], kind })
}

/// A piece of a copy that goes on from row to row of an array: bytes before it, its place, and its bytes and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    before: usize,
    at: [usize; 2],
    extent: [usize; 2],
}

/// The pieces of `count` bytes from a place on in a slice of rows: the rest of a row, whole rows, and the start of one.
fn pieces([row, rows]: [usize; 2], [x, y]: [usize; 2], count: usize) -> Option<impl Iterator<Item = Piece>> {
    let last = y.checked_mul(row)?.checked_add(x)?.checked_add(count)?;
    if x > row || last > row * rows {
        return None;
    }
    let head = if x == 0 { 0 } else { count.min(row - x) };
    let (whole, tail) = ((count - head) / row, (count - head) % row);
    let next = if x == 0 { y } else { y + 1 };
    let pieces = [
        Piece { before: 0, at: [x, y], extent: [head, 1] },
        Piece { before: head, at: [0, next], extent: [row, whole] },
        Piece { before: count - tail, at: [0, next + whole], extent: [tail, 1] },
    ];
    Some(pieces.into_iter().filter(|piece| piece.extent.iter().all(|size| *size > 0)))
}

/// The pieces of an array that `count` bytes from a place on are.
fn pieces_of(array: &Array, at: [usize; 2], count: usize) -> Result<Vec<Piece>, Error> {
    let [row, rows] = array.slice();
    let found = pieces([row, rows], at, count).ok_or_else(|| Error::Argument {
        name: "count",
        value: format!(
            "{count} bytes from byte {} of row {} on, of an array of {rows} rows of {row} bytes",
            at[0], at[1]
        ),
        expected: "they must lie within the array",
    })?;
    Ok(found.collect())
}

/// # Safety
/// As for [`copy`].
unsafe fn line_to_array(
    runtime: &Runtime,
    handle: hipArray_t,
    at: [usize; 2],
    src: *const c_void,
    count: usize,
    kind: hipMemcpyKind,
    stream: hipStream_t,
) -> Result<(), Error> {
    let array = runtime.array("dst", handle)?;
    if count > 0 {
        not_null("src", src)?;
    }
    let copies = pieces_of(&array, at, count)?.into_iter().map(|Piece { before, at: [x, y], extent }| {
        let src = Region::rows(src.wrapping_byte_add(before) as u64, extent[0], extent);
        CopyParams { dst: array.region(handle, [x, y, 0]), src, extent: [extent[0], extent[1], 1], kind }
    });
    // SAFETY: the caller's contract.
    unsafe { copy_and_wait(runtime, copies, stream) }
}

/// # Safety
/// As for [`copy`].
unsafe fn line_from_array(
    runtime: &Runtime,
    dst: *mut c_void,
    handle: hipArray_t,
    at: [usize; 2],
    count: usize,
    kind: hipMemcpyKind,
    stream: hipStream_t,
) -> Result<(), Error> {
    let array = runtime.array("srcArray", handle)?;
    if count > 0 {
        not_null("dst", dst)?;
    }
    let copies = pieces_of(&array, at, count)?.into_iter().map(|Piece { before, at: [x, y], extent }| {
        let dst = Region::rows(dst.wrapping_byte_add(before) as u64, extent[0], extent);
        CopyParams { dst, src: array.region(handle, [x, y, 0]), extent: [extent[0], extent[1], 1], kind }
    });
    // SAFETY: the caller's contract.
    unsafe { copy_and_wait(runtime, copies, stream) }
}

hip_functions! {
    /// Makes an array of one dimension (a height of 0) or two.
    fn hipMallocArray(array: *mut hipArray_t, desc: *const hipChannelFormatDesc, width: usize, height: usize, flags: c_uint) => |runtime| {
        allocate(runtime, array, desc, [width, height, 0], flags)
    }

    /// Makes an array: of one dimension (height and depth are 0), two, or three, or of layers of one or two (`hipArrayLayered`),
    /// as many as the depth says.
    fn hipMalloc3DArray(array: *mut hipArray_t, desc: *const hipChannelFormatDesc, extent: hipExtent, flags: c_uint) => |runtime| {
        allocate(runtime, array, desc, [extent.width, extent.height, extent.depth], flags)
    }

    /// As [`hipMallocArray`].
    fn hipArrayCreate(pHandle: *mut hipArray_t, pAllocateArray: *const HIP_ARRAY_DESCRIPTOR) => |runtime| {
        not_null("pHandle", pHandle)?;
        not_null("pAllocateArray", pAllocateArray)?;
        let HIP_ARRAY_DESCRIPTOR { Width, Height, Format, NumChannels } = *pAllocateArray;
        create(runtime, pHandle, HIP_ARRAY3D_DESCRIPTOR { Width, Height, Depth: 0, Format, NumChannels, Flags: 0 })
    }

    /// As [`hipMalloc3DArray`].
    fn hipArray3DCreate(array: *mut hipArray_t, pAllocateArray: *const HIP_ARRAY3D_DESCRIPTOR) => |runtime| {
        not_null("array", array)?;
        not_null("pAllocateArray", pAllocateArray)?;
        create(runtime, array, *pAllocateArray)
    }

    /// Ends an array, once what is still running has ended.
    fn hipFreeArray(array: hipArray_t) => |runtime| { free(runtime, array) }

    /// As [`hipFreeArray`].
    fn hipArrayDestroy(array: hipArray_t) => |runtime| { free(runtime, array) }

    /// What an array was made with; pointers that are null get nothing.
    fn hipArrayGetInfo(desc: *mut hipChannelFormatDesc, extent: *mut hipExtent, flags: *mut c_uint, array: hipArray_t) => |runtime| {
        let array = runtime.array("array", array)?;
        if !desc.is_null() {
            desc.write(array.format.desc());
        }
        if !extent.is_null() {
            let [width, height, depth] = array.extent;
            extent.write(hipExtent { width, height, depth });
        }
        if !flags.is_null() {
            flags.write(array.flags);
        }
        Ok(())
    }

    /// What an array was made with, but for depth and flags.
    fn hipArrayGetDescriptor(pArrayDescriptor: *mut HIP_ARRAY_DESCRIPTOR, array: hipArray_t) => |runtime| {
        let Array { extent: [Width, Height, _], format, .. } = *runtime.array("array", array)?;
        let (Format, NumChannels) = (format.number(), format.channels);
        give("pArrayDescriptor", pArrayDescriptor, HIP_ARRAY_DESCRIPTOR { Width, Height, Format, NumChannels })
    }

    /// What an array was made with.
    fn hipArray3DGetDescriptor(pArrayDescriptor: *mut HIP_ARRAY3D_DESCRIPTOR, array: hipArray_t) => |runtime| {
        let Array { extent: [Width, Height, Depth], format, flags: Flags, .. } = *runtime.array("array", array)?;
        let (Format, NumChannels) = (format.number(), format.channels);
        give("pArrayDescriptor", pArrayDescriptor, HIP_ARRAY3D_DESCRIPTOR { Width, Height, Depth, Format, NumChannels, Flags })
    }

    /// The description of an array's element.
    fn hipGetChannelDesc(desc: *mut hipChannelFormatDesc, array: hipArray_t) => |runtime| {
        give("desc", desc, runtime.array("array", array)?.format.desc())
    }

    /// Copies rows of memory to an array, and waits; offset and width are in bytes.
    fn hipMemcpy2DToArray(dst: hipArray_t, wOffset: usize, hOffset: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind) => |runtime| {
        let params = to_array(runtime, dst, [wOffset, hOffset], src, spitch, [width, height], kind)?;
        copy_and_wait(runtime, [params], DEFAULT)
    }

    /// `hipMemcpy2DToArray` with the thread's own default stream.
    fn hipMemcpy2DToArray_spt(dst: hipArray_t, wOffset: usize, hOffset: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind) => |runtime| {
        let params = to_array(runtime, dst, [wOffset, hOffset], src, spitch, [width, height], kind)?;
        copy_and_wait(runtime, [params], OWN)
    }

    /// As [`hipMemcpy2DToArray`], in a stream.
    fn hipMemcpy2DToArrayAsync(dst: hipArray_t, wOffset: usize, hOffset: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t) => |runtime| {
        copy(runtime, to_array(runtime, dst, [wOffset, hOffset], src, spitch, [width, height], kind)?, stream)
    }

    /// `hipMemcpy2DToArrayAsync` with the thread's own default stream.
    fn hipMemcpy2DToArrayAsync_spt(dst: hipArray_t, wOffset: usize, hOffset: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t) => |runtime| {
        copy(runtime, to_array(runtime, dst, [wOffset, hOffset], src, spitch, [width, height], kind)?, own(stream))
    }

    /// Copies rows of an array to memory, and waits; offset and width are in bytes.
    fn hipMemcpy2DFromArray(dst: *mut c_void, dpitch: usize, src: hipArray_t, wOffset: usize, hOffset: usize, width: usize, height: usize, kind: hipMemcpyKind) => |runtime| {
        let params = from_array(runtime, dst, dpitch, src, [wOffset, hOffset], [width, height], kind)?;
        copy_and_wait(runtime, [params], DEFAULT)
    }

    /// `hipMemcpy2DFromArray` with the thread's own default stream.
    fn hipMemcpy2DFromArray_spt(dst: *mut c_void, dpitch: usize, src: hipArray_t, wOffset: usize, hOffset: usize, width: usize, height: usize, kind: hipMemcpyKind) => |runtime| {
        let params = from_array(runtime, dst, dpitch, src, [wOffset, hOffset], [width, height], kind)?;
        copy_and_wait(runtime, [params], OWN)
    }

    /// As [`hipMemcpy2DFromArray`], in a stream.
    fn hipMemcpy2DFromArrayAsync(dst: *mut c_void, dpitch: usize, src: hipArray_t, wOffset: usize, hOffset: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t) => |runtime| {
        copy(runtime, from_array(runtime, dst, dpitch, src, [wOffset, hOffset], [width, height], kind)?, stream)
    }

    /// `hipMemcpy2DFromArrayAsync` with the thread's own default stream.
    fn hipMemcpy2DFromArrayAsync_spt(dst: *mut c_void, dpitch: usize, src: hipArray_t, wOffset: usize, hOffset: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t) => |runtime| {
        copy(runtime, from_array(runtime, dst, dpitch, src, [wOffset, hOffset], [width, height], kind)?, own(stream))
    }

    /// Copies rows from array to array, and waits; offsets and width are in bytes.
    fn hipMemcpy2DArrayToArray(dst: hipArray_t, wOffsetDst: usize, hOffsetDst: usize, src: hipArray_t, wOffsetSrc: usize, hOffsetSrc: usize, width: usize, height: usize, kind: hipMemcpyKind) => |runtime| {
        let dst = place(runtime, "dst", dst, [wOffsetDst, hOffsetDst])?;
        let src = place(runtime, "src", src, [wOffsetSrc, hOffsetSrc])?;
        copy_and_wait(runtime, [CopyParams { dst, src, extent: [width, height, 1], kind }], DEFAULT)
    }

    /// Copies bytes that follow each other to an array, and waits. Those that pass the end of a row are the next row's.
    fn hipMemcpyToArray(dst: hipArray_t, wOffset: usize, hOffset: usize, src: *const c_void, count: usize, kind: hipMemcpyKind) => |runtime| {
        line_to_array(runtime, dst, [wOffset, hOffset], src, count, kind, DEFAULT)
    }

    /// Copies an array's bytes one after the other to memory, and waits. Behind the last of a row comes the first of the next.
    fn hipMemcpyFromArray(dst: *mut c_void, srcArray: hipArray_t, wOffset: usize, hOffset: usize, count: usize, kind: hipMemcpyKind) => |runtime| {
        line_from_array(runtime, dst, srcArray, [wOffset, hOffset], count, kind, DEFAULT)
    }

    /// `hipMemcpyFromArray` with the thread's own default stream.
    fn hipMemcpyFromArray_spt(dst: *mut c_void, src: hipArray_t, wOffsetSrc: usize, hOffset: usize, count: usize, kind: hipMemcpyKind) => |runtime| {
        line_from_array(runtime, dst, src, [wOffsetSrc, hOffset], count, kind, OWN)
    }

    /// Copies bytes of an array's first row to the host, and waits.
    fn hipMemcpyAtoH(dst: *mut c_void, srcArray: hipArray_t, srcOffset: usize, count: usize) => |runtime| {
        let params = from_array(runtime, dst, count, srcArray, [srcOffset, 0], [count, 1], HIP_MEMCPY_DEVICE_TO_HOST)?;
        copy_and_wait(runtime, [params], DEFAULT)
    }

    /// As [`hipMemcpyAtoH`], in a stream.
    fn hipMemcpyAtoHAsync(dstHost: *mut c_void, srcArray: hipArray_t, srcOffset: usize, ByteCount: usize, stream: hipStream_t) => |runtime| {
        let extent = [ByteCount, 1];
        copy(runtime, from_array(runtime, dstHost, ByteCount, srcArray, [srcOffset, 0], extent, HIP_MEMCPY_DEVICE_TO_HOST)?, stream)
    }

    /// Copies bytes of the host to an array's first row, and waits.
    fn hipMemcpyHtoA(dstArray: hipArray_t, dstOffset: usize, srcHost: *const c_void, count: usize) => |runtime| {
        let params = to_array(runtime, dstArray, [dstOffset, 0], srcHost, count, [count, 1], HIP_MEMCPY_HOST_TO_DEVICE)?;
        copy_and_wait(runtime, [params], DEFAULT)
    }

    /// As [`hipMemcpyHtoA`], in a stream.
    fn hipMemcpyHtoAAsync(dstArray: hipArray_t, dstOffset: usize, srcHost: *const c_void, ByteCount: usize, stream: hipStream_t) => |runtime| {
        let extent = [ByteCount, 1];
        copy(runtime, to_array(runtime, dstArray, [dstOffset, 0], srcHost, ByteCount, extent, HIP_MEMCPY_HOST_TO_DEVICE)?, stream)
    }

    /// Copies bytes of an array's first row to device memory, and waits.
    fn hipMemcpyAtoD(dstDevice: hipDeviceptr_t, srcArray: hipArray_t, srcOffset: usize, ByteCount: usize) => |runtime| {
        let extent = [ByteCount, 1];
        let params = from_array(runtime, dstDevice, ByteCount, srcArray, [srcOffset, 0], extent, HIP_MEMCPY_DEVICE_TO_DEVICE)?;
        copy_and_wait(runtime, [params], DEFAULT)
    }

    /// Copies bytes of device memory to an array's first row, and waits.
    fn hipMemcpyDtoA(dstArray: hipArray_t, dstOffset: usize, srcDevice: hipDeviceptr_t, ByteCount: usize) => |runtime| {
        let extent = [ByteCount, 1];
        let params = to_array(runtime, dstArray, [dstOffset, 0], srcDevice, ByteCount, extent, HIP_MEMCPY_DEVICE_TO_DEVICE)?;
        copy_and_wait(runtime, [params], DEFAULT)
    }

    /// Copies bytes of an array's first row to another's, and waits.
    fn hipMemcpyAtoA(dstArray: hipArray_t, dstOffset: usize, srcArray: hipArray_t, srcOffset: usize, ByteCount: usize) => |runtime| {
        let dst = place(runtime, "dstArray", dstArray, [dstOffset, 0])?;
        let src = place(runtime, "srcArray", srcArray, [srcOffset, 0])?;
        copy_and_wait(runtime, [CopyParams { dst, src, extent: [ByteCount, 1, 1], kind: HIP_MEMCPY_DEVICE_TO_DEVICE }], DEFAULT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each piece, byte by byte, is where counting on from the place gets to.
    #[test]
    fn pieces_are_the_bytes_that_follow_each_other() {
        let (row, rows) = (5, 3);
        let mut seen = 0;
        for y in 0..rows {
            for x in 0..=row {
                for count in 0..=row * rows {
                    let start = y * row + x;
                    let Some(pieces) = pieces([row, rows], [x, y], count) else {
                        assert!(start + count > row * rows);
                        continue;
                    };
                    let mut bytes = Vec::new();
                    for Piece { before, at, extent: [width, height] } in pieces {
                        assert_eq!(before, bytes.len());
                        let places =
                            (0..height).flat_map(|j| (0..width).map(move |i| (at[0] + i, at[1] + j)));
                        bytes.extend(
                            places.inspect(|(i, j)| assert!(*i < row && *j < rows)).map(|(i, j)| j * row + i),
                        );
                    }
                    assert_eq!(bytes, (start..start + count).collect::<Vec<_>>(), "{count} at {x}, {y}");
                    seen += 1;
                }
            }
        }
        assert!(seen > 100);
        assert!(
            pieces([row, rows], [6, 0], 1).is_none() && pieces([row, rows], [0, usize::MAX], 1).is_none()
        );
    }
}
