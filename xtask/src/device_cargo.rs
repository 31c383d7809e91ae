//! `cargo xtask device-cargo DIR`: a cargo that compiles for AMD GPUs, for programs that call the one in PATH to do so, such
//! as the macros of the crate `rocm_kernel_macros`.
//!
//! For this target, rustc 1.96 cannot call a linker, only a C compiler. So the linker is a script with a C compiler's name.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, absolute};
use std::process::Command;

use amdgpu_build::toolchain;
use anyhow::{Context, Result, anyhow};

use crate::setup::{self, For};
use crate::{check_downstream, new, shell};

/// Writes the two scripts and says how to use them.
pub fn run(folder: &Path) -> Result<()> {
    setup::run(For::Build)?;
    let folder = absolute(folder)?;
    write(&folder)?;
    println!(
        "{folder}/cargo compiles crates whose .cargo/config.toml has the target amdgcn-amd-amdhsa, and is otherwise the cargo \
         that you have. Use it with\n    PATH={folder}:$PATH cargo build",
        folder = folder.display()
    );
    Ok(())
}

fn write(folder: &Path) -> Result<()> {
    let toolchain = toolchain::find()?;
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
    let (lld, flavor) = &toolchain.tools.lld;
    let linker = format!(
        "#!/bin/sh\n# What rustc says to a C compiler, said to the linker itself.\nfor word do\n    shift\n    case $word in\n\
         \x20       -nodefaultlibs) ;;\n        -Wl,*) old=$IFS; IFS=,; set -- \"$@\" ${{word#-Wl,}}; IFS=$old ;;\n\
         \x20       *) set -- \"$@\" \"$word\" ;;\n    esac\ndone\nexec {} {} \"$@\"\n",
        quoted(lld),
        flavor.join(" "),
    );
    let cargo = format!(
        "#!/bin/sh\ngrep -qs amdgcn-amd-amdhsa .cargo/config.toml || exec {} \"$@\"\n\
         unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_TARGET_DIR RUSTC_WRAPPER\n\
         export RUSTC_BOOTSTRAP=1 RUSTC={} CARGO_TARGET_AMDGCN_AMD_AMDHSA_LINKER={}\nexec {} \"$@\"\n",
        quoted(Path::new(shell::cargo().get_program())),
        quoted(&toolchain.rustc),
        quoted(&folder.join("clang")),
        quoted(&toolchain.cargo),
    );
    fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    for (name, text) in [("clang", linker), ("cargo", cargo)] {
        let file = folder.join(name);
        let made =
            fs::write(&file, text).and_then(|()| fs::set_permissions(&file, Permissions::from_mode(0o755)));
        made.with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// Runs the example that is written with `rocm_kernel_macros`.
pub fn test(_: bool) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (scripts, project) = (folder.path().join("bin"), folder.path().join("project"));
    write(&scripts)?;
    new::copy(&shell::workspace().join("examples/rocm-kernel-macros"), &project, |text| text)?;
    fs::copy(shell::workspace().join("Cargo.lock"), project.join("Cargo.lock"))?;
    let path = env::var_os("PATH").ok_or_else(|| anyhow!("PATH is not set"))?;
    let path = env::join_paths(std::iter::once(scripts).chain(env::split_paths(&path)))?;
    let mut cargo: Command = check_downstream::cargo(&project, "run");
    shell::run(cargo.arg("--quiet").env("PATH", path).env("CANDLE_AMDGPU_DEVICE", "emulator:gfx1100"))
}
