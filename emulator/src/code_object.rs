//! Code objects: what LLVM links for one AMDGPU target.
//!
//! A code object is an ELF shared library with the machine code, one 64-byte kernel descriptor (`NAME.kd`) per
//! kernel, and a MessagePack note that lists each kernel's arguments and resources. Everything in it is taken as
//! input from a stranger: what does not fit is an [`ObjectError`].

use std::collections::BTreeMap;
use std::sync::Arc;

use object::elf;
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _};
use serde::Deserialize;

use crate::gfx::{Gfx, UnknownGfx};

/// Bytes that a loaded code object may cover; a header that asks for more is refused.
const MAX_IMAGE: u64 = 1 << 28;
/// Bytes of arguments that a kernel may have.
const MAX_KERNARG: u64 = 1 << 16;
/// `NT_AMDGPU_METADATA`.
const NOTE_METADATA: u32 = 32;
const BUNDLE_MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
const COMPRESSED_BUNDLE_MAGIC: &[u8] = b"CCOB";

/// Why bytes are no code object that can be run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
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
    /// A relocatable object rather than a linked code object.
    #[error("the file is a relocatable object (ELF type {0}); link it with `ld.lld -shared` first")]
    NotLinked(u16),
    /// The metadata note cannot be read.
    #[error("the metadata note is malformed: {0}")]
    Metadata(String),
    /// The metadata says something about a kernel that cannot be.
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
    /// A relocation that no AMDGPU code object of ours has.
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
    #[error("the offload bundle has {count} code objects that can be meant; those in it are: {triples}")]
    Bundle {
        /// How many are for the target that was asked for, or for AMDGPU if none was.
        count: usize,
        /// The names of all that are for AMDGPU.
        triples: String,
    },
    /// A Clang offload bundle that is compressed.
    #[error("the offload bundle is compressed; unpack it with `clang-offload-bundler --unbundle`")]
    CompressedBundle,
}

