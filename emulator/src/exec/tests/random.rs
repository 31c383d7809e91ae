//! Random numbers of the tests that run one program two ways.

/// splitmix64, with a bias to the edges of integers and floats.
pub(in crate::exec) struct Random(pub(in crate::exec) u64);

impl Random {
    pub(in crate::exec) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    pub(in crate::exec) fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 33) as usize % bound
    }

    pub(in crate::exec) fn word(&mut self) -> u32 {
        const EDGES: [u32; 20] = [
            0,
            1,
            31,
            32,
            63,
            u32::MAX,
            1 << 31,
            0x7fff_ffff,
            0x3f80_0000,
            0xbf80_0000,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0001,
            0x7f80_0001,
            0x007f_ffff,
            0x0080_0000,
            0x3c00_fc00,
            0x7c00_7e01,
            0x7ff0_0000,
            0x8000_0001,
        ];
        match self.below(8) {
            0..=2 => EDGES[self.below(EDGES.len())],
            // Floats of a like size.
            3 | 4 => self.next() as u32 & 0x807f_ffff | (0x3f00_0000 + ((self.next() as u32 & 3) << 23)),
            5 => self.next() as u32 & 0x3ff,
            _ => self.next() as u32,
        }
    }
}
