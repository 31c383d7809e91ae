//! Loads, stores and atomics of whole waves: the same for every kind of memory, which only says where lanes' addresses
//! lead.

use super::Env;
use super::atomic::Operation;
use super::isa::Exec;
use super::lanes::{self, Addresses, AtomicOperands, Load, Store};
use super::op::{Dst, Flow, Op, Src, Unit};
use super::wave::Wave;
use crate::fault::{Access, Space};
use crate::inst::Inst;
use std::marker::PhantomData;

/// Bit of an atomic's `imm`: its operands have 64 bits.
const WIDE: u64 = 1 << 48;

/// A kind of memory.
pub(super) trait Place {
    /// The source that has the data of a store or an atomic.
    const DATA: usize = 1;

    /// Host addresses of the lanes of `mask`, and which of them access memory at all; `Err` if one may not.
    fn resolve(
        w: &Wave,
        env: &mut Env<'_>,
        op: &Op,
        access: Access,
        lanes: (usize, u32),
        size: u32,
    ) -> Result<(Addresses, u32), Flow>;

    /// As [`Place::resolve`], for atomics: aligned, too.
    #[inline(always)]
    fn resolve_atomic(
        w: &Wave,
        env: &mut Env<'_>,
        op: &Op,
        (half, mask): (usize, u32),
        size: u32,
    ) -> Result<(Addresses, u32), Flow> {
        let (addresses, inside) = Self::resolve(w, env, op, Access::Atomic, (half, mask), size)?;
        let fault = lanes::check_alignment(env, Space::Global, (half, inside), &addresses, size);
        fault.map_or(Ok((addresses, inside)), Err)
    }

    /// The register of an atomic's second operand.
    #[inline(always)]
    fn compare(_op: &Op, data: u16, wide: bool) -> u16 {
        data + 1 + u16::from(wide)
    }
}

/// Makes `op` the atomic that `operation` names.
pub(super) fn set_atomic(op: &mut Op, operation: Operation, wide: bool) {
    op.imm |= if wide { WIDE } else { 0 };
    op.atomic = Some(operation);
}

/// The load of the shape that a mnemonic names behind `load_` or `read_`.
pub(super) fn load<P: Place>(unit: Unit, inst: &Inst, shape: &str) -> Option<Op> {
    macro_rules! load {
        ($shape:ty, $n:literal) => {
            Op::new::<LoadFrom<P, $shape, $n>>(unit, inst)
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
        "ubyte_d16" | "d16_u8" | "u8_d16" => load!(lanes::D16U8, 1),
        "sbyte_d16" | "d16_i8" | "i8_d16" => load!(lanes::D16I8, 1),
        "short_d16" | "d16_b16" | "u16_d16" => load!(lanes::D16, 1),
        "ubyte_d16_hi" | "d16_hi_u8" | "u8_d16_hi" => load!(lanes::D16HiU8, 1),
        "sbyte_d16_hi" | "d16_hi_i8" | "i8_d16_hi" => load!(lanes::D16HiI8, 1),
        "short_d16_hi" | "d16_hi_b16" | "u16_d16_hi" => load!(lanes::D16Hi, 1),
        _ => return None,
    })
}

/// The store of the shape that a mnemonic names behind `store_` or `write_`.
pub(super) fn store<P: Place>(unit: Unit, inst: &Inst, shape: &str) -> Option<Op> {
    macro_rules! store {
        ($shape:ty, $n:literal) => {
            Op::new::<StoreTo<P, $shape, $n>>(unit, inst)
        };
    }
    Some(match shape {
        "byte" | "b8" => store!(lanes::Byte<0>, 1),
        "short" | "b16" => store!(lanes::Short<0>, 1),
        "byte_d16_hi" | "d16_hi_b8" | "b8_d16_hi" => store!(lanes::Byte<16>, 1),
        "short_d16_hi" | "d16_hi_b16" | "b16_d16_hi" => store!(lanes::Short<16>, 1),
        "dword" | "b32" => store!(lanes::Dwords<1>, 1),
        "dwordx2" | "b64" => store!(lanes::Dwords<2>, 2),
        "dwordx3" | "b96" => store!(lanes::Dwords<3>, 3),
        "dwordx4" | "b128" => store!(lanes::Dwords<4>, 4),
        _ => return None,
    })
}

