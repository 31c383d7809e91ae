//! Reduce: sums, extremes and their positions along dimensions; softmax and norms of rows; rotary embeddings.

mod fast;
mod fold;
mod norm;
mod plan;
mod rope;
mod row;
mod softmax;
mod split;
mod sum;

pub use fast::{fast, fast_arg, fast_sum_small};
pub use fold::{ArgMax, ArgMin, Best, Fold, Max, Min, Sum};
pub use norm::{layernorm, rmsnorm};
pub use rope::{rope, rope_i, rope_thd};
pub use softmax::softmax;
pub use split::{WideSum, fast_arg_join, fast_sum_narrow, fast_sum_wide};
pub use sum::sum;
