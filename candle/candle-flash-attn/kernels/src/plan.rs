//! Tile sizes: what a workgroup has in registers and in workgroup memory, for each head dimension and target.
//!
//! A workgroup has `LANES` lanes and `ROWS` rows of queries on every target: a launch does not depend on the target. `SHARE` of its waves
//! have the same queries and divide a tile's keys among them; with few queries that keeps all waves at work. Each wave has `TILES` tiles
//! of 16 rows. A tile of keys has `KEYS` of them; K lies in workgroup memory in panels of `PANEL` elements of each key, V with the
//! `COLUMNS` that the workgroup computes. Where the output needs more registers than a lane has, several workgroups compute `COLUMNS` each.
//!
//! ```text
//! many queries     rows lanes keys      columns Q in          few queries     rows lanes keys columns Q in
//! dim ≤ 96          64   128   64           all registers     dim ≤ 96         16   128  128     all registers
//!     128           64   128   64 (32)      all registers         128          16    64   64     128 registers
//!     192, 256      64   128   32           all LDS (*)           192, 256     16    64   64  96, 128 LDS (*)
//!     512           32    64   32           256 LDS (*)           512          16    64   64     128 LDS (*)
//!
//! (32) in waves of 32 of an AMD GPU            (*) registers in waves of 64, whose lanes have more of them
//! ```
//!
//! No workgroup needs more than 64 KiB of workgroup memory.

use amdgpu_device::wave;

const NVIDIA: bool = cfg!(target_arch = "nvptx64");
const WIDE: bool = wave::SIZE == 64;

/// The plan for heads of `D` elements, for few queries if `FEW`.
pub(crate) struct Plan<const D: usize, const FEW: bool>;

impl<const D: usize, const FEW: bool> Plan<D, FEW> {
    /// Lanes of a workgroup.
    pub(crate) const LANES: usize = match (FEW, D) {
        (false, 512) => 64,
        (true, 128..) => 64,
        _ => 128,
    };
    /// Rows of a workgroup.
    pub(crate) const ROWS: usize = match (FEW, D) {
        (true, _) => 16,
        (false, 512) => 32,
        _ => 64,
    };
    /// Waves of a workgroup.
    pub(crate) const WAVES: usize = Self::LANES / if WIDE { 64 } else { 32 };
    /// Waves that have the same queries.
    pub(crate) const SHARE: usize = if FEW { Self::WAVES } else { 1 };
    /// Tiles of 16 rows of a wave.
    pub(crate) const TILES: usize = Self::ROWS * Self::SHARE / (16 * Self::WAVES);
    /// Most keys of a tile, of all targets.
    const MOST_KEYS: usize = match (FEW, D) {
        (true, ..=96) => 128,
        (true, _) | (false, ..=128) => 64,
        _ => 32,
    };
    /// Keys of a tile.
    pub(crate) const KEYS: usize = match (FEW, D) {
        (false, 128) if !WIDE && !NVIDIA => 32,
        _ => Self::MOST_KEYS,
    };
    /// Of a tile's keys, those of a wave.
    pub(crate) const OWN_KEYS: usize = Self::KEYS / Self::SHARE;
    /// Elements of each key in workgroup memory at a time.
    pub(crate) const PANEL: usize = if D > 256 { 256 } else { D };
    /// Elements of each value, and of the output.
    pub(crate) const COLUMNS: usize = match (FEW, D) {
        (true, 192) => 96,
        (true, 256 | 512) => 128,
        (false, 512) => 256,
        _ => D,
    };
    /// Whether the queries stay in registers.
    pub(crate) const Q_IN_REGISTERS: bool = WIDE || D <= 128;
    /// Chunks of K or V that a lane has in registers between their load and workgroup memory: fewer where a wave of 32 needs the registers
    /// for sums.
    pub(crate) const CARRIED: usize = match (FEW, D) {
        (true, 128) if !WIDE && !NVIDIA => 2,
        (true, 128) | (false, 256..) if !WIDE => 4,
        _ => 8,
    };
    /// Workgroups that compute the columns of the same rows.
    pub(crate) const SLICES: usize = D / Self::COLUMNS;

    /// Bytes that Q has in workgroup memory, if it is there.
    const Q_BYTES: usize = if D > 128 { Self::ROWS * D * 2 } else { 0 };
    /// Where K begins in workgroup memory.
    pub(crate) const K_AT: usize = if Self::Q_IN_REGISTERS { 0 } else { Self::Q_BYTES };
    /// Where V begins.
    pub(crate) const V_AT: usize = Self::K_AT + Self::KEYS * Self::PANEL * 2;
    /// Bytes of workgroup memory.
    pub(crate) const BYTES: usize = Self::Q_BYTES + Self::MOST_KEYS * (Self::PANEL + Self::COLUMNS) * 2;

    /// Whether these numbers fit each other and every target.
    pub(crate) const FITS: () = {
        assert!(Self::BYTES <= 64 << 10);
        assert!(D.is_multiple_of(32) && D.is_multiple_of(Self::PANEL) && D.is_multiple_of(Self::COLUMNS));
        assert!(Self::OWN_KEYS == 32 || Self::OWN_KEYS == 64);
        assert!(Self::V_AT + Self::KEYS * Self::COLUMNS * 2 <= Self::BYTES);
        // What waves with the same queries hand to each other takes the place of K and V.
        assert!(Self::SHARE == 1 || Self::SHARE / 2 * (Self::COLUMNS + 8) * 16 * 4 <= Self::BYTES);
    };
}
