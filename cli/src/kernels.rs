//! `candle-amdgpu kernels`

use crate::names::{self, unknown};
use crate::output::{print, print_json, print_table, table};
use amdgpu_emulator::Gfx;
use anyhow::{Context, Result, bail};
use candle_amdgpu::kernel::{NVPTX, Object};
use candle_amdgpu::{CodeObject, Kernel, KernelInfo, kernels};
use clap::Args;
use serde::Serialize;
use std::collections::BTreeSet;

/// List the kernels of this build: arguments, registers, memory, code size, occupancy
///
/// Waves per SIMD is how many waves of the kernel, in workgroups of its own size, fit on one SIMD unit at once: the
/// minimum of what vector registers, LDS and the hardware's own limit allow, with registers and LDS rounded up to the
/// blocks that they are allocated in (LLVM's AMDGPU usage guide and AMDGPUBaseInfo: getVGPRAllocGranule,
/// getTotalNumVGPRs, getMaxWavesPerEU).
#[derive(Args)]
#[command(after_help = "\
Examples:
  candle-amdgpu kernels --family affine --gfx gfx1100
  candle-amdgpu kernels --dtype bf16 --json

Exit codes: 0 success; 2 wrong arguments.")]
pub struct Kernels {
    /// Only this family
    #[arg(long)]
    family: Option<String>,
    /// Only kernels that read or write elements of this type, such as f16
    #[arg(long)]
    dtype: Option<String>,
    /// Only this target, such as gfx1100
    #[arg(long, value_parser = names::target)]
    gfx: Option<Gfx>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Entry {
    family: &'static str,
    name: &'static str,
    gfx: &'static str,
    arguments: Vec<Argument>,
    vgprs: u32,
    agprs: u32,
    sgprs: u32,
    lds_bytes: u32,
    scratch_bytes: u32,
    vgpr_spills: u32,
    sgpr_spills: u32,
    code_bytes: u64,
    waves_per_simd: u32,
    wave_size: u32,
    workgroup: [u32; 3],
    max_workgroup_size: u32,
    items_per_lane: u32,
    file: &'static str,
    line: u32,
}

#[derive(Serialize)]
struct Argument {
    name: &'static str,
    #[serde(rename = "type")]
    ty: String,
    size: u32,
    nullable: bool,
}

/// Lanes of an NVIDIA GPU's wave.
const WARP: u32 = 32;

impl Kernels {
    pub fn run(self) -> Result<bool> {
        self.check()?;
        let entries = self.entries()?;
        if entries.is_empty() {
            bail!("no kernel of this build matches all of these filters");
        }
        if self.json {
            print_json(&entries)?;
            return Ok(true);
        }
        let header = [
            "kernel",
            "gfx",
            "arguments",
            "VGPRs",
            "SGPRs",
            "LDS",
            "scratch",
            "spills",
            "code",
            "waves/SIMD",
        ];
        let mut table = table(header, 3);
        for e in &entries {
            table.add_row([
                e.name.to_owned(),
                e.gfx.to_owned(),
                e.arguments.iter().map(|a| format!("{}: {}", a.name, a.ty)).collect::<Vec<_>>().join(", "),
                e.vgprs.to_string(),
                e.sgprs.to_string(),
                e.lds_bytes.to_string(),
                e.scratch_bytes.to_string(),
                (e.vgpr_spills + e.sgpr_spills).to_string(),
                e.code_bytes.to_string(),
                e.waves_per_simd.to_string(),
            ]);
        }
        print_table(&table)?;
        let count = |of: fn(&Entry) -> &'static str| entries.iter().map(of).collect::<BTreeSet<_>>().len();
        let kernels = count(|e| e.name);
        let s = if kernels == 1 { "" } else { "s" };
        print(&format!("\n{kernels} kernel{s}, targets: {}", count(|e| e.gfx)))?;
        Ok(true)
    }

