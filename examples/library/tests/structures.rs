//! Structures by value and in memory.

use candle_amdgpu::{
    Device, DeviceBuffer, Element, Error, LaunchConfig, Result, bf16, f8e4m3, f16,
};
use library::kernels::structures::*;
use proptest::prelude::*;

/// What `blur` computes, with the operations in its order.
fn blurred(inp: &[f32], blur: &Blur) -> Vec<f32> {
    let at = |i: Option<usize>, weight: f32| i.and_then(|i| inp.get(i)).map(|x| x * weight);
    (0..inp.len())
        .map(|i| {
            let mut sum = 0.0;
            for (distance, &weight) in blur.weights[..=blur.radius as usize].iter().enumerate() {
                let right = at(Some(i + distance), weight);
                let left = at(i.checked_sub(distance).filter(|_| distance > 0), weight);
                for product in [right, left].into_iter().flatten() {
                    sum += product;
                }
            }
            sum
        })
        .collect()
}

/// Runs one of the kernels on each device and compares it with the host's sum to within a rounding of each term and of the result.
fn check<T: Element + std::fmt::Debug>(
    inp: &[f32],
    blur: Blur,
    epsilon: f32,
    (from, to): (fn(f32) -> T, fn(T) -> f32),
    launch: impl Fn(&candle_amdgpu::Stream, &DeviceBuffer<T>, &mut DeviceBuffer<T>) -> Result<()>,
) -> Result<()> {
    let elements: Vec<T> = inp.iter().map(|&x| from(x)).collect();
    let rounded: Vec<f32> = elements.iter().map(|&x| to(x)).collect();
    let expected = blurred(&rounded, &blur);
    let bound = blurred(
        &rounded.iter().map(|x| x.abs()).collect::<Vec<_>>(),
        &Blur {
            weights: blur.weights.map(f32::abs),
            ..blur
        },
    );
    for device in Device::all()? {
        let stream = device.stream()?;
        let x = DeviceBuffer::from_slice(&stream, &elements)?;
        let mut y = DeviceBuffer::zeros(&stream, elements.len())?;
        launch(&stream, &x, &mut y)?;
        for (i, found) in y.to_vec()?.into_iter().enumerate() {
            let difference = (to(found) - expected[i]).abs();
            assert!(
                difference <= bound[i] * (epsilon + 8.0 * f32::EPSILON),
                "element {i} of {inp:?} under {blur:?} on {device}: {found:?} instead of {}",
                expected[i]
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn a_blur_has_its_own_radius_and_weights(
        inp in prop::collection::vec(-8.0_f32..8.0, 1..200),
        radius in 0_u32..4,
        weights in prop::array::uniform4(-2.0_f32..2.0),
    ) {
        let blur = Blur { radius, weights };
        let count = inp.len();
        check(&inp, blur, 0.0, (|x| x, |x| x), |stream, x, y| {
            blur_f32(stream, LaunchConfig::auto(), count, blur, x, y)
        }).unwrap();
        check(&inp, blur, f32::from(f16::EPSILON), (f16::from_f32, f16::to_f32), |stream, x, y| {
            blur_f16(stream, LaunchConfig::auto(), count, blur, x, y)
        }).unwrap();
        check(&inp, blur, f32::from(bf16::EPSILON), (bf16::from_f32, bf16::to_f32), |stream, x, y| {
            blur_bf16(stream, LaunchConfig::auto(), count, blur, x, y)
        }).unwrap();
    }
}

#[test]
fn a_single_element_is_spread() -> Result<()> {
    let mut inp = [0.0; 9];
    inp[4] = 10.0;
    let count = inp.len();
    for device in Device::all()? {
        let stream = device.stream()?;
        let x = DeviceBuffer::from_slice(&stream, &inp)?;
        let mut y = DeviceBuffer::zeros(&stream, count)?;
        let blur = Blur {
            radius: 2,
            weights: [0.4, 0.2, 0.1, 0.0],
        };
        blur_f32(&stream, LaunchConfig::auto(), count, blur, &x, &mut y)?;
        assert_eq!(
            y.to_vec()?,
            [0.0, 0.0, 1.0, 2.0, 4.0, 2.0, 1.0, 0.0, 0.0],
            "{device}"
        );
    }
    Ok(())
}

fn mixed() -> (Mixed, Pair) {
    let inner = [
        Inner {
            wide: 1.0e300,
            half: f16::from_f32(-2.5),
            on: true,
        },
        Inner {
            wide: -3.0,
            half: f16::from_f32(0.125),
            on: false,
        },
    ];
    let mixed = Mixed {
        byte: 200,
        inner,
        short: -1234,
        brain: bf16::from_f32(96.0),
        tiny: f8e4m3::from_f32(-0.875),
        size: 1 << 40,
    };
    (
        mixed,
        Pair {
            a: 0xffff_0000,
            b: -0.75,
        },
    )
}

/// What `fields` writes for one work-item.
fn expected(id: usize) -> [f64; 15] {
    let (mixed, pair) = mixed();
    let mut wide = mixed.inner.map(|inner| inner.wide);
    wide[id % 2] += id as f64;
    let a = pair.a + id as u32;
    let size = (mixed.size + a as usize) as f64;
    [
        7.0,
        200.0,
        wide[0],
        -2.5,
        1.0,
        wide[1],
        0.125,
        0.0,
        -1234.0,
        96.0,
        -0.875,
        size,
        a.into(),
        -0.75,
        99.0,
    ]
}

#[test]
fn each_field_arrives() -> Result<()> {
    let (mixed, pair) = mixed();
    for device in Device::all()? {
        let stream = device.stream()?;
        let mut out = DeviceBuffer::zeros(&stream, 64 * 15)?;
        fields(&stream, LaunchConfig::auto(), 7, mixed, pair, 99, &mut out)?;
        for (id, row) in out.to_vec()?.chunks(15).enumerate() {
            assert_eq!(row, expected(id), "work-item {id} on {device}");
        }
    }
    Ok(())
}

#[test]
fn a_launch_by_name_takes_structures_too() -> Result<()> {
    let (mixed, pair) = mixed();
    for device in Device::all()? {
        let stream = device.stream()?;
        let mut out = DeviceBuffer::<f64>::zeros(&stream, 64 * 15)?;
        let function = device.load(&MODULE)?.function("fields")?;
        let launch = function
            .launch_builder(&stream)
            .value(7_u8)
            .structure(&mixed)
            .structure(&pair);
        // SAFETY: these are the kernel's arguments.
        unsafe {
            launch
                .value(99_u32)
                .memory_mut(&mut out)
                .launch(LaunchConfig::auto())?
        };
        assert_eq!(out.to_vec()?[15 * 63..], expected(63), "{device}");

        // A structure of another size is refused before the launch.
        let launch = function
            .launch_builder(&stream)
            .value(7_u8)
            .structure(&pair)
            .structure(&mixed);
        // SAFETY: nothing is launched.
        let error = unsafe {
            launch
                .value(99_u32)
                .memory_mut(&mut out)
                .launch(LaunchConfig::auto())
        };
        assert!(
            matches!(
                error,
                Err(Error::ArgumentSize {
                    index: 1,
                    given: 8,
                    need: 64,
                    ..
                })
            ),
            "{error:?} on {device}"
        );
    }
    Ok(())
}

#[test]
fn memory_holds_structures() -> Result<()> {
    let bodies: Vec<Body> = (0..100)
        .map(|i| Body {
            at: [i as f32, 50.0],
            velocity: [if i % 3 == 0 { -8.0 } else { 2.0 }, 0.25],
        })
        .collect();
    let expected: Vec<Body> = bodies
        .iter()
        .map(|body| {
            let at = [0, 1].map(|axis| body.at[axis] + body.velocity[axis] * 0.5);
            let turned = |axis: usize| {
                if (0.0..=99.0).contains(&at[axis]) {
                    1.0
                } else {
                    -1.0
                }
            };
            Body {
                at,
                velocity: [0, 1].map(|axis| body.velocity[axis] * turned(axis)),
            }
        })
        .collect();
    for device in Device::all()? {
        let stream = device.stream()?;
        let mut memory = DeviceBuffer::from_slice(&stream, &bodies)?;
        step(
            &stream,
            LaunchConfig::auto(),
            bodies.len(),
            0.5,
            99.0,
            &mut memory,
        )?;
        assert_eq!(memory.to_vec()?, expected, "{device}");
        let short = step(
            &stream,
            LaunchConfig::auto(),
            bodies.len() + 1,
            0.5,
            99.0,
            &mut memory,
        );
        assert!(
            matches!(short, Err(Error::BufferTooShort { .. })),
            "{short:?}"
        );
    }
    Ok(())
}
