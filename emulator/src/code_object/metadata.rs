//! The note with each kernel's arguments and resources.

use serde::Deserialize;

use super::elf::{Layout, Symbols};
use super::{ArgKind, HiddenArg, KernelArg, KernelDescriptor, KernelInfo, ObjectError};
use crate::bundle;
use crate::gfx::CodeTarget;

/// Bytes of arguments that a kernel may have.
const MAX_KERNARG: u64 = 1 << 16;

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(rename = "amdhsa.kernels", default, borrow)]
    kernels: Vec<KernelMetadata<'a>>,
    #[serde(rename = "amdhsa.target", default)]
    target: Option<&'a str>,
}

#[derive(Deserialize)]
struct KernelMetadata<'a> {
    #[serde(rename = ".name")]
    name: &'a str,
    #[serde(rename = ".symbol")]
    symbol: &'a str,
    #[serde(rename = ".args", default, borrow)]
    args: Vec<ArgMetadata<'a>>,
    #[serde(rename = ".kernarg_segment_size", default)]
    kernarg_size: u64,
    #[serde(rename = ".group_segment_fixed_size", default)]
    lds_size: u64,
    #[serde(rename = ".private_segment_fixed_size", default)]
    scratch_size: u64,
    #[serde(rename = ".uses_dynamic_stack", default)]
    dynamic_stack: bool,
    #[serde(rename = ".vgpr_count", default)]
    vgprs: u32,
    #[serde(rename = ".agpr_count", default)]
    agprs: u32,
    #[serde(rename = ".sgpr_count", default)]
    sgprs: u32,
    #[serde(rename = ".vgpr_spill_count", default)]
    vgpr_spills: u32,
    #[serde(rename = ".sgpr_spill_count", default)]
    sgpr_spills: u32,
    #[serde(rename = ".wavefront_size")]
    wave_size: u32,
    #[serde(rename = ".max_flat_workgroup_size", default = "default_workgroup_size")]
    max_workgroup_size: u32,
}

fn default_workgroup_size() -> u32 {
    1024
}

#[derive(Deserialize)]
struct ArgMetadata<'a> {
    #[serde(rename = ".name", default)]
    name: Option<&'a str>,
    #[serde(rename = ".offset")]
    offset: u64,
    #[serde(rename = ".size")]
    size: u64,
    #[serde(rename = ".value_kind")]
    kind: &'a str,
}

/// Where kernels' descriptors are found.
pub(super) struct Place<'a> {
    pub(super) file: &'a [u8],
    pub(super) symbols: &'a Symbols,
    pub(super) layout: &'a Layout,
}

pub(super) fn parse_metadata(
    note: &[u8],
    gfx: CodeTarget,
    place: &Place<'_>,
) -> Result<Vec<KernelInfo>, ObjectError> {
    let metadata: Metadata<'_> =
        rmp_serde::from_slice(note).map_err(|error| ObjectError::Metadata(error.to_string()))?;
    if let Some(target) = &metadata.target {
        let named = CodeTarget::from_name(bundle::target_of(target).unwrap_or(target))?;
        if named != gfx {
            return Err(ObjectError::Metadata(format!("it is for {named}, the ELF header for {gfx}")));
        }
    }
    let kernels = metadata.kernels.into_iter().map(|kernel| kernel_info(&kernel, place));
    let mut kernels = kernels.collect::<Result<Vec<_>, _>>()?;
    kernels.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(kernels)
}

