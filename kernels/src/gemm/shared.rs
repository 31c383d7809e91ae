//! How the rows of a tile lie in workgroup memory: 64 bytes of each, four chunks of 16, two rows to 128 bytes, which are
//! the width of the memory's banks.
//!
//! In its 128 bytes a chunk's place is exclusive-ored with bits of its row's number, so that neither lanes that read one
//! chunk of consecutive rows meet in a bank, nor those that write all chunks of a few rows, nor those that write one
//! place of rows that are 4 or 8 apart.

/// Elements of a chunk.
pub(super) const fn per_chunk<T>() -> usize {
    16 / size_of::<T>()
}

/// Elements of a row.
pub(super) const fn depth<T>() -> usize {
    4 * per_chunk::<T>()
}

/// Chunks of the rows of both operands.
pub(super) const fn chunks(m: usize, n: usize) -> usize {
    4 * (m + n)
}

/// Bytes that a workgroup needs: one half is written while the other is read.
pub(super) const fn bytes(m: usize, n: usize) -> usize {
    2 * 16 * chunks(m, n)
}

/// Number of a chunk.
///
/// With `row` and `other` of different bits, `place(row + other, c)` is `place(row, 0) ^ turn(other, c)` plus
/// `start(other)`.
#[inline(always)]
pub(super) const fn place(row: u32, chunk: u32) -> u32 {
    start(row) + turn(row, chunk)
}

/// Where the 128 bytes of a row begin.
#[inline(always)]
pub(super) const fn start(row: u32) -> u32 {
    row / 2 * 8
}

/// The place in the 128 bytes.
#[inline(always)]
pub(super) const fn turn(row: u32, chunk: u32) -> u32 {
    (row % 2 * 4) ^ chunk ^ (row / 2 % 4) ^ (row / 8 % 2 * 4) ^ (row / 16 % 2 * 2)
}
