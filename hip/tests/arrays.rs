//! Arrays: what they are made with, copies to and from them, and how they end.

mod common;

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::*;

const TO_DEVICE: u32 = HIP_MEMCPY_HOST_TO_DEVICE;
const TO_HOST: u32 = HIP_MEMCPY_DEVICE_TO_HOST;
const ON_DEVICE: u32 = HIP_MEMCPY_DEVICE_TO_DEVICE;
const WILD: *mut c_void = 0xdead_0000 as *mut c_void;
const ARRAY: hipMemoryType = 10;
const NOTHING: hipPitchedPtr = hipPitchedPtr { ptr: null_mut(), pitch: 0, xsize: 0, ysize: 0 };
const BYTES: hipChannelFormatDesc = desc(8, 1, HIP_CHANNEL_FORMAT_KIND_UNSIGNED);
const FLOATS: hipChannelFormatDesc = desc(32, 1, HIP_CHANNEL_FORMAT_KIND_FLOAT);

/// One test at a time, since what the process holds is counted; on device 0.
fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    let guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    on(0);
    guard
}

const fn desc(bits: i32, channels: u32, f: u32) -> hipChannelFormatDesc {
    let (y, zw) = (if channels > 1 { bits } else { 0 }, if channels > 2 { bits } else { 0 });
    hipChannelFormatDesc { x: bits, y, z: zw, w: zw, f }
}

#[track_caller]
fn make(desc: hipChannelFormatDesc, [width, height, depth]: [usize; 3], flags: u32) -> hipArray_t {
    let mut array = null_mut();
    // SAFETY: the pointers are valid.
    ok(unsafe { hipMalloc3DArray(&mut array, &desc, hipExtent { width, height, depth }, flags) });
    assert!(!array.is_null());
    array
}

#[track_caller]
fn end(array: hipArray_t) {
    // SAFETY: takes a handle.
    ok(unsafe { hipFreeArray(array) });
}

