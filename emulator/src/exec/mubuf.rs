//! Buffer instructions: addresses from a descriptor.

use super::atomic;
use super::isa::Exec;
use super::lanes::{self, Addresses, AtomicOperands, Load, Store};
use super::op::{Dst, Flow, Kind, Op, Src, Unit};
use super::wave::{LANES, Row, Wave};
use super::{Env, flat};
use crate::fault::{Access, Space};
use crate::gfx::{Generation, Gfx};
use crate::inst::{Inst, Operand};

/// Bit 32 of `imm`: the address register holds an index; bit 33: it (or the next one) holds an offset.
const IDXEN: u64 = 1 << 32;
const OFFEN: u64 = 1 << 33;

/// The buffer instruction `inst`, prepared.
pub(crate) fn lookup(gfx: Gfx, inst: &Inst) -> Option<Op> {
    if inst.mods.tfe {
        return None;
    }
    let operation = inst.name.strip_prefix("buffer_")?;
    if let Some(name) = operation.strip_prefix("atomic_") {
        let (operation, wide) = atomic::parse(name)?;
        let mut op = Op::new::<Atomic>(Unit::Vmem, inst);
        // With return, the one data register is both destination and data.
        let returned = inst.dsts().first();
        let data = returned.or_else(|| inst.srcs().first())?;
        op.dst[0] = returned.map_or(Dst::None, Dst::of);
        op.src[3] = Src::of(data, Kind::B32);
        address(gfx, inst, &inst.srcs()[usize::from(returned.is_none())..], &mut op)?;
        op.imm |= u64::from(wide) << 48;
        op.atomic = Some(operation);
        return Some(op);
    }
    if let Some(shape) = operation.strip_prefix("load_") {
        if inst.mods.lds {
            let mut op = Op::new::<LdsLoad>(Unit::Vmem, inst);
            address(gfx, inst, inst.srcs(), &mut op)?;
            op.imm |= lanes::Fetch::parse(shape)?.pack();
            return Some(op);
        }
        let mut op = lookup_load(inst, shape)?;
        op.dst[0] = Dst::of(inst.dsts().first()?);
        address(gfx, inst, inst.srcs(), &mut op)?;
        return Some(op);
    }
    if let Some(shape) = operation.strip_prefix("store_") {
        let mut op = lookup_store(inst, shape)?;
        op.src[3] = Src::of(inst.srcs().first()?, Kind::B32);
        address(gfx, inst, &inst.srcs()[1..], &mut op)?;
        return Some(op);
    }
    // Caches are not modelled.
    let is_cache = operation.starts_with("gl0_inv")
        || operation.starts_with("gl1_inv")
        || operation.starts_with("wb")
        || operation.starts_with("inv");
    is_cache.then(|| Op::new::<Nothing>(Unit::Vmem, inst))
}

fn lookup_load(inst: &Inst, shape: &str) -> Option<Op> {
    macro_rules! load {
        ($shape:ty, $n:literal) => {
            Op::new::<LoadFrom<$shape, $n>>(Unit::Vmem, inst)
        };
    }
    Some(match shape {
        "ubyte" | "u8" => load!(lanes::U8, 1),
        "sbyte" | "i8" => load!(lanes::I8, 1),
        "ushort" | "u16" => load!(lanes::U16, 1),
        "sshort" | "i16" => load!(lanes::I16, 1),
        "dword" | "b32" => load!(lanes::Dwords<1>, 1),
        "dwordx2" | "b64" => load!(lanes::Dwords<2>, 2),
        "dwordx3" | "b96" => load!(lanes::Dwords<3>, 3),
        "dwordx4" | "b128" => load!(lanes::Dwords<4>, 4),
        "ubyte_d16" | "d16_u8" => load!(lanes::D16U8, 1),
        "sbyte_d16" | "d16_i8" => load!(lanes::D16I8, 1),
        "short_d16" | "d16_b16" => load!(lanes::D16, 1),
        "ubyte_d16_hi" | "d16_hi_u8" => load!(lanes::D16HiU8, 1),
        "sbyte_d16_hi" | "d16_hi_i8" => load!(lanes::D16HiI8, 1),
        "short_d16_hi" | "d16_hi_b16" => load!(lanes::D16Hi, 1),
        _ => return None,
    })
}

