//! A kernel that stops says why, and where.

use candle_amdgpu::{Device, DeviceBuffer, LaunchConfig, Result};
use library::kernels::messages::*;

/// What a launch over these elements says.
fn error_of(device: &Device, x: &[u32]) -> Result<String> {
    let stream = device.stream()?;
    let inp = DeviceBuffer::from_slice(&stream, x)?;
    let mut out = DeviceBuffer::zeros(&stream, x.len())?;
    let result = shares(&stream, LaunchConfig::auto(), x.len(), &inp, &mut out)
        .and_then(|()| stream.synchronize());
    Ok(result
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default())
}

#[test]
fn a_message_and_its_line_are_in_the_report() -> Result<()> {
    let source = include_str!("../kernels/src/messages.rs");
    for device in Device::all()?.iter().filter(|device| device.is_emulated()) {
        assert_eq!(error_of(device, &[1, 2, 50])?, "");
        for (x, text, at) in [
            ([1, 2, 0], "nothing to share among", "ensure!(x != 0"),
            (
                [1, 2, 101],
                "it does not hold that x <= 100",
                "ensure!(x <= 100",
            ),
        ] {
            let error = error_of(device, &x)?;
            assert!(error.contains(text), "{device}: {error}");
            let line = 1 + source.lines().position(|line| line.contains(at)).unwrap();
            assert!(
                error.contains(&format!("messages.rs:{line}")),
                "{device}: {error}"
            );
        }
    }
    Ok(())
}

#[test]
fn panics_of_a_build_with_checks_say_what_they_are() -> Result<()> {
    let source = include_str!("../kernels/src/messages.rs");
    for device in Device::all()?.iter().filter(|device| device.is_emulated()) {
        let launch = |kind: u32, by: i32, x: &[i32]| -> Result<Vec<i32>> {
            let stream = device.stream()?;
            let inp = DeviceBuffer::from_slice(&stream, x)?;
            let mut out = DeviceBuffer::zeros(&stream, x.len())?;
            products(
                &stream,
                LaunchConfig::auto(),
                x.len(),
                kind,
                by,
                &inp,
                &mut out,
            )?;
            out.to_vec()
        };
        assert_eq!(launch(0, 3, &[1, -2, 5])?, [3, -6, 15], "{device}");
        assert_eq!(launch(1, 0, &[2, 0, 1])?, [2, 0, 1], "{device}");
        for (kind, x, text, at) in [
            (
                0,
                i32::MAX,
                "attempt to multiply with overflow",
                "0 => x * by",
            ),
            (
                1,
                3,
                "a number that is not among the first three",
                "1 => *expect!",
            ),
            (2, 0, "a kind that this kernel does not know", "_ => fail!"),
        ] {
            let error = launch(kind, 2, &[x]).unwrap_err().to_string();
            assert!(error.contains(text), "{device}: {error}");
            let line = 1 + source.lines().position(|line| line.contains(at)).unwrap();
            assert!(
                error.contains(&format!("messages.rs:{line}")),
                "{device}: {error}"
            );
        }
    }
    Ok(())
}

/// In a process of its own, whose output another test reads.
const PRINTS: &str = "LIBRARY_PRINTS";

#[test]
fn prints_where_it_is_asked_to() -> Result<()> {
    if std::env::var_os(PRINTS).is_none() {
        return Ok(());
    }
    for device in Device::all()? {
        let stream = device.stream()?;
        let x: Vec<i32> = (0..130)
            .map(|i| if i % 60 == 7 { 100 + i } else { -5 })
            .collect();
        let inp = DeviceBuffer::from_slice(&stream, &x)?;
        prints(&stream, LaunchConfig::auto(), x.len(), &inp)?;
        stream.synchronize()?;
    }
    Ok(())
}

#[test]
fn what_kernels_print_is_on_standard_output() -> Result<()> {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "prints_where_it_is_asked_to", "--nocapture"])
        .env(PRINTS, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let devices = Device::all()?.len();
    for i in [7, 67, 127] {
        let half = f64::from(100 + i) / 2.0;
        let line = format!(
            "place {i}: {} is above its neighbour, {half:.2} is half of it\n",
            100 + i
        );
        assert_eq!(text.matches(&line).count(), devices, "{text}");
    }
    assert_eq!(text.matches("neighbour").count(), 3 * devices, "{text}");
    Ok(())
}
