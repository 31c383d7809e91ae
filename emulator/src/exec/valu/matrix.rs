//! Matrix instructions: WMMA and SWMMAC (gfx11, gfx12), MFMA and SMFMAC (gfx908, gfx90a, gfx942, gfx950).
//!
//! All compute D = A × B + C for blocks of M×N results, EXEC and MODE notwithstanding. Each result is a chain of
//! fused multiply-adds from C on, in the order of k, in f32 (f64 for f64), to nearest even, with denormals; a
//! 16-bit result is rounded once, at the end. gfx90a alone takes and gives denormals as zeros where A and B are
//! f16 or bf16. A NaN in the result is the positive quiet one. xf32 inputs are rounded to 10 fraction bits.
//!
//! An operand's element (i, k) of block b, `E` elements per lane, is number `k % E` of lane
//! `i + M (b + blocks (k / E))`, where gfx11's WMMA has all of a row in one lane; see [`Spec::place`] for C and D.

use super::convert::{Fp8, bf16};
use super::half;
use super::mode::Env as FloatEnv;
use super::soft;
use crate::exec::isa::Exec;
use crate::exec::op::{Dst, Kind, Src, Unit};
use crate::exec::wave::LANES;
use crate::exec::{Env, Flow, Op, Row, Wave};
use crate::gfx::{Generation, Gfx};
use crate::inst::{Inst, Operand};

/// The type of an operand's or a result's elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Element {
    F32,
    Xf32,
    F16,
    Bf16,
    F64,
    I32,
    I8,
    /// Signed or not as `neg_lo` says.
    Iu8,
    Iu4,
    Fp8,
    Bf8,
}

const ELEMENTS: [Element; 11] = {
    use Element::*;
    [F32, Xf32, F16, Bf16, F64, I32, I8, Iu8, Iu4, Fp8, Bf8]
};

impl Element {
    fn parse(name: &str) -> Option<Element> {
        Some(match name {
            "f32" => Element::F32,
            "xf32" => Element::Xf32,
            "f16" => Element::F16,
            "bf16" => Element::Bf16,
            "f64" => Element::F64,
            "i32" => Element::I32,
            "i8" => Element::I8,
            "iu8" => Element::Iu8,
            "iu4" => Element::Iu4,
            "fp8" => Element::Fp8,
            "bf8" => Element::Bf8,
            _ => return None,
        })
    }

    const fn bits(self) -> u32 {
        match self {
            Element::F64 => 64,
            Element::F32 | Element::Xf32 | Element::I32 => 32,
            Element::F16 | Element::Bf16 => 16,
            Element::I8 | Element::Iu8 | Element::Fp8 | Element::Bf8 => 8,
            Element::Iu4 => 4,
        }
    }
}

/// Which lanes and registers the results are in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Family {
    Mfma,
    Wmma11,
    Wmma12,
}

/// Everything about a matrix instruction but its registers; fits [`Op::imm`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Spec {
    m: u8,
    n: u8,
    k: u8,
    blocks: u8,
    family: Family,
    /// A has two of each four elements; the last source says which.
    sparse: bool,
    a: Element,
    b: Element,
    d: Element,
    cbsz: u8,
    abid: u8,
    blgp: u8,
    index_key: u8,
}

impl Spec {
    /// From a mnemonic and the registers of A.
    fn parse(inst: &Inst, gfx: Gfx) -> Option<Spec> {
        let (kind, rest) = inst.name.strip_prefix("v_")?.split_once('_')?;
        let generation = gfx.generation();
        let (family, sparse) = match kind {
            "mfma" => (Family::Mfma, false),
            "smfmac" => (Family::Mfma, true),
            "wmma" if generation == Generation::Gfx11 => (Family::Wmma11, false),
            "wmma" => (Family::Wmma12, false),
            "swmmac" => (Family::Wmma12, true),
            _ => return None,
        };
        let (d, rest) = rest.split_once('_')?;
        let mut rest = rest;
        let mut number = || {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let number = rest[..digits].parse::<u8>().ok();
            rest = rest[digits..].trim_start_matches('x');
            number
        };
        let (m, n, k) = (number()?, number()?, number()?);
        let rest = rest.trim_start_matches('_').trim_end_matches("_1k");
        let types = match rest.split_once("b_") {
            Some((count, types)) if count.bytes().all(|c| c.is_ascii_digit()) => types,
            _ => rest,
        };
        let (a, b) = types.split_once('_').unwrap_or((types, types));
        let (a, b) = (Element::parse(a)?, Element::parse(b)?);
        // A constant is not a matrix, though an encoding can name one.
        let registers = match *inst.srcs().first()? {
            Operand::Vgpr { count, .. } | Operand::Agpr { count, .. } | Operand::Sgpr { count, .. } => count,
            _ => return None,
        };
        if usize::from(m.max(n)) * usize::from(k) > MOST {
            return None;
        }
        let stored = if sparse { k / 2 } else { k };
        let held = 64 * u32::from(registers) * 32 / a.bits() / (u32::from(m) * u32::from(stored));
        let mods = &inst.mods;
        Some(Spec {
            m,
            n,
            k,
            blocks: if family == Family::Mfma { held.clamp(1, 16) as u8 } else { 1 },
            family,
            sparse,
            a,
            b,
            d: Element::parse(d)?,
            cbsz: mods.cbsz,
            abid: mods.abid,
            blgp: mods.blgp,
            index_key: mods.index_key,
        })
    }

