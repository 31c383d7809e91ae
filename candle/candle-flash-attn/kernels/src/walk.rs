//! A workgroup's way over the keys.
//!
//! ```text
//! Q of this tile → registers or workgroup memory
//! K of tile 0 begins
//! for each tile of keys that any of the queries sees
//!     K arrives                          ─ barrier: and nobody reads the last V any more
//!     V begins
//!     scores = Q · Kᵀ                      (in panels, where a key is longer than workgroup memory is wide)
//!     V arrives                          ─ barrier: and nobody reads this K any more
//!     K of the next tile begins
//!     mask, maximum, weights, sums
//!     out = out · rescaling + weights · V
//! waves that share queries put their parts together
//! out / sum → memory
//! ```

use amdgpu_device::math::fast::{exp2, log2};
use amdgpu_device::matrix::{CHUNKS, Chunk, RESULTS, source};
use amdgpu_device::memory::{load, store};
use amdgpu_device::workgroup::{self, barrier_local};
use amdgpu_device::{grid, wave};

use crate::fragment::{
    Half, NVIDIA, Operand, QUERIES, Results, across_keys, as_operand, exchange, now, operand, products,
    query_of, row_of,
};
use crate::mask::{Bias, Mask};
use crate::panel::{KeyLoader, Sequence, ValueLoader, anew, place, place_across};
use crate::plan::Plan;
use crate::problem::{Problem, Strides};
use crate::softmax::Softmax;

/// Memory that a kernel is given.
#[derive(Clone, Copy)]
pub(crate) struct Memory<T> {
    pub(crate) q: *const T,
    pub(crate) k: *const T,
    pub(crate) v: *const T,
    /// Slopes of the heads, or null.
    pub(crate) slopes: *const f32,
    /// Where each sequence of queries begins and the last ends, or null.
    pub(crate) starts_q: *const i32,
    /// The same of keys.
    pub(crate) starts_k: *const i32,
    /// Pages of the sequences, or null.
    pub(crate) table: *const i32,
    /// Ranges of positions, or null.
    pub(crate) ranges: *const i32,
}

/// Which part of the work is this workgroup's.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    /// Number of the tile of rows.
    pub(crate) tile: u32,
    /// Which columns of the output.
    pub(crate) slice: u32,
    pub(crate) kv_head: u32,
    pub(crate) batch: u32,
    /// Which part of the keys, of how many.
    pub(crate) split: u32,
    pub(crate) splits: u32,
}

/// Where a sequence begins, and how long it is.
///
/// # Safety
/// `starts` is null or has the batch's number and one more.
#[inline(always)]
pub(crate) unsafe fn sequence(starts: *const i32, batch: u32, most: u32) -> (u32, u32) {
    if starts.is_null() {
        return (0, most);
    }
    // SAFETY: the caller's
    let [from, to] = unsafe { [starts.add(batch as usize).read(), starts.add(batch as usize + 1).read()] };
    let [from, to] = workgroup::uniform([from, to].map(|x| x.max(0) as u32));
    (from, to.saturating_sub(from))
}

/// A lane's neighbouring results: of how many columns.
pub(crate) const RUN: usize = if NVIDIA {
    2
} else if RESULTS == 4 {
    4
} else {
    8
};

/// Hands each run of a tile's results in neighbouring columns to the sink. `first` is the tile's first row, `column` its first column;
/// only what is below `rows` and `columns` exists.
///
/// # Safety
/// As for [`Sink::put`].
#[inline(always)]
unsafe fn deliver(
    lane: u32,
    results: Results,
    sink: &impl Sink,
    [first, rows]: [u32; 2],
    [column, columns]: [u32; 2],
) {
    let mut run = [0.0; RUN];
    // SAFETY: the caller's
    unsafe {
        if NVIDIA {
            each4!(4, I => if const { 2 * I + 1 < RESULTS } {
                run[0] = results[2 * I % RESULTS];
                run[1] = results[(2 * I + 1) % RESULTS];
                let row = first + row_of(lane, const { query_of(2 * I) });
                let column = column + lane % 4 * 2 + (I as u32) / 2 * 8;
                if row < rows && column < columns {
                    sink.put(row, column, run);
                }
            });
            return;
        }
        let column = if const { RESULTS == 4 } {
            each4!(4, I => run[I % RUN] = results[I]);
            column + lane / 16 * 4
        } else {
            // The lane beside has the columns between this lane's. Of the 16, the lower lane takes the first eight.
            let upper = lane & 16 != 0;
            each4!(4, I => {
                let (low, high) = (results[I], results[(I + 4) % RESULTS]);
                let other = exchange::<16>(if upper { low } else { high });
                run[2 * I % RUN] = if upper { other } else { low };
                run[(2 * I + 1) % RUN] = if upper { high } else { other };
            });
            column + lane / 16 * 8
        };
        let row = first + row_of(lane, 0);
        if row < rows && column < columns {
            sink.put(row, column, run);
        }
    }
}

