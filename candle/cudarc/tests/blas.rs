//! cuBLAS and cuBLASLt by cudarc's names, beside the same on the host in f64.

use cudarc::cublas::sys::{self, cublasOperation_t, cublasPointerMode_t, cudaDataType_t};
use cudarc::cublas::{
    Asum, AsumConfig, CudaBlas, Gemm, GemmConfig, Gemv, GemvConfig, GroupedGemm, GroupedGemmConfig,
    StridedBatchedConfig, result,
};
use cudarc::cublaslt::{Activation, CudaBlasLT, Matmul, MatmulConfig};
use cudarc::driver::{CudaContext, CudaStream, DevicePtr, DevicePtrMut};
use half::{bf16, f16};
use std::ffi::c_void;
use std::sync::Arc;

type Error = Box<dyn std::error::Error>;

fn context() -> Result<Arc<CudaContext>, Error> {
    Ok(CudaContext::new(0)?)
}

const N: cublasOperation_t = cublasOperation_t::CUBLAS_OP_N;
const T: cublasOperation_t = cublasOperation_t::CUBLAS_OP_T;

/// Numbers with signs and no pattern that a wrong stride would keep.
fn numbers(count: usize, seed: u32) -> Vec<f64> {
    let value = |i: usize| {
        let mixed = (i as u32).wrapping_add(seed).wrapping_mul(0x9e37_79b9).rotate_left(13) % 64;
        f64::from(mixed) / 16.0 - 2.0
    };
    (0..count).map(value).collect()
}

trait Number: Copy {
    fn of(x: f64) -> Self;
    fn wide(self) -> f64;
}

macro_rules! number {
    ($($t:ty: $of:expr, $wide:expr;)*) => {$(
        impl Number for $t {
            fn of(x: f64) -> Self {
                $of(x)
            }

            fn wide(self) -> f64 {
                $wide(self)
            }
        }
    )*};
}

number! {
    f32: |x| x as f32, f64::from;
    f64: |x| x, |x| x;
    f16: f16::from_f64, f16::to_f64;
    bf16: bf16::from_f64, bf16::to_f64;
}

fn narrow<X: Number>(numbers: &[f64]) -> Vec<X> {
    numbers.iter().map(|&x| X::of(x)).collect()
}

fn near<X: Number>(actual: &[X], expected: &[f64], bound: f64) {
    assert_eq!(actual.len(), expected.len());
    let largest = expected.iter().fold(1.0_f64, |a, b| a.max(b.abs()));
    for (i, (actual, expected)) in actual.iter().zip(expected).enumerate() {
        let off = (actual.wide() - expected).abs() / largest;
        assert!(off <= bound, "element {i}: {} instead of {expected}", actual.wide());
    }
}

/// A product's sizes: operations, m, n, k, gaps behind columns.
#[derive(Clone, Copy)]
struct Case {
    transa: cublasOperation_t,
    transb: cublasOperation_t,
    mnk: [usize; 3],
    gap: usize,
}

impl Case {
    /// Rows and columns of A, B and C as they are stored.
    fn stored(self) -> [[usize; 2]; 3] {
        let [m, n, k] = self.mnk;
        let a = if self.transa == N { [m, k] } else { [k, m] };
        let b = if self.transb == N { [k, n] } else { [n, k] };
        [a, b, [m, n]]
    }

    fn leading(self) -> [usize; 3] {
        self.stored().map(|[rows, _]| rows + self.gap)
    }

    fn len(self) -> [usize; 3] {
        let leading = self.leading();
        [0, 1, 2].map(|i: usize| self.stored()[i][1] * leading[i])
    }

    /// `C = α·op(A)·op(B) + β·C`; gaps stay.
    fn product(self, [alpha, beta]: [f64; 2], a: &[f64], b: &[f64], c: &[f64]) -> Vec<f64> {
        let ([m, n, k], [lda, ldb, ldc]) = (self.mnk, self.leading());
        let mut out = c.to_vec();
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let term = |l: usize| {
                let x = if self.transa == N { a[i + l * lda] } else { a[l + i * lda] };
                let y = if self.transb == N { b[l + j * ldb] } else { b[j + l * ldb] };
                x * y
            };
            out[i + j * ldc] = alpha * (0..k).map(term).sum::<f64>() + beta * c[i + j * ldc];
        }
        out
    }
}

