//! Text by a quantized model of the llama architecture, on the device and on Candle's CPU backend, token by token.
//!
//!     cargo run --bin generate -- MODEL.gguf --tokenizer tokenizer.json
//!     cargo run --bin generate                 # a small model, made on the spot with random weights
//!
//! Both backends take the likeliest token each time. They quantize the activations in different blocks, so they may choose
//! differently between two tokens that are about as likely; their logits show that.
//! Exit status: 0 if all tokens are the same, or the first that differs is such a case.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Error, Result};
use candle_amdgpu_examples::{Cost, Gpu, Noise, exit_code, largest_difference};
use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, IndexOp, Tensor};
use candle_transformers::models::quantized_llama::ModelWeights;
use clap::Parser;
use tokenizers::Tokenizer;

/// The most that logits may differ from the CPU's, as a fraction of the largest one: activations are rounded to 8 bits on
/// both sides, in blocks of 32 here and of 256 there.
const TOLERANCE: f32 = 0.05;

#[derive(Parser)]
struct Cli {
    /// A GGUF file of the llama architecture.
    model: Option<PathBuf>,
    /// Its tokenizer.json; without one, tokens are bytes of the text, and are printed as numbers.
    #[arg(long)]
    tokenizer: Option<PathBuf>,
    /// What the text begins with.
    #[arg(long, default_value = "Once upon a time")]
    prompt: String,
    /// How many tokens to generate.
    #[arg(long, default_value_t = 16)]
    tokens: usize,
}

fn main() -> ExitCode {
    exit_code(run(&Cli::parse()))
}

/// Whether the texts are the same, or differ only where they may.
fn run(cli: &Cli) -> Result<bool> {
    let gpu = Gpu::new()?;
    println!("device {}", gpu.name());
    let (mut on_cpu, mut on_gpu) = match &cli.model {
        Some(path) => {
            println!("model {}", path.display());
            let open = || File::open(path).with_context(|| format!("cannot read {}", path.display()));
            (load(BufReader::new(open()?), &Device::Cpu)?, load(BufReader::new(open()?), &gpu.device)?)
        }
        None => {
            println!("model with random weights: the text means nothing");
            let file = small_model()?;
            (load(Cursor::new(&file), &Device::Cpu)?, load(Cursor::new(&file), &gpu.device)?)
        }
    };
    let tokenizer = cli.tokenizer.as_ref().map(Tokenizer::from_file).transpose().map_err(Error::msg)?;
    let prompt = match &tokenizer {
        Some(tokenizer) => {
            tokenizer.encode(cli.prompt.as_str(), true).map_err(Error::msg)?.get_ids().to_vec()
        }
        None => cli.prompt.bytes().map(u32::from).collect(),
    };

    let (mut tokens, mut next, mut position) = (Vec::new(), prompt.clone(), 0);
    let (mut worst, mut sum) = (0.0_f32, Cost::default());
    while tokens.len() < cli.tokens {
        let input = |device| Tensor::new(next.as_slice(), device)?.unsqueeze(0);
        let (logits, cost) = gpu.measure(|| Ok(on_gpu.forward(&input(&gpu.device)?, position)?.i(0)?))?;
        let expected = on_cpu.forward(&input(&Device::Cpu)?, position)?.i(0)?;
        if position == 0 {
            println!("prompt: {} tokens, {cost}", next.len());
        } else {
            sum += cost;
        }
        let scale = expected.abs()?.max(0)?.to_scalar::<f32>()?;
        let difference = largest_difference(&logits, &expected)? / scale;
        worst = worst.max(difference);
        let [ours, theirs] = [&logits, &expected].map(|logits| logits.argmax(0)?.to_scalar::<u32>());
        let (ours, theirs) = (ours?, theirs?);
        if ours != theirs {
            let gap =
                (expected.i(theirs as usize)? - expected.i(ours as usize)?)?.to_scalar::<f32>()? / scale;
            println!(
                "token {}: {ours} here, {theirs} on the CPU, whose logits are {gap:.1e} apart of the largest one; \
                 the backends differ by {difference:.1e}",
                tokens.len() + 1
            );
            let explained = difference <= TOLERANCE && gap <= 2.0 * difference;
            println!(
                "{}",
                if explained { "the first difference is a matter of rounding" } else { "that is too much" }
            );
            return Ok(explained);
        }
        position += next.len();
        tokens.push(ours);
        next = vec![ours];
    }
    match &tokenizer {
        Some(tokenizer) => println!("{}{}", cli.prompt, tokenizer.decode(&tokens, true).map_err(Error::msg)?),
        None => println!("{tokens:?}"),
    }
    println!("{} tokens after the first: {sum}", tokens.len() - 1);
    let agree = worst <= TOLERANCE;
    println!(
        "all {} tokens are the CPU's; logits differ by {worst:.1e} of the largest one, {TOLERANCE} allowed",
        tokens.len()
    );
    Ok(agree)
}