/// Results times what belongs to their queries.
#[inline(always)]
fn times(results: Results, factors: [f32; QUERIES]) -> Results {
    let mut results = results;
    each8!(RESULTS, R => results[R] *= factors[const { query_of(R) }]);
    results
}

/// The rows of a sequence and a group of heads, as memory.
#[derive(Clone, Copy)]
struct Queries<T> {
    /// The first position, of the group's first head.
    at: *const T,
    row: usize,
    head: usize,
    group: u32,
    rows: u32,
    /// Chunks of a row.
    chunks: u32,
}

impl<T> Queries<T> {
    /// A chunk of a row, if it exists. Rows that do not are copies of others.
    ///
    /// # Safety
    /// The memory is there.
    #[inline(always)]
    unsafe fn chunk(&self, row: u32, chunk: u32) -> Chunk {
        let row = row.min(self.rows - 1);
        let at = (row / self.group) as usize * self.row + (row % self.group) as usize * self.head;
        let at = self.at.wrapping_add(at + chunk.min(self.chunks - 1) as usize * 8);
        // SAFETY: the caller's
        let words: Chunk = unsafe { load(at.cast::<u32>()) };
        if chunk < self.chunks { words } else { [0; 4] }
    }

    /// The lane's part of 16 rows and of four chunks.
    ///
    /// # Safety
    /// As for [`chunk`](Self::chunk).
    #[inline(always)]
    unsafe fn operand(&self, lane: u32, first: u32, chunk: u32) -> Operand {
        let mut words = [[0; 4]; CHUNKS];
        each4!(CHUNKS, C => {
            let (row, number) = source(lane, C as u32);
            // SAFETY: the caller's
            words[C] = unsafe { self.chunk(first + row, chunk + number) };
        });
        words
    }
}

impl<T: Half> Memory<T> {
    /// Keys or values of a sequence, for a head.
    ///
    /// # Safety
    /// The part's batch and head exist.
    #[inline(always)]
    unsafe fn sequence(
        &self,
        at: *const T,
        strides: Strides,
        problem: &Problem,
        part: Part,
        [start, count]: [u32; 2],
    ) -> Sequence<T> {
        let first = if !self.table.is_null() {
            0
        } else if self.starts_k.is_null() {
            part.batch as usize * strides.batch
        } else {
            start as usize * strides.row
        };
        let table = if self.table.is_null() {
            self.table
        } else {
            self.table.wrapping_add(part.batch as usize * problem.table_batch as usize)
        };
        Sequence {
            at: at.wrapping_add(first + part.kv_head as usize * strides.head),
            row: strides.row,
            by_page: strides.batch,
            table,
            page: problem.page.max(32),
            count,
            chunks: problem.dim / 8,
        }
    }
}

/// Tiles of keys or values that are loaded from workgroup memory at once. With more, there are not enough registers.
const AT_ONCE: usize = if wave::SIZE == 64 { 4 } else { 2 };

/// Where results go.
pub(crate) trait Sink {
    /// Takes neighbouring columns of a row.
    ///
    /// # Safety
    /// The row exists.
    unsafe fn put(&self, row: u32, column: u32, values: [f32; RUN]);

    /// Takes the logarithm to base 2 of a row's sum.
    ///
    /// # Safety
    /// The row exists.
    unsafe fn put_sum(&self, row: u32, log: f32);
}

/// Neighbouring columns of a row of the output, as its type.
///
/// # Safety
/// They can be written, and the address is a multiple of what they are bytes.
#[inline(always)]
pub(crate) unsafe fn write<T: Half>(to: *mut T, values: [f32; RUN]) {
    let to = to.cast::<u32>();
    let mut words = [0; 4];
    each4!(4, W => if const { 2 * W < RUN } {
        words[W] = T::pair(values[2 * W % RUN], values[(2 * W + 1) % RUN]);
    });
    // SAFETY: the caller's
    unsafe {
        match const { RUN } {
            2 => to.write(words[0]),
            4 => store(to, [words[0], words[1]]),
            _ => store(to, words),
        }
    }
}

