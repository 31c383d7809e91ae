//! What `run`, `profile` and `check` launch: a kernel of this build or of a code object, with its arguments.

use crate::given::{self, Given, Memory, Parameter};
use crate::npy;
use crate::output::print;
use amdgpu_emulator::{FatBinary, Gfx, KernelArg, KernelInfo, LaunchOptions};
use amdhip64::{DEFAULT_TARGETS, DEVICE_VARIABLE, LaunchRecord};
use anyhow::{Context, Result, bail, ensure};
use candle_amdgpu::kernel::{Arg, ArgType};
use candle_amdgpu::reference::{Array, DType, Value};
use candle_amdgpu::verify::{Call, Draw, Grid, Input, Values, family};
use candle_amdgpu::{
    CodeObject, Count, Device, Function, Kernel, LaunchBuilder, LaunchConfig, Stream, kernels,
};
use clap::Args;
use std::path::PathBuf;

/// The words of every help text about arguments.
pub const ARGUMENTS: &str = "\
What a parameter can be, by its type in `candle-amdgpu kernels`:
  a number             mul=2.5
  memory to read       inp=x.npy, or inp=random:1000 (another seed: inp=random:1000:7), or inp=[2,3,3,1]
  memory to write      out=zeros:1000, and where the result goes: out=zeros:1000>y.npy
  memory to change     dst=x.npy>y.npy
  none                 info=null, where the kernel allows it
bf16 and f8e4m3 stand in .npy files as the u2 and u1 of their bits.

With --object, a type comes first, since a code object does not have it: n=u32:1000, x=f32:random:1000. A parameter
goes by its name where the compiler kept it, or by its position: 0=u32:1000. --grid and --block are needed.";

/// One device.
#[derive(Args)]
pub struct On {
    /// On the first device of this target
    #[arg(long, conflicts_with = "device")]
    gfx: Option<String>,
    /// On the device with this number
    #[arg(long)]
    device: Option<usize>,
}

impl On {
    /// The device: the first, unless another was chosen.
    pub fn device(&self) -> Result<Device> {
        Ok(match (&self.gfx, self.device) {
            (Some(gfx), _) => Device::of_arch(gfx)?,
            (None, ordinal) => Device::new(ordinal.unwrap_or(0))?,
        })
    }
}

/// A kernel, its arguments and its geometry.
#[derive(Args)]
pub struct Subject {
    /// The kernel
    kernel: String,
    /// Its arguments, each NAME=VALUE
    args: Vec<String>,
    /// Take the kernel from this file: a code object, offload bundles as `hipcc --genco` writes them, compressed or not,
    /// or a program or library with such bundles
    #[arg(long, value_name = "FILE", requires_all = ["grid", "block"])]
    object: Option<PathBuf>,
    /// Make up all arguments, for a problem of about this many elements
    #[arg(long, value_name = "N", conflicts_with_all = ["args", "object"])]
    elements: Option<usize>,
    #[command(flatten)]
    on: On,
    /// Workgroups in x, y and z [default: as many as the kernel's items need]
    #[arg(long, value_delimiter = ',', num_args = 1, requires = "block")]
    grid: Vec<u32>,
    /// Lanes of a workgroup in x, y and z [default: the kernel's own]
    #[arg(long, value_delimiter = ',', num_args = 1, requires = "grid")]
    block: Vec<u32>,
    /// Bytes of workgroup memory, with --grid
    #[arg(long, default_value_t = 0, requires = "grid")]
    lds: u32,
}

/// A launch that is ready.
pub struct Ready {
    pub device: Device,
    stream: Stream,
    function: Function,
    names: Vec<String>,
    given: Vec<Given>,
    config: LaunchConfig,
}

/// How a launch ended that began.
pub enum Ended {
    Well(Box<LaunchRecord>),
    /// What the kernel did wrong.
    Badly(candle_amdgpu::Error),
}

impl Subject {
    /// Loads the kernel and its arguments. `emulated` takes an emulated device where the user chose none; `lenient`
    /// lets memory be shorter than the kernel states, to see what happens.
    pub fn ready(&self, emulated: bool, lenient: bool) -> Result<Ready> {
        match &self.object {
            Some(path) => self.of_object(path, emulated),
            None => self.of_this_build(emulated, lenient),
        }
    }

