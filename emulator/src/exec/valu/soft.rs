//! Floating point by its definition: exact integers, then one rounding.
//!
//! Every format, rounding mode and denormal control goes through the same two steps, [`unpack`] and
//! [`round`]. This is the meaning of the arithmetic instructions; the host's own arithmetic stands
//! in for it where it is known to give the same bits.

use super::mode::{Env, Round};

/// A binary interchange format: one sign bit, `EXP` exponent bits, `MAN` fraction bits.
pub(crate) trait Format: 'static {
    const EXP: u32;
    const MAN: u32;
    const WIDTH: u32 = 1 + Self::EXP + Self::MAN;
    const SIGN: u64 = 1 << (Self::EXP + Self::MAN);
    /// Infinity, and the mask of the exponent.
    const INF: u64 = ((1 << Self::EXP) - 1) << Self::MAN;
    const QUIET: u64 = 1 << (Self::MAN - 1);
    /// The NaN that an invalid operation gives.
    const NAN: u64 = Self::INF | Self::QUIET;
    const BIAS: i32 = (1 << (Self::EXP - 1)) - 1;
    const ONE: u64 = (Self::BIAS as u64) << Self::MAN;
    /// The largest finite value.
    const MAX: u64 = Self::INF - 1;
    const MASK: u64 = Self::SIGN | (Self::SIGN - 1);
}

/// IEEE half precision.
pub(crate) struct F16;
/// The upper half of an f32.
pub(crate) struct BF16;
/// IEEE single precision.
pub(crate) struct F32;
/// IEEE double precision.
pub(crate) struct F64;

impl Format for F16 {
    const EXP: u32 = 5;
    const MAN: u32 = 10;
}
impl Format for BF16 {
    const EXP: u32 = 8;
    const MAN: u32 = 7;
}
impl Format for F32 {
    const EXP: u32 = 8;
    const MAN: u32 = 23;
}
impl Format for F64 {
    const EXP: u32 = 11;
    const MAN: u32 = 52;
}

pub(crate) fn is_nan<F: Format>(x: u64) -> bool {
    x & !F::SIGN & F::MASK > F::INF
}

pub(crate) fn is_snan<F: Format>(x: u64) -> bool {
    is_nan::<F>(x) && x & F::QUIET == 0
}

pub(crate) fn is_inf<F: Format>(x: u64) -> bool {
    x & !F::SIGN & F::MASK == F::INF
}

pub(crate) fn is_zero<F: Format>(x: u64) -> bool {
    x & !F::SIGN & F::MASK == 0
}

pub(crate) fn is_denormal<F: Format>(x: u64) -> bool {
    x & F::INF == 0 && !is_zero::<F>(x)
}

/// A NaN made quiet; its sign and payload stay.
pub(crate) fn quiet<F: Format>(x: u64) -> u64 {
    x | F::QUIET
}

/// The first NaN among the operands, made quiet: what an operation on NaNs returns.
pub(crate) fn first_nan<F: Format>(operands: &[u64]) -> Option<u64> {
    operands.iter().copied().find(|&x| is_nan::<F>(x)).map(quiet::<F>)
}

/// A denormal as a zero of its sign if `env` flushes inputs.
pub(crate) fn flush_in<F: Format>(x: u64, env: Env) -> u64 {
    if env.flush_in && is_denormal::<F>(x) { x & F::SIGN } else { x }
}

/// A denormal as a zero of its sign if `env` flushes outputs.
pub(crate) fn flush_out<F: Format>(x: u64, env: Env) -> u64 {
    if env.flush_out && is_denormal::<F>(x) { x & F::SIGN } else { x }
}

/// What an instruction that only selects or moves a value returns: flushed both ways, NaN quieted.
pub(crate) fn canonical<F: Format>(x: u64, env: Env) -> u64 {
    if is_nan::<F>(x) { quiet::<F>(x) } else { flush_out::<F>(flush_in::<F>(x, env), env) }
}

