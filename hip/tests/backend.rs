//! Which library the calls reach. The choice is one per process, so each case is a process of its own: this test
//! binary, asked for `probe` alone.

use std::path::Path;
use std::process::Command;
use std::ptr::null_mut;
use std::sync::OnceLock;

use amdhip64::*;

const PROBE: &str = "AMDHIP_TEST_PROBE";

unsafe extern "C" {
    // Written nowhere in the crate, which passes it on without knowing these types.
    #[allow(clippy::too_many_arguments)]
    fn hipMemcpy3DPeer(
        a: i64,
        b: f64,
        c: i64,
        d: f32,
        e: i64,
        f: i64,
        g: i64,
        h: i64,
        i: i64,
        j: f64,
        k: i16,
    ) -> hipError_t;
}

/// What each case runs: a few calls, and what came of them.
#[test]
fn probe() {
    if std::env::var_os(PROBE).is_none() {
        return;
    }
    // SAFETY: every pointer is valid for writing.
    unsafe {
        let mut count = -1;
        let code = hipGetDeviceCount(&mut count);
        println!("count: {} {count}", error_name(code));
        let mut pointer = null_mut();
        println!("malloc: {} {}", error_name(hipMalloc(&mut pointer, 64)), pointer as usize == 0xabc000);
        println!("free: {}", error_name(hipFree(pointer)));
        println!("last: {} {}", error_name(hipGetLastError()), error_name(hipGetLastError()));
        let handle = 0x77 as hipFunction_t;
        let stream = 0x88 as hipStream_t;
        let code = hipModuleLaunchKernel(handle, 1, 2, 3, 4, 5, 6, 7, stream, null_mut(), null_mut());
        println!("launch: {}", error_name(code));
        println!("absent: {}", error_name(hipMemsetD16(pointer, 0, 0)));
        println!("text: {}", last_error().map_or(String::new(), |error| error.text));
        let mut properties: hipDeviceProp_tR0600 = std::mem::zeroed();
        let code = hipGetDevicePropertiesR0600(&mut properties, 0);
        let text = |chars: &[std::ffi::c_char]| {
            let bytes: Vec<u8> = chars.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
            String::from_utf8(bytes).unwrap()
        };
        println!(
            "properties: {} {} {} memory {} lds {} wave {} threads {} units {} pools {}",
            error_name(code),
            text(&properties.name),
            text(&properties.gcnArchName),
            properties.totalGlobalMem,
            properties.sharedMemPerBlock,
            properties.warpSize,
            properties.maxThreadsPerBlock,
            properties.multiProcessorCount,
            properties.memoryPoolsSupported
        );
        println!("wrong device: {}", hipGetDevicePropertiesR0600(&mut properties, 3));
        println!("nowhere: {}", error_name(hipGetDevicePropertiesR0600(null_mut(), 0)));
        let (mut exec, mut opened) = (null_mut(), null_mut());
        println!("capture: {}", error_name(hipStreamBeginCapture(stream, 2)));
        println!("graph: {} {exec:?}", error_name(hipGraphInstantiateWithFlags(&mut exec, handle, 8)));
        let pitched = hipPitchedPtr { ptr: pointer, pitch: 512, xsize: 300, ysize: 20 };
        let extent = hipExtent { width: 9, height: 8, depth: 7 };
        println!("by value: {}", error_name(hipMemset3D(pitched, -6, extent)));
        let (mut array, channels) = (null_mut(), hipChannelFormatDesc { x: 8, y: 8, z: 0, w: 0, f: 1 });
        println!("array: {} {array:?}", error_name(hipMalloc3DArray(&mut array, &channels, extent, 2)));
        let code = hipMemcpy2DToArray(0xaaa as hipArray_t, 1, 2, 0xbbb as *const _, 3, 4, 5, 9);
        println!("to array: {}", error_name(code));
        let mut memory: hipIpcMemHandle_t = std::mem::zeroed();
        (memory.reserved[0], memory.reserved[63]) = (4, 5);
        println!("large: {} {opened:?}", error_name(hipIpcOpenMemHandle(&mut opened, memory, 1)));
        println!("far: {}", hipMemcpy3DPeer(1, 2.5, 3, 4.5, 5, 6, 7, 8, 9, 10.5, 11));
    }
    println!("emulator: {}", emulator(0).is_some());
    println!("counters: {}", counters(0).map_or_else(|error| error.to_string(), |_| "there".to_owned()));
    match backend_info() {
        Ok(info) => println!("backend: {:?}\nreason: {}", info.kind, info.reason),
        Err(error) => println!("error: {error}"),
    }
}

/// The standard output and error of a probe in an environment.
fn run(environment: &[(&str, &str)]) -> (String, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "probe", "--nocapture"])
        .env(PROBE, "1")
        .env_remove("ROCM_PATH")
        .env_remove("HIP_PATH");
    command
        .env(WARN_VARIABLE, "0")
        .env_remove(DEVICE_VARIABLE)
        .env_remove(LIBRARY_VARIABLE)
        .envs(environment.iter().copied());
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{out}\n{err}");
    (out, err)
}

