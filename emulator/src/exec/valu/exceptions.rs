//! Floating-point exceptions, as TRAPSTS (gfx12: EXCP_FLAG_USER) accumulates them, whatever MODE enables.
//!
//! They cost time, and hardly anything asks for them: only in code that reads the register are instructions wrapped in
//! one that looks at the sources first.
//!
//! What the manuals leave open, and what is done here. AMD's emulator rocjitsu (`alu_exceptions.h`) has the rules of
//! products, roots, `v_rcp_iflag` and `v_div_fixup`, the last measured on gfx1201; GoC's captures of an RX 9070 add that
//! the clamp modifier suppresses all of them and a NaN those of denormal sources. The others follow IEEE 754:
//! - A denormal result is an underflow, exact or not. The output multiplier suppresses underflow and inexactness.
//! - A source that MODE flushes is a zero.
//! - An operation on NaNs is invalid if one of them is signalling.
//! - Approximations (reciprocals, roots, exponentials, logarithms, sines) are neither inexact nor out of range.
//! - Dot and matrix products, and conversions to 8-bit formats, have none.

use super::fetch;
use super::lane::Rows;
use super::mode::{Env, Mode, Round};
use super::soft::{self, BF16, Exact, F16, F32, F64, Format};
use super::ty::{Kind, TyInfo};
use crate::exec::isa::Exec;
use crate::exec::op::{Dst, Mods, Src, Unit};
use crate::exec::wave::LANES;
use crate::exec::{self, Flow, Op, Wave};
use crate::gfx::Gfx;
use crate::inst::Inst;

pub(crate) const INVALID: u32 = 1 << 0;
pub(crate) const INPUT_DENORMAL: u32 = 1 << 1;
pub(crate) const DIVIDE_BY_ZERO: u32 = 1 << 2;
pub(crate) const OVERFLOW: u32 = 1 << 3;
pub(crate) const UNDERFLOW: u32 = 1 << 4;
pub(crate) const INEXACT: u32 = 1 << 5;
pub(crate) const INTEGER_DIVIDE_BY_ZERO: u32 = 1 << 6;

/// What an instruction does, as far as exceptions go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum What {
    Add,
    Sub,
    SubRev,
    Mul,
    /// Zero times anything is zero.
    MulLegacy,
    Fma,
    FmaLegacy,
    /// The product is rounded, too.
    Mad,
    /// From f32 to f16.
    FmaToHalf,
    /// It has a pole at zero.
    Reciprocal,
    ReciprocalOfInteger,
    /// The same, and is not defined below.
    PoleAndRoot,
    Root,
    /// Not defined at infinity.
    Angle,
    /// Chooses, compares or takes apart; nothing is computed.
    Look,
    LoadExponent,
    Convert,
    DivisionFixup,
    DivisionFmas,
}

impl What {
    const ALL: [What; 19] = {
        use What::*;
        [
            Add,
            Sub,
            SubRev,
            Mul,
            MulLegacy,
            Fma,
            FmaLegacy,
            Mad,
            FmaToHalf,
            Reciprocal,
            ReciprocalOfInteger,
            PoleAndRoot,
            Root,
            Angle,
            Look,
            LoadExponent,
            Convert,
            DivisionFixup,
            DivisionFmas,
        ]
    };

    fn of(name: &str) -> Option<What> {
        use What::*;
        let stem = ["v_s_", "v_pk_", "v_", "s_"].iter().find_map(|prefix| name.strip_prefix(prefix))?;
        if stem.starts_with("cvt_") {
            return (!stem.contains("fp8") && !stem.contains("bf8")).then_some(Convert);
        }
        match stem {
            "fma_mix_f32" | "mad_mix_f32" => return Some(Fma),
            "fma_mixlo_f16" | "fma_mixhi_f16" | "mad_mixlo_f16" | "mad_mixhi_f16" => return Some(FmaToHalf),
            _ => {}
        }
        let (base, ty) = stem.rsplit_once('_')?;
        if !matches!(ty, "f16" | "f32" | "f64" | "bf16") {
            return None;
        }
        if base.starts_with("cmp_") || base.starts_with("cmpx_") {
            return (!base.ends_with("class")).then_some(Look);
        }
        Some(match base {
            "add" => Add,
            "sub" => Sub,
            "subrev" => SubRev,
            "mul" => Mul,
            "mul_legacy" | "mul_dx9_zero" => MulLegacy,
            "fma" | "fmac" | "fmaak" | "fmamk" => Fma,
            "fma_legacy" if ty == "f16" => Fma,
            "fma_legacy" | "fmac_legacy" | "fma_dx9_zero" | "fmac_dx9_zero" => FmaLegacy,
            "mad" | "mac" | "madak" | "madmk" | "mad_legacy" | "mac_legacy" => Mad,
            "rcp" => Reciprocal,
            "rcp_iflag" => ReciprocalOfInteger,
            "rsq" | "log" | "log_legacy" => PoleAndRoot,
            "sqrt" => Root,
            "sin" | "cos" => Angle,
            "ldexp" => LoadExponent,
            "div_fixup" | "div_fixup_legacy" => DivisionFixup,
            "div_fmas" => DivisionFmas,
            _ if ["min", "max", "med3", "floor", "ceil", "trunc", "rndne", "fract", "frexp", "exp"]
                .iter()
                .any(|name| base.starts_with(name)) =>
            {
                Look
            }
            _ => return None,
        })
    }
}

