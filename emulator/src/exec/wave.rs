//! The registers of one wave.

use super::code::Named;
use super::op::{Dst, Src};

/// Lanes that are worked on together. A wave of 64 has two halves of this many.
pub(crate) const LANES: usize = 32;
/// The first accumulation register's number in the vector register file.
pub(crate) const AGPR: u16 = 256;
/// Vector registers, accumulation registers, and room for an operand that runs past the last one.
const REGISTERS: usize = 512 + 64;

/// Calls that a wave remembers. Deeper ones are left out of reports and profiles.
const MOST_CALLS: usize = 64;

/// One register of half a wave, lane by lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(64))]
pub(crate) struct Row(pub [u32; LANES]);

impl Row {
    pub const ZERO: Row = Row([0; LANES]);

    #[inline(always)]
    pub const fn splat(value: u32) -> Row {
        Row([value; LANES])
    }
}

/// Where registers live in [`Wave::sgpr`]: 0 to 105 are the general ones, the rest is below.
pub(crate) mod slot {
    /// gfx9 overlays it on s102 and s103.
    pub const FLAT_SCRATCH: u8 = 102;
    /// gfx9 overlays it on s104 and s105.
    pub const XNACK_MASK: u8 = 104;
    pub const VCC: u8 = 106;
    pub const TTMP: u8 = 108;
    pub const M0: u8 = 124;
    pub const EXEC: u8 = 126;
    pub const SHARED_BASE: u8 = 128;
    pub const SHARED_LIMIT: u8 = 130;
    pub const PRIVATE_BASE: u8 = 132;
    pub const PRIVATE_LIMIT: u8 = 134;
    /// Trap handler addresses and other registers that are always zero.
    pub const TRAP: u8 = 136;
    /// 0 or 1.
    pub const SCC: u8 = 142;
    /// Computed before it is read.
    pub const VCCZ: u8 = 143;
    /// Computed before it is read.
    pub const EXECZ: u8 = 144;
    /// Base address of the wave's scratch memory (gfx12 can name it).
    pub const FLAT_SCRATCH_BASE: u8 = 146;
}

/// What a wave that has stopped waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum WaitsFor {
    /// The workgroup's barrier to open as often as [`Wave::waits_for`] says.
    #[default]
    Workgroup,
    /// The named barrier that it has joined.
    Named,
    /// A global wave sync resource to be released as a barrier: not to be in that phase any more.
    GlobalBarrier { resource: u8, phase: u32 },
    /// A global wave sync resource to have a credit.
    GlobalSemaphore { resource: u8 },
}

/// The state of one wave: registers, program counter, MODE.
#[derive(Debug)]
pub(crate) struct Wave {
    /// Vector registers, half by half: `[register * halves + half]`.
    rows: Box<[Row]>,
    halves: usize,
    /// Registers that are as the wave has left them; others may be another wave's.
    cleared: Named,
    /// Scalar registers; see [`slot`]. 256 of them, so that any slot can be read without a check.
    pub sgpr: [u32; 256],
    /// The MODE register in gfx9 to gfx11 layout: rounding 3:0, denormals 7:4, DX10_CLAMP 8, IEEE 9.
    pub mode: u32,
    /// Index of the next instruction in [`Code::ops`](super::Code).
    pub pc: u32,
    /// Index of the instruction that ended the wave's turn.
    pub last: u32,
    /// Indices of the calls that have not returned, outermost first.
    pub calls: Vec<u32>,
    /// `s_set_gpr_idx_on`: which operands M0 indexes (bit 0 to 2: sources, bit 3: destination); 0 when off.
    pub gpr_index: u32,
    /// Base address of the wave's scratch memory.
    pub scratch_base: u64,
    /// Bytes of scratch memory per lane.
    pub scratch_size: u32,
    /// Number of the wave within its workgroup.
    pub index: u32,
    /// Work-items of the workgroup that this wave has.
    pub work_items: u32,
    /// How often the workgroup's barrier must have opened for the wave to go on.
    pub waits_for: u32,
    /// How often it had opened when the wave's last `s_barrier_wait` went on.
    pub passed: u32,
    /// What else it may wait for.
    pub waits_on: WaitsFor,
    /// The named barrier that it has joined, 0 for none, and how often that had opened when it last went on.
    pub joined: u8,
    pub joined_passed: u32,
    /// The exceptions that TRAPSTS (gfx12: EXCP_FLAG_USER) accumulates.
    pub exceptions: u32,
    /// Instructions executed.
    pub executed: u64,
}

impl Wave {
    /// A wave of `size` (32 or 64) lanes; every register is zero.
    pub fn new(size: u32) -> Wave {
        let halves = if size == 64 { 2 } else { 1 };
        Wave {
            // SAFETY: a row is integers, for which all zeros are a value.
            rows: unsafe { Box::new_zeroed_slice(REGISTERS * halves).assume_init() },
            halves,
            cleared: Named { vgprs: usize::from(AGPR), agprs: REGISTERS - usize::from(AGPR) },
            sgpr: [0; 256],
            mode: 0,
            pc: 0,
            last: 0,
            calls: Vec::new(),
            gpr_index: 0,
            scratch_base: 0,
            scratch_size: 0,
            index: 0,
            work_items: 0,
            waits_for: 0,
            passed: 0,
            waits_on: WaitsFor::Workgroup,
            joined: 0,
            joined_passed: 0,
            exceptions: 0,
            executed: 0,
        }
    }

