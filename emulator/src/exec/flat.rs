//! FLAT, GLOBAL and SCRATCH.

use super::Env;
use super::atomic;
use super::isa::Exec;
use super::lanes::{self, Addresses, Lanes, lanes_of};
use super::op::{Dst, Flow, Kind, Op, Src, Unit};
use super::transfer::{self, Atomic, LdsLoad, Place};
use super::wave::{LANES, Row, Wave, slot};
use crate::fault::{Access, Fault};
use crate::gfx::Gfx;
use crate::inst::{Format, Inst, Operand, SpecialReg};
use crate::memory::pointer;
use std::marker::PhantomData;

/// Bit 32 of `imm`: there is a vector address.
const HAS_VADDR: u64 = 1 << 32;
/// Bit 33 of `imm`: there is a scalar address.
const HAS_SADDR: u64 = 1 << 33;
/// Bit 34 of `imm`: lane number times four is added.
const ADD_TID: u64 = 1 << 34;

/// Kinds of address.
const GLOBAL: u8 = 0;
const FLAT: u8 = 1;
const SCRATCH: u8 = 2;

/// The FLAT, GLOBAL or SCRATCH instruction `inst`, prepared.
pub(crate) fn lookup(_gfx: Gfx, inst: &Inst) -> Option<Op> {
    let (_, operation) = inst.name.split_once('_')?;
    if let Some(name) = operation.strip_prefix("atomic_") {
        return lookup_atomic(inst, name);
    }
    if let Some(shape) = operation.strip_prefix("load_") {
        let shape = shape.strip_prefix("addtid_").or_else(|| shape.strip_suffix("_addtid")).unwrap_or(shape);
        if inst.mods.lds || shape.starts_with("lds_") {
            let fetch = lanes::Fetch::parse(shape.strip_prefix("lds_").unwrap_or(shape))?;
            let mut op = match inst.format {
                Format::Flat => Op::new::<LdsLoad<Memory<FLAT>>>(Unit::Vmem, inst),
                Format::Scratch => Op::new::<LdsLoad<Memory<SCRATCH>>>(Unit::Vmem, inst),
                _ => Op::new::<LdsLoad<Memory<GLOBAL>>>(Unit::Vmem, inst),
            };
            addresses_from(inst, inst.srcs(), None, &mut op)?;
            op.imm |= fetch.pack();
            return Some(op);
        }
        let mut op = match inst.format {
            Format::Scratch if shape == "block" => Op::new::<LoadBlock<Memory<SCRATCH>>>(Unit::Vmem, inst),
            _ if shape == "block" => Op::new::<LoadBlock<Memory<GLOBAL>>>(Unit::Vmem, inst),
            _ if shape == "tr_b128" => Op::new::<LoadTransposed<4>>(Unit::Vmem, inst),
            _ if shape == "tr_b64" => Op::new::<LoadTransposed<2>>(Unit::Vmem, inst),
            Format::Flat => transfer::load::<Memory<FLAT>>(Unit::Vmem, inst, shape)?,
            Format::Scratch => transfer::load::<Memory<SCRATCH>>(Unit::Vmem, inst, shape)?,
            _ => transfer::load::<Memory<GLOBAL>>(Unit::Vmem, inst, shape)?,
        };
        op.dst[0] = Dst::of(inst.dsts().first()?);
        addresses_from(inst, inst.srcs(), None, &mut op)?;
        return Some(op);
    }
    if let Some(shape) = operation.strip_prefix("store_") {
        let shape = shape.strip_prefix("addtid_").or_else(|| shape.strip_suffix("_addtid")).unwrap_or(shape);
        let mut op = match inst.format {
            Format::Scratch if shape == "block" => Op::new::<StoreBlock<Memory<SCRATCH>>>(Unit::Vmem, inst),
            _ if shape == "block" => Op::new::<StoreBlock<Memory<GLOBAL>>>(Unit::Vmem, inst),
            Format::Flat => transfer::store::<Memory<FLAT>>(Unit::Vmem, inst, shape)?,
            Format::Scratch => transfer::store::<Memory<SCRATCH>>(Unit::Vmem, inst, shape)?,
            _ => transfer::store::<Memory<GLOBAL>>(Unit::Vmem, inst, shape)?,
        };
        addresses_from(inst, inst.srcs(), Some(1), &mut op)?;
        return Some(op);
    }
    // Caches are not modelled.
    match operation {
        "wb" | "inv" | "wbinv" => Some(Op::new::<Nothing>(Unit::Vmem, inst)),
        _ => None,
    }
}

