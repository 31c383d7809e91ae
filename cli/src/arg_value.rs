//! The values for a kernel's parameters: numbers, memory, nothing.

use crate::npy;
use anyhow::{Context, Result, bail, ensure};
use candle_amdgpu::{AsStream, Device, DeviceBuffer, LaunchBuilder, Stream};
use candle_amdgpu_verify::reference::{Array, DType, Value};
use candle_amdgpu_verify::{Draw, Grid, Values};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Elements that are made up, printed or written at a time.
pub const CHUNK: usize = 1 << 20;

/// What is given for a parameter.
pub enum ArgValue {
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

impl ArgValue {
    /// From the text that the help of `run` describes.
    pub fn parse(parameter: Parameter, text: &OsStr, stream: &Stream) -> Result<ArgValue> {
        let Parameter { dtype, pointer, written, nullable } = parameter;
        if !pointer {
            let text = text.to_str().context("expected a number")?;
            return Ok(ArgValue::Number(value(dtype, text)?));
        }
        if text == "null" {
            ensure!(nullable, "the kernel needs memory here");
            return Ok(ArgValue::Null);
        }
        let (from, to) = match split_once(text, b'>') {
            Some((from, to)) => (from, Some(PathBuf::from(to))),
            None => (text.to_owned(), None),
        };
        ensure!(to.is_none() || written, "the kernel only reads it, so there is no result to write");
        let (buffer, shape) = contents(dtype, &from, stream)?;
        Ok(ArgValue::Memory(Memory { buffer, dtype, shape, to, written }))
    }

    /// New memory with these contents.
    pub fn memory(data: &Array, written: bool, stream: &Stream) -> Result<ArgValue> {
        let buffer = DeviceBuffer::from_slice(stream, data.bytes())?;
        let shape = vec![data.len() as u64];
        Ok(ArgValue::Memory(Memory { buffer, dtype: data.dtype(), shape, to: None, written }))
    }

    /// New memory with made-up contents.
    pub fn made_up(dtype: DType, len: usize, seed: u64, written: bool, stream: &Stream) -> Result<ArgValue> {
        let buffer = random(dtype, len, seed, stream)?;
        Ok(ArgValue::Memory(Memory { buffer, dtype, shape: vec![len as u64], to: None, written }))
    }

    /// Adds it to a launch's arguments.
    pub fn add_to<'a, S: AsStream>(&'a mut self, launch: LaunchBuilder<'a, S>) -> LaunchBuilder<'a, S> {
        match self {
            ArgValue::Number(value) => number(launch, *value),
            ArgValue::Null => launch.null(),
            ArgValue::Memory(Memory { buffer, written: true, .. }) => launch.memory_mut(buffer),
            ArgValue::Memory(Memory { buffer, .. }) => launch.memory(buffer),
        }
    }
}

impl Memory {
    /// Elements.
    pub fn len(&self) -> usize {
        self.buffer.len() / self.dtype.size()
    }

    /// What it holds now, from element `start` on, at most this many elements.
    pub fn part(&self, start: usize, most: usize) -> Result<Array> {
        let size = self.dtype.size();
        let end = start.saturating_add(most).min(self.len());
        let bytes = self.buffer.slice(start.min(end) * size..end * size)?.to_vec()?;
        Ok(Array::from_bytes(self.dtype, bytes))
    }

