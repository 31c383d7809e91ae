//! Which kernel computes a product: the one that takes the least time by what tiles take on a target.

use super::{GemmType, Plan};
use crate::{Device, LaunchConfig};

/// A kernel whose workgroups compute tiles.
#[derive(Clone, Copy)]
struct Tile {
    /// The end of the kernel's name.
    name: &'static str,
    rows: usize,
    columns: usize,
    /// Workgroups that a compute unit has at the same time.
    together: usize,
    /// What a workgroup takes if no compute unit has more than one, and what it takes beside others: in the same unit for all kernels
    /// of a list.
    times: [f64; 2],
}

const fn tile(name: &'static str, [rows, columns]: [usize; 2], together: usize, times: [f64; 2]) -> Tile {
    Tile { name, rows, columns, together, times }
}

/// Where nothing has been measured: time by the number of elements, which cost more in smaller tiles.
const UNMEASURED: [Tile; 3] = {
    const LARGE: f64 = 128.0 * 128.0;
    const MIDDLE: f64 = 64.0 * 64.0 * 1.15;
    const FEW: f64 = 64.0 * 16.0 * 1.6;
    [
        tile("128x128", [128, 128], 1, [LARGE, LARGE]),
        tile("64x64", [64, 64], 1, [MIDDLE, MIDDLE]),
        tile("64x16", [64, 16], 1, [FEW, FEW]),
    ]
};

/// Workgroup memory and tile of `gemm_{T}_128x128` for operands in chunks on sm_90a.
const WIDE_BYTES: u32 = 4 * 128 * (256 + 128);
const WIDE: [usize; 2] = [256, 128];

/// Microseconds for k = 4096 on an H200 (benches/gemm.md): f16 and bf16 in chunks, with `wgmma`.
const HOPPER_16: [Tile; 4] = [
    tile("128x128", WIDE, 1, [51.0, 55.0]),
    tile("staged", [128, 128], 2, [65.0, 74.0]),
    tile("64x64", [64, 64], 3, [50.0, 83.0]),
    tile("64x16", [64, 16], 6, [93.0, 98.0]),
];
/// The same with `mma.sync`, which other NVIDIA GPUs have.
const NVIDIA_16: [Tile; 4] = [
    tile("staged", [128, 128], 2, [97.0, 130.0]),
    tile("128x128", [128, 128], 1, [97.0, 108.0]),
    tile("64x64", [64, 64], 3, [50.0, 83.0]),
    tile("64x16", [64, 16], 6, [93.0, 98.0]),
];
/// f16 and bf16 where lines begin anywhere.
const NVIDIA_16_SINGLE: [Tile; 3] = [
    tile("staged", [128, 128], 2, [340.0, 420.0]),
    tile("64x64", [64, 64], 3, [190.0, 222.0]),
    tile("64x16", [64, 16], 6, [150.0, 200.0]),
];
/// f32; the first one where the rows of the second operand are contiguous.
const NVIDIA_32: [Tile; 4] = [
    tile("staged", [128, 128], 2, [440.0, 804.0]),
    tile("128x128", [128, 128], 1, [460.0, 463.0]),
    tile("64x64", [64, 64], 3, [240.0, 373.0]),
    tile("64x16", [64, 16], 6, [150.0, 259.0]),
];
/// f64
const NVIDIA_64: [Tile; 3] = [
    tile("staged", [128, 64], 2, [355.0, 370.0]),
    tile("64x64", [64, 64], 2, [328.0, 464.0]),
    tile("64x16", [64, 16], 6, [250.0, 484.0]),
];

/// Columns up to which `gemm_{T}_16x32` takes the least time, and up to which it does if a tile of 128 rows has two compute units.
const FEW_COLUMNS: [usize; 2] = [32, 64];