fn lookup_atomic(inst: &Inst, name: &str) -> Option<Op> {
    let (operation, wide) = atomic::parse(name)?;
    let mut op = match inst.format {
        Format::Flat => Op::new::<Atomic<Memory<FLAT>>>(Unit::Vmem, inst),
        Format::Global => Op::new::<Atomic<Memory<GLOBAL>>>(Unit::Vmem, inst),
        _ => return None,
    };
    op.dst[0] = inst.dsts().first().map_or(Dst::None, Dst::of);
    addresses_from(inst, inst.srcs(), Some(1), &mut op)?;
    transfer::set_atomic(&mut op, operation, wide);
    Some(op)
}

/// Source 0 is the vector address, source 1 the data, source 2 the scalar address.
fn addresses_from(inst: &Inst, srcs: &[Operand], data: Option<usize>, op: &mut Op) -> Option<()> {
    let is_absent = |operand: &Operand| {
        matches!(operand, Operand::Off | Operand::Special(SpecialReg::Null | SpecialReg::ExecHi))
    };
    op.imm = u64::from(inst.mods.offset as u32);
    let vaddr = srcs.first()?;
    if !is_absent(vaddr) {
        op.src[0] = Src::of(vaddr, Kind::B64);
        op.imm |= HAS_VADDR;
    }
    if let Some(at) = data {
        op.src[1] = Src::of(srcs.get(at)?, Kind::B32);
    }
    if let Some(saddr) = srcs.get(data.map_or(1, |at| at + 1)).filter(|saddr| !is_absent(saddr)) {
        op.src[2] = Src::of(saddr, Kind::B64);
        op.imm |= HAS_SADDR;
    }
    if inst.name.contains("addtid") {
        op.imm |= ADD_TID;
    }
    Some(())
}

/// The addresses as the instruction computes them: 64 bits, for SCRATCH 32.
#[inline(always)]
fn addresses<const MODE: u8>(w: &Wave, op: &Op, half: usize) -> Addresses {
    let offset = i64::from(op.imm as i32) as u64;
    let mut addresses = [0; LANES];
    if MODE == SCRATCH {
        let mut temp = Row::ZERO;
        let vaddr = w.row(op.src[0], half, &mut temp);
        // Without its flag an address part is the constant zero.
        let base = w.scalar(op.src[2]).wrapping_add(offset as u32);
        for lane in 0..LANES {
            addresses[lane] = u64::from(vaddr.0[lane].wrapping_add(base));
        }
    } else if op.imm & HAS_SADDR != 0 {
        let mut temp = Row::ZERO;
        let vaddr = w.row(op.src[0], half, &mut temp);
        let base = w.scalar64(op.src[2]).wrapping_add(offset);
        for lane in 0..LANES {
            addresses[lane] = base.wrapping_add(u64::from(vaddr.0[lane]));
        }
        if op.imm & ADD_TID != 0 {
            for lane in 0..LANES {
                addresses[lane] += ((half * LANES + lane) * 4) as u64;
            }
        }
    } else {
        let (mut low, mut high) = (Row::ZERO, Row::ZERO);
        let low = w.row(op.src[0], half, &mut low);
        let high = w.row(op.src[0].dword(1), half, &mut high);
        for lane in 0..LANES {
            let address = u64::from(low.0[lane]) | u64::from(high.0[lane]) << 32;
            addresses[lane] = address.wrapping_add(offset);
        }
    }
    addresses
}

/// Memory at lanes' addresses: global, flat or scratch.
struct Memory<const MODE: u8>;

impl<const MODE: u8> Place for Memory<MODE> {
    #[inline(always)]
    fn resolve(
        w: &Wave,
        env: &mut Env<'_>,
        op: &Op,
        access: Access,
        (half, mask): (usize, u32),
        size: u32,
    ) -> Result<(Addresses, u32), Flow> {
        let mut addresses = addresses::<MODE>(w, op, half);
        if MODE == SCRATCH {
            if let Some(flow) = to_scratch(w, env, access, (half, mask), &mut addresses, size) {
                return Err(flow);
            }
            return Ok((addresses, mask));
        }
        if env.has_aliases() {
            let others = lanes::resolve_aliases(env, mask, &mut addresses, size);
            if others != mask {
                return resolve_others(w, env, op, access, (half, mask, others), addresses, size);
            }
        }
        if MODE == FLAT && !lanes::all_within(&addresses, mask, env.hit(op), size) {
            // Lanes in the LDS and scratch apertures become host addresses; the others are checked here.
            let (addresses, in_lds, in_scratch) =
                flat_resolve(w, env, op, access, (half, mask), addresses, size)?;
            let lanes = |mask| Lanes { op, access, half, mask, addresses: &addresses, size };
            let noted = env
                .note_global(w, lanes(mask & !in_lds & !in_scratch))
                .or_else(|| env.note_lds(w, lanes(in_lds)));
            return noted.map_or(Ok((addresses, mask)), Err);
        }
        let lanes = Lanes { op, access, half, mask, addresses: &addresses, size };
        let fault = lanes::check_global(env, lanes).or_else(|| env.note_global(w, lanes));
        fault.map_or(Ok((addresses, mask)), Err)
    }
}

