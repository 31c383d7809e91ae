//! Matrix product: `c[i, j] = alpha · Σₖ a[i, k] · b[k, j] + beta · c[i, j]`, for each matrix of a batch.
//!
//! Strides are arbitrary, so a transposition costs nothing: element (i, k) of `a` is at `i · a_i + k · a_k`. One of the two is
//! usually 1, and then 16 bytes are loaded at a time. f16 and bf16 multiply and add in f32, and round once, at the end.
//!
//! A workgroup computes a tile of the result (`tile.rs`): its rows of `a` and columns of `b` go through workgroup memory
//! (`shared.rs`), 64 bytes of each along k at a time, from where the waves multiply them: with matrix instructions
//! where the target has them for the type, else with fused multiply-adds in registers. NVIDIA GPUs have their own ways in `staged/`.

pub mod experts;
mod load;
mod shared;
mod staged;
mod tile;
mod vector;

use amdgpu_device::fused::Dot;
use amdgpu_device::matrix::Matrix;
use amdgpu_device::opaque_uniform;
use amdgpu_device::prelude::*;
use amdgpu_device::wave::Words;

/// An element type of matrices.
pub trait Element: Dot<Acc: Words> + Matrix {}
impl<T: Dot<Acc: Words> + Matrix> Element for T {}

/// `$body` for each constant `$i` below `$n`, written out, so that arrays which it indexes are registers.
macro_rules! unroll {
    ($n:expr, $i:ident => $body:expr) => {
        unroll!($n, $i => $body; 0 1 2 3 4 5 6 7)
    };
    ($n:expr, $i:ident => $body:expr; $($value:literal)*) => {{$(
        if const { $n > $value } {
            const $i: usize = $value;
            #[allow(unconditional_panic, clippy::out_of_bounds_indexing)]
            {
                $body;
            }
        }
    )*}};
}
use unroll;

/// A matrix operand: element (row, k) is at `row · by_row + k · by_k`.
#[derive(Clone, Copy)]
struct Operand<T> {
    at: *const T,
    by_row: usize,
    by_k: usize,
}

/// The result: element (i, j) is at `i · by_i + j · by_j`.
#[derive(Clone, Copy)]
struct Product<T: Scalar> {
    at: *mut T,
    by_i: usize,
    by_j: usize,
    alpha: T::Acc,
    beta: T::Acc,
}

impl<T> Operand<T> {
    /// From row `i` on. Nothing is computed from the strides in advance, for all tiles: that takes too many registers.
    #[inline(always)]
    fn at_row(self, i: usize) -> Self {
        let by_row = opaque_uniform(self.by_row);
        Operand { at: self.at.wrapping_add(i * by_row), by_row, by_k: opaque_uniform(self.by_k) }
    }
}

impl<T: Scalar> Product<T> {
    /// From element (i, j) on.
    #[inline(always)]
    fn at_element(self, i: usize, j: usize) -> Self {
        let (by_i, by_j) = (opaque_uniform(self.by_i), opaque_uniform(self.by_j));
        Product { at: self.at.wrapping_add(i * by_i + j * by_j), by_i, by_j, ..self }
    }

    /// From a lane's first element on, of `size` that there are; as above.
    #[inline(always)]
    fn of_lane(self, size: [u32; 2], i: u32, j: u32) -> Results<T> {
        let (by_i, by_j) = (opaque_uniform(self.by_i), opaque_uniform(self.by_j));
        let at = self.at.wrapping_add(i as usize * by_i + j as usize * by_j);
        Results { product: Product { at, by_i, by_j, ..self }, size, first: [i, j] }
    }
}

/// Where a lane's results go.
struct Results<T: Scalar> {
    product: Product<T>,
    size: [u32; 2],
    first: [u32; 2],
}

impl<T: Scalar> Results<T> {
    /// Writes the element that is (i, j) after the lane's first, from its sum of products, if there is one. With a
    /// `beta` of 0 the old value is not read, and so may be NaN.
    ///
    /// # Safety
    /// The product has the elements that [`of_lane`](Product::of_lane) was told of.
    #[inline(always)]
    unsafe fn write(&self, i: u32, j: u32, sum: T::Acc) {
        let Product { at, by_i, by_j, alpha, beta } = self.product;
        if self.first[0] + i < self.size[0] && self.first[1] + j < self.size[1] {
            // The second term is the same for all lanes.
            let at = at.wrapping_add(i as usize * by_i + j as usize * by_j);
            let mut value = alpha.mul(sum);
            // SAFETY: the element is there
            unsafe {
                if beta != T::Acc::ZERO {
                    value = value.add(beta.mul(at.read().to_acc()));
                }
                at.write(T::from_acc(value));
            }
        }
    }
}

