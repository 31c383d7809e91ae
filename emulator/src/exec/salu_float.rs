//! Floating point in the scalar ALU (gfx1151 and gfx1201).

use super::isa::Exec;
use super::op::{Compute, Dst, Flow, Kind, Op, Unit};
use super::valu::mode::{self, Mode, Round};
use super::valu::soft::{self, F16, F32, Format};
use super::{Env, Wave};
use crate::inst::Inst;

/// The scalar floating-point instruction `inst`, prepared.
pub(crate) fn lookup(inst: &Inst) -> Option<Op> {
    if let Some((condition, ty)) = inst.name.strip_prefix("s_cmp_").and_then(|name| name.rsplit_once('_')) {
        let half = match ty {
            "f16" => true,
            "f32" => false,
            _ => return None,
        };
        let (outcomes, negate) = outcomes(condition)?;
        let mut op = Op::with_operands::<Compare>(Unit::Salu, inst, if half { Kind::F16 } else { Kind::B32 });
        op.imm = u64::from(outcomes) | u64::from(negate) << 8 | u64::from(half) << 9;
        return Some(op);
    }
    let name = inst.name.strip_prefix("s_")?;
    let (compute, kind): (Compute, Kind) = match name {
        "cvt_f32_i32" => (|[a, ..], _, m| soft::from_int::<F32>(i64::from(a as i32), m.single), Kind::B32),
        "cvt_f32_u32" => (|[a, ..], _, m| soft::from_int::<F32>(a as i64, m.single), Kind::B32),
        "cvt_i32_f32" => (|[a, ..], _, m| to_int(a, i64::from(i32::MIN), i64::from(i32::MAX), m), Kind::B32),
        "cvt_u32_f32" => (|[a, ..], _, m| to_int(a, 0, i64::from(u32::MAX), m), Kind::B32),
        "cvt_f16_f32" => (|[a, ..], _, m| soft::convert::<F32, F16>(a, m.single, m.double), Kind::B32),
        "cvt_f32_f16" => {
            (|[a, ..], _, m| soft::convert::<F16, F32>(a & 0xffff, m.double, m.single), Kind::F16)
        }
        "cvt_hi_f32_f16" => {
            (|[a, ..], _, m| soft::convert::<F16, F32>(a >> 16, m.double, m.single), Kind::F16)
        }
        "cvt_pk_rtz_f16_f32" => (
            |[a, b, _], _, m| {
                let to = m.double.with_round(Round::Zero);
                let half = |x| soft::convert::<F32, F16>(x, m.single, to);
                half(a) | half(b) << 16
            },
            Kind::B32,
        ),
        _ => match name.rsplit_once('_')? {
            (operation, "f32") => (arithmetic::<F32>(operation)?, Kind::B32),
            (operation, "f16") => (arithmetic::<F16>(operation)?, Kind::F16),
            _ => return None,
        },
    };
    // The function is what the handler needs beyond the operands.
    let mut op = Op::with_operands::<Arithmetic>(Unit::Salu, inst, kind);
    op.compute = Some(compute);
    Some(op)
}

fn to_int(x: u64, min: i64, max: i64, mode: &Mode) -> u64 {
    u64::from(soft::to_int::<F32>(x, Round::Zero, min, max, mode.single) as u32)
}

/// Arithmetic in one format.
fn arithmetic<F: Moded>(operation: &str) -> Option<Compute> {
    Some(match operation {
        "add" => |[a, b, _], _, m| soft::add::<F>(F::cut(a), F::cut(b), F::env(m)),
        "sub" => |[a, b, _], _, m| soft::sub::<F>(F::cut(a), F::cut(b), F::env(m)),
        "mul" => |[a, b, _], _, m| soft::mul::<F>(F::cut(a), F::cut(b), F::env(m)),
        "fmac" => |[a, b, _], d, m| soft::fma::<F>(F::cut(a), F::cut(b), F::cut(d), F::env(m)),
        "fmaak" | "fmamk" => |[a, b, c], _, m| soft::fma::<F>(F::cut(a), F::cut(b), F::cut(c), F::env(m)),
        "min" | "min_num" => |[a, b, _], _, m| number::<F>(a, b, false, m),
        "max" | "max_num" => |[a, b, _], _, m| number::<F>(a, b, true, m),
        "minimum" => |[a, b, _], _, m| nan_or_number::<F>(a, b, false, m),
        "maximum" => |[a, b, _], _, m| nan_or_number::<F>(a, b, true, m),
        "ceil" => |[a, ..], _, m| soft::to_integral::<F>(F::cut(a), Round::Up, F::env(m)),
        "floor" => |[a, ..], _, m| soft::to_integral::<F>(F::cut(a), Round::Down, F::env(m)),
        "trunc" => |[a, ..], _, m| soft::to_integral::<F>(F::cut(a), Round::Zero, F::env(m)),
        "rndne" => |[a, ..], _, m| soft::to_integral::<F>(F::cut(a), Round::Even, F::env(m)),
        _ => return None,
    })
}

