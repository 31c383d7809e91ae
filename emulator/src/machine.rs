//! One emulated GPU.

use std::fmt;
use std::io::Write as _;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::code_object::{CodeObject, Features, KernelInfo, ObjectError};
use crate::dispatch;
use crate::exec::{Code, isa};
use crate::fault::FaultReport;
use crate::gfx::{CodeTarget, Gfx};
use crate::memory::{Allocation, Memory, MemoryError};
use crate::report::{Report, Running};
use crate::source::Lines;
use crate::trace::Trace;

/// Options of a new machine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MachineOptions {
    /// Bytes of device memory. They are reserved, and taken from the host as they are touched.
    pub memory_bytes: u64,
}

impl Default for MachineOptions {
    fn default() -> Self {
        MachineOptions { memory_bytes: 16 << 30 }
    }
}

/// One emulated GPU with its memory. All methods take `&self`, from any thread.
pub struct Machine {
    gfx: Gfx,
    memory: Arc<Memory>,
}

/// Why a code object could not be loaded.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// It is for another target.
    #[error("the code object is for {code_object}, the machine is {machine}")]
    WrongTarget {
        /// The code object's target.
        code_object: CodeTarget,
        /// The machine's target.
        machine: Gfx,
    },
    /// It is compiled for other settings of the target's features.
    #[error("the code object is for {machine}{code_object}, the machine is {machine}{has}", has = Features::of_device(*.machine))]
    WrongFeatures {
        /// What the code object needs.
        code_object: Features,
        /// The machine's target.
        machine: Gfx,
    },
    /// The bytes are not a code object.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// There is no memory for it.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

debug_is_display!(LoadError);

/// Why there is no machine.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// The host's CPU is too old for this build.
    #[error(
        "this CPU lacks AVX2, FMA, F16C, BMI1, BMI2 or LZCNT, which this build needs; build with the feature `any-x86-64` of amdgpu-emulator"
    )]
    Cpu,
    /// There is no memory for it.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

debug_is_display!(MachineError);

/// A code object that a machine has loaded. Cheap to clone.
#[derive(Clone)]
pub struct LoadedModule {
    inner: Arc<Module>,
}

pub(crate) struct Module {
    pub object: CodeObject,
    /// Where the image was loaded.
    pub base: u64,
    /// Whether the machine has loaded it, rather than somebody else.
    owned: bool,
    /// Known starts of instructions: kernels and functions, ascending.
    entries: OnceLock<Vec<u64>>,
    /// Each kernel's instructions, prepared when it is first launched.
    kernels: Vec<OnceLock<Arc<Code>>>,
    /// All instructions, for kernels that call or jump out of their own.
    whole: OnceLock<Arc<Code>>,
    lines: OnceLock<Lines>,
    memory: Arc<Memory>,
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.owned {
            // It was allocated when the module was loaded, so that this cannot fail.
            let _ = self.memory.free(self.base);
        }
    }
}

/// A kernel of a loaded code object. Cheap to clone.
#[derive(Clone)]
pub struct Kernel {
    module: LoadedModule,
    index: usize,
}

/// A launch: geometry and arguments.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// Workgroups along each axis.
    pub grid: [u32; 3],
    /// Work-items of a workgroup along each axis.
    pub block: [u32; 3],
    /// Bytes of launch-sized LDS, on top of the kernel's own.
    pub dynamic_lds: u32,
    /// The explicit arguments, laid out as [`KernelInfo::args`] says. Bytes beyond them are ignored.
    pub kernarg: &'a [u8],
    /// How to run it.
    pub options: LaunchOptions,
}

