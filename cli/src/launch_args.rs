//! What `run`, `profile` and `check` launch: a kernel of this build or of a code object, with its arguments.

use crate::arg_value::{self, ArgValue, Memory, Parameter, fits, split_once};
use crate::names::{self, unknown};
use crate::npy;
use crate::output::print;
use crate::stated::Stated;
use amdgpu_build::Arg;
use amdgpu_emulator::{FatBinary, Fault, Gfx, KernelArg, KernelInfo, LaunchOptions};
use amdhip64::{DEFAULT_TARGETS, DEVICE_VARIABLE, LaunchRecord};
use anyhow::{Context, Result, bail, ensure};
use candle_amdgpu::kernel::{ArgType, nearest};
use candle_amdgpu::{CodeObject, Device, Function, Kernel, LaunchBuilder, LaunchConfig, Stream};
use candle_amdgpu_verify::reference::{Array, DType, Value};
use candle_amdgpu_verify::{Call, Draw, Grid, Input, Values, family};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The part about arguments in every help text.
pub const ARGUMENTS: &str = "\
Values by kind of parameter (`candle-amdgpu kernels` lists the parameters):
  a number             mul=2.5
  memory to read       inp=x.npy, or inp=random:1000 (another seed: inp=random:1000:7), or inp=[2,3,3,1]
  memory to write      out=zeros:1000, and where the result goes: out=zeros:1000>y.npy
  memory to change     dst=x.npy>y.npy
  none                 info=null, where the kernel allows it
.npy files hold bf16 and f8e4m3 as the u2 and u1 of their bits.

Kernels in Rust keep names, types and launch geometry in their code object, so --object needs nothing else. Without such
a record, as in what hipcc writes, give --grid and --block, put a type before each value, and name a parameter by its
name if the compiler kept it, otherwise by its position: n=u32:1000, 0=f32:random:1000.";

/// One device.
#[derive(Args)]
pub struct DeviceArgs {
    /// On the first device of this target
    #[arg(long, conflicts_with = "device", value_parser = names::target)]
    gfx: Option<Gfx>,
    /// On the device with this number
    #[arg(long)]
    device: Option<usize>,
    #[command(flatten)]
    limit: Limit,
}

/// How long an emulated wave may run.
#[derive(Args)]
pub struct Limit {
    /// Instructions that one emulated wave may execute before it counts as an endless loop [default: the variable
    /// CANDLE_AMDGPU_BUDGET, or 2^32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    budget: Option<u64>,
}

impl Limit {
    /// Applies the limit to later launches on the device.
    pub fn set(&self, device: &Device) -> Result<()> {
        let Some(budget) = self.budget else { return Ok(()) };
        let ordinal = device.ordinal();
        ensure!(
            amdhip64::emulator(ordinal).is_some(),
            "--budget is for emulated devices; {device} is hardware"
        );
        let mut options = amdhip64::launch_options(ordinal)?;
        options.instruction_budget = budget;
        Ok(amdhip64::set_launch_options(ordinal, options)?)
    }
}

impl DeviceArgs {
    /// The device: the first, unless another was chosen.
    pub fn device(&self) -> Result<Device> {
        let device = match (self.gfx, self.device) {
            (Some(gfx), _) => Device::of_arch(gfx.name())?,
            (None, ordinal) => Device::new(ordinal.unwrap_or(0))?,
        };
        self.limit.set(&device)?;
        Ok(device)
    }
}

/// Sizes in x, y and z; trailing ones may be left out.
#[derive(Clone, Copy)]
struct Size([u32; 3]);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let parts: Vec<&str> = text.split(',').collect();
        if parts.len() > 3 {
            return Err(format!("{} sizes, but there are only x, y and z", parts.len()));
        }
        let mut sizes = [1; 3];
        for (size, part) in sizes.iter_mut().zip(parts) {
            *size = match part.trim().parse() {
                Ok(0) => return Err("a size must be 1 or more".to_owned()),
                Ok(number) => number,
                Err(_) => return Err(format!("`{part}` is not a size from 1 to 4294967295")),
            };
        }
        Ok(Size(sizes))
    }
}

