//! AMD's kernel driver interface in user space: ROCm's own runtime, unmodified, runs on emulated cards.
//!
//! The library is loaded in front of the C library (`LD_PRELOAD`). It answers the calls that are about `/dev/kfd`, a render
//! node or the driver's topology, and passes on all others. What the runtime then does with queues, signals and memory is
//! what it does with a card: nothing above the driver is replaced. Each process has cards of its own; nothing is left behind
//! by one that ends, however it ends, since there is no file, no socket and no other process.
//!
//! | module | what it answers for |
//! | --- | --- |
//! | [`interpose`] | the C library's functions |
//! | [`topology`], [`card`] | what sysfs says of the cards |
//! | [`ioctl`] | the requests to `/dev/kfd` |
//! | [`window`], [`memory`] | addresses, and what is allocated of them |
//! | [`events`] | what the host waits for |
//! | [`queue`] | doorbells, and a thread for each queue |
//! | [`aql`], [`sdma`] | the packets |
//! | [`programs`] | the code that a packet names |
//!
//! Source of the layouts: the headers of ROCT-Thunk-Interface and ROCR-Runtime (`kfd_ioctl.h`, `hsakmttypes.h`,
//! `amd_hsa_queue.h`, `amd_hsa_signal.h`, `hsa.h`, `sdma_registers.h`), releases 5.2.3.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

pub mod aql;
pub mod card;
pub mod device;
pub mod events;
pub mod interpose;
pub mod ioctl;
pub mod memory;
pub mod process;
pub mod programs;
pub mod queue;
pub mod real;
pub mod sdma;
pub mod settings;
pub mod signal;
pub mod topology;
pub mod window;

use amdgpu_journal::say;
