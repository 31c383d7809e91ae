//! Orders of execution.

/// A small generator for orders of execution (xorshift64*).
pub(super) struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.max(1);
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((self.next() >> 32) * bound) >> 32
    }
}

/// A permutation of `0..count`, drawn from `seed`: a Feistel network over the next power of four, walked until it
/// is in range.
pub(super) fn permute(position: u64, count: u64, seed: u64) -> u64 {
    let bits = (64 - count.saturating_sub(1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1u64 << bits) - 1;
    let mut value = position;
    loop {
        let (mut left, mut right) = (value >> bits, value & mask);
        for round in 0..4u64 {
            let mixed = Random(right ^ seed.rotate_left(round as u32 * 16) ^ round << 60 | 1).next() >> 20;
            (left, right) = (right, (left ^ mixed) & mask);
        }
        value = left << bits | right;
        if value < count {
            return value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffled_order_visits_every_workgroup_once() {
        for count in [1, 2, 3, 5, 64, 1000] {
            for seed in [0, 1, 0xdead_beef] {
                let mut seen: Vec<u64> = (0..count).map(|position| permute(position, count, seed)).collect();
                seen.sort_unstable();
                assert_eq!(seen, (0..count).collect::<Vec<_>>(), "{count} workgroups, seed {seed}");
            }
        }
    }
}