/// A launch as an AQL packet asks for it (`hsa_kernel_dispatch_packet_t`).
#[derive(Clone, Debug)]
pub struct PacketLaunch {
    /// Work-items along each axis. The last workgroup of an axis is smaller if they do not fill it.
    pub grid: [u32; 3],
    /// Work-items of a full workgroup along each axis.
    pub block: [u32; 3],
    /// Bytes of LDS, the kernel's own included.
    pub lds: u32,
    /// Bytes of scratch per work-item.
    pub scratch: u32,
    /// Address of the arguments, hidden ones included.
    pub kernarg: u64,
    /// Address of the packet.
    pub packet: u64,
    /// Address of the queue (`amd_queue_t`).
    pub queue: u64,
    /// How to run it.
    pub options: LaunchOptions,
}

/// What to call when a wave sends the host an interrupt (`s_sendmsg(MSG_INTERRUPT)`), with M0.
#[derive(Clone)]
pub struct Interrupt(pub Arc<dyn Fn(u32) + Send + Sync>);

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupt(function)")
    }
}

/// How a launch runs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LaunchOptions {
    /// Look for bugs that may not show in the results: uninitialised reads, races, missing waits.
    pub check: bool,
    /// Check mode goes on behind what it finds, as a launch outside of it does: [`Report::findings`] has all of it.
    /// What ends every launch, such as an access out of bounds, ends this one too.
    pub keep_going: bool,
    /// Count what [`Report`] has beyond the totals.
    pub profile: bool,
    /// Threads; 0 for one per core.
    pub threads: usize,
    /// Run workgroups and waves in an order drawn from this seed, rather than in ascending order.
    pub shuffle: Option<u64>,
    /// Perturb results that the ISA leaves open (`v_exp_f32`, `v_rcp_f32`, …) within their stated error.
    pub perturb: Option<u64>,
    /// Instructions that one wave may execute.
    pub instruction_budget: u64,
    /// What to call if a launch takes long; by default nothing.
    pub watch: Option<Watch>,
    /// Bytes of stack of a work-item of kernels whose metadata says `.uses_dynamic_stack`: HIP's `hipLimitStackSize`,
    /// and its default. As in AMD's runtime a kernel has no less than it asks for, and of this no more than 16 KiB.
    pub stack_size: u32,
    /// All workgroups are on the device at once, so that they may wait for each other, and kernels find what AMD's
    /// device library needs for its grid barrier. Whoever launches checks that so many fit. Check mode does not look at
    /// such a launch if it has more than one workgroup.
    pub cooperative: bool,
    /// Where `printf` and `assert` in device code write; by default to the process's own streams.
    pub output: Output,
    /// What to call when a wave interrupts the host; by default nothing. A launch with one may also wait for the host.
    pub interrupt: Option<Interrupt>,
    /// Whether kernels are compiled for the host; by default as [`Jit::of_environment`] says.
    pub jit: Jit,
    /// What hears of each instruction and access; by default nothing. It switches [`LaunchOptions::profile`] on.
    pub trace: Option<Trace>,
    /// Run only the first so many workgroups: a sample of a launch whose results nobody needs.
    pub workgroups: Option<u64>,
}

/// Whether kernels are compiled for the host, where that is x86-64 with AVX2. Results do not depend on it. Check mode and
/// profile mode interpret.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Jit {
    /// Where it is worth its time.
    #[default]
    On,
    /// Never: everything is interpreted.
    Off,
    /// From the first instruction on.
    Always,
    /// From the first instruction on, and each compiled block on registers alone is interpreted, too. A difference is a
    /// panic. For tests of the emulator.
    Compared,
}

impl Jit {
    /// The environment variable that [`Jit::of_environment`] reads.
    pub const VARIABLE: &str = "CANDLE_AMDGPU_JIT";

    /// By the value that the variable has: `1`, `0`, `always` or `compared`.
    pub fn from_name(name: &str) -> Option<Jit> {
        Some(match name {
            "1" => Jit::On,
            "0" => Jit::Off,
            "always" => Jit::Always,
            "compared" => Jit::Compared,
            _ => return None,
        })
    }