/// A format, and where MODE says how it rounds.
trait Moded: Format {
    fn env(mode: &Mode) -> mode::Env;

    fn cut(x: u64) -> u64 {
        x & Self::MASK
    }
}

impl Moded for F32 {
    fn env(mode: &Mode) -> mode::Env {
        mode.single
    }
}

impl Moded for F16 {
    fn env(mode: &Mode) -> mode::Env {
        mode.double
    }
}

/// A key that orders numbers as they compare, with -0 below +0.
fn key<F: Format>(x: u64) -> i64 {
    let magnitude = (x & !F::SIGN) as i64;
    if x & F::SIGN != 0 { -magnitude - 1 } else { magnitude }
}

/// The smaller or larger; a NaN loses against a number.
fn number<F: Moded>(a: u64, b: u64, larger: bool, mode: &Mode) -> u64 {
    let (a, b) = (F::cut(a), F::cut(b));
    let canonical = |x| soft::canonical::<F>(x, F::env(mode));
    match (soft::is_nan::<F>(a), soft::is_nan::<F>(b)) {
        (true, false) => canonical(b),
        (_, true) => canonical(a),
        _ if (key::<F>(a) < key::<F>(b)) != larger => canonical(a),
        _ => canonical(b),
    }
}

/// The smaller or larger; a NaN wins.
fn nan_or_number<F: Moded>(a: u64, b: u64, larger: bool, mode: &Mode) -> u64 {
    soft::first_nan::<F>(&[F::cut(a), F::cut(b)]).unwrap_or_else(|| number::<F>(a, b, larger, mode))
}

const LESS: u8 = 1;
const EQUAL: u8 = 2;
const GREATER: u8 = 4;
const UNORDERED: u8 = 8;

/// The outcomes that satisfy a condition, and whether the condition is their negation.
fn outcomes(condition: &str) -> Option<(u8, bool)> {
    let (positive, negate) = match condition.strip_prefix('n') {
        Some(positive) => (positive, true),
        None => (condition, false),
    };
    let outcomes = match positive {
        "lt" => LESS,
        "eq" => EQUAL,
        "le" => LESS | EQUAL,
        "gt" => GREATER,
        "lg" => LESS | GREATER,
        "ge" => GREATER | EQUAL,
        "o" => LESS | EQUAL | GREATER,
        "u" => UNORDERED,
        _ => return None,
    };
    Some((outcomes, negate))
}

fn compare<F: Moded>(a: u64, b: u64, mode: &Mode) -> u8 {
    let flush = |x| soft::flush_in::<F>(F::cut(x), F::env(mode));
    let (a, b) = (flush(a), flush(b));
    if soft::is_nan::<F>(a) || soft::is_nan::<F>(b) {
        UNORDERED
    } else if soft::is_zero::<F>(a) && soft::is_zero::<F>(b) || a == b {
        EQUAL
    } else if key::<F>(a) < key::<F>(b) {
        LESS
    } else {
        GREATER
    }
}

struct Compare;
impl Exec for Compare {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let mode = Mode::new(w.mode, env.perturb);
        let [a, b] = [0, 1].map(|n| u64::from(w.scalar(op.src[n])));
        let half = op.imm >> 9 & 1 != 0;
        let outcome = if half { compare::<F16>(a, b, &mode) } else { compare::<F32>(a, b, &mode) };
        w.set_scc((op.imm as u8 & outcome != 0) != (op.imm >> 8 & 1 != 0));
        Flow::Next
    }
}

struct Arithmetic;
impl Exec for Arithmetic {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let Some(compute) = op.compute else { return Flow::Next };
        let sources = [0, 1, 2].map(|n| u64::from(w.scalar(op.src[n])));
        let old = if let Dst::Sgpr(slot) = op.dst[0] { w.sgpr[usize::from(slot)] } else { 0 };
        let mode = Mode::new(w.mode, env.perturb);
        w.set_scalar(op.dst[0], compute(sources, u64::from(old), &mode) as u32);
        Flow::Next
    }
}
