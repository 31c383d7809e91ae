//! What a launch executed, told step by step to who asks: what a model of time is fed with.
//!
//! A [`Tracer`] in [`LaunchOptions::trace`](crate::LaunchOptions::trace) hears of the launch, then gives each thread a
//! [`Recorder`], which hears of workgroups, of each wave's instructions in their order, and of the addresses that they access.

use std::fmt;
use std::sync::Arc;

use crate::code_object::KernelInfo;
use crate::fault::{Access, SourceLine};
use crate::gfx::Gfx;
use crate::inst::Inst;

/// What a launch is.
#[non_exhaustive]
pub struct TracedLaunch<'a> {
    /// The kernel.
    pub info: &'a KernelInfo,
    /// The target.
    pub gfx: Gfx,
    /// Lanes of a wave: 32 or 64.
    pub wave_size: u32,
    /// Workgroups along each axis, all of them, also if only a sample runs.
    pub grid: [u32; 3],
    /// Work-items of a full workgroup along each axis.
    pub block: [u32; 3],
    /// Bytes of LDS of a workgroup, those of the launch included.
    pub lds: u32,
    /// Whether the waves of a workgroup may run on different compute units: WGP mode, threadgroup split mode.
    pub is_split: bool,
    /// The code object's instructions; recorders name them by their indices. `None` where bytes are not an instruction.
    pub instructions: &'a [Option<Inst>],
    /// The address of an instruction, relative to the load address.
    pub address_of: &'a dyn Fn(u32) -> u64,
    /// The source position of an instruction, innermost function first.
    pub source_of: &'a dyn Fn(u32) -> Vec<SourceLine>,
}

/// One access of half a wave; the scalar unit's is one of one lane.
#[non_exhaustive]
pub struct Accessed<'a> {
    /// Index of the instruction.
    pub index: u32,
    /// LDS rather than memory: addresses are offsets in the workgroup's LDS.
    pub lds: bool,
    /// What it does.
    pub access: Access,
    /// Which half of the wave: 0 or 1.
    pub half: u8,
    /// Lanes that take part.
    pub mask: u32,
    /// Each lane's address.
    pub addresses: &'a [u64; 32],
    /// Bytes of each lane.
    pub size: u32,
    /// Base address of the allocation that the instruction accessed last; zero for LDS.
    pub allocation: u64,
}

/// Hears of a launch.
pub trait Tracer: Send + Sync {
    /// A launch begins.
    fn launch(&self, launch: &TracedLaunch<'_>);
    /// What one thread's workgroups are told to.
    fn recorder(&self) -> Box<dyn Recorder>;
}

/// Hears of one thread's workgroups, one behind the other.
pub trait Recorder: Send {
    /// A workgroup with so many waves begins. Its position in the order of execution is its number, x first.
    fn begin(&mut self, position: u64, waves: u32);
    /// A wave executes an instruction with EXEC as it is.
    fn instruction(&mut self, wave: u32, index: u32, exec: u64);
    /// The instruction of which [`Recorder::instruction`] told last accesses memory or LDS.
    fn access(&mut self, wave: u32, access: &Accessed<'_>);
    /// The workgroup has ended.
    fn end(&mut self);
}

/// A tracer as an option of launches.
#[derive(Clone)]
pub struct Trace(pub Arc<dyn Tracer>);

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trace(tracer)")
    }
}
