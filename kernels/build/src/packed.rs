//! PTX as it is embedded: each kernel by itself, so that a program has the driver compile those that it launches and no
//! others, and compressed in groups. The host crate reads it (`host/ptx.rs`).
//!
//! Little-endian: [`MAGIC`]; the number of bytes of the records, and the records (the kernels' signatures as JSON, LZMA); the
//! number of groups; of each group the bytes that it has packed and unpacked, the number of its kernels, and of each kernel
//! the bytes of its name and of its text, and its name; then the groups, LZMA, each the texts of its kernels.

use std::collections::{BTreeSet, HashMap};
use std::io::{Read, Write};

use crate::signature::Signature;

/// What packed PTX begins with.
pub const MAGIC: [u8; 8] = *b"NVPTXPK1";
/// Bytes of text after which a group ends: few enough to unpack in milliseconds, and many enough to be packed well.
const GROUP: usize = 1 << 20;
/// Most memory that unpacking may take, in KiB.
const MEMORY: u32 = 1 << 16;

/// A part of a module that stands by itself: a kernel, a function or a variable.
struct Item<'a> {
    name: &'a str,
    text: &'a str,
    is_kernel: bool,
}

/// The parts of a module, and what stands before them.
fn items(ptx: &str) -> Option<(&str, Vec<Item<'_>>)> {
    let mut items = Vec::new();
    let (mut preamble, mut start, mut at, mut in_body) = (None, 0, 0, false);
    for line in ptx.split_inclusive('\n') {
        let end = at + line.len();
        let bare = line.trim_end();
        let is_comment = bare.trim_start().starts_with("//");
        if items.is_empty() && preamble.is_none() {
            start = at;
        }
        if !is_comment && !bare.is_empty() {
            let is_header =
                [".version", ".target", ".address_size"].iter().any(|word| bare.starts_with(word));
            if is_header {
                start = end;
            } else {
                preamble.get_or_insert(&ptx[..start]);
                in_body |= bare == "{";
                let ends = if in_body { bare == "}" } else { bare.ends_with(';') };
                if ends {
                    items.push(item(&ptx[start..end])?);
                    (start, in_body) = (end, false);
                }
            }
        }
        at = end;
    }
    // A module without any kernel is its header.
    let preamble = preamble.or(Some(&ptx[..start])).filter(|text| text.contains(".version") && !in_body)?;
    Some((preamble, items))
}

fn item(text: &str) -> Option<Item<'_>> {
    let directive = text.lines().find(|line| line.starts_with('.'))?;
    let (name, is_kernel) = if let Some((_, name)) = directive.split_once(".entry ") {
        (name, true)
    } else if let Some((_, rest)) = directive.split_once(".func ") {
        let rest = rest.trim_start();
        let result = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        (result.map_or(rest, |(_, name)| name.trim_start()), false)
    } else {
        // A variable: the last word before its size, its value or the end.
        let declared = directive.split(['[', '=', ';']).next()?;
        (declared.split_whitespace().next_back()?, false)
    };
    let end = name.find(|c| !is_word(c)).unwrap_or(name.len());
    Some(Item { name: &name[..end], text, is_kernel })
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$')
}

/// The text of each kernel of a module with all that it refers to, by name; `None` if this is not the PTX that LLVM writes.
pub fn split(ptx: &str) -> Option<Vec<(&str, String)>> {
    let (preamble, items) = items(ptx)?;
    let mut named: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, item) in items.iter().enumerate().filter(|(_, item)| !item.is_kernel) {
        named.entry(item.name).or_default().push(index);
    }
    let uses: Vec<Vec<usize>> = items
        .iter()
        .map(|item| {
            let words: BTreeSet<&str> = item.text.split(|c| !is_word(c)).collect();
            words.into_iter().filter_map(|word| named.get(word)).flatten().copied().collect()
        })
        .collect();
    let kernels = items.iter().enumerate().filter(|(_, item)| item.is_kernel);
    let mut texts: Vec<(&str, String)> = kernels
        .map(|(kernel, item)| {
            let mut needed = BTreeSet::from([kernel]);
            let mut open = vec![kernel];
            while let Some(next) = open.pop() {
                open.extend(uses[next].iter().copied().filter(|&used| needed.insert(used)));
            }
            let text = std::iter::once(preamble).chain(needed.into_iter().map(|index| items[index].text));
            (item.name, text.collect())
        })
        .collect();
    texts.sort_unstable_by_key(|&(name, _)| name);
    Some(texts)
}

