//! The operations on the device against their definition on the CPU, for tensors that proptest draws and shrinks: all element types,
//! and memory of all kinds of strides. A result is the same, bit for bit.

use std::sync::OnceLock;

use candle_core::{DType, Device, Result, Tensor, Var};
use proptest::prelude::*;

use my_kernels::activation::relu2;
use my_kernels::mix::{approach, mix};

/// The first AMD GPU, or an emulated one.
fn device() -> Result<Device> {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    if let Some(device) = DEVICE.get() {
        return Ok(device.clone());
    }
    let device = Device::new_cuda(0)?;
    Ok(DEVICE.get_or_init(|| device).clone())
}

/// Where a tensor's elements lie.
#[derive(Clone, Copy, Debug)]
enum View {
    Contiguous,
    /// The first dimension innermost.
    Transposed,
    /// A part of a larger tensor, which begins before it.
    Part,
    /// The same elements for each index of the first dimension.
    Repeated,
}

/// A tensor without its device.
#[derive(Clone, Debug)]
struct Draw {
    dtype: DType,
    shape: Vec<usize>,
    view: View,
    seed: u32,
}

impl Draw {
    /// The tensor that all memory holds, and the one that is drawn, which is part of it.
    fn whole_and_part(&self, device: &Device) -> Result<(Tensor, Tensor)> {
        let (mut dims, last) = (self.shape.clone(), self.shape.len() - 1);
        match self.view {
            View::Contiguous => {}
            View::Transposed => dims.reverse(),
            View::Part => dims[last] += 3,
            View::Repeated => dims[0] = 1,
        }
        let mut state = self.seed;
        let mut number = || {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            (state >> 8) as f32 / (1 << 20) as f32 - 8.0
        };
        let values: Vec<f32> = (0..dims.iter().product()).map(|_| number()).collect();
        let whole = Tensor::from_vec(values, dims, &Device::Cpu)?.to_dtype(self.dtype)?;
        let whole = whole.to_device(device)?;
        let part = match self.view {
            View::Contiguous => whole.clone(),
            View::Transposed => whole.permute((0..=last).rev().collect::<Vec<_>>())?,
            View::Part => whole.narrow(last, 2, self.shape[last])?,
            View::Repeated => whole.broadcast_as(&*self.shape)?,
        };
        Ok((whole, part))
    }

    fn on(&self, device: &Device) -> Result<Tensor> {
        Ok(self.whole_and_part(device)?.1)
    }
}

/// Three tensors of one shape and type, with `least` elements in each dimension or more. In the first, no element is there twice.
fn draws(least: usize) -> impl Strategy<Value = [Draw; 3]> {
    let dtype = prop::sample::select(&[DType::F32, DType::F16, DType::BF16][..]);
    let shape = prop::collection::vec(least..6, 1..4);
    let view = || {
        prop::sample::select(
            &[
                View::Contiguous,
                View::Transposed,
                View::Part,
                View::Repeated,
            ][..],
        )
    };
    let once = prop::sample::select(&[View::Contiguous, View::Transposed, View::Part][..]);
    (dtype, shape, (once, view(), view()), any::<[u32; 3]>()).prop_map(
        |(dtype, shape, views, seeds)| {
            let draw = |view, seed| Draw {
                dtype,
                shape: shape.clone(),
                view,
                seed,
            };
            let [first, second, third] = seeds;
            [
                draw(views.0, first),
                draw(views.1, second),
                draw(views.2, third),
            ]
        },
    )
}

/// Shape, type and elements; the conversion to f32 is exact.
fn contents(x: &Tensor) -> Result<(Vec<usize>, DType, Vec<f32>)> {
    let elements = x
        .to_device(&Device::Cpu)?
        .to_dtype(DType::F32)?
        .contiguous()?;
    Ok((
        x.dims().to_vec(),
        x.dtype(),
        elements.flatten_all()?.to_vec1()?,
    ))
}

