//! Which keys a query sees, and what is added to a score.
//!
//! The last query is at the position of the last key: query `i` of `n` is at `p = i + keys − n`. It sees the keys from `p − left`
//! to `p + right`, as far as there are such, and those of each range of positions that `p` is in.

use amdgpu_device::math::fast::tanh;
use amdgpu_device::matrix::RESULTS;
use amdgpu_device::opaque;

use crate::fragment::{Half, QUERIES, Results, column_of, now, query_of};
use crate::problem::Problem;

/// Masks of a sequence.
#[derive(Clone, Copy)]
pub(crate) struct Mask {
    pub(crate) left: i32,
    pub(crate) right: i32,
    /// Keys of the sequence.
    pub(crate) keys: i32,
    /// Pairs of a first position and one behind the last, or null.
    pub(crate) ranges: *const i32,
    pub(crate) range_count: u32,
}

impl Mask {
    /// The first key in the window of a position.
    #[inline(always)]
    pub(crate) fn first(&self, position: i32) -> i32 {
        if self.left < 0 { 0 } else { position.saturating_sub(self.left).max(0) }
    }

    /// The first behind it.
    #[inline(always)]
    pub(crate) fn end(&self, position: i32) -> i32 {
        if self.right < 0 {
            self.keys
        } else {
            position.saturating_add(self.right).saturating_add(1).min(self.keys)
        }
    }

    /// A range: its first position, and the first behind it.
    ///
    /// # Safety
    /// There is one of this number.
    #[inline(always)]
    unsafe fn range(&self, number: u32) -> [i32; 2] {
        // SAFETY: the caller's
        unsafe { self.ranges.cast::<[i32; 2]>().add(number as usize).read() }
    }

    /// The keys that at least one of some positions may see: the first, and the first behind them.
    ///
    /// # Safety
    /// The ranges can be read.
    #[inline(always)]
    pub(crate) unsafe fn of_positions(&self, first: i32, last: i32) -> (i32, i32) {
        let (mut begin, mut end) = (self.first(first), self.end(last));
        let mut i = 0;
        while i < self.range_count {
            // SAFETY: the caller's
            let [from, to] = unsafe { self.range(i) };
            if from <= last && first < to && from < to {
                begin = begin.min(from);
                end = end.max(to.min(self.keys));
            }
            i += 1;
        }
        (begin, end)
    }

    /// The scores of one tile with those that are not seen at −∞. `first` is the tile's first key, `positions` are those of the
    /// lane's queries.
    ///
    /// # Safety
    /// The ranges can be read.
    #[inline(always)]
    pub(crate) unsafe fn apply<T: Half>(
        &self,
        lane: u32,
        scores: Results,
        first: i32,
        positions: [i32; QUERIES],
    ) -> Results {
        let mut scores = scores;
        // Not to be computed in advance and kept in registers.
        let lane = opaque(lane);
        let (firsts, ends) = (positions.map(|p| self.first(p)), positions.map(|p| self.end(p)));
        // A bit for each result whose key is in a range of its query.
        let (mut seen, mut i) = (0_u32, 0);
        while i < self.range_count {
            // SAFETY: the caller's
            let [from, to] = unsafe { self.range(i) };
            let to_key = to.min(self.keys);
            each8!(RESULTS, I => {
                let key = first + column_of::<T>(lane, I) as i32;
                let position = positions[const { query_of(I) }];
                let inside = (from <= position) & (position < to) & (from <= key) & (key < to_key);
                seen |= u32::from(inside) << I;
            });
            i += 1;
        }
        each8!(RESULTS, I => {
            let key = first + column_of::<T>(lane, I) as i32;
            let in_window = (firsts[const { query_of(I) }] <= key) & (key < ends[const { query_of(I) }]);
            scores[I] = now(if in_window | (seen & 1 << I != 0) { scores[I] } else { f32::NEG_INFINITY });
        });
        scores
    }
}

/// What makes more of a score than a multiple.
#[derive(Clone, Copy)]
pub(crate) struct Bias {
    /// What scores are multiplied by, and the exponent's base is 2.
    pub(crate) scale: f32,
    /// Scale over cap, and cap, where there is one.
    inner: f32,
    outer: f32,
}

impl Bias {
    #[inline(always)]
    pub(crate) fn new(problem: &Problem) -> Self {
        const LOG2_E: f32 = core::f32::consts::LOG2_E;
        let capped = problem.softcap > 0.0;
        Bias {
            scale: problem.scale * LOG2_E,
            inner: if capped { problem.scale / problem.softcap } else { 0.0 },
            outer: if capped { problem.softcap * LOG2_E } else { 0.0 },
        }
    }

    /// Whether scores need [`apply`](Self::apply): otherwise the scale is part of the exponent.
    #[inline(always)]
    pub(crate) fn is_needed(&self, sloped: bool) -> bool {
        sloped || self.outer > 0.0 || self.scale.is_nan() || self.scale <= 0.0
    }

    /// Scores of one tile, scaled, bent and lowered by the distance of key and query.
    #[inline(always)]
    pub(crate) fn apply<T: Half>(
        &self,
        lane: u32,
        scores: Results,
        first: i32,
        positions: [i32; QUERIES],
        slopes: [f32; QUERIES],
    ) -> Results {
        let mut scores = scores;
        if self.outer > 0.0 {
            each8!(RESULTS, I => scores[I] = self.outer * tanh(scores[I] * self.inner));
        } else {
            each8!(RESULTS, I => scores[I] *= self.scale);
        }
        let lane = opaque(lane);
        each8!(RESULTS, I => {
            let key = first + column_of::<T>(lane, I) as i32;
            let n = const { query_of(I) };
            scores[I] = now(scores[I] - slopes[n] * (positions[n] - key).abs() as f32);
        });
        scores
    }
}
