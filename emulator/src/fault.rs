//! Everything that can go wrong in a launch.

use std::borrow::Cow;
use std::fmt;

use crate::gfx::Gfx;
use crate::report::Finding;

/// What went wrong, with the facts. [`FaultReport`] says where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The launch geometry has a zero or is too large.
    #[error(
        "a grid of {grid:?} workgroups of {block:?} work-items: every size must be 1 or more, and a grid below 2^32 work-items along each axis"
    )]
    Geometry {
        /// Workgroups.
        grid: [u32; 3],
        /// Work-items of a workgroup.
        block: [u32; 3],
    },
    /// The workgroup is larger than the kernel was compiled for.
    #[error("workgroups of {size} work-items; the kernel was compiled for at most {limit}")]
    WorkgroupSize {
        /// Work-items asked for.
        size: u64,
        /// Work-items that the kernel's metadata allows.
        limit: u32,
    },
    /// The workgroup needs more LDS than there is.
    #[error("{bytes} bytes of LDS (fixed and launch-sized); a workgroup on this target has at most {limit}")]
    LdsSize {
        /// Bytes asked for.
        bytes: u64,
        /// Bytes that there are.
        limit: u32,
    },
    /// The argument block is shorter than the kernel's explicit arguments.
    #[error("{given} bytes of arguments; the kernel's explicit arguments take {needed}")]
    Arguments {
        /// Bytes given.
        given: usize,
        /// Bytes needed.
        needed: u32,
    },
    /// The machine has no memory left for the launch.
    #[error("no device memory for the launch's arguments and scratch: {0}")]
    Memory(#[from] crate::memory::MemoryError),
    /// An instruction that decodes, but that the emulator does not execute.
    #[error("`{instruction}` is not implemented on {gfx}")]
    Unsupported {
        /// LLVM's text.
        instruction: String,
        /// The target.
        gfx: Gfx,
    },
    /// Bytes that are not an instruction.
    #[error("{word:#010x} is not an instruction of {gfx}")]
    IllegalInstruction {
        /// The dword at the program counter.
        word: u32,
        /// The target.
        gfx: Gfx,
    },
    /// The program counter left the code object's machine code.
    #[error("the program counter {pc:#x} is not the start of an instruction of the code object")]
    IllegalPc {
        /// The address; relative to the load address if it lies within the code object.
        pc: u64,
    },
    /// An access outside of every allocation.
    #[error("{access} of {} at {address:#x} is out of bounds: {nearest}", bytes(*size))]
    OutOfBounds {
        /// Read, write or atomic.
        access: Access,
        /// First byte.
        address: u64,
        /// Bytes.
        size: u32,
        /// The allocation next to it.
        nearest: Nearest,
    },
    /// An access to memory that was freed.
    #[error("{access} of {} at {address:#x} after it was freed: {nearest}", bytes(*size))]
    UseAfterFree {
        /// Read, write or atomic.
        access: Access,
        /// First byte.
        address: u64,
        /// Bytes.
        size: u32,
        /// The freed allocation.
        nearest: Nearest,
    },
    /// An LDS access beyond what the workgroup has.
    #[error("{access} of {} at LDS offset {offset:#x}; the workgroup has {} of LDS", bytes(*size), bytes(*limit))]
    LdsOutOfBounds {
        /// Read, write or atomic.
        access: Access,
        /// First byte.
        offset: u64,
        /// Bytes.
        size: u32,
        /// Bytes of LDS.
        limit: u32,
    },
    /// A scratch access beyond what a work-item has.
    #[error("{access} of {} at scratch offset {offset}; a work-item has {} of scratch", bytes(*size), bytes(*limit))]
    ScratchOutOfBounds {
        /// Read or write.
        access: Access,
        /// First byte.
        offset: i64,
        /// Bytes.
        size: u32,
        /// Bytes of scratch.
        limit: u32,
    },
    /// A scratch access beyond the stack of a kernel that calls functions whose needs the compiler did not know: it has
    /// what [`LaunchOptions::stack_size`](crate::LaunchOptions::stack_size) says.
    #[error(
        "{access} of {} at scratch offset {offset}: the stack overflows; the kernel's metadata does not say how \
         much its calls need (.uses_dynamic_stack), so a work-item has {} (hipLimitStackSize)",
        bytes(*size),
        bytes(*limit)
    )]
    StackOverflow {
        /// Read or write.
        access: Access,
        /// First byte.
        offset: i64,
        /// Bytes.
        size: u32,
        /// Bytes of scratch.
        limit: u32,
    },
    /// An access that needs a larger alignment.
    #[error("{access} of {} at {address:#x} in {space}, which must be aligned to {alignment}", bytes(*size))]
    Misaligned {
        /// Read, write or atomic.
        access: Access,
        /// Global memory, LDS or scratch.
        space: Space,
        /// First byte.
        address: u64,
        /// Bytes.
        size: u32,
        /// Needed alignment.
        alignment: u32,
    },
    /// A wave executed more instructions than the launch allows.
    #[error(
        "a wave executed {budget} instructions and did not end: an endless loop, or a limit that is too low"
    )]
    Budget {
        /// Instructions that a wave may execute.
        budget: u64,
    },
    /// The kernel asks the host for what emulated devices do not answer, or in a wrong way.
    #[error("a call of the host that cannot be answered: {problem}")]
    HostCall {
        /// What it asks for, or what is wrong.
        problem: String,
    },
    /// `s_trap`: what `abort` and `__builtin_trap` compile to, and a panic that nothing identifies as one.
    #[error("trap {id}{}", if *id == 2 { ": the kernel aborted (a panic or llvm.trap)" } else { "" })]
    Trap {
        /// The trap's number.
        id: u8,
    },
    /// A Rust panic: a trap whose debug information leads through `core::panicking`.
    #[error("the kernel panicked{}{}", message.as_ref().map(|text| format!(": {text}")).unwrap_or_default(), at(location))]
    Panic {
        /// The message of the panic, if it is known: Rust's own panics lose a formatted message on a GPU.
        message: Option<Cow<'static, str>>,
        /// The source line that panicked: the innermost one outside of Rust's core library.
        location: Option<SourceLine>,
    },
    /// Check mode: a wave ended, or waits at a barrier, while others of its workgroup do the opposite.
    #[error(
        "{} at a barrier that {} ended without reaching",
        waiting_of(*waiting, *waves),
        counted(*ended, "wave")
    )]
    BarrierDivergence {
        /// Waves that wait.
        waiting: u32,
        /// Waves that have ended.
        ended: u32,
        /// Waves of the workgroup.
        waves: u32,
        /// The barriers where waves wait, where the others ended, and the last branches before they did.
        places: Vec<CodePlace>,
    },
    /// Check mode: a wave meets a barrier with part of its lanes. The others have taken another branch, or have returned.
    #[error("a wave meets a barrier with {off} of its {} off", counted(*lanes, "lane"))]
    BarrierOfSomeLanes {
        /// Lanes that are off.
        off: u32,
        /// Lanes that the wave began with.
        lanes: u32,
    },
    /// Check mode: memory that nobody has written is read.
    #[error(
        "read of {} of uninitialised {space} at {address:#x}{}{}",
        bytes(*size),
        within(nearest),
        if *space == Space::Lds { ": nobody has written it, or a barrier is missing and the writer comes later" } else { "" }
    )]
    Uninitialised {
        /// Global memory or LDS.
        space: Space,
        /// First byte; in LDS an offset.
        address: u64,
        /// Bytes.
        size: u32,
        /// The allocation, for global memory.
        nearest: Option<Nearest>,
    },
    /// Check mode: a register that nobody has written decides an address or a branch.
    #[error("{register} is uninitialised and decides {purpose}")]
    UninitialisedRegister {
        /// The register, as LLVM prints it.
        register: String,
        /// What it decides.
        purpose: &'static str,
    },
    /// Check mode: what a lane read of another one, which was off, is used.
    #[error("{register} {purpose}, and depends on what lane {lane} read of lane {from}, which was off")]
    LaneIsOff {
        /// The register that is used, as LLVM prints it.
        register: String,
        /// What for.
        purpose: String,
        /// A lane that read one that was off.
        lane: u32,
        /// The lane that was off.
        from: u32,
        /// The instruction that read it.
        places: Vec<CodePlace>,
    },
    /// Check mode: a register is used before the load into it was waited for.
    #[error("{register} is used while a load into it is under way: no wait for {counter} in between")]
    MissingWait {
        /// The register, as LLVM prints it.
        register: String,
        /// The counter to wait for.
        counter: &'static str,
    },
    /// Check mode: two waves access the same bytes, one of them writes, and the barrier in between does not order them: the
    /// earlier one's wave came to it without having waited for its access.
    #[error(
        "{access} of {} {} may come before {other}: no wait for {counter} between that and the barrier{}",
        bytes(*size),
        at_in(*space, *address),
        nearest.as_ref().map(|nearest| format!(" ({nearest})")).unwrap_or_default()
    )]
    MissingWaitAtBarrier {
        /// What this instruction does.
        access: Access,
        /// Global memory or LDS.
        space: Space,
        /// First byte; in LDS an offset.
        address: u64,
        /// Bytes.
        size: u32,
        /// The counter to wait for.
        counter: &'static str,
        /// The other access.
        other: Box<OtherAccess>,
        /// The allocation, for global memory.
        nearest: Option<Nearest>,
        /// The barrier.
        places: Vec<CodePlace>,
    },
    /// Check mode: two waves access the same LDS bytes, one of them writes, and no barrier lies between.
    #[error("{access} of {} at LDS offset {offset:#x} races with {other}: no barrier lies between", bytes(*size))]
    LdsRace {
        /// What this instruction does.
        access: Access,
        /// First byte.
        offset: u64,
        /// Bytes.
        size: u32,
        /// The other access.
        other: Box<OtherAccess>,
    },
    /// Check mode: two waves access the same bytes of global memory, one of them writes, and nothing orders them.
    #[error(
        "{access} of {} at {address:#x} races with {other}: nothing orders the two ({nearest})",
        bytes(*size)
    )]
    GlobalRace {
        /// What this instruction does.
        access: Access,
        /// First byte.
        address: u64,
        /// Bytes.
        size: u32,
        /// The other access.
        other: Box<OtherAccess>,
        /// The allocation.
        nearest: Nearest,
    },
    /// Every wave that has not ended waits at a barrier, and none of them can go on: a wave waits at a split barrier
    /// (`s_barrier_wait`) that it, or another one, has not signalled.
    #[error(
        "a deadlock: {} at a barrier and {ended} {} ended",
        waiting_of(*waiting, *waves),
        if *ended == 1 { "has" } else { "have" }
    )]
    Deadlock {
        /// Waves that wait.
        waiting: u32,
        /// Waves of the workgroup.
        waves: u32,
        /// Waves that have ended.
        ended: u32,
    },
}