/// Bytes of which no two near each other are the same.
fn bytes(count: usize, seed: usize) -> Vec<u8> {
    (0..count).map(|n| ((n + seed).wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Host memory of rows and slices with gaps behind each of them.
#[derive(Clone, PartialEq, Debug)]
struct Pitched {
    data: Vec<u8>,
    pitch: usize,
    rows: usize,
}

impl Pitched {
    fn new(pitch: usize, rows: usize, slices: usize, seed: usize) -> Pitched {
        Pitched { data: bytes(pitch * rows * slices, seed), pitch, rows }
    }

    fn pointer(&self) -> hipPitchedPtr {
        let ptr = self.data.as_ptr().cast_mut().cast();
        hipPitchedPtr { ptr, pitch: self.pitch, xsize: self.pitch, ysize: self.rows }
    }

    fn at(&self, [x, y, z]: [usize; 3]) -> usize {
        (z * self.rows + y) * self.pitch + x
    }

    /// What a copy does, byte by byte: places and extent are in bytes, rows, slices.
    fn copy(&mut self, to: [usize; 3], from: &Pitched, at: [usize; 3], [width, height, depth]: [usize; 3]) {
        for (z, y, x) in
            (0..depth).flat_map(|z| (0..height).flat_map(move |y| (0..width).map(move |x| (z, y, x))))
        {
            let place = self.at([to[0] + x, to[1] + y, to[2] + z]);
            self.data[place] = from.data[from.at([at[0] + x, at[1] + y, at[2] + z])];
        }
    }
}

fn pos([x, y, z]: [usize; 3]) -> hipPos {
    hipPos { x, y, z }
}

fn whole_copy(extent: [usize; 3], kind: u32) -> hipMemcpy3DParms {
    let [width, height, depth] = extent;
    hipMemcpy3DParms {
        srcArray: null_mut(),
        srcPos: pos([0; 3]),
        srcPtr: NOTHING,
        dstArray: null_mut(),
        dstPos: pos([0; 3]),
        dstPtr: NOTHING,
        extent: hipExtent { width, height, depth },
        kind,
    }
}

/// Puts all elements of an array into packed host memory.
#[track_caller]
fn contents(array: hipArray_t, element: usize, extent: [usize; 3]) -> Pitched {
    let back = Pitched::new(extent[0] * element, extent[1], extent[2], 99);
    let copy = hipMemcpy3DParms { srcArray: array, dstPtr: back.pointer(), ..whole_copy(extent, TO_HOST) };
    // SAFETY: the host memory is as large as the copy.
    ok(unsafe { hipMemcpy3D(&copy) });
    back
}

#[test]
fn arrays_of_every_shape_and_element_hold_what_is_copied_to_them() {
    let _alone = alone();
    let before = held_resources().unwrap();
    let formats = [
        (BYTES, 1),
        (desc(8, 4, HIP_CHANNEL_FORMAT_KIND_SIGNED), 4),
        (desc(16, 2, HIP_CHANNEL_FORMAT_KIND_FLOAT), 4),
        (desc(16, 1, HIP_CHANNEL_FORMAT_KIND_SIGNED), 2),
        (FLOATS, 4),
        (desc(32, 4, HIP_CHANNEL_FORMAT_KIND_UNSIGNED), 16),
    ];
    // With the elements, rows and slices that there are, a place in them and an extent from there.
    let shapes = [
        ([37, 0, 0], 0, [5, 0, 0], [31, 1, 1]),
        ([1, 1, 0], 0, [0, 0, 0], [1, 1, 1]),
        ([37, 5, 0], 0, [3, 1, 0], [33, 3, 1]),
        ([13, 4, 3], 0, [2, 1, 1], [9, 3, 2]),
        ([13, 0, 3], HIP_ARRAY_LAYERED, [1, 0, 1], [12, 1, 2]),
        ([300, 2, 5], HIP_ARRAY_LAYERED | HIP_ARRAY_SURFACE_LOAD_STORE, [7, 1, 2], [290, 1, 3]),
    ];
    for (format, element) in formats {
        for (extent, flags, at, part) in shapes {
            let size = extent.map(|size| size.max(1));
            let in_bytes = |[x, y, z]: [usize; 3]| [x * element, y, z];
            let [row, rows, slices] = in_bytes(size);
            let (one, two) = (make(format, extent, flags), make(format, extent, flags));

            // All of it in and out, over gaps behind rows and slices of host memory.
            let source = Pitched::new(row + 3, rows + 2, slices, 1);
            let params =
                hipMemcpy3DParms { srcPtr: source.pointer(), dstArray: one, ..whole_copy(size, TO_DEVICE) };
            // SAFETY: the host memory is as large as its pitches say, here and below.
            ok(unsafe { hipMemcpy3D(&params) });
            let mut model = Pitched::new(row, rows, slices, 0);
            model.copy([0; 3], &source, [0; 3], [row, rows, slices]);
            assert_eq!(contents(one, element, size), model, "{extent:?} {flags} of {element} bytes");

            // A part to another array, and from there to the middle of host memory.
            let before = contents(two, element, size);
            let params = hipMemcpy3DParms {
                srcArray: one,
                srcPos: pos(at),
                dstArray: two,
                ..whole_copy(part, HIP_MEMCPY_DEFAULT)
            };
            // SAFETY: as above.
            ok(unsafe { hipMemcpy3D(&params) });
            let mut other = before;
            other.copy([0; 3], &model, in_bytes(at), in_bytes(part));
            assert_eq!(contents(two, element, size), other);
            let target = Pitched::new(row + 7, rows + 1, slices + 1, 5);
            let params = hipMemcpy3DParms {
                srcArray: two,
                dstPtr: target.pointer(),
                dstPos: pos([2, 1, 1]),
                ..whole_copy(part, TO_HOST)
            };
            let mut expected = target.clone();
            expected.copy([2, 1, 1], &other, [0; 3], in_bytes(part));
            // SAFETY: as above.
            ok(unsafe { hipMemcpy3DAsync(&params, null_mut()) });
            // SAFETY: takes nothing.
            ok(unsafe { hipDeviceSynchronize() });
            assert_eq!(target, expected);

            // From device memory into a part.
            let device = Pitched { data: bytes(source.data.len(), 8), ..source };
            let on_device = upload(&device.data);
            let params = hipMemcpy3DParms {
                srcPtr: hipPitchedPtr { ptr: on_device, ..device.pointer() },
                dstArray: one,
                dstPos: pos(at),
                ..whole_copy(part, ON_DEVICE)
            };
            // SAFETY: as above.
            ok(unsafe { hipMemcpy3D_spt(&params) });
            model.copy(in_bytes(at), &device, [0; 3], in_bytes(part));
            assert_eq!(contents(one, element, size), model);
            free(on_device);
            end(one);
            end(two);
        }
    }
    assert_eq!(held_resources().unwrap(), before);
}

#[test]
fn elements_that_nothing_has_written_are_nan_not_zero() {
    let _alone = alone();
    let array = make(FLOATS, [33, 3, 0], 0);
    assert!(contents(array, 4, [33, 3, 1]).data.iter().all(|byte| *byte == 0xff));
    end(array);
}

/// Rows into an array by one of the four functions for that.
///
/// # Safety
/// Host memory at the address has as many rows.
unsafe fn rows_in(
    function: usize,
    array: hipArray_t,
    [x, y]: [usize; 2],
    (src, pitch): (*const c_void, usize),
    [width, height]: [usize; 2],
    kind: u32,
    stream: hipStream_t,
) -> hipError_t {
    // SAFETY: the caller's contract.
    unsafe {
        match function {
            0 => hipMemcpy2DToArray(array, x, y, src, pitch, width, height, kind),
            1 => hipMemcpy2DToArray_spt(array, x, y, src, pitch, width, height, kind),
            2 => hipMemcpy2DToArrayAsync(array, x, y, src, pitch, width, height, kind, stream),
            _ => hipMemcpy2DToArrayAsync_spt(array, x, y, src, pitch, width, height, kind, stream),
        }
    }
}

/// Rows of an array by one of the four functions for that.
///
/// # Safety
/// Host memory at the address has room for them.
unsafe fn rows_out(
    function: usize,
    (dst, pitch): (*mut c_void, usize),
    array: hipArray_t,
    [x, y]: [usize; 2],
    [width, height]: [usize; 2],
    kind: u32,
    stream: hipStream_t,
) -> hipError_t {
    // SAFETY: the caller's contract.
    unsafe {
        match function {
            0 => hipMemcpy2DFromArray(dst, pitch, array, x, y, width, height, kind),
            1 => hipMemcpy2DFromArray_spt(dst, pitch, array, x, y, width, height, kind),
            2 => hipMemcpy2DFromArrayAsync(dst, pitch, array, x, y, width, height, kind, stream),
            _ => hipMemcpy2DFromArrayAsync_spt(dst, pitch, array, x, y, width, height, kind, stream),
        }
    }
}

/// Rows by each of the functions for them.
#[test]
fn rows_go_in_and_out() {
    let _alone = alone();
    const SIZE: [usize; 3] = [11, 6, 1];
    let (width, height, from, to) = (5 * 4, 3, [2 * 4, 1], [3 * 4, 2]);
    let array = make(FLOATS, [11, 6, 0], 0);
    let mut model = contents(array, 4, SIZE);
    let mut stream = null_mut();
    // SAFETY: the result is valid for writing.
    ok(unsafe { hipStreamCreate(&mut stream) });
    for seed in 0..4 {
        for kind in [TO_DEVICE, HIP_MEMCPY_DEFAULT] {
            let source = Pitched::new(23, 3, 1, seed + kind as usize);
            // SAFETY: the host memory is as large as the rows.
            unsafe {
                ok(rows_in(
                    seed,
                    array,
                    to,
                    (source.data.as_ptr().cast(), 23),
                    [width, height],
                    kind,
                    stream,
                ));
                ok(hipStreamSynchronize(stream));
            }
            model.copy([to[0], to[1], 0], &source, [0; 3], [width, height, 1]);
            assert_eq!(contents(array, 4, SIZE), model, "function {seed}");
        }
        let memory = upload(&bytes(64 * 3, 50 + seed));
        let source = Pitched { data: bytes(64 * 3, 50 + seed), pitch: 64, rows: 3 };
        // SAFETY: takes handles and device addresses.
        unsafe {
            ok(rows_in(seed, array, from, (memory, 64), [width, height], ON_DEVICE, stream));
            ok(hipStreamSynchronize(stream));
        }
        model.copy([from[0], from[1], 0], &source, [0; 3], [width, height, 1]);
        assert_eq!(contents(array, 4, SIZE), model, "function {seed}");
        free(memory);
    }
    for seed in 0..4 {
        for kind in [TO_HOST, HIP_MEMCPY_DEFAULT] {
            let target = Pitched::new(27, 3, 1, seed);
            let mut expected = target.clone();
            expected.copy([0; 3], &model, [from[0], from[1], 0], [width, height, 1]);
            // SAFETY: the host memory is as large as the rows.
            unsafe {
                ok(rows_out(seed, (target.pointer().ptr, 27), array, from, [width, height], kind, stream));
                ok(hipStreamSynchronize(stream));
            }
            assert_eq!(target, expected, "function {seed}");
        }
    }
    let other = make(desc(8, 4, HIP_CHANNEL_FORMAT_KIND_UNSIGNED), [9, 4, 0], 0);
    let mut expected = contents(other, 4, [9, 4, 1]);
    // SAFETY: takes handles.
    unsafe {
        for kind in [ON_DEVICE, HIP_MEMCPY_DEFAULT] {
            ok(hipMemcpy2DArrayToArray(other, 4, 1, array, from[0], from[1], width, height, kind));
        }
        ok(hipStreamDestroy(stream));
    }
    expected.copy([4, 1, 0], &model, [from[0], from[1], 0], [width, height, 1]);
    assert_eq!(contents(other, 4, [9, 4, 1]), expected);
    end(array);
    end(other);
}

#[test]
fn bytes_that_follow_each_other_go_on_in_the_next_row() {
    let _alone = alone();
    let array = make(desc(16, 1, HIP_CHANNEL_FORMAT_KIND_UNSIGNED), [7, 4, 0], 0);
    let mut model = contents(array, 2, [7, 4, 1]);
    for (x, y, count) in
        [(0, 0, 56), (6, 1, 30), (4, 2, 6), (0, 3, 14), (2, 0, 12), (12, 0, 16), (0, 1, 4), (4, 0, 0)]
    {
        let source = bytes(count, x + y);
        let start = y * 14 + x;
        let back = vec![0u8; count];
        let out = back.as_ptr().cast_mut().cast::<c_void>();
        // SAFETY: the host memory is valid for the bytes.
        unsafe {
            ok(hipMemcpyToArray(array, x, y, source.as_ptr().cast(), count, TO_DEVICE));
            model.data[start..start + count].copy_from_slice(&source);
            assert_eq!(contents(array, 2, [7, 4, 1]), model, "{count} bytes at {x}, {y}");
            ok(hipMemcpyFromArray(out, array, x, y, count, TO_HOST));
            assert_eq!(back, source);
            std::slice::from_raw_parts_mut(out.cast::<u8>(), count).fill(0);
            ok(hipMemcpyFromArray_spt(out, array, x, y, count, HIP_MEMCPY_DEFAULT));
            assert_eq!(back, source);
        }
    }
    let data = [1u8; 60];
    // SAFETY: the host memory is valid for the bytes.
    unsafe {
        let source = data.as_ptr().cast::<c_void>();
        let words = "57 bytes from byte 0 of row 0 on, of an array of 4 rows of 14 bytes";
        fails(hipMemcpyToArray(array, 0, 0, source, 57, TO_DEVICE), hipErrorInvalidValue, words);
        fails(hipMemcpyToArray(array, 16, 0, source, 2, TO_DEVICE), hipErrorInvalidValue, "byte 16 of row 0");
        fails(hipMemcpyToArray(array, 0, 4, source, 2, TO_DEVICE), hipErrorInvalidValue, "row 4");
        fails(hipMemcpyToArray(array, 1, 0, source, 2, TO_DEVICE), hipErrorInvalidValue, "whole elements");
        fails(hipMemcpyToArray(array, 0, 0, source, 15, TO_DEVICE), hipErrorInvalidValue, "whole elements");
        fails(hipMemcpyToArray(array, 6, 0, null(), 20, TO_DEVICE), hipErrorInvalidValue, "`src` is null");
        fails(
            hipMemcpyFromArray(null_mut(), array, 6, 0, 20, TO_HOST),
            hipErrorInvalidValue,
            "`dst` is null",
        );
    }
    // A copy that was refused for one of its pieces has not begun.
    assert_eq!(contents(array, 2, [7, 4, 1]), model);
    end(array);
}

/// Bytes of the first row by each of the functions for them.
#[test]
fn bytes_of_a_row_go_in_and_out() {
    let _alone = alone();
    let (one, two) = (make(FLOATS, [19, 0, 0], 0), make(FLOATS, [19, 0, 0], 0));
    let mut model = contents(one, 4, [19, 1, 1]).data;
    let mut stream = null_mut();
    let (first, second, third) = (bytes(40, 1), bytes(24, 2), bytes(32, 3));
    let back = [0u8; 76];
    let out = back.as_ptr().cast_mut().cast::<c_void>();
    // SAFETY: the host memory is valid for the bytes.
    unsafe {
        ok(hipStreamCreate(&mut stream));
        ok(hipMemcpyHtoA(one, 8, first.as_ptr().cast(), 40));
        model[8..48].copy_from_slice(&first);
        ok(hipMemcpyAtoH(out, one, 0, 76));
        assert_eq!(back[..], model);
        ok(hipMemcpyHtoAAsync(one, 52, second.as_ptr().cast(), 24, stream));
        model[52..76].copy_from_slice(&second);
        ok(hipMemcpyAtoHAsync(out, one, 12, 64, stream));
        ok(hipStreamSynchronize(stream));
        assert_eq!(back[..64], model[12..]);
        let memory = upload(&third);
        ok(hipMemcpyDtoA(one, 4, memory, 32));
        model[4..36].copy_from_slice(&third);
        assert_eq!(contents(one, 4, [19, 1, 1]).data, model);
        ok(hipMemcpyAtoA(two, 16, one, 0, 60));
        assert_eq!(contents(two, 4, [19, 1, 1]).data[16..], model[..60]);
        ok(hipMemcpyAtoD(memory, two, 20, 32));
        assert_eq!(download::<u8>(memory, 32), model[4..36]);
        free(memory);
        for code in [
            hipMemcpyHtoA(one, 48, first.as_ptr().cast(), 40),
            hipMemcpyAtoH(out, one, 48, 40),
            hipMemcpyHtoAAsync(one, 48, first.as_ptr().cast(), 40, stream),
            hipMemcpyAtoHAsync(out, one, 48, 40, stream),
            hipMemcpyDtoA(one, 48, memory, 40),
            hipMemcpyAtoD(memory, one, 48, 40),
            hipMemcpyAtoA(two, 0, one, 48, 40),
            hipMemcpyAtoA(one, 48, two, 0, 40),
        ] {
            fails(
                code,
                hipErrorInvalidValue,
                "10 x 1 x 1 elements at [12, 0, 0] are not all in the array, which has 19 x 1 x 1",
            );
        }
        ok(hipStreamDestroy(stream));
    }
    end(one);
    end(two);
}

#[test]
fn copies_as_the_driver_s_functions_describe_them() {
    let _alone = alone();
    const SIZE: [usize; 3] = [7, 5, 4];
    let (one, two) = (make(FLOATS, SIZE, 0), make(FLOATS, SIZE, 0));
    let source = Pitched::new(31, 6, 4, 3);
    // SAFETY: of these structures, zero is a value; the host memory is as large as the rows.
    unsafe {
        let mut copy: HIP_MEMCPY3D = std::mem::zeroed();
        (copy.WidthInBytes, copy.Height, copy.Depth) = (28, 5, 4);
        copy.srcMemoryType = HIP_MEMORY_TYPE_HOST;
        (copy.srcHost, copy.srcPitch, copy.srcHeight) = (source.data.as_ptr().cast(), 31, 6);
        (copy.dstMemoryType, copy.dstArray) = (ARRAY, one);
        ok(hipDrvMemcpy3D(&copy));
        let mut model = Pitched::new(28, 5, 4, 0);
        model.copy([0; 3], &source, [0; 3], [28, 5, 4]);
        assert_eq!(contents(one, 4, SIZE), model);

        let mut other = contents(two, 4, SIZE);
        let mut copy: HIP_MEMCPY3D = std::mem::zeroed();
        (copy.WidthInBytes, copy.Height, copy.Depth) = (16, 2, 2);
        (copy.srcMemoryType, copy.srcArray) = (ARRAY, one);
        (copy.srcXInBytes, copy.srcY, copy.srcZ) = (8, 3, 1);
        (copy.dstMemoryType, copy.dstArray) = (ARRAY, two);
        (copy.dstXInBytes, copy.dstY, copy.dstZ) = (12, 1, 2);
        ok(hipDrvMemcpy3DAsync(&copy, null_mut()));
        ok(hipDeviceSynchronize());
        other.copy([12, 1, 2], &model, [8, 3, 1], [16, 2, 2]);
        assert_eq!(contents(two, 4, SIZE), other);
        copy.dstXInBytes = 16;
        let words = "`dst`: 4 x 2 x 2 elements at [4, 1, 2] are not all in the array, which has 7 x 5 x 4";
        fails(hipDrvMemcpy3D(&copy), hipErrorInvalidValue, words);
        copy.dstXInBytes = 6;
        fails(
            hipDrvMemcpy3D(&copy),
            hipErrorInvalidValue,
            "elements of 4 bytes, of which 16 at 6 are copied",
        );
        copy.dstArray = null_mut();
        fails(hipDrvMemcpy3D(&copy), hipErrorInvalidValue, "`dstArray` is null");
        copy.srcArray = WILD;
        copy.dstMemoryType = HIP_MEMORY_TYPE_DEVICE;
        fails(hipDrvMemcpy3D(&copy), hipErrorInvalidHandle, "0xdead0000 is not an array");

        // Rows of the first slice.
        for asynchronous in [false, true] {
            let target = Pitched::new(40, 4, 1, 4);
            let mut part: hip_Memcpy2D = std::mem::zeroed();
            (part.WidthInBytes, part.Height) = (20, 3);
            (part.srcMemoryType, part.srcArray, part.srcXInBytes, part.srcY) = (ARRAY, one, 4, 2);
            (part.dstMemoryType, part.dstHost, part.dstPitch) =
                (HIP_MEMORY_TYPE_HOST, target.pointer().ptr, 40);
            (part.dstXInBytes, part.dstY) = (11, 1);
            let mut expected = target.clone();
            expected.copy([11, 1, 0], &model, [4, 2, 0], [20, 3, 1]);
            if asynchronous {
                ok(hipMemcpyParam2DAsync(&part, null_mut()));
                ok(hipDeviceSynchronize());
            } else {
                ok(hipMemcpyParam2D(&part));
            }
            assert_eq!(target, expected);
            let mut part: hip_Memcpy2D = std::mem::zeroed();
            (part.WidthInBytes, part.Height) = (24, 4);
            (part.srcMemoryType, part.srcHost, part.srcPitch) =
                (HIP_MEMORY_TYPE_HOST, target.pointer().ptr, 40);
            (part.dstMemoryType, part.dstArray, part.dstXInBytes, part.dstY) = (ARRAY, one, 4, 1);
            ok(hipDrvMemcpy2DUnaligned(&part));
            model.copy([4, 1, 0], &target, [0; 3], [24, 4, 1]);
            assert_eq!(contents(one, 4, SIZE), model);
        }
    }
    end(one);
    end(two);
}

#[test]
fn an_array_says_what_it_was_made_with() {
    let _alone = alone();
    // SAFETY: every pointer is valid, or null where that is what is meant.
    unsafe {
        let mut array = null_mut();
        let flat = HIP_ARRAY_DESCRIPTOR { Width: 30, Height: 7, Format: HIP_AD_FORMAT_HALF, NumChannels: 4 };
        ok(hipArrayCreate(&mut array, &flat));
        let (mut found, mut extent, mut flags) = (BYTES, hipExtent::default(), 9);
        ok(hipArrayGetInfo(&mut found, &mut extent, &mut flags, array));
        assert_eq!(found, desc(16, 4, HIP_CHANNEL_FORMAT_KIND_FLOAT));
        assert_eq!((extent, flags), (hipExtent { width: 30, height: 7, depth: 0 }, 0));
        let mut again = HIP_ARRAY_DESCRIPTOR::default();
        ok(hipArrayGetDescriptor(&mut again, array));
        assert_eq!(again, flat);
        ok(hipArrayGetInfo(null_mut(), null_mut(), null_mut(), array));
        ok(hipArrayDestroy(array));
        for words in ["not an array", "destroyed or never existed"] {
            fails(hipArrayGetDescriptor(&mut again, array), hipErrorInvalidHandle, words);
        }

        let deep = HIP_ARRAY3D_DESCRIPTOR {
            Width: 5,
            Height: 0,
            Depth: 6,
            Format: HIP_AD_FORMAT_SIGNED_INT32,
            NumChannels: 2,
            Flags: HIP_ARRAY_LAYERED,
        };
        ok(hipArray3DCreate(&mut array, &deep));
        let mut again = HIP_ARRAY3D_DESCRIPTOR::default();
        ok(hipArray3DGetDescriptor(&mut again, array));
        assert_eq!(again, deep);
        ok(hipGetChannelDesc(&mut found, array));
        assert_eq!(found, desc(32, 2, HIP_CHANNEL_FORMAT_KIND_SIGNED));
        end(array);
        ok(hipMallocArray(&mut array, &FLOATS, 12, 0, HIP_ARRAY_SURFACE_LOAD_STORE));
        ok(hipArrayGetInfo(&mut found, &mut extent, &mut flags, array));
        assert_eq!((found, extent, flags), (FLOATS, hipExtent { width: 12, height: 0, depth: 0 }, 2));
        end(array);
        assert_eq!(hipCreateChannelDesc(32, 0, 0, 0, 2), FLOATS);
    }
}

#[test]
fn arrays_that_cannot_be_are_refused() {
    let _alone = alone();
    let before = held_resources().unwrap();
    let mut array = null_mut();
    let mut refused = |desc: hipChannelFormatDesc, [width, height, depth]: [usize; 3], flags, code, words| {
        let extent = hipExtent { width, height, depth };
        // SAFETY: the pointers are valid.
        fails(unsafe { hipMalloc3DArray(&mut array, &desc, extent, flags) }, code, words);
        assert!(array.is_null());
    };
    let wrong = hipErrorInvalidValue;
    refused(FLOATS, [0, 4, 0], 0, wrong, "0 x 4 x 0 elements, flags 0x0; an array has a width");
    refused(FLOATS, [4, 0, 4], 0, wrong, "4 x 0 x 4 elements");
    refused(FLOATS, [4, 4, 0], HIP_ARRAY_LAYERED, wrong, "as many layers as its depth");
    refused(FLOATS, [4, 4, 4], HIP_ARRAY_TEXTURE_GATHER, wrong, "two dimensions");
    refused(FLOATS, [4, 4, 0], 0x40, wrong, "flags 0x40");
    refused(FLOATS, [4, 4, 6], HIP_ARRAY_CUBEMAP, hipErrorNotSupported, "cube maps");
    refused(FLOATS, [usize::MAX / 2, 4, 0], 0, wrong, "end of the address space");
    refused(FLOATS, [1 << 40, 4, 0], 0, hipErrorOutOfMemory, "device memory were asked for");
    refused(desc(32, 1, 3), [4, 0, 0], 0, wrong, "32, 0, 0 and 0 bits of kind 3");
    let three = hipChannelFormatDesc { z: 8, ..desc(8, 2, HIP_CHANNEL_FORMAT_KIND_UNSIGNED) };
    refused(three, [4, 0, 0], 0, wrong, "8, 8, 8 and 0 bits of kind 1; an element has 1, 2 or 4 channels");
    let mut array = null_mut();
    // SAFETY: the pointers are valid or null.
    unsafe {
        fails(hipMallocArray(&mut array, null(), 4, 4, 0), wrong, "`desc` is null");
        fails(hipMallocArray(null_mut(), &FLOATS, 4, 4, 0), wrong, "`array` is null");
        fails(hipArrayCreate(&mut array, null()), wrong, "`pAllocateArray` is null");
        fails(hipArray3DCreate(null_mut(), null()), wrong, "`array` is null");
        let flat = HIP_ARRAY_DESCRIPTOR { Width: 3, Height: 7, Format: 0x15, NumChannels: 1 };
        fails(hipArrayCreate(&mut array, &flat), wrong, "1 channels of format 0x15");
        let flat = HIP_ARRAY_DESCRIPTOR { Format: HIP_AD_FORMAT_FLOAT, NumChannels: 3, ..flat };
        fails(hipArrayCreate(&mut array, &flat), wrong, "3 channels of format 0x20");
    }
    assert!(array.is_null());
    assert_eq!(held_resources().unwrap(), before);
}

#[test]
fn copies_that_cannot_be_are_refused() {
    let _alone = alone();
    let array = make(FLOATS, [6, 4, 0], 0);
    let wide = make(desc(32, 2, HIP_CHANNEL_FORMAT_KIND_FLOAT), [6, 4, 0], 0);
    let host = bytes(1000, 0);
    let block = malloc(96);
    let data = host.as_ptr().cast::<c_void>();
    let wrong = hipErrorInvalidValue;
    // SAFETY: nothing is copied.
    unsafe {
        for (at, width, height, words) in [
            (
                [4, 0],
                24,
                1,
                "`dst`: 6 x 1 x 1 elements at [1, 0, 0] are not all in the array, which has 6 x 4 x 1",
            ),
            ([0, 2], 24, 3, "`dst`: 6 x 3 x 1 elements at [0, 2, 0]"),
            ([24, 0], 4, 1, "at [6, 0, 0]"),
            ([2, 0], 4, 1, "an array with elements of 4 bytes, of which 4 at 2 are copied"),
            ([0, 0], 7, 1, "whole elements"),
            ([usize::MAX - 3, 0], 8, 1, "are not all in the array"),
            ([0, usize::MAX], 8, 1, "are not all in the array"),
        ] {
            let code = hipMemcpy2DToArray(array, at[0], at[1], data, 24, width, height, TO_DEVICE);
            fails(code, wrong, words);
            let back = data.cast_mut();
            let code = hipMemcpy2DFromArray(back, 24, array, at[0], at[1], width, height, TO_HOST);
            fails(code, wrong, &words.replace("`dst`", "`src`"));
        }
        let code = hipMemcpy2DToArray(array, 0, 0, data, 8, 24, 2, TO_DEVICE);
        fails(code, hipErrorInvalidPitchValue, "less than a row of 24 bytes");
        fails(hipMemcpy2DToArray(array, 0, 0, null(), 24, 24, 2, TO_DEVICE), wrong, "`src` is null");
        for kind in [TO_HOST, HIP_MEMCPY_HOST_TO_HOST] {
            let words = "by which the destination is host memory; it is an array";
            fails(hipMemcpy2DToArray(array, 0, 0, data, 24, 24, 2, kind), wrong, words);
        }
        let words = "by which the source is host memory; it is an array";
        fails(hipMemcpy2DFromArray(data.cast_mut(), 24, array, 0, 0, 24, 2, TO_DEVICE), wrong, words);
        fails(hipMemcpy2DToArray(array, 0, 0, data, 24, 24, 2, 9), hipErrorInvalidMemcpyDirection, "kind 9");
        fails(hipMemcpy2DToArray(array, 0, 0, data, 24, 24, 2, ON_DEVICE), wrong, "not device memory");
        let code = hipMemcpy2DFromArray(block, 48, array, 0, 0, 24, 4, ON_DEVICE);
        fails(code, wrong, "168 bytes from");
        let code = hipMemcpy2DArrayToArray(array, 0, 0, wide, 0, 0, 24, 2, ON_DEVICE);
        fails(code, wrong, "elements of 8 bytes; those of `dst` have 4");
        for (handle, code, words) in [
            (null_mut(), wrong, "is null"),
            (WILD, hipErrorInvalidHandle, "0xdead0000 is not an array"),
            (block, hipErrorInvalidHandle, "is not an array"),
        ] {
            fails(hipMemcpy2DToArray(handle, 0, 0, data, 24, 24, 2, TO_DEVICE), code, words);
            fails(hipMemcpyAtoH(data.cast_mut(), handle, 0, 4), code, words);
            fails(hipMemcpyFromArray(data.cast_mut(), handle, 0, 0, 4, TO_HOST), code, words);
            fails(hipMemcpy2DArrayToArray(array, 0, 0, handle, 0, 0, 4, 1, ON_DEVICE), code, words);
            fails(hipArrayGetInfo(null_mut(), null_mut(), null_mut(), handle), code, words);
        }
        let source = Pitched::new(24, 4, 1, 0);
        let copy = hipMemcpy3DParms {
            srcPtr: source.pointer(),
            dstArray: array,
            ..whole_copy([6, 4, 1], TO_DEVICE)
        };
        ok(hipMemcpy3D(&copy));
        let both = hipMemcpy3DParms { srcArray: array, ..copy };
        fails(hipMemcpy3D(&both), wrong, "is an array or a pointer");
        let neither = hipMemcpy3DParms { srcPtr: NOTHING, ..copy };
        fails(hipMemcpy3D(&neither), wrong, "`srcPtr` is null");
        let wild = hipMemcpy3DParms { dstArray: WILD, ..copy };
        fails(hipMemcpy3D(&wild), hipErrorInvalidHandle, "0xdead0000 is not an array");
        let deep = hipMemcpy3DParms { dstPos: pos([0, 0, 1]), ..copy };
        fails(
            hipMemcpy3D(&deep),
            wrong,
            "6 x 4 x 1 elements at [0, 0, 1] are not all in the array, which has 6 x 4 x 1",
        );
        let far = hipMemcpy3DParms { dstPos: pos([usize::MAX, 0, 0]), ..copy };
        fails(hipMemcpy3D(&far), wrong, "are not all in the array");
        // An array's memory is not the program's to free, and its handle is no address.
        fails(hipFree(array), wrong, "is not the start of");
        fails(hipMemset(array, 0, 4), wrong, "not device memory");
        fails(hipStreamSynchronize(array), hipErrorInvalidHandle, "not a stream");
    }
    free(block);
    end(array);
    end(wide);
}

#[test]
fn arrays_take_device_memory_until_they_are_freed() {
    let _alone = alone();
    let before = held_resources().unwrap();
    let free_bytes = || {
        let (mut free, mut total) = (0, 0);
        // SAFETY: the results are valid for writing.
        ok(unsafe { hipMemGetInfo(&mut free, &mut total) });
        free
    };
    let all = free_bytes();
    // Rows of 1200 bytes.
    let array = make(FLOATS, [300, 7, 3], 0);
    assert!((300 * 4 * 7 * 3..300 * 4 * 7 * 3 * 2).contains(&(all - free_bytes())));
    let held = held_resources().unwrap();
    assert_eq!((held.allocations, held.handles), (before.allocations + 1, before.handles + 1));
    // SAFETY: takes handles.
    unsafe {
        ok(hipFreeArray(array));
        assert_eq!((free_bytes(), held_resources().unwrap()), (all, before));
        for function in [hipFreeArray, hipArrayDestroy] {
            let words = format!("{array:?} is not an array; it was destroyed");
            fails(function(array), hipErrorInvalidHandle, &words);
            fails(function(null_mut()), hipErrorInvalidValue, "`array` is null");
            fails(function(WILD), hipErrorInvalidHandle, "0xdead0000 is not an array");
        }
        // A reset of one device leaves the arrays of another.
        let stays = make(FLOATS, [5, 0, 0], 0);
        on(1);
        let goes = make(FLOATS, [5, 0, 0], 0);
        ok(hipDeviceReset());
        fails(hipFreeArray(goes), hipErrorInvalidHandle, "not an array");
        on(0);
        end(stays);
    }
    assert_eq!(held_resources().unwrap(), before);
}

#[test]
fn arrays_of_two_devices() {
    let _alone = alone();
    let one = make(FLOATS, [9, 3, 0], 0);
    on(2);
    let two = make(FLOATS, [9, 3, 0], 0);
    let source = bytes(108, 7);
    // SAFETY: the host memory is as large as the rows.
    unsafe {
        ok(hipMemcpy2DToArray(one, 0, 0, source.as_ptr().cast(), 36, 36, 3, TO_DEVICE));
        ok(hipMemcpy2DArrayToArray(two, 0, 0, one, 0, 0, 36, 3, ON_DEVICE));
    }
    assert_eq!(contents(two, 4, [9, 3, 1]).data, source);
    end(two);
    end(one);
    on(0);
}

#[test]
fn copies_in_graphs() {
    let _alone = alone();
    let before = held_resources().unwrap();
    let (one, two) = (make(FLOATS, [6, 4, 3], 0), make(FLOATS, [6, 4, 0], 0));
    let mut source = vec![0u8; 24 * 4];
    let target = vec![0u8; 24 * 4];
    let (input, output) = (source.as_mut_ptr().cast::<c_void>(), target.as_ptr().cast_mut().cast::<c_void>());
    // SAFETY: the host memory is as large as the rows, and outlives the graphs.
    unsafe {
        // Captured: in, from array to array, out.
        let (mut stream, mut graph, mut exec) = (null_mut(), null_mut(), null_mut());
        ok(hipStreamCreateWithFlags(&mut stream, HIP_STREAM_NON_BLOCKING));
        ok(hipStreamBeginCapture(stream, HIP_STREAM_CAPTURE_MODE_GLOBAL));
        ok(hipMemcpy2DToArrayAsync(two, 0, 0, input, 24, 24, 4, TO_DEVICE, stream));
        let across = hipMemcpy3DParms {
            srcArray: two,
            srcPos: pos([1, 0, 0]),
            dstArray: one,
            dstPos: pos([2, 1, 2]),
            ..whole_copy([4, 3, 1], ON_DEVICE)
        };
        ok(hipMemcpy3DAsync(&across, stream));
        ok(hipMemcpyAtoHAsync(output, two, 8, 16, stream));
        ok(hipStreamEndCapture(stream, &mut graph));
        let mut nodes = [null_mut(); 3];
        let mut count = 3;
        ok(hipGraphGetNodes(graph, nodes.as_mut_ptr(), &mut count));
        assert_eq!(count, 3);
        ok(hipGraphInstantiate(&mut exec, graph, null_mut(), null_mut(), 0));
        for seed in 0..2 {
            let data = bytes(96, seed * 31);
            std::slice::from_raw_parts_mut(input.cast::<u8>(), 96).copy_from_slice(&data);
            let all = contents(one, 4, [6, 4, 3]);
            ok(hipGraphLaunch(exec, stream));
            ok(hipStreamSynchronize(stream));
            assert_eq!(target[..16], data[8..24]);
            let mut expected = all;
            let packed = Pitched { data: data.clone(), pitch: 24, rows: 4 };
            expected.copy([8, 1, 2], &packed, [4, 0, 0], [16, 3, 1]);
            assert_eq!(contents(one, 4, [6, 4, 3]), expected);
        }
        // What the node says of its copy is what it was given, either way.
        let mut found = whole_copy([0; 3], 0);
        ok(hipGraphMemcpyNodeGetParams(nodes[1], &mut found));
        assert_eq!(found, across);
        let mut driver: HIP_MEMCPY3D = std::mem::zeroed();
        ok(hipDrvGraphMemcpyNodeGetParams(nodes[1], &mut driver));
        assert_eq!((driver.srcMemoryType, driver.srcArray, driver.srcXInBytes), (ARRAY, two, 4));
        assert_eq!((driver.dstMemoryType, driver.dstArray, driver.dstXInBytes), (ARRAY, one, 8));
        assert_eq!(
            (driver.dstY, driver.dstZ, driver.WidthInBytes, driver.Height, driver.Depth),
            (1, 2, 16, 3, 1)
        );
        ok(hipDrvGraphMemcpyNodeSetParams(nodes[1], &driver));
        ok(hipGraphMemcpyNodeGetParams(nodes[1], &mut found));
        assert_eq!(found, across);
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("arrays.dot");
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        ok(hipGraphDebugDotPrint(graph, name.as_ptr(), 1 << 3));
        let text = std::fs::read_to_string(&path).unwrap();
        let label = format!("src array {two:?}, at [4, 0, 0]\\ndst array {one:?}, at [8, 1, 2]");
        assert!(text.contains(&label), "`{label}` is not in\n{text}");
        ok(hipGraphMemcpyNodeGetParams(nodes[0], &mut found));
        assert_eq!((found.dstArray, found.srcArray, found.srcPtr.ptr), (two, null_mut(), input));
        assert_eq!((found.extent, found.kind), (hipExtent { width: 6, height: 4, depth: 1 }, TO_DEVICE));

        // A node of its own, changed in the graph that is launched.
        let (mut made, mut node, mut other) = (null_mut(), null_mut(), null_mut());
        ok(hipGraphCreate(&mut made, 0));
        let out = hipMemcpy3DParms {
            srcArray: one,
            srcPos: pos([0, 0, 2]),
            dstPtr: hipPitchedPtr { ptr: output, pitch: 24, xsize: 24, ysize: 4 },
            ..whole_copy([6, 4, 1], TO_HOST)
        };
        ok(hipGraphAddMemcpyNode(&mut node, made, null(), 0, &out));
        let beyond = hipMemcpy3DParms { srcPos: pos([0, 0, 3]), ..out };
        let words = "6 x 4 x 1 elements at [0, 0, 3] are not all in the array, which has 6 x 4 x 3";
        fails(hipGraphAddMemcpyNode(&mut node, made, null(), 0, &beyond), hipErrorInvalidValue, words);
        ok(hipGraphInstantiate(&mut other, made, null_mut(), null_mut(), 0));
        ok(hipGraphLaunch(other, stream));
        ok(hipStreamSynchronize(stream));
        assert_eq!(target, contents(one, 4, [6, 4, 3]).data[192..]);
        let changed = hipMemcpy3DParms { srcArray: two, srcPos: pos([0; 3]), ..out };
        ok(hipGraphExecMemcpyNodeSetParams(other, node, &mut { changed }));
        ok(hipGraphLaunch(other, stream));
        ok(hipStreamSynchronize(stream));
        assert_eq!(target, contents(two, 4, [6, 4, 1]).data);

        // Calls that would wait cannot be captured, nor can arrays be made or end in a capture.
        let calls: [(&dyn Fn() -> hipError_t, hipError_t, &str); 4] = [
            (&|| hipFreeArray(two), hipErrorStreamCaptureUnsupported, "freeing memory"),
            (
                &|| hipMallocArray(&mut null_mut(), &FLOATS, 4, 4, 0),
                hipErrorStreamCaptureUnsupported,
                "allocating",
            ),
            (
                &|| hipMemcpy2DToArray(two, 0, 0, input, 24, 24, 4, TO_DEVICE),
                hipErrorStreamCaptureImplicit,
                "that waits",
            ),
            (
                &|| hipMemcpyFromArray(output, two, 0, 0, 24, TO_HOST),
                hipErrorStreamCaptureImplicit,
                "that waits",
            ),
        ];
        for (call, code, words) in calls {
            ok(hipStreamBeginCapture(stream, HIP_STREAM_CAPTURE_MODE_GLOBAL));
            fails(call(), code, words);
            let mut spoilt = null_mut();
            let code = hipStreamEndCapture(stream, &mut spoilt);
            fails(code, hipErrorStreamCaptureInvalidated, words);
        }

        // The array has ended before the launch.
        end(two);
        ok(hipGraphLaunch(other, stream));
        fails(hipStreamSynchronize(stream), hipErrorIllegalAddress, "do not lie within one allocation");
        for exec in [exec, other] {
            ok(hipGraphExecDestroy(exec));
        }
        ok(hipGraphDestroy(graph));
        ok(hipGraphDestroy(made));
        ok(hipStreamDestroy(stream));
    }
    end(one);
    assert_eq!(held_resources().unwrap(), before);
}

#[test]
fn textures_surfaces_and_mipmaps_are_not_there() {
    unsafe extern "C" {
        fn hipMallocMipmappedArray(
            array: *mut *mut c_void,
            desc: *const hipChannelFormatDesc,
            extent: hipExtent,
            levels: u32,
            flags: u32,
        ) -> hipError_t;
        fn hipMemMapArrayAsync(list: *mut c_void, count: u32, stream: hipStream_t) -> hipError_t;
    }
    let _alone = alone();
    let mut pointer = null_mut();
    // SAFETY: nothing is read or written.
    unsafe {
        let extent = hipExtent { width: 4, height: 4, depth: 0 };
        let code = hipMallocMipmappedArray(&mut pointer, &FLOATS, extent, 2, 0);
        fails(code, hipErrorNotSupported, "hipMallocMipmappedArray");
        fails(hipMemMapArrayAsync(null_mut(), 0, null_mut()), hipErrorNotSupported, "hipMemMapArrayAsync");
        let code = hipCreateTextureObject(&mut pointer, null(), null(), null());
        fails(code, hipErrorNotSupported, "no textures and no surfaces");
        fails(
            hipCreateSurfaceObject(&mut pointer, null()),
            hipErrorNotSupported,
            "no textures and no surfaces",
        );
    }
}
