//! A kernel that stops says why, and where.

use candle_amdgpu::{Device, DeviceBuffer, LaunchConfig, Result};
use library::kernels::messages::*;

/// What a launch over these elements says.
fn error_of(device: &Device, x: &[u32]) -> Result<String> {
    let stream = device.stream()?;
    let inp = DeviceBuffer::from_slice(&stream, x)?;
    let mut out = DeviceBuffer::zeros(&stream, x.len())?;
    let result = shares(&stream, LaunchConfig::auto(), x.len(), &inp, &mut out).and_then(|()| stream.synchronize());
    Ok(result.err().map(|error| error.to_string()).unwrap_or_default())
}

#[test]
fn a_message_and_its_line_are_in_the_report() -> Result<()> {
    let source = include_str!("../kernels/src/messages.rs");
    for device in Device::all()?.iter().filter(|device| device.is_emulated()) {
        assert_eq!(error_of(device, &[1, 2, 50])?, "");
        for (x, text, at) in [
            ([1, 2, 0], "nothing to share among", "ensure!(x != 0"),
            ([1, 2, 101], "it does not hold that x <= 100", "ensure!(x <= 100"),
        ] {
            let error = error_of(device, &x)?;
            assert!(error.contains(text), "{device}: {error}");
            let line = 1 + source.lines().position(|line| line.contains(at)).unwrap();
            assert!(error.contains(&format!("messages.rs:{line}")), "{device}: {error}");
        }
    }
    Ok(())
}
