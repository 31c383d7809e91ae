//! Code objects: what LLVM links for one AMDGPU target.
//!
//! A code object is an ELF shared library with the machine code, one 64-byte kernel descriptor (`NAME.kd`) per
//! kernel, and a MessagePack note that lists each kernel's arguments and resources. Everything in it is
//! untrusted input: what does not fit is an [`ObjectError`].

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use object::elf;
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _};
use serde::Deserialize;

use crate::bundle::{self, BundleError};
use crate::gfx::{CodeTarget, Gfx, UnknownGfx};

/// Bytes that a loaded code object may cover; a header that asks for more is refused.
const MAX_IMAGE: u64 = 1 << 28;
/// Bytes of arguments that a kernel may have.
const MAX_KERNARG: u64 = 1 << 16;
/// `NT_AMDGPU_METADATA`.
const NOTE_METADATA: u32 = 32;

/// Why bytes cannot be run as a code object.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// Not a 64-bit little-endian ELF file, or one that is cut off or inconsistent.
    #[error("not a readable ELF file: {0}")]
    Elf(String),
    /// An ELF file for another machine.
    #[error("the ELF file is for machine {machine}, not for AMDGPU (224)")]
    NotAmdgpu {
        /// `e_machine` of the header.
        machine: u16,
    },
    /// A target that the emulator does not know, by name.
    #[error(transparent)]
    UnknownGfx(#[from] UnknownGfx),
    /// A target that the emulator does not know, by number.
    #[error("the ELF header names AMDGPU machine {0:#x}, which the emulator does not know")]
    UnknownMachine(u32),
    /// A code object cannot be retargeted to another instruction set.
    #[error("the code object is for {from}, which does not share the instruction set of {to}")]
    Retarget {
        /// What it is for.
        from: CodeTarget,
        /// The target that it should become one for.
        to: Gfx,
    },
    /// A generic target without the version of its definition, which code objects of version 6 have.
    #[error(
        "the ELF header names the generic target {0} without a version; LLVM writes one in code objects of version 6"
    )]
    GenericVersion(CodeTarget),
    /// A relocatable object rather than a linked code object.
    #[error("the file is a relocatable object (ELF type {0}); link it with `ld.lld -shared` first")]
    NotLinked(u16),
    /// The metadata note cannot be read.
    #[error("the metadata note is malformed: {0}")]
    Metadata(String),
    /// The metadata says something impossible about a kernel.
    #[error("kernel `{kernel}`: {problem}")]
    Kernel {
        /// Kernel name.
        kernel: String,
        /// What is wrong, with the values.
        problem: String,
    },
    /// Loaded, the segments would cover too much memory.
    #[error("the segments end at {end:#x}; at most {MAX_IMAGE:#x} bytes can be loaded")]
    TooLarge {
        /// End of the last segment.
        end: u64,
    },
    /// A relocation of an unsupported kind.
    #[error("relocation type {kind} at {address:#x} is not supported")]
    Relocation {
        /// ELF relocation type.
        kind: u32,
        /// Where it applies.
        address: u64,
    },
    /// A symbol is used and not defined.
    #[error("the symbol `{0}` is undefined")]
    Undefined(String),
    /// A Clang offload bundle without, or with several, entries for AMDGPU.
    #[error("{count} code objects of the offload bundle match; it contains: {triples}")]
    Bundle {
        /// How many are for the target that was asked for, or for AMDGPU if none was.
        count: usize,
        /// The names of all that are for AMDGPU.
        triples: String,
    },
    /// A Clang offload bundle that cannot be read.
    #[error(transparent)]
    BadBundle(#[from] BundleError),
}

debug_is_display!(ObjectError);

/// A parsed code object. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CodeObject {
    inner: Arc<Inner>,
    /// What its instructions are taken to be for.
    gfx: Gfx,
}

/// What a code object, or a device, says of an optional feature of the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Features {
    /// Page faults are retried (XNACK): `None` if code runs either way, or the target has no such feature.
    pub xnack: Option<bool>,
    /// The memories have error correction (SRAM-ECC).
    pub sramecc: Option<bool>,
}

impl Features {
    /// Those of a target with features: `gfx90a:sramecc+:xnack-`.
    pub fn from_name(name: &str) -> Features {
        let mut features = Features::default();
        for part in name.split(':').skip(1) {
            let on =
                if part.ends_with('+') { Some(true) } else { Some(false).filter(|_| part.ends_with('-')) };
            match part.trim_end_matches(['+', '-']) {
                "xnack" => features.xnack = on,
                "sramecc" => features.sramecc = on,
                _ => {}
            }
        }
        features
    }

    /// Those of an emulated device: error correction and no retries, which is how AMD's driver sets cards up.
    pub fn of_device(gfx: Gfx) -> Features {
        Features { xnack: gfx.has_xnack().then_some(false), sramecc: gfx.has_sramecc().then_some(true) }
    }

