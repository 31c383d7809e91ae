//! Loads and stores of whole waves as compiled code calls them: addresses checked as one range, and data moved by vectors.
//!
//! Whatever is not as usual (an address outside of the allocation that the instruction accessed last, an aperture, an alias)
//! is left to the instruction's handler, before anything has changed.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use crate::exec::op::{Dst, Op, Run, Src, Unit};
use crate::exec::wave::{LANES, Row, Wave};
use crate::exec::{Env, Flow};
use crate::inst::{Format, Inst};
use crate::memory::pointer;

/// The addresses of half a wave.
struct Addresses {
    /// Where the lanes' accesses begin that directly follow each other; zero if they do not.
    start: u64,
    /// Otherwise each lane's address. Lanes that are off have that of one that is on.
    each: [MaybeUninit<u64>; LANES],
}

impl Addresses {
    /// The address of a lane, of accesses of `size` bytes.
    #[inline(always)]
    fn of(&self, lane: usize, size: u32) -> u64 {
        match self.start {
            // SAFETY: they are written where there is no start.
            0 => unsafe { self.each[lane].assume_init() },
            start => start + lane as u64 * u64::from(size),
        }
    }
}

/// Where lanes' offsets begin, and what they may reach: host address of offset 0, and the offsets' limits.
#[derive(Clone, Copy)]
struct Space {
    base: u64,
    /// The lowest offset that may be accessed, and the end.
    range: (u64, u64),
}

/// The address of each lane that is on, and whether all are in `space`: an offset of 32 bits and a constant, which wraps
/// around in LDS.
///
/// # Safety
/// The CPU has AVX2.
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn addresses(
    offsets: &Row,
    exec: u32,
    constant: u32,
    space: Space,
    size: u32,
    out: &mut MaybeUninit<Addresses>,
) -> bool {
    let from = offsets.0.as_ptr().cast::<__m256i>();
    let step = _mm256_set1_epi32(size as i32);
    let first = offsets.0[exec.trailing_zeros() as usize % LANES];
    let mut lanes = [_mm256_setzero_si256(); 4];
    let (mut lowest, mut highest) = (_mm256_set1_epi32(-1), _mm256_setzero_si256());
    let constant_of = constant;
    let (mut apart, constant) = (_mm256_setzero_si256(), _mm256_set1_epi32(constant as i32));
    let first = _mm256_add_epi32(_mm256_set1_epi32(first as i32), constant);
    for (chunk, lane) in lanes.iter_mut().enumerate() {
        // SAFETY: a row has four vectors.
        let mut value = _mm256_add_epi32(unsafe { _mm256_loadu_si256(from.add(chunk)) }, constant);
        if exec != u32::MAX {
            value = _mm256_blendv_epi8(first, value, on(exec, chunk));
        }
        *lane = value;
        lowest = _mm256_min_epu32(lowest, value);
        highest = _mm256_max_epu32(highest, value);
        let numbers =
            _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(8 * chunk as i32));
        let expected = _mm256_add_epi32(first, _mm256_mullo_epi32(numbers, step));
        apart = _mm256_or_si256(apart, _mm256_xor_si256(value, expected));
    }
    let out = out.as_mut_ptr();
    if exec == u32::MAX && _mm256_testz_si256(apart, apart) != 0 {
        let first = u64::from(offsets.0[0].wrapping_add(constant_of));
        let end = first + u64::from(size) * LANES as u64;
        // Without wrapping around.
        if end <= 1 << 32 {
            let start = space.base.wrapping_add(first);
            // SAFETY: that is a field of `out`.
            unsafe { (&raw mut (*out).start).write(start) };
            return start != 0 && first >= space.range.0 && end <= space.range.1;
        }
    }
    let low = _mm_min_epu32(_mm256_castsi256_si128(lowest), _mm256_extracti128_si256(lowest, 1));
    let low = _mm_min_epu32(low, _mm_shuffle_epi32(low, 0b01_00_11_10));
    let low = _mm_min_epu32(low, _mm_shuffle_epi32(low, 0b10_11_00_01));
    let high = _mm_max_epu32(_mm256_castsi256_si128(highest), _mm256_extracti128_si256(highest, 1));
    let high = _mm_max_epu32(high, _mm_shuffle_epi32(high, 0b01_00_11_10));
    let high = _mm_max_epu32(high, _mm_shuffle_epi32(high, 0b10_11_00_01));
    let (low, high) = (_mm_cvtsi128_si32(low) as u32, _mm_cvtsi128_si32(high) as u32);
    if u64::from(low) < space.range.0 || u64::from(high) + u64::from(size) > space.range.1 {
        return false;
    }
    let base = _mm256_set1_epi64x(space.base as i64);
    for (chunk, lane) in lanes.iter().enumerate() {
        let low = _mm256_cvtepu32_epi64(_mm256_castsi256_si128(*lane));
        let high = _mm256_cvtepu32_epi64(_mm256_extracti128_si256(*lane, 1));
        // SAFETY: there are eight vectors.
        unsafe {
            let into = (&raw mut (*out).each).cast::<__m256i>();
            _mm256_storeu_si256(into.add(2 * chunk), _mm256_add_epi64(low, base));
            _mm256_storeu_si256(into.add(2 * chunk + 1), _mm256_add_epi64(high, base));
        }
    }
    // SAFETY: that is the other field.
    unsafe { (&raw mut (*out).start).write(0) };
    true
}

