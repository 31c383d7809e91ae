//! Matrices in memory: column by column.

use std::ffi::c_int;

use half::{bf16, f16};

use crate::hip::Hip;
use crate::status::*;

/// Types of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    F16,
    Bf16,
    F32,
    F64,
    I8,
    I32,
}

impl Type {
    /// By hipBLAS 2's numbers or HIP's.
    pub fn of(number: c_int) -> Result<Type, hipblasStatus_t> {
        Ok(match number {
            150 | 2 => Type::F16,
            151 | 0 => Type::F32,
            152 | 1 => Type::F64,
            160 | 3 => Type::I8,
            162 | 10 => Type::I32,
            168 | 14 => Type::Bf16,
            _ => return Err(HIPBLAS_STATUS_NOT_SUPPORTED),
        })
    }

    /// What is computed in, which says the scalars' type: hipBLAS 2 gives a type, hipBLAS 3 a number of its own.
    pub fn of_compute(number: c_int) -> Result<Type, hipblasStatus_t> {
        match number {
            0 | 1 => Ok(Type::F16),
            2..=6 => Ok(Type::F32),
            7 | 8 => Ok(Type::F64),
            9 | 10 => Ok(Type::I32),
            150.. => Type::of(number),
            _ => Err(HIPBLAS_STATUS_NOT_SUPPORTED),
        }
    }

    pub fn bytes(self) -> usize {
        match self {
            Type::I8 => 1,
            Type::F16 | Type::Bf16 => 2,
            Type::F32 | Type::I32 => 4,
            Type::F64 => 8,
        }
    }

    /// The element at an address.
    ///
    /// # Safety
    /// It can be read.
    pub unsafe fn read(self, address: usize) -> f64 {
        // SAFETY: the caller's contract.
        unsafe {
            match self {
                Type::F16 => (address as *const f16).read_unaligned().to_f64(),
                Type::Bf16 => (address as *const bf16).read_unaligned().to_f64(),
                Type::F32 => (address as *const f32).read_unaligned().into(),
                Type::F64 => (address as *const f64).read_unaligned(),
                Type::I8 => (address as *const i8).read_unaligned().into(),
                Type::I32 => (address as *const i32).read_unaligned().into(),
            }
        }
    }

    /// Writes an element, rounded; integers wrap.
    ///
    /// # Safety
    /// It can be written.
    pub unsafe fn write(self, address: usize, value: f64) {
        // SAFETY: the caller's contract.
        unsafe {
            match self {
                Type::F16 => (address as *mut f16).write_unaligned(f16::from_f64(value)),
                Type::Bf16 => (address as *mut bf16).write_unaligned(bf16::from_f64(value)),
                Type::F32 => (address as *mut f32).write_unaligned(value as f32),
                Type::F64 => (address as *mut f64).write_unaligned(value),
                Type::I8 => (address as *mut i8).write_unaligned(value as i64 as i8),
                Type::I32 => (address as *mut i32).write_unaligned(value as i64 as i32),
            }
        }
    }
}

/// What is done to an operand first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    None,
    Transpose,
}

impl Op {
    /// By hipBLAS's numbers; of real matrices the conjugate is the transpose.
    pub fn of(number: c_int) -> Result<Op, hipblasStatus_t> {
        match number {
            111 => Ok(Op::None),
            112 | 113 => Ok(Op::Transpose),
            _ => Err(HIPBLAS_STATUS_INVALID_ENUM),
        }
    }

    /// Rows and columns in memory of what has these behind the operation.
    pub fn stored(self, rows: usize, columns: usize) -> (usize, usize) {
        match self {
            Op::None => (rows, columns),
            Op::Transpose => (columns, rows),
        }
    }
}

/// A matrix in a device's memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix {
    pub address: usize,
    pub kind: Type,
    pub rows: usize,
    pub columns: usize,
    /// Elements from one column to the next.
    pub leading: usize,
}

impl Matrix {
    /// Refuses one that does not lie within an allocation.
    pub fn check(&self, hip: &Hip, name: &str, writes: bool) -> Result<(), String> {
        if self.rows == 0 || self.columns == 0 {
            return Ok(());
        }
        let elements = (self.columns - 1).checked_mul(self.leading).and_then(|n| n.checked_add(self.rows));
        let bytes = elements.and_then(|elements| elements.checked_mul(self.kind.bytes()));
        if bytes.is_some_and(|bytes| hip.may_access(self.address, bytes, writes)) {
            return Ok(());
        }
        Err(format!(
            "matrix {name} of {} x {} {:?} at {:#x}, {} from column to column, does not lie within one allocation; nothing was \
             computed",
            self.rows, self.columns, self.kind, self.address, self.leading
        ))
    }

    /// Where an element is.
    pub fn at(&self, row: usize, column: usize) -> usize {
        self.address + (column * self.leading + row) * self.kind.bytes()
    }

    /// Its elements behind an operation, column by column.
    ///
    /// # Safety
    /// [`Matrix::check`] has accepted it.
    pub unsafe fn read(&self, op: Op) -> Vec<f64> {
        let (rows, columns) = op.stored(self.rows, self.columns);
        let mut elements = Vec::with_capacity(rows * columns);
        for column in 0..columns {
            for row in 0..rows {
                let at = match op {
                    Op::None => self.at(row, column),
                    Op::Transpose => self.at(column, row),
                };
                // SAFETY: the caller's contract; the position lies within the matrix.
                elements.push(unsafe { self.kind.read(at) });
            }
        }
        elements
    }
}
