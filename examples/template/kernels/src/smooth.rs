//! Smoothing: each element and its two neighbours.

use amdgpu_device::prelude::*;

/// `out[i] = (inp[i − 1] + inp[i] + inp[i + 1]) / 3`. The first and the last element are their own missing neighbours.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(
    name = "smooth_{T}",
    T in [f32, f64],
    launch(workgroup = 256, items = count),
)]
pub unsafe fn smooth<T: Float>(
    count: usize,
    #[len(count)] inp: *const T,
    #[len(count)] out: *mut T,
) {
    global_stride(count, |i| {
        let left = i.saturating_sub(1);
        let right = (i + 1).min(count - 1);
        // SAFETY: each index is below `count`.
        unsafe {
            let mean = mean(*inp.add(left), *inp.add(i), *inp.add(right));
            out.add(i).write(mean);
        }
    });
}

/// The mean of three numbers, added from the left.
fn mean<T: Float>(a: T, b: T, c: T) -> T {
    a.add(b).add(c).div(T::from_f32(3.0))
}
