//! Runs a kernel of a code object, lists kernels, and disassembles instructions.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use amdgpu_emulator::{
    CodeObject, FatBinary, FaultReport, Gfx, KernelArg, Launch, LaunchOptions, Machine, MachineOptions,
    Report, Running, Watch, decode,
};
use clap::{Args, Parser, Subcommand};

/// Exact AMDGPU emulator.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a kernel.
    Run(Run),
    /// List the kernels of a file's code objects.
    Kernels {
        /// Code object (ELF), Clang offload bundles, or a program or library with such bundles.
        file: PathBuf,
    },
    /// Read lines of hexadecimal bytes and print LLVM's text for each.
    Decode {
        /// Target.
        gfx: Gfx,
    },
}

#[derive(Args)]
struct Run {
    /// Code object (ELF), Clang offload bundles, or a program or library with such bundles.
    file: PathBuf,
    /// Kernel name.
    kernel: String,
    /// Target, if the file has the kernel for several.
    #[arg(long)]
    gfx: Option<Gfx>,
    /// Workgroups: X, X,Y or X,Y,Z.
    #[arg(long)]
    grid: Size,
    /// Work-items of a workgroup: X, X,Y or X,Y,Z.
    #[arg(long)]
    block: Size,
    /// Bytes of launch-sized LDS.
    #[arg(long, default_value_t = 0)]
    lds: u32,
    /// Print counts and time as JSON.
    #[arg(long)]
    json: bool,
    /// Look for uninitialised reads, races and missing waits.
    #[arg(long)]
    check: bool,
    /// Print where the instructions went, by unit and source line.
    #[arg(long)]
    profile: bool,
    /// Write the profile as folded stacks, for flame graph tools.
    #[arg(long)]
    folded: Option<PathBuf>,
    /// Threads; 0 for one per core.
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Run waves and workgroups in an order drawn from this seed.
    #[arg(long)]
    shuffle: Option<u64>,
    /// Perturb results that the ISA leaves open, drawn from this seed.
    #[arg(long)]
    perturb: Option<u64>,
    /// Instructions that one wave may execute.
    #[arg(long)]
    budget: Option<u64>,
    /// Run this many times and report the fastest.
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    /// Arguments in the kernel's order: `null`, a number as `u8:`…`u64:`, `i8:`…`i64:`, `f16:`, `bf16:`, `f32:`,
    /// `f64:`, `in:FILE` (a buffer read from a file), `out:BYTES:FILE` (a zeroed buffer, written to a file
    /// afterwards), `io:FILE:OUT` (both), `zero:BYTES` (a zeroed buffer).
    args: Vec<Argument>,
}

/// Sizes along three axes.
#[derive(Clone, Copy)]
struct Size([u32; 3]);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let mut sizes = [1; 3];
        let parts: Vec<&str> = text.split(',').collect();
        if parts.len() > 3 {
            return Err(format!("{} sizes; at most three are possible", parts.len()));
        }
        for (size, part) in sizes.iter_mut().zip(parts) {
            *size = part.trim().parse().map_err(|_| format!("`{part}` is not a size"))?;
        }
        Ok(Size(sizes))
    }
}

/// One kernel argument.
#[derive(Clone)]
enum Argument {
    Null,
    Value(Vec<u8>),
    Buffer { from: Option<PathBuf>, bytes: u64, into: Option<PathBuf> },
}

impl FromStr for Argument {
    type Err = String;

