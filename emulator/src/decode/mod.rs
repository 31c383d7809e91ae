//! The instruction decoder and LLVM's text for what it decodes.

mod print;

use crate::gfx::Gfx;
use crate::inst::Inst;

pub use print::{Text, print};

/// Bytes that are no instruction of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end within the instruction.
    #[error("the code ends within an instruction: {have} bytes are left, it needs {need}")]
    Truncated {
        /// Bytes that are there.
        have: usize,
        /// Bytes that the instruction takes, as far as known.
        need: usize,
    },
    /// No instruction of the target has this encoding.
    #[error("{gfx} has no instruction with the encoding {word:#010x}")]
    Unknown {
        /// The target.
        gfx: Gfx,
        /// The first dword.
        word: u32,
    },
}

/// Decodes the instruction at the start of `bytes`.
///
/// # Errors
/// If the bytes are no instruction of `gfx`, or end within one.
pub fn decode(gfx: Gfx, bytes: &[u8]) -> Result<Inst, DecodeError> {
    let Some((word, _)) = bytes.split_first_chunk::<4>() else {
        return Err(DecodeError::Truncated { have: bytes.len(), need: 4 });
    };
    Err(DecodeError::Unknown { gfx, word: u32::from_le_bytes(*word) })
}
