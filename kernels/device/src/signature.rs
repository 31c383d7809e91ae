//! What may be a kernel's argument, and the record of a kernel's signature in the code object.

use crate::{bf16, f8e4m3, f16};

mod structure;
pub use structure::{ByValue, Chain, Field, FieldRecord, NONE, Nothing, StructureRecord, element, identity};

/// A plain value, a structure of plain values, or a raw pointer to either: what a kernel takes. Derive it for a structure.
///
/// # Safety
/// The type has a fixed size, holds no reference and is passed to a kernel as its bytes. What the items say is so.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a kernel's argument",
    label = "not a plain value, nor a raw pointer to plain values",
    note = "a kernel takes integers, floats (`f16`, `bf16` and `f8e4m3` of amdgpu_device included), `bool`, structures \
            with `#[derive(KernelArg)]`, and `*const` or `*mut` to them"
)]
pub unsafe trait KernelArg: Copy {
    /// 0: a value; 1: `*const`; 2: `*mut`; 3: a structure.
    const KIND: u32 = 0;
    /// Name of the type, or of what the pointer points to; of a structure, its [`identity`]. At most 16 bytes.
    const ELEMENT: &'static str;
    /// What the entry takes in its place.
    type Passed: Copy;
    /// Records of the structure and of those in it, or [`Nothing`].
    type Structures: 'static;
    /// These records.
    const STRUCTURES: Self::Structures;
    /// The argument of what the entry took.
    fn from_passed(passed: Self::Passed) -> Self;
}

macro_rules! plain {
    ($($t:ident)*) => {$(
        // SAFETY: a plain value
        unsafe impl KernelArg for $t {
            const ELEMENT: &'static str = stringify!($t);
            type Passed = Self;
            type Structures = Nothing;
            const STRUCTURES: Nothing = NONE;
            #[inline(always)]
            fn from_passed(passed: Self) -> Self {
                passed
            }
        }
    )*};
}
plain!(bool u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64 f16 bf16 f8e4m3);

macro_rules! pointers {
    ($($kind:literal: $pointer:ty)*) => {$(
        // SAFETY: an address
        unsafe impl<T: KernelArg> KernelArg for $pointer {
            const KIND: u32 = $kind;
            const ELEMENT: &'static str = T::ELEMENT;
            type Passed = Self;
            type Structures = T::Structures;
            const STRUCTURES: T::Structures = T::STRUCTURES;
            #[inline(always)]
            fn from_passed(passed: Self) -> Self {
                passed
            }
        }
    )*};
}
pointers!(1: *const T 2: *mut T);

/// One argument in a [`Record`].
#[repr(C)]
pub struct Argument {
    size: u32,
    kind: u32,
    element: [u8; 16],
}

impl Argument {
    /// The record of an argument of this type.
    pub const fn of<T: KernelArg>() -> Self {
        let name = T::ELEMENT.as_bytes();
        let mut element = [0; 16];
        let mut i = 0;
        while i < name.len() {
            element[i] = name[i];
            i += 1;
        }
        Argument { size: size_of::<T>() as u32, kind: T::KIND, element }
    }
}

/// One kernel's signature, in the section `.amdgpu.kernels` of the code object. amdgpu-build reads it.
#[repr(C)]
pub struct Record<const ARGS: usize, const CONSTANTS: usize, const FILE: usize, const TEXT: usize> {
    magic: [u8; 4],
    version: u32,
    length: u32,
    workgroup: [u32; 3],
    max_workgroup: u32,
    items_per_lane: u32,
    lds_bytes: u32,
    line: u32,
    args: u32,
    constants: u32,
    file: u32,
    text: u32,
    arguments: [Argument; ARGS],
    /// What formulas have as `{0}`, `{1}` and so on.
    numbers: [u32; CONSTANTS],
    file_bytes: [u8; FILE],
    text_bytes: [u8; TEXT],
}

impl<const ARGS: usize, const CONSTANTS: usize, const FILE: usize, const TEXT: usize>
    Record<ARGS, CONSTANTS, FILE, TEXT>
{
    /// A record.
    #[allow(clippy::too_many_arguments)]
    pub const fn new(
        workgroup: [usize; 3],
        max_workgroup: usize,
        items_per_lane: usize,
        lds_bytes: usize,
        line: u32,
        arguments: [Argument; ARGS],
        numbers: [u32; CONSTANTS],
        file: &str,
        text: &str,
    ) -> Self {
        Record {
            magic: *b"AMDK",
            version: 2,
            length: size_of::<Self>() as u32,
            workgroup: [workgroup[0] as u32, workgroup[1] as u32, workgroup[2] as u32],
            max_workgroup: max_workgroup as u32,
            items_per_lane: items_per_lane as u32,
            lds_bytes: lds_bytes as u32,
            line,
            args: ARGS as u32,
            constants: CONSTANTS as u32,
            file: FILE as u32,
            text: TEXT as u32,
            arguments,
            numbers,
            file_bytes: bytes(file),
            text_bytes: bytes(text),
        }
    }
}

const fn bytes<const N: usize>(text: &str) -> [u8; N] {
    let mut out = [0; N];
    let text = text.as_bytes();
    let mut i = 0;
    while i < N {
        out[i] = text[i];
        i += 1;
    }
    out
}
