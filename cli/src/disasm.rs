//! `candle-amdgpu disasm`

use crate::launch_args::read_object;
use crate::names;
use crate::output::print;
use crate::stated::Stated;
use amdgpu_emulator::{Gfx, decode};
use amdhip64::DEFAULT_TARGETS;
use anyhow::{Context, Result, ensure};
use candle_amdgpu::kernel::Object;
use candle_amdgpu::{CodeObject, Device, Module};
use clap::Args;
use std::path::{Path, PathBuf};

/// Print the instructions of a kernel, as LLVM spells them
#[derive(Args)]
#[command(after_help = "\
Example:
  candle-amdgpu disasm affine_f32 --gfx gfx1100

Exit codes: 0 success; 2 wrong arguments.")]
pub struct Disasm {
    /// The kernel
    kernel: String,
    /// For this target [default: that of the first device in `candle-amdgpu devices` which has the kernels]
    #[arg(long, value_parser = names::target)]
    gfx: Option<Gfx>,
    /// Take the kernel from this file: a code object, offload bundles as `hipcc --genco` writes them, compressed or not,
    /// or a program or library with such bundles
    #[arg(long, value_name = "FILE")]
    object: Option<PathBuf>,
}

impl Disasm {
    pub fn run(self) -> Result<bool> {
        let (code, gfx) = match &self.object {
            Some(path) => self.of_file(path)?,
            None => self.of_this_build()?,
        };
        let info = code.kernel(&self.kernel).with_context(|| {
            let names: Vec<_> = code.kernels().iter().map(|kernel| &*kernel.name).collect();
            names::unknown_among("kernel", &self.kernel, &names, &format!(" The file has {}", names.len()))
        })?;
        let stated = Stated::of(&code, &self.kernel)?;
        let place = stated.map_or(String::new(), |stated| format!(" ({}:{})", stated.0.file, stated.0.line));
        print(&format!(
            "{} for {gfx}: {} bytes, {} VGPRs, {} SGPRs{place}",
            self.kernel, info.code_bytes, info.vgprs, info.sgprs
        ))?;
        let start = info.descriptor.entry as usize;
        let mut bytes = code
            .image()
            .get(start..start + info.code_bytes as usize)
            .context("the kernel's code lies outside of its code object")?;
        let mut text = String::new();
        while !bytes.is_empty() {
            let pc = info.code_bytes - bytes.len() as u64;
            let inst = decode::decode_wave(code.gfx(), info.wave_size, bytes)?;
            text += &format!("{pc:6x}  {}\n", decode::print(code.gfx(), &inst, Some(pc)));
            bytes = &bytes[usize::from(inst.size)..];
        }
        print(text.trim_end())?;
        Ok(true)
    }

    fn of_file(&self, path: &Path) -> Result<(CodeObject, Gfx)> {
        let (code, gfx) = read_object(path, self.gfx, &self.kernel)?;
        ensure!(code.gfx().isa() == gfx.isa(), "{} is for {}, not for {gfx}", path.display(), code.gfx());
        Ok((code, gfx))
    }

    fn of_this_build(&self) -> Result<(CodeObject, Gfx)> {
        let module = names::family(names::kernel(&self.kernel)?.family)?;
        let (object, gfx) = match self.gfx {
            Some(gfx) => (module.object_for(gfx.name())?, gfx),
            None => default_object(module)?,
        };
        Ok((CodeObject::parse(object.bytes)?, gfx))
    }
}

/// The code object of the first device that the module has one for, else of the first target.
fn default_object(module: &'static Module) -> Result<(&'static Object, Gfx)> {
    let devices = Device::all()?;
    let targets = devices.iter().filter_map(|device| device.arch().parse().ok()).chain(DEFAULT_TARGETS);
    let built = targets.filter_map(|gfx: Gfx| Some((module.object(gfx.name())?, gfx))).next();
    let first = || Some((module.objects().first()?, module.objects().first()?.gfx.parse().ok()?));
    built.or_else(first).context("this build has no code objects")
}
