//! The driver's state of one process.

use std::collections::HashMap;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use amdgpu_emulator::LaunchOptions;
use amdgpu_journal::journal::{self, Entry};
use amdgpu_journal::settings::Settings;

use crate::device::Device;
use crate::events::Events;
use crate::memory::Memory;
use crate::queue::{Queue, Watcher};
use crate::say;
use crate::settings;
use crate::window::Window;

/// What the driver knows of a process.
pub struct Process {
    /// Its number: a child that was forked has a driver of its own.
    pid: u32,
    /// How kernels run.
    pub options: LaunchOptions,
    /// The addresses that cards reach.
    pub window: Window,
    /// The cards.
    pub devices: Vec<Device>,
    /// What is allocated.
    pub memory: Memory,
    /// What the host waits for.
    pub events: Events,
    /// The queues by their numbers.
    pub queues: Mutex<HashMap<u32, Arc<Queue>>>,
    /// What looks after queues that have nothing to do.
    pub watcher: Watcher,
}

static PROCESS: AtomicPtr<Process> = AtomicPtr::new(std::ptr::null_mut());
static OPENING: Mutex<()> = Mutex::new(());

impl Process {
    fn new() -> Result<Process, String> {
        amdgpu_journal::speak_as("candle-amdgpu-kfd");
        let options = Settings::get().map_err(|wrong| wrong.to_string())?.options.clone();
        let targets = settings::targets();
        if targets.is_empty() {
            return Err("there are no cards".into());
        }
        let window =
            Window::new().map_err(|error| format!("cannot reserve the addresses of cards: {error}"))?;
        let devices = targets.iter().enumerate().map(|(number, &gfx)| {
            // SAFETY: the window is mapped as long as the process is there.
            unsafe { Device::new(number, gfx) }.map_err(|error| error.to_string())
        });
        let devices = devices.collect::<Result<Vec<_>, _>>()?;
        journal::write(|| Entry::Devices {
            targets: targets.iter().map(|gfx| gfx.name().to_owned()).collect(),
        });
        Ok(Process {
            pid: std::process::id(),
            options,
            window,
            devices,
            memory: Memory::default(),
            events: Events::default(),
            queues: Mutex::default(),
            watcher: Watcher::default(),
        })
    }

    /// The state of this process, if it has opened the driver.
    pub fn get() -> Option<&'static Process> {
        // SAFETY: the pointer is null or one that `open` has leaked.
        let process = unsafe { PROCESS.load(Ordering::Acquire).as_ref() }?;
        (process.pid == std::process::id()).then_some(process)
    }

    /// As [`Process::get`]; opens the driver if that has not been done.
    pub fn open() -> Option<&'static Process> {
        if let Some(process) = Process::get() {
            return Some(process);
        }
        let _opening = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(process) = Process::get() {
            return Some(process);
        }
        match Process::new() {
            Ok(process) => {
                // It lives as long as the process; that of a parent is lost with its threads.
                let process = Box::leak(Box::new(process));
                PROCESS.store(process, Ordering::Release);
                Some(process)
            }
            Err(problem) => {
                say(problem);
                None
            }
        }
    }

    /// The number of the card that ioctls name so.
    pub fn device(&self, gpu_id: u32) -> Option<usize> {
        self.devices.iter().position(|device| device.gpu_id == gpu_id)
    }

    /// The card's clock: ticks of 100 MHz.
    pub fn ticks() -> u64 {
        nanoseconds(libc::CLOCK_MONOTONIC_RAW) / 10
    }
}

/// A clock of the system.
pub fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
