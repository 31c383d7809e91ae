//! The device that a program is compiled for if its author names none.

use std::ffi::{CStr, c_char, c_int, c_void};

/// Where `gcnArchName` is in `hipDeviceProp_tR0600`, and the bytes of that.
const NAME: usize = 1160;
const PROPERTIES: usize = 1472;

/// The target of the current device: of the libamdhip64 that the process has loaded, if it has.
pub(crate) fn current() -> Option<String> {
    // SAFETY: the names end in a zero.
    let find = |name: &CStr| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    let mut functions = [find(c"hipGetDevice"), find(c"hipGetDevicePropertiesR0600")];
    if functions.contains(&std::ptr::null_mut()) {
        // Loaded, but not for everyone to see: as Python loads it.
        let library = [c"libamdhip64.so.7", c"libamdhip64.so.6", c"libamdhip64.so.5", c"libamdhip64.so"];
        functions = library.into_iter().find_map(|library| {
            // SAFETY: nothing is loaded, and so nothing runs.
            let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_NOW) };
            if handle.is_null() {
                return None;
            }
            // SAFETY: the handle is valid, and the names end in a zero.
            let find = |name: &CStr| unsafe { libc::dlsym(handle, name.as_ptr()) };
            let found = [find(c"hipGetDevice"), find(c"hipGetDevicePropertiesR0600")];
            (!found.contains(&std::ptr::null_mut())).then_some(found)
        })?;
    }
    type GetDevice = unsafe extern "C" fn(*mut c_int) -> c_int;
    type GetProperties = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;
    // SAFETY: HIP's functions have these types.
    let (get_device, get_properties) = unsafe {
        (
            std::mem::transmute::<*mut c_void, GetDevice>(functions[0]),
            std::mem::transmute::<*mut c_void, GetProperties>(functions[1]),
        )
    };
    let mut device = 0;
    // As aligned as the structure, and larger.
    let mut properties = [0u64; PROPERTIES / 8 * 2];
    // SAFETY: the pointers are valid for what the functions write.
    let codes = unsafe { (get_device(&mut device), get_properties(properties.as_mut_ptr().cast(), device)) };
    if codes != (0, 0) {
        return None;
    }
    // SAFETY: the field lies within the structure, which is zeros behind what was written.
    let name = unsafe { CStr::from_ptr(properties.as_ptr().cast::<c_char>().add(NAME)) };
    let name = name.to_str().ok()?;
    name.starts_with("gfx").then(|| name.to_owned())
}
