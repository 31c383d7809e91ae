//! The program `candle-amdgpu`: what it prints and how it ends.

use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
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

/// That a command line is refused before anything runs: exit status 2, one `error: ` with this text, nothing else.
#[track_caller]
fn refused(args: &str, message: &str) {
    let output = run(&args.split(' ').collect::<Vec<_>>());
    is_refused(&output, args, message);
}

#[track_caller]
fn is_refused(output: &Output, args: &str, message: &str) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{args}: {text}{}", stdout(output));
    assert!(text.starts_with("error: ") && text.contains(message), "{args}: {text}");
    assert_eq!(text.matches("error: ").count(), 1, "{args}: {text}");
    for rust in ["panicked", "RUST_BACKTRACE", "Some(", "None", "[\"", "Error {"] {
        assert!(!text.contains(rust), "{args}: {text}");
    }
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
    refused("kernels --gfx gfx9999", "there is no target `gfx9999`; did you mean `gfx9");
    refused("kernels --gfx gfx1110", " There are gfx906, gfx908, gfx90a, ");
    refused("kernels --gfx gfx1201", "has no code object for gfx1201, only for gfx");
    refused("kernels --dtype f61", "there is no type `f61`; did you mean `f64`");
    refused("kernels --dtype f61", " There are bf16, f16, f32, f64, f8e4m3, ");
    refused("kernels --family fil", "there is no family `fil`; did you mean `fill`");
    refused("kernels --family rng --dtype f8e4m3", "no kernel of this build matches all of these filters");
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
    assert!(stderr(&output).contains("auto, hip, cuda, emulator"), "{}", stderr(&output));
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
    is_refused(&output, "--family afine", "there is no family `afine`; did you mean `affine`");
    let output = run(&["verify", "--gfx", "gfx942"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("CANDLE_AMDGPU_DEVICE=emulator:gfx942"), "{}", stderr(&output));
}

#[test]
fn a_target_that_was_not_built_is_no_wrong_kernel() {
    let mut command = program();
    command
        .env("CANDLE_AMDGPU_DEVICE", "emulator:gfx1201")
        .args(["verify", "--family", "fill", "--cases", "1"]);
    let output = command.output().unwrap();
    is_refused(&output, "verify", "module `fill` has no code object for gfx1201, only for gfx");
    assert!(stderr(&output).contains("build with CANDLE_AMDGPU_ARCHS=gfx1201"), "{}", stderr(&output));
    assert_eq!((stderr(&output).lines().count(), stdout(&output)), (1, ""));
}

#[test]
fn names_that_do_not_exist_are_answered_with_the_nearest() {
    for args in [
        "run afine_f32",
        "profile afine_f32 --elements 4",
        "check afine_f32 --elements 4",
        "disasm afine_f32",
        "bench --kernel afine_f32",
        "verify --kernel afine_f32",
    ] {
        refused(args, "there is no kernel `afine_f32`; did you mean `affine_f32`");
    }
    refused("bench --family afine", "there is no family `afine`; did you mean `affine`");
    for args in [
        "run fill_u8",
        "profile fill_u8",
        "check fill_u8",
        "bench --kernel fill_u8",
        "verify",
        "disasm fill_u8",
    ] {
        refused(&format!("{args} --gfx gfx110"), "there is no target `gfx110`; did you mean `gfx1");
    }
}

/// Of `affine_f32`, but for `inp`.
const AFFINE: &str = "run affine_f32 numel=4 num_dims=1 info=null out=zeros:4 mul=2 add=0.5";

