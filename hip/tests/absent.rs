//! Functions that emulated devices do not have: exported all the same, and refused by name.

mod common;

use std::collections::BTreeSet;
use std::process::Command;
use std::ptr::null_mut;

use common::*;

const PROBE: &str = "AMDHIP_TEST_ABSENT";

unsafe extern "C" {
    fn hipTexRefGetFlags(flags: *mut u32, reference: *const u8) -> hipError_t;
    fn hipImportExternalMemory(memory: *mut *mut u8, description: *const u8) -> hipError_t;
}

/// Names of the table, in its order.
fn table() -> Vec<&'static str> {
    include_str!("../functions.txt").lines().filter_map(|line| line.strip_prefix("    ")).collect()
}

#[test]
fn the_table_names_each_function_once_and_all_that_are_exported() {
    let table = table();
    let names: BTreeSet<_> = table.iter().copied().collect();
    assert_eq!(names.len(), table.len(), "a name stands twice");
    assert!(names.len() > 500);
    // Cargo links the library into the folder of the test binaries.
    let path = std::env::current_exe().unwrap().with_file_name("libamdhip64.so");
    // SAFETY: the library is this crate's own; only addresses are looked at.
    let missing: Vec<_> = unsafe {
        let library = libloading::Library::new(&path).unwrap();
        let found = |name: &&&str| library.get::<*const ()>(name.as_bytes()).is_err();
        names.iter().filter(found).collect()
    };
    assert!(missing.is_empty(), "not exported: {missing:?}");
}

#[test]
fn an_absent_function_is_refused_by_name() {
    on(0);
    // SAFETY: nothing is read or written.
    unsafe {
        fails(hipTexRefGetFlags(null_mut(), null_mut()), hipErrorNotSupported, "hipTexRefGetFlags");
        assert_eq!(hipGetLastError(), hipErrorNotSupported);
        assert_eq!(hipGetLastError(), hipSuccess);
        assert_eq!(hipGetStreamDeviceId(null_mut()), 0);
        assert_eq!(hipGetStreamDeviceId(3 as hipStream_t), -1);
    }
    assert_eq!(hipCreateChannelDesc(32, 0, 0, 0, 2), hipChannelFormatDesc { x: 32, y: 0, z: 0, w: 0, f: 2 });
}

/// What the child process of the next test runs.
#[test]
fn probe() {
    if std::env::var_os(PROBE).is_none() {
        return;
    }
    on(0);
    for _ in 0..3 {
        // SAFETY: nothing is read or written.
        unsafe {
            hipTexRefGetFlags(null_mut(), null_mut());
            hipImportExternalMemory(null_mut(), null_mut());
        }
    }
}

#[test]
fn each_absent_function_is_named_once_unless_that_is_turned_off() {
    let run = |value: &str| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "probe", "--nocapture"]).env(PROBE, "1").env(WARN_VARIABLE, value);
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    let text = run("1");
    for name in ["hipTexRefGetFlags", "hipImportExternalMemory"] {
        assert_eq!(text.matches(&format!("amdhip64: {name} is not there")).count(), 1, "{text}");
    }
    assert!(!run("0").contains("amdhip64:"));
}
