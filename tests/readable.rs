//! What a program shows of a fault that it returns from `main`.

use candle_amdgpu::{AFFINE, Device, DeviceBuffer, LaunchConfig};
use std::process::Command;

/// A kernel that writes past the end of its memory, and `?`. `asks`: the program waits for the stream.
fn program(asks: bool) -> candle_amdgpu::Result<()> {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let mut out = DeviceBuffer::<u8>::zeros(&stream, 3)?;
    let function = device.get_or_load_func("affine_u8", &AFFINE)?;
    let launch = function.launch_builder(&stream).value(4000_usize).value(1_usize).null().null();
    // SAFETY: the emulator reports what is out of bounds.
    unsafe { launch.memory_mut(&mut out).value(1_u8).value(1_u8).launch(LaunchConfig::auto())? };
    if asks { stream.synchronize() } else { Ok(()) }
}

#[test]
#[ignore = "the program that the others run"]
fn child() -> candle_amdgpu::Result<()> {
    program(std::env::var_os("FORGETFUL").is_none())
}

/// What the program writes.
fn output(variables: &[(&str, &str)]) -> String {
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child.args(["--exact", "child", "--ignored", "--nocapture", "--test-threads", "1"]);
    child.env("CANDLE_AMDGPU_DEVICE", "emulator:gfx1100").envs(variables.iter().copied());
    let output = child.output().expect("it runs");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_fault_is_shown_once_and_as_text() {
    let text = output(&[]);
    assert_eq!(text.matches("is out of bounds").count(), 1, "{text}");
    assert!(text.contains("Error: hipStreamSynchronize failed: hipErrorIllegalAddress (700), "), "{text}");
    assert!(text.contains("\n  kernel affine_u8 on gfx1100, workgroup ("), "{text}");
    assert!(!text.contains("\\n") && !text.contains("Hip {"), "{text}");
}

#[test]
fn a_fault_that_nobody_asks_for_is_shown_at_the_end() {
    let text = output(&[("FORGETFUL", "1")]);
    assert_eq!(text.matches("is out of bounds").count(), 1, "{text}");
    assert!(text.contains("amdhip64: "), "{text}");
}

#[test]
fn wrong_variables_are_one_error() {
    let text = output(&[("CANDLE_AMDGPU_SEED", "foo"), ("CANDLE_AMDGPU_CHECK", "foo")]);
    assert_eq!(text.matches("CANDLE_AMDGPU_SEED=`foo`: must be a whole number").count(), 1, "{text}");
    assert_eq!(
        text.matches(
            "CANDLE_AMDGPU_CHECK=`foo`: must be 1 (on), all (on, and go on behind findings) or 0 (off)"
        )
        .count(),
        1,
        "{text}"
    );
    assert!(!text.contains("amdhip64: "), "{text}");
}
