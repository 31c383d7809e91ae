//! Candle's tensors: the functions beside attention in `f32` on the CPU, and errors.

use candle_core::{DType, Device, IndexOp, Result, Tensor};
use candle_flash_attn::*;

fn devices() -> Vec<Device> {
    let count = candle_amdgpu::Device::count().unwrap();
    (0..count).map(|i| Device::new_cuda(i).unwrap()).collect()
}

fn random(shape: &[usize], seed: u64, dtype: DType, device: &Device) -> Result<Tensor> {
    let mut state = seed;
    let numbers: Vec<f32> = (0..shape.iter().product())
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect();
    Tensor::from_vec(numbers, shape, &Device::Cpu)?.to_dtype(dtype)?.to_device(device)
}

/// Attention of (batch, position, head, element) on the CPU, of the same rounded numbers. `bias` is added to the scores of (head,
/// query, key).
fn model(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    scale: f64,
    bias: Option<&Tensor>,
    softcap: Option<f64>,
) -> Result<Tensor> {
    let cpu = |x: &Tensor| x.to_device(&Device::Cpu)?.to_dtype(DType::F32)?.transpose(1, 2)?.contiguous();
    let (q, k, v) = (cpu(q)?, cpu(k)?, cpu(v)?);
    let group = q.dims()[1] / k.dims()[1];
    let repeat = |x: Tensor| -> Result<Tensor> {
        let (b, h, s, d) = x.dims4()?;
        x.unsqueeze(2)?.expand((b, h, group, s, d))?.contiguous()?.reshape((b, h * group, s, d))
    };
    let (k, v) = (repeat(k)?, repeat(v)?);
    let mut scores = (q.matmul(&k.t()?)? * scale)?;
    if let Some(cap) = softcap {
        scores = ((scores / cap)?.tanh()? * cap)?;
    }
    if let Some(bias) = bias {
        scores = scores.broadcast_add(bias)?;
    }
    let most = scores.max_keepdim(3)?;
    let weights = scores.broadcast_sub(&most)?.exp()?;
    let weights = weights.broadcast_div(&weights.sum_keepdim(3)?)?;
    weights.matmul(&v)?.transpose(1, 2)
}

/// 0 where a query sees a key, −∞ elsewhere.
fn mask(queries: usize, keys: usize, seen: impl Fn(i64, i64) -> bool) -> Result<Tensor> {
    let shift = keys as i64 - queries as i64;
    let one = |i: usize, j: usize| if seen(i as i64 + shift, j as i64) { 0.0 } else { f32::NEG_INFINITY };
    let all: Vec<f32> = (0..queries * keys).map(|n| one(n / keys, n % keys)).collect();
    Tensor::from_vec(all, (1, 1, queries, keys), &Device::Cpu)
}

#[track_caller]
fn assert_near(found: &Tensor, expected: &Tensor, bound: f32) {
    let found = found.to_device(&Device::Cpu).unwrap().to_dtype(DType::F32).unwrap();
    let difference = (found - expected).unwrap().abs().unwrap().flatten_all().unwrap().max(0).unwrap();
    let difference = difference.to_scalar::<f32>().unwrap();
    assert!(difference < bound, "differs by {difference}, more than {bound}");
}

fn bound(dtype: DType) -> f32 {
    if dtype == DType::F16 { 2e-3 } else { 1.6e-2 }
}

