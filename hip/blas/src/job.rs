//! Work that a stream runs.

use std::ffi::{c_int, c_void};

use crate::hip::Hip;
use crate::matrix::{Matrix, Op, Type};
use crate::status::*;

/// A piece of work.
pub(crate) enum Job {
    Gemm(Gemm),
    Trsm(Trsm),
}

/// alpha or beta.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scalar {
    Value(f64),
    /// It is read when the work runs.
    At(usize, Type),
}

impl Scalar {
    /// # Safety
    /// Unless it lies in device memory, the address is null or valid for the type.
    pub unsafe fn new(address: *const c_void, kind: Type, on_device: bool) -> Option<Scalar> {
        if address.is_null() {
            return None;
        }
        Some(match on_device {
            true => Scalar::At(address as usize, kind),
            // SAFETY: the caller's contract.
            false => Scalar::Value(unsafe { kind.read(address as usize) }),
        })
    }

    fn get(self, hip: &Hip) -> Result<f64, String> {
        match self {
            Scalar::Value(value) => Ok(value),
            Scalar::At(address, kind) if hip.may_access(address, kind.bytes(), false) => {
                // SAFETY: it lies within an allocation.
                Ok(unsafe { kind.read(address) })
            }
            Scalar::At(address, _) => Err(format!("the scalar at {address:#x} is not in device memory")),
        }
    }
}

/// Several of the same.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Batch {
    /// How many, and elements from one to the next.
    Strided(usize, [i64; 3]),
    /// How many; the operands are lists of addresses.
    Pointers(usize),
}

impl Batch {
    pub fn one() -> Result<Batch, hipblasStatus_t> {
        Ok(Batch::Strided(1, [0; 3]))
    }

    pub fn strided(count: c_int, a: i64, b: i64, c: i64) -> Result<Batch, hipblasStatus_t> {
        Ok(Batch::Strided(usize::try_from(count).map_err(|_| HIPBLAS_STATUS_INVALID_VALUE)?, [a, b, c]))
    }

    pub fn pointers(count: c_int) -> Result<Batch, hipblasStatus_t> {
        Ok(Batch::Pointers(usize::try_from(count).map_err(|_| HIPBLAS_STATUS_INVALID_VALUE)?))
    }
}

/// The `n`th address of a list in device memory.
fn pointer(hip: &Hip, list: usize, n: usize) -> Result<usize, String> {
    let at = list + n * size_of::<usize>();
    if !hip.may_access(at, size_of::<usize>(), false) {
        return Err(format!("the list of matrices at {list:#x} is not in device memory"));
    }
    // SAFETY: it lies within an allocation.
    Ok(unsafe { (at as *const usize).read_unaligned() })
}

/// `D = alpha op(A) op(B) + beta C`.
pub(crate) struct Gemm {
    pub ops: (Op, Op),
    pub size: (usize, usize, usize),
    pub alpha: Scalar,
    pub beta: Scalar,
    pub types: (Type, Type, Type, Type),
    pub operands: (usize, usize, usize, usize),
    pub leading: (i64, i64, i64, i64),
    pub batch: Batch,
}

impl Gemm {
    /// Refuses wrong arguments.
    pub fn check(&self) -> Result<(), hipblasStatus_t> {
        let (m, n, k) = self.size;
        let fits =
            |leading: i64, rows: usize| usize::try_from(leading).is_ok_and(|leading| leading >= rows.max(1));
        let (rows_a, rows_b) = (self.ops.0.stored(m, k).0, self.ops.1.stored(k, n).0);
        let (a, b, c, d) = self.leading;
        if !(fits(a, rows_a) && fits(b, rows_b) && fits(c, m) && fits(d, m)) {
            return Err(HIPBLAS_STATUS_INVALID_VALUE);
        }
        let is_empty = m == 0 || n == 0;
        let (a, b, c, d) = self.operands;
        if !is_empty && (k != 0 && (a == 0 || b == 0) || c == 0 || d == 0) {
            return Err(HIPBLAS_STATUS_INVALID_VALUE);
        }
        Ok(())
    }

    fn run(&self, hip: &Hip) -> Result<(), String> {
        let (alpha, beta) = (self.alpha.get(hip)?, self.beta.get(hip)?);
        let count = match self.batch {
            Batch::Strided(count, _) | Batch::Pointers(count) => count,
        };
        for nth in 0..count {
            let (a, b, c, d) = self.operands;
            let stride = |base: usize, stride: i64, kind: Type| {
                base.wrapping_add_signed((stride as isize).wrapping_mul(nth as isize * kind.bytes() as isize))
            };
            let (a, b, c, d) = match self.batch {
                Batch::Strided(_, [to_a, to_b, to_c]) => (
                    stride(a, to_a, self.types.0),
                    stride(b, to_b, self.types.1),
                    stride(c, to_c, self.types.2),
                    stride(d, to_c, self.types.3),
                ),
                Batch::Pointers(_) => {
                    let c = pointer(hip, c, nth)?;
                    (pointer(hip, a, nth)?, pointer(hip, b, nth)?, c, c)
                }
            };
            self.one(hip, (alpha, beta), (a, b, c, d))?;
        }
        Ok(())
    }

