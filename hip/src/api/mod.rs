//! The C functions, one file per chapter of HIP's manual.

use std::ffi::{CStr, c_char};

use crate::error::Error;

/// Defines C functions of libamdhip64.
///
/// The text after `=>` is what the function does on emulated devices: a block with the runtime under the given
/// name that gives `Result<(), Error>`. On real devices the call goes to the function of the same name; where an older
/// release lacks it, a block after `else` does the same by what that release has, or the call is an error.
macro_rules! hip_functions {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) => |$runtime:pat_param| $body:block
        $(else |$older:pat_param| $instead:block)?)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// Each pointer is null or valid for what HIP reads or writes through it. Handles and device addresses may
        /// be anything.
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> $crate::codes::hipError_t {
            $crate::error::boundary(stringify!($name), || match $crate::select::backend()? {
                $crate::select::Backend::Emulated($runtime) => {
                    // SAFETY: the caller's contract.
                    #[allow(unused_unsafe, clippy::macro_metavars_in_unsafe)]
                    let result: Result<(), $crate::error::Error> = unsafe { $body };
                    result.map(|()| $crate::codes::hipSuccess)
                }
                $crate::select::Backend::Real(library) => {
                    type Real = unsafe extern "C" fn($($type),*) -> $crate::codes::hipError_t;
                    static REAL: std::sync::OnceLock<Option<Real>> = std::sync::OnceLock::new();
                    // SAFETY: the type is HIP's own.
                    match REAL.get_or_init(|| unsafe { library.function($crate::api::c_name(concat!(stringify!($name), "\0"))) }) {
                        // SAFETY: the caller's contract is that of the real function.
                        Some(real) => Ok(unsafe { real($($arg),*) }),
                        None => {
                            $({
                                #[allow(clippy::macro_metavars_in_unsafe)]
                                // SAFETY: the caller's contract is that of the older function.
                                let older = unsafe { let $older = library; $instead };
                                return older;
                            })?
                            #[allow(unreachable_code)]
                            Err($crate::api::missing(library, stringify!($name)))
                        }
                    }
                }
            })
        }
    )*};
}

mod absent;
mod arrays;
mod capture;
mod context;
mod device;
mod error;
mod event;
mod foreign;
mod graph;
mod graph_nodes;
mod launch;
mod memory;
mod memory_3d;
mod module;
mod per_thread;
mod program;
mod stream;
mod values;
mod virtual_memory;

pub use absent::*;
pub use arrays::*;
pub use capture::*;
pub use context::*;
pub use device::*;
pub use error::*;
pub use event::*;
pub use foreign::*;
pub use graph::*;
pub use graph_nodes::*;
pub use launch::*;
pub use memory::*;
pub use memory_3d::*;
pub use module::*;
pub use per_thread::*;
pub use program::*;
pub use stream::*;
pub use values::*;
pub use virtual_memory::*;

pub(crate) use memory_3d::{copy_from_2d, copy_from_driver, copy_params};
pub(crate) use per_thread::own;

pub(crate) const fn c_name(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a C name ends in its only zero"),
    }
}

pub(crate) fn missing(library: &crate::real::RealLibrary, name: &str) -> Error {
    Error::Unsupported(format!("{} has no {name}", library.name()))
}

/// Writes a result through a C caller's pointer.
///
/// # Safety
/// `pointer` is null or valid for writing.
pub(crate) unsafe fn give<T>(name: &'static str, pointer: *mut T, value: T) -> Result<(), Error> {
    not_null(name, pointer)?;
    // SAFETY: the caller's contract.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Refuses a null pointer before anything is done that would have to be undone.
pub(crate) fn not_null<T>(name: &'static str, pointer: *const T) -> Result<(), Error> {
    if pointer.is_null() { Err(Error::Null(name)) } else { Ok(()) }
}

/// A C caller's text.
///
/// # Safety
/// `pointer` is null or a C string that lives as long as the call.
pub(crate) unsafe fn text<'a>(name: &'static str, pointer: *const c_char) -> Result<&'a str, Error> {
    not_null(name, pointer)?;
    // SAFETY: the caller's contract.
    unsafe { CStr::from_ptr(pointer) }.to_str().map_err(|_| Error::Argument {
        name,
        value: "not UTF-8".to_owned(),
        expected: "names and paths are UTF-8",
    })
}
