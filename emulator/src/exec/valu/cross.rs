//! What crosses lanes or picks registers at run time, and what does nothing.

use super::SCRATCH;
use crate::exec::isa::Exec;
use crate::exec::op::{Dst, Kind, Src, Unit};
use crate::exec::wave::{AGPR, LANES, slot};
use crate::exec::{Env, Flow, Op, Row, Wave};
use crate::gfx::Gfx;
use crate::inst::{Inst, Operand};

pub(super) fn lookup(gfx: Gfx, inst: &Inst) -> Option<Op> {
    Some(match inst.name {
        "v_nop" | "v_clrexcp" | "v_pipeflush" => Op::new::<Nop>(Unit::Valu, inst),
        "v_readfirstlane_b32" => op::<ReadFirstLane>(inst),
        "v_readlane_b32" => op::<ReadLane>(inst),
        "v_writelane_b32" => op::<WriteLane>(inst),
        "v_mbcnt_lo_u32_b32" => op::<Mbcnt<0>>(inst),
        "v_mbcnt_hi_u32_b32" => op::<Mbcnt<1>>(inst),
        "v_permlane16_b32" => op::<Permlane<0, false>>(inst),
        "v_permlanex16_b32" => op::<Permlane<16, false>>(inst),
        "v_permlane16_var_b32" => op::<Permlane<0, true>>(inst),
        "v_permlanex16_var_b32" => op::<Permlane<16, true>>(inst),
        "v_permlane64_b32" => op::<Permlane64>(inst),
        "v_permlane16_swap_b32" => op::<PermlaneSwap<16>>(inst),
        "v_permlane32_swap_b32" => op::<PermlaneSwap<32>>(inst),
        "v_bitop3_b32" => Op { imm: inst.mods.bitop3.into(), ..op::<Bitop3<false>>(inst) },
        "v_bitop3_b16" => Op { imm: inst.mods.bitop3.into(), ..op::<Bitop3<true>>(inst) },
        "v_swap_b32" => op::<Swap>(inst),
        "v_swap_b16" => {
            let high = |i: usize| matches!(inst.operands.get(i), Some(Operand::VgprHalf { high: true, .. }));
            Op { imm: u64::from(high(0)) | u64::from(high(1)) << 1, ..op::<SwapHalf>(inst) }
        }
        "v_swaprel_b32" => Op { imm: RELATIVE_2, ..op::<Swap>(inst) },
        "v_movreld_b32" => Op { imm: RELATIVE_DST, ..op::<MoveRelative>(inst) },
        "v_movrels_b32" => Op { imm: RELATIVE_SRC, ..op::<MoveRelative>(inst) },
        "v_movrelsd_b32" => Op { imm: RELATIVE_DST | RELATIVE_SRC, ..op::<MoveRelative>(inst) },
        "v_movrelsd_2_b32" => Op { imm: RELATIVE_2, ..op::<MoveRelative>(inst) },
        "v_mqsad_u32_u8" => op::<Mqsad>(inst),
        // One value in scalar registers, computed as one lane's.
        name if name.starts_with("v_s_") => {
            let mut lane = super::prepare(gfx, inst, &super::tabled(gfx, inst)?);
            lane.dst[0] = Dst::Vgpr(SCRATCH);
            Op { pair: Some(Box::new(lane)), ..op::<Scalar>(inst) }
        }
        _ => return None,
    })
}

fn op<E: Exec>(inst: &Inst) -> Op {
    Op::with_operands::<E>(Unit::Valu, inst, Kind::B32)
}

pub(super) struct Nop;
impl Exec for Nop {
    #[inline(always)]
    fn exec(_: &mut Wave, _: &mut Env<'_>, _: &Op) -> Flow {
        Flow::Next
    }
}

/// The value of a source in one lane of the wave, active or not.
#[inline(always)]
fn value(wave: &Wave, src: Src, lane: usize) -> u32 {
    match src {
        Src::Vgpr(register) => wave.lane(register, lane),
        _ => wave.scalar(src),
    }
}

struct ReadFirstLane;
impl Exec for ReadFirstLane {
    #[inline(always)]
    fn exec(wave: &mut Wave, _: &mut Env<'_>, op: &Op) -> Flow {
        // Lane 0 if none is active.
        let lane = wave.exec64().trailing_zeros() % 64;
        let value = value(wave, op.src[0], lane as usize);
        wave.set_scalar(op.dst[0], value);
        Flow::Next
    }
}