    fn pack(self) -> u64 {
        let position = |element| ELEMENTS.iter().position(|&other| other == element).unwrap_or(0) as u64;
        [
            (self.m.into(), 6),
            (self.n.into(), 6),
            (self.k.into(), 8),
            (self.blocks.into(), 5),
            (self.family as u64, 2),
            (self.sparse.into(), 1),
            (position(self.a), 4),
            (position(self.b), 4),
            (position(self.d), 4),
            (self.cbsz.into(), 3),
            (self.abid.into(), 4),
            (self.blgp.into(), 3),
            (self.index_key.into(), 3),
        ]
        .into_iter()
        .rev()
        .fold(0, |all, (field, bits)| all << bits | field & ((1 << bits) - 1))
    }

    fn unpack(mut packed: u64) -> Spec {
        let mut take = |bits: u32| {
            let field = packed & ((1 << bits) - 1);
            packed >>= bits;
            field as u8
        };
        let element = |at: u8| ELEMENTS[usize::from(at) % ELEMENTS.len()];
        Spec {
            m: take(6),
            n: take(6),
            k: take(8),
            blocks: take(5),
            family: [Family::Mfma, Family::Wmma11, Family::Wmma12][usize::from(take(2)) % 3],
            sparse: take(1) != 0,
            a: element(take(4)),
            b: element(take(4)),
            d: element(take(4)),
            cbsz: take(3),
            abid: take(4),
            blgp: take(3),
            index_key: take(3),
        }
    }

    /// Where row i of the results of block b is: first lane (one for each column follows), register, bit.
    #[inline(always)]
    fn place(&self, wave: usize, op: &Op, b: usize, i: usize) -> (usize, usize, u32) {
        // Everything is a power of two.
        let (m, n) = (usize::from(self.m), usize::from(self.n));
        let columns = n.trailing_zeros();
        let groups = wave.trailing_zeros() - columns;
        let below = |bits: u32| (1 << bits) - 1;
        match self.family {
            Family::Mfma if self.d == Element::F64 && m == 4 => (4 * (b + 4 * i), 0, 0),
            Family::Mfma if self.d == Element::F64 => ((i % 4) << columns, 2 * (i / 4), 0),
            Family::Mfma if m == 4 => (4 * b, i, 0),
            // Four rows go to four registers, the next four to the next lanes.
            Family::Mfma => {
                let four = i / 4;
                let register = (b * m * n) >> wave.trailing_zeros();
                ((four & below(groups)) << columns, register + (four >> groups) * 4 + i % 4, 0)
            }
            Family::Wmma11 => {
                let high = self.d.bits() == 16 && op.mods.op_sel & 4 != 0;
                ((i & below(groups)) << columns, i >> groups, if high { 16 } else { 0 })
            }
            Family::Wmma12 => {
                let rows = m.trailing_zeros() - groups;
                let (lane, at) = ((i >> rows) << columns, i & below(rows));
                match self.d.bits() {
                    16 => (lane, at / 2, 16 * (at as u32 % 2)),
                    _ => (lane, at, 0),
                }
            }
        }
    }
}

