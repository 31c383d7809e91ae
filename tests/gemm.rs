//! Matrix products through the typed interface, as cuBLAS and rocBLAS have them.

use candle_amdgpu::gemm::{GemmConfig, GemmElement, GemmType, Transpose, gemm, gemm_raw};
use candle_amdgpu::{Device, DeviceBuffer, Error, GEMM, Stream, bf16, f16};
use candle_amdgpu_verify::reference::gemm::Product;
use candle_amdgpu_verify::reference::{Array, DType, Value};

fn streams() -> Vec<Stream> {
    let devices = Device::all().expect("devices");
    devices
        .iter()
        .filter(|d| GEMM.object(d.arch()).is_some())
        .map(|d| d.stream().expect("a stream"))
        .collect()
}

/// A number of the type, and its bits for the model.
trait Number: GemmElement {
    const DTYPE: DType;
    fn of(x: f64) -> Self;
    fn bits(self) -> u64;
}

macro_rules! numbers {
    ($($t:ident $dtype:ident $of:expr;)*) => {$(
        impl Number for $t {
            const DTYPE: DType = DType::$dtype;
            fn of(x: f64) -> Self {
                let of: fn(f64) -> $t = $of;
                of(x)
            }
            fn bits(self) -> u64 {
                self.to_bits().into()
            }
        }
    )*};
}
numbers! {
    f32 F32 |x| x as f32;
    f64 F64 |x| x;
    f16 F16 f16::from_f64;
    bf16 Bf16 bf16::from_f64;
}

fn array<T: Number>(data: &[T]) -> Array {
    Array::from_fn(T::DTYPE, data.len(), |i| Value::new(T::DTYPE, data[i].bits()))
}

/// Small numbers that no type rounds, in no simple order.
fn data<T: Number>(len: usize, seed: usize) -> Vec<T> {
    (0..len).map(|i| T::of(((i * 7 + seed * 13 + i / 5) % 17) as f64 - 8.0)).collect()
}

fn product(config: &GemmConfig) -> Product {
    let strides = |transposed, leading, z| match transposed {
        Transpose::No => [1, leading, z],
        Transpose::Yes => [leading, 1, z],
    };
    let [b_k, b_j, b_z] = strides(config.transb, config.ldb, config.stride_b);
    Product {
        m: config.m,
        n: config.n,
        k: if config.alpha == 0.0 { 0 } else { config.k },
        batch: config.batch,
        alpha: config.alpha,
        beta: config.beta,
        a: strides(config.transa, config.lda, config.stride_a),
        b: [b_j, b_k, b_z],
        c: [1, config.ldc, config.stride_c],
    }
}

/// Compares with the model on every device, through the checked and the raw function.
fn check<T: Number>(config: &GemmConfig) {
    let product = product(config);
    let [a_len, b_len, c_len] = product.lens();
    let (a, b, c) = (data::<T>(a_len, 1), data::<T>(b_len, 2), data::<T>(c_len, 3));
    let expected = product.result(&array(&a), &array(&b), &array(&c));
    let bounds = product.bounds(&array(&a), &array(&b), &array(&c), false);
    for stream in streams() {
        let [a, b] = [&a, &b].map(|data| DeviceBuffer::from_slice(&stream, data).expect("memory"));
        for raw in [false, true] {
            let mut result = DeviceBuffer::from_slice(&stream, &c).expect("memory");
            if raw {
                let (a, b, c) = (a.as_ptr().cast(), b.as_ptr().cast(), result.as_mut_ptr().cast());
                // SAFETY: the buffers hold the matrices, and live until the result is read
                unsafe { gemm_raw(&stream, T::TYPE, config, a, b, c) }.expect("a product");
            } else {
                gemm(&stream, config, &a, &b, &mut result).expect("a product");
            }
            let result = array(&result.to_vec().expect("a result"));
            for (i, bound) in bounds.iter().enumerate() {
                let (got, want) = (result.get(i).to_f64(), expected.get(i).to_f64());
                assert!(
                    (got - want).abs() <= *bound,
                    "{} on {}: element {i} is {got}, not {want} (± {bound:e}); {config:?}",
                    T::DTYPE,
                    stream.device().arch(),
                );
            }
        }
    }
}

fn check_all(config: &GemmConfig) {
    check::<f32>(config);
    check::<f64>(config);
    check::<f16>(config);
    check::<bf16>(config);
}

/// A product with these transpositions, and no gaps.
fn transposed(transa: Transpose, transb: Transpose, m: usize, n: usize, k: usize) -> GemmConfig {
    let lda = if transa == Transpose::Yes { k } else { m };
    let ldb = if transb == Transpose::Yes { n } else { k };
    GemmConfig { transa, transb, lda: lda.max(1), ldb: ldb.max(1), ..GemmConfig::new(m, n, k) }
}

