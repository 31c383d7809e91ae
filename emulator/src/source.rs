//! Source lines of an instruction, from a code object's DWARF.

use std::sync::{Mutex, PoisonError};

use addr2line::{Context, gimli};

use crate::code_object::CodeObject;
use crate::fault::SourceLine;

type Reader = gimli::EndianSlice<'static, gimli::LittleEndian>;

/// What a code object's debug information says, read as far as somebody has asked.
pub(crate) struct Lines {
    /// `None` without debug information. Its slices lie in `_object`, and so it comes first: it is dropped first.
    context: Option<Mutex<Context<Reader>>>,
    _object: CodeObject,
}

impl Lines {
    pub fn new(object: &CodeObject) -> Lines {
        let object = object.clone();
        let section = |id: gimli::SectionId| {
            let bytes = object.section(id.name()).unwrap_or(&[]);
            // SAFETY: the bytes are the code object's, which keeps them where they are and as they are as long as there
            // is a clone of it; `_object` outlives the context, and nothing that borrows from the context leaves it.
            let bytes: &'static [u8] = unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
            Ok::<_, gimli::Error>(gimli::EndianSlice::new(bytes, gimli::LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(section).ok();
        let context = dwarf.and_then(|dwarf| Context::from_dwarf(dwarf).ok()).map(Mutex::new);
        Lines { context, _object: object }
    }

    /// The source position of the instruction at `pc` (relative to the load address) under the calls at `calls`,
    /// innermost function first; empty without debug information.
    pub fn of_stack(&self, pc: u64, calls: &[u64]) -> Vec<SourceLine> {
        std::iter::once(&pc).chain(calls).flat_map(|&pc| self.of(pc)).collect()
    }

    fn of(&self, pc: u64) -> Vec<SourceLine> {
        let Some(context) = &self.context else { return Vec::new() };
        frames(&context.lock().unwrap_or_else(PoisonError::into_inner), pc).unwrap_or_default()
    }
}

fn frames(context: &Context<Reader>, pc: u64) -> Option<Vec<SourceLine>> {
    let mut frames = context.find_frames(pc).skip_all_loads().ok()?;
    let mut lines = Vec::new();
    while let Some(frame) = frames.next().ok()? {
        let Some(location) = frame.location else { continue };
        let function = frame.function.as_ref().and_then(|name| name.raw_name().ok());
        lines.push(SourceLine {
            function: function.map(|name| demangle(&name)),
            file: location.file.unwrap_or("?").to_owned(),
            line: location.line.unwrap_or(0),
            column: location.column.unwrap_or(0),
        });
    }
    Some(lines)
}

/// The name of a function or kernel as its author wrote it, from one that a C++ or Rust compiler has mangled; others
/// stay as they are.
pub fn demangle(name: &str) -> String {
    addr2line::demangle_auto(name.into(), None).into_owned()
}
