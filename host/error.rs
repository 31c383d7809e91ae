//! Everything that can go wrong, with the values that say why.

use std::ffi::CStr;
use std::fmt;

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of this crate. Each text says what is wrong, with which values, and how to fix it.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A function of the HIP runtime failed.
    #[error("{call} failed: {name} ({code}), {}", detail.as_ref().unwrap_or(description))]
    Hip {
        /// Name of the function.
        call: &'static str,
        /// The `hipError_t`.
        code: u32,
        /// Its name, such as `hipErrorOutOfMemory`.
        name: String,
        /// What the runtime says about it.
        description: String,
        /// What was wrong, with the values, where this project's own runtime knows: the emulator's report of a
        /// fault, for example.
        detail: Option<String>,
    },
    /// The device has no memory that the host has at the same address.
    #[error(
        "the device has no memory that the host has at the same address; allocate device memory and copy"
    )]
    NoManagedMemory,
    /// Memory that host and devices share, used where it is not attached.
    #[error("the memory is attached to another queue, or to the host alone; attach it to this one first")]
    NotAttached,
    /// No device has this number.
    #[error("there is no device {ordinal}: {count} found ({backend}); `candle-amdgpu devices` lists them")]
    NoDevice {
        /// The number asked for.
        ordinal: usize,
        /// How many devices there are.
        count: usize,
        /// What runs them.
        backend: String,
    },
    /// No device has this target.
    #[error(
        "no device is a {arch}: found {} ({backend}); CANDLE_AMDGPU_DEVICE=emulator:{arch} emulates one",
        listed(found)
    )]
    NoSuchArch {
        /// The target asked for.
        arch: String,
        /// Targets of the devices there are.
        found: Vec<String>,
        /// What runs them.
        backend: String,
    },
    /// The module has no kernel of this name.
    #[error("module `{module}` has no kernel `{name}`{}", what_it_has(*count, near, selection))]
    UnknownKernel {
        /// The module.
        module: String,
        /// The name asked for.
        name: String,
        /// How many kernels the module has.
        count: usize,
        /// Those whose names are nearest.
        near: Vec<String>,
        /// [`Module::selection`](crate::Module::selection)
        selection: &'static str,
    },
    /// The module was not compiled for this device's target.
    #[error(
        "module `{module}` has no code object for {arch}, only for {}: build with CANDLE_AMDGPU_ARCHS={arch} \
         (several targets are separated by commas), or choose another device",
        listed(have)
    )]
    NoCodeObject {
        /// The module.
        module: String,
        /// The device's target.
        arch: String,
        /// The targets that it was compiled for.
        have: Vec<String>,
    },
    /// Bytes that are not a code object.
    #[error("module `{module}` cannot be loaded: {reason}")]
    BadCodeObject {
        /// The module.
        module: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A buffer is shorter than a kernel needs.
    #[error("{kernel}: `{arg}` has {}, but needs {need} ({why})", elements(*have))]
    BufferTooShort {
        /// The kernel.
        kernel: String,
        /// The argument.
        arg: String,
        /// Its elements.
        have: usize,
        /// The elements it must have.
        need: u128,
        /// Where that number comes from.
        why: String,
    },
    /// A null pointer where a kernel needs memory.
    #[error("{kernel}: `{arg}` must be device memory, but it is null")]
    NullArgument {
        /// The kernel.
        kernel: String,
        /// The argument.
        arg: String,
    },
    /// Arguments that contradict each other.
    #[error("{kernel}: `{requirement}` does not hold, with {values}")]
    Requirement {
        /// The kernel.
        kernel: String,
        /// The condition, as the kernel states it.
        requirement: String,
        /// The values of the names in it.
        values: String,
    },
    /// Memory that is not aligned as a kernel needs it.
    #[error("{kernel}: `{arg}` must begin at a multiple of {align} bytes, but begins {by} after one")]
    Misaligned {
        /// The kernel.
        kernel: String,
        /// The argument.
        arg: String,
        /// The address must be a multiple of this many bytes.
        align: usize,
        /// How many bytes it is past such a multiple.
        by: usize,
    },
    /// A tensor whose shape the kernel does not support.
    #[error("{kernel}: `{arg}` has the shape {shape:?}: {reason}")]
    BadShape {
        /// The kernel.
        kernel: String,
        /// The pointer to the tensor's elements.
        arg: String,
        /// Its shape.
        shape: Vec<usize>,
        /// What is wrong with it.
        reason: String,
    },
    /// The operands of one kernel have different shapes.
    #[error(
        "{kernel}: operands must have the same shape, but have {shapes:?}; broadcast the smaller one first"
    )]
    ShapesDiffer {
        /// The kernel.
        kernel: String,
        /// The shapes.
        shapes: Vec<Vec<usize>>,
    },
    /// An environment variable has a value that it cannot have.
    #[error("{name}=`{value}`: must be {expected}")]
    Variable {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it can be.
        expected: &'static str,
    },
    /// Memory of one device, used on another.
    #[error(
        "{kernel}: `{arg}` is memory of device {memory}, but the stream belongs to device {stream}; copy it first"
    )]
    WrongDevice {
        /// The kernel.
        kernel: String,
        /// The argument.
        arg: String,
        /// Device of the memory.
        memory: usize,
        /// Device of the stream.
        stream: usize,
    },
    /// A launch dimension is zero.
    #[error("{kernel}: grid {grid:?} of workgroups {block:?}: no dimension may be 0")]
    ZeroDimension {
        /// The kernel.
        kernel: String,
        /// Workgroups in x, y and z.
        grid: [u32; 3],
        /// Work-items of a workgroup in x, y and z.
        block: [u32; 3],
    },
    /// The workgroup is larger than the device or the kernel allows.
    #[error("{kernel}: a workgroup of {block:?} work-items: {limit}")]
    WorkgroupTooLarge {
        /// The kernel.
        kernel: String,
        /// Work-items of a workgroup in x, y and z.
        block: [u32; 3],
        /// The limit that it exceeds.
        limit: String,
    },
    /// The grid is larger than the device allows.
    #[error("{kernel}: a grid of {grid:?} workgroups of {block:?}: {limit}")]
    GridTooLarge {
        /// The kernel.
        kernel: String,
        /// Workgroups in x, y and z.
        grid: [u32; 3],
        /// Work-items of a workgroup in x, y and z.
        block: [u32; 3],
        /// The limit that it exceeds.
        limit: String,
    },
    /// More workgroup memory than the device has.
    #[error("{kernel}: {asked} bytes of workgroup memory (LDS), but the device has {limit}")]
    LdsTooLarge {
        /// The kernel.
        kernel: String,
        /// Bytes asked for, including the kernel's own.
        asked: u64,
        /// The device's limit.
        limit: u64,
    },
    /// The kernel states no launch geometry.
    #[error("{kernel} states no launch geometry: pass LaunchConfig::explicit(grid, block, lds_bytes)")]
    NoGeometry {
        /// The kernel.
        kernel: String,
    },
    /// The wrong number of workgroups for a kernel whose workgroups are rows.
    #[error("each workgroup of {kernel} is a row: {rows} rows need the grid [{rows}, 1, 1], not {grid:?}")]
    GridIsNotRows {
        /// The kernel.
        kernel: String,
        /// The grid that was given.
        grid: [u32; 3],
        /// The number of rows.
        rows: u128,
    },
    /// Fewer arguments than the kernel has parameters.
    #[error("{kernel} takes {need} arguments, but {given} were given; `candle-amdgpu kernels` lists them")]
    TooFewArguments {
        /// The kernel.
        kernel: String,
        /// Arguments given.
        given: usize,
        /// Parameters of the kernel.
        need: usize,
    },
    /// An argument whose size differs from that of the kernel's parameter.
    #[error("{kernel}: argument {index} has {given} bytes, but the parameter has {need}")]
    ArgumentSize {
        /// The kernel.
        kernel: String,
        /// Position of the argument, from 0.
        index: usize,
        /// Its bytes.
        given: usize,
        /// Bytes of the parameter.
        need: usize,
    },
    /// Source and destination of a copy differ in length.
    #[error("a copy of {from} elements into {into}: both must have the same number")]
    LengthsDiffer {
        /// Elements of the source.
        from: usize,
        /// Elements of the destination.
        into: usize,
    },
    /// A range that is not inside a buffer.
    #[error("the range {start}..{end} is not inside a buffer of {}", elements(*len))]
    OutOfRange {
        /// First element.
        start: usize,
        /// One past the last.
        end: usize,
        /// Elements of the buffer.
        len: usize,
    },
    /// An index that a kernel found in its data is out of range. Nothing was read or written for it; the rest of the
    /// kernel's work is done.
    #[error(
        "{kernel}: index {index}, at position {position} of its indices, is out of range: the dimension has {size} \
         elements; nothing was read or written for it"
    )]
    IndexOutOfRange {
        /// The kernel.
        kernel: String,
        /// Which of its indices, counted from 0 in the order of the tensor of indices.
        position: u64,
        /// The index.
        index: i64,
        /// Size of the dimension that it is for.
        size: u64,
    },
    /// A size in bytes that exceeds the address space.
    #[error("{elements} elements of {size} bytes are more than can be addressed")]
    TooManyBytes {
        /// Elements.
        elements: usize,
        /// Bytes of one.
        size: usize,
    },
    /// The columns of a matrix overlap.
    #[error(
        "matrix {matrix}: a leading dimension of {leading} for columns of {rows}: it must be at least that"
    )]
    LeadingDimension {
        /// `A`, `B` or `C`.
        matrix: &'static str,
        /// The distance between columns, in elements.
        leading: usize,
        /// Elements of a column as it is stored.
        rows: usize,
    },
    /// Two matrix products of a batch write the same element.
    #[error(
        "{batch} products of {rows} by {columns} overlap in C: a stride of {stride} with a leading dimension of \
         {leading}"
    )]
    ProductsOverlap {
        /// Number of products.
        batch: usize,
        /// From one C to the next, in elements.
        stride: usize,
        /// The distance between columns, in elements.
        leading: usize,
        /// Rows of C.
        rows: usize,
        /// Columns of C.
        columns: usize,
    },
    /// An impossible layout.
    #[error("shape {shape:?}, strides {strides:?}, offset {offset}: {reason}")]
    BadLayout {
        /// Its shape.
        shape: Vec<usize>,
        /// Its strides.
        strides: Vec<usize>,
        /// Its first element.
        offset: usize,
        /// What is wrong.
        reason: String,
    },
}