    /// From a header's `e_flags`: two bits each, which are 0 where the target has no such feature.
    fn from_flags(flags: u32) -> Features {
        let setting = |bits: u32| match bits & 3 {
            2 => Some(false),
            3 => Some(true),
            _ => None,
        };
        Features { xnack: setting(flags >> 8), sramecc: setting(flags >> 10) }
    }

    /// Whether code that needs these runs on a device that has `device`.
    pub fn fit(self, device: Features) -> bool {
        let fits = |code: Option<bool>, device: Option<bool>| code.is_none() || code == device;
        fits(self.xnack, device.xnack) && fits(self.sramecc, device.sramecc)
    }
}

/// As in a target's name: `:sramecc+:xnack-`.
impl std::fmt::Display for Features {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (name, setting) in [("sramecc", self.sramecc), ("xnack", self.xnack)] {
            if let Some(on) = setting {
                write!(f, ":{name}{}", if on { '+' } else { '-' })?;
            }
        }
        Ok(())
    }
}

/// The code object `bytes` for another target of the same instruction set: the header's number and the target that
/// the metadata names are written over.
///
/// # Errors
/// If `bytes` are not a code object, or are one for a target with another instruction set.
pub fn retarget(bytes: &[u8], gfx: Gfx) -> Result<Vec<u8>, ObjectError> {
    let object = CodeObject::parse(bytes)?;
    let from = match object.target() {
        CodeTarget::Gfx(from) if from.isa() == gfx.isa() => from,
        other => return Err(ObjectError::Retarget { from: other, to: gfx }),
    };
    let mut bytes = object.bytes().to_vec();
    // `e_flags` of a 64-bit header. Only the lowest byte is the target.
    let flags = bytes.get_mut(48).ok_or_else(|| ObjectError::Elf("too short".into()))?;
    *flags = gfx.elf_machine() as u8;
    // A string of the metadata has its length before it, and the names of one instruction set are equally long.
    let (old, new) = (triple(from), triple(gfx));
    if let Some(note) = object.inner.metadata.clone().and_then(|range| bytes.get_mut(range)) {
        let at = note.windows(old.len()).position(|window| window == old.as_bytes());
        if let Some(at) = at {
            note[at..at + old.len()].copy_from_slice(new.as_bytes());
        }
    }
    Ok(bytes)
}

fn triple(gfx: Gfx) -> String {
    format!("amdgcn-amd-amdhsa--{gfx}")
}

#[derive(Debug)]
struct Inner {
    target: CodeTarget,
    features: Features,
    /// Where the metadata lies in the file.
    metadata: Option<Range<usize>>,
    kernels: Vec<KernelInfo>,
    sections: BTreeMap<String, Section>,
    symbols: Symbols,
    layout: Layout,
    /// The segments at their addresses, once they are needed in one piece.
    image: OnceLock<Vec<u8>>,
    relocations: Vec<Relocation>,
    /// What was parsed, and where in it the ELF file lies; every other range is one of the ELF file.
    given: Cow<'static, [u8]>,
    elf: Range<usize>,
}

impl Inner {
    fn file(&self) -> &[u8] {
        &self.given[self.elf.clone()]
    }
}

#[derive(Debug)]
struct Section {
    address: u64,
    /// Where its contents lie in the file.
    range: Range<usize>,
}

/// What the program headers say: which parts of the file go where.
#[derive(Debug, Default)]
struct Layout {
    /// Ascending, and apart from each other.
    segments: Vec<Segment>,
    text: Vec<Range<u64>>,
    /// Bytes that the segments cover, from address 0 on.
    size: u64,
}

#[derive(Debug)]
struct Segment {
    address: u64,
    /// Where its contents lie in the file; zeros follow.
    range: Range<usize>,
}

impl Layout {
    /// The bytes that a range of addresses has in the file, if it has them all and in one segment.
    fn slice<'f>(&self, file: &'f [u8], range: Range<u64>) -> Option<&'f [u8]> {
        let at = self.segments.partition_point(|segment| segment.address <= range.start).checked_sub(1)?;
        let segment = &self.segments[at];
        let start = usize::try_from(range.start - segment.address).ok()?;
        let end = usize::try_from(range.end.checked_sub(segment.address)?).ok()?;
        file.get(segment.range.clone())?.get(start..end)
    }

    fn image(&self, file: &[u8]) -> Vec<u8> {
        let mut image = vec![0; self.size as usize];
        for segment in &self.segments {
            let data = &file[segment.range.clone()];
            image[segment.address as usize..][..data.len()].copy_from_slice(data);
        }
        image
    }

    /// The bytes from `address` on as they are loaded, if the image has them all.
    fn read<const N: usize>(&self, file: &[u8], address: u64) -> Option<[u8; N]> {
        let end = address.checked_add(N as u64).filter(|&end| end <= self.size)?;
        let mut bytes = [0; N];
        let first = self.segments.partition_point(|segment| segment.address <= address).saturating_sub(1);
        for segment in self.segments[first..].iter().take_while(|segment| segment.address < end) {
            // Where the segment's contents go in `bytes`, or begin before it.
            let into = segment.address.saturating_sub(address) as usize;
            let skipped = address.saturating_sub(segment.address);
            let data = file[segment.range.clone()].iter().skip(number(skipped));
            bytes[into..].iter_mut().zip(data).for_each(|(place, &byte)| *place = byte);
        }
        Some(bytes)
    }
}

