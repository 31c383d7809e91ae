//! The vector unit's instructions.
//!
//! What has one dword as its result is computed eight lanes at a time, all of half a wave before anything is written:
//! where a result is a NaN, whose bits the host chooses otherwise, the handler computes that half instead.
//!
//! Vector registers: 0 to 7 results, 8 to 11 for the time being, 12 to 15 scalars in every lane.

use super::asm::{M, R, Size, V, Y, alu, cc, shift, vex};
use super::compile::{Compiler, ROWS, Setup, scalar};
use crate::exec::op::{Dst, Op, Src};
use crate::exec::valu::{Plain, dpp_in_rows, plain};
use crate::exec::wave::slot;
use crate::inst::{Format, Inst};

/// Where a result goes, and what it depends on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One dword.
    Value,
    /// One f32, of operands in the format: as the host has it under [`Setup::ieee`], NaNs apart.
    Float,
    /// Two f32.
    Floats,
    /// Two dwords.
    Wide,
    /// A lane mask.
    Mask,
    /// One dword and a lane mask.
    Carry,
    /// A division's operand as it is, and a lane mask of zeros, or what the handler makes of it.
    Scale,
    /// A scalar, or one lane.
    Lane,
}

const SIGN: u32 = 0x8000_0000;

fn kind(name: &str, op: &Op) -> Option<Kind> {
    Some(match name {
        "v_mov_b32"
        | "v_accvgpr_read_b32"
        | "v_accvgpr_write_b32"
        | "v_accvgpr_mov_b32"
        | "v_not_b32"
        | "v_and_b32"
        | "v_or_b32"
        | "v_xor_b32"
        | "v_xnor_b32"
        | "v_or3_b32"
        | "v_xor3_b32"
        | "v_and_or_b32"
        | "v_bfi_b32"
        | "v_lshlrev_b32"
        | "v_lshrrev_b32"
        | "v_ashrrev_i32"
        | "v_lshl_or_b32"
        | "v_lshl_add_u32"
        | "v_add_lshl_u32"
        | "v_add_nc_u32"
        | "v_add_u32"
        | "v_sub_nc_u32"
        | "v_sub_u32"
        | "v_subrev_nc_u32"
        | "v_subrev_u32"
        | "v_add_nc_i32"
        | "v_sub_nc_i32"
        | "v_add3_u32"
        | "v_xad_u32"
        | "v_mul_lo_u32"
        | "v_mul_hi_u32"
        | "v_mul_u32_u24"
        | "v_mad_u32_u24"
        | "v_mul_i32_i24"
        | "v_min_u32"
        | "v_max_u32"
        | "v_min_i32"
        | "v_max_i32"
        | "v_cndmask_b32"
        | "v_cvt_f32_ubyte0"
        | "v_cvt_f32_ubyte1"
        | "v_cvt_f32_ubyte2"
        | "v_cvt_i32_f32"
        | "v_cvt_u32_f32"
        | "v_cvt_f32_ubyte3"
        | "v_dot4_i32_iu8"
        | "v_dot4_i32_i8"
        | "v_dot4c_i32_i8"
        | "v_dot4_u32_u8" => Kind::Value,
        "v_perm_b32" if matches!(op.src[2], Src::Const([bytes, _]) if bytes.to_le_bytes().iter().all(|&byte| byte < 8 || byte == 12)) => {
            Kind::Value
        }
        "v_bfe_u32" if matches!((op.src[1], op.src[2]), (Src::Const(_), Src::Const(_))) => Kind::Value,
        "v_add_f32" | "v_sub_f32" | "v_subrev_f32" | "v_mul_f32" | "v_fma_f32" | "v_fmac_f32"
        | "v_fmaak_f32" | "v_fmamk_f32" | "v_min_f32" | "v_max_f32" | "v_min_num_f32" | "v_max_num_f32"
        | "v_cvt_f32_i32" | "v_cvt_f32_u32" | "v_dot2_f32_f16" | "v_dot2acc_f32_f16" | "v_dot2c_f32_f16"
        | "v_cvt_f32_f16" | "v_rcp_f32" | "v_rcp_iflag_f32" | "v_sqrt_f32" | "v_div_fmas_f32"
        | "v_div_fixup_f32" => Kind::Float,
        "v_div_scale_f32" => Kind::Scale,
        "v_pk_fma_f32" | "v_pk_mul_f32" | "v_pk_add_f32" => Kind::Floats,
        "v_pk_mov_b32" | "v_lshlrev_b64" | "v_lshrrev_b64" | "v_mov_b64" | "v_mad_u64_u32"
        | "v_mad_co_u64_u32" => Kind::Wide,
        "v_add_co_u32" | "v_sub_co_u32" | "v_subrev_co_u32" | "v_add_co_ci_u32" | "v_addc_co_u32"
        | "v_sub_co_ci_u32" | "v_subb_co_u32" | "v_subrev_co_ci_u32" | "v_subbrev_co_u32" => Kind::Carry,
        "v_readfirstlane_b32" | "v_readlane_b32" | "v_writelane_b32" => Kind::Lane,
        _ => {
            comparison(name)?;
            Kind::Mask
        }
    })
}

/// A comparison: of what, and how.
#[derive(Clone, Copy)]
struct Comparison {
    /// Operands of 64 bits.
    wide: bool,
    how: How,
}

#[derive(Clone, Copy)]
enum How {
    /// The host's predicate.
    Float(u8),
    /// Equal, or its opposite.
    Equal(bool),
    /// First less than second; `swap`: second less than first; `not`: the opposite.
    Less { signed: bool, swap: bool, not: bool },
}

fn comparison(name: &str) -> Option<Comparison> {
    let rest = name.strip_prefix("v_cmpx_").or_else(|| name.strip_prefix("v_cmp_"))?;
    let (relation, ty) = rest.rsplit_once('_')?;
    if ty == "f32" {
        let predicate = match relation {
            "lt" => 0x11,
            "eq" => 0x00,
            "le" => 0x12,
            "gt" => 0x1e,
            "lg" => 0x0c,
            "ge" => 0x1d,
            "o" => 0x07,
            "u" => 0x03,
            "nge" => 0x19,
            "nlg" => 0x08,
            "ngt" => 0x1a,
            "nle" => 0x16,
            "neq" => 0x04,
            "nlt" => 0x15,
            _ => return None,
        };
        return Some(Comparison { wide: false, how: How::Float(predicate) });
    }
    let (wide, signed) = match ty {
        "u32" => (false, false),
        "i32" => (false, true),
        "u64" => (true, false),
        "i64" => (true, true),
        _ => return None,
    };
    let less = |swap, not| How::Less { signed, swap, not };
    let how = match relation {
        "eq" => How::Equal(true),
        "ne" | "lg" => How::Equal(false),
        "lt" => less(false, false),
        "gt" => less(true, false),
        "le" => less(true, true),
        "ge" => less(false, true),
        _ => return None,
    };
    Some(Comparison { wide, how })
}

/// Whether an instruction has code of its own.
pub(super) fn has_code(setup: &Setup, op: &Op, inst: &Inst) -> bool {
    match parts(op, inst) {
        Some(parts) => {
            parts.iter().all(|(name, op)| part_has_code(setup, name, op))
                && (parts.len() == 1
                    || parts
                        .iter()
                        .all(|(name, op)| matches!(kind(name, op), Some(Kind::Value | Kind::Float))))
                && scalars(&parts).is_some()
                // While the handler computes half a wave, EXEC is not the wave's.
                && !(parts.iter().any(|(name, op)| matches!(kind(name, op), Some(Kind::Float | Kind::Floats)))
                    && parts.iter().any(|(_, op)| op.src.iter().any(is_exec)))
        }
        None => false,
    }
}

