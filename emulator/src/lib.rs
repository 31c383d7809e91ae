//! Exact AMDGPU emulator: runs the code objects that LLVM makes for AMD GPUs on the CPU.
//!
//! A [`CodeObject`] is parsed from an ELF file (or a Clang offload bundle); that much needs no feature and is what
//! build scripts use. Compressed bundles need `exec`; [`FatBinary`] finds those of a program. With the feature `exec` (a default), a [`Machine`] is one GPU with its memory. It loads code
//! objects and runs kernels; a launch gives a [`Report`], or a [`FaultReport`] that says what the kernel did wrong
//! and where: a [`Fault`] with the facts as fields, kernel, workgroup, wave, lane, instruction and source line.
//! Nothing that a code object or a kernel does makes the emulator panic or crash. A kernel's instructions are decoded
//! when it is first launched, and source lines are looked up when a report needs them.
//!
//! On x86-64 it needs AVX2 and what came with it (Intel since Haswell, AMD since Excavator). The feature `any-x86-64` brings
//! handlers for every other CPU; compiling the crate then takes 1.6 times as long. There, kernels that run long are compiled
//! for the host, with the same results, faults and places as the interpreter's; [`LaunchOptions::jit`] turns that off.
//!
//! ```no_run
//! use amdgpu_emulator::{CodeObject, Launch, LaunchOptions, Machine, MachineOptions};
//!
//! let object = CodeObject::parse(&std::fs::read("kernels.elf")?)?;
//! let machine = Machine::new(object.gfx(), MachineOptions::default())?;
//! let kernel = machine.load(&object)?.kernel("scale").ok_or("no such kernel")?;
//!
//! let buffer = machine.alloc(4096)?;
//! machine.write(buffer, &[0; 4096])?;
//! let mut kernarg = buffer.to_le_bytes().to_vec();
//! kernarg.extend(2f32.to_le_bytes());
//!
//! let options = LaunchOptions::default();
//! let launch = Launch { grid: [4, 1, 1], block: [256, 1, 1], dynamic_lds: 0, kernarg: &kernarg, options };
//! match machine.launch(&kernel, &launch) {
//!     Ok(report) => println!("{} wave instructions", report.wave_instructions),
//!     Err(fault) => println!("{fault}"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is the same every time
//! A launch gives the same memory, counts and report, whatever the number of threads. Workgroups run in parallel;
//! a kernel whose result could depend on their order (a float atomic, an atomic that returns the old value; in check
//! mode also an atomic load or a cache invalidation) runs on one thread. If several threads find something in check
//! mode, the launch is undone and runs again on one thread for its report. [`LaunchOptions::shuffle`] runs workgroups
//! and waves in another order, to find out whether a result depends on it; [`LaunchOptions::perturb`] moves results
//! that the ISA leaves open (`v_exp_f32`, `v_rcp_f32`, …) within their stated error.
//!
//! # Check mode
//! Out-of-bounds accesses, use after free, misaligned atomics, traps (what a panic becomes), endless loops and jumps
//! into nowhere are always faults. [`LaunchOptions::check`] also finds reads of memory, LDS and registers that nobody
//! has written, races in LDS and global memory, barriers that not all waves reach, or a wave with some of its lanes,
//! uses of what lanes read of lanes that are off, and registers that are used before the load into them was waited for.
//! What orders two accesses: barriers, if the earlier one was waited for before the barrier, and atomics with what their orderings
//! become in machine code, waits for stores before a release and cache invalidations behind an acquire. Each thread, of
//! at most eight, makes notes that take four times the memory that it accesses. A report says which allocation an
//! address is in or next to, and what [`Machine::alloc_labelled`] was told about it:
//!
//! ```
//! # use amdgpu_emulator::{Gfx, Machine, MachineOptions};
//! # let mut options = MachineOptions::default();
//! # options.memory_bytes = 1 << 26;
//! # let machine = Machine::new(Gfx::Gfx1100, options)?;
//! let weights = machine.alloc_labelled(4096, "weights of layer 3")?;
//! let text = machine.allocation(weights + 8).ok_or("no allocation")?.to_string();
//! assert!(text.ends_with(", weights of layer 3)"), "{text}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Profile mode
//! [`LaunchOptions::profile`] counts, instruction by instruction and source line by source line, executions, active
//! lanes, bytes that were needed and bytes of the cache lines touched, LDS bank conflicts, atomics and barriers. A
//! [`Profile`] is a table (`Display`), JSON (`serde`), folded stacks for flame graphs ([`Profile::folded`]) and
//! annotated source ([`Profile::annotated`]).
//!
//! # Speed
//! `cargo bench` prints it in millions of lane instructions (instructions × work-items) a second. On two cores of an
//! Intel Xeon (AVX-512) that did nothing else: 3,055 for an affine map of 1 Mi f32 on gfx1100, 6,394 for a polynomial of 64
//! multiply-adds, 3,627 for a product of matrices through LDS: 31 to 143 times a scalar interpreter. Check mode takes
//! 2.9, 1.9 and 3.5 times as long. From the bytes of a code object of 6.5 MB and
//! 270 kernels to a machine that has it with its largest kernel decoded (3,856 instructions): 4.1 ms on an AMD EPYC
//! (Zen 4), 1.2 ms more where the bytes have to be copied. Its first fault report reads debug information for milliseconds; further ones take a
//! microsecond.
//!
//! # What to trust
//! `INSTRUCTIONS.md` lists for each target which instructions are exact, which are exact in a chosen order, which are
//! within a stated error and which are unsupported; a test writes it from the tables. Decoding reproduces LLVM's text
//! for every recorded encoding of a compute instruction; `DECODING.md` counts them, and what is left out. Random
//! programs are compared with a scalar interpreter that shares only the decoder.
//! Ten million hostile cases have been run: 5 million mutated code objects, and 5 million programs of random
//! instructions, most of them with mutated bytes; `tests/hostile.rs` says how, and has the same for offload bundles.
//! `fuzz/` has all of it under libFuzzer: with AddressSanitizer it has run 127,000 code objects and 128,000 programs, and found one code object that took too
//! long, which is a test now.
//!
//! # What is left out
//! Images, exports, interpolation and ray tracing, typed and formatted buffers and the global data share: these decode,
//! and fault as unsupported when they are reached. Caches are not modelled: every access sees memory at once, so a
//! missing cache control shows only as a race. Workgroups that wait for each other by global wave sync (`ds_gws_…`) run by
//! turns on one thread, at most 256 at a time; in check mode one behind the other, so there it is a deadlock.