const CASES: [Case; 4] = [
    Case { transa: N, transb: N, mnk: [5, 7, 3], gap: 0 },
    Case { transa: T, transb: N, mnk: [6, 4, 9], gap: 2 },
    Case { transa: N, transb: T, mnk: [17, 19, 8], gap: 3 },
    Case { transa: T, transb: T, mnk: [1, 12, 5], gap: 1 },
];

fn blas() -> Result<(CudaBlas, Arc<CudaStream>), Error> {
    let stream = context()?.default_stream();
    Ok((CudaBlas::new(stream.clone())?, stream))
}

fn gemm_of<X: Number + cudarc::driver::DeviceRepr + Default>(bound: f64) -> Result<(), Error>
where
    CudaBlas: Gemm<X>,
{
    let (blas, stream) = blas()?;
    for case in CASES {
        let [a, b, c] = [0, 1, 2].map(|i: usize| numbers(2 * case.len()[i], i as u32));
        let [m, n, k] = case.mnk.map(|n| n as i32);
        let ([lda, ldb, ldc], [stride_a, stride_b, stride_c]) =
            (case.leading().map(|n| n as i32), case.len().map(|n| n as i64));
        let (alpha, beta) = (X::of(0.5), X::of(-2.0));
        let Case { transa, transb, .. } = case;
        let gemm = GemmConfig { transa, transb, m, n, k, alpha, lda, ldb, beta, ldc };
        let there = |x: &[f64]| stream.clone_htod(&narrow::<X>(x));
        let (a_there, b_there, mut c_there) = (there(&a)?, there(&b)?, there(&c)?);
        // SAFETY: the matrices are as large as the sizes say.
        unsafe { blas.gemm(gemm, &a_there, &b_there, &mut c_there)? };
        let first = case.product([0.5, -2.0], &a, &b, &c);
        near(&stream.clone_dtoh(&c_there)?, &first, bound);
        let batched = StridedBatchedConfig { gemm, batch_size: 2, stride_a, stride_b, stride_c };
        let mut c_there = there(&c)?;
        // SAFETY: as above, twice.
        unsafe { blas.gemm_strided_batched(batched, &a_there, &b_there, &mut c_there)? };
        let second: Vec<f64> = (0..2)
            .flat_map(|z| {
                let part = |x: &[f64], i: usize| x[z * case.len()[i]..(z + 1) * case.len()[i]].to_vec();
                case.product([0.5, -2.0], &part(&a, 0), &part(&b, 1), &part(&c, 2))
            })
            .collect();
        near(&stream.clone_dtoh(&c_there)?, &second, bound);
    }
    Ok(())
}

#[test]
fn products_of_every_type_are_right() -> Result<(), Error> {
    gemm_of::<f32>(1e-6)?;
    gemm_of::<f64>(1e-14)?;
    gemm_of::<f16>(1e-3)?;
    gemm_of::<bf16>(8e-3)
}