/// Rows up to which a matrix by a vector takes fewer wave instructions in tiles of 64 by 16, of which one column is used, than in
/// `gemv_{T}_along_k`, whose waves spend some 300 before and after a row whatever its length; benches/gemm.md has the counts. gfx12 is
/// taken to be as gfx11, gfx908 and gfx94x as gfx90a.
fn tiled_up_to(dtype: GemmType, target: &str) -> usize {
    let [f16, bf16, f32, f64] = match target.get(..target.len().saturating_sub(2)) {
        Some("gfx9") => [2048, 2048, 1024, 512],
        Some("gfx11" | "gfx12") => [1024, 1024, 128, 64],
        Some("gfx10") => [256, 128, 128, 64],
        _ => [0; 4],
    };
    match dtype {
        GemmType::F16 => f16,
        GemmType::Bf16 => bf16,
        GemmType::F32 => f32,
        GemmType::F64 => f64,
    }
}

/// A kernel by name, and how it is launched.
pub(super) struct Choice {
    pub(super) kernel: String,
    pub(super) launch: LaunchConfig,
}

impl Choice {
    /// For the plan's operands at these addresses.
    pub(super) fn new(plan: &Plan, dtype: GemmType, device: &Device, addresses: [usize; 2]) -> Choice {
        let own = |end: &str| {
            let start = if end.starts_with("along") || end.starts_with("across") { "gemv" } else { "gemm" };
            Choice { kernel: format!("{start}_{dtype}_{end}"), launch: LaunchConfig::auto() }
        };
        // A single column is a matter of reading the matrix, 16 bytes at a time; if there are enough short rows, as of the keys of
        // many heads of attention, tiles read it with fewer instructions.
        match plan.a {
            [_, 1, _] if plan.n == 1 && fills_in_tiles(plan, dtype, device) => return own("64x16"),
            [_, 1, _] if plan.n == 1 => return own("along_k"),
            [1, _, _] if plan.n == 1 => return own("across"),
            _ => {}
        }
        let units =
            if device.is_emulated() { 1 } else { device.properties().multiprocessors.max(1) as usize };
        let is_16 = matches!(dtype, GemmType::F16 | GemmType::Bf16);
        let target = &device.properties().target;
        let chunks = in_chunks(plan, dtype, addresses);
        let wide = is_16 && chunks && target.ends_with(crate::ptx::HOPPER);
        let tiles: &[Tile] = match dtype {
            _ if !target.starts_with("nvptx") && dtype == GemmType::F64 => &UNMEASURED[1..],
            _ if !target.starts_with("nvptx") => &UNMEASURED,
            GemmType::F16 | GemmType::Bf16 => {
                let rows = plan.a[1] == 1 && plan.b[1] == 1 && chunks && plan.k.is_multiple_of(8);
                let tiles = plan.m.div_ceil(128).saturating_mul(plan.batch);
                if rows && plan.n <= FEW_COLUMNS[usize::from(tiles.saturating_mul(2) <= units)] {
                    return own("16x32");
                }
                match (wide, chunks) {
                    (true, _) => &HOPPER_16,
                    (_, true) => &NVIDIA_16,
                    _ => &NVIDIA_16_SINGLE,
                }
            }
            GemmType::F32 => &NVIDIA_32[usize::from(!chunks || plan.b[0] != 1)..],
            GemmType::F64 => &NVIDIA_64,
        };
        let tile = tiles.iter().min_by(|a, b| a.time(plan, units).total_cmp(&b.time(plan, units)));
        let tile = tile.expect("every list has tiles");
        let mut choice = own(tile.name);
        if wide && tile.name == "128x128" {
            // Of more workgroups than a grid can have each computes several tiles.
            let grid = tile.grid(plan).map(|count| u32::try_from(count).unwrap_or(u32::MAX));
            let grid = [grid[0].min(8_388_608), grid[1].min(65535), grid[2].min(65535)];
            choice.launch = LaunchConfig::explicit(grid, [256, 1, 1], WIDE_BYTES);
        }
        choice
    }
}

