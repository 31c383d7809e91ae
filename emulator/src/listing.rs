//! The instruction tables as lists: each instruction of a target once, with its operands and its opcode.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::gfx::Gfx;

const FILES: [&str; 5] = [
    include_str!("decode/tables/scalar.txt"),
    include_str!("decode/tables/vector.txt"),
    include_str!("decode/tables/memory.txt"),
    include_str!("decode/tables/vopd.txt"),
    include_str!("decode/tables/graphics.txt"),
];

/// The targets that the tables have a column for.
const COLUMNS: [Gfx; 7] =
    [Gfx::Gfx90a, Gfx::Gfx942, Gfx::Gfx1011, Gfx::Gfx1030, Gfx::Gfx1100, Gfx::Gfx1151, Gfx::Gfx1201];

/// What the other instruction sets lack of the column that they share, and what they add: sections
/// `[TARGET without]`, a name a line, and `[TARGET SECTION]`, a row a line with one opcode.
const VARIANTS: &str = include_str!("decode/tables/variants.txt");

/// An instruction of a target as the decoder's tables have it. `decode/table.rs` says what the words mean.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// The encoding that it is listed under: `vop2`, `sopk`, `ds`, …
    pub section: &'static str,
    /// LLVM's mnemonic for the target, without a suffix for the encoding.
    pub name: &'static str,
    /// Its operands in LLVM's order, each `field` or `field:type`.
    pub operands: Vec<&'static str>,
    /// Its opcode in that encoding.
    pub opcode: u32,
}

/// Every instruction of a target, in the order of the tables. The 64-bit, DPP and SDWA forms of others are not listed.
pub fn instructions(gfx: Gfx) -> Vec<Listed> {
    let column = COLUMNS.iter().position(|&g| g == column_of(gfx)).unwrap_or_default();
    let without: HashSet<&str> =
        variants(gfx).filter_map(|(section, line)| (section == "without").then_some(line)).collect();
    let shared = LINES.iter().filter_map(|(section, line)| parse(section, line, COLUMNS.len(), column));
    let own = variants(gfx).filter_map(|(section, line)| parse(section, line, 1, 0));
    shared.filter(|listed| !without.contains(listed.name)).chain(own).collect()
}

/// The column that has most of the target's instructions.
fn column_of(gfx: Gfx) -> Gfx {
    match gfx.isa() {
        Gfx::Gfx906 | Gfx::Gfx908 => Gfx::Gfx90a,
        Gfx::Gfx950 => Gfx::Gfx942,
        Gfx::Gfx1010 => Gfx::Gfx1011,
        other => other,
    }
}

/// A line with so many opcodes, of which one is the target's.
fn parse(section: &'static str, line: &'static str, opcodes: usize, column: usize) -> Option<Listed> {
    let mut words: Vec<&str> = line.split_ascii_whitespace().collect();
    let of_targets = words.split_off(words.len().checked_sub(opcodes)?);
    let opcode = u32::from_str_radix(of_targets[column], 16).ok()?;
    let (name, operands) = words.split_first()?;
    Some(Listed { section, name, operands: operands.to_vec(), opcode })
}

/// The lines of a target in [`VARIANTS`]: what its section is called, and the line.
fn variants(gfx: Gfx) -> impl Iterator<Item = (&'static str, &'static str)> {
    let sections = lines(VARIANTS).filter_map(|(header, line)| Some((header.split_once(' ')?, line)));
    sections
        .filter_map(move |((target, section), line)| (target == gfx.isa().name()).then_some((section, line)))
}

/// The lines of a file that are rows, with the header of their section.
fn lines(file: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut header = "";
    file.lines().filter_map(move |line| {
        if let Some(name) = line.strip_prefix('[') {
            header = name.trim_end_matches(']');
            return None;
        }
        (!line.is_empty() && !line.starts_with('#')).then_some((header, line))
    })
}

static LINES: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| FILES.into_iter().flat_map(lines).collect());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_what_its_line_and_its_variants_say() {
        let find = |gfx, name| instructions(gfx).into_iter().find(|listed| listed.name == name);
        let add = find(Gfx::Gfx1102, "v_add_f32").expect("gfx11 has it");
        assert_eq!(add.section, "vop2");
        assert_eq!((add.operands, add.opcode), (vec!["vdst", "src0:f32", "vsrc1:f32"], 3));
        assert_eq!(find(Gfx::Gfx90a, "v_add_f32").map(|listed| listed.opcode), Some(1));
        assert_eq!(find(Gfx::Gfx1100, "v_mfma_f32_4x4x1f32"), None);
        // gfx1010 has the column of gfx1011 but no dot products, gfx950 has what gfx942 has not.
        assert_eq!(find(Gfx::Gfx1010, "v_dot4_i32_i8"), None);
        assert!(find(Gfx::Gfx1011, "v_dot4_i32_i8").is_some());
        assert!(find(Gfx::Gfx950, "v_mfma_f32_16x16x32_f16").is_some());
        assert_eq!(find(Gfx::Gfx942, "v_mfma_f32_16x16x32_f16"), None);
    }
}
