//! A llama model whose weights are split among several devices, which add up their parts by NCCL's functions.
//!
//!     cargo run --bin parallel                     # 2 and 4 emulated devices, each in a process of its own
//!     cargo run --bin parallel -- --threads        # all in one process, a thread for each
//!     cargo run --bin parallel -- --ranks 8        # on as many AMD GPUs, if there are any
//!
//! The weights are random, and the same for all. Exit status: 0 if the logits of each token are those of one device, up to the
//! rounding of sums in another order.

use std::collections::HashMap;
use std::env;
use std::ffi::c_char;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::rc::Rc;
use std::thread;

use amdhip64::BackendKind;
use anyhow::{Context, Result, anyhow, ensure};
use candle_amdgpu_examples::{Noise, exit_code, largest_difference};
use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::WrapErr;
use candle_core::cuda_backend::cudarc::driver::{CudaSlice, DeviceRepr};
use candle_core::cuda_backend::cudarc::nccl::{Comm, Id, NcclType, ReduceOp, result};
use candle_core::cuda_backend::{CudaDType, CudaStorage};
use candle_core::{CpuStorage, CustomOp1, D, DType, Device, IndexOp, Layout, Module, Shape, Tensor, bail};
use candle_nn::rotary_emb::rope;
use candle_nn::var_builder::{Shard, ShardedSafeTensors, ShardedVarBuilder};
use candle_nn::{Embedding, Linear, RmsNorm, ops};
use clap::Parser;
use half::{bf16, f16};

const DEVICE: &str = "CANDLE_AMDGPU_DEVICE";

const VOCABULARY: usize = 96;
const WIDTH: usize = 64;
const INNER: usize = 128;
const HEADS: usize = 8;
const KV_HEADS: usize = 4;
const HEAD: usize = WIDTH / HEADS;
const LAYERS: usize = 2;
const PROMPT: [u32; 5] = [3, 14, 15, 92, 65];

#[derive(Parser)]
struct Cli {
    /// Numbers of devices; each divides 4.
    #[arg(long, value_delimiter = ',', default_value = "2,4")]
    ranks: Vec<usize>,
    /// How many tokens to generate.
    #[arg(long, default_value_t = 4)]
    tokens: usize,
    /// The type of the weights: f32, f16 or bf16.
    #[arg(long, default_value = "f32")]
    dtype: DType,
    /// All ranks in one process.
    #[arg(long)]
    threads: bool,
    /// The rank of this process, and the id: set by the process that starts it.
    #[arg(long, hide = true, num_args = 2)]
    part: Option<Vec<String>>,
    /// The folder with the weights, to which the logits go.
    #[arg(long, hide = true)]
    folder: Option<PathBuf>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    exit_code(match (&cli.folder, &cli.part) {
        (Some(folder), Some(part)) => as_process(&cli, folder, part),
        (Some(folder), None) => as_threads(&cli, folder),
        _ => run(&cli),
    })
}

/// What the logits may differ by from those of one device, as a fraction of the largest one: a few roundings of the type.
fn tolerance(dtype: DType) -> Result<f32> {
    match dtype {
        DType::F32 => Ok(1e-5),
        DType::F16 => Ok(1e-2),
        DType::BF16 => Ok(8e-2),
        other => Err(anyhow!("the weights cannot be {other:?}")),
    }
}

