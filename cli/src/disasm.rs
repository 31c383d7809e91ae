//! `candle-amdgpu disasm`

use crate::output::print;
use crate::subject::find;
use amdgpu_emulator::decode;
use anyhow::{Context, Result};
use candle_amdgpu::{CodeObject, kernels};
use clap::Args;

/// Print the instructions of a kernel, as LLVM spells them
#[derive(Args)]
#[command(after_help = "\
Example:
  candle-amdgpu disasm affine_f32 --gfx gfx1100

Exit codes: 0 success; 2 wrong arguments.")]
pub struct Disasm {
    /// The kernel
    kernel: String,
    /// For this target [default: the first that the kernels were built for]
    #[arg(long)]
    gfx: Option<String>,
}

impl Disasm {
    pub fn run(self) -> Result<bool> {
        let kernel = find(&self.kernel)?;
        let modules = kernels::MODULES;
        let module = modules.iter().find(|module| module.name() == kernel.family).context("the module")?;
        let object = match &self.gfx {
            Some(gfx) => module.object_for(gfx)?,
            None => module.objects().first().context("a code object")?,
        };
        let gfx = self.gfx.as_deref().unwrap_or(object.gfx);
        let code = CodeObject::parse(object.bytes)?;
        let info = code.kernel(kernel.name).context("the kernel in its code object")?;
        print(&format!(
            "{} for {}: {} bytes, {} VGPRs, {} SGPRs ({}:{})",
            kernel.name, gfx, info.code_bytes, info.vgprs, info.sgprs, kernel.file, kernel.line
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
}
