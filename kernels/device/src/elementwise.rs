//! Loops over elements: each element once, whatever the launch geometry, 16 bytes per access where that is possible.

use crate::Scalar;
use crate::grid::global_stride;
use crate::layout::Layout;
use crate::memory::{is_aligned, load, store};

/// Evaluates `$body` with the constant `$n` being the number of elements of so many bytes in 16 bytes.
#[macro_export]
macro_rules! with_vector {
    ($bytes:expr, $n:ident => $body:expr) => {
        match $bytes {
            1 => with_vector!(@ $n 16 $body),
            2 => with_vector!(@ $n 8 $body),
            4 => with_vector!(@ $n 4 $body),
            _ => with_vector!(@ $n 2 $body),
        }
    };
    (@ $n:ident $value:literal $body:expr) => {{
        const $n: usize = $value;
        $body
    }};
}
pub use with_vector;

/// `out[i] = f(inp[layout(i)])`
///
/// # Safety
/// `inp` holds what the layout addresses, `out` holds `numel` elements and is contiguous. They are the same buffer
/// only if the layout is contiguous.
#[inline(always)]
pub unsafe fn map<T: Scalar, U: Scalar>(
    numel: usize,
    layout: Layout<1>,
    inp: *const T,
    out: *mut U,
    f: impl Fn(T) -> U,
) {
    // SAFETY: the caller's
    unsafe {
        if layout.is_contiguous() {
            let narrower = size_of::<T>().min(size_of::<U>());
            with_vector!(narrower, N => map_contiguous::<T, U, N>(numel, inp, out, f));
        } else {
            global_stride(numel, |i| {
                let [from] = layout.offsets(i, numel);
                out.add(i).write(f(inp.add(from).read()));
            });
        }
    }
}

#[inline(always)]
unsafe fn map_contiguous<T: Scalar, U: Scalar, const N: usize>(
    numel: usize,
    inp: *const T,
    out: *mut U,
    f: impl Fn(T) -> U,
) {
    let vectors = if is_aligned(inp) & is_aligned(out) { numel / N } else { 0 };
    // SAFETY: the caller's
    unsafe {
        global_stride(vectors, |v| {
            let elements: [T; N] = load(inp.add(v * N));
            store(out.add(v * N), elements.map(&f));
        });
        let done = vectors * N;
        global_stride(numel - done, |i| out.add(done + i).write(f(inp.add(done + i).read())));
    }
}

/// `out[layout(i)] = value`
///
/// # Safety
/// `out` holds what the layout addresses.
#[inline(always)]
pub unsafe fn set<T: Scalar>(numel: usize, layout: Layout<1>, out: *mut T, value: T) {
    // SAFETY: the caller's
    unsafe {
        if layout.is_contiguous() {
            with_vector!(size_of::<T>(), N => set_contiguous::<T, N>(numel, out, value));
        } else {
            global_stride(numel, |i| {
                let [to] = layout.offsets(i, numel);
                out.add(to).write(value);
            });
        }
    }
}

#[inline(always)]
unsafe fn set_contiguous<T: Scalar, const N: usize>(numel: usize, out: *mut T, value: T) {
    let vectors = if is_aligned(out) { numel / N } else { 0 };
    // SAFETY: the caller's
    unsafe {
        global_stride(vectors, |v| store(out.add(v * N), [value; N]));
        let done = vectors * N;
        global_stride(numel - done, |i| out.add(done + i).write(value));
    }
}
