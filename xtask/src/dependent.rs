//! A project outside this workspace that depends on `candle-amdgpu`: the README's example, built and run with
//! no variable set and no ROCm, as a newcomer would.

use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context, Result};

use crate::shell;

/// Makes the project in a temporary folder, outside the reach of this workspace's `.cargo/config.toml`.
pub fn run(_full: bool) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let workspace = shell::workspace();
    let manifest = format!(
        "[package]\nname = \"dependent\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\ncandle-amdgpu = {{ path = {:?} }}\n\n[workspace]\n\n\
         [profile.dev]\ndebug = \"line-tables-only\"\n",
        workspace
    );
    fs::create_dir(folder.path().join("src"))?;
    fs::write(folder.path().join("Cargo.toml"), manifest)?;
    fs::write(folder.path().join("src/main.rs"), example()?)?;
    // The same versions as here, which are downloaded already, and under this profile also compiled.
    fs::copy(workspace.join("Cargo.lock"), folder.path().join("Cargo.lock"))?;

    let mut cargo = Command::new(shell::cargo().get_program());
    cargo.args(["run", "--quiet", "--target-dir"]).arg(shell::target_dir());
    cargo.current_dir(folder.path()).stdin(Stdio::null()).env_clear();
    // What finds cargo, its downloads and a linker, and nothing of ours.
    let kept = ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"];
    cargo.envs(kept.iter().filter_map(|name| Some((name, env::var_os(name)?))));
    shell::run(&mut cargo)
}

/// The Rust program in the README.
fn example() -> Result<String> {
    let readme = fs::read_to_string(shell::workspace().join("README.md"))?;
    program(&readme).context("README.md has no ```rust block with a main function")
}

fn program(markdown: &str) -> Option<String> {
    blocks(markdown).find(|block| block.contains("fn main()")).map(str::to_owned)
}

/// The Rust code blocks.
fn blocks(markdown: &str) -> impl Iterator<Item = &str> {
    markdown.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readmes_kernel_is_the_one_in_the_source() {
        let read = |file| fs::read_to_string(shell::workspace().join(file)).unwrap();
        let readme = read("README.md");
        let kernel = blocks(&readme).find(|block| block.contains("#[amdgpu_kernel(")).unwrap();
        assert!(read("kernels/src/affine.rs").contains(kernel), "kernels/src/affine.rs has not\n{kernel}");
    }

    #[test]
    fn the_program_is_the_block_with_a_main() {
        let text = "a\n```rust\nfn kernel() {}\n```\nb\n```rust\nfn main() {}\n```\n```sh\nfn main()\n```";
        assert_eq!(program(text).unwrap(), "fn main() {}\n");
        assert_eq!(program("```rust\nfn kernel() {}\n```"), None);
    }
}
