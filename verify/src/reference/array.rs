//! Elements in a row.

use super::{DType, Value};

/// Elements of one type, laid out as in memory.
#[derive(Clone, PartialEq, Eq)]
pub struct Array {
    dtype: DType,
    bytes: Vec<u8>,
}

impl Array {
    /// `len` elements whose bytes are 0.
    pub fn zeros(dtype: DType, len: usize) -> Array {
        Array { dtype, bytes: vec![0; len * dtype.size()] }
    }

    /// Each element by its index.
    pub fn from_fn(dtype: DType, len: usize, mut element: impl FnMut(usize) -> Value) -> Array {
        let mut array = Array::zeros(dtype, len);
        for i in 0..len {
            array.set(i, element(i));
        }
        array
    }

    /// The elements that lie in `bytes`.
    pub fn from_bytes(dtype: DType, bytes: Vec<u8>) -> Array {
        debug_assert_eq!(bytes.len() % dtype.size(), 0);
        Array { dtype, bytes }
    }

    /// The type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.dtype.size()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The element at `index`.
    ///
    /// # Panics
    /// If there is no such element.
    pub fn get(&self, index: usize) -> Value {
        let size = self.dtype.size();
        let mut bits = [0; 8];
        bits[..size].copy_from_slice(&self.bytes[index * size..][..size]);
        Value::new(self.dtype, u64::from_le_bytes(bits))
    }

    /// Replaces the element at `index`.
    ///
    /// # Panics
    /// If there is no such element.
    pub fn set(&mut self, index: usize, value: Value) {
        debug_assert_eq!(value.dtype(), self.dtype);
        let size = self.dtype.size();
        self.bytes[index * size..][..size].copy_from_slice(&value.bits().to_le_bytes()[..size]);
    }
}