    /// Its first elements.
    pub fn first(&self, most: usize) -> Result<Array> {
        self.part(0, most)
    }
}

/// The two sides of the first such byte, as `str::split_once` has them.
pub fn split_once(text: &OsStr, at: u8) -> Option<(OsString, OsString)> {
    let bytes = text.as_bytes();
    let position = bytes.iter().position(|&byte| byte == at)?;
    let owned = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    Some((owned(&bytes[..position]), owned(&bytes[position + 1..])))
}

/// Memory that is made up, listed or from a file, and its shape.
fn contents(dtype: DType, from: &OsStr, stream: &Stream) -> Result<(DeviceBuffer<u8>, Vec<u64>)> {
    let length = |text: &str| -> Result<usize> {
        text.parse().with_context(|| format!("`{text}` is not a number of elements"))
    };
    let text = from.to_str().unwrap_or_default();
    if let Some(len) = text.strip_prefix("zeros:") {
        let len = length(len)?;
        return Ok((DeviceBuffer::zeros(stream, bytes(dtype, len)?)?, vec![len as u64]));
    }
    if let Some(rest) = text.strip_prefix("random:") {
        let (len, seed) = rest.split_once(':').unwrap_or((rest, "0"));
        let seed = seed.parse().with_context(|| format!("`{seed}` is not a seed: a whole number is"))?;
        let len = length(len)?;
        return Ok((random(dtype, len, seed, stream)?, vec![len as u64]));
    }
    let (data, shape) = match text.strip_prefix('[').and_then(|list| list.strip_suffix(']')) {
        Some(list) => {
            let items = list.split(',').map(str::trim).filter(|item| !item.is_empty());
            let values = items.map(|item| value(dtype, item)).collect::<Result<Vec<_>>>()?;
            (Array::from_fn(dtype, values.len(), |i| values[i]), vec![values.len() as u64])
        }
        None => npy::read(from.as_ref(), dtype)?,
    };
    Ok((DeviceBuffer::from_slice(stream, data.bytes())?, shape))
}

/// Bytes of this many elements.
fn bytes(dtype: DType, len: usize) -> Result<usize> {
    len.checked_mul(dtype.size())
        .with_context(|| format!("{len} elements of {dtype} are more than can be addressed"))
}

/// Whether this machine has so much memory to fill, for an emulated device.
pub fn fits(bytes: u64, device: &Device) -> Result<()> {
    let free = device.memory_info()?.free as u64;
    ensure!(bytes <= free, "{bytes} bytes of memory are needed; {device} has {free} free");
    if amdhip64::emulator(device.ordinal()).is_some()
        && let Some(free) = available()
    {
        ensure!(bytes <= free, "{bytes} bytes of memory are needed; this machine has {free} free");
    }
    Ok(())
}

/// Bytes that the system can give without swapping, where it says so.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Floats from −4 to 4, integers from 0 to 100.
fn random(dtype: DType, len: usize, seed: u64, stream: &Stream) -> Result<DeviceBuffer<u8>> {
    let mut random = Draw::flat(0, Values::Seed(seed), Grid::Own).random(0);
    let total = bytes(dtype, len)?;
    fits(total as u64, stream.device())?;
    let mut buffer = DeviceBuffer::alloc(stream, total)?;
    for start in (0..len).step_by(CHUNK) {
        let part = Array::from_fn(dtype, CHUNK.min(len - start), |_| {
            if dtype.is_float() {
                Value::from_f64(dtype, (random.bits() >> 11) as f64 / (1_u64 << 50) as f64 - 4.0)
            } else {
                Value::from_int(dtype, random.below(101) as i128)
            }
        });
        let at = start * dtype.size();
        buffer.slice_mut(at..at + part.bytes().len())?.copy_from_slice(part.bytes())?;
    }
    Ok(buffer)
}

/// One number.
fn value(dtype: DType, text: &str) -> Result<Value> {
    if dtype.is_float() {
        let x: f64 = text.parse().with_context(|| format!("`{text}` is not a number"))?;
        return Ok(Value::from_f64(dtype, x));
    }
    let x: i128 = text.parse().with_context(|| format!("`{text}` is not a whole number"))?;
    let value = Value::from_int(dtype, x);
    if value.to_int() != x {
        bail!("{x} is out of range for {dtype}");
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
pub fn text(memory: &Memory) -> Result<String> {
    const MOST: usize = 16;
    let data = memory.first(MOST)?;
    let one = |i| {
        let value = data.get(i);
        if data.dtype().is_float() { value.to_f64().to_string() } else { value.to_int().to_string() }
    };
    let shown = (0..data.len()).map(one).collect::<Vec<_>>().join(", ");
    let more = if memory.len() > MOST { format!(", … {} in all", memory.len()) } else { String::new() };
    Ok(format!("[{shown}{more}]"))
}