/// A kernel, its arguments and its geometry.
#[derive(Args)]
pub struct LaunchArgs {
    /// The kernel
    kernel: String,
    /// Its arguments, as NAME=VALUE
    args: Vec<OsString>,
    /// Take the kernel from this file: a code object, offload bundles as `hipcc --genco` writes them, compressed or not,
    /// or a program or library with such bundles
    #[arg(long, value_name = "FILE")]
    object: Option<PathBuf>,
    /// Make up all arguments, for a problem of about this many elements
    #[arg(long, value_name = "N", conflicts_with = "args", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    elements: Option<usize>,
    #[command(flatten)]
    on: DeviceArgs,
    /// Number of workgroups in x, y and z, such as 16 or 4,4,1 [default: as many as the kernel's items need]
    #[arg(long, value_name = "X,Y,Z", requires = "block")]
    grid: Option<Size>,
    /// Work-items of a workgroup in x, y and z [default: the kernel's own]
    #[arg(long, value_name = "X,Y,Z", requires = "grid")]
    block: Option<Size>,
    /// Bytes of workgroup memory (LDS), with --grid
    #[arg(long, default_value_t = 0, requires = "grid")]
    lds: u32,
}

/// A launch that is ready.
pub struct Ready {
    pub device: Device,
    stream: Stream,
    function: Function,
    names: Vec<String>,
    given: Vec<ArgValue>,
    /// `None` if there is nothing to do.
    config: Option<LaunchConfig>,
}

/// How a launch ended.
pub enum Outcome {
    Completed(Box<LaunchRecord>),
    /// What the kernel did wrong.
    Failed(candle_amdgpu::Error),
}

impl LaunchArgs {
    /// Loads the kernel and its arguments. `emulated` takes an emulated device where the user chose none; `lenient`
    /// lets memory be shorter than the kernel states, to see what happens.
    pub fn ready(&self, emulated: bool, lenient: bool) -> Result<Ready> {
        match &self.object {
            Some(path) => self.of_object(path, emulated, lenient),
            None => self.of_this_build(emulated, lenient),
        }
    }

    fn of_this_build(&self, emulated: bool, lenient: bool) -> Result<Ready> {
        let kernel = names::kernel(&self.kernel)?;
        if emulated {
            emulate(self.on.gfx.map(Gfx::name))?;
        }
        let device = self.on.device()?;
        if let Some(elements) = self.elements {
            return prepare(kernel, elements, &device, self.geometry());
        }
        let stream = device.stream()?;
        let function = device.get_or_load_func(kernel.name, names::family(kernel.family)?)?;
        let stated = Stated::of_loaded(function.module(), kernel.name)?;
        let stated = stated.context("the kernel's code object has no record of its signature")?;
        let given = self.given(&stated, &stream)?;
        self.stated(function, stream, &stated, given, LaunchConfig::auto(), lenient)
    }

    fn of_object(&self, path: &Path, emulated: bool, lenient: bool) -> Result<Ready> {
        let (object, target) = read_object(
            path,
            match &self.on {
                DeviceArgs { gfx: Some(gfx), .. } => Some(*gfx),
                DeviceArgs { device: Some(_), .. } => Some(self.on.device()?.arch().parse()?),
                _ => None,
            },
            &self.kernel,
        )?;
        if emulated {
            emulate(Some(target.name()))?;
        }
        let device = match self.on.device {
            Some(_) => self.on.device()?,
            None => Device::of_arch(target.name())?,
        };
        self.on.limit.set(&device)?;
        let stream = device.stream()?;
        let loaded = device.load_code_object(&path.display().to_string(), object.bytes())?;
        let function = loaded.function(&self.kernel)?;
        let Some(stated) = Stated::of_loaded(&loaded, &self.kernel)? else {
            ensure!(
                self.elements.is_none(),
                "--elements makes arguments up from a record of their types, which {} does not have",
                path.display()
            );
            return self.untold(function, stream);
        };
        // A kernel of this build's name and parameters is its family's.
        let known = || names::kernel(&self.kernel).ok().filter(|kernel| is_same(kernel, &stated));
        let (given, config) = match self.elements.map(|elements| (elements, known())) {
            Some((elements, Some(kernel))) => made_up(kernel, elements, &stream)?,
            Some((elements, None)) => (suppose(&stated, elements, &stream)?, LaunchConfig::auto()),
            None => (self.given(&stated, &stream)?, LaunchConfig::auto()),
        };
        self.stated(function, stream, &stated, given, config, lenient)
    }

