//! The functions of amdgpu-device that Rust cannot say, as LLVM IR. They are linked before the optimiser runs, which
//! inlines all of them.

use std::fmt::Write;

use amdgpu_emulator::{Generation, Gfx};

use crate::compile::Target;

/// The module for a target. Without layout and triple: llvm-link takes those of the kernels.
pub fn module(target: Target) -> String {
    let by_hand = match target {
        Target::Amdgpu(gfx) => {
            [include_str!("intrinsics/amdgpu.ll"), dot2(gfx), dot4(gfx), matrix(gfx)].concat()
        }
        Target::Nvptx => include_str!("intrinsics/nvptx.ll").to_owned(),
    };
    by_hand + &atomics(target)
}

/// Who sees an atomic operation, as amdgpu-device's `atomic` names it, with LLVM's names for AMD GPUs and for PTX, which has
/// none for a warp.
const SCOPES: [(&str, &str, &str); 4] = [
    ("wave", "syncscope(\"wavefront\") ", "syncscope(\"block\") "),
    ("workgroup", "syncscope(\"workgroup\") ", "syncscope(\"block\") "),
    ("agent", "syncscope(\"agent\") ", "syncscope(\"device\") "),
    ("system", "", ""),
];

/// Read-modify-write operations of integers and of floats: our names and LLVM's.
const INTEGER_OPS: [(&str, &str); 10] = [
    ("swap", "xchg"),
    ("add", "add"),
    ("sub", "sub"),
    ("and", "and"),
    ("or", "or"),
    ("xor", "xor"),
    ("min", "min"),
    ("max", "max"),
    ("umin", "umin"),
    ("umax", "umax"),
];
const FLOAT_OPS: [(&str, &str); 3] = [("fadd", "fadd"), ("fmin", "fmin"), ("fmax", "fmax")];

/// The types of atomic values: our name, LLVM's, bytes.
const INTEGERS: [(&str, &str, u32); 2] = [("u32", "i32", 4), ("u64", "i64", 8)];
const FLOATS: [(&str, &str, u32); 2] = [("f32", "float", 4), ("f64", "double", 8)];
const PAIRS: [(&str, &str, u32); 2] = [("f16x2", "<2 x half>", 4), ("bf16x2", "<2 x bfloat>", 4)];

