//! Sums, extremes, norms, softmax and rotary embeddings.

use crate::{ALL, FLOATS, Make, Op};
use candle_core::{D, Result, Tensor};
use candle_nn::{ops, rotary_emb};

type Reduce = (&'static str, fn(&Tensor, usize) -> Result<Tensor>);

/// Along each dimension, of short and long rows, contiguous and not.
pub fn ops() -> Vec<Op> {
    const REDUCE: [Reduce; 5] = [
        ("sum", |x, dim| x.sum(dim)),
        ("min", |x, dim| x.min(dim)),
        ("max", |x, dim| x.max(dim)),
        ("argmin", |x, dim| x.argmin(dim)),
        ("argmax", |x, dim| x.argmax(dim)),
    ];
    let mut all = Vec::new();
    for (name, reduce) in REDUCE {
        for dim in 0..3 {
            all.push(Op::new(format!("{name} along {dim}"), &ALL, move |make: &Make| {
                reduce(&make.range((3, 40, 5), 0.0, 3.0, 1)?, dim)
            }));
        }
        all.push(Op::new(format!("{name} of 2100"), &ALL, move |make: &Make| {
            // Sums stay below 256 in every dtype.
            reduce(&make.range((2, 2100), 0.0, 0.1, 1)?, 1)
        }));
        all.push(Op::new(format!("{name}, transposed"), &ALL, move |make: &Make| {
            reduce(&make.range((7, 50), 0.0, 4.0, 1)?.t()?, 1)
        }));
    }
    all.push(Op::new("sum of all", &ALL, |make: &Make| make.range((4, 5, 3), 0.0, 4.0, 1)?.sum_all()));
    all.push(Op::new("sum of two dimensions", &ALL, |make: &Make| {
        make.range((4, 5, 3), 0.0, 4.0, 1)?.sum_keepdim((0, 2))
    }));
    all.push(Op::new("mean", &FLOATS, |make: &Make| make.any((4, 50), 1)?.mean(1)));
    all.into_iter().map(|op| op.units(64.0)).collect()
}

/// candle-nn's kernels.
pub fn nn() -> Vec<Op> {
    let mut all = Vec::new();
    for columns in [5, 64, 300, 1100] {
        all.push(Op::new(format!("softmax of {columns}"), &FLOATS, move |make: &Make| {
            ops::softmax_last_dim(&make.any((3, columns), 1)?)
        }));
        all.push(Op::new(format!("rms_norm of {columns}"), &FLOATS, move |make: &Make| {
            rms_norm(&make.any((3, columns), 1)?, &make.range(columns, 0.5, 1.5, 2)?)
        }));
        all.push(Op::new(format!("layer_norm of {columns}"), &FLOATS[..3], move |make: &Make| {
            let (alpha, beta) = (make.range(columns, 0.5, 1.5, 2)?, make.range(columns, -0.5, 0.5, 3)?);
            layer_norm(&make.any((3, columns), 1)?, &alpha, &beta)
        }));
    }
    type Rope = (&'static str, fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>);
    const ROPE: [Rope; 3] =
        [("rope", rotary_emb::rope), ("rope_i", rotary_emb::rope_i), ("rope_thd", rotary_emb::rope_thd)];
    for (name, rope) in ROPE {
        all.push(Op::new(name, &FLOATS, move |make: &Make| {
            let (cos, sin) = (make.range((6, 4), -1.0, 1.0, 2)?, make.range((6, 4), -1.0, 1.0, 3)?);
            let shape = if name == "rope_thd" { (2, 6, 3, 8) } else { (2, 3, 6, 8) };
            rope(&make.any(shape, 1)?, &cos, &sin)
        }));
    }
    all.into_iter().map(|op| op.units(32.0)).collect()
}

/// By its definition where the CPU has no kernel for f64.
fn rms_norm(x: &Tensor, alpha: &Tensor) -> Result<Tensor> {
    if !x.device().is_cpu() {
        return ops::rms_norm(x, alpha, 1e-5);
    }
    // Candle passes it to the kernel in f32.
    let root = (x.sqr()?.mean_keepdim(D::Minus1)? + f64::from(1e-5_f32))?.sqrt()?;
    x.broadcast_div(&root)?.broadcast_mul(alpha)
}

/// By its definition where the CPU has no kernel for f64.
fn layer_norm(x: &Tensor, alpha: &Tensor, beta: &Tensor) -> Result<Tensor> {
    if !x.device().is_cpu() {
        return ops::layer_norm(x, alpha, beta, 1e-5);
    }
    let x = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
    let deviation = (x.sqr()?.mean_keepdim(D::Minus1)? + 1e-5)?.sqrt()?;
    x.broadcast_div(&deviation)?.broadcast_mul(alpha)?.broadcast_add(beta)
}