#[test]
fn products_by_vectors_have_distances() -> Result<(), Error> {
    let (blas, stream) = blas()?;
    for trans in [N, T] {
        let (m, n, lda, incx, incy) = (4, 6, 5, 2, 3);
        let (rows, columns) = if trans == N { (m, n) } else { (n, m) };
        let (a, x, y) = (numbers(lda * n, 1), numbers(incx * columns, 2), numbers(incy * rows, 3));
        let mut expected = y.clone();
        for i in 0..rows {
            let term = |l: usize| if trans == N { a[i + l * lda] } else { a[l + i * lda] } * x[l * incx];
            expected[i * incy] = 1.5 * (0..columns).map(term).sum::<f64>() + 0.5 * y[i * incy];
        }
        let config = GemvConfig {
            trans,
            m: m as i32,
            n: n as i32,
            alpha: 1.5,
            lda: lda as i32,
            incx: incx as i32,
            beta: 0.5,
            incy: incy as i32,
        };
        let (a_there, x_there) = (stream.clone_htod(&a)?, stream.clone_htod(&x)?);
        let mut y_there = stream.clone_htod(&y)?;
        // SAFETY: the operands are as large as the sizes say.
        unsafe { blas.gemv(config, &a_there, &x_there, &mut y_there)? };
        near(&stream.clone_dtoh(&y_there)?, &expected, 1e-14);
        let mut y_there = stream.clone_htod(&y)?;
        let (to, _order) = y_there.device_ptr_mut(&stream);
        let (alpha, beta) = (1.5_f64, 0.5_f64);
        // SAFETY: as above.
        unsafe {
            result::dgemv(
                *blas.handle(),
                trans,
                config.m,
                config.n,
                &alpha,
                a_there.device_ptr(&stream).0 as *const f64,
                config.lda,
                x_there.device_ptr(&stream).0 as *const f64,
                config.incx,
                &beta,
                to as *mut f64,
                config.incy,
            )?;
        }
        drop(_order);
        near(&stream.clone_dtoh(&y_there)?, &expected, 1e-14);
    }
    let backwards = GemvConfig { trans: N, m: 1, n: 1, alpha: 1.0_f32, lda: 1, incx: -1, beta: 0.0, incy: 1 };
    let (x, mut y) = (stream.alloc_zeros::<f32>(1)?, stream.alloc_zeros::<f32>(1)?);
    // SAFETY: it is refused.
    let error = unsafe { blas.gemv(backwards, &x, &x, &mut y) }.unwrap_err();
    assert!(error.to_string().contains("incx = -1"), "{error}");
    Ok(())
}

#[test]
fn vectors_are_added_scaled_and_measured() -> Result<(), Error> {
    let (blas, stream) = blas()?;
    // More than one workgroup adds up.
    let (count, step) = (40_000_usize, 2_usize);
    let x = numbers(count * step, 7);
    let used: Vec<f64> = x.iter().step_by(step).copied().collect();
    let x_there = stream.clone_htod(&narrow::<f32>(&x))?;
    let (n, incx) = (count as i32, step as i32);
    let mut sum = 0.0_f32;
    // SAFETY: the vector is as large as the sizes say.
    unsafe { blas.asum(AsumConfig { n, incx }, &x_there, &mut sum)? };
    near(&[sum], &[used.iter().map(|x| x.abs()).sum()], 1e-6);
    let handle = *blas.handle();
    let from = x_there.device_ptr(&stream).0 as *const f32;
    let mut y_there = stream.clone_htod(&narrow::<f32>(&used))?;
    let (y, _order) = y_there.device_ptr_mut(&stream);
    let y = y as *mut f32;
    let (mut dot, mut norm, mut at, alpha) = (0.0_f32, 0.0_f32, 0, 3.0_f32);
    // SAFETY: as above.
    unsafe {
        sys::cublasSdot_v2(handle, n, from, incx, y, 1, &mut dot).result()?;
        sys::cublasSnrm2_v2(handle, n, from, incx, &mut norm).result()?;
        sys::cublasIsamax_v2(handle, n, from, incx, &mut at).result()?;
        sys::cublasSscal_v2(handle, n, &alpha, y, 1).result()?;
        sys::cublasSaxpy_v2(handle, n, &alpha, from, incx, y, 1).result()?;
    }
    let squares: f64 = used.iter().map(|x| x * x).sum();
    near(&[dot], &[squares], 1e-5);
    near(&[norm], &[squares.sqrt()], 1e-6);
    let largest = used.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
    assert_eq!(used.iter().position(|x| x.abs() == largest), Some(at as usize - 1));
    drop(_order);
    let expected: Vec<f64> = used.iter().map(|x| 6.0 * x).collect();
    near(&stream.clone_dtoh(&y_there)?, &expected, 1e-6);
    // Squares of these are no f64.
    for (values, expected) in [([3e200, 4e200], 5e200), ([3e-200, 4e-200], 5e-200), ([0.0, -0.0], 0.0)] {
        let mut there = stream.clone_htod(&values)?;
        let mut norm = -1.0_f64;
        let (at, _order) = there.device_ptr_mut(&stream);
        // SAFETY: as above.
        unsafe { sys::cublasDnrm2_v2(handle, 2, at as *const f64, 1, &mut norm).result()? };
        assert!((norm - expected).abs() <= expected * 1e-15, "{norm} instead of {expected}");
    }
    let (mut a, mut b) =
        (stream.clone_htod(&[1.0_f64, 2.0, -0.0])?, stream.clone_htod(&[4.0_f64, 5.0, 6.0])?);
    let (mut none, null) = (f64::NAN, std::ptr::null());
    {
        let (a, _a) = a.device_ptr_mut(&stream);
        let (b, _b) = b.device_ptr_mut(&stream);
        // SAFETY: as above.
        unsafe {
            sys::cublasDswap_v2(handle, 3, a as *mut f64, 1, b as *mut f64, 1).result()?;
            sys::cublasDcopy_v2(handle, 1, a as *const f64, 1, (b as *mut f64).add(1), 1).result()?;
            sys::cublasDasum_v2(handle, 0, null, 1, &mut none).result()?;
        }
    }
    assert_eq!(stream.clone_dtoh(&a)?, [4.0, 5.0, 6.0]);
    assert_eq!(
        stream.clone_dtoh(&b)?.iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
        [1.0_f64.to_bits(), 4.0_f64.to_bits(), (-0.0_f64).to_bits()]
    );
    assert_eq!(none, 0.0);
    Ok(())
}