/// A lane number, modulo the number of lanes of the wave.
#[inline(always)]
fn lane_number(wave: &Wave, src: Src) -> usize {
    (wave.scalar(src) & (wave.size() - 1)) as usize
}

struct ReadLane;
impl Exec for ReadLane {
    #[inline(always)]
    fn exec(wave: &mut Wave, _: &mut Env<'_>, op: &Op) -> Flow {
        let value = value(wave, op.src[0], lane_number(wave, op.src[1]));
        wave.set_scalar(op.dst[0], value);
        Flow::Next
    }
}

struct WriteLane;
impl Exec for WriteLane {
    #[inline(always)]
    fn exec(wave: &mut Wave, _: &mut Env<'_>, op: &Op) -> Flow {
        let (value, lane) = (wave.scalar(op.src[0]), lane_number(wave, op.src[1]));
        if let Dst::Vgpr(register) = op.dst[0] {
            wave.set_lane(register, lane, value);
        }
        Flow::Next
    }
}

/// The bits of a mask (`HALF` 0: lanes 0 to 31, 1: the others) below the lane, counted, plus the addend.
struct Mbcnt<const HALF: usize>;
impl<const HALF: usize> Exec for Mbcnt<HALF> {
    #[inline(always)]
    fn exec(wave: &mut Wave, _: &mut Env<'_>, op: &Op) -> Flow {
        let Dst::Vgpr(register) = op.dst[0] else { return Flow::Next };
        for half in 0..wave.halves() {
            let (mut masks, mut addends) = (Row::ZERO, Row::ZERO);
            let masks = wave.row(op.src[0], half, &mut masks);
            let addends = wave.row(op.src[1], half, &mut addends);
            let mut out = Row::ZERO;
            for i in 0..LANES {
                let below = match half {
                    _ if half == HALF => (1 << i) - 1,
                    _ if half > HALF => u32::MAX,
                    _ => 0,
                };
                out.0[i] = (masks.0[i] & below).count_ones().wrapping_add(addends.0[i]);
            }
            wave.write(register, half, &out);
        }
        Flow::Next
    }
}

/// Lanes of a row of 16 read any lane of it (`OTHER` 0), or of the row beside it (16). The numbers are nibbles of
/// two scalars, or (`VARIES`) each lane's own.
struct Permlane<const OTHER: usize, const VARIES: bool>;
impl<const OTHER: usize, const VARIES: bool> Exec for Permlane<OTHER, VARIES> {
    #[inline(always)]
    fn exec(wave: &mut Wave, _: &mut Env<'_>, op: &Op) -> Flow {
        let Dst::Vgpr(register) = op.dst[0] else { return Flow::Next };
        let nibbles = u64::from(wave.scalar(op.src[1])) | u64::from(wave.scalar(op.src[2])) << 32;
        let (fetch_inactive, bound_ctrl) = (op.mods.op_sel & 1 != 0, op.mods.op_sel & 2 != 0);
        let exec = wave.exec64();
        let mut outs = [Row::ZERO; 2];
        let mut lanes = [0; 2];
        for half in 0..wave.halves() {
            for i in 0..LANES {
                let nibble = match VARIES {
                    true => value(wave, op.src[1], half * LANES + i) as usize & 15,
                    false => (nibbles >> (4 * (i % 16))) as usize & 15,
                };
                let from = half * LANES + ((i & 16) ^ OTHER) + nibble;
                let readable = fetch_inactive || exec >> from & 1 != 0;
                outs[half].0[i] = if readable { value(wave, op.src[0], from) } else { 0 };
                lanes[half] |= u32::from(readable || bound_ctrl) << i;
            }
        }
        for half in 0..wave.halves() {
            wave.write_masked(register, half, wave.exec(half) & lanes[half], &outs[half]);
        }
        Flow::Next
    }
}

/// The halves of a wave of 64 change places; nothing happens in one of 32.
struct Permlane64;
impl Exec for Permlane64 {
    #[inline(always)]
    fn exec(wave: &mut Wave, _: &mut Env<'_>, op: &Op) -> Flow {
        if let (Dst::Vgpr(register), 2) = (op.dst[0], wave.halves()) {
            let (mut temp, mut other) = (Row::ZERO, Row::ZERO);
            let (low, high) = (*wave.row(op.src[0], 0, &mut temp), *wave.row(op.src[0], 1, &mut other));
            wave.write(register, 0, &high);
            wave.write(register, 1, &low);
        }
        Flow::Next
    }
}

