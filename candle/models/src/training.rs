//! Training: a small GPT and a small ResNet, on the device and on Candle's CPU backend, from the same first weights and
//! with the same data.

use anyhow::Result;
use candle_core::{D, DType, Device, Module, Tensor, Var};
use candle_nn::loss::cross_entropy;
use candle_nn::optim::{AdamW, Optimizer, ParamsAdamW};
use candle_nn::{Conv2d, Conv2dConfig, Embedding, ops};

use crate::weights::Noise;

/// What is trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Network {
    /// Two blocks of attention and a network of two layers each, on sentences of 16 tokens.
    Gpt,
    /// A convolution and two residual blocks with batch norms, on images of 12 by 12 pixels.
    ResNet,
}

/// The variables of a network, made in the order in which it asks for them.
struct Parameters<'a> {
    noise: Noise,
    dtype: DType,
    device: &'a Device,
    all: Vec<Var>,
}

impl Parameters<'_> {
    fn new<'a>(name: &str, dtype: DType, device: &'a Device) -> Parameters<'a> {
        Parameters { noise: Noise::new(name), dtype, device, all: Vec::new() }
    }

    /// Numbers around `center`.
    fn tensor(&mut self, shape: &[usize], center: f32, scale: f32) -> Result<Tensor> {
        let numbers = (0..shape.iter().product()).map(|_| center + scale * self.noise.draw());
        let tensor = Tensor::from_vec(numbers.collect::<Vec<f32>>(), shape, &Device::Cpu)?;
        self.all.push(Var::from_tensor(&tensor.to_dtype(self.dtype)?.to_device(self.device)?)?);
        Ok(self.all[self.all.len() - 1].as_tensor().clone())
    }

    /// A matrix or convolution that keeps the size of what it is multiplied by.
    fn weights(&mut self, shape: &[usize]) -> Result<Tensor> {
        let inputs: usize = shape[1..].iter().product();
        self.tensor(shape, 0.0, (3.0 / inputs as f32).sqrt())
    }

    /// Factors and terms of a norm.
    fn norm(&mut self, size: usize) -> Result<[Tensor; 2]> {
        Ok([self.tensor(&[size], 1.0, 0.0)?, self.tensor(&[size], 0.0, 0.0)?])
    }
}

/// What a network computes from the data of a step, as scores of classes.
type Forward = Box<dyn Fn(&Tensor) -> Result<Tensor>>;

const VOCABULARY: usize = 16;
const SENTENCE: usize = 16;
const SENTENCES: usize = 4;
const WIDTH: usize = 32;
const HEADS: usize = 2;

fn gpt(parameters: &mut Parameters) -> Result<Forward> {
    struct Block {
        norms: [[Tensor; 2]; 2],
        qkv: Tensor,
        out: Tensor,
        up: Tensor,
        down: Tensor,
    }
    let tokens = parameters.tensor(&[VOCABULARY, WIDTH], 0.0, 0.5)?;
    let places = parameters.tensor(&[SENTENCE, WIDTH], 0.0, 0.5)?;
    let mut blocks = Vec::new();
    for _ in 0..2 {
        blocks.push(Block {
            norms: [parameters.norm(WIDTH)?, parameters.norm(WIDTH)?],
            qkv: parameters.weights(&[3 * WIDTH, WIDTH])?,
            out: parameters.weights(&[WIDTH, WIDTH])?,
            up: parameters.weights(&[4 * WIDTH, WIDTH])?,
            down: parameters.weights(&[WIDTH, 4 * WIDTH])?,
        });
    }
    let norm = parameters.norm(WIDTH)?;
    let hidden: Vec<u8> = (0..SENTENCE * SENTENCE).map(|i| u8::from(i % SENTENCE > i / SENTENCE)).collect();
    let hidden = Tensor::from_vec(hidden, (1, 1, SENTENCE, SENTENCE), parameters.device)?;
    let never = Tensor::new(-1e4_f32, parameters.device)?.to_dtype(parameters.dtype)?;
    let linear = |x: &Tensor, weights: &Tensor| x.broadcast_matmul(&weights.t()?);
    // The fused norm cannot be differentiated in Candle.
    let normed = |x: &Tensor, norm: &[Tensor; 2]| ops::layer_norm_slow(x, &norm[0], &norm[1], 1e-5);
    Ok(Box::new(move |ids| {
        let mut x = Embedding::new(tokens.clone(), WIDTH).forward(ids)?.broadcast_add(&places)?;
        for block in &blocks {
            let heads = linear(&normed(&x, &block.norms[0])?, &block.qkv)?;
            let heads = heads.reshape((SENTENCES, SENTENCE, 3, HEADS, WIDTH / HEADS))?;
            let heads = heads.permute((2, 0, 3, 1, 4))?.contiguous()?;
            let (q, k, v) = (heads.get(0)?, heads.get(1)?, heads.get(2)?);
            let scores = (q.matmul(&k.t()?)? / ((WIDTH / HEADS) as f64).sqrt())?;
            let hidden = hidden.broadcast_as(scores.shape())?;
            let scores = hidden.where_cond(&never.broadcast_as(scores.shape())?, &scores)?;
            let seen = ops::softmax(&scores, D::Minus1)?.matmul(&v)?.transpose(1, 2)?;
            x = (x + linear(&seen.reshape((SENTENCES, SENTENCE, WIDTH))?, &block.out)?)?;
            let inner = linear(&normed(&x, &block.norms[1])?, &block.up)?.gelu()?;
            x = (x + linear(&inner, &block.down)?)?;
        }
        let scores = linear(&normed(&x, &norm)?, &tokens)?;
        Ok(scores.reshape((SENTENCES * SENTENCE, VOCABULARY))?)
    }))
}

