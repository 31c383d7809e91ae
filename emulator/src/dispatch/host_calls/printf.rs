//! What a `printf` in device code prints.
//!
//! The format string is in the message's first words, padded to eight bytes, as are strings that are arguments; every other
//! argument is a word of its own. The host's C library formats each conversion.

use std::ffi::{CString, c_char, c_int, c_longlong, c_ulonglong, c_void};

/// The text of a message without its first word, or `None` if it has no meaning: fewer arguments than conversions, or one that
/// C does not have.
pub(super) fn format(message: &[u64]) -> Option<Vec<u8>> {
    let mut arguments = message;
    let format = string(&mut arguments)?;
    let mut text = Vec::new();
    let mut rest = &format[..];
    while let Some(at) = rest.iter().position(|&byte| byte == b'%') {
        text.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(b"%") {
            text.push(b'%');
            rest = after;
            continue;
        }
        let (conversion, after) = Conversion::parse(rest, &mut arguments)?;
        conversion.write(&mut arguments, &mut text)?;
        rest = after;
    }
    text.extend_from_slice(rest);
    Some(text)
}

/// Takes a string, which ends with a zero, off the words.
fn string(words: &mut &[u64]) -> Option<Vec<u8>> {
    let bytes: Vec<u8> =
        words.iter().flat_map(|word| word.to_le_bytes()).take_while(|&byte| byte != 0).collect();
    // With the zero.
    *words = words.get((bytes.len() + 1).div_ceil(8)..)?;
    Some(bytes)
}

fn word(words: &mut &[u64]) -> Option<u64> {
    let (&first, rest) = words.split_first()?;
    *words = rest;
    Some(first)
}

/// What stands between `%` and the end of a conversion.
struct Conversion {
    flags: Vec<u8>,
    width: Option<c_int>,
    precision: Option<c_int>,
    /// Bytes of an integer.
    size: usize,
    kind: u8,
}

/// The widest field, and most digits. A hostile kernel could ask for gigabytes.
const WIDEST: c_int = 1 << 16;

impl Conversion {
    /// The conversion at the beginning of a format, and the rest. `*` takes an argument.
    fn parse<'f>(format: &'f [u8], arguments: &mut &[u64]) -> Option<(Conversion, &'f [u8])> {
        let flags = format.iter().take_while(|byte| b"-+ #0'".contains(byte)).count();
        let (flags, mut rest) = format.split_at(flags);
        let mut flags = flags.to_vec();
        let mut width = number(&mut rest, arguments)?;
        if width.is_some_and(|width| width < 0) {
            flags.push(b'-');
            width = width.map(c_int::wrapping_abs);
        }
        let mut precision = None;
        if let Some(after) = rest.strip_prefix(b".") {
            rest = after;
            // One that is negative counts as none.
            precision = Some(number(&mut rest, arguments)?.unwrap_or(0)).filter(|&digits| digits >= 0);
        }
        let length = rest.iter().take_while(|byte| b"hljztLq".contains(byte)).count();
        let (length, rest) = rest.split_at(length);
        let size = match length {
            b"hh" => 1,
            b"h" => 2,
            b"" => 4,
            _ => 8,
        };
        let (&kind, rest) = rest.split_first()?;
        if width.unwrap_or(0).max(precision.unwrap_or(0)) > WIDEST || flags.len() > 16 {
            return None;
        }
        Some((Conversion { flags, width, precision, size, kind }, rest))
    }

    /// Takes the argument and writes it.
    fn write(&self, arguments: &mut &[u64], text: &mut Vec<u8>) -> Option<()> {
        if self.kind == b's' {
            let string = string(arguments)?;
            let shown = self.precision.map_or(string.len(), |most| string.len().min(most as usize));
            return self.print(Value::String(&string[..shown]), text);
        }
        let argument = word(arguments)?;
        let unused = 64 - 8 * self.size as u32;
        let value = match self.kind {
            b'd' | b'i' => Value::Signed((argument << unused) as i64 >> unused),
            b'o' | b'u' | b'x' | b'X' => Value::Unsigned(argument << unused >> unused),
            b'c' => Value::Char(argument as u8),
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => Value::Float(f64::from_bits(argument)),
            b'p' => Value::Pointer(argument),
            // Nothing is written back.
            b'n' => return Some(()),
            _ => return None,
        };
        self.print(value, text)
    }

    /// Lets C's `snprintf` format a value.
    fn print(&self, value: Value<'_>, text: &mut Vec<u8>) -> Option<()> {
        let mut format = vec![b'%'];
        format.extend_from_slice(&self.flags);
        if let Some(width) = self.width {
            format.extend_from_slice(width.to_string().as_bytes());
        }
        let precision = self.precision.filter(|_| !matches!(value, Value::String(_) | Value::Char(_)));
        if let Some(precision) = precision {
            format.extend_from_slice(format!(".{precision}").as_bytes());
        }
        if matches!(value, Value::Signed(_) | Value::Unsigned(_)) {
            format.extend_from_slice(b"ll");
        }
        format.push(self.kind);
        let format = CString::new(format).ok()?;
        let print = |to: *mut c_char, size: usize| -> c_int {
            let format = format.as_ptr();
            // SAFETY: there are `size` bytes at `to`, and the format has one conversion, for an argument of this type.
            unsafe {
                match value {
                    Value::Signed(value) => libc::snprintf(to, size, format, value as c_longlong),
                    Value::Unsigned(value) => libc::snprintf(to, size, format, value as c_ulonglong),
                    Value::Float(value) => libc::snprintf(to, size, format, value),
                    Value::Char(value) => libc::snprintf(to, size, format, c_int::from(value)),
                    Value::Pointer(value) => {
                        let pointer: *const c_void = std::ptr::without_provenance(value as usize);
                        libc::snprintf(to, size, format, pointer)
                    }
                    Value::String(value) => {
                        // It has no zero inside.
                        let value = CString::new(value).unwrap_or_default();
                        libc::snprintf(to, size, format, value.as_ptr())
                    }
                }
            }
        };
        let length = usize::try_from(print(std::ptr::null_mut(), 0)).ok()?;
        let mut bytes = vec![0u8; length + 1];
        print(bytes.as_mut_ptr().cast(), bytes.len());
        text.extend_from_slice(&bytes[..length]);
        Some(())
    }
}

