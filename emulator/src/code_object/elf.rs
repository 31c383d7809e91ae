//! The ELF file: segments, symbols, relocations.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use object::elf;
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _};

use super::metadata::{Place, parse_metadata};
use super::{CodeObject, Features, Inner, ObjectError};
use crate::gfx::{CodeTarget, Gfx};

/// Bytes that a loaded code object may cover; a header that asks for more is refused.
pub(super) const MAX_IMAGE: u64 = 1 << 28;
/// `NT_AMDGPU_METADATA`.
const NOTE_METADATA: u32 = 32;

#[derive(Debug)]
pub(super) struct Section {
    pub(super) address: u64,
    /// Where its contents lie in the file.
    pub(super) range: Range<usize>,
}

/// What the program headers say: which parts of the file go where.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// Ascending, and apart from each other.
    pub(super) segments: Vec<Segment>,
    pub(super) text: Vec<Range<u64>>,
    /// Bytes that the segments cover, from address 0 on.
    pub(super) size: u64,
}

#[derive(Debug)]
pub(super) struct Segment {
    pub(super) address: u64,
    /// Where its contents lie in the file; zeros follow.
    pub(super) range: Range<usize>,
}

impl Layout {
    /// The bytes that a range of addresses has in the file, if it has them all and in one segment.
    pub(super) fn slice<'f>(&self, file: &'f [u8], range: Range<u64>) -> Option<&'f [u8]> {
        let at = self.segments.partition_point(|segment| segment.address <= range.start).checked_sub(1)?;
        let segment = &self.segments[at];
        let start = usize::try_from(range.start - segment.address).ok()?;
        let end = usize::try_from(range.end.checked_sub(segment.address)?).ok()?;
        file.get(segment.range.clone())?.get(start..end)
    }

    pub(super) fn image(&self, file: &[u8]) -> Vec<u8> {
        let mut image = vec![0; self.size as usize];
        for segment in &self.segments {
            let data = &file[segment.range.clone()];
            image[segment.address as usize..][..data.len()].copy_from_slice(data);
        }
        image
    }

    /// The bytes from `address` on as they are loaded, if the image has them all.
    pub(super) fn read<const N: usize>(&self, file: &[u8], address: u64) -> Option<[u8; N]> {
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
pub(super) struct Symbols(pub(super) Vec<(Range<usize>, Symbol)>);

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

    pub(super) fn get(&self, file: &[u8], name: &str) -> Option<Symbol> {
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

pub(super) fn parse_elf(
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
