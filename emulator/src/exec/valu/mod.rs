//! The vector ALU.
//!
//! Instructions that do the same in every lane are a [`Lane`](lane::Lane) or [`MaskLane`](lane::MaskLane) each,
//! in tables by kind, keyed by LLVM's mnemonic: targets that agree share a line. [`lane`] has the loops over
//! the lanes, [`fetch`] the modifiers of sources and destinations, [`soft`] the meaning of floating point.
//! What crosses lanes is in [`cross`], VOPD in [`vopd`], WMMA and MFMA in [`matrix`].
//!
//! What the manuals leave open, and what is done here:
//! - An operation on NaNs returns the first one in operand order, quieted; an invalid operation the positive quiet
//!   NaN, where no manual says otherwise (`v_div_fixup`, roots and logarithms of negative numbers: the negative one).
//! - A lane mask that an instruction writes is zero in lanes that EXEC, or DPP, leaves out.
//! - A denormal result is flushed by its rounded value.
//! - `v_div_scale`, `v_div_fmas` and `v_div_fixup` do what GPUs do, not what the manuals say, which contradict each other
//!   and make the compiler's division sequence wrong near the limits. What GPUs do is in two sets of public tests that
//!   agree: those of AMD's emulator rocjitsu (`division_test.cpp`), checked on gfx1100 and gfx1201, and tinygrad's
//!   (`test/amd/hw/test_vop3.py`), compared with RDNA3. The differences: the bit of `v_div_scale` is set from a difference
//!   of 96 between the exponents on (f64: 768), in both directions, a zero's exponent being 0; `v_div_fixup` makes an
//!   overflow of a quotient that is infinite or NaN; `v_div_fmas` scales down where the addend is below 2. In tinygrad's
//!   kernel f32 denormals are flushed: a denormal denominator is a zero there, and NaN the result.
//! - Reciprocals, roots, exponentials, logarithms and sines: [`transcendental`]. Dot products: [`dot`]. Order and
//!   rounding of matrix sums: [`matrix`].

mod carry;
mod compare;
mod convert;
mod cross;
mod dot;
pub(super) mod exceptions;
mod fetch;
mod float;
mod half;
mod int;
mod lane;
mod matrix;
pub(super) mod mode;
mod packed;
pub(super) mod soft;
#[cfg(test)]
mod tests;
mod transcendental;
mod ty;
mod vopd;

use self::fetch::Extra;
#[cfg(all(target_arch = "x86_64", unix))]
pub(crate) use self::fetch::{Plain, dpp_in_rows, plain};
use self::lane::Entry;
use self::ty::{Kind, TyInfo};
use super::Op;
use super::op::{Dst, Src, Unit};
use super::wave::slot;
use crate::gfx::Gfx;
use crate::inst::{Format, Inst, Operand};

/// A vector register that no instruction names: room for a result that has to wait.
const SCRATCH: u16 = 575;

/// The sum of two f16, rounded to nearest even, denormals kept: as atomics add.
pub(crate) fn add_f16(a: u16, b: u16) -> u16 {
    soft::add::<soft::F16>(a.into(), b.into(), mode::Env::IEEE) as u16
}

/// The sum of two bfloat16, rounded to nearest even, denormals kept: as atomics add.
pub(crate) fn add_bf16(a: u16, b: u16) -> u16 {
    soft::add::<soft::BF16>(a.into(), b.into(), mode::Env::IEEE) as u16
}

/// The vector instruction `inst`, prepared; `None` if it has no semantics here.
pub(crate) fn lookup(gfx: Gfx, inst: &Inst) -> Option<Op> {
    if inst.format == Format::Vopd {
        return vopd::lookup(gfx, inst);
    }
    cross::lookup(gfx, inst)
        .or_else(|| matrix::lookup(gfx, inst))
        .or_else(|| Some(prepare(gfx, inst, &tabled(gfx, inst)?)))
}

