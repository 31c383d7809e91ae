//! Source lines of an instruction, from a code object's DWARF.

use addr2line::gimli;

use crate::code_object::CodeObject;
use crate::fault::SourceLine;

/// The source position of the instruction at `pc` (relative to the load address), innermost function first; empty
/// without debug information.
pub(crate) fn lines(object: &CodeObject, pc: u64) -> Vec<SourceLine> {
    lines_of(object, &[pc]).pop().unwrap_or_default()
}

/// As [`lines`], for several instructions.
pub(crate) fn lines_of(object: &CodeObject, addresses: &[u64]) -> Vec<Vec<SourceLine>> {
    let section = |id: gimli::SectionId| {
        let bytes = object.section(id.name()).unwrap_or(&[]);
        Ok::<_, gimli::Error>(gimli::EndianSlice::new(bytes, gimli::LittleEndian))
    };
    let context =
        gimli::Dwarf::load(section).ok().and_then(|dwarf| addr2line::Context::from_dwarf(dwarf).ok());
    let Some(context) = context else { return vec![Vec::new(); addresses.len()] };
    addresses.iter().map(|&pc| frames(&context, pc).unwrap_or_default()).collect()
}

type Reader<'a> = gimli::EndianSlice<'a, gimli::LittleEndian>;

fn frames(context: &addr2line::Context<Reader<'_>>, pc: u64) -> Option<Vec<SourceLine>> {
    let mut frames = context.find_frames(pc).skip_all_loads().ok()?;
    let mut lines = Vec::new();
    while let Some(frame) = frames.next().ok()? {
        let Some(location) = frame.location else { continue };
        let function = frame.function.as_ref().and_then(|name| name.raw_name().ok());
        lines.push(SourceLine {
            function: function.map(|name| addr2line::demangle_auto(name, None).into_owned()),
            file: location.file.unwrap_or("?").to_owned(),
            line: location.line.unwrap_or(0),
            column: location.column.unwrap_or(0),
        });
    }
    Some(lines)
}