    /// A kernel whose signature is known, with its arguments. `config` is its geometry unless the user gives one.
    fn stated(
        &self,
        function: Function,
        stream: Stream,
        stated: &Stated,
        given: Vec<ArgValue>,
        config: LaunchConfig,
        lenient: bool,
    ) -> Result<Ready> {
        let device = stream.device().clone();
        let ready = Ready { device, stream, function, names: stated.names(), given, config: None };
        let ready = ready.with_geometry(self.geometry().unwrap_or(config), Some(stated))?;
        stated.check(&ready.given, ready.config, lenient)?;
        Ok(ready)
    }

    /// A kernel about which only the sizes of the parameters are known.
    fn untold(&self, function: Function, stream: Stream) -> Result<Ready> {
        let parameters: Vec<&KernelArg> =
            function.info().args.iter().filter(|arg| !arg.is_hidden()).collect();
        let names: Vec<String> = parameters
            .iter()
            .enumerate()
            .map(|(i, arg)| arg.name.clone().unwrap_or_else(|| i.to_string()))
            .collect();
        let signature = || {
            let one = |(name, arg): (&String, &&KernelArg)| format!("{name}: {} bytes", arg.size);
            names.iter().zip(&parameters).map(one).collect::<Vec<_>>().join(", ")
        };
        let values = named(&self.args, &names, &self.kernel, &signature())?;
        let given = names.iter().zip(&parameters).zip(values).map(|((name, arg), text)| {
            typed(arg, &text, &stream).with_context(|| format!("{name}={}", text.display()))
        });
        let given = given.collect::<Result<Vec<_>>>()?;
        let config = self
            .geometry()
            .context("the code object does not say how its kernels are launched: give --grid and --block")?;
        Ok(Ready { device: stream.device().clone(), stream, function, names, given, config: Some(config) })
    }

    /// The geometry that the user gives.
    fn geometry(&self) -> Option<LaunchConfig> {
        let (Size(grid), Size(block)) = (self.grid?, self.block?);
        Some(LaunchConfig::explicit(grid, block, self.lds))
    }

    /// The arguments in the kernel's order.
    fn given(&self, stated: &Stated, stream: &Stream) -> Result<Vec<ArgValue>> {
        let values = named(&self.args, &stated.names(), &self.kernel, &stated.parameters())?;
        let parse = |(arg, text): (&Arg, OsString)| {
            parameter(arg)
                .and_then(|parameter| ArgValue::parse(parameter, &without_type(parameter, &text)?, stream))
                .with_context(|| format!("{}={}", arg.name, text.display()))
        };
        stated.0.args.iter().zip(values).map(parse).collect()
    }
}

impl Ready {
    /// With this geometry, or with the kernel's own where `config` says so.
    fn with_geometry(mut self, config: LaunchConfig, stated: Option<&Stated>) -> Result<Ready> {
        self.config = match (config, stated) {
            (LaunchConfig::Auto, Some(stated)) => stated.geometry(&self.given, self.info().wave_size)?,
            _ => Some(config),
        };
        Ok(self)
    }

    /// Launches and waits. The result says what the kernel does wrong; an error means that it could not be launched.
    pub fn launch(&mut self) -> Result<Option<candle_amdgpu::Error>> {
        self.enqueue()?;
        let Err(error) = self.stream.synchronize() else { return Ok(None) };
        let report = amdhip64::last_fault_report(self.device.ordinal());
        let is_the_kernels = report.is_none_or(|report| {
            !matches!(
                report.fault(),
                Fault::Geometry { .. }
                    | Fault::WorkgroupSize { .. }
                    | Fault::LdsSize { .. }
                    | Fault::Arguments { .. }
                    | Fault::Memory(_)
                    | Fault::Unsupported { .. }
            )
        });
        if is_the_kernels { Ok(Some(error)) } else { Err(error.into()) }
    }

    /// Launches.
    pub fn enqueue(&mut self) -> candle_amdgpu::Result<()> {
        let Some(config) = self.config else { return Ok(()) };
        let mut launch: LaunchBuilder<'_, Stream> = self.function.launch_builder(&self.stream);
        for given in &mut self.given {
            launch = given.add_to(launch);
        }
        // SAFETY: numbers and memory are of the parameters' types. Memory is as long as the kernel states where that is
        // known; where it is not, or `lenient` was asked for, the user answers for it, and the emulator reports it.
        unsafe { launch.launch(config) }
    }

