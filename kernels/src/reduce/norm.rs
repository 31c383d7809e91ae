//! `rmsnorm` and `layernorm` of rows.

use super::row::{Row, by_blocks, held, here, whole, widened};
use amdgpu_device::math::Value;
use amdgpu_device::prelude::*;
use amdgpu_device::team::Team;
use amdgpu_device::wave::Lane;
use amdgpu_device::{by_vector, unroll};

/// `dst[c] = src[c] / √(mean of squares + eps) · alpha[c]` along each row of `n_cols` elements; without `alpha` if it is null.
///
/// A row for each z of each workgroup, whose x and y may be any: `block_size` is not needed. f16 and bf16 compute in f32 and round once.
#[amdgpu_kernel(
    name = "rmsnorm_{T}",
    T in [bf16, f16, f32, f64],
    launch(workgroup = 256, items_per_lane = 16 / size_of::<T>(), rows = dst.len().div_ceil(n_cols.max(1)), columns = n_cols),
)]
pub unsafe fn rmsnorm<T: Scalar<Acc: Float + Value + Lane>>(
    #[by_row]
    #[len(dst.len() / n_cols.max(1) * n_cols)]
    src: *const T,
    #[by_row]
    #[len(grid.x * block.z * n_cols)]
    dst: *mut T,
    #[nullable]
    #[len(n_cols)]
    alpha: *const T,
    #[requires(dst.len() % n_cols.max(1) == 0)] n_cols: i32,
    block_size: i32,
    eps: f32,
) {
    let _ = block_size;
    // SAFETY: the caller gives a row for each z of each workgroup
    unsafe {
        by_vector!(T, N => {
            let mut team = Team::of_row();
            let columns = n_cols.max(0) as usize;
            let (src, dst) = here(src, dst, columns);
            by_blocks!(&team, columns, whole(&[src, dst, alpha], columns, N), N, |row, K| {
                let held = row.hold::<T, K>(src, T::ZERO);
                let mut normal = Normal { fill: T::ZERO, mean: T::Acc::ZERO, scale: T::Acc::ONE };
                let squares = total::<T, N, K, _, true>(&mut team, &row, &held, src, &normal);
                normal.scale = scale::<T>(squares, columns, eps);
                write::<T, N, K, _>(&row, &held, src, &normal, dst, alpha, core::ptr::null());
            })
        });
    }
}

/// `dst[c] = (src[c] − mean) / √(variance + eps) · alpha[c] + beta[c]` along each row of `n_cols` elements; without
/// `alpha`, `beta` if they are null.
///
/// A row for each z of each workgroup, whose x and y may be any: `block_size` is not needed. f16 and bf16 compute in f32 and round once.
/// Everything is reckoned from the row's first element, and the variance from the mean, so that a row far from zero
/// loses nothing: a constant row gives 0.
#[amdgpu_kernel(
    name = "layernorm_{T}",
    T in [bf16, f16, f32, f64],
    launch(workgroup = 256, items_per_lane = 16 / size_of::<T>(), rows = dst.len().div_ceil(n_cols.max(1)), columns = n_cols),
)]
pub unsafe fn layernorm<T: Scalar<Acc: Float + Value + Lane>>(
    #[by_row]
    #[len(dst.len() / n_cols.max(1) * n_cols)]
    src: *const T,
    #[by_row]
    #[len(grid.x * block.z * n_cols)]
    dst: *mut T,
    #[nullable]
    #[len(n_cols)]
    alpha: *const T,
    #[nullable]
    #[len(n_cols)]
    beta: *const T,
    #[requires(dst.len() % n_cols.max(1) == 0)] n_cols: i32,
    block_size: i32,
    eps: f32,
) {
    let _ = block_size;
    // SAFETY: the caller gives a row for each z of each workgroup
    unsafe {
        let columns = n_cols.max(0) as usize;
        if columns == 0 {
            return;
        }
        by_vector!(T, N => {
            let mut team = Team::of_row();
            let (src, dst) = here(src, dst, columns);
            by_blocks!(&team, columns, whole(&[src, dst, alpha, beta], columns, N), N, |row, K| {
                let fill = row.first(src);
                let held = row.hold::<T, K>(src, fill);
                let mut normal = Normal { fill, mean: T::Acc::ZERO, scale: T::Acc::ONE };
                let sum = total::<T, N, K, _, false>(&mut team, &row, &held, src, &normal);
                normal.mean = sum.div(T::Acc::from_f64(columns as f64));
                let squares = total::<T, N, K, _, true>(&mut team, &row, &held, src, &normal);
                normal.scale = scale::<T>(squares, columns, eps);
                write::<T, N, K, _>(&row, &held, src, &normal, dst, alpha, beta);
            })
        });
    }
}

/// Blocks whose terms are added up one after the other.
const SERIES: usize = 32;