/// Lanes that are on, as masks of eight.
///
/// # Safety
/// The CPU has AVX2.
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn on(exec: u32, chunk: usize) -> __m256i {
    let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    let exec = _mm256_set1_epi32((exec >> (8 * chunk)) as i32);
    _mm256_cmpeq_epi32(_mm256_and_si256(exec, bits), bits)
}

/// Bit 33 of `imm`, as `flat.rs` has it: there is a scalar address.
const HAS_SADDR: u64 = 1 << 33;
/// Bit 34: the lane number is added.
const ADD_TID: u64 = 1 << 34;

/// A kind of memory: the lanes' addresses in half a wave.
trait Memory {
    /// Whether all lanes that are on in a half may access so many bytes; then `out` is written.
    fn resolve(
        w: &Wave,
        env: &mut Env<'_>,
        op: &Op,
        constant: u32,
        half_and_size: (usize, u32),
        out: &mut MaybeUninit<Addresses>,
    ) -> bool;
}

struct Global;

impl Memory for Global {
    #[inline(always)]
    fn resolve(
        w: &Wave,
        env: &mut Env<'_>,
        op: &Op,
        _: u32,
        (half, size): (usize, u32),
        out: &mut MaybeUninit<Addresses>,
    ) -> bool {
        if env.has_aliases() || op.imm & ADD_TID != 0 {
            return false;
        }
        let Src::Vgpr(register) = op.src[0] else { return false };
        let (start, bytes) = env.hit(op);
        let exec = w.exec(half);
        let offset = i64::from(op.imm as i32) as u64;
        let base = if op.imm & HAS_SADDR != 0 {
            w.scalar64(op.src[2]).wrapping_add(offset)
        } else {
            let high = w.vgpr(register + 1, half);
            let first = high.0[exec.trailing_zeros() as usize % LANES];
            let mut differ = 0;
            for lane in 0..LANES {
                differ |= (high.0[lane] ^ first) & (exec >> lane & 1).wrapping_neg();
            }
            if differ != 0 {
                return false;
            }
            (u64::from(first) << 32).wrapping_add(offset)
        };
        // Offsets from `base` that are in the allocation; they have 32 bits and no sign.
        let Some(end) = start.checked_add(bytes).and_then(|end| end.checked_sub(base)) else { return false };
        let range = (start.saturating_sub(base), end);
        // SAFETY: compiled code is made where there is AVX2.
        unsafe { addresses(w.vgpr(register, half), exec, 0, Space { base, range }, size, out) }
    }
}

struct Lds;

