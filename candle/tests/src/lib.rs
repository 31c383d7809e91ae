//! Every operation of Candle's tensor API that reaches a kernel, run on the device and on Candle's CPU backend.
//!
//! An [`Op`] is a computation on inputs that a [`Make`] creates. On the device it runs in the dtype under test. What it
//! must give comes from the CPU: for floats in f64, from the same rounded inputs, since Candle's CPU backend
//! accumulates f16 and bf16 in themselves; for integers in the dtype itself.

use candle_core::{DType, Device, Result, Shape, Tensor};

pub mod ops;

/// All element types that the device has.
pub const ALL: [DType; 10] = [
    DType::U8,
    DType::U32,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::BF16,
    DType::F16,
    DType::F32,
    DType::F64,
    DType::F8E4M3,
];

/// Those that Candle compares on a GPU.
pub const COMPARED: [DType; 8] =
    [DType::U8, DType::U32, DType::I64, DType::BF16, DType::F16, DType::F32, DType::F64, DType::F8E4M3];

/// The floats that models compute in.
pub const FLOATS: [DType; 4] = [DType::BF16, DType::F16, DType::F32, DType::F64];

/// A computation on inputs that it creates itself.
pub type Run = Box<dyn Fn(&Make) -> Result<Tensor>>;

/// An operation under test.
pub struct Op {
    /// What it is, for messages.
    pub name: String,
    /// The dtypes that it is tested in.
    pub dtypes: Vec<DType>,
    /// By how many units of the dtype's precision results may differ, relative to the largest of 1, the result, and
    /// the result's neighbours in a sum: see [`tolerance`].
    pub units: f64,
    /// The computation.
    pub run: Run,
}

impl Op {
    /// An operation in several dtypes, whose result is rounded about once.
    pub fn new(
        name: impl Into<String>,
        dtypes: &[DType],
        run: impl Fn(&Make) -> Result<Tensor> + 'static,
    ) -> Op {
        Op { name: name.into(), dtypes: dtypes.to_vec(), units: 4.0, run: Box::new(run) }
    }

    /// With another tolerance.
    #[must_use]
    pub fn units(self, units: f64) -> Op {
        Op { units, ..self }
    }

    /// Runs it in a dtype on `device` and says how it differs from what it must give, if it does.
    pub fn check(&self, device: &Device, dtype: DType) -> std::result::Result<(), String> {
        let failed =
            |what: &str, error: candle_core::Error| format!("{} {dtype:?}: {what}: {error}", self.name);
        let expected = (self.run)(&Make::expected(dtype)).map_err(|error| failed("the CPU", error))?;
        let actual = (self.run)(&Make::actual(dtype, device)).map_err(|error| failed("the device", error))?;
        if actual.shape() != expected.shape() {
            return Err(format!("{} {dtype:?}: {:?} for {:?}", self.name, actual.shape(), expected.shape()));
        }
        let bar = tolerance(actual.dtype()) * self.units;
        let (actual, expected) = (
            numbers(&actual).map_err(|e| failed("reading", e))?,
            numbers(&expected).map_err(|e| failed("reading", e))?,
        );
        for (i, (&a, &e)) in actual.iter().zip(&expected).enumerate() {
            let same = a == e || a.is_nan() && e.is_nan() || (a - e).abs() <= bar * e.abs().max(1.0);
            if !same {
                return Err(format!(
                    "{} {dtype:?}: element {i} is {a}, it must be {e} within {bar:.1e}",
                    self.name
                ));
            }
        }
        Ok(())
    }
}

/// Half of the distance of 1 to the next number; 0 for integers.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 2_f64.powi(-53),
        DType::F32 => 2_f64.powi(-24),
        DType::F16 => 2_f64.powi(-11),
        DType::BF16 => 2_f64.powi(-8),
        DType::F8E4M3 => 2_f64.powi(-4),
        _ => 0.0,
    }
}

fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    widen(&tensor.to_device(&Device::Cpu)?)?.flatten_all()?.to_vec1()
}

/// To f64. Candle's conversion from f8e4m3 recurses endlessly, so that one goes through f32.
fn widen(tensor: &Tensor) -> Result<Tensor> {
    let narrow = tensor.dtype() == DType::F8E4M3;
    if narrow { tensor.to_dtype(DType::F32)?.to_dtype(DType::F64) } else { tensor.to_dtype(DType::F64) }
}