/// A number without its format: `man * 2^exp`, negated if `neg`. Bit 0 of `man` is sticky: it may
/// stand for anything nonzero below.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exact {
    pub neg: bool,
    pub exp: i32,
    pub man: u128,
}

/// The highest bit that [`Exact::normal`] leaves: room for one carry.
const TOP: u32 = 125;

impl Exact {
    pub const fn int(value: i128) -> Exact {
        Exact { neg: value < 0, exp: 0, man: value.unsigned_abs() }
    }

    /// Scaled so that the highest bit is `TOP`; zero stays zero.
    fn normal(self) -> Exact {
        if self.man == 0 {
            return self;
        }
        let up = TOP as i32 - (127 - self.man.leading_zeros() as i32);
        if up >= 0 {
            Exact { exp: self.exp - up, man: self.man << up, ..self }
        } else {
            Exact { exp: self.exp - up, man: shift_sticky(self.man, (-up) as u32), ..self }
        }
    }

    pub fn mul(self, other: Exact) -> Exact {
        let neg = self.neg != other.neg;
        // Factors come from formats of at most 53 significant bits, so the product is exact.
        Exact { neg, exp: self.exp + other.exp, man: self.man * other.man }
    }

    /// The sum; an exact zero takes the sign that `round` gives a cancelled difference.
    pub fn add(self, other: Exact, round: Round) -> Exact {
        if self.man == 0 && other.man == 0 {
            let neg = if self.neg == other.neg { self.neg } else { round == Round::Down };
            return Exact { neg, exp: 0, man: 0 };
        }
        if self.man == 0 {
            return other;
        }
        if other.man == 0 {
            return self;
        }
        let (a, b) = (self.normal(), other.normal());
        let (big, small) = if (a.exp, a.man) >= (b.exp, b.man) { (a, b) } else { (b, a) };
        let low = shift_sticky(small.man, (big.exp - small.exp) as u32);
        if big.neg == small.neg {
            return Exact { man: big.man + low, ..big };
        }
        match big.man - low {
            0 => Exact { neg: round == Round::Down, exp: 0, man: 0 },
            man => Exact { man, ..big },
        }
    }

    #[cfg(test)]
    /// The quotient with 60 more bits than the divisor has, and a sticky bit.
    pub fn div(self, by: Exact) -> Exact {
        let (a, b) = (self.normal(), by.normal());
        let divisor = b.man >> 62;
        let (q, r) = (a.man / divisor, a.man % divisor);
        Exact { neg: a.neg != b.neg, exp: a.exp - b.exp - 62, man: q | u128::from(r != 0) }
    }
}

fn shift_sticky(man: u128, by: u32) -> u128 {
    match by {
        0 => man,
        1..128 => (man >> by) | u128::from(man << (128 - by) != 0),
        _ => u128::from(man != 0),
    }
}

/// The finite number that `x` encodes. NaN and infinity are the caller's to handle first.
pub(crate) fn unpack<F: Format>(x: u64, env: Env) -> Exact {
    let x = flush_in::<F>(x, env);
    let field = ((x & F::INF) >> F::MAN) as i32;
    let frac = x & ((1 << F::MAN) - 1);
    let man = if field == 0 { frac } else { frac | (1 << F::MAN) };
    Exact { neg: x & F::SIGN != 0, exp: field.max(1) - F::BIAS - F::MAN as i32, man: u128::from(man) }
}

