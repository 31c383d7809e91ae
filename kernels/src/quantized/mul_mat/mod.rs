//! A quantized matrix by any number of vectors that are quantized to q8_1.
//!
//! A workgroup makes a tile of `ROWS` rows by `VECTORS` vectors of the result. It goes through the columns in steps
//! of `STEP`: the quants of the rows, as bytes, and their scales go to workgroup memory, and so do the vectors; then
//! each lane or wave has its part of the tile's products: by matrix instructions of bytes where the target has them (`matrix`,
//! `nvidia`), by dot products elsewhere (`dots`).

use super::formats::{Format, Q8_1_BYTES, SEGMENT, Scale};
use super::lanes::{local_id, workgroup_size};
use super::nibbles::{high_half, low_half};
use super::*;
use amdgpu_device::bytes::dot4;
use amdgpu_device::grid::{workgroup_id_x, workgroup_id_y, workgroups_x, workgroups_y};
use amdgpu_device::math::fma;
#[cfg(not(target_arch = "nvptx64"))]
use amdgpu_device::matrix::tile::TileElement;
use amdgpu_device::memory::{load, store};
use amdgpu_device::prelude::*;
use amdgpu_device::workgroup::{barrier_local, fixed_memory};

#[cfg(not(target_arch = "nvptx64"))]
mod dots;
#[cfg(not(target_arch = "nvptx64"))]
mod matrix;
#[cfg(target_arch = "nvptx64")]
mod nvidia;

/// Rows of a tile.
const ROWS: u32 = 128;
/// Vectors of a tile.
const VECTORS: u32 = 64;
/// Columns of a step: every chunk of every format lies within one.
const STEP: u32 = 128;
/// Groups of 32 columns of a step.
const GROUPS: u32 = STEP / GROUP;
/// Words from one row of bytes in workgroup memory to the next: lanes that read the same column of neighbouring rows
/// find it in different banks, and rows begin at multiples of 16 bytes.
const STRIDE: u32 = STEP / 4 + 4;
/// 1.5 · 2^23: an integer of up to 22 bits added to its bits is that integer added to it.
const MAGIC: f32 = 12_582_912.0;

/// What a format's rows and vectors need in workgroup memory, in words from its start.
///
/// Quants are summed over [`unit`](Self::unit) columns, as many as share a scale of both sides.
struct Plan<F>(core::marker::PhantomData<F>);

impl<F: Format> Plan<F> {
    /// Columns whose products are one sum of integers.
    const UNIT: u32 = if F::SHARED { GROUP } else { SEGMENT };
    /// Units of a step.
    const UNITS: u32 = STEP / Self::UNIT;
    /// Quants of the rows.
    const X: u32 = 0;
    /// Bytes of the vectors.
    const Y: u32 = Self::X + ROWS * STRIDE;
    /// Scales of the rows, for each unit.
    const X_SCALES: u32 = Self::Y + VECTORS * STRIDE;
    /// Minima of the rows, for each unit.
    const MINIMA: u32 = Self::X_SCALES + ROWS * Self::UNITS;
    /// For each unit of the vectors, the offset times the sum that the block holds, or, if there is no offset, scale times
    /// sum of the bytes.
    const SUMS: u32 = Self::MINIMA + if F::MINIMUM { ROWS * Self::UNITS } else { 0 };
    /// Whether there are any.
    const NEEDS_SUMS: bool = F::OFFSET != 0 || F::MINIMUM;
    const END: u32 = Self::SUMS + if Self::NEEDS_SUMS { VECTORS * Self::UNITS } else { 0 };

    /// The scale of a vector for a group, behind its bytes.
    #[inline(always)]
    fn y_scale(vector: u32, group: u32) -> u32 {
        const { assert!(STEP / 4 + GROUPS <= STRIDE) };
        Self::Y + vector * STRIDE + STEP / 4 + group
    }
}

/// Workgroup memory.
struct Tile<F> {
    words: *mut u32,
    plan: core::marker::PhantomData<F>,
}

impl<F: Format> Clone for Tile<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: Format> Copy for Tile<F> {}

impl<F: Format> Tile<F> {
    #[inline(always)]
    fn new() -> Self {
        const { assert!(Plan::<F>::END * 4 <= 40 * 1024) };
        // With 32 KiB two workgroups have room on a compute unit of CDNA.
        let words = if const { Plan::<F>::END * 4 <= 32 * 1024 } {
            fixed_memory::<32, u32>()
        } else {
            fixed_memory::<40, u32>()
        };
        Tile { words, plan: core::marker::PhantomData }
    }

    #[inline(always)]
    fn at(self, word: u32) -> *mut u32 {
        self.words.wrapping_add(word as usize)
    }

    #[inline(always)]
    fn float(self, word: u32) -> *mut f32 {
        self.at(word).cast()
    }

