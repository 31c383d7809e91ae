//! This project's kernels for elements at an address, by the names of their operation and type: what products, epilogues and random
//! numbers are completed with.

use candle_amdgpu::gemm::GemmType;
use candle_amdgpu::{
    BINARY, CAST, DeviceBuffer, DeviceView, FILL, LaunchConfig, Module, REDUCE, Result, Stream, UNARY,
};
use std::ffi::c_void;
use std::ptr;

/// Elements that one workgroup adds up.
const ROW: usize = 1 << 14;

/// Bytes of an element.
pub(crate) fn bytes_of(dtype: GemmType) -> usize {
    match dtype {
        GemmType::F64 => 8,
        GemmType::F32 => 4,
        GemmType::F16 | GemmType::Bf16 => 2,
    }
}

/// The address of an argument's value.
fn arg<T>(value: &T) -> *const c_void {
    ptr::from_ref(value).cast()
}

/// # Safety
/// These are the kernel's arguments, and memory is as large as it needs.
unsafe fn launch(
    stream: &Stream,
    module: &Module,
    name: &str,
    rows: usize,
    args: &[*const c_void],
) -> Result<()> {
    let function = stream.device().get_or_load_func(name, module)?;
    let rows = u32::try_from(rows).unwrap_or(u32::MAX);
    let config = function.own_geometry_or(LaunchConfig::explicit([rows, 1, 1], [256, 1, 1], 0));
    // SAFETY: as promised by the caller.
    unsafe { function.launch(stream, config, args) }
}

/// Shape and strides, in the device's memory.
fn layout(stream: &Stream, numbers: &[usize]) -> Result<DeviceBuffer<usize>> {
    let mut there = DeviceBuffer::alloc(stream, numbers.len())?;
    there.upload(numbers)?;
    Ok(there)
}

/// `to[i] = f(from[i · step])`, for one of the operations without parameters, such as `abs`.
///
/// # Safety
/// There are as many elements, and they overlap only if both are the same.
pub(crate) unsafe fn unary(
    stream: &Stream,
    operation: &str,
    dtype: GemmType,
    count: usize,
    (from, step): (*const c_void, usize),
    to: *mut c_void,
) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    let info = if step == 1 { None } else { Some(layout(stream, &[count, step])?) };
    let info_there = info.as_ref().map_or(ptr::null(), DeviceBuffer::as_ptr);
    let args = [arg(&count), arg(&1_usize), arg(&info_there), arg(&from), arg(&to)];
    // SAFETY: as promised by the caller.
    unsafe { launch(stream, &UNARY, &format!("u{operation}_{dtype}"), 1, &args) }
}

/// `x[z][j][i] += y[z][i]` for `batch` times `columns` times `rows` contiguous elements; `y` goes on by `step` with z.
///
/// # Safety
/// There are as many elements.
pub(crate) unsafe fn add_to_columns(
    stream: &Stream,
    dtype: GemmType,
    [batch, columns, rows]: [usize; 3],
    x: *mut c_void,
    (y, step): (*const c_void, usize),
) -> Result<()> {
    let count = batch * columns * rows;
    if count == 0 {
        return Ok(());
    }
    // It lives until the kernel is in the queue behind it.
    let info = layout(stream, &[batch, columns, rows, columns * rows, rows, 1, step, 0, 1])?;
    let info_there = info.as_ptr();
    let args = [arg(&count), arg(&3_usize), arg(&info_there), arg(&x), arg(&y), arg(&x)];
    // SAFETY: as promised by the caller; an element is read before it is written, by the same lane.
    unsafe { launch(stream, &BINARY, &format!("badd_{dtype}"), 1, &args) }
}

/// Rows of `width` elements, `rows` of them, whose distances differ.
///
/// # Safety
/// There are as many elements, and the sides do not overlap.
pub(crate) unsafe fn copy_rows(
    stream: &Stream,
    dtype: GemmType,
    [rows, width]: [usize; 2],
    (from, from_step): (*const c_void, usize),
    (to, to_step): (*mut c_void, usize),
) -> Result<()> {
    // The kernel's numbers have 32 bits.
    let rest = |done: usize| (rows - done).min((u32::MAX as usize / from_step.max(to_step).max(1)).max(1));
    let mut done = 0;
    while done < rows && width > 0 {
        let now = rest(done);
        let skip = |step: usize| done * step * bytes_of(dtype);
        let (source, target) = (from.wrapping_byte_add(skip(from_step)), to.wrapping_byte_add(skip(to_step)));
        let numbers = [now, width, from_step, to_step].map(|number| number as u32);
        let mut args = vec![arg(&source), arg(&target)];
        args.extend(numbers.iter().map(arg));
        // SAFETY: as promised by the caller.
        unsafe { launch(stream, &FILL, &format!("copy2d_{dtype}"), 1, &args)? };
        done += now;
    }
    Ok(())
}

/// `to[i] = from[i]` in another type.
///
/// # Safety
/// There are as many elements, and the sides do not overlap.
pub(crate) unsafe fn cast(
    stream: &Stream,
    (from_type, to_type): (GemmType, GemmType),
    count: usize,
    from: *const c_void,
    to: *mut c_void,
) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    let info = ptr::null::<usize>();
    let args = [arg(&count), arg(&1_usize), arg(&info), arg(&from), arg(&to)];
    // SAFETY: as promised by the caller.
    unsafe { launch(stream, &CAST, &format!("cast_{from_type}_{to_type}"), 1, &args) }
}

/// One of `sum`, `max` and `argmax` of `count` contiguous elements, at least 1, in parts that fit a workgroup. The number of
/// `argmax` is a `u32`.
///
/// # Safety
/// There are as many elements, and room for the result.
pub(crate) unsafe fn reduce(
    stream: &Stream,
    operation: &str,
    dtype: GemmType,
    count: usize,
    from: *const c_void,
    to: *mut c_void,
) -> Result<()> {
    let name = format!("fast_{operation}_{dtype}");
    // A position in a part would not be one in the whole.
    let row = if operation == "argmax" { count } else { ROW };
    let parts = count.div_ceil(row);
    let between;
    let target = if parts == 1 {
        to
    } else {
        between = DeviceBuffer::<u8>::alloc(stream, parts * bytes_of(dtype))?;
        between.as_ptr().cast_mut().cast()
    };
    let info = layout(stream, &[count, 1])?;
    let info_there = info.as_ptr();
    let args = [arg(&count), arg(&row), arg(&1_usize), arg(&info_there), arg(&from), arg(&target)];
    // SAFETY: as promised by the caller.
    unsafe { launch(stream, &REDUCE, &name, parts, &args)? };
    if parts == 1 {
        return Ok(());
    }
    // SAFETY: the parts are as many elements.
    unsafe { reduce(stream, operation, dtype, parts, target, to) }
}

/// The number at a device's address, once the queue is done.
///
/// # Safety
/// There is one.
pub(crate) unsafe fn read<T: candle_amdgpu::Element>(stream: &Stream, at: *const c_void) -> Result<T> {
    // SAFETY: as promised by the caller.
    let view = unsafe { DeviceView::<T>::from_raw_parts(at.cast(), 1, stream) };
    Ok(view.to_vec()?.remove(0))
}