const IMAGES: usize = 8;
const SIDE: usize = 12;
const CHANNELS: usize = 8;
const CLASSES: usize = 4;

fn resnet(parameters: &mut Parameters) -> Result<Forward> {
    struct Layer {
        kernel: Tensor,
        norm: [Tensor; 2],
        stride: usize,
    }
    impl Layer {
        fn new(
            parameters: &mut Parameters,
            from: usize,
            to: usize,
            side: usize,
            stride: usize,
        ) -> Result<Layer> {
            let kernel = parameters.weights(&[to, from, side, side])?;
            Ok(Layer { kernel, norm: parameters.norm(to)?, stride })
        }

        /// The convolution and the norm of its results over images and pixels.
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            let config = Conv2dConfig {
                padding: self.kernel.dim(2)? / 2,
                stride: self.stride,
                ..Conv2dConfig::default()
            };
            let x = Conv2d::new(self.kernel.clone(), None, config).forward(x)?;
            let mean = x.mean_keepdim((0, 2, 3))?;
            let off = x.broadcast_sub(&mean)?;
            let deviation = (off.sqr()?.mean_keepdim((0, 2, 3))? + 1e-5)?.sqrt()?;
            let shape = (1, x.dim(1)?, 1, 1);
            let [factors, terms] = &self.norm;
            let scaled = off.broadcast_div(&deviation)?.broadcast_mul(&factors.reshape(shape)?)?;
            Ok(scaled.broadcast_add(&terms.reshape(shape)?)?)
        }
    }
    let stem = Layer::new(parameters, 3, CHANNELS, 3, 1)?;
    let mut blocks = Vec::new();
    for (from, to, stride) in [(CHANNELS, CHANNELS, 1), (CHANNELS, 2 * CHANNELS, 2)] {
        let first = Layer::new(parameters, from, to, 3, stride)?;
        let second = Layer::new(parameters, to, to, 3, 1)?;
        let beside = if from == to { None } else { Some(Layer::new(parameters, from, to, 1, stride)?) };
        blocks.push((first, second, beside));
    }
    let classes = parameters.weights(&[CLASSES, 2 * CHANNELS])?;
    Ok(Box::new(move |images| {
        let mut x = stem.forward(images)?.relu()?.max_pool2d(2)?;
        for (first, second, beside) in &blocks {
            let inner = second.forward(&first.forward(&x)?.relu()?)?;
            let past = beside.as_ref().map_or_else(|| Ok(x.clone()), |layer| layer.forward(&x))?;
            x = (inner + past)?.relu()?;
        }
        Ok(x.mean((2, 3))?.matmul(&classes.t()?)?)
    }))
}

/// Sentences that follow a rule, and the next token of each place.
fn sentences(step: usize, device: &Device) -> Result<[Tensor; 2]> {
    let token = |sentence: usize, place: usize| {
        let (start, stride) = (step * 7 + sentence * 5, 1 + (step + sentence) % 3);
        ((start + stride * place) % VOCABULARY) as u32
    };
    let row = |off: usize| (0..SENTENCES * SENTENCE).map(move |i| token(i / SENTENCE, i % SENTENCE + off));
    let ids = Tensor::from_vec(row(0).collect::<Vec<_>>(), (SENTENCES, SENTENCE), device)?;
    Ok([ids, Tensor::from_vec(row(1).collect::<Vec<_>>(), SENTENCES * SENTENCE, device)?])
}