/// A place in the machine code that has to do with a fault, besides the one where it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CodePlace {
    /// What it is, as a report says it: `the barrier`.
    pub what: &'static str,
    /// Address of the instruction, relative to the code object's load address.
    pub pc: u64,
    /// LLVM's text of the instruction.
    pub instruction: String,
    /// Source position, innermost inlined function first; empty without debug information.
    pub source: Vec<SourceLine>,
}

/// The earlier of two accesses that race.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtherAccess {
    /// What it did.
    pub access: Access,
    /// Position of its workgroup in the grid.
    pub workgroup: [u32; 3],
    /// Its wave within the workgroup.
    pub wave: u32,
    /// Address of its instruction, relative to the code object's load address.
    pub pc: u64,
    /// LLVM's text of its instruction.
    pub instruction: String,
    /// Its source position, innermost inlined function first, without those that were called; empty without debug
    /// information.
    pub source: Vec<SourceLine>,
}

impl fmt::Display for OtherAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([x, y, z], pc) = (self.workgroup, self.pc);
        let article = if self.access == Access::Atomic { "an" } else { "a" };
        write!(f, "{article} {} by workgroup ({x}, {y}, {z}), wave {}", self.access, self.wave)?;
        write!(f, " at {pc:#x} ({})", self.instruction)
    }
}

