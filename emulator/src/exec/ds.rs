//! LDS: loads, stores, atomics, and the instructions that move data between lanes through LDS's crossbar.

use super::Env;
use super::atomic::{self, Operation};
use super::isa::Exec;
use super::lanes::{self, Addresses, Lanes, lanes_of};
use super::op::{Dst, Flow, Kind, Op, Src, Unit};
use super::transfer::{self, Atomic, Place};
use super::wave::{LANES, Row, Wave};
use crate::fault::{Access, Fault, Space};
use crate::gfx::{Generation, Gfx};
use crate::inst::Inst;

/// The LDS instruction `inst`, prepared.
pub(crate) fn lookup(gfx: Gfx, inst: &Inst) -> Option<Op> {
    if inst.mods.gds {
        return None;
    }
    let name = inst.name.strip_prefix("ds_")?;
    if let Some(shape) = name.strip_prefix("read_").or_else(|| name.strip_prefix("load_"))
        && let Some(mut op) = match shape {
            "addtid_b32" => transfer::load::<LaneByLane>(Unit::Lds, inst, "b32"),
            _ => transfer::load::<Lds>(Unit::Lds, inst, shape),
        }
    {
        op.dst[0] = Dst::of(inst.dsts().first()?);
        operands(inst, &mut op);
        return Some(op);
    }
    if let Some(shape) = name.strip_prefix("write_").or_else(|| name.strip_prefix("store_"))
        && let Some(mut op) = match shape {
            "addtid_b32" => transfer::store::<LaneByLane>(Unit::Lds, inst, "b32"),
            _ => transfer::store::<Lds>(Unit::Lds, inst, shape),
        }
    {
        operands(inst, &mut op);
        return Some(op);
    }
    if let Some(op) = lookup_pair(inst, name).or_else(|| lookup_crossbar(inst, name)) {
        return Some(op);
    }
    lookup_atomic(gfx, inst, name)
}

/// Sources in order, and the offset in `imm`.
fn operands(inst: &Inst, op: &mut Op) {
    for (slot, operand) in op.src.iter_mut().zip(inst.srcs()) {
        *slot = Src::of(operand, Kind::B32);
    }
    op.imm = u64::from(inst.mods.offset as u32);
}

/// Two addresses: `read2_b32`, `store_2addr_stride64_b64`, `wrxchg2_rtn_b32`.
fn lookup_pair(inst: &Inst, name: &str) -> Option<Op> {
    let wide = name.ends_with("_b64");
    let name = name.strip_suffix(if wide { "_b64" } else { "_b32" })?;
    let (load, stride) = match name {
        "read2" | "load_2addr" => (true, 1),
        "read2st64" | "load_2addr_stride64" => (true, 64),
        "write2" | "store_2addr" => (false, 1),
        "write2st64" | "store_2addr_stride64" => (false, 64),
        "wrxchg2_rtn" | "storexchg_2addr_rtn" => return Some(exchange_pair(inst, wide, 1)),
        "wrxchg2st64_rtn" | "storexchg_2addr_stride64_rtn" => return Some(exchange_pair(inst, wide, 64)),
        _ => return None,
    };
    let mut op = match (load, wide) {
        (true, false) => Op::new::<LoadPair<1>>(Unit::Lds, inst),
        (true, true) => Op::new::<LoadPair<2>>(Unit::Lds, inst),
        (false, false) => Op::new::<StorePair<1>>(Unit::Lds, inst),
        (false, true) => Op::new::<StorePair<2>>(Unit::Lds, inst),
    };
    pair_operands(inst, &mut op, wide, stride);
    Some(op)
}

fn exchange_pair(inst: &Inst, wide: bool, stride: u32) -> Op {
    let mut op = Op::new::<ExchangePair>(Unit::Lds, inst);
    pair_operands(inst, &mut op, wide, stride);
    op.atomic = Some(Operation::Swap);
    op
}