pub(super) fn lookup(gfx: Gfx, inst: &Inst) -> Option<Op> {
    let spec = Spec::parse(inst, gfx)?;
    let kind = match spec.d {
        Element::F16 => Kind::F16,
        Element::Bf16 => Kind::Bf16,
        Element::F64 => Kind::F64,
        _ => Kind::B32,
    };
    let mut op = match spec.d {
        Element::F64 => Op::with_operands::<Matrix<f64>>(Unit::Matrix, inst, kind),
        Element::I32 => Op::with_operands::<Matrix<i32>>(Unit::Matrix, inst, kind),
        _ => Op::with_operands::<Matrix<f32>>(Unit::Matrix, inst, kind),
    };
    if spec.sparse {
        // The destination is C; the third source is the index.
        op.src[3] = op.src[2];
        op.src[2] = Src::of(inst.dsts().first()?, kind);
    }
    op.imm = spec.pack();
    Some(op)
}

/// What a chain of multiply-adds is computed in.
trait Number: Copy + Default + 'static {
    fn fma(a: Self, b: Self, c: Self) -> Self;
    fn element(bits: u64, element: Element, signed: bool, generation: Generation) -> Self;
    /// From and to the bits of C and D.
    fn load(bits: u64, element: Element) -> Self;
    fn store(self, element: Element) -> u64;
    fn flush(self) -> Self {
        self
    }
    fn negate(self) -> Self {
        self
    }
    fn absolute(self) -> Self {
        self
    }
    /// Executes an instruction in a way of its own, if it is a usual one.
    #[inline(always)]
    fn dense(_: &mut Wave, _: Gfx, _: &Op, _: &Spec) -> bool {
        false
    }
    /// The sum beyond the type's range, for the clamp bit of integers.
    fn saturating(a: Self, b: Self, c: Self) -> Self {
        Self::fma(a, b, c)
    }
}

impl Number for f32 {
    #[inline(always)]
    fn fma(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
    fn element(bits: u64, element: Element, _: bool, generation: Generation) -> f32 {
        match element {
            Element::F16 => half::widen(bits as u16),
            Element::Bf16 => bf16(bits as u32),
            Element::Fp8 => Fp8::e4m3(generation).decode(bits as u8),
            Element::Bf8 => Fp8::e5m2(generation).decode(bits as u8),
            Element::Xf32 => {
                let x = bits as u32;
                let special = x & 0x7f80_0000 == 0x7f80_0000;
                let rounded = x.wrapping_add(0xfff + (x >> 13 & 1)) & !0x1fff;
                f32::from_bits(if special { x } else { rounded })
            }
            _ => f32::from_bits(bits as u32),
        }
    }
    fn load(bits: u64, element: Element) -> f32 {
        f32::element(bits, element, false, Generation::Cdna)
    }
    fn store(self, element: Element) -> u64 {
        let value = if self.is_nan() { f32::from_bits(0x7fc0_0000) } else { self };
        match element {
            Element::F16 => half::narrow(value).into(),
            Element::Bf16 => {
                soft::convert::<soft::F32, soft::BF16>(value.to_bits().into(), FloatEnv::IEEE, FloatEnv::IEEE)
            }
            _ => value.to_bits().into(),
        }
    }
    fn flush(self) -> f32 {
        if self.is_subnormal() { 0f32.copysign(self) } else { self }
    }
    fn negate(self) -> f32 {
        -self
    }
    fn absolute(self) -> f32 {
        self.abs()
    }
    #[inline(always)]
    fn dense(wave: &mut Wave, gfx: Gfx, op: &Op, spec: &Spec) -> bool {
        match (Dense::new(wave, gfx, op, spec), spec.n) {
            (Some(dense), 16) => dense.run::<16, 4>(wave),
            (Some(dense), 32) => dense.run::<32, 2>(wave),
            _ => return false,
        }
        true
    }
}

/// An instruction on whole matrices of f32, f16 or bf16 with sums in f32, without modifiers: rows of results at once.
struct Dense<'a> {
    op: &'a Op,
    spec: &'a Spec,
    flushes: bool,
    a: u16,
    b: u16,
    d: u16,
}

/// Steps of a dense product, at most.
const MOST_DENSE: usize = 16;

