//! The floating-point tensors of a safetensors file.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorInfo};

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error("cannot read {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(
        "{} is truncated or too long: it has {bytes} bytes, which is not what its header says; \
         get the file again",
        path.display()
    )]
    WrongLength { path: PathBuf, bytes: usize, source: SafeTensorError },
    #[error("{} is not a safetensors file", path.display())]
    NotSafetensors { path: PathBuf, source: SafeTensorError },
    #[error("{} has no tensor of type F16, BF16, F32 or F64 to run on; it has {skipped}", path.display())]
    NoFloats { path: PathBuf, skipped: String },
}

/// A file in memory, with the place of each tensor.
pub struct Checkpoint {
    bytes: Vec<u8>,
    floats: Vec<Entry>,
    skipped: BTreeMap<String, usize>,
}

struct Entry {
    name: String,
    info: TensorInfo,
    range: Range<usize>,
}

/// One tensor of floating-point numbers.
pub struct Tensor<'a> {
    pub name: &'a str,
    pub shape: &'a [usize],
    dtype: Dtype,
    bytes: &'a [u8],
}

impl Checkpoint {
    /// Reads a file and checks that it is whole.
    pub fn open(path: &Path) -> Result<Self, CheckpointError> {
        let owned = || path.to_owned();
        let bytes = fs::read(path).map_err(|source| CheckpointError::Unreadable { path: owned(), source })?;
        let (header, metadata) = SafeTensors::read_metadata(&bytes).map_err(|source| match source {
            SafeTensorError::MetadataIncompleteBuffer
            | SafeTensorError::InvalidHeaderLength
            | SafeTensorError::HeaderTooSmall => {
                CheckpointError::WrongLength { path: owned(), bytes: bytes.len(), source }
            }
            source => CheckpointError::NotSafetensors { path: owned(), source },
        })?;
        // The data begins after the header, which follows its own length.
        let data = size_of::<u64>() + header;

        let mut floats = Vec::new();
        let mut skipped = BTreeMap::new();
        for name in metadata.offset_keys() {
            let info = metadata.info(&name).expect("the key is the metadata's own").clone();
            let (start, end) = info.data_offsets;
            if matches!(info.dtype, Dtype::F16 | Dtype::BF16 | Dtype::F32 | Dtype::F64) {
                floats.push(Entry { name, info, range: data + start..data + end });
            } else {
                *skipped.entry(info.dtype.to_string()).or_insert(0) += 1;
            }
        }
        let checkpoint = Self { bytes, floats, skipped };
        if checkpoint.floats.is_empty() {
            let skipped = checkpoint.skipped().unwrap_or_else(|| "no tensors at all".to_owned());
            return Err(CheckpointError::NoFloats { path: owned(), skipped });
        }
        Ok(checkpoint)
    }

    /// The tensors, in the order of the file.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = Tensor<'_>> {
        self.floats.iter().map(|entry| Tensor {
            name: &entry.name,
            shape: &entry.info.shape,
            dtype: entry.info.dtype,
            bytes: &self.bytes[entry.range.clone()],
        })
    }

    /// The number of elements of all tensors.
    pub fn elements(&self) -> usize {
        self.floats.iter().map(|entry| entry.info.shape.iter().product::<usize>()).sum()
    }

    /// What the file has besides floating-point tensors, like `1 of type I64`.
    pub fn skipped(&self) -> Option<String> {
        let parts = self.skipped.iter().map(|(dtype, count)| format!("{count} of type {dtype}"));
        (!self.skipped.is_empty()).then(|| parts.collect::<Vec<_>>().join(", "))
    }
}