    /// Whether each filter by itself matches something.
    fn check(&self) -> Result<()> {
        if let Some(family) = &self.family {
            names::family(family)?;
        }
        if let Some(dtype) = &self.dtype {
            let all = kernels::MODULES.iter().flat_map(|module| module.kernels());
            let types: BTreeSet<_> = all.flat_map(elements).collect();
            if !types.contains(&**dtype) {
                bail!(unknown("type", dtype, &types.into_iter().collect::<Vec<_>>()));
            }
        }
        if let Some(gfx) = self.gfx {
            for module in kernels::MODULES {
                module.object_for(gfx.name())?;
            }
        }
        Ok(())
    }

    fn entries(&self) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for module in kernels::MODULES {
            if self.family.as_deref().is_some_and(|family| family != module.name()) {
                continue;
            }
            let objects = module
                .objects()
                .iter()
                .filter(|object| {
                    self.gfx
                        .is_none_or(|gfx| module.object(gfx.name()).is_some_and(|of| of.gfx == object.gfx))
                })
                .map(|object| Ok((object, parse(module.name(), object)?)))
                .collect::<Result<Vec<_>>>()?;
            for kernel in module.kernels().iter().filter(|kernel| self.has_dtype(kernel)) {
                for (object, code) in &objects {
                    let Some(code) = code else {
                        let info = KernelInfo::of_text(
                            kernel.name.to_owned(),
                            Vec::new(),
                            kernel.geometry.max_workgroup_size,
                            WARP,
                        );
                        entries.push(Entry::of(kernel, object.gfx, 0, &info));
                        continue;
                    };
                    let info = code.kernel(kernel.name).with_context(|| {
                        format!(
                            "the code object of {} for {} lacks {}",
                            module.name(),
                            object.gfx,
                            kernel.name
                        )
                    })?;
                    let gfx = self.gfx.unwrap_or(code.gfx());
                    let (lanes, lds) =
                        (kernel.geometry.workgroup.iter().product(), kernel.geometry.lds_bytes);
                    let waves = amdhip64::occupancy(gfx, info, lanes, lds).waves_per_simd;
                    entries.push(Entry::of(kernel, gfx.name(), waves, info));
                }
            }
        }
        Ok(entries)
    }

    fn has_dtype(&self, kernel: &'static Kernel) -> bool {
        self.dtype.as_deref().is_none_or(|dtype| elements(kernel).any(|element| element == dtype))
    }
}

/// The types of the elements that a kernel reads or writes.
fn elements(kernel: &'static Kernel) -> impl Iterator<Item = &'static str> {
    let pointers = kernel.args.iter().filter(|arg| arg.ty.is_pointer() && !arg.takes_layouts());
    pointers.map(|arg| arg.ty.element())
}

/// The code object; PTX has none before a driver compiles it, nor registers.
fn parse(family: &str, object: &Object) -> Result<Option<CodeObject>> {
    if object.gfx == NVPTX {
        return Ok(None);
    }
    CodeObject::parse(object.bytes)
        .map(Some)
        .with_context(|| format!("the code object of {family} for {} cannot be read", object.gfx))
}

impl Entry {
    /// Of a kernel on `gfx`, whose instruction set that of its code object is.
    fn of(kernel: &'static Kernel, gfx: &'static str, waves_per_simd: u32, info: &KernelInfo) -> Entry {
        let geometry = &kernel.geometry;
        Entry {
            family: kernel.family,
            name: kernel.name,
            gfx,
            arguments: kernel
                .args
                .iter()
                .map(|arg| Argument {
                    name: arg.name,
                    ty: arg.ty.to_string(),
                    size: arg.size,
                    nullable: arg.nullable,
                })
                .collect(),
            vgprs: info.vgprs,
            agprs: info.agprs,
            sgprs: info.sgprs,
            lds_bytes: info.lds_size + geometry.lds_bytes,
            scratch_bytes: info.scratch_size,
            vgpr_spills: info.vgpr_spills,
            sgpr_spills: info.sgpr_spills,
            code_bytes: info.code_bytes,
            waves_per_simd,
            wave_size: info.wave_size,
            workgroup: geometry.workgroup,
            max_workgroup_size: info.max_workgroup_size,
            items_per_lane: geometry.items_per_lane,
            file: kernel.file,
            line: kernel.line,
        }
    }
}