impl Memory for Lds {
    #[inline(always)]
    fn resolve(
        w: &Wave,
        env: &mut Env<'_>,
        op: &Op,
        constant: u32,
        (half, size): (usize, u32),
        out: &mut MaybeUninit<Addresses>,
    ) -> bool {
        let Src::Vgpr(register) = op.src[0] else { return false };
        let base = env.lds.as_mut_ptr().expose_provenance() as u64;
        let space = Space { base, range: (0, env.lds.len() as u64) };
        // SAFETY: as above.
        unsafe { addresses(w.vgpr(register, half), w.exec(half), constant, space, size, out) }
    }
}

/// Reads `N` dwords in each lane, eight lanes at a time, into `N` vectors.
///
/// # Safety
/// `4 N` bytes can be read at every address.
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn gather<const N: usize>(at: &Addresses, chunk: usize) -> [__m256i; N] {
    let address = |n: usize| at.of(chunk * 8 + n, 4 * N as u32);
    let mut out = [_mm256_setzero_si256(); N];
    match N {
        1 if at.start != 0 => {
            // SAFETY: the lanes' dwords are these.
            out[0] = unsafe { _mm256_loadu_si256(pointer(address(0)).cast()) };
        }
        4 => {
            // SAFETY: by the caller's promise.
            let lane = |n: usize| unsafe {
                let low = _mm_loadu_si128(pointer(address(n)).cast());
                _mm256_inserti128_si256(
                    _mm256_castsi128_si256(low),
                    _mm_loadu_si128(pointer(address(n + 4)).cast()),
                    1,
                )
            };
            let (a, b, c, d) = (lane(0), lane(1), lane(2), lane(3));
            let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
            let (ab_high, cd_high) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
            out[0] = _mm256_unpacklo_epi64(ab, cd);
            out[1] = _mm256_unpackhi_epi64(ab, cd);
            out[2] = _mm256_unpacklo_epi64(ab_high, cd_high);
            out[3] = _mm256_unpackhi_epi64(ab_high, cd_high);
        }
        2 => {
            // SAFETY: by the caller's promise.
            let two = |n: usize| unsafe {
                let read = |n: usize| pointer(address(n)).cast::<i64>().read_unaligned();
                _mm256_setr_epi64x(read(n), read(n + 1), read(n + 4), read(n + 5))
            };
            let (a, b) = (_mm256_castsi256_ps(two(0)), _mm256_castsi256_ps(two(2)));
            out[0] = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0b10_00_10_00));
            out[1] = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0b11_01_11_01));
        }
        _ => {
            let mut rows = [[0u32; 8]; N];
            for lane in 0..8 {
                // SAFETY: by the caller's promise.
                let value = unsafe { pointer(address(lane)).cast::<[u32; N]>().read_unaligned() };
                for (row, value) in rows.iter_mut().zip(value) {
                    row[lane] = value;
                }
            }
            for (out, row) in out.iter_mut().zip(&rows) {
                // SAFETY: a row is as long.
                *out = unsafe { _mm256_loadu_si256(row.as_ptr().cast()) };
            }
        }
    }
    out
}

/// Writes `N` dwords of each lane, eight lanes at a time, in the order of lanes.
///
/// # Safety
/// `4 N` bytes can be written at every address.
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn scatter<const N: usize>(at: &Addresses, chunk: usize, values: [__m256i; N]) {
    let address = |n: usize| at.of(chunk * 8 + n, 4 * N as u32);
    match N {
        // SAFETY: the lanes' dwords are these.
        1 if at.start != 0 => unsafe { _mm256_storeu_si256(pointer(address(0)).cast(), values[0]) },
        4 => {
            let (a, b, c, d) = (values[0], values[1], values[2], values[3]);
            let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
            let (ab_high, cd_high) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
            let lanes = [
                _mm256_unpacklo_epi64(ab, cd),
                _mm256_unpackhi_epi64(ab, cd),
                _mm256_unpacklo_epi64(ab_high, cd_high),
                _mm256_unpackhi_epi64(ab_high, cd_high),
            ];
            for (n, lane) in lanes.iter().enumerate() {
                // SAFETY: by the caller's promise.
                unsafe { _mm_storeu_si128(pointer(address(n)).cast(), _mm256_castsi256_si128(*lane)) };
            }
            for (n, lane) in lanes.iter().enumerate() {
                // SAFETY: as above.
                unsafe {
                    _mm_storeu_si128(pointer(address(n + 4)).cast(), _mm256_extracti128_si256(*lane, 1))
                };
            }
        }
        _ => {
            let mut rows = [[0u32; 8]; N];
            for (row, value) in rows.iter_mut().zip(values) {
                // SAFETY: a row is as long.
                unsafe { _mm256_storeu_si256(row.as_mut_ptr().cast(), value) };
            }
            for lane in 0..8 {
                let value: [u32; N] = std::array::from_fn(|n| rows[n][lane]);
                // SAFETY: by the caller's promise.
                unsafe { pointer(address(lane)).cast::<[u32; N]>().write_unaligned(value) };
            }
        }
    }
}

