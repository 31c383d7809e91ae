//! Offload bundles, compressed and not, made in memory.
#![allow(dead_code, reason = "each test file uses a part")]

use std::io::Write as _;

use md5::{Digest as _, Md5};

pub const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";

/// An uncompressed bundle, its entries' contents at multiples of `align`.
pub fn plain(entries: &[(&str, &[u8])], align: usize) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.extend((entries.len() as u64).to_le_bytes());
    let length = header.len() + entries.iter().map(|(name, _)| 24 + name.len()).sum::<usize>();
    let mut contents = Vec::new();
    for (name, bytes) in entries {
        contents.resize((length + contents.len()).next_multiple_of(align) - length, 0);
        for field in [length + contents.len(), bytes.len(), name.len()] {
            header.extend((field as u64).to_le_bytes());
        }
        header.extend(name.as_bytes());
        contents.extend(*bytes);
    }
    header.extend(contents);
    header
}

/// A compressed bundle to write; the numbers are right until a test changes them.
#[derive(Clone)]
pub struct Packed {
    pub version: u16,
    pub method: u16,
    pub file_size: u64,
    pub size: u64,
    pub hash: [u8; 8],
    pub stream: Vec<u8>,
}

impl Packed {
    pub fn zlib(version: u16, contents: &[u8]) -> Packed {
        Packed::new(version, 0, contents, zlib(contents, 6))
    }

    pub fn zstd(version: u16, contents: &[u8]) -> Packed {
        Packed::new(version, 1, contents, zstd(contents))
    }

    pub fn new(version: u16, method: u16, contents: &[u8], stream: Vec<u8>) -> Packed {
        let header = match version {
            1 => 20,
            2 => 24,
            _ => 32,
        };
        let mut hash = [0; 8];
        hash.copy_from_slice(&Md5::digest(contents)[..8]);
        let (file_size, size) = ((header + stream.len()) as u64, contents.len() as u64);
        Packed { version, method, file_size, size, hash, stream }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"CCOB".to_vec();
        bytes.extend(self.version.to_le_bytes());
        bytes.extend(self.method.to_le_bytes());
        match self.version {
            1 => bytes.extend((self.size as u32).to_le_bytes()),
            2 => {
                bytes.extend((self.file_size as u32).to_le_bytes());
                bytes.extend((self.size as u32).to_le_bytes());
            }
            _ => {
                bytes.extend(self.file_size.to_le_bytes());
                bytes.extend(self.size.to_le_bytes());
            }
        }
        bytes.extend(self.hash);
        bytes.extend(&self.stream);
        bytes
    }
}

/// A zlib stream; level 0 only stores.
pub fn zlib(contents: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(level));
    encoder.write_all(contents).expect("memory");
    encoder.finish().expect("memory")
}

/// A zstd frame with compressed blocks.
pub fn zstd(contents: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(contents, ruzstd::encoding::CompressionLevel::Fastest)
}

/// The start of a zstd frame with a window of 2^`log` bytes.
pub fn zstd_header(log: u8) -> Vec<u8> {
    vec![0x28, 0xb5, 0x2f, 0xfd, 0, (log - 10) << 3]
}

/// A zstd frame of blocks that are stored.
pub fn zstd_stored(contents: &[u8], log: u8) -> Vec<u8> {
    let mut frame = zstd_header(log);
    let count = contents.chunks(1 << 17).count();
    for (n, block) in contents.chunks(1 << 17).enumerate() {
        frame.extend(&((block.len() as u32) << 3 | u32::from(n + 1 == count)).to_le_bytes()[..3]);
        frame.extend(block);
    }
    frame
}

/// A zstd frame of `blocks` blocks that each repeat a byte 128 Ki times.
pub fn zstd_repeated(byte: u8, blocks: usize) -> Vec<u8> {
    let mut frame = zstd_header(23);
    for n in 0..blocks {
        frame.extend(&(1u32 << 20 | 1 << 1 | u32::from(n + 1 == blocks)).to_le_bytes()[..3]);
        frame.push(byte);
    }
    frame
}

/// A shared library of the host with a section `.hip_fatbin`.
pub fn host_library(fatbin: &[u8]) -> Vec<u8> {
    let names = b"\0.hip_fatbin\0.shstrtab\0";
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    for half in [3u16, 62] {
        file.extend(half.to_le_bytes());
    }
    file.extend(1u32.to_le_bytes());
    let sections = (64 + fatbin.len() + names.len()) as u64;
    for word in [0, 0, sections] {
        file.extend(word.to_le_bytes());
    }
    file.extend(0u32.to_le_bytes());
    for half in [64u16, 56, 0, 64, 3, 2] {
        file.extend(half.to_le_bytes());
    }
    file.extend(fatbin);
    file.extend(names);
    let names_at = 64 + fatbin.len() as u64;
    for (name, kind, at, size) in
        [(0u32, 0u32, 0, 0), (1, 1, 64, fatbin.len() as u64), (13, 3, names_at, names.len() as u64)]
    {
        file.extend(name.to_le_bytes());
        file.extend(kind.to_le_bytes());
        for word in [0, 0, at, size, 0, 1, 0] {
            file.extend(word.to_le_bytes());
        }
    }
    file
}