/// The defined symbols by name, and where their names lie in the file.
#[derive(Debug)]
struct Symbols(Vec<(Range<usize>, Symbol)>);

impl Symbols {
    fn of(file: &ElfFile64<'_>, bytes: &[u8]) -> Symbols {
        let mut symbols = Vec::new();
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let Ok(name) = symbol.name() else { continue };
            if !symbol.is_undefined() && !name.is_empty() && symbol.section_index().is_some() {
                let start = name.as_ptr().addr() - bytes.as_ptr().addr();
                let is_data = symbol.kind() == object::SymbolKind::Data;
                let symbol = Symbol { address: symbol.address(), size: symbol.size(), is_data };
                symbols.push((start..start + name.len(), symbol));
            }
        }
        // Of several with one name the last: a dynamic one.
        symbols.sort_by(|(a, _), (b, _)| bytes[a.clone()].cmp(&bytes[b.clone()]));
        symbols.reverse();
        symbols.dedup_by(|(a, _), (b, _)| bytes[a.clone()] == bytes[b.clone()]);
        symbols.reverse();
        Symbols(symbols)
    }

    fn get(&self, file: &[u8], name: &str) -> Option<Symbol> {
        let at = self.0.binary_search_by(|(range, _)| file[range.clone()].cmp(name.as_bytes())).ok()?;
        Some(self.0[at].1)
    }
}

/// A defined symbol: its address within the image, and its size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Symbol {
    /// Address, relative to where the code object is loaded.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
    /// A variable rather than a function.
    pub is_data: bool,
}

/// Write `base + addend` at `address`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Relocation {
    pub address: u64,
    pub addend: u64,
}

/// One kernel: its arguments and the resources that it needs.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct KernelInfo {
    /// Name, as a launch gives it.
    pub name: String,
    /// Arguments in order, hidden ones last.
    pub args: Vec<KernelArg>,
    /// Bytes of all arguments together, hidden ones included.
    pub kernarg_size: u32,
    /// Bytes of LDS that the kernel always has; launch-sized LDS comes on top.
    pub lds_size: u32,
    /// Bytes of scratch (private memory) per work-item.
    pub scratch_size: u32,
    /// The kernel's stack depth is unknown: it recurses or calls through pointers.
    pub dynamic_stack: bool,
    /// Vector registers per work-item, accumulation registers included where they share a file (gfx90a on).
    pub vgprs: u32,
    /// Accumulation registers per work-item (gfx90a, gfx942).
    pub agprs: u32,
    /// Scalar registers per wave.
    pub sgprs: u32,
    /// Vector registers that were spilled.
    pub vgpr_spills: u32,
    /// Scalar registers that were spilled.
    pub sgpr_spills: u32,
    /// Lanes of a wave, 32 or 64.
    pub wave_size: u32,
    /// The most work-items that a workgroup of this kernel may have.
    pub max_workgroup_size: u32,
    /// Bytes of machine code.
    pub code_bytes: u64,
    /// What the dispatcher reads.
    pub descriptor: KernelDescriptor,
}

impl KernelInfo {
    /// A kernel of which only arguments and workgroups are known, as in text that a driver compiles: no registers, no code.
    pub fn of_text(
        name: String,
        args: Vec<KernelArg>,
        max_workgroup_size: u32,
        wave_size: u32,
    ) -> KernelInfo {
        KernelInfo {
            name,
            kernarg_size: args.iter().map(|arg| arg.offset + arg.size).max().unwrap_or(0),
            args,
            lds_size: 0,
            scratch_size: 0,
            dynamic_stack: false,
            vgprs: 0,
            agprs: 0,
            sgprs: 0,
            vgpr_spills: 0,
            sgpr_spills: 0,
            wave_size,
            max_workgroup_size,
            code_bytes: 0,
            descriptor: KernelDescriptor::default(),
        }
    }

    /// Bytes of the explicit arguments: up to the end of the last one.
    pub fn explicit_size(&self) -> u32 {
        self.args.iter().filter(|arg| !arg.is_hidden()).map(|arg| arg.offset + arg.size).max().unwrap_or(0)
    }
}

/// One argument of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct KernelArg {
    /// Name in the source, if the compiler kept it.
    pub name: Option<String>,
    /// Offset in the argument block.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// What it is.
    pub kind: ArgKind,
}