/// As [`Memory::resolve`], where only the lanes of `others` have addresses that are not the host's already.
#[cold]
fn resolve_others(
    w: &Wave,
    env: &mut Env<'_>,
    op: &Op,
    access: Access,
    (half, mask, others): (usize, u32, u32),
    addresses: Addresses,
    size: u32,
) -> Result<(Addresses, u32), Flow> {
    let (addresses, in_lds, in_scratch) = flat_resolve(w, env, op, access, (half, others), addresses, size)?;
    let lanes = |mask| Lanes { op, access, half, mask, addresses: &addresses, size };
    let noted =
        env.note_global(w, lanes(others & !in_lds & !in_scratch)).or_else(|| env.note_lds(w, lanes(in_lds)));
    noted.map_or(Ok((addresses, mask)), Err)
}

/// Turns per-lane scratch addresses into host addresses.
#[inline(always)]
pub(super) fn to_scratch(
    w: &Wave,
    env: &mut Env<'_>,
    access: Access,
    (half, mask): (usize, u32),
    addresses: &mut Addresses,
    size: u32,
) -> Option<Flow> {
    if !lanes::all_within(addresses, mask, (0, u64::from(w.scratch_size)), size) {
        let end = u64::from(w.scratch_size);
        let lane = lanes_of(mask).find(|&lane| addresses[lane] + u64::from(size) > end)?;
        let offset = i64::from(addresses[lane] as i32);
        let fault = Fault::ScratchOutOfBounds { access, offset, size, limit: w.scratch_size };
        return Some(env.raise(fault, Some((half * LANES + lane) as u32)));
    }
    // Lanes that are off may only make it more.
    let end = addresses.iter().fold(0, |end, &address| end.max(address.saturating_add(size.into())));
    env.scratch_used = env.scratch_used.max(end.min(w.scratch_size.into()) as u32);
    for lane in 0..LANES {
        addresses[lane] += w.scratch_base + (half * LANES + lane) as u64 * u64::from(w.scratch_size);
    }
    None
}

/// Host addresses, and which lanes access LDS and which scratch.
#[inline(never)]
fn flat_resolve(
    w: &Wave,
    env: &mut Env<'_>,
    op: &Op,
    access: Access,
    (half, mask): (usize, u32),
    mut addresses: Addresses,
    size: u32,
) -> Result<(Addresses, u32, u32), Flow> {
    let (mut in_lds, mut in_scratch) = (0, 0);
    let shared = w.sgpr64(slot::SHARED_BASE) >> 32;
    let private = w.sgpr64(slot::PRIVATE_BASE) >> 32;
    for lane in lanes_of(mask) {
        let address = addresses[lane];
        let number = Some((half * LANES + lane) as u32);
        let offset = address & 0xffff_ffff;
        if address >> 32 == shared {
            let limit = env.lds.len() as u32;
            if offset + u64::from(size) > u64::from(limit) {
                return Err(env.raise(Fault::LdsOutOfBounds { access, offset, size, limit }, number));
            }
            addresses[lane] = env.lds.as_mut_ptr().expose_provenance() as u64 + offset;
            in_lds |= 1 << lane;
        } else if address >> 32 == private {
            let limit = w.scratch_size;
            if offset + u64::from(size) > u64::from(limit) {
                let offset = offset as i64;
                return Err(env.raise(Fault::ScratchOutOfBounds { access, offset, size, limit }, number));
            }
            env.scratch_used = env.scratch_used.max(offset as u32 + size);
            let lane_base = (half * LANES + lane) as u64 * u64::from(limit);
            addresses[lane] = w.scratch_base + lane_base + offset;
            in_scratch |= 1 << lane;
        } else if !env.is_valid(op, address, size) {
            return Err(env.out_of_bounds(access, address, size, number));
        }
    }
    Ok((addresses, in_lds, in_scratch))
}

/// Dwords of a block.
const BLOCK: u16 = 32;

/// The part of an instruction on a block that accesses its dword `n`.
fn dword_of_block(op: &Op, n: u16) -> Op {
    let offset = (op.imm as u32).wrapping_add(u32::from(n) * 4);
    Op { pair: None, imm: op.imm & !0xffff_ffff | u64::from(offset), ..*op }
}

