//! Llamas of the sizes of Llama 3.2 1B and Llama 3.1 8B: the time of a token, alone and in a batch, and of a prompt.

use std::collections::HashMap;
use std::io::{self, Read, Seek, SeekFrom};

use anyhow::Result;
use candle_core::quantized::gguf_file::{Content, TensorInfo, Value, VersionedMagic};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{D, DType, Device, Tensor};
use candle_transformers::models::llama::{Cache, Config, Llama};
use candle_transformers::models::quantized_llama::ModelWeights;

use crate::{Bench, weights};

/// Tokens before the first that is timed.
const CONTEXT: usize = 128;
/// Tokens of a timed run.
const TOKENS: usize = 32;
/// Lengths of prompts.
const PROMPTS: [usize; 3] = [128, 512, 2048];

fn config(bench: &Bench, hidden: usize, intermediate: usize, layers: usize) -> Config {
    Config {
        hidden_size: hidden,
        intermediate_size: intermediate,
        vocab_size: 128_256,
        num_hidden_layers: bench.options.layers.unwrap_or(layers),
        num_attention_heads: 32,
        num_key_value_heads: 8,
        use_flash_attn: false,
        rms_norm_eps: 1e-5,
        rope_theta: 500_000.0,
        bos_token_id: None,
        eos_token_id: None,
        rope_scaling: None,
        max_position_embeddings: 4096,
        tie_word_embeddings: false,
    }
}

/// Tokens that do not depend on what the model says, so that rounding cannot lead two devices apart.
fn tokens(batch: usize, length: usize, seed: u64, device: &Device) -> Result<Tensor> {
    let numbers = weights::numbers(seed, batch * length);
    let ids: Vec<u32> = numbers.iter().map(|x| ((x + 1.0) * 64_000.0) as u32).collect();
    Ok(Tensor::from_vec(ids, (batch, length), device)?)
}

/// A model that can forget, and that goes on from a position.
trait Model {
    fn forget(&mut self) -> Result<()>;
    fn forward(&mut self, tokens: &Tensor, position: usize) -> Result<Tensor>;
}

fn measure(bench: &Bench, model: &mut dyn Model) -> Result<()> {
    for batch in [1, 8] {
        let name = format!("decode-{batch}");
        if !bench.wants(&name) {
            continue;
        }
        let context = tokens(batch, CONTEXT, 7, &bench.device)?;
        // Candle's quantized llama takes only one token at a time of several sequences.
        let step = if batch == 1 { CONTEXT } else { 1 };
        let each: Vec<Tensor> =
            (0..TOKENS).map(|i| tokens(batch, 1, 100 + i as u64, &bench.device)).collect::<Result<_>>()?;
        model.forget()?;
        for at in (0..CONTEXT).step_by(step) {
            model.forward(&context.narrow(1, at, step)?.contiguous()?, at)?;
        }
        let mut position = CONTEXT;
        bench.time(&name, "token", TOKENS, || {
            let mut last = None;
            for token in &each {
                let logits = model.forward(token, position)?;
                // What greedy sampling does for each token.
                logits.argmax(D::Minus1)?.flatten_all()?.to_vec1::<u32>()?;
                position += 1;
                last = Some(logits);
            }
            Ok(last.expect("there are tokens"))
        })?;
    }
    for length in PROMPTS {
        let prompt = tokens(1, length, 9, &bench.device)?;
        bench.time(&format!("prompt-{length}"), "token", length, || {
            model.forget()?;
            model.forward(&prompt, 0)
        })?;
    }
    model.forget()
}

struct Full {
    model: Llama,
    config: Config,
    cache: Cache,
    device: Device,
}

impl Model for Full {
    fn forget(&mut self) -> Result<()> {
        self.cache = Cache::new(true, DType::BF16, &self.config, &self.device)?;
        Ok(())
    }

    fn forward(&mut self, tokens: &Tensor, position: usize) -> Result<Tensor> {
        Ok(self.model.forward(tokens, position, &mut self.cache)?)
    }
}

fn full(bench: &Bench, config: Config) -> Result<()> {
    let device = bench.device.clone();
    let model = Llama::load(weights::builder(DType::BF16, &device), &config)?;
    let cache = Cache::new(true, DType::BF16, &config, &device)?;
    measure(bench, &mut Full { model, config, cache, device })
}

/// 1B parameters in bf16.
pub fn small(bench: &Bench) -> Result<()> {
    full(bench, config(bench, 2048, 8192, 16))
}

/// 8B parameters in bf16.
pub fn large(bench: &Bench) -> Result<()> {
    full(bench, config(bench, 4096, 14_336, 32))
}

impl Model for ModelWeights {
    fn forget(&mut self) -> Result<()> {
        self.clear_kv_cache();
        Ok(())
    }

    fn forward(&mut self, tokens: &Tensor, position: usize) -> Result<Tensor> {
        Ok(ModelWeights::forward(self, tokens, position)?)
    }
}