    fn one(
        &self,
        hip: &Hip,
        (alpha, beta): (f64, f64),
        (a, b, c, d): (usize, usize, usize, usize),
    ) -> Result<(), String> {
        let (m, n, k) = self.size;
        let matrix = |address, kind, (rows, columns), leading: i64| Matrix {
            address,
            kind,
            rows,
            columns,
            leading: leading as usize,
        };
        let a = matrix(a, self.types.0, self.ops.0.stored(m, k), self.leading.0);
        let b = matrix(b, self.types.1, self.ops.1.stored(k, n), self.leading.1);
        let c = matrix(c, self.types.2, (m, n), self.leading.2);
        let d = matrix(d, self.types.3, (m, n), self.leading.3);
        a.check(hip, "A", false)?;
        b.check(hip, "B", false)?;
        // What is multiplied by zero need not be there, or be numbers.
        if beta != 0.0 {
            c.check(hip, "C", false)?;
        }
        d.check(hip, "D", true)?;
        // SAFETY: the matrices lie within allocations.
        let (left, right) = unsafe { (a.read(self.ops.0), b.read(self.ops.1)) };
        let mut column = vec![0.0; m];
        for j in 0..n {
            column.fill(0.0);
            for (p, factor) in right[j * k..(j + 1) * k].iter().enumerate() {
                let of_a = &left[p * m..(p + 1) * m];
                column.iter_mut().zip(of_a).for_each(|(sum, value)| *sum += value * factor);
            }
            for (i, sum) in column.iter().enumerate() {
                // SAFETY: the positions lie within the matrices, which lie within allocations.
                unsafe {
                    let old = if beta == 0.0 { 0.0 } else { beta * c.kind.read(c.at(i, j)) };
                    d.kind.write(d.at(i, j), alpha * sum + old);
                }
            }
        }
        Ok(())
    }
}

/// `op(A) X = alpha B` or `X op(A) = alpha B`.
pub(crate) struct Trsm {
    pub is_right: bool,
    pub is_lower: bool,
    pub op: Op,
    pub is_unit: bool,
    pub size: (usize, usize),
    pub alpha: Scalar,
    pub operands: (usize, usize),
    pub leading: (i64, i64),
    pub count: usize,
}

impl Trsm {
    /// Refuses wrong arguments.
    pub fn check(&self) -> Result<(), hipblasStatus_t> {
        let fits =
            |leading: i64, rows: usize| usize::try_from(leading).is_ok_and(|leading| leading >= rows.max(1));
        let (m, n) = self.size;
        if !fits(self.leading.0, self.order()) || !fits(self.leading.1, m) {
            return Err(HIPBLAS_STATUS_INVALID_VALUE);
        }
        let needs = m != 0 && n != 0 && self.count != 0;
        if needs && (self.operands.0 == 0 || self.operands.1 == 0) {
            return Err(HIPBLAS_STATUS_INVALID_VALUE);
        }
        Ok(())
    }

    fn order(&self) -> usize {
        if self.is_right { self.size.1 } else { self.size.0 }
    }

