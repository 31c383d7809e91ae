//! A damaged file of the cache is rebuilt. It needs the device toolchain.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use amdgpu_emulator::Gfx;

/// Compiles the crate beside this file: its code objects, and what a user was told.
fn compile(cache: &Path) -> (Vec<PathBuf>, Vec<String>) {
    let told = Mutex::new(Vec::new());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels");
    let warn = |text: &str| told.lock().unwrap().push(text.to_owned());
    let families =
        amdgpu_build::compile(&folder, cache, &[Gfx::Gfx1100], &warn).unwrap_or_else(|e| panic!("{e}"));
    let objects = families.into_iter().flat_map(|family| family.objects).map(|(_, path)| path).collect();
    (objects, told.into_inner().unwrap())
}

/// Flips a bit in the middle, which changes neither size nor date.
fn damage(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_file_is_noticed_and_made_anew() {
    // The folder that the other tests use, so that core is compiled already; they do not run at the same time.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("amdgpu");
    let (objects, _) = compile(&cache);
    let read = |path: &PathBuf| fs::read(path).unwrap();
    let whole: Vec<_> = objects.iter().map(read).collect();
    assert_eq!(compile(&cache), (objects.clone(), Vec::new()), "nothing is damaged, nothing is told");

    // In a folder for its crate. Another crate has a family `memory` too, but none `waves`.
    let folders = fs::read_dir(cache.join("bitcode/wave32")).unwrap();
    let bitcode =
        folders.map(|folder| folder.unwrap().path().join("waves.bc")).find(|file| file.exists()).unwrap();
    for damaged in [&objects[0], &bitcode] {
        damage(damaged);
        let (again, told) = compile(&cache);
        assert_eq!(told, [format!("{} was damaged and is rebuilt", damaged.display())]);
        assert_eq!(again.iter().map(read).collect::<Vec<_>>(), whole);
    }
    assert_eq!(compile(&cache), (objects, Vec::new()), "what was made anew is whole");
}
