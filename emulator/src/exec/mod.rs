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

mod atomic;
pub(crate) mod check;
mod code;
mod control;
mod ds;
mod flat;
pub(crate) mod gws;
pub(crate) mod isa;
#[cfg(all(target_arch = "x86_64", unix))]
pub(crate) mod jit;
mod lanes;
mod mubuf;
mod named;
pub(crate) mod op;
pub(crate) mod pressure;
mod profile;
mod salu;
mod salu_float;
mod smem;
#[cfg(test)]
mod tests;
mod transfer;
pub(crate) mod valu;
pub(crate) mod wave;

pub(crate) use code::{Code, Named};
pub(crate) use op::{Flow, Op};
pub(crate) use profile::Tally;
pub(crate) use wave::{Row, Wave};

use crate::fault::{Access, Fault, Nearest};
use crate::gfx::Gfx;
use crate::machine::Interrupt;
use crate::memory::{self, Aliases, View};
use crate::trace::Recorder;
use wave::WaitsFor;

/// What a wave shares with the others of its workgroup, and with the machine.
pub(crate) struct Env<'m> {
    pub code: &'m Code,
    pub gfx: Gfx,
    /// Load address of the code object.
    pub base: u64,
    /// Allocations at launch.
    pub view: View,
    /// Aliases at launch.
    aliases: Aliases,
    memory: &'m memory::Memory,
    /// The range that an instruction last accessed, for a few instructions: start, and bytes.
    hits: [(u64, u64); 64],
    /// The workgroup's LDS.
    pub lds: Vec<u8>,
    /// The workgroup's scratch memory: where it is, and bytes.
    pub scratch: (u64, u64),
    /// So many bytes of each lane's scratch memory may have been accessed.
    pub scratch_used: u32,
    /// The named barriers; empty until one is used.
    named: Vec<named::Named>,
    /// Workgroup barrier: waves that have arrived, and how often it has opened.
    pub arrived: u32,
    pub opened: u32,
    /// Waves of the workgroup.
    pub waves: u32,
    /// Waves of the workgroup that have not ended.
    pub alive: u32,
    /// Perturbs results that the ISA does not define to the last bit, within their stated error.
    pub perturb: Option<u64>,
    /// What `s_memtime` and its kin read, the same in every run: instructions that the workgroup's waves have executed,
    /// without those of the wave whose turn it is. Theirs are added: see [`Env::now`].
    pub clock: u64,
    /// What hears of waves that interrupt the host.
    pub interrupt: Option<&'m Interrupt>,
    /// Profile mode's counts.
    pub profile: Option<Tally>,
    /// What hears of instructions and accesses, and the wave whose turn it is.
    pub trace: Option<(Box<dyn Recorder>, u32)>,
    /// Check mode's knowledge.
    pub check: Option<Box<check::Check<'m>>>,
    /// What went wrong, and in which lane.
    pub fault: Option<(Box<Fault>, Option<u32>)>,
}

impl<'m> Env<'m> {
    /// An environment for workgroups with `lds` bytes of LDS.
    pub fn new(
        code: &'m Code,
        base: u64,
        memory: &'m memory::Memory,
        lds: u32,
        perturb: Option<u64>,
    ) -> Self {
        Env {
            code,
            gfx: code.gfx,
            base,
            view: memory.reach(),
            aliases: memory.aliases(),
            memory,
            hits: [(0, 0); 64],
            lds: vec![0; lds as usize],
            scratch: (0, 0),
            scratch_used: 0,
            named: Vec::new(),
            arrived: 0,
            opened: 0,
            waves: 0,
            alive: 0,
            perturb,
            clock: 0,
            interrupt: None,
            profile: None,
            trace: None,
            check: None,
            fault: None,
        }
    }

    /// Makes it ready for the next workgroup, of `waves` waves, whose scratch memory is cleared.
    pub fn begin_workgroup(&mut self, waves: u32, scratch: (u64, u64)) {
        (self.scratch, self.scratch_used) = (scratch, 0);
        self.lds.fill(0);
        self.named.clear();
        (self.arrived, self.opened, self.waves, self.alive, self.clock) = (0, 0, waves, waves, 0);
    }