#[test]
fn sequences_of_one_length() -> Result<()> {
    for device in devices() {
        for dtype in [DType::F16, DType::BF16] {
            for head in [64, 128] {
                let q = random(&[2, 33, 4, head], 1, dtype, &device)?;
                let k = random(&[2, 50, 2, head], 2, dtype, &device)?;
                let v = random(&[2, 50, 2, head], 3, dtype, &device)?;
                let near = |found: Tensor, bias: Option<&Tensor>, softcap: Option<f64>| -> Result<()> {
                    assert_near(&found, &model(&q, &k, &v, 0.125, bias, softcap)?, bound(dtype));
                    Ok(())
                };
                near(flash_attn(&q, &k, &v, 0.125, false)?, None, None)?;
                let causal = mask(33, 50, |p, j| j <= p)?;
                near(flash_attn(&q, &k, &v, 0.125, true)?, Some(&causal), None)?;
                let window = mask(33, 50, |p, j| p - 9 <= j && j <= p + 4)?;
                near(flash_attn_windowed(&q, &k, &v, 0.125, Some(9), Some(4))?, Some(&window), None)?;
                let slopes = [0.5_f32, 0.25, 0.125, 0.0625];
                let distance =
                    |n: usize| -(((n / 50 % 33) as f32 + 17.0) - (n % 50) as f32).abs() * slopes[n / 1650];
                let bias: Vec<f32> = (0..4 * 33 * 50).map(distance).collect();
                let bias = Tensor::from_vec(bias, (1, 4, 33, 50), &Device::Cpu)?;
                let slopes = Tensor::new(&slopes, &device)?;
                near(flash_attn_alibi(&q, &k, &v, &slopes, 0.125, false)?, Some(&bias), None)?;
                let both = bias.broadcast_add(&causal)?;
                near(flash_attn_alibi(&q, &k, &v, &slopes, 0.125, true)?, Some(&both), None)?;
                let found = flash_attn_alibi_windowed(&q, &k, &v, &slopes, 0.125, Some(9), Some(4))?;
                near(found, Some(&bias.broadcast_add(&window)?), None)?;
                let found = flash_attn_alibi_windowed_softcap(&q, &k, &v, None, 0.125, None, None, 0.7)?;
                near(found, None, Some(0.7))?;
            }
        }
    }
    Ok(())
}

#[test]
fn tensors_that_are_no_whole_rows_apart_are_copied() -> Result<()> {
    for device in devices() {
        let wide = random(&[1, 20, 2, 68], 4, DType::F16, &device)?;
        let q = wide.narrow(3, 4, 64)?;
        let k = random(&[1, 2, 25, 64], 5, DType::F16, &device)?.transpose(1, 2)?;
        let v = random(&[1, 2, 25, 64], 6, DType::F16, &device)?.transpose(1, 2)?;
        assert_near(&flash_attn(&q, &k, &v, 0.125, false)?, &model(&q, &k, &v, 0.125, None, None)?, 2e-3);
    }
    Ok(())
}