pub(super) struct LoadFrom<P: Place, L: Load<N>, const N: usize>(PhantomData<(P, L)>);

impl<P: Place, L: Load<N>, const N: usize> Exec for LoadFrom<P, L, N> {
    #[inline(always)]
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let Dst::Vgpr(register) = op.dst[0] else { return Flow::Next };
        // The destination may be the address: each half has registers of its own.
        for half in 0..w.halves() {
            let mask = w.exec(half);
            if mask == 0 {
                continue;
            }
            let (addresses, inside) = match P::resolve(w, env, op, Access::Read, (half, mask), L::BYTES) {
                Ok(resolved) => resolved,
                Err(flow) => return flow,
            };
            // SAFETY: `resolve` checked the lanes of `inside`.
            unsafe { lanes::load::<L, N>(w, register, half, inside, &addresses) };
            // A buffer reads as zero beyond its end.
            for lane in lanes::lanes_of(mask & !inside) {
                for dword in 0..N {
                    w.vgpr_mut(register + dword as u16, half).0[lane] &= L::KEEP;
                }
            }
        }
        Flow::Next
    }
}

pub(super) struct StoreTo<P: Place, S: Store<N>, const N: usize>(PhantomData<(P, S)>);

impl<P: Place, S: Store<N>, const N: usize> Exec for StoreTo<P, S, N> {
    #[inline(always)]
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let Src::Vgpr(register) = op.src[P::DATA] else { return Flow::Next };
        for half in 0..w.halves() {
            let mask = w.exec(half);
            if mask == 0 {
                continue;
            }
            let (addresses, inside) = match P::resolve(w, env, op, Access::Write, (half, mask), S::BYTES) {
                Ok(resolved) => resolved,
                Err(flow) => return flow,
            };
            // SAFETY: `resolve` checked the lanes of `inside`.
            unsafe { lanes::store::<S, N>(w, register, half, inside, &addresses) };
        }
        Flow::Next
    }
}

pub(super) struct Atomic<P: Place>(PhantomData<P>);

impl<P: Place> Exec for Atomic<P> {
    #[inline(always)]
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let (Some(operation), Src::Vgpr(data)) = (op.atomic, op.src[P::DATA]) else { return Flow::Next };
        let wide = op.imm & WIDE != 0;
        let old = if let Dst::Vgpr(register) = op.dst[0] { Some(register) } else { None };
        let at = AtomicOperands { operation, wide, data, compare: P::compare(op, data, wide), old };
        for half in 0..w.halves() {
            let lanes = (half, w.exec(half));
            let (addresses, inside) = match P::resolve_atomic(w, env, op, lanes, at.bytes()) {
                Ok(resolved) => resolved,
                Err(flow) => return flow,
            };
            // SAFETY: `resolve_atomic` checked the lanes of `inside`, alignment included.
            unsafe { lanes::atomic(w, at, half, inside, &addresses) };
        }
        Flow::Next
    }
}

/// Loads from memory to LDS.
pub(super) struct LdsLoad<P: Place>(PhantomData<P>);

impl<P: Place> Exec for LdsLoad<P> {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let fetch = lanes::Fetch::unpack(op.imm);
        for half in 0..w.halves() {
            let lanes = (half, w.exec(half));
            let (addresses, inside) = match P::resolve(w, env, op, Access::Read, lanes, fetch.bytes) {
                Ok(resolved) => resolved,
                Err(flow) => return flow,
            };
            // SAFETY: `resolve` checked the lanes of `inside`.
            if let Some(flow) = unsafe { lanes::load_to_lds(w, env, op, (half, inside), &addresses) } {
                return flow;
            }
        }
        Flow::Next
    }
}
