//! `candle-amdgpu devices`

use crate::output::{print, print_json, print_table, table};
use amdhip64::{BackendKind, DEVICE_VARIABLE};
use anyhow::Result;
use candle_amdgpu::kernels::{COMPILER, PREBUILT};
use candle_amdgpu::{Device, backend};
use clap::Args;
use serde::Serialize;
use std::ffi::c_int;

/// List the devices, AMD GPUs, emulated ones or NVIDIA GPUs, and say why these were chosen
#[derive(Args)]
#[command(after_help = "\
Example:
  CANDLE_AMDGPU_DEVICE=emulator:gfx1100,gfx90a candle-amdgpu devices

Exit codes: 0 success; 2 wrong arguments, or the devices cannot be used.")]
pub struct Devices {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    backend: String,
    /// What compiled the kernels.
    compiler: &'static str,
    /// Whether their code objects came with the package.
    prebuilt: bool,
    /// As the runtime numbers itself.
    runtime_version: Option<i32>,
    /// As the driver does.
    driver_version: Option<i32>,
    devices: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    ordinal: usize,
    /// `hip`, `cuda` or `emulator`.
    backend: &'static str,
    name: String,
    target: String,
    wave_size: u32,
    /// What workgroups are given to: on RDNA half as many as there are compute units.
    multiprocessors: u32,
    /// As AMD counts them; streaming multiprocessors on NVIDIA GPUs.
    compute_units: u32,
    max_workgroup_size: u32,
    lds_bytes: u32,
    memory_free: usize,
    memory_total: usize,
    clock_mhz: Option<u32>,
    memory_clock_mhz: Option<u32>,
    memory_bus_bits: Option<u32>,
    l2_bytes: Option<u32>,
    /// Whether this build has code objects for it.
    kernels: bool,
}

impl Devices {
    pub fn run(self) -> Result<bool> {
        let devices = Device::all()?.iter().map(Entry::of).collect::<Result<Vec<_>>>()?;
        let report = Report {
            backend: backend(),
            compiler: COMPILER,
            prebuilt: PREBUILT,
            runtime_version: version(amdhip64::hipRuntimeGetVersion),
            driver_version: version(amdhip64::hipDriverGetVersion),
            devices,
        };
        if self.json {
            print_json(&report)?;
            return Ok(true);
        }
        let from =
            if PREBUILT { "came with the package, compiled by" } else { "were compiled by this build with" };
        print(&format!("{}\nThe kernels {from} {COMPILER}\n", report.backend))?;
        let header =
            ["#", "target", "name", "wave", "CUs", "workgroup", "LDS KiB", "free GiB", "GiB", "kernels"];
        let mut table = table(header, 3);
        for d in &report.devices {
            table.add_row([
                d.ordinal.to_string(),
                d.target.clone(),
                d.name.clone(),
                d.wave_size.to_string(),
                d.compute_units.to_string(),
                d.max_workgroup_size.to_string(),
                (d.lds_bytes / 1024).to_string(),
                gib(d.memory_free),
                gib(d.memory_total),
                if d.kernels { "yes" } else { "not built" }.to_owned(),
            ]);
        }
        print_table(&table)?;
        // Nobody gets an NVIDIA GPU without asking for it.
        if amdhip64::backend_info().is_ok_and(|info| !matches!(info.kind, BackendKind::Cuda { .. }))
            && let Ok((library, count)) = amdhip64::nvidia()
        {
            let devices = if count == 1 { "an NVIDIA GPU" } else { "NVIDIA GPUs" };
            print(&format!(
                "\n{library} has {devices}: {DEVICE_VARIABLE}=cuda selects {}, in a build with CANDLE_AMDGPU_ARCHS=nvptx",
                if count == 1 { "it" } else { "them" }
            ))?;
        }
        Ok(true)
    }
}

impl Entry {
    fn of(device: &Device) -> Result<Entry> {
        let properties = device.properties();
        let memory = device.memory_info()?;
        let more = more(device.ordinal());
        // Zero stands for what a runtime does not know.
        let positive = |number: c_int| u32::try_from(number).ok().filter(|&number| number > 0);
        Ok(Entry {
            ordinal: device.ordinal(),
            backend: match amdhip64::backend_info()?.kind {
                BackendKind::Hip { .. } => "hip",
                BackendKind::Cuda { .. } => "cuda",
                BackendKind::Emulator(_) => "emulator",
            },
            name: properties.name.clone(),
            target: properties.target.clone(),
            wave_size: properties.wave_size,
            multiprocessors: properties.multiprocessors,
            compute_units: properties.compute_units(),
            max_workgroup_size: properties.max_workgroup_size,
            lds_bytes: properties.max_lds_bytes,
            memory_free: memory.free,
            memory_total: memory.total,
            clock_mhz: more.and_then(|more| positive(more.clockRate / 1000)),
            memory_clock_mhz: more.and_then(|more| positive(more.memoryClockRate / 1000)),
            memory_bus_bits: more.and_then(|more| positive(more.memoryBusWidth)),
            l2_bytes: more.and_then(|more| positive(more.l2CacheSize)),
            kernels: candle_amdgpu::kernels::MODULES
                .iter()
                .any(|module| module.object(device.arch()).is_some()),
        })
    }
}

/// What the runtime says of a device beyond its properties.
fn more(ordinal: usize) -> Option<amdhip64::hipDeviceProp_tR0600> {
    // SAFETY: a structure of numbers, of which zero is one.
    let mut properties = unsafe { std::mem::zeroed() };
    let ordinal = c_int::try_from(ordinal).ok()?;
    // SAFETY: writes the structure.
    let code = unsafe { amdhip64::hipGetDevicePropertiesR0600(&mut properties, ordinal) };
    (code == amdhip64::hipSuccess).then_some(properties)
}

/// A version that a function of the runtime writes.
fn version(get: unsafe extern "C" fn(*mut c_int) -> amdhip64::hipError_t) -> Option<i32> {
    let mut version = 0;
    // SAFETY: writes one number.
    let code = unsafe { get(&mut version) };
    (code == amdhip64::hipSuccess).then_some(version)
}

fn gib(bytes: usize) -> String {
    format!("{:.1}", bytes as f64 / (1_u64 << 30) as f64)
}