/// Relaxed atomic operations and fences for every scope, on generic addresses: where the optimiser sees that memory is global or
/// the workgroup's, it takes that memory's instruction. Orderings are made of relaxed operations and fences.
///
/// An address is never that of a lane's own memory. What no scope but the system's may hope for is memory of the host, for which
/// GPUs have few of these instructions: elsewhere the hardware's are used.
fn atomics(target: Target) -> String {
    let amd = matches!(target, Target::Amdgpu(_));
    let mut out = String::from("\n; Atomic operations and fences, by scope.\n");
    let mut add = |text: std::fmt::Arguments| out.write_fmt(text).expect("to a string");
    for (scope, of_amd, of_ptx) in SCOPES {
        let sync = if amd { of_amd } else { of_ptx };
        let space = if amd { ", !noalias.addrspace !910" } else { "" };
        let device = match (amd, scope) {
            (true, "wave" | "workgroup" | "agent") => {
                ", !amdgpu.no.fine.grained.memory !911, !amdgpu.no.remote.memory !911"
            }
            _ => "",
        };
        for (name, ordering) in
            [("acquire", "acquire"), ("release", "release"), ("acq_rel", "acq_rel"), ("seq_cst", "seq_cst")]
        {
            add(format_args!(
                "define linkonce_odr hidden void @amdgpu_device_fence_{name}_{scope}() alwaysinline nounwind {{\n  \
                 fence {sync}{ordering}\n  ret void\n}}\n"
            ));
        }
        for (ty, ir, bytes) in INTEGERS {
            add(format_args!(
                "define linkonce_odr hidden {ir} @amdgpu_device_load_{ty}_{scope}(ptr %p) alwaysinline nounwind {{\n  \
                 %v = load atomic {ir}, ptr %p {sync}monotonic, align {bytes}{space}\n  ret {ir} %v\n}}\n\
                 define linkonce_odr hidden void @amdgpu_device_store_{ty}_{scope}(ptr %p, {ir} %v) alwaysinline nounwind \
                 {{\n  store atomic {ir} %v, ptr %p {sync}monotonic, align {bytes}{space}\n  ret void\n}}\n\
                 define linkonce_odr hidden {ir} @amdgpu_device_swap_if_{ty}_{scope}(ptr %p, {ir} %e, {ir} %v) alwaysinline \
                 nounwind {{\n  %both = cmpxchg ptr %p, {ir} %e, {ir} %v {sync}monotonic monotonic, align \
                 {bytes}{space}\n  %old = extractvalue {{ {ir}, i1 }} %both, 0\n  ret {ir} %old\n}}\n"
            ));
        }
        let integers = INTEGERS.iter().flat_map(|ty| INTEGER_OPS.iter().map(move |op| (ty, op, "")));
        let floats = FLOATS.iter().flat_map(|ty| FLOAT_OPS.iter().map(move |op| (ty, op, device)));
        let pairs = PAIRS.iter().map(|ty| (ty, &FLOAT_OPS[0], device));
        for (&(ty, ir, bytes), &(name, op), device) in integers.chain(floats).chain(pairs) {
            // Two halves travel as a word, which every ABI has.
            let (outer, word) = if ir.starts_with('<') { ("i32", true) } else { (ir, false) };
            let (before, value, after, result) = match word {
                true => (
                    format!("  %w = bitcast i32 %v to {ir}\n"),
                    "%w",
                    format!("  %r = bitcast {ir} %old to i32\n"),
                    "%r",
                ),
                false => (String::new(), "%v", String::new(), "%old"),
            };
            add(format_args!(
                "define linkonce_odr hidden {outer} @amdgpu_device_{name}_{ty}_{scope}(ptr %p, {outer} %v) alwaysinline \
                 nounwind {{\n{before}  %old = atomicrmw {op} ptr %p, {ir} {value} {sync}monotonic, align \
                 {bytes}{space}{device}\n{after}  ret {outer} {result}\n}}\n"
            ));
        }
    }
    if amd {
        out.push_str("\n!910 = !{i32 5, i32 6}\n!911 = !{}\n");
    }
    out
}

fn dot2(gfx: Gfx) -> &'static str {
    match (gfx.generation(), gfx.isa()) {
        (Generation::Cdna, _) | (_, Gfx::Gfx1010) => include_str!("intrinsics/no_dot2.ll"),
        _ => include_str!("intrinsics/dot2.ll"),
    }
}

fn dot4(gfx: Gfx) -> &'static str {
    match (gfx.generation(), gfx.isa()) {
        (_, Gfx::Gfx1010) => include_str!("intrinsics/no_dot4.ll"),
        (Generation::Gfx11 | Generation::Gfx12, _) => include_str!("intrinsics/sudot4.ll"),
        _ => include_str!("intrinsics/sdot4.ll"),
    }
}

/// gfx12's WMMA needs its operands in other lanes, and is not used yet.
fn matrix(gfx: Gfx) -> &'static str {
    match (gfx.generation(), gfx.isa()) {
        // gfx908 has no matrix instructions for f64, and whether there are any is one constant for all types.
        (_, Gfx::Gfx906 | Gfx::Gfx908) => {
            concat!(include_str!("intrinsics/no_matrix.ll"), include_str!("intrinsics/no_matrix64.ll"))
        }
        (Generation::Cdna, Gfx::Gfx90a) => {
            concat!(include_str!("intrinsics/mfma.ll"), include_str!("intrinsics/mfma_i8.ll"))
        }
        (Generation::Cdna, _) => {
            concat!(include_str!("intrinsics/mfma.ll"), include_str!("intrinsics/mfma_i8_wide.ll"))
        }
        (Generation::Gfx11, _) => include_str!("intrinsics/wmma.ll"),
        (Generation::Gfx10 | Generation::Gfx12, _) => include_str!("intrinsics/no_matrix.ll"),
    }
}
