//! Candle's GPU kernels in Rust, on AMD GPUs and on an exact AMDGPU emulator.
//!
//! A [`Device`] is a GPU, or an emulated one where there is none. On its [`Stream`]s, memory is a
//! [`DeviceBuffer`], and each kernel is a function in [`kernels`] whose arguments are checked: types by the
//! compiler, lengths and geometry before the launch.
//!
//! ```
//! use candle_amdgpu::{Device, DeviceBuffer, LaunchConfig, Layout, kernels::affine::affine_f32};
//!
//! let stream = Device::new(0)?.stream()?;
//! let x = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0, 3.0])?;
//! let mut y = DeviceBuffer::zeros(&stream, 3)?;
//! affine_f32(&stream, LaunchConfig::auto(), &Layout::flat(3), &x, &mut y, 2.0, 0.5)?;
//! assert_eq!(y.to_vec()?, [2.5, 4.5, 6.5]);
//! # Ok::<(), candle_amdgpu::Error>(())
//! ```
//!
//! The environment variable `CANDLE_AMDGPU_DEVICE` selects the devices: `auto` (the default: real ones if there are
//! any), `hip`, `emulator`, or `emulator:gfx1100`.
//!
//! Features: `kernels` (default) includes Candle's kernels; without it the crate is a runtime for kernels of your own.
//! `rocm-rs` lets the wrappers take rocm-rs's memory and streams. Host models of the kernels and the property tests of
//! `candle-amdgpu verify` are in a crate of their own, `candle-amdgpu-verify`, and so is that program, `candle-amdgpu-cli`.

// Generated wrappers name this crate as their users do.
extern crate self as candle_amdgpu;

mod access;
mod buffer;
mod cache;
#[cfg(feature = "kernels")]
mod candle;
mod count;
mod device;
mod element;
mod error;
mod error_slot;
mod event;
mod function;
pub mod generated;
mod graph;
#[cfg(feature = "kernels")]
mod ids;
pub mod kernel;
mod key;
mod launch;
mod layout;
mod legacy;
mod module;
#[cfg(feature = "kernels")]
mod ops;
mod pinned;
mod ptx;
#[cfg(feature = "rocm-rs")]
mod rocm;
mod staging;
mod stream;
mod sys;

pub use access::{DeviceRead, DeviceWrite, Memory, Null, ReadOrNull, WriteOrNull};
pub use amdgpu_emulator::{CodeObject, KernelInfo};
pub use buffer::{DeviceBuffer, DeviceView, DeviceViewMut, bounds};
#[cfg(feature = "kernels")]
pub use candle::{
    AFFINE, ALL_IDS, BINARY, CAST, CONV, FILL, GEMM, INDEXING, Id, QUANTIZED, REDUCE, RNG, SORT, TERNARY,
    UNARY,
};
pub use count::Count;
pub use device::{Device, MemoryInfo, Properties, backend};
pub use element::{Element, KernelStructure, KernelValue, bf16, f8e4m3, f16};
pub use error::{Error, Result};
pub use event::Event;
pub use function::Function;
pub use graph::{CaptureMode, CaptureStatus, Graph};
#[cfg(feature = "kernels")]
pub use ids::{check_ids, ids_below};
pub use kernel::{Kernel, Module};
pub use launch::{LaunchBuilder, LaunchConfig};
pub use layout::Layout;
pub use module::LoadedModule;
#[cfg(feature = "kernels")]
pub use ops::{gemm, reduce, rng, sort};
pub use pinned::PinnedBuffer;
pub use stream::{AsStream, Stream, StreamRef};

/// Candle's kernels: a module for each family, with a launch wrapper for each kernel.
#[cfg(feature = "kernels")]
pub mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}
