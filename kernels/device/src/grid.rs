//! Which work-item this is, and how many there are.
//!
//! On the host a launch is one workgroup of one work-item.

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident, $amd:expr, $nv:ident, $host:literal;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name() -> u32 {
            #[cfg(target_arch = "amdgpu")]
            {
                #[allow(unused_unsafe)]
                // SAFETY: reads a register or the launch's own memory
                unsafe { $amd }
            }
            #[cfg(target_arch = "nvptx64")]
            // SAFETY: reads a register
            unsafe {
                core::arch::nvptx::$nv() as u32
            }
            #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
            $host
        }
    )*};
}

ids! {
    /// Work item in its workgroup, first dimension.
    local_id_x, core::arch::amdgpu::workitem_id_x(), _thread_idx_x, 0;
    /// Work item in its workgroup, second dimension.
    local_id_y, core::arch::amdgpu::workitem_id_y(), _thread_idx_y, 0;
    /// Work item in its workgroup, third dimension.
    local_id_z, core::arch::amdgpu::workitem_id_z(), _thread_idx_z, 0;
    /// Workgroup in the grid, first dimension.
    workgroup_id_x, core::arch::amdgpu::workgroup_id_x(), _block_idx_x, 0;
    /// Workgroup in the grid, second dimension.
    workgroup_id_y, core::arch::amdgpu::workgroup_id_y(), _block_idx_y, 0;
    /// Workgroup in the grid, third dimension.
    workgroup_id_z, core::arch::amdgpu::workgroup_id_z(), _block_idx_z, 0;
    /// Work items of a workgroup, first dimension.
    workgroup_size_x, crate::intrinsics::amdgpu_device_workgroup_size_x(), _block_dim_x, 1;
    /// Work items of a workgroup, second dimension.
    workgroup_size_y, crate::intrinsics::amdgpu_device_workgroup_size_y(), _block_dim_y, 1;
    /// Work items of a workgroup, third dimension.
    workgroup_size_z, crate::intrinsics::amdgpu_device_workgroup_size_z(), _block_dim_z, 1;
    /// Workgroups in the grid, first dimension.
    workgroups_x, crate::intrinsics::amdgpu_device_workgroups_x(), _grid_dim_x, 1;
    /// Workgroups in the grid, second dimension.
    workgroups_y, crate::intrinsics::amdgpu_device_workgroups_y(), _grid_dim_y, 1;
    /// Workgroups in the grid, third dimension.
    workgroups_z, crate::intrinsics::amdgpu_device_workgroups_z(), _grid_dim_z, 1;
}

/// Number of this work-item in its workgroup, in the order in which waves take them: x first, then y, then z.
#[inline(always)]
pub fn local_id() -> u32 {
    local_id_x() + workgroup_size_x() * (local_id_y() + workgroup_size_y() * local_id_z())
}

/// Work-items of the workgroup, in all three dimensions.
#[inline(always)]
pub fn workgroup_size() -> u32 {
    workgroup_size_x() * workgroup_size_y() * workgroup_size_z()
}

/// Number of this work-item among all of the grid's first dimension.
#[inline(always)]
pub fn global_id_x() -> usize {
    product(workgroup_id_x(), workgroup_size_x()) + local_id_x() as usize
}

/// Work items in the grid's first dimension.
#[inline(always)]
pub fn global_size_x() -> usize {
    product(workgroups_x(), workgroup_size_x())
}

/// The work-items of some workgroups: a dispatch packet of an AMD GPU counts a dimension's in 32 bits, so that there are no
/// more.
#[inline(always)]
fn product(workgroups: u32, size: u32) -> usize {
    if cfg!(target_arch = "amdgpu") {
        workgroups.wrapping_mul(size) as usize
    } else {
        workgroups as usize * size as usize
    }
}

/// Calls `body` with this work-item's share of `0..count`: its own number, then in steps of the grid's size.
/// Together the work-items of any one-dimensional launch cover each number once.
#[inline(always)]
pub fn global_stride(count: usize, mut body: impl FnMut(usize)) {
    let mut i = global_id_x();
    // Most launches cover the count in one go: they need not know the grid's size.
    while i < count {
        body(i);
        i += global_size_x();
    }
}