/// `1/√(sum/columns + eps)`
#[inline(always)]
fn scale<T: Scalar<Acc: Float + Value>>(sum: T::Acc, columns: usize, eps: f32) -> T::Acc {
    sum.div(T::Acc::from_f64(columns as f64)).add(T::Acc::from_f32(eps)).sqrt().recip()
}

/// What is done to an element: `(x − fill − mean) · scale`.
struct Normal<T: Scalar> {
    /// Stands for what is beyond the row, too.
    fill: T,
    mean: T::Acc,
    scale: T::Acc,
}

impl<T: Scalar> Normal<T> {
    #[inline(always)]
    fn distance(&self, x: T) -> T::Acc {
        x.to_acc().sub(self.fill.to_acc()).sub(self.mean)
    }
}

/// The sum over the row of the distances, or of their squares.
///
/// # Safety
/// `src` has the row's columns.
#[inline(always)]
unsafe fn total<
    T: Scalar<Acc: Lane>,
    const N: usize,
    const K: usize,
    const WHOLE: bool,
    const SQUARES: bool,
>(
    team: &mut Team,
    row: &Row<N, WHOLE>,
    held: &[[T; N]; K],
    src: *const T,
    normal: &Normal<T>,
) -> T::Acc {
    let mut sum = T::Acc::ZERO;
    if const { K == 0 } {
        // Sums of a few blocks are added up, so that a term passes some dozen roundings, however long the row is.
        let (mut all, mut k) = (T::Acc::ZERO, 0);
        while row.has(k) {
            // SAFETY: the caller's
            let block = unsafe { row.load(src, k, normal.fill) };
            sum = sum.add(of_block::<T, N, WHOLE, SQUARES>(row, k, block, normal));
            k += 1;
            if k % SERIES == 0 {
                (all, sum) = (all.add(sum), T::Acc::ZERO);
            }
        }
        sum = all.add(sum);
    }
    unroll!(K, B => if row.has(B) {
        sum = sum.add(of_block::<T, N, WHOLE, SQUARES>(row, B, held[B], normal));
    });
    team.reduce(sum, T::Acc::ZERO, Scalar::add)
}

/// A block's part in [`total`].
#[inline(always)]
fn of_block<T: Scalar, const N: usize, const WHOLE: bool, const SQUARES: bool>(
    row: &Row<N, WHOLE>,
    k: usize,
    block: [T; N],
    normal: &Normal<T>,
) -> T::Acc {
    let mut sum = T::Acc::ZERO;
    unroll!(N, J => {
        let d = normal.distance(block[J]);
        let term = if SQUARES { d.mul(d) } else { d };
        sum = sum.add(if WHOLE || row.is_column(k, J) { term } else { T::Acc::ZERO });
    });
    if !WHOLE || row.is_column(k, 0) { sum } else { T::Acc::ZERO }
}

/// The row's results.
///
/// # Safety
/// `src`, `dst`, and `alpha` and `beta` if they are not null, have the row's columns.
#[inline(always)]
unsafe fn write<T: Scalar, const N: usize, const K: usize, const WHOLE: bool>(
    row: &Row<N, WHOLE>,
    held: &[[T; N]; K],
    src: *const T,
    normal: &Normal<T>,
    dst: *mut T,
    alpha: *const T,
    beta: *const T,
) {
    // SAFETY: the caller's
    unsafe {
        if const { K == 0 } {
            let mut k = 0;
            while row.has(k) {
                let block = row.load(src, k, normal.fill);
                row.store_acc(dst, k, weighed(row, k, block, normal, alpha, beta));
                k += 1;
            }
        }
        unroll!(K, B => if row.has(B) {
            row.store_acc(dst, B, weighed(row, B, held[B], normal, alpha, beta));
        });
    }
}

/// A block's results: the distances, scaled, times `alpha` plus `beta`, without either that is null.
///
/// # Safety
/// `alpha` and `beta` have the row's columns if they are not null.
#[inline(always)]
unsafe fn weighed<T: Scalar, const N: usize, const WHOLE: bool>(
    row: &Row<N, WHOLE>,
    k: usize,
    block: [T; N],
    normal: &Normal<T>,
    alpha: *const T,
    beta: *const T,
) -> [T::Acc; N] {
    let mut y = [T::Acc::ZERO; N];
    unroll!(N, J => y[J] = normal.distance(block[J]).mul(normal.scale));
    // SAFETY: the caller's
    unsafe {
        if !alpha.is_null() {
            let alpha = widened(row.load_shared(alpha, k, T::ONE));
            unroll!(N, J => {
                y[J] = y[J].mul(alpha[J]);
            });
        }
        if !beta.is_null() {
            let beta = widened(row.load_shared(beta, k, T::ZERO));
            unroll!(N, J => {
                y[J] = y[J].add(beta[J]);
            });
        }
    }
    y
}
