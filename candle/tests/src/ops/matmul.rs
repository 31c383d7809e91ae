//! Matrix products.

use crate::{FLOATS, Make, Op};

/// Each way that Candle's operands can be laid out, and sizes that no tile divides.
pub fn ops() -> Vec<Op> {
    let mut all = vec![
        Op::new("matmul", &FLOATS, |make: &Make| {
            make.range((17, 33), -1.0, 1.0, 1)?.matmul(&make.range((33, 9), -1.0, 1.0, 2)?)
        }),
        Op::new("matmul, left transposed", &FLOATS, |make: &Make| {
            make.range((33, 17), -1.0, 1.0, 1)?.t()?.matmul(&make.range((33, 9), -1.0, 1.0, 2)?)
        }),
        Op::new("matmul, right transposed", &FLOATS, |make: &Make| {
            make.range((17, 33), -1.0, 1.0, 1)?.matmul(&make.range((9, 33), -1.0, 1.0, 2)?.t()?)
        }),
        Op::new("matmul, batched", &FLOATS, |make: &Make| {
            make.range((2, 3, 5, 7), -1.0, 1.0, 1)?.matmul(&make.range((2, 3, 7, 4), -1.0, 1.0, 2)?)
        }),
        Op::new("matmul, one matrix for all", &FLOATS, |make: &Make| {
            make.range((3, 5, 7), -1.0, 1.0, 1)?.broadcast_matmul(&make.range((7, 4), -1.0, 1.0, 2)?)
        }),
        Op::new("matmul, vector", &FLOATS, |make: &Make| {
            make.range((1, 70), -1.0, 1.0, 1)?.matmul(&make.range((70, 65), -1.0, 1.0, 2)?)
        }),
        Op::new("matmul, nothing to add", &FLOATS, |make: &Make| {
            make.range((3, 0), -1.0, 1.0, 1)?.matmul(&make.range((0, 4), -1.0, 1.0, 2)?)
        }),
    ];
    all.push(Op::new("matmul, several tiles", &FLOATS, |make: &Make| {
        make.range((70, 40), -1.0, 1.0, 1)?.matmul(&make.range((40, 130), -1.0, 1.0, 2)?)
    }));
    all.into_iter().map(|op| op.units(64.0)).collect()
}
