//! Matrix products: `C = alpha · op(A) · op(B) + beta · C`, with the arguments of cuBLAS and rocBLAS.
//!
//! ```
//! use candle_amdgpu::gemm::{GemmConfig, gemm};
//! use candle_amdgpu::{Device, DeviceBuffer};
//!
//! let stream = Device::new(0)?.stream()?;
//! // Matrices are stored column after column.
//! let a = DeviceBuffer::from_slice(&stream, &[1.0_f32, 3.0, 2.0, 4.0])?;
//! let b = DeviceBuffer::from_slice(&stream, &[5.0_f32, 7.0, 6.0, 8.0])?;
//! let mut c = DeviceBuffer::zeros(&stream, 4)?;
//! gemm(&stream, &GemmConfig::new(2, 2, 2), &a, &b, &mut c)?;
//! assert_eq!(c.to_vec()?, [19.0, 43.0, 22.0, 50.0]);
//! # Ok::<(), candle_amdgpu::Error>(())
//! ```
//!
//! On AMD GPUs rocBLAS computes the products if it loads and supports them (sizes up to 2^31), on NVIDIA GPUs cuBLAS, unless
//! `CANDLE_AMDGPU_BLAS` is 0; otherwise this crate's kernels do, and always those of matrices by a vector.

mod blas;
mod choice;

use blas::Precision;
pub(crate) use blas::forget;
use choice::Choice;

use crate::generated::{self, Slot};
use crate::kernel::Kernel;
use crate::{
    AsStream, Device, DeviceRead, DeviceWrite, Element, Error, GEMM, LaunchConfig, Result, bf16, f16,
};
use std::ffi::c_void;
use std::fmt;

/// How a matrix enters the product.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transpose {
    /// As it is stored.
    #[default]
    No,
    /// Rows and columns exchanged.
    Yes,
}

/// An element type of matrices. Products of f16 and bf16 are added in f32, and rounded once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GemmType {
    /// `f32`
    F32,
    /// `f64`
    F64,
    /// `f16`
    F16,
    /// `bf16`
    Bf16,
}

impl GemmType {
    /// Its name in Rust.
    pub const fn name(self) -> &'static str {
        match self {
            GemmType::F32 => "f32",
            GemmType::F64 => "f64",
            GemmType::F16 => "f16",
            GemmType::Bf16 => "bf16",
        }
    }
}

impl fmt::Display for GemmType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A Rust type that is a [`GemmType`].
pub trait GemmElement: Element {
    /// Which.
    const TYPE: GemmType;
}

impl GemmElement for f32 {
    const TYPE: GemmType = GemmType::F32;
}
impl GemmElement for f64 {
    const TYPE: GemmType = GemmType::F64;
}
impl GemmElement for f16 {
    const TYPE: GemmType = GemmType::F16;
}
impl GemmElement for bf16 {
    const TYPE: GemmType = GemmType::Bf16;
}

/// A batch of matrix products `C = alpha · op(A) · op(B) + beta · C`, where op(A) is `m` by `k`, op(B) `k` by `n` and
/// C `m` by `n`.
///
/// Matrices are stored column after column, with a distance of the leading dimension, in elements: element (row,
/// column) of A is at `row + column · lda`. A row-major matrix is the transpose of a column-major one. Matrix z of
/// the batch begins at z times the stride; a stride of 0 uses one A or B for all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GemmConfig {
    /// Whether op(A) is the transpose of A.
    pub transa: Transpose,
    /// Whether op(B) is the transpose of B.
    pub transb: Transpose,
    /// Rows of op(A) and C.
    pub m: usize,
    /// Columns of op(B) and C.
    pub n: usize,
    /// Columns of op(A), rows of op(B). With 0, C is only scaled.
    pub k: usize,
    /// Factor of the product; with 0, A and B are not read. Rounded to f32 unless the elements are f64.
    pub alpha: f64,
    /// Leading dimension of A, at least its number of rows; of no interest if A is empty, as for B and C.
    pub lda: usize,
    /// From one A of the batch to the next.
    pub stride_a: usize,
    /// Leading dimension of B.
    pub ldb: usize,
    /// From one B of the batch to the next.
    pub stride_b: usize,
    /// Factor of the old C; with 0, it is not read. Rounded as `alpha`.
    pub beta: f64,
    /// Leading dimension of C.
    pub ldc: usize,
    /// From one C of the batch to the next.
    pub stride_c: usize,
    /// Number of products.
    pub batch: usize,
}

impl GemmConfig {
    /// One product of matrices that are not transposed and have no gaps, with an `alpha` of 1 and a `beta` of 0.
    pub const fn new(m: usize, n: usize, k: usize) -> GemmConfig {
        const fn at_least_one(n: usize) -> usize {
            if n == 0 { 1 } else { n }
        }
        GemmConfig {
            transa: Transpose::No,
            transb: Transpose::No,
            m,
            n,
            k,
            alpha: 1.0,
            lda: at_least_one(m),
            stride_a: 0,
            ldb: at_least_one(k),
            stride_b: 0,
            beta: 0.0,
            ldc: at_least_one(m),
            stride_c: 0,
            batch: 1,
        }
    }

