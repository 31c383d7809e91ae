//! Global wave sync (gfx9 to gfx11): 64 counters that waves of the whole device wait on, as barriers or as semaphores.
//!
//! A barrier's first value is the number of waves less one; the wave that comes last gives that of the next. The rules are
//! those of AMD's manuals, and of the public tests of AMD's emulator rocjitsu (`ds_gws_test.cpp`). Counters outlive
//! launches.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::isa::Exec;
use super::op::{Flow, Kind, Op, Src, Unit};
use super::salu::handler;
use super::wave::WaitsFor;
use super::{Env, Wave};
use crate::inst::Inst;

const RESOURCES: usize = 64;
/// In check mode the resources' place among what orders waves, behind those of named barriers.
const PLACES: u64 = 64;

#[derive(Clone, Copy, Default)]
struct Resource {
    counter: u32,
    /// How often it has been released as a barrier.
    phase: u32,
    /// Waves that wait for a credit.
    queued: u32,
}

/// The device's resources.
pub(crate) struct Gws(Mutex<[Resource; RESOURCES]>);

impl Default for Gws {
    fn default() -> Gws {
        Gws(Mutex::new([Resource::default(); RESOURCES]))
    }
}

impl Gws {
    fn lock(&self) -> MutexGuard<'_, [Resource; RESOURCES]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prepares the barrier of a cooperative launch's workgroups, as AMD's runtime does: resource 0, for one more than `others`.
    pub fn begin_barrier(&self, others: u32) {
        self.lock()[0].counter = others;
    }

    /// Makes them as after a reset of the device.
    pub fn reset(&self) {
        *self.lock() = [Resource::default(); RESOURCES];
    }
}

/// Whether an instruction is one of them.
pub(crate) fn is_sync(inst: &Inst) -> bool {
    inst.name.starts_with("ds_gws_")
}

/// The instruction `inst`, prepared.
pub(super) fn lookup(inst: &Inst) -> Option<Op> {
    let mut op = match inst.name {
        "ds_gws_init" => Op::new::<Init>(Unit::Lds, inst),
        "ds_gws_sema_v" => Op::new::<Add<false>>(Unit::Lds, inst),
        "ds_gws_sema_br" => Op::new::<Add<true>>(Unit::Lds, inst),
        "ds_gws_sema_p" => Op::new::<Take>(Unit::Lds, inst),
        "ds_gws_sema_release_all" => Op::new::<ReleaseAll>(Unit::Lds, inst),
        "ds_gws_barrier" => Op::new::<Barrier>(Unit::Lds, inst),
        _ => return None,
    };
    if let Some(value) = inst.srcs().first() {
        op.src[0] = Src::of(value, Kind::B32);
    }
    op.imm = u64::from(inst.mods.offset as u32);
    Some(op)
}

/// The resource that an instruction is about.
fn resource(w: &Wave, op: &Op) -> u8 {
    ((w.m0() >> 16).wrapping_add(op.imm as u32) & 63) as u8
}

/// The operand in the first lane that is on; in lane 0 if none is.
fn value(w: &Wave, op: &Op) -> u32 {
    match op.src[0] {
        Src::Vgpr(register) => w.lane(register, w.exec64().trailing_zeros() as usize % 64),
        other => w.scalar(other),
    }
}

impl Env<'_> {
    /// Whether a wave that waits for a resource may go on; takes the credit that it has waited for.
    pub(super) fn pass_global(&mut self, w: &Wave) -> bool {
        let mut resources = self.memory.gws.lock();
        let (number, passes) = match w.waits_on {
            WaitsFor::GlobalBarrier { resource, phase } => {
                (resource, resources[usize::from(resource)].phase != phase)
            }
            WaitsFor::GlobalSemaphore { resource } => {
                let of = &mut resources[usize::from(resource)];
                let passes = of.counter != 0;
                of.counter -= u32::from(passes);
                of.queued -= u32::from(passes).min(of.queued);
                (resource, passes)
            }
            _ => return true,
        };
        drop(resources);
        if passes {
            self.order_after(w, PLACES + u64::from(number));
        }
        passes
    }
}

struct Take;
impl Exec for Take {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let number = resource(w, op);
        env.memory.gws.lock()[usize::from(number)].queued += 1;
        w.waits_on = WaitsFor::GlobalSemaphore { resource: number };
        if env.pass_global(w) { Flow::Next } else { Flow::Barrier }
    }
}

struct Barrier;
impl Exec for Barrier {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let (number, next) = (resource(w, op), value(w, op));
        env.order_before(w, PLACES + u64::from(number));
        let phase = {
            let of = &mut env.memory.gws.lock()[usize::from(number)];
            let phase = of.phase;
            if of.counter == 0 {
                (of.counter, of.phase) = (next, phase.wrapping_add(1));
            } else {
                of.counter -= 1;
            }
            phase
        };
        w.waits_on = WaitsFor::GlobalBarrier { resource: number, phase };
        if env.pass_global(w) { Flow::Next } else { Flow::Barrier }
    }
}

handler! {
    Init |w, env, op| {
        env.memory.gws.lock()[usize::from(resource(w, op))].counter = value(w, op);
    }
    Add<const MANY: bool> |w, env, op| {
        let number = resource(w, op);
        env.order_before(w, PLACES + u64::from(number));
        let by = if MANY { value(w, op) } else { 1 };
        let of = &mut env.memory.gws.lock()[usize::from(number)];
        of.counter = of.counter.wrapping_add(by);
    }
    // As many credits as waves wait.
    ReleaseAll |w, env, op| {
        let number = resource(w, op);
        env.order_before(w, PLACES + u64::from(number));
        let of = &mut env.memory.gws.lock()[usize::from(number)];
        of.counter = of.queued;
    }
}
