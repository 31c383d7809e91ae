//! The error function and the normal distribution, both from one function of the upper tail,
//! Q(a) = ½·erfc(a/√2) = e^(−a²/2)·g(a).

use super::exp::Exp;
use super::{Real, poly};

pub(super) trait Erf: Exp {
    /// From here on Q(a) is zero.
    const TAIL_ENDS: Self;
    /// From here on erf(x) rounds to 1.
    const ERF_ONE: Self;
    /// g(a)·(a + 5) for a ≥ 0 as a function of t = (a − 5)/(a + 5).
    fn tail_poly(t: Self) -> Self;
    /// erf(x)/x − 1 for |x| < 1, as a function of z = x².
    fn erf_poly(z: Self) -> Self;
}

impl Erf for f32 {
    const TAIL_ENDS: f32 = 15.0;
    const ERF_ONE: f32 = 4.0;

    #[inline(always)]
    fn tail_poly(t: f32) -> f32 {
        poly!(t; 0.769_193_05, -0.665_382_5, 0.495_306_43, -0.313_533_57, 0.165_006_58, -0.069_119_21,
            0.020_874_11, -0.002_954_122, -0.000_959_801_15, 0.000_409_775_56)
    }
    #[inline(always)]
    fn erf_poly(z: f32) -> f32 {
        poly!(z; 0.128_379_17, -0.376_126_3, 0.112_836_19, -0.026_854_973, 0.005_190_264_4, -0.000_802_567_3,
            7.901_394e-5)
    }
}

impl Erf for f64 {
    const TAIL_ENDS: f64 = 40.0;
    const ERF_ONE: f64 = 6.0;

    #[inline(always)]
    fn tail_poly(t: f64) -> f64 {
        poly!(t; 0.769193049750063, -0.6653825028900568, 0.4953056159699761, -0.3135331566712878,
            0.1650203661704071, -0.06911863870686638, 0.020795066799265068, -0.0029933767620484546,
            -0.0007978693894075961, 0.000544898994268942, -5.937580614250587e-05, -4.9762463759734874e-05,
            1.6681632172871856e-05, 3.979828448376635e-06, -2.7706930323253468e-06, -3.3461832568658863e-07,
            4.362301251437221e-07, 4.0224665830103816e-08, -7.005612439795272e-08, -8.573827527297679e-09,
            1.0731536933595991e-08, 2.2116510976917606e-09, -1.1394676040888308e-09, -3.7349007326457414e-10)
    }
    #[inline(always)]
    fn erf_poly(z: f64) -> f64 {
        poly!(z; 0.1283791670955126, -0.37612638903183754, 0.1128379167095512, -0.02686617064512997,
            0.005223977625424335, -0.0008548327021986768, 0.0001205533290458506, -1.4925647604755009e-05,
            1.6462045996082695e-06, -1.636464770253982e-07, 1.479243702540363e-08, -1.2164697227667097e-09,
            8.709297747330528e-11, -4.231040223003842e-12)
    }
}

/// g(a) for a ≥ 0. Near zero t's error shows threefold, so 1/(a + 5) carries its own.
#[inline(always)]
fn tail_factor<T: Erf>(a: T) -> T {
    let (one, five, minus_ten) = (T::of(1.0), T::of(5.0), T::of(-10.0));
    let d = a + five;
    let d_low = a - (d - five);
    let s = d.rcp();
    let s_low = s * (-d_low).fma(s, (-d).fma(s, one));
    let p = T::tail_poly(s_low.fma(minus_ten, s.fma(minus_ten, one)));
    s_low.fma(p, s * p)
}

/// num·Q(a) for a ≥ 0, given (a²)/2 in two parts. The power of two comes last, so that a denormal result is
/// rounded once.
#[inline(always)]
fn tail_times<T: Erf>(num: T, a: T, half_square: (T, T)) -> T {
    let (p, k) = (-half_square.0).exp_parts(-half_square.1);
    let product = num * tail_factor(a);
    p.fma(product, product).scale(k)
}

/// a·b as a rounded product and its error.
#[inline(always)]
fn product<T: Real>(a: T, b: T) -> (T, T) {
    let p = a * b;
    (p, a.fma(b, -p))
}

#[inline(always)]
pub(super) fn normcdf<T: Erf>(x: T) -> T {
    let a = x.abs().at_most(T::TAIL_ENDS);
    let tail = tail_times(T::of(1.0), a, product(a, a * T::of(0.5)));
    if x < T::of(0.0) { tail } else { T::of(1.0) - tail }
}

#[inline(always)]
pub(super) fn gelu_erf<T: Erf>(x: T) -> T {
    let a = x.abs().at_most(T::TAIL_ENDS);
    let tail = tail_times(a, a, product(a, a * T::of(0.5)));
    if x == -T::INFINITY {
        T::NAN // −∞·0, as in x·normcdf(x)
    } else if x < T::of(0.0) {
        -tail
    } else {
        x - tail
    }
}

#[inline(always)]
pub(super) fn erf<T: Erf>(x: T) -> T {
    let a = x.abs();
    if a < T::of(1.0) {
        return T::erf_poly(a * a).fma(x, x);
    }
    let a = a.at_most(T::ERF_ONE);
    let tail = tail_times(T::of(2.0), a * T::of(core::f64::consts::SQRT_2), product(a, a));
    (T::of(1.0) - tail).copysign(x)
}

#[inline(always)]
pub(super) fn erfc<T: Erf>(x: T) -> T {
    let (a, one) = (x.abs(), T::of(1.0));
    if a < T::of(0.5) {
        return one - T::erf_poly(a * a).fma(x, x);
    }
    let a = a.at_most(T::TAIL_ENDS * T::of(core::f64::consts::FRAC_1_SQRT_2));
    let tail = tail_times(T::of(2.0), a * T::of(core::f64::consts::SQRT_2), product(a, a));
    if x < T::of(0.0) { T::of(2.0) - tail } else { tail }
}
