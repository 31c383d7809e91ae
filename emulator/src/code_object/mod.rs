//! Code objects: what LLVM links for one AMDGPU target.
//!
//! A code object is an ELF shared library with the machine code, one 64-byte kernel descriptor (`NAME.kd`) per
//! kernel, and a MessagePack note that lists each kernel's arguments and resources. Everything in it is
//! untrusted input: what does not fit is an [`ObjectError`].

mod elf;
mod kernel;
mod metadata;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

pub(crate) use self::elf::Relocation;
pub use self::elf::Symbol;
use self::elf::{Layout, MAX_IMAGE, Section, Segment, Symbols, parse_elf};
pub use self::kernel::{ArgKind, HiddenArg, KernelArg, KernelDescriptor, KernelInfo};
use crate::bundle::{self, BundleError};
use crate::gfx::{CodeTarget, Gfx, UnknownGfx};

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
