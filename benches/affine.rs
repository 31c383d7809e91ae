//! What affine over 2^28 f32 elements costs on each emulated target: bytes and instructions, no times.
//!
//! Instructions are counted at three smaller sizes. Each further workgroup executes the same instructions, so that
//! the counts lie on a line; this is checked, and the line is followed to 2^28. `cargo bench --bench affine`.

use candle_amdgpu::kernels::affine::affine_f32;
use candle_amdgpu::{Device, DeviceBuffer, Error, LaunchConfig, Layout};

/// Elements described.
const ELEMENTS: u64 = 1 << 28;
/// Elements counted.
const SIZES: [u64; 3] = [1 << 17, 1 << 18, 1 << 19];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    amdhip64::choose("emulator:gfx1030,gfx1100,gfx90a")?;
    println!(
        "affine_f32, {ELEMENTS} elements, contiguous: 4 bytes read and 4 written per element, 2 GiB in all\n"
    );
    println!(
        "{:<9}{:<28}{:>16}{:>20}{:>20}{:>18}",
        "target", "geometry", "wave instr.", "lane instr./element", "bytes/wave instr.", "workgroups"
    );
    for device in Device::all()? {
        let own = LaunchConfig::auto();
        describe(&device, "its own: 256 × 16 elements", |_| own, ELEMENTS.div_ceil(4096))?;
        let candle = |n| LaunchConfig::for_num_elems(n as u32);
        describe(&device, "Candle's: 1024 × 1 element", candle, ELEMENTS.div_ceil(1024))?;
    }
    Ok(())
}

fn describe(
    device: &Device,
    name: &str,
    config: impl Fn(u64) -> LaunchConfig,
    workgroups: u64,
) -> Result<(), Error> {
    let mut counts = [(0, 0); 3];
    for (count, n) in counts.iter_mut().zip(SIZES) {
        *count = instructions(device, n, config(n))?;
    }
    let line = |counts: [u64; 3]| {
        let (first, second) = (counts[1] - counts[0], counts[2] - counts[1]);
        assert_eq!(2 * first, second, "{name}: counts {counts:?} at {SIZES:?} are on no line");
        counts[2]
            + second / (SIZES[2] - SIZES[1]) * (ELEMENTS - SIZES[2])
            + second % (SIZES[2] - SIZES[1]) * (ELEMENTS - SIZES[2]) / (SIZES[2] - SIZES[1])
    };
    let (waves, lanes) = (line(counts.map(|c| c.0)), line(counts.map(|c| c.1)));
    println!(
        "{:<9}{name:<28}{waves:>16}{:>20.2}{:>20.1}{workgroups:>18}",
        device.arch(),
        lanes as f64 / ELEMENTS as f64,
        8.0 * ELEMENTS as f64 / waves as f64,
    );
    Ok(())
}

/// Wave and lane instructions of one launch.
fn instructions(device: &Device, n: u64, config: LaunchConfig) -> Result<(u64, u64), Error> {
    let stream = device.stream()?;
    let n = n as usize;
    let x = DeviceBuffer::<f32>::zeros(&stream, n)?;
    let mut y = DeviceBuffer::<f32>::zeros(&stream, n)?;
    stream.synchronize()?;
    let counters = || amdhip64::counters(device.ordinal()).expect("the device is emulated");
    let before = counters();
    affine_f32(&stream, config, &Layout::flat(n), &x, &mut y, 2.0, 1.0)?;
    stream.synchronize()?;
    let after = counters();
    Ok((
        after.wave_instructions - before.wave_instructions,
        after.lane_instructions - before.lane_instructions,
    ))
}