/// A kernel with the arguments of a matrix product; `$rows` and `$columns` are those of a workgroup's tile.
macro_rules! gemm {
    ($($(#[$doc:meta])* $function:ident $name:literal [$($T:ident)*], $rows:expr, $columns:expr, $lanes:expr, $bytes:expr,
        $compute:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// Matrices of `m` by `k`, `k` by `n` and `m` by `n` elements. An element is at the sum of its indices times
        /// their strides (in elements); matrix z of the batch begins at z times the batch's stride.
        #[amdgpu_kernel(
            name = $name,
            T in [$($T),*],
            launch(
                workgroup = $lanes,
                max_workgroup = $lanes,
                grid = [
                    m.div_ceil($rows).min(8388608),
                    n.div_ceil($columns).min(65535),
                    batch.min(65535)
                ],
                lds_bytes = $bytes,
            ),
        )]
        #[allow(clippy::too_many_arguments)]
        pub unsafe fn $function<T: Element>(
            m: usize,
            n: usize,
            k: usize,
            batch: usize,
            alpha: <T as Scalar>::Acc,
            #[len(m.min(1) * k.min(1) * batch.min(1) * ((m - 1) * a_i + (k - 1) * a_k + (batch - 1) * a_z + 1))]
            a: *const T,
            a_i: usize,
            a_k: usize,
            a_z: usize,
            #[len(n.min(1) * k.min(1) * batch.min(1) * ((n - 1) * b_j + (k - 1) * b_k + (batch - 1) * b_z + 1))]
            b: *const T,
            b_j: usize,
            b_k: usize,
            b_z: usize,
            beta: <T as Scalar>::Acc,
            #[len(m.min(1) * n.min(1) * batch.min(1) * ((m - 1) * c_i + (n - 1) * c_j + (batch - 1) * c_z + 1))]
            c: *mut T,
            c_i: usize,
            c_j: usize,
            c_z: usize,
        ) {
            let mut z = amdgpu_device::grid::workgroup_id_z() as usize;
            while z < batch {
                let from = |stride: usize| z * opaque_uniform(stride);
                let a = Operand { at: a.wrapping_add(from(a_z)), by_row: a_i, by_k: a_k };
                let b = Operand { at: b.wrapping_add(from(b_z)), by_row: b_j, by_k: b_k };
                let c = Product { at: c.wrapping_add(from(c_z)), by_i: c_i, by_j: c_j, alpha, beta };
                // SAFETY: the caller gives matrices that fit the strides
                unsafe { $compute([m, n, k], a, b, c) };
                z += amdgpu_device::grid::workgroups_z() as usize;
            }
        }
    )*};
}
gemm! {
    /// `c = alpha · a · b + beta · c`, for results that are large in both directions.
    gemm_large "gemm_{T}_128x128" [f32], 128, 128, 256, shared::bytes(128, 128),
        tile::matrix::<T, 128, 128, 256, true>;
    /// `c = alpha · a · b + beta · c`, for results that are large in both directions. With 192 KiB of workgroup memory on sm_90a, operands
    /// that lie in whole chunks of 16 bytes are multiplied in tiles of 256 by 128.
    gemm_large_16 "gemm_{T}_128x128" [f16 bf16], 128, 128, 256, shared::bytes(128, 128), staged::wide::<T>;
    /// `c = alpha · a · b + beta · c`, for results of middle size.
    gemm_middle "gemm_{T}_64x64" [f32 f64 f16 bf16], 64, 64, 128, shared::bytes(64, 64),
        tile::matrix::<T, 64, 64, 128, true>;
    /// `c = alpha · a · b + beta · c`, for results of few columns.
    gemm_few "gemm_{T}_64x16" [f32 f64 f16 bf16], 64, 16, 64, shared::bytes(64, 16),
        tile::matrix::<T, 64, 16, 64, true>;
    /// `c = alpha · a · b + beta · c`, with copies to workgroup memory that run several steps ahead on NVIDIA GPUs. Elsewhere it is
    /// as the kernel of 64 by 64.
    gemm_staged "gemm_{T}_staged" [f32 f16 bf16], 128, 128, 128, staged::bytes::<f32>(), staged::matrix::<T>;
    /// `c = alpha · a · b + beta · c`, with copies to workgroup memory that run several steps ahead on NVIDIA GPUs. Elsewhere it is
    /// as the kernel of 64 by 64.
    gemm_staged_64 "gemm_{T}_staged" [f64], 128, 64, 128, staged::bytes::<f64>(), staged::matrix::<T>;
    /// `c = alpha · a · b + beta · c`, for few columns, where k is contiguous in `a` and `b`: on NVIDIA GPUs as fast as `a` can be read.
    /// Elsewhere, and where rows do not begin at multiples of 16 bytes, it is as the kernel for a single column.
    gemm_thin "gemm_{T}_16x32" [f16 bf16], staged::thin::ROWS, staged::thin::COLUMNS, 256, staged::thin::BYTES,
        staged::thin::matrix::<T>;
    /// `c = alpha · a · b + beta · c` without matrix instructions, which on gfx90a take subnormal f16 and bf16 as zeros.
    gemm_plain "gemm_plain_{T}" [f32 f64 f16 bf16], 64, 64, 128, shared::bytes(64, 64),
        tile::matrix::<T, 64, 64, 128, false>;
    /// `c = alpha · a · b + beta · c`, for a single column, where k is contiguous in `a`.
    gemv_along_k "gemv_{T}_along_k" [f32 f64 f16 bf16], 16, 1, 256, 0, vector::along_k::<T>;
    /// `c = alpha · a · b + beta · c`, for a single column, where the rows are contiguous in `a`.
    gemv_across_16 "gemv_{T}_across" [f16 bf16], 128, 1, 256, vector::bytes::<f16>(), vector::across::<T>;
    /// `c = alpha · a · b + beta · c`, for a single column, where the rows are contiguous in `a`.
    gemv_across_32 "gemv_{T}_across" [f32], 64, 1, 256, vector::bytes::<f32>(), vector::across::<T>;
    /// `c = alpha · a · b + beta · c`, for a single column, where the rows are contiguous in `a`.
    gemv_across_64 "gemv_{T}_across" [f64], 32, 1, 256, vector::bytes::<f64>(), vector::across::<T>;
}
