//! Buffer instructions: addresses from a descriptor.

use super::isa::Exec;
use super::lanes::{self, Addresses, Lanes};
use super::op::{Dst, Flow, Kind, Op, Src, Unit};
use super::transfer::{self, Atomic, LdsLoad, Place};
use super::wave::{LANES, Row, Wave};
use super::{Env, atomic, flat};
use crate::fault::Access;
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
        let mut op = Op::new::<Atomic<Buffer>>(Unit::Vmem, inst);
        // With return, the one data register is both destination and data.
        let returned = inst.dsts().first();
        let data = returned.or_else(|| inst.srcs().first())?;
        op.dst[0] = returned.map_or(Dst::None, Dst::of);
        op.src[3] = Src::of(data, Kind::B32);
        address(gfx, inst, &inst.srcs()[usize::from(returned.is_none())..], &mut op)?;
        transfer::set_atomic(&mut op, operation, wide);
        return Some(op);
    }
    if let Some(shape) = operation.strip_prefix("load_") {
        if inst.mods.lds {
            let mut op = Op::new::<LdsLoad<Buffer>>(Unit::Vmem, inst);
            address(gfx, inst, inst.srcs(), &mut op)?;
            op.imm |= lanes::Fetch::parse(shape)?.pack();
            return Some(op);
        }
        let mut op = transfer::load::<Buffer>(Unit::Vmem, inst, shape)?;
        op.dst[0] = Dst::of(inst.dsts().first()?);
        address(gfx, inst, inst.srcs(), &mut op)?;
        return Some(op);
    }
    if let Some(shape) = operation.strip_prefix("store_") {
        let mut op = transfer::store::<Buffer>(Unit::Vmem, inst, shape)?;
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

/// Memory behind a descriptor: lanes beyond its records access nothing.
struct Buffer;

impl Place for Buffer {
    const DATA: usize = 3;

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
            let start =
                descriptor.base.wrapping_add(soffset).wrapping_sub(w.scratch_base) / u64::from(w.size());
            for lane in 0..LANES {
                let offset = if offen { if idxen { second.0[lane] } else { first.0[lane] } } else { 0 };
                addresses[lane] = start.wrapping_add(u64::from(offset)).wrapping_add(constant);
            }
            let fault = flat::to_scratch(w, env, access, (half, mask), &mut addresses, size);
            return fault.map_or(Ok((addresses, mask)), Err);
        }
        let mut inside = 0;
        for lane in 0..LANES {
            let index = if idxen { u64::from(first.0[lane]) } else { 0 }
                + if descriptor.add_tid { (half * LANES + lane) as u64 } else { 0 };
            let offset = constant
                + if offen { u64::from(if idxen { second.0[lane] } else { first.0[lane] }) } else { 0 };
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
        let lanes = Lanes { op, access, half, mask: inside, addresses: &addresses, size };
        let fault = lanes::check_global(env, lanes).or_else(|| env.note_global(w, lanes));
        fault.map_or(Ok((addresses, inside)), Err)
    }
}

struct Nothing;
impl Exec for Nothing {
    fn exec(_: &mut Wave, _: &mut Env<'_>, _: &Op) -> Flow {
        Flow::Next
    }
}