/// Loads as many registers as M0 has bits, each from its place in a block of 32 dwords.
struct LoadBlock<P: Place>(PhantomData<P>);
impl<P: Place> Exec for LoadBlock<P> {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let Dst::Vgpr(register) = op.dst[0] else { return Flow::Next };
        for half in 0..w.halves() {
            let mask = w.exec(half);
            // The destination may have the address in it: nothing is written before all is read.
            let mut rows = [Row::ZERO; BLOCK as usize];
            let m0 = w.m0();
            let wanted = |n: &u16| m0 >> n & 1 != 0;
            for n in (0..BLOCK).filter(wanted) {
                let part = dword_of_block(op, n);
                let (addresses, inside) = match P::resolve(w, env, &part, Access::Read, (half, mask), 4) {
                    Ok(resolved) => resolved,
                    Err(flow) => return flow,
                };
                for lane in lanes_of(inside) {
                    // SAFETY: `resolve` checked the lanes of `inside`.
                    rows[usize::from(n)].0[lane] =
                        unsafe { pointer(addresses[lane]).cast::<u32>().read_unaligned() };
                }
            }
            for n in (0..BLOCK).filter(wanted) {
                w.write_masked(register + n, half, mask, &rows[usize::from(n)]);
            }
        }
        Flow::Next
    }
}

/// Stores as many registers as M0 has bits, each to its place in a block of 32 dwords.
struct StoreBlock<P: Place>(PhantomData<P>);
impl<P: Place> Exec for StoreBlock<P> {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let Src::Vgpr(register) = op.src[1] else { return Flow::Next };
        for half in 0..w.halves() {
            let mask = w.exec(half);
            for n in (0..BLOCK).filter(|n| w.m0() >> n & 1 != 0) {
                let part = dword_of_block(op, n);
                let (addresses, inside) = match P::resolve(w, env, &part, Access::Write, (half, mask), 4) {
                    Ok(resolved) => resolved,
                    Err(flow) => return flow,
                };
                // SAFETY: `resolve` checked the lanes of `inside`.
                unsafe {
                    lanes::store::<lanes::Dwords<1>, 1>(w, register + n, half, inside, &addresses);
                }
            }
        }
        Flow::Next
    }
}

/// Loads `N` dwords in each lane, as eight elements, and transposes them between lanes. Waves of 64 lanes, whose lanes
/// would load half as much, are not supported: nobody has published what they do.
struct LoadTransposed<const N: usize>;
impl<const N: usize> Exec for LoadTransposed<N> {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let Dst::Vgpr(register) = op.dst[0] else { return Flow::Next };
        if w.halves() != 1 {
            let instruction = env.code.text_of(op.inst).unwrap_or_default();
            return env.raise(Fault::Unsupported { instruction, gfx: env.gfx }, None);
        }
        let mask = w.exec(0);
        let (addresses, inside) =
            match Memory::<GLOBAL>::resolve(w, env, op, Access::Read, (0, mask), 4 * N as u32) {
                Ok(resolved) => resolved,
                Err(flow) => return flow,
            };
        let mut elements = [[0u16; 8]; LANES];
        for lane in lanes_of(inside) {
            // SAFETY: `resolve` checked the lanes of `inside`.
            let values = unsafe { pointer(addresses[lane]).cast::<[u32; N]>().read_unaligned() };
            elements[lane] = std::array::from_fn(|n| match N {
                4 => (values[n / 2] >> (n % 2 * 16)) as u16,
                _ => u16::from((values[n / 4] >> (n % 4 * 8)) as u8),
            });
        }
        let mut rows = [Row::ZERO; N];
        for lane in 0..LANES {
            for n in 0..8 {
                let element = u32::from(elements[transposed_from::<N>(lane, n)][lane % 8]);
                let (row, shift) = if N == 4 { (n / 2, n % 2 * 16) } else { (n / 4, n % 4 * 8) };
                rows[row].0[lane] |= element << shift;
            }
        }
        for (n, row) in rows.iter().enumerate() {
            w.write_masked(register + n as u16, 0, mask, row);
        }
        Flow::Next
    }
}

/// The lane that has loaded element `n` of `lane`'s result, at its own position `lane % 8`.
///
/// 16-bit elements move within 8 lanes: lane l gets element l % 8 of each. 8-bit elements move within 16, in runs of four:
/// each half of them gets the elements of the first or second four lanes of both. Both are as measured on gfx1201 by
/// others, AMD's manual not saying it: the first in the documentation of Tessera's WMMA fragments, the second by two
/// matrix kernels for fp8, which agree.
pub(super) fn transposed_from<const N: usize>(lane: usize, n: usize) -> usize {
    match N {
        4 => lane & !7 | n,
        _ => lane & !15 | (n & 4) << 1 | (lane & 8) >> 1 | n & 3,
    }
}

struct Nothing;
impl Exec for Nothing {
    fn exec(_: &mut Wave, _: &mut Env<'_>, _: &Op) -> Flow {
        Flow::Next
    }
}
