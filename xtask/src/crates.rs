//! Crates of others on top of Candle, in a project with the two patches: their operations on the device and on the CPU.

use std::fs;

use anyhow::Result;

use crate::{candle, check_downstream, shell};

/// Those that follow Candle 0.11 and are no programs.
const CRATES: &str = "candle-core = { version = \"0.11.1\", features = [\"cuda\"] }\n\
                      candle-einops = \"0.2.0\"\n\
                      candle-nn = { version = \"0.11.1\", features = [\"cuda\"] }\n\
                      candle-onnx = \"0.11.1\"\n\
                      float8 = \"0.7\"\n\
                      half = \"2\"\n";

const PROGRAM: &str = include_str!("../fixtures/crates.rs");

/// The crate whose own wrapper of cuBLASLt is compiled too. It asks for Candle 0.10, but these files use nothing that 0.11 lacks.
const QUANTIZED: &str = "mistralrs-quant = \"=0.8.1\"\n";

/// Builds and runs the project.
pub fn check(_full: bool) -> Result<()> {
    if !shell::in_path("protoc") {
        println!(
            "Skipped: candle-onnx is built with protoc. `apt-get install protobuf-compiler` installs it."
        );
        return Ok(());
    }
    let folder = shell::workspace().join("candle");
    let project = check_downstream::patched(CRATES, &folder)?;
    let quantized = check_downstream::unpatched(QUANTIZED, &folder)?;
    let wrapper = candle::source(quantized.path(), "mistralrs-quant")?.join("src/cublaslt");
    let copy = project.path().join("src/cublaslt");
    fs::create_dir(&copy)?;
    for file in ["api.rs", "matmul.rs"] {
        fs::copy(wrapper.join(file), copy.join(file))?;
    }
    fs::write(project.path().join("src/main.rs"), PROGRAM)?;
    shell::run(check_downstream::cargo(project.path(), "run").arg("--quiet"))
}
