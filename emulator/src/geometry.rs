//! Whether a device and a kernel support the geometry of a launch. What follows from a refusal is each caller's: a fault of
//! the dispatcher, a code of HIP's, an error of the host crate's.

use crate::gfx::Gfx;
use crate::specs::{MAX_GRID, MAX_WORKGROUP};

/// Work-items along an axis of a grid: a dispatch packet counts them in 32 bits.
pub const PACKET_ITEMS: u64 = u32::MAX as u64;

/// The sizes of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Workgroups along x, y and z.
    pub grid: [u32; 3],
    /// Work-items of a workgroup along x, y and z.
    pub block: [u32; 3],
    /// Bytes of LDS of a workgroup in addition to the kernel's own.
    pub dynamic_lds: u32,
}

/// The sizes that a device takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Workgroups along each axis.
    pub grid: [u32; 3],
    /// Work-items of a workgroup along each axis.
    pub block: [u32; 3],
    /// Work-items of the grid along each axis.
    pub grid_items: u64,
    /// Work-items of a workgroup.
    pub work_items: u32,
    /// Bytes of LDS of a workgroup.
    pub lds: u32,
}

/// Why a launch cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeometryError {
    /// A size is 0.
    Zero,
    /// More workgroups along an axis than the device takes, or 2^64 and more in all.
    Grid,
    /// More work-items of a workgroup than the device takes.
    WorkItems,
    /// More work-items of a workgroup along an axis than the device takes.
    Block,
    /// More work-items of the grid along an axis than the device takes.
    GridItems,
    /// More work-items of a workgroup than the kernel is compiled for.
    Compiled,
    /// More LDS than a workgroup can have: the kernel's own and the launch's.
    Lds {
        /// Bytes asked for.
        bytes: u64,
    },
}

impl Limits {
    /// Those of an emulated device.
    pub fn of(gfx: Gfx) -> Limits {
        Limits {
            grid: MAX_GRID,
            block: [MAX_WORKGROUP; 3],
            grid_items: PACKET_ITEMS,
            work_items: MAX_WORKGROUP,
            lds: gfx.lds_limit(),
        }
    }
}

impl Geometry {
    /// Work-items of a workgroup.
    pub fn work_items(&self) -> u64 {
        self.block.iter().map(|&n| u64::from(n)).fold(1, u64::saturating_mul)
    }

    /// Whether `limits` allow this, and a kernel that is compiled for workgroups of at most `compiled` work-items (0: any
    /// number) and has `own_lds` bytes of LDS.
    ///
    /// # Errors
    /// The first reason that stands against it.
    pub fn check(&self, limits: &Limits, compiled: u32, own_lds: u32) -> Result<(), GeometryError> {
        let Geometry { grid, block, dynamic_lds } = *self;
        let exceeds = |sizes: [u32; 3], limits: [u32; 3]| sizes.iter().zip(limits).any(|(&n, most)| n > most);
        let count = grid.iter().try_fold(1_u64, |product, &n| product.checked_mul(n.into()));
        let along =
            grid.iter().zip(block).map(|(&workgroups, items)| u64::from(workgroups) * u64::from(items));
        let bytes = u64::from(own_lds) + u64::from(dynamic_lds);
        let work_items = self.work_items();
        let reasons = [
            (grid.contains(&0) || block.contains(&0), GeometryError::Zero),
            (exceeds(grid, limits.grid) || count.is_none(), GeometryError::Grid),
            (work_items > limits.work_items.into(), GeometryError::WorkItems),
            (exceeds(block, limits.block), GeometryError::Block),
            (along.max() > Some(limits.grid_items), GeometryError::GridItems),
            (compiled > 0 && work_items > compiled.into(), GeometryError::Compiled),
            (bytes > limits.lds.into(), GeometryError::Lds { bytes }),
        ];
        reasons.iter().find(|(holds, _)| *holds).map_or(Ok(()), |&(_, reason)| Err(reason))
    }
}
