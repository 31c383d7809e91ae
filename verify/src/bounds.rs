//! Whether the bounds that kernels state are exactly what their calls access: in each call that a family draws, no buffer
//! can be one element shorter.

use super::launch::{config, slot_of};
use super::{Call, Draw, Family, Input, Options};
use amdgpu_emulator::Geometry;
use candle_amdgpu::Memory;
use candle_amdgpu::generated::Slot;
use candle_amdgpu::generated::{LaunchGeometry, resolve};
use candle_amdgpu::kernel::Kernel;
use candle_amdgpu::{Error, LaunchConfig, Layout, Result, Stream};
use std::cell::RefCell;
use std::ptr;

/// Shortens each buffer of random calls by one element, and expects an error before the launch. Memory under a promise of
/// the kernel is left out, since no check knows how long it must be.
///
/// Nothing is launched, and no device memory is used.
///
/// # Errors
/// What is wrong with the smallest call found: that it is refused as it is, that a shorter buffer is not, or that no call
/// has a buffer for some parameter.
pub fn check_bounds(
    family: &dyn Family,
    kernel: &'static Kernel,
    stream: &Stream,
    options: Options,
) -> Result<(), String> {
    let shortened = RefCell::new(vec![false; kernel.args.len()]);
    let case = |draw: &Draw| -> Result<(), String> {
        let call = family.call(kernel, draw).ok_or_else(|| format!("no model of {}", kernel.name))?;
        let Some(LaunchGeometry { size: Geometry { grid, block, dynamic_lds }, rest, .. }) =
            check(&call, config(&call), None, stream).map_err(|error| format!("{call}: {error}"))?
        else {
            return Ok(());
        };
        // The same work, whatever the lengths are.
        let same = match rest {
            Some(rest) => LaunchConfig::Rows { grid: [grid[0] * block[2] + rest.rows, 1, 1] },
            None => LaunchConfig::explicit(grid, block, dynamic_lds),
        };
        for (index, (arg, input)) in kernel.args.iter().zip(&call.inputs).enumerate() {
            let Input::Memory(operand) = input else { continue };
            if operand.data.is_empty() || arg.promise.is_some() {
                continue;
            }
            shortened.borrow_mut()[index] = true;
            match check(&call, same, Some(index), stream) {
                Err(Error::BufferTooShort { arg: short, .. }) if short == arg.name => {}
                // How many rows there are follows from the length: others than the grid has, or none.
                Err(Error::GridIsNotRows { .. } | Error::BufferTooShort { .. }) => {}
                // Or a part of one, where rows share workgroups and the launch of the rest is not among the grid's.
                Err(Error::Requirement { .. }) if rest.is_some() && arg.row_of > 0 => {}
                // Less than a row means no rows: there is nothing to do.
                Ok(None) if operand.data.len() == 1 || kernel.geometry.rows.is_some() => {}
                Err(error) => return Err(format!("{call}: `{}` one shorter: {error}", arg.name)),
                Ok(_) => {
                    let len = operand.data.len() - 1;
                    return Err(format!("{call}: `{}` may have {len} elements", arg.name));
                }
            }
        }
        Ok(())
    };
    let fixed = if options.fixed { Draw::fixed(0) } else { Vec::new() };
    let fixed = fixed.iter().find_map(|draw| case(draw).err());
    if let Some(failure) = fixed.or_else(|| super::engine::random(&case, options)) {
        return Err(failure);
    }
    let never = kernel.args.iter().zip(shortened.into_inner()).find(|(arg, shortened)| {
        arg.ty.is_pointer() && !arg.takes_layouts() && arg.promise.is_none() && !shortened
    });
    never.map_or(Ok(()), |(arg, _)| Err(format!("{}: no call has memory for `{}`", kernel.name, arg.name)))
}

/// What a launch of the call checks, with the memory of the argument `shorter` one element shorter.
fn check(
    call: &Call,
    config: LaunchConfig,
    shorter: Option<usize>,
    stream: &Stream,
) -> Result<Option<LaunchGeometry>> {
    /// Where all memory begins, as far as the checks look.
    const BASE: usize = 1 << 20;
    let slot = |(index, input): (usize, &Input)| -> Slot<'static> {
        slot_of(input, |operand| {
            let address = BASE + operand.shift * operand.data.dtype().size();
            let len = operand.data.len() - usize::from(shorter == Some(index));
            // SAFETY: nothing is launched, so that nothing is ever accessed there.
            Some(unsafe { Memory::new(ptr::without_provenance_mut(address), len, None) })
        })
    };
    let mut slots: Vec<Slot<'_>> = call.inputs.iter().enumerate().map(slot).collect();
    let layouts: Vec<Vec<&Layout>> = call.layouts.iter().map(|layouts| layouts.iter().collect()).collect();
    let layouts: Vec<&[&Layout]> = layouts.iter().map(Vec::as_slice).collect();
    resolve(call.kernel, config, &layouts, &mut slots, stream)
}