#[test]
fn memory_is_as_long_as_layouts_need_it() {
    let need = "and needs 4 (numel)";
    refused(&format!("{AFFINE} inp=[]"), &format!("`inp` has 0 elements {need}"));
    refused(&format!("{AFFINE} inp=[1]"), &format!("`inp` has 1 element {need}"));
    refused(&format!("{AFFINE} inp=[1,2,3]"), &format!("`inp` has 3 elements {need}"));
    // `info` has the sizes, and then the strides of the only operand.
    let strided = |info: &str, inp: &str| {
        format!("run affine_f32 numel=4 num_dims=2 info={info} inp={inp} out=zeros:4 mul=2 add=0.5")
    };
    refused(
        &strided("[2,2,5,1]", "zeros:6"),
        "`inp` has 6 elements and needs 7 (shape [2, 2], strides [5, 1])",
    );
    let output = run(&strided("[2,2,5,1]", "[1,2,0,0,0,3,4]").split(' ').collect::<Vec<_>>());
    assert_eq!(stdout(&output).trim(), "out = [2.5, 4.5, 6.5, 8.5]", "{}", stderr(&output));
    refused(&strided("[2,3,3,1]", "zeros:6"), "the sizes in `info` are those of 6 elements; numel is 4");
    refused(&strided("[2,2,5]", "zeros:6"), "`info` ends before the 2 strides of `inp`");
    refused(&strided("[2]", "zeros:6"), "`info` has fewer words than num_dims = 2 sizes");
    // Of several tensors, each with sizes of its own.
    let pool = |inp: &str, out: &str| {
        let sizes = "w_k=2 h_k=2 w_stride=2 h_stride=2";
        format!("run avg_pool2d_f32 src_numel=16 {sizes} info=[1,1,4,4,16,16,4,1] src={inp} dst={out}")
    };
    let kernels = json(&["kernels", "--family", "conv", "--json"]);
    let kernels = kernels.as_array().unwrap();
    let arguments =
        kernels.iter().find(|k| k["name"] == "avg_pool2d_f32").map(|k| k["arguments"].to_string());
    assert!(
        arguments.is_some_and(|text| text.contains("w_stride")),
        "the kernel is not as it was: {kernels:?}"
    );
    refused(&pool("zeros:15", "zeros:4"), "`src` has 15 elements and needs 16");
    refused(&pool("zeros:16", "zeros:3"), "`dst` has 3 elements and needs 4");
    // A launch of more rows than there are.
    refused(
        "run softmax_f32 src=zeros:8 dst=zeros:8 n_cols=4 --grid 3 --block 64",
        "`dst` has 8 elements and needs 12 (grid.x * block.z * n_cols)",
    );
}

#[test]
fn what_must_hold_of_arguments_is_checked() {
    refused(
        "run avg_pool2d_f32 src_numel=16 w_k=2 h_k=2 w_stride=0 h_stride=2 info=[1,1,4,4,16,16,4,1] src=zeros:16 dst=zeros:4",
        "`w_stride >= 1` does not hold, with w_stride = 0",
    );
}