/// The same as `f32`.
///
/// # Safety
/// As for [`write`].
#[inline(always)]
pub(crate) unsafe fn write_f32(to: *mut f32, values: [f32; RUN]) {
    // SAFETY: the caller's
    unsafe { store(to, values) };
}

/// Attention of the workgroup's rows over its part of the keys.
///
/// # Safety
/// The memory is what the problem says, the workgroup has the plan's lanes and workgroup memory, and all of them come here with the
/// same arguments. `N` is the plan's number of tiles.
#[inline(always)]
pub(crate) unsafe fn walk<T: Half, const D: usize, const FEW: bool, const N: usize>(
    memory: Memory<T>,
    problem: Problem,
    part: Part,
    sink: impl Sink,
) {
    let () = Plan::<D, FEW>::FITS;

    let id = grid::local_id_x();
    if grid::workgroup_size_x() != const { Plan::<D, FEW>::LANES as u32 } {
        amdgpu_device::trap();
    }
    let number = wave::uniform_u32(id / wave::SIZE);
    let lane = id - id / wave::SIZE * wave::SIZE;
    // SAFETY: the caller's
    unsafe {
        let (start_q, queries) = sequence(memory.starts_q, part.batch, problem.queries);
        let (start_k, keys) = sequence(memory.starts_k, part.batch, problem.keys);
        let group = problem.group;
        let rows = queries * group;
        let first_row = part.tile * const { Plan::<D, FEW>::ROWS as u32 };
        if first_row >= rows {
            return;
        }

        // What the workgroup sees of the keys, and what of that is this part's.
        let mask = Mask {
            left: problem.left,
            right: problem.right,
            keys: keys as i32,
            ranges: if memory.ranges.is_null() {
                memory.ranges
            } else {
                memory.ranges.add(part.batch as usize * problem.ranges_batch as usize)
            },
            range_count: if memory.ranges.is_null() { 0 } else { problem.ranges },
        };
        let shift = keys as i32 - queries as i32;
        let last_row = (first_row + const { Plan::<D, FEW>::ROWS as u32 }).min(rows) - 1;
        let nearest = (first_row / group) as i32 + shift;
        let farthest = (last_row / group) as i32 + shift;
        let (begin, end) = mask.of_positions(nearest, farthest);
        let begin = begin.max(0) as u32 / 32 * 32;
        let end = end.max(0) as u32;
        let step = const { Plan::<D, FEW>::KEYS as u32 };
        let tiles = end.saturating_sub(begin).div_ceil(step).div_ceil(part.splits);
        let begin = begin + part.split * tiles * step;
        let end = end.min(begin + tiles * step);
        let [begin, end] = workgroup::uniform([begin, end]);

        // The lane's queries.
        let sharing = if const { Plan::<D, FEW>::SHARE == 1 } { number } else { 0 };
        let own_part = if const { Plan::<D, FEW>::SHARE == 1 } { 0 } else { number };
        let own_row = first_row + sharing * const { 16 * N as u32 };
        let mut positions = [[0; QUERIES]; N];
        let mut slopes = [[0.0; QUERIES]; N];
        each2!(N, I => each2!(QUERIES, Q => {
            let row = (own_row + 16 * I as u32 + row_of(lane, Q)).min(rows - 1);
            positions[I][Q] = (row / group) as i32 + shift;
            if !memory.slopes.is_null() {
                let head = part.kv_head * group + row % group;
                let slope = memory.slopes.add((part.batch * problem.slopes_batch + head) as usize).read();
                slopes[I][Q] = slope * core::f32::consts::LOG2_E;
            }
        }));
        let sloped = !memory.slopes.is_null();
        let bias = Bias::new(&problem);
        let biased = bias.is_needed(sloped);
        let scale = if biased { 1.0 } else { bias.scale };

        let q_at = if memory.starts_q.is_null() {
            part.batch as usize * problem.q.batch
        } else {
            start_q as usize * problem.q.row
        };
        let head = (part.kv_head * group) as usize;
        let q = Queries {
            at: memory.q.wrapping_add(q_at + head * problem.q.head),
            row: problem.q.row,
            head: problem.q.head,
            group,
            rows,
            chunks: problem.dim / 8,
        };
        let local = workgroup::memory::<Chunk>();
        let mut kept = [[[[0; 4]; CHUNKS]; 16]; N];
        if const { Plan::<D, FEW>::Q_IN_REGISTERS } {
            each2!(N, I => each16!(16, S => if const { 32 * S < D } {
                kept[I][S] = q.operand(lane, own_row + 16 * I as u32, 4 * S as u32);
            }));
        } else {
            let mut i = id;
            while i < const { (Plan::<D, FEW>::ROWS * D / 8) as u32 } {
                let (row, chunk) = (i / const { D as u32 / 8 }, i % const { D as u32 / 8 });
                let to = local.add(place(const { D as u32 / 8 }, row, chunk) as usize);
                store(to.cast::<u32>(), q.chunk(first_row + row, chunk));
                i += const { Plan::<D, FEW>::LANES as u32 };
            }
        }
        let k = memory.sequence(memory.k, problem.k, &problem, part, [start_k, keys]);
        let v = memory.sequence(memory.v, problem.v, &problem, part, [start_k, keys]);
        let k_at = local.add(const { Plan::<D, FEW>::K_AT / 16 });
        let v_at = local.add(const { Plan::<D, FEW>::V_AT / 16 });
        let v_chunk = part.slice * const { Plan::<D, FEW>::COLUMNS as u32 / 8 };
        let panel = const { Plan::<D, FEW>::PANEL as u32 / 8 };
        let own_first = own_part * const { Plan::<D, FEW>::OWN_KEYS as u32 };
        let own_k = k_at.add((own_first * panel) as usize);
        let own_q = local.add((sharing * const { (2 * N * D) as u32 }) as usize);

        let mut softmax = [Softmax::NONE; N];
        let mut out = [[[0.0; RESULTS]; 16]; N];
        if begin < end {
            let mut first = begin;
            let mut carried = KeyLoader::<D, FEW>::begin(id, k, first, 0, k_at);
            loop {
                KeyLoader::<D, FEW>::finish(carried, id, k, first, 0, k_at);
                barrier_local();
                let mut scores = [[[0.0; RESULTS]; 4]; N];
                let mut values = [[0; 4]; 8];
                // Addresses in workgroup memory are not to be kept from one tile of keys to the next.
                let fresh = anew(lane);
                each2!(2, P => if const { P * Plan::<D, FEW>::PANEL < D } {
                    if const { P == 1 } {
                        barrier_local();
                        let carried = KeyLoader::<D, FEW>::begin(id, k, first, P as u32 * panel, k_at);
                        KeyLoader::<D, FEW>::finish(carried, id, k, first, P as u32 * panel, k_at);
                        barrier_local();
                    }
                    if const { (P + 1) * Plan::<D, FEW>::PANEL == D } {
                        values = ValueLoader::<D, FEW>::begin(id, v, first, v_chunk, v_at);
                    }
                    if const { Plan::<D, FEW>::Q_IN_REGISTERS } {
                        each8!(8, S => if const { 32 * S < Plan::<D, FEW>::PANEL } {
                            let mut of_step = [[[0; 4]; CHUNKS]; N];
                            each2!(N, I => of_step[I] = kept[I][const { P * Plan::<D, FEW>::PANEL / 32 + S } % 16]);
                            scores = add_step::<T, D, FEW, N>(fresh, own_k, S as u32, of_step, scores);
                        });
                    } else {
                        // A loop: without matrix instructions this is too much code to be written out.
                        let mut s = 0;
                        while s < const { Plan::<D, FEW>::PANEL as u32 / 32 } {
                            let mut of_step = [[[0; 4]; CHUNKS]; N];
                            each2!(N, I => of_step[I] = operand(fresh, |row, chunk| {
                                let row = 16 * I as u32 + row;
                                let chunk = const { (P * Plan::<D, FEW>::PANEL / 8) as u32 } + 4 * s + chunk;
                                own_q.add(place(const { D as u32 / 8 }, row, chunk) as usize)
                            }));
                            scores = add_step::<T, D, FEW, N>(fresh, own_k, s, of_step, scores);
                            s += 1;
                        }
                    }
                });
                ValueLoader::<D, FEW>::finish(values, id, v, first, v_chunk, v_at);
                barrier_local();
                let next = first + step;
                if next < end {
                    carried = KeyLoader::<D, FEW>::begin(id, k, next, 0, k_at);
                }

                let own = (first + own_first) as i32;
                if biased {
                    each2!(N, I => each4!(4, T_ => if const { 16 * T_ < Plan::<D, FEW>::OWN_KEYS } {
                        scores[I][T_] =
                            bias.apply::<T>(lane, scores[I][T_], own + 16 * T_ as i32, positions[I], slopes[I]);
                    }));
                }
                let behind = (first + step) as i32;
                if (first as i32) < mask.first(farthest) || behind > mask.end(nearest) {
                    each2!(N, I => each4!(4, T_ => if const { 16 * T_ < Plan::<D, FEW>::OWN_KEYS } {
                        scores[I][T_] =
                            mask.apply::<T>(lane, scores[I][T_], own + 16 * T_ as i32, positions[I]);
                    }));
                }
                let mut weights = [[[[0; 4]; CHUNKS]; 2]; N];
                each2!(N, I => {
                    let factor = softmax[I].add(&mut scores[I], const { Plan::<D, FEW>::OWN_KEYS / 16 }, scale);
                    each16!(16, C => if const { 16 * C < Plan::<D, FEW>::COLUMNS } {
                        out[I][C] = times(out[I][C], factor);
                    });
                    each2!(2, S => if const { 32 * S < Plan::<D, FEW>::OWN_KEYS } {
                        weights[I][S] = as_operand::<T>(lane, scores[I][2 * S], scores[I][2 * S + 1]);
                    });
                });
                let fresh = anew(lane);
                each2!(2, S => if const { 32 * S < Plan::<D, FEW>::OWN_KEYS } {
                    let mut of_step = [[[0; 4]; CHUNKS]; N];
                    each2!(N, I => of_step[I] = weights[I][S]);
                    each16!(16, C => if const { 16 * C < Plan::<D, FEW>::COLUMNS } {
                        let mut sums = [[0.0; RESULTS]; N];
                        each2!(N, I => sums[I] = out[I][C]);
                        #[cfg(target_arch = "nvptx64")]
                        let loaded = Some(crate::panel::transposed(
                            lane,
                            v_at,
                            const { Plan::<D, FEW>::COLUMNS as u32 / 8 },
                            own_first + 32 * S as u32,
                            2 * C as u32,
                        ));
                        #[cfg(not(target_arch = "nvptx64"))]
                        let loaded = None;
                        sums = products::<T, N>(
                            fresh,
                            |row, chunk| {
                                let per_row = const { Plan::<D, FEW>::KEYS as u32 / 8 };
                                let chunk = own_first / 8 + 4 * S as u32 + chunk;
                                v_at.add(place_across(per_row, 16 * C as u32 + row, chunk) as usize)
                            },
                            loaded,
                            of_step,
                            sums,
                        );
                        each2!(N, I => out[I][C] = sums[I]);
                        if const { (C + 1).is_multiple_of(AT_ONCE) || 16 * (C + 1) == Plan::<D, FEW>::COLUMNS } {
                            each4!(AT_ONCE, B => each2!(N, I => {
                                out[I][(C + 16 - B) % 16][0] = now(out[I][(C + 16 - B) % 16][0]);
                            }));
                        }
                    });
                });
                first = next;
                if first >= end {
                    break;
                }
            }
        }

        each2!(N, I => each2!(QUERIES, Q => softmax[I].sum[Q] = across_keys(softmax[I].sum[Q], |a, b| a + b)));
        if const { Plan::<D, FEW>::SHARE > 1 } {
            let columns = const { Plan::<D, FEW>::COLUMNS / 16 };
            let mut far = const { Plan::<D, FEW>::SHARE as u32 / 2 };
            while far > 0 {
                each2!(N, I => (softmax[I], out[I]) = meet(softmax[I], out[I], columns, number, lane, far));
                far /= 2;
            }
        }
        if own_part != 0 {
            return;
        }
        each2!(N, I => {
            let mut inverse = [0.0; QUERIES];
            each2!(QUERIES, Q => {
                let (sum, most) = (softmax[I].sum[Q], softmax[I].most[Q]);
                inverse[Q] = if sum == 0.0 { 0.0 } else { 1.0 / sum };
                let row = own_row + 16 * I as u32 + row_of(lane, Q);
                let writes = if NVIDIA { lane.is_multiple_of(4) } else { lane < 16 };
                if part.slice == 0 && writes && row < rows {
                    sink.put_sum(row, if sum == 0.0 { f32::NEG_INFINITY } else { most + log2(sum) });
                }
            });
            each16!(16, C => if const { 16 * C < Plan::<D, FEW>::COLUMNS } {
                let column = part.slice * const { Plan::<D, FEW>::COLUMNS as u32 } + 16 * C as u32;
                let results = times(out[I][C], inverse);
                deliver(lane, results, &sink, [own_row + 16 * I as u32, rows], [column, problem.dim]);
            });
        });
    }
}

