//! Scalar memory.

use super::isa::Exec;
use super::op::{Dst, Flow, Kind, Op, Src, Unit};
use super::salu::handler;
use super::{Env, Wave};
use crate::fault::Access;
use crate::gfx::Gfx;
use crate::inst::{Inst, Operand};
use crate::memory::pointer;

/// The scalar memory instruction `inst`, prepared.
pub(crate) fn lookup(_gfx: Gfx, inst: &Inst) -> Option<Op> {
    if let Some((buffer, width)) = load_width(inst.name) {
        let mut op = match (buffer, width) {
            (false, Width::Dwords(_)) => Op::new::<Load>(Unit::Smem, inst),
            (false, _) => Op::new::<LoadSmall>(Unit::Smem, inst),
            (true, _) => Op::new::<BufferLoad>(Unit::Smem, inst),
        };
        op.dst[0] = Dst::of(inst.dsts().first()?);
        address(inst.srcs(), inst, &mut op);
        op.imm |= u64::from(width.code()) << 32;
        return Some(op);
    }
    if let Some(dwords) = inst.name.strip_prefix("s_store_dword") {
        let mut op = Op::new::<Store>(Unit::Smem, inst);
        op.src[2] = Src::of(inst.srcs().first()?, Kind::B32);
        address(&inst.srcs()[1..], inst, &mut op);
        op.imm |= u64::from(dword_count(dwords)?) << 32;
        return Some(op);
    }
    Some(match inst.name {
        "s_memtime" | "s_memrealtime" => {
            let mut op = Op::new::<Time>(Unit::Smem, inst);
            op.dst[0] = Dst::of(inst.dsts().first()?);
            op
        }
        // There are no caches, so there is nothing to fetch ahead, to drop or to write back.
        name if name.contains("_inv")
            || name.contains("_wb")
            || name.starts_with("s_prefetch")
            || name.starts_with("s_atc_probe")
            || name.starts_with("s_buffer_prefetch")
            || name.starts_with("s_dcache_discard") =>
        {
            Op::new::<Nothing>(Unit::Smem, inst)
        }
        _ => return None,
    })
}

#[derive(Clone, Copy)]
enum Width {
    Dwords(u8),
    U8,
    I8,
    U16,
    I16,
}

impl Width {
    fn code(self) -> u8 {
        match self {
            Width::Dwords(count) => count,
            Width::U8 => 0x80,
            Width::I8 => 0x81,
            Width::U16 => 0x82,
            Width::I16 => 0x83,
        }
    }
}

/// Whether it is a buffer load, and how much it loads.
fn load_width(name: &str) -> Option<(bool, Width)> {
    let (buffer, width) = match name.strip_prefix("s_buffer_load_") {
        Some(width) => (true, width),
        None => (false, name.strip_prefix("s_load_").or_else(|| name.strip_prefix("s_scratch_load_"))?),
    };
    let width = match width {
        "u8" => Width::U8,
        "i8" => Width::I8,
        "u16" => Width::U16,
        "i16" => Width::I16,
        _ => match width.strip_prefix("dword") {
            Some(count) => Width::Dwords(dword_count(count)?),
            None => Width::Dwords((width.strip_prefix('b')?.parse::<u16>().ok()? / 32) as u8),
        },
    };
    Some((buffer, width))
}

/// `""` is one dword, `"x4"` four.
fn dword_count(suffix: &str) -> Option<u8> {
    if suffix.is_empty() { Some(1) } else { suffix.strip_prefix('x')?.parse().ok() }
}

/// The base goes to source 0, an offset register to source 1, a constant offset to the low half of `imm`.
fn address(operands: &[Operand], inst: &Inst, op: &mut Op) {
    let mut offset = inst.mods.offset;
    let mut operands = operands.iter();
    if let Some(base) = operands.next() {
        op.src[0] = Src::of(base, Kind::B64);
    }
    for operand in operands {
        match *operand {
            Operand::Imm(value) => offset = value as i32,
            Operand::InlineInt(value) => offset = i32::from(value),
            Operand::Literal(value) => offset = value as i32,
            _ => op.src[1] = Src::of(operand, Kind::B32),
        }
    }
    op.imm = u64::from(offset as u32);
}

/// Base + register offset + constant offset; the low two bits count as zero for dwords.
#[inline(always)]
fn effective_address(w: &Wave, op: &Op) -> u64 {
    let offset = i64::from(op.imm as i32) + i64::from(w.scalar(op.src[1]));
    w.scalar64(op.src[0]).wrapping_add_signed(offset)
}