    /// What the variable `CANDLE_AMDGPU_JIT` says; [`Jit::On`] where it says none of its values.
    pub fn of_environment() -> Jit {
        static JIT: OnceLock<Jit> = OnceLock::new();
        let read = || std::env::var(Jit::VARIABLE).ok().and_then(|name| Jit::from_name(&name));
        *JIT.get_or_init(|| read().unwrap_or_default())
    }
}

/// A stream that device code can write to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Where device code's `printf` writes.
#[derive(Clone, Default)]
pub struct Output(Option<Arc<WriteText>>);

type WriteText = dyn Fn(Stream, &[u8]) + Send + Sync;

impl Output {
    /// Calls a function with each text that a lane prints, as whole as it was printed. The kernel goes on when it returns.
    pub fn new(write: impl Fn(Stream, &[u8]) + Send + Sync + 'static) -> Output {
        Output(Some(Arc::new(write)))
    }

    pub(crate) fn write(&self, stream: Stream, text: &[u8]) {
        // As with `printf` on the host, there is nobody to tell that a stream is closed.
        let _ = match (&self.0, stream) {
            (Some(write), _) => {
                write(stream, text);
                Ok(())
            }
            (None, Stream::Stdout) => std::io::stdout().write_all(text),
            (None, Stream::Stderr) => std::io::stderr().write_all(text),
        };
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Output(function)" } else { "Output(streams of the process)" })
    }
}

/// What to call while a launch is still running.
#[derive(Clone)]
pub struct Watch {
    /// How long a launch may take before the first call; another follows whenever the time has doubled.
    pub after: Duration,
    /// Called from a thread of the launch, which continues when it returns.
    pub tell: Arc<dyn Fn(&Running) + Send + Sync>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("after", &self.after).finish_non_exhaustive()
    }
}

impl Default for LaunchOptions {
    fn default() -> Self {
        LaunchOptions {
            check: false,
            keep_going: false,
            profile: false,
            threads: 0,
            shuffle: None,
            perturb: None,
            instruction_budget: 1 << 32,
            watch: None,
            stack_size: 1024,
            cooperative: false,
            output: Output::default(),
            interrupt: None,
            jit: Jit::of_environment(),
            trace: None,
            workgroups: None,
        }
    }
}

impl Machine {
    /// A machine for `gfx`.
    ///
    /// # Errors
    /// [`MachineError::Cpu`] on an x86-64 CPU without AVX2, unless the feature `any-x86-64` is on;
    /// [`MemoryError::Reserve`] if the host cannot reserve the address range.
    pub fn new(gfx: Gfx, options: MachineOptions) -> Result<Machine, MachineError> {
        if !isa::is_supported() {
            return Err(MachineError::Cpu);
        }
        Ok(Machine { gfx, memory: Arc::new(Memory::new(options.memory_bytes)?) })
    }

    /// A machine whose memory is a range of the process's addresses that somebody else maps and gives out
    /// ([`Machine::place`]). It has none to give itself: [`Machine::alloc`] and [`Machine::load`] fail.
    ///
    /// # Errors
    /// As [`Machine::new`].
    ///
    /// # Safety
    /// The range stays readable and writable as long as the machine lives.
    pub unsafe fn over(gfx: Gfx, range: Range<u64>) -> Result<Machine, MachineError> {
        if !isa::is_supported() {
            return Err(MachineError::Cpu);
        }
        // SAFETY: the caller's contract.
        let memory = unsafe { Memory::over(range.start, range.end.saturating_sub(range.start))? };
        Ok(Machine { gfx, memory: Arc::new(memory) })
    }

    /// Makes `bytes` bytes at `address` an allocation of a machine that [`Machine::over`] made. What was written there counts as
    /// written until [`Machine::forget`]; where the host writes without telling the machine, all of it does.
    ///
    /// # Errors
    /// [`MemoryError::NotLendable`] if the range is empty, outside of the machine's, or overlaps an allocation.
    pub fn place(&self, address: u64, bytes: u64, label: &str, host_writes: bool) -> Result<(), MemoryError> {
        self.memory.place(address, bytes, Some(label.into()), host_writes)
    }