    /// Fills in the rows' quants and scales of a step.
    ///
    /// # Safety
    /// As for [`load_chunk`](Self::load_chunk). Nobody uses the rows' part of the memory.
    #[inline(always)]
    unsafe fn fill_rows<P: Part>(self, matrix: Rows, first_row: u32, column: u32) {
        let lanes = workgroup_size();
        let mut task = local_id();
        while task < ROWS * Self::CHUNKS {
            // All loads, then all stores.
            let tasks = [0, 1, 2, 3].map(|k| task + k * lanes);
            // SAFETY: the caller's, and within the plan
            unsafe {
                let [a, b, c, d] = tasks.map(|task| self.load_chunk(matrix, first_row, column, task));
                self.store_chunk::<P>(a, tasks[0]);
                self.store_chunk::<P>(b, tasks[1]);
                self.store_chunk::<P>(c, tasks[2]);
                self.store_chunk::<P>(d, tasks[3]);
            }
            task += 4 * lanes;
        }
    }

    /// Chunks of a row in a step.
    const CHUNKS: u32 = STEP * F::CHUNKS / F::ELEMENTS;

    /// Loads the chunk of a task. Rows and columns beyond the matrix stand for others; those columns count nothing.
    ///
    /// # Safety
    /// The matrix has a row and a block at least, and all that it says.
    #[inline(always)]
    unsafe fn load_chunk(self, matrix: Rows, first_row: u32, column: u32, task: u32) -> Chunk<F> {
        let row = first_row + task / Self::CHUNKS % ROWS;
        let row = if row < matrix.count { row } else { matrix.count - 1 };
        // Chunks of a row, counted from its beginning.
        let chunk = column / STEP * Self::CHUNKS + task % Self::CHUNKS;
        let (block, chunk) = (chunk / F::CHUNKS, chunk % F::CHUNKS);
        let inside = block < matrix.blocks;
        let block = if inside { block } else { 0 };
        // SAFETY: the caller's
        unsafe {
            let from = matrix.from.add((row as usize * matrix.blocks as usize + block as usize) * F::BYTES);
            Chunk { bits: F::bits::<4>(from, chunk, 0), header: F::header(from, chunk), block, chunk, inside }
        }
    }

    /// Stores the segments and scales of a task's chunk.
    ///
    /// # Safety
    /// Nobody uses the rows' part of the memory.
    #[inline(always)]
    unsafe fn store_chunk<P: Part>(self, from: Chunk<F>, task: u32) {
        if task >= ROWS * Self::CHUNKS {
            return;
        }
        let Chunk { bits, header, block, chunk, inside } = from;
        let (row, part) = (task / Self::CHUNKS, task % Self::CHUNKS);
        let mut s = 0;
        while s < F::SEGMENTS {
            let place = F::place(chunk, s) + block * (F::ELEMENTS / SEGMENT);
            // Where it is in the step; beyond the matrix any order will do.
            let place = if inside { place } else { part * F::SEGMENTS + s } % (STEP / SEGMENT);
            let quants = [0, 1, 2, 3].map(|i| F::quants::<4>(&bits, i, chunk, s));
            let Scale { scale, minimum } = F::scale(header, chunk, s);
            let unit = P::place(row, ROWS, place * SEGMENT / Plan::<F>::UNIT, Plan::<F>::UNITS);
            // SAFETY: within the plan
            unsafe {
                let to = self.at(Plan::<F>::X + row * STRIDE + place * 4);
                store(to, if inside { quants } else { [0; 4] });
                if (place * SEGMENT).is_multiple_of(Plan::<F>::UNIT) {
                    self.float(Plan::<F>::X_SCALES + unit).write(if inside { scale } else { 0.0 });
                    if const { F::MINIMUM } {
                        self.float(Plan::<F>::MINIMA + unit).write(if inside { minimum } else { 0.0 });
                    }
                }
            }
            s += 1;
        }
    }

    /// Fills in the vectors' bytes, scales and sums of a step.
    ///
    /// # Safety
    /// As for [`load_group`](Self::load_group). Nobody uses the vectors' part of the memory.
    #[inline(always)]
    unsafe fn fill_vectors<P: Part>(self, vectors: Rows, first: u32, column: u32) {
        let lanes = workgroup_size();
        let mut task = local_id();
        while task < VECTORS * GROUPS {
            let tasks = [task, task + lanes];
            // SAFETY: the caller's, and within the plan
            unsafe {
                let blocks = tasks.map(|task| self.load_group(vectors, first, column, task));
                self.store_group::<P>(blocks[0], tasks[0]);
                self.store_group::<P>(blocks[1], tasks[1]);
            }
            task += 2 * lanes;
        }
    }

