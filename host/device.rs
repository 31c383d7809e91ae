//! AMD GPUs, real or emulated.

use crate::cache::Recordings;
use crate::error_slot::DeviceErrorSlots;
use crate::module::{LoadedModule, Modules};
use crate::stream;
use crate::sys::{self, hip};
use crate::{Error, Function, Module, Result, Stream};
use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// A GPU, or an emulated one. Copies of it share its modules, so that each is loaded once.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    ordinal: usize,
    properties: Properties,
    modules: Modules,
    error_slots: DeviceErrorSlots,
    recordings: Recordings,
    streams: Mutex<Vec<Weak<stream::Inner>>>,
}

/// What a device is and what it can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Marketing name.
    pub name: String,
    /// Target with its features, as the runtime spells it: `gfx90a:sramecc+:xnack-`.
    pub target: String,
    /// Bytes of memory.
    pub total_memory: u64,
    /// Lanes of a wave.
    pub wave_size: u32,
    /// What workgroups are given to: compute units on CDNA, workgroup processors of two compute units on RDNA, streaming
    /// multiprocessors on NVIDIA GPUs.
    pub multiprocessors: u32,
    /// Most lanes of one workgroup.
    pub max_workgroup_size: u32,
    /// Most lanes of one workgroup in x, y and z.
    pub max_workgroup_dimensions: [u32; 3],
    /// Most workgroups of one grid in x, y and z.
    pub max_grid: [u32; 3],
    /// Most bytes of workgroup memory (LDS) that one workgroup can have.
    pub max_lds_bytes: u32,
    /// Whether allocations can be ordered in a stream.
    pub stream_ordered_memory: bool,
}

impl Properties {
    /// Compute units, as AMD counts them for a card; streaming multiprocessors on NVIDIA GPUs.
    pub fn compute_units(&self) -> u32 {
        let is_rdna = ["gfx10", "gfx11", "gfx12"].iter().any(|family| self.target.starts_with(family));
        self.multiprocessors * if is_rdna { 2 } else { 1 }
    }
}

/// Free and total memory of a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Bytes that can be allocated now.
    pub free: usize,
    /// All bytes.
    pub total: usize,
}

impl Device {
    /// The device with this number.
    ///
    /// # Errors
    /// If there is none, or the runtime cannot be used.
    pub fn new(ordinal: usize) -> Result<Device> {
        static DEVICES: Mutex<Vec<Device>> = Mutex::new(Vec::new());
        let mut devices = DEVICES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(device) = devices.iter().find(|device| device.0.ordinal == ordinal) {
            return Ok(device.clone());
        }
        let count = Device::count()?;
        if ordinal >= count {
            return Err(Error::NoDevice { ordinal, count, backend: backend() });
        }
        let properties = Properties::of(ordinal)?;
        let device = Device(Arc::new(Inner {
            ordinal,
            properties,
            modules: Modules::default(),
            error_slots: DeviceErrorSlots::default(),
            recordings: Recordings::default(),
            streams: Mutex::default(),
        }));
        devices.push(device.clone());
        Ok(device)
    }

    /// How many devices there are.
    ///
    /// # Errors
    /// If the runtime cannot be used.
    pub fn count() -> Result<usize> {
        let mut count = 0;
        // SAFETY: writes the count.
        unsafe { hip!(hipGetDeviceCount(&mut count))? };
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// Every device.
    ///
    /// # Errors
    /// If the runtime cannot be used.
    pub fn all() -> Result<Vec<Device>> {
        (0..Device::count()?).map(Device::new).collect()
    }

    /// The first device of a target such as `gfx1100`.
    ///
    /// # Errors
    /// If there is none.
    pub fn of_arch(arch: &str) -> Result<Device> {
        let devices = Device::all()?;
        let found = devices.iter().map(|device| device.arch().to_owned()).collect();
        devices.into_iter().find(|device| device.arch() == arch).ok_or_else(|| Error::NoSuchArch {
            arch: arch.to_owned(),
            found,
            backend: backend(),
        })
    }

    /// Its number.
    pub fn ordinal(&self) -> usize {
        self.0.ordinal
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.properties.name
    }

    /// Its target without features: `gfx90a`.
    pub fn arch(&self) -> &str {
        let target = &self.0.properties.target;
        target.split(':').next().unwrap_or(target)
    }

    /// What it is and what it can do.
    pub fn properties(&self) -> &Properties {
        &self.0.properties
    }

    /// Free and total memory.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn memory_info(&self) -> Result<MemoryInfo> {
        self.make_current()?;
        let mut info = MemoryInfo { free: 0, total: 0 };
        // SAFETY: writes both numbers.
        unsafe { hip!(hipMemGetInfo(&mut info.free, &mut info.total))? };
        Ok(info)
    }

