//! Launches by the generated wrappers, which know what a kernel states of its arguments.

use super::enqueue::Admitted;
use super::extents::Extents;
use super::geometry::{Known, LaunchGeometry};
use super::slot::{MAX_ARGS, MAX_VALUES, Slot, Values};
use crate::kernel::{Kernel, Module, is_named};
use crate::stream::{AsStream, StreamRef};
use crate::{Count, Error, LaunchConfig, Layout, Result};
use std::sync::PoisonError;

/// Checks and launches; with nothing to do, it only checks.
///
/// `layouts` has an entry for each argument of the kernel that takes layouts, and in it a layout for each of its
/// operands or tensors, and one of the dimensions chosen of a tensor ([`Layout::contiguous_dims`]); `slots` has one for
/// each argument.
///
/// # Safety
/// The slots are values, and memory of elements, of the types of the kernel's parameters; [`Slot::FILLED_IN`] stands
/// where the kernel says that layouts or other arguments give the value. Chosen dimensions belong to that tensor.
/// The kernel's promises ([`Kernel::promises`]) hold. `kernel` is one of `module`.
///
/// # Errors
/// Before anything is launched: memory shorter than kernel and layouts need, or of another device; a null pointer
/// that must not be null; layouts or arguments that contradict each other; a geometry that the device or the kernel does
/// not support; a target that the module was not compiled for. Otherwise what the runtime reports.
///
/// # Panics
/// If the number of slots or layouts is not that of the kernel; a generated wrapper gets it right.
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
    let Some(geometry) = resolve_on(kernel, config, layouts, slots, stream)? else { return Ok(()) };
    let function = stream.device.get_or_load_func(kernel.name, module)?;
    let launch = Admitted::new(&function, stream, geometry)?;

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
    // SAFETY: types of the arguments are those of the kernel, as promised by the caller, and the signature was compared with
    // the code object's when that was built; the memory is as large as the signature says.
    unsafe { launch.enqueue(slots) }
}

/// Fills in what follows from layouts and other arguments, and checks everything that can be without a code object: the
/// geometry, or `None` if there is nothing to do.
///
/// # Errors
/// Those of [`launch`] that come before the module is loaded.
///
/// # Panics
/// As [`launch`].
pub fn resolve(
    kernel: &'static Kernel,
    config: LaunchConfig,
    layouts: &[&[&Layout]],
    slots: &mut [Slot<'_>],
    stream: &impl AsStream,
) -> Result<Option<LaunchGeometry>> {
    resolve_on(kernel, config, layouts, slots, &stream.stream_ref()?)
}

fn resolve_on(
    kernel: &'static Kernel,
    config: LaunchConfig,
    layouts: &[&[&Layout]],
    slots: &mut [Slot<'_>],
    stream: &StreamRef<'_>,
) -> Result<Option<LaunchGeometry>> {
    assert_eq!(slots.len(), kernel.args.len(), "{}: one slot for each argument", kernel.name);
    let count = kernel.value_count();
    assert!(slots.len() <= MAX_ARGS && count <= MAX_VALUES, "{} takes too many arguments", kernel.name);
    let mut values = Values::new(slots, count);
    kernel.complete(layouts, &mut values)?;
    let extents = Extents::fill_in(kernel, layouts, slots, &values)?;
    let wave = stream.device.properties().wave_size;
    let geometry = LaunchGeometry::new(config, kernel.name, Some(kernel), Known::Lengths(&values), wave);
    if let Ok(Some(LaunchGeometry { size, .. })) = geometry {
        for (value, n) in values[count - 6..].iter_mut().zip(size.grid.into_iter().chain(size.block)) {
            *value = Count(n.into());
        }
    }
    let accessed = extents.check_memory(slots, &values, &stream.device)?;
    let Some(geometry) = geometry? else { return Ok(None) };
    check_requirements(kernel, &values)?;
    accessed.check_addresses(slots)?;
    Ok(Some(geometry))
}

/// Whether the arguments are consistent.
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
