//! The program `candle-amdgpu`: what it prints and how it ends.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_candle-amdgpu"));
    if std::env::var_os("CANDLE_AMDGPU_DEVICE").is_none() {
        command.env("CANDLE_AMDGPU_DEVICE", "emulator");
    }
    command
}

fn run(args: &[&str]) -> Output {
    program().args(args).output().expect("the program runs")
}

/// An empty folder.
fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(args: &[&str]) -> Value {
    let output = run(args);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(stdout(&output)).expect("JSON")
}

#[test]
fn kernels_lists_every_kernel_for_every_target() {
    let kernels = json(&["kernels", "--json"]);
    let kernels = kernels.as_array().unwrap();
    for target in ["gfx1030", "gfx1100", "gfx90a"] {
        let affine = kernels.iter().find(|k| k["name"] == "affine_bf16" && k["gfx"] == target).unwrap();
        assert_eq!(affine["family"], "affine");
        assert_eq!(affine["arguments"][3]["name"], "inp");
        assert_eq!(affine["arguments"][3]["type"], "*const bf16");
        assert_eq!(affine["arguments"][5]["size"], 2);
        assert_eq!(affine["scratch_bytes"], 0);
        for positive in ["vgprs", "sgprs", "code_bytes", "waves_per_simd"] {
            assert!(affine[positive].as_u64().unwrap() > 0, "{positive}");
        }
    }
}

