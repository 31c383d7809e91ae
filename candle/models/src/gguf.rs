//! GGUF files with random weights, in memory.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use anyhow::{Context, Result, bail};
use candle_core::quantized::gguf_file::{self, Content, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Shape, Tensor};
use candle_transformers::quantized_var_builder::VarBuilder;

use crate::Setup;
use crate::weights::{Noise, numbers};

/// Formats of rows of a multiple of 32, and of 256.
const FORMATS: [GgmlDType; 5] =
    [GgmlDType::Q8_0, GgmlDType::Q4_0, GgmlDType::Q4_1, GgmlDType::Q5_0, GgmlDType::Q5_1];
const LONG_FORMATS: [GgmlDType; 5] =
    [GgmlDType::Q4K, GgmlDType::Q6K, GgmlDType::Q2K, GgmlDType::Q3K, GgmlDType::Q5K];

/// What a file will have.
#[derive(Clone, Default)]
pub struct Gguf {
    metadata: BTreeMap<String, Value>,
    tensors: BTreeMap<String, Vec<usize>>,
}

impl Gguf {
    /// Two blocks of 64 columns and 4 heads, with the names that llama.cpp's architectures have in common.
    pub fn of(architecture: &str) -> Gguf {
        let mut file = Gguf::default();
        file.metadata.insert("general.architecture".to_owned(), Value::String(architecture.to_owned()));
        for (name, number) in [
            ("attention.head_count", 4),
            ("attention.head_count_kv", 2),
            ("attention.key_length", 16),
            ("attention.value_length", 16),
            ("block_count", 2),
            ("context_length", 64),
            ("embedding_length", 64),
            ("feed_forward_length", 128),
            ("rope.dimension_count", 16),
            ("vocab_size", 64),
        ] {
            file = file.with(architecture, name, Value::U32(number));
        }
        for (name, number) in [
            ("attention.layer_norm_rms_epsilon", 1e-5),
            ("attention.layer_norm_epsilon", 1e-5),
            ("rope.freq_base", 10000.0),
        ] {
            file = file.with(architecture, name, Value::F32(number));
        }
        file.tensor("token_embd.weight", &[64, 64])
            .tensor("output_norm.weight", &[64])
            .tensor("output.weight", &[64, 64])
            .blocks(&[
                ("attn_norm.weight", &[64]),
                ("ffn_norm.weight", &[64]),
                ("attn_q.weight", &[64, 64]),
                ("attn_k.weight", &[32, 64]),
                ("attn_v.weight", &[32, 64]),
                ("attn_output.weight", &[64, 64]),
                ("ffn_gate.weight", &[128, 64]),
                ("ffn_up.weight", &[128, 64]),
                ("ffn_down.weight", &[64, 128]),
            ])
    }

    /// With a number or a text of the architecture's.
    #[must_use]
    pub fn with(mut self, architecture: &str, name: &str, value: Value) -> Gguf {
        self.metadata.insert(format!("{architecture}.{name}"), value);
        self
    }

    /// With a tensor.
    #[must_use]
    pub fn tensor(mut self, name: &str, shape: &[usize]) -> Gguf {
        self.tensors.insert(name.to_owned(), shape.to_vec());
        self
    }

    /// With these tensors in both blocks.
    #[must_use]
    pub fn blocks(mut self, tensors: &[(&str, &[usize])]) -> Gguf {
        for block in 0..2 {
            for (name, shape) in tensors {
                self.tensors.insert(format!("blk.{block}.{name}"), shape.to_vec());
            }
        }
        self
    }