#[track_caller]
fn has(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.contains(line), "`{line}` is not in\n{text}");
    }
}

/// The folder with a library that is not ours, named like that of ROCm 7.
fn fake() -> &'static str {
    static FOLDER: OnceLock<String> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fake-hip");
        std::fs::create_dir_all(&folder).unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/libamdhip64.c");
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let done = Command::new(compiler)
            .args(["-shared", "-fPIC", "-o"])
            .args([folder.join("libamdhip64.so.7"), source])
            .status()
            .expect("a C compiler, which Rust needs for linking too");
        assert!(done.success());
        folder.into_os_string().into_string().unwrap()
    })
}

fn fake_library() -> String {
    format!("{}/libamdhip64.so.7", fake())
}

const NOWHERE: &str = "/nowhere/libamdhip64.so";

#[track_caller]
fn reached_the_fake(out: &str) {
    has(
        out,
        &[
            "count: hipSuccess 1",
            "fake: hipGetDevice\nfake: hipMalloc 64\nmalloc: hipSuccess true",
            "fake: hipFree 0xabc000\nfree: hipErrorInvalidDevicePointer",
            "last: hipErrorInvalidDevicePointer hipSuccess",
            "fake: hipModuleLaunchKernel 0x77 (1, 2, 3) (4, 5, 6) 7 0x88 (nil) (nil)",
            "launch: hipSuccess",
            "absent: hipErrorNotSupported",
            "fake: hipStreamBeginCapture 0x88 2\ncapture: hipSuccess",
            "fake: hipGraphInstantiateWithFlags 0x77 8\ngraph: hipSuccess 0x99",
            "fake: hipMemset3D 0xabc000 512 300 20 -6 9 8 7\nby value: hipErrorInvalidValue",
            "fake: hipMalloc3DArray 8 8 0 0 1 9 8 7 2\narray: hipSuccess 0xaaa",
            "fake: hipMemcpy2DToArray 0xaaa 1 2 0xbbb 3 4 5 9\nto array: hipErrorInvalidMemcpyDirection",
            "fake: hipIpcOpenMemHandle 4 5 1\nlarge: hipSuccess 0xdef000",
            "fake: hipMemcpy3DPeer 1 2.5 3 4.5 5 6 7 8 9 10.5 11\nfar: 12",
            "has no hipMemsetD16",
            // The library is HIP 5's, which has the older layout alone.
            "fake: hipGetDeviceProperties\nfake: hipDeviceGetAttribute 88\nproperties: hipSuccess AMD Radeon RX 7800 XT gfx1101 \
             memory 17163091968 lds 65536 wave 32 threads 1024 units 30 pools 1",
            "fake: hipGetDeviceProperties of a wrong device\nwrong device: 101",
            "nowhere: hipErrorInvalidValue",
            "emulator: false",
            "counters: not available here: the devices are real ones",
            "backend: Hip {",
        ],
    );
}

#[track_caller]
fn reached_the_emulator(out: &str) {
    has(
        out,
        &[
            "count: hipSuccess 3",
            "malloc: hipSuccess false",
            "free: hipSuccess",
            "last: hipSuccess hipSuccess",
            "launch: hipErrorInvalidHandle",
            "absent: hipSuccess",
            "capture: hipErrorInvalidHandle",
            "graph: hipErrorInvalidValue 0x0",
            "by value: hipErrorInvalidValue",
            "array: hipSuccess",
            "to array: hipErrorInvalidHandle",
            "large: hipErrorNotSupported 0x0",
            "far: 801",
            "emulator: true",
            "counters: there",
            "backend: Emulator([Gfx1100, Gfx1030, Gfx90a])",
        ],
    );
    assert!(!out.contains("fake:"), "{out}");
}

#[test]
fn hip_forwards_to_the_real_library() {
    let (out, _) = run(&[(DEVICE_VARIABLE, "hip"), (LIBRARY_VARIABLE, &fake_library())]);
    reached_the_fake(&out);
    has(&out, &["reason: CANDLE_AMDGPU_DEVICE=hip; ", "has 1 device"]);
}

#[test]
fn auto_takes_the_real_library_where_the_loader_finds_it() {
    let (out, _) = run(&[("LD_LIBRARY_PATH", fake())]);
    reached_the_fake(&out);
    has(
        &out,
        &["library: \"libamdhip64.so.7\"", "reason: CANDLE_AMDGPU_DEVICE is not set; libamdhip64.so.7 has"],
    );
}

#[test]
fn auto_takes_the_real_library_where_rocm_path_says() {
    let rocm = format!("{}/rocm", fake());
    std::fs::create_dir_all(format!("{rocm}/lib")).unwrap();
    std::fs::copy(fake_library(), format!("{rocm}/lib/libamdhip64.so.6")).unwrap();
    let (out, _) = run(&[(DEVICE_VARIABLE, "auto"), ("ROCM_PATH", &rocm)]);
    reached_the_fake(&out);
    has(&out, &["rocm/lib/libamdhip64.so.6"]);
}