    /// Launches on an emulated device with other options than its own.
    pub fn observe(&mut self, change: impl FnOnce(&mut LaunchOptions)) -> Result<Outcome> {
        let ordinal = self.device.ordinal();
        ensure!(
            amdhip64::emulator(ordinal).is_some(),
            "{} is hardware, which cannot be observed: {DEVICE_VARIABLE}=emulator takes an emulated device",
            self.device
        );
        let mut options = amdhip64::launch_options(ordinal)?;
        change(&mut options);
        // For the record of the launch, with or without a profile in it.
        options.profile = true;
        amdhip64::set_launch_options(ordinal, options)?;
        if let Some(error) = self.launch()? {
            return Ok(Outcome::Failed(error));
        }
        let record = amdhip64::take_profile(ordinal)?.pop();
        Ok(Outcome::Completed(Box::new(record.context("there is nothing to do: no elements")?)))
    }

    /// The target of the device, which must be an emulated one.
    pub fn gfx(&self) -> Result<Gfx> {
        let machine = amdhip64::emulator(self.device.ordinal());
        machine
            .map(|machine| machine.gfx())
            .with_context(|| format!("{} is hardware, which cannot be observed", self.device))
    }

    pub fn info(&self) -> &KernelInfo {
        self.function.info()
    }

    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The kernel's memory.
    pub fn memory(&self) -> impl Iterator<Item = (&str, &Memory)> {
        self.names.iter().zip(&self.given).filter_map(|(name, given)| match given {
            ArgValue::Memory(memory) => Some((&**name, memory)),
            _ => None,
        })
    }

    /// Bytes of all memory, each once: what at least has to be moved if the kernel needs all of it.
    pub fn memory_bytes(&self) -> u64 {
        self.memory().map(|(_, memory)| memory.buffer.len() as u64).sum()
    }

    /// Elements of the largest of its memory: what counts are related to.
    pub fn elements(&self) -> u64 {
        self.memory().map(|(_, memory)| memory.len() as u64).max().unwrap_or(0)
    }

    /// Writes results to their files, and prints the others if `all`.
    pub fn results(&self, all: bool) -> Result<()> {
        for (name, memory) in self.memory().filter(|(_, memory)| memory.written) {
            match &memory.to {
                Some(path) => npy::write(path, memory)?,
                None if all => print(&format!("{name} = {}", arg_value::text(memory)?))?,
                None => {}
            }
        }
        Ok(())
    }
}

/// A call that the kernel's family makes up for `elements` elements.
fn make_up(kernel: &'static Kernel, elements: usize) -> Result<Call> {
    let mut draw = Draw::flat(elements, Values::Seed(0), Grid::Own);
    // What a family derives its sizes from, it adds to the number of elements; these are such that the sums say one
    // product of 64 by 64 by 64 without gaps, and rows of 700 or 1,024.
    match kernel.family {
        "gemm" => {
            draw.small[..3]
                .copy_from_slice(&[1, 5, 11].map(|factor| (21 + 33 - factor * elements % 33) % 33));
            draw.small[3] = (12 - elements / 3 % 12) % 12;
            draw.small[4] = (128 - elements % 128) % 128;
        }
        "reduce" => draw.small[0] = 54 - elements % 7,
        "sort" => draw.small[0] = 14 - elements.min(9000) % 8,
        _ => {}
    }
    let family = family(kernel.family);
    family
        .and_then(|family| family.call(kernel, &draw))
        .with_context(|| format!("the arguments of {} cannot be made up: give them", kernel.name))
}

/// A kernel on a device with made-up arguments for about this many elements, with its own geometry unless another is given.
pub fn prepare(
    kernel: &'static Kernel,
    elements: usize,
    device: &Device,
    geometry: Option<LaunchConfig>,
) -> Result<Ready> {
    let stream = device.stream()?;
    let function = device.get_or_load_func(kernel.name, names::family(kernel.family)?)?;
    let stated = Stated::of_loaded(function.module(), kernel.name)?;
    let (given, config) = made_up(kernel, elements, &stream)?;
    let names = kernel.args.iter().map(|arg| arg.name.to_owned()).collect();
    let ready = Ready { device: device.clone(), stream, function, names, given, config: None };
    ready.with_geometry(geometry.unwrap_or(config), stated.as_ref())
}