impl Fault {
    /// What kind it is: the name of the variant, such as `LdsRace`.
    pub fn kind(&self) -> String {
        let text = format!("{self:?}");
        text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
    }

    /// The earlier of two accesses that race.
    pub fn other_access(&self) -> Option<&OtherAccess> {
        match self {
            Fault::LdsRace { other, .. }
            | Fault::GlobalRace { other, .. }
            | Fault::MissingWaitAtBarrier { other, .. } => Some(other),
            _ => None,
        }
    }

    /// The places in the machine code that have to do with it, besides the one where it was found.
    pub fn places(&self) -> &[CodePlace] {
        match self {
            Fault::BarrierDivergence { places, .. }
            | Fault::LaneIsOff { places, .. }
            | Fault::MissingWaitAtBarrier { places, .. } => places,
            _ => &[],
        }
    }

    /// With the source lines that `lines` has of an address.
    pub(crate) fn located(mut self, lines: impl Fn(u64) -> Vec<SourceLine>) -> Fault {
        let (other, places) = match &mut self {
            Fault::LdsRace { other, .. } | Fault::GlobalRace { other, .. } => (Some(other), None),
            Fault::MissingWaitAtBarrier { other, places, .. } => (Some(other), Some(places)),
            Fault::BarrierDivergence { places, .. } | Fault::LaneIsOff { places, .. } => (None, Some(places)),
            _ => (None, None),
        };
        if let Some(other) = other {
            other.source = lines(other.pc);
        }
        for place in places.into_iter().flatten() {
            place.source = lines(place.pc);
        }
        self
    }

