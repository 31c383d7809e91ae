//! Code objects given by a bare pointer: how many bytes they are, from their own headers.

use std::ffi::c_void;

use amdgpu_emulator::{BundleError, bundle};

use crate::error::Error;

const ELF_MAGIC: &[u8] = b"\x7fELF";
/// No code object is larger; a header that says so is not believed.
const MAX_BYTES: u64 = 1 << 32;

/// The bytes of the code object or offload bundle at `image`.
///
/// # Safety
/// `image` is null, or points to one of those, whole; or to at least 64 readable bytes of anything else.
pub(crate) unsafe fn bytes_at<'a>(image: *const c_void) -> Result<&'a [u8], Error> {
    let wrong = |problem: String| Error::Load(problem);
    // Nothing is ever mapped in the first page, and the pointer of an empty slice is a small number.
    if (image as usize) < 4096 {
        return Err(match image.is_null() {
            true => Error::Null("image"),
            false => wrong(format!("{:#x} is not the address of a code object", image as usize)),
        });
    }
    let start = image.cast::<u8>();
    // SAFETY: the caller's contract, for `length` bytes that the headers vouch for.
    let prefix = |length: usize| Some(unsafe { std::slice::from_raw_parts(start, length) });
    let length = length(prefix)?;
    // SAFETY: as above.
    Ok(unsafe { std::slice::from_raw_parts(start, length) })
}

/// Checks that a code object or offload bundle is whole: that all that its headers speak of lies within `bytes`. What
/// takes a bare pointer to one, such as [`hipModuleLoadData`](crate::hipModuleLoadData), has to believe the headers.
///
/// # Errors
/// If it ends before what its headers speak of, or is neither.
pub fn check_image(bytes: &[u8]) -> Result<(), Error> {
    let length = length(|length| bytes.get(..length))?;
    if length > bytes.len() {
        return Err(Error::Load(format!("its headers claim {length} bytes; there are {}", bytes.len())));
    }
    Ok(())
}

/// How many bytes the headers account for. `prefix` has the first of them.
fn length<'a>(prefix: impl Fn(usize) -> Option<&'a [u8]>) -> Result<usize, Error> {
    let wrong = |problem: String| Error::Load(problem);
    let magic = prefix(4).ok_or_else(|| wrong("it has less than 4 bytes".to_owned()))?;
    if magic != ELF_MAGIC {
        return match bundle::extent(&prefix) {
            Ok(length) => Ok(length as usize),
            Err(BundleError::Magic { .. }) => Err(wrong(format!(
                "it starts with {magic:02x?}; an ELF file or a Clang offload bundle is expected"
            ))),
            Err(error) => Err(Error::Image(error.into())),
        };
    }
    match elf_length(prefix) {
        Some(length) if length <= MAX_BYTES => Ok(length as usize),
        Some(length) => Err(wrong(format!("its headers claim {length} bytes"))),
        None => Err(wrong("its headers are inconsistent, or it ends within them".to_owned())),
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> u64 {
    u16_at(bytes, at) | u16_at(bytes, at + 2) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u32_at(bytes, at) | u32_at(bytes, at + 4) << 32
}

/// An ELF file ends where the last of its header tables, sections and segments does.
fn elf_length<'a>(prefix: impl Fn(usize) -> Option<&'a [u8]>) -> Option<u64> {
    const NOBITS: u64 = 8;
    let header = prefix(64)?;
    let (segments, sections) = (u64_at(header, 32), u64_at(header, 40));
    let (segment_size, segment_count) = (u16_at(header, 54), u16_at(header, 56));
    let (section_size, section_count) = (u16_at(header, 58), u16_at(header, 60));
    if header[4] != 2 || (segment_count > 0 && segment_size < 56) || (section_count > 0 && section_size < 64)
    {
        return None;
    }
    let segments_end = segments.checked_add(segment_size * segment_count)?;
    let sections_end = sections.checked_add(section_size * section_count)?;
    let mut end = segments_end.max(sections_end).max(64);
    if end > MAX_BYTES {
        return Some(end);
    }
    let tables = prefix(end as usize)?;
    for index in 0..segment_count {
        let at = (segments + index * segment_size) as usize;
        end = end.max(u64_at(tables, at + 8).checked_add(u64_at(tables, at + 32))?);
    }
    for index in 0..section_count {
        let at = (sections + index * section_size) as usize;
        if u32_at(tables, at + 4) != NOBITS {
            end = end.max(u64_at(tables, at + 24).checked_add(u64_at(tables, at + 32))?);
        }
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(bytes: &[u8]) -> Result<usize, Error> {
        // SAFETY: every test passes at least 64 bytes, or a whole image.
        unsafe { bytes_at(bytes.as_ptr().cast()) }.map(<[u8]>::len)
    }

    #[test]
    fn an_elf_file_ends_with_its_section_table() {
        let mut elf = vec![0u8; 200];
        elf[..5].copy_from_slice(b"\x7fELF\x02");
        elf[40] = 72; // section table
        elf[58] = 64;
        elf[60] = 2;
        assert_eq!(at(&elf).unwrap(), 200);
        assert!(check_image(&elf).is_ok());
        // A section's contents may come after the table.
        elf[72 + 24] = 100;
        elf[72 + 32] = 100;
        elf[136 + 4] = 8;
        elf[136 + 24] = 255;
        assert_eq!(at(&elf).unwrap(), 200);
    }

    #[test]
    fn a_bundle_ends_with_its_last_entry() {
        let mut bundle = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
        bundle.extend(1u64.to_le_bytes());
        bundle.extend(64u64.to_le_bytes());
        bundle.extend(10u64.to_le_bytes());
        bundle.extend(4u64.to_le_bytes());
        bundle.extend(b"host");
        bundle.resize(74, 0);
        assert_eq!(at(&bundle).unwrap(), 74);
    }

    #[test]
    fn an_image_that_ends_too_early_is_refused() {
        let mut elf = vec![0u8; 200];
        elf[..5].copy_from_slice(b"\x7fELF\x02");
        (elf[40], elf[58], elf[60]) = (72, 64, 2);
        for end in 0..200 {
            assert!(matches!(check_image(&elf[..end]), Err(Error::Load(_))), "{end}");
        }
        // A section of 100 bytes at 150.
        (elf[72 + 24], elf[72 + 32]) = (150, 100);
        let error = check_image(&elf).unwrap_err().to_string();
        assert!(error.contains("claim 250 bytes; there are 200"), "{error}");
    }

    #[test]
    fn anything_else_is_refused() {
        assert!(matches!(at(&[7; 64]), Err(Error::Load(_))));
        let mut elf = vec![0xff; 64];
        elf[..5].copy_from_slice(b"\x7fELF\x02");
        assert!(matches!(at(&elf), Err(Error::Load(_))));
        // SAFETY: neither pointer is read through.
        unsafe {
            assert!(matches!(bytes_at(std::ptr::null()), Err(Error::Null(_))));
            assert!(matches!(bytes_at(std::ptr::dangling::<c_void>()), Err(Error::Load(_))));
        }
    }
}
