//! A quantized matrix by one to eight vectors that are quantized to q8_1.
//!
//! A subgroup of 32 lanes has `ROWS` rows of the matrix and all vectors: each lane loads every 32nd chunk of its rows
//! and multiplies it with that part of each vector, so that the matrix is read once. The vectors are put into workgroup
//! memory first, where all subgroups use them.
//!
//! On NVIDIA GPUs the warps of a workgroup share its rows' columns for one vector (`by_chunks`), or the matrix comes through
//! workgroup memory too (`stream`); for three or more the products are those of tensor cores (`tiles`).

use super::formats::{Format, Q8_1_BYTES, SEGMENT};
use super::lanes::{Subgroup, local_id, workgroup_size};
use super::nibbles::{high_half, low_half};
use super::*;
use amdgpu_device::bytes::dot4;
use amdgpu_device::f16;
use amdgpu_device::grid::{workgroup_id_x, workgroups_x};
use amdgpu_device::math::fma;
use amdgpu_device::memory::{VECTOR_BYTES, is_aligned, load, loads_once};
use amdgpu_device::prelude::*;
use amdgpu_device::workgroup::{barrier_local, fixed_memory};

/// Rows of a subgroup.
const ROWS: usize = 2;

/// Lanes of a workgroup for one vector, and its rows.
#[cfg_attr(not(target_arch = "nvptx64"), allow(clippy::extra_unused_type_parameters))]
const fn for_one<F: Format>() -> [usize; 2] {
    #[cfg(target_arch = "nvptx64")]
    if super::nvidia::by_chunks::pays::<F>() {
        return [super::nvidia::by_chunks::lanes::<F>(), super::nvidia::by_chunks::ROWS];
    }
    let subgroups = if cfg!(target_arch = "nvptx64") { 4 } else { 8 };
    [subgroups * 32, subgroups * ROWS]
}

/// Lanes of a workgroup for several vectors.
const FOR_SEVERAL: usize = if cfg!(target_arch = "nvptx64") { 512 } else { 256 };

/// Words of a block of q8_1.
const GROUP_WORDS: u32 = Q8_1_BYTES as u32 / 4;

/// KiB of workgroup memory for so many vectors.
const fn kib(vectors: usize) -> usize {
    match vectors {
        1 => 16,
        2..=4 => 32,
        _ => 40,
    }
}

/// Workgroup memory for so many vectors.
#[inline(always)]
pub(super) fn memory_for<const VECTORS: usize, T>() -> *mut T {
    match const { kib(VECTORS) } {
        16 => fixed_memory::<16, T>(),
        32 => fixed_memory::<32, T>(),
        _ => fixed_memory::<40, T>(),
    }
}

/// Groups of 32 elements that fit in workgroup memory, of each vector; whole blocks of any format.
const fn capacity(vectors: usize) -> u32 {
    (kib(vectors) * 256 / vectors) as u32 / (GROUP / 4 + 1) / 8 * 8
}

/// Rows of vectors in q8_1, in global memory.
#[derive(Clone, Copy)]
pub(super) struct Vectors {
    /// The first one.
    pub from: *const u8,
    /// From one to the next, in bytes.
    pub stride: usize,
}

/// Part of some vectors, in workgroup memory: the scales of all groups of the first one, then of the next, with the sums
/// where they are needed; and so their bytes.
struct Staged<F, const VECTORS: usize> {
    format: core::marker::PhantomData<F>,
}

impl<F, const VECTORS: usize> Clone for Staged<F, VECTORS> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F, const VECTORS: usize> Copy for Staged<F, VECTORS> {}

impl<F: Format, const VECTORS: usize> Staged<F, VECTORS> {
    /// How many times 16 bytes a lane copies at once, of each vector.
    const AT_ONCE: usize = match VECTORS {
        1 => 4,
        2 | 3 => 2,
        _ => 1,
    };

    /// Groups that there is room for, of each vector. All places are counted from it, and so are constants.
    const CAPACITY: u32 = capacity(VECTORS);

    /// The word `i` of workgroup memory.
    #[inline(always)]
    fn word(self, i: u32) -> *mut u32 {
        memory_for::<VECTORS, u32>().wrapping_add(i as usize)
    }

