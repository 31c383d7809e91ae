//! hiprtc: programs in HIP that are compiled while the host program runs.
//!
//! The crate defines the C functions of hiprtc.h, over a clang that is installed; no ROCm is needed. As `libhiprtc.so`
//! it serves programs that were built against ROCm's. Where there is no clang, a compilation fails, and its log says
//! what to install.
//!
//! - [`CLANG_VARIABLE`] names the clang; without it `HIP_CLANG_PATH`, `ROCM_PATH/llvm/bin`, and then the search path
//!   are looked through, and of several versions the newest is taken.
//! - Headers are HIP's own, where there are some, with AMD's device libraries; elsewhere programs have the [built-in
//!   header](BUILTIN): the language's words, indices, barriers, atomics, and the mathematics that a GPU has
//!   instructions for.
//! - Without `--offload-arch` (or `--gpu-architecture`) it is compiled for the current device of the process's
//!   libamdhip64.
//!
//! Code is one ELF file for one target and a bundle for several. Linking (`hiprtcLink…`) is refused.

mod clang;
mod device;
mod lowered;
mod program;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use clang::CLANG_VARIABLE;
pub use program::BUILTIN;
use program::{Program, Refused};

/// Codes of hiprtc.h.
#[allow(non_camel_case_types)]
pub type hiprtcResult = c_int;

macro_rules! codes {
    ($($name:ident = $value:literal;)*) => {
        $(#[allow(missing_docs)] pub const $name: hiprtcResult = $value;)*

        /// A code's name.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub extern "C" fn hiprtcGetErrorString(result: hiprtcResult) -> *const c_char {
            let name: &'static CStr = match result {
                $($value => {
                    // SAFETY: it ends in its only zero.
                    unsafe { CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) }
                })*
                _ => c"Invalid HIPRTC error code",
            };
            name.as_ptr()
        }
    };
}

codes! {
    HIPRTC_SUCCESS = 0;
    HIPRTC_ERROR_OUT_OF_MEMORY = 1;
    HIPRTC_ERROR_PROGRAM_CREATION_FAILURE = 2;
    HIPRTC_ERROR_INVALID_INPUT = 3;
    HIPRTC_ERROR_INVALID_PROGRAM = 4;
    HIPRTC_ERROR_INVALID_OPTION = 5;
    HIPRTC_ERROR_COMPILATION = 6;
    HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE = 7;
    HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION = 8;
    HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION = 9;
    HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID = 10;
    HIPRTC_ERROR_INTERNAL_ERROR = 11;
    HIPRTC_ERROR_LINKING = 100;
}

/// A program: what [`hiprtcCreateProgram`] made.
#[allow(non_camel_case_types)]
pub type hiprtcProgram = *mut c_void;

/// What the functions do with a program; nothing unwinds into C.
///
/// # Safety
/// `program` is null, or what [`hiprtcCreateProgram`] gave and nobody has destroyed or uses meanwhile.
unsafe fn with(
    program: hiprtcProgram,
    action: impl FnOnce(&mut Program) -> Result<(), Refused>,
) -> hiprtcResult {
    // SAFETY: the caller's contract.
    let Some(program) = (unsafe { program.cast::<Program>().as_mut() }) else {
        return HIPRTC_ERROR_INVALID_PROGRAM;
    };
    match catch_unwind(AssertUnwindSafe(|| action(program))) {
        Ok(Ok(())) => HIPRTC_SUCCESS,
        Ok(Err(refused)) => refused.code(),
        Err(_) => HIPRTC_ERROR_INTERNAL_ERROR,
    }
}

/// # Safety
/// Null, or a string of C's that stays valid.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller's contract.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// # Safety
/// Null, or a list of `count` strings of C's that stay valid.
unsafe fn texts<'a>(list: *const *const c_char, count: c_int) -> Option<Vec<&'a CStr>> {
    let count = usize::try_from(count).ok()?;
    if count == 0 {
        return Some(Vec::new());
    }
    if list.is_null() {
        return None;
    }
    // SAFETY: the caller's contract.
    (0..count).map(|n| unsafe { text(*list.add(n)) }).collect()
}

/// The version of hiprtc: 9.0, as all of ROCm's say.
///
/// # Safety
/// The pointers are null, or valid for a write.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn hiprtcVersion(major: *mut c_int, minor: *mut c_int) -> hiprtcResult {
    if major.is_null() || minor.is_null() {
        return HIPRTC_ERROR_INVALID_INPUT;
    }
    // SAFETY: the caller's contract.
    unsafe { (*major, *minor) = (9, 0) };
    HIPRTC_SUCCESS
}

/// Makes a program of its source, and headers by the names that it includes them by.
///
/// # Safety
/// As hiprtc.h says: strings end in a zero, and the lists have as many as `num_headers`.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn hiprtcCreateProgram(
    program: *mut hiprtcProgram,
    source: *const c_char,
    name: *const c_char,
    num_headers: c_int,
    headers: *const *const c_char,
    include_names: *const *const c_char,
) -> hiprtcResult {
    // SAFETY: the caller's contract.
    let (source, name, headers, names) =
        unsafe { (text(source), text(name), texts(headers, num_headers), texts(include_names, num_headers)) };
    let (Some(source), Some(headers), Some(names), false) = (source, headers, names, program.is_null())
    else {
        return HIPRTC_ERROR_INVALID_INPUT;
    };
    let headers = names
        .into_iter()
        .zip(headers)
        .map(|(name, text)| (name.to_string_lossy().into_owned(), text.to_bytes().to_vec()));
    let name = name.map(|name| name.to_string_lossy().into_owned()).filter(|name| !name.is_empty());
    match Program::new(source.to_bytes(), name, headers.collect()) {
        Ok(made) => {
            // SAFETY: the caller's contract.
            unsafe { *program = Box::into_raw(Box::new(made)).cast() };
            HIPRTC_SUCCESS
        }
        Err(refused) => refused.code(),
    }
}

