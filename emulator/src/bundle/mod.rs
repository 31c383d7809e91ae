//! Clang offload bundles: files with code objects for several targets, compressed or not.
//!
//! A bundle starts with `__CLANG_OFFLOAD_BUNDLE__` and a number of entries: offset, size and name of each. A name is the
//! offload kind, the target triple and the target: `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-`. A compressed bundle starts
//! with `CCOB`, the version of its header and the compression method; what is compressed is a bundle. Programs that hipcc
//! or clang built have one bundle for each source file in their section `.hip_fatbin`, with zeros between them.
//!
//! Everything in a bundle is untrusted input. No size that it claims is believed before the bytes are there.

#[cfg(feature = "exec")]
mod compressed;

use std::borrow::Cow;
use std::ops::Range;

use object::{Object as _, ObjectSection as _};

use crate::code_object::{CodeObject, Features, ObjectError};
use crate::gfx::{CodeTarget, Gfx};

const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
const COMPRESSED_MAGIC: &[u8] = b"CCOB";
/// Bytes that a bundle may have, compressed or not.
const MAX_BYTES: u64 = 1 << 32;
/// Where programs have their bundles.
const FAT_SECTION: &str = ".hip_fatbin";
/// Names that an error text lists.
const LISTED: usize = 32;

/// Why bytes cannot be read as an offload bundle.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// Neither magic is there.
    #[error("{given:02x?} is not the start of an offload bundle")]
    Magic {
        /// The first bytes, at most eight.
        given: Vec<u8>,
    },
    /// It ends too early.
    #[error("the offload bundle ends within {part}")]
    Truncated {
        /// What is incomplete.
        part: &'static str,
    },
    /// An impossible number in a header.
    #[error("the offload bundle's {field} is {value}; at most {limit} is possible")]
    Field {
        /// What the number says.
        field: &'static str,
        /// The number.
        value: u64,
        /// The largest that is accepted.
        limit: u64,
    },
    /// A compressed bundle with a header of an unknown version.
    #[error("the compressed offload bundle has version {0}; versions 1, 2 and 3 are supported")]
    Version(u16),
    /// An unknown compression method.
    #[error("the compressed offload bundle has compression method {0}; 0 (zlib) and 1 (zstd) are supported")]
    Method(u16),
    /// A compressed bundle whose header claims another size than it has.
    #[error("the compressed offload bundle claims to have {claimed} bytes; it has {given}")]
    FileSize {
        /// Bytes according to the header.
        claimed: u64,
        /// Bytes present.
        given: u64,
    },
    /// A compressed bundle would unpack into implausibly many bytes.
    #[error("{compressed} compressed bytes claim to unpack into {claimed}; at most {limit} are accepted")]
    Expansion {
        /// Bytes of the stream.
        compressed: u64,
        /// Bytes according to the header.
        claimed: u64,
        /// The most that are accepted for a stream of that size.
        limit: u64,
    },
    /// The compressed stream ends too early.
    #[error("the {method} stream of the offload bundle ends before it is complete")]
    StreamEnd {
        /// Compression method.
        method: &'static str,
    },
    /// The compressed stream is damaged.
    #[error("the {method} stream of the offload bundle is damaged: {problem}")]
    Stream {
        /// Compression method.
        method: &'static str,
        /// What the decompressor says.
        problem: String,
    },
    /// Something follows the compressed stream.
    #[error("{bytes} bytes follow the {method} stream of the offload bundle")]
    Trailing {
        /// Compression method.
        method: &'static str,
        /// How many.
        bytes: u64,
    },
    /// The stream unpacked into less than the header claims.
    #[error("the offload bundle claims to unpack into {claimed} bytes; it has {actual}")]
    TooShort {
        /// Bytes according to the header.
        claimed: u64,
        /// Bytes that there were.
        actual: u64,
    },
    /// The stream unpacks into more than the header claims.
    #[error("the offload bundle claims to unpack into {claimed} bytes; it has more")]
    TooLong {
        /// Bytes according to the header.
        claimed: u64,
    },
    /// The contents are not those that were compressed.
    #[error("the offload bundle's contents have the hash {actual:016x}; its header says {claimed:016x}")]
    Hash {
        /// First eight bytes of the MD5 hash by the header, as a big-endian number.
        claimed: u64,
        /// The same of the contents.
        actual: u64,
    },
    /// What was compressed is something else.
    #[error("the decompressed data is not an offload bundle")]
    Contents,
    /// What follows a bundle is not another one.
    #[error("{given:02x?} at {offset:#x}, after an offload bundle, is not the start of another one")]
    Between {
        /// Where.
        offset: usize,
        /// The first bytes, at most eight.
        given: Vec<u8>,
    },
    /// The crate was built without the feature `exec`.
    #[error("the offload bundle is compressed, which this build does not unpack")]
    NotBuilt,
}