    /// Makes `bytes` bytes of the host's memory accessible to kernels at `address`, another one of the machine's addresses
    /// than the host's own. Check mode keeps no notes on it.
    ///
    /// # Errors
    /// [`MemoryError::NotLendable`] as for [`Machine::place`].
    ///
    /// # Safety
    /// As for [`Machine::lend`], until [`Machine::displace`].
    pub unsafe fn place_alias(&self, address: u64, bytes: u64, host: *mut u8) -> Result<(), MemoryError> {
        // SAFETY: the caller's contract.
        unsafe { self.memory.place_alias(address, bytes, host.expose_provenance() as u64) }
    }

    /// Where the host has `bytes` bytes that kernels have at `address`; `None` if they do not lie within one allocation.
    pub fn host_address(&self, address: u64, bytes: u64) -> Option<*mut u8> {
        self.memory.host_pointer(address, bytes)
    }

    /// Tells check mode that whole pages have new contents, which nobody has written: their owner has given them out anew.
    pub fn forget(&self, address: u64, bytes: u64) {
        self.memory.forget(address, bytes);
    }

    /// Ends what [`Machine::place`] or [`Machine::place_alias`] began.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`] if `address` is not the start of an allocation.
    pub fn displace(&self, address: u64) -> Result<(), MemoryError> {
        self.memory.displace(address)
    }

    /// The target.
    pub fn gfx(&self) -> Gfx {
        self.gfx
    }

    /// Allocates device memory, aligned to 4096; it reads as zero. The address is also a host address.
    ///
    /// # Errors
    /// [`MemoryError::OutOfMemory`].
    pub fn alloc(&self, bytes: u64) -> Result<u64, MemoryError> {
        self.memory.alloc(bytes, None)
    }

    /// As [`Machine::alloc`], with a text that reports show beside the allocation.
    ///
    /// # Errors
    /// [`MemoryError::OutOfMemory`].
    pub fn alloc_labelled(&self, bytes: u64, label: &str) -> Result<u64, MemoryError> {
        self.memory.alloc(bytes, Some(label.into()))
    }

    /// Frees what [`Machine::alloc`] gave.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`] if `address` is not the start of an allocation.
    pub fn free(&self, address: u64) -> Result<(), MemoryError> {
        self.memory.free(address)
    }