/// A [`What`] and the types of sources and result, packed into an operation's constant.
#[derive(Clone, Copy)]
struct Trace {
    what: What,
    src: [TyInfo; 3],
    dst: TyInfo,
}

const KINDS: [Kind; 11] = [
    Kind::Int,
    Kind::F16,
    Kind::BF16,
    Kind::F32,
    Kind::F64,
    Kind::PkF16,
    Kind::PkBF16,
    Kind::PkInt16,
    Kind::PkF32,
    Kind::Mix,
    Kind::Nil,
];

impl Trace {
    fn pack(self) -> u64 {
        let ty = |ty: TyInfo| {
            let kind = KINDS.iter().position(|&kind| kind == ty.kind).unwrap_or(KINDS.len() - 1) as u64;
            kind | u64::from(ty.bits / 16) << 4 | u64::from(ty.signed) << 7
        };
        let types = [self.src[0], self.src[1], self.src[2], self.dst].map(ty);
        types.iter().rev().fold(self.what as u64, |all, ty| all << 8 | ty)
    }

    fn unpack(imm: u64) -> Trace {
        let ty = |at: u32| {
            let bits = imm >> (8 * at) & 0xff;
            let kind = KINDS.get(bits as usize & 15).copied().unwrap_or(Kind::Nil);
            TyInfo { kind, bits: (bits as u32 >> 4 & 7) * 16, signed: bits >> 7 != 0 }
        };
        let what = What::ALL.get((imm >> 32) as usize & 0xff).copied().unwrap_or(What::Look);
        Trace { what, src: [ty(0), ty(1), ty(2)], dst: ty(3) }
    }
}

/// The instruction `inner`, which notes its exceptions; itself if it has none.
pub(crate) fn trace(gfx: Gfx, inst: &Inst, inner: Op) -> Op {
    if inner.unit == Unit::Salu {
        return trace_scalar(inst, inner);
    }
    if inner.unit != Unit::Valu {
        return inner;
    }
    let Some(y) = inst.vopd_y.as_deref() else {
        // What is wrapped already (indexed registers) does not have its sources at hand.
        return if inner.pair.is_some() { inner } else { trace_one(gfx, inst, inner) };
    };
    // Both look at their sources before either writes.
    [inst, y].into_iter().fold(inner, |inner, inst| {
        let Some(tabled) = super::tabled(gfx, inst) else { return inner };
        let looks = Op { pair: Some(Box::new(inner)), ..super::prepare(gfx, inst, &tabled) };
        trace_one(gfx, inst, looks)
    })
}

fn trace_one(gfx: Gfx, inst: &Inst, inner: Op) -> Op {
    let entry = super::tabled(gfx, inst).map(|tabled| tabled.entry);
    let (Some(what), Some(entry)) = (What::of(inst.name), entry) else {
        // A second instruction of a pair without exceptions still has the pair behind it.
        return match inner.pair {
            Some(next) => *next,
            None => inner,
        };
    };
    outer::<Traced>(Trace { what, src: entry.src, dst: entry.dst }, inner)
}

