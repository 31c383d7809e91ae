//! A quantized matrix by any number of vectors that are quantized to q8_1.
//!
//! A workgroup makes a tile of `ROWS` rows by `VECTORS` vectors of the result. It goes through the columns in steps
//! of `STEP`: the quants of the rows, as bytes, and their scales go to workgroup memory, and so do the vectors; then
//! each lane has its share of the tile's products.

use super::format::{Format, Q8_1_BYTES, SEGMENT, Scale};
use super::lanes::{local_id, workgroup_size};
use super::nibbles::{high_half, low_half};
use super::*;
use amdgpu_device::bytes::dot4;
use amdgpu_device::grid::{workgroup_id_x, workgroup_id_y, workgroups_x, workgroups_y};
use amdgpu_device::math::fma;
use amdgpu_device::memory::{load, store};
use amdgpu_device::prelude::*;
use amdgpu_device::workgroup::{barrier_local, fixed_memory};

/// Rows of a tile.
const ROWS: u32 = 128;
/// Vectors of a tile.
const VECTORS: u32 = 64;
/// Columns of a step: every chunk of every format lies within one.
const STEP: u32 = 128;
/// Groups of 32 columns of a step.
const GROUPS: u32 = STEP / GROUP;
/// Columns that share a scale of a vector.
const GROUP: u32 = 32;
/// Words from one row of bytes in workgroup memory to the next: lanes that read the same column of neighbouring rows
/// find it in different banks, and rows begin at multiples of 16 bytes.
const STRIDE: u32 = STEP / 4 + 4;
/// Four times 1, as bytes: the dot product with it is a sum.
const ONES: u32 = 0x0101_0101;

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
    /// Scales of the vectors, for each group.
    const Y_SCALES: u32 = Self::MINIMA + if F::MINIMUM { ROWS * Self::UNITS } else { 0 };
    /// For each unit of the vectors, the offset times the sum that the block holds, or, if there is no offset, scale times
    /// sum of the bytes.
    const SUMS: u32 = Self::Y_SCALES + VECTORS * GROUPS;
    /// Whether there are any.
    const NEEDS_SUMS: bool = F::OFFSET != 0 || F::MINIMUM;
    const END: u32 = Self::SUMS + if Self::NEEDS_SUMS { VECTORS * Self::UNITS } else { 0 };
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
        Tile { words: fixed_memory::<40, u32>(), plan: core::marker::PhantomData }
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
    unsafe fn fill_rows(self, matrix: Rows, first_row: u32, column: u32) {
        let lanes = workgroup_size();
        let mut task = local_id();
        while task < ROWS * Self::CHUNKS {
            // All loads, then all stores.
            let tasks = [0, 1, 2, 3].map(|k| task + k * lanes);
            // SAFETY: the caller's, and within the plan
            unsafe {
                let [a, b, c, d] = tasks.map(|task| self.load_chunk(matrix, first_row, column, task));
                self.store_chunk(a, tasks[0]);
                self.store_chunk(b, tasks[1]);
                self.store_chunk(c, tasks[2]);
                self.store_chunk(d, tasks[3]);
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
    unsafe fn store_chunk(self, from: Chunk<F>, task: u32) {
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
            let unit = row * Plan::<F>::UNITS + place * SEGMENT / Plan::<F>::UNIT;
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
    unsafe fn fill_vectors(self, vectors: Rows, first: u32, column: u32) {
        let lanes = workgroup_size();
        let mut task = local_id();
        while task < VECTORS * GROUPS {
            let tasks = [task, task + lanes];
            // SAFETY: the caller's, and within the plan
            unsafe {
                let blocks = tasks.map(|task| self.load_group(vectors, first, column, task));
                self.store_group(blocks[0], tasks[0]);
                self.store_group(blocks[1], tasks[1]);
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
    unsafe fn store_group(self, [head, a, b, c, d, e, f, g, h]: [u32; Q8_1_BYTES / 4], task: u32) {
        if task >= VECTORS * GROUPS {
            return;
        }
        let (vector, part) = (task / GROUPS, task % GROUPS);
        let scale = low_half(head);
        let halves = [[a, b, c, d], [e, f, g, h]];
        let sums = halves.map(|words| words.into_iter().fold(0, |sum, word| dot4(ONES, word, sum)));
        let units = vector * Plan::<F>::UNITS + part * (GROUP / Plan::<F>::UNIT);
        let to = Plan::<F>::Y + vector * STRIDE + part * 8;
        // SAFETY: within the plan
        unsafe {
            store(self.at(to), halves[0]);
            store(self.at(to + 4), halves[1]);
            self.float(Plan::<F>::Y_SCALES + vector * GROUPS + part).write(scale);
            if const { F::OFFSET != 0 } {
                self.float(Plan::<F>::SUMS + units).write(F::OFFSET as f32 * high_half(head));
            } else if const { F::MINIMUM && F::SHARED } {
                self.float(Plan::<F>::SUMS + units).write(scale * (sums[0] + sums[1]) as f32);
            } else if const { F::MINIMUM } {
                self.float(Plan::<F>::SUMS + units).write(scale * sums[0] as f32);
                self.float(Plan::<F>::SUMS + units + 1).write(scale * sums[1] as f32);
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

/// A lane's part of a tile. A workgroup of fewer lanes than there are parts makes the tile in several rounds.
#[cfg(not(target_arch = "nvptx64"))]
mod part {
    use super::*;

    /// Parts of a tile.
    pub(super) const PARTS: u32 = 256;
    /// Rows of a part, 16 apart.
    const R: usize = 8;
    /// Vectors of a part, 16 apart.
    const V: usize = 4;

    /// Sums of a part.
    pub(super) struct Part {
        sums: [[f32; V]; R],
        row: u32,
        vector: u32,
    }

    impl Part {
        #[inline(always)]
        pub(super) fn new(number: u32) -> Self {
            Part { sums: [[0.0; V]; R], row: number % 16, vector: number / 16 % 16 }
        }

        /// Adds the products of a step.
        ///
        /// # Safety
        /// The tile is filled, for all lanes to see.
        #[inline(always)]
        pub(super) unsafe fn add<F: Format>(&mut self, tile: Tile<F>) {
            let mut unit = 0;
            while unit < Plan::<F>::UNITS {
                let mut products = [[0; V]; R];
                let mut piece = 0;
                while piece < Plan::<F>::UNIT / SEGMENT {
                    let column = unit * (Plan::<F>::UNIT / 4) + 4 * piece;
                    let mut y = [[0; 4]; V];
                    let mut v = 0;
                    while v < V {
                        let at = Plan::<F>::Y + (self.vector + 16 * v as u32) * STRIDE + column;
                        // SAFETY: within the plan
                        y[v] = unsafe { load(tile.at(at).cast_const()) };
                        v += 1;
                    }
                    let mut r = 0;
                    while r < R {
                        let at = Plan::<F>::X + (self.row + 16 * r as u32) * STRIDE + column;
                        // SAFETY: within the plan
                        let x: [u32; 4] = unsafe { load(tile.at(at).cast_const()) };
                        let mut v = 0;
                        while v < V {
                            let mut i = 0;
                            while i < 4 {
                                products[r][v] = dot4(x[i], y[v][i], products[r][v]);
                                i += 1;
                            }
                            v += 1;
                        }
                        r += 1;
                    }
                    piece += 1;
                }
                let group = unit * Plan::<F>::UNIT / GROUP;
                let mut v = 0;
                while v < V {
                    let vector = self.vector + 16 * v as u32;
                    // SAFETY: within the plan
                    unsafe {
                        let d = tile.float(Plan::<F>::Y_SCALES + vector * GROUPS + group).read();
                        let sum = match const { Plan::<F>::NEEDS_SUMS } {
                            true => tile.float(Plan::<F>::SUMS + vector * Plan::<F>::UNITS + unit).read(),
                            false => 0.0,
                        };
                        let mut r = 0;
                        while r < R {
                            let at = (self.row + 16 * r as u32) * Plan::<F>::UNITS + unit;
                            let scale = tile.float(Plan::<F>::X_SCALES + at).read();
                            let minimum = match const { F::MINIMUM } {
                                true => tile.float(Plan::<F>::MINIMA + at).read(),
                                false => 0.0,
                            };
                            let product = products[r][v] as f32;
                            let row = Scale { scale, minimum };
                            self.sums[r][v] = add_products::<F>(product, row, (d, sum), self.sums[r][v]);
                            r += 1;
                        }
                    }
                    v += 1;
                }
                unit += 1;
            }
        }

        /// Writes the results of a tile that begins with this row and this vector.
        ///
        /// # Safety
        /// As for [`Out::write`].
        #[inline(always)]
        pub(super) unsafe fn write(&self, out: Out, first_row: u32, first_vector: u32) {
            let mut r = 0;
            while r < R {
                let mut v = 0;
                while v < V {
                    let (row, vector) = (self.row + 16 * r as u32, self.vector + 16 * v as u32);
                    // SAFETY: the caller's
                    unsafe { out.write(first_row + row, first_vector + vector, self.sums[r][v]) };
                    v += 1;
                }
                r += 1;
            }
        }
    }

    /// The number of this lane's part in a round, and how many parts a round has.
    #[inline(always)]
    pub(super) fn mine() -> (u32, u32) {
        (local_id(), workgroup_size())
    }
}

/// A warp's part of a tile, on tensor cores. A workgroup of fewer warps than there are parts makes the tile in several
/// rounds. It needs at least one whole warp.
#[cfg(target_arch = "nvptx64")]
mod part {
    use super::*;
    use amdgpu_device::bytes::tile as multiply;

    /// Parts of a tile.
    pub(super) const PARTS: u32 = 4;
    /// Tiles of 16 rows in a part.
    const R: usize = 2;
    /// Tiles of 8 vectors in a part.
    const V: usize = 8;
    /// 1.5 · 2^23: an integer of up to 22 bits added to its bits is that integer added to it.
    const MAGIC: f32 = 12_582_912.0;

    /// A lane's sums of a part: of rows l div 4 and l div 4 + 8 of each tile with vectors 2·(l mod 4) and the next.
    pub(super) struct Part {
        sums: [[[f32; 4]; V]; R],
        first: u32,
        row: u32,
        word: u32,
    }

    impl Part {
        #[inline(always)]
        pub(super) fn new(number: u32) -> Self {
            let lane = local_id() % 32;
            Part { sums: [[[0.0; 4]; V]; R], first: number * 16 * R as u32, row: lane / 4, word: lane % 4 }
        }

        /// Adds the products of a step. All lanes of the warp come here.
        ///
        /// # Safety
        /// The tile is filled, for all lanes to see.
        #[inline(always)]
        pub(super) unsafe fn add<F: Format>(&mut self, tile: Tile<F>) {
            let mut unit = 0;
            while unit < Plan::<F>::UNITS {
                // SAFETY: within the plan
                unsafe {
                    if const { F::SHARED } {
                        self.unit::<F, 4, 2>(tile, unit);
                    } else {
                        self.unit::<F, 2, 1>(tile, unit);
                    }
                }
                unit += 1;
            }
        }

        /// Adds the products of a unit of the step. All lanes of the warp come here.
        ///
        /// # Safety
        /// The tile is filled, for all lanes to see, and has such a unit.
        #[inline(always)]
        unsafe fn unit<F: Format, const A: usize, const B: usize>(&mut self, tile: Tile<F>, unit: u32) {
            let column = unit * (Plan::<F>::UNIT / 4) + self.word;
            let group = unit * Plan::<F>::UNIT / GROUP;
            let mut a = [[0; A]; R];
            let mut scales = [[0.0; 2]; R];
            let mut minima = [[0.0; 2]; R];
            let mut r = 0;
            while r < R {
                let row = self.first + 16 * r as u32 + self.row;
                let mut i = 0;
                while i < A {
                    let at = Plan::<F>::X + (row + 8 * (i as u32 % 2)) * STRIDE + column + 4 * (i as u32 / 2);
                    // SAFETY: within the plan
                    a[r][i] = unsafe { tile.at(at).read() };
                    i += 1;
                }
                let mut h = 0;
                while h < 2 {
                    let at = (row + 8 * h as u32) * Plan::<F>::UNITS + unit;
                    // SAFETY: within the plan
                    unsafe {
                        scales[r][h] = tile.float(Plan::<F>::X_SCALES + at).read();
                        if const { F::MINIMUM } {
                            minima[r][h] = tile.float(Plan::<F>::MINIMA + at).read();
                        }
                    }
                    h += 1;
                }
                r += 1;
            }
            let mut v = 0;
            while v < V {
                let mut b = [0; B];
                let mut i = 0;
                while i < B {
                    let at = Plan::<F>::Y + (8 * v as u32 + self.row) * STRIDE + column + 4 * i as u32;
                    // SAFETY: within the plan
                    b[i] = unsafe { tile.at(at).read() };
                    i += 1;
                }
                let (mut d, mut sums) = ([0.0; 2], [0.0; 2]);
                let mut h = 0;
                while h < 2 {
                    let vector = 8 * v as u32 + 2 * self.word + h as u32;
                    // SAFETY: within the plan
                    unsafe {
                        d[h] = tile.float(Plan::<F>::Y_SCALES + vector * GROUPS + group).read();
                        if const { Plan::<F>::NEEDS_SUMS } {
                            sums[h] = tile.float(Plan::<F>::SUMS + vector * Plan::<F>::UNITS + unit).read();
                        }
                    }
                    h += 1;
                }
                let mut r = 0;
                while r < R {
                    let products = multiply::<A, B>([MAGIC.to_bits() as i32; 4], a[r], b);
                    let mut i = 0;
                    while i < 4 {
                        let product = f32::from_bits(products[i] as u32) - MAGIC;
                        let row = Scale { scale: scales[r][i / 2], minimum: minima[r][i / 2] };
                        let vector = (d[i % 2], sums[i % 2]);
                        self.sums[r][v][i] = add_products::<F>(product, row, vector, self.sums[r][v][i]);
                        i += 1;
                    }
                    r += 1;
                }
                v += 1;
            }
        }

        /// Writes the results of a tile that begins with this row and this vector.
        ///
        /// # Safety
        /// As for [`Out::write`].
        #[inline(always)]
        pub(super) unsafe fn write(&self, out: Out, first_row: u32, first_vector: u32) {
            let mut r = 0;
            while r < R {
                let mut v = 0;
                while v < V {
                    let mut i = 0;
                    while i < 4 {
                        let row = self.first + 16 * r as u32 + self.row + 8 * (i as u32 / 2);
                        let vector = 8 * v as u32 + 2 * self.word + i as u32 % 2;
                        // SAFETY: the caller's
                        unsafe { out.write(first_row + row, first_vector + vector, self.sums[r][v][i]) };
                        i += 1;
                    }
                    v += 1;
                }
                r += 1;
            }
        }
    }

    /// The number of this warp's part in a round, and how many parts a round has. Lanes of a warp that is not whole
    /// have none.
    #[inline(always)]
    pub(super) fn mine() -> (u32, u32) {
        let warps = workgroup_size() / 32;
        if warps == 0 {
            amdgpu_device::trap();
        }
        let warp = super::super::lanes::warp();
        (if warp < warps { warp } else { PARTS }, warps)
    }
}

/// `dst[v · nrows_dst + row] = x[row] · y[v]`: `x` has `nrows_x` rows of `ncols_x` elements, `y` has `ncols_y` vectors
/// in q8_1, each of `nrows_y` elements, which is `ncols_x` padded.
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
    let tile = Tile::<F>::new();
    let (number, at_once) = part::mine();
    let mut first_vector = workgroup_id_y() * VECTORS;
    while first_vector < vectors.count {
        let mut first_row = workgroup_id_x() * ROWS;
        while first_row < matrix.count {
            let mut round = 0;
            while round < part::PARTS {
                let mut part = part::Part::new(round + number);
                let mut column = 0;
                while column < columns {
                    // SAFETY: the caller's
                    unsafe {
                        tile.fill_rows(matrix, first_row, column);
                        tile.fill_vectors(vectors, first_vector, column);
                    }
                    barrier_local();
                    if round + number < part::PARTS {
                        // SAFETY: the tile is filled
                        unsafe { part.add::<F>(tile) };
                    }
                    // The next step goes to the same place.
                    barrier_local();
                    column += STEP;
                }
                if round + number < part::PARTS {
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
