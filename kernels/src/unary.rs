//! Unary: `out = f(inp)`, element by element. Floats narrower than f32 compute in it and round once.

use amdgpu_device::elementwise::{map, map_long, map_tiled, per_lane};
use amdgpu_device::extremum::Extremum;
use amdgpu_device::math::{Compute, Math, Value};
use amdgpu_device::prelude::*;

/// A function of a float in the type that it is computed in.
pub trait Function {
    /// Whether it takes many instructions.
    const LONG: bool;

    /// Its value.
    fn apply<A: Math>(x: A) -> A;
}

/// A function of a float and a parameter.
pub trait Parametric {
    /// Its value.
    fn apply<A: Math>(x: A, param: A) -> A;
}

/// A function of an element in its own type.
pub trait Native {
    /// Its value.
    fn apply<T: Extremum>(x: T) -> T;
}

macro_rules! functions {
    (long: $long:literal; $($(#[$doc:meta])* $F:ident: |$x:ident| $value:expr;)*) => {$(
        $(#[$doc])*
        pub struct $F;
        impl Function for $F {
            const LONG: bool = $long;

            #[inline(always)]
            fn apply<A: Math>($x: A) -> A {
                $value
            }
        }
    )*};
}
functions! {
    long: true;

    /// e^x
    Exp: |x| Math::exp(x);
    /// The natural logarithm.
    Log: |x| Math::log(x);
    /// sin x
    Sin: |x| Math::sin(x);
    /// cos x
    Cos: |x| Math::cos(x);
    /// tanh x
    Tanh: |x| Math::tanh(x);
    /// The error function.
    Erf: |x| Math::erf(x);
    /// The standard normal distribution function.
    Normcdf: |x| Math::normcdf(x);
    /// √x
    Sqrt: |x| Value::sqrt(x);
    /// 1/x
    Recip: |x| Value::recip(x);
    /// 1/(1 + e^−x)
    Sigmoid: |x| Math::sigmoid(x);
    /// x/(1 + e^−x)
    Silu: |x| Math::silu(x);
    /// x·½(1 + tanh(√(2/π)·(x + 0.044715·x³)))
    Gelu: |x| Math::gelu(x);
    /// x·normcdf(x)
    GeluErf: |x| Math::gelu_erf(x);
    /// The nearest integer, half away from zero.
    Round: |x| Value::round(x);
}
functions! {
    long: false;

    /// The smallest integer not below x.
    Ceil: |x| Value::ceil(x);
    /// The largest integer not above x.
    Floor: |x| Value::floor(x);
    /// |x|
    Abs: |x| Value::abs(x);
    /// −x
    Neg: |x| -x;
}

/// x where x > 0, else param·(e^x − 1)
pub struct Elu;
impl Parametric for Elu {
    #[inline(always)]
    fn apply<A: Math>(x: A, param: A) -> A {
        Math::elu(x, param)
    }
}

/// x^param
pub struct Powf;
impl Parametric for Powf {
    #[inline(always)]
    fn apply<A: Math>(x: A, param: A) -> A {
        Math::pow(x, param)
    }
}

macro_rules! native {
    ($($(#[$doc:meta])* $F:ident: |$x:ident| $value:expr;)*) => {$(
        $(#[$doc])*
        pub struct $F;
        impl Native for $F {
            #[inline(always)]
            fn apply<T: Extremum>($x: T) -> T {
                $value
            }
        }
    )*};
}
native! {
    /// x, an integer's own ceiling, floor and nearest integer.
    Same: |x| x;
    /// x·x
    Sqr: |x| x.mul(x);
    /// The larger of x and 0; NaN is 0 in f32, f64 and f8e4m3, and stays in f16 and bf16.
    Relu: |x| x.maximum(T::ZERO);
    /// 1, 0 or −1; 0 for a NaN.
    Sign: |x| if x > T::ZERO { T::ONE } else if x < T::ZERO { T::ZERO.sub(T::ONE) } else { T::ZERO };
    /// −x of an integer, wrapped.
    NegInteger: |x| T::ZERO.sub(x);
    /// |x| of an integer, wrapped.
    AbsInteger: |x| if x < T::ZERO { T::ZERO.sub(x) } else { x };
}

/// `out[i] = f(inp[i])`
///
/// `out` is contiguous, `inp` has the layout; `inp` null stands for `out`, in place.
#[amdgpu_kernel(
    name = "u{F}_{T}",
    F in [exp: Exp, log: Log, sin: Sin, cos: Cos, erf: Erf, normcdf: Normcdf, sqrt: Sqrt, recip: Recip,
        sigmoid: Sigmoid, silu: Silu, gelu_erf: GeluErf, ceil: Ceil, floor: Floor, round: Round, abs: Abs, neg: Neg],
    T in [bf16, f16, f32, f64, f8e4m3, fp8_e4m3: f8e4m3],
    launch(workgroup = 256, items_per_lane = per_lane::<T, T>(), items = numel),
)]
#[amdgpu_kernel(
    name = "u{F}_{T}",
    F in [tanh: Tanh, gelu: Gelu],
    T in [bf16, f16, f64, f8e4m3, fp8_e4m3: f8e4m3],
    launch(workgroup = 256, items_per_lane = per_lane::<T, T>(), items = numel),
)]
#[amdgpu_kernel(
    name = "u{F}_{T}",
    F in [tanh: Tanh, gelu: Gelu],
    T in [f32],
    // Bound by their instructions: longer loops, of which what is done once is less, in smaller workgroups.
    launch(workgroup = 128, items_per_lane = 4 * per_lane::<T, T>(), items = numel),
)]
pub unsafe fn function<F: Function, T: Compute>(
    numel: usize,
    num_dims: usize,
    #[layout(numel, num_dims, of(inp))] info: *const usize,
    #[nullable] inp: *const T,
    #[len(numel)] out: *mut T,
) {
    // SAFETY: the caller's
    unsafe {
        let (inp, info) = source(info, inp, out);
        let layout = Layout::new(num_dims, info);
        let f = |(x,): (T,)| T::narrow(F::apply(x.widen()));
        if const { F::LONG } {
            map_long(numel, layout, (inp,), out, f)
        } else {
            map(numel, layout, (inp,), out, f)
        }
    }
}

