//! Structures as arguments: how an entry takes one, and the record of its fields. `#[derive(KernelArg)]` refers to these.

use super::{Argument, KernelArg, bytes};

/// A structure as an entry takes it. The compiler's ABI for kernels takes small structures apart, but passes an array as a whole,
/// whatever is in it: on NVIDIA GPUs by value, on AMD GPUs by an address, which amdgpu-build replaces by the bytes in the
/// kernarg block.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ByValue<T>([T; 1]);

impl<T> ByValue<T> {
    /// The structure.
    #[inline(always)]
    pub fn get(self) -> T {
        let [value] = self.0;
        value
    }
}

/// No records.
pub type Nothing = [u32; 0];
/// No records.
pub const NONE: Nothing = [];

/// Records, one after the other.
#[repr(C)]
pub struct Chain<A, B>(pub A, pub B);

/// What may be a field: a value that a kernel takes, a structure, or an array of either.
///
/// # Safety
/// As for [`KernelArg`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a kernel's argument",
    label = "not a plain value, a structure with `#[derive(KernelArg)]`, nor an array of them"
)]
pub unsafe trait Field: Copy {
    /// Elements of the array; 0 of what is none.
    const COUNT: u32;
    /// The type, or that of the elements.
    type Element: KernelArg;
}

// SAFETY: as the type itself
unsafe impl<T: KernelArg> Field for T {
    const COUNT: u32 = 0;
    type Element = T;
}

// SAFETY: as many of the type
unsafe impl<T: KernelArg, const N: usize> Field for [T; N] {
    const COUNT: u32 = {
        assert!(N > 0, "an array without elements cannot be a field of a kernel's argument");
        N as u32
    };
    type Element = T;
}

/// One field in a [`StructureRecord`].
#[repr(C)]
pub struct FieldRecord {
    offset: u32,
    count: u32,
    element: Argument,
}

impl FieldRecord {
    /// The record of a field of this type.
    pub const fn of<T: Field>(offset: usize) -> Self {
        let kind = <T::Element as KernelArg>::KIND;
        assert!(kind != 1 && kind != 2, "a field cannot be a pointer: pass it as an argument of its own");
        FieldRecord { offset: offset as u32, count: T::COUNT, element: Argument::of::<T::Element>() }
    }
}

/// One structure's fields, beside the kernels' signatures.
#[repr(C)]
pub struct StructureRecord<const FIELDS: usize, const TEXT: usize> {
    magic: [u8; 4],
    version: u32,
    length: u32,
    size: u32,
    align: u32,
    fields: u32,
    text: u32,
    element: [u8; 16],
    field_records: [FieldRecord; FIELDS],
    text_bytes: [u8; TEXT],
}

impl<const FIELDS: usize, const TEXT: usize> StructureRecord<FIELDS, TEXT> {
    /// The record of `T`, whose names are in `text`: JSON of whole words, so that the next record can follow.
    pub const fn new<T: KernelArg>(field_records: [FieldRecord; FIELDS], text: &str) -> Self {
        assert!(TEXT.is_multiple_of(4));
        assert!(align_of::<T>() <= 16, "a kernel's argument is aligned to 16 bytes at most");
        StructureRecord {
            magic: *b"AMDS",
            version: 1,
            length: size_of::<Self>() as u32,
            size: size_of::<T>() as u32,
            align: align_of::<T>() as u32,
            fields: FIELDS as u32,
            text: TEXT as u32,
            element: bytes(T::ELEMENT),
            field_records,
            text_bytes: bytes(text),
        }
    }
}

/// What stands for a structure in the record of an argument, whose element has 16 bytes: its path as a number, FNV-1a of 64 bits
/// in hexadecimal digits. (<http://www.isthe.com/chongo/tech/comp/fnv/>)
pub const fn identity(path: &str) -> [u8; 16] {
    let path = path.as_bytes();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut i = 0;
    while i < path.len() {
        hash = (hash ^ path[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    let mut digits = [0; 16];
    let mut i = 0;
    while i < 16 {
        digits[i] = b"0123456789abcdef"[(hash >> (60 - 4 * i) & 15) as usize];
        i += 1;
    }
    digits
}

/// An [`identity`] as text.
pub const fn element(identity: &[u8; 16]) -> &str {
    match core::str::from_utf8(identity) {
        Ok(text) => text,
        Err(_) => panic!("hexadecimal digits are text"),
    }
}