    fn run(&self, hip: &Hip) -> Result<(), String> {
        let alpha = self.alpha.get(hip)?;
        let ((m, n), order) = (self.size, self.order());
        for nth in 0..self.count {
            let kind = Type::F32;
            let a = Matrix {
                address: pointer(hip, self.operands.0, nth)?,
                kind,
                rows: order,
                columns: order,
                leading: self.leading.0 as usize,
            };
            let b = Matrix {
                address: pointer(hip, self.operands.1, nth)?,
                kind,
                rows: m,
                columns: n,
                leading: self.leading.1 as usize,
            };
            a.check(hip, "A", false)?;
            b.check(hip, "B", true)?;
            // SAFETY: the matrices lie within allocations.
            let (of_a, mut x) = unsafe { (a.read(self.op), b.read(Op::None)) };
            x.iter_mut().for_each(|value| *value *= alpha);
            // Behind a transposition the other triangle is the one that counts.
            let is_lower = self.is_lower != (self.op == Op::Transpose);
            let a_at = |row: usize, column: usize| of_a[column * order + row];
            // Unknowns are eliminated one after the other: from the first on if those before are known then.
            let from_first = is_lower != self.is_right;
            for step in 0..order {
                let now = if from_first { step } else { order - 1 - step };
                let divisor = if self.is_unit { 1.0 } else { a_at(now, now) };
                let others: Vec<usize> =
                    if from_first { (now + 1..order).collect() } else { (0..now).collect() };
                let lines = if self.is_right { m } else { n };
                for line in 0..lines {
                    let at = |index: usize| if self.is_right { index * m + line } else { line * m + index };
                    x[at(now)] /= divisor;
                    let known = x[at(now)];
                    for &other in &others {
                        let factor = if self.is_right { a_at(now, other) } else { a_at(other, now) };
                        x[at(other)] -= factor * known;
                    }
                }
            }
            for column in 0..n {
                for row in 0..m {
                    // SAFETY: the position lies within the matrix, which lies within an allocation.
                    unsafe { kind.write(b.at(row, column), x[column * m + row]) };
                }
            }
        }
        Ok(())
    }
}

