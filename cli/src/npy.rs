//! Elements in NumPy's files.

use anyhow::{Context, Result, ensure};
use candle_amdgpu::reference::{Array, DType};
use npyz::{DType as NpyType, NpyFile, NpyHeader, Order, WriteOptions, WriterBuilder};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

/// How NumPy calls a type; one that it does not know goes by its bits.
fn name(dtype: DType) -> &'static str {
    match dtype {
        DType::U8 | DType::F8E4M3 => "|u1",
        DType::I8 => "|i1",
        DType::U16 | DType::Bf16 => "<u2",
        DType::I16 => "<i2",
        DType::F16 => "<f2",
        DType::U32 => "<u4",
        DType::I32 => "<i4",
        DType::F32 => "<f4",
        DType::U64 | DType::Usize => "<u8",
        DType::I64 => "<i8",
        DType::F64 => "<f8",
    }
}

/// Elements and shape of a file, which must be of this type and in C order.
pub fn read(path: &Path, dtype: DType) -> Result<(Array, Vec<u64>)> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut file = BufReader::new(file);
    let header =
        NpyHeader::from_reader(&mut file).with_context(|| format!("{} is no .npy file", path.display()))?;
    let (have, want) = (header.dtype().descr(), name(dtype));
    ensure!(
        have.trim_matches('\'') == want,
        "{} has elements of type {have}; the kernel takes {dtype}, which is '{want}'",
        path.display()
    );
    let shape = header.shape().to_vec();
    ensure!(
        header.order() == Order::C || shape.len() < 2,
        "{} is in Fortran order; write it with numpy.ascontiguousarray",
        path.display()
    );
    let len = usize::try_from(header.len()).ok().and_then(|len| len.checked_mul(dtype.size()));
    let len = len.with_context(|| format!("{} has more elements than memory", path.display()))?;
    let mut bytes = Vec::new();
    NpyFile::with_header(header, file).into_inner().take(len as u64).read_to_end(&mut bytes)?;
    ensure!(bytes.len() == len, "{} ends after {} of {len} bytes", path.display(), bytes.len());
    Ok((Array::from_bytes(dtype, bytes), shape))
}

/// Writes elements of this shape.
pub fn write(path: &Path, data: &Array, shape: &[u64]) -> Result<()> {
    let write = || -> Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        let dtype = NpyType::Plain(name(data.dtype()).parse()?);
        WriteOptions::new_header_only().dtype(dtype).shape(shape).writer(&mut file).write_header_only()?;
        file.write_all(data.bytes())?;
        Ok(file.flush()?)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}