/// Adds to the scores of a wave's keys the products of 32 elements of each: step number `step` of the panel at `keys`.
///
/// # Safety
/// The panel is there.
#[inline(always)]
unsafe fn add_step<T: Half, const D: usize, const FEW: bool, const N: usize>(
    lane: u32,
    keys: *const Chunk,
    step: u32,
    queries: [Operand; N],
    mut scores: [[Results; 4]; N],
) -> [[Results; 4]; N] {
    let per_row = const { Plan::<D, FEW>::PANEL as u32 / 8 };
    each4!(4, T_ => if const { 16 * T_ < Plan::<D, FEW>::OWN_KEYS } {
        let mut sums = [[0.0; RESULTS]; N];
        each2!(N, I => sums[I] = scores[I][T_]);
        // SAFETY: the caller's
        sums = unsafe {
            products::<T, N>(
                lane,
                |row, chunk| keys.add(place(per_row, 16 * T_ as u32 + row, 4 * step + chunk) as usize),
                None,
                queries,
                sums,
            )
        };
        each2!(N, I => scores[I][T_] = sums[I]);
        if const { (T_ + 1).is_multiple_of(AT_ONCE) } {
            each4!(AT_ONCE, B => each2!(N, I => {
                scores[I][(T_ + 4 - B) % 4][0] = now(scores[I][(T_ + 4 - B) % 4][0]);
            }));
        }
    });
    scores
}

