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
            let lane_base = (half * LANES + lane) as u64 * u64::from(limit);
            addresses[lane] = w.scratch_base + lane_base + offset;
            in_scratch |= 1 << lane;
        } else if !env.is_valid(op, address, size) {
            return Err(env.out_of_bounds(access, address, size, number));
        }
    }
    Ok((addresses, in_lds, in_scratch))
}

struct Nothing;
impl Exec for Nothing {
    fn exec(_: &mut Wave, _: &mut Env<'_>, _: &Op) -> Flow {
        Flow::Next
    }
}