/// Eight lanes of a register.
///
/// # Safety
/// The CPU has AVX2.
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn read(row: &Row, chunk: usize) -> __m256i {
    // SAFETY: a row has four vectors.
    unsafe { _mm256_loadu_si256(row.0.as_ptr().cast::<__m256i>().add(chunk)) }
}

/// # Safety
/// The CPU has AVX2.
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn write(row: &mut Row, chunk: usize, exec: u32, value: __m256i) {
    let value = match exec {
        u32::MAX => value,
        _ => _mm256_blendv_epi8(read(row, chunk), value, on(exec, chunk)),
    };
    // SAFETY: a row has four vectors.
    unsafe { _mm256_storeu_si256(row.0.as_mut_ptr().cast::<__m256i>().add(chunk), value) };
}

/// The handler that the interpreter has.
#[cold]
fn otherwise(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
    // SAFETY: it was chosen for this machine.
    unsafe { (op.run)(w, env, op) }
}

/// The addresses of both halves: of those in which a lane is on.
type All = [MaybeUninit<Addresses>; 2];

const fn all() -> All {
    [const { MaybeUninit::uninit() }; 2]
}

/// Whether the handler is not needed: the addresses of all halves in which a lane is on are in bounds.
#[inline(always)]
fn resolve<A: Memory>(w: &Wave, env: &mut Env<'_>, op: &Op, constant: u32, size: u32, all: &mut All) -> bool {
    for (half, out) in all.iter_mut().enumerate().take(w.halves()) {
        if w.exec(half) != 0 && !A::resolve(w, env, op, constant, (half, size), out) {
            return false;
        }
    }
    true
}

/// The addresses of a half, if a lane is on.
///
/// # Safety
/// [`resolve`] has said that the handler is not needed.
#[inline(always)]
unsafe fn half_of<'a>(w: &Wave, all: &'a All, half: usize) -> Option<&'a Addresses> {
    // SAFETY: it has written those of halves in which a lane is on.
    (w.exec(half) != 0).then(|| unsafe { all[half].assume_init_ref() })
}

/// # Safety
/// The CPU has AVX2.
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
extern "C" fn load<A: Memory, const N: usize>(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
    let Dst::Vgpr(register) = op.dst[0] else { return otherwise(w, env, op) };
    let mut all = all();
    if !resolve::<A>(w, env, op, op.imm as u32, 4 * N as u32, &mut all) {
        return otherwise(w, env, op);
    }
    for half in 0..w.halves() {
        // SAFETY: all addresses were found.
        let Some(at) = (unsafe { half_of(w, &all, half) }) else { continue };
        // SAFETY: all addresses were found to be in bounds.
        unsafe { load_half::<N>(w, register, half, at) };
    }
    Flow::Next
}

/// # Safety
/// As for [`gather`].
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn load_half<const N: usize>(w: &mut Wave, register: u16, half: usize, at: &Addresses) {
    let exec = w.exec(half);
    for chunk in 0..4 {
        // SAFETY: by the caller's promise.
        let values = unsafe { gather::<N>(at, chunk) };
        for (n, value) in values.into_iter().enumerate() {
            write(w.vgpr_mut(register + n as u16, half), chunk, exec, value);
        }
    }
}