#[test]
fn every_transposition_of_every_shape_is_right() {
    use Transpose::{No, Yes};
    for (m, n, k) in [(3, 5, 7), (64, 16, 32), (1, 40, 33), (40, 1, 64), (130, 70, 24)] {
        for (transa, transb) in [(No, No), (No, Yes), (Yes, No), (Yes, Yes)] {
            check_all(&transposed(transa, transb, m, n, k));
        }
    }
}

/// Compares some elements of a product with sums on the host.
fn check_some<T: Number>(stream: &Stream, config: &GemmConfig) {
    let product = product(config);
    let [a_len, b_len, c_len] = product.lens();
    let (a, b) = (data::<T>(a_len, 1), data::<T>(b_len, 2));
    let [a_there, b_there] = [&a, &b].map(|data| DeviceBuffer::from_slice(stream, data).expect("memory"));
    let mut result = DeviceBuffer::<T>::zeros(stream, c_len).expect("memory");
    gemm(stream, config, &a_there, &b_there, &mut result).expect("a product");
    let result = array(&result.to_vec().expect("a result"));
    let (a, b) = (array(&a), array(&b));
    for n in 0..500 {
        let (i, j) = (n * 89 % config.m, n * 61 % config.n);
        let at = |matrix: &Array, [own, along, _]: [usize; 3], row: usize, k: usize| {
            matrix.get(row * own + k * along).to_f64()
        };
        let sum: f64 = (0..config.k).map(|k| at(&a, product.a, i, k) * at(&b, product.b, j, k)).sum();
        let (got, want) = (result.get(i + j * config.ldc).to_f64(), array(&[T::of(sum)]).get(0).to_f64());
        assert_eq!(got, want, "{} on {}: ({i}, {j}); {config:?}", T::DTYPE, stream.device().arch());
    }
}

#[test]
fn products_of_many_tiles_are_right_in_every_transposition() {
    use Transpose::{No, Yes};
    for stream in streams() {
        // On a GPU so many that its largest tiles take the least time; whole ones and parts, lines in 16 bytes and not.
        let sizes = match stream.device().is_emulated() {
            true => [(264, 136, 72), (131, 129, 67)],
            false => [(4104, 4104, 136), (2051, 2049, 67)],
        };
        for (m, n, k) in sizes {
            for (transa, transb) in [(No, No), (No, Yes), (Yes, No), (Yes, Yes)] {
                let config = transposed(transa, transb, m, n, k);
                check_some::<f16>(&stream, &config);
                check_some::<bf16>(&stream, &config);
                check_some::<f32>(&stream, &config);
                check_some::<f64>(&stream, &config);
            }
        }
    }
}

#[test]
fn many_short_rows_by_a_vector_are_computed_in_tiles() {
    let shape = |m, k, batch| GemmConfig {
        stride_a: m * k,
        stride_b: k,
        stride_c: m,
        batch,
        ..transposed(Transpose::Yes, Transpose::No, m, 1, k)
    };
    // Attention of one query by the keys of many heads.
    check_all(&shape(200, 64, 40));
}

#[test]
fn leading_dimensions_batches_alpha_and_beta_are_respected() {
    let config = GemmConfig {
        transa: Transpose::Yes,
        transb: Transpose::No,
        m: 17,
        n: 9,
        k: 20,
        alpha: -0.5,
        lda: 23,
        stride_a: 500,
        ldb: 24,
        stride_b: 0,
        beta: 2.0,
        ldc: 19,
        stride_c: 200,
        batch: 3,
    };
    check_all(&config);
    // The products of a batch side by side in one matrix.
    check_all(&GemmConfig { ldc: 60, stride_c: 17, ..config });
}

#[test]
fn empty_sums_scale_c_and_empty_products_do_nothing() {
    check_all(&GemmConfig { beta: -2.0, ..GemmConfig::new(5, 6, 0) });
    check_all(&GemmConfig { alpha: 0.0, beta: 0.5, ..GemmConfig::new(5, 6, 7) });
    for (m, n, batch) in [(0, 6, 1), (5, 0, 1), (5, 6, 0)] {
        check::<f32>(&GemmConfig { batch, ..GemmConfig::new(m, n, 7) });
    }
}

#[test]
fn an_alpha_of_zero_ignores_the_matrices_and_a_beta_of_zero_the_old_result() {
    for stream in streams() {
        let nan = DeviceBuffer::from_slice(&stream, &[f32::NAN; 64]).unwrap();
        let ones = DeviceBuffer::from_slice(&stream, &[1.0_f32; 64]).unwrap();
        let mut c = nan.try_clone().unwrap();
        gemm(&stream, &GemmConfig::new(8, 8, 8), &ones, &ones, &mut c).unwrap();
        assert_eq!(c.to_vec().unwrap(), [8.0; 64]);
        gemm(&stream, &GemmConfig { alpha: 0.0, beta: 1.0, ..GemmConfig::new(8, 8, 8) }, &nan, &nan, &mut c)
            .unwrap();
        assert_eq!(c.to_vec().unwrap(), [8.0; 64]);
        gemm(&stream, &GemmConfig::new(8, 8, 8), &nan, &ones, &mut c).unwrap();
        assert!(c.to_vec().unwrap().iter().all(|x| x.is_nan()));
    }
}

