//! The decoder against `llvm-objdump` on whole code objects: those that clang makes of `data/decode/kernels.hip`, and
//! those in the files and folders that `AMDGPU_EMULATOR_OBJECTS` lists (separated by colons).

use std::path::{Path, PathBuf};
use std::process::Command;

use amdgpu_emulator::decode::{decode, print};
use amdgpu_emulator::{CodeObject, Gfx};

/// LLVM 22's program `name`, if it is installed.
fn tool(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates = vec![Path::new("/usr/lib/llvm-22/bin").join(name)];
    candidates.extend(std::env::split_paths(&folders).map(|folder| folder.join(format!("{name}-22"))));
    candidates.into_iter().find(|path| path.is_file())
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// One line of `llvm-objdump -d`: text and encoding.
fn parse(line: &str) -> Option<(String, Vec<u8>)> {
    let (text, rest) = line.strip_prefix('\t')?.split_once(" // ")?;
    let (_, words) = rest.split_once(": ")?;
    let mut code = Vec::new();
    for word in words.split(' ').take_while(|word| word.len() == 8 && !word.starts_with('<')) {
        code.extend_from_slice(&u32::from_str_radix(word, 16).ok()?.to_le_bytes());
    }
    Some((text.split_whitespace().collect::<Vec<_>>().join(" "), code))
}

/// Compares every instruction of `file`; returns how many there are and where the texts differ.
fn compare(gfx: Gfx, objdump: &Path, file: &Path) -> (usize, Vec<String>) {
    let text = run(Command::new(objdump).arg("-d").arg(file));
    let mut count = 0;
    let mut differences = Vec::new();
    for (want, code) in text.lines().filter_map(parse) {
        count += 1;
        let got = match decode(gfx, &code) {
            Ok(inst) if usize::from(inst.size) != code.len() => format!("{} bytes", inst.size),
            Ok(inst) => print(gfx, &inst, None).to_string(),
            Err(error) => error.to_string(),
        };
        if got != want {
            differences.push(format!("{gfx} {code:02x?}\n  LLVM {want}\n  ours {got}"));
        }
    }
    (count, differences)
}

#[test]
fn compiled_kernels_disassemble_as_in_llvm() {
    let (Some(clang), Some(objdump)) = (tool("clang"), tool("llvm-objdump")) else {
        println!("skipped: needs clang and llvm-objdump of LLVM 22 (in /usr/lib/llvm-22/bin or PATH)");
        return;
    };
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/decode/kernels.hip");
    for gfx in Gfx::ISAS {
        for optimise in ["-O3", "-O0"] {
            let object = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("decode-{gfx}{optimise}.co"));
            run(Command::new(&clang)
                .args([
                    "-x",
                    "hip",
                    "--offload-device-only",
                    "--no-gpu-bundle-output",
                    "-nogpuinc",
                    "-nogpulib",
                ])
                .args([optimise, "-c", source, "-o"])
                .arg(&object)
                .arg(format!("--offload-arch={gfx}")));
            let (count, differences) = compare(gfx, &objdump, &object);
            println!("{gfx} {optimise}: {} of {count} instructions equal", count - differences.len());
            assert!(count > 1000, "{}: only {count} instructions", object.display());
            assert!(differences.is_empty(), "{}", differences[..differences.len().min(20)].join("\n"));
        }
    }
}

#[test]
fn listed_code_objects_disassemble_as_in_llvm() {
    let Some(list) = std::env::var_os("AMDGPU_EMULATOR_OBJECTS") else {
        println!("skipped: AMDGPU_EMULATOR_OBJECTS lists no code objects");
        return;
    };
    let objdump = tool("llvm-objdump").expect("llvm-objdump of LLVM 22 in /usr/lib/llvm-22/bin or PATH");
    let mut files = Vec::new();
    for path in std::env::split_paths(&list) {
        if path.is_dir() {
            let folder = std::fs::read_dir(&path).expect("a readable folder");
            files.extend(
                folder.map(|entry| entry.expect("a folder entry").path()).filter(|path| path.is_file()),
            );
        } else {
            files.push(path);
        }
    }
    let (mut total, mut all) = (0, Vec::new());
    for file in files {
        let bytes = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let Ok(object) = CodeObject::parse(&bytes) else {
            println!("{}: no code object", file.display());
            continue;
        };
        let (count, differences) = compare(object.gfx(), &objdump, &file);
        println!("{}: {} of {count} instructions equal", file.display(), count - differences.len());
        total += count;
        all.extend(differences);
    }
    println!("{} of {total} instructions equal", total - all.len());
    assert!(all.is_empty(), "{}", all[..all.len().min(20)].join("\n"));
}