/// A parsed code object. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CodeObject {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    gfx: Gfx,
    kernels: Vec<KernelInfo>,
    sections: BTreeMap<String, Section>,
    symbols: BTreeMap<String, Symbol>,
    image: Vec<u8>,
    text: Vec<std::ops::Range<u64>>,
    relocations: Vec<Relocation>,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Section {
    address: u64,
    /// Where its contents lie in the file.
    range: std::ops::Range<usize>,
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
    const SIZE: u64 = 64;

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
    /// Parses a code object, or the only one in a Clang offload bundle.
    ///
    /// # Errors
    /// See [`ObjectError`]; any bytes give either a code object or an error.
    pub fn parse(bytes: &[u8]) -> Result<CodeObject, ObjectError> {
        CodeObject::parse_matching(bytes, None)
    }

    /// Parses a code object for `gfx`, or the one for it in a Clang offload bundle.
    ///
    /// # Errors
    /// As [`CodeObject::parse`]; also if there is none for `gfx`.
    pub fn parse_for(bytes: &[u8], gfx: Gfx) -> Result<CodeObject, ObjectError> {
        CodeObject::parse_matching(bytes, Some(gfx))
    }

    fn parse_matching(bytes: &[u8], gfx: Option<Gfx>) -> Result<CodeObject, ObjectError> {
        if bytes.starts_with(COMPRESSED_BUNDLE_MAGIC) {
            return Err(ObjectError::CompressedBundle);
        }
        if !bytes.starts_with(BUNDLE_MAGIC) {
            return parse_elf(bytes);
        }
        let entries =
            bundle_entries(bytes).ok_or_else(|| ObjectError::Elf("truncated offload bundle".into()))?;
        let amdgpu: Vec<_> = entries
            .into_iter()
            .filter(|(triple, data)| triple.contains("amdgcn") && !data.is_empty())
            .collect();
        let is_meant = |triple: &str| {
            let target = triple.rsplit("--").next().unwrap_or_default();
            let target = target.strip_prefix('-').unwrap_or(target);
            gfx.is_none_or(|gfx| Gfx::from_name(target) == Ok(gfx))
        };
        let mut meant = amdgpu.iter().filter(|(triple, _)| is_meant(triple));
        match (meant.next(), meant.count()) {
            (Some((_, data)), 0) => parse_elf(data),
            (first, others) => Err(ObjectError::Bundle {
                count: others + usize::from(first.is_some()),
                triples: amdgpu.iter().map(|(triple, _)| &**triple).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// The target.
    pub fn gfx(&self) -> Gfx {
        self.inner.gfx
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
        self.inner.sections.get(name).and_then(|section| self.inner.bytes.get(section.range.clone()))
    }

    /// The address of the section called `name`, relative to the load address.
    pub fn section_address(&self, name: &str) -> Option<u64> {
        self.inner.sections.get(name).map(|section| section.address)
    }

    /// The defined symbol called `name`.
    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        self.inner.symbols.get(name).copied()
    }

    /// All defined symbols, by name.
    pub fn symbols(&self) -> impl Iterator<Item = (&str, Symbol)> {
        self.inner.symbols.iter().map(|(name, symbol)| (name.as_str(), *symbol))
    }

    /// The memory image: every segment at its address.
    pub fn image(&self) -> &[u8] {
        &self.inner.image
    }

    /// Address ranges within the image that hold machine code.
    pub fn text_ranges(&self) -> &[std::ops::Range<u64>] {
        &self.inner.text
    }

    /// The ELF file.
    pub fn bytes(&self) -> &[u8] {
        &self.inner.bytes
    }

    #[cfg_attr(not(feature = "exec"), expect(dead_code))]
    pub(crate) fn relocations(&self) -> &[Relocation] {
        &self.inner.relocations
    }
}

/// The entries of an uncompressed Clang offload bundle: target triple and contents.
fn bundle_entries(bytes: &[u8]) -> Option<Vec<(String, &[u8])>> {
    let u64_at = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?));
    let usize_at = |at: usize| usize::try_from(u64_at(at)?).ok();
    let mut at = BUNDLE_MAGIC.len();
    let count = usize_at(at)?;
    at += 8;
    let mut entries = Vec::new();
    for _ in 0..count {
        let (offset, size, length) = (usize_at(at)?, usize_at(at + 8)?, usize_at(at + 16)?);
        let triple = bytes.get(at + 24..(at + 24).checked_add(length)?)?;
        entries.push((
            String::from_utf8_lossy(triple).into_owned(),
            bytes.get(offset..offset.checked_add(size)?)?,
        ));
        at = at + 24 + length;
    }
    Some(entries)
}

fn parse_elf(bytes: &[u8]) -> Result<CodeObject, ObjectError> {
    let elf_error = |error: object::read::Error| ObjectError::Elf(error.to_string());
    let file = ElfFile64::<Endianness>::parse(bytes).map_err(elf_error)?;
    let (header, endian) = (file.elf_header(), file.endian());
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    if endian != Endianness::Little {
        return Err(ObjectError::Elf("big-endian".into()));
    }
    if header.e_machine(endian) != elf::EM_AMDGPU {
        return Err(ObjectError::NotAmdgpu { machine: header.e_machine(endian).0 });
    }
    if header.e_type(endian) != elf::ET_DYN {
        return Err(ObjectError::NotLinked(header.e_type(endian).0));
    }
    let machine = header.e_flags(endian).0 & 0xff;
    let gfx = Gfx::ALL.into_iter().find(|gfx| gfx.elf_machine() == machine);
    let gfx = gfx.ok_or(ObjectError::UnknownMachine(machine))?;

    let mut image = Vec::new();
    let mut text = Vec::new();
    let mut metadata = None;
    for segment in file.elf_program_headers() {
        match segment.p_type(endian) {
            elf::PT_LOAD => {
                let (start, size) = (segment.p_vaddr(endian), segment.p_memsz(endian));
                let end = start.checked_add(size).filter(|&end| end <= MAX_IMAGE);
                let end = end.ok_or(ObjectError::TooLarge { end: start.saturating_add(size) })?;
                let data = segment
                    .data(endian, bytes)
                    .map_err(|()| ObjectError::Elf("a segment lies outside of the file".into()))?;
                if data.len() as u64 > size {
                    return Err(ObjectError::Elf("a segment is larger in the file than in memory".into()));
                }
                image.resize(image.len().max(number(end)), 0);
                image[number(start)..][..data.len()].copy_from_slice(data);
                if segment.p_flags(endian).0 & elf::PF_X.0 != 0 {
                    text.push(start..start + data.len() as u64);
                }
            }
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
    let mut symbols = BTreeMap::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let Ok(name) = symbol.name() else { continue };
        if !symbol.is_undefined() && !name.is_empty() && symbol.section_index().is_some() {
            let is_data = symbol.kind() == object::SymbolKind::Data;
            symbols
                .insert(name.to_owned(), Symbol { address: symbol.address(), size: symbol.size(), is_data });
        }
    }
    let relocations = parse_relocations(&file, &image)?;
    let kernels = match metadata {
        Some(note) => parse_metadata(note, gfx, &symbols, &image)?,
        None => Vec::new(),
    };
    let bytes = bytes.to_vec();
    let inner = Inner { gfx, kernels, sections, symbols, image, text, relocations, bytes };
    Ok(CodeObject { inner: Arc::new(inner) })
}

fn parse_relocations(file: &ElfFile64<'_>, image: &[u8]) -> Result<Vec<Relocation>, ObjectError> {
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
        if address.checked_add(8).is_none_or(|end| end > image.len() as u64) {
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
struct Metadata {
    #[serde(rename = "amdhsa.kernels", default)]
    kernels: Vec<KernelMetadata>,
    #[serde(rename = "amdhsa.target", default)]
    target: Option<String>,
}

#[derive(Deserialize)]
struct KernelMetadata {
    #[serde(rename = ".name")]
    name: String,
    #[serde(rename = ".symbol")]
    symbol: String,
    #[serde(rename = ".args", default)]
    args: Vec<ArgMetadata>,
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
struct ArgMetadata {
    #[serde(rename = ".name", default)]
    name: Option<String>,
    #[serde(rename = ".offset")]
    offset: u64,
    #[serde(rename = ".size")]
    size: u64,
    #[serde(rename = ".value_kind")]
    kind: String,
}

fn parse_metadata(
    note: &[u8],
    gfx: Gfx,
    symbols: &BTreeMap<String, Symbol>,
    image: &[u8],
) -> Result<Vec<KernelInfo>, ObjectError> {
    let metadata: Metadata =
        rmp_serde::from_slice(note).map_err(|error| ObjectError::Metadata(error.to_string()))?;
    if let Some(target) = &metadata.target {
        let named =
            Gfx::from_name(target.rsplit('-').next().unwrap_or_default().trim_end_matches(['+', ':']))
                .or_else(|_| Gfx::from_name(target.split("--").nth(1).unwrap_or(target)))?;
        if named != gfx {
            return Err(ObjectError::Metadata(format!("it is for {named}, the ELF header for {gfx}")));
        }
    }
    let kernels = metadata.kernels.into_iter().map(|kernel| kernel_info(kernel, symbols, image));
    let mut kernels = kernels.collect::<Result<Vec<_>, _>>()?;
    kernels.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(kernels)
}

fn kernel_info(
    kernel: KernelMetadata,
    symbols: &BTreeMap<String, Symbol>,
    image: &[u8],
) -> Result<KernelInfo, ObjectError> {
    let fail = |problem: String| ObjectError::Kernel { kernel: kernel.name.clone(), problem };
    let descriptor = symbols
        .get(&kernel.symbol)
        .and_then(|symbol| {
            let start = usize::try_from(symbol.address).ok()?;
            let bytes = image.get(start..start.checked_add(KernelDescriptor::SIZE as usize)?)?;
            KernelDescriptor::parse(bytes, symbol.address)
        })
        .ok_or_else(|| fail(format!("no descriptor `{}` of 64 bytes in the image", kernel.symbol)))?;
    if descriptor.entry >= image.len() as u64 || descriptor.entry % 4 != 0 {
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
            name: arg.name.clone(),
            offset: arg.offset as u32,
            size: arg.size as u32,
            kind: arg_kind(&arg.kind),
        });
    }
    let function = kernel.symbol.strip_suffix(".kd").and_then(|name| symbols.get(name));
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
        name: kernel.name,
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