    /// What a trap is, given the source lines of its instruction, innermost function first.
    pub(crate) fn of_trap(id: u8, source: &[SourceLine]) -> Fault {
        let is_core = |line: &SourceLine| line.file.contains("library/core/src/");
        let is_panic = |line: &SourceLine| line.file.ends_with("library/core/src/panicking.rs");
        let Some(entered) = source.iter().rposition(is_panic).filter(|_| id == 2) else {
            return Fault::Trap { id };
        };
        let function = source[entered].function.as_deref().unwrap_or_default();
        let location = source[entered..].iter().find(|line| !is_core(line)).cloned();
        Fault::Panic { message: panic_message(function).map(Cow::Borrowed), location }
    }

    /// What a trap is that a kernel gave a message to (`report` of amdgpu-device).
    pub(crate) fn of_message(message: String, source: &[SourceLine]) -> Fault {
        let is_report = |line: &SourceLine| line.file.ends_with("device/src/report.rs");
        let location = source.iter().find(|line| !is_report(line)).cloned();
        Fault::Panic { message: Some(Cow::Owned(message)), location }
    }
}

/// What core's function of that name panics with.
fn panic_message(function: &str) -> Option<&'static str> {
    Some(match function.rsplit("::").next()? {
        "panic_bounds_check" => "index out of bounds",
        "panic_const_div_by_zero" => "attempt to divide by zero",
        "panic_const_rem_by_zero" => "attempt to calculate the remainder with a divisor of zero",
        "panic_const_add_overflow" => "attempt to add with overflow",
        "panic_const_sub_overflow" => "attempt to subtract with overflow",
        "panic_const_mul_overflow" => "attempt to multiply with overflow",
        "panic_const_div_overflow" => "attempt to divide with overflow",
        "panic_const_rem_overflow" => "attempt to calculate the remainder with overflow",
        "panic_const_neg_overflow" => "attempt to negate with overflow",
        "panic_const_shl_overflow" => "attempt to shift left with overflow",
        "panic_const_shr_overflow" => "attempt to shift right with overflow",
        _ => return None,
    })
}