    /// Which word has the scale of a group of vector `v`.
    #[inline(always)]
    fn scale_word(v: u32, group: u32) -> u32 {
        v * Self::CAPACITY + group
    }

    /// Which word has word `at` of the bytes of vector `v`; the four of a segment stay together. Before the first one any.
    #[inline(always)]
    fn byte_word(v: u32, at: u32) -> u32 {
        // Eight lanes that read the same segment of neighbouring chunks find it in different banks: of small blocks they
        // read every second segment, of large ones two neighbours in every eight, or four.
        let turned = (at / 32 * const { if F::CHUNKS == 1 { 4 } else { 8 } }) & 28;
        let first = VECTORS as u32 * Self::CAPACITY + v * (Self::CAPACITY * GROUP / 4);
        (at ^ turned).wrapping_add(first)
    }

    /// Copies `groups` groups from the group `first` on; all lanes of the workgroup together.
    ///
    /// # Safety
    /// The vectors have such groups, and there are no more than [`CAPACITY`](Self::CAPACITY). Nobody uses the memory.
    #[inline(always)]
    unsafe fn fill(self, vectors: Vectors, first: u32, groups: u32) {
        let words = groups * GROUP_WORDS;
        let start = (first * GROUP_WORDS) as usize * 4;
        let whole = is_aligned(vectors.from) && (vectors.stride | start).is_multiple_of(VECTOR_BYTES);
        let quads = if whole { words / 4 } else { 0 };
        let lanes = workgroup_size();
        let mut quad = local_id();
        // SAFETY: the caller's; there is room for all groups
        unsafe {
            let from = vectors.from.add(start);
            while quad < quads {
                // All loads, then all stores.
                let mut loaded = [[[0; 4]; VECTORS]; 4];
                let mut k = 0;
                while k < Self::AT_ONCE {
                    let at = quad + k as u32 * lanes;
                    let at = if at < quads { at } else { quads - 1 };
                    let mut v = 0;
                    while v < VECTORS {
                        let offset = v as u32 * vectors.stride as u32 + at * VECTOR_BYTES as u32;
                        loaded[k][v] = load(from.add(offset as usize).cast::<u32>());
                        v += 1;
                    }
                    k += 1;
                }
                let mut k = 0;
                while k < Self::AT_ONCE {
                    let at = quad + k as u32 * lanes;
                    if at < quads {
                        let mut i = 0;
                        while i < 4 {
                            let (group, word) = ((at * 4 + i) / GROUP_WORDS, (at * 4 + i) % GROUP_WORDS);
                            let mut v = 0;
                            while v < VECTORS {
                                self.put(v as u32, group, word, loaded[k][v][i as usize]);
                                v += 1;
                            }
                            i += 1;
                        }
                    }
                    k += 1;
                }
                quad += Self::AT_ONCE as u32 * lanes;
            }
            let mut i = quads * 4 + local_id();
            while i < words {
                let (group, word) = (i / GROUP_WORDS, i % GROUP_WORDS);
                let mut v = 0;
                while v < VECTORS {
                    let offset = v as u32 * vectors.stride as u32 + i * 4;
                    self.put(v as u32, group, word, from.add(offset as usize).cast::<u32>().read());
                    v += 1;
                }
                i += lanes;
            }
        }
    }

    /// Stores word `word` of a block of vector `v`.
    ///
    /// # Safety
    /// `v` is below `VECTORS`, `group` below [`CAPACITY`](Self::CAPACITY), `word` below [`GROUP_WORDS`], and nobody uses
    /// the memory.
    #[inline(always)]
    unsafe fn put(self, v: u32, group: u32, word: u32, value: u32) {
        // Both cases are computed, so that lanes do not part.
        let bytes = Self::byte_word(v, (group * 8 + word).wrapping_sub(1));
        let scale = Self::scale_word(v, group);
        let d =
            if const { F::OFFSET != 0 } { value } else { f16::from_bits(value as u16).to_f32().to_bits() };
        let head = word == 0;
        // SAFETY: the caller's
        unsafe { self.word(if head { scale } else { bytes }).write(if head { d } else { value }) };
    }