/// An instruction's entry and what its name adds to it.
struct Tabled {
    entry: Entry,
    /// It is one of `v_cmpx`.
    writes_exec: bool,
    /// The result is the upper half of its register.
    high: bool,
}

fn tabled(gfx: Gfx, inst: &Inst) -> Option<Tabled> {
    let of = |entry| Some(Tabled { entry, writes_exec: false, high: false });
    let (name, generation) = (inst.name, gfx.generation());
    int::entry(name, generation)
        .or_else(|| float::entry(name))
        .or_else(|| carry::entry(name))
        .or_else(|| convert::entry(name, generation))
        .or_else(|| transcendental::entry(name))
        .or_else(|| dot::entry(gfx, inst))
        .and_then(of)
        .or_else(|| {
            compare::entry(name).map(|(entry, writes_exec)| Tabled { entry, writes_exec, high: false })
        })
        .or_else(|| packed::entry(name).map(|(entry, high)| Tabled { entry, writes_exec: false, high }))
}

fn prepare(gfx: Gfx, inst: &Inst, tabled: &Tabled) -> Op {
    let entry = &tabled.entry;
    let count = entry.src.iter().filter(|ty| ty.kind != Kind::Nil).count();
    let types = &entry.src[..count];
    let mut op = Op::new::<cross::Nop>(Unit::Valu, inst);
    if inst.format != Format::Vop3p {
        // Elsewhere pairs are taken as they are, and op_sel is about 16-bit operands.
        (op.mods.op_sel, op.mods.op_sel_hi) = (0, 7);
    }

    let (srcs, dsts) = (inst.srcs(), inst.dsts());
    for (i, ty) in types.iter().enumerate() {
        op.src[i] = match (srcs.get(i), dsts.first()) {
            (_, Some(dst)) if entry.accumulates && i + 1 == count => Src::of(dst, super::op::Kind::B32),
            (Some(operand), _) => source(operand, *ty, op.mods.op_sel_hi >> i & 1 != 0),
            _ => Src::ZERO,
        };
    }
    if entry.mask_in {
        let named = srcs.get(count).map(|operand| Src::of(operand, super::op::Kind::B64));
        op.src[3] = named.unwrap_or(Src::Sgpr(slot::VCC));
    }
    let mut dsts = dsts.iter().map(Dst::of);
    if entry.dst.kind != Kind::Nil {
        op.dst[0] = dsts.next().unwrap_or(Dst::None);
    }
    if entry.mask_out {
        op.dst[1] = dsts.next().unwrap_or(Dst::None);
    }

    let mut extra = Extra::of(gfx, inst, types, entry.accumulates, entry.keeps_half);
    if tabled.writes_exec {
        extra.set_writes_exec();
    }
    if tabled.high {
        extra.set_result_high();
    }
    match inst.name {
        "v_cvt_f32_fp8" | "v_cvt_f32_bf8" if inst.mods.sdwa.is_none() => {
            extra.set_source_byte(inst.mods.byte_sel);
        }
        "v_cvt_sr_fp8_f32" | "v_cvt_sr_bf8_f32" => {
            extra.set_result_byte(inst.mods.byte_sel | inst.mods.op_sel >> 2);
        }
        _ => {}
    }
    op.run = if extra.note_modifiers(&op.mods, types, entry.dst) { entry.general } else { entry.plain };
    op.imm = extra.0;
    op
}

/// A source operand whose constants have the type `ty`; `high` is its VOP3P half select for the high result.
fn source(operand: &Operand, ty: TyInfo, high: bool) -> Src {
    let ty = match ty.kind {
        Kind::Mix if high => ty::TyInfo { kind: Kind::F16, ..ty },
        _ => ty,
    };
    let constant = match *operand {
        Operand::InlineInt(value) => ty.inline_int(value),
        Operand::InlineFloat(value) => ty.inline_float(value),
        Operand::Literal(value) => ty.literal(value),
        _ => return Src::of(operand, super::op::Kind::B32),
    };
    Src::Const([constant as u32, (constant >> 32) as u32])
}
