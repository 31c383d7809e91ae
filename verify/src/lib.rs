//! Property tests of kernels against the models in [`mod@reference`], for the tests of the kernels and
//! for `candle-amdgpu verify`.
//!
//! The engine draws shapes, layouts, values and geometries ([`Draw`]), a [`Family`] turns them into a [`Call`] and computes
//! what must come out ([`Expected`]), and the engine launches the kernel through the same checked path as the typed
//! wrappers, with guard zones around all memory, and compares. A failure is shrunk to the smallest draw that still
//! fails.
//!
//! # Adding a family
//! 1. `src/reference/NAME.rs`: the model of one element, or of the whole operation, on
//!    [`Value`](crate::reference::Value)s, rounded wherever the kernel rounds.
//! 2. `src/NAME.rs`: a unit struct that implements [`Family`]. `call` gives one [`Input`] for each parameter
//!    of the kernel, by its name in the signature; [`Draw`] has layouts, sizes, values and small numbers to make them
//!    of. `expected` computes the outputs. Dtypes come from the signature, so that one function serves all kernels
//!    of an operation.
//! 3. An entry in [`FAMILIES`]. A kernel of the module for which `call` gives `None` is reported as unverified, which
//!    is a failure: no kernel goes untested unnoticed.

mod affine;
mod binary;
mod bounds;
mod call;
mod cast;
mod compare;
mod conv;
mod draw;
mod elementwise;
mod engine;
mod fill;
mod gemm;
mod indexing;
mod launch;
mod quantized;
mod reduce;
pub mod reference;
mod rng;
mod sort;
mod ternary;
mod unary;

pub use bounds::check_bounds;
pub use call::{Call, Expected, Input, Operand, Tolerance};
pub use compare::Miss;
pub use draw::{Draw, Grid, Random, Values};
pub use engine::{Options, Outcome, verify, verify_all};

use candle_amdgpu::{Error, Kernel, Module};

/// Whether the devices are NVIDIA's, for which some kernels go other ways.
fn is_cuda() -> bool {
    amdhip64::backend_info().is_ok_and(|info| matches!(info.kind, amdhip64::BackendKind::Cuda { .. }))
}

/// How the kernels of one family are verified.
pub trait Family: Sync {
    /// The family's kernels.
    fn module(&self) -> &'static Module;

    /// A launch of `kernel` made of `draw`; `None` if this family does not know the kernel.
    fn call(&self, kernel: &'static Kernel, draw: &Draw) -> Option<Call>;

    /// What the memory that the kernel writes must hold afterwards. Memory that is not listed must be unchanged.
    fn expected(&self, call: &Call) -> Vec<Expected>;

    /// Whether the kernel must find an error in its data, which the next synchronisation then reports.
    fn is_faulty(&self, call: &Call) -> bool {
        let _ = call;
        false
    }

    /// Whether `error` is one that a faulty call may report.
    fn is_fault(&self, call: &Call, error: &Error) -> bool {
        let _ = (call, error);
        false
    }
}

/// Every family that can be verified.
pub const FAMILIES: &[&dyn Family] = &[
    &affine::Affine,
    &binary::Binary,
    &cast::Cast,
    &conv::Conv,
    &fill::Fill,
    &gemm::Gemm,
    &rng::Rng,
    &indexing::Indexing,
    &quantized::Quantized,
    &reduce::Reduce,
    &sort::Sort,
    &ternary::Ternary,
    &unary::Unary,
];

/// The family of that name.
pub fn family(name: &str) -> Option<&'static dyn Family> {
    FAMILIES.iter().copied().find(|family| family.module().name() == name)
}
