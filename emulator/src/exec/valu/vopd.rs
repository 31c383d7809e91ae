//! Two instructions in one (gfx11, gfx12): both read their sources before either writes.

use super::SCRATCH;
use crate::exec::isa::Exec;
use crate::exec::op::{Dst, Src, Unit};
use crate::exec::{Env, Flow, Op, Wave};
use crate::gfx::Gfx;
use crate::inst::Inst;

pub(super) fn lookup(gfx: Gfx, inst: &Inst) -> Option<Op> {
    let half = |inst: &Inst| Some(super::prepare(gfx, inst, &super::tabled(gfx, inst)?));
    let (mut first, mut second) = (half(inst)?, half(inst.vopd_y.as_deref()?)?);
    let reads = |op: &Op, dst: Dst| {
        op.src.iter().any(|&src| matches!((src, dst), (Src::Vgpr(a), Dst::Vgpr(b)) if a == b))
    };
    if reads(&second, first.dst[0]) {
        std::mem::swap(&mut first, &mut second);
    }
    let mut op = Op::new::<InOrder>(Unit::Valu, inst);
    if reads(&second, first.dst[0]) {
        // Each reads what the other writes: the first result waits.
        op = Op::new::<Crossed>(Unit::Valu, inst);
        op.dst[0] = std::mem::replace(&mut first.dst[0], Dst::Vgpr(SCRATCH));
    }
    first.pair = Some(Box::new(second));
    op.pair = Some(Box::new(first));
    Some(op)
}

#[inline(always)]
fn both(wave: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
    let Some(first) = op.pair.as_deref() else { return Flow::Next };
    let Some(second) = first.pair.as_deref() else { return Flow::Next };
    // SAFETY: `isa` chose both for this machine.
    unsafe {
        (first.run)(wave, env, first);
        (second.run)(wave, env, second)
    }
}

struct InOrder;
impl Exec for InOrder {
    #[inline(always)]
    fn exec(wave: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        both(wave, env, op)
    }
}

struct Crossed;
impl Exec for Crossed {
    #[inline(always)]
    fn exec(wave: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let flow = both(wave, env, op);
        if let Dst::Vgpr(register) = op.dst[0] {
            for half in 0..wave.halves() {
                let result = *wave.vgpr(SCRATCH, half);
                wave.write(register, half, &result);
            }
        }
        flow
    }
}