/// Whether a kernel of this build has the parameters of a record.
fn is_same(kernel: &Kernel, stated: &Stated) -> bool {
    let texts = |(arg, other): (&candle_amdgpu::kernel::Arg, &Arg)| {
        arg.name == other.name && arg.ty.to_string() == other.ty.to_string()
    };
    kernel.args.len() == stated.0.args.len() && kernel.args.iter().zip(&stated.0.args).all(texts)
}

/// Arguments for a kernel about which only the record is known: integers are as large as they can be with at most this many
/// elements in the longest memory, memory is random and as long as the record says.
fn suppose(stated: &Stated, elements: usize, stream: &Stream) -> Result<Vec<ArgValue>> {
    let lengths = |size: u64| stated.lengths(size, elements);
    let fit = |size: u64| lengths(size).iter().flatten().all(|&len| len <= elements as u128);
    // The largest size that fits: it is at least 1 and at most the number of elements.
    let (mut size, mut above) = (1, elements as u64 + 1);
    while above - size > 1 {
        let middle = size + (above - size) / 2;
        if fit(middle) { size = middle } else { above = middle }
    }
    let lengths = lengths(size);
    let one = |(index, arg): (usize, &Arg)| -> Result<ArgValue> {
        let Parameter { dtype, pointer, written, .. } = parameter(arg)?;
        Ok(match (pointer, lengths[index]) {
            (true, Some(len)) => {
                let len = usize::try_from(len).context("memory that cannot be addressed")?;
                ArgValue::made_up(dtype, len, index as u64, written, stream)?
            }
            (true, None) => ArgValue::Null,
            (false, _) if dtype.is_float() => ArgValue::Number(Value::from_f64(dtype, 1.0)),
            (false, _) => ArgValue::Number(Value::from_int(dtype, stated.integer(arg, size))),
        })
    };
    stated.0.args.iter().enumerate().map(one).collect()
}

fn made_up(
    kernel: &'static Kernel,
    elements: usize,
    stream: &Stream,
) -> Result<(Vec<ArgValue>, LaunchConfig)> {
    let widest = kernel.args.iter().filter(|arg| arg.ty.is_pointer() && !arg.takes_layouts());
    let widest =
        widest.filter_map(|arg| DType::from_name(arg.ty.element())).map(|dtype| dtype.size()).sum::<usize>();
    let bytes =
        elements.checked_mul(widest.max(1)).with_context(|| format!("{elements} elements are too many"))?;
    fits(bytes as u64, stream.device())?;
    let call = make_up(kernel, elements)?;
    let counts = call.counts();
    let mut given = Vec::new();
    for (index, ((arg, input), count)) in kernel.args.iter().zip(&call.inputs).zip(counts).enumerate() {
        let written = matches!(arg.ty, ArgType::Pointer { mutable: true, .. });
        given.push(match input {
            Input::Value(value) => ArgValue::Number(*value),
            Input::Memory(operand) => ArgValue::memory(&operand.data, written, stream)?,
            Input::Layout if arg.takes_layouts() => match call.words(index) {
                None => ArgValue::Null,
                Some(words) => {
                    let word = |i: usize| Value::from_int(DType::Usize, words[i] as i128);
                    ArgValue::memory(&Array::from_fn(DType::Usize, words.len(), word), false, stream)?
                }
            },
            Input::Layout => ArgValue::Number(Value::from_int(DType::Usize, count.0)),
            Input::Null => ArgValue::Null,
        });
    }
    let config = match call.grid {
        Grid::Explicit(config) => config,
        _ => LaunchConfig::auto(),
    };
    Ok((given, config))
}

/// Emulates `gfx`, or the default targets, unless the user selected devices.
fn emulate(gfx: Option<&str>) -> Result<()> {
    if std::env::var_os(DEVICE_VARIABLE).is_none_or(|value| value.is_empty()) {
        let choice = gfx.map_or_else(|| "emulator".to_owned(), |gfx| format!("emulator:{gfx}"));
        amdhip64::choose(&choice)?;
    }
    Ok(())
}

