//! `sum`: adds the elements along some dimensions to what is in the output.

use super::fast::by_rows;
use super::fold::{Earlier, Fold, Sum};
use amdgpu_device::layout::divide;
use amdgpu_device::prelude::*;
use amdgpu_device::wave::Lane;

/// `out[o] += Σ inp[i]` over all i that come to o, in one order.
///
/// `info` has the `num_dims` dimensions of `inp`, its strides in elements, then the sizes of the `num_sum_dims` dimensions
/// that are summed and their strides in a contiguous tensor. An element's number (the last dimension runs fastest)
/// becomes that of its sum by taking out those dimensions one after the other: `i / stride / size · stride + i % stride`.
#[amdgpu_kernel(
    name = "sum_{T}",
    T in [bf16, f16, f32, f64, u32],
    launch(workgroup = 256, items = numel),
)]
pub unsafe fn sum<T: Scalar<Acc: Lane>>(
    #[value(inp.numel())] numel: usize,
    num_dims: usize,
    num_sum_dims: usize,
    #[tensors(inp[..num_dims])]
    #[along(num_sum_dims, of(inp))]
    info: *const usize,
    inp: *const T,
    #[len(numel / inp.along().max(1))] out: *mut T,
) {
    // SAFETY: the caller's
    unsafe {
        let layout = Layout::<1>::new(num_dims, info);
        let sizes = info.add(2 * num_dims);
        let strides = sizes.add(num_sum_dims);
        let (mut len, mut d) = (1, 0);
        while d < num_sum_dims {
            len *= sizes.add(d).read();
            d += 1;
        }
        if len == 0 {
            return;
        }
        let write = |row: usize, acc: T::Acc| {
            let out = out.add(row);
            out.write(T::from_acc(out.read().to_acc().add(acc)));
        };
        by_rows::<Sum, T>(divide(numel, len, numel).0, len, write, |row, first, step| {
            let (mut acc, mut i) = ([T::Acc::ZERO], first);
            let mut earlier = Earlier::<Sum, T, 1>::identity();
            while i < len {
                let (mut rest, mut at, mut d) = (i, row, num_sum_dims);
                while d > 0 {
                    d -= 1;
                    let (size, stride) = (sizes.add(d).read(), strides.add(d).read());
                    let (quotient, digit) = divide(rest, size, numel);
                    let (before, within) = divide(at, stride, numel);
                    at = (before * size + digit) * stride + within;
                    rest = quotient;
                }
                let [at] = layout.offsets(at, numel);
                acc[0] = Sum::accumulate(acc[0], inp.add(at).read(), i as u32);
                earlier.turn(&mut acc);
                i += step;
            }
            earlier.join(&mut acc);
            acc[0]
        });
    }
}
