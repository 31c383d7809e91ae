//! The functions of `math`: the same bits on every target, and the fast variants.

use amdgpu_device::math::{Math, fast};
use amdgpu_device::prelude::*;

/// How many functions of one number there are.
pub const ONE: usize = 18;

/// Row `k` of `out` is the `k`-th function of `x`; behind these are four functions of `x` and `y`.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(name = "functions_{T}", T in [f32, f64], launch(workgroup = 64, items = count))]
pub unsafe fn functions<T: Scalar + Math>(
    count: usize,
    #[len(count)] x: *const T,
    #[len(count)] y: *const T,
    #[len(22 * count)] out: *mut T,
) {
    global_stride(count, |i| {
        // SAFETY: the index is below `count`, and there are as many rows
        unsafe {
            let (x, y) = (*x.add(i), *y.add(i));
            let mut to = out.add(i);
            macro_rules! rows {
                ($($value:expr),* $(,)?) => {$(
                    to.write($value);
                    to = to.wrapping_add(count);
                )*};
            }
            rows!(
                Math::exp(x),
                Math::exp2(x),
                Math::expm1(x),
                Math::log(x),
                Math::log2(x),
                Math::log10(x),
                Math::log1p(x),
                Math::sin(x),
                Math::cos(x),
                Math::tan(x),
                Math::atan(x),
                Math::sinh(x),
                Math::cosh(x),
                Math::tanh(x),
                Math::erf(x),
                Math::erfc(x),
                Math::cbrt(x),
                Math::rsqrt(x),
                Math::atan2(x, y),
                Math::hypot(x, y),
                Math::fmod(x, y),
                Math::pow(x, y),
            );
            let _ = to;
        }
    });
}

/// Row `k` of `out` is the `k`-th fast function of `x`.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(launch(workgroup = 64, items = count))]
pub unsafe fn fast_functions(
    count: usize,
    #[len(count)] x: *const f32,
    #[len(13 * count)] out: *mut f32,
) {
    global_stride(count, |i| {
        // SAFETY: the index is below `count`, and there are as many rows
        unsafe {
            let x = *x.add(i);
            let results = [
                fast::recip(x),
                fast::div(3.0, x),
                fast::sqrt(x),
                fast::rsqrt(x),
                fast::exp2(x),
                fast::exp(x),
                fast::log2(x),
                fast::log(x),
                fast::log10(x),
                fast::sin(x),
                fast::cos(x),
                fast::tanh(x / 8.0),
                fast::powf(x, 2.5),
            ];
            let mut row = 0;
            while row < 13 {
                out.add(row * count + i).write(results[row]);
                row += 1;
            }
        }
    });
}