    /// Loads a task's block of q8_1, all 0 beyond the vectors.
    ///
    /// # Safety
    /// There is a vector of a block at least, and all that `vectors` says.
    #[inline(always)]
    unsafe fn load_group(self, vectors: Rows, first: u32, column: u32, task: u32) -> [u32; Q8_1_BYTES / 4] {
        let vector = first + task / GROUPS % VECTORS;
        let vector = if vector < vectors.count { vector } else { vectors.count - 1 };
        let group = column / GROUP + task % GROUPS;
        let inside = group < vectors.blocks;
        let at = vector as usize * vectors.stride + if inside { group as usize * Q8_1_BYTES } else { 0 };
        // SAFETY: the caller's
        let words = unsafe { vectors.from.add(at).cast::<[u32; Q8_1_BYTES / 4]>().read() };
        words.map(|word| if inside { word } else { 0 })
    }

    /// Stores a task's block.
    ///
    /// # Safety
    /// Nobody uses the vectors' part of the memory.
    #[inline(always)]
    unsafe fn store_group<P: Part>(self, [head, a, b, c, d, e, f, g, h]: [u32; Q8_1_BYTES / 4], task: u32) {
        if task >= VECTORS * GROUPS {
            return;
        }
        let (vector, part) = (task / GROUPS, task % GROUPS);
        let scale = low_half(head);
        let halves = [[a, b, c, d], [e, f, g, h]];
        let sums = halves.map(|words| words.into_iter().fold(0, |sum, word| dot4(ONES, word, sum)));
        let unit = |i: u32| {
            let unit = part * (GROUP / Plan::<F>::UNIT) + i;
            Plan::<F>::SUMS + P::place_of_vector(vector, VECTORS, unit, Plan::<F>::UNITS)
        };
        let to = Plan::<F>::Y + vector * STRIDE + part * 8;
        // SAFETY: within the plan
        unsafe {
            store(self.at(to), halves[0]);
            store(self.at(to + 4), halves[1]);
            self.float(Plan::<F>::y_scale(vector, part)).write(scale);
            if const { F::OFFSET != 0 } {
                self.float(unit(0)).write(F::OFFSET as f32 * high_half(head));
            } else if const { F::MINIMUM && F::SHARED } {
                self.float(unit(0)).write(scale * (sums[0] + sums[1]) as f32);
            } else if const { F::MINIMUM } {
                self.float(unit(0)).write(scale * sums[0] as f32);
                self.float(unit(1)).write(scale * sums[1] as f32);
            }
        }
    }
}

/// A chunk of the matrix, as loaded.
struct Chunk<F: Format> {
    bits: F::Bits<4>,
    header: F::Header,
    block: u32,
    chunk: u32,
    inside: bool,
}

/// Rows of blocks in global memory: those of the matrix, or the vectors.
#[derive(Clone, Copy)]
struct Rows {
    from: *const u8,
    /// Blocks of a row that count.
    blocks: u32,
    /// Rows, at least one.
    count: u32,
    /// Bytes from one row to the next, of the vectors.
    stride: usize,
}

/// Adds the products of a unit to `to`, of which `product` is the sum of quants times bytes; of the vector, `d` and `sum`
/// are the scale and what is in [`Plan::SUMS`].
#[inline(always)]
fn add_products<F: Format>(
    product: f32,
    Scale { scale, minimum }: Scale,
    (d, sum): (f32, f32),
    to: f32,
) -> f32 {
    if const { F::OFFSET != 0 } {
        return fma(scale, fma(product, d, -sum), to);
    }
    let to = fma(scale, d * product, to);
    if const { F::MINIMUM } { fma(-minimum, sum, to) } else { to }
}

/// Where results go.
#[derive(Clone, Copy)]
struct Out {
    to: *mut f32,
    rows: u32,
    vectors: u32,
    /// Elements from one vector's results to the next.
    stride: usize,
}

impl Out {
    /// Writes a result, unless it is beyond the edge.
    ///
    /// # Safety
    /// `to` has room for so many rows and vectors.
    #[inline(always)]
    unsafe fn write(self, row: u32, vector: u32, value: f32) {
        if row < self.rows && vector < self.vectors {
            // SAFETY: the caller's
            unsafe { self.to.add(vector as usize * self.stride + row as usize).write(value) };
        }
    }
}

/// What a lane or a wave computes of a tile. A workgroup with fewer of them than there are parts makes the tile in several rounds.
trait Part {
    /// Parts of a tile.
    const PARTS: u32;