    /// Waits until everything enqueued on the device is done.
    ///
    /// # Errors
    /// What the runtime reports, including faults of kernels that have run since the last synchronisation.
    pub fn synchronize(&self) -> Result<()> {
        self.make_current()?;
        // SAFETY: has no preconditions.
        unsafe { hip!(hipDeviceSynchronize())? };
        self.error_slots().take()
    }

    /// Whether it is emulated.
    pub fn is_emulated(&self) -> bool {
        amdhip64::counters(self.0.ordinal).is_ok()
    }

    /// Its streams, those that are gone among them.
    pub(crate) fn streams(&self) -> MutexGuard<'_, Vec<Weak<stream::Inner>>> {
        self.0.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its streams that are being recorded.
    pub(crate) fn recordings(&self) -> &Recordings {
        &self.0.recordings
    }

    /// Where kernels record errors that they find in their data.
    pub(crate) fn error_slots(&self) -> &DeviceErrorSlots {
        &self.0.error_slots
    }

    /// A new stream.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn stream(&self) -> Result<Stream> {
        Stream::new(self)
    }

    /// The kernel `name` of a module, which is loaded at the first call for this device. Later calls, from any
    /// thread, only look it up.
    ///
    /// # Errors
    /// If the module was not compiled for this device, cannot be loaded or has no such kernel.
    pub fn get_or_load_func(&self, name: &str, module: &Module) -> Result<Function> {
        LoadedModule::function(&self.load(module)?, name)
    }

    /// The module on this device, loaded at the first call.
    ///
    /// # Errors
    /// If it was not compiled for this device or cannot be loaded.
    pub fn load(&self, module: &Module) -> Result<Arc<LoadedModule>> {
        self.0.modules.get_or_load(self, module)
    }

    /// Loads a code object: an ELF file for this device's target, or a Clang offload bundle that has one.
    ///
    /// # Errors
    /// If the bytes are not such a code object.
    pub fn load_code_object(&self, name: &str, bytes: &[u8]) -> Result<Arc<LoadedModule>> {
        LoadedModule::from_bytes(self, name, bytes).map(Arc::new)
    }

    /// Makes this the calling thread's device, for HIP's functions that take no stream. This crate's own do so themselves.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn make_current(&self) -> Result<()> {
        // SAFETY: any number may be passed.
        unsafe { hip!(hipSetDevice(self.0.ordinal as c_int)) }
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Device) -> bool {
        self.0.ordinal == other.0.ordinal
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({}, {})", self.0.ordinal, self.0.properties.target)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.0.ordinal, self.0.properties.name, self.0.properties.target)
    }
}

/// What runs the devices, real or emulated, and why.
///
/// The environment variable `CANDLE_AMDGPU_DEVICE` selects it.
pub fn backend() -> String {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| match amdhip64::backend_info() {
        Ok(info) => info.reason,
        Err(error) => error.to_string(),
    })
    .clone()
}

impl Properties {
    fn of(ordinal: usize) -> Result<Properties> {
        // SAFETY: a plain C struct of numbers, arrays and pointers, for which zero is a value.
        let mut raw: sys::hipDeviceProp_tR0600 = unsafe { std::mem::zeroed() };
        // SAFETY: writes the struct.
        unsafe { hip!(hipGetDevicePropertiesR0600(&mut raw, ordinal as c_int))? };
        let number = |value: c_int| u32::try_from(value).unwrap_or(0);
        Ok(Properties {
            name: text(&raw.name),
            target: text(&raw.gcnArchName),
            total_memory: raw.totalGlobalMem as u64,
            wave_size: number(raw.warpSize),
            multiprocessors: number(raw.multiProcessorCount),
            max_workgroup_size: number(raw.maxThreadsPerBlock),
            max_workgroup_dimensions: raw.maxThreadsDim.map(number),
            max_grid: raw.maxGridSize.map(number),
            max_lds_bytes: u32::try_from(raw.sharedMemPerBlock).unwrap_or(u32::MAX),
            stream_ordered_memory: raw.memoryPoolsSupported != 0,
        })
    }
}

/// A C array's text, up to its first zero byte.
fn text(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars.iter().map(|&c| c as u8).collect();
    CStr::from_bytes_until_nul(&bytes)
        .map_or_else(|_| String::new(), |text| text.to_string_lossy().into_owned())
}
