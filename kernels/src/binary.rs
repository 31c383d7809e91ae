//! Binary: `out = lhs ∘ rhs`, element by element: arithmetic in the elements' type, comparisons to 0 or 1.

use amdgpu_device::elementwise::{map, map_tiled, per_lane};
use amdgpu_device::extremum::Extremum;
use amdgpu_device::prelude::*;

/// A function of two elements.
pub trait BinaryOp {
    /// Its value.
    fn apply<T: Extremum>(a: T, b: T) -> T;
}

macro_rules! binary {
    ($($(#[$doc:meta])* $Op:ident: |$a:ident, $b:ident| $value:expr;)*) => {$(
        $(#[$doc])*
        pub struct $Op;
        impl BinaryOp for $Op {
            #[inline(always)]
            fn apply<T: Extremum>($a: T, $b: T) -> T {
                $value
            }
        }
    )*};
}
binary! {
    /// a + b
    Add: |a, b| a.add(b);
    /// a − b
    Sub: |a, b| a.sub(b);
    /// a·b
    Mul: |a, b| a.mul(b);
    /// a/b; of integers rounded towards zero, and all ones if b is 0.
    Div: |a, b| a.div(b);
    /// The larger one.
    Maximum: |a, b| a.maximum(b);
    /// The smaller one.
    Minimum: |a, b| a.minimum(b);
}

/// A comparison of two elements, as IEEE says it for floats.
pub trait Comparison {
    /// Its value.
    fn holds<T: Scalar>(a: T, b: T) -> bool;
}

macro_rules! comparison {
    ($($(#[$doc:meta])* $Op:ident: $sign:tt;)*) => {$(
        $(#[$doc])*
        pub struct $Op;
        impl Comparison for $Op {
            #[inline(always)]
            fn holds<T: Scalar>(a: T, b: T) -> bool {
                a $sign b
            }
        }
    )*};
}
comparison! {
    /// a = b
    Eq: ==;
    /// a ≠ b
    Ne: !=;
    /// a < b
    Lt: <;
    /// a ≤ b
    Le: <=;
    /// a > b
    Gt: >;
    /// a ≥ b
    Ge: >=;
}

/// `out[i] = lhs[i] ∘ rhs[i]`, rounded once; integers wrap.
///
/// `out` is contiguous, `lhs` and `rhs` have the layout.
#[amdgpu_kernel(
    name = "b{Op}_{T}",
    Op in [add: Add, sub: Sub, mul: Mul, div: Div, maximum: Maximum, minimum: Minimum],
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3, f8_e4m3: f8e4m3],
    launch(workgroup = 256, items_per_lane = per_lane::<T, T>(), items = numel),
)]
pub unsafe fn binary<Op: BinaryOp, T: Extremum>(
    numel: usize,
    num_dims: usize,
    #[layout(numel, num_dims, of(lhs, rhs))] dims_and_strides: *const usize,
    lhs: *const T,
    rhs: *const T,
    #[len(numel)] out: *mut T,
) {
    // SAFETY: the caller gives a layout that fits its buffers
    unsafe {
        let layout = Layout::new(num_dims, dims_and_strides);
        map_tiled(numel, layout, (lhs, rhs), out, |(a, b)| Op::apply(a, b));
    }
}

/// `out[i] = 1` where `lhs[i] ∘ rhs[i]` holds, else 0.
///
/// `out` is contiguous, `lhs` and `rhs` have the layout.
#[amdgpu_kernel(
    name = "{Op}_{T}",
    Op in [eq: Eq, ne: Ne, lt: Lt, le: Le, gt: Gt, ge: Ge],
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3, f8_e4m3: f8e4m3],
    launch(workgroup = 256, items_per_lane = per_lane::<T, u8>(), items = numel),
)]
pub unsafe fn compare<Op: Comparison, T: Scalar>(
    numel: usize,
    num_dims: usize,
    #[layout(numel, num_dims, of(lhs, rhs))] dims_and_strides: *const usize,
    lhs: *const T,
    rhs: *const T,
    #[len(numel)] out: *mut u8,
) {
    // SAFETY: the caller gives a layout that fits its buffers
    unsafe {
        let layout = Layout::new(num_dims, dims_and_strides);
        map(numel, layout, (lhs, rhs), out, |(a, b)| u8::from(Op::holds(a, b)));
    }
}
