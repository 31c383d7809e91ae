//! What a caller says of a launch's geometry.

/// The geometry that a kernel is launched with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaunchConfig {
    /// The kernel's own: what its Rust function states. The fastest, and the default.
    #[default]
    Auto,
    /// One given by the caller.
    Explicit {
        /// Workgroups in x, y and z.
        grid: [u32; 3],
        /// Work-items of a workgroup in x, y and z.
        block: [u32; 3],
        /// Bytes of workgroup memory (LDS) in addition to the kernel's own.
        lds_bytes: u32,
    },
    /// The same, of workgroups that may wait for each other (`group::Grid` in the kernel): all of them run at the same time, and
    /// the launch is an error if the device has no room for that.
    Cooperative {
        /// Workgroups in x, y and z.
        grid: [u32; 3],
        /// Work-items of a workgroup in x, y and z.
        block: [u32; 3],
        /// Bytes of workgroup memory (LDS) in addition to the kernel's own.
        lds_bytes: u32,
    },
    /// The kernel's own, for a kernel whose workgroups are rows and a caller who knows how many there are, and not how long their
    /// memory is.
    Rows {
        /// Rows in x, y and z.
        grid: [u32; 3],
    },
}

impl LaunchConfig {
    /// Work-items of a workgroup in Candle's launches.
    pub const CANDLE_WORKGROUP: u32 = 1024;

    /// The kernel's own geometry.
    pub const fn auto() -> Self {
        LaunchConfig::Auto
    }

    /// Candle's geometry: one lane for each element, in workgroups of 1,024.
    pub const fn for_num_elems(n: u32) -> Self {
        let grid = n.div_ceil(Self::CANDLE_WORKGROUP);
        LaunchConfig::explicit([grid, 1, 1], [Self::CANDLE_WORKGROUP, 1, 1], 0)
    }

    /// `grid` workgroups of `block` lanes with `lds_bytes` of workgroup memory each.
    pub const fn explicit(grid: [u32; 3], block: [u32; 3], lds_bytes: u32) -> Self {
        LaunchConfig::Explicit { grid, block, lds_bytes }
    }

    /// `grid` workgroups of `block` lanes with `lds_bytes` of workgroup memory each, which may wait for each other.
    pub const fn cooperative(grid: [u32; 3], block: [u32; 3], lds_bytes: u32) -> Self {
        LaunchConfig::Cooperative { grid, block, lds_bytes }
    }
}