fn load(mut file: impl Read + Seek, device: &Device) -> Result<ModelWeights> {
    let content = gguf_file::Content::read(&mut file)?;
    Ok(ModelWeights::from_gguf(content, &mut file, device)?)
}

/// A GGUF file: two layers of 256 values with four heads, tokens that are bytes, and weights in several formats.
fn small_model() -> Result<Vec<u8>> {
    const WIDTH: usize = 256;
    const INNER: usize = 512;
    let number = |n: usize| Value::U32(n as u32);
    let metadata = [
        ("general.architecture", Value::String("llama".to_owned())),
        ("llama.attention.head_count", number(4)),
        ("llama.attention.head_count_kv", number(2)),
        ("llama.block_count", number(2)),
        ("llama.embedding_length", number(WIDTH)),
        ("llama.rope.dimension_count", number(WIDTH / 4)),
        ("llama.attention.layer_norm_rms_epsilon", Value::F32(1e-5)),
    ];
    let mut noise = Noise::new(2);
    let mut tensors = Vec::new();
    let mut add = |name: String, shape: [usize; 2], dtype| -> Result<()> {
        let scale = (3.0 / shape[1] as f32).sqrt();
        tensors.push((name, QTensor::quantize(&noise.tensor(&shape, scale, &Device::Cpu)?, dtype)?));
        Ok(())
    };
    add("token_embd.weight".to_owned(), [256, WIDTH], GgmlDType::Q8_0)?;
    add("output.weight".to_owned(), [256, WIDTH], GgmlDType::Q6K)?;
    for layer in 0..2 {
        let name = |part: &str| format!("blk.{layer}.{part}.weight");
        add(name("attn_q"), [WIDTH, WIDTH], GgmlDType::Q4K)?;
        add(name("attn_k"), [WIDTH / 2, WIDTH], GgmlDType::Q4K)?;
        add(name("attn_v"), [WIDTH / 2, WIDTH], GgmlDType::Q5K)?;
        add(name("attn_output"), [WIDTH, WIDTH], GgmlDType::Q4_0)?;
        add(name("ffn_gate"), [INNER, WIDTH], GgmlDType::Q4K)?;
        add(name("ffn_up"), [INNER, WIDTH], GgmlDType::Q3K)?;
        add(name("ffn_down"), [WIDTH, INNER], GgmlDType::Q6K)?;
    }
    let ones = Tensor::ones(WIDTH, candle_core::DType::F32, &Device::Cpu)?;
    let norms = ["output_norm", "blk.0.attn_norm", "blk.0.ffn_norm", "blk.1.attn_norm", "blk.1.ffn_norm"];
    for name in norms {
        tensors.push((format!("{name}.weight"), QTensor::quantize(&ones, GgmlDType::F32)?));
    }
    let metadata: Vec<_> = metadata.iter().map(|(name, value)| (*name, value)).collect();
    let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let mut file = Cursor::new(Vec::new());
    gguf_file::write(&mut file, &metadata, &tensors)?;
    Ok(file.into_inner())
}