debug_is_display!(BundleError);

/// Whether bytes start as an offload bundle does, compressed or not.
pub fn is_bundle(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) || bytes.starts_with(COMPRESSED_MAGIC)
}

/// Bytes of the offload bundle that `prefix` starts with, if there are as many. This is for bundles whose end is unknown, so
/// the size in the header has to be believed. Version 1 of compressed bundles has no size in the header: the stream is
/// unpacked to see where it ends.
///
/// # Errors
/// If it is not a bundle, or one that cannot be read up to where its size becomes known.
pub fn extent<'a>(prefix: &dyn Fn(usize) -> Option<&'a [u8]>) -> Result<u64, BundleError> {
    let start = prefix(COMPRESSED_MAGIC.len()).unwrap_or_default();
    if start == COMPRESSED_MAGIC {
        #[cfg(feature = "exec")]
        return compressed::extent(prefix);
        #[cfg(not(feature = "exec"))]
        return Err(BundleError::NotBuilt);
    }
    if start != &MAGIC[..start.len()] || prefix(MAGIC.len()) != Some(MAGIC) {
        return Err(BundleError::Magic { given: start.to_vec() });
    }
    let mut end = 0;
    let header = table(prefix, |_, range| end = end.max(range.end))?;
    Ok(end.max(header))
}

/// The contents of a compressed bundle, which are an uncompressed one.
///
/// A stream may unpack into 64 MiB and 256 times its size, and never into more than 4 GiB.
///
/// # Errors
/// See [`BundleError`].
#[cfg(feature = "exec")]
pub fn decompress(bytes: &[u8]) -> Result<Vec<u8>, BundleError> {
    compressed::decompress(bytes)
}

