//! The floating-point half of the MODE register, as the vector units see it.

/// How a result that does not fit its format is rounded; the discriminants are MODE's encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Round {
    /// To nearest, ties to even.
    Even = 0,
    /// Toward +infinity.
    Up = 1,
    /// Toward -infinity.
    Down = 2,
    /// Toward zero.
    Zero = 3,
}

impl Round {
    const fn from_bits(bits: u32) -> Round {
        match bits & 3 {
            0 => Round::Even,
            1 => Round::Up,
            2 => Round::Down,
            _ => Round::Zero,
        }
    }
}

/// Rounding and denormal control of one format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Env {
    pub round: Round,
    /// Denormal inputs count as zeros of their sign.
    pub flush_in: bool,
    /// Denormal results become zeros of their sign.
    pub flush_out: bool,
}

impl Env {
    /// IEEE 754's default: round to nearest even, gradual underflow.
    pub const IEEE: Env = Env { round: Round::Even, flush_in: false, flush_out: false };
    /// Round to nearest even, denormals flushed both ways.
    pub const FLUSH: Env = Env { round: Round::Even, flush_in: true, flush_out: true };

    pub fn is_ieee(self) -> bool {
        self == Env::IEEE
    }

    pub const fn with_round(self, round: Round) -> Env {
        Env { round, ..self }
    }
}

/// The state outside the operands that a vector instruction's result depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    /// f32 arithmetic.
    pub single: Env,
    /// f64 and f16 arithmetic.
    pub double: Env,
    /// The clamp modifier turns NaN into 0.
    pub dx10_clamp: bool,
    /// Signalling NaNs are quieted by minimum and maximum; omod is ignored.
    pub ieee: bool,
    /// Seed of the perturbation of results that hardware does not specify to the bit.
    pub perturb: Option<u64>,
}

impl Mode {
    /// From the MODE register in its gfx9 to gfx11 layout: rounding 3:0, denormals 7:4, DX10_CLAMP 8, IEEE 9.
    #[inline(always)]
    pub const fn new(bits: u32, perturb: Option<u64>) -> Mode {
        const fn env(round: u32, denorm: u32) -> Env {
            Env { round: Round::from_bits(round), flush_in: denorm & 1 == 0, flush_out: denorm & 2 == 0 }
        }
        Mode {
            single: env(bits, bits >> 4),
            double: env(bits >> 2, bits >> 6),
            dx10_clamp: bits & 0x100 != 0,
            ieee: bits & 0x200 != 0,
            perturb,
        }
    }
}