    /// The four words of segment `segment` of vector `v`.
    ///
    /// # Safety
    /// `v` is below `VECTORS`, and the segment is one that was filled in, for all lanes to see.
    #[inline(always)]
    unsafe fn segment(self, v: u32, segment: u32) -> [u32; 4] {
        // SAFETY: the caller's
        unsafe { load(self.word(Self::byte_word(v, segment * 4)).cast_const()) }
    }

    /// The scale of segment `segment` of vector `v`, and the sum that the format needs: its share of the block's, or that of
    /// its bytes, which is `sum`.
    ///
    /// # Safety
    /// As for [`segment`](Self::segment).
    #[inline(always)]
    unsafe fn scale_and_sum(self, v: u32, segment: u32, sum: f32) -> (f32, f32) {
        let at = self.word(Self::scale_word(v, segment / (GROUP / SEGMENT)));
        // SAFETY: the caller's
        let word = unsafe { at.read() };
        if const { F::OFFSET != 0 } { scale_and_sum::<F, 1>(word, sum) } else { (f32::from_bits(word), sum) }
    }
}

/// The scale of so many segments of a block of q8_1 that has this first word, and the sum that the format needs: their share
/// of the block's, or that of their bytes, which is `sum`.
#[inline(always)]
pub(super) fn scale_and_sum<F: Format, const SEGMENTS: u32>(head: u32, sum: f32) -> (f32, f32) {
    let share = const { (SEGMENTS * SEGMENT) as f32 / GROUP as f32 };
    (low_half(head), if const { F::OFFSET != 0 } { share * high_half(head) } else { sum })
}

/// `start` plus the products of the bytes of two segments, exact.
#[inline(always)]
pub(super) fn dot(a: [u32; 4], b: [u32; 4], start: i32) -> i32 {
    let mut product = start;
    let mut i = 0;
    while i < 4 {
        product = dot4(a[i], b[i], product);
        i += 1;
    }
    product
}

/// Adds the dot product of a segment of the matrix, or of several with one scale, with those of a vector,
/// `Σ (scale·(quant − OFFSET) − minimum)·d·byte`, to `to`. `product` is that of quants and bytes.
#[inline(always)]
pub(super) fn add_product<F: Format>(
    product: i32,
    Scale { scale, minimum }: Scale,
    (d, sum): (f32, f32),
    to: f32,
) -> f32 {
    let product = product as f32;
    if const { F::OFFSET != 0 } {
        fma(scale, fma(product, d, -(F::OFFSET as f32 * sum)), to)
    } else if const { F::MINIMUM } {
        fma(d, fma(scale, product, -(minimum * sum)), to)
    } else {
        fma(d, scale * product, to)
    }
}

/// The sum of the 16 bytes of a segment.
#[inline(always)]
pub(super) fn sum(bytes: [u32; 4]) -> i32 {
    dot([ONES; 4], bytes, 0)
}

/// A matrix: rows of blocks.
#[derive(Clone, Copy)]
pub(super) struct Matrix {
    /// The first block.
    pub from: *const u8,
    /// Elements of a row, a multiple of a block's.
    pub columns: u32,
    /// Rows, at least one.
    pub rows: u32,
}