/// Makes the inputs of an operation, the same numbers each time.
pub struct Make {
    /// Where.
    pub device: Device,
    /// The dtype under test.
    pub dtype: DType,
    /// Whether to compute in f64 from numbers of the dtype.
    wide: bool,
}

impl Make {
    fn expected(dtype: DType) -> Make {
        Make { device: Device::Cpu, dtype, wide: dtype.is_float() }
    }

    /// For the device.
    pub fn actual(dtype: DType, device: &Device) -> Make {
        Make { device: device.clone(), dtype, wide: false }
    }

    /// Numbers from `low` to `high`; the `seed` tells one input from another. Integers are whole.
    ///
    /// # Errors
    /// What Candle returns.
    pub fn range(&self, shape: impl Into<Shape>, low: f64, high: f64, seed: u64) -> Result<Tensor> {
        let shape = shape.into();
        let number = |i: usize| {
            // The fractional parts of multiples of the golden ratio fill [0, 1) evenly.
            let part = ((i as f64 + 1.0) * 0.618_033_988_749_894_9 + seed as f64 * 0.37).fract();
            let x = low + part * (high - low);
            if self.dtype.is_float() { x } else { x.round() }
        };
        let data: Vec<f64> = (0..shape.elem_count()).map(number).collect();
        self.tensor(Tensor::from_vec(data, shape, &Device::Cpu)?)
    }

    /// Numbers from -4 to 4, from 0 to 9 for types without a sign.
    ///
    /// # Errors
    /// What Candle returns.
    pub fn any(&self, shape: impl Into<Shape>, seed: u64) -> Result<Tensor> {
        let signed = !matches!(self.dtype, DType::U8 | DType::U32);
        let (low, high) = if signed { (-4.0, 4.0) } else { (0.0, 9.0) };
        self.range(shape, low, high, seed)
    }

    /// Whole numbers below `limit` as `dtype`, whatever is under test.
    ///
    /// # Errors
    /// What Candle returns.
    pub fn ids(&self, shape: impl Into<Shape>, limit: usize, dtype: DType, seed: usize) -> Result<Tensor> {
        let shape = shape.into();
        let data: Vec<i64> =
            (0..shape.elem_count()).map(|i| ((i * 7 + seed * 3 + i / 5) % limit) as i64).collect();
        Tensor::from_vec(data, shape, &Device::Cpu)?.to_dtype(dtype)?.to_device(&self.device)
    }

    /// The numbers of an f64 tensor in the dtype under test, or rounded to it and in f64.
    fn tensor(&self, numbers: Tensor) -> Result<Tensor> {
        let rounded = numbers.to_dtype(self.dtype)?;
        let rounded = if self.wide { widen(&rounded)? } else { rounded };
        rounded.to_device(&self.device)
    }

    /// The dtype to convert to, for the dtype under test.
    pub fn own(&self) -> DType {
        if self.wide { DType::F64 } else { self.dtype }
    }
}

/// A way to lay out a tensor.
pub type Layout = (&'static str, fn(&Make, u64) -> Result<Tensor>);

/// Contiguous, strided, offset, broadcast, empty, rank 0, and more elements than one workgroup has lanes.
pub const LAYOUTS: [Layout; 8] = [
    ("contiguous", |make, seed| make.any((3, 5, 7), seed)),
    ("transposed", |make, seed| make.any((3, 5, 7), seed)?.transpose(0, 2)),
    ("offset", |make, seed| make.any((6, 35), seed)?.narrow(0, 2, 3)?.reshape((3, 5, 7))),
    ("narrow", |make, seed| make.any((3, 5, 11), seed)?.narrow(2, 3, 7)),
    ("broadcast", |make, seed| make.any((3, 1, 7), seed)?.broadcast_as((3, 5, 7))),
    ("empty", |make, seed| make.any((2, 0, 3), seed)),
    ("rank 0", |make, seed| make.any((), seed)),
    ("large", |make, seed| make.any(5003, seed)),
];

/// Runs operations on the first device, and fails with all that differ.
///
/// # Panics
/// If one does.
pub fn check(ops: &[Op]) {
    let device = Device::new_cuda(0).expect("there is always an emulated device");
    let checks = ops.iter().flat_map(|op| op.dtypes.iter().map(move |&dtype| (op, dtype)));
    let failures: Vec<String> = checks.filter_map(|(op, dtype)| op.check(&device, dtype).err()).collect();
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}
