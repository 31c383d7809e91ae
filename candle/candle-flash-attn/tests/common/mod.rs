//! Attention in `f64`, and cases to compare kernels with it.

#![allow(dead_code)]

use std::ptr;

use candle_amdgpu::{Device, DeviceBuffer, Element, Stream, bf16, f16};
use candle_flash_attn::kernels::forward::{Problem, Strides};
use candle_flash_attn::launch::{self, Attention, Type, Way};

/// Sequences of queries and keys, and what masks them.
#[derive(Clone, Debug)]
pub struct Case {
    pub ty: Type,
    pub way: Way,
    /// Queries and keys of each sequence.
    pub lengths: Vec<[usize; 2]>,
    pub kv_heads: usize,
    pub group: usize,
    pub dim: usize,
    pub left: Option<usize>,
    pub right: Option<usize>,
    pub scale: f32,
    pub softcap: f32,
    pub sloped: bool,
    /// Ranges of positions that see each other, the same for all sequences.
    pub ranges: Vec<[i32; 2]>,
    pub memory: Layout,
    pub seed: u64,
}

/// How sequences lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All have the first's length: sequence, position, head.
    Dense,
    /// All have the first's length: sequence, head, position, with so many elements between rows.
    HeadsFirst(usize),
    /// One behind the other.
    Packed,
    /// Queries one behind the other, keys in pages of so many positions.
    Paged(usize),
}

impl Default for Case {
    fn default() -> Self {
        Case {
            ty: Type::F16,
            way: Way::Auto,
            lengths: vec![[5, 7]],
            kv_heads: 1,
            group: 1,
            dim: 64,
            left: None,
            right: None,
            scale: 0.2,
            softcap: 0.0,
            sloped: false,
            ranges: Vec::new(),
            memory: Layout::Dense,
            seed: 1,
        }
    }
}

/// An element type of the kernels.
pub trait Half: Element + PartialEq + std::fmt::Debug {
    const TYPE: Type;
    /// Half a unit in the last place of 1.
    const ROUNDING: f64;
    fn of(x: f32) -> Self;
    fn value(self) -> f64;
}

impl Half for f16 {
    const TYPE: Type = Type::F16;
    const ROUNDING: f64 = 1.0 / 2048.0;
    fn of(x: f32) -> Self {
        f16::from_f32(x)
    }
    fn value(self) -> f64 {
        self.to_f32().into()
    }
}

impl Half for bf16 {
    const TYPE: Type = Type::Bf16;
    const ROUNDING: f64 = 1.0 / 256.0;
    fn of(x: f32) -> Self {
        bf16::from_f32(x)
    }
    fn value(self) -> f64 {
        self.to_f32().into()
    }
}

/// Numbers between −1 and 1.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 40) as f32) / (1 << 23) as f32 - 1.0
    }
}

/// Of a row of the result: its elements, a bound of what the kernels may be off, and the logarithm of the sum.
pub struct Row {
    pub out: Vec<f64>,
    pub bound: Vec<f64>,
    pub lse: f64,
}

/// One row of attention: `score` is what a key's score is before the softmax, if it is seen at all.
pub fn row<T: Half>(
    keys: usize,
    dim: usize,
    score: impl Fn(usize) -> Option<f64>,
    v: impl Fn(usize, usize) -> f64,
) -> Row {
    let scores: Vec<Option<f64>> = (0..keys).map(score).collect();
    let most = scores.iter().flatten().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
    let weights: Vec<f64> = scores.iter().map(|s| s.map_or(0.0, |s| (s - most).exp())).collect();
    let sum: f64 = weights.iter().sum();
    if sum == 0.0 {
        return Row { out: vec![0.0; dim], bound: vec![0.0; dim], lse: f64::INFINITY };
    }
    let mean = |f: &dyn Fn(f64) -> f64, c: usize| {
        weights.iter().enumerate().filter(|&(_, &w)| w != 0.0).map(|(k, w)| w * f(v(k, c))).sum::<f64>() / sum
    };
    let out: Vec<f64> = (0..dim).map(|c| mean(&|x| x, c)).collect();
    // Each weight is rounded once, the result once; the exponents' error is that of f32 sums. Weights below the smallest normal number
    // may be lost.
    let bound = (0..dim)
        .map(|c| {
            let size = mean(&f64::abs, c);
            T::ROUNDING * (1.02 * size + 1.02 * out[c].abs())
                + 4e-5 * size
                + 1e-6
                + keys as f64 * 7e-5 / sum * f64::from(T::TYPE == Type::F16)
        })
        .collect();
    Row { out, bound, lse: most + sum.ln() }
}

/// Where element (sequence, position, head) of a tensor begins.
struct Placed {
    strides: Strides,
    starts: Vec<usize>,
    len: usize,
}

impl Case {
    pub fn heads(&self) -> usize {
        self.kv_heads * self.group
    }