    fn from_str(text: &str) -> Result<Argument, String> {
        if text == "null" {
            return Ok(Argument::Null);
        }
        let Some((kind, value)) = text.split_once(':') else {
            return Err(
                "expected `null` or KIND:VALUE, for example u64:1000, in:FILE or out:4000:FILE".into()
            );
        };
        macro_rules! number {
            ($ty:ty) => {
                Argument::Value(
                    value
                        .parse::<$ty>()
                        .map_err(|_| format!("`{value}` is not a valid {kind}"))?
                        .to_le_bytes()
                        .to_vec(),
                )
            };
        }
        let size = |text: &str| text.parse().map_err(|_| format!("`{text}` is not a size in bytes"));
        Ok(match kind {
            "u8" => number!(u8),
            "u16" => number!(u16),
            "u32" => number!(u32),
            "u64" => number!(u64),
            "i8" => number!(i8),
            "i16" => number!(i16),
            "i32" => number!(i32),
            "i64" => number!(i64),
            "f16" => number!(half::f16),
            "bf16" => number!(half::bf16),
            "f32" => number!(f32),
            "f64" => number!(f64),
            "in" => Argument::Buffer { from: Some(value.into()), bytes: 0, into: None },
            "zero" => Argument::Buffer { from: None, bytes: size(value)?, into: None },
            "out" => {
                let (bytes, file) = value.split_once(':').ok_or("expected out:BYTES:FILE")?;
                Argument::Buffer { from: None, bytes: size(bytes)?, into: Some(file.into()) }
            }
            "io" => {
                let (from, into) = value.split_once(':').ok_or("expected io:FILE:OUT")?;
                Argument::Buffer { from: Some(from.into()), bytes: 0, into: Some(into.into()) }
            }
            _ => {
                return Err(format!(
                    "unknown kind `{kind}`; there are null, u8 to u64, i8 to i64, f16, bf16, f32, f64, in, out, io and zero"
                ));
            }
        })
    }
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(run) => run_kernel(&run),
        Command::Kernels { file } => list_kernels(&file),
        Command::Decode { gfx } => decode_lines(gfx),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            // What the kernel did wrong, or why it could not run.
            ExitCode::from(if error.is::<FaultReport>() { 1 } else { 2 })
        }
    }
}

fn open(file: &PathBuf, gfx: Option<Gfx>) -> Result<Vec<CodeObject>, Box<dyn std::error::Error>> {
    let bytes = read_file(file)?;
    let objects = FatBinary::open(&bytes).and_then(|binary| binary.parse(gfx));
    objects.map_err(|error| format!("{}: {error}", file.display()).into())
}

/// The code object with the kernel to run.
fn with_kernel(run: &Run) -> Result<CodeObject, Box<dyn std::error::Error>> {
    let objects = open(&run.file, run.gfx)?;
    let having: Vec<_> = objects.iter().filter(|object| object.kernel(&run.kernel).is_some()).collect();
    match having[..] {
        [] => {
            let kernels = objects.iter().flat_map(|object| object.kernels());
            let mut names: Vec<&str> = kernels.map(|kernel| kernel.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            Err(format!("no kernel `{}`; the kernels are {}", run.kernel, names.join(", ")).into())
        }
        [first, ref others @ ..] => {
            if others.iter().any(|other| other.target() != first.target()) {
                let mut targets: Vec<_> = having.iter().map(|object| object.target().to_string()).collect();
                targets.sort_unstable();
                targets.dedup();
                let (kernel, targets) = (&run.kernel, targets.join(", "));
                return Err(format!("`{kernel}` is available for {targets}; choose one with --gfx").into());
            }
            // A linker takes the first of several, too.
            Ok(first.clone())
        }
    }
}

fn read_file(file: &PathBuf) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()).into())
}