fn trace_scalar(inst: &Inst, inner: Op) -> Op {
    let Some(what) = What::of(inst.name).filter(|_| inner.pair.is_none()) else { return inner };
    let of = |bits, kind, signed| TyInfo { kind, bits, signed };
    let nil = of(0, Kind::Nil, false);
    let (half, single) = (of(16, Kind::F16, false), of(32, Kind::F32, false));
    let ty = |name: &str| match name {
        "f16" => half,
        "i32" => of(32, Kind::Int, true),
        "u32" => of(32, Kind::Int, false),
        _ => single,
    };
    let mut names = inst.name.rsplit('_');
    let last = names.next().unwrap_or_default();
    let (src, dst) = match what {
        What::Convert => (ty(last), ty(names.next().unwrap_or_default())),
        _ => (ty(last), ty(last)),
    };
    let count = match what {
        What::Convert | What::Look if inst.srcs().len() < 2 => 1,
        What::Fma => 3,
        _ => inst.srcs().len(),
    };
    let src = std::array::from_fn(|n| if n < count { src } else { nil });
    outer::<TracedScalar>(Trace { what, src, dst }, inner)
}

/// An operation that runs `E` and has `inner` behind it; its operands stay to be seen.
fn outer<E: Exec>(trace: Trace, inner: Op) -> Op {
    Op {
        run: crate::exec::isa::select::<E>(),
        imm: trace.pack(),
        src: inner.src,
        dst: inner.dst,
        mods: inner.mods,
        pair: None,
        atomic: None,
        compute: None,
        inst: inner.inst,
        size: inner.size,
        unit: inner.unit,
    }
    .with_inner(inner)
}

impl Op {
    fn with_inner(self, inner: Op) -> Op {
        Op { pair: Some(Box::new(inner)), ..self }
    }
}

/// Runs what comes behind a look at `inner`'s sources: `inner` itself, unless it has something behind it.
fn run_next(inner: &Op, wave: &mut Wave, env: &mut exec::Env<'_>) -> Flow {
    let next = inner.pair.as_deref().unwrap_or(inner);
    // SAFETY: `isa` chose it for this machine.
    unsafe { (next.run)(wave, env, next) }
}

struct Traced;
impl Exec for Traced {
    fn exec(wave: &mut Wave, env: &mut exec::Env<'_>, op: &Op) -> Flow {
        let Some(inner) = op.pair.as_deref() else { return Flow::Next };
        let (trace, mode) = (Trace::unpack(op.imm), Mode::new(wave.mode, None));
        for half in 0..wave.halves() {
            let mut lanes = wave.exec(half);
            let mut temps = [const { [const { std::mem::MaybeUninit::uninit() }; 2] }; 3];
            let [a, b, c] = &mut temps;
            let rows = [
                fetch::source(wave, inner, (0, half), trace.src[0], &mode, &mut lanes, a),
                fetch::source(wave, inner, (1, half), trace.src[1], &mode, &mut lanes, b),
                fetch::source(wave, inner, (2, half), trace.src[2], &mode, &mut lanes, c),
            ];
            let bit = if trace.what == What::DivisionFmas { wave.mask(inner.src[3], half) } else { 0 };
            let mut found = 0;
            for lane in (0..LANES).filter(|lane| lanes >> lane & 1 != 0) {
                let values = rows.map(|Rows { lo, hi }| u64::from(hi.0[lane]) << 32 | u64::from(lo.0[lane]));
                found |= exceptions(trace, values, bit >> lane & 1 != 0, &mode, inner.mods);
            }
            wave.exceptions |= found;
        }
        run_next(inner, wave, env)
    }
}

struct TracedScalar;
impl Exec for TracedScalar {
    fn exec(wave: &mut Wave, env: &mut exec::Env<'_>, op: &Op) -> Flow {
        let Some(inner) = op.pair.as_deref() else { return Flow::Next };
        let (trace, mode) = (Trace::unpack(op.imm), Mode::new(wave.mode, None));
        let mut values = [0, 1, 2].map(|n| u64::from(wave.scalar(inner.src[n])));
        // The accumulator of `s_fmac` is not a separate source.
        if let (What::Fma, Src::Const([0, 0]), Dst::Sgpr(slot)) = (trace.what, inner.src[2], inner.dst[0]) {
            values[2] = u64::from(wave.sgpr[usize::from(slot)]);
        }
        wave.exceptions |= exceptions(trace, values, false, &mode, inner.mods);
        run_next(inner, wave, env)
    }
}

