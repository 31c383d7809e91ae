//! Named barriers (gfx12): waves of a workgroup that have joined one wait for as many signals as it has members.
//!
//! AMD's manual of RDNA4 defines signals and the state that can be read; what initialising, joining and leaving do is as
//! published for gfx1250, where compilers use them: LLVM's `llvm.amdgcn.s.barrier.*`, and the barriers of HipKittens.

use super::isa::Exec;
use super::op::{Flow, Kind, Op, Src, Unit};
use super::salu::handler;
use super::wave::{WaitsFor, slot};
use super::{Env, Wave};
use crate::inst::Inst;

/// Barriers that a number in an instruction can name.
const BARRIERS: usize = 64;
/// The workgroup's own barrier, and the one that only trap handlers may use.
pub(super) const WORKGROUP: i32 = -1;

/// One barrier's state.
#[derive(Clone, Copy, Default)]
pub(super) struct Named {
    valid: bool,
    members: u32,
    signals: u32,
    /// How often it has opened.
    opened: u32,
}

impl Named {
    fn open_if_complete(&mut self) {
        if self.members != 0 && self.signals == self.members {
            self.signals = 0;
            self.opened += 1;
        }
    }

    fn bits(self) -> u32 {
        self.signals << 16 | self.members << 4 | u32::from(self.valid)
    }
}

/// The instruction `inst` on a barrier other than the workgroup's, prepared.
pub(super) fn lookup(inst: &Inst) -> Option<Op> {
    let number = |op: Op| with_number(inst, op);
    Some(match inst.name {
        "s_barrier_init" => number(Op::new::<Init>(Unit::Control, inst))?,
        "s_barrier_join" => number(Op::new::<Join>(Unit::Control, inst))?,
        "s_barrier_leave" => Op::new::<Leave>(Unit::Control, inst),
        "s_barrier_signal" => number(Op::new::<Signal<false>>(Unit::Control, inst))?,
        "s_barrier_signal_isfirst" => number(Op::new::<Signal<true>>(Unit::Control, inst))?,
        // A number from 0 on says that it is a named one; which, the wave knows.
        "s_barrier_wait" if inst.raw[0] as i16 >= 0 => Op::new::<Wait>(Unit::Control, inst),
        "s_get_barrier_state" => {
            let mut op = number(Op::new::<GetState>(Unit::Smem, inst))?;
            op.dst[0] = super::op::Dst::of(inst.dsts().first()?);
            op
        }
        _ => return None,
    })
}

/// The barrier's number goes to source 0.
fn with_number(inst: &Inst, mut op: Op) -> Option<Op> {
    op.src[0] = Src::of(inst.srcs().first()?, Kind::B32);
    Some(op)
}

/// The barrier's number: a constant, or the low bits of M0.
fn number(w: &Wave, op: &Op) -> i32 {
    let value = w.scalar(op.src[0]);
    if op.src[0] == Src::Sgpr(slot::M0) { value as i32 & 0x1f } else { value as i32 }
}

impl Env<'_> {
    /// The barrier of a number above 0; the others are not named barriers.
    fn named(&mut self, number: i32) -> Option<&mut Named> {
        if number <= 0 {
            return None;
        }
        if self.named.is_empty() {
            self.named.resize(BARRIERS, Named::default());
        }
        self.named.get_mut(number as usize)
    }

    /// Whether the named barrier that a wave has joined has opened since it last went on; notes that it goes on now.
    pub(super) fn pass_named(&mut self, w: &mut Wave) -> bool {
        let (joined, passed) = (w.joined, w.joined_passed);
        let opened = self.named(joined.into()).map_or(0, |barrier| barrier.opened);
        if opened > passed {
            w.joined_passed = opened;
            self.order_after(w, joined.into());
        }
        opened > passed
    }
}

/// Waits for the barrier that the wave has joined; without one it does nothing.
struct Wait;
impl Exec for Wait {
    fn exec(w: &mut Wave, env: &mut Env<'_>, _: &Op) -> Flow {
        if w.joined == 0 || env.pass_named(w) {
            return Flow::Next;
        }
        w.waits_on = WaitsFor::Named;
        Flow::Barrier
    }
}

handler! {
    // A count of zero leaves the members as they are.
    Init |w, env, op| {
        let members = w.m0() >> 16 & 0x7f;
        if let Some(barrier) = env.named(number(w, op)) {
            if members != 0 { barrier.members = members }
            (barrier.valid, barrier.signals) = (true, 0);
        }
    }
    Join |w, env, op| {
        let number = number(w, op);
        let opened = env.named(number).map(|barrier| barrier.opened);
        (w.joined, w.joined_passed) = opened.map_or((0, 0), |opened| (number as u8, opened));
    }
    // SCC says whether it was the last member.
    Leave |w, env, _op| {
        let mut is_last = false;
        if let Some(barrier) = env.named(w.joined.into()) {
            is_last = barrier.members == 1;
            barrier.members = barrier.members.saturating_sub(1);
            barrier.open_if_complete();
        }
        w.joined = 0;
        w.set_scc(is_last);
    }
    // 0 is not a barrier, and that of trap handlers (-2) is not for programs.
    Signal<const IS_FIRST: bool> |w, env, op| {
        let number = number(w, op);
        env.order_before(w, number as u64);
        let mut is_first = false;
        if let Some(barrier) = env.named(number) {
            is_first = barrier.signals == 0;
            barrier.signals = (barrier.signals + 1) & 0x7f;
            barrier.open_if_complete();
        }
        if IS_FIRST { w.set_scc(is_first) }
    }
    GetState |w, env, op| {
        let bits = match number(w, op) {
            WORKGROUP => env.arrived << 16 | env.alive << 4 | 1,
            number => env.named(number).map_or(0, |barrier| barrier.bits()),
        };
        w.set_scalar(op.dst[0], bits);
    }
}