/// A number of elements.
fn elements(count: usize) -> String {
    format!("{count} element{}", if count == 1 { "" } else { "s" })
}

/// The end of the message about a kernel that a module does not have.
fn what_it_has(count: usize, near: &[String], selection: &str) -> String {
    if selection.is_empty() {
        format!("; the nearest of its {count} are {}", near.join(", "))
    } else {
        format!(": this build has only what CANDLE_AMDGPU_KERNELS={selection} selects")
    }
}

/// The names, or "none".
fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The text: `main` prints an error that it returns by `Debug`, as `unwrap` does.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// That of a module, which has these kernels, for the name of another.
    pub(crate) fn unknown_kernel<'a>(
        module: &str,
        name: &str,
        has: impl ExactSizeIterator<Item = &'a str>,
        selection: &'static str,
    ) -> Error {
        Error::UnknownKernel {
            module: module.to_owned(),
            name: name.to_owned(),
            count: has.len(),
            near: crate::kernel::nearest(name, has).into_iter().map(str::to_owned).collect(),
            selection,
        }
    }

    /// The error behind a code other than `hipSuccess` that `call` returned.
    pub(crate) fn hip(call: &'static str, code: u32) -> Error {
        // SAFETY: both take any code and return static text.
        let (name, description) =
            unsafe { (text(crate::sys::hipGetErrorName(code)), text(crate::sys::hipGetErrorString(code))) };
        let last = amdhip64::last_error().filter(|last| last.function == call && last.code == code);
        Error::Hip { call, code, name, description, detail: last.map(|last| last.text) }
    }
}

/// # Safety
/// `text` is null or points to a string that ends with a zero byte.
unsafe fn text(text: *const std::ffi::c_char) -> String {
    if text.is_null() {
        return "unknown error".to_owned();
    }
    // SAFETY: as promised by the caller.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