    fn placed(&self, side: usize, heads: usize) -> Placed {
        let lengths: Vec<usize> = self.lengths.iter().map(|l| l[side]).collect();
        let dim = self.dim;
        match self.memory {
            Layout::Dense => {
                let row = heads * dim;
                let strides = Strides { batch: lengths[0] * row, row, head: dim };
                let starts = (0..lengths.len()).map(|b| b * strides.batch).collect();
                Placed { len: lengths.len() * strides.batch, strides, starts }
            }
            Layout::HeadsFirst(gap) => {
                let row = dim + gap;
                let strides = Strides { batch: heads * lengths[0] * row, row, head: lengths[0] * row };
                let starts = (0..lengths.len()).map(|b| b * strides.batch).collect();
                Placed { len: lengths.len() * strides.batch, strides, starts }
            }
            Layout::Packed | Layout::Paged(_) => {
                let row = heads * dim;
                let mut starts = vec![0];
                for length in &lengths {
                    starts.push(starts.last().unwrap() + length * row);
                }
                let len = starts.pop().unwrap();
                Placed { strides: Strides { batch: 0, row, head: dim }, starts, len }
            }
        }
    }

    fn slope(&self, head: usize) -> f64 {
        if self.sloped { 0.5_f64.powi(head as i32 % 4 + 1) } else { 0.0 }
    }

    fn seen(&self, position: i64, key: i64) -> bool {
        let left = self.left.is_none_or(|left| key >= position - left as i64);
        let right = self.right.is_none_or(|right| key <= position + right as i64);
        let inside = |&[from, to]: &[i32; 2]| {
            let range = i64::from(from)..i64::from(to);
            range.contains(&position) && range.contains(&key)
        };
        left && right || self.ranges.iter().any(inside)
    }

    /// Runs the kernels on every device and compares what they return.
    pub fn check(&self) -> Result<(), String> {
        for device in Device::all().map_err(|e| e.to_string())? {
            let stream = device.stream().map_err(|e| e.to_string())?;
            match self.ty {
                Type::F16 => self.check_on::<f16>(&stream),
                Type::Bf16 => self.check_on::<bf16>(&stream),
            }
            .map_err(|error| format!("{error} on {device} in {self:?}"))?;
        }
        Ok(())
    }