/// The first register's lanes that have bit `DISTANCE` in their number change places with the second one's that lack it.
struct PermlaneSwap<const DISTANCE: usize>;
impl<const DISTANCE: usize> Exec for PermlaneSwap<DISTANCE> {
    #[inline(always)]
    fn exec(wave: &mut Wave, _: &mut Env<'_>, op: &Op) -> Flow {
        let (Dst::Vgpr(first), Src::Vgpr(second)) = (op.dst[0], swapped(op)) else { return Flow::Next };
        let (fetch_inactive, bound_ctrl) = (op.mods.op_sel & 1 != 0, op.mods.op_sel & 2 != 0);
        let exec = wave.exec64();
        let lanes = wave.size() as usize;
        let mut new = [[Row::ZERO; 2]; 2];
        let mut written = [[0; 2]; 2];
        for high in (0..lanes).filter(|lane| lane & DISTANCE != 0) {
            let low = high - DISTANCE;
            for (of, to, register, from) in [(0, high, second, low), (1, low, first, high)] {
                let readable = fetch_inactive || exec >> from & 1 != 0;
                if readable {
                    new[of][to / LANES].0[to % LANES] = wave.lane(register, from);
                }
                written[of][to / LANES] |= u32::from(readable || bound_ctrl) << (to % LANES);
            }
        }
        for half in 0..wave.halves() {
            let exec = wave.exec(half);
            wave.write_masked(first, half, exec & written[0][half], &new[0][half]);
            wave.write_masked(second, half, exec & written[1][half], &new[1][half]);
        }
        Flow::Next
    }
}

/// Any function of three bits, by its table in `imm`; with `HALF` of the halves that op_sel names, and the destination's other
/// half stays.
struct Bitop3<const HALF: bool>;
impl<const HALF: bool> Exec for Bitop3<HALF> {
    #[inline(always)]
    fn exec(wave: &mut Wave, _: &mut Env<'_>, op: &Op) -> Flow {
        let Dst::Vgpr(register) = op.dst[0] else { return Flow::Next };
        let shift = |i: u8| if HALF { 16 * u32::from(op.mods.op_sel >> i & 1) } else { 0 };
        let kept = if HALF { !(0xffff << shift(3)) } else { 0 };
        for half in 0..wave.halves() {
            let [a, b, c] = std::array::from_fn(|i| {
                let mut temp = Row::ZERO;
                *wave.row(op.src[i], half, &mut temp)
            });
            let old = *wave.vgpr(register, half);
            let out = Row(std::array::from_fn(|i| {
                let new = bitop3(op.imm as u8, a.0[i] >> shift(0), b.0[i] >> shift(1), c.0[i] >> shift(2));
                old.0[i] & kept | new << shift(3) & !kept
            }));
            wave.write(register, half, &out);
        }
        Flow::Next
    }
}

pub(super) fn bitop3(table: u8, a: u32, b: u32, c: u32) -> u32 {
    (0..8).filter(|row| table >> row & 1 != 0).fold(0, |result, row| {
        let term = |x: u32, bit: u32| if row & bit != 0 { x } else { !x };
        result | term(a, 4) & term(b, 2) & term(c, 1)
    })
}

/// `imm` of register-relative moves: what M0 is added to, or both with a part of M0 each.
const RELATIVE_SRC: u64 = 1;
const RELATIVE_DST: u64 = 2;
const RELATIVE_2: u64 = 4;

/// The registers of a relative move; `None` if one is past the last.
fn relative(wave: &Wave, op: &Op) -> Option<(Dst, Src)> {
    let m0 = wave.m0();
    let (src_by, dst_by) = match op.imm {
        RELATIVE_2 => (m0 & 0x3ff, m0 >> 16 & 0x3ff),
        which => {
            (if which & RELATIVE_SRC != 0 { m0 } else { 0 }, if which & RELATIVE_DST != 0 { m0 } else { 0 })
        }
    };
    let moved = |register: u16, by: u32| {
        u16::try_from(u32::from(register).checked_add(by)?).ok().filter(|&register| register < AGPR)
    };
    let dst = match op.dst[0] {
        Dst::Vgpr(register) => Dst::Vgpr(moved(register, dst_by)?),
        other => other,
    };
    let src = match op.src[0] {
        Src::Vgpr(register) => Src::Vgpr(moved(register, src_by)?),
        other => other,
    };
    Some((dst, src))
}

struct MoveRelative;
impl Exec for MoveRelative {
    #[inline(always)]
    fn exec(wave: &mut Wave, _: &mut Env<'_>, op: &Op) -> Flow {
        if let Some((Dst::Vgpr(register), src)) = relative(wave, op) {
            for half in 0..wave.halves() {
                let mut temp = Row::ZERO;
                let row = *wave.row(src, half, &mut temp);
                wave.write(register, half, &row);
            }
        }
        Flow::Next
    }
}

