//! What the launch wrappers that `amdgpu-build` generates stand on. A wrapper is one call of [`launch`]: its
//! arguments in slots, one for each parameter of the kernel; every check is here.

pub use crate::access::{DeviceRead, DeviceWrite, ReadOrNull, WriteOrNull};
pub use crate::count::Dimensions;
pub use crate::element::{bf16, f8e4m3, f16};
pub use crate::kernel::{
    AlongOf, Arg, ArgType, Formula, Geometry, Kernel, LayoutOf, Module, Object, TensorOf,
};
pub use crate::{AsStream, Count, LaunchConfig, Layout, Result};

use crate::access::Memory;
use crate::function::{MAX_ARGS, Order};
use crate::kernel::is_named;
use crate::launch::Resolved;
use crate::staging::MAX_WORDS;
use crate::stream::StreamRef;
use crate::{Error, KernelValue, Stream};
use std::ffi::c_void;
use std::ptr;
use std::sync::PoisonError;

/// An argument of a launch.
#[derive(Clone, Copy)]
pub struct Slot<'a> {
    /// What the kernel gets.
    bytes: Bytes,
    size: usize,
    content: Content<'a>,
}

#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Bytes([u8; 16]);

#[derive(Clone, Copy)]
enum Content<'a> {
    /// A layout's, to be filled in by `launch`.
    FilledIn,
    Value {
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

    /// Memory to read.
    pub fn read<T>(memory: &'a impl DeviceRead<T>) -> Slot<'a> {
        Slot::memory(memory.memory(), size_of::<T>())
    }

    /// Memory to write.
    pub fn write<T>(memory: &'a mut impl DeviceWrite<T>) -> Slot<'a> {
        Slot::memory(memory.memory_mut(), size_of::<T>())
    }

    /// A value by its bytes, at most 16.
    #[cfg(feature = "verify")]
    pub(crate) fn bytes(value: &[u8], integer: Option<i128>) -> Slot<'static> {
        let mut bytes = Bytes([0; 16]);
        bytes.0[..value.len()].copy_from_slice(value);
        Slot { bytes, size: value.len(), content: Content::Value { integer } }
    }

    /// Memory whose elements have `element` bytes.
    pub(crate) fn memory(memory: Memory<'a>, element: usize) -> Slot<'a> {
        let mut slot = Slot { content: Content::Memory { memory, element }, ..Slot::NULL };
        slot.set_address(memory.address);
        slot
    }

    /// Bytes that the kernel reads of it.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The value where it is an integer, the number of elements where it is memory, else 0.
    pub(crate) fn count(&self) -> Count {
        match self.content {
            Content::Value { integer } => Count(integer.unwrap_or(0)),
            Content::Memory { memory, .. } => Count(memory.len as i128),
            _ => Count(0),
        }
    }

    /// The stream that owns the memory.
    pub(crate) fn stream(&self) -> Option<&'a Stream> {
        match self.content {
            Content::Memory { memory, .. } => memory.stream,
            _ => None,
        }
    }

    /// Where the value is, for the runtime.
    pub(crate) fn address(&mut self) -> *mut c_void {
        ptr::from_mut(&mut self.bytes).cast()
    }

    /// The address that the kernel gets.
    fn integer_address(&self) -> usize {
        let [a, b, c, d, e, f, g, h, ..] = self.bytes.0;
        u64::from_ne_bytes([a, b, c, d, e, f, g, h]) as usize
    }

    fn set_address(&mut self, address: *const c_void) {
        self.bytes.0[..8].copy_from_slice(&(address as usize as u64).to_ne_bytes());
    }

    /// An integer of `size` bytes, in which it fits.
    fn set_integer(&mut self, value: Count, size: u32) {
        let mut bytes = Bytes([0; 16]);
        bytes.0[..8].copy_from_slice(&(value.0 as u64).to_ne_bytes());
        *self = Slot { bytes, size: size as usize, content: Content::Value { integer: Some(value.0) } };
    }
}

/// Checks and launches; with nothing to do, it only checks.
///
/// `layouts` has an entry for each argument of the kernel that takes layouts, and in it a layout for each of its
/// operands or tensors, and one of the dimensions chosen of a tensor ([`Layout::contiguous_dims`]); `slots` has one for
/// each argument.
///
/// # Safety
/// The slots are values, and memory of elements, of the types of the kernel's parameters; [`Slot::FILLED_IN`] stands
/// where the kernel says that layouts or other arguments give the value. Chosen dimensions are some of that tensor's.
/// What the kernel has of promises ([`Kernel::promises`]) holds. `kernel` is one of `module`.
///
/// # Errors
/// Before anything is launched: memory shorter than kernel and layouts need, or of another device; a null pointer
/// that may not be null; layouts or arguments that do not go together; a geometry that device and kernel cannot do; a
/// target that the module was not compiled for. Otherwise what the runtime reports.
///
/// # Panics
/// If the number of slots or layouts is not that of the kernel, which a generated wrapper gets right.
pub unsafe fn launch(
    module: &Module,
    kernel: &'static Kernel,
    stream: &impl AsStream,
    config: LaunchConfig,
    layouts: &[&[&Layout]],
    slots: &mut [Slot<'_>],
) -> Result<()> {
    // SAFETY: as promised by the caller.
    unsafe { launch_on(module, kernel, &stream.stream_ref()?, config, layouts, slots) }
}

/// # Safety
/// As for [`launch`].
unsafe fn launch_on(
    module: &Module,
    kernel: &'static Kernel,
    stream: &StreamRef<'_>,
    config: LaunchConfig,
    layouts: &[&[&Layout]],
    slots: &mut [Slot<'_>],
) -> Result<()> {
    let checked = check(kernel, config, layouts, slots, stream)?;
    let Some(geometry) = checked else { return Ok(()) };
    let function = stream.device.get_or_load_func(kernel.name, module)?;
    let geometry = function.check(geometry, stream)?;

    // The lock is held until the launch is enqueued: the ring may not be reused before.
    let mut staging = None;
    for ((index, arg), operands) in kernel.layout_args().zip(layouts) {
        let words = arg.words(operands);
        if !words.is_empty() {
            let ring =
                staging.get_or_insert_with(|| stream.staging.lock().unwrap_or_else(PoisonError::into_inner));
            slots[index].set_address(ring.upload(&words, &stream.device, stream.raw)?);
        }
    }
    let order = Order::before(slots, stream)?;
    let mut params = [ptr::null_mut(); MAX_ARGS];
    for (param, slot) in params.iter_mut().zip(slots.iter_mut()) {
        *param = slot.address();
    }
    // SAFETY: types of the arguments are those of the kernel, as promised by the caller, and the signature was compared with
    // the code object's when that was built; the memory is as large as the signature says.
    unsafe { function.launch_raw(geometry, stream.raw, &mut params[..slots.len()])? };
    order.after(slots, stream)
}

/// Fills in what follows from layouts and other arguments, and checks everything that can be without a code object: the
/// geometry, or `None` if there is nothing to do.
pub(crate) fn check(
    kernel: &'static Kernel,
    config: LaunchConfig,
    layouts: &[&[&Layout]],
    slots: &mut [Slot<'_>],
    stream: &StreamRef<'_>,
) -> Result<Option<Resolved>> {
    assert_eq!(slots.len(), kernel.args.len(), "{}: one slot for each argument", kernel.name);
    let count = kernel.value_count();
    assert!(slots.len() <= MAX_ARGS && count <= MAX_VALUES, "{} takes too many arguments", kernel.name);
    let mut values = [Count::default(); MAX_VALUES];
    let values = &mut values[..count];
    for (value, slot) in values.iter_mut().zip(slots.iter()) {
        *value = slot.count();
    }
    kernel.complete(layouts, values)?;
    fill_in(kernel, layouts, slots, values)?;
    let resolved = Resolved::new(config, kernel.name, Some(kernel), values, true);
    if let Ok(Some(Resolved { grid, block, .. })) = resolved {
        for (value, n) in values[count - 6..].iter_mut().zip(grid.into_iter().chain(block)) {
            *value = Count(n.into());
        }
    }
    check_memory(kernel, layouts, slots, values, stream)?;
    let Some(geometry) = resolved? else { return Ok(None) };
    check_requirements(kernel, values)?;
    check_addresses(kernel, layouts, slots, values)?;
    Ok(Some(geometry))
}

/// Most values that a formula gets.
const MAX_VALUES: usize = MAX_ARGS + 32;

/// Numbers that follow from layouts; pointers are moved to the layouts' first elements.
fn fill_in(kernel: &Kernel, layouts: &[&[&Layout]], slots: &mut [Slot<'_>], values: &[Count]) -> Result<()> {
    for (index, arg) in kernel.args.iter().enumerate() {
        if kernel.is_filled_in(index) && !arg.ty.is_pointer() {
            slots[index].set_integer(values[index], arg.size);
        }
    }
    for (pointers, operands) in kernel.laid_out().zip(layouts) {
        let words: usize = operands.iter().map(|operand| 2 * operand.rank()).sum();
        if let Some(first) =
            operands.iter().max_by_key(|operand| operand.rank()).filter(|_| words > MAX_WORDS)
        {
            return Err(Error::BadLayout {
                shape: first.shape().to_vec(),
                strides: first.strides().to_vec(),
                offset: first.offset(),
                reason: format!("{} dimensions are too many", first.rank()),
            });
        }
        for (pointer, operand) in pointers.zip(*operands) {
            let slot = &mut slots[pointer];
            if let Content::Memory { memory, element } = slot.content {
                slot.set_address(memory.address.wrapping_byte_add(operand.offset().wrapping_mul(element)));
            }
        }
    }
    Ok(())
}

/// Whether all memory is of the stream's device and as long as layouts and lengths need.
fn check_memory(
    kernel: &Kernel,
    layouts: &[&[&Layout]],
    slots: &[Slot<'_>],
    values: &[Count],
    stream: &StreamRef<'_>,
) -> Result<()> {
    let mut offsets = [0; MAX_ARGS];
    let too_short = |index: usize, have, need, why| Error::BufferTooShort {
        kernel: kernel.name.to_owned(),
        arg: kernel.args[index].name.to_owned(),
        have,
        need,
        why,
    };
    for (pointers, operands) in kernel.laid_out().zip(layouts) {
        for (index, operand) in pointers.zip(*operands) {
            let Content::Memory { memory, .. } = slots[index].content else { continue };
            offsets[index] = operand.offset();
            let need = operand.required_len();
            if memory.len < need {
                let (shape, strides, offset) = (operand.shape(), operand.strides(), operand.offset());
                let why = format!("shape {shape:?}, strides {strides:?}, offset {offset}");
                return Err(too_short(index, memory.len, need as u128, why));
            }
        }
    }
    for (index, (arg, slot)) in kernel.args.iter().zip(slots).enumerate() {
        let Content::Memory { memory, .. } = slot.content else { continue };
        if let Some(len) = &arg.len {
            let need = (len.eval)(values).get();
            let have = memory.len.saturating_sub(offsets[index]);
            if (have as u128) < need {
                return Err(too_short(index, have, need, format!("`{}`", len.text)));
            }
        }
        if let Some(owner) = memory.stream.filter(|owner| *owner.device() != stream.device) {
            return Err(Error::WrongDevice {
                kernel: kernel.name.to_owned(),
                arg: arg.name.to_owned(),
                memory: owner.device().ordinal(),
                stream: stream.device.ordinal(),
            });
        }
    }
    Ok(())
}

/// Whether the arguments go together.
fn check_requirements(kernel: &Kernel, values: &[Count]) -> Result<()> {
    for condition in kernel.args.iter().flat_map(|arg| arg.requires) {
        if (condition.eval)(values) == 0 {
            let names = kernel.args.iter().map(|arg| arg.name).chain(kernel.derived.iter().copied());
            let named = names.zip(values).filter(|(name, _)| is_named(condition.text, name));
            let named: Vec<_> = named.map(|(name, value)| format!("{name} = {}", value.0)).collect();
            return Err(Error::Requirement {
                kernel: kernel.name.to_owned(),
                requirement: condition.text.to_owned(),
                values: named.join(", "),
            });
        }
    }
    Ok(())
}

/// Whether each pointer that must not be null is not null, or nothing is accessed through it, and whether its alignment is what
/// the kernel needs.
fn check_addresses(
    kernel: &Kernel,
    layouts: &[&[&Layout]],
    slots: &[Slot<'_>],
    values: &[Count],
) -> Result<()> {
    let mut empties = [false; MAX_ARGS];
    for (pointers, operands) in kernel.laid_out().zip(layouts) {
        for (index, operand) in pointers.zip(*operands) {
            empties[index] = operand.numel() == 0;
        }
    }
    for ((arg, slot), is_empty) in kernel.args.iter().zip(slots).zip(empties) {
        let (address, is_null) = match slot.content {
            Content::Null => (0, true),
            Content::Memory { memory, .. } => (slot.integer_address(), memory.address.is_null()),
            _ => continue,
        };
        let empty = is_empty || arg.len.is_some_and(|len| (len.eval)(values).get() == 0);
        if is_null && !arg.nullable && !empty {
            return Err(Error::NullArgument { kernel: kernel.name.to_owned(), arg: arg.name.to_owned() });
        }
        if !is_null && address % arg.align != 0 {
            return Err(Error::Misaligned {
                kernel: kernel.name.to_owned(),
                arg: arg.name.to_owned(),
                align: arg.align,
                by: address % arg.align,
            });
        }
    }
    Ok(())
}