impl<'a> Dense<'a> {
    #[inline(always)]
    fn new(wave: &Wave, gfx: Gfx, op: &'a Op, spec: &'a Spec) -> Option<Dense<'a>> {
        let (Src::Vgpr(a), Src::Vgpr(b), Dst::Vgpr(d)) = (op.src[0], op.src[1], op.dst[0]) else {
            return None;
        };
        let known = matches!(spec.a, Element::F32 | Element::F16 | Element::Bf16);
        let plain = !spec.sparse && spec.cbsz | spec.blgp == 0 && op.mods.neg_lo | op.mods.neg_hi == 0;
        let size = usize::from(spec.k) <= MOST_DENSE && spec.m == spec.n;
        if !known || spec.a != spec.b || spec.d != Element::F32 || !plain || !size || op.mods.clamp {
            return None;
        }
        // Results are written before everything is read: no register may be both, but where C's element is the result's.
        let (n, lanes) = (usize::from(spec.n), wave.size() as usize);
        let results = (n * n * usize::from(spec.blocks)).div_ceil(lanes) as u16;
        let inputs = match spec.family {
            Family::Wmma11 => usize::from(spec.k) * spec.a.bits() as usize / 32,
            _ => per_lane(spec, lanes) * spec.a.bits() as usize / 32,
        } as u16;
        let apart = |from: u16, count: u16| from + count <= d || d + results <= from;
        let c_fits = match op.src[2] {
            Src::Vgpr(c) => c == d || apart(c, results),
            Src::Const(_) => true,
            Src::Sgpr(_) => false,
        };
        let flushes = gfx == Gfx::Gfx90a && matches!(spec.a, Element::F16 | Element::Bf16);
        (c_fits && apart(a, inputs.max(1)) && apart(b, inputs.max(1))).then_some(Dense {
            op,
            spec,
            flushes,
            a,
            b,
            d,
        })
    }

    /// `ROWS` rows of `N` results at a time.
    #[inline(always)]
    fn run<const N: usize, const ROWS: usize>(&self, wave: &mut Wave) {
        let (spec, lanes) = (self.spec, wave.size() as usize);
        let k = usize::from(spec.k).min(MOST_DENSE);
        for block in 0..usize::from(spec.blocks) {
            let (mut left, mut right) = ([[0f32; N]; MOST_DENSE], [[0f32; N]; MOST_DENSE]);
            self.columns(wave, self.a, block, &mut left[..k]);
            self.columns(wave, self.b, block, &mut right[..k]);
            for first in (0..N).step_by(ROWS) {
                // Loops, since a closure that is not inlined is compiled for the baseline.
                let mut places = [(0, 0, 0); ROWS];
                let mut sums = [[0f32; N]; ROWS];
                for row in 0..ROWS {
                    places[row] = spec.place(lanes, self.op, block, first + row);
                    let (lane, register, _) = places[row];
                    let mut words = [0; N];
                    match self.op.src[2] {
                        Src::Vgpr(c) => Self::part(wave, c + register as u16, lane, &mut words),
                        Src::Const([value, _]) => words = [value; N],
                        Src::Sgpr(_) => {}
                    }
                    for n in 0..N {
                        sums[row][n] = self.input(words[n]);
                    }
                }
                for (left, right) in left[..k].iter().zip(&right[..k]) {
                    for (row, sums) in sums.iter_mut().enumerate() {
                        for (sum, &x) in sums.iter_mut().zip(right) {
                            *sum = left[first + row].mul_add(x, *sum);
                        }
                    }
                }
                for (&(lane, register, _), sums) in places.iter().zip(&sums) {
                    let lane = lane & !(N - 1);
                    let row = wave.vgpr_mut(self.d + register as u16, lane / LANES);
                    let into = &mut row.0[lane % LANES..][..N];
                    let mut bits = [0; N];
                    for n in 0..N {
                        let sum = sums[n].to_bits();
                        bits[n] = if sum & 0x7fff_ffff > 0x7f80_0000 { 0x7fc0_0000 } else { sum };
                    }
                    if self.flushes {
                        for bits in &mut bits {
                            *bits = self.input(*bits).to_bits();
                        }
                    }
                    into.copy_from_slice(&bits);
                }
            }
        }
    }

    #[inline(always)]
    fn part<const N: usize>(wave: &Wave, register: u16, lane: usize, out: &mut [u32; N]) {
        let row = &wave.vgpr(register, lane / LANES % wave.halves()).0;
        let first = (lane % LANES) & !(N - 1);
        out.copy_from_slice(&row[first..first + N]);
    }

    #[inline(always)]
    fn input(&self, bits: u32) -> f32 {
        f32::from_bits(if self.flushes && bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits })
    }

    /// An operand's elements, k by k.
    #[inline(always)]
    fn columns<const N: usize>(&self, wave: &Wave, register: u16, block: usize, out: &mut [[f32; N]]) {
        let (spec, lanes) = (self.spec, wave.size() as usize);
        let per_lane = match spec.family {
            Family::Wmma11 => usize::from(spec.k),
            _ => per_lane(spec, lanes),
        };
        for (k, out) in out.iter_mut().enumerate() {
            let lane = N * (block + usize::from(spec.blocks) * (k >> per_lane.trailing_zeros()));
            let at = (k & (per_lane - 1)) * spec.a.bits() as usize;
            let mut words = [0; N];
            Self::part(wave, register + (at / 32) as u16, lane, &mut words);
            let shift = at as u32 % 32;
            match spec.a {
                Element::F16 => {
                    let mut halves = [0; N];
                    for n in 0..N {
                        halves[n] = (words[n] >> shift) as u16;
                    }
                    widen(&halves, out);
                }
                Element::Bf16 => {
                    for n in 0..N {
                        out[n] = f32::from_bits(words[n] >> shift << 16);
                    }
                }
                _ => {
                    for n in 0..N {
                        out[n] = f32::from_bits(words[n]);
                    }
                }
            }
            if self.flushes {
                for x in out {
                    *x = self.input(x.to_bits());
                }
            }
        }
    }
}