impl Tensor<'_> {
    /// The elements, each converted from its exact value.
    pub fn convert<T>(&self, from_f64: impl Fn(f64) -> T) -> Vec<T> {
        fn each<T, const N: usize>(bytes: &[u8], to: impl Fn([u8; N]) -> T) -> Vec<T> {
            bytes.as_chunks::<N>().0.iter().map(|chunk| to(*chunk)).collect()
        }
        match self.dtype {
            Dtype::F16 => each(self.bytes, |b| from_f64(f16::from_le_bytes(b).to_f64())),
            Dtype::BF16 => each(self.bytes, |b| from_f64(bf16::from_le_bytes(b).to_f64())),
            Dtype::F32 => each(self.bytes, |b| from_f64(f32::from_le_bytes(b).into())),
            Dtype::F64 => each(self.bytes, |b| from_f64(f64::from_le_bytes(b))),
            other => unreachable!("{other} is not among the tensors"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use safetensors::tensor::{TensorView, serialize};

    /// A file with one F32 tensor [1, -2, 0.5], one BF16 scalar and one of I64.
    fn file() -> Vec<u8> {
        let floats: Vec<u8> = [1.0f32, -2.0, 0.5].iter().flat_map(|x| x.to_le_bytes()).collect();
        let half = bf16::from_f32(3.0).to_le_bytes();
        let tensors = [
            ("weights", TensorView::new(Dtype::F32, vec![3], &floats).unwrap()),
            ("scale", TensorView::new(Dtype::BF16, vec![], &half).unwrap()),
            ("positions", TensorView::new(Dtype::I64, vec![1], &[0; 8]).unwrap()),
        ];
        serialize(tensors, None).unwrap()
    }

    fn open(bytes: &[u8]) -> Result<Checkpoint, CheckpointError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        fs::write(&path, bytes).unwrap();
        Checkpoint::open(&path)
    }

    fn error(bytes: &[u8]) -> String {
        let error = open(bytes).err().expect("the file is broken");
        // As main prints it, with the reason behind.
        format!("{:#}", anyhow::Error::from(error))
    }

    #[test]
    fn float_tensors_are_read_and_others_are_told() {
        let checkpoint = open(&file()).unwrap();
        let mut found: Vec<_> =
            checkpoint.tensors().map(|t| (t.name.to_owned(), t.shape.to_vec(), t.convert(|x| x))).collect();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        let expected =
            [("scale".to_owned(), vec![], vec![3.0]), ("weights".to_owned(), vec![3], vec![1.0, -2.0, 0.5])];
        assert_eq!(found, expected);
        assert_eq!(checkpoint.elements(), 4);
        assert_eq!(checkpoint.skipped().unwrap(), "1 of type I64");
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Checkpoint::open(Path::new("/nowhere/m.safetensors")).err().unwrap();
        assert_eq!(
            format!("{:#}", anyhow::Error::from(error)),
            "cannot read /nowhere/m.safetensors: No such file or directory (os error 2)"
        );
    }

    #[test]
    fn every_truncation_is_an_error_that_says_so() {
        let whole = file();
        for length in 0..whole.len() {
            let error = error(&whole[..length]);
            assert!(error.contains(&format!("it has {length} bytes")), "{length}: {error}");
            assert!(error.contains("truncated"), "{length}: {error}");
        }
    }

    #[test]
    fn another_kind_of_file_is_said_to_be_no_safetensors() {
        for bytes in [&b"PK\x03\x04 a zip archive, say"[..], b"<html><body>Not found</body></html>"] {
            let error = error(bytes);
            assert!(error.ends_with("is not a safetensors file: header too large"), "{error}");
        }
        let error = error(b"\x0a\0\0\0\0\0\0\0{\"a\": 1, }");
        assert!(error.contains("is not a safetensors file: invalid JSON in header"), "{error}");
    }

    #[test]
    fn integers_alone_are_an_error_that_lists_them() {
        let tensors = [("ids", TensorView::new(Dtype::I64, vec![2], &[0; 16]).unwrap())];
        let error = error(&serialize(tensors, None).unwrap());
        assert!(error.ends_with("it has 1 of type I64"), "{error}");
    }
}