    /// The number of the part that is this lane's in a round, at least [`PARTS`](Self::PARTS) if it has none, and how many a round
    /// has.
    fn mine() -> (u32, u32);
    /// A part whose sums are 0.
    fn new(number: u32) -> Self;
    /// Where a row's scale for a unit is, among `count` units of `rows` rows.
    fn place(row: u32, rows: u32, unit: u32, count: u32) -> u32 {
        let _ = rows;
        row * count + unit
    }
    /// The same of a vector's.
    fn place_of_vector(vector: u32, vectors: u32, unit: u32, count: u32) -> u32 {
        let _ = vectors;
        vector * count + unit
    }
    /// Adds the products of a step. All lanes of a wave come here.
    ///
    /// # Safety
    /// The tile is filled, for all lanes to see.
    unsafe fn add<F: Format>(&mut self, tile: Tile<F>);
    /// Writes the results of a tile that begins with this row and this vector.
    ///
    /// # Safety
    /// As for [`Out::write`].
    unsafe fn write(&self, out: Out, first_row: u32, first_vector: u32);
}

/// `dst[v · nrows_dst + row] = x[row] · y[v]`: `x` has `nrows_x` rows of `ncols_x` elements, `y` has `ncols_y` vectors
/// in q8_1, each of `nrows_y` elements, which is `ncols_x` padded.
///
/// Where the target has matrix instructions for bytes, a workgroup has at least one whole wave.
#[amdgpu_kernel(
    name = "mul_mat_{F}",
    F in [
        q4_0: Q4_0, q4_1: Q4_1, q5_0: Q5_0, q5_1: Q5_1, q8_0: Q8_0,
        q2_K: Q2K, q3_K: Q3K, q4_K: Q4K, q5_K: Q5K, q6_K: Q6K,
    ],
    launch(workgroup = 256, max_workgroup = 256, grid = [nrows_x.div_ceil(128), ncols_y.div_ceil(64), 1]),
)]
pub unsafe fn mul_mat<F: Format>(
    #[len(nrows_x * (ncols_x / F::ELEMENTS) * F::BYTES)]
    #[align(16)]
    vx: *const u8,
    #[len((ncols_y - 1) * (nrows_y / 32 * 36) + ncols_x / 32 * 36)]
    #[align(4)]
    vy: *const u8,
    #[len((ncols_y - 1) * nrows_dst + nrows_x)] dst: *mut f32,
    #[requires(ncols_x >= 0, ncols_x % F::ELEMENTS == 0)] ncols_x: i32,
    nrows_x: i32,
    ncols_y: i32,
    #[requires(nrows_y >= 0)] nrows_y: i32,
    #[requires(nrows_dst >= 0)] nrows_dst: i32,
) {
    let columns = ncols_x.max(0) as u32;
    let matrix = Rows { from: vx, blocks: columns / F::ELEMENTS, count: nrows_x.max(0) as u32, stride: 0 };
    let stride = nrows_y as usize / GROUP as usize * Q8_1_BYTES;
    let vectors = Rows { from: vy, blocks: columns / GROUP, count: ncols_y.max(0) as u32, stride };
    let out = Out { to: dst, rows: matrix.count, vectors: vectors.count, stride: nrows_dst as usize };
    // SAFETY: the caller's
    unsafe {
        #[cfg(target_arch = "nvptx64")]
        multiply::<F, nvidia::OfWarp>(matrix, vectors, out, columns);
        #[cfg(not(target_arch = "nvptx64"))]
        if <i8 as TileElement>::has_instructions() {
            multiply::<F, matrix::OfWave>(matrix, vectors, out, columns);
        } else {
            multiply::<F, dots::OfLane>(matrix, vectors, out, columns);
        }
    }
}

/// The product, tile by tile.
///
/// # Safety
/// The matrix and the vectors have at least one block, and all that they say; `out` has room for the results.
#[inline(always)]
unsafe fn multiply<F: Format, P: Part>(matrix: Rows, vectors: Rows, out: Out, columns: u32) {
    let tile = Tile::<F>::new();
    let (number, at_once) = P::mine();
    let mut first_vector = workgroup_id_y() * VECTORS;
    while first_vector < vectors.count {
        let mut first_row = workgroup_id_x() * ROWS;
        while first_row < matrix.count {
            let mut round = 0;
            while round < P::PARTS {
                let mut part = P::new(round + number);
                let mut column = 0;
                while column < columns {
                    // SAFETY: the caller's
                    unsafe {
                        tile.fill_rows::<P>(matrix, first_row, column);
                        tile.fill_vectors::<P>(vectors, first_vector, column);
                    }
                    barrier_local();
                    if round + number < P::PARTS {
                        // SAFETY: the tile is filled
                        unsafe { part.add::<F>(tile) };
                    }
                    // The next step goes to the same place.
                    barrier_local();
                    column += STEP;
                }
                if round + number < P::PARTS {
                    // SAFETY: the caller's
                    unsafe { part.write(out, first_row, first_vector) };
                }
                round += at_once;
            }
            first_row += workgroups_x() * ROWS;
        }
        first_vector += workgroups_y() * VECTORS;
    }
}