/// Adds to what the first `far` waves have of their queries what the `far` waves behind them have. What other waves hold then
/// counts for nothing.
///
/// # Safety
/// All lanes of the workgroup come here with the same `columns` and `far`. Its memory has room for what `far` waves have.
#[inline(always)]
unsafe fn meet(
    own: Softmax,
    out: [Results; 16],
    columns: usize,
    number: u32,
    lane: u32,
    far: u32,
) -> (Softmax, [Results; 16]) {
    let (mut own, mut out) = (own, out);
    let memory = workgroup::memory::<f32>();
    let words = (columns * RESULTS + 2 * QUERIES) as u32;
    let at =
        |from: u32, i: usize| memory.wrapping_add(((from * words + i as u32) * wave::SIZE + lane) as usize);
    barrier_local();
    // SAFETY: the caller's; what one lane writes one lane reads, behind the barrier
    unsafe {
        if far <= number && number < 2 * far {
            let from = number - far;
            each2!(QUERIES, Q => {
                at(from, 2 * Q).write(own.most[Q]);
                at(from, 2 * Q + 1).write(own.sum[Q]);
            });
            each16!(16, C => if C < columns {
                each8!(RESULTS, R => at(from, 2 * QUERIES + C * RESULTS + R).write(out[C][R]));
            });
        }
        barrier_local();
        if number < far {
            let mut factors = [[0.0; 2]; QUERIES];
            each2!(QUERIES, Q => {
                let (most, sum) = (at(number, 2 * Q).read(), at(number, 2 * Q + 1).read());
                let both = own.most[Q].max(most);
                let offset = if both == f32::NEG_INFINITY { 0.0 } else { both };
                factors[Q] = [exp2(own.most[Q] - offset), exp2(most - offset)];
                own.most[Q] = both;
                own.sum[Q] = own.sum[Q] * factors[Q][0] + sum * factors[Q][1];
            });
            each16!(16, C => if C < columns {
                each8!(RESULTS, R => {
                    let [mine, others] = factors[const { query_of(R) }];
                    let other = at(number, 2 * QUERIES + C * RESULTS + R).read();
                    out[C][R] = out[C][R] * mine + other * others;
                });
            });
        }
    }
    (own, out)
}
