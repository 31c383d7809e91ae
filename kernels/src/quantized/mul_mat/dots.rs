//! Parts by dot products: a lane has 8 rows by 4 vectors of the tile.

use super::*;

/// Rows of a part, 16 apart.
const R: usize = 8;
/// Vectors of a part, 16 apart.
const V: usize = 4;

/// Sums of a part.
pub(super) struct OfLane {
    sums: [[f32; V]; R],
    row: u32,
    vector: u32,
}

impl Part for OfLane {
    const PARTS: u32 = 256;

    #[inline(always)]
    fn mine() -> (u32, u32) {
        (local_id(), workgroup_size())
    }

    #[inline(always)]
    fn new(number: u32) -> Self {
        OfLane { sums: [[0.0; V]; R], row: number % 16, vector: number / 16 % 16 }
    }

    #[inline(always)]
    unsafe fn add<F: Format>(&mut self, tile: Tile<F>) {
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
                    let d = tile.float(Plan::<F>::y_scale(vector, group)).read();
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

    #[inline(always)]
    unsafe fn write(&self, out: Out, first_row: u32, first_vector: u32) {
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
