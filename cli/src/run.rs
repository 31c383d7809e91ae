//! `candle-amdgpu run`

use crate::npy;
use crate::output::print;
use anyhow::{Context, Result, bail, ensure};
use candle_amdgpu::kernel::{Arg, ArgType};
use candle_amdgpu::reference::{Array, DType, Value};
use candle_amdgpu::{
    AsStream, Count, Device, DeviceBuffer, Kernel, LaunchBuilder, LaunchConfig, Stream, kernels,
};
use clap::Args;
use std::path::PathBuf;

/// Run one kernel on numbers and .npy files, by the names of its parameters
///
/// What a parameter can be, by its type in `candle-amdgpu kernels`:
///   a number             `mul=2.5`
///   memory to read       `inp=x.npy`, or the elements: `info=[2,3,3,1]`
///   memory to write      `out=zeros:1000`, and where the result goes: `out=zeros:1000>y.npy`
///   memory to change     `dst=x.npy>y.npy`
///   none                 `info=null`, where the kernel allows it
/// A result without a file is printed. bf16 and f8e4m3 stand in .npy files as the u2 and u1 of their bits.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  candle-amdgpu run affine_f32 numel=4 num_dims=1 info=null 'inp=[1,2,3,4]' out=zeros:4 mul=2 add=0.5
  candle-amdgpu run uexp_f16 --gfx gfx90a --profile numel=1000 num_dims=1 info=null inp=x.npy 'out=zeros:1000>y.npy'
  candle-amdgpu run fill_u8 --check buf=zeros:99 value=7 numel=100      (a bug: see where it writes)

Exit codes: 0 success; 1 the kernel did something wrong; 2 wrong arguments, or the device cannot be used."
)]
pub struct Run {
    /// The kernel
    kernel: String,
    /// Its arguments, each NAME=VALUE
    args: Vec<String>,
    /// On the first device of this target
    #[arg(long, conflicts_with = "device")]
    gfx: Option<String>,
    /// On the device with this number
    #[arg(long)]
    device: Option<usize>,
    /// Workgroups in x, y and z [default: as many as the kernel's items need]
    #[arg(long, value_delimiter = ',', requires = "block")]
    grid: Vec<u32>,
    /// Lanes of a workgroup in x, y and z [default: the kernel's own]
    #[arg(long, value_delimiter = ',', requires = "grid")]
    block: Vec<u32>,
    /// Bytes of workgroup memory, with --grid
    #[arg(long, default_value_t = 0, requires = "grid")]
    lds: u32,
    /// Look for races, uninitialised reads and missing waits (on the emulator)
    #[arg(long)]
    check: bool,
    /// Print where the instructions went, by unit and source line (on the emulator)
    #[arg(long)]
    profile: bool,
    /// Write the profile as folded stacks, for flame graph tools
    #[arg(long, requires = "profile", value_name = "FILE")]
    folded: Option<PathBuf>,
}

/// What is given for a parameter.
enum Given {
    Number(Value),
    Null,
    Memory { buffer: DeviceBuffer<u8>, dtype: DType, shape: Vec<u64>, to: Option<PathBuf>, written: bool },
}

impl Run {
    pub fn run(self) -> Result<bool> {
        let kernel = find(&self.kernel)?;
        let device = match (&self.gfx, self.device) {
            (Some(gfx), _) => Device::of_arch(gfx)?,
            (None, ordinal) => Device::new(ordinal.unwrap_or(0))?,
        };
        let stream = device.stream()?;
        let mut given = self.given(kernel, &stream)?;
        self.long_enough(kernel, &given)?;

        if self.check || self.profile {
            ensure!(
                amdhip64::emulator(device.ordinal()).is_some(),
                "--check and --profile need an emulated device; {device} is hardware \
                 (CANDLE_AMDGPU_DEVICE=emulator)"
            );
            amdhip64::set_check_mode(device.ordinal(), self.check)?;
            amdhip64::set_profile(device.ordinal(), self.profile)?;
        }
        let module = kernels::MODULES.iter().find(|module| module.name() == kernel.family);
        let function = device.get_or_load_func(kernel.name, module.context("the kernel's module")?)?;
        let mut launch = function.launch_builder(&stream);
        for value in &mut given {
            launch = match value {
                Given::Number(value) => number(launch, *value),
                Given::Null => launch.null(),
                Given::Memory { buffer, written: true, .. } => launch.memory_mut(buffer),
                Given::Memory { buffer, .. } => launch.memory(buffer),
            };
        }
        // SAFETY: numbers and memory are of the parameters' types, memory is as long as the kernel states.
        let ran = unsafe { launch.launch(self.config()) }.and_then(|()| stream.synchronize());
        if let Err(error) = ran {
            eprintln!("{error}");
            return Ok(false);
        }
        for (arg, value) in kernel.args.iter().zip(&given) {
            if let Given::Memory { buffer, dtype, shape, to, written: true } = value {
                let data = Array::from_bytes(*dtype, buffer.to_vec()?);
                match to {
                    Some(path) => npy::write(path, &data, shape)?,
                    None => print(&format!("{} = {}", arg.name, text(&data)))?,
                }
            }
        }
        if self.profile {
            self.report(&device)?;
        }
        Ok(true)
    }

    /// The arguments in the kernel's order.
    fn given(&self, kernel: &Kernel, stream: &Stream) -> Result<Vec<Given>> {
        let mut named = Vec::new();
        for text in &self.args {
            let (name, value) =
                text.split_once('=').with_context(|| format!("`{text}` is not NAME=VALUE"))?;
            ensure!(
                kernel.args.iter().any(|arg| arg.name == name),
                "{} has no parameter `{name}`; it has {}",
                kernel.name,
                signature(kernel)
            );
            ensure!(!named.iter().any(|(other, _)| *other == name), "`{name}` is given twice");
            named.push((name, value));
        }
        kernel
            .args
            .iter()
            .map(|arg| {
                let value = named.iter().find(|(name, _)| *name == arg.name).map(|(_, value)| *value);
                let value = value.with_context(|| {
                    format!("`{}` is missing; {} takes {}", arg.name, kernel.name, signature(kernel))
                })?;
                parse(arg, value, stream).with_context(|| format!("{}={value}", arg.name))
            })
            .collect()
    }

