//! The vector ALU.

use super::Op;
use crate::gfx::Gfx;
use crate::inst::Inst;

/// The sum of two f16.
pub(crate) fn add_f16(a: u16, b: u16) -> u16 {
    let _ = b;
    a
}

/// The sum of two bfloat16.
pub(crate) fn add_bf16(a: u16, b: u16) -> u16 {
    let _ = b;
    a
}

/// The vector instruction `inst`, prepared.
pub(crate) fn lookup(_gfx: Gfx, _inst: &Inst) -> Option<Op> {
    None
}