    /// Whether the leading dimensions are large enough, and no two products write the same element.
    fn check(&self) -> Result<()> {
        let stored = |transposed, rows, columns| match transposed {
            Transpose::No => [rows, columns],
            Transpose::Yes => [columns, rows],
        };
        for (matrix, leading, [rows, columns]) in [
            ("A", self.lda, stored(self.transa, self.m, self.k)),
            ("B", self.ldb, stored(self.transb, self.k, self.n)),
            ("C", self.ldc, [self.m, self.n]),
        ] {
            // cuBLAS asks for 1 at least, also of a matrix without elements.
            if leading < rows && columns > 0 {
                return Err(Error::LeadingDimension { matrix, leading, rows });
            }
        }
        let GemmConfig { m, n, ldc, stride_c, batch, .. } = *self;
        let extent = |count: usize, step: usize, inner: usize| {
            (count.saturating_sub(1) as u128) * step as u128 + inner as u128
        };
        let apart = stride_c as u128 >= extent(n, ldc, m)
            || stride_c >= m && ldc as u128 >= extent(batch, stride_c, m);
        if batch > 1 && m > 0 && n > 0 && !apart {
            return Err(Error::ProductsOverlap {
                batch,
                stride: stride_c,
                leading: ldc,
                rows: m,
                columns: n,
            });
        }
        Ok(())
    }
}

/// Strides of an operand: along its own dimension, along the common one, from matrix to matrix.
type Strides = [usize; 3];

/// What is launched for a [`GemmConfig`].
struct Plan {
    m: usize,
    n: usize,
    k: usize,
    batch: usize,
    a: Strides,
    b: Strides,
    c: Strides,
    /// Whether A and B are exchanged: the transposed product is computed.
    exchanged: bool,
}

impl Plan {
    fn new(config: &GemmConfig) -> Result<Plan> {
        config.check()?;
        let strides = |transposed, leading, z| match transposed {
            Transpose::No => [1, leading, z],
            Transpose::Yes => [leading, 1, z],
        };
        let a = strides(config.transa, config.lda, config.stride_a);
        let [b_k, b_j, b_z] = strides(config.transb, config.ldb, config.stride_b);
        let mut plan = Plan {
            m: config.m,
            n: config.n,
            k: if config.alpha == 0.0 { 0 } else { config.k },
            batch: config.batch,
            a,
            b: [b_j, b_k, b_z],
            c: [1, config.ldc, config.stride_c],
            exchanged: false,
        };
        // The kernels are made for few columns.
        if plan.m < plan.n && plan.m <= 16 {
            plan.exchange();
        }
        Ok(plan)
    }

    /// C transposed is the product of B and A, both transposed.
    fn exchange(&mut self) {
        std::mem::swap(&mut self.m, &mut self.n);
        std::mem::swap(&mut self.a, &mut self.b);
        self.c.swap(0, 1);
        self.exchanged = !self.exchanged;
    }

    /// Elements that A, B and C need.
    fn lens(&self) -> [u128; 3] {
        let len = |counts: [usize; 3], strides: Strides| {
            if counts.contains(&0) {
                return 0;
            }
            counts.iter().zip(strides).fold(1_u128, |sum, (count, stride)| {
                sum.saturating_add((*count as u128 - 1).saturating_mul(stride as u128))
            })
        };
        let Plan { m, n, k, batch, .. } = *self;
        let (a, b) = (len([m, k, batch], self.a), len([n, k, batch], self.b));
        let (a, b) = if self.exchanged { (b, a) } else { (a, b) };
        [a, b, len([m, n, batch], self.c)]
    }

    /// Whether matrices are multiplied by one vector each, where our kernels read them as fast as a library's, which take longer
    /// to launch.
    fn is_by_vector(&self) -> bool {
        self.n == 1 && (self.a[0] == 1 || self.a[1] == 1)
    }

    /// The kernel that takes the least time for A and B at these addresses, and how it is launched.
    fn kernel(
        &self,
        dtype: GemmType,
        device: &Device,
        [a, b]: [usize; 2],
    ) -> Result<(&'static Kernel, LaunchConfig)> {
        let addresses = if self.exchanged { [b, a] } else { [a, b] };
        let Choice { kernel, launch } = Choice::new(self, dtype, device, addresses);
        Ok((GEMM.known_kernel(&kernel)?, launch))
    }