fn kernel_info(kernel: &KernelMetadata<'_>, place: &Place<'_>) -> Result<KernelInfo, ObjectError> {
    let fail = |problem: String| ObjectError::Kernel { kernel: kernel.name.to_owned(), problem };
    let descriptor = place
        .symbols
        .get(place.file, kernel.symbol)
        .and_then(|symbol| {
            let bytes: [u8; KernelDescriptor::SIZE] = place.layout.read(place.file, symbol.address)?;
            KernelDescriptor::parse(&bytes, symbol.address)
        })
        .ok_or_else(|| fail(format!("no descriptor `{}` of 64 bytes in the image", kernel.symbol)))?;
    if descriptor.entry >= place.layout.size || descriptor.entry % 4 != 0 {
        return Err(fail(format!("the entry address {:#x} is not in the image", descriptor.entry)));
    }
    if ![32, 64].contains(&kernel.wave_size) {
        return Err(fail(format!("a wave of {} lanes", kernel.wave_size)));
    }
    if !(1..=1024).contains(&kernel.max_workgroup_size) {
        return Err(fail(format!("workgroups of up to {} work-items", kernel.max_workgroup_size)));
    }
    let within = |what: &str, value: u64, limit: u64| {
        u32::try_from(value)
            .ok()
            .filter(|_| value <= limit)
            .ok_or_else(|| fail(format!("{value} bytes of {what}; at most {limit} are possible")))
    };
    let kernarg_size = within("arguments", kernel.kernarg_size, MAX_KERNARG)?;
    let lds_size = within("LDS", kernel.lds_size, 1 << 16)?;
    let scratch_size = within("scratch", kernel.scratch_size, 1 << 17)?;
    let mut args = Vec::with_capacity(kernel.args.len().min(256));
    for arg in &kernel.args {
        if arg.offset.checked_add(arg.size).is_none_or(|end| end > u64::from(kernarg_size)) {
            return Err(fail(format!(
                "an argument of {} bytes at offset {} lies outside of the {kernarg_size} bytes of arguments",
                arg.size, arg.offset
            )));
        }
        args.push(KernelArg {
            name: arg.name.map(str::to_owned),
            offset: arg.offset as u32,
            size: arg.size as u32,
            kind: arg_kind(arg.kind),
        });
    }
    let function = kernel.symbol.strip_suffix(".kd").and_then(|name| place.symbols.get(place.file, name));
    Ok(KernelInfo {
        args,
        kernarg_size,
        lds_size,
        scratch_size,
        dynamic_stack: kernel.dynamic_stack,
        vgprs: kernel.vgprs,
        agprs: kernel.agprs,
        sgprs: kernel.sgprs,
        vgpr_spills: kernel.vgpr_spills,
        sgpr_spills: kernel.sgpr_spills,
        wave_size: kernel.wave_size,
        max_workgroup_size: kernel.max_workgroup_size,
        code_bytes: function.map_or(0, |symbol| symbol.size),
        descriptor,
        name: kernel.name.to_owned(),
    })
}

fn arg_kind(kind: &str) -> ArgKind {
    let Some(hidden) = kind.strip_prefix("hidden_") else {
        return match kind {
            "by_value" => ArgKind::ByValue,
            "global_buffer" => ArgKind::GlobalBuffer,
            "dynamic_shared_pointer" => ArgKind::DynamicShared,
            _ => ArgKind::Opaque,
        };
    };
    let axis = match hidden.as_bytes() {
        [.., b'_', axis @ b'x'..=b'z'] => axis - b'x',
        _ => 0,
    };
    ArgKind::Hidden(match hidden.trim_end_matches(['x', 'y', 'z']) {
        "block_count_" => HiddenArg::BlockCount(axis),
        "group_size_" => HiddenArg::GroupSize(axis),
        "remainder_" => HiddenArg::Remainder(axis),
        "global_offset_" => HiddenArg::GlobalOffset(axis),
        "grid_dims" => HiddenArg::GridDims,
        "dynamic_lds_size" => HiddenArg::DynamicLdsSize,
        "private_base" => HiddenArg::PrivateBase,
        "shared_base" => HiddenArg::SharedBase,
        "printf_buffer" => HiddenArg::PrintfBuffer,
        "hostcall_buffer" => HiddenArg::HostcallBuffer,
        "default_queue" => HiddenArg::DefaultQueue,
        "completion_action" => HiddenArg::CompletionAction,
        "multigrid_sync_arg" => HiddenArg::MultigridSyncArg,
        "heap_v1" => HiddenArg::HeapV1,
        "queue_ptr" => HiddenArg::QueuePtr,
        "none" => HiddenArg::None,
        _ => HiddenArg::Unknown,
    })
}