/// A GGUF file that is nowhere: quantized random numbers over and over, and ones far behind them.
struct Weights {
    numbers: Vec<u8>,
    position: u64,
}

/// Where the ones of norms are.
const ONES: u64 = 1 << 60;

impl Weights {
    fn new(dtype: GgmlDType) -> Result<Weights> {
        // The variance that keeps that of 4,096 inputs.
        let scale = (3.0_f32 / 4096.0).sqrt();
        let numbers: Vec<f32> = weights::numbers(3, 1 << 20).into_iter().map(|x| x * scale).collect();
        let count = numbers.len();
        let quantized = QTensor::quantize(&Tensor::from_vec(numbers, count, &Device::Cpu)?, dtype)?;
        Ok(Weights { numbers: quantized.data()?.into_owned(), position: 0 })
    }

    /// Where a tensor begins: a block that its name chooses.
    fn place(&self, dtype: GgmlDType, name: &str) -> u64 {
        let block = dtype.type_size() as u64;
        weights::hash(name) % (self.numbers.len() as u64 / block) * block
    }
}

impl Read for Weights {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = if self.position >= ONES {
            to.chunks_exact_mut(4).for_each(|one| one.copy_from_slice(&1.0_f32.to_le_bytes()));
            to.len() / 4 * 4
        } else {
            let from = &self.numbers[(self.position % self.numbers.len() as u64) as usize..];
            let count = to.len().min(from.len());
            to[..count].copy_from_slice(&from[..count]);
            count
        };
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for Weights {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = match to {
            SeekFrom::Start(position) => position,
            SeekFrom::End(back) => (2 * ONES).saturating_add_signed(back),
            SeekFrom::Current(by) => self.position.saturating_add_signed(by),
        };
        Ok(self.position)
    }
}

/// 8B parameters, which Candle reads as those of a GGUF file.
fn gguf(bench: &Bench, dtype: GgmlDType) -> Result<()> {
    let Config {
        hidden_size: hidden,
        intermediate_size: wide,
        vocab_size: vocab,
        num_hidden_layers: layers,
        ..
    } = config(bench, 4096, 14_336, 32);
    let key = hidden / 4;
    let metadata = [
        ("general.architecture", Value::String("llama".to_owned())),
        ("llama.attention.head_count", Value::U32(32)),
        ("llama.attention.head_count_kv", Value::U32(8)),
        ("llama.block_count", Value::U32(layers as u32)),
        ("llama.embedding_length", Value::U32(hidden as u32)),
        ("llama.rope.dimension_count", Value::U32(128)),
        ("llama.attention.layer_norm_rms_epsilon", Value::F32(1e-5)),
        ("llama.rope.freq_base", Value::F32(500_000.0)),
    ];
    let mut file = Weights::new(dtype)?;
    let mut tensor_infos = HashMap::new();
    let mut add = |name: String, rows: usize, columns: usize| {
        let offset = file.place(dtype, &name);
        tensor_infos.insert(name, TensorInfo { ggml_dtype: dtype, shape: (rows, columns).into(), offset });
    };
    add("token_embd.weight".to_owned(), vocab, hidden);
    add("output.weight".to_owned(), vocab, hidden);
    for layer in 0..layers {
        for (name, rows, columns) in [
            ("attn_q", hidden, hidden),
            ("attn_k", key, hidden),
            ("attn_v", key, hidden),
            ("attn_output", hidden, hidden),
            ("ffn_gate", wide, hidden),
            ("ffn_down", hidden, wide),
            ("ffn_up", wide, hidden),
        ] {
            add(format!("blk.{layer}.{name}.weight"), rows, columns);
        }
    }
    let norms = (0..layers).flat_map(|i| ["attn", "ffn"].map(|name| format!("blk.{i}.{name}_norm.weight")));
    for name in norms.chain(["output_norm.weight".to_owned()]) {
        let info = TensorInfo { ggml_dtype: GgmlDType::F32, shape: hidden.into(), offset: ONES };
        tensor_infos.insert(name, info);
    }
    let content = Content {
        magic: VersionedMagic::GgufV3,
        metadata: metadata.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        tensor_infos,
        tensor_data_offset: 0,
    };
    let mut model = ModelWeights::from_gguf(content, &mut file, &bench.device)?;
    measure(bench, &mut model)
}

/// 8B parameters in blocks of 32 with 4 bits.
pub fn q4_0(bench: &Bench) -> Result<()> {
    gguf(bench, GgmlDType::Q4_0)
}

/// 8B parameters in blocks of 256 with 4 bits.
pub fn q4_k(bench: &Bench) -> Result<()> {
    gguf(bench, GgmlDType::Q4K)
}

/// 8B parameters in blocks of 32 with 8 bits.
pub fn q8_0(bench: &Bench) -> Result<()> {
    gguf(bench, GgmlDType::Q8_0)
}