/// The exact values; a NaN may become another one.
#[inline(always)]
fn widen<const N: usize>(halves: &[u16; N], out: &mut [f32; N]) {
    #[cfg(target_arch = "x86_64")]
    if crate::exec::isa::ONLY_V3 {
        use std::arch::x86_64::{_mm_loadu_si128, _mm256_cvtph_ps, _mm256_storeu_ps};
        for (halves, out) in halves.chunks_exact(8).zip(out.chunks_exact_mut(8)) {
            // SAFETY: handlers run on CPUs with F16C alone then; both sides have eight elements.
            unsafe {
                _mm256_storeu_ps(out.as_mut_ptr(), _mm256_cvtph_ps(_mm_loadu_si128(halves.as_ptr().cast())))
            };
        }
        return;
    }
    for n in 0..N {
        out[n] = half::widen(halves[n]);
    }
}

/// Elements of an operand that a lane has, where lanes share rows.
#[inline(always)]
fn per_lane(spec: &Spec, lanes: usize) -> usize {
    usize::from(spec.n) * usize::from(spec.k) * usize::from(spec.blocks) / lanes
}

impl Number for f64 {
    #[inline(always)]
    fn fma(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
    fn element(bits: u64, _: Element, _: bool, _: Generation) -> f64 {
        f64::from_bits(bits)
    }
    fn load(bits: u64, _: Element) -> f64 {
        f64::from_bits(bits)
    }
    fn store(self, _: Element) -> u64 {
        if self.is_nan() { 0x7ff8_0000_0000_0000 } else { self.to_bits() }
    }
    fn negate(self) -> f64 {
        -self
    }
}

impl Number for i32 {
    #[inline(always)]
    fn fma(a: i32, b: i32, c: i32) -> i32 {
        a.wrapping_mul(b).wrapping_add(c)
    }
    fn element(bits: u64, element: Element, signed: bool, _: Generation) -> i32 {
        let (bits, up) = (bits as u32, 32 - element.bits());
        if signed || element == Element::I8 { (bits << up) as i32 >> up } else { (bits << up >> up) as i32 }
    }
    fn load(bits: u64, _: Element) -> i32 {
        bits as i32
    }
    fn store(self, _: Element) -> u64 {
        u64::from(self as u32)
    }
    #[inline(always)]
    fn saturating(a: i32, b: i32, c: i32) -> i32 {
        // Products of bytes fit.
        a.wrapping_mul(b).saturating_add(c)
    }
}

/// The most elements that a matrix has: 32×32 or 16×64. Larger ones (sparse ones of bytes on gfx950) are not executed.
const MOST: usize = 1024;

struct Matrix<T>(std::marker::PhantomData<T>);

impl<T: Number> Exec for Matrix<T> {
    #[inline(always)]
    fn exec(wave: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let spec = Spec::unpack(op.imm);
        if T::dense(wave, env.gfx, op, &spec) {
            return Flow::Next;
        }
        let lanes = wave.size() as usize;
        let (m, n, k) = (usize::from(spec.m), usize::from(spec.n), usize::from(spec.k));
        let mut results = [[T::default(); MOST]; 2];
        let blocks = usize::from(spec.blocks);
        // Results of all blocks: at most 2048.
        for b in 0..blocks {
            let (mut left, mut right) = ([T::default(); MOST], [T::default(); MOST]);
            load_a(wave, env.gfx, op, &spec, b, &mut left);
            load_b(wave, env.gfx, op, &spec, b, &mut right);
            let at = b * m * n;
            let sums = &mut results.as_flattened_mut()[at..at + m * n];
            load_c(wave, op, &spec, lanes, b, sums);
            if env.gfx == Gfx::Gfx90a && matches!(spec.a, Element::F16 | Element::Bf16) {
                for list in [&mut left[..], &mut right[..], &mut *sums] {
                    list.iter_mut().for_each(|x| *x = x.flush());
                }
            }
            for (i, row) in sums.chunks_exact_mut(n).enumerate() {
                for (k, column) in right.chunks_exact(n).take(k).enumerate() {
                    let factor = left[i * usize::from(spec.k) + k];
                    if op.mods.clamp {
                        for (sum, &x) in row.iter_mut().zip(column) {
                            *sum = T::saturating(factor, x, *sum);
                        }
                    } else {
                        for (sum, &x) in row.iter_mut().zip(column) {
                            *sum = T::fma(factor, x, *sum);
                        }
                    }
                }
            }
            if env.gfx == Gfx::Gfx90a && matches!(spec.a, Element::F16 | Element::Bf16) {
                sums.iter_mut().for_each(|x| *x = x.flush());
            }
        }
        let Dst::Vgpr(register) = op.dst[0] else { return Flow::Next };
        for (row, results) in results.as_flattened()[..blocks * m * n].chunks_exact(n).enumerate() {
            let (lane, offset, bit) = spec.place(lanes, op, row / m, row % m);
            let register = register + offset as u16;
            let (half, first) = (lane / LANES, lane % LANES);
            let words = &mut wave.vgpr_mut(register, half).0[first..first + n];
            for (word, result) in words.iter_mut().zip(results) {
                let bits = result.store(spec.d);
                *word = match spec.d.bits() {
                    16 => *word & !(0xffff << bit) | (bits as u32) << bit,
                    _ => bits as u32,
                };
            }
            if spec.d.bits() == 64 {
                let words = &mut wave.vgpr_mut(register + 1, half).0[first..first + n];
                for (word, result) in words.iter_mut().zip(results) {
                    *word = (result.store(spec.d) >> 32) as u32;
                }
            }
        }
        Flow::Next
    }
}

/// Bits `at..at + bits` of a source's registers, in `count` lanes of one half of the wave from `lane` on.
#[inline(always)]
fn fields(
    wave: &Wave,
    src: Src,
    (lane, count): (usize, usize),
    (at, bits): (usize, u32),
    mut f: impl FnMut(usize, u64),
) {
    let half = lane / LANES % wave.halves();
    let mask = u64::MAX >> (64 - bits);
    let (word, bit) = ((at / 32) as u16, at % 32);
    let (mut low, mut high) = (Row::ZERO, Row::ZERO);
    let low = wave.row(src.dword(word), half, &mut low);
    let high = if bits == 64 { wave.row(src.dword(word + 1), half, &mut high) } else { &high };
    for i in 0..count {
        let at = (lane + i) % LANES;
        f(i, (u64::from(low.0[at]) | u64::from(high.0[at]) << 32) >> bit & mask);
    }
}

fn load_a<T: Number>(wave: &Wave, gfx: Gfx, op: &Op, spec: &Spec, b: usize, out: &mut [T; MOST]) {
    let (m, k) = (usize::from(spec.m), usize::from(spec.k));
    let stored = if spec.sparse { k / 2 } else { k };
    let size = wave.size() as usize;
    let blocks = usize::from(spec.blocks);
    let per_lane = match spec.family {
        Family::Wmma11 => stored,
        _ => m * stored * blocks / size,
    };
    // CBSZ: each 2^CBSZ blocks use the one of them that ABID names.
    let group = 1 << if spec.sparse { 0 } else { spec.cbsz.min(4) };
    let block = (b & !(group - 1)) + (usize::from(spec.abid) & (group - 1));
    let block = if group == 1 { b } else { block };
    let signed = op.mods.neg_lo & 1 != 0;
    for s in 0..stored {
        let lane = m * (block + blocks * (s >> per_lane.trailing_zeros()));
        let element = s & (per_lane - 1);
        let bits = (element * spec.a.bits() as usize, spec.a.bits());
        fields(wave, op.src[0], (lane, m), bits, |i, bits| {
            let value = T::element(bits, spec.a, signed, gfx.generation());
            let at = if spec.sparse { sparse_position(wave, op, spec, lane + i, s, per_lane) } else { s };
            out[i * k + at] = negated(value, op, spec, 0, element);
        });
    }
}

/// Which of a row's elements the stored one is: two of four, told apart by two bits each.
fn sparse_position(wave: &Wave, op: &Op, spec: &Spec, lane: usize, stored: usize, per_lane: usize) -> usize {
    let width = 2 * per_lane;
    let sets = 32 / width.min(32);
    let set = match spec.family {
        Family::Mfma if spec.cbsz != 0 => 0,
        Family::Mfma => usize::from(spec.abid) % sets,
        _ => usize::from(spec.index_key) % sets,
    };
    let mut index = 0;
    fields(wave, op.src[3], (lane, 1), (set * width + 2 * (stored % per_lane), 2), |_, bits| index = bits);
    stored / 2 * 4 + index as usize
}

fn load_b<T: Number>(wave: &Wave, gfx: Gfx, op: &Op, spec: &Spec, b: usize, out: &mut [T; MOST]) {
    let (n, k) = (usize::from(spec.n), usize::from(spec.k));
    let size = wave.size() as usize;
    let blocks = usize::from(spec.blocks);
    let per_lane = match spec.family {
        Family::Wmma11 => k,
        _ => n * k * blocks / size,
    };
    let signed = op.mods.neg_lo & 2 != 0;
    for at in 0..k {
        let lane = n * (b + blocks * (at >> per_lane.trailing_zeros()));
        let element = at & (per_lane - 1);
        let bits = (element * spec.b.bits() as usize, spec.b.bits());
        let mut put = |j: usize, bits| {
            let value = T::element(bits, spec.b, signed, gfx.generation());
            out[at * n + j] = negated(value, op, spec, 1, element);
        };
        if spec.blgp == 0 || spec.d == Element::F64 {
            fields(wave, op.src[1], (lane, n), bits, put);
        } else {
            for j in 0..n {
                fields(wave, op.src[1], (pattern(spec.blgp, lane + j), 1), bits, |_, bits| put(j, bits));
            }
        }
    }
}

/// BLGP: the lane whose B a lane uses.
fn pattern(blgp: u8, lane: usize) -> usize {
    match blgp {
        1 => lane % 32,
        2 => lane % 32 + 32,
        3 => (lane + 16) % 64,
        4..=7 => lane % 16 + 16 * usize::from(blgp - 4),
        _ => lane,
    }
}

/// An element of source 0 or 1 with its sign: WMMA has one for each half, f64 MFMA has BLGP.
fn negated<T: Number>(value: T, op: &Op, spec: &Spec, source: u32, element: usize) -> T {
    let wmma = spec.family != Family::Mfma && matches!(spec.a, Element::F16 | Element::Bf16);
    let mask = if element.is_multiple_of(2) { op.mods.neg_lo } else { op.mods.neg_hi };
    let negate = match spec.family {
        Family::Mfma => spec.d == Element::F64 && spec.blgp >> source & 1 != 0,
        _ => wmma && mask >> source & 1 != 0,
    };
    if negate { value.negate() } else { value }
}

fn load_c<T: Number>(wave: &Wave, op: &Op, spec: &Spec, lanes: usize, b: usize, out: &mut [T]) {
    let n = usize::from(spec.n);
    let (negate, absolute) = match spec.family {
        Family::Mfma => (spec.d == Element::F64 && spec.blgp & 4 != 0, false),
        _ => (op.mods.neg_lo & 4 != 0, op.mods.neg_hi & 4 != 0),
    };
    for (i, row) in out.chunks_exact_mut(n).enumerate() {
        let (lane, register, bit) = spec.place(lanes, op, b, i);
        // A constant is in every place.
        let constant = matches!(op.src[2], Src::Const(_));
        let at = if constant { 0 } else { register * 32 + bit as usize };
        fields(wave, op.src[2], (lane, n), (at, spec.d.bits()), |j, bits| {
            let value = T::load(bits, spec.d);
            let value = if absolute { value.absolute() } else { value };
            row[j] = if negate { value.negate() } else { value };
        });
    }
}