impl Tile {
    fn grid(&self, plan: &Plan) -> [usize; 3] {
        [plan.m.div_ceil(self.rows), plan.n.div_ceil(self.columns), plan.batch]
    }

    /// What all of a product takes, those of a compute unit one after the other.
    fn time(&self, plan: &Plan, units: usize) -> f64 {
        let tiles: f64 = self.grid(plan).iter().map(|&count| count as f64).product();
        match tiles <= units as f64 {
            true => self.times[0],
            false => (tiles / (units * self.together) as f64).ceil() * self.times[1],
        }
    }
}

/// Whether every line of both operands begins at a multiple of 16 bytes.
fn in_chunks(plan: &Plan, dtype: GemmType, addresses: [usize; 2]) -> bool {
    let size = match dtype {
        GemmType::F16 | GemmType::Bf16 => 2,
        GemmType::F32 => 4,
        GemmType::F64 => 8,
    };
    let whole = |[own, k, z]: super::Strides, address: usize| {
        let line = if k == 1 { own } else { k };
        let parts = [address, line * size, if plan.batch > 1 { z * size } else { 0 }];
        (own == 1 || k == 1) && parts.iter().all(|part| part.is_multiple_of(16))
    };
    whole(plan.a, addresses[0]) && whole(plan.b, addresses[1])
}

/// Whether rows are short enough for tiles, and tiles enough for all compute units.
fn fills_in_tiles(plan: &Plan, dtype: GemmType, device: &Device) -> bool {
    let tiles = plan.m.div_ceil(64).saturating_mul(plan.batch);
    plan.k <= tiled_up_to(dtype, device.arch()) && tiles >= device.properties().compute_units() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::{GemmConfig, Transpose};

    /// The tile of the least time on an H200, of a product with k contiguous in both operands.
    fn fastest(tiles: &[Tile], m: usize, n: usize, batch: usize) -> &'static str {
        let config = GemmConfig {
            transa: Transpose::Yes,
            lda: 64,
            batch,
            stride_c: m * n,
            ..GemmConfig::new(m, n, 64)
        };
        let plan = Plan::new(&config).expect("a plan");
        let tile = tiles.iter().min_by(|a, b| a.time(&plan, 132).total_cmp(&b.time(&plan, 132)));
        tile.expect("a tile").name
    }

    #[test]
    fn tiles_are_chosen_as_measured_on_an_h200() {
        assert_eq!(fastest(&HOPPER_16, 4096, 4096, 1), "128x128");
        assert_eq!(fastest(&HOPPER_16, 3072, 3072, 1), "128x128");
        assert_eq!(fastest(&HOPPER_16, 128, 512, 96), "staged");
        assert_eq!(fastest(&HOPPER_16, 512, 512, 1), "64x64");
        assert_eq!(fastest(&NVIDIA_32, 1024, 1024, 1), "64x64");
        assert_eq!(fastest(&NVIDIA_32, 4096, 4096, 1), "staged");
        assert_eq!(fastest(&NVIDIA_32[1..], 4096, 512, 1), "128x128");
        assert_eq!(fastest(&NVIDIA_64, 4096, 4096, 1), "staged");
    }

    #[test]
    fn lines_in_chunks_need_an_address_a_pitch_and_a_batch_of_whole_chunks() {
        let plan = |lda: usize, stride_a: usize| {
            let config = GemmConfig { lda, stride_a, batch: 2, stride_c: 64, ..GemmConfig::new(8, 8, 8) };
            Plan::new(&config).expect("a plan")
        };
        assert!(in_chunks(&plan(16, 128), GemmType::F16, [32, 48]));
        assert!(!in_chunks(&plan(16, 128), GemmType::F16, [34, 48]));
        assert!(!in_chunks(&plan(17, 136), GemmType::F16, [32, 48]));
        assert!(!in_chunks(&plan(16, 129), GemmType::F16, [32, 48]));
        assert!(in_chunks(&plan(12, 132), GemmType::F32, [32, 48]));
    }
}