/// Both offsets, in bytes, go to the halves of `imm`; bit 63 says that the elements have 64 bits.
fn pair_operands(inst: &Inst, op: &mut Op, wide: bool, stride: u32) {
    operands(inst, op);
    if let Some(dst) = inst.dsts().first() {
        op.dst[0] = Dst::of(dst);
    }
    let scale = stride * if wide { 8 } else { 4 };
    let offsets = [inst.mods.offset0, inst.mods.offset1].map(|offset| u64::from(u32::from(offset) * scale));
    op.imm = offsets[0] | offsets[1] << 32 | u64::from(wide) << 63;
}

fn lookup_crossbar(inst: &Inst, name: &str) -> Option<Op> {
    let mut op = match name {
        "swizzle_b32" => Op::new::<Swizzle>(Unit::Lds, inst),
        "permute_b32" => Op::new::<Permute>(Unit::Lds, inst),
        "bpermute_b32" => Op::new::<BPermute<false>>(Unit::Lds, inst),
        "bpermute_fi_b32" => Op::new::<BPermute<true>>(Unit::Lds, inst),
        "append" => Op::new::<Count<true>>(Unit::Lds, inst),
        "consume" => Op::new::<Count<false>>(Unit::Lds, inst),
        "nop" => Op::new::<Nothing>(Unit::Lds, inst),
        _ => return None,
    };
    operands(inst, &mut op);
    if let Some(dst) = inst.dsts().first() {
        op.dst[0] = Dst::of(dst);
    }
    Some(op)
}

fn lookup_atomic(gfx: Gfx, inst: &Inst, name: &str) -> Option<Op> {
    let name = &name.replacen("_rtn", "", 1);
    let (operation, wide) = match name.as_str() {
        "wrap_b32" => (Operation::Wrap, false),
        "sub_clamp_u32" => (Operation::SubClamp, false),
        "cond_sub_u32" => (Operation::CondSub, false),
        name => atomic::parse(name)?,
    };
    let mut op = Op::new::<Atomic<Lds>>(Unit::Lds, inst);
    operands(inst, &mut op);
    if let Some(dst) = inst.dsts().first() {
        op.dst[0] = Dst::of(dst);
    }
    // Before gfx11 a compare-and-swap's comparand comes first; from then on the new value does.
    let compare_first = matches!(gfx.generation(), Generation::Cdna | Generation::Gfx10);
    if operation == Operation::CmpSwap && compare_first {
        op.src.swap(1, 2);
    }
    transfer::set_atomic(&mut op, operation, wide);
    Some(op)
}

/// LDS byte offsets of half a wave.
#[inline(always)]
fn offsets(w: &Wave, op: &Op, half: usize, constant: u32) -> Addresses {
    let mut temp = Row::ZERO;
    let base = w.row(op.src[0], half, &mut temp);
    std::array::from_fn(|lane| u64::from(base.0[lane].wrapping_add(constant)))
}

/// Turns LDS offsets into host addresses; faults if one of `mask` lies beyond the workgroup's LDS.
#[inline(always)]
fn resolve(
    w: &Wave,
    env: &mut Env<'_>,
    op: &Op,
    access: Access,
    (half, mask): (usize, u32),
    addresses: &mut Addresses,
    size: u32,
) -> Option<Flow> {
    if !lanes::all_within(addresses, mask, (0, env.lds.len() as u64), size) {
        return out_of_bounds(env, access, (half, mask), addresses, size);
    }
    let base = env.lds.as_mut_ptr().expose_provenance() as u64;
    for address in &mut *addresses {
        *address += base;
    }
    env.note_lds(w, Lanes { op, access, half, mask, addresses, size })
}

#[cold]
fn out_of_bounds(
    env: &mut Env<'_>,
    access: Access,
    (half, mask): (usize, u32),
    addresses: &Addresses,
    size: u32,
) -> Option<Flow> {
    let limit = env.lds.len() as u32;
    let lane = lanes_of(mask).find(|&lane| addresses[lane] + u64::from(size) > u64::from(limit))?;
    let fault = Fault::LdsOutOfBounds { access, offset: addresses[lane], size, limit };
    Some(env.raise(fault, Some((half * LANES + lane) as u32)))
}

/// The workgroup's LDS, at lanes' offsets.
struct Lds;

