//! Times of attention on the first device, with rates and some elements of each result: what `benches/attention.py` prints of PyTorch's.
//!
//! ```text
//! CANDLE_AMDGPU_DEVICE=cuda cargo run --release --example speed -- [f16|bf16] [LARGEST NUMBER OF TOKENS]
//! ```

use std::ptr;

use candle_amdgpu::{Device, DeviceBuffer, Element, Event, Result, Stream, bf16, f16};
use candle_flash_attn::kernels::forward::{Problem, Strides};
use candle_flash_attn::launch::{self, Attention, Type, Way};

/// Sizes of an attention.
#[derive(Clone, Copy)]
struct Sizes {
    batch: usize,
    queries: usize,
    keys: usize,
    kv_heads: usize,
    group: usize,
    dim: usize,
    causal: bool,
}

/// Element `i` of operand `which`, between −1 and 1; the benchmark in Python has the same.
fn element(which: u32, i: usize) -> f32 {
    let hash = (i as u32).wrapping_mul(2_654_435_761).wrapping_add(which.wrapping_mul(0x9e37_79b9));
    let hash = (hash ^ hash >> 15).wrapping_mul(2_246_822_519);
    ((hash >> 16) as f32) / 32768.0 - 1.0
}

fn run<T: Element>(stream: &Stream, ty: Type, of: fn(f32) -> T, to: fn(T) -> f32, s: Sizes) -> Result<()> {
    let heads = s.kv_heads * s.group;
    let fill = |which: u32, len: usize| -> Result<DeviceBuffer<T>> {
        let data: Vec<T> = (0..len).map(|i| of(element(which, i))).collect();
        DeviceBuffer::from_slice(stream, &data)
    };
    let q = fill(1, s.batch * s.queries * heads * s.dim)?;
    let k = fill(2, s.batch * s.keys * s.kv_heads * s.dim)?;
    let v = fill(3, s.batch * s.keys * s.kv_heads * s.dim)?;
    let mut out = DeviceBuffer::<T>::alloc(stream, q.len())?;
    let strides =
        |rows: usize, heads: usize| Strides { batch: rows * heads * s.dim, row: heads * s.dim, head: s.dim };
    let attention = Attention {
        ty,
        q: q.as_ptr().cast(),
        k: k.as_ptr().cast(),
        v: v.as_ptr().cast(),
        out: out.as_mut_ptr().cast(),
        lse: ptr::null_mut(),
        slopes: ptr::null(),
        starts_q: ptr::null(),
        starts_k: ptr::null(),
        table: ptr::null(),
        ranges: ptr::null(),
        problem: Problem {
            q: strides(s.queries, heads),
            k: strides(s.keys, s.kv_heads),
            v: strides(s.keys, s.kv_heads),
            out: strides(s.queries, heads),
            lse_batch: 0,
            lse_head: 0,
            dim: s.dim as u32,
            group: s.group as u32,
            queries: s.queries as u32,
            keys: s.keys as u32,
            left: -1,
            right: if s.causal { 0 } else { -1 },
            scale: 1.0 / (s.dim as f32).sqrt(),
            softcap: 0.0,
            slopes_batch: 0,
            page: 0,
            table_batch: 0,
            ranges: 0,
            ranges_batch: 0,
        },
        kv_heads: s.kv_heads as u32,
        batch: s.batch as u32,
    };
    // SAFETY: the memory is what the sizes say.
    let once = || unsafe { launch::run(stream, &attention, Way::Auto) };
    let (begin, end) = (Event::new(stream.device(), true)?, Event::new(stream.device(), true)?);
    for _ in 0..3 {
        once()?;
    }
    let mut times = Vec::new();
    for _ in 0..5 {
        begin.move_to(stream)?;
        for _ in 0..10 {
            once()?;
        }
        end.move_to(stream)?;
        end.synchronize()?;
        times.push(begin.elapsed_ms(&end)? / 10.0);
    }
    times.sort_by(f32::total_cmp);
    let ms = f64::from(times[2]);
    let flop = 4.0 * (s.batch * heads * s.queries * s.keys * s.dim) as f64 / if s.causal { 2.0 } else { 1.0 };
    let bytes = 2.0 * (2 * q.len() + k.len() + v.len()) as f64;
    let found = out.slice(out.len() - s.dim..)?.to_vec()?;
    let some: Vec<f32> = [0, 1, s.dim / 2, s.dim - 1].map(|i| to(found[i])).to_vec();
    println!(
        "batch {} queries {} keys {} heads {}/{} dim {}{}: {ms:.4} ms, {:.1} TFLOP/s, {:.0} GB/s, {some:.5?}",
        s.batch,
        s.queries,
        s.keys,
        heads,
        s.kv_heads,
        s.dim,
        if s.causal { " causal" } else { "" },
        flop / ms / 1e9,
        bytes / ms / 1e6,
    );
    Ok(())
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let half = args.next().is_some_and(|ty| ty == "f16");
    let most = args.next().and_then(|most| most.parse().ok()).unwrap_or(16_384);
    let stream = Device::new(0)?.stream()?;
    println!("{}, {}", stream.device(), if half { "f16" } else { "bf16" });
    let mut all = Vec::new();
    for dim in [64, 128] {
        for causal in [false, true] {
            for tokens in [1024, 2048, 4096, 8192, 16_384] {
                let batch = 16_384 / tokens;
                all.push(Sizes {
                    batch,
                    queries: tokens,
                    keys: tokens,
                    kv_heads: 2048 / dim,
                    group: 1,
                    dim,
                    causal,
                });
            }
        }
    }
    for keys in [4096, 32_768] {
        for (kv_heads, group) in [(8, 4), (32, 1)] {
            for batch in [1, 8] {
                all.push(Sizes { batch, queries: 1, keys, kv_heads, group, dim: 128, causal: true });
            }
        }
    }
    for sizes in
        all.into_iter().filter(|sizes| sizes.keys <= most || sizes.queries == 1 && sizes.keys <= 2 * most)
    {
        if half {
            run(&stream, Type::F16, f16::from_f32, f16::to_f32, sizes)?;
        } else {
            run(&stream, Type::Bf16, bf16::from_f32, bf16::to_f32, sizes)?;
        }
    }
    Ok(())
}
