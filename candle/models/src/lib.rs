//! The models of candle-transformers, small and with random weights, on the device and on Candle's CPU backend.
//!
//! A [`Model`] is built and run by a function of a [`Setup`], which has the device, the dtype and the weights. What a
//! model must give comes from the CPU in f32, with weights and inputs rounded to the dtype under test.

#![recursion_limit = "256"]

use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::{Context, Result, bail, ensure};
use candle_core::{DType, Device, Shape, Tensor};
use candle_nn::VarBuilder;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

mod audio;
mod diffusion;
pub mod gguf;
mod quantized;
pub mod table;
mod text;
pub mod training;
mod vision;
pub mod weights;

use weights::{Noise, Random};

/// A model's name, its module below `candle_transformers::models` first, and what builds and runs it.
pub type Entry = (&'static str, fn(&Setup) -> Result<Vec<Tensor>>);

/// What a model computes in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// The dtype of a `VarBuilder`.
    Float,
    /// Weights of a GGUF file.
    Quantized,
}

/// A model under test.
#[derive(Clone, Copy)]
pub struct Model {
    /// Its module below `candle_transformers::models`, and a part of it.
    pub name: &'static str,
    /// What it computes in.
    pub kind: Kind,
    run: fn(&Setup) -> Result<Vec<Tensor>>,
}

/// Models with many weights or pixels, since their configurations have no smaller ones. They run in f32 alone.
const LONG: &[&str] = &[
    "beit",
    "convmixer",
    "convnext",
    "csm",
    "dinov2",
    "dinov2reg4",
    "efficientnet",
    "efficientvit",
    "eva2",
    "hiera",
    "mobilenetv4 convolutions",
    "mobilenetv4 hybrid",
    "mobileone",
    "moondream",
    "quantized_moondream",
    "repvgg",
    "resnet 18",
    "resnet 50",
    "stable_diffusion::clip",
    "vgg",
    "wuerstchen::diffnext",
    "wuerstchen::paella_vq",
];

/// All models, by name.
pub fn all() -> Vec<Model> {
    let float = [text::MODELS, vision::MODELS, audio::MODELS, diffusion::MODELS].concat();
    let float = float.into_iter().map(|(name, run)| Model { name, kind: Kind::Float, run });
    let quantized = quantized::MODELS.iter().map(|&(name, run)| Model { name, kind: Kind::Quantized, run });
    let mut all: Vec<_> = float.chain(quantized).collect();
    all.sort_by_key(|model| model.name);
    all
}

/// Where a model runs, and what it gets.
pub struct Setup {
    /// For tensors.
    pub device: Device,
    /// The dtype that the model computes in.
    pub dtype: DType,
    /// The dtype that weights and inputs are rounded to.
    rounded: DType,
    /// Whether quantized weights have their values in f32, so that nothing rounds what they are multiplied by.
    exact: bool,
}

impl Setup {
    /// Weights for any name.
    pub fn vb(&self) -> VarBuilder<'static> {
        self.vb_with(&[], &[])
    }

    /// Weights for any name but those with one of these parts.
    pub fn vb_without(&self, without: &'static [&'static str]) -> VarBuilder<'static> {
        self.vb_with(without, &[])
    }

    /// The same with the shapes of tensors that a model reads before it says what it expects.
    pub fn vb_with(
        &self,
        without: &'static [&'static str],
        shapes: &'static [(&'static str, &'static [usize])],
    ) -> VarBuilder<'static> {
        let random = Random { rounded: self.rounded, without, shapes };
        VarBuilder::from_backend(Box::new(random), self.dtype, self.device.clone())
    }

    /// A tensor of numbers in (-1, 1), the same for the same name.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn input(&self, name: &str, shape: impl Into<Shape>) -> Result<Tensor> {
        let shape = shape.into();
        let mut noise = Noise::new(name);
        let numbers: Vec<f32> = (0..shape.elem_count()).map(|_| noise.draw()).collect();
        let tensor = Tensor::from_vec(numbers, shape, &Device::Cpu)?.to_dtype(self.rounded)?;
        Ok(tensor.to_dtype(self.dtype)?.to_device(&self.device)?)
    }

    /// A tensor of whole numbers.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn whole(&self, numbers: &[u32], shape: impl Into<Shape>) -> Result<Tensor> {
        Ok(Tensor::from_vec(numbers.to_vec(), shape, &self.device)?)
    }

    /// A sentence of `count` tokens below 61.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn ids(&self, count: usize) -> Result<Tensor> {
        let ids: Vec<u32> = (0..count as u32).map(|i| (i * 23 + 5) % 61).collect();
        self.whole(&ids, (1, count))
    }

    /// Runs a decoder on six tokens, then on one more behind them.
    ///
    /// # Errors
    /// What the decoder returns.
    pub fn decode(
        &self,
        mut forward: impl FnMut(&Tensor, usize) -> candle_core::Result<Tensor>,
    ) -> Result<Vec<Tensor>> {
        let prompt = forward(&self.ids(6)?, 0)?;
        let next = forward(&self.whole(&[17], (1, 1))?, 6)?;
        Ok(vec![prompt, next])
    }

    /// A configuration with the names that Hugging Face's configurations have in common, all small, and `own`; null is none.
    ///
    /// # Errors
    /// If a name is missing.
    pub fn config<T: DeserializeOwned>(&self, own: Value) -> Result<T> {
        let Value::Object(mut names) = small() else { bail!("a configuration has names") };
        let Value::Object(own) = own else { bail!("a configuration has names") };
        for (name, value) in own {
            match value {
                Value::Null => drop(names.remove(&name)),
                value => drop(names.insert(name, value)),
            }
        }
        serde_json::from_value(Value::Object(names)).context("the configuration does not fit")
    }
}