impl KernelArg {
    /// An argument that the caller gives.
    pub fn explicit(name: Option<String>, offset: u32, size: u32, is_pointer: bool) -> KernelArg {
        let kind = if is_pointer { ArgKind::GlobalBuffer } else { ArgKind::ByValue };
        KernelArg { name, offset, size, kind }
    }

    /// Whether the dispatcher fills the argument in, not the caller.
    pub fn is_hidden(&self) -> bool {
        matches!(self.kind, ArgKind::Hidden(_))
    }
}

/// What an argument is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ArgKind {
    /// A plain value.
    ByValue,
    /// A pointer to device memory.
    GlobalBuffer,
    /// A pointer to launch-sized LDS.
    DynamicShared,
    /// An argument that only OpenCL has (images, samplers, queues, pipes).
    Opaque,
    /// An argument that the dispatcher fills in.
    Hidden(HiddenArg),
}

/// Arguments that the dispatcher fills in (code object versions 3 to 6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names are the metadata's")]
#[non_exhaustive]
pub enum HiddenArg {
    /// Workgroups along an axis.
    BlockCount(u8),
    /// Work-items of a full workgroup along an axis.
    GroupSize(u8),
    /// Work-items of the partial workgroup along an axis; zero without one.
    Remainder(u8),
    /// First global id along an axis; zero.
    GlobalOffset(u8),
    /// Dimensions of the grid.
    GridDims,
    DynamicLdsSize,
    PrivateBase,
    SharedBase,
    PrintfBuffer,
    HostcallBuffer,
    DefaultQueue,
    CompletionAction,
    MultigridSyncArg,
    HeapV1,
    QueuePtr,
    None,
    /// One that the emulator does not know; it is zero.
    Unknown,
}

/// The fields of a kernel descriptor that a dispatch depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KernelDescriptor {
    /// Address of the first instruction, relative to the load address.
    pub entry: u64,
    /// Bytes of LDS.
    pub lds_size: u32,
    /// Bytes of scratch per work-item.
    pub scratch_size: u32,
    /// Bytes of arguments.
    pub kernarg_size: u32,
    /// `COMPUTE_PGM_RSRC1`.
    pub rsrc1: u32,
    /// `COMPUTE_PGM_RSRC2`.
    pub rsrc2: u32,
    /// `COMPUTE_PGM_RSRC3`.
    pub rsrc3: u32,
    /// Kernel code properties.
    pub properties: u16,
    /// Kernel argument preload: length in the low 7 bits, offset above, in dwords.
    pub preload: u16,
}

impl KernelDescriptor {
    const SIZE: usize = 64;

    fn parse(bytes: &[u8], address: u64) -> Option<KernelDescriptor> {
        let u32_at = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let u16_at = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let offset = u64::from(u32_at(16)?) | u64::from(u32_at(20)?) << 32;
        Some(KernelDescriptor {
            entry: address.wrapping_add(offset),
            lds_size: u32_at(0)?,
            scratch_size: u32_at(4)?,
            kernarg_size: u32_at(8)?,
            rsrc3: u32_at(44)?,
            rsrc1: u32_at(48)?,
            rsrc2: u32_at(52)?,
            properties: u16_at(56)?,
            preload: u16_at(58)?,
        })
    }

    /// Whether the kernel runs in waves of 32 (`ENABLE_WAVEFRONT_SIZE32`).
    pub fn wave32(&self) -> bool {
        self.properties >> 10 & 1 != 0
    }
}

impl CodeObject {
    /// Parses a code object, or the only one in a Clang offload bundle. It keeps a copy of the bytes;
    /// [`CodeObject::parse_kept`] does without.
    ///
    /// # Errors
    /// See [`ObjectError`]; any bytes give either a code object or an error.
    pub fn parse(bytes: &[u8]) -> Result<CodeObject, ObjectError> {
        CodeObject::parse_kept(copy(bytes), None)
    }

    /// Parses a code object for `gfx`, or the one for it in a Clang offload bundle.
    ///
    /// # Errors
    /// As [`CodeObject::parse`]; also if there is none for `gfx`.
    pub fn parse_for(bytes: &[u8], gfx: Gfx) -> Result<CodeObject, ObjectError> {
        CodeObject::parse_kept(copy(bytes), Some(gfx))
    }

    /// As [`CodeObject::parse`] or, with a target, [`CodeObject::parse_for`], of bytes that are handed over or that
    /// live as long as the program.
    ///
    /// # Errors
    /// As theirs.
    pub fn parse_kept(
        bytes: impl Into<Cow<'static, [u8]>>,
        gfx: Option<Gfx>,
    ) -> Result<CodeObject, ObjectError> {
        let given = bytes.into();
        let bytes = &*given;
        if !bundle::is_bundle(bytes) {
            let all = 0..bytes.len();
            return parse_elf(given, all, gfx);
        }
        let (given, range) = bundle::select(given, gfx)?;
        parse_elf(given, range, gfx)
    }

