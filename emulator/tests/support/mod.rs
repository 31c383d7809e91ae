//! Code objects built in memory, so that tests need no toolchain.
//!
//! A program is lines `text ; hexadecimal dwords`. The dwords are what runs; the decoder must agree with the text.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod hostile;
pub mod programs;
pub mod scalar;

use amdgpu_emulator::{CodeObject, Generation, Gfx, Machine, decode};
use serde_json::{Value, json};

/// Words of device memory.
pub fn words(machine: &Machine, address: u64, count: usize) -> Vec<u32> {
    let mut bytes = vec![0; count * 4];
    machine.read(address, &mut bytes).expect("allocated");
    bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// The text with every address at or behind `start` as `memory+0x…`.
pub fn relative(text: &str, start: u64) -> String {
    let mut out = String::new();
    for (n, part) in text.split("0x").enumerate() {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_hexdigit()).len();
        match u64::from_str_radix(&part[..digits], 16) {
            _ if n == 0 => out.push_str(part),
            Ok(address) if (start..start + (1 << 32)).contains(&address) => {
                out.push_str(&format!("memory+{:#x}{}", address - start, &part[digits..]));
            }
            _ => out.push_str(&format!("0x{part}")),
        }
    }
    out
}

/// A kernel to build. Scalar registers on entry: s[0:1] arguments, then the workgroup ids x, y, z from s2 on
/// (gfx12: in ttmp9 and ttmp7). The work-item id is in v0 (and v1, v2 on gfx10).
pub struct Kernel<'a> {
    pub name: &'a str,
    pub gfx: Gfx,
    pub program: &'a str,
    /// Machine code instead of a program.
    pub code: Option<Vec<u8>>,
    /// Arguments in order: size, and metadata's value kind.
    pub args: &'a [(u32, &'a str)],
    pub lds: u32,
    pub scratch: u32,
    pub max_workgroup_size: u32,
    pub vgprs: u32,
    /// Scalar registers before the workgroup ids.
    pub user_sgprs: u32,
    /// Dwords of arguments that go to scalar registers (gfx90a, gfx942).
    pub preload: u16,
    /// Whether a workgroup's waves may run on different compute units: WGP mode, LLVM's default where there is one, or
    /// gfx90a's and gfx942's threadgroup split mode.
    pub split: bool,
}