    /// Notes what went wrong, and the lane that caused it if there is one.
    #[cold]
    pub fn raise(&mut self, fault: Fault, lane: Option<u32>) -> Flow {
        self.fault = Some((Box::new(fault), lane));
        Flow::Fault
    }

    /// One more wave is at the barrier; it may go on when the barrier has opened as often as this says.
    pub fn arrive(&mut self) -> u32 {
        let waits_for = self.opened + 1;
        self.arrived += 1;
        self.open_barrier_if_complete();
        waits_for
    }

    /// Check mode: faults if some waves have ended, or `ending` is about to, while others are at the barrier.
    pub fn barrier_divergence(&mut self, ending: bool) -> Option<Flow> {
        let (ended, waiting) =
            (self.waves - self.alive + u32::from(ending), self.arrived + u32::from(!ending));
        if ended == 0 || waiting == 0 {
            return None;
        }
        let check = self.check.as_mut()?;
        let places = check.barrier_places(self.code, self.opened);
        let fault = Fault::BarrierDivergence { waiting, ended, waves: self.waves, places };
        check.found(fault).map(|fault| self.raise(fault, None))
    }

    /// Opens the barrier if every wave that has not ended is there.
    pub fn open_barrier_if_complete(&mut self) {
        if self.arrived != 0 && self.arrived >= self.alive {
            self.arrived = 0;
            self.opened += 1;
        }
    }

    /// Whether a wave that has stopped may go on.
    pub fn may_go_on(&mut self, wave: &mut Wave) -> bool {
        match wave.waits_on {
            WaitsFor::Workgroup => self.opened >= wave.waits_for,
            WaitsFor::Named => self.pass_named(wave),
            WaitsFor::GlobalBarrier { .. } | WaitsFor::GlobalSemaphore { .. } => self.pass_global(wave),
        }
    }

    /// What clocks read: the instructions that the workgroup has executed.
    pub fn now(&self, wave: &Wave) -> u64 {
        self.clock + wave.executed
    }

    /// The allocation that the instruction accessed last: start and bytes.
    #[inline(always)]
    pub fn hit(&self, op: &Op) -> (u64, u64) {
        self.hits[op.inst as usize % 64]
    }

    /// Makes the allocation around `address` the one that the instruction accessed last.
    #[cold]
    pub fn find(&mut self, op: &Op, address: u64) -> Option<(u64, u64)> {
        let found = memory::find(&self.view, address)?;
        let hit = (found.base, found.size);
        self.hits[op.inst as usize % 64] = hit;
        Some(hit)
    }

    /// Whether addresses may have to be looked for among the aliases.
    #[inline(always)]
    pub fn has_aliases(&self) -> bool {
        !self.aliases.is_empty()
    }

    /// Where the host has the bytes of an alias.
    #[cold]
    pub fn alias(&self, address: u64, size: u32) -> Option<u64> {
        memory::host_of(&self.aliases, address, size.into())
    }

    /// Whether `size` bytes at `address` lie in one allocation.
    #[inline(always)]
    pub fn is_valid(&mut self, op: &Op, address: u64, size: u32) -> bool {
        let inside = |(base, bytes): (u64, u64)| {
            let offset = address.wrapping_sub(base);
            offset < bytes && bytes - offset >= u64::from(size)
        };
        inside(self.hit(op)) || self.find(op, address).is_some_and(inside)
    }

    /// Faults for an access outside of every allocation.
    #[cold]
    pub fn out_of_bounds(&mut self, access: Access, address: u64, size: u32, lane: Option<u32>) -> Flow {
        let at = |allocation: memory::Allocation| Nearest {
            offset: address.wrapping_sub(allocation.base) as i64,
            allocation: Some(allocation),
        };
        let fault = match self.memory.freed(address) {
            Some(freed) if memory::find(&self.view, address).is_none() => {
                Fault::UseAfterFree { access, address, size, nearest: at(freed) }
            }
            _ => {
                let nearest = memory::nearest(&self.view, address).cloned().map(at).unwrap_or_default();
                Fault::OutOfBounds { access, address, size, nearest }
            }
        };
        self.raise(fault, lane)
    }
}