#[test]
fn sums_of_f16_and_bf16_are_kept_in_f32() {
    // In f16 the sum would stop at 2048, in bf16 at 256.
    for stream in streams() {
        let config = transposed(Transpose::Yes, Transpose::No, 20, 3, 4096);
        let ones = DeviceBuffer::from_slice(&stream, &vec![f16::ONE; 20 * 4096]).unwrap();
        let mut c = DeviceBuffer::<f16>::zeros(&stream, 60).unwrap();
        gemm(&stream, &config, &ones, &ones, &mut c).unwrap();
        assert_eq!(c.to_vec().unwrap(), [f16::from_f32(4096.0); 60]);
        let ones = DeviceBuffer::from_slice(&stream, &vec![bf16::ONE; 20 * 4096]).unwrap();
        let mut c = DeviceBuffer::<bf16>::zeros(&stream, 60).unwrap();
        gemm(&stream, &config, &ones, &ones, &mut c).unwrap();
        assert_eq!(c.to_vec().unwrap(), [bf16::from_f32(4096.0); 60]);
    }
}

#[test]
fn offsets_beyond_two_to_the_31_are_reached() {
    // The second matrix of the batch and its last column begin 2^31 + 2^20 elements on; the memory between is not used.
    const FAR: usize = (1 << 31) + (1 << 20);
    let Some(stream) = streams().into_iter().next() else { return };
    let Ok(mut a) = DeviceBuffer::<f16>::alloc(&stream, FAR + 16) else { return };
    let [near, far] = [1.0, 2.0].map(f16::from_f32);
    a.slice_mut(..4).unwrap().copy_from_slice(&[near; 4]).unwrap();
    a.slice_mut(FAR..FAR + 4).unwrap().copy_from_slice(&[far; 4]).unwrap();
    let b = DeviceBuffer::from_slice(&stream, &[f16::ONE; 4]).unwrap();
    let mut c = DeviceBuffer::<f16>::zeros(&stream, 16).unwrap();
    let config = GemmConfig { stride_a: FAR, stride_c: 4, batch: 2, ..GemmConfig::new(2, 2, 2) };
    gemm(&stream, &config, &a, &b, &mut c).unwrap();
    assert_eq!(c.to_vec().unwrap()[..8], [[near + near; 4], [far + far; 4]].concat());
    // Two columns, as far apart.
    let config = GemmConfig { lda: FAR, ..GemmConfig::new(2, 2, 2) };
    gemm(&stream, &config, &a, &b, &mut c).unwrap();
    assert_eq!(c.to_vec().unwrap()[..4], [near + far; 4]);
}

/// Row-major callers, such as Candle, give a matrix of no columns a leading dimension of 0.
#[test]
fn an_empty_operand_needs_no_leading_dimension() {
    for stream in streams() {
        let none = DeviceBuffer::<f32>::zeros(&stream, 0).unwrap();
        let mut c = DeviceBuffer::from_slice(&stream, &[7.0_f32; 12]).unwrap();
        let config = GemmConfig { lda: 0, ldb: 0, transa: Transpose::Yes, ..GemmConfig::new(3, 4, 0) };
        gemm(&stream, &config, &none, &none, &mut c).unwrap();
        assert_eq!(c.to_vec().unwrap(), [0.0; 12]);
    }
}

#[test]
fn wrong_arguments_are_errors_with_their_values() {
    let Some(stream) = streams().into_iter().next() else { return };
    let buffer = DeviceBuffer::<f32>::zeros(&stream, 12).unwrap();
    let mut c = DeviceBuffer::<f32>::zeros(&stream, 11).unwrap();
    let mut run = |config: &GemmConfig| gemm(&stream, config, &buffer, &buffer, &mut c).unwrap_err();
    let good = GemmConfig::new(3, 4, 3);
    assert_eq!(
        run(&GemmConfig { lda: 2, ..good }),
        Error::LeadingDimension { matrix: "A", leading: 2, rows: 3 }
    );
    assert_eq!(
        run(&GemmConfig { transb: Transpose::Yes, ldb: 3, ..good }),
        Error::LeadingDimension { matrix: "B", leading: 3, rows: 4 }
    );
    assert!(matches!(run(&good), Error::BufferTooShort { have: 11, need: 12, .. }));
    assert!(matches!(
        run(&GemmConfig { batch: 2, stride_c: 3, ..good }),
        Error::ProductsOverlap { stride: 3, .. }
    ));
    // SAFETY: it is refused before the addresses are looked at
    let refused = unsafe {
        let null = std::ptr::null_mut();
        gemm_raw(&stream, GemmType::F32, &GemmConfig { ldc: 0, ..good }, null, null, null)
    };
    assert!(matches!(refused, Err(Error::LeadingDimension { matrix: "C", .. })));
}
