//! Writes the code objects of this build to a folder, as a package has them: `cargo run --example pack -- DIR`.

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).expect("a folder"));
    std::fs::create_dir_all(&folder)?;
    for (gfx, bytes) in amdgpu_conformance::packed() {
        std::fs::write(folder.join(format!("{gfx}.lzma")), bytes)?;
    }
    Ok(())
}
