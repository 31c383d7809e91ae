//! Makes the kernels for each target that the rest of the build is for, as LLVM IR, and compiles them with the LLVM of the
//! device toolchain. A package that `cargo xtask package` made has the code objects instead, in the folder `prebuilt`.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

use amdgpu_build::{ARCHS, Target, Toolchain, toolchain};
use amdgpu_emulator::{Generation, Gfx};
use lzma_rust2::{LzmaOptions, LzmaWriter};
use sha2::{Digest, Sha256};

#[allow(dead_code, reason = "the library uses the rest")]
#[path = "src/operation/mod.rs"]
mod operation;

fn main() {
    if let Err(error) = build() {
        eprintln!("\n{error}\n");
        exit(1);
    }
}

fn build() -> Result<(), Box<dyn Error>> {
    for variable in [ARCHS, toolchain::VARIABLE, "DOCS_RS"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    for path in ["build.rs", "src/operation"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo did not say where to write")?);
    let package =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo did not say where the package is")?);
    let prebuilt = package.join("prebuilt");
    let mut list = String::from("const OBJECTS: &[(Gfx, &[u8])] = &[\n");
    if prebuilt.exists() {
        println!("cargo::rerun-if-changed={}", prebuilt.display());
        let wanted = amdgpu_build::parse_targets(&env::var(ARCHS).unwrap_or_default())?;
        for gfx in Gfx::ISAS {
            let path = prebuilt.join(format!("{gfx}.lzma"));
            if path.exists() && (wanted.is_empty() || wanted.contains(&Target::Amdgpu(gfx))) {
                writeln!(list, "    (Gfx::{gfx:?}, include_bytes!({path:?})),")?;
            }
        }
    } else if env::var_os("DOCS_RS").is_none() {
        let toolchain = toolchain::find()?;
        for target in amdgpu_build::targets()? {
            let Target::Amdgpu(gfx) = target else { continue };
            let path = object(gfx, &toolchain, &out)?;
            writeln!(list, "    (Gfx::{gfx:?}, include_bytes!({path:?})),")?;
        }
    }
    list += "];\n";
    fs::write(out.join("objects.rs"), list)?;
    Ok(())
}

/// The compressed code object of a target. What was made of the same module before is kept.
fn object(gfx: Gfx, toolchain: &Toolchain, out: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let module = operation::module(gfx);
    let mut hash = Sha256::new();
    hash.update(module.as_bytes());
    hash.update(format!("{gfx} {toolchain:?}"));
    let key: String = hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let file = |extension: &str| out.join(format!("{gfx}-{key}.{extension}"));
    let packed = file("lzma");
    if packed.exists() {
        return Ok(packed);
    }
    let [ir, code, elf, new] = ["ll", "o", "elf", "new"].map(file);
    fs::write(&ir, module)?;
    let tools = &toolchain.tools;
    let mut llc = Command::new(&tools.llc);
    // From gfx11 on, operands of 16 bits are halves of registers; the kernels say which.
    if matches!(gfx.generation(), Generation::Gfx11 | Generation::Gfx12) {
        llc.arg("-mattr=+real-true16");
    }
    run(llc.args(["-O1", "-filetype=obj", &format!("-mcpu={gfx}"), "-o"]).arg(&code).arg(&ir))?;
    let (lld, flavor) = &tools.lld;
    run(Command::new(lld).args(*flavor).args(["-shared", "--no-undefined", "-o"]).arg(&elf).arg(&code))?;
    let bytes = fs::read(&elf)?;
    let options = LzmaOptions::with_preset(6);
    let mut writer = LzmaWriter::new_use_header(Vec::new(), &options, Some(bytes.len() as u64))?;
    writer.write_all(&bytes)?;
    fs::write(&new, writer.finish()?)?;
    // Complete, or not there.
    fs::rename(&new, &packed)?;
    for file in [ir, code, elf] {
        fs::remove_file(file)?;
    }
    Ok(packed)
}

fn run(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let output = command.output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{command:?} failed:\n{text}").into());
    }
    Ok(())
}
