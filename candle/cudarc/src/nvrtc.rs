//! What a module is loaded from. There is no compiler at run time.

use std::fmt;
use std::path::{Path, PathBuf};

/// What [`CudaContext::load_module`](crate::driver::CudaContext::load_module) takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ptx(pub(crate) Source);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// What stands for a module: as `candle_kernels::Module::ptx`, `candle_amdgpu::Module::ptx` or [`code_object_text`] has it.
    Text(String),
    /// A code object.
    File(PathBuf),
    /// A code object.
    Bytes(Vec<u8>),
}

impl Ptx {
    /// A module from source text: here what `candle_amdgpu::Module::ptx` or [`code_object_text`] returns.
    pub fn from_src(source: impl Into<String>) -> Ptx {
        Ptx(Source::Text(source.into()))
    }

    /// A module from a file: here a code object (ELF) for the device's target.
    pub fn from_file(path: impl AsRef<Path>) -> Ptx {
        Ptx(Source::File(path.as_ref().to_path_buf()))
    }

    /// A module from bytes: here a code object (ELF) for the device's target.
    pub fn from_binary(bytes: Vec<u8>) -> Ptx {
        Ptx(Source::Bytes(bytes))
    }
}

impl From<&str> for Ptx {
    fn from(source: &str) -> Ptx {
        Ptx::from_src(source)
    }
}

impl From<String> for Ptx {
    fn from(source: String) -> Ptx {
        Ptx::from_src(source)
    }
}

/// What the text of a code object begins with; its bytes follow in base64.
const BASE64: &str = "candle-amdgpu:base64:";

/// A code object as a text, for interfaces that take the text of a PTX program, such as Candle's `get_or_load_custom_func`.
///
/// The bytes are those of an ELF file, or of a Clang offload bundle with code objects for several targets, as hipcc's `--genco` and
/// `--cuda-device-only` write them. The text is `candle-amdgpu:base64:` and the bytes in base64 (RFC 4648); spaces and line ends in it
/// are skipped. So a shell can write it too, for `include_str!`:
///
/// ```sh
/// (printf candle-amdgpu:base64:; base64 kernel.hsaco) > kernel.txt
/// ```
pub fn code_object_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(BASE64.len() + bytes.len().div_ceil(3) * 4);
    text.push_str(BASE64);
    for group in bytes.chunks(3) {
        let byte = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= group.len() { digit.into() } else { '=' });
        }
    }
    text
}

/// The digits of base64, in order.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The bytes that a text of [`code_object_text`] stands for, or what is wrong with it; none for any other text.
pub(crate) fn bytes_of(text: &str) -> Option<Result<Vec<u8>, String>> {
    let text = text.strip_prefix(BASE64)?;
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut word, mut digits, mut padding) = (0_u32, 0, 0);
    for (at, char) in text.bytes().enumerate().filter(|(_, char)| !char.is_ascii_whitespace()) {
        let digit = match char {
            b'A'..=b'Z' => char - b'A',
            b'a'..=b'z' => char - b'a' + 26,
            b'0'..=b'9' => char - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => 0,
            _ => return Some(Err(format!("byte {at} behind {BASE64} is no digit of base64"))),
        };
        if char == b'=' {
            padding += 1;
        } else if padding > 0 {
            return Some(Err(format!(
                "there are digits of base64 behind its end, at byte {at} behind {BASE64}"
            )));
        }
        word = word << 6 | u32::from(digit);
        digits += 1;
        if digits == 4 {
            let [_, group @ ..] = word.to_be_bytes();
            bytes.extend_from_slice(&group[..3_usize.saturating_sub(padding)]);
            (word, digits) = (0, 0);
        }
    }
    if digits != 0 || padding > 2 {
        return Some(Err(format!("its base64 is cut off: {} bytes behind {BASE64}", text.len())));
    }
    Some(Ok(bytes))
}

/// Why CUDA C++ is not compiled: there is no compiler of it here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompileError {
    /// The only reason.
    NotOffered,
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "candle-amdgpu's cudarc does not compile CUDA C++: write the kernel in Rust (`cargo xtask new --candle NAME` makes such a \
             crate), and load `MODULE.ptx()`; or compile it with hipcc, and load its code object by `Ptx::from_binary` or `Ptx::from_file`",
        )
    }
}

/// How NVRTC would compile. None of it makes a difference here.
#[derive(Clone, Debug, Default)]
pub struct CompileOptions {
    /// Whether denormals become zero.
    pub ftz: Option<bool>,
    /// Whether roots are exact.
    pub prec_sqrt: Option<bool>,
    /// Whether quotients are exact.
    pub prec_div: Option<bool>,
    /// Whether products and sums are fused.
    pub fmad: Option<bool>,
    /// Other options.
    pub options: Vec<String>,
    /// Whether all of this is fast.
    pub use_fast_math: Option<bool>,
    /// The most registers.
    pub maxrregcount: Option<usize>,
    /// Folders of headers.
    pub include_paths: Vec<String>,
    /// The target.
    pub arch: Option<&'static str>,
    /// The name of the program.
    pub name: Option<String>,
}

/// Compiles CUDA C++, which cannot be done here.
///
/// # Errors
/// Always: its text says what to do instead.
pub fn compile_ptx<S: AsRef<str>>(_src: S) -> Result<Ptx, CompileError> {
    Err(CompileError::NotOffered)
}

/// The same with options.
///
/// # Errors
/// Always.
pub fn compile_ptx_with_opts<S: AsRef<str>>(_src: S, _opts: CompileOptions) -> Result<Ptx, CompileError> {
    Err(CompileError::NotOffered)
}

impl std::error::Error for CompileError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_survive_as_text() {
        let bytes: Vec<u8> = (0..=255).chain([0, 255, 254]).collect();
        for len in 0..bytes.len() {
            let text = code_object_text(&bytes[..len]);
            assert_eq!(bytes_of(&text).unwrap().unwrap(), bytes[..len], "{len} bytes");
        }
        // The examples of RFC 4648.
        let examples = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (len, expected) in examples.into_iter().enumerate() {
            assert_eq!(code_object_text(&b"foobar"[..len]), format!("{BASE64}{expected}"));
        }
    }

    #[test]
    fn a_program_in_cuda_is_refused_with_what_to_do() {
        let error = compile_ptx_with_opts("__global__ void f() {}", CompileOptions::default()).unwrap_err();
        assert_eq!(compile_ptx("").unwrap_err(), error);
        assert!(error.to_string().contains("write the kernel in Rust"), "{error}");
    }

    #[test]
    fn lines_are_joined_and_damage_is_named() {
        assert_eq!(bytes_of("candle-amdgpu:base64:Zm9v\nYm Fy\r\n").unwrap().unwrap(), b"foobar");
        assert!(bytes_of("Zm9v").is_none());
        for (text, error) in [
            ("Zm9vY", "cut off"),
            ("Zm9vYg=", "cut off"),
            ("Z===", "cut off"),
            ("Zg==Zg==", "behind its end, at byte 4"),
            ("Zm_v", "byte 2"),
        ] {
            let reason = bytes_of(&format!("{BASE64}{text}")).unwrap().unwrap_err();
            assert!(reason.contains(error), "{text}: {reason}");
        }
    }
}