/// The exceptions of one lane.
fn exceptions(trace: Trace, values: [u64; 3], bit: bool, mode: &Mode, mods: Mods) -> u32 {
    if mods.clamp {
        return 0;
    }
    let Trace { what, src, dst } = trace;
    let count = src.iter().filter(|ty| ty.kind != Kind::Nil).count();
    let by_kind = |kind: Kind, values: &[u64]| match kind {
        Kind::F16 => of::<F16>(what, values, mode.double, bit),
        Kind::BF16 => of::<BF16>(what, values, mode.single, bit),
        Kind::F64 => of::<F64>(what, values, mode.double, bit),
        _ => of::<F32>(what, values, mode.single, bit),
    };
    let each = |kind: Kind, width: u32| {
        let part = |n: u32| values.map(|value| value >> (n * width) & (u64::MAX >> (64 - width)));
        by_kind(kind, &part(0)[..count]) | by_kind(kind, &part(1)[..count])
    };
    let found = match (what, src[0].kind) {
        (What::Convert, _) => convert(src[0], dst, values[0], mode),
        (What::FmaToHalf, _) => fma_to_half(values, mode),
        (_, Kind::PkF16) => each(Kind::F16, 16),
        (_, Kind::PkBF16) => each(Kind::BF16, 16),
        (_, Kind::PkF32) => each(Kind::F32, 32),
        (_, kind) => by_kind(kind, &values[..count]),
    };
    if mods.omod != 0 { found & !(UNDERFLOW | INEXACT) } else { found }
}

/// The exceptions of an operation on one format.
fn of<F: Format>(what: What, values: &[u64], env: Env, bit: bool) -> u32 {
    use What::*;
    let of_integer = matches!(what, LoadExponent);
    let mut floats: Vec<u64> = values.iter().map(|value| value & F::MASK).collect();
    if of_integer {
        floats.truncate(1);
    }
    if what == DivisionFixup {
        // The quotient does not matter yet.
        floats.rotate_left(1);
        let quotient = floats.pop().unwrap_or_default();
        return division_fixup::<F>(quotient, &floats, env);
    }
    if floats.iter().any(|&x| soft::is_snan::<F>(x)) {
        return INVALID;
    }
    if floats.iter().any(|&x| soft::is_nan::<F>(x)) {
        return 0;
    }
    // `v_div_fmas` does not flush its sources.
    let env = if what == DivisionFmas { Env { flush_in: false, ..env } } else { env };
    // The approximations of f32 flush theirs whatever MODE says.
    let approximates = matches!(what, Reciprocal | ReciprocalOfInteger | PoleAndRoot | Root | Angle);
    let env = if approximates && F::WIDTH == 32 { Env::FLUSH } else { env };
    let denormal = !env.flush_in && floats.iter().any(|&x| soft::is_denormal::<F>(x));
    let found = if denormal { INPUT_DENORMAL } else { 0 };
    let at = |n: usize| soft::flush_in::<F>(floats.get(n).copied().unwrap_or(0), env);
    let (a, b, c) = (at(0), at(1), at(2));
    let (zero, inf) = (soft::is_zero::<F>, soft::is_inf::<F>);
    let negative = a & F::SIGN != 0 && !zero(a);
    match what {
        Add => found | sum::<F>(a, b, env),
        Sub => found | sum::<F>(a, b ^ F::SIGN, env),
        SubRev => found | sum::<F>(b, a ^ F::SIGN, env),
        MulLegacy if zero(a) || zero(b) => found,
        Mul | MulLegacy => product::<F>(a, b, env)
            .map_or(INVALID, |exact| found | exact.map_or(0, |exact| rounding::<F>(exact, env))),
        FmaLegacy if zero(a) || zero(b) => found,
        Fma | FmaLegacy => fma::<F>([a, b, c], 0, env).map_or(INVALID, |more| found | more),
        DivisionFmas => {
            let by = match (bit, F::WIDTH) {
                (false, _) => 0,
                (true, 32) => 64,
                (true, _) => 128,
            };
            let by = if c & F::INF > F::ONE { by } else { -by };
            fma::<F>([a, b, c], by, env).map_or(INVALID, |more| found | more)
        }
        Mad => {
            let flush = Env::FLUSH.with_round(env.round);
            let product = soft::mul::<F>(a, b, flush);
            if soft::is_nan::<F>(product) || inf(product) && inf(c) && product != c {
                return INVALID;
            }
            let first = self::product::<F>(a, b, flush).flatten();
            first.map_or(0, |exact| rounding::<F>(exact, flush)) | sum::<F>(product, c, flush)
        }
        Reciprocal if zero(a) => DIVIDE_BY_ZERO,
        ReciprocalOfInteger => {
            if zero(a) {
                INTEGER_DIVIDE_BY_ZERO
            } else {
                0
            }
        }
        PoleAndRoot if zero(a) => DIVIDE_BY_ZERO,
        PoleAndRoot | Root if negative => INVALID,
        Angle if inf(a) => INVALID,
        LoadExponent if !inf(a) && !zero(a) => {
            let by =
                values.get(1).map_or(0, |&by| if F::WIDTH == 16 { i32::from(by as i16) } else { by as i32 });
            let exact = soft::unpack::<F>(a, env);
            found | rounding::<F>(Exact { exp: exact.exp + by.clamp(-5000, 5000), ..exact }, env)
        }
        _ => found,
    }
}

