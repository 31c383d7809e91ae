//! Crates of others on top of Candle, in a project with the two patches: their operations on the device and on the CPU.

use std::fs;

use anyhow::Result;

use crate::{dependent, shell};

/// Those that follow Candle 0.11 and are no programs.
const CRATES: &str = "candle-core = { version = \"0.11.1\", features = [\"cuda\"] }\n\
                      candle-einops = \"0.2.0\"\n\
                      candle-onnx = \"0.11.1\"\n";

const PROGRAM: &str = include_str!("../fixtures/crates.rs");

/// Builds and runs the project.
pub fn check(_full: bool) -> Result<()> {
    if !shell::in_path("protoc") {
        println!(
            "Skipped: candle-onnx is built with protoc. `apt-get install protobuf-compiler` installs it."
        );
        return Ok(());
    }
    let project = dependent::patched(CRATES, &shell::workspace().join("candle"))?;
    fs::write(project.path().join("src/main.rs"), PROGRAM)?;
    shell::run(dependent::cargo(project.path(), "run").arg("--quiet"))
}
