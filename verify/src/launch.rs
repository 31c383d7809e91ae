//! Runs a call on a device, with guard zones around its memory.

use super::compare::compare;
use super::{Call, Expected, Family, Grid, Input, Miss, Operand, Tolerance};
use crate::reference::Array;
use candle_amdgpu::Memory;
use candle_amdgpu::generated::{self, ArgType, Slot};
use candle_amdgpu::{DeviceBuffer, LaunchConfig, Layout, Result, Stream};
use std::sync::{PoisonError, RwLock};

/// Bytes in front of and behind each operand that must not change.
const GUARD: usize = 256;
/// What they hold.
const PATTERN: u8 = 0xa5;

/// What a call did.
pub(super) enum Ran {
    /// Everything is right.
    Right {
        /// Elements compared.
        elements: u64,
        /// The largest distance in ulp.
        ulps: u64,
    },
    /// Something is wrong.
    Wrong(Miss),
}

/// An error that a kernel records goes to the next synchronisation, so no other call may run meanwhile.
static FAULTY: RwLock<()> = RwLock::new(());

/// Launches and compares.
pub(super) fn run(call: &Call, expected: &[Expected], family: &dyn Family, stream: &Stream) -> Result<Ran> {
    if !family.is_faulty(call) {
        let _others_too = FAULTY.read().unwrap_or_else(PoisonError::into_inner);
        return launch(call, expected, family, stream, false);
    }
    let _alone = FAULTY.write().unwrap_or_else(PoisonError::into_inner);
    launch(call, expected, family, stream, true)
}

fn launch(
    call: &Call,
    expected: &[Expected],
    family: &dyn Family,
    stream: &Stream,
    faulty: bool,
) -> Result<Ran> {
    let buffers: Vec<Option<Guarded>> = call
        .inputs
        .iter()
        .zip(call.kernel.args)
        .map(|(input, arg)| match input {
            Input::Memory(operand) => {
                let written = matches!(arg.ty, ArgType::Pointer { mutable: true, .. });
                Guarded::upload(operand, written, stream).map(Some)
            }
            _ => Ok(None),
        })
        .collect::<Result<_>>()?;
    let mut slots: Vec<Slot<'_>> =
        call.inputs.iter().zip(&buffers).map(|(input, b)| slot(input, b)).collect();
    let layouts: Vec<Vec<&Layout>> = call.layouts.iter().map(|layouts| layouts.iter().collect()).collect();
    let layouts: Vec<&[&Layout]> = layouts.iter().map(Vec::as_slice).collect();
    // SAFETY: a call has an input of each parameter's type, and those of a family keep what its kernels are promised.
    unsafe { generated::launch(family.module(), call.kernel, stream, config(call), &layouts, &mut slots)? };
    if faulty {
        let what = match stream.synchronize() {
            Err(error) if family.is_fault(call, &error) => None,
            Err(error) => Some(error.to_string()),
            Ok(()) => Some("the error in its data is not reported".to_owned()),
        };
        if let Some(what) = what {
            return Ok(Ran::Wrong(Miss { call: call.to_string(), what }));
        }
    }

    let mut elements = 0;
    let mut ulps = 0;
    for (arg, (input, buffer)) in call.inputs.iter().zip(&buffers).enumerate() {
        let (Input::Memory(before), Some(buffer)) = (input, buffer) else { continue };
        let got = match buffer.download(call, arg, before)? {
            Ok(got) => got,
            Err(miss) => return Ok(Ran::Wrong(miss)),
        };
        let (data, tolerance) = match expected.iter().find(|expected| expected.arg == arg) {
            Some(expected) => (&expected.data, expected.tolerance),
            None => (&before.data, Tolerance::Bits),
        };
        match compare(call, arg, &got, data, tolerance) {
            Ok(distance) => ulps = ulps.max(distance),
            Err(miss) => return Ok(Ran::Wrong(miss)),
        }
        elements += data.len() as u64;
    }
    Ok(Ran::Right { elements, ulps })
}

fn slot<'a>(input: &Input, buffer: &'a Option<Guarded>) -> Slot<'a> {
    slot_of(input, |operand| buffer.as_ref().map(|buffer| buffer.memory(operand)))
}

/// The argument that an input is, with the memory that `memory` gives for an operand.
pub(super) fn slot_of<'a>(input: &Input, memory: impl FnOnce(&Operand) -> Option<Memory<'a>>) -> Slot<'a> {
    match input {
        Input::Value(value) => Slot::bytes(&value.bits().to_le_bytes()[..value.dtype().size()], {
            (!value.dtype().is_float()).then(|| value.to_int())
        }),
        Input::Memory(operand) => match memory(operand) {
            Some(memory) => Slot::memory(memory, operand.data.dtype().size()),
            None => Slot::NULL,
        },
        Input::Layout => Slot::FILLED_IN,
        Input::Null => Slot::NULL,
    }
}

pub(super) fn config(call: &Call) -> LaunchConfig {
    match call.grid {
        Grid::Own => LaunchConfig::auto(),
        Grid::Candle => {
            let items = call.kernel.geometry.items.map_or(0, |items| (items.eval)(&call.counts()).get());
            LaunchConfig::for_num_elems(u32::try_from(items).unwrap_or(u32::MAX))
        }
        Grid::Odd { workgroups, lanes } => LaunchConfig::explicit([workgroups, 1, 1], [lanes, 1, 1], 0),
        Grid::Explicit(config) => config,
    }
}

/// Device memory between two guard zones.
struct Guarded {
    buffer: DeviceBuffer<u8>,
    /// Where the operand begins.
    start: usize,
}

impl Guarded {
    /// Memory that is `written` has a zone behind it that must not change; else it ends with its last element, so that the
    /// emulator reports a read beyond.
    fn upload(operand: &Operand, written: bool, stream: &Stream) -> Result<Guarded> {
        let start = GUARD + operand.shift * operand.data.dtype().size();
        let data = operand.data.bytes();
        let mut bytes = vec![PATTERN; start + data.len() + if written { GUARD } else { 0 }];
        bytes[start..start + data.len()].copy_from_slice(data);
        Ok(Guarded { buffer: DeviceBuffer::from_slice(stream, &bytes)?, start })
    }

    fn memory(&self, operand: &Operand) -> Memory<'_> {
        let address = self.buffer.as_ptr().wrapping_add(self.start).cast_mut().cast();
        // SAFETY: the operand's elements lie there; the buffer lives until the results have been read.
        unsafe { Memory::new(address, operand.data.len(), Some(self.buffer.stream())) }
    }

    /// The operand's elements, if the guard zones are as they were.
    fn download(&self, call: &Call, arg: usize, operand: &Operand) -> Result<Result<Array, Miss>> {
        let bytes = self.buffer.to_vec()?;
        let end = self.start + operand.data.bytes().len();
        let broken = |i: &usize| bytes[*i] != PATTERN;
        if let Some(at) = (0..self.start).rev().find(broken).or_else(|| (end..bytes.len()).find(broken)) {
            let bytes = |n: usize| format!("{n} {}", if n == 1 { "byte" } else { "bytes" });
            let distance = if at < self.start {
                format!("{} before its first element", bytes(self.start - at))
            } else {
                format!("{} after its last element", bytes(at - end + 1))
            };
            let what = format!("`{}` is written out of range, {distance}", call.kernel.args[arg].name);
            return Ok(Err(Miss { call: call.to_string(), what }));
        }
        Ok(Ok(Array::from_bytes(operand.data.dtype(), bytes[self.start..end].to_vec())))
    }
}