/// `out[v · stride + row] = matrix[row] · vectors[v]`, by all workgroups of the grid's first dimension.
///
/// # Safety
/// The matrix has whole blocks, the vectors have as many elements, `out` holds the results.
#[inline(always)]
pub(super) unsafe fn mul_vec<F: Format, const VECTORS: usize>(
    matrix: Matrix,
    vectors: Vectors,
    out: *mut f32,
    stride: usize,
) {
    #[cfg(target_arch = "nvptx64")]
    if const { VECTORS == 1 && super::nvidia::by_chunks::pays::<F>() } && matrix.columns > 0 {
        // SAFETY: the caller's
        return unsafe { super::nvidia::by_chunks::mul_vec::<F>(matrix, vectors, out) };
    }
    #[cfg(target_arch = "nvptx64")]
    if const { VECTORS > 2 } && workgroup_size().is_multiple_of(32) {
        // SAFETY: the caller's
        return unsafe { super::nvidia::tiles::mul_vec::<F, VECTORS>(matrix, vectors, out, stride) };
    }
    let subgroup = Subgroup::mine();
    let at_once = subgroup.count * ROWS as u32;
    let groups = matrix.columns / GROUP;
    // Parts of the vectors as large as possible, and all of them about the same.
    let parts = groups.div_ceil(const { capacity(VECTORS) });
    let part = if parts > 1 { groups.div_ceil(parts).next_multiple_of(8) } else { groups };
    let mut first_row = workgroup_id_x() * at_once;
    while first_row < matrix.rows {
        let row = first_row + subgroup.number * ROWS as u32;
        let mut sums = [[0.0; VECTORS]; ROWS];
        let mut group = 0;
        while group < groups {
            let count = if groups - group < part { groups - group } else { part };
            let now = Part { group, count, subgroup };
            // SAFETY: the caller's
            unsafe { multiply_part::<F, VECTORS>(matrix, row, vectors, now, &mut sums) };
            // The next part goes to the same place.
            barrier_local();
            group += part;
        }
        let mut r = 0;
        while r < ROWS {
            let mut v = 0;
            while v < VECTORS {
                sums[r][v] = subgroup.sum(sums[r][v]);
                v += 1;
            }
            r += 1;
        }
        // Each lane writes one of the results; in a workgroup of few lanes, every so many.
        let mut number = subgroup.lane;
        while number < (ROWS * VECTORS) as u32 {
            let mut sum = 0.0;
            let mut i = 0;
            while i < ROWS * VECTORS {
                sum = if number == i as u32 { sums[i / VECTORS][i % VECTORS] } else { sum };
                i += 1;
            }
            let (r, v) = (number / VECTORS as u32, number % VECTORS as u32);
            if row + r < matrix.rows {
                // SAFETY: the caller's
                unsafe { out.add(v as usize * stride + (row + r) as usize).write(sum) };
            }
            number += subgroup.size;
        }
        first_row += workgroups_x() * at_once;
    }
}

/// A part of the columns, and who multiplies it.
#[derive(Clone, Copy)]
struct Part {
    /// The first group of 32 columns.
    group: u32,
    /// Groups.
    count: u32,
    subgroup: Subgroup,
}

/// Adds the products of a part of a subgroup's rows, which begin with `row`. All lanes of the workgroup come here.
///
/// # Safety
/// The matrix has whole blocks, and the part is of its columns; the vectors have as many.
#[inline(always)]
unsafe fn multiply_part<F: Format, const VECTORS: usize>(
    matrix: Matrix,
    row: u32,
    vectors: Vectors,
    part: Part,
    sums: &mut [[f32; VECTORS]; ROWS],
) {
    let staged = Staged::<F, VECTORS> { format: core::marker::PhantomData };
    let mut rows = [matrix.from; ROWS];
    let mut r = 0;
    while r < ROWS {
        rows[r] = row_of::<F>(matrix, row + r as u32, part.group);
        r += 1;
    }
    let blocks = part.count * GROUP / F::ELEMENTS;
    // SAFETY: the caller's. The matrix is on its way while the vectors are copied.
    unsafe {
        #[cfg(target_arch = "nvptx64")]
        if const { VECTORS == 1 } && workgroup_size().is_multiple_of(32) {
            let stream = super::nvidia::stream::Stream::<F>::new(rows, blocks, part.subgroup);
            staged.fill(vectors, part.group, part.count);
            barrier_local();
            return stream.run(&mut Products { lane: part.subgroup.lane, staged, sums });
        }
        let mut walk = Walk::<F>::new(rows, blocks, part.subgroup);
        let first = [walk.load(), walk.load()];
        staged.fill(vectors, part.group, part.count);
        barrier_local();
        multiply(&mut walk, first, staged, sums);
    }
}

/// The address of a row, from a group of columns on. A subgroup that reaches over the end repeats the last row.
#[inline(always)]
fn row_of<F: Format>(matrix: Matrix, row: u32, group: u32) -> *const u8 {
    let row = if row < matrix.rows { row } else { matrix.rows - 1 };
    let per_row = (matrix.columns / F::ELEMENTS) as usize;
    let first_block = (group * GROUP / F::ELEMENTS) as usize;
    matrix.from.wrapping_add((row as usize * per_row + first_block) * F::BYTES)
}

/// Products of rows that come through workgroup memory.
#[cfg(target_arch = "nvptx64")]
struct Products<'a, F, const VECTORS: usize> {
    lane: u32,
    staged: Staged<F, VECTORS>,
    sums: &'a mut [[f32; VECTORS]; ROWS],
}

