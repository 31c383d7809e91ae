//! Workgroup memory of several types does not overlap.

use candle_amdgpu::{Device, DeviceBuffer, LaunchConfig, Result};
use library::kernels::memory::*;

#[test]
fn places_do_not_overlap() -> Result<()> {
    for device in Device::all()? {
        let stream = device.stream()?;
        // What the launch gives: as much as the kernel asks for, none, an odd number of bytes, more than there are work-items.
        let of_launch = [(LaunchConfig::auto(), 64)]
            .into_iter()
            .chain([0, 33, 400].map(|bytes| {
                (
                    LaunchConfig::explicit([1; 3], [64, 1, 1], bytes),
                    bytes as usize / 2,
                )
            }));
        for (config, given) in of_launch {
            let expected: Vec<f32> = (0..7)
                .flat_map(|row| {
                    (0..64).map(move |id| {
                        let other = 63 - id;
                        let number = other as f32;
                        match row {
                            0 => number,
                            1 => 64.0 + number,
                            2 => 128.0 + number,
                            3 => 192.0 + number + number * 0.5 + number,
                            4 if other < given => 256.0 + number,
                            4 => -1.0,
                            5 => 320.0 + number,
                            _ => 77.0 + given as f32,
                        }
                    })
                })
                .collect();
            let mut out = DeviceBuffer::zeros(&stream, 7 * 64)?;
            places_f32(&stream, config, &mut out)?;
            assert_eq!(
                out.to_vec()?,
                expected,
                "f32 with {given} elements of the launch on {device}"
            );
            places_f16(&stream, config, &mut out)?;
            assert_eq!(
                out.to_vec()?,
                expected,
                "f16 with {given} elements of the launch on {device}"
            );
        }
    }
    Ok(())
}

#[test]
fn a_place_is_the_same_in_each_call() -> Result<()> {
    for device in Device::all()? {
        let stream = device.stream()?;
        let mut out = DeviceBuffer::zeros(&stream, 1)?;
        same_place(&stream, LaunchConfig::auto(), &mut out)?;
        assert_eq!(out.to_vec()?, [1], "{device}");
    }
    Ok(())
}
