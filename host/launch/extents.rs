//! Which memory a typed launch accesses: what layouts and the kernel's formulas say of each pointer.

use super::slot::{Content, MAX_ARGS, Slot};
use crate::kernel::Kernel;
use crate::staging::MAX_WORDS;
use crate::{Count, Device, Error, Layout, Result};

/// The layout of each pointer that has one.
pub(super) struct Extents<'a> {
    kernel: &'static Kernel,
    layouts: [Option<&'a Layout>; MAX_ARGS],
}

impl<'a> Extents<'a> {
    /// Fills in the numbers that follow from layouts, and moves pointers to the layouts' first elements.
    pub(super) fn fill_in(
        kernel: &'static Kernel,
        layouts: &[&[&'a Layout]],
        slots: &mut [Slot<'_>],
        values: &[Count],
    ) -> Result<Extents<'a>> {
        for (index, arg) in kernel.args.iter().enumerate() {
            if kernel.is_filled_in(index) && !arg.ty.is_pointer() {
                slots[index].set_integer(values[index], arg.size);
            }
        }
        let mut extents = Extents { kernel, layouts: [None; MAX_ARGS] };
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
            for (pointer, &operand) in pointers.zip(*operands) {
                extents.layouts[pointer] = Some(operand);
                let slot = &mut slots[pointer];
                if let Content::Memory { memory, element } = slot.content {
                    slot.set_address(
                        memory.address.wrapping_byte_add(operand.offset().wrapping_mul(element)),
                    );
                }
            }
        }
        Ok(extents)
    }

    /// Whether all memory is of the device and as long as layouts and lengths need.
    pub(super) fn check_memory(
        &self,
        slots: &[Slot<'_>],
        values: &[Count],
        device: &Device,
    ) -> Result<Accessed> {
        let kernel = self.kernel;
        let mut accessed = Accessed { kernel, is_any: [true; MAX_ARGS] };
        for (index, (arg, slot)) in kernel.args.iter().zip(slots).enumerate() {
            let layout = self.layouts[index];
            let formula = arg.len.map(|len| (len.eval)(values).get());
            accessed.is_any[index] = formula != Some(0) && layout.is_none_or(|layout| layout.numel() > 0);
            let Content::Memory { memory, .. } = slot.content else { continue };
            let too_short = |have, need, why| Error::BufferTooShort {
                kernel: kernel.name.to_owned(),
                arg: arg.name.to_owned(),
                have,
                need,
                why,
            };
            if let Some(layout) = layout.filter(|layout| memory.len < layout.required_len()) {
                let (shape, strides, offset) = (layout.shape(), layout.strides(), layout.offset());
                let why = format!("shape {shape:?}, strides {strides:?}, offset {offset}");
                return Err(too_short(memory.len, layout.required_len() as u128, why));
            }
            let have = memory.len.saturating_sub(layout.map_or(0, Layout::offset));
            if let (Some(need), Some(len)) = (formula, arg.len)
                && (have as u128) < need
            {
                return Err(too_short(have, need, format!("`{}`", len.text)));
            }
            if let Some(owner) = memory.stream.filter(|owner| owner.device() != device) {
                return Err(Error::WrongDevice {
                    kernel: kernel.name.to_owned(),
                    arg: arg.name.to_owned(),
                    memory: owner.device().ordinal(),
                    stream: device.ordinal(),
                });
            }
        }
        Ok(accessed)
    }
}

/// Whether anything is accessed through each pointer.
pub(super) struct Accessed {
    kernel: &'static Kernel,
    is_any: [bool; MAX_ARGS],
}

impl Accessed {
    /// Whether each pointer that must not be null is not null, or nothing is accessed through it, and whether its alignment is
    /// what the kernel needs.
    pub(super) fn check_addresses(&self, slots: &[Slot<'_>]) -> Result<()> {
        for ((arg, slot), is_accessed) in self.kernel.args.iter().zip(slots).zip(self.is_any) {
            let (address, is_null) = match slot.content {
                Content::Null => (0, true),
                Content::Memory { memory, .. } => (slot.integer_address(), memory.address.is_null()),
                _ => continue,
            };
            let kernel = || self.kernel.name.to_owned();
            if is_null && !arg.nullable && is_accessed {
                return Err(Error::NullArgument { kernel: kernel(), arg: arg.name.to_owned() });
            }
            if !is_null && address % arg.align != 0 {
                return Err(Error::Misaligned {
                    kernel: kernel(),
                    arg: arg.name.to_owned(),
                    align: arg.align,
                    by: address % arg.align,
                });
            }
        }
        Ok(())
    }
}
