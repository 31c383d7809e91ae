//! The vector ALU.

use super::Op;
use crate::gfx::Gfx;
use crate::inst::Inst;

/// The vector instruction `inst`, prepared.
pub(crate) fn lookup(_gfx: Gfx, _inst: &Inst) -> Option<Op> {
    None
}
