//! Attention in one pass over keys and values: `out = softmax(mask(scale · Q · Kᵀ)) · V`, without a matrix of scores in memory.
//!
//! A workgroup has a tile of queries and walks over the keys, a tile of them at a time (`walk.rs`). With the rows of a tile's scores
//! come a new maximum and a new sum, and what has been added up before is rescaled (`softmax.rs`).
//!
//! | file | what it has |
//! |---|---|
//! | `problem.rs` | sizes, strides and masks, as the host hands them over |
//! | `plan.rs` | tile sizes for each head dimension and target |
//! | `fragment.rs` | which lane has which score; scores as an operand of the next product |
//! | `panel.rs` | how tiles of K and V lie in workgroup memory, and how they get there |
//! | `mask.rs` | which keys a query sees, and what is added to a score |
//! | `softmax.rs` | maximum, sum and rescaling |
//! | `output.rs` | where a row's results go |
//! | `walk.rs` | a workgroup's way over the keys |
//! | `forward.rs` | the kernels for many queries |
//! | `decode.rs` | the kernels for few queries and many keys, split over workgroups, and what combines the parts |
//!
//! It compiles for the host too, for rust-analyzer, clippy and documentation.

#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(asm_experimental_arch), allow(internal_features))]

/// Macros that write a body out for each number below a constant, up to the one in the macro's name: copies that are not needed take the
/// compiler's time, too.
macro_rules! each {
    ($($name:ident: $list:tt;)*) => {$(each!(@ $name, $list, $);)*};
    (@ $name:ident, [$($value:literal)*], $d:tt) => {
        macro_rules! $name {
            ($d n:expr, $d i:ident => $d body:expr) => { amdgpu_device::unroll!($d n, $d i => $d body; $($value)*) };
        }
    };
}
each! {
    each2: [0 1];
    each4: [0 1 2 3];
    each8: [0 1 2 3 4 5 6 7];
    each16: [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15];
}

#[cfg(feature = "decode")]
pub mod decode;
#[cfg(feature = "forward")]
pub mod forward;

mod fragment;
mod mask;
mod output;
mod panel;
mod plan;
pub mod problem;
mod softmax;
mod walk;