#[test]
fn factors_and_results_can_be_in_the_devices_memory() -> Result<(), Error> {
    let (blas, stream) = blas()?;
    assert_eq!(blas.get_pointer_mode()?, cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST);
    blas.set_pointer_mode(cublasPointerMode_t::CUBLAS_POINTER_MODE_DEVICE)?;
    assert_eq!(blas.get_pointer_mode()?, cublasPointerMode_t::CUBLAS_POINTER_MODE_DEVICE);
    let (x, factors) = (stream.clone_htod(&[1.0_f32, -2.0])?, stream.clone_htod(&[3.0_f32, 0.0])?);
    let (mut y, mut sum) = (stream.alloc_zeros::<f32>(2)?, stream.alloc_zeros::<f32>(1)?);
    let (at, _factors) = factors.device_ptr(&stream);
    let (from, _x) = x.device_ptr(&stream);
    {
        let (to, _y) = y.device_ptr_mut(&stream);
        let (total, _sum) = sum.device_ptr_mut(&stream);
        let (from, factors) = (from as *const f32, at as *const f32);
        // SAFETY: matrices of 2 by 1, 1 by 1 and 2 by 1.
        unsafe {
            let handle = *blas.handle();
            let beta = factors.add(1);
            result::sgemm(handle, N, N, 2, 1, 1, factors, from, 2, from, 1, beta, to as *mut f32, 2)?;
            result::sasum(handle, 2, from, 1, total as *mut f32)?;
        }
    }
    assert_eq!(stream.clone_dtoh(&y)?, [3.0, -6.0]);
    assert_eq!(stream.clone_dtoh(&sum)?, [3.0]);
    Ok(())
}

#[test]
fn a_handle_without_a_queue_is_done_when_its_calls_return() -> Result<(), Error> {
    let (_, stream) = blas()?;
    let (a, mut c) = (stream.clone_htod(&[2.0_f32])?, stream.alloc_zeros::<f32>(1)?);
    let (one, zero) = (1.0_f32, 0.0_f32);
    let (from, _a) = a.device_ptr(&stream);
    {
        let (to, _c) = c.device_ptr_mut(&stream);
        // SAFETY: matrices of one element.
        unsafe {
            let handle = result::create_handle()?;
            let from = from as *const f32;
            result::sgemm(handle, N, N, 1, 1, 1, &one, from, 1, from, 1, &zero, to as *mut f32, 1)?;
            result::destroy_handle(handle)?;
            let null = std::ptr::null_mut();
            assert_eq!(result::destroy_handle(null), Err(result::CublasError::NoHandle));
        }
    }
    assert_eq!(stream.clone_dtoh(&c)?, [4.0]);
    Ok(())
}