    /// Copies device memory to `into`.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`] if the range does not lie within one allocation.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        self.memory.read(address, into)
    }

    /// Copies `from` to device memory.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`] if the range does not lie within one allocation.
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        self.memory.write(address, from)
    }

    /// Sets `size` bytes of device memory to `byte`.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`] if the range does not lie within one allocation.
    pub fn fill(&self, address: u64, byte: u8, size: u64) -> Result<(), MemoryError> {
        self.memory.fill(address, byte, size)
    }

    /// Copies within device memory; the ranges may overlap.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`] if one of the ranges does not lie within one allocation.
    pub fn copy(&self, into: u64, from: u64, size: u64) -> Result<(), MemoryError> {
        self.memory.copy(into, from, size)
    }

    /// Makes `bytes` bytes of the host's memory an allocation, at the address that they have. It is none of the
    /// device's memory, and check mode keeps no notes on it: what it holds counts as written, and races in it are not
    /// found.
    ///
    /// # Errors
    /// [`MemoryError::NotLendable`] if the range is empty, or overlaps an allocation or the machine's own memory.
    ///
    /// # Safety
    /// The range stays readable and writable until [`Machine::take_back`], or for as long as the machine is there. The
    /// host makes no access to it, and holds no reference, that races with kernels and copies.
    pub unsafe fn lend(&self, address: *mut u8, bytes: u64, label: &str) -> Result<(), MemoryError> {
        // SAFETY: the caller's contract.
        unsafe { self.memory.lend(address.expose_provenance() as u64, bytes, Some(label.into())) }
    }

    /// Ends what [`Machine::lend`] began.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`] if `address` is not the start of memory that is lent.
    pub fn take_back(&self, address: u64) -> Result<(), MemoryError> {
        self.memory.take_back(address)
    }

    /// Lets this machine's launches access the allocations of other machines, from the next launch on; the list
    /// replaces the one before. Check mode keeps no notes on such accesses.
    pub fn set_peers(&self, peers: &[&Machine]) {
        self.memory.set_peers(peers.iter().map(|peer| Arc::downgrade(&peer.memory)).collect());
    }

    /// Tells check mode that all memory there is has been written, by others than this machine's kernels.
    pub fn mark_all_written(&self) {
        self.memory.trust_everything();
    }

    /// Tells check mode that the host has written a range without [`Machine::write`]: through its address, which
    /// is a host address too.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`] if the range does not lie within one allocation.
    pub fn mark_written(&self, address: u64, size: u64) -> Result<(), MemoryError> {
        self.memory.contains(address, size)?;
        self.memory.mark_written(address, size);
        Ok(())
    }

    /// The allocation that `address` lies in.
    pub fn allocation(&self, address: u64) -> Option<Allocation> {
        self.memory.allocation(address)
    }

    /// Loads a code object: copies its image to device memory and applies relocations. A kernel's instructions are
    /// decoded when it is first launched.
    ///
    /// # Errors
    /// [`LoadError::WrongTarget`] if it is for another target, [`LoadError::WrongFeatures`] if for other features of
    /// it, [`LoadError::Memory`] if there is no memory for it.
    pub fn load(&self, object: &CodeObject) -> Result<LoadedModule, LoadError> {
        if !object.target().covers(self.gfx) {
            return Err(LoadError::WrongTarget { code_object: object.target(), machine: self.gfx });
        }
        if !object.runs_on(self.gfx) {
            return Err(LoadError::WrongFeatures { code_object: object.features(), machine: self.gfx });
        }
        // Scalar loads of constants may be widened past the end of the last one.
        let size = object.image_size() + 64;
        let base = self.memory.alloc(size, Some("code object".into()))?;
        // From here on the memory is freed if something fails.
        let module = self.module(object, base, true);
        for (address, bytes) in module.object.segments() {
            self.memory.write(base + address, bytes)?;
        }
        for relocation in module.object.relocations() {
            let value = base.wrapping_add(relocation.addend);
            self.memory.write(base + relocation.address, &value.to_le_bytes())?;
        }
        // What no segment has is zero.
        self.memory.mark_written(base, size);
        Ok(LoadedModule { inner: Arc::new(module) })
    }

    /// A code object that somebody else has loaded: its image lies at `base`, relocated. Instructions are read from the
    /// code object.
    pub fn adopt(&self, object: &CodeObject, base: u64) -> LoadedModule {
        LoadedModule { inner: Arc::new(self.module(object, base, false)) }
    }

    fn module(&self, object: &CodeObject, base: u64, owned: bool) -> Module {
        let kernels = object.kernels().iter().map(|_| OnceLock::new()).collect();
        let (object, memory) = (object.on(self.gfx), self.memory.clone());
        let (entries, whole, lines) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Module { object, base, owned, entries, kernels, whole, lines, memory }
    }

    /// Runs a kernel as a packet of a queue asks for it: arguments, packet and queue are in memory already.
    ///
    /// # Errors
    /// As [`Machine::launch`].
    pub fn launch_packet(&self, kernel: &Kernel, packet: &PacketLaunch) -> Result<Report, FaultReport> {
        dispatch::launch_packet(&self.memory, kernel, packet)
    }

    /// Runs a kernel to its end.
    ///
    /// # Errors
    /// Whatever the launch or the kernel did wrong. Nothing has run if the report has no site; otherwise memory
    /// holds what was written until the fault.
    pub fn launch(&self, kernel: &Kernel, launch: &Launch<'_>) -> Result<Report, FaultReport> {
        dispatch::launch(&self.memory, kernel, launch)
    }

    /// Free and total bytes of device memory.
    pub fn memory_info(&self) -> (u64, u64) {
        self.memory.info()
    }
}