fn run_kernel(run: &Run) -> Outcome {
    let object = with_kernel(run)?;
    let machine = Machine::new(object.gfx(), MachineOptions::default())?;
    let module = machine.load(&object)?;
    let kernel = module.kernel(&run.kernel).ok_or_else(|| format!("no kernel `{}`", run.kernel))?;
    let explicit: Vec<&KernelArg> = kernel.info().args.iter().filter(|arg| !arg.is_hidden()).collect();
    if explicit.len() != run.args.len() {
        let expected = format!("{} takes {} arguments", run.kernel, explicit.len());
        return Err(format!("{expected}, but {} are given", run.args.len()).into());
    }
    let mut kernarg = vec![0; kernel.info().explicit_size() as usize];
    let mut outputs = Vec::new();
    for (n, (arg, given)) in explicit.iter().zip(&run.args).enumerate() {
        let value = match given {
            Argument::Null => vec![0; 8],
            Argument::Value(value) => value.clone(),
            Argument::Buffer { from, bytes, into } => {
                let contents = from.as_ref().map(read_file).transpose()?;
                let size = contents.as_ref().map_or(*bytes, |contents| contents.len() as u64);
                let address = machine.alloc_labelled(size, &format!("argument {n}"))?;
                if let Some(contents) = contents {
                    machine.write(address, &contents)?;
                }
                if let Some(into) = into {
                    outputs.push((address, size, into));
                }
                address.to_le_bytes().to_vec()
            }
        };
        if value.len() != arg.size as usize {
            let name = arg.name.as_deref().unwrap_or("(no name)");
            let (have, want) = (value.len(), arg.size);
            return Err(format!("argument {n} ({name}) has {want} bytes, but {have} are given").into());
        }
        kernarg[arg.offset as usize..][..value.len()].copy_from_slice(&value);
    }
    let mut options = LaunchOptions::default();
    options.check = run.check;
    options.profile = run.profile || run.folded.is_some();
    options.threads = run.threads;
    options.shuffle = run.shuffle;
    options.perturb = run.perturb;
    options.instruction_budget = run.budget.unwrap_or(options.instruction_budget);
    let tell = |running: &Running| eprintln!("{running}");
    options.watch = Some(Watch { after: Duration::from_secs(10), tell: Arc::new(tell) });
    let (Size(grid), Size(block)) = (run.grid, run.block);
    let launch = Launch { grid, block, dynamic_lds: run.lds, kernarg: &kernarg, options };
    let mut fastest = f64::INFINITY;
    let mut report = Report::default();
    for _ in 0..run.repeat.max(1) {
        let start = Instant::now();
        report = machine.launch(&kernel, &launch)?;
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    for (address, size, file) in outputs {
        let mut contents = vec![0; usize::try_from(size)?];
        machine.read(address, &mut contents)?;
        fs::write(file, contents).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    if let (Some(profile), Some(file)) = (&report.profile, &run.folded) {
        fs::write(file, profile.folded())
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    if run.json {
        let json = serde_json::json!({
            "kernel": run.kernel,
            "gfx": object.gfx().name(),
            "workgroups": report.workgroups,
            "waves": report.waves,
            "wave_instructions": report.wave_instructions,
            "lane_instructions": report.lane_instructions,
            "seconds": fastest,
            "profile": report.profile,
        });
        println!("{json}");
    } else {
        let rate = report.lane_instructions as f64 / fastest / 1e6;
        println!(
            "{} on {}: {}, {}, {} wave instructions, {} lane instructions in {fastest:.6} s ({rate:.0} M/s)",
            run.kernel,
            object.gfx(),
            counted(report.workgroups, "workgroup"),
            counted(report.waves, "wave"),
            report.wave_instructions,
            report.lane_instructions,
        );
        if let Some(profile) = &report.profile {
            print!("{profile}");
        }
    }
    Ok(())
}

/// `1 wave`, `2 waves`.
fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn list_kernels(file: &PathBuf) -> Outcome {
    let objects = open(file, None)?;
    for (object, kernel) in
        objects.iter().flat_map(|object| object.kernels().iter().map(move |kernel| (object, kernel)))
    {
        let args: Vec<String> = kernel
            .args
            .iter()
            .filter(|arg| !arg.is_hidden())
            .map(|arg| format!("{}: {} bytes", arg.name.as_deref().unwrap_or("_"), arg.size))
            .collect();
        println!(
            "{} ({}): {}, wave {}, {} VGPRs, {} SGPRs, {} bytes of LDS, {} of scratch, {} of code",
            kernel.name,
            args.join(", "),
            object.target(),
            kernel.wave_size,
            kernel.vgprs,
            kernel.sgprs,
            kernel.lds_size,
            kernel.scratch_size,
            kernel.code_bytes,
        );
    }
    Ok(())
}

fn decode_lines(gfx: Gfx) -> Outcome {
    let output = std::io::BufWriter::new(std::io::stdout().lock());
    Ok(decode::cli::decode_lines(gfx, std::io::stdin().lock(), output)?)
}