    /// The file; with the values of its weights in f32 if they are to be exact.
    ///
    /// # Errors
    /// If a tensor cannot be quantized.
    pub fn bytes(&self, exact: bool) -> Result<Vec<u8>> {
        let tensors =
            self.tensors.iter().map(|(name, shape)| Ok((name.as_str(), quantized(name, shape, exact)?)));
        let tensors = tensors.collect::<Result<Vec<_>>>()?;
        let metadata: Vec<_> = self.metadata.iter().map(|(name, value)| (name.as_str(), value)).collect();
        let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (*name, tensor)).collect();
        let mut bytes = Cursor::new(Vec::new());
        gguf_file::write(&mut bytes, &metadata, &tensors)?;
        Ok(bytes.into_inner())
    }

    /// What `read` makes of the file's contents.
    ///
    /// # Errors
    /// What `read` returns.
    pub fn read<M>(
        &self,
        s: &Setup,
        read: impl FnOnce(Content, &mut Cursor<Vec<u8>>) -> candle_core::Result<M>,
    ) -> Result<M> {
        let mut bytes = Cursor::new(self.bytes(s.exact)?);
        let content = Content::read(&mut bytes)?;
        Ok(read(content, &mut bytes)?)
    }

    /// What `open` makes of the file on the disk, which is removed then.
    ///
    /// # Errors
    /// What `open` returns.
    pub fn open<M>(
        &self,
        s: &Setup,
        name: &str,
        open: impl FnOnce(&Path) -> candle_core::Result<M>,
    ) -> Result<M> {
        let path = std::env::temp_dir().join(format!("{name}-{}.gguf", std::process::id()));
        std::fs::write(&path, self.bytes(s.exact)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        let model = open(&path);
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        Ok(model?)
    }
}

/// Random weights, in a format that depends on the name and fits the rows.
fn quantized(name: &str, shape: &[usize], exact: bool) -> Result<QTensor> {
    let shape = Shape::from(shape.to_vec());
    let columns = shape.dims().last().copied().unwrap_or(1);
    // Candle's CPU backend multiplies by the others two blocks at a time.
    let formats = if columns % 64 == 0 { &FORMATS[..] } else { &FORMATS[..2] };
    let pick = (Noise::new(name).draw().abs() * 1e6) as usize;
    let format = match shape.rank() {
        0 | 1 => GgmlDType::F32,
        _ if columns % 256 == 0 => LONG_FORMATS[pick % LONG_FORMATS.len()],
        _ if columns % 32 == 0 => formats[pick % formats.len()],
        _ => GgmlDType::F32,
    };
    let weights = Tensor::from_vec(numbers(name, &shape, false), shape, &Device::Cpu)?;
    let weights = QTensor::quantize(&weights, format).with_context(|| format!("{name} as {format:?}"))?;
    if exact {
        Ok(QTensor::quantize(&weights.dequantize(&Device::Cpu)?, GgmlDType::F32)?)
    } else {
        Ok(weights)
    }
}

/// Builds a model whose weights are asked for by name and shape: what is missing in a file is added, until it is built.
///
/// # Errors
/// What `build` returns beside missing tensors and other shapes.
pub fn build<M>(s: &Setup, build: impl Fn(VarBuilder) -> candle_core::Result<M>) -> Result<M> {
    let mut file = Gguf::default();
    let mut last = String::new();
    // One more than any of these models has, times two.
    for _ in 0..1000 {
        let bytes = file.bytes(s.exact)?;
        let weights = VarBuilder::from_gguf_buffer(&bytes, &Device::Cpu)?;
        // Some models panic.
        let text = match catch_unwind(AssertUnwindSafe(|| build(weights).map(drop))) {
            Ok(Ok(())) => return Ok(build(VarBuilder::from_gguf_buffer(&bytes, &s.device)?)?),
            Ok(Err(error)) => error.to_string(),
            Err(panic) => panic.downcast_ref::<String>().cloned().unwrap_or_default(),
        };
        let text = text.trim_start_matches("called `Result::unwrap()` on an `Err` value: ");
        if let Some(name) = text.strip_prefix("cannot find tensor ") {
            last = name.lines().next().unwrap_or(name).to_owned();
            file = file.tensor(&last, &[1]);
        } else if let Some((_, expected)) = text.split_once("expected [") {
            let numbers = expected.split(']').next().unwrap_or("");
            let shape = numbers.split(", ").map(str::parse).collect::<Result<Vec<usize>, _>>();
            file = file.tensor(&last, &shape.with_context(|| format!("{last}: {text}"))?);
        } else {
            bail!("the model does not say what it needs: {text}");
        }
    }
    bail!("{last} is asked for again and again")
}
