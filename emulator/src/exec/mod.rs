//! The execution units.
//!
//! One file per unit; each has `lookup(gfx, &Inst) -> Option<Op>`, which says once, when a code object is
//! prepared, which function executes the instruction and with which operands. `None` means that the unit does
//! not have it: the instruction becomes one that faults, if it is ever reached.
//!
//! How to add an instruction:
//! - Write an [`Exec`](isa::Exec) (or add a line to a table that makes them) whose `exec` does the instruction
//!   for the whole wave, and return `Op::with_operands::<E>(unit, inst, kind)` from `lookup`.
//! - Vector instructions work on one half of the wave at a time: `for half in 0..wave.halves()`, sources through
//!   `wave.row(op.src[0], half, &mut temp)` (dword `n` of a wider one: `op.src[0].dword(n)`), 32 results in a
//!   [`Row`], then `wave.write(register, half, &row)`, which honours EXEC. The loops have a fixed trip count
//!   and no branches, so that LLVM turns them into a few vector instructions.
//! - Lane masks are one dword per half: `wave.mask(src, half)`, `wave.set_mask(dst, half, bits)`.
//! - A handler never panics: register numbers are in range by construction ([`Wave`] has room behind the last
//!   register), and anything else that can go wrong is `env.raise(fault, lane)`.

pub(crate) mod isa;
pub(crate) mod op;
pub(crate) mod valu;
pub(crate) mod wave;

pub(crate) use op::{Flow, Op};
pub(crate) use wave::{Row, Wave};

use crate::fault::Fault;
use crate::gfx::Gfx;
use crate::inst::Inst;

/// A code object's instructions, prepared.
pub(crate) struct Code {
    /// One for each dword of the text, from the image's first byte on.
    pub ops: Vec<Op>,
    /// The instructions as decoded; [`Op::inst`] indexes it.
    pub insts: Vec<Inst>,
    pub gfx: Gfx,
}

/// What a wave shares with the others of its workgroup, and with the machine.
pub(crate) struct Env<'m> {
    pub code: &'m Code,
    pub gfx: Gfx,
    /// The workgroup's LDS.
    pub lds: Vec<u8>,
    /// Perturbs results that the ISA does not define to the last bit, within their stated error.
    pub perturb: Option<u64>,
    /// What went wrong, and in which lane.
    pub fault: Option<(Box<Fault>, Option<u32>)>,
}

impl Env<'_> {
    /// Notes what went wrong, in which lane if it is one's doing.
    #[cold]
    pub fn raise(&mut self, fault: Fault, lane: Option<u32>) -> Flow {
        self.fault = Some((Box::new(fault), lane));
        Flow::Fault
    }
}