    fn of_this_build(&self, emulated: bool, lenient: bool) -> Result<Ready> {
        let kernel = find(&self.kernel)?;
        if emulated {
            emulate(self.on.gfx.as_deref())?;
        }
        let device = self.on.device()?;
        let mut ready = match self.elements {
            Some(elements) => prepare(kernel, elements, &device)?,
            None => {
                let stream = device.stream()?;
                let given = self.given(kernel, &stream)?;
                if !lenient {
                    long_enough(kernel, &given)?;
                }
                Ready::new(kernel, stream, given, LaunchConfig::auto())?
            }
        };
        if let Some(config) = self.geometry() {
            ready.config = config;
        }
        Ok(ready)
    }

    fn of_object(&self, path: &std::path::Path, emulated: bool) -> Result<Ready> {
        let file = path.display();
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {file}"))?;
        let binary = FatBinary::open(&bytes).with_context(|| file.to_string())?;
        let target = match &self.on.gfx {
            Some(gfx) => gfx.parse()?,
            None if self.on.device.is_some() => self.on.device()?.arch().parse()?,
            None => target(&binary, &self.kernel).with_context(|| file.to_string())?,
        };
        if emulated {
            emulate(Some(target.name()))?;
        }
        let device = match self.on.device {
            Some(ordinal) => Device::new(ordinal)?,
            None => Device::of_arch(target.name())?,
        };
        let stream = device.stream()?;
        let object = with_kernel(&binary, target, &self.kernel).with_context(|| file.to_string())?;
        let loaded = device.load_code_object(&file.to_string(), object.bytes())?;
        let function = loaded.function(&self.kernel)?;
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
        let given =
            names.iter().zip(&parameters).zip(values).map(|((name, arg), text)| {
                typed(arg, text, &stream).with_context(|| format!("{name}={text}"))
            });
        let given = given.collect::<Result<Vec<_>>>()?;
        let config = self.geometry().context("--grid and --block are needed with --object")?;
        Ok(Ready { device, stream, function, names, given, config })
    }

    fn geometry(&self) -> Option<LaunchConfig> {
        let three = |sizes: &[u32]| [0, 1, 2].map(|i| sizes.get(i).copied().unwrap_or(1));
        (!self.grid.is_empty())
            .then(|| LaunchConfig::explicit(three(&self.grid), three(&self.block), self.lds))
    }

    /// The arguments in the kernel's order.
    fn given(&self, kernel: &Kernel, stream: &Stream) -> Result<Vec<Given>> {
        let names: Vec<String> = kernel.args.iter().map(|arg| arg.name.to_owned()).collect();
        let values = named(&self.args, &names, kernel.name, &signature(kernel))?;
        let parse = |(arg, text): (&Arg, &str)| {
            parameter(arg)
                .and_then(|parameter| Given::parse(parameter, text, stream))
                .with_context(|| format!("{}={text}", arg.name))
        };
        kernel.args.iter().zip(values).map(parse).collect()
    }
}

impl Ready {
    /// A kernel of this build; `config` may be its own geometry.
    fn new(
        kernel: &'static Kernel,
        stream: Stream,
        given: Vec<Given>,
        config: LaunchConfig,
    ) -> Result<Ready> {
        let device = stream.device().clone();
        let module = kernels::MODULES.iter().find(|module| module.name() == kernel.family);
        let function = device.get_or_load_func(kernel.name, module.context("the kernel's module")?)?;
        let config = if config == LaunchConfig::Auto { own(kernel, &given) } else { config };
        let names = kernel.args.iter().map(|arg| arg.name.to_owned()).collect();
        Ok(Ready { device, stream, function, names, given, config })
    }

    /// Launches and waits.
    pub fn launch(&mut self) -> candle_amdgpu::Result<()> {
        self.enqueue()?;
        self.stream.synchronize()
    }

