//! cuRAND by cudarc's names.

use cudarc::curand::{CudaRng, result, sys};
use cudarc::driver::{CudaContext, DevicePtrMut};
use std::sync::Arc;

type Error = Box<dyn std::error::Error>;

fn context() -> Result<Arc<CudaContext>, Error> {
    Ok(CudaContext::new(0)?)
}

fn moments(numbers: &[f64]) -> [f64; 2] {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    [mean, (numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count).sqrt()]
}

#[test]
fn distributions_have_their_moments() -> Result<(), Error> {
    let stream = context()?.default_stream();
    let rng = CudaRng::new(7, stream.clone())?;
    let count = 20_000;
    let wide = |x: Vec<f32>| x.into_iter().map(f64::from).collect::<Vec<_>>();
    let near = |actual: [f64; 2], expected: [f64; 2], bound: f64| {
        let off = (0..2).map(|i| (actual[i] - expected[i]).abs()).fold(0.0, f64::max);
        assert!(off < bound, "{actual:?} instead of {expected:?}");
    };
    let mut narrow = stream.alloc_zeros::<f32>(count)?;
    rng.fill_with_uniform(&mut narrow)?;
    let uniform = wide(stream.clone_dtoh(&narrow)?);
    assert!(uniform.iter().all(|x| (0.0..1.0).contains(x)));
    near(moments(&uniform), [0.5, 12_f64.sqrt().recip()], 0.01);
    rng.fill_with_normal(&mut narrow, 3.0, 2.0)?;
    near(moments(&wide(stream.clone_dtoh(&narrow)?)), [3.0, 2.0], 0.06);
    rng.fill_with_log_normal(&mut narrow, 1.0, 0.5)?;
    let logarithms: Vec<f64> = wide(stream.clone_dtoh(&narrow)?).into_iter().map(f64::ln).collect();
    near(moments(&logarithms), [1.0, 0.5], 0.02);
    let mut long = stream.alloc_zeros::<f64>(count)?;
    rng.fill_with_uniform(&mut long)?;
    near(moments(&stream.clone_dtoh(&long)?), [0.5, 12_f64.sqrt().recip()], 0.01);
    rng.fill_with_log_normal(&mut long, 0.0, 1.0)?;
    let logarithms: Vec<f64> = stream.clone_dtoh(&long)?.into_iter().map(f64::ln).collect();
    near(moments(&logarithms), [0.0, 1.0], 0.04);
    let mut bits = stream.alloc_zeros::<u64>(count)?;
    rng.fill_with_uniform(&mut bits)?;
    let ones: u32 = stream.clone_dtoh(&bits)?.iter().map(|x| x.count_ones()).sum();
    assert!((f64::from(ones) / count as f64 - 32.0).abs() < 0.2);
    Ok(())
}

#[test]
fn a_seed_and_an_offset_give_the_same_numbers() -> Result<(), Error> {
    let stream = context()?.default_stream();
    let draw = |rng: &CudaRng, count: usize| -> Result<Vec<u32>, Error> {
        let mut numbers = stream.alloc_zeros::<u32>(count)?;
        rng.fill_with_uniform(&mut numbers)?;
        Ok(stream.clone_dtoh(&numbers)?)
    };
    let mut rng = CudaRng::new(1, stream.clone())?;
    let first = draw(&rng, 12)?;
    rng.set_offset(8)?;
    assert_eq!(draw(&rng, 4)?, first[8..]);
    rng.set_seed(2)?;
    assert_ne!(draw(&rng, 12)?, first);
    rng.set_seed(1)?;
    assert_eq!(draw(&rng, 12)?, first);
    Ok(())
}

#[test]
fn generators_work_by_address_and_refuse_what_they_are_not() -> Result<(), Error> {
    let stream = context()?.default_stream();
    let (count, lambda) = (10_000, 4.5);
    let mut numbers = stream.alloc_zeros::<u32>(count)?;
    let mut floats = stream.alloc_zeros::<f32>(count)?;
    let generator = result::create_generator_kind(sys::curandRngType_t::CURAND_RNG_PSEUDO_PHILOX4_32_10)?;
    {
        let (out, _order) = numbers.device_ptr_mut(&stream);
        let (uniform, _floats) = floats.device_ptr_mut(&stream);
        // SAFETY: the generator is live, and there are as many elements.
        unsafe {
            result::set_seed(generator, 3)?;
            result::generate::poisson_u32(generator, out as *mut u32, count, lambda)?;
            result::generate::uniform_f32(generator, uniform as *mut f32, count)?;
            let error = result::generate::poisson_u32(generator, out as *mut u32, count, -1.0).unwrap_err();
            assert!(error.to_string().contains("mean of -1"), "{error}");
            result::destroy_generator(generator)?;
        }
    }
    let numbers: Vec<f64> = stream.clone_dtoh(&numbers)?.into_iter().map(f64::from).collect();
    let [mean, deviation] = moments(&numbers);
    assert!((mean - lambda).abs() < 0.1 && (deviation - lambda.sqrt()).abs() < 0.1, "{mean}, {deviation}");
    assert!(stream.clone_dtoh(&floats)?.iter().all(|&x| x > 0.0 && x <= 1.0));
    let error = result::create_generator_kind(sys::curandRngType_t::CURAND_RNG_QUASI_SOBOL32).unwrap_err();
    assert!(error.to_string().contains("CURAND_RNG_QUASI_SOBOL32"), "{error}");
    let null = std::ptr::null_mut();
    // SAFETY: null is an error.
    let error = unsafe { result::set_seed(null, 1) };
    assert_eq!(error, Err(result::CurandError::NoGenerator));
    Ok(())
}
