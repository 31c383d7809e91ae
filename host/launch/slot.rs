//! The arguments of a launch, in one form for all of its fronts.

use crate::access::{DeviceRead, DeviceWrite, Memory};
use crate::{Count, KernelStructure, KernelValue, Stream};
use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::ptr;

/// The most arguments that a kernel with a typed wrapper has; launches with no more than these do not allocate.
pub(super) const MAX_ARGS: usize = 48;

/// The most values that a formula gets.
pub(super) const MAX_VALUES: usize = MAX_ARGS + 32;

/// An argument of a launch.
#[derive(Clone, Copy)]
pub struct Slot<'a> {
    /// What the kernel gets.
    bytes: Bytes,
    size: usize,
    pub(super) content: Content<'a>,
}

#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Bytes([u8; 16]);

#[derive(Clone, Copy)]
pub(super) enum Content<'a> {
    /// A layout's, to be filled in by `launch`.
    FilledIn,
    Value {
        integer: Option<i128>,
    },
    /// The address of a structure, which lives as long as the slot. The runtime copies it when it launches.
    Structure(*const c_void),
    /// The address of a value of the kernel's type.
    At {
        address: *const c_void,
        integer: Option<i128>,
    },
    Memory {
        memory: Memory<'a>,
        /// Bytes of one element.
        element: usize,
    },
    Null,
}

impl<'a> Slot<'a> {
    /// An argument that comes from a layout, or from other arguments.
    pub const FILLED_IN: Slot<'static> =
        Slot { bytes: Bytes([0; 16]), size: size_of::<usize>(), content: Content::FilledIn };

    /// A null pointer.
    pub const NULL: Slot<'static> =
        Slot { bytes: Bytes([0; 16]), size: size_of::<usize>(), content: Content::Null };

    /// A value.
    pub fn value<V: KernelValue>(value: V) -> Slot<'static> {
        const { assert!(size_of::<V>() <= 16 && align_of::<V>() <= 16, "at most 16 bytes") };
        let mut bytes = Bytes([0; 16]);
        // SAFETY: it fits in size and alignment, and has no padding, so that all bytes stay initialised.
        unsafe { ptr::from_mut(&mut bytes).cast::<V>().write(value) };
        Slot { bytes, size: size_of::<V>(), content: Content::Value { integer: value.integer() } }
    }

    /// A structure.
    pub fn structure<S: KernelStructure>(structure: &'a S) -> Slot<'a> {
        let content = Content::Structure(ptr::from_ref(structure).cast());
        Slot { size: size_of::<S>(), content, ..Slot::NULL }
    }

    /// Memory to read.
    pub fn read<T>(memory: &'a impl DeviceRead<T>) -> Slot<'a> {
        Slot::memory(memory.memory(), size_of::<T>())
    }

    /// Memory to write.
    pub fn write<T>(memory: &'a mut impl DeviceWrite<T>) -> Slot<'a> {
        Slot::memory(memory.memory_mut(), size_of::<T>())
    }

    /// What is at an address, which stays valid until the launch; `integer` is its value, if it is an integer.
    pub(super) fn at(address: *const c_void, integer: Option<i128>) -> Slot<'static> {
        Slot { content: Content::At { address, integer }, ..Slot::NULL }
    }

    /// A value by its bytes, at most 16.
    pub fn bytes(value: &[u8], integer: Option<i128>) -> Slot<'static> {
        let mut bytes = Bytes([0; 16]);
        bytes.0[..value.len()].copy_from_slice(value);
        Slot { bytes, size: value.len(), content: Content::Value { integer } }
    }

    /// Memory whose elements have `element` bytes.
    pub fn memory(memory: Memory<'a>, element: usize) -> Slot<'a> {
        let mut slot = Slot { content: Content::Memory { memory, element }, ..Slot::NULL };
        slot.set_address(memory.address);
        slot
    }

    /// Bytes that the kernel reads of it.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// The value if it is an integer, the number of elements if it is memory, otherwise 0.
    fn count(&self) -> Count {
        match self.content {
            Content::Value { integer } | Content::At { integer, .. } => Count(integer.unwrap_or(0)),
            Content::Memory { memory, .. } => Count(memory.len as i128),
            _ => Count(0),
        }
    }

    /// The stream that owns the memory.
    pub(super) fn stream(&self) -> Option<&'a Stream> {
        match self.content {
            Content::Memory { memory, .. } => memory.stream,
            _ => None,
        }
    }

    /// Where the value is, for the runtime.
    pub(super) fn address(&mut self) -> *mut c_void {
        match self.content {
            // The runtime only reads it.
            Content::Structure(address) | Content::At { address, .. } => address.cast_mut(),
            _ => ptr::from_mut(&mut self.bytes).cast(),
        }
    }

    /// The address that the kernel gets.
    pub(super) fn integer_address(&self) -> usize {
        let [a, b, c, d, e, f, g, h, ..] = self.bytes.0;
        u64::from_ne_bytes([a, b, c, d, e, f, g, h]) as usize
    }

    pub(super) fn set_address(&mut self, address: *const c_void) {
        self.bytes.0[..8].copy_from_slice(&(address as usize as u64).to_ne_bytes());
    }

    /// An integer of `size` bytes, which must be enough for it.
    pub(super) fn set_integer(&mut self, value: Count, size: u32) {
        let mut bytes = Bytes([0; 16]);
        bytes.0[..8].copy_from_slice(&(value.0 as u64).to_ne_bytes());
        *self = Slot { bytes, size: size as usize, content: Content::Value { integer: Some(value.0) } };
    }
}

/// What formulas are evaluated on: the arguments' values, then the numbers of tensors, the grid and the workgroup.
pub(super) struct Values {
    values: [Count; MAX_VALUES],
    count: usize,
}

impl Values {
    /// `count` values, the first of them the arguments', the others 0 until somebody knows better.
    pub(super) fn new(slots: &[Slot<'_>], count: usize) -> Values {
        let mut values = [Count::default(); MAX_VALUES];
        for (value, slot) in values.iter_mut().zip(slots) {
            *value = slot.count();
        }
        Values { values, count }
    }
}

impl Deref for Values {
    type Target = [Count];

    fn deref(&self) -> &[Count] {
        &self.values[..self.count]
    }
}

impl DerefMut for Values {
    fn deref_mut(&mut self) -> &mut [Count] {
        &mut self.values[..self.count]
    }
}