    /// Launches.
    pub fn enqueue(&mut self) -> candle_amdgpu::Result<()> {
        let mut launch: LaunchBuilder<'_, Stream> = self.function.launch_builder(&self.stream);
        for given in &mut self.given {
            launch = given.add_to(launch);
        }
        // SAFETY: numbers and memory are of the parameters' types. Memory is as long as the kernel states where that is
        // known; where it is not, or `lenient` was asked for, the user answers for it, and the emulator reports it.
        unsafe { launch.launch(self.config) }
    }

    /// Launches on an emulated device with other options than its own.
    pub fn observe(&mut self, change: impl FnOnce(&mut LaunchOptions)) -> Result<Ended> {
        let ordinal = self.device.ordinal();
        ensure!(
            amdhip64::emulator(ordinal).is_some(),
            "{} is hardware, which cannot be looked into: {DEVICE_VARIABLE}=emulator takes an emulated device",
            self.device
        );
        amdhip64::set_print_faults(false);
        let mut options = amdhip64::launch_options(ordinal)?;
        change(&mut options);
        // For the record of the launch, with or without a profile in it.
        options.profile = true;
        amdhip64::set_launch_options(ordinal, options)?;
        if let Err(error) = self.launch() {
            return Ok(Ended::Badly(error));
        }
        let record = amdhip64::take_profile(ordinal)?.pop();
        Ok(Ended::Well(Box::new(record.context("there is nothing to do: no element, so that nothing ran")?)))
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
            Given::Memory(memory) => Some((&**name, memory)),
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
                Some(path) => npy::write(path, &memory.contents()?, &memory.shape)?,
                None if all => print(&format!("{name} = {}", given::text(&memory.contents()?)))?,
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
        .with_context(|| format!("nothing is known of {}'s arguments: give them", kernel.name))
}

/// A kernel on a device with made-up arguments for about so many elements.
pub fn prepare(kernel: &'static Kernel, elements: usize, device: &Device) -> Result<Ready> {
    let stream = device.stream()?;
    let (given, config) = made_up(kernel, elements, &stream)?;
    Ready::new(kernel, stream, given, config)
}

fn made_up(kernel: &'static Kernel, elements: usize, stream: &Stream) -> Result<(Vec<Given>, LaunchConfig)> {
    let call = make_up(kernel, elements)?;
    let counts = call.counts();
    let mut given = Vec::new();
    for (index, ((arg, input), count)) in kernel.args.iter().zip(&call.inputs).zip(counts).enumerate() {
        let written = matches!(arg.ty, ArgType::Pointer { mutable: true, .. });
        given.push(match input {
            Input::Value(value) => Given::Number(*value),
            Input::Memory(operand) => Given::memory(&operand.data, written, stream)?,
            Input::Layout if arg.takes_layouts() => match call.words(index) {
                None => Given::Null,
                Some(words) => {
                    let word = |i: usize| Value::from_int(DType::Usize, words[i] as i128);
                    Given::memory(&Array::from_fn(DType::Usize, words.len(), word), false, stream)?
                }
            },
            Input::Layout => Given::Number(Value::from_int(DType::Usize, count.0)),
            Input::Null => Given::Null,
        });
    }
    let config = match call.grid {
        Grid::Explicit(config) => config,
        _ => LaunchConfig::auto(),
    };
    Ok((given, config))
}

/// The kernel's own geometry; where its workgroups are rows, as many as its memory has.
fn own(kernel: &Kernel, given: &[Given]) -> LaunchConfig {
    let geometry = &kernel.geometry;
    let Some(rows) = geometry.rows.as_ref().filter(|_| geometry.items.is_none() && geometry.grid.is_none())
    else {
        return LaunchConfig::auto();
    };
    let counts: Vec<Count> = given.iter().map(Given::count).collect();
    let whole = |count: Count| u32::try_from(count.get()).unwrap_or(u32::MAX);
    let lds = geometry.lds.map_or(geometry.lds_bytes, |lds| whole((lds.eval)(&counts)));
    LaunchConfig::explicit([whole((rows.eval)(&counts)), 1, 1], geometry.workgroup, lds)
}

/// Emulates `gfx`, or the default targets, unless the user said what there is.
fn emulate(gfx: Option<&str>) -> Result<()> {
    if std::env::var_os(DEVICE_VARIABLE).is_none_or(|value| value.is_empty()) {
        let choice = gfx.map_or_else(|| "emulator".to_owned(), |gfx| format!("emulator:{gfx}"));
        amdhip64::choose(&choice)?;
    }
    Ok(())
}

/// The target of a kernel; of several, the first that is emulated by default, else the first.
fn target(binary: &FatBinary<'_>, kernel: &str) -> Result<Gfx> {
    let objects = binary.parse(None)?;
    let having = || objects.iter().filter(|object| object.kernel(kernel).is_some());
    let mut targets = DEFAULT_TARGETS.into_iter().chain(Gfx::ALL);
    let found = targets.find(|&gfx| having().any(|object| object.runs_on(gfx)));
    Ok(found.or(having().next().map(CodeObject::gfx)).unwrap_or(objects[0].gfx()))
}

/// The code object for `gfx` that has a kernel, of several the first; if none has it, any, so that loading it says what
/// kernels there are.
fn with_kernel(binary: &FatBinary<'_>, gfx: Gfx, kernel: &str) -> Result<CodeObject> {
    let mut objects = binary.parse(Some(gfx))?;
    let at = objects.iter().position(|object| object.kernel(kernel).is_some());
    Ok(objects.swap_remove(at.unwrap_or(0)))
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

/// The values of NAME=VALUE texts in the order of `names`.
fn named<'a>(texts: &'a [String], names: &[String], kernel: &str, signature: &str) -> Result<Vec<&'a str>> {
    let mut given: Vec<(&str, &str)> = Vec::new();
    for text in texts {
        let (given_name, value) =
            text.split_once('=').with_context(|| format!("`{text}` is not NAME=VALUE"))?;
        let position = || given_name.parse::<usize>().ok().and_then(|position| names.get(position));
        let name = names.iter().find(|known| *known == given_name).or_else(position);
        let name =
            name.with_context(|| format!("{kernel} has no parameter `{given_name}`; it has {signature}"))?;
        ensure!(!given.iter().any(|(other, _)| *other == name), "`{name}` is given twice");
        given.push((name, value));
    }
    let value = |name: &String| {
        let value = given.iter().find(|(other, _)| other == name).map(|(_, value)| *value);
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
        written: matches!(arg.ty, ArgType::Pointer { mutable: true, .. }),
        nullable: arg.nullable || arg.layout.is_some(),
    })
}

