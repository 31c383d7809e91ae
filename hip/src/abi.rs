//! Where HIP 5 and HIP 6 differ under one name: a program that was built against HIP 5 asks the loader for `libamdhip64.so.5`.

use std::ffi::{CStr, c_uint, c_void};
use std::sync::OnceLock;

use crate::types::*;

/// Whether the program was built against HIP 5: the loader has this library under its name for that.
#[cfg(unix)]
pub(crate) fn is_hip_5() -> bool {
    static IS: OnceLock<bool> = OnceLock::new();
    *IS.get_or_init(|| {
        // SAFETY: of a structure of pointers, zero is a value.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: the address is that of a function, and the structure is valid.
        let found = unsafe { libc::dladdr(is_hip_5 as *const c_void, &mut info) };
        if found == 0 || info.dli_fname.is_null() {
            return false;
        }
        // SAFETY: the loader's name of a file ends in a zero, and stays as long as the file is loaded.
        let name = unsafe { CStr::from_ptr(info.dli_fname) };
        name.to_bytes().ends_with(b"libamdhip64.so.5")
    })
}

/// HIP 5 has no library for other systems here.
#[cfg(not(unix))]
pub(crate) fn is_hip_5() -> bool {
    false
}

/// Host, device, array, unified, managed: HIP 6's numbers of what HIP 5 counts from 0.
const TYPES: [hipMemoryType; 5] = [1, 2, 10, 11, 3];

/// HIP 5's number of a type of memory; it has none for memory that is not HIP's.
pub(crate) fn old_memory_type(kind: hipMemoryType) -> Option<hipMemoryType> {
    TYPES.iter().position(|now| *now == kind).map(|at| at as hipMemoryType)
}

/// HIP 6's number of a type of memory that a program has given.
pub(crate) fn memory_type(given: hipMemoryType, is_hip_5: bool) -> hipMemoryType {
    match TYPES.get(given as usize) {
        Some(now) if is_hip_5 => *now,
        _ => given,
    }
}

/// `HIP_MEMCPY3D` as HIP 5 has it.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_snake_case)]
struct OldCopy {
    srcXInBytes: c_uint,
    srcY: c_uint,
    srcZ: c_uint,
    srcLOD: c_uint,
    srcMemoryType: hipMemoryType,
    srcHost: *const c_void,
    srcDevice: hipDeviceptr_t,
    srcArray: hipArray_t,
    srcPitch: c_uint,
    srcHeight: c_uint,
    dstXInBytes: c_uint,
    dstY: c_uint,
    dstZ: c_uint,
    dstLOD: c_uint,
    dstMemoryType: hipMemoryType,
    dstHost: *mut c_void,
    dstDevice: hipDeviceptr_t,
    dstArray: hipArray_t,
    dstPitch: c_uint,
    dstHeight: c_uint,
    WidthInBytes: c_uint,
    Height: c_uint,
    Depth: c_uint,
}

/// A copy of the driver's functions, in HIP 6's layout and numbers.
///
/// # Safety
/// It points to what the program's HIP calls `HIP_MEMCPY3D`.
pub(crate) unsafe fn driver_copy(params: *const HIP_MEMCPY3D, is_hip_5: bool) -> HIP_MEMCPY3D {
    if !is_hip_5 {
        // SAFETY: the caller's contract.
        return unsafe { *params };
    }
    // SAFETY: the caller's contract.
    let old = unsafe { *params.cast::<OldCopy>() };
    HIP_MEMCPY3D {
        srcXInBytes: old.srcXInBytes as usize,
        srcY: old.srcY as usize,
        srcZ: old.srcZ as usize,
        srcLOD: old.srcLOD as usize,
        srcMemoryType: memory_type(old.srcMemoryType, true),
        srcHost: old.srcHost,
        srcDevice: old.srcDevice,
        srcArray: old.srcArray,
        srcPitch: old.srcPitch as usize,
        srcHeight: old.srcHeight as usize,
        dstXInBytes: old.dstXInBytes as usize,
        dstY: old.dstY as usize,
        dstZ: old.dstZ as usize,
        dstLOD: old.dstLOD as usize,
        dstMemoryType: memory_type(old.dstMemoryType, true),
        dstHost: old.dstHost,
        dstDevice: old.dstDevice,
        dstArray: old.dstArray,
        dstPitch: old.dstPitch as usize,
        dstHeight: old.dstHeight as usize,
        WidthInBytes: old.WidthInBytes as usize,
        Height: old.Height as usize,
        Depth: old.Depth as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_hip_5_is_read_as_its_headers_lay_it_out() {
        assert_eq!(std::mem::size_of::<OldCopy>(), 128);
        // Numbers where HIP 5's header has them: as words of 32 bits.
        let mut words = [0u64; 16];
        let bytes = words.as_mut_ptr().cast::<u32>();
        // SAFETY: each word lies within the array.
        unsafe {
            for (word, value) in
                [(0, 4), (1, 5), (2, 6), (4, 0), (12, 64), (13, 8), (18, 1), (26, 128), (27, 9)]
            {
                bytes.add(word).write(value);
            }
            for (word, value) in [(28, 16), (29, 3), (30, 2)] {
                bytes.add(word).write(value);
            }
            let copy = driver_copy(words.as_ptr().cast(), true);
            assert_eq!((copy.srcXInBytes, copy.srcY, copy.srcZ), (4, 5, 6));
            assert_eq!((copy.srcMemoryType, copy.dstMemoryType), (1, 2));
            assert_eq!((copy.srcPitch, copy.srcHeight, copy.dstPitch, copy.dstHeight), (64, 8, 128, 9));
            assert_eq!((copy.WidthInBytes, copy.Height, copy.Depth), (16, 3, 2));
        }
        assert_eq!([0, 1, 2, 3, 4, 9].map(|kind| memory_type(kind, true)), [1, 2, 10, 11, 3, 9]);
        assert_eq!(memory_type(1, false), 1);
        assert_eq!([1, 2, 3, 0].map(old_memory_type), [Some(0), Some(1), Some(4), None]);
        assert!(!is_hip_5());
    }
}
