//! From what the caller and the kernel say to workgroups.

use crate::kernel::{Kernel, workgroup_of_rows};
use crate::{Count, Error, LaunchConfig, Result};
use amdgpu_emulator::Geometry;
use amdgpu_emulator::geometry::PACKET_ITEMS;

/// A geometry in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchGeometry {
    /// Workgroups, their work-items, and LDS beside the kernel's own.
    pub size: Geometry,
    /// Whether workgroups may wait for each other.
    pub is_cooperative: bool,
    /// The rows that are left when workgroups of several are full.
    pub rest: Option<Rest>,
}

/// A second launch, of a single workgroup: the rows that are left over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// How many: z of the workgroup.
    pub rows: u32,
    /// Elements before them, in memory that has a row for each.
    pub before: u64,
}

/// What is known of a launch before its geometry.
#[derive(Clone, Copy)]
pub(super) enum Known<'a> {
    /// The arguments' values, but not the lengths of memory, without which the number of rows is not known.
    Arguments(&'a [Count]),
    /// Those and the lengths of memory.
    Lengths(&'a [Count]),
}

impl LaunchGeometry {
    /// The geometry of a launch; `None` if there is nothing to do. `wave` is the number of lanes of a wave.
    pub(super) fn new(
        config: LaunchConfig,
        name: &str,
        kernel: Option<&Kernel>,
        known: Known<'_>,
        wave: u32,
    ) -> Result<Option<LaunchGeometry>> {
        let (values, lengths) = match known {
            Known::Arguments(values) => (values, false),
            Known::Lengths(values) => (values, true),
        };
        let stated = kernel.map(|kernel| &kernel.geometry);
        let items = stated.and_then(|g| g.items.as_ref()).map(|items| (items.eval)(values).get());
        if items == Some(0) {
            return Ok(None);
        }
        let rows =
            stated.and_then(|g| g.rows.as_ref()).filter(|_| lengths).map(|rows| (rows.eval)(values).get());
        if rows == Some(0) {
            return Ok(None);
        }
        let is_cooperative = matches!(config, LaunchConfig::Cooperative { .. });
        let given = match config {
            LaunchConfig::Explicit { grid, .. }
            | LaunchConfig::Cooperative { grid, .. }
            | LaunchConfig::Rows { grid } => Some(grid),
            LaunchConfig::Auto => None,
        };
        let shares = kernel.is_some_and(Kernel::rows_share_workgroups);
        let shared = if shares { shared_by(config, name, wave)? } else { 1 };
        if let (Some(grid), Some(rows)) = (given, rows)
            && (rows != u128::from(grid[0]) * u128::from(shared) || grid[1..] != [1, 1])
        {
            return Err(Error::GridIsNotRows { kernel: name.to_owned(), grid, rows });
        }
        if let LaunchConfig::Explicit { grid, block, lds_bytes }
        | LaunchConfig::Cooperative { grid, block, lds_bytes } = config
        {
            let size = Geometry { grid, block, dynamic_lds: lds_bytes };
            return Ok(Some(LaunchGeometry { size, is_cooperative, rest: None }));
        }
        let no_geometry = || Error::NoGeometry { kernel: name.to_owned() };
        let geometry = stated.ok_or_else(no_geometry)?;
        let dynamic_lds = match &geometry.lds {
            Some(formula) => clamp((formula.eval)(values).get()),
            None => geometry.lds_bytes,
        };
        let rows = rows.or(given.filter(|[_, y, z]| shares && [*y, *z] == [1, 1]).map(|[x, ..]| x.into()));
        if let (true, Some(columns), Some(rows)) = (shares, &geometry.columns, rows) {
            if rows == 0 {
                return Ok(None);
            }
            let columns = (columns.eval)(values).get();
            let block = geometry.workgroup[0];
            let workgroup = workgroup_of_rows(rows, columns, geometry.items_per_lane, wave, block);
            return Ok(Some(LaunchGeometry::of_rows(rows, columns, workgroup, dynamic_lds)));
        }
        let block = geometry.block(values, wave);
        let grid = match (given, &geometry.grid, items.or(rows)) {
            (Some(grid), ..) => grid,
            (None, Some(grid), _) => grid.map(|formula| clamp((formula.eval)(values).get())),
            (None, None, Some(rows)) if geometry.items.is_none() => [clamp(rows), 1, 1],
            (None, None, Some(items)) => {
                // Lanes that differ in y and z alone share their items.
                let per_workgroup = (u128::from(block[0]) * u128::from(geometry.items_per_lane)).max(1);
                // A larger number of items is covered too: every kernel strides by its grid.
                let most = PACKET_ITEMS / u64::from(block[0].max(1));
                [clamp(items.div_ceil(per_workgroup)).min(clamp(most.into())), 1, 1]
            }
            (None, None, None) => return Err(no_geometry()),
        };
        if grid.contains(&0) {
            return Ok(None);
        }
        let size = Geometry { grid, block, dynamic_lds };
        Ok(Some(LaunchGeometry { size, is_cooperative, rest: None }))
    }

    /// Workgroups of several rows, with so many lanes for each.
    fn of_rows(rows: u128, columns: u128, [lanes, shared]: [u32; 2], dynamic_lds: u32) -> LaunchGeometry {
        let left = rows % u128::from(shared);
        let rest = Rest { rows: left as u32, before: ((rows - left) * columns) as u64 };
        let grid = [clamp(rows / u128::from(shared)), 1, 1];
        let size = Geometry { grid, block: [lanes, 1, shared], dynamic_lds };
        LaunchGeometry { size, is_cooperative: false, rest: (left > 0).then_some(rest) }
    }
}

/// How many rows share a workgroup of the caller's, in a kernel whose rows may.
fn shared_by(config: LaunchConfig, name: &str, wave: u32) -> Result<u32> {
    let (LaunchConfig::Explicit { block, .. } | LaunchConfig::Cooperative { block, .. }) = config else {
        return Ok(1);
    };
    let [x, y, z] = block;
    let lanes = x.saturating_mul(y);
    if z > 1 && (!lanes.is_power_of_two() || lanes > wave) {
        let limit = format!("each z is a row, with a power of two of lanes, {wave} at most");
        return Err(Error::WorkgroupTooLarge { kernel: name.to_owned(), block, limit });
    }
    Ok(z.max(1))
}

fn clamp(n: u128) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{self, Arg, ArgType, Formula};

    fn kernel(items: fn(&[Count]) -> Count) -> Kernel {
        Kernel {
            family: "f",
            name: "k",
            doc: "",
            file: "",
            line: 1,
            args: &[],
            derived: &[],
            geometry: kernel::LaunchHints {
                workgroup: [256, 1, 1],
                max_workgroup_size: 1024,
                items_per_lane: 16,
                lds_bytes: 0,
                items: Some(Formula { text: "n", eval: items }),
                rows: None,
                columns: None,
                grid: None,
                lds: None,
            },
        }
    }

    fn grid(items: fn(&[Count]) -> Count) -> Option<[u32; 3]> {
        LaunchGeometry::new(LaunchConfig::Auto, "k", Some(&kernel(items)), Known::Lengths(&[]), 32)
            .unwrap()
            .map(|r| r.size.grid)
    }

    #[test]
    fn the_kernels_own_grid_covers_its_items() {
        assert_eq!(grid(|_| Count(1)), Some([1, 1, 1]));
        assert_eq!(grid(|_| Count(4096)), Some([1, 1, 1]));
        assert_eq!(grid(|_| Count(4097)), Some([2, 1, 1]));
    }

    #[test]
    fn nothing_to_do_is_no_launch() {
        assert_eq!(grid(|_| Count(0)), None);
        let explicit = LaunchConfig::for_num_elems(0);
        assert_eq!(
            LaunchGeometry::new(explicit, "k", Some(&kernel(|_| Count(0))), Known::Lengths(&[]), 32),
            Ok(None)
        );
    }

    #[test]
    fn a_row_has_as_many_whole_waves_as_it_needs() {
        let mut kernel = kernel(|_| Count(9));
        kernel.geometry.items = None;
        kernel.geometry.items_per_lane = 4;
        kernel.geometry.rows = Some(Formula { text: "9", eval: |_| Count(9) });
        kernel.geometry.columns = Some(Formula { text: "n", eval: |values| values[0] });
        let block = |config, columns, wave| {
            let resolved =
                LaunchGeometry::new(config, "k", Some(&kernel), Known::Lengths(&[Count(columns)]), wave);
            resolved.unwrap().map(|r| (r.size.grid[0], r.size.block[0]))
        };
        for config in [LaunchConfig::Auto, LaunchConfig::Rows { grid: [9, 1, 1] }] {
            let lanes = |wave| [0, 5, 128, 129, 700, 1 << 40].map(|n| block(config, n, wave).unwrap().1);
            assert_eq!(lanes(32), [32, 32, 32, 64, 192, 256]);
            assert_eq!(lanes(64), [64, 64, 64, 64, 192, 256]);
            assert_eq!(block(config, 5, 32), Some((9, 32)));
        }
        let other = LaunchGeometry::new(
            LaunchConfig::Rows { grid: [8, 1, 1] },
            "k",
            Some(&kernel),
            Known::Lengths(&[Count(5)]),
            32,
        );
        assert!(matches!(other, Err(Error::GridIsNotRows { rows: 9, .. })));
    }

    #[test]
    fn short_rows_share_a_workgroup_and_what_is_left_has_one_of_its_own() {
        let mut kernel = kernel(|_| Count(0));
        kernel.geometry.items = None;
        kernel.geometry.items_per_lane = 4;
        kernel.geometry.rows = Some(Formula { text: "rows", eval: |values| values[0] });
        kernel.geometry.columns = Some(Formula { text: "n", eval: |values| values[1] });
        const MEMORY: Arg =
            Arg { row_of: 4, ..Arg::new("src", ArgType::Pointer { mutable: false, pointee: "f32" }, 8) };
        kernel.args = const { &[MEMORY] };
        let resolve = |config, rows: u32, columns, wave| {
            let values = [Count(rows.into()), Count(columns)];
            LaunchGeometry::new(config, "k", Some(&kernel), Known::Lengths(&values), wave)
        };
        let launch = |rows: u32, columns, wave| {
            let launch = resolve(LaunchConfig::Auto, rows, columns, wave).unwrap().unwrap();
            // A caller who knows how many rows there are gets the same.
            let named = LaunchConfig::Rows { grid: [rows, 1, 1] };
            assert_eq!(
                LaunchGeometry::new(
                    named,
                    "k",
                    Some(&kernel),
                    Known::Arguments(&[Count(0), Count(columns)]),
                    wave
                ),
                Ok(Some(launch))
            );
            let rest = launch.rest.map(|Rest { rows, before }| (rows, before));
            (launch.size.grid[0], launch.size.block, rest)
        };
        assert_eq!(launch(32, 5, 32), (2, [2, 1, 16], None));
        assert_eq!(launch(35, 5, 32), (2, [2, 1, 16], Some((3, 160))));
        assert_eq!(launch(35, 5, 64), (1, [2, 1, 32], Some((3, 160))));
        assert_eq!(launch(3, 5, 64), (1, [2, 1, 3], None), "fewer rows than a wave has room for");
        assert_eq!(launch(1, 5, 64), (1, [2, 1, 1], None), "as many lanes for one as for many");
        assert_eq!(launch(9, 64, 32), (2, [8, 1, 4], Some((1, 512))), "a line at once, and two blocks of it");
        assert_eq!(launch(9, 256, 32), (4, [16, 1, 2], Some((1, 2048))), "four blocks");
        assert_eq!(launch(9, 260, 32), (9, [32, 1, 1], None), "more than half a wave");
        assert_eq!(launch(9, 260, 64), (4, [32, 1, 2], Some((1, 2080))));
        assert_eq!(launch(9, 61, 32), (4, [16, 1, 2], Some((1, 488))), "no whole blocks: one for each lane");
        assert_eq!(launch(9, 4096, 32), (9, [256, 1, 1], None));
        assert_eq!(launch(1 << 20, 8, 32), (16384, [2, 1, 64], None), "many rows fill four waves");
        assert_eq!(launch(1 << 20, 4, 32), (16384, [1, 1, 64], None), "no more rows than NVIDIA GPUs have z");
        assert_eq!(resolve(LaunchConfig::Rows { grid: [0, 1, 1] }, 0, 5, 32), Ok(None));
        let explicit = |grid, block| resolve(LaunchConfig::explicit([grid, 1, 1], block, 0), 32, 5, 32);
        assert!(matches!(explicit(2, [2, 1, 16]), Ok(Some(_))));
        assert!(matches!(explicit(32, [7, 3, 1]), Ok(Some(_))));
        assert!(matches!(explicit(16, [3, 1, 2]), Err(Error::WorkgroupTooLarge { .. })));
        assert!(matches!(explicit(16, [64, 1, 2]), Err(Error::WorkgroupTooLarge { .. })));
        assert!(matches!(explicit(2, [2, 1, 8]), Err(Error::GridIsNotRows { .. })));
    }

    #[test]
    fn a_grid_of_more_lanes_than_a_packet_counts_is_cut_to_what_it_can() {
        assert_eq!(grid(|_| Count(1 << 60)), Some([(u32::MAX / 256), 1, 1]));
    }

    #[test]
    fn candles_geometry_has_a_lane_for_each_element() {
        let config = LaunchConfig::for_num_elems(1025);
        assert_eq!(config, LaunchConfig::explicit([2, 1, 1], [1024, 1, 1], 0));
    }
}
