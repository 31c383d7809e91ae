//! One emulated device.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use amdgpu_emulator::{
    FaultReport, Gfx, LaunchOptions, Machine, MachineError, MachineOptions, MemoryError, Report,
};

use super::handles::Handles;
use super::pool::Pool;
use super::stream::{Kind, Stream};
use crate::error::Error;
use crate::report::Counters;
use amdgpu_emulator::specs::{Specs, specs};
use amdgpu_journal::record::LaunchRecord;

/// Launch reports that are kept for a profile; a longer run keeps the latest.
const KEPT_RECORDS: usize = 1 << 16;

pub(crate) struct Device {
    pub(crate) ordinal: usize,
    pub(crate) gfx: Gfx,
    pub(crate) specs: Specs,
    pub(crate) machine: Arc<Machine>,
    /// Held for writing by work of the default stream, for reading by work of blocking streams.
    pub(crate) order: RwLock<()>,
    pub(crate) default_stream: Arc<Stream>,
    /// Every other stream, for as long as somebody holds it.
    streams: Mutex<Vec<Weak<Stream>>>,
    /// Handle of the pool that the device has from the start.
    pub(crate) default_pool: usize,
    /// Handle of the pool that `hipMallocAsync` takes from.
    pub(crate) pool: AtomicU64,
    /// What `hipSetDeviceFlags` said.
    pub(crate) flags: AtomicU64,
    /// Bytes of stack that `hipDeviceSetLimit` has set.
    pub(crate) stack: AtomicU32,
    options: Mutex<LaunchOptions>,
    launches: AtomicU64,
    wave_instructions: AtomicU64,
    lane_instructions: AtomicU64,
    records: Mutex<Vec<LaunchRecord>>,
    last_fault: Mutex<Option<(String, FaultReport)>>,
}

impl Device {
    pub(crate) fn new(
        ordinal: usize,
        gfx: Gfx,
        handles: &Handles,
        launches: &LaunchOptions,
    ) -> Result<Device, MachineError> {
        let pool: *mut c_void = handles.insert(Arc::new(Pool::new(ordinal)));
        let specs = specs(gfx);
        let mut options = MachineOptions::default();
        options.memory_bytes = specs.memory_bytes;
        Ok(Device {
            ordinal,
            gfx,
            machine: Arc::new(Machine::new(gfx, options)?),
            specs,
            order: RwLock::default(),
            default_stream: Arc::new(Stream::new(ordinal, Kind::Default, 0, 0)),
            streams: Mutex::default(),
            default_pool: pool as usize,
            pool: AtomicU64::new(pool as u64),
            flags: AtomicU64::new(0),
            stack: AtomicU32::new(LaunchOptions::default().stack_size),
            options: Mutex::new(launches.clone()),
            launches: AtomicU64::new(0),
            wave_instructions: AtomicU64::new(0),
            lane_instructions: AtomicU64::new(0),
            records: Mutex::default(),
            last_fault: Mutex::default(),
        })
    }

    /// Makes a stream.
    pub(crate) fn new_stream(&self, kind: Kind, flags: u32, priority: i32) -> Arc<Stream> {
        let stream = Arc::new(Stream::new(self.ordinal, kind, flags, priority));
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(&stream));
        stream
    }

    /// Every stream, the default one last.
    pub(crate) fn streams(&self) -> Vec<Arc<Stream>> {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.iter().filter_map(Weak::upgrade).chain([self.default_stream.clone()]).collect()
    }

    /// The HIP error for what the machine's memory said.
    pub(crate) fn memory_error(&self, error: MemoryError) -> Error {
        match error {
            MemoryError::OutOfMemory { bytes, free, total } => {
                Error::OutOfMemory { size: bytes, device: self.ordinal, free, total }
            }
            other => Error::Memory { device: self.ordinal, problem: other.to_string() },
        }
    }

    pub(crate) fn options(&self) -> LaunchOptions {
        let mut options = self.options.lock().unwrap_or_else(PoisonError::into_inner).clone();
        options.stack_size = self.stack.load(Ordering::Relaxed);
        options
    }

    pub(crate) fn set_options(&self, options: LaunchOptions) {
        self.stack.store(options.stack_size, Ordering::Relaxed);
        *self.options.lock().unwrap_or_else(PoisonError::into_inner) = options;
    }

    /// Counts a launch that ran to its end.
    pub(crate) fn count(&self, report: &Report) {
        self.launches.fetch_add(1, Ordering::Relaxed);
        self.wave_instructions.fetch_add(report.wave_instructions, Ordering::Relaxed);
        self.lane_instructions.fetch_add(report.lane_instructions, Ordering::Relaxed);
    }

    pub(crate) fn counters(&self) -> Counters {
        Counters {
            launches: self.launches.load(Ordering::Relaxed),
            wave_instructions: self.wave_instructions.load(Ordering::Relaxed),
            lane_instructions: self.lane_instructions.load(Ordering::Relaxed),
        }
    }

    /// Keeps a launch's report for the profile.
    pub(crate) fn keep(&self, record: LaunchRecord) {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if records.len() == KEPT_RECORDS {
            records.remove(0);
        }
        records.push(record);
    }

    pub(crate) fn take_records(&self) -> Vec<LaunchRecord> {
        std::mem::take(&mut *self.records.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps a fault, with the text that goes to the user.
    pub(crate) fn set_last_fault(&self, text: String, report: FaultReport) {
        *self.last_fault.lock().unwrap_or_else(PoisonError::into_inner) = Some((text, report));
    }

    pub(crate) fn last_fault(&self) -> Option<(String, FaultReport)> {
        self.last_fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn reset(&self) {
        self.pool.store(self.default_pool as u64, Ordering::Relaxed);
        self.flags.store(0, Ordering::Relaxed);
        *self.last_fault.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