struct Swap;
impl Exec for Swap {
    #[inline(always)]
    fn exec(wave: &mut Wave, _: &mut Env<'_>, op: &Op) -> Flow {
        let (dst, src) = match op.imm {
            0 => (op.dst[0], swapped(op)),
            _ => match relative(wave, &Op { src: [swapped(op); 4], pair: None, atomic: None, ..*op }) {
                Some(registers) => registers,
                None => return Flow::Next,
            },
        };
        if let (Dst::Vgpr(a), Src::Vgpr(b)) = (dst, src) {
            for half in 0..wave.halves() {
                let (first, second) = (*wave.vgpr(a, half), *wave.vgpr(b, half));
                wave.write(a, half, &second);
                wave.write(b, half, &first);
            }
        }
        Flow::Next
    }
}

/// The register that a swap's destination changes places with: it is written too.
fn swapped(op: &Op) -> Src {
    match op.dst[1] {
        Dst::Vgpr(register) => Src::Vgpr(register),
        _ => op.src[0],
    }
}

/// Bits 0 and 1 of `imm`: the first and second register's upper half takes part.
struct SwapHalf;
impl Exec for SwapHalf {
    #[inline(always)]
    fn exec(wave: &mut Wave, _: &mut Env<'_>, op: &Op) -> Flow {
        if let (Dst::Vgpr(a), Src::Vgpr(b)) = (op.dst[0], swapped(op)) {
            let (at_a, at_b) = (16 * (op.imm & 1) as u32, 16 * (op.imm >> 1 & 1) as u32);
            for half in 0..wave.halves() {
                let exec = wave.exec(half);
                for i in (0..LANES).filter(|i| exec >> i & 1 != 0) {
                    let first = wave.vgpr(a, half).0[i] >> at_a & 0xffff;
                    let second = wave.vgpr(b, half).0[i] >> at_b & 0xffff;
                    for (register, at, half_word) in [(a, at_a, second), (b, at_b, first)] {
                        let word = &mut wave.vgpr_mut(register, half).0[i];
                        *word = *word & !(0xffff << at) | half_word << at;
                    }
                }
            }
        }
        Flow::Next
    }
}

/// Four masked sums of absolute differences, of bytes 0 to 3, 1 to 4, … of a 64-bit source.
struct Mqsad;
impl Exec for Mqsad {
    #[inline(always)]
    fn exec(wave: &mut Wave, _: &mut Env<'_>, op: &Op) -> Flow {
        let Dst::Vgpr(register) = op.dst[0] else { return Flow::Next };
        for half in 0..wave.halves() {
            let fetch = |src: Src| {
                let mut temp = Row::ZERO;
                *wave.row(src, half, &mut temp)
            };
            let (low, high, reference) = (fetch(op.src[0]), fetch(op.src[0].dword(1)), fetch(op.src[1]));
            let mut outs = [0, 1, 2, 3].map(|n| fetch(op.src[2].dword(n)));
            for i in 0..LANES {
                let bytes = u64::from(low.0[i]) | u64::from(high.0[i]) << 32;
                for (n, out) in outs.iter_mut().enumerate() {
                    let sum = super::int::msad_u8((bytes >> (8 * n)) as u32, reference.0[i]);
                    let addend = out.0[i];
                    out.0[i] =
                        if op.mods.clamp { sum.saturating_add(addend) } else { sum.wrapping_add(addend) };
                }
            }
            for (n, out) in outs.iter().enumerate() {
                wave.write(register + n as u16, half, out);
            }
        }
        Flow::Next
    }
}

/// Runs `pair` in lane 0, whatever EXEC says, and moves its result to a scalar register.
struct Scalar;
impl Exec for Scalar {
    #[inline(always)]
    fn exec(wave: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let Some(lane) = op.pair.as_deref() else { return Flow::Next };
        let exec = usize::from(slot::EXEC);
        let saved = std::mem::replace(&mut wave.sgpr[exec], 1);
        wave.set_lane(SCRATCH, 0, 0);
        // SAFETY: `isa` chose it for this machine.
        let flow = unsafe { (lane.run)(wave, env, lane) };
        wave.sgpr[exec] = saved;
        let value = wave.lane(SCRATCH, 0);
        wave.set_scalar(op.dst[0], value);
        flow
    }
}
