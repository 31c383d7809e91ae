//! Times models of real size with random weights through Candle's own code, on the first GPU.
//!
//! The same source is built twice: with Candle's CUDA kernels, and with this project's patches of cudarc and candle-kernels
//! (`benches/candle.md`). Weights and inputs are the same in both, so that the results can be compared.

mod llama;
mod others;
mod weights;

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use candle_core::{D, DType, Device, Tensor};
use clap::Parser;

/// Times models with random weights, and prints a line of JSON for each measurement.
#[derive(Parser)]
struct Options {
    /// The models, by name; default: all
    models: Vec<String>,
    /// Lists the models
    #[arg(long)]
    list: bool,
    /// Writes each model's result to DIR/MODEL-MEASUREMENT.f32: the numbers of a tensor in native byte order
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Only these measurements of each model
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    measurements: Vec<String>,
    /// Layers of the language models, instead of all: for a trial on a slow device
    #[arg(long, value_name = "N")]
    layers: Option<usize>,
    /// Timed runs of each measurement
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: usize,
}

/// What is measured of one model.
struct Bench<'a> {
    options: &'a Options,
    model: &'a str,
    device: Device,
}

impl Bench<'_> {
    /// Whether this measurement is asked for.
    fn wants(&self, measurement: &str) -> bool {
        let wanted = &self.options.measurements;
        wanted.is_empty() || wanted.iter().any(|name| name == measurement)
    }

    /// Runs `work` once to warm up and then some more times, each until its result is on the host. Prints the seconds of each
    /// run divided by `count` things that a run handles.
    fn time(
        &self,
        measurement: &str,
        thing: &str,
        count: usize,
        mut work: impl FnMut() -> Result<Tensor>,
    ) -> Result<()> {
        if !self.wants(measurement) {
            return Ok(());
        }
        let result = work()?.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?;
        if let Some(value) = result.iter().find(|value| !value.is_finite()) {
            bail!("{} {measurement}: {value} among the results", self.model);
        }
        if let Some(folder) = &self.options.results {
            let path = folder.join(format!("{}-{measurement}.f32", self.model));
            let bytes: Vec<u8> = result.iter().flat_map(|value| value.to_ne_bytes()).collect();
            fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        }
        let mut seconds = Vec::new();
        for _ in 0..self.options.runs.max(1) {
            self.device.synchronize()?;
            let start = Instant::now();
            let last = work()?;
            // As a program does that picks the next token: one number comes back.
            last.flatten_all()?.argmax(D::Minus1)?.to_scalar::<u32>()?;
            seconds.push(start.elapsed().as_secs_f64() / count as f64);
        }
        seconds.sort_by(f64::total_cmp);
        let median = seconds[seconds.len() / 2];
        let line = serde_json::json!({
            "model": self.model,
            "measurement": measurement,
            "unit": format!("seconds for each {thing}"),
            "median": median,
            "runs": seconds,
        });
        println!("{line}");
        Ok(())
    }
}

/// A model: its name and what times it.
type Model = (&'static str, fn(&Bench) -> Result<()>);

const MODELS: [Model; 11] = [
    ("launch", others::launch),
    ("llama-1b-bf16", llama::small),
    ("llama-8b-bf16", llama::large),
    ("llama-8b-q4_0", llama::q4_0),
    ("llama-8b-q4_k", llama::q4_k),
    ("llama-8b-q8_0", llama::q8_0),
    ("bert-base-f32", others::bert),
    ("resnet50-f32", others::resnet),
    ("vae-decoder-f32", others::vae),
    ("vae-decoder-f16", others::vae_f16),
    ("whisper-medium-encoder-f32", others::whisper),
];

fn main() -> Result<()> {
    let options = Options::parse();
    if options.list {
        MODELS.iter().for_each(|(name, _)| println!("{name}"));
        return Ok(());
    }
    for name in &options.models {
        if !MODELS.iter().any(|(known, _)| known == name) {
            bail!("there is no model `{name}`; --list names them");
        }
    }
    if let Some(folder) = &options.results {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    for (model, run) in MODELS {
        if options.models.is_empty() || options.models.iter().any(|name| name == model) {
            let bench = Bench { options: &options, model, device: Device::new_cuda(0)? };
            run(&bench).with_context(|| model.to_owned())?;
        }
    }
    Ok(())
}