/// The number that a format has here; `*` is an argument.
fn number(rest: &mut &[u8], arguments: &mut &[u64]) -> Option<Option<c_int>> {
    if let Some(after) = rest.strip_prefix(b"*") {
        *rest = after;
        return word(arguments).map(|word| Some(word as c_int));
    }
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, after) = rest.split_at(digits);
    *rest = after;
    if digits.is_empty() {
        return Some(None);
    }
    std::str::from_utf8(digits).ok()?.parse().ok().map(Some)
}

#[derive(Clone, Copy)]
enum Value<'a> {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Char(u8),
    Pointer(u64),
    String(&'a [u8]),
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<u64> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize((text.len() + 1).next_multiple_of(8), 0);
        bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
    }

    fn printed(text: &str, arguments: &[u64]) -> Option<String> {
        format(&[words(text), arguments.to_vec()].concat()).map(|text| String::from_utf8(text).unwrap())
    }

    #[track_caller]
    fn prints(text: &str, arguments: &[u64], expected: &str) {
        assert_eq!(printed(text, arguments).as_deref(), Some(expected), "{text}");
    }

    #[test]
    fn conversions_are_those_of_c() {
        prints("plain", &[], "plain");
        prints("", &[], "");
        prints("100 %%, %d of %i\n", &[3, (-4i64) as u64], "100 %, 3 of -4\n");
        prints("%5d|%-5d|%05d|%+d|% d", &[7, 7, 7, 7, 7], "    7|7    |00007|+7| 7");
        prints("%x %X %#x %o %u", &[255, 255, 255, 8, u64::MAX], "ff FF 0xff 10 4294967295");
        prints("%hhd %hd %d %ld %lld", &[0x1ff; 5], "-1 511 511 511 511");
        prints(
            "%hhu %hu %lu %zu %jd",
            &[u64::MAX; 5],
            "255 65535 18446744073709551615 18446744073709551615 -1",
        );
        let [half, third] = [0.5f64, 1.0 / 3.0].map(f64::to_bits);
        prints(
            "%f %.2f %e %g %a %8.3f|",
            &[half, third, half, third, half, third],
            "0.500000 0.33 5.000000e-01 0.333333 0x1p-1    0.333|",
        );
        prints("%Lf %lf", &[half, half], "0.500000 0.500000");
        prints("%f %F", &[f64::NAN.to_bits(), f64::INFINITY.to_bits()], "nan INF");
        prints("%c%c", &[u64::from(b'o'), u64::from(b'k')], "ok");
        prints("%p", &[0x1234], "0x1234");
        prints("%*d|%-*d|%.*f", &[4, 7, 4, 7, 1, half], "   7|7   |0.5");
        prints("%*d|%.*d", &[(-4i64) as u64, 7, (-1i64) as u64, 7], "7   |7");
        prints("a%nb", &[1], "ab");
    }

    #[test]
    fn strings_are_in_the_message() {
        let text =
            [words("[%s] [%6s] [%.3s] %d"), words("long enough"), words("ab"), words("abcdefghij"), vec![9]];
        let text = String::from_utf8(format(&text.concat()).unwrap()).unwrap();
        assert_eq!(text, "[long enough] [    ab] [abc] 9");
        // A string that is null is a word of zeros.
        prints("[%s]%d", &[0, 5], "[]5");
    }

    #[test]
    fn what_has_no_meaning_prints_nothing() {
        for text in ["%d", "%", "%5", "%y", "%l", "%*d", "%99999999d", "%99999999999999d", "%.99999999f"] {
            let arguments = if text == "%d" { &[][..] } else { &[1] };
            assert_eq!(printed(text, arguments), None, "{text}");
        }
        assert_eq!(format(&[]), None);
        assert_eq!(format(&[u64::MAX]), None, "a format without an end");
    }

    proptest! {
        #[test]
        fn no_message_does_harm(message in proptest::collection::vec(any::<u64>(), 0..12), text in "[%a-z0-9.*#+' -]{0,24}") {
            let _ = format(&message);
            let _ = format(&[words(&text), message].concat());
        }
    }
}
