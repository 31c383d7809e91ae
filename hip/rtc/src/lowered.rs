//! The names that kernels and variables have in the code.
//!
//! A line behind the program's source keeps the address of each in a variable: that makes templates be compiled, and
//! the code object says where the address points, and its symbols what is there.

use std::collections::HashMap;

use object::elf;
use object::read::elf::{ElfFile64, FileHeader, SectionHeader};
use object::{Endianness, Object, ObjectSymbol};

/// `R_AMDGPU_RELATIVE64`: the word is the load address plus the addend.
const RELATIVE64: elf::RelocationType = elf::RelocationType(13);

/// How the variables' names begin.
const PREFIX: &str = "__hiprtc_name_";

/// The lines behind the source.
pub(crate) fn source(expressions: &[String]) -> String {
    let line = |(n, expression): (usize, &String)| {
        let expression = expression.trim().trim_start_matches('&');
        format!(
            "extern \"C\" __attribute__((used)) __device__ const void* const {PREFIX}{n} = \
             reinterpret_cast<const void*>(&{expression});\n"
        )
    };
    expressions.iter().enumerate().map(line).collect()
}

/// The name in the code of the `n`th expression; `None` where the code lacks it.
pub(crate) fn names(code: &[u8], count: usize) -> Option<Vec<Option<String>>> {
    let file = ElfFile64::<Endianness>::parse(code).ok()?;
    let endian = file.endian();
    let sections = file.elf_header().sections(endian, code).ok()?;
    // Where each word points.
    let mut pointers = HashMap::new();
    for section in sections.iter() {
        let Ok(Some((relocations, _))) = section.rela(endian, code) else { continue };
        for relocation in relocations {
            if relocation.r_type(endian, false) == RELATIVE64 {
                pointers.insert(relocation.r_offset.get(endian), relocation.r_addend.get(endian) as u64);
            }
        }
    }
    let symbols: Vec<(&str, u64)> = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition())
        .filter_map(|symbol| Some((symbol.name().ok()?, symbol.address())))
        .collect();
    let name_at = |address: u64| {
        let is_there = |(name, at): &&(&str, u64)| *at == address && !name.starts_with(PREFIX);
        symbols.iter().find(is_there).map(|(name, _)| (*name).to_owned())
    };
    let lowered = |n: usize| {
        let variable = format!("{PREFIX}{n}");
        let (_, at) = symbols.iter().find(|(name, _)| *name == variable)?;
        name_at(*pointers.get(at)?)
    };
    Some((0..count).map(lowered).collect())
}