// Sources that tests of the crate share with its test and benchmark programs name it so.
#[cfg(test)]
extern crate self as amdgpu_emulator;

/// People read errors, also when `main` returns them or `unwrap` fails: their `Debug` is their text.
macro_rules! debug_is_display {
    ($($error:ty),*) => {$(
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    )*};
}

pub mod bundle;
pub mod code_object;
#[cfg(feature = "exec")]
pub mod decode;
#[cfg(feature = "exec")]
mod dispatch;
#[cfg(feature = "exec")]
#[allow(clippy::needless_range_loop, reason = "a loop over lanes indexes several rows alike")]
mod exec;
#[cfg(feature = "exec")]
pub mod fault;
pub mod geometry;
pub mod gfx;
#[cfg(feature = "exec")]
pub mod inst;
pub mod listing;
#[cfg(feature = "exec")]
pub mod machine;
#[cfg(feature = "exec")]
pub mod memory;
#[cfg(feature = "exec")]
pub mod profile;
#[cfg(feature = "exec")]
pub mod report;
#[cfg(feature = "exec")]
mod source;
pub mod specs;
#[cfg(feature = "exec")]
pub mod trace;

pub use bundle::{BundleError, FatBinary};
pub use code_object::{
    ArgKind, CodeObject, Features, HiddenArg, KernelArg, KernelInfo, ObjectError, retarget,
};
#[cfg(feature = "exec")]
pub use exec::op::Unit;
#[cfg(feature = "exec")]
pub use fault::{Fault, FaultReport};
pub use geometry::{Geometry, GeometryError, Limits};
pub use gfx::{CodeTarget, Generation, Generic, Gfx, UnknownGfx};
#[cfg(feature = "exec")]
pub use machine::{
    Interrupt, Jit, Kernel, Launch, LaunchOptions, LoadError, LoadedModule, Machine, MachineError,
    MachineOptions, Output, PacketLaunch, Stream, Watch,
};
#[cfg(feature = "exec")]
pub use memory::{Allocation, MemoryError};
#[cfg(feature = "exec")]
pub use profile::Profile;
#[cfg(feature = "exec")]
pub use report::{Finding, Report, Running};
#[cfg(feature = "exec")]
pub use source::demangle;