    fn check_on<T: Half>(&self, stream: &Stream) -> Result<(), String> {
        let fail = |error: candle_amdgpu::Error| error.to_string();
        let mut numbers = Numbers(self.seed);
        let mut fill = |len: usize, size: f32| -> Vec<T> {
            (0..len.max(8)).map(|_| T::of(size * numbers.next())).collect()
        };
        let (at_q, at_k) = (self.placed(0, self.heads()), self.placed(1, self.kv_heads));
        let q = fill(at_q.len, 2.0);
        let k = fill(at_k.len, 2.0);
        let v = fill(at_k.len, 1.0);
        let sum_of = |side: usize| -> Vec<i32> {
            let mut sums = vec![0];
            for length in &self.lengths {
                sums.push(sums.last().unwrap() + length[side] as i32);
            }
            sums
        };
        let packed = matches!(self.memory, Layout::Packed | Layout::Paged(_));
        let longest = |side: usize| self.lengths.iter().map(|l| l[side]).max().unwrap();
        let mut strides_k = at_k.strides;
        let (mut device_k, mut device_v) = (k.clone(), v.clone());
        let mut table = Vec::new();
        let mut table_batch = 0;
        if let Layout::Paged(page) = self.memory {
            // Pages in an order of their own, with some between that are nobody's and hold what must not be used.
            table_batch = longest(1).div_ceil(page).max(1);
            let pages = self.lengths.len() * table_batch * 2 + 1;
            let row = at_k.strides.row;
            strides_k.batch = page * row;
            device_k = vec![T::of(f32::NAN); pages * page * row];
            device_v = vec![T::of(f32::NAN); pages * page * row];
            for (b, &start) in at_k.starts.iter().enumerate() {
                for p in 0..table_batch {
                    let place = pages - 2 - 2 * (b * table_batch + p);
                    table.push(place as i32);
                    for i in 0..page {
                        let position = p * page + i;
                        let to = (place * page + i) * row;
                        if position < self.lengths[b][1] {
                            let from = start + position * row;
                            device_k[to..to + row].copy_from_slice(&k[from..from + row]);
                            device_v[to..to + row].copy_from_slice(&v[from..from + row]);
                        }
                    }
                }
            }
        }
        let queries = longest(0);
        let lse_len = if packed { at_q.len / self.dim } else { self.lengths.len() * self.heads() * queries };
        let unwritten = f32::from_bits(0x7fc1_2345);
        let upload = |data: &[T]| DeviceBuffer::from_slice(stream, data).map_err(fail);
        let words = |data: &[i32]| {
            DeviceBuffer::from_slice(stream, if data.is_empty() { &[0] } else { data }).map_err(fail)
        };
        let (q_memory, k_memory, v_memory) = (upload(&q)?, upload(&device_k)?, upload(&device_v)?);
        let mut out = upload(&vec![T::of(f32::NAN); q.len()])?;
        let mut lse = DeviceBuffer::from_slice(stream, &vec![unwritten; lse_len.max(1)]).map_err(fail)?;
        let slopes: Vec<f32> = (0..self.heads()).map(|head| self.slope(head) as f32).collect();
        let slopes = DeviceBuffer::from_slice(stream, &slopes).map_err(fail)?;
        let (starts_q, starts_k, table) = (words(&sum_of(0))?, words(&sum_of(1))?, words(&table)?);
        let ranges: Vec<i32> = self.lengths.iter().flat_map(|_| self.ranges.concat()).collect();
        let ranges = words(&ranges)?;
        let window = |side: Option<usize>| side.map_or(-1, |size| size as i32);
        let attention = Attention {
            ty: T::TYPE,
            q: q_memory.as_ptr().cast(),
            k: k_memory.as_ptr().cast(),
            v: v_memory.as_ptr().cast(),
            out: out.as_mut_ptr().cast(),
            lse: lse.as_mut_ptr(),
            slopes: if self.sloped { slopes.as_ptr() } else { ptr::null() },
            starts_q: if packed { starts_q.as_ptr() } else { ptr::null() },
            starts_k: if packed { starts_k.as_ptr() } else { ptr::null() },
            table: if matches!(self.memory, Layout::Paged(_)) { table.as_ptr() } else { ptr::null() },
            ranges: if self.ranges.is_empty() { ptr::null() } else { ranges.as_ptr() },
            problem: Problem {
                q: at_q.strides,
                k: strides_k,
                v: strides_k,
                out: at_q.strides,
                lse_batch: if packed { 0 } else { self.heads() * queries },
                lse_head: if packed { at_q.len / self.dim / self.heads() } else { queries },
                dim: self.dim as u32,
                group: self.group as u32,
                queries: queries as u32,
                keys: longest(1) as u32,
                left: window(self.left),
                right: window(self.right),
                scale: self.scale,
                softcap: self.softcap,
                slopes_batch: 0,
                page: if let Layout::Paged(page) = self.memory { page as u32 } else { 0 },
                table_batch: table_batch as u32,
                ranges: self.ranges.len() as u32,
                ranges_batch: 2 * self.ranges.len() as u32,
            },
            kv_heads: self.kv_heads as u32,
            batch: self.lengths.len() as u32,
        };
        // SAFETY: the memory is what the problem says.
        unsafe { launch::run(stream, &attention, self.way).map_err(fail)? };
        let (out, lse) = (out.to_vec().map_err(fail)?, lse.to_vec().map_err(fail)?);

        let mut first = 0;
        for (b, &[queries, keys]) in self.lengths.iter().enumerate() {
            for head in 0..self.heads() {
                let q_at = |i: usize| at_q.starts[b] + i * at_q.strides.row + head * at_q.strides.head;
                let k_at =
                    |i: usize| at_k.starts[b] + i * at_k.strides.row + head / self.group * at_k.strides.head;
                for i in 0..queries {
                    let position = i as i64 + keys as i64 - queries as i64;
                    let score = |key: usize| {
                        if !self.seen(position, key as i64) {
                            return None;
                        }
                        let dot: f64 =
                            (0..self.dim).map(|c| q[q_at(i) + c].value() * k[k_at(key) + c].value()).sum();
                        let mut score = dot * f64::from(self.scale);
                        if self.softcap > 0.0 {
                            score = f64::from(self.softcap) * (score / f64::from(self.softcap)).tanh();
                        }
                        Some(score - self.slope(head) * (position - key as i64).abs() as f64)
                    };
                    let expected = row::<T>(keys, self.dim, score, |key, c| v[k_at(key) + c].value());
                    for c in 0..self.dim {
                        let found = out[q_at(i) + c].value();
                        let difference = (found - expected.out[c]).abs();
                        if difference.is_nan() || difference > expected.bound[c] {
                            return Err(format!(
                                "sequence {b}, head {head}, query {i}, element {c}: {found} instead of {} ± {}",
                                expected.out[c], expected.bound[c]
                            ));
                        }
                    }
                    let at = if packed {
                        head * attention.problem.lse_head + first + i
                    } else {
                        b * attention.problem.lse_batch + head * attention.problem.lse_head + i
                    };
                    let found = f64::from(lse[at]);
                    if found != expected.lse
                        && (found - expected.lse).abs().partial_cmp(&1e-3) != Some(std::cmp::Ordering::Less)
                    {
                        return Err(format!(
                            "sequence {b}, head {head}, query {i}: logarithm {found} instead of {}",
                            expected.lse
                        ));
                    }
                }
            }
            first += queries;
        }
        Ok(())
    }
}
