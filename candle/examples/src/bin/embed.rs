//! Sentence embeddings with all-MiniLM-L6-v2: how alike sentences are, on the device and on Candle's CPU backend.
//!
//!     cargo run --bin embed -- FOLDER        # config.json, tokenizer.json and model.safetensors
//!     cargo run --bin embed                  # a model of the same shape with random weights
//!     cargo run --bin embed -- --kernels     # where the instructions go
//!
//! Exit status: 0 if both agree within 1e-4.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Error, Result};
use candle_amdgpu_examples::{Cost, Gpu, Noise, exit_code, kernels, largest_difference};
use candle_core::{DType, Device, Tensor};
use candle_nn::{VarBuilder, VarMap};
use candle_transformers::models::bert::{BertModel, Config};
use clap::Parser;
use tokenizers::Tokenizer;

/// The most that an element of a unit vector may differ from the CPU's: sums of 384 to 1,536 f32 products in another
/// order, six layers deep.
const TOLERANCE: f32 = 1e-4;

const SENTENCES: [&str; 5] = [
    "A kernel written in Rust runs on the graphics card of my computer.",
    "My computer's GPU executes a program that is written in Rust.",
    "The cat sleeps on the warm stove.",
    "On the oven, which is warm, lies a sleeping cat.",
    "Interest rates were raised by a quarter of a percent.",
];

#[derive(Parser)]
struct Cli {
    /// A folder with config.json, tokenizer.json and model.safetensors of a BERT model.
    model: Option<PathBuf>,
    /// Other sentences.
    #[arg(long = "sentence", value_name = "TEXT")]
    sentences: Vec<String>,
    /// Also list the kernels that the first sentence takes, with their instructions (on an emulated device).
    #[arg(long)]
    kernels: bool,
}

fn main() -> ExitCode {
    exit_code(run(&Cli::parse()))
}

/// Whether device and CPU agree.
fn run(cli: &Cli) -> Result<bool> {
    let gpu = Gpu::new()?;
    println!("device {}", gpu.name());
    let source = match &cli.model {
        Some(folder) => Source::open(folder)?,
        None => Source::random()?,
    };
    println!("model {}", source.name);
    let sentences: Vec<String> = match cli.sentences.is_empty() {
        true => SENTENCES.map(str::to_owned).to_vec(),
        false => cli.sentences.clone(),
    };
    let (on_cpu, on_gpu) = (source.model(&Device::Cpu)?, source.model(&gpu.device)?);
    // Loads each kernel it needs, which is not the model's time.
    embed(&on_gpu, &source.tokens(&sentences[0])?)?;

    let (mut vectors, mut worst, mut sum) = (Vec::new(), 0.0_f32, Cost::default());
    for (i, sentence) in sentences.iter().enumerate() {
        let tokens = source.tokens(sentence)?;
        let (vector, cost) = gpu.measure(|| embed(&on_gpu, &tokens))?;
        println!("{}  {sentence}\n   {} tokens, {cost}", i + 1, tokens.len());
        let vector = vector.to_device(&Device::Cpu)?;
        worst = worst.max(largest_difference(&vector, &embed(&on_cpu, &tokens)?)?);
        vectors.push(vector);
        sum += cost;
    }
    println!("\nin all {sum}\n\ncosine similarity");
    print!("{}", table(&vectors)?);
    if cli.kernels {
        print_kernels(&gpu, &on_gpu, &source.tokens(&sentences[0])?)?;
    }
    let agree = worst <= TOLERANCE;
    let word = if agree { "agree" } else { "DIFFER" };
    println!("\ndevice and CPU {word}: largest difference {worst:.1e}, {TOLERANCE:.0e} allowed");
    Ok(agree)
}

fn print_kernels(gpu: &Gpu, model: &BertModel, tokens: &[u32]) -> Result<()> {
    let Some(sums) = kernels(gpu, || embed(model, tokens).map(|_| ()))? else {
        println!("\na real device does not count its instructions");
        return Ok(());
    };
    let all: u64 = sums.iter().map(|(_, _, instructions)| instructions).sum();
    println!("\nkernel                launches   wave instructions");
    for (kernel, launches, instructions) in sums {
        let share = 100.0 * instructions as f64 / all as f64;
        println!("{kernel:<20} {launches:>9} {instructions:>12} {share:>5.1} %");
    }
    Ok(())
}