/// Noisy images of stripes in one of four directions, and which one.
fn stripes(step: usize, dtype: DType, device: &Device) -> Result<[Tensor; 2]> {
    let mut noise = Noise::new(&format!("images {step}"));
    let mut pixels = Vec::with_capacity(IMAGES * 3 * SIDE * SIDE);
    for image in 0..IMAGES {
        let (dx, dy) = [(1, 0), (0, 1), (1, 1), (1, SIDE - 1)][image % CLASSES];
        for i in 0..3 * SIDE * SIDE {
            let place = (i % SIDE) * dx + (i / SIDE % SIDE) * dy + step + image;
            pixels.push(if place % SIDE % 4 < 2 { 1.0 } else { -1.0 } + 0.7 * noise.draw());
        }
    }
    let images = Tensor::from_vec(pixels, (IMAGES, 3, SIDE, SIDE), &Device::Cpu)?;
    let labels: Vec<u32> = (0..IMAGES).map(|image| (image % CLASSES) as u32).collect();
    Ok([images.to_dtype(dtype)?.to_device(device)?, Tensor::new(labels, device)?])
}

/// The loss at each step of AdamW's. The losses themselves are in f32, as in mixed-precision training.
///
/// # Errors
/// What Candle returns.
pub fn train(network: Network, dtype: DType, device: &Device, steps: usize) -> Result<Vec<f32>> {
    let mut parameters = Parameters::new(&format!("{network:?}"), dtype, device);
    let forward = match network {
        Network::Gpt => gpt(&mut parameters)?,
        Network::ResNet => resnet(&mut parameters)?,
    };
    let mut optimizer =
        AdamW::new(parameters.all.clone(), ParamsAdamW { lr: 3e-3, ..ParamsAdamW::default() })?;
    let mut losses = Vec::with_capacity(steps);
    for step in 0..steps {
        let [inputs, labels] = match network {
            Network::Gpt => sentences(step, device)?,
            Network::ResNet => stripes(step, dtype, device)?,
        };
        let loss = cross_entropy(&forward(&inputs)?.to_dtype(DType::F32)?, &labels)?;
        optimizer.backward_step(&loss)?;
        losses.push(loss);
    }
    // Read at the end, so that nothing waits for the device in between.
    losses.iter().map(|loss| Ok(loss.to_scalar::<f32>()?)).collect()
}

/// The losses of one training on the device and on the CPU.
pub struct Curves {
    network: Network,
    dtype: DType,
    device: Vec<f32>,
    cpu: Vec<f32>,
}

impl Curves {
    /// Trains on both, on the CPU in f32, since its backend adds bf16 in bf16.
    ///
    /// # Errors
    /// What Candle returns.
    pub fn new(network: Network, dtype: DType, device: &Device, steps: usize) -> Result<Curves> {
        let device = train(network, dtype, device, steps)?;
        let cpu = train(network, DType::F32, &Device::Cpu, steps)?;
        Ok(Curves { network, dtype, device, cpu })
    }

    /// The largest difference of a step, as a fraction of the CPU's first loss: later ones come close to 0.
    pub fn difference(&self) -> f32 {
        let first = self.cpu.first().copied().unwrap_or(1.0);
        self.device.iter().zip(&self.cpu).map(|(a, b)| (a - b).abs() / first).fold(0.0, f32::max)
    }

    /// The mean of the last tenth of the losses, as a fraction of the first.
    fn learnt(losses: &[f32]) -> f32 {
        let last = &losses[losses.len() - losses.len().div_ceil(10)..];
        last.iter().sum::<f32>() / last.len() as f32 / losses[0]
    }

    /// What is wrong, if something is.
    pub fn wrong(&self) -> Option<String> {
        let steps = self.device.len();
        if !self.device.iter().all(|loss| loss.is_finite()) {
            return Some("a loss is infinite or not a number".to_owned());
        }
        let (device, cpu) = (Curves::learnt(&self.device), Curves::learnt(&self.cpu));
        // From some step on, rounding decides which way training takes; before, the losses are the same.
        if steps >= 100 {
            let learns = device < 0.3 && (device - cpu).abs() < 0.1;
            return (!learns)
                .then(|| format!("the loss falls to {device:.2} of the first, on the CPU to {cpu:.2}"));
        }
        let bound = if self.dtype == DType::F32 { 1e-3 } else { 0.05 };
        let off = self.difference();
        (off > bound).then(|| format!("off by {off:.1e} of the first loss, at most {bound:.0e} is right"))
    }
}

impl std::fmt::Display for Curves {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (network, steps) = (self.network, self.device.len());
        writeln!(
            f,
            "{network:?} in {}, {steps} steps: step, loss on the device, on the CPU in f32",
            self.dtype.as_str()
        )?;
        for at in (0..steps).filter(|at| at % steps.div_ceil(10) == 0 || at + 1 == steps) {
            writeln!(f, "{at:>5} {:>8.4} {:>8.4}", self.device[at], self.cpu[at])?;
        }
        let (device, cpu) = (Curves::learnt(&self.device), Curves::learnt(&self.cpu));
        writeln!(
            f,
            "falls to {device:.3} of the first, on the CPU to {cpu:.3}; off by {:.1e} of it at most",
            self.difference()
        )
    }
}