/// What the function gives on the device, and on the CPU.
fn both(f: impl Fn(&Device) -> Result<Tensor>) -> Result<[(Vec<usize>, DType, Vec<f32>); 2]> {
    Ok([contents(&f(&device()?)?)?, contents(&f(&Device::Cpu)?)?])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn relu2_is_that_of_the_cpu([x, ..] in draws(0)) {
        let [there, here] = both(|device| relu2(&x.on(device)?))?;
        prop_assert_eq!(there, here);
    }

    #[test]
    fn mix_is_that_of_the_cpu([a, b, t] in draws(0)) {
        let [there, here] = both(|device| mix(&a.on(device)?, &b.on(device)?, &t.on(device)?))?;
        prop_assert_eq!(there, here);
    }

    // Candle changes no tensor in place that has no elements, and has no gradients of one.
    #[test]
    fn approach_changes_its_tensor_as_on_the_cpu_and_nothing_else([x, target, _] in draws(1), t in -1.0_f32..2.0) {
        let [there, here] = both(|device| {
            let (whole, part) = x.whole_and_part(device)?;
            approach(&part, &target.on(device)?, t)?;
            Ok(whole)
        })?;
        prop_assert_eq!(there, here);
    }

    #[test]
    fn gradients_are_those_of_the_cpu([x, b, t] in draws(1)) {
        for of in 0..3 {
            let [there, here] = both(|device| {
                let inputs = [&x, &b, &t].map(|draw| draw.on(device)?.contiguous());
                let [x, b, t] = inputs;
                let vars = [Var::from_tensor(&x?)?, Var::from_tensor(&b?)?, Var::from_tensor(&t?)?];
                let [x, b, t] = &vars;
                // A gradient of ones would hide a kernel that ignores it.
                let y = (mix(&relu2(x)?, &relu2(b)?, t)? * b.as_tensor())?;
                let gradients = y.backward()?;
                Ok(gradients.get(&vars[of]).cloned().unwrap_or(vars[of].zeros_like()?))
            })?;
            prop_assert_eq!(there, here);
        }
    }
}

/// The gradient says how the result changes with the input.
#[test]
fn gradients_are_what_small_steps_give() -> Result<()> {
    let device = device()?;
    let numbers = |values: &[f32]| Tensor::new(values, &device);
    let (b, t) = (
        numbers(&[0.5, -1.0, 2.0, 4.0])?,
        numbers(&[0.25, 0.5, 0.75, 1.0])?,
    );
    let y = |x: &Tensor| mix(&relu2(x)?, &b, &t)?.sqr()?.sum_all();
    let start = [1.5_f32, -2.0, 0.75, 3.0];
    let x = Var::from_tensor(&numbers(&start)?)?;
    let gradient = y(&x)?
        .backward()?
        .get(&x)
        .map(Tensor::to_vec1::<f32>)
        .transpose()?
        .unwrap_or_default();
    for i in 0..start.len() {
        let at = |step: f32| {
            let mut moved = start;
            moved[i] += step;
            y(&numbers(&moved)?)?.to_scalar::<f32>()
        };
        let slope = (at(0.01)? - at(-0.01)?) / 0.02;
        assert!(
            (slope - gradient[i]).abs() < 0.02 * slope.abs().max(1.0),
            "{i}: {slope}, {gradient:?}"
        );
    }
    Ok(())
}

#[test]
fn other_element_types_and_shapes_that_differ_are_errors() -> Result<()> {
    for device in [device()?, Device::Cpu] {
        let error = relu2(&Tensor::new(&[1_u32, 2], &device)?)
            .unwrap_err()
            .to_string();
        assert!(error.contains("U32") && error.contains("relu2"), "{error}");
        let (two, three) = (
            Tensor::new(&[1.0_f32, 2.0], &device)?,
            Tensor::new(&[1.0_f32; 3], &device)?,
        );
        assert!(mix(&two, &three, &two).is_err());
        assert!(approach(&two, &three, 0.5).is_err());
    }
    Ok(())
}
