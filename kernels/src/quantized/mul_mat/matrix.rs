//! Parts by an AMD GPU's matrix instructions: a wave has 16 or 32 rows by all vectors of the tile.
//!
//! A is the matrix and B the vectors, in tiles of 16 by 16. A lane of a wave of 32 has rows `2·i + lane div 16` of a tile, one of
//! 64 rows `4·(lane div 16) + i`, with vector `lane mod 16`. So the scales of rows stand in workgroup memory unit by unit, and
//! in such an order within 16 rows that those of a lane are side by side.

use super::*;
use amdgpu_device::matrix::{RESULTS, SIDE, WORDS_16, multiply_16, multiply_32};
use amdgpu_device::{opaque, unroll, wave};

/// Tiles of rows in a part: 256 lanes have all parts at once.
const R: usize = if wave::SIZE == 64 { 2 } else { 1 };
/// Tiles of vectors in a part: all of them.
const V: usize = (VECTORS / SIDE) as usize;

/// A lane's sums of a part.
pub(super) struct OfWave {
    sums: [[[f32; RESULTS]; V]; R],
    /// The part's first row.
    first: u32,
    lane: u32,
}

impl Part for OfWave {
    const PARTS: u32 = ROWS / (SIDE * R as u32);

    /// Lanes of a wave that is not whole have none.
    #[inline(always)]
    fn mine() -> (u32, u32) {
        let waves = workgroup_size() / wave::SIZE;
        if waves == 0 {
            amdgpu_device::trap();
        }
        let wave = wave::uniform_u32(local_id() / wave::SIZE);
        (if wave < waves { wave } else { Self::PARTS }, waves)
    }

    #[inline(always)]
    fn new(number: u32) -> Self {
        OfWave { sums: [[[0.0; RESULTS]; V]; R], first: number * SIDE * R as u32, lane: wave::lane() }
    }

    #[inline(always)]
    fn place(row: u32, rows: u32, unit: u32, _count: u32) -> u32 {
        let in_tile = if wave::SIZE == 64 { row % SIDE } else { row % 2 * 8 + row % SIDE / 2 };
        unit * rows + row / SIDE * SIDE + in_tile
    }

    #[inline(always)]
    fn place_of_vector(vector: u32, vectors: u32, unit: u32, _count: u32) -> u32 {
        unit * vectors + vector
    }

    #[inline(always)]
    unsafe fn add<F: Format>(&mut self, tile: Tile<F>) {
        // Hidden from the compiler, or it fills registers with it for each instruction.
        let magic = each(|_| opaque(MAGIC.to_bits()) as i32);
        let mut unit = 0;
        while unit < Plan::<F>::UNITS {
            // SAFETY: within the plan
            unsafe { self.unit(tile, unit, magic) };
            unit += 1;
        }
    }

    #[inline(always)]
    unsafe fn write(&self, out: Out, first_row: u32, first_vector: u32) {
        unroll!(R, TILE => unroll!(V, VECTOR => unroll!(RESULTS, I => {
            let (row, vector) = <i8 as TileElement>::place(self.lane, I as u32);
            let (row, vector) = (self.first + SIDE * TILE as u32 + row, SIDE * VECTOR as u32 + vector);
            // SAFETY: the caller's
            unsafe { out.write(first_row + row, first_vector + vector, self.sums[TILE][VECTOR][I]) };
        }; 0 1 2 3 4 5 6 7); 0 1 2 3); 0 1);
    }
}

impl OfWave {
    /// Adds the products of a unit of the step.
    ///
    /// # Safety
    /// The tile is filled, for all lanes to see, and has such a unit.
    #[inline(always)]
    unsafe fn unit<F: Format>(&mut self, tile: Tile<F>, unit: u32, magic: [i32; RESULTS]) {
        // Closures capture this, not the part, which would then be in scratch memory.
        let lane = self.lane;
        let group = unit * Plan::<F>::UNIT / GROUP;
        // SAFETY: within the plan
        unsafe {
            let b: [Words; V] = each(|v| words(tile, Plan::<F>::Y + SIDE * v as u32 * STRIDE, unit, lane));
            let vector = |v: usize| SIDE * v as u32 + lane % SIDE;
            let d: [f32; V] = each(|v| tile.float(Plan::<F>::y_scale(vector(v), group)).read());
            let of_sums: [f32; V] = each(|v| match const { Plan::<F>::NEEDS_SUMS } {
                true => tile.float(Plan::<F>::SUMS + unit * VECTORS + vector(v)).read(),
                false => 0.0,
            });
            unroll!(R, TILE => {
                let first = self.first + SIDE * TILE as u32;
                let a = words(tile, Plan::<F>::X + first * STRIDE, unit, lane);
                // Those of the lane's results.
                let of_rows = |from: u32| -> [f32; RESULTS] {
                    load(tile.float(from + unit * ROWS + first + lane / SIDE * RESULTS as u32))
                };
                let scales = of_rows(Plan::<F>::X_SCALES);
                let minima = if const { F::MINIMUM } { of_rows(Plan::<F>::MINIMA) } else { [0.0; RESULTS] };
                unroll!(V, VECTOR => {
                    let products = match const { Plan::<F>::UNIT } {
                        GROUP => multiply_32(a, b[VECTOR], magic),
                        _ => multiply_16(half(a), half(b[VECTOR]), magic),
                    };
                    let sums = &mut self.sums[TILE][VECTOR];
                    unroll!(RESULTS, I => {
                        let product = f32::from_bits(products[I] as u32) - MAGIC;
                        let row = Scale { scale: scales[I], minimum: minima[I] };
                        sums[I] = add_products::<F>(product, row, (d[VECTOR], of_sums[VECTOR]), sums[I]);
                    }; 0 1 2 3 4 5 6 7);
                }; 0 1 2 3);
            }; 0 1);
        }
    }
}

/// A lane's words of a unit: of the row `lane mod 16` behind a word of the memory.
///
/// # Safety
/// They are within the plan.
#[inline(always)]
unsafe fn words<F: Format>(tile: Tile<F>, rows: u32, unit: u32, lane: u32) -> Words {
    let shared = const { Plan::<F>::UNIT == GROUP };
    let from = rows + lane % SIDE * STRIDE + unit * (Plan::<F>::UNIT / 4);
    let mut words = [0; 2 * WORDS_16];
    // SAFETY: the caller's
    unsafe {
        if const { wave::SIZE == 64 } {
            // Any eight bytes of 32, as long as rows and vectors agree.
            let g = lane / SIDE;
            if shared {
                words = load(tile.at(from + 2 * g).cast_const());
            } else {
                words[0] = tile.at(from + g).read();
            }
        } else {
            let mut chunk = 0;
            while chunk < if shared { 2 } else { 1 } {
                let four: [u32; 4] = load(tile.at(from + 4 * chunk as u32).cast_const());
                let mut i = 0;
                while i < 4 {
                    words[(4 * chunk + i) % (2 * WORDS_16)] = four[i];
                    i += 1;
                }
                chunk += 1;
            }
        }
    }
    words
}

/// A lane's words of a unit of 32 columns; of one of 16 the first half.
type Words = [u32; 2 * WORDS_16];

/// The first half.
#[inline(always)]
fn half(words: Words) -> [u32; WORDS_16] {
    each(|i| words[i])
}

/// An array of what a function has for each number.
#[inline(always)]
fn each<T: Copy, const N: usize>(of: impl Fn(usize) -> T) -> [T; N] {
    let mut all = [of(0); N];
    unroll!(N, I => if I != 0 {
        all[I] = of(I);
    }; 0 1 2 3 4 5 6 7);
    all
}