/// Names of configurations; serde ignores those that a configuration does not have.
fn small() -> Value {
    json!({
        "vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5, "layer_norm_eps": 1e-5, "layer_norm_epsilon": 1e-5, "norm_epsilon": 1e-5,
        "norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "attention_bias": false,
        "tie_word_embeddings": false, "use_cache": true, "initializer_range": 0.02, "type_vocab_size": 2,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0, "sliding_window": 16, "max_window_layers": 2,
        "use_sliding_window": false, "use_flash_attn": false, "query_pre_attn_scalar": 8,
        "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "decoder_sparse_step": 1,
        "norm_topk_prob": true, "shared_expert_intermediate_size": 16, "num_local_experts": 4,
        "n_embd": 32, "n_head": 4, "n_layer": 2, "n_inner": 64, "n_positions": 64, "d_model": 32,
        "partial_rotary_factor": 0.5, "mlp_bias": false, "qk_layernorm": false,
        "image_size": 32, "patch_size": 8, "num_channels": 3, "projection_dim": 16,
    })
}

/// How two runs of a model compare.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The largest difference, as a fraction of the largest number of its tensor.
    Difference(f64),
    /// The device's error, and Candle's CPU backend cannot run it either.
    Cpu(String),
    /// Only the device cannot.
    Device(String),
}

/// The dtypes that a model is run in; a quantized or a long one only in the first.
pub const DTYPES: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

/// The largest difference that is agreement: rounding that accumulates over the layers.
pub fn bound(kind: Kind, dtype: DType) -> f64 {
    match (kind, dtype) {
        // Activations are rounded to 8 bits in blocks of 32, some ten times one after another.
        (Kind::Quantized, _) => 0.1,
        (Kind::Float, DType::F32) => 2e-4,
        (Kind::Float, DType::F16) => 0.02,
        (Kind::Float, _) => 0.1,
    }
}

impl Model {
    /// Whether it is run in a dtype.
    pub fn has(&self, dtype: DType) -> bool {
        dtype == DType::F32 || self.kind == Kind::Float && !self.is_long()
    }

    /// Whether it takes long.
    pub fn is_long(&self) -> bool {
        LONG.contains(&self.name)
    }

    /// Runs it on `device` in a dtype, and on the CPU.
    pub fn compare(&self, device: &Device, dtype: DType) -> Outcome {
        let wide = Setup { device: Device::Cpu, dtype: DType::F32, rounded: dtype, exact: true };
        let narrow = Setup { device: Device::Cpu, dtype, rounded: dtype, exact: false };
        let there = Setup { device: device.clone(), dtype, rounded: dtype, exact: false };
        // Some models have dtypes of their own.
        let expected = match self.outputs(&wide).or_else(|_| self.outputs(&narrow)) {
            Ok(expected) => expected,
            Err(error) => return Outcome::Cpu(format!("{error:#}")),
        };
        let error = match self.outputs(&there).and_then(|actual| difference(&actual, &expected)) {
            Ok(difference) => return Outcome::Difference(difference),
            Err(error) => format!("{error:#}"),
        };
        // What Candle cannot do in this dtype anywhere is not the device's. Its CPU backend has no products in bf16.
        let judged = if dtype == DType::BF16 { DType::F16 } else { dtype };
        let judge = Setup { device: Device::Cpu, dtype: judged, rounded: judged, exact: false };
        match self.outputs(&judge).and_then(|outputs| difference(&outputs, &expected)) {
            Ok(_) => Outcome::Device(error),
            Err(_) => Outcome::Cpu(error),
        }
    }

    /// What it computes, on the CPU; a panic is an error.
    fn outputs(&self, setup: &Setup) -> Result<Vec<Tensor>> {
        let run = AssertUnwindSafe(|| {
            let outputs = (self.run)(setup)?;
            ensure!(!outputs.is_empty(), "there is no output");
            outputs.iter().map(|output| Ok(output.to_device(&Device::Cpu)?)).collect()
        });
        catch_unwind(run).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            bail!("panic: {}", text.unwrap_or("without a text"))
        })
    }
}

/// The largest difference between tensors, each as a fraction of the largest number in it; whole numbers must be equal.
fn difference(actual: &[Tensor], expected: &[Tensor]) -> Result<f64> {
    ensure!(actual.len() == expected.len(), "{} outputs for {}", actual.len(), expected.len());
    let mut worst = 0.0_f64;
    for (actual, expected) in actual.iter().zip(expected) {
        ensure!(actual.dims() == expected.dims(), "{:?} for {:?}", actual.dims(), expected.dims());
        let whole = !expected.dtype().is_float();
        let [actual, expected] =
            [actual, expected].map(|t| t.to_dtype(DType::F64)?.flatten_all()?.to_vec1::<f64>());
        let (actual, expected) = (actual?, expected?);
        ensure!(expected.iter().all(|x| x.is_finite()), "a number of the CPU's is infinite or not a number");
        ensure!(actual.iter().all(|x| x.is_finite()), "a number is infinite or not a number");
        let scale = if whole { 1.0 } else { expected.iter().fold(0.0, |max: f64, x| max.max(x.abs())) };
        ensure!(scale > 0.0, "the CPU's result is zero");
        let off = actual.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        worst = worst.max(off / scale);
    }
    Ok(worst)
}
