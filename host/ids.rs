//! Ids in device memory, for kernels that follow them and are not told how many rows there are.

use crate::{BINARY, CAST, DeviceBuffer, DeviceView, Error, INDEXING, LaunchConfig, Module, Result, Stream};
use std::ffi::c_void;
use std::ptr;

/// Waits until `count` ids are there, reads them, and refuses the first that is not below `size`, before a kernel follows it.
///
/// # Safety
/// `ids` is device memory with so many.
///
/// # Errors
/// [`Error::IndexOutOfRange`] for `kernel`, or what the runtime reports, including faults of kernels that have run before.
pub unsafe fn check_ids(
    stream: &Stream,
    kernel: &str,
    ids: *const u32,
    count: usize,
    size: usize,
) -> Result<()> {
    let mut here = vec![0_u32; count];
    // SAFETY: as promised by the caller; the vector is as long.
    unsafe { DeviceView::from_raw_parts(ids, count, stream).copy_to_ptr(here.as_mut_ptr())? };
    match here.iter().position(|&id| id as usize >= size) {
        None => Ok(()),
        Some(position) => Err(Error::IndexOutOfRange {
            kernel: kernel.to_owned(),
            position: position as u64,
            index: here[position].into(),
            size: size as u64,
        }),
    }
}

/// The same without waiting: a copy of the ids in which those that are not below `size` have become `size - 1`. The next
/// synchronisation reports them; the kernel that it names is the one that found them, `is_i64_u8`.
///
/// # Safety
/// `ids` is device memory with `count` ids, `rows` has at least `size` bytes; both live until the stream has come to them.
///
/// # Errors
/// If there are ids and no rows, or what the runtime reports.
pub unsafe fn ids_below(
    stream: &Stream,
    ids: *const u32,
    count: usize,
    rows: *const c_void,
    size: usize,
) -> Result<DeviceBuffer<u32>> {
    let mut below = DeviceBuffer::<u32>::alloc(stream, count)?;
    if count == 0 {
        return Ok(below);
    }
    let Some(last) = size.checked_sub(1) else {
        return Err(Error::Requirement {
            kernel: "ids_below".to_owned(),
            requirement: "size >= 1".to_owned(),
            values: format!("size = 0, count = {count}"),
        });
    };
    // As i64, since the largest u32 stands for no row and would be no error.
    let mut wide = DeviceBuffer::<i64>::alloc(stream, count)?;
    let mut found = DeviceBuffer::<u8>::alloc(stream, count)?;
    let mut limit = DeviceBuffer::<u32>::alloc(stream, 1)?;
    limit.upload(&[u32::try_from(last).unwrap_or(u32::MAX)])?;
    // Sizes, then strides of both sides: one limit for all ids.
    let mut layout = DeviceBuffer::<usize>::alloc(stream, 3)?;
    layout.upload(&[count, 1, 0])?;
    let (to_wide, to_found, to_below) = (wide.as_mut_ptr(), found.as_mut_ptr(), below.as_mut_ptr());
    let (limit, layout, flat, one) = (limit.as_ptr(), layout.as_ptr(), ptr::null::<usize>(), 1_usize);
    // SAFETY: these are the kernels' arguments, in order; memory is as promised by the caller, and as allocated above.
    unsafe {
        let args = [arg(&count), arg(&one), arg(&flat), arg(&ids), arg(&to_wide)];
        launch(stream, &CAST, "cast_u32_i64", count, &args)?;
        let args = [
            arg(&count),
            arg(&one),
            arg(&flat),
            arg(&to_wide),
            arg(&rows),
            arg(&to_found),
            arg(&one),
            arg(&size),
            arg(&count),
            arg(&one),
        ];
        launch(stream, &INDEXING, "is_i64_u8", count, &args)?;
        let args = [arg(&count), arg(&one), arg(&layout), arg(&ids), arg(&limit), arg(&to_below)];
        launch(stream, &BINARY, "bminimum_u32", count, &args)?;
    }
    Ok(below)
}

/// The address of an argument's value.
fn arg<T>(value: &T) -> *const c_void {
    ptr::from_ref(value).cast()
}

/// # Safety
/// As for [`Function::launch`](crate::Function::launch).
unsafe fn launch(
    stream: &Stream,
    module: &Module,
    name: &str,
    elements: usize,
    args: &[*const c_void],
) -> Result<()> {
    let function = stream.device().get_or_load_func(name, module)?;
    let grid = u32::try_from(elements.div_ceil(256)).unwrap_or(u32::MAX);
    let config = function.own_geometry_or(LaunchConfig::explicit([grid, 1, 1], [256, 1, 1], 0));
    // SAFETY: as promised by the caller.
    unsafe { function.launch(stream, config, args) }
}