fn lookup_store(inst: &Inst, shape: &str) -> Option<Op> {
    macro_rules! store {
        ($shape:ty, $n:literal) => {
            Op::new::<StoreTo<$shape, $n>>(Unit::Vmem, inst)
        };
    }
    Some(match shape {
        "byte" | "b8" => store!(lanes::Byte<0>, 1),
        "short" | "b16" => store!(lanes::Short<0>, 1),
        "byte_d16_hi" | "d16_hi_b8" => store!(lanes::Byte<16>, 1),
        "short_d16_hi" | "d16_hi_b16" => store!(lanes::Short<16>, 1),
        "dword" | "b32" => store!(lanes::Dwords<1>, 1),
        "dwordx2" | "b64" => store!(lanes::Dwords<2>, 2),
        "dwordx3" | "b96" => store!(lanes::Dwords<3>, 3),
        "dwordx4" | "b128" => store!(lanes::Dwords<4>, 4),
        _ => return None,
    })
}

/// Source 0 is the vector address, source 1 the descriptor, source 2 the scalar offset; source 3 is the data.
fn address(_gfx: Gfx, inst: &Inst, srcs: &[Operand], op: &mut Op) -> Option<()> {
    let [vaddr, descriptor, soffset] = srcs else { return None };
    op.src[0] = Src::of(vaddr, Kind::B32);
    op.src[1] = Src::of(descriptor, Kind::B32);
    op.src[2] = Src::of(soffset, Kind::B32);
    op.imm = u64::from(inst.mods.offset as u32);
    op.imm |= if inst.mods.idxen { IDXEN } else { 0 } | if inst.mods.offen { OFFEN } else { 0 };
    Some(())
}

/// A buffer descriptor's fields.
struct Descriptor {
    base: u64,
    stride: u64,
    records: u64,
    /// Elements are interleaved over lanes.
    swizzle: bool,
    add_tid: bool,
    /// Bytes of an interleaved element, and lanes that are interleaved.
    element: u64,
    lanes: u64,
    /// Whether records count elements of `stride` bytes when addressed by index.
    structured: bool,
}

impl Descriptor {
    fn of(gfx: Gfx, [w0, w1, w2, w3]: [u32; 4]) -> Descriptor {
        let base = u64::from(w0) | u64::from(w1 & 0xffff) << 32;
        let stride = u64::from(w1 >> 16 & 0x3fff);
        let index_stride = 8 << (w3 >> 21 & 3);
        let (swizzle, add_tid, element) = match gfx.generation() {
            Generation::Cdna => (w1 >> 31 != 0, w3 >> 23 & 1 != 0, 4),
            Generation::Gfx10 => (w1 >> 31 != 0, w3 >> 23 & 1 != 0, 4),
            Generation::Gfx11 | Generation::Gfx12 => {
                let element = [4, 4, 8, 16][(w1 >> 30 & 3) as usize];
                (w1 >> 30 & 3 != 0, w3 >> 23 & 1 != 0, element)
            }
        };
        let records = u64::from(w2);
        Descriptor {
            base,
            stride,
            records,
            swizzle,
            add_tid,
            element,
            lanes: index_stride,
            structured: stride != 0,
        }
    }
}

/// Host addresses of the lanes of `mask` that are within the buffer's records, and which they are.
#[inline(always)]
fn resolve(
    w: &Wave,
    env: &mut Env<'_>,
    op: &Op,
    access: Access,
    (half, mask): (usize, u32),
    size: u32,
) -> Result<(Addresses, u32), Flow> {
    let words = [0, 1, 2, 3].map(|n| w.scalar(op.src[1].dword(n)));
    let descriptor = Descriptor::of(env.gfx, words);
    let (mut first, mut second) = (Row::ZERO, Row::ZERO);
    let first = w.row(op.src[0], half, &mut first);
    let second = w.row(op.src[0].dword(1), half, &mut second);
    let (idxen, offen) = (op.imm & IDXEN != 0, op.imm & OFFEN != 0);
    let constant = u64::from(op.imm as u32);
    let soffset = u64::from(w.scalar(op.src[2]));
    let mut addresses = [0; LANES];
    if descriptor.add_tid && descriptor.swizzle {
        // The wave's scratch memory, which lies lane by lane here: an unswizzled distance is one of all lanes.
        let start = descriptor.base.wrapping_add(soffset).wrapping_sub(w.scratch_base) / u64::from(w.size());
        for lane in 0..LANES {
            let offset = if offen { if idxen { second.0[lane] } else { first.0[lane] } } else { 0 };
            addresses[lane] = start.wrapping_add(u64::from(offset)).wrapping_add(constant);
        }
        return match flat::to_scratch(w, env, access, (half, mask), &mut addresses, size) {
            Some(flow) => Err(flow),
            None => Ok((addresses, mask)),
        };
    }
    let mut inside = 0;
    for lane in 0..LANES {
        let index = if idxen { u64::from(first.0[lane]) } else { 0 }
            + if descriptor.add_tid { (half * LANES + lane) as u64 } else { 0 };
        let offset =
            constant + if offen { u64::from(if idxen { second.0[lane] } else { first.0[lane] }) } else { 0 };
        let fits = if descriptor.structured && idxen {
            index < descriptor.records
        } else {
            // Without an index, records are bytes.
            offset + soffset + u64::from(size) <= descriptor.records
        };
        let distance = if descriptor.swizzle {
            let (element, lanes, stride) = (descriptor.element, descriptor.lanes, descriptor.stride);
            let major = (index / lanes * stride + offset / element * element) * lanes;
            major + index % lanes * element + offset % element
        } else {
            index * descriptor.stride + offset
        };
        addresses[lane] = descriptor.base.wrapping_add(soffset).wrapping_add(distance);
        inside |= u32::from(fits) << lane;
    }
    let inside = inside & mask;
    let fault = lanes::check_global(env, op, access, (half, inside), &addresses, size)
        .or_else(|| env.note_global(w, op, access, (half, inside), &addresses, size));
    match fault {
        Some(flow) => Err(flow),
        None => Ok((addresses, inside)),
    }
}

