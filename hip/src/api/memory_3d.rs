//! Memory, copies and fills in three dimensions.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use super::memory::{allocate_slices, fill_rows};
use super::per_thread::own;
use super::{give, not_null};
use crate::abi::{driver_copy, is_hip_5, memory_type};
use crate::emulated::Runtime;
use crate::emulated::array::Array;
use crate::emulated::memory::{CopyParams, FillParams, Region};
use crate::error::Error;
use crate::types::*;

/// The handle of the thread's own default stream.
const OWN: hipStream_t = 2 as hipStream_t;
const DEFAULT: hipStream_t = std::ptr::null_mut();

/// The array that a program names; `None` for none. Without the emulated runtime there are none.
fn array_at(
    runtime: Option<&Runtime>,
    name: &'static str,
    handle: hipArray_t,
) -> Result<Option<Arc<Array>>, Error> {
    match runtime {
        _ if handle.is_null() => Ok(None),
        Some(runtime) => runtime.array(name, handle).map(Some),
        None => Err(Error::Unsupported("arrays on NVIDIA GPUs".to_owned())),
    }
}

/// The two names of a side of a copy: of its array, and of its pointer.
type Names = [&'static str; 2];

fn region(
    [array_name, name]: Names,
    array: Option<(&Array, hipArray_t)>,
    pointer: hipPitchedPtr,
    at: hipPos,
) -> Result<Region, Error> {
    let hipPitchedPtr { ptr, pitch, xsize, ysize } = pointer;
    match array {
        None => {
            not_null(name, ptr)?;
            let at = [at.x, at.y, at.z];
            Ok(Region { address: ptr as u64, pitch, xsize, ysize, at, array: None })
        }
        Some((array, handle)) if ptr.is_null() => {
            Ok(array.region(handle, [at.x.saturating_mul(array.format.bytes()), at.y, at.z]))
        }
        Some((_, handle)) => Err(Error::Argument {
            name: array_name,
            value: format!("{handle:?}, beside a pointer, {ptr:?}"),
            expected: "a side of a copy is an array or a pointer",
        }),
    }
}

/// A copy as the runtime has it; the runtime is that of the emulated devices.
///
/// # Safety
/// `params` is null or valid for reading.
pub(crate) unsafe fn copy_params(
    runtime: Option<&Runtime>,
    params: *const hipMemcpy3DParms,
) -> Result<CopyParams, Error> {
    not_null("pNodeParams", params)?;
    // SAFETY: the caller's contract.
    let params = unsafe { *params };
    let dst = array_at(runtime, "dstArray", params.dstArray)?;
    let src = array_at(runtime, "srcArray", params.srcArray)?;
    // The width is in elements of the array that takes part; if two do, their elements have one size.
    let unit = src.as_ref().or(dst.as_ref()).map_or(1, |array| array.format.bytes());
    let dst = dst.as_deref().map(|array| (array, params.dstArray));
    let src = src.as_deref().map(|array| (array, params.srcArray));
    Ok(CopyParams {
        dst: region(["dstArray", "dstPtr"], dst, params.dstPtr, params.dstPos)?,
        src: region(["srcArray", "srcPtr"], src, params.srcPtr, params.srcPos)?,
        extent: [params.extent.width.saturating_mul(unit), params.extent.height, params.extent.depth],
        kind: params.kind,
    })
}

/// The other way round.
pub(super) fn copy_to_params(params: &CopyParams) -> hipMemcpy3DParms {
    let handle = |region: &Region| region.array.map_or(0, |array| array.handle) as hipArray_t;
    let unit = |region: &Region| region.array.map_or(1, |array| array.element);
    let pointer = |region: &Region| match region.array {
        Some(_) => hipPitchedPtr { ptr: std::ptr::null_mut(), pitch: 0, xsize: 0, ysize: 0 },
        None => hipPitchedPtr {
            ptr: region.address as *mut c_void,
            pitch: region.pitch,
            xsize: region.xsize,
            ysize: region.ysize,
        },
    };
    let at = |region: &Region| hipPos { x: region.at[0] / unit(region), y: region.at[1], z: region.at[2] };
    let [width, height, depth] = params.extent;
    hipMemcpy3DParms {
        srcArray: handle(&params.src),
        srcPos: at(&params.src),
        srcPtr: pointer(&params.src),
        dstArray: handle(&params.dst),
        dstPos: at(&params.dst),
        dstPtr: pointer(&params.dst),
        extent: hipExtent { width: width / unit(&params.src).max(unit(&params.dst)), height, depth },
        kind: params.kind,
    }
}

/// Host memory, device memory, or whichever an address is.
const UNIFIED: hipMemoryType = 11;
const ARRAY: hipMemoryType = 10;

/// One side of a copy of the driver's functions.
struct DriverSide {
    kind_name: &'static str,
    array_name: &'static str,
    kind: hipMemoryType,
    host: *const c_void,
    device: hipDeviceptr_t,
    array: hipArray_t,
    pitch: usize,
    height: usize,
    /// Bytes, rows, slices, as is the width.
    at: [usize; 3],
    width: usize,
}

impl DriverSide {
    /// Where it is, and whether it is said to be on the device.
    fn region(&self, runtime: Option<&Runtime>) -> Result<(Region, Option<bool>), Error> {
        let (address, is_device) = match self.kind {
            HIP_MEMORY_TYPE_HOST => (self.host, Some(false)),
            HIP_MEMORY_TYPE_DEVICE => (self.device.cast_const(), Some(true)),
            HIP_MEMORY_TYPE_MANAGED | UNIFIED => (self.device.cast_const(), None),
            ARRAY => {
                let found = array_at(runtime, self.array_name, self.array)?;
                let array = found.ok_or(Error::Null(self.array_name))?;
                return Ok((array.region(self.array, self.at), Some(true)));
            }
            other => {
                let value = other.to_string();
                let expected = "it must be 1 (host), 2 (device), 3 (managed), 10 (array) or 11 (unified)";
                return Err(Error::Argument { name: self.kind_name, value, expected });
            }
        };
        // No pitch is one without gaps.
        let pitch = if self.pitch == 0 { self.width.saturating_add(self.at[0]) } else { self.pitch };
        let address = address as u64;
        Ok((
            Region { address, pitch, xsize: self.width, ysize: self.height, at: self.at, array: None },
            is_device,
        ))
    }
}

fn driver_kind(dst: Option<bool>, src: Option<bool>) -> hipMemcpyKind {
    match (dst, src) {
        (Some(false), Some(false)) => HIP_MEMCPY_HOST_TO_HOST,
        (Some(true), Some(false)) => HIP_MEMCPY_HOST_TO_DEVICE,
        (Some(false), Some(true)) => HIP_MEMCPY_DEVICE_TO_HOST,
        (Some(true), Some(true)) => HIP_MEMCPY_DEVICE_TO_DEVICE,
        _ => HIP_MEMCPY_DEFAULT,
    }
}

/// A copy as the runtime has it; the runtime is that of the emulated devices.
///
/// # Safety
/// `params` is null or valid for reading.
pub(crate) unsafe fn copy_from_driver(
    runtime: Option<&Runtime>,
    params: *const HIP_MEMCPY3D,
) -> Result<CopyParams, Error> {
    not_null("copyParams", params)?;
    // SAFETY: the caller's contract.
    copy_of(runtime, unsafe { driver_copy(params, is_hip_5()) })
}

fn copy_of(runtime: Option<&Runtime>, p: HIP_MEMCPY3D) -> Result<CopyParams, Error> {
    let dst = DriverSide {
        kind_name: "dstMemoryType",
        array_name: "dstArray",
        kind: p.dstMemoryType,
        host: p.dstHost,
        device: p.dstDevice,
        array: p.dstArray,
        pitch: p.dstPitch,
        height: p.dstHeight,
        at: [p.dstXInBytes, p.dstY, p.dstZ],
        width: p.WidthInBytes,
    };
    let src = DriverSide {
        kind_name: "srcMemoryType",
        array_name: "srcArray",
        kind: p.srcMemoryType,
        host: p.srcHost,
        device: p.srcDevice,
        array: p.srcArray,
        pitch: p.srcPitch,
        height: p.srcHeight,
        at: [p.srcXInBytes, p.srcY, p.srcZ],
        width: p.WidthInBytes,
    };
    let ((dst, to), (src, from)) = (dst.region(runtime)?, src.region(runtime)?);
    Ok(CopyParams { dst, src, extent: [p.WidthInBytes, p.Height, p.Depth], kind: driver_kind(to, from) })
}

/// The other way round.
pub(super) fn copy_to_driver(params: &CopyParams) -> HIP_MEMCPY3D {
    let (dst, src) = (&params.dst, &params.src);
    let (to, from) = match params.kind {
        HIP_MEMCPY_HOST_TO_HOST => (HIP_MEMORY_TYPE_HOST, HIP_MEMORY_TYPE_HOST),
        HIP_MEMCPY_HOST_TO_DEVICE => (HIP_MEMORY_TYPE_DEVICE, HIP_MEMORY_TYPE_HOST),
        HIP_MEMCPY_DEVICE_TO_HOST => (HIP_MEMORY_TYPE_HOST, HIP_MEMORY_TYPE_DEVICE),
        HIP_MEMCPY_DEFAULT => (UNIFIED, UNIFIED),
        _ => (HIP_MEMORY_TYPE_DEVICE, HIP_MEMORY_TYPE_DEVICE),
    };
    let kind_of = |kind, region: &Region| if region.array.is_some() { ARRAY } else { kind };
    let (to, from) = (kind_of(to, dst), kind_of(from, src));
    let here =
        |on: bool, region: &Region| if on { region.address as *mut c_void } else { std::ptr::null_mut() };
    let is_device = |kind| !matches!(kind, HIP_MEMORY_TYPE_HOST | ARRAY);
    let array = |region: &Region| region.array.map_or(0, |array| array.handle) as hipArray_t;
    let rows = |region: &Region| if region.array.is_some() { (0, 0) } else { (region.pitch, region.ysize) };
    let ((src_pitch, src_height), (dst_pitch, dst_height)) = (rows(src), rows(dst));
    let [width, height, depth] = params.extent;
    HIP_MEMCPY3D {
        srcXInBytes: src.at[0],
        srcY: src.at[1],
        srcZ: src.at[2],
        srcLOD: 0,
        srcMemoryType: from,
        srcHost: here(from == HIP_MEMORY_TYPE_HOST, src),
        srcDevice: here(is_device(from), src),
        srcArray: array(src),
        srcPitch: src_pitch,
        srcHeight: src_height,
        dstXInBytes: dst.at[0],
        dstY: dst.at[1],
        dstZ: dst.at[2],
        dstLOD: 0,
        dstMemoryType: to,
        dstHost: here(to == HIP_MEMORY_TYPE_HOST, dst),
        dstDevice: here(is_device(to), dst),
        dstArray: array(dst),
        dstPitch: dst_pitch,
        dstHeight: dst_height,
        WidthInBytes: width,
        Height: height,
        Depth: depth,
    }
}

/// # Safety
/// `params` is null or valid for reading.
pub(crate) unsafe fn copy_from_2d(
    runtime: Option<&Runtime>,
    params: *const hip_Memcpy2D,
) -> Result<CopyParams, Error> {
    not_null("pCopy", params)?;
    // SAFETY: the caller's contract.
    let p = unsafe { *params };
    let params = HIP_MEMCPY3D {
        srcXInBytes: p.srcXInBytes,
        srcY: p.srcY,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: memory_type(p.srcMemoryType, is_hip_5()),
        srcHost: p.srcHost,
        srcDevice: p.srcDevice,
        srcArray: p.srcArray,
        srcPitch: p.srcPitch,
        srcHeight: 0,
        dstXInBytes: p.dstXInBytes,
        dstY: p.dstY,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: memory_type(p.dstMemoryType, is_hip_5()),
        dstHost: p.dstHost,
        dstDevice: p.dstDevice,
        dstArray: p.dstArray,
        dstPitch: p.dstPitch,
        dstHeight: 0,
        WidthInBytes: p.WidthInBytes,
        Height: p.Height,
        Depth: 1,
    };
    copy_of(runtime, params)
}

/// # Safety
/// Host memory that is named is valid for the copy.
unsafe fn copy(runtime: &Runtime, params: CopyParams, stream: hipStream_t) -> Result<(), Error> {
    runtime.refuse_synchronous()?;
    let stream = runtime.stream(stream)?;
    // SAFETY: the caller's contract.
    unsafe { runtime.copy_regions(params, &stream)? };
    runtime.wait(&stream)
}

fn fill(
    runtime: &Runtime,
    pointer: hipPitchedPtr,
    value: c_int,
    extent: hipExtent,
    stream: hipStream_t,
) -> Result<(), Error> {
    let hipPitchedPtr { ptr, pitch, ysize, .. } = pointer;
    let extent = [extent.width, extent.height, extent.depth];
    let value = u32::from(value as u8);
    let params = FillParams { dst: ptr as u64, element: 1, value, extent, pitch, ysize };
    runtime.fill_region(params, &runtime.stream(stream)?)
}

fn fill_and_wait(
    runtime: &Runtime,
    pointer: hipPitchedPtr,
    value: c_int,
    extent: hipExtent,
    stream: hipStream_t,
) -> Result<(), Error> {
    runtime.refuse_synchronous()?;
    fill(runtime, pointer, value, extent, stream)
}

hip_functions! {
    /// Allocates slices of rows of device memory, each row aligned.
    fn hipMalloc3D(pitchedDevPtr: *mut hipPitchedPtr, extent: hipExtent) => |runtime| {
        not_null("pitchedDevPtr", pitchedDevPtr)?;
        let hipExtent { width, height, depth } = extent;
        let (address, pitch) = allocate_slices(runtime, width, height, depth)?;
        give("pitchedDevPtr", pitchedDevPtr, hipPitchedPtr { ptr: address, pitch, xsize: width, ysize: height })
    }

    /// Copies in three dimensions, and waits.
    fn hipMemcpy3D(p: *const hipMemcpy3DParms) => |runtime| { copy(runtime, copy_params(Some(runtime), p)?, DEFAULT) }

    /// `hipMemcpy3D` with the thread's own default stream.
    fn hipMemcpy3D_spt(p: *const hipMemcpy3DParms) => |runtime| { copy(runtime, copy_params(Some(runtime), p)?, OWN) }

    /// Copies in three dimensions in a stream.
    fn hipMemcpy3DAsync(p: *const hipMemcpy3DParms, stream: hipStream_t) => |runtime| {
        runtime.copy_regions(copy_params(Some(runtime), p)?, &runtime.stream(stream)?)
    }

    /// `hipMemcpy3DAsync` with the thread's own default stream.
    fn hipMemcpy3DAsync_spt(p: *const hipMemcpy3DParms, stream: hipStream_t) => |runtime| {
        runtime.copy_regions(copy_params(Some(runtime), p)?, &runtime.stream(own(stream))?)
    }

    /// Copies in three dimensions, and waits; the parameters say of each side whether it is host memory.
    fn hipDrvMemcpy3D(pCopy: *const HIP_MEMCPY3D) => |runtime| { copy(runtime, copy_from_driver(Some(runtime), pCopy)?, DEFAULT) }

    /// As [`hipDrvMemcpy3D`], in a stream.
    fn hipDrvMemcpy3DAsync(pCopy: *const HIP_MEMCPY3D, stream: hipStream_t) => |runtime| {
        runtime.copy_regions(copy_from_driver(Some(runtime), pCopy)?, &runtime.stream(stream)?)
    }

    /// Copies rows, and waits; the parameters say of each side whether it is host memory.
    fn hipMemcpyParam2D(pCopy: *const hip_Memcpy2D) => |runtime| { copy(runtime, copy_from_2d(Some(runtime), pCopy)?, DEFAULT) }

    /// As [`hipMemcpyParam2D`], in a stream.
    fn hipMemcpyParam2DAsync(pCopy: *const hip_Memcpy2D, stream: hipStream_t) => |runtime| {
        runtime.copy_regions(copy_from_2d(Some(runtime), pCopy)?, &runtime.stream(stream)?)
    }

    /// As [`hipMemcpyParam2D`]: no row here has to be aligned.
    fn hipDrvMemcpy2DUnaligned(pCopy: *const hip_Memcpy2D) => |runtime| { copy(runtime, copy_from_2d(Some(runtime), pCopy)?, DEFAULT) }

    /// Sets the bytes of rows of slices.
    fn hipMemset3D(pitchedDevPtr: hipPitchedPtr, value: c_int, extent: hipExtent) => |runtime| {
        fill_and_wait(runtime, pitchedDevPtr, value, extent, DEFAULT)
    }

    /// `hipMemset3D` with the thread's own default stream.
    fn hipMemset3D_spt(pitchedDevPtr: hipPitchedPtr, value: c_int, extent: hipExtent) => |runtime| {
        fill_and_wait(runtime, pitchedDevPtr, value, extent, OWN)
    }

    /// As [`hipMemset3D`], in a stream.
    fn hipMemset3DAsync(pitchedDevPtr: hipPitchedPtr, value: c_int, extent: hipExtent, stream: hipStream_t) => |runtime| {
        fill(runtime, pitchedDevPtr, value, extent, stream)
    }

    /// `hipMemset3DAsync` with the thread's own default stream.
    fn hipMemset3DAsync_spt(pitchedDevPtr: hipPitchedPtr, value: c_int, extent: hipExtent, stream: hipStream_t) => |runtime| {
        fill(runtime, pitchedDevPtr, value, extent, own(stream))
    }

    /// Sets the bytes of rows.
    fn hipMemsetD2D8(dst: hipDeviceptr_t, dstPitch: usize, value: u8, width: usize, height: usize) => |runtime| {
        runtime.refuse_synchronous()?;
        fill_rows(runtime, dst, dstPitch, &[value], [width, height], DEFAULT)
    }

    /// As [`hipMemsetD2D8`], in a stream.
    fn hipMemsetD2D8Async(dst: hipDeviceptr_t, dstPitch: usize, value: u8, width: usize, height: usize, stream: hipStream_t) => |runtime| {
        fill_rows(runtime, dst, dstPitch, &[value], [width, height], stream)
    }

    /// Sets the 16-bit elements of rows.
    fn hipMemsetD2D16(dst: hipDeviceptr_t, dstPitch: usize, value: u16, width: usize, height: usize) => |runtime| {
        runtime.refuse_synchronous()?;
        fill_rows(runtime, dst, dstPitch, &value.to_ne_bytes(), [width, height], DEFAULT)
    }

    /// As [`hipMemsetD2D16`], in a stream.
    fn hipMemsetD2D16Async(dst: hipDeviceptr_t, dstPitch: usize, value: u16, width: usize, height: usize, stream: hipStream_t) => |runtime| {
        fill_rows(runtime, dst, dstPitch, &value.to_ne_bytes(), [width, height], stream)
    }

    /// Sets the 32-bit elements of rows.
    fn hipMemsetD2D32(dst: hipDeviceptr_t, dstPitch: usize, value: c_uint, width: usize, height: usize) => |runtime| {
        runtime.refuse_synchronous()?;
        fill_rows(runtime, dst, dstPitch, &value.to_ne_bytes(), [width, height], DEFAULT)
    }

    /// As [`hipMemsetD2D32`], in a stream.
    fn hipMemsetD2D32Async(dst: hipDeviceptr_t, dstPitch: usize, value: c_uint, width: usize, height: usize, stream: hipStream_t) => |runtime| {
        fill_rows(runtime, dst, dstPitch, &value.to_ne_bytes(), [width, height], stream)
    }
}
