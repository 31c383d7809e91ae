//! Sorting. Ties are left out where Candle's CPU backend and a stable order may differ.

use crate::{ALL, Make, Op};

/// Ascending and descending, of short rows and of long ones.
pub fn ops() -> Vec<Op> {
    let mut all = Vec::new();
    for (columns, rows) in [(1, 3), (7, 4), (33, 2), (200, 2)] {
        for ascending in [true, false] {
            all.push(Op::new(
                format!("argsort of {columns}, ascending {ascending}"),
                &ALL,
                move |make: &Make| {
                    let x = make.range((rows, columns), 0.0, 250.0, 1)?;
                    x.contiguous()?.arg_sort_last_dim(ascending)
                },
            ));
        }
    }
    all
}
