//! The program's `decode` command.

use std::io::{BufRead, Result, Write};

use super::{decode, print};
use crate::gfx::Gfx;

/// Reads lines of hexadecimal code and writes the instructions in each as LLVM prints them, one a line.
///
/// A line is a string of bytes in memory order (`050003d501050200`), or bytes (`0x05,0x00,…`) or dwords
/// (`0xd5030005 0x00020501`) separated by commas or spaces; what follows a tab, `#` or `;` is ignored. Bytes that are not
/// an instruction become a line that begins with `invalid:`.
///
/// # Errors
/// If reading or writing fails.
pub fn decode_lines(gfx: Gfx, input: impl BufRead, mut output: impl Write) -> Result<()> {
    for line in input.lines() {
        let line = line?;
        let code = line.split(['\t', '#', ';']).next().unwrap_or_default().trim();
        if code.is_empty() {
            continue;
        }
        let Some(bytes) = parse_code(code) else {
            writeln!(output, "invalid: {code:?} is not hexadecimal code")?;
            continue;
        };
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match decode(gfx, rest) {
                Ok(inst) => {
                    writeln!(output, "{}", print(gfx, &inst, None))?;
                    rest = &rest[usize::from(inst.size)..];
                }
                Err(error) => {
                    writeln!(output, "invalid: {error}")?;
                    break;
                }
            }
        }
    }
    output.flush()
}

fn parse_code(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for word in text.split([',', ' ', '[', ']']).filter(|word| !word.is_empty()) {
        match word.strip_prefix("0x") {
            Some(digits) if digits.len() > 2 => {
                bytes.extend_from_slice(&u32::from_str_radix(digits, 16).ok()?.to_le_bytes());
            }
            Some(digits) => bytes.push(u8::from_str_radix(digits, 16).ok()?),
            None if word.len() % 2 == 0 && word.is_ascii() => {
                for i in (0..word.len()).step_by(2) {
                    bytes.push(u8::from_str_radix(&word[i..i + 2], 16).ok()?);
                }
            }
            None => return None,
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(gfx: Gfx, input: &str) -> String {
        let mut output = Vec::new();
        decode_lines(gfx, input.as_bytes(), &mut output).expect("writing to memory");
        String::from_utf8(output).expect("text")
    }

    #[test]
    fn bytes_and_dwords_are_read_and_several_instructions_a_line() {
        let want = "v_add_f32_e64 v5, v1, v2\n";
        assert_eq!(text(Gfx::Gfx1100, "050003d501050200\tanything"), want);
        assert_eq!(text(Gfx::Gfx1100, "0x05,0x00,0x03,0xd5,0x01,0x05,0x02,0x00"), want);
        assert_eq!(text(Gfx::Gfx1100, "0xd5030005 0x00020501 # comment"), want);
        assert_eq!(text(Gfx::Gfx1100, "0000b0bf 000080bf"), "s_endpgm\ns_nop 0\n");
    }

    #[test]
    fn what_is_no_code_is_named() {
        assert!(text(Gfx::Gfx1100, "xyz0").starts_with("invalid: \"xyz0\""));
        assert!(text(Gfx::Gfx1100, "0500").starts_with("invalid: the code ends within an instruction"));
        assert!(text(Gfx::Gfx1100, "ffffffff").starts_with("invalid: gfx1100 has no instruction"));
    }
}