    /// Machine code without a file around it, as runtimes put it together themselves: one kernel called `name`. `descriptor` is
    /// its descriptor, or the first 64 bytes of the older `amd_kernel_code_t`; the kernel begins `entry` bytes into `code`.
    pub fn bare(gfx: Gfx, name: &str, code: Vec<u8>, descriptor: &[u8; 64], entry: u64) -> CodeObject {
        let mut descriptor = KernelDescriptor::parse(descriptor, 0).unwrap_or_default();
        descriptor.entry = entry;
        let wave_size = if descriptor.wave32() && gfx.wave_size() == 32 { 32 } else { 64 };
        let mut kernel = KernelInfo::of_text(name.to_owned(), Vec::new(), 1024, wave_size);
        kernel.descriptor = descriptor;
        let size = code.len() as u64;
        let layout = Layout {
            segments: vec![Segment { address: 0, range: 0..code.len() }],
            text: std::iter::once(0..size).collect(),
            size,
        };
        let inner = Inner {
            target: gfx.into(),
            features: Features::default(),
            metadata: None,
            kernels: vec![kernel],
            sections: BTreeMap::new(),
            symbols: Symbols(Vec::new()),
            layout,
            image: OnceLock::new(),
            relocations: Vec::new(),
            elf: 0..code.len(),
            given: Cow::Owned(code),
        };
        CodeObject { inner: Arc::new(inner), gfx }
    }

    /// The target whose instructions it has: its own, or for a generic one the target that it was parsed for or loaded
    /// on, or else the first that is covered.
    pub fn gfx(&self) -> Gfx {
        self.gfx
    }

    /// What it is for.
    pub fn target(&self) -> CodeTarget {
        self.inner.target
    }

    /// What it needs of the target's optional features.
    pub fn features(&self) -> Features {
        self.inner.features
    }

    /// Whether a loader takes it on a device of target `gfx` as [`Features::of_device`] says it is.
    pub fn runs_on(&self, gfx: Gfx) -> bool {
        self.target().covers(gfx) && self.features().fit(Features::of_device(gfx))
    }

    /// The same, its instructions taken to be for `gfx`, which its target covers.
    #[cfg_attr(not(feature = "exec"), expect(dead_code))]
    pub(crate) fn on(&self, gfx: Gfx) -> CodeObject {
        CodeObject { inner: self.inner.clone(), gfx }
    }

    /// The kernels, by name.
    pub fn kernels(&self) -> &[KernelInfo] {
        &self.inner.kernels
    }

    /// The kernel called `name`.
    pub fn kernel(&self, name: &str) -> Option<&KernelInfo> {
        let kernels = self.kernels();
        kernels.binary_search_by(|kernel| kernel.name.as_str().cmp(name)).ok().map(|at| &kernels[at])
    }

    /// The contents of the section called `name` (`.text`, `.amdgpu.kernels`).
    pub fn section(&self, name: &str) -> Option<&[u8]> {
        self.inner.sections.get(name).and_then(|section| self.inner.file().get(section.range.clone()))
    }

    /// The address of the section called `name`, relative to the load address.
    pub fn section_address(&self, name: &str) -> Option<u64> {
        self.inner.sections.get(name).map(|section| section.address)
    }

    /// The defined symbol called `name`.
    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        self.inner.symbols.get(self.inner.file(), name)
    }

    /// All defined symbols, by name.
    pub fn symbols(&self) -> impl Iterator<Item = (&str, Symbol)> {
        let file = self.inner.file();
        let name = |range: &Range<usize>| std::str::from_utf8(&file[range.clone()]).unwrap_or_default();
        self.inner.symbols.0.iter().map(move |(range, symbol)| (name(range), *symbol))
    }

    /// The memory image: every segment at its address.
    pub fn image(&self) -> &[u8] {
        self.inner.image.get_or_init(|| self.inner.layout.image(self.inner.file()))
    }

    /// Address ranges within the image that hold machine code.
    pub fn text_ranges(&self) -> &[Range<u64>] {
        &self.inner.layout.text
    }

    /// The ELF file.
    pub fn bytes(&self) -> &[u8] {
        self.inner.file()
    }

    /// Bytes of the image.
    pub fn image_size(&self) -> u64 {
        self.inner.layout.size
    }

    /// The bytes of a range of addresses, up to the end of the image; without putting an image together where one
    /// segment has them.
    #[cfg_attr(not(feature = "exec"), expect(dead_code))]
    pub(crate) fn image_bytes(&self, range: Range<u64>) -> &[u8] {
        let range = range.start..range.end.min(self.image_size());
        self.inner
            .layout
            .slice(self.inner.file(), range.clone())
            .unwrap_or_else(|| self.image().get(range.start as usize..range.end as usize).unwrap_or(&[]))
    }

    /// Address and contents of each segment.
    #[cfg_attr(not(feature = "exec"), expect(dead_code))]
    pub(crate) fn segments(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let file = self.inner.file();
        self.inner.layout.segments.iter().map(|segment| (segment.address, &file[segment.range.clone()]))
    }

    #[cfg_attr(not(feature = "exec"), expect(dead_code))]
    pub(crate) fn relocations(&self) -> &[Relocation] {
        &self.inner.relocations
    }
}

