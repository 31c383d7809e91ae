//! The functions of amdgpu-device that Rust cannot say, as LLVM IR. They are linked before the optimiser runs, which
//! inlines all of them.

use amdgpu_emulator::{Generation, Gfx};

use crate::compile::Target;

/// The module for a target. Without layout and triple: llvm-link takes those of the kernels.
pub fn module(target: Target) -> String {
    match target {
        Target::Amdgpu(gfx) => [include_str!("shim/amdgpu.ll"), dot2(gfx), dot4(gfx), matrix(gfx)].concat(),
        Target::Nvptx => include_str!("shim/nvptx.ll").to_owned(),
    }
}

fn dot2(gfx: Gfx) -> &'static str {
    match (gfx.generation(), gfx.isa()) {
        (Generation::Cdna, _) | (_, Gfx::Gfx1010) => include_str!("shim/no_dot2.ll"),
        _ => include_str!("shim/dot2.ll"),
    }
}

fn dot4(gfx: Gfx) -> &'static str {
    match (gfx.generation(), gfx.isa()) {
        (_, Gfx::Gfx1010) => include_str!("shim/no_dot4.ll"),
        (Generation::Gfx11 | Generation::Gfx12, _) => include_str!("shim/sudot4.ll"),
        _ => include_str!("shim/sdot4.ll"),
    }
}

/// gfx12's WMMA needs its operands in other lanes, and is not used yet.
fn matrix(gfx: Gfx) -> &'static str {
    match (gfx.generation(), gfx.isa()) {
        // gfx908 has no matrix instructions for f64, and whether there are any is one constant for all types.
        (_, Gfx::Gfx906 | Gfx::Gfx908) => {
            concat!(include_str!("shim/no_matrix.ll"), include_str!("shim/no_matrix64.ll"))
        }
        (Generation::Cdna, _) => include_str!("shim/mfma.ll"),
        (Generation::Gfx11, _) => include_str!("shim/wmma.ll"),
        (Generation::Gfx10 | Generation::Gfx12, _) => include_str!("shim/no_matrix.ll"),
    }
}