impl Place for Lds {
    #[inline(always)]
    fn resolve(
        w: &Wave,
        env: &mut Env<'_>,
        op: &Op,
        access: Access,
        (half, mask): (usize, u32),
        size: u32,
    ) -> Result<(Addresses, u32), Flow> {
        let mut addresses = offsets(w, op, half, op.imm as u32);
        let fault = resolve(w, env, op, access, (half, mask), &mut addresses, size);
        fault.map_or(Ok((addresses, mask)), Err)
    }

    #[inline(always)]
    fn resolve_atomic(
        w: &Wave,
        env: &mut Env<'_>,
        op: &Op,
        (half, mask): (usize, u32),
        size: u32,
    ) -> Result<(Addresses, u32), Flow> {
        let mut addresses = offsets(w, op, half, op.imm as u32);
        let fault = atomic_addresses(w, env, op, (half, mask), &mut addresses, size);
        fault.map_or(Ok((addresses, mask)), Err)
    }

    #[inline(always)]
    fn compare(op: &Op, data: u16, _wide: bool) -> u16 {
        if let Src::Vgpr(register) = op.src[2] { register } else { data }
    }
}

/// LDS at M0 + offset + four times the lane number.
struct LaneByLane;

impl Place for LaneByLane {
    const DATA: usize = 0;

    #[inline(always)]
    fn resolve(
        w: &Wave,
        env: &mut Env<'_>,
        op: &Op,
        access: Access,
        (half, mask): (usize, u32),
        size: u32,
    ) -> Result<(Addresses, u32), Flow> {
        let base = (w.m0() & 0xffff) + op.imm as u32;
        let mut addresses = std::array::from_fn(|lane| u64::from(base) + ((half * LANES + lane) * 4) as u64);
        let fault = resolve(w, env, op, access, (half, mask), &mut addresses, size);
        fault.map_or(Ok((addresses, mask)), Err)
    }
}

/// Two elements of `N` dwords each.
struct LoadPair<const N: usize>;

impl<const N: usize> Exec for LoadPair<N> {
    #[inline(always)]
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let Dst::Vgpr(register) = op.dst[0] else { return Flow::Next };
        let size = 4 * N as u32;
        for half in 0..w.halves() {
            let mask = w.exec(half);
            if mask == 0 {
                continue;
            }
            // Both addresses first: the destination may overlap the address register.
            let mut first = offsets(w, op, half, op.imm as u32);
            let mut second = offsets(w, op, half, (op.imm >> 32) as u32 & 0x7fff_ffff);
            for addresses in [&mut first, &mut second] {
                if let Some(flow) = resolve(w, env, op, Access::Read, (half, mask), addresses, size) {
                    return flow;
                }
            }
            // SAFETY: `resolve` checked the lanes of `mask`.
            unsafe {
                lanes::load::<lanes::Dwords<N>, N>(w, register, half, mask, &first);
                lanes::load::<lanes::Dwords<N>, N>(w, register + N as u16, half, mask, &second);
            }
        }
        Flow::Next
    }
}

struct StorePair<const N: usize>;

impl<const N: usize> Exec for StorePair<N> {
    #[inline(always)]
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let size = 4 * N as u32;
        for half in 0..w.halves() {
            let mask = w.exec(half);
            if mask == 0 {
                continue;
            }
            let constants = [op.imm as u32, (op.imm >> 32) as u32 & 0x7fff_ffff];
            for (src, constant) in op.src[1..].iter().zip(constants) {
                let Src::Vgpr(register) = *src else { continue };
                let mut addresses = offsets(w, op, half, constant);
                if let Some(flow) = resolve(w, env, op, Access::Write, (half, mask), &mut addresses, size) {
                    return flow;
                }
                // SAFETY: `resolve` checked the lanes of `mask`.
                unsafe { lanes::store::<lanes::Dwords<N>, N>(w, register, half, mask, &addresses) };
            }
        }
        Flow::Next
    }
}