fn copy(bytes: &[u8]) -> Vec<u8> {
    let mut copy: Vec<u8> = Vec::with_capacity(bytes.len());
    #[cfg(feature = "exec")]
    crate::memory::prefer_large_pages(copy.as_ptr().expose_provenance() as u64, copy.capacity() as u64);
    copy.extend_from_slice(bytes);
    copy
}

fn parse_elf(
    given: Cow<'static, [u8]>,
    elf: Range<usize>,
    device: Option<Gfx>,
) -> Result<CodeObject, ObjectError> {
    let elf_error = |error: object::read::Error| ObjectError::Elf(error.to_string());
    let bytes = &given[elf.clone()];
    let file = ElfFile64::<Endianness>::parse(bytes).map_err(elf_error)?;
    let (header, endian) = (file.elf_header(), file.endian());
    if endian != Endianness::Little {
        return Err(ObjectError::Elf("big-endian".into()));
    }
    if header.e_machine(endian) != elf::EM_AMDGPU {
        return Err(ObjectError::NotAmdgpu { machine: header.e_machine(endian).0 });
    }
    if header.e_type(endian) != elf::ET_DYN {
        return Err(ObjectError::NotLinked(header.e_type(endian).0));
    }
    let flags = header.e_flags(endian).0;
    let target = CodeTarget::from_elf_machine(flags & 0xff);
    let target = target.ok_or(ObjectError::UnknownMachine(flags & 0xff))?;
    if matches!(target, CodeTarget::Generic(_)) && flags >> 24 == 0 {
        return Err(ObjectError::GenericVersion(target));
    }
    let gfx = device.filter(|&gfx| target.covers(gfx)).unwrap_or(target.first());

    let mut layout = Layout::default();
    let mut metadata = None;
    for segment in file.elf_program_headers() {
        match segment.p_type(endian) {
            elf::PT_LOAD => layout.add(segment, bytes)?,
            elf::PT_NOTE => {
                let Some(mut notes) = segment.notes(endian, bytes).map_err(elf_error)? else { continue };
                while let Some(note) = notes.next().map_err(elf_error)? {
                    if note.n_type(endian).0 == NOTE_METADATA && note.name() == b"AMDGPU" {
                        metadata = Some(note.desc());
                    }
                }
            }
            _ => {}
        }
    }

    let mut sections = BTreeMap::new();
    for section in file.sections() {
        let (Ok(name), Ok(_)) = (section.name(), section.data()) else { continue };
        // A section without contents in the file (.bss) has no bytes.
        let (start, size) = section.file_range().unwrap_or((0, 0));
        let range = number(start)..number(start.saturating_add(size));
        sections.insert(name.to_owned(), Section { address: section.address(), range });
    }
    let symbols = Symbols::of(&file, bytes);
    let relocations = parse_relocations(&file, layout.size)?;
    let kernels = match metadata {
        Some(note) => {
            parse_metadata(note, target, &Place { file: bytes, symbols: &symbols, layout: &layout })?
        }
        None => Vec::new(),
    };
    let image = OnceLock::new();
    let features = Features::from_flags(flags);
    let metadata = metadata.map(|note| {
        let start = note.as_ptr().addr() - bytes.as_ptr().addr();
        start..start + note.len()
    });
    let inner = Inner {
        target,
        features,
        metadata,
        kernels,
        sections,
        symbols,
        layout,
        image,
        relocations,
        given,
        elf,
    };
    Ok(CodeObject { inner: Arc::new(inner), gfx })
}

