//! Which work-item this is, as `usize`, which indices are: the numbers of [`grid`], widened.
//!
//! ```no_run
//! use amdgpu_device::id;
//!
//! unsafe fn add_one(rows: usize, cols: usize, matrix: *mut f32) {
//!     let [x, y] = id::global_2d();
//!     if y < rows && x < cols {
//!         // SAFETY: the element is in the matrix
//!         unsafe { *matrix.add(y * cols + x) += 1.0 };
//!     }
//! }
//! ```
//!
//! On the host a launch is one workgroup of one work-item.

use crate::grid;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $of:ident;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name() -> usize {
            grid::$of() as usize
        }
    )*};
}
ids! {
    /// Work-item in its workgroup, first dimension.
    local_x = local_id_x;
    /// Work-item in its workgroup, second dimension.
    local_y = local_id_y;
    /// Work-item in its workgroup, third dimension.
    local_z = local_id_z;
    /// Workgroup in the grid, first dimension.
    workgroup_x = workgroup_id_x;
    /// Workgroup in the grid, second dimension.
    workgroup_y = workgroup_id_y;
    /// Workgroup in the grid, third dimension.
    workgroup_z = workgroup_id_z;
    /// Work-items of a workgroup, first dimension.
    workgroup_size_x = workgroup_size_x;
    /// Work-items of a workgroup, second dimension.
    workgroup_size_y = workgroup_size_y;
    /// Work-items of a workgroup, third dimension.
    workgroup_size_z = workgroup_size_z;
    /// Workgroups in the grid, first dimension.
    workgroups_x = workgroups_x;
    /// Workgroups in the grid, second dimension.
    workgroups_y = workgroups_y;
    /// Workgroups in the grid, third dimension.
    workgroups_z = workgroups_z;
}

macro_rules! global {
    ($($id:ident $size:ident $dimension:literal: $workgroup:ident $of:ident $local:ident $workgroups:ident;)*) => {$(
        #[doc = concat!("Number of this work-item among all of the grid's ", $dimension, " dimension.")]
        #[inline(always)]
        pub fn $id() -> usize {
            product(grid::$workgroup(), grid::$of()) + grid::$local() as usize
        }

        #[doc = concat!("Work-items in the grid's ", $dimension, " dimension.")]
        #[inline(always)]
        pub fn $size() -> usize {
            product(grid::$workgroups(), grid::$of())
        }
    )*};
}
global! {
    global_x global_size_x "first": workgroup_id_x workgroup_size_x local_id_x workgroups_x;
    global_y global_size_y "second": workgroup_id_y workgroup_size_y local_id_y workgroups_y;
    global_z global_size_z "third": workgroup_id_z workgroup_size_z local_id_z workgroups_z;
}

/// As `grid` has it: a dimension has less than 2³² work-items on AMD GPUs.
#[inline(always)]
fn product(workgroups: u32, size: u32) -> usize {
    if cfg!(target_arch = "amdgpu") {
        workgroups.wrapping_mul(size) as usize
    } else {
        workgroups as usize * size as usize
    }
}

/// This work-item in its workgroup, as one number; the first dimension runs fastest.
#[inline(always)]
pub fn local() -> usize {
    grid::local_id() as usize
}

/// Work-items of a workgroup.
#[inline(always)]
pub fn workgroup_size() -> usize {
    grid::workgroup_size() as usize
}

/// This work-item in the grid: x and y.
#[inline(always)]
pub fn global_2d() -> [usize; 2] {
    [global_x(), global_y()]
}

/// This work-item in the grid: x, y and z.
#[inline(always)]
pub fn global_3d() -> [usize; 3] {
    [global_x(), global_y(), global_z()]
}

/// Calls `body` with this work-item's share of the points below `size`, `[x, y]`: its own, then in steps of the grid's sizes. Together
/// the work-items of any launch with one layer cover each point once.
#[inline(always)]
pub fn global_stride_2d(size: [usize; 2], mut body: impl FnMut([usize; 2])) {
    let mut y = global_y();
    while y < size[1] {
        let mut x = global_x();
        while x < size[0] {
            body([x, y]);
            x += global_size_x();
        }
        y += global_size_y();
    }
}
