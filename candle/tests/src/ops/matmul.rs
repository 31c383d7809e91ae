//! Matrix products.

use crate::{FLOATS, Make, Op};

/// Each way in which Candle's operands can lie, and sizes that no tile divides.
pub fn ops() -> Vec<Op> {
    let mut all = vec![
        Op::new("matmul", &FLOATS, |make: &Make| make.any((17, 33), 1)?.matmul(&make.any((33, 9), 2)?)),
        Op::new("matmul, left transposed", &FLOATS, |make: &Make| {
            make.any((33, 17), 1)?.t()?.matmul(&make.any((33, 9), 2)?)
        }),
        Op::new("matmul, right transposed", &FLOATS, |make: &Make| {
            make.any((17, 33), 1)?.matmul(&make.any((9, 33), 2)?.t()?)
        }),
        Op::new("matmul, batched", &FLOATS, |make: &Make| {
            make.any((2, 3, 5, 7), 1)?.matmul(&make.any((2, 3, 7, 4), 2)?)
        }),
        Op::new("matmul, one matrix for all", &FLOATS, |make: &Make| {
            make.any((3, 5, 7), 1)?.broadcast_matmul(&make.any((7, 4), 2)?)
        }),
        Op::new("matmul, vector", &FLOATS, |make: &Make| {
            make.any((1, 70), 1)?.matmul(&make.any((70, 65), 2)?)
        }),
        Op::new("matmul, nothing to add", &FLOATS, |make: &Make| {
            make.any((3, 0), 1)?.matmul(&make.any((0, 4), 2)?)
        }),
    ];
    all.push(Op::new("matmul, several tiles", &FLOATS, |make: &Make| {
        make.any((70, 40), 1)?.matmul(&make.any((40, 130), 2)?)
    }));
    all.into_iter().map(|op| op.units(64.0)).collect()
}
