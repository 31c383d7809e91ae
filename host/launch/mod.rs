//! Launches: one pipeline with three fronts.
//!
//! ```text
//! typed wrapper (typed.rs) ─┐
//! argument by argument      ├─ slots ─ extents ─ geometry ─ admit ─ order ─ enqueue
//! addresses (by_hand.rs) ───┘ slot.rs  extents.rs geometry.rs └── enqueue.rs ────┘
//! ```
//!
//! Each argument becomes a [`Slot`]. For a typed launch, extents are what the signature says about memory: layouts fill in
//! arguments, and lengths are checked. The geometry follows from what the caller says ([`LaunchConfig`]), what the kernel states
//! and the values of the arguments. A function admits it if the device and the code object support it; what it enqueues then is
//! ordered with the streams that own the memory. Nothing that a kernel computes belongs here.

mod by_hand;
mod config;
mod enqueue;
mod extents;
mod geometry;
mod slot;
mod typed;

pub use by_hand::LaunchBuilder;
pub use config::LaunchConfig;
pub use geometry::{LaunchGeometry, Rest};
pub use slot::Slot;
pub use typed::{launch, resolve};