#[test]
fn narrow_operands_have_wide_results_and_other_types_say_so() -> Result<(), Error> {
    let (blas, stream) = blas()?;
    let case = CASES[1];
    let [a, b, c] = [0, 1, 2].map(|i: usize| numbers(case.len()[i], i as u32));
    let (a_there, b_there) = (stream.clone_htod(&narrow::<f16>(&a))?, stream.clone_htod(&narrow::<f16>(&b))?);
    let mut c_there = stream.clone_htod(&narrow::<f32>(&c))?;
    let ([m, n, k], [lda, ldb, ldc]) = (case.mnk.map(|n| n as i32), case.leading().map(|n| n as i32));
    let (alpha, beta) = (2.0_f32, 1.0_f32);
    let mut product = |a_type, c_type| {
        let (to, _c) = c_there.device_ptr_mut(&stream);
        // SAFETY: the matrices are as large as the sizes say, unless it is refused.
        unsafe {
            result::gemm_ex(
                *blas.handle(),
                case.transa,
                case.transb,
                m,
                n,
                k,
                (&raw const alpha).cast::<c_void>(),
                a_there.device_ptr(&stream).0 as *const c_void,
                a_type,
                lda,
                b_there.device_ptr(&stream).0 as *const c_void,
                cudaDataType_t::CUDA_R_16F,
                ldb,
                (&raw const beta).cast(),
                to as *mut c_void,
                c_type,
                ldc,
                sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
                sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )
        }
    };
    product(cudaDataType_t::CUDA_R_16F, cudaDataType_t::CUDA_R_32F)?;
    let mixed = product(cudaDataType_t::CUDA_R_16BF, cudaDataType_t::CUDA_R_32F).unwrap_err();
    assert!(mixed.to_string().contains("a product of bf16 and f16 to f32"), "{mixed}");
    let bytes = product(cudaDataType_t::CUDA_R_8I, cudaDataType_t::CUDA_R_32F).unwrap_err();
    assert!(bytes.to_string().contains("convert the operands"), "{bytes}");
    assert_eq!(bytes.status(), sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED);
    near(&stream.clone_dtoh(&c_there)?, &case.product([2.0, 1.0], &a, &b, &c), 1e-6);
    Ok(())
}

#[test]
fn groups_of_products_are_one_after_another() -> Result<(), Error> {
    let (blas, stream) = blas()?;
    // Two products of the first case, one of the second.
    let cases = [CASES[0], CASES[0], CASES[1]];
    let operands: Vec<[Vec<f64>; 3]> = cases
        .iter()
        .enumerate()
        .map(|(at, case)| [0, 1, 2].map(|i: usize| numbers(case.len()[i], (10 * at + i) as u32)))
        .collect();
    let there = |i: usize| {
        operands.iter().map(|o| stream.clone_htod(&narrow::<f32>(&o[i]))).collect::<Result<Vec<_>, _>>()
    };
    let (a, b, mut c) = (there(0)?, there(1)?, there(2)?);
    let groups = [CASES[0], CASES[1]];
    let size = |i: usize| groups.iter().map(|case| case.mnk[i]).collect::<Vec<_>>();
    let leading = |i: usize| groups.iter().map(|case| case.leading()[i]).collect::<Vec<_>>();
    let config = GroupedGemmConfig::<f32> {
        transbs: groups.map(|case| case.transb).to_vec(),
        transas: groups.map(|case| case.transa).to_vec(),
        ms: size(0),
        ns: size(1),
        ks: size(2),
        alphas: vec![1.0, 0.5],
        betas: vec![0.0, 2.0],
        ldas: leading(0),
        ldbs: leading(1),
        ldcs: leading(2),
        problem_sizes: vec![2, 1],
    };
    assert_eq!((config.problem_count(), config.group_count()), (3, 2));
    let (a_all, b_all): (Vec<_>, Vec<_>) = (a.iter().collect(), b.iter().collect());
    let mut c_all: Vec<_> = c.iter_mut().collect();
    // SAFETY: the matrices are as large as the sizes say.
    unsafe { blas.grouped_gemm(config, &a_all, &b_all, &mut c_all)? };
    for (at, (case, [a, b, c_before])) in cases.iter().zip(&operands).enumerate() {
        let factors = if at < 2 { [1.0, 0.0] } else { [0.5, 2.0] };
        near(&stream.clone_dtoh(&c[at])?, &case.product(factors, a, b, c_before), 1e-6);
    }
    Ok(())
}

/// GELU as cuBLASLt approximates it.
fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh())
}

