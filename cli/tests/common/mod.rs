//! What tests with programs of hipcc have in common.

#![allow(dead_code, reason = "each test file uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder for what the tests make.
pub fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hipcc");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Compiles a program of `hip/tests` for two targets, with these options besides; `None` where there is no hipcc.
pub fn compile(name: &str, options: &[&str]) -> Option<PathBuf> {
    // Each call has a file of its own: tests run side by side, and a program that runs cannot be written.
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let into = folder().join(format!("{name}-{}-{call}", std::process::id()));
    let mut hipcc = Command::new("hipcc");
    hipcc
        .args(options)
        .args(["-O2", "-g", "--offload-arch=gfx1030", "--offload-arch=gfx90a", "-o"])
        .arg(&into);
    hipcc.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../hip/tests/programs/{name}.hip")));
    let Ok(output) = hipcc.output() else {
        eprintln!("skipped: there is no hipcc; `apt-get install hipcc` gets it");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(into)
}

/// Exit status, standard output and standard error.
pub fn text(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}
