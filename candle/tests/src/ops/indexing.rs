//! Elements by their numbers.

use crate::{ALL, Make, Op};
use candle_core::{DType, Result, Tensor};

/// Each operation with ids of each type.
pub fn ops() -> Vec<Op> {
    let mut all = Vec::new();
    for ids in [DType::U8, DType::U32, DType::I64] {
        for dim in 0..3 {
            all.push(Op::new(format!("index_select {ids:?} along {dim}"), &ALL, move |make: &Make| {
                make.any((4, 5, 6), 1)?.index_select(&make.ids(7, 4, ids, 1)?, dim)
            }));
            all.push(Op::new(format!("index_add {ids:?} along {dim}"), &ALL, move |make: &Make| {
                let mut shape = [4, 5, 6];
                shape[dim] = 3;
                let source = make.range(&shape[..], 0.0, 4.0, 2)?;
                make.range((4, 5, 6), 0.0, 4.0, 1)?.index_add(&make.ids(3, 4, ids, 1)?, &source, dim)
            }));
            all.push(Op::new(format!("gather {ids:?} along {dim}"), &ALL, move |make: &Make| {
                make.any((4, 5, 6), 1)?.gather(&make.ids((4, 5, 6), 4, ids, 1)?, dim)
            }));
            all.push(Op::new(format!("scatter {ids:?} along {dim}"), &ALL, move |make: &Make| {
                let (x, source) = (make.any((4, 5, 6), 1)?, make.any((4, 5, 6), 2)?);
                x.scatter(&make.ids((4, 5, 6), 4, ids, 1)?, &source, dim)
            }));
            all.push(Op::new(format!("scatter_add {ids:?} along {dim}"), &ALL, move |make: &Make| {
                let (x, source) = (make.range((4, 5, 6), 0.0, 4.0, 1)?, make.range((4, 5, 6), 0.0, 4.0, 2)?);
                x.scatter_add(&make.ids((4, 5, 6), 4, ids, 1)?, &source, dim)
            }));
        }
        all.push(Op::new(format!("index_select {ids:?}, strided ids"), &ALL, move |make: &Make| {
            let numbers = make.ids((7, 3), 5, ids, 1)?.t()?.narrow(0, 1, 1)?.squeeze(0)?;
            make.any((5, 6), 1)?.index_select(&strided(numbers)?, 0)
        }));
        all.push(Op::new(format!("index_select {ids:?}, none"), &ALL, move |make: &Make| {
            make.any((4, 3), 1)?.index_select(&make.ids(0, 4, ids, 1)?, 0)
        }));
        all.push(Op::new(
            format!("index_select {ids:?}, the largest number is 0"),
            &ALL,
            move |make: &Make| {
                let largest = match ids {
                    DType::U8 => i64::from(u8::MAX),
                    DType::U32 => i64::from(u32::MAX),
                    _ => i64::MAX,
                };
                let numbers = Tensor::new(&[1_i64, largest, 0], &make.device)?.to_dtype(ids)?;
                make.any((4, 3), 1)?.index_select(&numbers, 0)
            },
        ));
    }
    all.into_iter().map(|op| op.units(16.0)).collect()
}

/// Only if the view is what it is meant to be.
fn strided(x: Tensor) -> Result<Tensor> {
    assert_ne!(x.stride(), [1], "the ids are not strided");
    Ok(x)
}