/// Frees a program, and makes its handle null.
///
/// # Safety
/// The pointer is null or valid, and so is the program that it points to.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn hiprtcDestroyProgram(program: *mut hiprtcProgram) -> hiprtcResult {
    if program.is_null() {
        return HIPRTC_ERROR_INVALID_INPUT;
    }
    // SAFETY: the caller's contract.
    let made = unsafe { std::mem::replace(&mut *program, std::ptr::null_mut()) };
    if made.is_null() {
        return HIPRTC_ERROR_INVALID_PROGRAM;
    }
    // SAFETY: `hiprtcCreateProgram` made it, and nobody has it any more.
    drop(unsafe { Box::from_raw(made.cast::<Program>()) });
    HIPRTC_SUCCESS
}

/// Asks for the name that a kernel or variable has in the code: `kernel<float>`, `&variable`. Before the program is
/// compiled.
///
/// # Safety
/// As hiprtc.h says.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn hiprtcAddNameExpression(
    program: hiprtcProgram,
    expression: *const c_char,
) -> hiprtcResult {
    // SAFETY: the caller's contract.
    let Some(expression) = (unsafe { text(expression) }) else { return HIPRTC_ERROR_INVALID_INPUT };
    // SAFETY: the caller's contract.
    unsafe { with(program, |program| program.add_name(expression)) }
}

/// The name in the code of what [`hiprtcAddNameExpression`] was given; it is there for as long as the program.
///
/// # Safety
/// As hiprtc.h says.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn hiprtcGetLoweredName(
    program: hiprtcProgram,
    expression: *const c_char,
    lowered: *mut *const c_char,
) -> hiprtcResult {
    // SAFETY: the caller's contract.
    let Some(expression) = (unsafe { text(expression) }).filter(|_| !lowered.is_null()) else {
        return HIPRTC_ERROR_INVALID_INPUT;
    };
    let action = |program: &mut Program| {
        let name = program.lowered(expression)?.as_ptr();
        // SAFETY: the caller's contract.
        unsafe { *lowered = name };
        Ok(())
    };
    // SAFETY: the caller's contract.
    unsafe { with(program, action) }
}

/// Compiles a program. What the compiler says is in the log, whether it succeeds or not.
///
/// # Safety
/// As hiprtc.h says.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn hiprtcCompileProgram(
    program: hiprtcProgram,
    num_options: c_int,
    options: *const *const c_char,
) -> hiprtcResult {
    // SAFETY: the caller's contract.
    let Some(options) = (unsafe { texts(options, num_options) }) else { return HIPRTC_ERROR_INVALID_INPUT };
    let options: Vec<String> = options.iter().map(|text| text.to_string_lossy().into_owned()).collect();
    // SAFETY: the caller's contract.
    unsafe { with(program, |program| program.compile(&options)) }
}

/// Sizes of things, and copies of them.
macro_rules! outputs {
    ($($size:ident $copy:ident $of:ident $what:literal;)*) => {$(
        #[doc = concat!("Bytes of ", $what, ".")]
        ///
        /// # Safety
        /// As hiprtc.h says.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $size(program: hiprtcProgram, size: *mut usize) -> hiprtcResult {
            if size.is_null() {
                return HIPRTC_ERROR_INVALID_INPUT;
            }
            let action = |program: &mut Program| {
                let bytes = program.$of()?.len();
                // SAFETY: the caller's contract.
                unsafe { *size = bytes };
                Ok(())
            };
            // SAFETY: the caller's contract.
            unsafe { with(program, action) }
        }

        #[doc = concat!("Copies ", $what, ".")]
        ///
        /// # Safety
        /// As hiprtc.h says: there is room for all of it.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $copy(program: hiprtcProgram, into: *mut c_char) -> hiprtcResult {
            if into.is_null() {
                return HIPRTC_ERROR_INVALID_INPUT;
            }
            let action = |program: &mut Program| {
                let bytes = program.$of()?;
                // SAFETY: the caller's contract.
                unsafe { into.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
                Ok(())
            };
            // SAFETY: the caller's contract.
            unsafe { with(program, action) }
        }
    )*};
}

outputs! {
    hiprtcGetCodeSize hiprtcGetCode code "the code";
    hiprtcGetBitcodeSize hiprtcGetBitcode bitcode "the bitcode, of a program that was compiled with `-fgpu-rdc`";
    hiprtcGetProgramLogSize hiprtcGetProgramLog log "the log, with a zero at its end";
}

/// Linking, which is refused.
macro_rules! refused {
    ($($name:ident($($arg:ident: $type:ty),*);)*) => {$(
        /// Refused: programs are compiled whole.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub extern "C" fn $name($($arg: $type),*) -> hiprtcResult {
            $(let _ = $arg;)*
            eprintln!("hiprtc: {} is not there; programs are compiled whole", stringify!($name));
            HIPRTC_ERROR_LINKING
        }
    )*};
}

refused! {
    hiprtcLinkCreate(count: u32, options: *mut c_int, values: *mut *mut c_void, link: *mut *mut c_void);
    hiprtcLinkAddFile(
        link: *mut c_void, kind: c_int, path: *const c_char, count: u32, options: *mut c_int, values: *mut *mut c_void
    );
    hiprtcLinkAddData(
        link: *mut c_void, kind: c_int, image: *mut c_void, size: usize, name: *const c_char, count: u32,
        options: *mut c_int, values: *mut *mut c_void
    );
    hiprtcLinkComplete(link: *mut c_void, code: *mut *mut c_void, size: *mut usize);
    hiprtcLinkDestroy(link: *mut c_void);
}