/// Whether an instruction is one of [`Kind::Lane`], whose constant is no modifier.
fn is_of_lanes(name: &str) -> bool {
    matches!(name, "v_readfirstlane_b32" | "v_readlane_b32" | "v_writelane_b32")
}

/// Whether a scalar source has a dword of EXEC.
fn is_exec(src: &Src) -> bool {
    matches!(*src, Src::Sgpr(first) if (slot::EXEC - 1..=slot::EXEC + 1).contains(&first))
}

/// The instruction, or both of VOPD.
fn parts<'a>(op: &'a Op, inst: &'a Inst) -> Option<Vec<(&'static str, &'a Op)>> {
    if inst.format != Format::Vopd {
        return op.pair.is_none().then(|| vec![(inst.name, op)]);
    }
    let first = op.pair.as_deref()?;
    let second = first.pair.as_deref()?;
    if second.pair.is_some() {
        return None;
    }
    let y = inst.vopd_y.as_deref()?;
    // Preparation may have exchanged them, and may have sent one result elsewhere.
    let of = |inst: &Inst| inst.dsts().first().map(Dst::of);
    let crossed = op.dst[0] != Dst::None;
    let (x_dst, y_dst) = (of(inst)?, of(y)?);
    if x_dst == y_dst {
        return None;
    }
    let first_dst = if crossed { op.dst[0] } else { first.dst[0] };
    let names = if first_dst == x_dst { [inst.name, y.name] } else { [y.name, inst.name] };
    Some(vec![(names[0], first), (names[1], second)])
}

fn part_has_code(setup: &Setup, name: &str, op: &Op) -> bool {
    let Some(kind) = kind(name, op) else { return false };
    let needs_ieee = matches!(kind, Kind::Float | Kind::Floats | Kind::Scale)
        || matches!(comparison(name), Some(Comparison { how: How::Float(_), .. }));
    if needs_ieee && !setup.ieee || setup.flushes_dots && name.starts_with("v_dot2") {
        return false;
    }
    let vector = matches!(op.dst[0], Dst::Vgpr(_));
    let is_of_f32 = name.ends_with("_f32");
    match kind {
        Kind::Lane => match name {
            "v_readfirstlane_b32" => matches!(op.src[0], Src::Vgpr(_)) && !vector,
            "v_readlane_b32" => matches!((op.src[0], op.src[1]), (Src::Vgpr(_), Src::Const(_))) && !vector,
            _ => !matches!(op.src[0], Src::Vgpr(_)) && matches!(op.src[1], Src::Const(_)) && vector,
        },
        Kind::Mask => {
            plain(op).is_some_and(|plain| plain.is_bare() || is_of_f32 && plain.parts.is_none() && !plain.dpp)
        }
        Kind::Floats => vector && plain(op).is_some_and(|plain| plain.parts.is_none() && !plain.dpp),
        _ if name.starts_with("v_dot") => {
            vector && plain(op).is_some_and(|plain| plain.parts.is_none() && !plain.dpp) && is_whole(name, op)
        }
        Kind::Wide if name == "v_pk_mov_b32" => {
            vector && plain(op).is_some_and(|plain| plain.is_bare()) && op.mods.neg_hi == 0
        }
        Kind::Value | Kind::Float => {
            let signs = kind == Kind::Float && !name.starts_with("v_cvt") || name == "v_cndmask_b32";
            // Accumulating ones read their destination as a third source, which SDWA does not select from.
            vector
                && plain(op).is_some_and(|plain| {
                    let through_dpp = || {
                        matches!(op.src[0], Src::Vgpr(_)) && dpp_in_rows(op, 0, setup.halves * 32).is_some()
                    };
                    (plain.neg | plain.abs == 0 || signs) && (!plain.dpp || through_dpp())
                })
        }
        _ => vector && plain(op).is_some_and(|plain| plain.is_bare()),
    }
}

/// Whether a dot product's operands are as they are in the registers, for all that matters.
fn is_whole(name: &str, op: &Op) -> bool {
    let mods = op.mods;
    let signs = mods.neg | mods.abs | mods.neg_hi;
    match name {
        // The signs say which operands are signed.
        "v_dot4_i32_iu8" => mods.neg_hi == 0 && mods.op_sel == 0,
        _ => signs | mods.neg_lo == 0 && mods.op_sel & 7 == 0 && mods.op_sel_hi & 3 == 3,
    }
}