    /// Makes the wave as new, for code that names these registers.
    pub fn reset(&mut self, named: Named) {
        self.cleared = Named::default();
        self.clear(named);
        self.sgpr = [0; 256];
        self.gpr_index = 0;
        self.calls.clear();
        (self.waits_for, self.passed) = (0, 0);
        (self.waits_on, self.joined, self.joined_passed) = (WaitsFor::Workgroup, 0, 0);
        self.exceptions = 0;
        self.executed = 0;
    }

    /// All vector registers, for compiled code.
    #[cfg(all(target_arch = "x86_64", unix))]
    pub fn rows_mut(&mut self) -> *mut Row {
        self.rows.as_mut_ptr()
    }

    /// A wave in the same state.
    #[cfg(all(target_arch = "x86_64", unix))]
    pub fn copy(&self) -> Wave {
        Wave { rows: self.rows.clone(), calls: self.calls.clone(), ..*self }
    }

    /// What is different in another wave, in words.
    #[cfg(all(target_arch = "x86_64", unix))]
    pub fn difference(&self, other: &Wave) -> Option<String> {
        // What is computed before it is read does not count.
        let counts = |slot: usize| slot != usize::from(slot::VCCZ) && slot != usize::from(slot::EXECZ);
        let scalar = (0..256).find(|&slot| counts(slot) && self.sgpr[slot] != other.sgpr[slot]);
        if let Some(slot) = scalar {
            let [one, two] = [self, other].map(|wave| wave.sgpr[slot]);
            return Some(format!("scalar register {slot}: {one:#x} and {two:#x}"));
        }
        for (row, (one, two)) in self.rows.iter().zip(&other.rows).enumerate() {
            let register = row / self.halves;
            // The last one is where a result waits.
            if one == two || register == REGISTERS - 1 {
                continue;
            }
            let lane = (0..LANES).find(|&lane| one.0[lane] != two.0[lane])?;
            let number = row % self.halves * LANES + lane;
            return Some(format!("v{register}, lane {number}: {:#x} and {:#x}", one.0[lane], two.0[lane]));
        }
        let rest = |wave: &Wave| (wave.pc, wave.mode, wave.executed, wave.exceptions, wave.gpr_index);
        (rest(self) != rest(other)).then(|| format!("{:?} and {:?}", rest(self), rest(other)))
    }

    /// Clears those registers that code to which the wave goes on names, and that the wave has not had yet.
    #[inline]
    pub fn clear(&mut self, named: Named) {
        let halves = self.halves;
        if named.vgprs > self.cleared.vgprs {
            let end = (named.vgprs * halves).min(self.rows.len());
            self.rows[self.cleared.vgprs * halves..end].fill(Row::ZERO);
            self.cleared.vgprs = named.vgprs;
        }
        if named.agprs > self.cleared.agprs {
            let agpr = usize::from(AGPR);
            let end = ((agpr + named.agprs) * halves).min(self.rows.len());
            self.rows[(agpr + self.cleared.agprs) * halves..end].fill(Row::ZERO);
            self.cleared.agprs = named.agprs;
        }
    }

    /// Notes that the instruction at `index` has called a function.
    pub fn called(&mut self, index: u32) {
        if self.calls.len() < MOST_CALLS {
            self.calls.push(index);
        }
    }

    /// Notes a jump to where the wave is now: behind a call that has not returned, it is the return.
    pub fn returned(&mut self) {
        if let Some(call) = self.calls.iter().rposition(|&call| call + 1 == self.pc) {
            self.calls.truncate(call);
        }
    }

    /// Lanes: 32 or 64.
    #[inline(always)]
    pub fn size(&self) -> u32 {
        (self.halves * LANES) as u32
    }

    /// 1 for a wave of 32 lanes, 2 for one of 64.
    #[inline(always)]
    pub fn halves(&self) -> usize {
        self.halves
    }

    /// One half of a vector register.
    #[inline(always)]
    pub fn vgpr(&self, register: u16, half: usize) -> &Row {
        &self.rows[usize::from(register) * self.halves + half]
    }

    /// One half of a vector register.
    #[inline(always)]
    pub fn vgpr_mut(&mut self, register: u16, half: usize) -> &mut Row {
        &mut self.rows[usize::from(register) * self.halves + half]
    }

    /// A vector register's value in one lane of the wave.
    #[inline(always)]
    pub fn lane(&self, register: u16, lane: usize) -> u32 {
        self.vgpr(register, (lane / LANES) & (self.halves - 1)).0[lane % LANES]
    }

    /// Sets a vector register in one lane of the wave, whatever EXEC says.
    #[inline(always)]
    pub fn set_lane(&mut self, register: u16, lane: usize, value: u32) {
        let half = (lane / LANES) & (self.halves - 1);
        self.vgpr_mut(register, half).0[lane % LANES] = value;
    }