/// `1 wave`, `2 waves`.
fn counted(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// `1 byte`, `2 bytes`.
fn bytes(count: u32) -> String {
    counted(count, "byte")
}

/// `1 of 2 waves waits`, `2 of 3 waves wait`.
fn waiting_of(waiting: u32, waves: u32) -> String {
    format!("{waiting} of {} {}", counted(waves, "wave"), if waiting == 1 { "waits" } else { "wait" })
}

fn at_in(space: Space, address: u64) -> String {
    format!("at {}{address:#x}", if space == Space::Lds { "LDS offset " } else { "" })
}

fn at(location: &Option<SourceLine>) -> String {
    location.as_ref().map(|line| format!(", at {}:{}", line.file, line.line)).unwrap_or_default()
}

fn within(nearest: &Option<Nearest>) -> String {
    nearest.as_ref().map(|nearest| format!(": {nearest}")).unwrap_or_default()
}

/// What an instruction does to memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Access {
    Read,
    Write,
    Atomic,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::Read => "read",
            Access::Write => "write",
            Access::Atomic => "atomic access",
        })
    }
}

/// Kinds of memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Space {
    Global,
    Lds,
    Scratch,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Space::Global => "global memory",
            Space::Lds => "LDS",
            Space::Scratch => "scratch",
        })
    }
}

/// An address, seen from the allocation that is closest to it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Nearest {
    /// The allocation; `None` if there is none at all.
    pub allocation: Option<crate::memory::Allocation>,
    /// The address, relative to the allocation's start.
    pub offset: i64,
}

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(allocation) = &self.allocation else { return f.write_str("nothing is allocated") };
        let size = allocation.size as i64;
        /// If an allocation is further away than this, it says nothing about an address.
        const NEAR: u64 = 1 << 30;
        match self.offset {
            offset if offset.unsigned_abs() > NEAR.saturating_add(allocation.size) => {
                return f.write_str("nothing is allocated near it");
            }
            -1 => f.write_str("1 byte before")?,
            offset if offset < 0 => write!(f, "{} bytes before", -offset)?,
            1 if size > 1 => f.write_str("1 byte into")?,
            offset if offset < size => write!(f, "{offset} bytes into")?,
            offset if offset == size + 1 => f.write_str("1 byte past the end of")?,
            offset => write!(f, "{} bytes past the end of", offset - size)?,
        }
        write!(f, " {allocation}")
    }
}

/// Where a fault happened.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Site {
    /// Position in the grid, in workgroups.
    pub workgroup: [u32; 3],
    /// Wave within the workgroup.
    pub wave: u32,
    /// Lane within the wave, if the fault is one lane's.
    pub lane: Option<u32>,
    /// The work-item's id within the workgroup, if the fault is one lane's.
    pub work_item: Option<[u32; 3]>,
    /// Address of the instruction, relative to the code object's load address.
    pub pc: u64,
    /// LLVM's text of the instruction.
    pub instruction: String,
    /// Addresses of the calls that the instruction is under, innermost first.
    pub calls: Vec<u64>,
    /// Source position, innermost function first, through inlined functions and calls alike; empty without debug
    /// information.
    pub source: Vec<SourceLine>,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.workgroup;
        write!(f, "workgroup ({x}, {y}, {z}), wave {}", self.wave)?;
        if let Some(lane) = self.lane {
            write!(f, ", lane {lane}")?;
        }
        if let Some([x, y, z]) = self.work_item {
            write!(f, " (work-item ({x}, {y}, {z}))")?;
        }
        write!(f, "\n  at {:#x}: {}", self.pc, self.instruction)?;
        for call in &self.calls {
            write!(f, "\n  called at {call:#x}")?;
        }
        list(f, &self.source)
    }
}

/// Source lines, one below the other.
fn list(f: &mut fmt::Formatter<'_>, source: &[SourceLine]) -> fmt::Result {
    source.iter().try_for_each(|line| write!(f, "\n     {line}"))
}

/// A position in the kernel's source.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct SourceLine {
    /// Function, demangled where the name is mangled.
    pub function: Option<String>,
    /// File as the compiler was given it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
}

impl SourceLine {
    /// Whether somebody wrote it for this kernel: it is neither the standard library's, nor HIP's headers', nor the compiler's own
    /// (line 0).
    pub fn is_users(&self) -> bool {
        self.line != 0 && !["/library/", "/hip/amd_detail/"].iter().any(|folder| self.file.contains(folder))
    }
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if self.column != 0 {
            write!(f, ":{}", self.column)?;
        }
        if let Some(function) = &self.function {
            write!(f, " in {function}")?;
        }
        Ok(())
    }
}