/// The nearest value of the format in the direction that `env` says.
pub(crate) fn round<F: Format>(x: Exact, env: Env) -> u64 {
    let sign = if x.neg { F::SIGN } else { 0 };
    if x.man == 0 {
        return sign;
    }
    let x = x.normal();
    // The exponent of the result's last place: the format's own for denormals.
    let lowest = 1 - F::BIAS - F::MAN as i32;
    let last = (x.exp + TOP as i32 - F::MAN as i32).max(lowest);
    let drop = (last - x.exp) as u32;
    let (keep, rest, half) = match drop {
        0..=126 => (x.man >> drop, x.man & ((1 << drop) - 1), 1u128 << (drop - 1)),
        _ => (0, 1, 2),
    };
    let up = match env.round {
        Round::Even => rest > half || (rest == half && keep & 1 == 1),
        Round::Up => !x.neg && rest != 0,
        Round::Down => x.neg && rest != 0,
        Round::Zero => false,
    };
    // A carry out of the fraction runs into the exponent, as it should.
    let man = keep as u64 + u64::from(up);
    // An exponent that is past infinity's need not fit its field.
    let field = ((last - lowest) as u64).min(1 << F::EXP);
    let bits = if man >> F::MAN == 0 { man } else { (field << F::MAN) + man };
    if bits >= F::INF {
        let saturate = match env.round {
            Round::Even => false,
            Round::Up => x.neg,
            Round::Down => !x.neg,
            Round::Zero => true,
        };
        return sign | if saturate { F::MAX } else { F::INF };
    }
    flush_out::<F>(sign | bits, env)
}

pub(crate) fn add<F: Format>(a: u64, b: u64, env: Env) -> u64 {
    if let Some(nan) = first_nan::<F>(&[a, b]) {
        return nan;
    }
    match (is_inf::<F>(a), is_inf::<F>(b)) {
        (true, true) if a != b => F::NAN,
        (true, _) => a,
        (_, true) => b,
        _ => round::<F>(unpack::<F>(a, env).add(unpack::<F>(b, env), env.round), env),
    }
}

pub(crate) fn sub<F: Format>(a: u64, b: u64, env: Env) -> u64 {
    match first_nan::<F>(&[a, b]) {
        Some(nan) => nan,
        None => add::<F>(a, b ^ F::SIGN, env),
    }
}

pub(crate) fn mul<F: Format>(a: u64, b: u64, env: Env) -> u64 {
    if let Some(nan) = first_nan::<F>(&[a, b]) {
        return nan;
    }
    let (a, b) = (flush_in::<F>(a, env), flush_in::<F>(b, env));
    if is_inf::<F>(a) || is_inf::<F>(b) {
        return if is_zero::<F>(a) || is_zero::<F>(b) { F::NAN } else { F::INF | ((a ^ b) & F::SIGN) };
    }
    round::<F>(unpack::<F>(a, env).mul(unpack::<F>(b, env)), env)
}

/// `a * b + c`, rounded once.
pub(crate) fn fma<F: Format>(a: u64, b: u64, c: u64, env: Env) -> u64 {
    if let Some(nan) = first_nan::<F>(&[a, b, c]) {
        return nan;
    }
    let (a, b) = (flush_in::<F>(a, env), flush_in::<F>(b, env));
    if is_inf::<F>(a) || is_inf::<F>(b) {
        let product = F::INF | ((a ^ b) & F::SIGN);
        let invalid = is_zero::<F>(a) || is_zero::<F>(b) || (is_inf::<F>(c) && c != product);
        return if invalid { F::NAN } else { product };
    }
    if is_inf::<F>(c) {
        return c;
    }
    let product = unpack::<F>(a, env).mul(unpack::<F>(b, env));
    round::<F>(product.add(unpack::<F>(c, env), env.round), env)
}

#[cfg(test)]
pub(crate) fn div<F: Format>(a: u64, b: u64, env: Env) -> u64 {
    if let Some(nan) = first_nan::<F>(&[a, b]) {
        return nan;
    }
    let (a, b) = (flush_in::<F>(a, env), flush_in::<F>(b, env));
    let sign = (a ^ b) & F::SIGN;
    match (is_inf::<F>(a), is_inf::<F>(b), is_zero::<F>(a), is_zero::<F>(b)) {
        (true, true, ..) | (_, _, true, true) => F::NAN,
        (true, ..) | (.., true) => sign | F::INF,
        (_, true, ..) | (_, _, true, _) => sign,
        _ => round::<F>(unpack::<F>(a, env).div(unpack::<F>(b, env)), env),
    }
}

