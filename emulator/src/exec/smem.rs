//! Scalar memory.

use super::atomic;
use super::isa::Exec;
use super::op::{Dst, Flow, Kind, Op, Src, Unit};
use super::salu::handler;
use super::{Env, Wave};
use crate::fault::{Access, Fault, Space};
use crate::gfx::Gfx;
use crate::inst::{Inst, Operand};
use crate::memory::pointer;

/// The scalar memory instruction `inst`, prepared.
pub(crate) fn lookup(_gfx: Gfx, inst: &Inst) -> Option<Op> {
    if let Some((space, width)) = split_space(inst.name, "load_")
        && let Some(width) = load_width(width)
    {
        let mut op = match (space, width) {
            (BUFFER, _) => Op::new::<BufferLoad>(Unit::Smem, inst),
            (SCRATCH, _) => Op::new::<Load<SCRATCH>>(Unit::Smem, inst),
            (_, Width::Dwords(_)) => Op::new::<Load<GLOBAL>>(Unit::Smem, inst),
            _ => Op::new::<LoadSmall>(Unit::Smem, inst),
        };
        op.dst[0] = Dst::of(inst.dsts().first()?);
        address(inst.srcs(), inst, &mut op);
        op.imm |= u64::from(width.code()) << 32;
        return Some(op);
    }
    if let Some((space, name)) = split_space(inst.name, "store_") {
        let mut op = match space {
            BUFFER => Op::new::<Store<BUFFER>>(Unit::Smem, inst),
            SCRATCH => Op::new::<Store<SCRATCH>>(Unit::Smem, inst),
            _ => Op::new::<Store<GLOBAL>>(Unit::Smem, inst),
        };
        op.src[2] = Src::of(inst.srcs().first()?, Kind::B32);
        address(&inst.srcs()[1..], inst, &mut op);
        op.imm |= u64::from(dword_count(name.strip_prefix("dword")?)?) << 32;
        return Some(op);
    }
    if let Some((space, name)) = split_space(inst.name, "atomic_") {
        let (operation, wide) = atomic::parse(name)?;
        let mut op = match space {
            BUFFER => Op::new::<Atomic<BUFFER>>(Unit::Smem, inst),
            SCRATCH => return None,
            _ => Op::new::<Atomic<GLOBAL>>(Unit::Smem, inst),
        };
        // With return, the one data register is both destination and data.
        let returned = inst.dsts().first();
        op.dst[0] = returned.map_or(Dst::None, Dst::of);
        op.src[2] = Src::of(returned.or_else(|| inst.srcs().first())?, Kind::B32);
        address(&inst.srcs()[usize::from(returned.is_none())..], inst, &mut op);
        op.imm |= if wide { 2 << 32 } else { 1 << 32 };
        op.atomic = Some(operation);
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

/// Where an instruction leads.
const GLOBAL: u8 = 0;
const BUFFER: u8 = 1;
const SCRATCH: u8 = 2;

/// Where an instruction leads, and what stands behind `verb`; `None` if it is not one of those.
fn split_space<'a>(name: &'a str, verb: &str) -> Option<(u8, &'a str)> {
    [("s_buffer_", BUFFER), ("s_scratch_", SCRATCH), ("s_", GLOBAL)]
        .into_iter()
        .find_map(|(prefix, space)| Some((space, name.strip_prefix(prefix)?.strip_prefix(verb)?)))
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

/// How much a load loads, by what stands behind `load_`.
fn load_width(width: &str) -> Option<Width> {
    Some(match width {
        "u8" => Width::U8,
        "i8" => Width::I8,
        "u16" => Width::U16,
        "i16" => Width::I16,
        _ => match width.strip_prefix("dword") {
            Some(count) => Width::Dwords(dword_count(count)?),
            None => Width::Dwords((width.strip_prefix('b')?.parse::<u16>().ok()? / 32) as u8),
        },
    })
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

/// Dwords that an instruction accesses.
#[inline(always)]
fn dwords(op: &Op) -> u16 {
    (op.imm >> 32) as u16 & 0x1f
}

struct Load<const SPACE: u8>;
impl<const SPACE: u8> Exec for Load<SPACE> {
    #[inline(always)]
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let (address, _) = place::<SPACE>(w, op);
        let count = dwords(op);
        if SPACE == SCRATCH && in_scratch(env, address, u32::from(count) * 4) {
            // The memory of a workgroup's lanes, which check mode has no notes on.
        } else if !env.is_valid(op, address, u32::from(count) * 4) {
            return load_past_the_end(w, env, op, address);
        } else if let Some(flow) = env.note_scalar(w, op, Some(op.dst[0]), address, u32::from(count) * 4) {
            return flow;
        }
        let from = pointer(address).cast::<u32>();
        for n in 0..count {
            // SAFETY: the range was found to lie within an allocation, or within the workgroup's scratch memory.
            let value = unsafe { from.add(usize::from(n)).read_unaligned() };
            w.set_scalar(op.dst[0].dword(n), value);
        }
        Flow::Next
    }
}

/// Whether an access lies in the workgroup's scratch memory, which is then taken as accessed everywhere.
fn in_scratch(env: &mut Env<'_>, address: u64, size: u32) -> bool {
    let (start, bytes) = env.scratch;
    let offset = address.wrapping_sub(start);
    let inside = offset < bytes && bytes - offset >= u64::from(size);
    if inside {
        env.scratch_used = u32::MAX;
    }
    inside
}

/// A load that begins in an allocation and ends behind it. Compilers widen loads within the unit that they are aligned to,
/// three dwords to four, since no page ends there. What lies behind the allocation is undefined: it reads as zero, and
/// check mode reports its use.
#[cold]
fn load_past_the_end(w: &mut Wave, env: &mut Env<'_>, op: &Op, address: u64) -> Flow {
    let count = dwords(op);
    let size = u32::from(count) * 4;
    if let Some(host) = env.alias(address, size) {
        for n in 0..count {
            // SAFETY: the range lies within memory that is accessible under the alias.
            let value = unsafe { pointer(host).cast::<u32>().add(usize::from(n)).read_unaligned() };
            w.set_scalar(op.dst[0].dword(n), value);
        }
        return Flow::Next;
    }
    let inside = match env.find(op, address) {
        Some((base, bytes)) if address.is_multiple_of(u64::from(size.next_power_of_two())) => {
            (bytes - (address - base)).min(size.into()) as u32
        }
        _ => return env.out_of_bounds(Access::Read, address, size, None),
    };
    if let Some(flow) = env.note_scalar(w, op, Some(op.dst[0]), address, inside) {
        return flow;
    }
    for n in 0..count {
        let mut bytes = [0; 4];
        let at = u32::from(n) * 4;
        let there = inside.saturating_sub(at).min(4) as usize;
        // SAFETY: that many bytes lie within the allocation, and `bytes` is at least as long.
        unsafe {
            pointer(address + u64::from(at)).copy_to_nonoverlapping(bytes.as_mut_ptr(), there);
        }
        w.set_scalar(op.dst[0].dword(n), u32::from_le_bytes(bytes));
        if there == 0 {
            env.forget_scalar(w, op.dst[0].dword(n));
        }
    }
    Flow::Next
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

/// A buffer: where it starts and its bytes. The descriptor is base (48 bits), stride (14), records, flags.
fn buffer(w: &Wave, op: &Op) -> (u64, u64) {
    let descriptor = [0, 1, 2].map(|n| w.scalar(op.src[0].dword(n)));
    let base = (u64::from(descriptor[0]) | u64::from(descriptor[1]) << 32) & 0xffff_ffff_ffff;
    let stride = u64::from(descriptor[1] >> 16 & 0x3fff);
    (base, u64::from(descriptor[2]) * stride.max(1))
}

/// The offset into a buffer.
fn buffer_offset(w: &Wave, op: &Op) -> u64 {
    (i64::from(op.imm as i32) + i64::from(w.scalar(op.src[1]))) as u64
}

/// Reads beyond the records give zero.
struct BufferLoad;
impl Exec for BufferLoad {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let (base, limit) = buffer(w, op);
        let code = (op.imm >> 32) as u8;
        let (count, size) = match code {
            0x80 | 0x81 => (1, 1),
            0x82 | 0x83 => (1, 2),
            count => (u64::from(count), 4),
        };
        let offset = buffer_offset(w, op);
        let offset = if size == 4 { offset & !3 } else { offset };
        let unit = (count * size).next_power_of_two();
        let start = base.wrapping_add(offset);
        for n in 0..count {
            let at = offset.wrapping_add(n * size);
            let mut bytes = [0; 4];
            let into = op.dst[0].dword(n as u16);
            if at.checked_add(size).is_some_and(|end| end <= limit) {
                let address = base.wrapping_add(at);
                if env.is_valid(op, address, size as u32) {
                    if let Some(flow) = env.note_scalar(w, op, Some(into), address, size as u32) {
                        return flow;
                    }
                    // SAFETY: the range was found to lie within an allocation, and `bytes` is at least as long.
                    unsafe { pointer(address).copy_to_nonoverlapping(bytes.as_mut_ptr(), size as usize) };
                } else if n != 0 && start.is_multiple_of(unit) && env.find(op, address).is_none() {
                    // As in `load_past_the_end`.
                    env.forget_scalar(w, into);
                } else {
                    return env.out_of_bounds(Access::Read, address, size as u32, None);
                }
            }
            let value = u32::from_le_bytes(bytes);
            let value = match code {
                0x81 => value as i8 as u32,
                0x83 => value as i16 as u32,
                _ => value,
            };
            w.set_scalar(into, value);
        }
        Flow::Next
    }
}

/// Where an instruction leads, and how many of its bytes it accesses: a buffer's records end it.
#[inline(always)]
fn place<const SPACE: u8>(w: &Wave, op: &Op) -> (u64, u32) {
    let size = u32::from(dwords(op)) * 4;
    match SPACE {
        BUFFER => {
            let (base, limit) = buffer(w, op);
            let offset = buffer_offset(w, op) & !3;
            let inside = limit.saturating_sub(offset).min(size.into()) as u32 & !3;
            (base.wrapping_add(offset), inside)
        }
        // The register offset counts units of 64 bytes.
        SCRATCH => {
            let offset = i64::from(op.imm as i32) + (i64::from(w.scalar(op.src[1])) << 6);
            (w.scalar64(op.src[0]).wrapping_add_signed(offset) & !3, size)
        }
        _ => (effective_address(w, op) & !3, size),
    }
}

struct Store<const SPACE: u8>;
impl<const SPACE: u8> Exec for Store<SPACE> {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let (address, size) = place::<SPACE>(w, op);
        if size == 0 {
            return Flow::Next;
        }
        if SPACE == SCRATCH && in_scratch(env, address, size) {
            // As in `Load`.
        } else if !env.is_valid(op, address, size) {
            return env.out_of_bounds(Access::Write, address, size, None);
        } else if let Some(flow) = env.note_scalar(w, op, None, address, size) {
            return flow;
        }
        for n in 0..size as u16 / 4 {
            let value = w.scalar(op.src[2].dword(n));
            // SAFETY: as in `Load`.
            unsafe { pointer(address).cast::<u32>().add(usize::from(n)).write_unaligned(value) };
        }
        Flow::Next
    }
}

/// As a vector atomic of one lane.
struct Atomic<const SPACE: u8>;
impl<const SPACE: u8> Exec for Atomic<SPACE> {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let Some(operation) = op.atomic else { return Flow::Next };
        let count = dwords(op);
        let (address, size) = place::<SPACE>(w, op);
        if size < u32::from(count) * 4 {
            // Beyond a buffer's records nothing is accessed, and zero comes back.
            for n in 0..count {
                w.set_scalar(op.dst[0].dword(n), 0);
            }
            return Flow::Next;
        }
        if !env.is_valid(op, address, size) {
            return env.out_of_bounds(Access::Atomic, address, size, None);
        }
        if !address.is_multiple_of(size.into()) {
            let (access, space) = (Access::Atomic, Space::Global);
            return env.raise(Fault::Misaligned { access, space, address, size, alignment: size }, None);
        }
        if let Some(flow) = env.note_scalar_atomic(w, op, address, size) {
            return flow;
        }
        let data = op.src[2];
        if count == 2 {
            let (value, compare) = (w.scalar64(data), w.scalar64(data.dword(2)));
            // SAFETY: the address is aligned and within an allocation.
            let old = unsafe { operation.global64(address, value, compare) };
            w.set_scalar64(op.dst[0], old);
        } else {
            let (value, compare) = (w.scalar(data), w.scalar(data.dword(1)));
            // SAFETY: as above.
            let old = unsafe { operation.global32(address, value, compare) };
            w.set_scalar(op.dst[0], old);
        }
        Flow::Next
    }
}

handler! {
    Nothing |_w, _env, _op| {}
    Time |w, env, op| { w.set_scalar64(op.dst[0], env.now(w)) }
}
