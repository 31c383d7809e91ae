//! The wave: work items that run in lockstep, 32 or 64 of them by target.
//!
//! All lanes must come to these calls: keep them out of branches that differ between lanes.

/// Lanes of a wave: 64 on CDNA, else 32.
pub const SIZE: u32 = if cfg!(amdgpu_wave64) { 64 } else { 32 };
