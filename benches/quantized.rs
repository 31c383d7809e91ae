//! What a product of a quantized matrix with vectors costs on each emulated target: wave instructions per weight, and the
//! bytes that global memory moves per byte that the kernel asks for and per byte of the matrix. The latter include the
//! vectors, which each workgroup reads. Counts, no times. `cargo bench --bench quantized`.

use amdgpu_emulator::Unit;
use candle_amdgpu::generated::{self, Slot};
use candle_amdgpu::{Device, DeviceBuffer, Error, Kernel, LaunchConfig, QUANTIZED};
use candle_amdgpu_verify::reference::quantized::Format;

/// Rows and columns of the matrix.
const SIZES: [usize; 2] = [128, 4096];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    amdhip64::choose("emulator:gfx1030,gfx1100,gfx90a")?;
    println!("a matrix of {} × {} by one vector, and by eight\n", SIZES[0], SIZES[1]);
    println!(
        "{:<32}{:<9}{:>20}{:>20}{:>22}{:>15}",
        "kernel",
        "target",
        "wave instr./weight",
        "bytes moved/needed",
        "bytes moved/matrix's",
        "LDS conflicts"
    );
    let products = |kernel: &&Kernel| kernel.name.ends_with("_cuda1") || kernel.name.ends_with("_cuda8");
    for kernel in QUANTIZED.kernels().iter().filter(products) {
        for device in Device::all()? {
            describe(&device, kernel)?;
        }
    }
    Ok(())
}

fn describe(device: &Device, kernel: &'static Kernel) -> Result<(), Box<dyn std::error::Error>> {
    let name = kernel.name.trim_start_matches("mul_mat_vec_");
    let (name, vectors) = name.split_once("_q8_1_cuda").ok_or("not a product")?;
    let format = Format::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(name));
    let (format, vectors) = (format.ok_or("not a format")?, vectors.parse::<usize>()?);
    let [rows, columns] = SIZES;
    let matrix = rows * columns / format.elements() * format.bytes();

    let stream = device.stream()?;
    let x = DeviceBuffer::<u8>::zeros(&stream, matrix)?;
    let y = DeviceBuffer::<u8>::zeros(&stream, vectors * columns / 32 * 36)?;
    let mut out = DeviceBuffer::<f32>::zeros(&stream, vectors * rows)?;
    let [n, k] = [rows, columns].map(|n| Slot::value(n as i32));
    let mut slots = [Slot::read::<u8>(&x), Slot::read::<u8>(&y), Slot::write::<f32>(&mut out), k, n, k, n];
    stream.synchronize()?;
    amdhip64::set_profile(device.ordinal(), true)?;
    // SAFETY: the slots have the types of the product's parameters.
    unsafe { generated::launch(&QUANTIZED, kernel, &stream, LaunchConfig::auto(), &[], &mut slots)? };
    stream.synchronize()?;
    let mut records = amdhip64::take_profile(device.ordinal())?;
    amdhip64::set_profile(device.ordinal(), false)?;
    let record = records.pop().ok_or(Error::NoGeometry { kernel: kernel.name.to_owned() })?;
    let profile = record.report.profile.as_ref().ok_or("profile mode is on")?;
    let units = profile.by_unit();
    let [global, lds] = [Unit::Vmem, Unit::Lds].map(|unit| units.get(&unit).copied().unwrap_or_default());
    println!(
        "{:<32}{:<9}{:>20.4}{:>20.2}{:>22.2}{:>14.1}%",
        kernel.name,
        device.arch(),
        record.report.wave_instructions as f64 / (rows * columns) as f64,
        global.bytes_moved as f64 / global.bytes_needed.max(1) as f64,
        global.bytes_moved as f64 / matrix as f64,
        100.0 * lds.bank_conflicts as f64 / lds.lds_cycles.max(1) as f64,
    );
    Ok(())
}