/// Loads that fetch less than a dword, or keep a part of the register.
///
/// # Safety
/// The CPU has AVX2.
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
extern "C" fn load_part<
    A: Memory,
    const BYTES: u32,
    const SHIFT: u32,
    const SIGNED: bool,
    const KEEP: u32,
>(
    w: &mut Wave,
    env: &mut Env<'_>,
    op: &Op,
) -> Flow {
    let Dst::Vgpr(register) = op.dst[0] else { return otherwise(w, env, op) };
    let mut all = all();
    if !resolve::<A>(w, env, op, op.imm as u32, BYTES, &mut all) {
        return otherwise(w, env, op);
    }
    for half in 0..w.halves() {
        // SAFETY: all addresses were found.
        let Some(at) = (unsafe { half_of(w, &all, half) }) else { continue };
        let exec = w.exec(half);
        let mut row = Row::ZERO;
        for (lane, value) in row.0.iter_mut().enumerate() {
            let address = at.of(lane, BYTES);
            // SAFETY: all addresses were found to be in bounds.
            let part = unsafe {
                match BYTES {
                    1 => u32::from(pointer(address).read()),
                    _ => u32::from(pointer(address).cast::<u16>().read_unaligned()),
                }
            };
            let part = match (SIGNED, BYTES) {
                (true, 1) => part as i8 as u32,
                (true, _) => part as i16 as u32,
                _ => part,
            };
            *value = part << SHIFT & !KEEP;
        }
        let into = w.vgpr_mut(register, half);
        for chunk in 0..4 {
            let kept = _mm256_and_si256(read(into, chunk), _mm256_set1_epi32(KEEP as i32));
            let value = _mm256_or_si256(read(&row, chunk), kept);
            write(into, chunk, exec, value);
        }
    }
    Flow::Next
}

/// # Safety
/// The CPU has AVX2.
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
extern "C" fn store<A: Memory, const N: usize>(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
    let Src::Vgpr(register) = op.src[1] else { return otherwise(w, env, op) };
    let mut all = all();
    if !resolve::<A>(w, env, op, op.imm as u32, 4 * N as u32, &mut all) {
        return otherwise(w, env, op);
    }
    for half in 0..w.halves() {
        // SAFETY: all addresses were found.
        let Some(at) = (unsafe { half_of(w, &all, half) }) else { continue };
        // SAFETY: all addresses were found to be in bounds.
        unsafe { store_half::<N>(w, register, half, at) };
    }
    Flow::Next
}

/// # Safety
/// As for [`scatter`].
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn store_half<const N: usize>(w: &Wave, register: u16, half: usize, at: &Addresses) {
    let exec = w.exec(half);
    if exec == u32::MAX {
        for chunk in 0..4 {
            let values = std::array::from_fn(|n| read(w.vgpr(register + n as u16, half), chunk));
            // SAFETY: by the caller's promise.
            unsafe { scatter::<N>(at, chunk, values) };
        }
        return;
    }
    let rows: [&Row; N] = std::array::from_fn(|n| w.vgpr(register + n as u16, half));
    let mut lanes = exec;
    while lanes != 0 {
        let lane = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        let value: [u32; N] = std::array::from_fn(|n| rows[n].0[lane]);
        // SAFETY: by the caller's promise.
        unsafe { pointer(at.of(lane, 4 * N as u32)).cast::<[u32; N]>().write_unaligned(value) };
    }
}

/// Stores of bytes or halves, from bit `SHIFT` of the register on.
///
/// # Safety
/// The CPU has AVX2.
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
extern "C" fn store_part<A: Memory, const BYTES: u32, const SHIFT: u32>(
    w: &mut Wave,
    env: &mut Env<'_>,
    op: &Op,
) -> Flow {
    let Src::Vgpr(register) = op.src[1] else { return otherwise(w, env, op) };
    let mut all = all();
    if !resolve::<A>(w, env, op, op.imm as u32, BYTES, &mut all) {
        return otherwise(w, env, op);
    }
    for half in 0..w.halves() {
        // SAFETY: all addresses were found.
        let Some(at) = (unsafe { half_of(w, &all, half) }) else { continue };
        let (row, mut lanes) = (w.vgpr(register, half), w.exec(half));
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize;
            lanes &= lanes - 1;
            let (value, into) = (row.0[lane] >> SHIFT, pointer(at.of(lane, BYTES)));
            // SAFETY: all addresses were found to be in bounds.
            unsafe {
                match BYTES {
                    1 => into.write(value as u8),
                    _ => into.cast::<u16>().write_unaligned(value as u16),
                }
            }
        }
    }
    Flow::Next
}

