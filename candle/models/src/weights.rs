//! Weights that depend on a tensor's name alone, so that every device has the same, without a file.

use candle_core::{DType, Device, Error, Result, Shape, Tensor};
use candle_nn::Init;
use candle_nn::var_builder::SimpleBackend;

/// Makes a tensor for whatever name and shape a model asks for.
pub struct Random {
    /// The dtype that all numbers are rounded to.
    pub rounded: DType,
    /// Parts of names that are not there.
    pub without: &'static [&'static str],
    /// Shapes of tensors that a model reads before it says what it expects, by the end of their name.
    pub shapes: &'static [(&'static str, &'static [usize])],
}

impl SimpleBackend for Random {
    fn get(&self, shape: Shape, name: &str, hint: Init, dtype: DType, device: &Device) -> Result<Tensor> {
        // A layer with kernels of no elements is one that is not there.
        if !self.contains_tensor(name) || shape.elem_count() == 0 {
            return Err(Error::Msg(format!("{name} is left out")));
        }
        let one = matches!(hint, Init::Const(1.0));
        let weights = Tensor::from_vec(numbers(name, &shape, one), shape, &Device::Cpu)?;
        weights.to_dtype(self.rounded)?.to_dtype(dtype)?.to_device(device)
    }

    fn get_unchecked(&self, name: &str, dtype: DType, device: &Device) -> Result<Tensor> {
        match self.shapes.iter().find(|(end, _)| name.ends_with(end)) {
            Some((_, shape)) => self.get(Shape::from(shape.to_vec()), name, Init::Const(0.0), dtype, device),
            None => Err(Error::Msg(format!("the shape of {name} is not known"))),
        }
    }

    fn contains_tensor(&self, name: &str) -> bool {
        !self.without.iter().any(|part| name.contains(part))
    }
}

/// Ends of the names of factors, which are near 1; other tensors of rank 1 are near 0.
const FACTORS: [&str; 9] = [
    "weight",
    "gamma",
    "scale",
    "alpha",
    "running_var",
    "cluster_usage",
    "weight_g",
    "original0",
    "pre_scale",
];

/// What a tensor of this name and shape has: matrices and kernels keep the size of what they are multiplied by.
pub fn numbers(name: &str, shape: &Shape, near_one: bool) -> Vec<f32> {
    let mut noise = Noise::new(name);
    let dims = shape.dims();
    let inputs: usize = dims.iter().skip(1).product();
    let end = name.rsplit('.').next().unwrap_or(name);
    // Weight norm and Snake have factors of rank 3, all but one of whose dimensions are 1.
    let vector = dims.iter().filter(|&&dim| dim > 1).count() <= 1 && (dims.len() <= 1 || end != "weight");
    let (center, scale) = match vector {
        true if near_one || FACTORS.contains(&end) => (1.0, 0.1),
        true => (0.0, 0.1),
        false => (0.0, (3.0 / inputs.max(1) as f32).sqrt()),
    };
    (0..shape.elem_count()).map(|_| center + scale * noise.draw()).collect()
}

/// A row of numbers in (-1, 1) that is the same everywhere and each time.
pub struct Noise(u64);

impl Noise {
    /// The row with this name.
    pub fn new(name: &str) -> Noise {
        // FNV-1a, and a step of SplitMix64 to mix its bits.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        let mixed = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Noise((mixed ^ (mixed >> 27)) | 1)
    }

    /// The next number.
    pub fn draw(&mut self) -> f32 {
        // xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators", 2016).
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40) as f32;
        bits / (1 << 23) as f32 - 1.0
    }
}