struct ExchangePair;
impl Exec for ExchangePair {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let Dst::Vgpr(old) = op.dst[0] else { return Flow::Next };
        let wide = op.imm >> 63 != 0;
        let size = if wide { 8 } else { 4 };
        for half in 0..w.halves() {
            let mask = w.exec(half);
            let constants = [op.imm as u32, (op.imm >> 32) as u32 & 0x7fff_ffff];
            let both = constants.map(|constant| offsets(w, op, half, constant));
            for (n, mut addresses) in both.into_iter().enumerate() {
                let Src::Vgpr(data) = op.src[1 + n] else { continue };
                if let Some(flow) = atomic_addresses(w, env, op, (half, mask), &mut addresses, size) {
                    return flow;
                }
                let operands = lanes::AtomicOperands {
                    operation: Operation::Swap,
                    wide,
                    data,
                    compare: data,
                    old: Some(old + n as u16 * (size / 4) as u16),
                };
                // SAFETY: `atomic_addresses` checked the lanes of `mask`.
                unsafe { lanes::atomic(w, operands, half, mask, &addresses) };
            }
        }
        Flow::Next
    }
}

/// Host addresses for an atomic: in bounds and aligned.
fn atomic_addresses(
    w: &Wave,
    env: &mut Env<'_>,
    op: &Op,
    lanes: (usize, u32),
    addresses: &mut Addresses,
    size: u32,
) -> Option<Flow> {
    // LDS itself lies at an aligned address, so that offsets can be judged as they are.
    lanes::check_alignment(env, Space::Lds, lanes, addresses, size)
        .or_else(|| resolve(w, env, op, Access::Atomic, lanes, addresses, size))
}

/// Adds the number of active lanes to a counter (or subtracts it); every active lane gets the old value.
struct Count<const UP: bool>;
impl<const UP: bool> Exec for Count<UP> {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let Dst::Vgpr(register) = op.dst[0] else { return Flow::Next };
        let offset = (w.m0() & 0xffff) + (op.imm as u32 & 0xffff);
        let (access, size, limit) = (Access::Atomic, 4, env.lds.len() as u32);
        if offset + size > limit {
            return env.raise(Fault::LdsOutOfBounds { access, offset: offset.into(), size, limit }, None);
        }
        // The wave's is one access.
        let address = env.lds.as_ptr().expose_provenance() as u64 + u64::from(offset);
        let lanes = Lanes { op, access, half: 0, mask: 1, addresses: &[address; LANES], size };
        if let Some(flow) = env.note_lds(w, lanes) {
            return flow;
        }
        let cell = &mut env.lds[offset as usize..][..4];
        let old = u32::from_le_bytes([cell[0], cell[1], cell[2], cell[3]]);
        let lanes = w.exec64().count_ones();
        let new = if UP { old.wrapping_add(lanes) } else { old.wrapping_sub(lanes) };
        cell.copy_from_slice(&new.to_le_bytes());
        for half in 0..w.halves() {
            w.write(register, half, &Row::splat(old));
        }
        Flow::Next
    }
}

/// Writes `value(lane)` to the destination's active lanes, once all are known.
fn write_lanes(w: &mut Wave, dst: Dst, value: impl Fn(&Wave, usize) -> u32) {
    let Dst::Vgpr(register) = dst else { return };
    let mut values = [Row::ZERO; 2];
    for lane in 0..w.size() as usize {
        values[lane / LANES].0[lane % LANES] = value(w, lane);
    }
    for half in 0..w.halves() {
        w.write(register, half, &values[half]);
    }
}

/// A source's value in one lane; inactive lanes read as zero.
fn active(w: &Wave, src: Src, lane: usize) -> u32 {
    match src {
        Src::Vgpr(register) if w.exec64() >> lane & 1 != 0 => w.lane(register, lane),
        _ => 0,
    }
}

struct Swizzle;
impl Exec for Swizzle {
    fn exec(w: &mut Wave, _: &mut Env<'_>, op: &Op) -> Flow {
        let pattern = op.imm as u32 & 0xffff;
        write_lanes(w, op.dst[0], |w, lane| active(w, op.src[0], swizzled_lane(pattern, lane)));
        Flow::Next
    }
}

