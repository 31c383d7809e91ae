//! Element by element kernels on the host, as a launch of one work-item, over layouts of every kind: contiguous,
//! permuted, broadcast, with gaps, misaligned.

#![cfg(all(feature = "unary", feature = "binary", feature = "ternary"))]

use candle_amdgpu_kernels::binary::{Sub, binary};
use candle_amdgpu_kernels::ternary::where_cond;
use candle_amdgpu_kernels::unary::copy;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % limit
    }
}

/// A shape, and strides of each of `K` tensors.
struct Case<const K: usize> {
    shape: Vec<usize>,
    strides: [Vec<usize>; K],
}

impl<const K: usize> Case<K> {
    fn draw(random: &mut Random) -> Self {
        let rank = random.below(5);
        let shape: Vec<usize> = (0..rank).map(|_| [1, 2, 3, 4, 5, 8, 12, 16, 36][random.below(9)]).collect();
        let strides = std::array::from_fn(|_| {
            let mut order: Vec<usize> = (0..rank).collect();
            let kind = random.below(4);
            if kind == 1 {
                for i in (1..rank).rev() {
                    order.swap(i, random.below(i + 1));
                }
            }
            let (mut strides, mut next) = (vec![0; rank], 1);
            for &d in order.iter().rev() {
                if kind == 2 && random.below(2) == 0 {
                    continue;
                }
                strides[d] = next;
                next *= shape[d] + if kind == 3 { random.below(2) * 4 } else { 0 };
            }
            strides
        });
        Case { shape, strides }
    }

    fn numel(&self) -> usize {
        self.shape.iter().product()
    }

    fn info(&self) -> Vec<usize> {
        self.shape.iter().chain(self.strides.iter().flatten()).copied().collect()
    }

    /// Where element `i` is in tensor `t`.
    fn at(&self, t: usize, i: usize) -> usize {
        let (mut rest, mut at) = (i, 0);
        for (dim, stride) in self.shape.iter().zip(&self.strides[t]).rev() {
            at += rest % dim * stride;
            rest /= dim;
        }
        at
    }

    fn required(&self, t: usize) -> usize {
        (0..self.numel()).map(|i| self.at(t, i) + 1).max().unwrap_or(0)
    }
}

/// Elements that begin `shift` after a multiple of 64 bytes.
fn buffer<T: From<u8> + std::marker::Copy>(
    storage: &mut Vec<T>,
    len: usize,
    shift: usize,
    f: impl Fn(usize) -> T,
) -> usize {
    storage.resize(len + shift + 64, T::from(0));
    let start = storage.as_ptr().align_offset(64) + shift;
    for i in 0..len {
        storage[start + i] = f(i);
    }
    start
}

#[test]
fn copies_of_any_layout_are_right() {
    let mut random = Random(1);
    for number in 0..if cfg!(miri) { 40 } else { 4000 } {
        let case = Case::<1>::draw(&mut random);
        let (numel, info) = (case.numel(), case.info());
        let (mut from, mut to) = (Vec::<u32>::new(), Vec::<u32>::new());
        let shift = [0, 0, 0, 1, 4][random.below(5)];
        let from_start = buffer(&mut from, case.required(0), shift, |i| i as u32);
        let to_start = buffer(&mut to, numel, [0, 0, 0, 1][random.below(4)], |_| u32::MAX);
        // SAFETY: the buffers hold what the layout addresses.
        unsafe {
            copy::<u32>(
                numel,
                case.shape.len(),
                info.as_ptr(),
                from.as_ptr().add(from_start),
                to.as_mut_ptr().add(to_start),
            );
        }
        for i in 0..numel {
            let want = case.at(0, i) as u32;
            assert_eq!(
                to[to_start + i],
                want,
                "case {number}: {:?} {:?} element {i}",
                case.shape,
                case.strides
            );
        }
    }
}

#[test]
fn differences_of_any_two_layouts_are_right() {
    let mut random = Random(2);
    for number in 0..if cfg!(miri) { 40 } else { 4000 } {
        let case = Case::<2>::draw(&mut random);
        let (numel, info) = (case.numel(), case.info());
        let (mut a, mut b, mut to) = (Vec::<i16>::new(), Vec::<i16>::new(), Vec::<i16>::new());
        let a_start = buffer(&mut a, case.required(0), 0, |i| (i % 30000) as i16);
        let b_start =
            buffer(&mut b, case.required(1), [0, 0, 8, 3][random.below(4)], |i| (i * 7 % 30000) as i16);
        let to_start = buffer(&mut to, numel, 0, |_| 0);
        // SAFETY: the buffers hold what the layout addresses.
        unsafe {
            let (a, b, to) =
                (a.as_ptr().add(a_start), b.as_ptr().add(b_start), to.as_mut_ptr().add(to_start));
            binary::<Sub, i16>(numel, case.shape.len(), info.as_ptr(), a, b, to);
        }
        for i in 0..numel {
            let want = ((case.at(0, i) % 30000) as i16).wrapping_sub((case.at(1, i) * 7 % 30000) as i16);
            assert_eq!(
                to[to_start + i],
                want,
                "case {number}: {:?} {:?} element {i}",
                case.shape,
                case.strides
            );
        }
    }
}

#[test]
fn choices_among_any_three_layouts_are_right() {
    let mut random = Random(3);
    for number in 0..if cfg!(miri) { 40 } else { 2000 } {
        let case = Case::<3>::draw(&mut random);
        let (numel, info) = (case.numel(), case.info());
        let (mut ids, mut t, mut f, mut to) =
            (Vec::<u8>::new(), Vec::<f32>::new(), Vec::<f32>::new(), Vec::<f32>::new());
        let ids_start = buffer(&mut ids, case.required(0), 0, |i| (i % 3) as u8);
        let t_start = buffer(&mut t, case.required(1), 0, |i| i as f32);
        let f_start = buffer(&mut f, case.required(2), 0, |i| -(i as f32));
        let to_start = buffer(&mut to, numel, 0, |_| 0.5);
        // SAFETY: the buffers hold what the layout addresses.
        unsafe {
            where_cond(
                numel,
                case.shape.len(),
                info.as_ptr(),
                ids.as_ptr().add(ids_start),
                t.as_ptr().add(t_start),
                f.as_ptr().add(f_start),
                to.as_mut_ptr().add(to_start),
            );
        }
        for i in 0..numel {
            let (t, f) = (case.at(1, i) as f32, -(case.at(2, i) as f32));
            let want = if case.at(0, i).is_multiple_of(3) { f } else { t };
            assert_eq!(
                to[to_start + i],
                want,
                "case {number}: {:?} {:?} element {i}",
                case.shape,
                case.strides
            );
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "4 GiB, of which it touches two pages")]
fn strides_beyond_32_bits_are_right() {
    let far = 1 << 32;
    let mut from = vec![0u8; far + 64];
    for i in 0..5 {
        (from[i], from[far + 3 * i]) = (i as u8, 100 + i as u8);
    }
    let info = [2, 5, far, 1];
    let mut to = [0u8; 10];
    // SAFETY: the buffers hold what the layout addresses.
    unsafe { copy::<u8>(10, 2, info.as_ptr(), from.as_ptr(), to.as_mut_ptr()) };
    assert_eq!(to, [0, 1, 2, 3, 4, 100, 0, 0, 101, 0]);
}