impl<'a> Kernel<'a> {
    pub fn new(gfx: Gfx, program: &'a str) -> Kernel<'a> {
        Kernel {
            name: "test",
            gfx,
            program,
            code: None,
            args: &[],
            lds: 0,
            scratch: 0,
            max_workgroup_size: 1024,
            vgprs: 32,
            user_sgprs: 2,
            preload: 0,
            split: gfx.generation() != Generation::Cdna,
        }
    }

    /// The linked code object's bytes.
    pub fn elf(&self) -> Vec<u8> {
        self.elf_with(|_| {})
    }

    /// The code object.
    pub fn build(&self) -> CodeObject {
        CodeObject::parse(&self.elf()).expect("a code object")
    }

    /// The bytes, with the metadata changed by `edit`.
    pub fn elf_with(&self, edit: impl FnOnce(&mut Value)) -> Vec<u8> {
        let code = self.code.clone().unwrap_or_else(|| assemble(self.gfx, self.program));
        let mut metadata = self.metadata();
        edit(&mut metadata);
        let note = note(&rmp_serde::to_vec(&metadata).expect("MessagePack"));
        let note_at = 64 + 3 * 56;
        let descriptor_at = (note_at + note.len()).next_multiple_of(64);
        let text_at = (descriptor_at + 64).next_multiple_of(256);
        let mut file = vec![0; text_at];
        file[note_at..note_at + note.len()].copy_from_slice(&note);
        let descriptor = self.descriptor(text_at as u64 - descriptor_at as u64);
        file[descriptor_at..descriptor_at + 64].copy_from_slice(&descriptor);
        file.extend(&code);
        let loaded = file.len();

        let names = format!("\0{0}\0{0}.kd\0", self.name);
        let strings_at = file.len();
        file.extend(names.as_bytes());
        file.resize(file.len().next_multiple_of(8), 0);
        let symbols_at = file.len();
        let kd_name = 2 + self.name.len() as u32;
        file.extend(symbol(0, 0, 0, 0, 0));
        file.extend(symbol(1, 0x12, 3, text_at as u64, code.len() as u64));
        file.extend(symbol(kd_name, 0x11, 2, descriptor_at as u64, 64));
        let section_names = "\0.note\0.rodata\0.text\0.symtab\0.strtab\0.shstrtab\0";
        let section_names_at = file.len();
        file.extend(section_names.as_bytes());
        file.resize(file.len().next_multiple_of(8), 0);
        let sections_at = file.len();
        let name_of = |name: &str| section_names.find(name).expect("a section") as u32;
        file.extend([0; 64]);
        for (name, kind, flags, address, size, link, info, entry) in [
            (".note", 7, 2, note_at, note.len(), 0, 0, 0),
            (".rodata", 1, 2, descriptor_at, 64, 0, 0, 0),
            (".text", 1, 6, text_at, code.len(), 0, 0, 0),
            (".symtab", 2, 0, symbols_at, 72, 5, 1, 24u64),
            (".strtab", 3, 0, strings_at, names.len(), 0, 0, 0),
            (".shstrtab", 3, 0, section_names_at, section_names.len(), 0, 0, 0),
        ] {
            file.extend(name_of(name).to_le_bytes());
            file.extend(u32::to_le_bytes(kind));
            file.extend(u64::to_le_bytes(flags));
            file.extend((if flags == 0 { 0 } else { address as u64 }).to_le_bytes());
            file.extend((address as u64).to_le_bytes());
            file.extend((size as u64).to_le_bytes());
            file.extend(u32::to_le_bytes(link));
            file.extend(u32::to_le_bytes(info));
            file.extend(u64::to_le_bytes(8));
            file.extend(entry.to_le_bytes());
        }

        let mut header = Vec::new();
        header.extend(b"\x7fELF\x02\x01\x01\x40\x04\0\0\0\0\0\0\0");
        header.extend(3u16.to_le_bytes());
        header.extend(224u16.to_le_bytes());
        header.extend(1u32.to_le_bytes());
        header.extend(0u64.to_le_bytes());
        header.extend(64u64.to_le_bytes());
        header.extend((sections_at as u64).to_le_bytes());
        header.extend(machine(self.gfx).to_le_bytes());
        for field in [64u16, 56, 3, 64, 7, 6] {
            header.extend(field.to_le_bytes());
        }
        for (kind, flags, at, size) in [
            (1u32, 4u32, 0, descriptor_at + 64),
            (1, 5, text_at, loaded - text_at),
            (4, 4, note_at, note.len()),
        ] {
            header.extend(kind.to_le_bytes());
            header.extend(flags.to_le_bytes());
            for _ in 0..3 {
                header.extend((at as u64).to_le_bytes());
            }
            for _ in 0..2 {
                header.extend((size as u64).to_le_bytes());
            }
            header.extend(4u64.to_le_bytes());
        }
        file[..header.len()].copy_from_slice(&header);
        file
    }

    fn metadata(&self) -> Value {
        let mut offset = 0u32;
        let args: Vec<Value> = self
            .args
            .iter()
            .map(|&(size, kind)| {
                offset = offset.next_multiple_of(size);
                let arg = json!({ ".offset": offset, ".size": size, ".value_kind": kind });
                offset += size;
                arg
            })
            .collect();
        json!({
            "amdhsa.version": [1, 2],
            "amdhsa.target": format!("amdgcn-amd-amdhsa--{}", self.gfx),
            "amdhsa.kernels": [{
                ".name": self.name,
                ".symbol": format!("{}.kd", self.name),
                ".args": args,
                ".kernarg_segment_size": offset,
                ".kernarg_segment_align": 8,
                ".group_segment_fixed_size": self.lds,
                ".private_segment_fixed_size": self.scratch,
                ".vgpr_count": self.vgprs,
                ".sgpr_count": 32,
                ".wavefront_size": self.gfx.wave_size(),
                ".max_flat_workgroup_size": self.max_workgroup_size,
            }],
        })
    }

    fn descriptor(&self, entry: u64) -> [u8; 64] {
        let mut bytes = [0; 64];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &self.lds.to_le_bytes());
        put(4, &self.scratch.to_le_bytes());
        put(16, &entry.to_le_bytes());
        // Denormals kept in every format, DX10_CLAMP, IEEE.
        let is_cdna = self.gfx.generation() == Generation::Cdna;
        let wgp = u32::from(self.split && !is_cdna) << 29;
        put(44, &(u32::from(self.split && is_cdna) << 16).to_le_bytes());
        put(48, &(0xf0u32 << 12 | 1 << 21 | 1 << 23 | wgp).to_le_bytes());
        // User SGPRs, workgroup ids, three work-item ids.
        put(52, &(self.user_sgprs << 1 | 7 << 7 | 2 << 11).to_le_bytes());
        let wave32 = u16::from(self.gfx.wave_size() == 32) << 10;
        put(56, &(1u16 << 3 | wave32).to_le_bytes());
        put(58, &self.preload.to_le_bytes());
        bytes
    }
}