/// The lane that `lane` reads under a `ds_swizzle_b32` pattern.
pub(super) fn swizzled_lane(pattern: u32, lane: usize) -> usize {
    let group = lane & !31;
    let lane_in_group = (lane & 31) as u32;
    let source = if pattern >= 0xe000 {
        // FFT mode: bit reversal above the masked bits.
        let mask = pattern & 0x1f;
        let reversed = lane_in_group.reverse_bits() >> 27;
        fft_lane(lane_in_group, reversed, mask)
    } else if pattern >= 0xc000 {
        // Rotate mode: bit 10 the direction, bits 9:5 the distance, bits 4:0 the lane bits that stay.
        let (right, distance, stays) = (pattern >> 10 & 1 != 0, pattern >> 5 & 0x1f, pattern & 0x1f);
        let rotated =
            if right { lane_in_group.wrapping_sub(distance) } else { lane_in_group.wrapping_add(distance) };
        lane_in_group & stays | rotated & 0x1f & !stays
    } else if pattern & 0x8000 != 0 {
        // Quad permute.
        let select = pattern >> ((lane_in_group & 3) * 2) & 3;
        lane_in_group & !3 | select
    } else {
        // Bit mask: and, or, xor.
        let (and, or, xor) = (pattern & 0x1f, pattern >> 5 & 0x1f, pattern >> 10 & 0x1f);
        (lane_in_group & and | or) ^ xor
    };
    group + (source & 31) as usize
}

/// FFT mode: where `mask` is 0x1f nothing moves, with 0x00 the lanes are bit-reversed in groups of 32, 0x10 in
/// groups of 16, 0x18 of 8, 0x1c of 4.
fn fft_lane(lane: u32, reversed: u32, mask: u32) -> u32 {
    let kept = mask.count_ones();
    lane & mask | reversed >> kept & !mask & 0x1f
}

struct Permute;
impl Exec for Permute {
    /// Pushes to lane `address / 4`; where several push to one lane, the highest wins. Lanes that nobody pushes
    /// to get zero.
    fn exec(w: &mut Wave, _: &mut Env<'_>, op: &Op) -> Flow {
        let Dst::Vgpr(register) = op.dst[0] else { return Flow::Next };
        let size = w.size() as usize;
        let mut values = [Row::ZERO; 2];
        for lane in 0..size {
            if w.exec64() >> lane & 1 != 0 {
                let address = active(w, op.src[0], lane).wrapping_add(op.imm as u32);
                let into = address as usize / 4 % size;
                values[into / LANES].0[into % LANES] = active(w, op.src[1], lane);
            }
        }
        for half in 0..w.halves() {
            w.write(register, half, &values[half]);
        }
        Flow::Next
    }
}

struct BPermute<const FETCH_INACTIVE: bool>;
impl<const FETCH_INACTIVE: bool> Exec for BPermute<FETCH_INACTIVE> {
    /// Pulls from lane `address / 4`, wrapping around; inactive lanes give zero.
    #[inline(always)]
    fn exec(w: &mut Wave, _: &mut Env<'_>, op: &Op) -> Flow {
        let (Src::Vgpr(address), Src::Vgpr(data), Dst::Vgpr(register)) = (op.src[0], op.src[1], op.dst[0])
        else {
            return Flow::Next;
        };
        // In a wave of 32 lanes both halves are the one that there is.
        let mut values = [Row::ZERO; 2];
        for (half, row) in values.iter_mut().enumerate() {
            let half = half & (w.halves() - 1);
            let exec = if FETCH_INACTIVE { u32::MAX } else { w.exec(half) };
            let data = w.vgpr(data, half);
            for lane in 0..LANES {
                row.0[lane] = data.0[lane] & (exec >> lane & 1).wrapping_neg();
            }
        }
        let mut results = [Row::ZERO; 2];
        for half in 0..w.halves() {
            let addresses = w.vgpr(address, half);
            for lane in 0..LANES {
                let from = addresses.0[lane].wrapping_add(op.imm as u32) as usize / 4 % (2 * LANES);
                results[half].0[lane] = values[from / LANES].0[from % LANES];
            }
        }
        for half in 0..w.halves() {
            w.write(register, half, &results[half]);
        }
        Flow::Next
    }
}

struct Nothing;
impl Exec for Nothing {
    fn exec(_: &mut Wave, _: &mut Env<'_>, _: &Op) -> Flow {
        Flow::Next
    }
}