/// Two elements of `N` dwords each from LDS.
///
/// # Safety
/// The CPU has AVX2.
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
extern "C" fn load_pair<const N: usize>(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
    let Dst::Vgpr(register) = op.dst[0] else { return otherwise(w, env, op) };
    let (mut ones, mut twos) = (all(), all());
    let size = 4 * N as u32;
    if !resolve::<Lds>(w, env, op, op.imm as u32, size, &mut ones)
        || !resolve::<Lds>(w, env, op, (op.imm >> 32) as u32 & 0x7fff_ffff, size, &mut twos)
    {
        return otherwise(w, env, op);
    }
    for half in 0..w.halves() {
        // SAFETY: all addresses were found to be in bounds.
        unsafe {
            let (Some(one), Some(two)) = (half_of(w, &ones, half), half_of(w, &twos, half)) else { continue };
            load_half::<N>(w, register, half, one);
            load_half::<N>(w, register + N as u16, half, two);
        }
    }
    Flow::Next
}

/// # Safety
/// The CPU has AVX2.
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
extern "C" fn store_pair<const N: usize>(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
    let (Src::Vgpr(first), Src::Vgpr(second)) = (op.src[1], op.src[2]) else { return otherwise(w, env, op) };
    let (mut ones, mut twos) = (all(), all());
    let size = 4 * N as u32;
    if !resolve::<Lds>(w, env, op, op.imm as u32, size, &mut ones)
        || !resolve::<Lds>(w, env, op, (op.imm >> 32) as u32 & 0x7fff_ffff, size, &mut twos)
    {
        return otherwise(w, env, op);
    }
    for half in 0..w.halves() {
        // SAFETY: all addresses were found to be in bounds.
        unsafe {
            let (Some(one), Some(two)) = (half_of(w, &ones, half), half_of(w, &twos, half)) else { continue };
            store_half::<N>(w, first, half, one);
            store_half::<N>(w, second, half, two);
        }
    }
    Flow::Next
}

/// Pulls from other lanes, all of which are on.
///
/// # Safety
/// The CPU has AVX2.
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
extern "C" fn bpermute(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
    let (Src::Vgpr(address), Src::Vgpr(data), Dst::Vgpr(register)) = (op.src[0], op.src[1], op.dst[0]) else {
        return otherwise(w, env, op);
    };
    if !w.is_full() {
        return otherwise(w, env, op);
    }
    let constant = _mm256_set1_epi32(op.imm as i32);
    let halves = w.halves();
    let mut results = [Row::ZERO; 2];
    for (half, result) in results.iter_mut().enumerate().take(halves) {
        for chunk in 0..4 {
            let lanes = _mm256_srli_epi32(_mm256_add_epi32(read(w.vgpr(address, half), chunk), constant), 2);
            // Bits 3, 4 and 5 of the lanes' numbers, as signs.
            let eight = _mm256_castsi256_ps(_mm256_slli_epi32(lanes, 28));
            let sixteen = _mm256_castsi256_ps(_mm256_slli_epi32(lanes, 27));
            let thirty_two = _mm256_castsi256_ps(_mm256_slli_epi32(lanes, 26));
            let mut values = [_mm256_setzero_ps(); 2];
            for (of, value) in values.iter_mut().enumerate().take(halves) {
                let row = w.vgpr(data, of);
                let a = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(read(row, 0), lanes));
                let b = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(read(row, 1), lanes));
                let c = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(read(row, 2), lanes));
                let d = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(read(row, 3), lanes));
                let (low, high) = (_mm256_blendv_ps(a, b, eight), _mm256_blendv_ps(c, d, eight));
                *value = _mm256_blendv_ps(low, high, sixteen);
            }
            let value = match halves {
                1 => values[0],
                _ => _mm256_blendv_ps(values[0], values[1], thirty_two),
            };
            // SAFETY: a row has four vectors.
            unsafe { _mm256_storeu_ps(result.0.as_mut_ptr().cast::<f32>().add(8 * chunk), value) };
        }
    }
    for (half, result) in results.iter().enumerate().take(halves) {
        *w.vgpr_mut(register, half) = *result;
    }
    Flow::Next
}

