//! One emulated card of the process.

use std::sync::atomic::AtomicU64;

use amdgpu_emulator::{Gfx, Machine, MachineError};

use crate::card::Card;
use crate::programs::Programs;
use crate::topology;
use crate::window;

/// One emulated card.
pub struct Device {
    /// What it looks like.
    pub card: Card,
    /// What runs its kernels.
    pub machine: Machine,
    /// The code that its kernels have.
    pub programs: Programs,
    /// The number by which ioctls name it.
    pub gpu_id: u32,
    /// Where its doorbells are mapped; 0 before they are.
    pub doorbells: AtomicU64,
}

impl Device {
    /// The card with a number among the process's.
    ///
    /// # Errors
    /// There is no machine.
    ///
    /// # Safety
    /// The window is mapped as long as the result lives.
    pub unsafe fn new(number: usize, gfx: Gfx) -> Result<Device, MachineError> {
        // SAFETY: the caller's contract.
        let machine = unsafe { Machine::over(gfx, window::BASE..window::BASE + window::SIZE)? };
        Ok(Device {
            card: Card::of(gfx),
            machine,
            programs: Programs::default(),
            gpu_id: topology::gpu_id(number),
            doorbells: AtomicU64::new(0),
        })
    }
}