/// The exceptions of rounding a finite number to a format.
fn rounding<F: Format>(x: Exact, env: Env) -> u32 {
    if x.man == 0 {
        return 0;
    }
    let keeps = Env { flush_in: false, flush_out: false, ..env };
    // Half of it fits, and says whether the number itself would if the exponent had no end.
    let half = soft::round::<F>(Exact { exp: x.exp - 1, ..x }, keeps);
    if (half & F::INF) >> F::MAN >= 2 * F::BIAS as u64 {
        return OVERFLOW | INEXACT;
    }
    let result = soft::round::<F>(x, keeps);
    let tiny = result & F::INF == 0;
    let back = soft::unpack::<F>(result, keeps);
    let difference = x.add(Exact { neg: !back.neg, ..back }, Round::Even);
    let inexact = difference.man != 0 || tiny && env.flush_out;
    let flag = |is: bool, flag: u32| if is { flag } else { 0 };
    flag(tiny, UNDERFLOW) | flag(inexact, INEXACT)
}

/// Of two numbers' sum; no NaN is among them.
fn sum<F: Format>(a: u64, b: u64, env: Env) -> u32 {
    match (soft::is_inf::<F>(a), soft::is_inf::<F>(b)) {
        (true, true) if a != b => INVALID,
        (false, false) => {
            rounding::<F>(soft::unpack::<F>(a, env).add(soft::unpack::<F>(b, env), env.round), env)
        }
        _ => 0,
    }
}

/// The exact product, `Some(None)` if it is infinite; `None` if there is none.
fn product<F: Format>(a: u64, b: u64, env: Env) -> Option<Option<Exact>> {
    let (zero, inf) = (soft::is_zero::<F>, soft::is_inf::<F>);
    if inf(a) || inf(b) {
        return (!zero(a) && !zero(b)).then_some(None);
    }
    Some(Some(soft::unpack::<F>(a, env).mul(soft::unpack::<F>(b, env))))
}

/// Of `(a * b + c) * 2^by`; `None` if that is invalid.
fn fma<F: Format>([a, b, c]: [u64; 3], by: i32, env: Env) -> Option<u32> {
    match product::<F>(a, b, env)? {
        None => {
            let sign = (a ^ b) & F::SIGN;
            (!soft::is_inf::<F>(c) || c & F::SIGN == sign).then_some(0)
        }
        Some(_) if soft::is_inf::<F>(c) => Some(0),
        Some(exact) => {
            let sum = exact.add(soft::unpack::<F>(c, env), env.round);
            Some(rounding::<F>(Exact { exp: sum.exp + by, ..sum }, env))
        }
    }
}

fn fma_to_half(values: [u64; 3], mode: &Mode) -> u32 {
    let [a, b, c] = values.map(|value| soft::flush_in::<F32>(value & F32::MASK, mode.single));
    if [a, b, c].iter().any(|&x| soft::is_nan::<F32>(x)) {
        return if [a, b, c].iter().any(|&x| soft::is_snan::<F32>(x)) { INVALID } else { 0 };
    }
    match product::<F32>(a, b, mode.single) {
        None => INVALID,
        Some(None) if soft::is_inf::<F32>(c) && (a ^ b ^ c) & F32::SIGN != 0 => INVALID,
        Some(Some(exact)) if !soft::is_inf::<F32>(c) => {
            let sum = exact.add(soft::unpack::<F32>(c, mode.single), mode.double.round);
            rounding::<F16>(sum, mode.double)
        }
        _ => 0,
    }
}