/// The error of a launch: the fault, the kernel and, once it runs, where.
#[derive(Clone, PartialEq, Eq)]
pub struct FaultReport {
    inner: Box<Inner>,
}

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    fault: Fault,
    kernel: String,
    gfx: Gfx,
    site: Option<Site>,
    findings: Vec<Finding>,
}

impl FaultReport {
    pub(crate) fn new(fault: Fault, kernel: &str, gfx: Gfx, site: Option<Site>) -> FaultReport {
        let kernel = kernel.to_owned();
        FaultReport { inner: Box::new(Inner { fault, kernel, gfx, site, findings: Vec::new() }) }
    }

    pub(crate) fn behind(mut self, findings: Vec<Finding>) -> FaultReport {
        self.inner.findings = findings;
        self
    }

    /// What check mode found before the fault, and went on behind ([`LaunchOptions::keep_going`]).
    ///
    /// [`LaunchOptions::keep_going`]: crate::LaunchOptions::keep_going
    pub fn findings(&self) -> &[Finding] {
        &self.inner.findings
    }

    /// What went wrong.
    pub fn fault(&self) -> &Fault {
        &self.inner.fault
    }

    /// The kernel's name.
    pub fn kernel(&self) -> &str {
        &self.inner.kernel
    }

    /// The target.
    pub fn gfx(&self) -> Gfx {
        self.inner.gfx
    }

    /// Where; `None` if the launch was refused before anything ran.
    pub fn site(&self) -> Option<&Site> {
        self.inner.site.as_ref()
    }
}

impl std::error::Error for FaultReport {}

debug_is_display!(FaultReport);

impl fmt::Display for FaultReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { fault, kernel, gfx, site, .. } = &*self.inner;
        write!(f, "{fault}\n  kernel {kernel} on {gfx}")?;
        let Some(site) = site else { return Ok(()) };
        write!(f, ", {site}")?;
        if let Some(other) = fault.other_access().filter(|other| !other.source.is_empty()) {
            write!(f, "\n  the other access at {:#x}", other.pc)?;
            list(f, &other.source)?;
        }
        for place in fault.places().iter().filter(|place| place.pc != site.pc) {
            write!(f, "\n  {} at {:#x}: {}", place.what, place.pc, place.instruction)?;
            list(f, &place.source)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(function: &str, file: &str, line: u32) -> SourceLine {
        SourceLine { function: Some(function.into()), file: file.into(), line, column: 9 }
    }

    #[test]
    fn a_trap_below_cores_panicking_is_a_panic_at_the_callers_line() {
        let handler = [line("trap", "device/src/lib.rs", 63), line("panic", "device/src/lib.rs", 107)];
        let core = "/rust/library/core/src/";
        let user = [line("scale", "src/scale.rs", 12), line("kernel", "src/scale.rs", 3)];
        for (frames, text) in [
            (
                vec![
                    line("panic_fmt", &format!("{core}panicking.rs"), 75),
                    line(
                        "core::panicking::panic_const::panic_const_div_by_zero",
                        &format!("{core}panicking.rs"),
                        175,
                    ),
                ],
                "the kernel panicked: attempt to divide by zero, at src/scale.rs:12",
            ),
            (
                vec![
                    line("panic_fmt", &format!("{core}panicking.rs"), 75),
                    line("unwrap_failed", &format!("{core}option.rs"), 2000),
                    line("unwrap<u32>", &format!("{core}option.rs"), 900),
                ],
                "the kernel panicked, at src/scale.rs:12",
            ),
        ] {
            let source = [&handler[..], &frames, &user].concat();
            assert_eq!(Fault::of_trap(2, &source).to_string(), text);
            assert_eq!(Fault::of_trap(3, &source), Fault::Trap { id: 3 });
        }
        assert_eq!(Fault::of_trap(2, &[&handler[..1], &user].concat()), Fault::Trap { id: 2 });
        // A kernel's own file of that name is not core's.
        assert_eq!(Fault::of_trap(2, &[line("f", "my/src/panicking.rs", 1)]), Fault::Trap { id: 2 });
    }
}