    /// The low dword of a source for half a wave: the register itself, or `temp` filled with the scalar.
    #[inline(always)]
    pub fn row<'a>(&'a self, src: Src, half: usize, temp: &'a mut Row) -> &'a Row {
        match src {
            Src::Vgpr(register) => self.vgpr(register, half),
            Src::Sgpr(slot) => {
                *temp = Row::splat(self.sgpr[usize::from(slot)]);
                temp
            }
            Src::Const([value, _]) => {
                *temp = Row::splat(value);
                temp
            }
        }
    }

    /// The low dword of a scalar source; of a vector register, lane 0.
    #[inline(always)]
    pub fn scalar(&self, src: Src) -> u32 {
        match src {
            Src::Sgpr(slot) => self.sgpr[usize::from(slot)],
            Src::Const([value, _]) => value,
            Src::Vgpr(register) => self.lane(register, 0),
        }
    }

    /// A 64-bit scalar source.
    #[inline(always)]
    pub fn scalar64(&self, src: Src) -> u64 {
        match src {
            Src::Sgpr(slot) => self.sgpr64(slot),
            Src::Const([low, high]) => u64::from(low) | u64::from(high) << 32,
            Src::Vgpr(_) => u64::from(self.scalar(src)) | u64::from(self.scalar(src.dword(1))) << 32,
        }
    }

    /// A pair of scalar registers.
    #[inline(always)]
    pub fn sgpr64(&self, slot: u8) -> u64 {
        u64::from(self.sgpr[usize::from(slot)])
            | u64::from(self.sgpr[usize::from(slot.wrapping_add(1))]) << 32
    }

    /// Writes a scalar register.
    #[inline(always)]
    pub fn set_scalar(&mut self, dst: Dst, value: u32) {
        if let Dst::Sgpr(slot) = dst {
            self.sgpr[usize::from(slot)] = value;
        }
    }

    /// Writes a pair of scalar registers.
    #[inline(always)]
    pub fn set_scalar64(&mut self, dst: Dst, value: u64) {
        if let Dst::Sgpr(slot) = dst {
            self.sgpr[usize::from(slot)] = value as u32;
            self.sgpr[usize::from(slot.wrapping_add(1))] = (value >> 32) as u32;
        }
    }

    /// A lane mask (VCC or a scalar destination of a comparison): one dword in a wave of 32, two in one of 64.
    #[inline(always)]
    pub fn mask(&self, src: Src, half: usize) -> u32 {
        match src {
            Src::Sgpr(slot) => self.sgpr[usize::from(slot) + half],
            Src::Const(value) => value[half],
            Src::Vgpr(_) => 0,
        }
    }

    /// Writes one half's dword of a lane mask.
    #[inline(always)]
    pub fn set_mask(&mut self, dst: Dst, half: usize, value: u32) {
        if let Dst::Sgpr(slot) = dst {
            self.sgpr[usize::from(slot) + half] = value;
        }
    }

    /// EXEC of half a wave.
    #[inline(always)]
    pub fn exec(&self, half: usize) -> u32 {
        self.sgpr[usize::from(slot::EXEC) + half]
    }

    /// EXEC of the whole wave; in a wave of 32 lanes the high half is zero.
    #[inline(always)]
    pub fn exec64(&self) -> u64 {
        let high = if self.halves == 2 { self.exec(1) } else { 0 };
        u64::from(self.exec(0)) | u64::from(high) << 32
    }

    /// Whether every lane is on.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.exec64() == u64::MAX >> (64 - self.size())
    }

    /// VCC of the whole wave; in a wave of 32 lanes the high half is zero.
    #[inline(always)]
    pub fn vcc64(&self) -> u64 {
        let vcc = self.sgpr64(slot::VCC);
        if self.halves == 2 { vcc } else { vcc & 0xffff_ffff }
    }

    /// SCC.
    #[inline(always)]
    pub fn scc(&self) -> bool {
        self.sgpr[usize::from(slot::SCC)] != 0
    }

    /// Sets SCC.
    #[inline(always)]
    pub fn set_scc(&mut self, value: bool) {
        self.sgpr[usize::from(slot::SCC)] = u32::from(value);
    }

    /// M0.
    #[inline(always)]
    pub fn m0(&self) -> u32 {
        self.sgpr[usize::from(slot::M0)]
    }

    /// Writes half a vector register in the lanes that EXEC names.
    #[inline(always)]
    pub fn write(&mut self, register: u16, half: usize, value: &Row) {
        let exec = self.exec(half);
        self.write_masked(register, half, exec, value);
    }

    /// Writes half a vector register in the lanes of `mask`.
    #[inline(always)]
    pub fn write_masked(&mut self, register: u16, half: usize, mask: u32, value: &Row) {
        let row = self.vgpr_mut(register, half);
        if mask == u32::MAX {
            *row = *value;
            return;
        }
        for lane in 0..LANES {
            let keep = (mask >> lane & 1).wrapping_sub(1);
            row.0[lane] = row.0[lane] & keep | value.0[lane] & !keep;
        }
    }
}
