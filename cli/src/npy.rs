//! Elements in NumPy's files.

use crate::arg_value::{CHUNK, Memory};
use anyhow::{Context, Result, ensure};
use candle_amdgpu_verify::reference::{Array, DType};
use npyz::{DType as NpyType, NpyFile, NpyHeader, Order, WriteOptions, WriterBuilder};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

/// NumPy's name for a type; types that it lacks are stored as their bits.
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
    let header = header(&mut file).with_context(|| format!("{} is not a .npy file", path.display()))?;
    let header =
        header.with_context(|| format!("{}: its array is larger than any memory", path.display()))?;
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
    let len = len.with_context(|| format!("{}: its array is larger than any memory", path.display()))?;
    let mut bytes = Vec::new();
    NpyFile::with_header(header, file).into_inner().take(len as u64).read_to_end(&mut bytes)?;
    ensure!(bytes.len() == len, "{} ends after {} of {len} bytes", path.display(), bytes.len());
    Ok((Array::from_bytes(dtype, bytes), shape))
}

/// Bytes that a header may have.
const MOST_HEADER: usize = 1 << 16;

/// The header at the start of a file; `None` if its sizes are such that `npyz` could not multiply them.
fn header(file: &mut impl Read) -> Result<Option<NpyHeader>> {
    let mut bytes = vec![0; 10];
    file.read_exact(&mut bytes)?;
    // The magic number, the version, and the length of the text in 2 or, since version 2, in 4 bytes.
    if bytes[6] >= 2 {
        bytes.resize(12, 0);
        file.read_exact(&mut bytes[10..])?;
    }
    let len = bytes[8..].iter().rev().fold(0, |len, &byte| len << 8 | usize::from(byte));
    ensure!(len <= MOST_HEADER, "its header claims {len} bytes");
    let start = bytes.len();
    bytes.resize(start + len, 0);
    file.read_exact(&mut bytes[start..])?;
    let text = String::from_utf8_lossy(&bytes[start..]);
    let shape = text.split_once("shape").and_then(|(_, rest)| rest.split_once('(')?.1.split_once(')'));
    let mut sizes =
        shape.map_or("", |(shape, _)| shape).split(',').filter_map(|size| size.trim().parse().ok());
    // Strides are products of sizes, also where another size is 0.
    let is_small = sizes.try_fold(1_u64, |product, size: u64| product.checked_mul(size.max(1))).is_some();
    Ok(if is_small { Some(NpyHeader::from_reader(&bytes[..])?) } else { None })
}

/// Writes what memory holds.
pub fn write(path: &Path, memory: &Memory) -> Result<()> {
    let write = || -> Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        let dtype = NpyType::Plain(name(memory.dtype).parse()?);
        let header = WriteOptions::new_header_only().dtype(dtype).shape(&memory.shape);
        header.writer(&mut file).write_header_only()?;
        for start in (0..memory.len()).step_by(CHUNK) {
            file.write_all(memory.part(start, CHUNK)?.bytes())?;
        }
        Ok(file.flush()?)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}