/// `TYPE:VALUE`, or `null`, for a parameter of which only the size is known.
fn typed(arg: &KernelArg, text: &str, stream: &Stream) -> Result<Given> {
    if text == "null" {
        return Ok(Given::Null);
    }
    let (ty, value) = text.split_once(':').context("a type comes first, as in f32:2.5 or f32:zeros:1000")?;
    let dtype = DType::from_name(ty).with_context(|| format!("`{ty}` is no type, as f32 or u8 are"))?;
    let memory = ["zeros:", "random:", "["].iter().any(|start| value.starts_with(start))
        || value.split('>').any(|part| part.ends_with(".npy"));
    let size = if memory { 8 } else { dtype.size() };
    if size != arg.size as usize {
        bail!("the parameter has {} bytes, {size} are given", arg.size);
    }
    Given::parse(Parameter { dtype, pointer: memory, written: true, nullable: true }, value, stream)
}

/// Refuses memory that is shorter than the kernel states, as far as that follows from the arguments.
fn long_enough(kernel: &Kernel, given: &[Given]) -> Result<()> {
    let counts: Vec<Count> = given.iter().map(Given::count).collect();
    for (arg, value) in kernel.args.iter().zip(given) {
        let len = arg.len.as_ref().filter(|len| kernel.is_of_arguments(len));
        let (Some(len), Given::Memory(memory)) = (len, value) else { continue };
        let (have, need) = (memory.len() as u128, (len.eval)(&counts).get());
        ensure!(
            have >= need,
            "`{}` has {have} elements; {} = {need} are needed (`candle-amdgpu check` runs it all the same)",
            arg.name,
            len.text
        );
    }
    Ok(())
}