/// `out[i] = f(inp[i], param)`
///
/// `out` is contiguous, `inp` has the layout; `inp` null stands for `out`, in place.
#[amdgpu_kernel(
    name = "u{F}_{T}",
    F in [elu: Elu, powf: Powf],
    T in [bf16, f16, f32, f64, f8e4m3, fp8_e4m3: f8e4m3],
    launch(workgroup = 256, items_per_lane = per_lane::<T, T>(), items = numel),
)]
pub unsafe fn parametric<F: Parametric, T: Compute>(
    numel: usize,
    num_dims: usize,
    #[layout(numel, num_dims, of(inp))] info: *const usize,
    param: T,
    #[nullable] inp: *const T,
    #[len(numel)] out: *mut T,
) {
    let param = param.widen();
    // SAFETY: the caller's
    unsafe {
        let (inp, info) = source(info, inp, out);
        map_long(numel, Layout::new(num_dims, info), (inp,), out, |(x,)| {
            T::narrow(F::apply(x.widen(), param))
        })
    }
}

/// `out[i] = inp[i]`: makes a tensor contiguous.
///
/// `out` is contiguous, `inp` has the layout; `inp` null stands for `out`, in place.
#[amdgpu_kernel(
    name = "ucopy_{T}",
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3, f8_e4m3: f8e4m3],
    // Of a transposed tensor a workgroup has two tiles.
    launch(workgroup = 256, items_per_lane = 2 * per_lane::<T, T>(), items = numel),
)]
pub unsafe fn copy<T: Scalar>(
    numel: usize,
    num_dims: usize,
    #[layout(numel, num_dims, of(inp))] info: *const usize,
    #[nullable] inp: *const T,
    #[len(numel)] out: *mut T,
) {
    // SAFETY: the caller's
    unsafe {
        let (inp, info) = source(info, inp, out);
        map_tiled(numel, Layout::new(num_dims, info), (inp,), out, |(x,)| x)
    }
}

/// `out[i] = f(inp[i])`, in the elements' type
///
/// `out` is contiguous, `inp` has the layout; `inp` null stands for `out`, in place.
#[amdgpu_kernel(
    name = "u{F}_{T}",
    F in [sqr: Sqr, relu: Relu, sign: Sign],
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3, fp8_e4m3: f8e4m3],
    launch(workgroup = 256, items_per_lane = per_lane::<T, T>(), items = numel),
)]
#[amdgpu_kernel(
    name = "u{F}_{T}",
    F in [neg: NegInteger, abs: AbsInteger, ceil: Same, floor: Same, round: Same],
    T in [u8, u32, i16, i32, i64],
    launch(workgroup = 256, items_per_lane = per_lane::<T, T>(), items = numel),
)]
pub unsafe fn native<F: Native, T: Extremum>(
    numel: usize,
    num_dims: usize,
    #[layout(numel, num_dims, of(inp))] info: *const usize,
    #[nullable] inp: *const T,
    #[len(numel)] out: *mut T,
) {
    // SAFETY: the caller's
    unsafe {
        let (inp, info) = source(info, inp, out);
        map(numel, Layout::new(num_dims, info), (inp,), out, |(x,)| F::apply(x))
    }
}

/// What is read, and its layout: `out` itself, contiguous, if `inp` is null.
#[inline(always)]
fn source<T>(info: *const usize, inp: *const T, out: *mut T) -> (*const T, *const usize) {
    if inp.is_null() { (out.cast_const(), core::ptr::null()) } else { (inp, info) }
}
