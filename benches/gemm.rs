//! What matrix products cost on each emulated target: wave instructions per multiply-add, with matrix instructions and
//! without, and bank conflicts of workgroup memory. Counts, no times. `cargo bench --bench gemm`.

use amdgpu_emulator::Unit;
use candle_amdgpu::generated::{self, Slot};
use candle_amdgpu::{Device, DeviceBuffer, Element, Error, GEMM, Kernel, LaunchConfig, bf16, f16};

/// Rows, columns and common dimension of the products; those for few columns have 16 or 1.
const SIZES: [usize; 3] = [256, 256, 512];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    amdhip64::choose("emulator:gfx1030,gfx1100,gfx90a")?;
    println!(
        "alpha · A · B with m, n, k = {SIZES:?} (n = 16 for 64x16, 1 for gemv); A and B contiguous along k, and along m and n\n"
    );
    println!(
        "{:<22}{:<9}{:<9}{:>16}{:>16}{:>13}{:>14}",
        "kernel", "target", "layout", "wave instr./MAC", "matrix instr.", "LDS cycles", "conflicts"
    );
    for kernel in GEMM.kernels() {
        for device in Device::all()? {
            for along_k in [true, false] {
                describe(&device, kernel, along_k)?;
            }
        }
    }
    Ok(())
}

fn describe(
    device: &Device,
    kernel: &'static Kernel,
    along_k: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    let record = match kernel.args[5].ty.element() {
        "f32" => run::<f32>(device, kernel, along_k)?,
        "f64" => run::<f64>(device, kernel, along_k)?,
        "f16" => run::<f16>(device, kernel, along_k)?,
        _ => run::<bf16>(device, kernel, along_k)?,
    };
    let profile = record.report.profile.as_ref().expect("profile mode is on");
    let matrix = profile.by_unit().get(&Unit::Matrix).map_or(0, |counts| counts.executed);
    let total = profile.total();
    let products = (SIZES[0] * columns(kernel) * SIZES[2]) as f64;
    let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    println!(
        "{:<22}{:<9}{:<9}{:>16.5}{:>15.1}%{:>13}{:>13.1}%",
        kernel.name,
        device.arch(),
        if along_k { "along k" } else { "across" },
        record.report.wave_instructions as f64 / products,
        share(matrix, total.executed),
        total.lds_cycles,
        share(total.bank_conflicts, total.lds_cycles),
    );
    Ok(())
}

/// Columns that suit the kernel.
fn columns(kernel: &Kernel) -> usize {
    match kernel.name {
        name if name.starts_with("gemv") => 1,
        name if name.ends_with("x16") => 16,
        _ => SIZES[1],
    }
}

/// Launches once, and gives what was counted.
fn run<T: Element>(
    device: &Device,
    kernel: &'static Kernel,
    along_k: bool,
) -> Result<amdhip64::LaunchRecord, Box<dyn std::error::Error>> {
    let stream = device.stream()?;
    let [m, n, k] = [SIZES[0], columns(kernel), SIZES[2]];
    let (a, b) = (DeviceBuffer::<T>::zeros(&stream, m * k)?, DeviceBuffer::<T>::zeros(&stream, n * k)?);
    let mut c = DeviceBuffer::<T>::zeros(&stream, m * n)?;
    let wide = kernel.args[4].size == 8;
    let factor = |x: f64| if wide { Slot::value(x) } else { Slot::value(x as f32) };
    let strides = |rows: usize| if along_k { [k, 1, 0] } else { [1, rows, 0] }.map(Slot::value);
    let ([a_i, a_k, a_z], [b_j, b_k, b_z]) = (strides(m), strides(n));
    let [m_slot, n_slot, k_slot, one, ld, none] = [m, n, k, 1, m, 0].map(Slot::value);
    let mut slots = [
        m_slot,
        n_slot,
        k_slot,
        one,
        factor(1.0),
        Slot::read::<T>(&a),
        a_i,
        a_k,
        a_z,
        Slot::read::<T>(&b),
        b_j,
        b_k,
        b_z,
        factor(0.0),
        Slot::write::<T>(&mut c),
        one,
        ld,
        none,
    ];
    stream.synchronize()?;
    amdhip64::set_profile(device.ordinal(), true)?;
    // SAFETY: the slots have the types of a matrix product's parameters, for `T`.
    unsafe { generated::launch(&GEMM, kernel, &stream, LaunchConfig::auto(), &[], &mut slots)? };
    stream.synchronize()?;
    let mut records = amdhip64::take_profile(device.ordinal())?;
    amdhip64::set_profile(device.ordinal(), false)?;
    Ok(records.pop().ok_or(Error::NoGeometry { kernel: kernel.name.to_owned() })?)
}