/// `x * 2^by`, rounded once.
pub(crate) fn ldexp<F: Format>(x: u64, by: i32, env: Env) -> u64 {
    if is_nan::<F>(x) {
        return quiet::<F>(x);
    }
    if is_inf::<F>(x) {
        return x;
    }
    let exact = unpack::<F>(x, env);
    // Beyond this any format overflows or underflows.
    round::<F>(Exact { exp: exact.exp + by.clamp(-5000, 5000), ..exact }, env)
}

/// From one format to another. A NaN keeps its sign and the high bits of its payload.
pub(crate) fn convert<From: Format, To: Format>(x: u64, from: Env, to: Env) -> u64 {
    let sign = if x & From::SIGN != 0 { To::SIGN } else { 0 };
    if is_nan::<From>(x) {
        let payload = x & ((1 << From::MAN) - 1);
        let payload = if To::MAN >= From::MAN {
            payload << (To::MAN - From::MAN)
        } else {
            payload >> (From::MAN - To::MAN)
        };
        return sign | To::NAN | payload;
    }
    if is_inf::<From>(x) {
        return sign | To::INF;
    }
    round::<To>(unpack::<From>(x, from), to)
}

/// To an integer of the format's own kind: rounded in the direction given, as a float.
pub(crate) fn to_integral<F: Format>(x: u64, direction: Round, env: Env) -> u64 {
    if is_nan::<F>(x) {
        return quiet::<F>(x);
    }
    let x = flush_in::<F>(x, env);
    if is_inf::<F>(x) || is_zero::<F>(x) {
        return x;
    }
    let (int, neg) = integer(unpack::<F>(x, env), direction);
    match int {
        // So large that there is no fraction.
        None => x,
        Some(int) => round::<F>(Exact { neg, exp: 0, man: int }, env),
    }
}

/// The magnitude rounded to an integer (`None`: it has no fraction and may not fit), and the sign.
fn integer(x: Exact, direction: Round) -> (Option<u128>, bool) {
    if x.exp >= 0 {
        return (if x.exp <= 70 { Some(x.man << x.exp) } else { None }, x.neg);
    }
    let drop = -x.exp as u32;
    let (keep, rest, half) = match drop {
        ..=126 => (x.man >> drop, x.man & ((1 << drop) - 1), 1u128 << (drop - 1)),
        _ => (0, u128::from(x.man != 0), 2),
    };
    let up = match direction {
        Round::Even => rest > half || (rest == half && keep & 1 == 1),
        Round::Up => !x.neg && rest != 0,
        Round::Down => x.neg && rest != 0,
        Round::Zero => false,
    };
    (Some(keep + u128::from(up)), x.neg)
}

/// To an integer between `min` and `max`: rounded, saturated, NaN to 0. The scalar ALU's conversions.
pub(crate) fn to_int<F: Format>(x: u64, direction: Round, min: i64, max: i64, env: Env) -> i64 {
    if is_nan::<F>(x) {
        return 0;
    }
    let limit = if x & F::SIGN != 0 { min } else { max };
    if is_inf::<F>(x) {
        return limit;
    }
    match integer(unpack::<F>(x, env), direction) {
        (Some(int), neg) if int < 1 << 65 => {
            let int = if neg { -(int as i128) } else { int as i128 };
            int.clamp(i128::from(min), i128::from(max)) as i64
        }
        _ => limit,
    }
}

/// Of an integer, rounded once.
pub(crate) fn from_int<F: Format>(value: i64, env: Env) -> u64 {
    round::<F>(Exact::int(i128::from(value)), env)
}