/// Reads a bundle's header, and gives each entry's name and place to `entry`; bytes of the header.
fn table<'a>(
    prefix: &dyn Fn(usize) -> Option<&'a [u8]>,
    mut entry: impl FnMut(&'a [u8], Range<u64>),
) -> Result<u64, BundleError> {
    const MAX_NAME: u64 = 4096;
    let truncated = BundleError::Truncated { part: "its header" };
    let get = |end: usize| prefix(end).ok_or(truncated.clone());
    let u64_at = |at: usize| {
        let bytes = get(at + 8)?;
        Ok(bytes[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
    };
    let within = |field, value, limit| match value <= limit {
        true => Ok(value),
        false => Err(BundleError::Field { field, value, limit }),
    };
    let count = u64_at(MAGIC.len())?;
    let mut at = MAGIC.len() + 8;
    for _ in 0..count {
        let offset = within("offset of an entry", u64_at(at)?, MAX_BYTES)?;
        let size = within("size of an entry", u64_at(at + 8)?, MAX_BYTES - offset)?;
        let length = within("length of an entry's name", u64_at(at + 16)?, MAX_NAME)? as usize;
        at += 24;
        let name = &get(at + length)?[at..];
        at += length;
        within("header's size", at as u64, MAX_BYTES)?;
        entry(name, offset..offset + size);
    }
    Ok(at as u64)
}

/// A code object in a bundle: its name, and where it lies.
struct Entry {
    name: String,
    range: Range<usize>,
}

impl Entry {
    /// The target that its name ends with.
    fn target(&self) -> &str {
        target_of(&self.name).unwrap_or("")
    }

    /// Whether a loader takes it for a device of target `gfx`: for its very target, or for a generic one.
    fn is_meant(&self, gfx: Gfx, generic: bool) -> bool {
        let target = self.target();
        let covers = CodeTarget::from_name(target)
            .is_ok_and(|named| named.covers(gfx) && matches!(named, CodeTarget::Generic(_)) == generic);
        covers && Features::from_name(target).fit(Features::of_device(gfx))
    }
}

/// The target that a triple ends with, as clang writes it now (`amdgcn-amd-amdhsa--gfx906`), has written it
/// (`…-amdhsa-gfx906`, `…-amdhsa-unknown-gfx906`), and LLVM does from 23 on (`amdgpu9.06-amd-amdhsa-unknown-gfx906`).
pub(crate) fn target_of(triple: &str) -> Option<&str> {
    let (_, target) = triple.split_once("amd-amdhsa")?;
    let target = target.trim_start_matches('-');
    Some(target.strip_prefix("unknown-").unwrap_or(target))
}

/// The code objects for AMDGPU in an uncompressed bundle.
fn entries(bytes: &[u8]) -> Result<Vec<Entry>, BundleError> {
    let mut entries = Vec::new();
    let mut whole = true;
    let prefix = |length: usize| bytes.get(..length);
    table(&prefix, |name, range| {
        let range = range.start as usize..range.end as usize;
        whole &= range.end <= bytes.len();
        let name = String::from_utf8_lossy(name);
        // Not `hip-spirv64-amd-amdhsa--amdgcnspirv`; the host's entry has no contents.
        if !range.is_empty() && target_of(&name).is_some_and(|target| !target.ends_with("spirv")) {
            entries.push(Entry { name: name.into_owned(), range });
        }
    })?;
    match whole {
        true => Ok(entries),
        false => Err(BundleError::Truncated { part: "an entry" }),
    }
}

/// The entries that are meant for `gfx`, or all without one.
fn meant(entries: &[Entry], gfx: Option<Gfx>) -> Vec<&Entry> {
    let Some(gfx) = gfx else { return entries.iter().collect() };
    // A loader prefers code for the very target to code for a generic one.
    let of_kind = |generic| entries.iter().filter(move |entry| entry.is_meant(gfx, generic)).collect();
    let exact: Vec<_> = of_kind(false);
    if exact.is_empty() { of_kind(true) } else { exact }
}

fn none_or_several<'a>(count: usize, entries: impl Iterator<Item = &'a Entry>) -> ObjectError {
    let mut names: Vec<_> = entries.map(|entry| entry.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let more = names.len().saturating_sub(LISTED);
    names.truncate(LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    ObjectError::Bundle { count, triples: names.join(", ") + &more }
}

/// Where the code object lies that an uncompressed bundle has for `gfx`, or its only one.
fn only(bytes: &[u8], gfx: Option<Gfx>) -> Result<Range<usize>, ObjectError> {
    let entries = entries(bytes)?;
    match meant(&entries, gfx)[..] {
        [entry] => Ok(entry.range.clone()),
        ref several => Err(none_or_several(several.len(), entries.iter())),
    }
}

/// The code object that the bundle at the start of `bytes` has for `gfx`, or its only one: bytes, and where in them it
/// lies.
pub(crate) fn select(
    bytes: Cow<'static, [u8]>,
    gfx: Option<Gfx>,
) -> Result<(Cow<'static, [u8]>, Range<usize>), ObjectError> {
    if !bytes.starts_with(COMPRESSED_MAGIC) {
        let range = only(&bytes, gfx)?;
        return Ok((bytes, range));
    }
    #[cfg(feature = "exec")]
    {
        // The other targets' code is not kept.
        let mut unpacked = decompress(&bytes)?;
        let range = only(&unpacked, gfx)?;
        unpacked.truncate(range.end);
        unpacked.drain(..range.start);
        unpacked.shrink_to_fit();
        let all = 0..unpacked.len();
        Ok((unpacked.into(), all))
    }
    #[cfg(not(feature = "exec"))]
    Err(BundleError::NotBuilt.into())
}

/// All code objects of a file: an ELF file for AMDGPU, offload bundles one behind another with zeros between them, or a
/// program or library of the host with such bundles in its section `.hip_fatbin`.
pub struct FatBinary<'a> {
    images: Vec<Image<'a>>,
}

/// A bundle, or a bare code object without entries.
struct Image<'a> {
    bytes: Cow<'a, [u8]>,
    entries: Option<Vec<Entry>>,
}

impl<'a> FatBinary<'a> {
    /// Finds the code objects, and unpacks what is compressed. They are not parsed yet.
    ///
    /// # Errors
    /// If `bytes` are not any of these, or a bundle among them cannot be read.
    pub fn open(bytes: &'a [u8]) -> Result<FatBinary<'a>, ObjectError> {
        if is_bundle(bytes) {
            return Ok(FatBinary { images: images(bytes)? });
        }
        if let Some(section) = fat_section(bytes) {
            return Ok(FatBinary { images: images(section)? });
        }
        Ok(FatBinary { images: vec![Image { bytes: bytes.into(), entries: None }] })
    }

    /// The bytes of the code objects that are meant for `gfx`, or of all. A bare code object is meant for what it says
    /// itself, which is not looked at here.
    pub fn code_objects(&self, gfx: Option<Gfx>) -> impl Iterator<Item = &[u8]> {
        self.images.iter().flat_map(move |image| {
            let ranges: Vec<_> = match &image.entries {
                None => std::iter::once(0..image.bytes.len()).collect(),
                Some(entries) => meant(entries, gfx).into_iter().map(|entry| entry.range.clone()).collect(),
            };
            ranges.into_iter().map(|range| &image.bytes[range])
        })
    }

    /// The code objects that are meant for `gfx`, or all, parsed. Of those in bundles, what is for targets that the
    /// emulator does not know is left out without `gfx`.
    ///
    /// # Errors
    /// If there is none, or one cannot be parsed.
    pub fn parse(&self, gfx: Option<Gfx>) -> Result<Vec<CodeObject>, ObjectError> {
        let mut objects = Vec::new();
        for bytes in self.code_objects(gfx) {
            let bare = self.images[0].entries.is_none();
            match CodeObject::parse_kept(bytes.to_vec(), gfx) {
                Ok(object) => objects.push(object),
                Err(ObjectError::UnknownGfx(_) | ObjectError::UnknownMachine(_))
                    if gfx.is_none() && !bare => {}
                Err(error) => return Err(error),
            }
        }
        if objects.is_empty() {
            return Err(none_or_several(
                0,
                self.images.iter().flat_map(|image| image.entries.iter().flatten()),
            ));
        }
        Ok(objects)
    }
}

/// The bundles of a program or library that is not for AMDGPU.
fn fat_section(bytes: &[u8]) -> Option<&[u8]> {
    let file = object::read::elf::ElfFile64::<object::Endianness>::parse(bytes).ok()?;
    if file.elf_header().e_machine.get(file.endian()) == object::elf::EM_AMDGPU {
        return None;
    }
    file.section_by_name(FAT_SECTION)?.data().ok()
}

/// The bundles one behind another.
fn images(bytes: &[u8]) -> Result<Vec<Image<'_>>, ObjectError> {
    let mut images = Vec::new();
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        let zeros = rest.iter().take_while(|&&byte| byte == 0).count();
        let rest = &rest[zeros..];
        at += zeros;
        if rest.is_empty() {
            return Ok(images);
        }
        if !is_bundle(rest) {
            let given = rest[..rest.len().min(8)].to_vec();
            return Err(BundleError::Between { offset: at, given }.into());
        }
        let length = extent(&|length| rest.get(..length))?;
        let Some(bundle) = usize::try_from(length).ok().and_then(|length| rest.get(..length)) else {
            return Err(match rest.starts_with(COMPRESSED_MAGIC) {
                true => BundleError::FileSize { claimed: length, given: rest.len() as u64 },
                false => BundleError::Truncated { part: "an entry" },
            }
            .into());
        };
        at += bundle.len();
        let bytes = match bundle.starts_with(COMPRESSED_MAGIC) {
            #[cfg(feature = "exec")]
            true => Cow::Owned(decompress(bundle)?),
            #[cfg(not(feature = "exec"))]
            true => return Err(BundleError::NotBuilt.into()),
            false => Cow::Borrowed(bundle),
        };
        images.push(Image { entries: Some(entries(&bytes)?), bytes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_triple_has_its_target() {
        for (triple, target) in [
            ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", Some("gfx90a:xnack-")),
            ("hip-amdgcn-amd-amdhsa-gfx906", Some("gfx906")),
            ("amdgcn-amd-amdhsa-unknown-gfx906", Some("gfx906")),
            ("amdgpu11.00-amd-amdhsa-unknown-gfx1100", Some("gfx1100")),
            ("hip-spirv64-amd-amdhsa--amdgcnspirv", Some("amdgcnspirv")),
            ("host-x86_64-unknown-linux--", None),
        ] {
            assert_eq!(target_of(triple), target, "{triple}");
        }
    }
}
