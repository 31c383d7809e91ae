//! Code objects as older releases of ROCm take them.
//!
//! AMD's libraries before ROCm 5.3 (libamd_comgr) know ELF headers up to version 4, although HIP knows what metadata of version 5
//! says. Before ROCm 6.1 HIP takes the argument `hidden_dynamic_lds_size`, which LLVM lists for kernels with launch-sized LDS, for
//! one that the program gives, and reads behind the program's arguments. No kernel here reads it: it becomes `hidden_none`.

use std::borrow::Cow;

/// Releases as `hipRuntimeGetVersion` gives them: major number times ten million, minor one times 100,000, and a patch level.
const HEADERS_OF_VERSION_5: i32 = 50_300_000;
const LDS_SIZES: i32 = 60_100_000;

/// `EI_ABIVERSION`, and its values for code objects of versions 4 and 5.
const ABI_VERSION: usize = 8;
const VERSION_4: u8 = 2;
const VERSION_5: u8 = 3;

const OFFSET: &[u8] = b"\xa7.offset";
/// What follows an argument's offset in the metadata, which is MessagePack: a size of 4, and the kind.
const REST: &[u8] = b"\xa5.size\x04\xab.value_kind\xb7hidden_dynamic_lds_size";

/// The code object for a runtime of this release: itself, unless that is too old for it.
pub(crate) fn adapt(bytes: &[u8], runtime: i32) -> Cow<'_, [u8]> {
    let is_elf = bytes.starts_with(b"\x7fELF") && bytes.len() > ABI_VERSION;
    if !is_elf || runtime >= LDS_SIZES {
        return Cow::Borrowed(bytes);
    }
    let mut adapted = Cow::Borrowed(bytes);
    if runtime < HEADERS_OF_VERSION_5 && bytes[ABI_VERSION] == VERSION_5 {
        adapted.to_mut()[ABI_VERSION] = VERSION_4;
    }
    let mut start = 0;
    while let Some(found) = bytes[start..].windows(REST.len()).position(|window| window == REST) {
        let at = start + found;
        start = at + REST.len();
        if let Some((from, argument)) = without_lds_size(bytes, at) {
            adapted.to_mut()[from..start].copy_from_slice(&argument);
        }
    }
    adapted
}

/// An argument's description without the kind that old releases do not know, in as many bytes, and where it begins. `at` is
/// behind its offset. MessagePack has several lengths for a number and for a text: longer ones take up what the shorter
/// name leaves.
fn without_lds_size(bytes: &[u8], at: usize) -> Option<(usize, Vec<u8>)> {
    let before = &bytes[..at];
    // A number in one byte, or behind a byte that says how many follow.
    let (width, offset) = match *before {
        [.., small] if small < 0x80 && before[..at - 1].ends_with(OFFSET) => (1, u64::from(small)),
        [.., 0xcc, byte] if before[..at - 2].ends_with(OFFSET) => (2, u64::from(byte)),
        [.., 0xcd, high, low] if before[..at - 3].ends_with(OFFSET) => {
            (3, u64::from(high) << 8 | u64::from(low))
        }
        _ => return None,
    };
    let mut argument = vec![0xcf];
    argument.extend(offset.to_be_bytes());
    argument.extend(b"\xa5.size\xce\0\0\0\x04\xab.value_kind");
    argument.extend(match width {
        1 => &b"\xab"[..],
        2 => b"\xd9\x0b",
        _ => b"\xda\0\x0b",
    });
    argument.extend(b"hidden_none");
    debug_assert_eq!(argument.len(), width + REST.len());
    Some((at - width, argument))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_of_each_width_leave_room_for_the_other_name() {
        for offset in [&b"\x40"[..], b"\xcc\x80", b"\xcd\x01\x20"] {
            let before = [&b"\x7fELF\x02\x01\x01\x40\x03..........\x83"[..], OFFSET].concat();
            let object = [&before, offset, REST, b"\x84.after"].concat();
            let adapted = adapt(&object, 60_032_830);
            assert_eq!(adapted.len(), object.len());
            assert!(
                adapted.starts_with(&before) && adapted.ends_with(b"hidden_none\x84.after"),
                "{adapted:?}"
            );
            let value = adapted[before.len() + 1..].first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
            let expected = offset.iter().skip(usize::from(offset.len() > 1));
            assert_eq!(value, Some(expected.fold(0, |value, byte| value << 8 | u64::from(*byte))));
            assert_eq!(adapted[ABI_VERSION], VERSION_5);
        }
        // Not an argument's description.
        let other = [b"\x7fELF.......", REST].concat();
        assert_eq!(adapt(&other, 0), other);
    }

    #[cfg(feature = "kernels")]
    #[test]
    fn kernels_are_the_same_but_for_what_old_releases_do_not_know() {
        use amdgpu_emulator::{ArgKind, CodeObject, HiddenArg};
        let mut without = 0;
        for object in crate::kernels::MODULES.iter().flat_map(|module| module.objects()) {
            let Ok(code) = CodeObject::parse(object.bytes) else { continue };
            assert!(matches!(adapt(object.bytes, 60_140_091), Cow::Borrowed(_)));
            let adapted = adapt(object.bytes, 50_221_153);
            assert_eq!((object.bytes[ABI_VERSION], adapted[ABI_VERSION]), (VERSION_5, VERSION_4));
            let adapted = CodeObject::parse(&adapted).unwrap();
            assert_eq!(adapted.kernels().len(), code.kernels().len());
            for (new, old) in adapted.kernels().iter().zip(code.kernels()) {
                let mut expected = old.clone();
                for arg in &mut expected.args {
                    if arg.kind == ArgKind::Hidden(HiddenArg::DynamicLdsSize) {
                        arg.kind = ArgKind::Hidden(HiddenArg::None);
                        without += 1;
                    }
                }
                assert_eq!(*new, expected);
            }
        }
        let objects = crate::kernels::MODULES.iter().map(|module| module.objects().len()).sum::<usize>();
        assert!(objects == 0 || without > 0);
    }
}
