//! Random weights that depend on their name alone, made on the device from one block of numbers.

use std::sync::OnceLock;

use candle_core::{DType, Device, Result, Shape, Tensor};
use candle_nn::var_builder::SimpleBackend;
use candle_nn::{Init, VarBuilder};

/// Numbers in the block. Weights are made of whole and partial blocks.
const BLOCK: usize = 1 << 22;

/// Pseudo-random numbers, uniform in -1 to 1, from a seed (xorshift64*).
pub fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed | 1;
    let next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let high = state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 40;
        high as f32 / (1 << 23) as f32 - 1.0
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// A hash of a name (FNV-1a).
pub fn hash(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Makes weights of any name and shape.
struct Random(OnceLock<Tensor>);

/// Weights of a model with elements of `dtype`.
pub fn builder(dtype: DType, device: &Device) -> VarBuilder<'static> {
    VarBuilder::from_backend(Box::new(Random(OnceLock::new())), dtype, device.clone())
}

impl SimpleBackend for Random {
    fn get(&self, shape: Shape, name: &str, init: Init, dtype: DType, device: &Device) -> Result<Tensor> {
        let last = name.rsplit('.').next().unwrap_or_default();
        // Norms that neither shrink nor grow, and variances that are positive. Models that give no hint get that of zeros.
        let constant = match init {
            Init::Const(value) if value != 0.0 => Some(value),
            _ if shape.rank() > 1 => None,
            _ if ["weight", "gamma", "running_var"].contains(&last) => Some(1.0),
            _ => Some(0.0),
        };
        if let Some(value) = constant {
            return (Tensor::ones(shape, DType::F32, device)? * value)?.to_dtype(dtype);
        }
        if self.0.get().is_none() {
            let _ = self.0.set(Tensor::from_vec(numbers(1, BLOCK), BLOCK, device)?.to_dtype(dtype)?);
        }
        let block = self.0.get().expect("it was set above");
        // Sums over the inputs of a neuron keep the variance of one input.
        let inputs: usize = shape.dims()[1..].iter().product();
        let block = (block * (3.0 / inputs as f64).sqrt())?;
        let first = hash(name) as usize % BLOCK;
        let (mut parts, mut left, mut at) = (Vec::new(), shape.elem_count(), first);
        while left > 0 {
            let length = left.min(BLOCK - at);
            parts.push(block.narrow(0, at, length)?);
            (left, at) = (left - length, 0);
        }
        Tensor::cat(&parts, 0)?.reshape(shape)
    }

    fn get_unchecked(&self, name: &str, _: DType, _: &Device) -> Result<Tensor> {
        candle_core::bail!("the shape of {name} is not known")
    }

    fn contains_tensor(&self, _: &str) -> bool {
        true
    }
}