    /// The kernel's arguments.
    fn slots<'a>(
        &self,
        dtype: GemmType,
        config: &GemmConfig,
        [a, b]: [Slot<'a>; 2],
        c: Slot<'a>,
    ) -> [Slot<'a>; 18] {
        let factor = |x: f64| if dtype == GemmType::F64 { Slot::value(x) } else { Slot::value(x as f32) };
        let size = Slot::value::<usize>;
        let (a, b) = if self.exchanged { (b, a) } else { (a, b) };
        let Plan { m, n, k, batch, a: [a_i, a_k, a_z], b: [b_j, b_k, b_z], c: [c_i, c_j, c_z], .. } = *self;
        [
            size(m),
            size(n),
            size(k),
            size(batch),
            factor(config.alpha),
            a,
            size(a_i),
            size(a_k),
            size(a_z),
            b,
            size(b_j),
            size(b_k),
            size(b_z),
            factor(config.beta),
            c,
            size(c_i),
            size(c_j),
            size(c_z),
        ]
    }
}

/// Enqueues matrix products on device memory.
///
/// # Errors
/// Before anything is launched: a leading dimension that is too small, products that overlap in C, memory that is
/// shorter than the matrices or of another device. Otherwise what the runtime reports.
pub fn gemm<T: GemmElement>(
    stream: &impl AsStream,
    config: &GemmConfig,
    a: &impl DeviceRead<T>,
    b: &impl DeviceRead<T>,
    c: &mut impl DeviceWrite<T>,
) -> Result<()> {
    let on = stream.stream_ref()?;
    let plan = Plan::new(config)?;
    if let Some(library) = blas::library().filter(|_| !plan.is_by_vector()) {
        let (a, b, c) = (a.memory(), b.memory(), c.memory_mut());
        let long =
            [a.len, b.len, c.len].into_iter().zip(plan.lens()).all(|(have, need)| have as u128 >= need);
        // Memory of another stream is ordered by events, of another device refused: both below.
        let own = [&a, &b, &c].iter().all(|m| m.stream.is_none_or(|owner| owner.as_raw() == on.raw));
        // SAFETY: the memory is as long as the matrices, and is owned or lent by the stream
        let done = || unsafe {
            library.gemm(&on, T::TYPE, config, [a.address, b.address], c.address, Precision::Full)
        };
        if long && own && done() {
            return Ok(());
        }
    }
    let (kernel, launch) =
        plan.kernel(T::TYPE, &on.device, [a.memory().address as usize, b.memory().address as usize])?;
    let operands = [Slot::read::<T>(a), Slot::read::<T>(b)];
    let mut slots = plan.slots(T::TYPE, config, operands, Slot::write::<T>(c));
    // SAFETY: the plan's slots have the types of the kernel that it names for the operands' type.
    unsafe { generated::launch(&GEMM, kernel, stream, launch, &[], &mut slots) }
}

/// Enqueues matrix products on device addresses.
///
/// # Safety
/// The addresses are device memory of the stream's device that holds the matrices of `config` with elements of
/// `dtype`, and that lives until the work is done. Nothing else writes it meanwhile, or reads C.
///
/// # Errors
/// Before anything is launched: a leading dimension that is too small, or products that overlap in C. Otherwise what
/// the runtime reports.
pub unsafe fn gemm_raw(
    stream: &impl AsStream,
    dtype: GemmType,
    config: &GemmConfig,
    a: *const c_void,
    b: *const c_void,
    c: *mut c_void,
) -> Result<()> {
    let on = stream.stream_ref()?;
    let plan = Plan::new(config)?;
    // SAFETY: the caller's
    let done = |library: &blas::Blas| unsafe { library.gemm(&on, dtype, config, [a, b], c, Precision::Full) };
    if !plan.is_by_vector() && blas::library().is_some_and(done) {
        return Ok(());
    }
    let operands = [Slot::value(a as usize), Slot::value(b as usize)];
    let mut slots = plan.slots(dtype, config, operands, Slot::value(c as usize));
    let (kernel, launch) = plan.kernel(dtype, &on.device, [a as usize, b as usize])?;
    let function = on.device.get_or_load_func(kernel.name, &GEMM)?;
    // SAFETY: there is an argument for each parameter, of its type; the rest is the caller's.
    unsafe { function.launch_slots(stream, launch, &mut slots) }
}

/// Whether there are matrix products in TF32, which [`gemm_tf32_raw`] takes: on NVIDIA GPUs with cuBLAS.
pub fn has_tf32() -> bool {
    blas::library().is_some_and(blas::Blas::has_tf32)
}

/// Enqueues products of f32 matrices whose operands are rounded to TF32, which has f32's range and 10 bits of mantissa; sums
/// are f32. `false` if the device's library has none, or not for these sizes: then nothing is enqueued.
///
/// # Safety
/// As for [`gemm_raw`].
///
/// # Errors
/// A leading dimension that is too small, or products that overlap in C.
pub unsafe fn gemm_tf32_raw(
    stream: &impl AsStream,
    config: &GemmConfig,
    a: *const c_void,
    b: *const c_void,
    c: *mut c_void,
) -> Result<bool> {
    let on = stream.stream_ref()?;
    config.check()?;
    // SAFETY: the caller's
    Ok(blas::library().is_some_and(|library| unsafe {
        library.gemm(&on, GemmType::F32, config, [a, b], c, Precision::Tf32)
    }))
}