/// Of the quotient of `n` by `d`.
fn division_fixup<F: Format>(q: u64, operands: &[u64], env: Env) -> u32 {
    let &[d, n] = operands else { return 0 };
    if soft::is_snan::<F>(d) || soft::is_snan::<F>(n) {
        return INVALID;
    }
    if soft::is_nan::<F>(d) || soft::is_nan::<F>(n) {
        return 0;
    }
    let denormal = !env.flush_in && (soft::is_denormal::<F>(d) || soft::is_denormal::<F>(n));
    let found = if denormal { INPUT_DENORMAL } else { 0 };
    let (d, n) = (soft::flush_in::<F>(d, env), soft::flush_in::<F>(n, env));
    let (zero, inf) = (soft::is_zero::<F>, soft::is_inf::<F>);
    let exponent = |x: u64| ((x & F::INF) >> F::MAN) as i32;
    if zero(d) && zero(n) || inf(d) && inf(n) {
        INVALID
    } else if zero(d) && !inf(n) {
        DIVIDE_BY_ZERO
    } else if zero(d) || zero(n) || inf(d) || inf(n) {
        found
    } else if F::WIDTH > 16 && exponent(n) - exponent(d) < -F::BIAS - F::MAN as i32 {
        found | UNDERFLOW | INEXACT
    } else if q & !F::SIGN >= F::INF {
        found | OVERFLOW | INEXACT
    } else {
        found
    }
}

/// Of a conversion between floats, or from or to an integer.
fn convert(from: TyInfo, to: TyInfo, value: u64, mode: &Mode) -> u32 {
    let float = |kind: Kind| matches!(kind, Kind::F16 | Kind::BF16 | Kind::F32 | Kind::F64);
    match (float(from.kind), float(to.kind)) {
        (true, _) => match from.kind {
            Kind::F16 => convert_from::<F16>(value, mode.double, to, mode),
            Kind::BF16 => convert_from::<BF16>(value, mode.single, to, mode),
            Kind::F64 => convert_from::<F64>(value, mode.double, to, mode),
            _ => convert_from::<F32>(value, mode.single, to, mode),
        },
        (false, true) if from.kind == Kind::Int && from.bits != 0 && from.bits <= 32 => {
            let shift = 64 - from.bits;
            let whole =
                if from.signed { (value << shift) as i64 >> shift } else { (value << shift >> shift) as i64 };
            round_to(Exact::int(whole.into()), to, mode)
        }
        _ => 0,
    }
}

fn round_to(exact: Exact, to: TyInfo, mode: &Mode) -> u32 {
    match to.kind {
        Kind::F16 => rounding::<F16>(exact, mode.double),
        Kind::BF16 => rounding::<BF16>(exact, mode.single),
        Kind::F64 => rounding::<F64>(exact, mode.double),
        Kind::F32 => rounding::<F32>(exact, mode.single),
        _ => 0,
    }
}

fn convert_from<F: Format>(value: u64, env: Env, to: TyInfo, mode: &Mode) -> u32 {
    let x = value & F::MASK;
    let is_number = to.kind == Kind::Int;
    if soft::is_snan::<F>(x) || is_number && (soft::is_nan::<F>(x) || soft::is_inf::<F>(x)) {
        return INVALID;
    }
    if soft::is_nan::<F>(x) || soft::is_inf::<F>(x) {
        return 0;
    }
    let denormal = !env.flush_in && soft::is_denormal::<F>(x);
    let found = if denormal { INPUT_DENORMAL } else { 0 };
    let exact = soft::unpack::<F>(x, env);
    if !is_number {
        return found | round_to(exact, to, mode);
    }
    let (min, max) = match (to.signed, to.bits) {
        (true, bits) => (-1i64 << (bits.clamp(1, 63) - 1), (1i64 << (bits.clamp(1, 63) - 1)) - 1),
        (false, bits) => (0, (1i64 << bits.min(62)) - 1),
    };
    // One more at each end tells what does not fit from what does.
    let whole = soft::to_int::<F>(x, Round::Zero, min - 1, max + 1, env);
    if whole < min || whole > max {
        return INVALID;
    }
    let difference = exact.add(Exact::int(-i128::from(whole)), Round::Even);
    found | if difference.man != 0 { INEXACT } else { 0 }
}

/// A lane's value of a type, for tests.
#[cfg(test)]
pub(super) fn of_f32(name: &str, values: &[u32], mode: u32) -> Option<u32> {
    let ty = |n: usize| match n < values.len() {
        true => TyInfo { kind: Kind::F32, bits: 32, signed: false },
        false => TyInfo { kind: Kind::Nil, bits: 0, signed: false },
    };
    let trace = Trace { what: What::of(name)?, src: [ty(0), ty(1), ty(2)], dst: ty(0) };
    let trace = Trace::unpack(trace.pack());
    let values = std::array::from_fn(|n| values.get(n).copied().unwrap_or(0).into());
    Some(exceptions(trace, values, false, &Mode::new(mode, None), Mods::default()))
}
