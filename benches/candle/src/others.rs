//! An operation alone, an encoder of text, images and sound each.

use anyhow::Result;
use candle_core::{DType, Tensor};
use candle_nn::ModuleT;
use candle_transformers::models::stable_diffusion::vae::{AutoEncoderKL, AutoEncoderKLConfig};
use candle_transformers::models::whisper::{self, model::Whisper};
use candle_transformers::models::{bert, resnet};

use crate::{Bench, weights};

fn input(bench: &Bench, shape: &[usize], dtype: DType) -> Result<Tensor> {
    let numbers = weights::numbers(11, shape.iter().product());
    Ok(Tensor::from_vec(numbers, shape, &bench.device)?.to_dtype(dtype)?)
}

/// An operation on one number, a thousand times, each on the last one's result: what an allocation, a launch and a free cost.
pub fn launch(bench: &Bench) -> Result<()> {
    const COUNT: usize = 1000;
    let x = input(bench, &[1], DType::F32)?;
    bench.time("affine", "operation", COUNT, || {
        let mut y = x.clone();
        for _ in 0..COUNT {
            y = y.affine(0.5, 1.0)?;
        }
        Ok(y)
    })
}

/// BERT base: 32 sentences of 128 tokens. Its attention mask is infinite in f16 and bf16, and so Candle's result is NaN there.
pub fn bert(bench: &Bench) -> Result<()> {
    const SHAPE: (usize, usize) = (32, 128);
    let builder = weights::builder(DType::F32, &bench.device);
    let model = bert::BertModel::load(builder, &bert::Config::default())?;
    let numbers = weights::numbers(5, SHAPE.0 * SHAPE.1);
    let ids: Vec<u32> = numbers.iter().map(|x| ((x + 1.0) * 15_000.0) as u32).collect();
    let ids = Tensor::from_vec(ids, SHAPE, &bench.device)?;
    let types = ids.zeros_like()?;
    bench.time("batch-32x128", "batch", 1, || Ok(model.forward(&ids, &types, None)?))
}

/// ResNet-50: 16 images of 224 by 224.
pub fn resnet(bench: &Bench) -> Result<()> {
    let model = resnet::resnet50(1000, weights::builder(DType::F32, &bench.device))?;
    let images = input(bench, &[16, 3, 224, 224], DType::F32)?;
    bench.time("batch-16", "batch", 1, || Ok(model.forward_t(&images, false)?))
}

fn vae_of(bench: &Bench, dtype: DType) -> Result<()> {
    let config = AutoEncoderKLConfig {
        block_out_channels: vec![128, 256, 512, 512],
        layers_per_block: 2,
        ..AutoEncoderKLConfig::default()
    };
    let model = AutoEncoderKL::new(weights::builder(dtype, &bench.device), 3, 3, config)?;
    let latent = input(bench, &[1, 4, 64, 64], dtype)?;
    bench.time("image-512", "image", 1, || Ok(model.decode(&latent)?))
}

/// The decoder of Stable Diffusion 1.5: an image of 512 by 512.
pub fn vae(bench: &Bench) -> Result<()> {
    vae_of(bench, DType::F32)
}

/// The same in f16.
pub fn vae_f16(bench: &Bench) -> Result<()> {
    vae_of(bench, DType::F16)
}

/// The encoder of Whisper medium: 30 seconds of sound.
pub fn whisper(bench: &Bench) -> Result<()> {
    let config = whisper::Config {
        num_mel_bins: 80,
        max_source_positions: 1500,
        d_model: 1024,
        encoder_attention_heads: 16,
        encoder_layers: 24,
        vocab_size: 51_865,
        max_target_positions: 448,
        decoder_attention_heads: 16,
        decoder_layers: 1,
        suppress_tokens: Vec::new(),
    };
    let mut model = Whisper::load(&weights::builder(DType::F32, &bench.device), config)?;
    let sound = input(bench, &[1, 80, 3000], DType::F32)?;
    bench.time("sound-30s", "piece", 1, || Ok(model.encoder.forward(&sound, true)?))
}
