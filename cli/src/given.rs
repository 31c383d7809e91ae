//! What is given for a kernel's parameters: numbers, memory, nothing.

use crate::npy;
use anyhow::{Context, Result, bail, ensure};
use candle_amdgpu::reference::{Array, DType, Value};
use candle_amdgpu::verify::{Draw, Grid, Values};
use candle_amdgpu::{AsStream, Count, DeviceBuffer, LaunchBuilder, Stream};
use std::path::PathBuf;

/// What is given for a parameter.
pub enum Given {
    Number(Value),
    Null,
    Memory(Memory),
}

/// Device memory, and what becomes of it.
pub struct Memory {
    pub buffer: DeviceBuffer<u8>,
    pub dtype: DType,
    pub shape: Vec<u64>,
    /// The file for its contents after the launch.
    pub to: Option<PathBuf>,
    /// Whether the kernel may write it.
    pub written: bool,
}

/// What the parameter takes.
#[derive(Clone, Copy)]
pub struct Parameter {
    pub dtype: DType,
    pub pointer: bool,
    /// Whether memory may be written; of a code object without signatures it is not known, and `true`.
    pub written: bool,
    pub nullable: bool,
}

impl Given {
    /// From the text that the help of `run` describes.
    pub fn parse(parameter: Parameter, text: &str, stream: &Stream) -> Result<Given> {
        let Parameter { dtype, pointer, written, nullable } = parameter;
        if !pointer {
            return Ok(Given::Number(value(dtype, text)?));
        }
        if text == "null" {
            ensure!(nullable, "the kernel wants memory here");
            return Ok(Given::Null);
        }
        let (from, to) = match text.split_once('>') {
            Some((from, to)) => (from, Some(PathBuf::from(to))),
            None => (text, None),
        };
        ensure!(to.is_none() || written, "the kernel only reads it: there is no result to write");
        let (data, shape) = contents(dtype, from)?;
        let buffer = DeviceBuffer::from_slice(stream, data.bytes())?;
        Ok(Given::Memory(Memory { buffer, dtype, shape, to, written }))
    }

    /// New memory with these contents.
    pub fn memory(data: &Array, written: bool, stream: &Stream) -> Result<Given> {
        let buffer = DeviceBuffer::from_slice(stream, data.bytes())?;
        let shape = vec![data.len() as u64];
        Ok(Given::Memory(Memory { buffer, dtype: data.dtype(), shape, to: None, written }))
    }

    /// What formulas of lengths and geometries get of it.
    pub fn count(&self) -> Count {
        match self {
            Given::Number(value) if !value.dtype().is_float() => Count(value.to_int()),
            Given::Memory(memory) => Count(memory.len() as i128),
            _ => Count::default(),
        }
    }

    /// Adds it to a launch's arguments.
    pub fn add_to<'a, S: AsStream>(&'a mut self, launch: LaunchBuilder<'a, S>) -> LaunchBuilder<'a, S> {
        match self {
            Given::Number(value) => number(launch, *value),
            Given::Null => launch.null(),
            Given::Memory(Memory { buffer, written: true, .. }) => launch.memory_mut(buffer),
            Given::Memory(Memory { buffer, .. }) => launch.memory(buffer),
        }
    }
}

impl Memory {
    /// Elements.
    pub fn len(&self) -> usize {
        self.buffer.len() / self.dtype.size()
    }

    /// What it holds now.
    pub fn contents(&self) -> Result<Array> {
        Ok(Array::from_bytes(self.dtype, self.buffer.to_vec()?))
    }
}

/// Elements and shape of memory: made up, listed or from a file.
fn contents(dtype: DType, from: &str) -> Result<(Array, Vec<u64>)> {
    let length = |text: &str| -> Result<usize> {
        text.parse().with_context(|| format!("`{text}` is no number of elements"))
    };
    if let Some(len) = from.strip_prefix("zeros:") {
        let len = length(len)?;
        return Ok((Array::zeros(dtype, len), vec![len as u64]));
    }
    if let Some(rest) = from.strip_prefix("random:") {
        let (len, seed) = rest.split_once(':').unwrap_or((rest, "0"));
        let seed = seed.parse().with_context(|| format!("`{seed}` is no seed"))?;
        let len = length(len)?;
        return Ok((random(dtype, len, seed), vec![len as u64]));
    }
    if let Some(list) = from.strip_prefix('[').and_then(|list| list.strip_suffix(']')) {
        let items = list.split(',').map(str::trim).filter(|item| !item.is_empty());
        let values = items.map(|item| value(dtype, item)).collect::<Result<Vec<_>>>()?;
        return Ok((Array::from_fn(dtype, values.len(), |i| values[i]), vec![values.len() as u64]));
    }
    npy::read(from.as_ref(), dtype)
}

/// Floats from −4 to 4, integers from 0 to 100.
fn random(dtype: DType, len: usize, seed: u64) -> Array {
    let mut random = Draw::flat(0, Values::Seed(seed), Grid::Own).random(0);
    Array::from_fn(dtype, len, |_| {
        if dtype.is_float() {
            Value::from_f64(dtype, (random.bits() >> 11) as f64 / (1_u64 << 50) as f64 - 4.0)
        } else {
            Value::from_int(dtype, random.below(101) as i128)
        }
    })
}

/// One number.
fn value(dtype: DType, text: &str) -> Result<Value> {
    if dtype.is_float() {
        let x: f64 = text.parse().with_context(|| format!("`{text}` is no number"))?;
        return Ok(Value::from_f64(dtype, x));
    }
    let x: i128 = text.parse().with_context(|| format!("`{text}` is no integer"))?;
    let value = Value::from_int(dtype, x);
    if value.to_int() != x {
        bail!("{x} is no {dtype}");
    }
    Ok(value)
}

/// The next argument: as many bytes as its type has.
fn number<S: AsStream>(launch: LaunchBuilder<'_, S>, value: Value) -> LaunchBuilder<'_, S> {
    let bits = value.bits();
    match value.dtype().size() {
        1 => launch.value(bits as u8),
        2 => launch.value(bits as u16),
        4 => launch.value(bits as u32),
        _ if value.dtype().is_float() => launch.value(f64::from_bits(bits)),
        _ => launch.value(bits),
    }
}

/// The first elements.
pub fn text(data: &Array) -> String {
    const MOST: usize = 16;
    let one = |i| {
        let value = data.get(i);
        if data.dtype().is_float() { value.to_f64().to_string() } else { value.to_int().to_string() }
    };
    let shown = (0..data.len().min(MOST)).map(one).collect::<Vec<_>>().join(", ");
    let more = if data.len() > MOST { format!(", … {} in all", data.len()) } else { String::new() };
    format!("[{shown}{more}]")
}