struct Load;
impl Exec for Load {
    #[inline(always)]
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let address = effective_address(w, op) & !3;
        let count = (op.imm >> 32) as u16 & 0x1f;
        if !env.is_valid(op, address, u32::from(count) * 4) {
            return env.out_of_bounds(Access::Read, address, u32::from(count) * 4, None);
        }
        if let Some(flow) = env.note_scalar(w, op, Some(op.dst[0]), address, u32::from(count) * 4) {
            return flow;
        }
        let from = pointer(address).cast::<u32>();
        for n in 0..count {
            // SAFETY: the range was found to lie within an allocation.
            let value = unsafe { from.add(usize::from(n)).read_unaligned() };
            w.set_scalar(op.dst[0].dword(n), value);
        }
        Flow::Next
    }
}

struct LoadSmall;
impl Exec for LoadSmall {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let address = effective_address(w, op);
        let code = (op.imm >> 32) as u8;
        let size = if code >= Width::U16.code() { 2 } else { 1 };
        if !env.is_valid(op, address, size) {
            return env.out_of_bounds(Access::Read, address, size, None);
        }
        if let Some(flow) = env.note_scalar(w, op, Some(op.dst[0]), address, size) {
            return flow;
        }
        let from = pointer(address);
        // SAFETY: the range was found to lie within an allocation.
        let value = unsafe {
            match code {
                0x80 => u32::from(from.read()),
                0x81 => from.cast::<i8>().read() as u32,
                0x82 => u32::from(from.cast::<u16>().read_unaligned()),
                _ => from.cast::<i16>().read_unaligned() as u32,
            }
        };
        w.set_scalar(op.dst[0], value);
        Flow::Next
    }
}

/// The descriptor is base (48 bits), stride (14), records, flags. Reads beyond the records give zero.
struct BufferLoad;
impl Exec for BufferLoad {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let descriptor = [0, 1, 2].map(|n| w.scalar(op.src[0].dword(n)));
        let base = (u64::from(descriptor[0]) | u64::from(descriptor[1]) << 32) & 0xffff_ffff_ffff;
        let stride = u64::from(descriptor[1] >> 16 & 0x3fff);
        let limit = u64::from(descriptor[2]) * stride.max(1);
        let code = (op.imm >> 32) as u8;
        let (count, size) = match code {
            0x80 | 0x81 => (1, 1),
            0x82 | 0x83 => (1, 2),
            count => (u64::from(count), 4),
        };
        let offset = i64::from(op.imm as i32) + i64::from(w.scalar(op.src[1]));
        let offset = if size == 4 { offset as u64 & !3 } else { offset as u64 };
        for n in 0..count {
            let at = offset.wrapping_add(n * size);
            let mut bytes = [0; 4];
            if at.checked_add(size).is_some_and(|end| end <= limit) {
                let address = base.wrapping_add(at);
                if !env.is_valid(op, address, size as u32) {
                    return env.out_of_bounds(Access::Read, address, size as u32, None);
                }
                let into = Some(op.dst[0].dword(n as u16));
                if let Some(flow) = env.note_scalar(w, op, into, address, size as u32) {
                    return flow;
                }
                // SAFETY: the range was found to lie within an allocation, and is no longer than `bytes`.
                unsafe { pointer(address).copy_to_nonoverlapping(bytes.as_mut_ptr(), size as usize) };
            }
            let value = u32::from_le_bytes(bytes);
            let value = match code {
                0x81 => value as i8 as u32,
                0x83 => value as i16 as u32,
                _ => value,
            };
            w.set_scalar(op.dst[0].dword(n as u16), value);
        }
        Flow::Next
    }
}

struct Store;
impl Exec for Store {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let address = effective_address(w, op) & !3;
        let count = (op.imm >> 32) as u16 & 0x1f;
        if !env.is_valid(op, address, u32::from(count) * 4) {
            return env.out_of_bounds(Access::Write, address, u32::from(count) * 4, None);
        }
        if let Some(flow) = env.note_scalar(w, op, None, address, u32::from(count) * 4) {
            return flow;
        }
        for n in 0..count {
            let value = w.scalar(op.src[2].dword(n));
            // SAFETY: the range was found to lie within an allocation.
            unsafe { pointer(address).cast::<u32>().add(usize::from(n)).write_unaligned(value) };
        }
        Flow::Next
    }
}

handler! {
    Nothing |_w, _env, _op| {}
    Time |w, env, op| { w.set_scalar64(op.dst[0], env.now(w)) }
}