/// Starts the ranks and compares what they compute.
fn run(cli: &Cli) -> Result<bool> {
    let allowed = tolerance(cli.dtype)?;
    let folder = env::temp_dir().join(format!("candle-amdgpu-parallel-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let done = || {
        write_weights(&folder.join(WEIGHTS))?;
        let single = start(cli, &folder, 1)?;
        let scale = single.abs()?.max_all()?.to_scalar::<f32>()?;
        let mut agree = true;
        for &size in &cli.ranks {
            ensure!(
                size > 0 && KV_HEADS.is_multiple_of(size),
                "{KV_HEADS} heads cannot be split {size} ways"
            );
            let difference = largest_difference(&start(cli, &folder, size)?, &single)? / scale;
            println!(
                "{size} {}, {:?}: logits of {} tokens differ from one device's by {difference:.1e} of the largest \
                 one, {allowed} allowed",
                if cli.threads { "threads" } else { "processes" },
                cli.dtype,
                cli.tokens
            );
            agree &= difference <= allowed;
        }
        Ok(agree)
    };
    let agree = done();
    std::fs::remove_dir_all(&folder)?;
    agree
}

const WEIGHTS: &str = "weights.safetensors";
const LOGITS: &str = "logits.safetensors";

/// Runs the model on as many devices, and returns the logits.
fn start(cli: &Cli, folder: &Path, size: usize) -> Result<Tensor> {
    let spawn = |more: &[String]| -> Result<Child> {
        let mut command = Command::new(env::current_exe()?);
        command.args(["--ranks", &size.to_string(), "--tokens", &cli.tokens.to_string()]);
        command.args(["--dtype", cli.dtype.as_str(), "--folder"]).arg(folder).args(more);
        // As many emulated devices, if they are emulated.
        if env::var_os(DEVICE).is_none() && matches!(amdhip64::backend_info()?.kind, BackendKind::Emulator(_))
        {
            command.env(DEVICE, format!("emulator:{}", vec!["gfx1100"; size].join(",")));
        }
        Ok(command.spawn()?)
    };
    let children = if cli.threads {
        vec![spawn(&["--threads".to_owned()])?]
    } else {
        let id = Id::new().map_err(failed)?;
        let id: String = id.internal().iter().map(|&byte| format!("{:02x}", byte as u8)).collect();
        (0..size)
            .map(|rank| spawn(&["--part".to_owned(), rank.to_string(), id.clone()]))
            .collect::<Result<_>>()?
    };
    let ended = children.into_iter().map(|mut child| child.wait()).collect::<Result<Vec<_>, _>>()?;
    ensure!(ended.iter().all(|status| status.success()), "a rank of {size} failed");
    let logits = candle_core::safetensors::load(folder.join(LOGITS), &Device::Cpu)?;
    logits.get("logits").cloned().context("there are no logits")
}

/// NCCL's error with what is known of it.
fn failed(error: result::NcclError) -> anyhow::Error {
    anyhow!("{error} ({})", result::last_error())
}

fn as_process(cli: &Cli, folder: &Path, part: &[String]) -> Result<bool> {
    let [rank, id] = part else { return Err(anyhow!("a rank and an id")) };
    let mut internal = [0; 128];
    for (i, byte) in internal.iter_mut().enumerate() {
        *byte = u8::from_str_radix(id.get(2 * i..2 * i + 2).context("the id is too short")?, 16)? as c_char;
    }
    rank_of(cli, folder, rank.parse()?, Id::uninit(internal))
}

fn as_threads(cli: &Cli, folder: &Path) -> Result<bool> {
    let id = Id::new().map_err(failed)?;
    thread::scope(|scope| {
        let rank = |rank| scope.spawn(move || rank_of(cli, folder, rank, id));
        let threads: Vec<_> = (0..cli.ranks[0]).map(rank).collect();
        threads
            .into_iter()
            .try_fold(true, |all, thread| Ok(all & thread.join().map_err(|_| anyhow!("a rank panicked"))??))
    })
}

/// Generates tokens on one device together with the others; rank 0 keeps the logits.
fn rank_of(cli: &Cli, folder: &Path, rank: usize, id: Id) -> Result<bool> {
    let device = Device::new_cuda(rank)?;
    let stream = device.as_cuda_device()?.cuda_stream();
    let comm = Rc::new(Comm::from_rank(stream, rank, cli.ranks[0], id).map_err(failed)?);
    // SAFETY: nothing changes the file meanwhile.
    let weights = unsafe { ShardedSafeTensors::var_builder(&[folder.join(WEIGHTS)], cli.dtype, &device)? };
    let mut model = Llama::load(&weights, &comm)?;
    let (mut tokens, mut position, mut all) = (PROMPT.to_vec(), 0, Vec::new());
    for _ in 0..cli.tokens {
        let logits = model.forward(&Tensor::new(&tokens[position..], &device)?, position)?;
        position = tokens.len();
        tokens.push(logits.argmax(0)?.to_scalar()?);
        all.push(logits);
    }
    if rank == 0 {
        let logits = Tensor::stack(&all, 0)?.to_device(&Device::Cpu)?;
        candle_core::safetensors::save(&HashMap::from([("logits", logits)]), folder.join(LOGITS))?;
    }
    Ok(true)
}

/// The weights of the whole model.
fn write_weights(path: &Path) -> Result<()> {
    let mut noise = Noise::new(7);
    let mut weights = HashMap::new();
    let mut add = |name: String, shape: &[usize]| -> Result<()> {
        let weight = match shape {
            [_] => (noise.tensor(shape, 0.2, &Device::Cpu)? + 1.0)?,
            _ => noise.tensor(shape, (3.0 / shape[1] as f32).sqrt(), &Device::Cpu)?,
        };
        weights.insert(name, weight);
        Ok(())
    };
    add("embed.weight".to_owned(), &[VOCABULARY, WIDTH])?;
    for layer in 0..LAYERS {
        for (name, shape) in [
            ("norm", &[WIDTH][..]),
            ("q", &[WIDTH, WIDTH]),
            ("k", &[KV_HEADS * HEAD, WIDTH]),
            ("v", &[KV_HEADS * HEAD, WIDTH]),
            ("o", &[WIDTH, WIDTH]),
            ("mlp_norm", &[WIDTH]),
            ("gate", &[INNER, WIDTH]),
            ("up", &[INNER, WIDTH]),
            ("down", &[WIDTH, INNER]),
        ] {
            add(format!("{layer}.{name}.weight"), shape)?;
        }
    }
    add("norm.weight".to_owned(), &[WIDTH])?;
    add("head.weight".to_owned(), &[VOCABULARY, WIDTH])?;
    Ok(candle_core::safetensors::save(&weights, path)?)
}

/// The sum of all ranks' tensors.
struct AllReduce(Rc<Comm>);

// SAFETY: the operation is used in the thread that made it: a model is not sent to others, and has no gradients.
unsafe impl Send for AllReduce {}
// SAFETY: as above.
unsafe impl Sync for AllReduce {}

impl AllReduce {
    fn sum<T: CudaDType + DeviceRepr + NcclType>(
        &self,
        x: &CudaStorage,
        layout: &Layout,
    ) -> candle_core::Result<CudaStorage> {
        let Some((start, end)) = layout.contiguous_offsets() else { bail!("the tensor is not contiguous") };
        let device = x.device().clone();
        // SAFETY: all of it is written.
        let mut sum: CudaSlice<T> = unsafe { device.cuda_stream().alloc(end - start) }.w()?;
        let own = x.as_cuda_slice::<T>()?.slice(start..end);
        self.0.all_reduce(&own, &mut sum, &ReduceOp::Sum).map_err(candle_core::Error::wrap)?;
        Ok(CudaStorage::wrap_cuda_slice(sum, device))
    }
}

impl CustomOp1 for AllReduce {
    fn name(&self) -> &'static str {
        "all_reduce"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> candle_core::Result<(CpuStorage, Shape)> {
        bail!("the model runs on devices only")
    }

    fn cuda_fwd(&self, x: &CudaStorage, layout: &Layout) -> candle_core::Result<(CudaStorage, Shape)> {
        let sum = match x.dtype() {
            DType::F32 => self.sum::<f32>(x, layout)?,
            DType::F16 => self.sum::<f16>(x, layout)?,
            DType::BF16 => self.sum::<bf16>(x, layout)?,
            other => bail!("there is no sum of {other:?}"),
        };
        Ok((sum, layout.shape().clone()))
    }
}

/// Part of the rows of a matrix: of what it computes.
fn rows(
    weights: &ShardedVarBuilder<'_>,
    name: &str,
    shape: [usize; 2],
    comm: &Comm,
) -> candle_core::Result<Linear> {
    split(weights, name, shape, 0, comm)
}

/// Part of the columns of a matrix: of what it sums.
fn columns(
    weights: &ShardedVarBuilder<'_>,
    name: &str,
    shape: [usize; 2],
    comm: &Comm,
) -> candle_core::Result<Linear> {
    split(weights, name, shape, 1, comm)
}

fn split(
    weights: &ShardedVarBuilder<'_>,
    name: &str,
    [rows, columns]: [usize; 2],
    dim: usize,
    comm: &Comm,
) -> candle_core::Result<Linear> {
    let shard = Shard { dim, rank: comm.rank(), world_size: comm.world_size() };
    Ok(Linear::new(weights.pp(name).get_with_hints((rows, columns), "weight", shard)?, None))
}

fn norm(weights: &ShardedVarBuilder<'_>, name: &str) -> candle_core::Result<RmsNorm> {
    Ok(RmsNorm::new(weights.pp(name).get(WIDTH, "weight")?, 1e-5))
}

struct Llama {
    embed: Embedding,
    layers: Vec<Layer>,
    norm: RmsNorm,
    head: Linear,
    dtype: DType,
}

struct Layer {
    norm: RmsNorm,
    q: Linear,
    k: Linear,
    v: Linear,
    o: Linear,
    mlp_norm: RmsNorm,
    gate: Linear,
    up: Linear,
    down: Linear,
    /// Keys and values so far.
    cache: Option<(Tensor, Tensor)>,
    comm: Rc<Comm>,
}

impl Llama {
    fn load(weights: &ShardedVarBuilder<'_>, comm: &Rc<Comm>) -> candle_core::Result<Llama> {
        let layer = |i: usize| {
            let weights = weights.pp(i);
            let kv = [KV_HEADS * HEAD, WIDTH];
            Ok(Layer {
                norm: norm(&weights, "norm")?,
                q: rows(&weights, "q", [WIDTH, WIDTH], comm)?,
                k: rows(&weights, "k", kv, comm)?,
                v: rows(&weights, "v", kv, comm)?,
                o: columns(&weights, "o", [WIDTH, WIDTH], comm)?,
                mlp_norm: norm(&weights, "mlp_norm")?,
                gate: rows(&weights, "gate", [INNER, WIDTH], comm)?,
                up: rows(&weights, "up", [INNER, WIDTH], comm)?,
                down: columns(&weights, "down", [WIDTH, INNER], comm)?,
                cache: None,
                comm: comm.clone(),
            })
        };
        let matrix = |name| weights.pp(name).get((VOCABULARY, WIDTH), "weight");
        Ok(Llama {
            embed: Embedding::new(matrix("embed")?, WIDTH),
            layers: (0..LAYERS).map(layer).collect::<candle_core::Result<_>>()?,
            norm: norm(weights, "norm")?,
            head: Linear::new(matrix("head")?, None),
            dtype: weights.dtype(),
        })
    }

    /// The logits of the token after these, of which the first is number `position`.
    fn forward(&mut self, tokens: &Tensor, position: usize) -> candle_core::Result<Tensor> {
        let mut x = self.embed.forward(&tokens.unsqueeze(0)?)?;
        let (_, len, _) = x.dims3()?;
        let angles = |f: fn(f32) -> f32| {
            let angle = |at: usize, i: usize| (at as f32) / 10_000_f32.powf(2.0 * i as f32 / HEAD as f32);
            let all = (position..position + len).flat_map(|at| (0..HEAD / 2).map(move |i| f(angle(at, i))));
            Tensor::from_vec(all.collect(), (len, HEAD / 2), x.device())?.to_dtype(self.dtype)
        };
        let (cos, sin) = (angles(f32::cos)?, angles(f32::sin)?);
        for layer in &mut self.layers {
            x = layer.forward(&x, &cos, &sin)?;
        }
        let last = self.norm.forward(&x)?.i((0, len - 1))?.unsqueeze(0)?;
        self.head.forward(&last)?.squeeze(0)?.to_dtype(DType::F32)
    }
}

impl Layer {
    fn forward(&mut self, x: &Tensor, cos: &Tensor, sin: &Tensor) -> candle_core::Result<Tensor> {
        let attention = self.attention(&self.norm.forward(x)?, cos, sin)?;
        let x = (x + attention.apply_op1(AllReduce(self.comm.clone()))?)?;
        let inner = self.mlp_norm.forward(&x)?;
        let inner = (ops::silu(&self.gate.forward(&inner)?)? * self.up.forward(&inner)?)?;
        let mlp = self.down.forward(&inner)?;
        &x + mlp.apply_op1(AllReduce(self.comm.clone()))?
    }

    /// This rank's heads.
    fn attention(&mut self, x: &Tensor, cos: &Tensor, sin: &Tensor) -> candle_core::Result<Tensor> {
        let (_, len, _) = x.dims3()?;
        let heads = |x: Tensor| x.reshape((1, len, (), HEAD))?.transpose(1, 2)?.contiguous();
        let q = rope(&heads(self.q.forward(x)?)?, cos, sin)?;
        let (mut k, mut v) = (rope(&heads(self.k.forward(x)?)?, cos, sin)?, heads(self.v.forward(x)?)?);
        if let Some((keys, values)) = &self.cache {
            k = Tensor::cat(&[keys, &k], 2)?;
            v = Tensor::cat(&[values, &v], 2)?;
        }
        self.cache = Some((k.clone(), v.clone()));
        // Each key serves several heads.
        let repeat = |x: &Tensor| {
            let (_, heads, len, _) = x.dims4()?;
            let shape = (1, heads, HEADS / KV_HEADS, len, HEAD);
            x.unsqueeze(2)?.broadcast_as(shape)?.contiguous()?.flatten(1, 2)
        };
        let all = k.dim(2)?;
        let scores = (q.matmul(&repeat(&k)?.t()?.contiguous()?)? * (HEAD as f64).powf(-0.5))?;
        let hidden = (0..len)
            .flat_map(|i| (0..all).map(move |j| if j > all - len + i { f32::NEG_INFINITY } else { 0.0 }));
        let mask = Tensor::from_vec(hidden.collect(), (len, all), x.device())?.to_dtype(x.dtype())?;
        let weights = ops::softmax_last_dim(&scores.broadcast_add(&mask)?)?;
        let mixed = weights.matmul(&repeat(&v)?)?.transpose(1, 2)?.contiguous()?.flatten_from(D::Minus2)?;
        self.o.forward(&mixed)
    }
}
