//! One result for each element.

use crate::{ALL, COMPARED, LAYOUTS, Make, Op};
use candle_core::{DType, Result, Tensor};

/// Applies `run` to tensors of each layout.
fn each_layout(
    name: &'static str,
    dtypes: &'static [DType],
    run: impl Fn(&Tensor, &Make) -> Result<Tensor> + Copy + 'static,
) -> impl Iterator<Item = Op> {
    LAYOUTS.iter().map(move |(layout, tensor)| {
        Op::new(format!("{name}, {layout}"), dtypes, move |make: &Make| run(&tensor(make, 1)?, make))
    })
}

/// a·x + b
pub fn affine() -> Vec<Op> {
    each_layout("affine", &ALL, |x, _| x.affine(2.0, 1.0)).collect()
}

type Function = (&'static str, fn(&Tensor) -> Result<Tensor>);

/// Functions that are defined everywhere.
const UNARY: [Function; 18] = [
    ("neg", Tensor::neg),
    ("exp", Tensor::exp),
    ("sin", Tensor::sin),
    ("cos", Tensor::cos),
    ("tanh", Tensor::tanh),
    ("abs", Tensor::abs),
    ("sqr", Tensor::sqr),
    ("gelu", Tensor::gelu),
    ("gelu_erf", Tensor::gelu_erf),
    ("erf", Tensor::erf),
    ("relu", Tensor::relu),
    ("silu", Tensor::silu),
    ("ceil", Tensor::ceil),
    ("floor", Tensor::floor),
    ("round", Tensor::round),
    ("sign", Tensor::sign),
    ("elu", |x| x.elu(1.5)),
    ("sigmoid", candle_nn::ops::sigmoid),
];

/// Functions that Candle's CPU backend has of integers, too.
const WHOLE: [Function; 6] = [
    ("abs", Tensor::abs),
    ("relu", Tensor::relu),
    ("ceil", Tensor::ceil),
    ("floor", Tensor::floor),
    ("round", Tensor::round),
    ("sign", Tensor::sign),
];
const INTEGERS: [DType; 5] = [DType::U8, DType::U32, DType::I16, DType::I32, DType::I64];
const UNARY_FLOATS: [DType; 5] = [DType::BF16, DType::F16, DType::F32, DType::F64, DType::F8E4M3];

/// Functions of positive numbers.
const POSITIVE: [Function; 4] =
    [("recip", Tensor::recip), ("log", Tensor::log), ("sqrt", Tensor::sqrt), ("powf", |x| x.powf(1.7))];

/// Functions of one tensor.
pub fn unary() -> Vec<Op> {
    let in_layouts = |functions: &'static [Function], dtypes: &'static [DType]| {
        functions.iter().flat_map(move |(name, function)| each_layout(name, dtypes, move |x, _| function(x)))
    };
    let anywhere = in_layouts(&UNARY, &UNARY_FLOATS).chain(in_layouts(&WHOLE, &INTEGERS));
    let positive = POSITIVE.iter().flat_map(|(name, function)| {
        [false, true].map(move |strided| {
            Op::new(format!("{name}, strided {strided}"), &UNARY_FLOATS, move |make: &Make| {
                let x = make.range((9, 13), 0.1, 9.0, 1)?;
                function(&if strided { x.t()? } else { x })
            })
        })
    });
    let copies = each_layout("copy", &ALL, |x, _| x.force_contiguous());
    anywhere.chain(positive).chain(copies).map(|op| op.units(8.0)).collect()
}

type Binary = (&'static str, fn(&Tensor, &Tensor) -> Result<Tensor>);

const ARITHMETIC: [Binary; 5] = [
    ("add", |a, b| a + b),
    ("sub", |a, b| a - b),
    ("mul", |a, b| a * b),
    ("maximum", |a, b| a.maximum(b)),
    ("minimum", |a, b| a.minimum(b)),
];

/// Functions of two tensors.
pub fn binary() -> Vec<Op> {
    let mut ops = Vec::new();
    for (name, function) in ARITHMETIC {
        for (layout, tensor) in LAYOUTS {
            ops.push(Op::new(format!("{name}, {layout}"), &ALL, move |make: &Make| {
                let (a, b) = (tensor(make, 1)?, tensor(make, 2)?);
                // No difference below 0, which types without a sign do not have.
                let a = if name == "sub" { (a + &b)? } else { a };
                function(&a, &b)
            }));
        }
        ops.push(Op::new(format!("{name}, mixed layouts"), &ALL, move |make: &Make| {
            let (a, b) = (make.range((5, 8), 9.0, 20.0, 1)?, make.range((8, 5), 0.0, 9.0, 2)?.t()?);
            function(&a, &b)
        }));
    }
    ops.push(Op::new("div", &ALL, |make: &Make| make.any((5, 8), 1)? / make.range((5, 8), 1.0, 4.0, 2)?));
    ops.push(Op::new("div, strided", &ALL, |make: &Make| {
        make.any((5, 8), 1)?.broadcast_div(&make.range((8, 5), 1.0, 4.0, 2)?.t()?.narrow(0, 1, 1)?)
    }));
    ops
}

/// Comparisons: ties are made by rounding.
pub fn compare() -> Vec<Op> {
    const COMPARE: [Binary; 6] = [
        ("eq", |a, b| a.eq(b)),
        ("ne", |a, b| a.ne(b)),
        ("lt", |a, b| a.lt(b)),
        ("le", |a, b| a.le(b)),
        ("gt", |a, b| a.gt(b)),
        ("ge", |a, b| a.ge(b)),
    ];
    let ops = COMPARE.iter().flat_map(|(name, compare)| {
        LAYOUTS.iter().map(move |(layout, tensor)| {
            Op::new(format!("{name}, {layout}"), &COMPARED, move |make: &Make| {
                let whole = |x: Tensor| if x.dtype().is_float() { x.round() } else { Ok(x) };
                compare(&whole(tensor(make, 1)?)?, &whole(tensor(make, 2)?)?)
            })
        })
    });
    ops.collect()
}

/// One of two by a condition.
pub fn select() -> Vec<Op> {
    let mut ops = Vec::new();
    for ids in [DType::U8, DType::U32, DType::I64] {
        for (layout, tensor) in LAYOUTS {
            ops.push(Op::new(format!("where {ids:?}, {layout}"), &ALL, move |make: &Make| {
                let (a, b) = (tensor(make, 1)?, tensor(make, 2)?);
                make.ids(a.shape(), 3, ids, 1)?.where_cond(&a, &b)
            }));
        }
    }
    ops
}

/// From each type to each except i16 and i32, which Candle converts to on the CPU only.
pub fn cast() -> Vec<Op> {
    let mut ops = Vec::new();
    for to in ALL.into_iter().filter(|to| !matches!(to, DType::I16 | DType::I32)) {
        for strided in [false, true] {
            // On the CPU, Candle's conversion from f8e4m3 to f64 recurses endlessly.
            let from: Vec<DType> =
                ALL.into_iter().filter(|&from| (from, to) != (DType::F8E4M3, DType::F64)).collect();
            ops.push(Op::new(format!("to {to:?}, strided {strided}"), &from, move |make: &Make| {
                // Numbers that all of them have.
                let x = make.range((4, 9), 0.0, 8.0, 1)?;
                let x = if x.dtype().is_float() { (x * 2.0)?.round()?.affine(0.5, 0.0)? } else { x };
                let x = if strided { x.t()? } else { x };
                x.to_dtype(make.dtype)?.to_dtype(to)
            }));
        }
    }
    ops
}

/// Constants and joined tensors.
pub fn fill() -> Vec<Op> {
    vec![
        Op::new("ones", &ALL, |make: &Make| Tensor::ones((3, 5), make.own(), &make.device)),
        Op::new("zeros", &ALL, |make: &Make| Tensor::zeros((3, 5), make.own(), &make.device)),
        Op::new("full of 3", &COMPARED, |make: &Make| {
            Tensor::full(3_f32, (3, 700), &make.device)?.to_dtype(make.own())
        }),
        Op::new("cat along rows", &ALL, |make: &Make| {
            Tensor::cat(&[make.any((2, 3), 1)?, make.any((4, 3), 2)?], 0)
        }),
        Op::new("cat along columns", &ALL, |make: &Make| {
            Tensor::cat(&[make.any((3, 2), 1)?, make.any((4, 3), 2)?.t()?], 1)
        }),
        Op::new("slice_set", &ALL, |make: &Make| {
            let x = make.any((4, 6), 1)?.copy()?;
            x.slice_set(&make.any((4, 2), 2)?, 1, 3)?;
            Ok(x)
        }),
        Op::new("constant set in a part", &ALL, |make: &Make| {
            let x = make.any((4, 6), 1)?.copy()?;
            x.narrow(1, 2, 3)?.one_set()?;
            Ok(x)
        }),
    ]
}
