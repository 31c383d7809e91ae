//! f16 and bf16 on sm_90a: tiles of 256 by 128, by two times four waves.
//!
//! The second-level cache limits what smaller tiles reach: for each product it has three quarters of what they ask for to deliver here. A step
//! is 128 bytes along k of each row, which is a whole cache line, and lies in workgroup memory as `wgmma` wants it (128-byte swizzle):
//!
//! ```text
//! k is contiguous: rows of 128 bytes          rows are contiguous: lines of 64 rows for each k, block after block of 64 rows
//!   row 0    0 1 2 3 4 5 6 7                    k = 0    0 1 2 3 4 5 6 7
//!   row 1    1 0 3 2 5 4 7 6                    k = 1    1 0 3 2 5 4 7 6
//!   row 2    2 3 0 1 6 7 4 5                    k = 2    2 3 0 1 6 7 4 5
//! ```
//!
//! Four steps have room. While one is multiplied, the next one waits in the same queue, and two more are on their way. Each four waves
//! have 128 of the rows.

use amdgpu_device::grid;
use amdgpu_device::workgroup::{self, barrier_local};

use super::super::shared::per_chunk;
use super::super::{Element, Operand, Product, tile, unroll};
use super::copy::in_chunks;
use super::ptx::{self, Descriptor};
use super::{AccessPath, Layout, half, in_bands};

/// Lanes of a workgroup.
const LANES: usize = 256;
const ROWS: usize = 256;
const COLUMNS: usize = 128;
/// Elements of a step along k.
const DEPTH: usize = 64;
/// Steps that have room.
const PLACES: usize = 4;
/// Bytes of a step of `a`, and of both.
const BEHIND: u32 = 128 * ROWS as u32;
const BYTES: u32 = BEHIND + 128 * COLUMNS as u32;
/// Bytes of workgroup memory with which these tiles are computed.
const MEMORY: usize = PLACES * BYTES as usize;

/// The workgroup's tiles of one product: these if the GPU, the launch and the operands are such, otherwise those of 128 by 128.
///
/// # Safety
/// The operands have `m · k` and `n · k` elements, the product `m · n`.
#[inline(always)]
pub(in super::super) unsafe fn matrix<T: Element>(
    [m, n, k]: [usize; 3],
    a: Operand<T>,
    b: Operand<T>,
    c: Product<T>,
) {
    let fits = || in_chunks(a) && in_chunks(b) && workgroup::memory_bytes() >= MEMORY;
    // SAFETY: the caller's
    unsafe {
        if cfg!(target_arch = "nvptx64") && size_of::<T>() == 2 && ptx::is_hopper() && fits() {
            if grid::workgroup_size_x() != LANES as u32 {
                amdgpu_device::trap();
            }
            let [a_k, b_k] = [a, b].map(|operand| operand.by_k == 1);
            let layout = Layout { a_k, b_k, way: AccessPath::Chunks };
            let (down, across) = (m.div_ceil(ROWS), n.div_ceil(COLUMNS));
            let (x, y) = (grid::workgroup_id_x() as usize, grid::workgroup_id_y() as usize);
            let (all_x, all_y) = (grid::workgroups_x() as usize, grid::workgroups_y() as usize);
            let mut number = x + y * all_x;
            while number < down * across {
                let (row, column) = in_bands(number, down, across);
                let (i, j) = (row * ROWS, column * COLUMNS);
                let size = [(m - i).min(ROWS) as u32, (n - j).min(COLUMNS) as u32];
                let (a, b, c) = (a.at_row(i), b.at_row(j), c.at_element(i, j));
                let wide = by_layout!(layout, A_K, B_K => steps::<T, A_K, B_K>(a, b, size, k));
                let lane = grid::local_id_x();
                let corners = half::wide_corners(lane % 128).map(|[i, j]| [i + lane / 128 * 128, j]);
                half::finish(
                    lane,
                    corners,
                    half::quarters(wide),
                    size,
                    const { [ROWS as u32, COLUMNS as u32] },
                    c,
                );
                number += all_x * all_y;
            }
        } else {
            tile::matrix::<T, 128, 128, LANES, true>([m, n, k], a, b, c);
        }
    }
}

/// An operand's way into workgroup memory.
#[derive(Clone, Copy)]
struct Copier<T, const ALL: usize, const ALONG_K: bool> {
    /// The lane's first chunk, and from one of its lines to the next.
    from: *const T,
    far: usize,
    /// From one step to the next.
    step: usize,
    /// Rows that there are.
    rows: u32,
    /// The lane's first line, its chunk there, and the chunk's place.
    line: u32,
    chunk: u32,
    place: u32,
}

impl<T: Element, const ALL: usize, const ALONG_K: bool> Copier<T, ALL, ALONG_K> {
    const PER: usize = per_chunk::<T>();
    /// Chunks of a line, lines that all lanes copy at once, and chunks of a lane.
    const PER_LINE: usize = if ALONG_K { DEPTH / Self::PER } else { ALL / Self::PER };
    const LINES: usize = LANES / Self::PER_LINE;
    const COUNT: usize = ALL * DEPTH / Self::PER / LANES;