#[test]
fn sequences_of_different_lengths_and_pages() -> Result<()> {
    for device in devices() {
        let (lengths_q, lengths_k) = ([3, 40, 1], [20, 45, 70]);
        let starts = |lengths: &[usize]| -> Vec<u32> {
            let mut starts = vec![0];
            lengths.iter().for_each(|&l| starts.push(starts.last().unwrap() + l as u32));
            starts
        };
        let (of_q, of_k) = (starts(&lengths_q), starts(&lengths_k));
        let q = random(&[44, 4, 64], 7, DType::BF16, &device)?;
        let k = random(&[135, 2, 64], 8, DType::BF16, &device)?;
        let v = random(&[135, 2, 64], 9, DType::BF16, &device)?;
        let seqlens_q = Tensor::new(of_q.clone(), &device)?;
        let seqlens_k = Tensor::new(of_k.clone(), &device)?;
        let expected =
            |bias: &dyn Fn(usize, usize) -> Result<Tensor>, softcap: Option<f64>| -> Result<Tensor> {
                let part = |x: &Tensor, starts: &[u32], i: usize| {
                    x.narrow(0, starts[i] as usize, (starts[i + 1] - starts[i]) as usize)?.unsqueeze(0)
                };
                let parts: Result<Vec<Tensor>> = (0..3)
                    .map(|i| {
                        let bias = bias(lengths_q[i], lengths_k[i])?;
                        model(
                            &part(&q, &of_q, i)?,
                            &part(&k, &of_k, i)?,
                            &part(&v, &of_k, i)?,
                            0.2,
                            Some(&bias),
                            softcap,
                        )?
                        .i(0)
                    })
                    .collect();
                Tensor::cat(&parts?, 0)
            };
        let causal = |queries: usize, keys: usize| mask(queries, keys, |p, j| j <= p);
        let all = |queries: usize, keys: usize| mask(queries, keys, |_, _| true);
        let found = flash_attn_varlen(&q, &k, &v, &seqlens_q, &seqlens_k, 40, 70, 0.2, true)?;
        assert_near(&found, &expected(&causal, None)?, 1.6e-2);
        let found = flash_attn_varlen_windowed(&q, &k, &v, &seqlens_q, &seqlens_k, 40, 70, 0.2, None, None)?;
        assert_near(&found, &expected(&all, None)?, 1.6e-2);
        let slopes = Tensor::new(&[0.0_f32; 4], &device)?;
        let found = flash_attn_varlen_alibi(&q, &k, &v, &slopes, &seqlens_q, &seqlens_k, 40, 70, 0.2, true)?;
        assert_near(&found, &expected(&causal, None)?, 1.6e-2);
        let found = flash_attn_varlen_alibi_windowed(
            &q,
            &k,
            &v,
            &slopes,
            &seqlens_q,
            &seqlens_k,
            40,
            70,
            0.2,
            None,
            Some(0),
        )?;
        assert_near(&found, &expected(&causal, None)?, 1.6e-2);
        let found = flash_attn_varlen_alibi_windowed_softcap(
            &q,
            &k,
            &v,
            None,
            &seqlens_q,
            &seqlens_k,
            40,
            70,
            0.2,
            None,
            Some(0),
            0.9,
        )?;
        assert_near(&found, &expected(&causal, Some(0.9))?, 1.6e-2);

        // The same keys in pages of 32: sequence 0 has page 4, sequence 1 pages 2 and 0, sequence 2 pages 5, 1 and 3.
        let table = Tensor::new(&[[4_u32, 0, 0], [2, 0, 0], [5, 1, 3]], &device)?;
        let paged = |x: &Tensor| -> Result<Tensor> {
            let mut pages = vec![Tensor::zeros((32, 2, 64), DType::BF16, &device)?; 6];
            for (i, of) in [&[4_usize][..], &[2, 0], &[5, 1, 3]].into_iter().enumerate() {
                let whole = x.narrow(0, of_k[i] as usize, lengths_k[i])?.pad_with_zeros(
                    0,
                    0,
                    32 * of.len() - lengths_k[i],
                )?;
                for (n, &page) in of.iter().enumerate() {
                    pages[page] = whole.narrow(0, 32 * n, 32)?;
                }
            }
            Tensor::stack(&pages, 0)?.contiguous()
        };
        let (k, v) = (paged(&k)?, paged(&v)?);
        let run = |ranges: Option<&Tensor>, right| {
            flash_attn_varlen_paged_windowed(
                &q, &k, &v, &seqlens_q, &seqlens_k, &table, ranges, 40, 70, 0.2, None, right, 32, None,
            )
        };
        assert_near(&run(None, Some(0))?, &expected(&causal, None)?, 1.6e-2);
        let ranges = Tensor::new(&[[[15_i32, 20]], [[10, 30]], [[0, 0]]], &device)?;
        let seen = |queries: usize, keys: usize| {
            let range = match keys {
                20 => 15..20,
                45 => 10..30,
                _ => 0..0,
            };
            mask(queries, keys, move |p, j| j <= p || range.contains(&p) && range.contains(&j))
        };
        assert_near(&run(Some(&ranges), Some(0))?, &expected(&seen, None)?, 1.6e-2);
    }
    Ok(())
}

#[track_caller]
fn refused(result: Result<Tensor>, text: &str) {
    let error = result.expect_err("it is refused").to_string();
    assert!(error.contains(text), "{error}\ndoes not contain {text:?}");
}