/// What to call instead of an instruction's handler.
pub(super) fn faster(op: &Op, inst: &Inst) -> Option<Run> {
    if op.pair.is_some() || op.atomic.is_some() || inst.mods.lds || inst.mods.gds {
        return None;
    }
    let (_, operation) = inst.name.split_once('_')?;
    match (op.unit, inst.format) {
        (Unit::Vmem, Format::Global | Format::Flat) => moves::<Global>(operation),
        (Unit::Lds, Format::Ds) => match operation {
            "bpermute_b32" => Some(bpermute),
            "read2_b32" | "load_2addr_b32" | "read2st64_b32" | "load_2addr_stride64_b32" => {
                Some(load_pair::<1>)
            }
            "read2_b64" | "load_2addr_b64" | "read2st64_b64" | "load_2addr_stride64_b64" => {
                Some(load_pair::<2>)
            }
            "write2_b32" | "store_2addr_b32" | "write2st64_b32" | "store_2addr_stride64_b32" => {
                Some(store_pair::<1>)
            }
            "write2_b64" | "store_2addr_b64" | "write2st64_b64" | "store_2addr_stride64_b64" => {
                Some(store_pair::<2>)
            }
            _ => moves::<Lds>(operation),
        },
        _ => None,
    }
}

/// By what stands behind the kind of memory in a mnemonic.
fn moves<A: Memory>(operation: &str) -> Option<Run> {
    let shape = operation.strip_prefix("load_").or_else(|| operation.strip_prefix("read_"));
    if let Some(shape) = shape {
        const LOW: u32 = 0xffff;
        const HIGH: u32 = 0xffff_0000;
        return Some(match shape {
            "dword" | "b32" => load::<A, 1>,
            "dwordx2" | "b64" => load::<A, 2>,
            "dwordx3" | "b96" => load::<A, 3>,
            "dwordx4" | "b128" => load::<A, 4>,
            "ubyte" | "u8" => load_part::<A, 1, 0, false, 0>,
            "sbyte" | "i8" => load_part::<A, 1, 0, true, 0>,
            "ushort" | "u16" => load_part::<A, 2, 0, false, 0>,
            "sshort" | "i16" => load_part::<A, 2, 0, true, 0>,
            "ubyte_d16" | "d16_u8" | "u8_d16" => load_part::<A, 1, 0, false, HIGH>,
            "short_d16" | "d16_b16" | "u16_d16" => load_part::<A, 2, 0, false, HIGH>,
            "ubyte_d16_hi" | "d16_hi_u8" | "u8_d16_hi" => load_part::<A, 1, 16, false, LOW>,
            "short_d16_hi" | "d16_hi_b16" | "u16_d16_hi" => load_part::<A, 2, 16, false, LOW>,
            _ => return None,
        });
    }
    let shape = operation.strip_prefix("store_").or_else(|| operation.strip_prefix("write_"))?;
    Some(match shape {
        "dword" | "b32" => store::<A, 1>,
        "dwordx2" | "b64" => store::<A, 2>,
        "dwordx3" | "b96" => store::<A, 3>,
        "dwordx4" | "b128" => store::<A, 4>,
        "byte" | "b8" => store_part::<A, 1, 0>,
        "short" | "b16" => store_part::<A, 2, 0>,
        "byte_d16_hi" | "d16_hi_b8" | "b8_d16_hi" => store_part::<A, 1, 16>,
        "short_d16_hi" | "d16_hi_b16" | "b16_d16_hi" => store_part::<A, 2, 16>,
        _ => return None,
    })
}
