//! Code objects for the tests: `tests/kernels.ll`, compiled once per target.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// The code object for `gfx`.
pub fn code_object(gfx: &'static str) -> &'static [u8] {
    static OBJECTS: [(&str, OnceLock<Vec<u8>>); 4] = [
        ("gfx1100", OnceLock::new()),
        ("gfx1030", OnceLock::new()),
        ("gfx90a", OnceLock::new()),
        ("gfx942", OnceLock::new()),
    ];
    let (_, object) = OBJECTS.iter().find(|(name, _)| *name == gfx).expect("one of the targets above");
    object.get_or_init(|| compile(gfx))
}

fn compile(gfx: &str) -> Vec<u8> {
    let tools = amdgpu_build::toolchain::find().unwrap_or_else(|error| panic!("{error}")).tools;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels.ll");
    // Test binaries run one after another, their threads share the `OnceLock`.
    let object = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{gfx}.o"));
    let linked = object.with_extension("elf");
    let run = |command: &mut Command| {
        let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        assert!(status.success(), "{command:?}");
    };
    run(Command::new(&tools.llc)
        .args(["-O3", "-filetype=obj"])
        .arg(format!("-mcpu={gfx}"))
        .arg(source)
        .arg("-o")
        .arg(&object));
    run(Command::new(&tools.lld.0).args(tools.lld.1).arg("-shared").arg(&object).arg("-o").arg(&linked));
    std::fs::read(linked).expect("the linker wrote it")
}