fn epilogues_of<X: Number + cudarc::driver::DeviceRepr>(bound: f64) -> Result<(), Error>
where
    CudaBlasLT: Matmul<X>,
{
    let stream = context()?.default_stream();
    let blas = CudaBlasLT::new(stream.clone())?;
    for case in CASES {
        let batch = 2;
        let [a, b, c] = [0, 1, 2].map(|i: usize| numbers(batch * case.len()[i], i as u32));
        let [m, n, k] = case.mnk;
        let bias = numbers(batch * m, 9);
        let there = |x: &[f64]| stream.clone_htod(&narrow::<X>(x));
        let (a_there, b_there, bias_there) = (there(&a)?, there(&b)?, there(&bias)?);
        let ([lda, ldb, ldc], [stride_a, stride_b, stride_c]) =
            (case.leading().map(|n| n as i64), case.len().map(|n| n as i64));
        for (activation, with_bias, stride_bias) in [
            (None, false, None),
            (None, true, Some(m as i64)),
            (Some(Activation::Relu), true, None),
            (Some(Activation::Gelu), false, None),
            (Some(Activation::Gelu), true, Some(m as i64)),
        ] {
            let config = MatmulConfig {
                transa: case.transa == T,
                transb: case.transb == T,
                transc: false,
                m: m as u64,
                n: n as u64,
                k: k as u64,
                alpha: 0.25,
                lda,
                ldb,
                beta: 1.0,
                ldc,
                stride_a: Some(stride_a),
                stride_b: Some(stride_b),
                stride_c: Some(stride_c),
                stride_bias,
                batch_size: Some(batch as i32),
            };
            let mut c_there = there(&c)?;
            let given = with_bias.then_some(&bias_there);
            // SAFETY: the matrices are as large as the sizes say.
            unsafe { blas.matmul(config, &a_there, &b_there, &mut c_there, given, activation.as_ref())? };
            let mut expected = Vec::new();
            for z in 0..batch {
                let part = |x: &[f64], i: usize| x[z * case.len()[i]..(z + 1) * case.len()[i]].to_vec();
                let mut one = case.product([0.25, 1.0], &part(&a, 0), &part(&b, 1), &part(&c, 2));
                for (j, i) in (0..n).flat_map(|j| (0..m).map(move |i| (j, i))) {
                    let x = &mut one[i + j * ldc as usize];
                    if with_bias {
                        *x += bias[z * stride_bias.unwrap_or(0) as usize + i];
                    }
                    *x = match activation {
                        None => *x,
                        Some(Activation::Relu) => x.max(0.0),
                        Some(Activation::Gelu) => gelu(*x),
                    };
                }
                expected.extend(one);
            }
            near(&stream.clone_dtoh(&c_there)?, &expected, bound);
        }
    }
    Ok(())
}

#[test]
fn a_bias_and_an_activation_follow_the_product() -> Result<(), Error> {
    epilogues_of::<f32>(1e-6)?;
    epilogues_of::<f16>(2e-3)?;
    epilogues_of::<bf16>(2e-2)
}

#[test]
fn what_cublaslt_has_not_says_so() -> Result<(), Error> {
    let stream = context()?.default_stream();
    let blas = CudaBlasLT::new(stream.clone())?;
    let (a, mut c) = (stream.alloc_zeros::<f32>(4)?, stream.alloc_zeros::<f32>(4)?);
    let config = MatmulConfig {
        transa: false,
        transb: false,
        transc: true,
        m: 2,
        n: 2,
        k: 2,
        alpha: 1.0,
        lda: 2,
        ldb: 2,
        beta: 0.0,
        ldc: 2,
        stride_a: None,
        stride_b: None,
        stride_c: None,
        stride_bias: None,
        batch_size: None,
    };
    // SAFETY: it is refused.
    let error = unsafe { blas.matmul(config, &a, &a, &mut c, None, None) }.unwrap_err();
    assert!(error.to_string().contains("a result that is transposed"), "{error}");
    let short = MatmulConfig { transc: false, lda: 1, ..config };
    // SAFETY: it is refused.
    let error = unsafe { blas.matmul(short, &a, &a, &mut c, None, None) }.unwrap_err();
    assert!(error.to_string().contains("leading dimension"), "{error}");
    Ok(())
}