#[cfg(target_arch = "nvptx64")]
impl<F: Format, const VECTORS: usize> super::nvidia::stream::Work for Products<'_, F, VECTORS> {
    type Part = super::nvidia::by_chunks::Part<F>;

    #[inline(always)]
    unsafe fn part(&self, at: u32) -> Self::Part {
        let (block, chunk) = split::<F>(at);
        let place = |s| block * (F::ELEMENTS / SEGMENT) + F::place(chunk, s);
        let mut bytes = [[0; 4]; super::nvidia::by_chunks::MOST];
        let mut s = 0;
        while s < F::SEGMENTS {
            // SAFETY: the caller's
            bytes[s as usize] = unsafe { self.staged.segment(0, place(s)) };
            s += 1;
        }
        // SAFETY: the caller's
        super::nvidia::by_chunks::Part::new(bytes, |s, sum| unsafe {
            self.staged.scale_and_sum(0, place(s), sum)
        })
    }

    #[inline(always)]
    unsafe fn step<const R: usize>(&mut self, rows: [*const u8; R], row: usize, part: &Self::Part) {
        let (block, chunk) = split::<F>(self.lane);
        let mut r = 0;
        while r < R {
            let from = rows[r].wrapping_add(block as usize * F::BYTES);
            // SAFETY: the caller's
            let (bits, header) = unsafe { (F::bits::<4>(from, chunk, 0), F::header(from, chunk)) };
            self.sums[row + r][0] = part.add(&bits, header, chunk, self.sums[row + r][0]);
            r += 1;
        }
    }
}

/// Adds the products of a chunk of some rows, which is number `at` of the part's.
///
/// # Safety
/// The part of the vectors is filled in, for all lanes to see, and has such a chunk.
#[inline(always)]
unsafe fn add_chunk<F: Format, const VECTORS: usize, const R: usize>(
    at: u32,
    bits: [F::Bits<4>; R],
    headers: [F::Header; R],
    staged: Staged<F, VECTORS>,
    sums: &mut [[f32; VECTORS]; R],
) {
    let (block, chunk) = split::<F>(at);
    let mut s = 0;
    while s < F::SEGMENTS {
        let place = block * (F::ELEMENTS / SEGMENT) + F::place(chunk, s);
        let quants = bits.each_ref().map(|bits| [0, 1, 2, 3].map(|i| F::quants::<4>(bits, i, chunk, s)));
        let scales = headers.map(|header| F::scale(header, chunk, s));
        let mut v = 0;
        while v < VECTORS {
            // SAFETY: the caller's
            let (bytes, factors) = unsafe {
                let bytes = staged.segment(v as u32, place);
                let sum = if const { F::MINIMUM } { sum(bytes) as f32 } else { 0.0 };
                (bytes, staged.scale_and_sum(v as u32, place, sum))
            };
            let mut r = 0;
            while r < R {
                let product = dot(quants[r], bytes, 0);
                sums[r][v] = add_product::<F>(product, scales[r], factors, sums[r][v]);
                r += 1;
            }
            v += 1;
        }
        s += 1;
    }
}

/// Block and chunk in it of a row's chunk.
#[inline(always)]
fn split<F: Format>(chunk: u32) -> (u32, u32) {
    (chunk / F::CHUNKS, chunk % F::CHUNKS)
}

/// A lane's way through its chunks of a part of its rows.
struct Walk<F> {
    rows: [*const u8; ROWS],
    /// The next chunk.
    at: u32,
    /// Chunks of the part.
    chunks: u32,
    step: u32,
    format: core::marker::PhantomData<F>,
}

/// A chunk of each row, as loaded.
struct Chunk<F: Format> {
    at: u32,
    bits: [F::Bits<4>; ROWS],
    headers: [F::Header; ROWS],
}

impl<F: Format> Walk<F> {
    #[inline(always)]
    fn new(rows: [*const u8; ROWS], blocks: u32, subgroup: Subgroup) -> Self {
        let chunks = blocks * F::CHUNKS;
        Walk { rows, at: subgroup.lane, chunks, step: subgroup.size, format: core::marker::PhantomData }
    }

