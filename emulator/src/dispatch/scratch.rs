//! The scratch memory of a workgroup.

/// Each lane's bytes, one lane behind the other. They read as zero when a workgroup begins.
pub(super) struct Scratch {
    bytes: Vec<u8>,
    /// Bytes of a lane.
    lane: usize,
}

impl Scratch {
    /// For this many lanes of `lane` bytes each. Memory is allocated when it is touched.
    pub fn new(lanes: u32, lane: u32) -> Scratch {
        Scratch { bytes: vec![0; lanes as usize * lane as usize], lane: lane as usize }
    }

    /// Where they are: address, and bytes.
    pub fn range(&mut self) -> (u64, u64) {
        (self.bytes.as_mut_ptr().expose_provenance() as u64, self.bytes.len() as u64)
    }

    /// Clears them; at most the first `used` bytes of each lane were accessed.
    pub fn clear(&mut self, used: u32) {
        let used = (used as usize).min(self.lane);
        if used == 0 {
            return;
        }
        for lane in self.bytes.chunks_exact_mut(self.lane) {
            lane[..used].fill(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_is_cleared_as_was_used() {
        let mut scratch = Scratch::new(3, 16);
        let (base, bytes) = scratch.range();
        assert_eq!((base, bytes), (scratch.bytes.as_ptr() as u64, 48));
        scratch.bytes.fill(7);
        scratch.clear(0);
        assert_eq!(scratch.bytes, [7; 48]);
        scratch.clear(4);
        let lane = [0, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7];
        assert_eq!(scratch.bytes, [lane, lane, lane].concat());
        scratch.clear(99);
        assert_eq!(scratch.bytes, [0; 48]);
        Scratch::new(3, 0).clear(1);
    }
}