/// Where weights and tokens come from.
struct Source {
    name: String,
    config: Config,
    tokenizer: Option<Tokenizer>,
    weights: HashMap<String, Tensor>,
}

impl Source {
    fn open(folder: &Path) -> Result<Source> {
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        let config = serde_json::from_slice(&read("config.json")?).context("config.json")?;
        let mut tokenizer = Tokenizer::from_bytes(read("tokenizer.json")?).map_err(Error::msg)?;
        // Each sentence runs by itself, so that none needs padding.
        tokenizer.with_padding(None);
        let weights = candle_core::safetensors::load_buffer(&read("model.safetensors")?, &Device::Cpu)?;
        Ok(Source { name: folder.display().to_string(), config, tokenizer: Some(tokenizer), weights })
    }

    /// A model of all-MiniLM-L6-v2's shape, with a small vocabulary.
    fn random() -> Result<Source> {
        let config = Config {
            vocab_size: 1000,
            hidden_size: 384,
            num_hidden_layers: 6,
            intermediate_size: 1536,
            ..Config::default()
        };
        // Candle makes the weights that the model asks for; then they get the same values each time.
        let made = VarMap::new();
        BertModel::load(VarBuilder::from_varmap(&made, DType::F32, &Device::Cpu), &config)?;
        let made = made.data().lock().map_err(|_| Error::msg("a thread panicked"))?;
        let mut names: Vec<_> = made.keys().cloned().collect();
        names.sort();
        let mut noise = Noise::new(1);
        let weights = names.into_iter().map(|name| {
            let norm = name.contains("LayerNorm");
            let old = made[&name].as_tensor();
            let new = if norm { old.clone() } else { noise.tensor(old.dims(), 0.05, &Device::Cpu)? };
            Ok((name, new))
        });
        let name = "of MiniLM's shape with random weights: the similarities mean nothing".to_owned();
        Ok(Source { name, config, tokenizer: None, weights: weights.collect::<Result<_>>()? })
    }

    fn model(&self, device: &Device) -> Result<BertModel> {
        let weights = VarBuilder::from_tensors(self.weights.clone(), DType::F32, device);
        Ok(BertModel::load(weights, &self.config)?)
    }

    /// A sentence as numbers; without a tokenizer, one for each word by its letters.
    fn tokens(&self, sentence: &str) -> Result<Vec<u32>> {
        let Some(tokenizer) = &self.tokenizer else {
            let vocabulary = self.config.vocab_size as u32;
            let number =
                |word: &str| word.bytes().fold(7_u32, |n, byte| n.wrapping_mul(31) + u32::from(byte));
            return Ok(sentence.split_whitespace().map(|word| number(word) % vocabulary).collect());
        };
        let encoding = tokenizer.encode(sentence, true).map_err(Error::msg)?;
        Ok(encoding.get_ids().to_vec())
    }
}

/// The mean of the tokens' vectors, of length 1.
fn embed(model: &BertModel, tokens: &[u32]) -> Result<Tensor> {
    let ids = Tensor::new(tokens, &model.device)?.unsqueeze(0)?;
    let vectors = model.forward(&ids, &ids.zeros_like()?, None)?;
    let mean = vectors.mean(1)?.squeeze(0)?;
    let length = mean.sqr()?.sum_all()?.sqrt()?;
    Ok(mean.broadcast_div(&length)?)
}

/// The scalar product of each two.
fn table(vectors: &[Tensor]) -> Result<String> {
    let all = Tensor::stack(vectors, 0)?;
    let products = all.matmul(&all.t()?)?.to_vec2::<f32>()?;
    let row = |(i, row): (usize, &Vec<f32>)| {
        let cells: String = row.iter().map(|cell| format!("{cell:>8.3}")).collect();
        format!("{:>3}{cells}\n", i + 1)
    };
    let head: String = (1..=vectors.len()).map(|i| format!("{i:>8}")).collect();
    Ok(format!("   {head}\n{}", products.iter().enumerate().map(row).collect::<String>()))
}