/// A module's kernels as they are embedded; `None` if the text is not the PTX that LLVM writes.
pub fn pack(ptx: &str, kernels: &[Signature]) -> Option<Vec<u8>> {
    let records = serde_json::to_vec(kernels).expect("strings and numbers");
    let mut groups: Vec<Vec<(&str, String)>> = Vec::new();
    let mut room = 0;
    for (name, text) in split(ptx)? {
        if room == 0 {
            groups.push(Vec::new());
            room = GROUP;
        }
        room = room.saturating_sub(text.len());
        groups.last_mut().expect("there is one").push((name, text));
    }
    let mut out = MAGIC.to_vec();
    let mut data = Vec::new();
    let number = |out: &mut Vec<u8>, n: usize| {
        out.extend(u32::try_from(n).expect("modules are smaller").to_le_bytes());
    };
    let records = compressed(&records);
    number(&mut out, records.len());
    out.extend(&records);
    number(&mut out, groups.len());
    for group in &groups {
        let text: String = group.iter().map(|(_, text)| text.as_str()).collect();
        let packed = compressed(text.as_bytes());
        [packed.len(), text.len(), group.len()].into_iter().for_each(|n| number(&mut out, n));
        for (name, text) in group {
            number(&mut out, name.len());
            number(&mut out, text.len());
            out.extend(name.bytes());
        }
        data.extend(packed);
    }
    out.extend(data);
    Some(out)
}

/// The signatures of packed PTX; `None` if it is not packed PTX.
pub fn records(packed: &[u8]) -> Option<Vec<Signature>> {
    let rest = packed.strip_prefix(&MAGIC)?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let records = rest.get(..usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    let mut json = Vec::new();
    let mut reader = lzma_rust2::LzmaReader::new_mem_limit(records, MEMORY, None).ok()?;
    reader.read_to_end(&mut json).ok()?;
    serde_json::from_slice(&json).ok()
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::LzmaOptions::with_preset(6);
    let mut writer = lzma_rust2::LzmaWriter::new_use_header(Vec::new(), &options, Some(bytes.len() as u64))
        .expect("the options are LZMA's own");
    writer.write_all(bytes).expect("memory can be written");
    writer.finish().expect("memory can be written")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "//\n// by LLVM\n//\n\n.version 7.8\n.target sm_80\n.address_size 64\n\n\t// .globl a // -- Begin\n\
        .func  (.param .b32 func_retval0) shared_by_b\n(\n\t.param .b64 p\n)\n;\n\
        .extern .shared .align 16 .b8 dynamic[];\n.weak .global .align 16 .b8 slot[16];\n\
        .global .align 1 .b8 name$1[4] = {1, 2};\n\
        .visible .entry b(\n\t.param .u64 b_param_0\n)\n.maxntid 1024  // @b\n{\n\t{ // callseq\n\tcall shared_by_b, (p);\n\t}\n\tret;\n}\n\
        \t// -- End function\n\
        .func  (.param .b32 func_retval0) shared_by_b(\n\t.param .b64 p\n)\n{\n\tmov.u64 %rd1, name$1;\n\tret;\n}\n\
        .visible .entry a(\n\t.param .u64 a_param_0\n)\n{\n\tmov.u64 %rd1, dynamic;\n\tret;\n}\n";

    #[test]
    fn a_kernel_has_what_it_refers_to_and_nothing_else() {
        let texts = split(PTX).unwrap();
        let [(a, a_text), (b, b_text)] = &texts[..] else { panic!("{texts:?}") };
        assert_eq!((*a, *b), ("a", "b"));
        for text in [a_text, b_text] {
            assert!(text.starts_with("//\n// by LLVM") && text.contains(".version 7.8"), "{text}");
            assert!(!text.contains("slot"), "{text}");
        }
        assert!(a_text.contains("dynamic[]") && !a_text.contains("shared_by_b"), "{a_text}");
        assert_eq!(b_text.matches(") shared_by_b").count(), 2, "declaration and body: {b_text}");
        assert!(b_text.contains("name$1[4]") && !b_text.contains("dynamic"), "{b_text}");
        assert!(b_text.find("shared_by_b\n(") < b_text.find(".entry b"), "declared before it is called");
        assert!(split("no PTX").is_none());
        assert!(split("").is_none());
        assert_eq!(split("//\n.version 7.8\n.target sm_80\n.address_size 64\n\n"), Some(Vec::new()));
    }

    #[test]
    fn records_come_back() {
        let packed = pack(PTX, &[]).unwrap();
        assert_eq!(records(&packed).unwrap().len(), 0);
        assert!(records(&packed[..20]).is_none() && records(b"NVPTX").is_none());
    }
}