    /// Loads the next chunk; behind the end the last one, of which nothing must be used.
    ///
    /// # Safety
    /// The rows have [`chunks`](Self::chunks) chunks, at least one.
    #[inline(always)]
    unsafe fn load(&mut self) -> Chunk<F> {
        let at = self.at;
        let (block, chunk) = split::<F>(if at < self.chunks { at } else { self.chunks - 1 });
        self.at = at + self.step;
        // SAFETY: the caller's
        unsafe {
            let blocks = self.rows.map(|row| row.add(block as usize * F::BYTES));
            let whole = blocks.map(|block| F::whole(block, chunk));
            Chunk { at, bits: whole.map(|(bits, _)| bits), headers: whole.map(|(_, header)| header) }
        }
    }
}

/// Adds the products of this lane's chunks, of which the first two are loaded.
///
/// # Safety
/// As for [`Walk::load`]; the part of the vectors is filled in, for all lanes to see.
#[inline(always)]
unsafe fn multiply<F: Format, const VECTORS: usize>(
    walk: &mut Walk<F>,
    first: [Chunk<F>; 2],
    staged: Staged<F, VECTORS>,
    sums: &mut [[f32; VECTORS]; ROWS],
) {
    let [mut now, mut next] = first;
    while now.at < walk.chunks {
        let Chunk { at, bits, headers } = now;
        // SAFETY: the caller's
        unsafe {
            (now, next) = (next, walk.load());
            add_chunk::<F, VECTORS, ROWS>(at, bits, headers, staged, sums);
        }
    }
}

/// `dst[v · nrows_dst + row] = x[row] · y[v]` for one vector: `x` has `nrows_x` rows of `ncols_x` elements, vector `v`
/// of `y` begins `v · nrows_y` elements of q8_1 after the first, which is `ncols_x` padded to a multiple of 512.
#[amdgpu_kernel(
    name = "mul_mat_vec_{F}_q8_1_cuda{VECTORS}",
    F in [
        q4_0: Q4_0, q4_1: Q4_1, q5_0: Q5_0, q5_1: Q5_1, q8_0: Q8_0,
        q2_K: Q2K, q3_K: Q3K, q4_K: Q4K, q5_K: Q5K, q6_K: Q6K,
    ],
    const VECTORS in [1],
    launch(
        workgroup = for_one::<F>()[0],
        max_workgroup = 256,
        items_per_lane = for_one::<F>()[1] * 32 / for_one::<F>()[0],
        items = nrows_x * 32,
    ),
)]
#[amdgpu_kernel(
    name = "mul_mat_vec_{F}_q8_1_cuda{VECTORS}",
    F in [
        q4_0: Q4_0, q4_1: Q4_1, q5_0: Q5_0, q5_1: Q5_1, q8_0: Q8_0,
        q2_K: Q2K, q3_K: Q3K, q4_K: Q4K, q5_K: Q5K, q6_K: Q6K,
    ],
    const VECTORS in [2, 3, 4, 5, 6, 7, 8],
    launch(workgroup = FOR_SEVERAL, max_workgroup = FOR_SEVERAL, items = nrows_x.div_ceil(2) * 32),
)]
pub unsafe fn mul_mat_vec<F: Format, const VECTORS: usize>(
    #[len(nrows_x * (ncols_x / F::ELEMENTS) * F::BYTES)]
    #[align(16)]
    vx: *const u8,
    #[len((VECTORS - 1) * (nrows_y / 32 * 36) + ncols_x / 32 * 36)]
    #[align(4)]
    vy: *const u8,
    #[len((VECTORS - 1) * nrows_dst + nrows_x)] dst: *mut f32,
    #[requires(ncols_x >= 0, ncols_x % F::ELEMENTS == 0)] ncols_x: i32,
    nrows_x: i32,
    #[requires(nrows_y >= 0)] nrows_y: i32,
    #[requires(nrows_dst >= 0)] nrows_dst: i32,
) {
    if VECTORS == 1 {
        loads_once();
    }
    let matrix = Matrix { from: vx, columns: ncols_x as u32, rows: nrows_x as u32 };
    let vectors = Vectors { from: vy, stride: nrows_y as usize / GROUP as usize * Q8_1_BYTES };
    // SAFETY: the caller's
    unsafe { mul_vec::<F, VECTORS>(matrix, vectors, dst, nrows_dst as usize) }
}