#[test]
fn kernels_can_be_filtered() {
    let kernels = json(&["kernels", "--json", "--family", "fill", "--dtype", "f16", "--gfx", "gfx90a"]);
    let names: Vec<_> = kernels.as_array().unwrap().iter().map(|k| k["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["const_set_f16", "copy2d_f16", "fill_f16"]);
    let table = run(&["kernels", "--family", "fill", "--dtype", "f16", "--gfx", "gfx90a"]);
    assert!(stdout(&table).contains("src: *const f16, dst: *mut f16, d1: u32"));
    assert!(!stdout(&table).contains('\u{1b}'), "no colours in a pipe");
}

#[test]
fn a_filter_that_matches_nothing_says_what_there_is() {
    let output = run(&["kernels", "--gfx", "gfx9999"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("gfx1100"), "{}", stderr(&output));
}

#[test]
fn devices_says_which_and_why() {
    let devices = json(&["devices", "--json"]);
    assert!(devices["backend"].as_str().unwrap().contains("CANDLE_AMDGPU_DEVICE=emulator"));
    let targets: Vec<_> = devices["devices"].as_array().unwrap().iter().map(|d| &d["target"]).collect();
    assert_eq!(targets.len(), 3);
    assert!(devices["devices"].as_array().unwrap().iter().all(|d| d["kernels"] == true));
    assert_eq!(devices["prebuilt"], false);
    let compiler = devices["compiler"].as_str().unwrap();
    assert!(compiler.starts_with("rustc 1."), "{compiler}");
    let text = run(&["devices"]);
    assert!(
        stdout(&text).contains(&format!("were compiled by this build with {compiler}")),
        "{}",
        stdout(&text)
    );
}

#[test]
fn a_wrong_device_variable_is_an_error() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_candle-amdgpu"));
    let output = command.env("CANDLE_AMDGPU_DEVICE", "emulater").arg("devices").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("auto, hip, emulator"), "{}", stderr(&output));
}

#[test]
fn verify_agrees_and_repeats_with_its_seed() {
    let args =
        ["verify", "--kernel", "affine_u8", "--gfx", "gfx90a", "--cases", "3", "--seed", "5", "--json"];
    let report = json(&args);
    assert_eq!(report["failed"], 0);
    assert_eq!(report["seed"], 5);
    assert_eq!(report["results"][0]["kernel"], "affine_u8");
    assert_eq!(report["results"], json(&args)["results"]);
}

#[test]
fn verify_refuses_what_it_does_not_know() {
    let output = run(&["verify", "--family", "afine"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no family `afine`"), "{}", stderr(&output));
    let output = run(&["verify", "--gfx", "gfx942"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("CANDLE_AMDGPU_DEVICE=emulator:gfx942"), "{}", stderr(&output));
}

/// All that the program's help lists.
fn commands() -> Vec<String> {
    let help = run(&["--help"]);
    let (_, list) = stdout(&help).split_once("Commands:\n").expect("commands");
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let commands: Vec<_> = names.filter(|name| !["", "help"].contains(name)).map(str::to_owned).collect();
    assert_eq!(commands.len(), 9, "{commands:?}");
    commands
}

#[test]
fn help_has_examples_and_exit_codes() {
    for command in commands() {
        let output = run(&[&command, "--help"]);
        let text = stdout(&output);
        assert!(output.status.success() && text.contains("Example") && text.contains("Exit codes"), "{text}");
    }
}

#[test]
fn run_gives_a_kernel_numbers_and_prints_what_it_wrote() {
    let args = "run affine_f32 numel=4 num_dims=1 info=null inp=[1,2,3,4] out=zeros:4 mul=2 add=0.5";
    let output = run(&args.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output).trim(), "out = [2.5, 4.5, 6.5, 8.5]");
}

#[test]
fn run_checks_names_types_and_lengths_before_it_launches() {
    for (args, message) in [
        ("run affine_f33 numel=4", "no kernel `affine_f33`"),
        ("run fill_u8 buf=zeros:4 value=7", "`numel` is missing"),
        ("run fill_u8 buf=zeros:4 value=7 numel=4 n=4", "no parameter `n`"),
        ("run fill_u8 buf=zeros:4 value=7 value=8 numel=4", "`value` is given twice"),
        ("run fill_u8 buf=zeros:4 value=256 numel=4", "256 is no u8"),
        ("run fill_u8 buf=null value=1 numel=4", "wants memory"),
        ("run fill_u8 buf=zeros:99 value=7 numel=100", "`buf` has 99 elements; numel = 100 are needed"),
        ("run fill_u8 buf=nowhere.npy value=1 numel=4", "nowhere.npy"),
    ] {
        let output = run(&args.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{args}");
        assert!(stderr(&output).contains(message), "{args}: {}", stderr(&output));
    }
}

#[test]
fn files_go_in_and_out_as_numpy_has_them() {
    let folder = scratch("npy");
    let sh = |args: &str| {
        let args: Vec<_> = args.split(' ').collect();
        let output = program().current_dir(&folder).args(args).output().expect("the program runs");
        (output.status.code(), stdout(&output).to_owned() + &stderr(&output))
    };
    let (code, text) = sh("run fill_f16 buf=zeros:3>x.npy value=1.5 numel=3");
    assert_eq!((code, text.as_str()), (Some(0), ""));
    let bytes = std::fs::read(folder.join("x.npy")).unwrap();
    assert!(bytes.starts_with(b"\x93NUMPY"), "{bytes:?}");
    assert!(bytes.ends_with(&[0, 0x3e, 0, 0x3e, 0, 0x3e]), "{bytes:?}");
    let (code, text) = sh("run uneg_f16 numel=3 num_dims=1 info=null inp=x.npy out=zeros:3");
    assert_eq!((code, text.trim()), (Some(0), "out = [-1.5, -1.5, -1.5]"));
    let (code, text) = sh("run uneg_f32 numel=3 num_dims=1 info=null inp=x.npy out=zeros:3");
    assert_eq!(code, Some(2));
    assert!(text.contains("the kernel takes f32"), "{text}");
}

#[test]
fn the_examples_of_the_help_run_as_written() {
    let folder = scratch("examples");
    // As a user would call it.
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_candle-amdgpu"), folder.join("candle-amdgpu")).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    for command in commands() {
        let help = run(&[&command, "--help"]);
        let (_, examples) = stdout(&help).split_once("Example").expect("examples");
        let examples: Vec<_> = examples.lines().filter(|line| line.contains("  candle-amdgpu ")).collect();
        let examples = if examples.is_empty() {
            stdout(&help)
                .lines()
                .filter(|line| line.trim_start().starts_with("CANDLE_AMDGPU_DEVICE="))
                .collect()
        } else {
            examples
        };
        assert!(!examples.is_empty(), "{command} has no example");
        for example in examples {
            let bug = example.contains("(a bug:");
            let line = example.split_once("      (").map_or(example, |(line, _)| line).trim();
            let mut shell = Command::new("sh");
            shell.env("PATH", &path).env("CANDLE_AMDGPU_DEVICE", "emulator").current_dir(&folder);
            let output = shell.args(["-c", line]).output().expect("sh");
            assert_eq!(output.status.code(), Some(i32::from(bug)), "{line}: {}", stderr(&output));
            assert!(!output.stdout.is_empty() || bug || line.contains('>'), "{line} prints nothing");
            assert!(!stdout(&output).contains('\u{1b}'), "{line} prints colours into a pipe");
            if bug {
                let text = stderr(&output);
                assert!(text.contains("fill_u8") && text.contains("fill.rs"), "{text}");
            } else {
                assert_eq!(stderr(&output), "", "{line} is not quiet");
            }
        }
    }
    // What the examples say that they write.
    for file in ["y.npy", "profile.html", "profile.folded", "candle-amdgpu.bash"] {
        assert!(std::fs::metadata(folder.join(file)).is_ok_and(|file| file.len() > 0), "{file}");
    }
}

#[test]
fn check_says_what_is_wrong_where_and_in_json() {
    let args = ["check", "fill_u8", "buf=zeros:99", "value=7", "numel=100", "--json"];
    let output = run(&args);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(1), ""));
    let report: Value = serde_json::from_str(stdout(&output)).unwrap();
    let fault = &report["fault"];
    assert_eq!((&report["clean"], &fault["kind"]), (&false.into(), &"OutOfBounds".into()));
    assert_eq!((&fault["lane"], &fault["workgroup"]), (&9.into(), &serde_json::json!([0, 0, 0])));
    let source = fault["source"].as_array().unwrap();
    assert!(source.iter().any(|line| line["file"].as_str().unwrap().ends_with("src/fill.rs")), "{source:?}");
    assert!(fault["message"].as_str().unwrap().contains("99 bytes"), "{fault}");
}

#[test]
fn check_finds_nothing_in_any_order_of_a_right_kernel() {
    for seed in ["1", "2"] {
        let report = json(&["check", "softmax_f32", "--elements", "1400", "--seed", seed, "--json"]);
        assert_eq!((&report["clean"], &report["workgroups"]), (&true.into(), &2.into()), "{report}");
        assert!(report.get("fault").is_none());
    }
}

#[test]
fn check_finds_what_does_no_visible_harm() {
    // The kernel reads more than anyone has written: a buffer of which the host filled one element.
    let output = run(&[
        "check",
        "affine_f32",
        "numel=2",
        "num_dims=1",
        "info=null",
        "inp=[1]",
        "out=zeros:2",
        "mul=1",
        "add=0",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(
        stderr(&output).contains("out of bounds") && stderr(&output).contains("affine.rs"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_profile_is_the_same_each_time_and_adds_up() {
    let args = ["profile", "softmax_f32", "src=random:3072", "dst=zeros:3072", "n_cols=768", "--json"];
    let profile = json(&args);
    assert_eq!(profile, json(&args));
    assert_eq!((&profile["workgroups"], &profile["elements"]), (&4.into(), &3072.into()));
    assert_eq!(profile["memory"], serde_json::json!({ "buffers": 24576, "needed": 24576, "moved": 24576 }));
    let sum = |list: &str| -> u64 {
        let rows = profile[list].as_array().unwrap().iter();
        rows.map(|row| row["executed"].as_u64().unwrap()).sum()
    };
    let total = profile["total"]["executed"].as_u64().unwrap();
    assert!(total > 1000);
    assert_eq!([sum("units"), sum("lines"), sum("instructions")], [total; 3]);
    // The attribute's line stands for all that the kernel does.
    let lines = profile["lines"].as_array().unwrap();
    assert!(lines.iter().any(|line| line["with_calls"].as_u64().unwrap() * 10 > total * 9
        && line["file"].as_str().is_some_and(|file| file.ends_with("softmax.rs"))));
    assert!(profile["roofline"]["operations"].as_u64().unwrap() > 3 * 3072);
}

#[test]
fn a_page_needs_nothing_else_and_shows_the_source() {
    let folder = scratch("page");
    let page = folder.join("p.html");
    let output = program()
        .args([
            "profile",
            "gemm_f16_64x64",
            "--elements",
            "1",
            "--peak-operations",
            "2",
            "--source",
            "--html",
        ])
        .arg(&page)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    // In both: a line that executes something, with its text.
    let page = std::fs::read_to_string(page).unwrap();
    for text in [stdout(&output), &page] {
        assert!(text.contains("while z &lt; batch {") || text.contains("while z < batch {"), "{text}");
    }
    for part in ["<svg", "Roofline", "2 Top/s", "<title>Matrix: ", "aria-label='Flame graph'"] {
        assert!(page.contains(part), "{part} is missing");
    }
    for outside in ["http://", "https://", "<script", "<link", "url("] {
        assert!(!page.contains(outside), "{outside} in the page");
    }
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    assert_eq!(page.matches("<div").count(), page.matches("</div>").count());
}

#[test]
fn kernels_of_a_code_object_run_by_types_and_positions() {
    let folder = scratch("object");
    let object = folder.join("affine.elf");
    std::fs::write(&object, candle_amdgpu::AFFINE.object("gfx90a").unwrap().bytes).unwrap();
    let with = |command: &str, args: &str| {
        let mut program = program();
        // The device follows from the code object.
        program.env_remove("CANDLE_AMDGPU_DEVICE").args([command, "affine_f32", "--object"]).arg(&object);
        program.args(args.split(' ')).output().unwrap()
    };
    let args =
        "--grid 1 --block 64 numel=usize:3 1=usize:1 2=null 3=f32:[1,2,3] 4=f32:zeros:3 5=f32:2 add=f32:1";
    let output = with("check", args);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stdout(&output).contains("affine_f32 on gfx90a: nothing found in 1 workgroup, 1 wave,"),
        "{}",
        stdout(&output)
    );
    let output = with("profile", args);
    assert!(stdout(&output).contains("affine_f32 on gfx90a: 1 workgroup ("), "{}", stderr(&output));
    let output = with("check", &args.replace("numel=usize:3", "numel=usize:4"));
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    for (from, to, message) in [
        ("numel=usize:3", "numel=u32:3", "the parameter has 8 bytes, 4 are given"),
        ("5=f32:2", "5=2", "a type comes first"),
        ("5=f32:2", "5=float:2", "`float` is no type"),
        ("add=f32:1", "7=f32:1", "no parameter `7`"),
    ] {
        let output = with("check", &args.replace(from, to));
        assert_eq!(output.status.code(), Some(2), "{to}");
        assert!(stderr(&output).contains(message), "{to}: {}", stderr(&output));
    }
    let output = run(&["check", "--object", "nowhere.elf", "k", "--grid", "1", "--block", "1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("cannot read nowhere.elf"), "{}", stderr(&output));
}

#[test]
fn kernels_of_a_compressed_bundle_run() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../emulator/tests/data/bundles");
    let folder = scratch("bundles");
    // Two bundles, as in a program of two source files.
    let mut both = std::fs::read(format!("{data}/zlib-1.ccob")).unwrap();
    both.resize(4096, 0);
    both.extend(std::fs::read(format!("{data}/zstd-3.ccob")).unwrap());
    std::fs::write(folder.join("both.fatbin"), both).unwrap();
    let check = |file: &str, args: &str| {
        let mut program = program();
        program.env_remove("CANDLE_AMDGPU_DEVICE").args(["check", "add_one", "--object", file]);
        program.args("--grid 1 --block 64 0=u32:zeros:64".split(' ')).args(args.split_whitespace());
        let output = program.output().unwrap();
        (output.status.code(), stdout(&output) + &stderr(&output))
    };
    let mut files: Vec<_> = ["zlib-1", "zlib-2", "zlib-3", "zstd-1", "zstd-2", "zstd-3"]
        .map(|name| format!("{data}/{name}.ccob"))
        .into();
    files.push(folder.join("both.fatbin").to_str().unwrap().to_owned());
    for file in &files {
        // Of several targets the first that is emulated by default; gfx906 takes gfx9-generic's code.
        for (args, gfx) in [("", "gfx1100"), ("--gfx gfx90a", "gfx90a"), ("--gfx gfx906", "gfx906")] {
            let (code, text) = check(file, args);
            assert_eq!(code, Some(0), "{text}");
            assert!(text.contains(&format!("add_one on {gfx}: nothing found in 1 workgroup")), "{text}");
        }
        let (code, text) = check(file, "--gfx gfx1030");
        assert!(code == Some(2) && text.contains("gfx90a:xnack-"), "{text}");
    }
    let damaged = folder.join("damaged.fatbin");
    let mut bytes = std::fs::read(&files[5]).unwrap();
    bytes[24] ^= 1;
    std::fs::write(&damaged, bytes).unwrap();
    let (code, text) = check(damaged.to_str().unwrap(), "");
    assert!(code == Some(2) && text.contains("have the hash"), "{text}");
}

#[test]
fn bench_finds_work_for_every_kernel_of_a_family() {
    let output = run(&["bench", "--family", "reduce", "--gfx", "gfx1100"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let rows = stdout(&output).lines().filter(|line| line.contains("_f32 ")).count();
    assert!(rows >= 12, "{rows} kernels of f32");
}

#[test]
fn bench_counts_on_the_emulator_and_times_where_it_is_asked_to() {
    let args = ["bench", "--kernel", "affine_f16", "--elements", "5000", "--gfx", "gfx1030", "--json"];
    let report = json(&args);
    let row = &report["kernels"][0];
    assert_eq!(
        (&row["kernel"], &row["elements"], &row["buffer_bytes"]),
        (&"affine_f16".into(), &5000.into(), &20000.into())
    );
    assert_eq!(row["counts"]["bytes_needed"], 20000);
    assert_eq!(report, json(&args));
    let times = json(&[
        "bench",
        "--kernel",
        "affine_f16",
        "--elements",
        "5000",
        "--times",
        "--rounds",
        "1",
        "--json",
    ]);
    let times = &times["kernels"][0]["times"];
    assert!(times["seconds"].as_f64().unwrap() > 0.0 && times["copy_bandwidth"].as_f64().unwrap() > 0.0);
    let output = run(&["bench"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--family or --kernel"), "{}", stderr(&output));
}
