//! Parts by tensor cores: a warp has 32 rows by all vectors of the tile.

use super::*;
use amdgpu_device::bytes::tile as multiply;

/// Tiles of 16 rows in a part.
const R: usize = 2;
/// Tiles of 8 vectors in a part.
const V: usize = 8;
/// A lane's sums of a part: of rows l div 4 and l div 4 + 8 of each tile with vectors 2·(l mod 4) and the next.
pub(super) struct OfWarp {
    sums: [[[f32; 4]; V]; R],
    first: u32,
    row: u32,
    word: u32,
}

impl Part for OfWarp {
    const PARTS: u32 = 4;

    /// Lanes of a warp that is not whole have none.
    #[inline(always)]
    fn mine() -> (u32, u32) {
        let warps = workgroup_size() / 32;
        if warps == 0 {
            amdgpu_device::trap();
        }
        let warp = super::super::lanes::warp();
        (if warp < warps { warp } else { Self::PARTS }, warps)
    }

    #[inline(always)]
    fn new(number: u32) -> Self {
        let lane = local_id() % 32;
        OfWarp { sums: [[[0.0; 4]; V]; R], first: number * 16 * R as u32, row: lane / 4, word: lane % 4 }
    }

    #[inline(always)]
    unsafe fn add<F: Format>(&mut self, tile: Tile<F>) {
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

    #[inline(always)]
    unsafe fn write(&self, out: Out, first_row: u32, first_vector: u32) {
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

impl OfWarp {
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
                    d[h] = tile.float(Plan::<F>::y_scale(vector, group)).read();
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
}