/// The scalar registers that instructions take in every lane, if there is room for them.
fn scalars(parts: &[(&'static str, &Op)]) -> Option<Vec<(u8, Y)>> {
    let mut all = Vec::new();
    for (name, op) in parts {
        let wide = matches!(kind(name, op), Some(Kind::Wide | Kind::Floats))
            || comparison(name).is_some_and(|comparison| comparison.wide);
        for src in &op.src[..3] {
            if let Src::Sgpr(slot) = *src {
                for slot in slot..=slot + u8::from(wide) {
                    if !all.iter().any(|&(known, _)| known == slot) {
                        all.push((slot, Y(15 - all.len() as u8)));
                    }
                }
            }
        }
    }
    (all.len() <= 4).then_some(all)
}

impl Compiler<'_> {
    /// Writes an instruction's code, if it has some.
    pub fn valu(&mut self, op: &Op, inst: &Inst) -> bool {
        if !has_code(&self.setup, op, inst) {
            return false;
        }
        let Some(parts) = parts(op, inst) else { return false };
        let Some(&(name, first)) = parts.first() else { return false };
        // Which lanes DPP may read is known only where none is off.
        if self.masked
            && parts.iter().any(|(name, op)| !is_of_lanes(name) && plain(op).is_some_and(|plain| plain.dpp))
        {
            return false;
        }
        self.broadcast = scalars(&parts).unwrap_or_default();
        match kind(name, first) {
            Some(Kind::Lane) => return self.lane(name, first),
            _ => self.load_broadcast(),
        }
        match kind(name, first) {
            Some(Kind::Value | Kind::Float) => self.values(op, &parts),
            Some(Kind::Floats) => self.floats(name, first),
            Some(Kind::Wide) => self.wide(name, first),
            Some(Kind::Mask) => self.compare(name, first),
            Some(Kind::Carry) => self.carry(name, first),
            Some(Kind::Scale) => self.scale(first),
            _ => return false,
        }
        true
    }

    pub fn load_broadcast(&mut self) {
        for (slot, into) in self.broadcast.clone() {
            self.a.v1(vex::PBROADCASTD, into, scalar(slot));
        }
    }

    fn row(&self, register: u16, half: usize, chunk: usize) -> M {
        let row = usize::from(register) * self.setup.halves + half;
        M(ROWS, (row * 128 + chunk * 32) as i32)
    }

    /// Eight lanes of a source's dword.
    fn source(&mut self, src: Src, half: usize, chunk: usize) -> V {
        match src {
            Src::Vgpr(register) => self.row(register, half, chunk).into(),
            Src::Sgpr(slot) => {
                let known = self.broadcast.iter().find(|&&(known, _)| known == slot);
                known.map_or(Y(15), |&(_, y)| y).into()
            }
            Src::Const([value, _]) => self.a.constant([value; 8]).into(),
        }
    }

    fn splat(&mut self, value: u32) -> V {
        self.a.constant([value; 8]).into()
    }

    fn in_register(&mut self, from: V, into: Y) -> Y {
        match from {
            V::Y(y) => y,
            from => {
                self.a.v_load(into, from);
                into
            }
        }
    }

    /// Eight lanes of a source, or of the part that SDWA selects: in `into` then.
    fn selected(&mut self, op: &Op, i: usize, (half, chunk): (usize, usize), into: Y) -> V {
        if i == 0 && plain(op).is_some_and(|plain| plain.dpp) {
            return self.through_dpp(op, (half, chunk), into);
        }
        let value = self.source(op.src[i], half, chunk);
        let part = plain(op).and_then(|plain| plain.parts?.get(i).copied());
        let Some(part) = part.filter(|part| part.bits < 32) else { return value };
        let mut from = self.in_register(value, into);
        let above = (32 - part.at - part.bits) as u8;
        if above != 0 {
            self.a.v_shift(Size::Dword, 6, into, from, above);
            from = into;
        }
        self.a.v_shift(Size::Dword, if part.signed { 4 } else { 2 }, into, from, (32 - part.bits) as u8);
        into.into()
    }

    /// Eight lanes of the first source through DPP within rows of 16 lanes, in `into`; what is in Y6 and Y7 is lost.
    fn through_dpp(&mut self, op: &Op, (half, chunk): (usize, usize), into: Y) -> V {
        let lanes = dpp_in_rows(op, half, self.setup.halves * 32);
        let (Some(lanes), Src::Vgpr(register)) = (lanes, op.src[0]) else { return into.into() };
        let row = chunk & !1;
        let of = |f: &dyn Fn(usize) -> u32| std::array::from_fn(|lane| f(chunk * 8 + lane));
        let from = |lane: usize| usize::from(lanes.from[lane]);
        let numbers = self.a.constant(of(&|lane| from(lane) as u32 % 8));
        let second = self.a.constant(of(&|lane| if from(lane) / 8 % 2 == 1 { u32::MAX } else { 0 }));
        let exists = self.a.constant(of(&|lane| if lanes.readable >> lane & 1 != 0 { u32::MAX } else { 0 }));
        let (low, high) = (self.row(register, half, row), self.row(register, half, row + 1));
        self.a.v_load(Y(7), numbers);
        self.a.v(vex::PERMD, into, Y(7), low);
        self.a.v(vex::PERMD, Y(6), Y(7), high);
        self.a.v_load(Y(7), second);
        self.a.blend(into, into, Y(6), Y(7));
        self.a.v(vex::PAND, into, into, exists);
        into.into()
    }

    /// Eight lanes of an f32 source with its signs; `into` if they change it.
    fn signed(&mut self, op: &Op, i: usize, at: (usize, usize), into: Y) -> V {
        let value = self.selected(op, i, at, into);
        let Plain { neg, abs, .. } = plain(op).unwrap_or_default();
        let (neg, abs) = (neg >> i & 1 != 0, abs >> i & 1 != 0);
        if !neg && !abs {
            return value;
        }
        let mut from = self.in_register(value, into);
        if abs {
            let magnitude = self.splat(!SIGN);
            self.a.v(vex::PAND, into, from, magnitude);
            from = into;
        }
        if neg {
            let sign = self.splat(SIGN);
            self.a.v(vex::PXOR, into, from, sign);
        }
        into.into()
    }

    /// Writes eight lanes of a result.
    fn write(&mut self, register: u16, half: usize, chunk: usize, value: Y) {
        let row = self.row(register, half, chunk);
        if self.masked {
            let mask = self.mask(half, chunk);
            self.a.v_load(Y(10), row);
            self.a.v_load(Y(11), mask);
            self.a.blend(Y(10), Y(10), value, Y(11));
            self.a.v_store(row, Y(10));
        } else {
            self.a.v_store(row, value);
        }
    }

    /// As [`Compiler::write`], in the lanes that DPP leaves on.
    fn write_through_dpp(&mut self, op: &Op, register: u16, (half, chunk): (usize, usize), value: Y) {
        let lanes =
            plain(op).filter(|plain| plain.dpp).and_then(|_| dpp_in_rows(op, half, self.setup.halves * 32));
        let written = lanes.map_or(u32::MAX, |lanes| lanes.written);
        if written != u32::MAX {
            let mask =
                std::array::from_fn(|lane| if written >> (chunk * 8 + lane) & 1 != 0 { u32::MAX } else { 0 });
            let mask = self.a.constant(mask);
            let row = self.row(register, half, chunk);
            self.a.v_load(Y(10), row);
            self.a.v_load(Y(11), mask);
            self.a.blend(value, Y(10), value, Y(11));
        }
        self.write(register, half, chunk, value);
    }

    /// One or two instructions with a dword each as their result.
    fn values(&mut self, op: &Op, parts: &[(&'static str, &Op)]) {
        // The first of two may have been sent elsewhere.
        let crossed = parts.len() == 2 && op.dst[0] != Dst::None;
        let dst = |n: usize| match if crossed && n == 0 { op.dst[0] } else { parts[n].1.dst[0] } {
            Dst::Vgpr(register) => register,
            _ => 0,
        };
        let is_float = |n: usize| kind(parts[n].0, parts[n].1) == Some(Kind::Float);
        let floats: Vec<u8> = (0..parts.len()).filter(|&n| is_float(n)).map(|n| n as u8).collect();
        for half in 0..self.setup.halves {
            for (n, (name, part)) in parts.iter().enumerate() {
                for chunk in 0..4 {
                    self.value(name, part, (half, chunk), Y((n * 4 + chunk) as u8));
                }
            }
            let results: Vec<Y> =
                floats.iter().flat_map(|n| (0..4).map(move |chunk| Y(n * 4 + chunk))).collect();
            let back = self.unless_nan(half, &results);
            for (n, (_, part)) in parts.iter().enumerate() {
                for chunk in 0..4 {
                    self.write_through_dpp(part, dst(n), (half, chunk), Y((n * 4 + chunk) as u8));
                }
            }
            if let Some(back) = back {
                self.a.bind(back);
            }
        }
    }

    /// Has the handler compute half a wave if one of the results (four chunks, or eight) is a NaN; gives the place behind
    /// what is skipped then.
    fn unless_nan(&mut self, half: usize, results: &[Y]) -> Option<super::asm::Label> {
        if results.is_empty() {
            return None;
        }
        if self.masked {
            for (n, &result) in results.iter().enumerate() {
                let mask = self.mask(half, n % 4);
                let into = Y(if n == 0 { 8 } else { 9 });
                self.a.v_imm(vex::CMPPS, into, result, result, 3);
                self.a.v(vex::PAND, into, into, mask);
                if n != 0 {
                    self.a.v(vex::POR, Y(8), Y(8), Y(9));
                }
            }
        } else {
            for (n, pair) in results.chunks(2).enumerate() {
                let into = Y(if n == 0 { 8 } else { 9 });
                self.a.v_imm(vex::CMPPS, into, pair[0], pair[pair.len() - 1], 3);
                if n != 0 {
                    self.a.v(vex::POR, Y(8), Y(8), Y(9));
                }
            }
        }
        self.a.signs(R::Rax, Y(8));
        self.a.test(false, R::Rax, R::Rax);
        let (label, back) = self.handler_for(half);
        self.a.jump_if(cc::NE, label);
        Some(back)
    }

    /// Eight lanes of a result of one dword, in `out`.
    fn value(&mut self, name: &str, op: &Op, at: (usize, usize), out: Y) {
        let (half, chunk) = at;
        let [s0, s1] = [0, 1].map(|i| self.selected(op, i, at, Y(4 + i as u8)));
        let s2 = self.source(op.src[2], half, chunk);
        let (t0, t1, t2, t3) = (Y(8), Y(9), Y(10), Y(11));
        let two = |s: &mut Self, op| {
            let a = s.in_register(s0, t0);
            s.a.v(op, out, a, s1);
        };
        match name {
            "v_mov_b32" | "v_accvgpr_read_b32" | "v_accvgpr_write_b32" | "v_accvgpr_mov_b32" => {
                self.a.v_load(out, s0);
            }
            "v_not_b32" => {
                let ones = self.splat(u32::MAX);
                let a = self.in_register(s0, t0);
                self.a.v(vex::PXOR, out, a, ones);
            }
            "v_and_b32" => two(self, vex::PAND),
            "v_or_b32" => two(self, vex::POR),
            "v_xor_b32" => two(self, vex::PXOR),
            "v_xnor_b32" => {
                two(self, vex::PXOR);
                let ones = self.splat(u32::MAX);
                self.a.v(vex::PXOR, out, out, ones);
            }
            "v_add_nc_u32" | "v_add_u32" | "v_add_nc_i32" => two(self, vex::PADDD),
            "v_sub_nc_u32" | "v_sub_u32" | "v_sub_nc_i32" => two(self, vex::PSUBD),
            "v_subrev_nc_u32" | "v_subrev_u32" => {
                let b = self.in_register(s1, t1);
                self.a.v(vex::PSUBD, out, b, s0);
            }
            "v_min_u32" => two(self, vex::PMINUD),
            "v_max_u32" => two(self, vex::PMAXUD),
            "v_min_i32" => two(self, vex::PMINSD),
            "v_max_i32" => two(self, vex::PMAXSD),
            "v_mul_lo_u32" => two(self, vex::PMULLD),
            "v_or3_b32" => {
                two(self, vex::POR);
                self.a.v(vex::POR, out, out, s2);
            }
            "v_xor3_b32" => {
                two(self, vex::PXOR);
                self.a.v(vex::PXOR, out, out, s2);
            }
            "v_and_or_b32" => {
                two(self, vex::PAND);
                self.a.v(vex::POR, out, out, s2);
            }
            "v_add3_u32" => {
                two(self, vex::PADDD);
                self.a.v(vex::PADDD, out, out, s2);
            }
            "v_xad_u32" => {
                two(self, vex::PXOR);
                self.a.v(vex::PADDD, out, out, s2);
            }
            "v_bfi_b32" => {
                let a = self.in_register(s0, t0);
                self.a.v(vex::PANDN, t3, a, s2);
                self.a.v(vex::PAND, out, a, s1);
                self.a.v(vex::POR, out, out, t3);
            }
            "v_lshlrev_b32" => self.shifted(shift::LEFT, op.src[0], s0, s1, out),
            "v_lshrrev_b32" => self.shifted(shift::RIGHT, op.src[0], s0, s1, out),
            "v_ashrrev_i32" => self.shifted(shift::ARITHMETIC, op.src[0], s0, s1, out),
            "v_lshl_or_b32" => {
                self.shifted(shift::LEFT, op.src[1], s1, s0, out);
                self.a.v(vex::POR, out, out, s2);
            }
            "v_lshl_add_u32" => {
                self.shifted(shift::LEFT, op.src[1], s1, s0, out);
                self.a.v(vex::PADDD, out, out, s2);
            }
            "v_add_lshl_u32" => {
                two(self, vex::PADDD);
                self.shifted(shift::LEFT, op.src[2], s2, out.into(), out);
            }
            "v_perm_b32" => {
                let Src::Const([bytes, _]) = op.src[2] else { return };
                // Bytes of the second source are 0 to 3, of the first one 4 to 7.
                let order = |first: u8| {
                    std::array::from_fn(|lane| {
                        let pick = |byte: u8| match byte.wrapping_sub(first) {
                            byte @ 0..4 => lane as u8 % 4 * 4 + byte,
                            _ => 0x80,
                        };
                        u32::from_le_bytes(bytes.to_le_bytes().map(pick))
                    })
                };
                let (low, high) = (self.a.constant(order(0)), self.a.constant(order(4)));
                let (a, b) = (self.in_register(s0, t0), self.in_register(s1, t1));
                self.a.v(vex::PSHUFB, out, b, low);
                self.a.v(vex::PSHUFB, t2, a, high);
                self.a.v(vex::POR, out, out, t2);
            }
            "v_bfe_u32" => {
                let (Src::Const([at, _]), Src::Const([width, _])) = (op.src[1], op.src[2]) else { return };
                let a = self.in_register(s0, t0);
                self.a.v_shift(Size::Dword, 2, out, a, at as u8 & 31);
                let mask = self.splat((1 << (width & 31)) - 1);
                self.a.v(vex::PAND, out, out, mask);
            }
            "v_mul_u32_u24" | "v_mad_u32_u24" => {
                let mask = self.splat(0xff_ffff);
                self.a.v_load(t2, mask);
                self.a.v(vex::PAND, t0, t2, s0);
                self.a.v(vex::PAND, t1, t2, s1);
                self.a.v(vex::PMULLD, out, t0, t1);
                if name == "v_mad_u32_u24" {
                    self.a.v(vex::PADDD, out, out, s2);
                }
            }
            "v_mul_i32_i24" => {
                for (source, into) in [(s0, t0), (s1, t1)] {
                    let from = self.in_register(source, into);
                    self.a.v_shift(Size::Dword, 6, into, from, 8);
                    self.a.v_shift(Size::Dword, 4, into, into, 8);
                }
                self.a.v(vex::PMULLD, out, t0, t1);
            }
            "v_mul_hi_u32" => {
                let (a, b) = (self.in_register(s0, t0), self.in_register(s1, t1));
                self.a.v(vex::PMULUDQ, out, a, b);
                self.a.v_shift(Size::Quad, 2, t0, a, 32);
                self.a.v_shift(Size::Quad, 2, t1, b, 32);
                self.a.v(vex::PMULUDQ, t0, t0, t1);
                self.a.v_shift(Size::Quad, 2, out, out, 32);
                let high = self.a.constant([0, u32::MAX, 0, u32::MAX, 0, u32::MAX, 0, u32::MAX]);
                self.a.v(vex::PAND, t0, t0, high);
                self.a.v(vex::POR, out, out, t0);
            }
            "v_cndmask_b32" => {
                self.mask_bits(op.src[3], half, chunk, t3);
                let a = self.signed(op, 0, at, t0);
                let a = self.in_register(a, t0);
                let b = self.signed(op, 1, at, t1);
                self.a.blend(out, a, b, t3);
            }
            "v_cvt_f32_ubyte0" | "v_cvt_f32_ubyte1" | "v_cvt_f32_ubyte2" | "v_cvt_f32_ubyte3" => {
                let byte = name.as_bytes()[name.len() - 1] - b'0';
                let a = self.in_register(s0, t0);
                self.a.v_shift(Size::Dword, 2, out, a, 8 * byte);
                if byte < 3 {
                    let mask = self.splat(0xff);
                    self.a.v(vex::PAND, out, out, mask);
                }
                self.a.v1(vex::CVTDQ2PS, out, out);
            }
            "v_cvt_i32_f32" => {
                let limit = self.splat(0x4f00_0000);
                let a = self.in_register(s0, t0);
                self.a.v_imm(vex::CMPPS, t1, a, limit, 0x1d);
                self.a.v_imm(vex::CMPPS, t2, a, a, 7);
                // Beyond the range the host gives the lowest integer: inverted, the highest one.
                self.a.v1(vex::CVTTPS2DQ, out, a);
                self.a.v(vex::PXOR, out, out, t1);
                self.a.v(vex::PAND, out, out, t2);
            }
            "v_cvt_u32_f32" => {
                let (zero, limit, end) = (self.splat(0), self.splat(0x4f00_0000), self.splat(0x4f80_0000));
                let a = self.in_register(s0, t0);
                // Of a NaN the second operand.
                self.a.v(vex::MAXPS, t0, a, zero);
                self.a.v_imm(vex::CMPPS, t1, t0, limit, 0x1d);
                self.a.v_imm(vex::CMPPS, t2, t0, end, 0x1d);
                self.a.v(vex::PAND, t3, t1, limit);
                self.a.v(vex::SUBPS, t0, t0, t3);
                self.a.v1(vex::CVTTPS2DQ, out, t0);
                let sign = self.splat(SIGN);
                self.a.v(vex::PAND, t1, t1, sign);
                self.a.v(vex::PXOR, out, out, t1);
                self.a.v(vex::POR, out, out, t2);
            }
            "v_dot4_i32_iu8" => {
                let signed = |i: u8| op.mods.neg_lo >> i & 1 != 0;
                self.dot4(s0, s1, s2, [signed(0), signed(1)], out);
            }
            "v_dot4_i32_i8" | "v_dot4c_i32_i8" => self.dot4(s0, s1, s2, [true; 2], out),
            "v_dot4_u32_u8" => self.dot4(s0, s1, s2, [false; 2], out),
            _ => self.float(name, op, at, out),
        }
    }

    /// `value` shifted by the low five bits of a distance.
    fn shifted(&mut self, kind: u8, distance: Src, by: V, value: V, out: Y) {
        let value = self.in_register(value, Y(8));
        if let Src::Const([by, _]) = distance {
            let kind = match kind {
                shift::LEFT => 6,
                shift::RIGHT => 2,
                _ => 4,
            };
            self.a.v_shift(Size::Dword, kind, out, value, by as u8 & 31);
            return;
        }
        let mask = self.splat(31);
        let by = self.in_register(by, Y(9));
        self.a.v(vex::PAND, Y(9), by, mask);
        let op = match kind {
            shift::LEFT => vex::PSLLVD,
            shift::RIGHT => vex::PSRLVD,
            _ => vex::PSRAVD,
        };
        self.a.v(op, out, value, Y(9));
    }

    /// Sums of four products of bytes, exact in words.
    fn dot4(&mut self, x: V, y: V, sum: V, signed: [bool; 2], out: Y) {
        let (a, b) = (self.in_register(x, Y(8)), self.in_register(y, Y(9)));
        for odd in [false, true] {
            for (from, into, signed) in [(a, Y(10), signed[0]), (b, Y(11), signed[1])] {
                match (odd, signed) {
                    (true, true) => self.a.v_shift(Size::Word, 4, into, from, 8),
                    (true, false) => self.a.v_shift(Size::Word, 2, into, from, 8),
                    (false, _) => {
                        self.a.v_shift(Size::Word, 6, into, from, 8);
                        self.a.v_shift(Size::Word, if signed { 4 } else { 2 }, into, into, 8);
                    }
                }
            }
            if odd {
                self.a.v(vex::PMADDWD, Y(10), Y(10), Y(11));
                self.a.v(vex::PADDD, out, out, Y(10));
            } else {
                self.a.v(vex::PMADDWD, out, Y(10), Y(11));
            }
        }
        self.a.v(vex::PADDD, out, out, sum);
    }

    /// The bits of a lane mask as masks of eight lanes.
    fn mask_bits(&mut self, src: Src, half: usize, chunk: usize, into: Y) {
        let bits = self.lane_bits(chunk);
        match src {
            Src::Sgpr(slot) => self.a.v1(vex::PBROADCASTD, into, scalar(slot + half as u8)),
            Src::Const(value) => {
                let value = self.splat(value[half]);
                self.a.v_load(into, value);
            }
            Src::Vgpr(_) => {
                let zero = self.splat(0);
                self.a.v_load(into, zero);
            }
        }
        self.a.v(vex::PAND, into, into, bits);
        self.a.v(vex::PCMPEQD, into, into, bits);
    }

    /// Eight lanes of an f32.
    fn float(&mut self, name: &str, op: &Op, at: (usize, usize), out: Y) {
        let (t0, t1, t2, t3) = (Y(8), Y(9), Y(10), Y(11));
        match name {
            "v_add_f32" | "v_mul_f32" | "v_sub_f32" => {
                let a = self.signed(op, 0, at, t0);
                let a = self.in_register(a, t0);
                let b = self.signed(op, 1, at, t1);
                let operation = match name {
                    "v_add_f32" => vex::ADDPS,
                    "v_mul_f32" => vex::MULPS,
                    _ => vex::SUBPS,
                };
                self.a.v(operation, out, a, b);
            }
            "v_subrev_f32" => {
                let b = self.signed(op, 1, at, t1);
                let b = self.in_register(b, t1);
                let a = self.signed(op, 0, at, t0);
                self.a.v(vex::SUBPS, out, b, a);
            }
            "v_fma_f32" | "v_fmac_f32" | "v_fmaak_f32" | "v_fmamk_f32" => {
                let a = self.signed(op, 0, at, out);
                self.a.v_load(out, a);
                let b = self.signed(op, 1, at, t1);
                let b = self.in_register(b, t1);
                let c = self.signed(op, 2, at, t2);
                self.a.v(vex::FMADD213PS, out, b, c);
            }
            "v_min_f32" | "v_max_f32" | "v_min_num_f32" | "v_max_num_f32" => {
                let min = name.starts_with("v_min");
                let a = self.signed(op, 0, at, t0);
                let a = self.in_register(a, t0);
                let b = self.signed(op, 1, at, t1);
                let b = self.in_register(b, t1);
                // Where both are equal they may be zeros of different signs.
                self.a.v_imm(vex::CMPPS, t2, a, b, 0);
                self.a.v(if min { vex::ORPS } else { vex::ANDPS }, t3, a, b);
                self.a.v(if min { vex::MINPS } else { vex::MAXPS }, out, a, b);
                self.a.blend(out, out, t3, t2);
                // A NaN among the operands makes a NaN, for the handler.
                self.a.v_imm(vex::CMPPS, t2, a, b, 3);
                self.a.v(vex::ORPS, out, out, t2);
            }
            "v_cvt_f32_i32" => {
                let a = self.selected(op, 0, at, t0);
                self.a.v1(vex::CVTDQ2PS, out, a);
            }
            "v_cvt_f32_u32" => {
                // Both halves are exact: one rounding, in the sum.
                let a = self.selected(op, 0, at, t0);
                let a = self.in_register(a, t0);
                self.a.v_shift(Size::Dword, 2, t1, a, 16);
                let low = self.splat(0xffff);
                self.a.v(vex::PAND, t0, a, low);
                self.a.v1(vex::CVTDQ2PS, t1, t1);
                self.a.v1(vex::CVTDQ2PS, out, t0);
                let scale = self.splat(65536f32.to_bits());
                self.a.v(vex::MULPS, t1, t1, scale);
                self.a.v(vex::ADDPS, out, out, t1);
            }
            "v_rcp_f32" | "v_rcp_iflag_f32" => {
                // One division rounds as two roundings by way of f64.
                let a = self.signed(op, 0, at, t0);
                self.flushed(a, t0);
                let one = self.splat(1f32.to_bits());
                self.a.v_load(out, one);
                self.a.v(vex::DIVPS, out, out, t0);
                self.flushed(out.into(), out);
            }
            "v_sqrt_f32" => {
                let a = self.signed(op, 0, at, t0);
                self.flushed(a, t0);
                self.a.v1(vex::SQRTPS, out, t0);
            }
            "v_div_fmas_f32" => {
                self.float("v_fma_f32", op, at, out);
                // Where the result is to be scaled the handler does it.
                self.mask_bits(op.src[3], at.0, at.1, t3);
                self.a.v(vex::ORPS, out, out, t3);
            }
            "v_div_fixup_f32" => self.div_fixup(op, at, out),
            "v_cvt_f32_f16" => {
                let a = self.selected(op, 0, at, t0);
                self.widened(a, t0);
                self.a.v1(vex::CVTPH2PS, out, t0);
            }
            "v_dot2_f32_f16" | "v_dot2acc_f32_f16" | "v_dot2c_f32_f16" => {
                let [x, y, sum] = [0, 1, 2].map(|i| self.source(op.src[i], at.0, at.1));
                self.widened(x, t0);
                self.widened(y, t1);
                self.a.v1(vex::CVTPH2PS, out, t0);
                self.a.v1(vex::CVTPH2PS, t2, t1);
                self.a.v(vex::FMADD213PS, out, t2, sum);
                self.a.upper_half(t0, t0);
                self.a.upper_half(t1, t1);
                self.a.v1(vex::CVTPH2PS, t0, t0);
                self.a.v1(vex::CVTPH2PS, t1, t1);
                self.a.v(vex::FMADD213PS, t0, t1, out);
                self.a.v_load(out, t0);
            }
            _ => {}
        }
    }

    /// `from` with zeros for denormals; what is in Y9 and Y10 is lost.
    fn flushed(&mut self, from: V, into: Y) {
        let (exponent, zero, sign) = (self.splat(0x7f80_0000), self.splat(0), self.splat(SIGN));
        let from = self.in_register(from, into);
        self.a.v(vex::PAND, Y(9), from, exponent);
        self.a.v(vex::PCMPEQD, Y(9), Y(9), zero);
        self.a.v(vex::PAND, Y(10), from, sign);
        self.a.blend(into, from, Y(10), Y(9));
    }

    /// The quotient with the sign that it should have; NaN, for the handler, where an operand is zero, infinite or NaN, the
    /// quotient is infinite, or it is far below the range.
    fn div_fixup(&mut self, op: &Op, at: (usize, usize), out: Y) {
        const MAGNITUDE: u32 = !SIGN;
        let q = self.signed(op, 0, at, Y(8));
        let q = self.in_register(q, Y(8));
        let d = self.signed(op, 1, at, Y(9));
        let d = self.in_register(d, Y(9));
        let n = self.signed(op, 2, at, Y(10));
        let n = self.in_register(n, Y(10));
        let (magnitude, finite, zero) = (self.splat(MAGNITUDE), self.splat(0x7f7f_ffff), self.splat(0));
        let (sign, exponent) = (self.splat(SIGN), self.splat(0x7f80_0000));
        // The exponents' difference, in place.
        self.a.v(vex::PAND, out, n, exponent);
        self.a.v(vex::PAND, Y(11), d, exponent);
        self.a.v(vex::PSUBD, Y(11), out, Y(11));
        let lowest = self.splat((-150i32 << 23) as u32);
        self.a.v_load(out, lowest);
        self.a.v(vex::PCMPGTD, out, out, Y(11));
        self.a.v(vex::PXOR, Y(11), d, n);
        self.a.v(vex::PAND, Y(11), Y(11), sign);
        // Zero, infinite or NaN.
        // Zero, infinite or NaN. It is no part of VOPD, which would have results from Y4 on.
        for value in [d, n] {
            self.a.v(vex::PAND, Y(4), value, magnitude);
            self.a.v(vex::PCMPGTD, Y(5), Y(4), finite);
            self.a.v(vex::POR, out, out, Y(5));
            self.a.v(vex::PCMPEQD, Y(5), Y(4), zero);
            self.a.v(vex::POR, out, out, Y(5));
        }
        self.a.v(vex::PAND, Y(8), q, magnitude);
        self.a.v(vex::PCMPGTD, Y(9), Y(8), finite);
        self.a.v(vex::POR, out, out, Y(9));
        self.a.v(vex::POR, out, out, Y(8));
        self.a.v(vex::POR, out, out, Y(11));
    }

    /// A division's scaling where none is needed: the operand, and a mask of zeros.
    fn scale(&mut self, op: &Op) {
        let Dst::Vgpr(register) = op.dst[0] else { return };
        let ones = self.splat(u32::MAX);
        self.a.v_load(Y(0), ones);
        for half in 0..self.setup.halves {
            for chunk in 0..4 {
                let [x, d, n] = [0, 1, 2].map(|i| self.source(op.src[i], half, chunk));
                let byte = self.splat(0xff);
                self.a.v_load(Y(4), byte);
                for (from, into) in [(d, Y(1)), (n, Y(2))] {
                    let from = self.in_register(from, into);
                    self.a.v_shift(Size::Dword, 2, into, from, 23);
                    self.a.v(vex::PAND, into, into, Y(4));
                }
                // d neither zero nor denormal, nor so large that its reciprocal is; n large enough for a remainder.
                let zero = self.splat(0);
                self.a.v(vex::PCMPGTD, Y(3), Y(1), zero);
                for (bound, above, value) in [(253, true, Y(1)), (24, false, Y(2))] {
                    let bound = self.splat(bound);
                    if above {
                        self.a.v_load(Y(5), bound);
                        self.a.v(vex::PCMPGTD, Y(5), Y(5), value);
                    } else {
                        self.a.v(vex::PCMPGTD, Y(5), value, bound);
                    }
                    self.a.v(vex::PAND, Y(3), Y(3), Y(5));
                }
                // Exponents that differ by less than 96.
                self.a.v(vex::PSUBD, Y(2), Y(2), Y(1));
                let (most, least) = (self.splat(96), self.splat(-96i32 as u32));
                self.a.v_load(Y(5), most);
                self.a.v(vex::PCMPGTD, Y(5), Y(5), Y(2));
                self.a.v(vex::PAND, Y(3), Y(3), Y(5));
                self.a.v(vex::PCMPGTD, Y(5), Y(2), least);
                self.a.v(vex::PAND, Y(3), Y(3), Y(5));
                let x = self.in_register(x, Y(6));
                self.a.v_imm(vex::CMPPS, Y(5), x, x, 7);
                self.a.v(vex::PAND, Y(3), Y(3), Y(5));
                if self.masked {
                    // Lanes that are off do not count.
                    let mask = self.mask(half, chunk);
                    self.a.v(vex::PXOR, Y(3), Y(3), ones);
                    self.a.v(vex::PAND, Y(3), Y(3), mask);
                    self.a.v(vex::PXOR, Y(3), Y(3), ones);
                }
                self.a.v(vex::PAND, Y(0), Y(0), Y(3));
            }
        }
        self.a.signs(R::Rax, Y(0));
        self.a.alu_imm(false, alu::CMP, R::Rax, 0xff);
        let (label, back) = self.handler_for_all();
        self.a.jump_if(cc::NE, label);
        for half in 0..self.setup.halves {
            for chunk in 0..4 {
                let x = self.source(op.src[0], half, chunk);
                let x = self.in_register(x, Y(0));
                self.write(register, half, chunk, x);
            }
            if let Dst::Sgpr(mask) = op.dst[1] {
                self.a.store_imm(scalar(mask + half as u8), 0);
            }
        }
        self.a.bind(back);
    }

    /// The low halves of eight dwords in the low 128 bits, the high halves in the high ones.
    fn widened(&mut self, from: V, into: Y) {
        let order = [0x0504_0100, 0x0d0c_0908, 0x0706_0302, 0x0f0e_0b0a];
        let order =
            self.a.constant([order[0], order[1], order[2], order[3], order[0], order[1], order[2], order[3]]);
        let from = self.in_register(from, into);
        self.a.v(vex::PSHUFB, into, from, order);
        self.a.v1_imm(vex::PERMQ, into, into, 0xd8);
    }

    /// Two f32 at once.
    fn floats(&mut self, name: &str, op: &Op) {
        let Dst::Vgpr(register) = op.dst[0] else { return };
        for half in 0..self.setup.halves {
            for high in [false, true] {
                for chunk in 0..4 {
                    let out = Y(u8::from(high) * 4 + chunk as u8);
                    let mut sources = [V::Y(out); 3];
                    for (i, into) in [out, Y(9), Y(10)].into_iter().enumerate() {
                        if i == 2 && name != "v_pk_fma_f32" {
                            continue;
                        }
                        let (select, sign) = match high {
                            false => (op.mods.op_sel, op.mods.neg_lo),
                            true => (op.mods.op_sel_hi, op.mods.neg_hi),
                        };
                        let src = op.src[i].dword(u16::from(select >> i & 1));
                        let mut value = self.source(src, half, chunk);
                        if sign >> i & 1 != 0 {
                            let from = self.in_register(value, into);
                            let sign = self.splat(SIGN);
                            self.a.v(vex::PXOR, into, from, sign);
                            value = into.into();
                        }
                        sources[i] = value;
                    }
                    self.a.v_load(out, sources[0]);
                    match name {
                        "v_pk_fma_f32" => {
                            let b = self.in_register(sources[1], Y(9));
                            self.a.v(vex::FMADD213PS, out, b, sources[2]);
                        }
                        "v_pk_mul_f32" => self.a.v(vex::MULPS, out, out, sources[1]),
                        _ => self.a.v(vex::ADDPS, out, out, sources[1]),
                    }
                }
            }
            let results: Vec<Y> = (0..8).map(Y).collect();
            let back = self.unless_nan(half, &results);
            for chunk in 0..4 {
                self.write(register, half, chunk, Y(chunk as u8));
                self.write(register + 1, half, chunk, Y(4 + chunk as u8));
            }
            if let Some(back) = back {
                self.a.bind(back);
            }
        }
    }

    /// Results of two dwords: both before either is written.
    fn wide(&mut self, name: &str, op: &Op) {
        let Dst::Vgpr(register) = op.dst[0] else { return };
        let (low, high) = (Y(0), Y(1));
        let carries = op.dst[1] != Dst::None;
        for half in 0..self.setup.halves {
            for chunk in 0..4 {
                let dword = |s: &mut Self, i: usize, n: u16| s.source(op.src[i].dword(n), half, chunk);
                match name {
                    "v_mov_b64" => {
                        let (x, y) = (dword(self, 0, 0), dword(self, 0, 1));
                        self.a.v_load(low, x);
                        self.a.v_load(high, y);
                    }
                    "v_pk_mov_b32" => {
                        // A dword of each source, as its bit of op_sel says.
                        let x = dword(self, 0, u16::from(op.mods.op_sel & 1));
                        let y = dword(self, 1, u16::from(op.mods.op_sel >> 1 & 1));
                        self.a.v_load(low, x);
                        self.a.v_load(high, y);
                    }
                    "v_lshlrev_b64" | "v_lshrrev_b64" => {
                        let by = dword(self, 0, 0);
                        let (x, y) = (dword(self, 1, 0), dword(self, 1, 1));
                        let left = name == "v_lshlrev_b64";
                        // What goes from one dword to the other, and what stays.
                        let (near, far) = if left { (x, y) } else { (y, x) };
                        let (near_out, far_out) = if left { (low, high) } else { (high, low) };
                        let (on, back) =
                            if left { (vex::PSLLVD, vex::PSRLVD) } else { (vex::PSRLVD, vex::PSLLVD) };
                        let mask = self.splat(63);
                        let by = self.in_register(by, Y(8));
                        self.a.v(vex::PAND, Y(8), by, mask);
                        let near = self.in_register(near, Y(9));
                        let far = self.in_register(far, Y(10));
                        // Distances of 32 and more, negative ones among them, give zero.
                        self.a.v(on, Y(2), far, Y(8));
                        let width = self.splat(32);
                        self.a.v_load(Y(11), width);
                        self.a.v(vex::PSUBD, Y(3), Y(11), Y(8));
                        self.a.v(back, Y(3), near, Y(3));
                        self.a.v(vex::POR, Y(2), Y(2), Y(3));
                        self.a.v(vex::PSUBD, Y(3), Y(8), Y(11));
                        self.a.v(on, Y(3), near, Y(3));
                        self.a.v(on, near_out, near, Y(8));
                        self.a.v(vex::POR, far_out, Y(2), Y(3));
                    }
                    _ => {
                        // The product of the even lanes, and of the odd ones.
                        let (x, y) = (dword(self, 0, 0), dword(self, 1, 0));
                        let (c, d) = (dword(self, 2, 0), dword(self, 2, 1));
                        let (a, b) = (self.in_register(x, Y(8)), self.in_register(y, Y(9)));
                        self.a.v(vex::PMULUDQ, Y(2), a, b);
                        self.a.v_shift(Size::Quad, 2, Y(8), a, 32);
                        self.a.v_shift(Size::Quad, 2, Y(9), b, 32);
                        self.a.v(vex::PMULUDQ, Y(3), Y(8), Y(9));
                        let upper = self.a.constant([0, u32::MAX, 0, u32::MAX, 0, u32::MAX, 0, u32::MAX]);
                        self.a.v_load(Y(10), upper);
                        self.a.v_shift(Size::Quad, 6, Y(8), Y(3), 32);
                        self.a.blend(low, Y(2), Y(8), Y(10));
                        self.a.v_shift(Size::Quad, 2, Y(9), Y(2), 32);
                        self.a.blend(high, Y(9), Y(3), Y(10));
                        // The addend, with a carry where the sum is less than it.
                        let c = self.in_register(c, Y(8));
                        self.a.v(vex::PADDD, low, low, c);
                        self.a.v(vex::PADDD, high, high, d);
                        let sign = self.splat(SIGN);
                        self.a.v_load(Y(11), sign);
                        self.a.v(vex::PXOR, Y(9), low, Y(11));
                        self.a.v(vex::PXOR, Y(8), c, Y(11));
                        self.a.v(vex::PCMPGTD, Y(8), Y(8), Y(9));
                        if carries {
                            // A carry out of the sum of the high dwords, or of the carry into it.
                            self.a.v(vex::PXOR, Y(2), high, Y(11));
                            self.a.v(vex::PXOR, Y(3), Y(11), d);
                            self.a.v(vex::PCMPGTD, Y(2), Y(3), Y(2));
                        }
                        self.a.v(vex::PSUBD, high, high, Y(8));
                        if carries {
                            let zero = self.splat(0);
                            self.a.v(vex::PCMPEQD, Y(3), high, zero);
                            self.a.v(vex::PAND, Y(3), Y(3), Y(8));
                            self.a.v(vex::POR, Y(2), Y(2), Y(3));
                            self.collect(half, chunk, Y(2));
                        }
                    }
                }
                self.write(register, half, chunk, low);
                self.write(register + 1, half, chunk, high);
            }
        }
        if carries {
            self.write_mask(op, false, false);
        }
    }

    /// Adds eight lanes' bits to a half's, in RSI or RDI.
    fn collect(&mut self, half: usize, chunk: usize, from: Y) {
        let into = if half == 0 { R::Rsi } else { R::Rdi };
        if chunk == 0 {
            self.a.signs(into, from);
            return;
        }
        self.a.signs(R::Rax, from);
        self.a.shift(false, shift::LEFT, R::Rax, chunk as u8 * 8);
        self.a.alu(false, alu::OR, into, R::Rax);
    }

    /// Writes a lane mask, zero where lanes are off.
    fn write_mask(&mut self, op: &Op, writes_exec: bool, invert: bool) {
        for half in 0..self.setup.halves as u8 {
            let bits = if half == 0 { R::Rsi } else { R::Rdi };
            if invert {
                self.a.not(false, bits);
            }
            if self.masked {
                self.a.alu_memory(false, alu::AND, bits, scalar(slot::EXEC + half));
            }
        }
        for half in 0..self.setup.halves as u8 {
            let bits = if half == 0 { R::Rsi } else { R::Rdi };
            if let Dst::Sgpr(register) = op.dst[1] {
                self.a.store(false, scalar(register + half), bits);
            }
            if writes_exec {
                self.a.store(false, scalar(slot::EXEC + half), bits);
            }
        }
    }

    fn compare(&mut self, name: &str, op: &Op) {
        let Some(Comparison { wide, how }) = comparison(name) else { return };
        let invert = matches!(how, How::Equal(false) | How::Less { not: true, .. });
        for half in 0..self.setup.halves {
            for chunk in 0..4 {
                let at = (half, chunk);
                match how {
                    How::Float(predicate) => {
                        let a = self.signed(op, 0, at, Y(0));
                        let a = self.in_register(a, Y(0));
                        let b = self.signed(op, 1, at, Y(1));
                        self.a.v_imm(vex::CMPPS, Y(2), a, b, predicate);
                    }
                    How::Equal(_) => {
                        for n in 0..=u16::from(wide) {
                            let [x, y] = [0, 1].map(|i| self.source(op.src[i].dword(n), half, chunk));
                            let a = self.in_register(x, Y(0));
                            let into = Y(2 + n as u8);
                            self.a.v(vex::PCMPEQD, into, a, y);
                        }
                        if wide {
                            self.a.v(vex::PAND, Y(2), Y(2), Y(3));
                        }
                    }
                    How::Less { signed, swap, .. } => {
                        let (first, second) = if swap { (1, 0) } else { (0, 1) };
                        let sign = self.splat(SIGN);
                        self.a.v_load(Y(11), sign);
                        for n in 0..=u16::from(wide) {
                            let [x, y] =
                                [first, second].map(|i| self.source(op.src[i].dword(n), half, chunk));
                            let top = !wide || n == 1;
                            if signed && top {
                                let b = self.in_register(y, Y(1));
                                self.a.v(vex::PCMPGTD, Y(2 + n as u8), b, x);
                            } else {
                                self.a.v(vex::PXOR, Y(0), Y(11), x);
                                self.a.v(vex::PXOR, Y(1), Y(11), y);
                                self.a.v(vex::PCMPGTD, Y(2 + n as u8), Y(1), Y(0));
                            }
                            if wide && top {
                                let a = self.in_register(x, Y(0));
                                self.a.v(vex::PCMPEQD, Y(4), a, y);
                            }
                        }
                        if wide {
                            self.a.v(vex::PAND, Y(2), Y(2), Y(4));
                            self.a.v(vex::POR, Y(2), Y(2), Y(3));
                        }
                    }
                }
                self.collect(half, chunk, Y(2));
            }
        }
        self.write_mask(op, name.starts_with("v_cmpx"), invert);
    }

    /// Sums and differences with a carry out, and perhaps one in.
    fn carry(&mut self, name: &str, op: &Op) {
        let Dst::Vgpr(register) = op.dst[0] else { return };
        let reversed = name.starts_with("v_subrev") || name.starts_with("v_subbrev");
        let adds = name.starts_with("v_add");
        let takes = name.contains("_ci_") || name.starts_with("v_addc") || name.starts_with("v_subb");
        let (first, second) = if reversed { (1, 0) } else { (0, 1) };
        for half in 0..self.setup.halves {
            for chunk in 0..4 {
                let [x, y] = [first, second].map(|i| self.source(op.src[i], half, chunk));
                let a = self.in_register(x, Y(0));
                let sign = self.splat(SIGN);
                self.a.v_load(Y(11), sign);
                if takes {
                    self.mask_bits(op.src[3], half, chunk, Y(4));
                }
                self.a.v(vex::PXOR, Y(5), a, Y(11));
                if adds {
                    // A carry where the sum is less than the first operand, or wraps around by the carry that comes in.
                    self.a.v(vex::PADDD, Y(2), a, y);
                    self.a.v(vex::PXOR, Y(6), Y(2), Y(11));
                    self.a.v(vex::PCMPGTD, Y(3), Y(5), Y(6));
                    if takes {
                        self.a.v(vex::PSUBD, Y(2), Y(2), Y(4));
                        let zero = self.splat(0);
                        self.a.v(vex::PCMPEQD, Y(6), Y(2), zero);
                        self.a.v(vex::PAND, Y(6), Y(6), Y(4));
                        self.a.v(vex::POR, Y(3), Y(3), Y(6));
                    }
                } else {
                    // A borrow where the first operand is less, or equal with a borrow that comes in.
                    self.a.v(vex::PXOR, Y(6), Y(11), y);
                    self.a.v(vex::PCMPGTD, Y(3), Y(6), Y(5));
                    if takes {
                        self.a.v(vex::PCMPEQD, Y(6), Y(6), Y(5));
                        self.a.v(vex::PAND, Y(6), Y(6), Y(4));
                        self.a.v(vex::POR, Y(3), Y(3), Y(6));
                    }
                    self.a.v(vex::PSUBD, Y(2), a, y);
                    if takes {
                        self.a.v(vex::PADDD, Y(2), Y(2), Y(4));
                    }
                }
                self.collect(half, chunk, Y(3));
                self.write(register, half, chunk, Y(2));
            }
        }
        self.write_mask(op, false, false);
    }

    /// Instructions on one lane.
    fn lane(&mut self, name: &str, op: &Op) -> bool {
        let lanes = self.setup.halves as u32 * 32;
        let place = |s: &Self, register: u16, lane: u32| {
            let M(base, at) = s.row(register, lane as usize / 32, 0);
            M(base, at + lane as i32 % 32 * 4)
        };
        match (name, op.src[0], op.src[1]) {
            // Which lane is first is known only where none is off.
            ("v_readfirstlane_b32", Src::Vgpr(register), _) if !self.masked => {
                let from = place(self, register, 0);
                self.a.load(false, R::Rax, from);
            }
            ("v_readlane_b32", Src::Vgpr(register), Src::Const([lane, _])) => {
                let from = place(self, register, lane & (lanes - 1));
                self.a.load(false, R::Rax, from);
            }
            ("v_writelane_b32", src, Src::Const([lane, _])) => {
                let Dst::Vgpr(register) = op.dst[0] else { return false };
                self.scalar_to(R::Rax, src);
                let into = place(self, register, lane & (lanes - 1));
                self.a.store(false, into, R::Rax);
                return true;
            }
            _ => return false,
        }
        if let Dst::Sgpr(register) = op.dst[0] {
            self.a.store(false, scalar(register), R::Rax);
        }
        true
    }
}
