//! What is computed: sizes, strides and masks.

use amdgpu_device::prelude::*;

/// Strides of a tensor of sequences, in elements.
#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
pub struct Strides {
    /// From one sequence of the batch to the next; of paged keys and values, from one page to the next.
    pub batch: usize,
    /// From one position of a sequence to the next.
    pub row: usize,
    /// From one head to the next.
    pub head: usize,
}

/// Everything about an attention but its memory.
///
/// Queries are grouped: `group` consecutive heads of Q share a head of K and V. A *row* is a query of one of these heads: row
/// `m` is that of position `m / group` and of the head `m % group` of the group. So all heads that read the same keys share tiles.
#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
pub struct Problem {
    /// Of Q.
    pub q: Strides,
    /// Of K.
    pub k: Strides,
    /// Of V.
    pub v: Strides,
    /// Of the output.
    pub out: Strides,
    /// From one sequence to the next in the logarithms of the sums.
    pub lse_batch: usize,
    /// From one head to the next there.
    pub lse_head: usize,
    /// Elements of a head: a multiple of 8, up to the kernel's dimension.
    pub dim: u32,
    /// Heads of Q for each of K and V.
    pub group: u32,
    /// Positions of each sequence of queries; the most of them where cumulative lengths are given.
    pub queries: u32,
    /// The same for keys.
    pub keys: u32,
    /// Keys before a query's own position that it sees; all if below 0.
    pub left: i32,
    /// Keys after it.
    pub right: i32,
    /// What scores are multiplied by.
    pub scale: f32,
    /// Scaled scores are bent to within this bound, `cap · tanh(score / cap)`, if it is above 0.
    pub softcap: f32,
    /// Slopes of a sequence of the batch; 0 if all have the same.
    pub slopes_batch: u32,
    /// Positions of a page: a multiple of 32.
    pub page: u32,
    /// Pages of a sequence in the table.
    pub table_batch: u32,
    /// Ranges of positions of each sequence whose members see each other whatever the window says.
    pub ranges: u32,
    /// Words from one sequence's ranges to the next.
    pub ranges_batch: u32,
}