#[test]
fn errors_say_what_does_not_fit() -> Result<()> {
    let device = &devices()[0];
    let make = |shape: &[usize], dtype| Tensor::zeros(shape, dtype, device);
    let f16 = |shape: &[usize]| make(shape, DType::F16);
    let q = f16(&[1, 4, 4, 64])?;
    let k = f16(&[1, 6, 2, 64])?;
    let run = |q: &Tensor, k: &Tensor, v: &Tensor| flash_attn(q, k, v, 1.0, false);
    refused(run(&make(&[1, 4, 4, 64], DType::F32)?, &k, &k), "F32");
    refused(run(&f16(&[4, 4, 64])?, &k, &k), "must have four dimensions");
    refused(
        run(&q, &f16(&[1, 6, 3, 64])?, &f16(&[1, 6, 3, 64])?),
        "the 3 heads of k and v must divide the 4 of q",
    );
    refused(run(&q, &f16(&[2, 6, 2, 64])?, &k), "do not fit each other");
    refused(run(&q, &k, &f16(&[1, 7, 2, 64])?), "do not fit each other");
    refused(
        run(&f16(&[1, 4, 4, 60])?, &f16(&[1, 6, 2, 60])?, &f16(&[1, 6, 2, 60])?),
        "a multiple of 8, but these have 60",
    );
    refused(
        run(&f16(&[1, 4, 1, 520])?, &f16(&[1, 6, 1, 520])?, &f16(&[1, 6, 1, 520])?),
        "up to 512 elements",
    );
    refused(run(&q.transpose(2, 3)?, &k, &k), "do not fit");
    let across = f16(&[1, 4, 64, 4])?.transpose(2, 3)?;
    refused(run(&across, &k, &k), "the elements of a head of q must be contiguous");
    refused(run(&q, &k, &make(&[1, 6, 2, 64], DType::BF16)?), "unexpected dtype");
    let slopes = make(&[3], DType::F32)?;
    refused(flash_attn_alibi(&q, &k, &k, &slopes, 1.0, false), "alibi_slopes must have the shape (4)");
    let slopes = make(&[4], DType::F16)?;
    refused(flash_attn_alibi(&q, &k, &k, &slopes, 1.0, false), "alibi_slopes must be of f32");
    let slopes = Tensor::zeros(4, DType::F32, &Device::Cpu)?;
    refused(flash_attn_alibi(&q, &k, &k, &slopes, 1.0, false), "must be on the device of q");
    let cpu = |x: &Tensor| x.to_device(&Device::Cpu).unwrap();
    refused(run(&cpu(&q), &cpu(&k), &cpu(&k)), "no implementation for the CPU");

    let (q, k) = (f16(&[9, 4, 64])?, f16(&[12, 2, 64])?);
    let starts = |n: usize| make(&[n], DType::U32);
    let varlen = |a: &Tensor, b: &Tensor| flash_attn_varlen(&q, &k, &k, a, b, 9, 12, 1.0, false);
    refused(varlen(&starts(1)?, &starts(2)?), "at least two elements");
    refused(varlen(&starts(2)?, &starts(3)?), "seqlens_q has 2 elements, and seqlens_k 3");
    refused(varlen(&make(&[2], DType::F32)?, &starts(2)?), "seqlens_q must be of u32 or i32");
    let pages = f16(&[3, 32, 2, 64])?;
    let paged = |table: &Tensor, page: usize, ranges: Option<&Tensor>| {
        let s = starts(2)?;
        flash_attn_varlen_paged_windowed(
            &q, &pages, &pages, &s, &s, table, ranges, 9, 90, 1.0, None, None, page, None,
        )
    };
    refused(paged(&make(&[1, 3], DType::U32)?, 16, None), "page_block_size must be a multiple of 32");
    refused(paged(&make(&[2, 3], DType::U32)?, 32, None), "block_table must have the shape (1, pages)");
    refused(paged(&make(&[1, 2], DType::U32)?, 32, None), "too few for max_seqlen_k, 90");
    refused(paged(&make(&[1, 3], DType::I64)?, 32, None), "block_table must be of u32 or i32");
    let table = make(&[1, 3], DType::U32)?;
    refused(paged(&table, 32, Some(&make(&[1, 1, 2], DType::U32)?)), "mm_prefix_ranges must be of i32");
    refused(
        paged(&table, 32, Some(&make(&[2, 1, 2], DType::I32)?)),
        "mm_prefix_ranges must have the shape (1, ranges, 2)",
    );
    Ok(())
}