    #[inline(always)]
    fn new(operand: Operand<T>, rows: u32, lane: u32) -> Self {
        let Operand { at, by_row, by_k } = operand;
        let pitch = if ALONG_K { by_row } else { by_k };
        let per_line = const { Self::PER_LINE as u32 };
        let (line, chunk) = (lane / per_line, lane % per_line);
        // Eight lines further, the pattern is the same.
        let place = if ALONG_K {
            line * 8 + (chunk ^ (line % 8))
        } else {
            chunk / 8 * (8 * DEPTH as u32) + line * 8 + ((chunk % 8) ^ (line % 8))
        };
        Copier {
            from: at.wrapping_add(line as usize * pitch + chunk as usize * Self::PER),
            far: pitch * const { Self::LINES },
            step: by_k * DEPTH,
            rows,
            line,
            chunk,
            place: 16 * place,
        }
    }

    /// Begins to copy the next step, of which `left` elements along k exist; others become 0.
    ///
    /// # Safety
    /// The operand is there, and nobody uses the memory at `to`.
    #[inline(always)]
    #[allow(unused_assignments, reason = "the last chunk's address moves on, too")]
    unsafe fn begin(&mut self, left: usize, to: u32) {
        let left = left.min(DEPTH) as u32;
        let (lines, along) = if ALONG_K { (self.rows, left) } else { (left, self.rows) };
        let mut from = self.from;
        let to = to + self.place;
        let place = |i: usize| to + 128 * (i * Self::LINES) as u32;
        // All lanes take the same way: what exists of a step, or all of it without a look.
        if left == DEPTH as u32 && self.rows == ALL as u32 {
            unroll!(Self::COUNT, I => {
                // SAFETY: the caller's
                unsafe { ptx::copy_whole(place(I), from) };
                from = from.wrapping_add(self.far);
            });
        } else {
            let first = self.chunk * const { Self::PER as u32 };
            let present = along.saturating_sub(first).min(const { Self::PER as u32 });
            unroll!(Self::COUNT, I => {
                let exists = self.line + const { (I * Self::LINES) as u32 } < lines;
                let bytes = if exists { present * size_of::<T>() as u32 } else { 0 };
                // SAFETY: the caller's
                unsafe { ptx::copy_16(place(I), from, bytes) };
                from = from.wrapping_add(self.far);
            });
        }
        self.from = self.from.wrapping_add(self.step);
    }
}

/// The sums of the lane's four waves.
///
/// # Safety
/// The operands have `size` rows of `k` elements. All lanes of the workgroup come here, whose memory nobody else uses.
#[inline(always)]
unsafe fn steps<T: Element, const A_K: bool, const B_K: bool>(
    a: Operand<T>,
    b: Operand<T>,
    size: [u32; 2],
    k: usize,
) -> ptx::Wide {
    let lane = grid::local_id_x();
    let shared = ptx::shared(workgroup::memory::<u8>());
    let mut a = Copier::<T, ROWS, A_K>::new(a, size[0], lane);
    let mut b = Copier::<T, COLUMNS, B_K>::new(b, size[1], lane);
    // 128 rows of 128 bytes, or two blocks of lines.
    let own = amdgpu_device::wave::uniform_u32(lane / 128) * 128 * 128;
    let mut sums = [[[0; 4]; 16]; 2];
    let steps = k.div_ceil(DEPTH);
    let (mut begun, mut left, mut place) = (0, k, 0);
    while begun < steps + PLACES - 2 {
        // SAFETY: the caller's; the step that the place had is done in all lanes since the barrier, and what is computed has been
        // waited for
        unsafe {
            if begun >= PLACES - 2 {
                ptx::wait::<{ PLACES as u32 - 3 }>();
                ptx::show();
                barrier_local();
                // Two places behind the one that is filled next is the oldest.
                let at = shared + (place + 2) % PLACES as u32 * BYTES;
                let rows = Descriptor::new::<A_K>(at + own, 128, 8192);
                let columns = Descriptor::new::<B_K>(at + BEHIND, 128, 8192);
                let columns = [columns, columns.after(8192)];
                sums = half::add_wide::<T, A_K, B_K>(rows, columns, sums);
                let rows = rows.next::<A_K>().next::<A_K>();
                let columns = columns.map(|half| half.next::<B_K>().next::<B_K>());
                sums = half::add_wide::<T, A_K, B_K>(rows, columns, sums);
            }
            if begun < steps {
                let to = shared + place * BYTES;
                a.begin(left, to);
                b.begin(left, to + BEHIND);
                left = left.saturating_sub(DEPTH);
            }
            ptx::end_group();
        }
        // A step is two of them.
        ptx::wait_wide::<2>();
        place = (place + 1) % PLACES as u32;
        begun += 1;
    }
    // The next tile is not to be written while others still read this one.
    ptx::wait_wide::<0>();
    ptx::wait::<0>();
    barrier_local();
    sums
}