fn number(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

impl Layout {
    fn add(&mut self, segment: &elf::ProgramHeader64<Endianness>, bytes: &[u8]) -> Result<(), ObjectError> {
        let endian = Endianness::Little;
        let (start, size) = (segment.p_vaddr(endian), segment.p_memsz(endian));
        let end = start.checked_add(size).filter(|&end| end <= MAX_IMAGE);
        let end = end.ok_or(ObjectError::TooLarge { end: start.saturating_add(size) })?;
        let data = segment
            .data(endian, bytes)
            .map_err(|()| ObjectError::Elf("a segment lies outside of the file".into()))?;
        if data.len() as u64 > size {
            return Err(ObjectError::Elf("a segment is larger in the file than in memory".into()));
        }
        if start < self.size {
            let before = self.size;
            let problem =
                format!("the segment at {start:#x} begins before the one before it ends at {before:#x}");
            return Err(ObjectError::Elf(problem));
        }
        self.size = end;
        if segment.p_flags(endian).0 & elf::PF_X.0 != 0 {
            self.text.push(start..start + data.len() as u64);
        }
        let at = number(segment.p_offset(endian));
        // A segment without contents in the file may name any offset.
        let range = if data.is_empty() { 0..0 } else { at..at + data.len() };
        self.segments.push(Segment { address: start, range });
        Ok(())
    }
}

fn parse_relocations(file: &ElfFile64<'_>, image: u64) -> Result<Vec<Relocation>, ObjectError> {
    // Both write 64 bits: symbol + addend, and load address + addend.
    const R_AMDGPU_ABS64: u32 = 3;
    const R_AMDGPU_RELATIVE64: u32 = 13;
    let mut relocations = Vec::new();
    let dynamic_symbols = file.dynamic_symbol_table();
    for (address, relocation) in file.dynamic_relocations().into_iter().flatten() {
        let object::RelocationFlags::Elf { r_type: object::elf::RelocationType(kind), .. } =
            relocation.flags()
        else {
            continue;
        };
        if address.checked_add(8).is_none_or(|end| end > image) {
            return Err(ObjectError::Elf(format!(
                "a relocation applies at {address:#x}, outside of the image"
            )));
        }
        let symbol = match kind {
            R_AMDGPU_RELATIVE64 => 0,
            R_AMDGPU_ABS64 => {
                use object::ObjectSymbolTable as _;
                let object::RelocationTarget::Symbol(index) = relocation.target() else {
                    return Err(ObjectError::Relocation { kind, address });
                };
                let symbol = dynamic_symbols.as_ref().and_then(|table| table.symbol_by_index(index).ok());
                let symbol = symbol.ok_or(ObjectError::Relocation { kind, address })?;
                if symbol.is_undefined() {
                    return Err(ObjectError::Undefined(symbol.name().unwrap_or("?").to_owned()));
                }
                symbol.address()
            }
            _ => return Err(ObjectError::Relocation { kind, address }),
        };
        relocations.push(Relocation { address, addend: symbol.wrapping_add(relocation.addend() as u64) });
    }
    Ok(relocations)
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(rename = "amdhsa.kernels", default, borrow)]
    kernels: Vec<KernelMetadata<'a>>,
    #[serde(rename = "amdhsa.target", default)]
    target: Option<&'a str>,
}

#[derive(Deserialize)]
struct KernelMetadata<'a> {
    #[serde(rename = ".name")]
    name: &'a str,
    #[serde(rename = ".symbol")]
    symbol: &'a str,
    #[serde(rename = ".args", default, borrow)]
    args: Vec<ArgMetadata<'a>>,
    #[serde(rename = ".kernarg_segment_size", default)]
    kernarg_size: u64,
    #[serde(rename = ".group_segment_fixed_size", default)]
    lds_size: u64,
    #[serde(rename = ".private_segment_fixed_size", default)]
    scratch_size: u64,
    #[serde(rename = ".uses_dynamic_stack", default)]
    dynamic_stack: bool,
    #[serde(rename = ".vgpr_count", default)]
    vgprs: u32,
    #[serde(rename = ".agpr_count", default)]
    agprs: u32,
    #[serde(rename = ".sgpr_count", default)]
    sgprs: u32,
    #[serde(rename = ".vgpr_spill_count", default)]
    vgpr_spills: u32,
    #[serde(rename = ".sgpr_spill_count", default)]
    sgpr_spills: u32,
    #[serde(rename = ".wavefront_size")]
    wave_size: u32,
    #[serde(rename = ".max_flat_workgroup_size", default = "default_workgroup_size")]
    max_workgroup_size: u32,
}

fn default_workgroup_size() -> u32 {
    1024
}

#[derive(Deserialize)]
struct ArgMetadata<'a> {
    #[serde(rename = ".name", default)]
    name: Option<&'a str>,
    #[serde(rename = ".offset")]
    offset: u64,
    #[serde(rename = ".size")]
    size: u64,
    #[serde(rename = ".value_kind")]
    kind: &'a str,
}

/// Where kernels' descriptors are found.
struct Place<'a> {
    file: &'a [u8],
    symbols: &'a Symbols,
    layout: &'a Layout,
}

fn parse_metadata(note: &[u8], gfx: CodeTarget, place: &Place<'_>) -> Result<Vec<KernelInfo>, ObjectError> {
    let metadata: Metadata<'_> =
        rmp_serde::from_slice(note).map_err(|error| ObjectError::Metadata(error.to_string()))?;
    if let Some(target) = &metadata.target {
        let named = CodeTarget::from_name(bundle::target_of(target).unwrap_or(target))?;
        if named != gfx {
            return Err(ObjectError::Metadata(format!("it is for {named}, the ELF header for {gfx}")));
        }
    }
    let kernels = metadata.kernels.into_iter().map(|kernel| kernel_info(&kernel, place));
    let mut kernels = kernels.collect::<Result<Vec<_>, _>>()?;
    kernels.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(kernels)
}