struct LoadFrom<L: Load<N>, const N: usize>(std::marker::PhantomData<L>);

impl<L: Load<N>, const N: usize> Exec for LoadFrom<L, N> {
    #[inline(always)]
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let Dst::Vgpr(register) = op.dst[0] else { return Flow::Next };
        for half in 0..w.halves() {
            let mask = w.exec(half);
            let (addresses, inside) = match resolve(w, env, op, Access::Read, (half, mask), L::BYTES) {
                Ok(resolved) => resolved,
                Err(flow) => return flow,
            };
            // SAFETY: `resolve` checked the lanes of `inside`.
            unsafe { lanes::load::<L, N>(w, register, half, inside, &addresses) };
            // Beyond the records there are zeros.
            for lane in lanes::lanes_of(mask & !inside) {
                for dword in 0..N {
                    let cell = &mut w.vgpr_mut(register + dword as u16, half).0[lane];
                    *cell &= L::KEEP;
                }
            }
        }
        Flow::Next
    }
}

struct LdsLoad;
impl Exec for LdsLoad {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let fetch = lanes::Fetch::unpack(op.imm);
        for half in 0..w.halves() {
            let lanes = (half, w.exec(half));
            let (addresses, inside) = match resolve(w, env, op, Access::Read, lanes, fetch.bytes) {
                Ok(resolved) => resolved,
                Err(flow) => return flow,
            };
            let lanes = (half, inside);
            // SAFETY: `resolve` checked the lanes of `inside`.
            if let Some(flow) = unsafe { lanes::load_to_lds(w, env, lanes, &addresses, fetch, op.imm as u32) }
            {
                return flow;
            }
        }
        Flow::Next
    }
}

struct StoreTo<S: Store<N>, const N: usize>(std::marker::PhantomData<S>);

impl<S: Store<N>, const N: usize> Exec for StoreTo<S, N> {
    #[inline(always)]
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let Src::Vgpr(register) = op.src[3] else { return Flow::Next };
        for half in 0..w.halves() {
            let mask = w.exec(half);
            let (addresses, inside) = match resolve(w, env, op, Access::Write, (half, mask), S::BYTES) {
                Ok(resolved) => resolved,
                Err(flow) => return flow,
            };
            // SAFETY: `resolve` checked the lanes of `inside`.
            unsafe { lanes::store::<S, N>(w, register, half, inside, &addresses) };
        }
        Flow::Next
    }
}

struct Atomic;
impl Exec for Atomic {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let (Some(operation), Src::Vgpr(data)) = (op.atomic, op.src[3]) else { return Flow::Next };
        let wide = op.imm >> 48 & 1 != 0;
        let old = if let Dst::Vgpr(register) = op.dst[0] { Some(register) } else { None };
        let at = AtomicOperands { operation, wide, data, compare: data + 1 + u16::from(wide), old };
        for half in 0..w.halves() {
            let mask = w.exec(half);
            let (addresses, inside) = match resolve(w, env, op, Access::Atomic, (half, mask), at.bytes()) {
                Ok(resolved) => resolved,
                Err(flow) => return flow,
            };
            let lanes = (half, inside);
            if let Some(flow) = lanes::check_alignment(env, Space::Global, lanes, &addresses, at.bytes()) {
                return flow;
            }
            // SAFETY: both checks passed for the lanes of `inside`.
            unsafe { lanes::atomic(w, at, half, inside, &addresses) };
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