#[test]
fn files_of_impossible_arrays_are_refused() {
    let folder = scratch("shapes");
    let file = |name: &str, shape: &str, data: &[u8]| {
        let mut header =
            format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}").into_bytes();
        header.resize((header.len() + 11).next_multiple_of(64) - 11, b' ');
        header.push(b'\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header);
        bytes.extend(data);
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let four: Vec<u8> = [1_f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    for (shape, message) in [
        ("(0,)", "`inp` has 0 elements and needs 4"),
        ("(1099511627776, 1099511627776)", "its array is larger than any memory"),
        ("(0, 1099511627776, 1099511627776)", "its array is larger than any memory"),
        ("(9223372036854775807,)", "its array is larger than any memory"),
        ("(99999999,)", "ends after 16 of 399999996 bytes"),
        ("(-4,)", "is not a .npy file"),
        ("4", "is not a .npy file"),
    ] {
        let path = file("x.npy", shape, &four);
        refused(&format!("{AFFINE} inp={}", path.display()), message);
    }
    for bytes in [&b""[..], b"no", b"\x93NUMPY\x01\x00\xff\xff{", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{"] {
        let path = folder.join("y.npy");
        std::fs::write(&path, bytes).unwrap();
        refused(&format!("{AFFINE} inp={}", path.display()), "is not a .npy file");
    }
    // A name that is not UTF-8, to read and to write.
    use std::os::unix::ffi::OsStringExt;
    let odd = |start: &str| std::ffi::OsString::from_vec([start.as_bytes(), b"f\xff.npy"].concat());
    std::fs::rename(file("x.npy", "(4,)", &four), folder.join(odd(""))).unwrap();
    let mut command = program();
    command.current_dir(&folder).args(AFFINE.split(' ').filter(|arg| !arg.starts_with("out")));
    let output = command.args([odd("inp="), odd("out=zeros:4>out-")]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let written = std::fs::read(folder.join(odd("out-"))).unwrap();
    assert!(written.ends_with(&8.5_f32.to_le_bytes()), "{written:?}");
}

#[test]
fn more_memory_than_there_is_is_refused() {
    let affine = |out: &str| {
        format!("run affine_f32 numel=4 num_dims=1 info=null inp=[1,2,3,4] out={out} mul=2 add=0.5")
    };
    refused(&affine("zeros:9999999999"), "out=zeros:9999999999: ");
    refused(&affine("zeros:9999999999"), "39999999996 bytes");
    refused(&affine("random:9999999999"), "39999999996 bytes");
    for kind in ["zeros", "random"] {
        refused(&affine(&format!("{kind}:18446744073709551615")), "are more than can be addressed");
        refused(&affine(&format!("{kind}:18446744073709551616")), "is not a number of elements");
    }
    for command in ["run affine_f32", "profile affine_f32", "check affine_f32", "bench --kernel affine_f32"] {
        refused(&format!("{command} --elements 99999999999"), "bytes of memory are needed");
        refused(&format!("{command} --elements 18446744073709551615"), "elements are too many");
        refused(&format!("{command} --elements 0"), "'--elements <N>'");
    }
}

#[test]
fn geometries_that_cannot_be_are_refused() {
    for (option, message) in [
        ("--grid 1,2,3,4 --block 64", "4 sizes, but there are only x, y and z"),
        ("--grid 1 --block 1,1,1,1", "4 sizes, but there are only x, y and z"),
        ("--grid 0 --block 64", "a size must be 1 or more"),
        ("--grid 1 --block 0", "a size must be 1 or more"),
        ("--grid 1,,1 --block 64", "`` is not a size"),
        ("--grid 4294967296 --block 64", "`4294967296` is not a size"),
        ("--grid 2147483648 --block 1", "[2147483647, 65535, 65535] workgroups at most"),
        ("--grid 1 --block 2048", "1024 work-items at most"),
        (
            "--grid 1 --block 64 --lds 1000000",
            "1000000 bytes of workgroup memory (LDS), but the device has 65536",
        ),
        ("--grid 1 --block 64 --lds=-1", "--lds"),
        ("--grid 1", "--block"),
        ("--device 9", "there is no device 9"),
        ("--budget 0", "'--budget <N>'"),
    ] {
        for command in ["run", "profile", "check"] {
            refused(&format!("{command} {} inp=[1,2,3,4] {option}", &AFFINE[4..]), message);
        }
    }
}

#[test]
fn peaks_are_finite_and_above_zero() {
    for option in ["--peak-bandwidth", "--peak-operations"] {
        for value in ["0", "-0.0", "nan", "inf", "1e999"] {
            let message = if value == "-0.0" { option } else { "a peak must be finite and above 0" };
            refused(&format!("profile affine_f32 --elements 64 {option}={value}"), message);
        }
        refused(&format!("profile affine_f32 --elements 64 {option}=x"), "not a number");
    }
    refused("bench --kernel affine_f32 --rounds 0", "--rounds");
}

/// One wave that fills 16 MiB: more than a hundred thousand instructions.
const LONG: &str = "fill_u8 buf=zeros:16777216 value=7 numel=16777216 --grid 1 --block 32 --gfx gfx1100";

#[test]
fn a_wave_that_runs_too_long_is_a_fault_of_the_kernel() {
    for command in ["run", "check", "profile"] {
        for (option, variable) in [("--budget 1000", None), ("", Some("1000")), ("--budget 1000", Some("9"))]
        {
            let mut program = program();
            program.arg(command).args(LONG.split(' ')).args(option.split(' ').filter(|arg| !arg.is_empty()));
            if let Some(value) = variable {
                program.env("CANDLE_AMDGPU_BUDGET", value);
            }
            let output = program.output().unwrap();
            let text = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{text}");
            assert!(text.starts_with("error: "), "{text}");
            assert_eq!(
                text.matches("a wave executed 1000 instructions and did not end").count(),
                1,
                "{text}"
            );
            assert!(text.contains("kernel fill_u8 on gfx1100") && text.contains("fill.rs:"), "{text}");
            assert!(text.contains("CANDLE_AMDGPU_BUDGET sets another limit"), "{text}");
        }
    }
    for args in ["verify --kernel fill_u8 --cases 0", "bench --kernel fill_u8"] {
        let output = run(&format!("{args} --gfx gfx1100 --budget 5").split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stdout(&output).contains("a wave executed 5 instructions"), "{}", stdout(&output));
    }
}

#[test]
fn a_launch_that_takes_long_says_where_it_is() {
    let long = |patience: &str| {
        let mut program = program();
        program.env("CANDLE_AMDGPU_PATIENCE", patience).arg("run").args(LONG.split(' '));
        let output = program.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    let text = long("0.000001");
    assert!(text.starts_with("amdhip64: still running after "), "{text}");
    let place = " s: kernel fill_u8 on gfx1100, 0 of 1 workgroup done, 65536 instructions by workgroup (0, 0, 0), wave 0\n  at 0x";
    assert!(text.contains(place) && text.contains("fill.rs:"), "{text}");
    assert_eq!(long("0"), "");
    assert_eq!(long("1000000"), "");
}

#[test]
fn variables_with_wrong_values_are_one_error() {
    for (name, value) in [
        ("CANDLE_AMDGPU_SEED", "foo"),
        ("CANDLE_AMDGPU_CHECK", "foo"),
        ("CANDLE_AMDGPU_BUDGET", "many"),
        ("CANDLE_AMDGPU_PATIENCE", "-1"),
        ("CANDLE_AMDGPU_PROFILE", "/nowhere/profile.txt"),
        ("CANDLE_AMDGPU_WARN_ABSENT", "no"),
        ("CANDLE_AMDGPU_DEVICE", "emulater"),
    ] {
        for args in
            ["devices", "run fill_u8 --elements 4", "check fill_u8 --elements 4", "verify --kernel fill_u8"]
        {
            let output = program().env(name, value).args(args.split(' ')).output().unwrap();
            is_refused(&output, args, &format!("{name}=`{value}`: "));
            assert_eq!(stderr(&output).matches(name).count(), 1, "{}", stderr(&output));
            assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
        }
    }
    let mut both = program();
    both.env("CANDLE_AMDGPU_SEED", "foo").env("CANDLE_AMDGPU_CHECK", "foo");
    let output = both.arg("devices").output().unwrap();
    is_refused(
        &output,
        "devices",
        "CANDLE_AMDGPU_CHECK=`foo`: must be 1 (on), all (on, and go on behind findings) or 0 (off); CANDLE_AMDGPU_SEED=`foo`: must",
    );
}

#[test]
fn disasm_shows_the_first_device() {
    let first = |variable: &str, command: &str| {
        let output =
            program().env("CANDLE_AMDGPU_DEVICE", variable).args(command.split(' ')).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output).to_owned()
    };
    for (variable, gfx) in
        [("emulator", "gfx1100"), ("emulator:gfx90a,gfx1100", "gfx90a"), ("emulator:gfx1201", "gfx1100")]
    {
        assert!(
            first(variable, "disasm affine_f32").starts_with(&format!("affine_f32 for {gfx}: ")),
            "{variable}"
        );
    }
    assert!(first("emulator", "devices").contains("0  gfx1100 "));
}

/// All that the program's help lists.
fn commands() -> Vec<String> {
    let help = run(&["--help"]);
    let (_, list) = stdout(&help).split_once("Commands:\n").expect("commands");
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let commands: Vec<_> = names.filter(|name| !["", "help"].contains(name)).map(str::to_owned).collect();
    assert_eq!(commands.len(), 13, "{commands:?}");
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
        ("run affine_f33 numel=4", "no kernel `affine_f33`; did you mean `affine_f32`"),
        ("run fill_u8 buf=zeros:4 value=7", "`numel` is missing"),
        ("run fill_u8 buf=zeros:4 value=7 numel=4 n=4", "no parameter `n`; did you mean"),
        ("run fill_u8 buf=zeros:4 value=7 value=8 numel=4", "`value` is given twice"),
        ("run fill_u8 buf=zeros:4 value=256 numel=4", "256 is out of range for u8"),
        ("run fill_u8 buf=null value=1 numel=4", "needs memory"),
        ("run fill_u8 buf=zeros:99 value=7 numel=100", "`buf` has 99 elements and needs 100 (numel)"),
        ("run fill_u8 buf=nowhere.npy value=1 numel=4", "nowhere.npy"),
        ("run fill_u8 buf=zeros:4 value=-4 numel=4", "-4 is out of range for u8"),
        ("run fill_u8 buf=zeros:4 value=7 numel=-4", "-4 is out of range for usize"),
        ("run fill_u8 buf=zeros:4 value=x numel=4", "`x` is not a whole number"),
        ("run fill_f32 buf=zeros:4 value=x numel=4", "`x` is not a number"),
        ("run fill_u8 buf=zeros:x value=7 numel=4", "`x` is not a number of elements"),
        ("run fill_u8 buf=random:4:x value=7 numel=4", "`x` is not a seed"),
        ("run fill_u8 buf=f32:zeros:4 value=7 numel=4", "of type u8, not f32"),
    ] {
        refused(args, message);
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
    // What the examples of run-hip and run-rocm run is any program.
    for program in ["saxpy", "test-backend-ops", "python3", "rocminfo"] {
        let file = folder.join(program);
        std::fs::write(&file, "#!/bin/sh\nprintf '%s\\n' \"$0 $*\"\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::fs::write(folder.join("known.txt"), "LdsRace *soft_max*\n").unwrap();
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
            // Ten minutes for a card, hours for an emulated one.
            if line == "candle-amdgpu report" {
                continue;
            }
            let mut shell = Command::new("sh");
            shell.env("PATH", &path).env("CANDLE_AMDGPU_DEVICE", "emulator").current_dir(&folder);
            let output = shell.args(["-c", line]).output().expect("sh");
            assert_eq!(output.status.code(), Some(i32::from(bug)), "{line}: {}", stderr(&output));
            assert!(!output.stdout.is_empty() || bug || line.contains('>'), "{line} prints nothing");
            assert!(!stdout(&output).contains('\u{1b}'), "{line} prints colours into a pipe");
            if bug {
                let text = stderr(&output);
                assert!(text.contains("fill_u8") && text.contains("fill.rs"), "{text}");
            } else if command == "run-hip" {
                assert!(
                    stderr(&output).contains("candle-amdgpu run-hip: the program made no HIP call"),
                    "{line}: {}",
                    stderr(&output)
                );
            } else if command == "run-rocm" {
                assert!(
                    stderr(&output).contains("candle-amdgpu run-rocm: the program did not open the driver"),
                    "{line}: {}",
                    stderr(&output)
                );
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
fn check_runs_memory_that_is_too_short() {
    // The kernel reads more than was written: the host filled one element of the buffer.
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
    for part in ["<svg", "Roofline", "2 Top/s", "<title>matrix: ", "aria-label='Flame graph'"] {
        assert!(page.contains(part), "{part} is missing");
    }
    for outside in ["http://", "https://", "<script", "<link", "url("] {
        assert!(!page.contains(outside), "{outside} in the page");
    }
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    assert_eq!(page.matches("<div").count(), page.matches("</div>").count());
}

#[test]
fn kernels_of_a_code_object_run_by_the_record_in_it() {
    let folder = scratch("object");
    let object = folder.join("affine.elf");
    std::fs::write(&object, candle_amdgpu::AFFINE.object("gfx90a").unwrap().bytes).unwrap();
    let with = |command: &str, args: &str| {
        let mut program = program();
        // The device follows from the code object.
        program.env_remove("CANDLE_AMDGPU_DEVICE").args([command, "affine_f32", "--object"]).arg(&object);
        program.args(args.split(' ')).output().unwrap()
    };
    let args = "numel=3 num_dims=1 info=null inp=[1,2,3] out=zeros:3 mul=2 add=1";
    let output = with("check", args);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stdout(&output).contains("affine_f32 on gfx90a: nothing found in 1 workgroup, 4 waves,"),
        "{}",
        stdout(&output)
    );
    let output = with("run", args);
    assert_eq!(stdout(&output).trim(), "out = [3, 5, 7]", "{}", stderr(&output));
    // Positions, types and a geometry may be given all the same.
    let all =
        "--grid 1 --block 64 numel=usize:3 1=usize:1 2=null 3=f32:[1,2,3] 4=f32:zeros:3 5=f32:2 add=f32:1";
    let output = with("profile", all);
    assert!(stdout(&output).contains("affine_f32 on gfx90a: 1 workgroup ("), "{}", stderr(&output));
    let output = with("check", &args.replace("numel=3", "numel=4"));
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stderr(&output).starts_with("error: ") && stderr(&output).contains("out of bounds"));
    for (from, to, message) in [
        ("numel=3", "numel=u32:3", "the parameter is of type usize, not u32"),
        ("mul=2", "mul=f16:2", "the parameter is of type f32, not f16"),
        ("mul=2", "mul=float:2", "`float:2` is not a number"),
        ("add=1", "7=1", "no parameter `7`"),
        ("numel=3", "numel=4", "`inp` has 3 elements and needs 4 (numel)"),
        ("inp=[1,2,3]", "inp=[]", "`inp` has 0 elements and needs 3 (numel)"),
    ] {
        is_refused(&with("run", &args.replace(from, to)), to, message);
    }
    for command in ["run", "profile", "check"] {
        let output = with(command, "--elements 1000");
        assert!(output.status.success(), "{}", stderr(&output));
    }
    // The lines of the kernel, by its name or by one like it.
    let shown =
        |args: &[&str]| program().arg("disasm").args(args).arg("--object").arg(&object).output().unwrap();
    let output = shown(&["affine_f32"]);
    assert!(stdout(&output).starts_with("affine_f32 for gfx90a: "), "{}", stderr(&output));
    assert_eq!(stdout(&output), stdout(&run(&["disasm", "affine_f32", "--gfx", "gfx90a"])));
    is_refused(
        &shown(&["afine_f32"]),
        "afine_f32",
        "there is no kernel `afine_f32`; did you mean `affine_f32`",
    );
    is_refused(&shown(&["affine_f32", "--gfx", "gfx1100"]), "gfx1100", "gfx90a");
    refused("check --object nowhere.elf k", "cannot read nowhere.elf");
    refused("disasm --object nowhere.elf k", "cannot read nowhere.elf");
}

#[test]
fn arguments_are_made_up_from_a_record_alone() {
    // Kernels that no family of this build has: the same code under other names.
    let folder = scratch("record");
    for (family, from, to) in [
        (candle_amdgpu::AFFINE, "affine_f32", "bffine_f32"),
        (candle_amdgpu::REDUCE, "softmax_f32", "toftmax_f32"),
        (candle_amdgpu::FILL, "fill_u8", "gill_u8"),
    ] {
        let object = folder.join("renamed.elf");
        let bytes = family.object("gfx1100").unwrap().bytes.to_vec();
        std::fs::write(&object, replaced(bytes, from, to)).unwrap();
        let with = |args: &[&str]| {
            let mut program = program();
            program.args(["check", to, "--object"]).arg(&object).args(args).output().unwrap()
        };
        let output = with(&["--elements", "1000"]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(
            stdout(&output).starts_with(&format!("{to} on gfx1100: nothing found in ")),
            "{}",
            stdout(&output)
        );
    }
}

/// With one text in place of another of the same length.
fn replaced(mut bytes: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let places: Vec<_> =
        bytes.windows(from.len()).enumerate().filter(|(_, w)| *w == from.as_bytes()).collect();
    let places: Vec<_> = places.into_iter().map(|(at, _)| at).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    bytes
}

#[test]
fn kernels_without_a_record_need_types_and_a_geometry() {
    let folder = scratch("no-record");
    let object = folder.join("affine.elf");
    let bytes = candle_amdgpu::AFFINE.object("gfx90a").unwrap().bytes.to_vec();
    std::fs::write(&object, replaced(bytes, ".amdgpu.kernels", ".other_section_")).unwrap();
    let with = |args: &str| {
        let mut program = program();
        program.env_remove("CANDLE_AMDGPU_DEVICE").args(["check", "affine_f32", "--object"]).arg(&object);
        program.args(args.split(' ')).output().unwrap()
    };
    let args =
        "--grid 1 --block 64 numel=usize:3 1=usize:1 2=null 3=f32:[1,2,3] 4=f32:zeros:3 5=f32:2 add=f32:1";
    let output = with(args);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stdout(&output).contains("affine_f32 on gfx90a: nothing found in 1 workgroup, 1 wave,"),
        "{}",
        stdout(&output)
    );
    for (from, to, message) in [
        ("numel=usize:3", "numel=u32:3", "the parameter has 8 bytes, but 4 are given"),
        ("5=f32:2", "5=2", "a type comes first"),
        ("5=f32:2", "5=float:2", "there is no type `float`; did you mean"),
        ("add=f32:1", "7=f32:1", "no parameter `7`"),
        ("--grid 1 --block 64 ", "", "give --grid and --block"),
    ] {
        is_refused(&with(&args.replace(from, to)), to, message);
    }
    is_refused(&with("--elements 100"), "--elements", "a record of their types");
    // A record that is damaged is not one that is missing.
    let bytes = candle_amdgpu::AFFINE.object("gfx90a").unwrap().bytes.to_vec();
    std::fs::write(&object, replaced(bytes, "AMDK", "KAMD")).unwrap();
    is_refused(&with(args), "damaged", "a record must begin with `AMDK`");
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
        (output.status.code(), stdout(&output).to_owned() + &stderr(&output))
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
