//! `candle-amdgpu devices`

use crate::output::{print, print_json, print_table, table};
use amdhip64::{BackendKind, DEVICE_VARIABLE};
use anyhow::Result;
use candle_amdgpu::kernels::{COMPILER, PREBUILT};
use candle_amdgpu::{Device, backend};
use clap::Args;
use serde::Serialize;

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
    devices: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    ordinal: usize,
    name: String,
    target: String,
    wave_size: u32,
    compute_units: u32,
    max_workgroup_size: u32,
    lds_bytes: u32,
    memory_free: usize,
    memory_total: usize,
    /// Whether this build has code objects for it.
    kernels: bool,
}

impl Devices {
    pub fn run(self) -> Result<bool> {
        let devices = Device::all()?.iter().map(Entry::of).collect::<Result<Vec<_>>>()?;
        let report = Report { backend: backend(), compiler: COMPILER, prebuilt: PREBUILT, devices };
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
        Ok(Entry {
            ordinal: device.ordinal(),
            name: properties.name.clone(),
            target: properties.target.clone(),
            wave_size: properties.wave_size,
            compute_units: properties.compute_units,
            max_workgroup_size: properties.max_workgroup_size,
            lds_bytes: properties.max_lds_bytes,
            memory_free: memory.free,
            memory_total: memory.total,
            kernels: candle_amdgpu::kernels::MODULES
                .iter()
                .any(|module| module.object(device.arch()).is_some()),
        })
    }
}

fn gib(bytes: usize) -> String {
    format!("{:.1}", bytes as f64 / (1_u64 << 30) as f64)
}
