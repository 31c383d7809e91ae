//! Each AMDGPU instruction on two devices, compared bit by bit.
//!
//! [`operation::operations`] lists what a target can do: every arithmetic, scalar and memory instruction of the emulator's
//! instruction tables, with the settings of MODE and the modifiers that matter, and what the compiler makes of divisions, roots
//! and the like. Each has a kernel of a few instructions around the one that is meant. [`compare`] runs an operation on two
//! [`Executor`]s, of which one is usually a card and the other the [`Emulated`] device of the same target, on values at the
//! edges of each format and on random ones, and says which results differ, how, and by how much.
//!
//! ```
//! # fn main() -> Result<(), String> {
//! use amdgpu_conformance::{Emulated, Options, compare, object, operation::operations, targets};
//!
//! let Some(gfx) = targets().next() else { return Ok(()) };
//! let bytes = object(gfx)?;
//! let (mut first, mut second) = (Emulated::new(gfx, &bytes)?, Emulated::new(gfx, &bytes)?);
//! let options = Options { cases: 256, seed: 7, differences: 10 };
//! let add = operations(gfx).into_iter().find(|operation| operation.name == "v_add_f32").ok_or("no addition")?;
//! assert!(compare(&add, &mut first, &mut second, options).runs.iter().all(|run| run.differing == 0));
//! # Ok(())
//! # }
//! ```

mod compare;
mod emulated;
mod inputs;
pub mod operation;

use std::io::Read;

use amdgpu_emulator::{Gfx, retarget};

pub use compare::{Comparison, Difference, Executor, Kinds, Launch, Options, Run, Verdict, compare};
pub use emulated::Emulated;
pub use inputs::{Inputs, edges, inputs};
pub use operation::Accuracy;

// Target, and the compressed code object.
include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// Most memory that unpacking may take, in KiB.
const MEMORY: u32 = 1 << 16;

/// The targets that this build has kernels for, one of each instruction set.
pub fn targets() -> impl Iterator<Item = Gfx> {
    OBJECTS.iter().map(|(gfx, _)| *gfx)
}

/// The compressed code object (LZMA) of each target, for packages.
pub fn packed() -> impl Iterator<Item = (Gfx, &'static [u8])> {
    OBJECTS.iter().copied()
}

/// The code object with all kernels for a target.
///
/// # Errors
/// If this build has none for it: which it has, and how to have others.
pub fn object(gfx: Gfx) -> Result<Vec<u8>, String> {
    let Some((_, packed)) = OBJECTS.iter().find(|(of, _)| of.isa() == gfx.isa()) else {
        let names: Vec<&str> = targets().map(Gfx::name).collect();
        let names = if names.is_empty() { "no target".to_owned() } else { names.join(", ") };
        return Err(format!(
            "this build has the kernels of single instructions for {names}, not for {gfx}: build with CANDLE_AMDGPU_ARCHS={gfx}"
        ));
    };
    let mut bytes = Vec::new();
    lzma_rust2::LzmaReader::new_mem_limit(*packed, MEMORY, None)
        .and_then(|mut reader| reader.read_to_end(&mut bytes))
        .map_err(|error| format!("the code object does not unpack: {error}"))?;
    retarget(&bytes, gfx).map_err(|error| error.to_string())
}