fn kernel_info(kernel: &KernelMetadata<'_>, place: &Place<'_>) -> Result<KernelInfo, ObjectError> {
    let fail = |problem: String| ObjectError::Kernel { kernel: kernel.name.to_owned(), problem };
    let descriptor = place
        .symbols
        .get(place.file, kernel.symbol)
        .and_then(|symbol| {
            let bytes: [u8; KernelDescriptor::SIZE] = place.layout.read(place.file, symbol.address)?;
            KernelDescriptor::parse(&bytes, symbol.address)
        })
        .ok_or_else(|| fail(format!("no descriptor `{}` of 64 bytes in the image", kernel.symbol)))?;
    if descriptor.entry >= place.layout.size || descriptor.entry % 4 != 0 {
        return Err(fail(format!("the entry address {:#x} is not in the image", descriptor.entry)));
    }
    if ![32, 64].contains(&kernel.wave_size) {
        return Err(fail(format!("a wave of {} lanes", kernel.wave_size)));
    }
    if !(1..=1024).contains(&kernel.max_workgroup_size) {
        return Err(fail(format!("workgroups of up to {} work-items", kernel.max_workgroup_size)));
    }
    let within = |what: &str, value: u64, limit: u64| {
        u32::try_from(value)
            .ok()
            .filter(|_| value <= limit)
            .ok_or_else(|| fail(format!("{value} bytes of {what}; at most {limit} are possible")))
    };
    let kernarg_size = within("arguments", kernel.kernarg_size, MAX_KERNARG)?;
    let lds_size = within("LDS", kernel.lds_size, 1 << 16)?;
    let scratch_size = within("scratch", kernel.scratch_size, 1 << 17)?;
    let mut args = Vec::with_capacity(kernel.args.len().min(256));
    for arg in &kernel.args {
        if arg.offset.checked_add(arg.size).is_none_or(|end| end > u64::from(kernarg_size)) {
            return Err(fail(format!(
                "an argument of {} bytes at offset {} lies outside of the {kernarg_size} bytes of arguments",
                arg.size, arg.offset
            )));
        }
        args.push(KernelArg {
            name: arg.name.map(str::to_owned),
            offset: arg.offset as u32,
            size: arg.size as u32,
            kind: arg_kind(arg.kind),
        });
    }
    let function = kernel.symbol.strip_suffix(".kd").and_then(|name| place.symbols.get(place.file, name));
    Ok(KernelInfo {
        args,
        kernarg_size,
        lds_size,
        scratch_size,
        dynamic_stack: kernel.dynamic_stack,
        vgprs: kernel.vgprs,
        agprs: kernel.agprs,
        sgprs: kernel.sgprs,
        vgpr_spills: kernel.vgpr_spills,
        sgpr_spills: kernel.sgpr_spills,
        wave_size: kernel.wave_size,
        max_workgroup_size: kernel.max_workgroup_size,
        code_bytes: function.map_or(0, |symbol| symbol.size),
        descriptor,
        name: kernel.name.to_owned(),
    })
}

fn arg_kind(kind: &str) -> ArgKind {
    let Some(hidden) = kind.strip_prefix("hidden_") else {
        return match kind {
            "by_value" => ArgKind::ByValue,
            "global_buffer" => ArgKind::GlobalBuffer,
            "dynamic_shared_pointer" => ArgKind::DynamicShared,
            _ => ArgKind::Opaque,
        };
    };
    let axis = match hidden.as_bytes() {
        [.., b'_', axis @ b'x'..=b'z'] => axis - b'x',
        _ => 0,
    };
    ArgKind::Hidden(match hidden.trim_end_matches(['x', 'y', 'z']) {
        "block_count_" => HiddenArg::BlockCount(axis),
        "group_size_" => HiddenArg::GroupSize(axis),
        "remainder_" => HiddenArg::Remainder(axis),
        "global_offset_" => HiddenArg::GlobalOffset(axis),
        "grid_dims" => HiddenArg::GridDims,
        "dynamic_lds_size" => HiddenArg::DynamicLdsSize,
        "private_base" => HiddenArg::PrivateBase,
        "shared_base" => HiddenArg::SharedBase,
        "printf_buffer" => HiddenArg::PrintfBuffer,
        "hostcall_buffer" => HiddenArg::HostcallBuffer,
        "default_queue" => HiddenArg::DefaultQueue,
        "completion_action" => HiddenArg::CompletionAction,
        "multigrid_sync_arg" => HiddenArg::MultigridSyncArg,
        "heap_v1" => HiddenArg::HeapV1,
        "queue_ptr" => HiddenArg::QueuePtr,
        "none" => HiddenArg::None,
        _ => HiddenArg::Unknown,
    })
}