/// The code object for a kernel in a file, and its target: `gfx`, or of several the first that is emulated by default, else
/// the first. If none has the kernel it is any, so that loading it says what kernels there are.
pub fn read_object(path: &Path, gfx: Option<Gfx>, kernel: &str) -> Result<(CodeObject, Gfx)> {
    let file = || path.display().to_string();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", file()))?;
    let binary = FatBinary::open(&bytes).with_context(file)?;
    let target = match gfx {
        Some(gfx) => gfx,
        None => target(&binary, kernel).with_context(file)?,
    };
    let mut objects = binary.parse(Some(target)).with_context(file)?;
    let at = objects.iter().position(|object| object.kernel(kernel).is_some());
    Ok((objects.swap_remove(at.unwrap_or(0)), target))
}

/// The target of a kernel; of several, the first that is emulated by default, else the first.
fn target(binary: &FatBinary<'_>, kernel: &str) -> Result<Gfx> {
    let objects = binary.parse(None)?;
    let having = || objects.iter().filter(|object| object.kernel(kernel).is_some());
    let mut targets = DEFAULT_TARGETS.into_iter().chain(Gfx::ALL);
    let found = targets.find(|&gfx| having().any(|object| object.runs_on(gfx)));
    Ok(found.or(having().next().map(CodeObject::gfx)).unwrap_or(objects[0].gfx()))
}

/// The values of NAME=VALUE texts in the order of `names`.
fn named(texts: &[OsString], names: &[String], kernel: &str, signature: &str) -> Result<Vec<OsString>> {
    let mut given: Vec<(&str, OsString)> = Vec::new();
    for text in texts {
        let (given_name, value) =
            split_once(text, b'=').with_context(|| format!("`{}` is not NAME=VALUE", text.display()))?;
        let given_name = given_name.to_string_lossy();
        let position = || given_name.parse::<usize>().ok().and_then(|position| names.get(position));
        let name = names.iter().find(|known| **known == given_name).or_else(position);
        let name = name.with_context(|| {
            let near = nearest(&given_name, names.iter().map(String::as_str)).first().copied();
            let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            format!("{kernel} has no parameter `{given_name}`{near} It has {signature}")
        })?;
        ensure!(!given.iter().any(|(other, _)| *other == name), "`{name}` is given twice");
        given.push((name, value));
    }
    let value = |name: &String| {
        let value = given.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone());
        value.with_context(|| format!("`{name}` is missing; {kernel} takes {signature}"))
    };
    names.iter().map(value).collect()
}

fn parameter(arg: &Arg) -> Result<Parameter> {
    let dtype = DType::from_name(arg.ty.element())
        .with_context(|| format!("values of type {} cannot be given here", arg.ty))?;
    Ok(Parameter {
        dtype,
        pointer: arg.ty.is_pointer(),
        written: matches!(arg.ty, amdgpu_build::ArgType::Pointer { mutable: true, .. }),
        nullable: arg.nullable || arg.layout.is_some(),
    })
}

/// The value behind a type, which may stand before it and must then be the parameter's.
fn without_type(parameter: Parameter, text: &OsStr) -> Result<OsString> {
    let Some((ty, value)) = split_once(text, b':') else { return Ok(text.to_owned()) };
    let Some(dtype) = ty.to_str().and_then(DType::from_name) else { return Ok(text.to_owned()) };
    ensure!(dtype == parameter.dtype, "the parameter is of type {}, not {dtype}", parameter.dtype);
    Ok(value)
}

/// `TYPE:VALUE`, or `null`, for a parameter about which only the size is known.
fn typed(arg: &KernelArg, text: &OsStr, stream: &Stream) -> Result<ArgValue> {
    if text == "null" {
        return Ok(ArgValue::Null);
    }
    let (ty, value) =
        split_once(text, b':').context("a type comes first, as in f32:2.5 or f32:zeros:1000")?;
    let ty = ty.to_string_lossy();
    let dtype =
        DType::from_name(&ty).with_context(|| unknown("type", &ty, &DType::ALL.map(|dtype| dtype.name())))?;
    let shown = value.to_string_lossy();
    let memory = ["zeros:", "random:", "["].iter().any(|start| shown.starts_with(start))
        || shown.split('>').any(|part| part.ends_with(".npy"));
    let size = if memory { 8 } else { dtype.size() };
    if size != arg.size as usize {
        bail!("the parameter has {} bytes, but {size} are given", arg.size);
    }
    ArgValue::parse(Parameter { dtype, pointer: memory, written: true, nullable: true }, &value, stream)
}