fn symbol(name: u32, info: u8, section: u16, value: u64, size: u64) -> Vec<u8> {
    let mut bytes = name.to_le_bytes().to_vec();
    bytes.extend([info, 0]);
    bytes.extend(section.to_le_bytes());
    bytes.extend(value.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes
}

fn note(metadata: &[u8]) -> Vec<u8> {
    let mut note = Vec::new();
    note.extend(7u32.to_le_bytes());
    note.extend((metadata.len() as u32).to_le_bytes());
    note.extend(32u32.to_le_bytes());
    note.extend(b"AMDGPU\0\0");
    note.extend(metadata);
    note.resize(note.len().next_multiple_of(4), 0);
    note
}

/// The numbers that `llc -mcpu` of LLVM 22 writes.
pub fn machine(gfx: Gfx) -> u32 {
    match gfx {
        Gfx::Gfx906 => 0x2f,
        Gfx::Gfx908 => 0x30,
        Gfx::Gfx90a => 0x3f,
        Gfx::Gfx942 => 0x4c,
        Gfx::Gfx950 => 0x4f,
        Gfx::Gfx1010 => 0x33,
        Gfx::Gfx1011 => 0x34,
        Gfx::Gfx1012 => 0x35,
        Gfx::Gfx1030 => 0x36,
        Gfx::Gfx1031 => 0x37,
        Gfx::Gfx1032 => 0x38,
        Gfx::Gfx1033 => 0x39,
        Gfx::Gfx1034 => 0x3e,
        Gfx::Gfx1035 => 0x3d,
        Gfx::Gfx1036 => 0x45,
        Gfx::Gfx1100 => 0x41,
        Gfx::Gfx1101 => 0x46,
        Gfx::Gfx1102 => 0x47,
        Gfx::Gfx1103 => 0x44,
        Gfx::Gfx1150 => 0x43,
        Gfx::Gfx1151 => 0x4a,
        Gfx::Gfx1152 => 0x55,
        Gfx::Gfx1153 => 0x58,
        Gfx::Gfx1200 => 0x48,
        Gfx::Gfx1201 => 0x4e,
    }
}

/// The machine code of a program, with the target's `s_endpgm` behind it.
#[track_caller]
pub fn assemble(gfx: Gfx, program: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in program.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")) {
        let (text, hex) = line.split_once(" ; ").unwrap_or_else(|| panic!("no encoding: {line}"));
        let start = bytes.len();
        for word in hex.split_whitespace() {
            bytes.extend(u32::from_str_radix(word, 16).expect("hexadecimal").to_le_bytes());
        }
        if let Ok(inst) = decode::decode(gfx, &bytes[start..]) {
            assert_eq!(decode::print(gfx, &inst, None).to_string(), text, "{gfx}");
        } else {
            assert_eq!(text, "illegal");
        }
    }
    let end: u32 = match gfx.generation() {
        Generation::Cdna | Generation::Gfx10 => 0xbf81_0000,
        Generation::Gfx11 | Generation::Gfx12 => 0xbfb0_0000,
    };
    bytes.extend(end.to_le_bytes());
    bytes
}