    /// Refuses memory that is shorter than the kernel states.
    fn long_enough(&self, kernel: &Kernel, given: &[Given]) -> Result<()> {
        let counts: Vec<Count> = given
            .iter()
            .map(|value| match value {
                Given::Number(value) if !value.dtype().is_float() => Count(value.to_int()),
                _ => Count::default(),
            })
            .collect();
        for (arg, value) in kernel.args.iter().zip(given) {
            let (Some(len), Given::Memory { buffer, dtype, .. }) = (&arg.len, value) else { continue };
            let (have, need) = ((buffer.len() / dtype.size()) as u128, (len.eval)(&counts).get());
            // In check mode the emulator shows where the kernel leaves the memory.
            ensure!(
                have >= need || self.check,
                "`{}` has {have} elements; {} = {need} are needed (--check runs it all the same)",
                arg.name,
                len.text
            );
        }
        Ok(())
    }

    fn config(&self) -> LaunchConfig {
        let three = |sizes: &[u32]| [0, 1, 2].map(|i| sizes.get(i).copied().unwrap_or(1));
        if self.grid.is_empty() {
            LaunchConfig::auto()
        } else {
            LaunchConfig::explicit(three(&self.grid), three(&self.block), self.lds)
        }
    }

    fn report(&self, device: &Device) -> Result<()> {
        for record in amdhip64::take_profile(device.ordinal())? {
            print(&format!("\n{record}"))?;
            if let Some(profile) = &record.report.profile {
                print(&format!("{profile}"))?;
                if let Some(path) = &self.folded {
                    std::fs::write(path, profile.folded())
                        .with_context(|| format!("cannot write {}", path.display()))?;
                }
            }
        }
        Ok(())
    }
}

/// The kernel of that name.
pub fn find(name: &str) -> Result<&'static Kernel> {
    kernels::MODULES
        .iter()
        .find_map(|module| module.kernel(name))
        .with_context(|| format!("there is no kernel `{name}`; `candle-amdgpu kernels` lists them"))
}

fn signature(kernel: &Kernel) -> String {
    kernel.args.iter().map(|arg| format!("{}: {}", arg.name, arg.ty)).collect::<Vec<_>>().join(", ")
}

fn parse(arg: &Arg, text: &str, stream: &Stream) -> Result<Given> {
    let dtype = DType::from_name(arg.ty.element())
        .with_context(|| format!("values of type {} cannot be given here", arg.ty))?;
    let ArgType::Pointer { mutable: written, .. } = arg.ty else {
        return Ok(Given::Number(value(dtype, text)?));
    };
    if text == "null" {
        ensure!(arg.nullable || arg.layout.is_some(), "the kernel wants memory here");
        return Ok(Given::Null);
    }
    let (from, to) = match text.split_once('>') {
        Some((from, to)) => (from, Some(PathBuf::from(to))),
        None => (text, None),
    };
    ensure!(to.is_none() || written, "the kernel only reads it: there is no result to write");
    let (data, shape) = if let Some(len) = from.strip_prefix("zeros:") {
        let len: usize = len.parse().with_context(|| format!("`{len}` is no number of elements"))?;
        (Array::zeros(dtype, len), vec![len as u64])
    } else if let Some(list) = from.strip_prefix('[').and_then(|list| list.strip_suffix(']')) {
        let items = list.split(',').map(str::trim).filter(|item| !item.is_empty());
        let values = items.map(|item| value(dtype, item)).collect::<Result<Vec<_>>>()?;
        (Array::from_fn(dtype, values.len(), |i| values[i]), vec![values.len() as u64])
    } else {
        npy::read(from.as_ref(), dtype)?
    };
    let buffer = DeviceBuffer::from_slice(stream, data.bytes())?;
    Ok(Given::Memory { buffer, dtype, shape, to, written })
}

fn value(dtype: DType, text: &str) -> Result<Value> {
    if dtype.is_float() {
        let x: f64 = text.parse().with_context(|| format!("`{text}` is no number"))?;
        return Ok(Value::from_f64(dtype, x));
    }
    let x: i128 = text.parse().with_context(|| format!("`{text}` is no integer"))?;
    let value = Value::from_int(dtype, x);
    if value.to_int() != x {
        bail!("{x} is no {dtype}");
    }
    Ok(value)
}

/// The next argument: as many bytes as its type has.
fn number<S: AsStream>(launch: LaunchBuilder<'_, S>, value: Value) -> LaunchBuilder<'_, S> {
    let bits = value.bits();
    match value.dtype().size() {
        1 => launch.value(bits as u8),
        2 => launch.value(bits as u16),
        4 => launch.value(bits as u32),
        _ if value.dtype().is_float() => launch.value(f64::from_bits(bits)),
        _ => launch.value(bits),
    }
}

/// The first elements.
fn text(data: &Array) -> String {
    const MOST: usize = 16;
    let one = |i| {
        let value = data.get(i);
        if data.dtype().is_float() { value.to_f64().to_string() } else { value.to_int().to_string() }
    };
    let shown = (0..data.len().min(MOST)).map(one).collect::<Vec<_>>().join(", ");
    let more = if data.len() > MOST { format!(", … {} in all", data.len()) } else { String::new() };
    format!("[{shown}{more}]")
}