#[test]
fn auto_emulates_where_the_library_has_no_device() {
    let (out, _) = run(&[(LIBRARY_VARIABLE, &fake_library()), ("FAKE_DEVICES", "0")]);
    reached_the_emulator(&out);
    has(&out, &["has no device (hipGetDeviceCount gave error 100, count 0)"]);
}

#[test]
fn auto_emulates_where_there_is_no_library() {
    let (out, err) = run(&[(LIBRARY_VARIABLE, NOWHERE)]);
    reached_the_emulator(&out);
    has(&out, &["no libamdhip64 loads (tried /nowhere/libamdhip64.so"]);
    assert!(!err.contains("amdhip64:"), "{err}");
}

#[test]
fn this_crates_own_library_is_not_taken_for_the_real_one() {
    // Cargo links it into the folder of the test binaries.
    let own = std::env::current_exe().unwrap().with_file_name("libamdhip64.so");
    assert!(own.exists(), "cargo builds {} for the tests", own.display());
    let (out, _) = run(&[(LIBRARY_VARIABLE, own.to_str().unwrap())]);
    reached_the_emulator(&out);
    has(&out, &["is this project's own library"]);
}

#[test]
fn emulator_never_looks_for_the_library() {
    let library = fake_library();
    let (out, _) = run(&[(DEVICE_VARIABLE, "emulator"), (LIBRARY_VARIABLE, &library)]);
    reached_the_emulator(&out);
    let (out, _) = run(&[(DEVICE_VARIABLE, "emulator:gfx90a,gfx1201"), (LIBRARY_VARIABLE, &library)]);
    has(&out, &["count: hipSuccess 2", "backend: Emulator([Gfx90a, Gfx1201])"]);
}

#[test]
fn hip_without_a_device_is_an_error_that_says_so_once() {
    let hip = (DEVICE_VARIABLE, "hip");
    for environment in [
        [hip, (LIBRARY_VARIABLE, NOWHERE), ("FAKE_DEVICES", "1")],
        [hip, (LIBRARY_VARIABLE, &fake_library()), ("FAKE_DEVICES", "0")],
    ] {
        let (out, err) = run(&environment);
        has(
            &out,
            &[
                "count: hipErrorNoDevice -1",
                "malloc: hipErrorNoDevice",
                "error: CANDLE_AMDGPU_DEVICE=hip, but",
            ],
        );
        has(&out, &["use `auto` or `emulator` to run without an AMD GPU", "emulator: false"]);
        assert_eq!(err.matches("amdhip64: CANDLE_AMDGPU_DEVICE=hip, but").count(), 1, "{err}");
    }
}

#[test]
fn a_typo_is_an_error_that_lists_the_choices_once() {
    let (out, err) = run(&[(DEVICE_VARIABLE, "emulater")]);
    has(&out, &["count: hipErrorInvalidValue -1", "malloc: hipErrorInvalidValue"]);
    has(
        &out,
        &[
            "error: CANDLE_AMDGPU_DEVICE=`emulater`: no such choice; the choices are auto, hip, cuda, emulator,",
        ],
    );
    assert_eq!(err.matches("amdhip64: CANDLE_AMDGPU_DEVICE=`emulater`").count(), 1, "{err}");
}

#[test]
fn wrong_variables_are_an_error_that_is_said_once() {
    let variables = [
        (DEVICE_VARIABLE, "emulator"),
        (SEED_VARIABLE, "foo"),
        (CHECK_VARIABLE, "foo"),
        (BUDGET_VARIABLE, "0"),
    ];
    let (out, err) = run(&variables);
    has(&out, &["count: hipErrorInvalidValue -1", "malloc: hipErrorInvalidValue"]);
    assert_eq!(err.matches("amdhip64: CANDLE_AMDGPU_").count(), 1, "{err}");
    for name in [SEED_VARIABLE, CHECK_VARIABLE] {
        assert_eq!(err.matches(&format!("{name}=`foo`: must be ")).count(), 1, "{err}");
    }
    assert!(err.contains("CANDLE_AMDGPU_BUDGET=`0`: must be "), "{err}");
}

#[test]
fn a_choice_after_the_first_call_comes_too_late() {
    choose("emulator:gfx1151").unwrap();
    choose("emulator:gfx942").unwrap();
    assert!(choose("emulator:gfx0").is_err());
    let mut count = 0;
    // SAFETY: the count is valid for writing.
    assert_eq!(unsafe { hipGetDeviceCount(&mut count) }, hipSuccess);
    assert_eq!(backend_info().unwrap().kind, BackendKind::Emulator(vec![amdgpu_emulator::Gfx::Gfx942]));
    let error = choose("emulator:gfx1151").unwrap_err();
    assert!(error.to_string().contains("chosen already (the program chose it)"), "{error}");
}