impl LoadedModule {
    /// The kernel called `name`.
    pub fn kernel(&self, name: &str) -> Option<Kernel> {
        let kernels = self.inner.object.kernels();
        let index = kernels.binary_search_by(|kernel| kernel.name.as_str().cmp(name)).ok()?;
        Some(Kernel { module: self.clone(), index })
    }

    /// Address and size of the global variable called `name`.
    pub fn global(&self, name: &str) -> Option<(u64, u64)> {
        let symbol = self.inner.object.symbol(name).filter(|symbol| symbol.is_data)?;
        Some((self.inner.base + symbol.address, symbol.size))
    }

    /// The code object.
    pub fn code_object(&self) -> &CodeObject {
        &self.inner.object
    }
}

impl Module {
    /// Source lines, by instruction.
    pub fn lines(&self) -> &Lines {
        self.lines.get_or_init(|| Lines::new(&self.object))
    }

    fn whole(&self) -> Arc<Code> {
        let prepare = || Arc::new(self.prepare(self.object.text_ranges()));
        self.whole.get_or_init(prepare).clone()
    }

    fn prepare(&self, ranges: &[Range<u64>]) -> Code {
        let entries = self.entries.get_or_init(|| {
            let kernels = self.object.kernels().iter().map(|kernel| kernel.descriptor.entry);
            let functions = self.object.symbols().filter(|(_, symbol)| !symbol.is_data);
            let mut entries: Vec<u64> = kernels.chain(functions.map(|(_, symbol)| symbol.address)).collect();
            entries.sort_unstable();
            entries
        });
        let starts = ranges.iter().map(|range| range.start.next_multiple_of(4)..range.end);
        let pieces: Vec<(u64, &[u8])> = starts
            .filter(|range| !range.is_empty())
            .map(|range| (range.start, self.object.image_bytes(range)))
            .collect();
        Code::prepare(self.object.gfx(), &pieces, entries)
    }

    /// The instructions that a kernel can reach: its own, unless it calls or jumps out of them.
    fn code(&self, kernel: usize) -> Arc<Code> {
        let prepare = || {
            let info = &self.object.kernels()[kernel];
            let start = info.descriptor.entry;
            let text = self.object.text_ranges().iter().find(|range| range.contains(&start));
            let end = start.saturating_add(info.code_bytes);
            match text.filter(|range| info.code_bytes != 0 && end <= range.end) {
                None => self.whole(),
                Some(_) => {
                    let code = self.prepare(std::slice::from_ref(&(start..end)));
                    if code.is_closed() { Arc::new(code) } else { self.whole() }
                }
            }
        };
        self.kernels[kernel].get_or_init(prepare).clone()
    }
}

impl Kernel {
    pub(crate) fn code(&self) -> Arc<Code> {
        self.module.inner.code(self.index)
    }

    /// Decodes the kernel's instructions now, rather than when it is first launched.
    pub fn prepare(&self) {
        self.code();
    }

    /// A number that kernels of one loaded code object share, and no others that are loaded.
    pub fn code_id(&self) -> u64 {
        Arc::as_ptr(&self.module.inner).addr() as u64
    }

    /// What the code object says about the kernel.
    pub fn info(&self) -> &KernelInfo {
        &self.module.inner.object.kernels()[self.index]
    }

    pub(crate) fn module(&self) -> &Module {
        &self.module.inner
    }
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("gfx", &self.gfx).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for LoadedModule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadedModule").field("base", &self.inner.base).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").field("name", &self.info().name).finish_non_exhaustive()
    }
}