impl Job {
    /// Does it. What is wrong is known only now: addresses may come from the work before it.
    pub fn run(&self, hip: &Hip) -> Result<(), String> {
        match self {
            Job::Gemm(gemm) => gemm.run(hip),
            Job::Trsm(trsm) => trsm.run(hip),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list<T>(values: &[T]) -> Vec<usize> {
        values.iter().map(|value| std::ptr::from_ref(value) as usize).collect()
    }

    fn gemm(ops: (Op, Op), size: (usize, usize, usize), operands: (usize, usize, usize)) -> Gemm {
        let (m, n, k) = size;
        let leading = |op: Op, rows, columns| op.stored(rows, columns).0 as i64;
        Gemm {
            ops,
            size,
            alpha: Scalar::Value(2.0),
            beta: Scalar::Value(0.5),
            types: (Type::F32, Type::F32, Type::F32, Type::F32),
            operands: (operands.0, operands.1, operands.2, operands.2),
            leading: (leading(ops.0, m, k), leading(ops.1, k, n), m as i64, m as i64),
            batch: Batch::Strided(1, [0; 3]),
        }
    }

    #[test]
    fn products_are_those_of_the_definition() {
        let hip = Hip::of_host();
        let (m, n, k) = (3, 4, 5);
        let number = |i: usize| (i * 7 % 11) as f32 - 5.0;
        let (a, b): (Vec<f32>, Vec<f32>) =
            ((0..m * k).map(number).collect(), (0..k * n).map(|i| number(i + 3)).collect());
        for ops in
            [Op::None, Op::Transpose].map(|a| [Op::None, Op::Transpose].map(|b| (a, b))).into_iter().flatten()
        {
            let mut c: Vec<f32> = (0..m * n).map(|i| number(i + 5)).collect();
            let before = c.clone();
            let gemm =
                gemm(ops, (m, n, k), (a.as_ptr() as usize, b.as_ptr() as usize, c.as_mut_ptr() as usize));
            gemm.check().unwrap();
            gemm.run(&hip).unwrap();
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let of_a = |p: usize| if ops.0 == Op::None { a[p * m + i] } else { a[i * k + p] };
                let of_b = |p: usize| if ops.1 == Op::None { b[j * k + p] } else { b[p * n + j] };
                let sum: f32 = (0..k).map(|p| of_a(p) * of_b(p)).sum();
                assert_eq!(c[j * m + i], 2.0 * sum + 0.5 * before[j * m + i], "{ops:?} {i} {j}");
            }
        }
    }

    #[test]
    fn batches_are_at_strides_or_at_addresses() {
        let hip = Hip::of_host();
        let (a, b) = ([1.0f32, 2.0, 3.0], [4.0f32, 5.0, 6.0]);
        let mut c = [f32::NAN; 6];
        let at = |c: &mut [f32; 6]| (a.as_ptr() as usize, b.as_ptr() as usize, c.as_mut_ptr() as usize);
        let one = gemm((Op::None, Op::None), (1, 1, 1), at(&mut c));
        let strided = Gemm { beta: Scalar::Value(0.0), batch: Batch::Strided(3, [1, 1, 2]), ..one };
        strided.run(&hip).unwrap();
        assert_eq!([c[0], c[2], c[4]], [8.0, 20.0, 36.0]);
        assert!(c[1].is_nan(), "what lies between stays");
        let first = c.as_mut_ptr() as usize;
        let (of_a, of_b, of_c) = (list(&a), list(&b), [5, 3, 1].map(|at| first + 4 * at));
        let lists = (of_a.as_ptr() as usize, of_b.as_ptr() as usize, of_c.as_ptr() as usize);
        let pointers = Gemm {
            operands: (lists.0, lists.1, lists.2, lists.2),
            batch: Batch::Pointers(3),
            ..gemm((Op::None, Op::None), (1, 1, 1), (1, 1, 1))
        };
        Gemm { beta: Scalar::Value(0.0), ..pointers }.run(&hip).unwrap();
        assert_eq!([c[5], c[3], c[1]], [8.0, 20.0, 36.0]);
    }

    #[test]
    fn halves_and_bytes_are_multiplied_exactly() {
        let hip = Hip::of_host();
        let (a, b) = ([-128i8, 127, 5, -6], [127i8, -128, 7, 8]);
        let mut c = [0i32; 1];
        let operands = (a.as_ptr() as usize, b.as_ptr() as usize, c.as_mut_ptr() as usize);
        let types = (Type::I8, Type::I8, Type::I32, Type::I32);
        let bytes = gemm((Op::Transpose, Op::None), (1, 1, 4), operands);
        Gemm { types, alpha: Scalar::Value(1.0), beta: Scalar::Value(0.0), ..bytes }.run(&hip).unwrap();
        assert_eq!(c[0], -128 * 127 - 127 * 128 + 35 - 48);
        let (a, b) = ([half::f16::from_f32(2.0_f32.powi(-24))], [half::bf16::from_f32(3.0)]);
        let mut c = [0f32];
        let operands = (a.as_ptr() as usize, b.as_ptr() as usize, c.as_mut_ptr() as usize);
        let types = (Type::F16, Type::Bf16, Type::F32, Type::F32);
        let halves = gemm((Op::None, Op::None), (1, 1, 1), operands);
        Gemm { types, alpha: Scalar::Value(1.0), beta: Scalar::Value(0.0), ..halves }.run(&hip).unwrap();
        assert_eq!(c[0], 3.0 * 2.0_f32.powi(-24));
    }

    #[test]
    fn a_triangle_is_solved_from_either_side() {
        let hip = Hip::of_host();
        let (m, n) = (3, 2);
        for choice in 0..16 {
            let [is_right, is_lower, is_unit, transposed] = [0, 1, 2, 3].map(|bit| choice >> bit & 1 != 0);
            let order = if is_right { n } else { m };
            // What is outside of the triangle, and on a diagonal of ones, must not be read.
            let a: Vec<f32> = (0..order * order)
                .map(|at| (at % order, at / order))
                .map(|(row, column)| match row.cmp(&column) {
                    std::cmp::Ordering::Equal if is_unit => f32::NAN,
                    std::cmp::Ordering::Equal => 2.0 + row as f32,
                    way if (way == std::cmp::Ordering::Greater) == is_lower => {
                        1.0 + (row + 2 * column) as f32
                    }
                    _ => f32::NAN,
                })
                .collect();
            let full = |row: usize, column: usize| {
                let (row, column) = if transposed { (column, row) } else { (row, column) };
                match row.cmp(&column) {
                    std::cmp::Ordering::Equal if is_unit => 1.0,
                    std::cmp::Ordering::Equal => a[column * order + row],
                    way if (way == std::cmp::Ordering::Greater) == is_lower => a[column * order + row],
                    _ => 0.0,
                }
            };
            let x: Vec<f32> = (0..m * n).map(|i| i as f32 - 2.0).collect();
            // alpha B is what A and X make.
            let mut b: Vec<f32> = (0..m * n)
                .map(|at| (at % m, at / m))
                .map(|(i, j)| match is_right {
                    true => (0..n).map(|p| x[p * m + i] * full(p, j)).sum::<f32>(),
                    false => (0..m).map(|p| full(i, p) * x[j * m + p]).sum(),
                })
                .map(|sum| sum / 0.5)
                .collect();
            let (of_a, of_b) = ([a.as_ptr() as usize], [b.as_mut_ptr() as usize]);
            let trsm = Trsm {
                is_right,
                is_lower,
                op: if transposed { Op::Transpose } else { Op::None },
                is_unit,
                size: (m, n),
                alpha: Scalar::Value(0.5),
                operands: (of_a.as_ptr() as usize, of_b.as_ptr() as usize),
                leading: (order as i64, m as i64),
                count: 1,
            };
            trsm.check().unwrap();
            trsm.run(&hip).unwrap();
            let error = b.iter().zip(&x).map(|(b, x)| (b - x).abs()).fold(0.0, f32::max);
            assert!(error < 1e-4, "{choice}: {b:?} instead of {x:?}");
        }
    }
}
