//! Gradients of every operation that Candle can differentiate, on the device in f64, beside finite differences.

use candle_amdgpu_tests::Make;
use candle_core::{D, DType, Device, Result, Tensor, Var};
use candle_nn::ops;

/// A function of tensors.
type Function = fn(&[Tensor]) -> Result<Tensor>;

/// Its name, the shapes of what it is a function of, and the function.
type Case = (&'static str, &'static [&'static [usize]], Function);

/// Half the distance of the two points of a finite difference, whose error is of the order of its square.
const STEP: f64 = 1e-4;

/// How far a gradient may be from the finite difference, as a fraction of the larger one and 1.
const TOLERANCE: f64 = 1e-6;

fn ids(x: &Tensor, numbers: &[u32], shape: &[usize]) -> Result<Tensor> {
    Tensor::from_vec(numbers.to_vec(), shape, x.device())
}

const CASES: &[Case] = &[
    // Of two tensors.
    ("add", &[&[2, 3], &[2, 3]], |x| &x[0] + &x[1]),
    ("sub", &[&[2, 3], &[2, 3]], |x| &x[0] - &x[1]),
    ("mul", &[&[2, 3], &[2, 3]], |x| &x[0] * &x[1]),
    ("div", &[&[2, 3], &[2, 3]], |x| &x[0] / &x[1]),
    ("minimum", &[&[2, 3], &[2, 3]], |x| x[0].minimum(&x[1])),
    ("maximum", &[&[2, 3], &[2, 3]], |x| x[0].maximum(&x[1])),
    ("pow", &[&[2, 3], &[2, 3]], |x| (x[0].sqr()? + 1.0)?.pow(&x[1])),
    ("broadcast_add", &[&[2, 3], &[3]], |x| x[0].broadcast_add(&x[1])),
    ("broadcast_sub", &[&[2, 1], &[1, 3]], |x| x[0].broadcast_sub(&x[1])),
    ("broadcast_mul", &[&[2, 3], &[2, 1]], |x| x[0].broadcast_mul(&x[1])),
    ("broadcast_div", &[&[2, 3], &[1, 3]], |x| x[0].broadcast_div(&x[1])),
    ("a tensor by itself", &[&[2, 3]], |x| &x[0] * &x[0]),
    ("matmul", &[&[2, 3], &[3, 2]], |x| x[0].matmul(&x[1])),
    ("matmul of batches", &[&[2, 2, 3], &[2, 3, 2]], |x| x[0].matmul(&x[1])),
    ("matmul of transposed", &[&[3, 2], &[2, 3]], |x| x[0].t()?.matmul(&x[1].t()?)),
    ("where_cond", &[&[2, 3], &[2, 3]], |x| {
        ids(&x[0], &[1, 0, 1, 0, 0, 1], &[2, 3])?.where_cond(&x[0], &x[1])
    }),
    // Of each element.
    ("affine", &[&[2, 3]], |x| x[0].affine(1.5, -0.5)),
    ("exp", &[&[2, 3]], |x| x[0].exp()),
    ("log", &[&[2, 3]], |x| (x[0].sqr()? + 0.5)?.log()),
    ("sin", &[&[2, 3]], |x| x[0].sin()),
    ("cos", &[&[2, 3]], |x| x[0].cos()),
    ("tanh", &[&[2, 3]], |x| x[0].tanh()),
    ("abs", &[&[2, 3]], |x| x[0].abs()),
    ("neg", &[&[2, 3]], |x| x[0].neg()),
    ("recip", &[&[2, 3]], |x| (x[0].sqr()? + 0.5)?.recip()),
    ("sqr", &[&[2, 3]], |x| x[0].sqr()),
    ("sqrt", &[&[2, 3]], |x| (x[0].sqr()? + 0.5)?.sqrt()),
    ("gelu", &[&[2, 3]], |x| x[0].gelu()),
    ("gelu_erf", &[&[2, 3]], |x| x[0].gelu_erf()),
    ("erf", &[&[2, 3]], |x| x[0].erf()),
    ("relu", &[&[2, 3]], |x| x[0].relu()),
    ("silu", &[&[2, 3]], |x| x[0].silu()),
    ("elu", &[&[2, 3]], |x| x[0].elu(0.7)),
    ("powf", &[&[2, 3]], |x| (x[0].sqr()? + 0.5)?.powf(1.7)),
    ("sigmoid", &[&[2, 3]], |x| ops::sigmoid(&x[0])),
    ("leaky_relu", &[&[2, 3]], |x| ops::leaky_relu(&x[0], 0.1)),
    ("hard_sigmoid", &[&[2, 3]], |x| ops::hard_sigmoid(&x[0])),
    ("mish", &[&[2, 3]], |x| ops::mish(&x[0])),
    ("swiglu", &[&[2, 4]], |x| ops::swiglu(&x[0])),
    ("clamp", &[&[2, 3]], |x| x[0].clamp(-1.0, 1.0)),
    ("round trip through f32", &[&[2, 3]], |x| {
        // The rounding itself has the gradient 1, which a difference of f32s cannot show at this step.
        (x[0].to_dtype(DType::F32)?.to_dtype(DType::F64)? * 0.0)? + &x[0]
    }),
    // Of rows.
    ("sum", &[&[2, 3, 2]], |x| x[0].sum((0, 2))),
    ("sum_keepdim", &[&[2, 3]], |x| x[0].sum_keepdim(1)),
    ("mean", &[&[2, 3]], |x| x[0].mean(0)),
    ("max", &[&[2, 3]], |x| x[0].max(1)),
    ("min", &[&[2, 3]], |x| x[0].min(0)),
    ("var", &[&[2, 3]], |x| x[0].var(1)),
    ("cumsum", &[&[2, 3]], |x| x[0].cumsum(1)),
    ("log_sum_exp", &[&[2, 3]], |x| x[0].log_sum_exp(1)),
    ("softmax", &[&[2, 3]], |x| ops::softmax(&x[0], 1)),
    ("log_softmax", &[&[2, 3]], |x| ops::log_softmax(&x[0], 1)),
    ("layer_norm", &[&[2, 3], &[3], &[3]], |x| ops::layer_norm_slow(&x[0], &x[1], &x[2], 1e-5)),
    ("rms_norm", &[&[2, 3], &[3]], |x| ops::rms_norm_slow(&x[0], &x[1], 1e-5)),
    ("cross_entropy", &[&[2, 3]], |x| candle_nn::loss::cross_entropy(&x[0], &ids(&x[0], &[2, 0], &[2])?)),
    ("nll", &[&[2, 3]], |x| candle_nn::loss::nll(&ops::log_softmax(&x[0], 1)?, &ids(&x[0], &[1, 2], &[2])?)),
    ("mse", &[&[2, 3], &[2, 3]], |x| candle_nn::loss::mse(&x[0], &x[1])),
    ("huber", &[&[2, 3], &[2, 3]], |x| candle_nn::loss::huber(&x[0], &x[1], 1.0)),
    ("binary_cross_entropy_with_logit", &[&[2, 3], &[2, 3]], |x| {
        candle_nn::loss::binary_cross_entropy_with_logit(&x[0], &ops::sigmoid(&x[1])?)
    }),
    // By indices.
    ("gather", &[&[3, 2]], |x| x[0].gather(&ids(&x[0], &[2, 0, 0, 1, 2, 2], &[3, 2])?, 0)),
    ("scatter", &[&[3, 2], &[2, 2]], |x| x[0].scatter(&ids(&x[0], &[2, 0, 1, 1], &[2, 2])?, &x[1], 0)),
    ("scatter_add", &[&[3, 2], &[2, 2]], |x| {
        x[0].scatter_add(&ids(&x[0], &[2, 0, 2, 1], &[2, 2])?, &x[1], 0)
    }),
    ("scatter_add of all", &[&[3, 2], &[3, 2]], |x| {
        x[0].scatter_add(&ids(&x[0], &[2, 0, 2, 1, 0, 0], &[3, 2])?, &x[1], 0)
    }),
    ("index_select", &[&[3, 2]], |x| x[0].index_select(&ids(&x[0], &[2, 0, 2, 1], &[4])?, 0)),
    ("index_add", &[&[3, 2], &[4, 2]], |x| x[0].index_add(&ids(&x[0], &[2, 0, 2, 1], &[4])?, &x[1], 0)),
    ("embedding", &[&[3, 2]], |x| x[0].embedding(&ids(&x[0], &[1, 1, 2], &[3])?)),
    ("slice_scatter", &[&[3, 2], &[1, 2]], |x| x[0].slice_scatter(&x[1], 0, 1)),
    // Of shapes.
    ("cat", &[&[2, 3], &[2, 1]], |x| Tensor::cat(x, 1)),
    ("stack", &[&[2, 3], &[2, 3]], |x| Tensor::stack(x, 1)),
    ("narrow", &[&[2, 3]], |x| x[0].narrow(1, 1, 2)),
    ("chunk", &[&[2, 4]], |x| {
        let parts = x[0].chunk(2, D::Minus1)?;
        &parts[0] * &parts[1]
    }),
    ("transpose", &[&[2, 3]], |x| x[0].transpose(0, 1)?.contiguous()),
    ("permute", &[&[2, 3, 2]], |x| x[0].permute((2, 0, 1))?.contiguous()),
    ("reshape", &[&[2, 3]], |x| x[0].reshape((3, 2))),
    ("broadcast_as", &[&[2, 1]], |x| x[0].broadcast_as((3, 2, 2))?.contiguous()),
    ("pad_with_zeros", &[&[2, 3]], |x| x[0].pad_with_zeros(1, 1, 2)),
    ("pad_with_same", &[&[2, 3]], |x| x[0].pad_with_same(1, 1, 2)),
    ("flip", &[&[2, 3]], |x| x[0].flip(&[1])),
    ("roll", &[&[2, 3]], |x| x[0].roll(1, 1)),
    ("repeat", &[&[2, 1]], |x| x[0].repeat((1, 3))),
    // Of images and sound.
    ("conv1d", &[&[1, 2, 5], &[2, 2, 3]], |x| x[0].conv1d(&x[1], 1, 2, 1, 1)),
    ("conv1d, dilated", &[&[1, 1, 6], &[2, 1, 2]], |x| x[0].conv1d(&x[1], 0, 1, 2, 1)),
    ("conv2d", &[&[1, 2, 4, 3], &[2, 2, 2, 2]], |x| x[0].conv2d(&x[1], 1, 1, 1, 1)),
    ("conv2d, stride 2", &[&[1, 1, 5, 4], &[1, 1, 3, 3]], |x| x[0].conv2d(&x[1], 1, 2, 1, 1)),
    ("conv2d, stride 2, no rest", &[&[1, 1, 5, 5], &[1, 1, 3, 3]], |x| x[0].conv2d(&x[1], 1, 2, 1, 1)),
    ("conv2d, groups", &[&[1, 2, 3, 3], &[2, 1, 2, 2]], |x| x[0].conv2d(&x[1], 0, 1, 1, 2)),
    ("conv_transpose2d", &[&[1, 1, 2, 3], &[1, 2, 2, 2]], |x| x[0].conv_transpose2d(&x[1], 0, 0, 2, 1)),
    ("avg_pool2d", &[&[1, 1, 4, 4]], |x| x[0].avg_pool2d(2)),
    ("max_pool2d", &[&[1, 1, 4, 4]], |x| x[0].max_pool2d(2)),
    ("upsample_nearest2d", &[&[1, 1, 2, 2]], |x| x[0].upsample_nearest2d(4, 4)),
    ("batch_norm", &[&[2, 2, 2], &[2], &[2]], |x| {
        let center = x[0].mean_keepdim((0, 2))?;
        let off = x[0].broadcast_sub(&center)?;
        let deviation = (off.sqr()?.mean_keepdim((0, 2))? + 1e-5)?.sqrt()?;
        let shape = (1, 2, 1);
        let scaled = off.broadcast_div(&deviation)?.broadcast_mul(&x[1].reshape(shape)?)?;
        scaled.broadcast_add(&x[2].reshape(shape)?)
    }),
];

/// Gradients that Candle has wrong, on the CPU as well: there, the device must have the CPU's.
const CANDLE_IS_WRONG: &[(&str, &str)] = &[
    ("scatter", "it has scatter_add's: what is overwritten keeps its gradient"),
    ("scatter_add of all", "it has scatter's: what is added to loses its gradient"),
    ("scatter_add", "sources that are smaller than the tensor are an error"),
    ("conv2d, stride 2", "a stride that leaves a rest of one dimension alone is an error"),
    ("max_pool2d", "each gradient is a quarter of what it is"),
];

/// A sum of the results with different factors, so that each of them matters.
fn weighted(y: &Tensor) -> Result<Tensor> {
    let count = y.elem_count();
    let factors: Vec<f64> = (0..count).map(|i| 0.5 + (i as f64 * 1.618).fract()).collect();
    (y.flatten_all()? * Tensor::from_vec(factors, count, y.device())?)?.sum_all()
}

fn inputs(shapes: &[&[usize]], device: &Device) -> Result<Vec<Tensor>> {
    let make = Make::actual(DType::F64, device);
    shapes.iter().enumerate().map(|(i, shape)| make.range(*shape, -1.7, 1.8, i as u64 + 1)).collect()
}

/// The gradient for each of the inputs.
fn gradients(&(name, shapes, function): &Case, device: &Device) -> Result<Vec<Vec<f64>>> {
    let variables = inputs(shapes, device)?.iter().map(Var::from_tensor).collect::<Result<Vec<_>>>()?;
    let tensors: Vec<_> = variables.iter().map(|x| x.as_tensor().clone()).collect();
    let gradients = weighted(&function(&tensors)?)?.backward()?;
    let each = variables.iter().map(|variable| {
        let gradient = gradients.get(variable).unwrap_or_else(|| panic!("{name}: there is no gradient"));
        assert!(gradient.device().same_device(device) && gradient.dims() == variable.dims(), "{name}");
        gradient.flatten_all()?.to_vec1()
    });
    each.collect()
}

/// The finite difference for each element of each input.
fn differences(&(_, shapes, function): &Case, device: &Device) -> Result<Vec<Vec<f64>>> {
    let inputs = inputs(shapes, device)?;
    let difference = |i: usize, at: usize| {
        let value = |off: f64| {
            let mut numbers = inputs[i].flatten_all()?.to_vec1::<f64>()?;
            numbers[at] += off;
            let mut moved = inputs.clone();
            moved[i] = Tensor::from_vec(numbers, inputs[i].dims(), device)?;
            weighted(&function(&moved)?)?.to_scalar::<f64>()
        };
        Ok((value(STEP)? - value(-STEP)?) / (2.0 * STEP))
    };
    (0..inputs.len()).map(|i| (0..inputs[i].elem_count()).map(|at| difference(i, at)).collect()).collect()
}

/// How two sets of gradients differ, if they do.
fn differ(name: &str, actual: &Result<Vec<Vec<f64>>>, expected: &Result<Vec<Vec<f64>>>) -> Option<String> {
    let (actual, expected) = match (actual, expected) {
        (Ok(actual), Ok(expected)) => (actual, expected),
        (Err(actual), Err(expected)) => {
            // Behind the first line may be a backtrace.
            let [actual, expected] = [actual, expected].map(|error| error.to_string());
            let same = actual.lines().next() == expected.lines().next();
            return (!same).then(|| format!("{name}: {actual}, and not {expected}"));
        }
        (Err(error), Ok(_)) => return Some(format!("{name}: {error}")),
        (Ok(_), Err(error)) => return Some(format!("{name}: must be the error {error}")),
    };
    let pairs = actual.iter().flatten().zip(expected.iter().flatten()).enumerate();
    let wrong: Vec<_> = pairs
        .filter(|(_, (a, e))| (*a - *e).abs() > TOLERANCE * e.abs().max(1.0))
        .map(|(at, (a, e))| format!("{name}: number {at} is {a}, and not {e}"))
        .collect();
    (!wrong.is_empty()).then(|| wrong.join("\n"))
}

#[test]
fn gradients_are_finite_differences() {
    let device = Device::new_cuda(0).unwrap();
    let check = |case: &Case| {
        let known = CANDLE_IS_WRONG.iter().any(|(name, _)| *name == case.0);
        let expected = if known { gradients(case, &Device::Cpu) } else { differences(case, &device) };
        differ(case.0, &gradients(case, &device), &expected)
    };
    let wrong: Vec<_> = CASES.iter().filter_map(check).collect();
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_candle_has_wrong_is_no_finite_difference() {
    for (name, _) in CANDLE_IS_WRONG {
        let case = CASES.iter().find(|case| case.0 == *name).expect("it is a case");
        let expected = differences(case, &Device::Cpu);
        assert!(differ(name, &gradients(case, &Device::Cpu), &expected).is_some(), "{name} is right now");
    }
}
