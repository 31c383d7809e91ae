//! HIP on emulated devices.
//!
//! One [`Machine`](amdgpu_emulator::Machine) per device does the work; what is here is HIP's own: handles, the
//! current device, streams and events, which memory is whose, and the checks that come before a launch.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;

use amdgpu_emulator::{Gfx, LaunchOptions, MachineError};

use self::backlog::Backlog;
use self::device::Device;
use self::graph::{Captures, GraphMemories};
use self::handles::Handles;
use self::memory::Blocks;
use self::peers::Peers;
use self::registry::Registry;
use self::stream::{Kind, Stream};
use self::virtual_memory::VirtualMemory;
use crate::error::Error;

pub(crate) mod array;
pub(crate) mod backlog;
pub(crate) mod device;
pub(crate) mod graph;
pub(crate) mod handles;
pub(crate) mod launch;
pub(crate) mod memory;
pub(crate) mod module;
pub(crate) mod peers;
pub(crate) mod pool;
pub(crate) mod properties;
pub(crate) mod registry;
pub(crate) mod stream;
pub(crate) mod values;
pub(crate) mod virtual_memory;
pub(crate) mod work;

/// All emulated devices and everything that belongs to them.
pub(crate) struct Runtime {
    pub(crate) devices: Vec<Device>,
    pub(crate) handles: Handles,
    /// Shared with the modules, whose variables are memory too.
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) registry: Registry,
    pub(crate) captures: Captures,
    pub(crate) graph_memories: GraphMemories,
    pub(crate) peers: Peers,
    pub(crate) backlog: Backlog,
    pub(crate) virtual_memory: VirtualMemory,
}

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
    /// This thread's own default stream on each device where it has used it.
    static PER_THREAD: RefCell<HashMap<usize, Arc<Stream>>> = RefCell::default();
}

impl Runtime {
    pub(crate) fn new(targets: &[Gfx], options: &LaunchOptions) -> Result<Runtime, MachineError> {
        let handles = Handles::new();
        let devices = targets
            .iter()
            .enumerate()
            .map(|(ordinal, gfx)| Device::new(ordinal, *gfx, &handles, options))
            .collect::<Result<_, _>>()?;
        Ok(Runtime {
            devices,
            handles,
            blocks: Arc::default(),
            registry: Registry::default(),
            captures: Captures::default(),
            graph_memories: GraphMemories::default(),
            peers: Peers::default(),
            backlog: Backlog::default(),
            virtual_memory: VirtualMemory::default(),
        })
    }

    pub(crate) fn targets(&self) -> Vec<Gfx> {
        self.devices.iter().map(|device| device.gfx).collect()
    }

    /// The device with this ordinal.
    pub(crate) fn device(&self, ordinal: i32) -> Result<&Device, Error> {
        let count = self.devices.len();
        usize::try_from(ordinal)
            .ok()
            .and_then(|at| self.devices.get(at))
            .ok_or(Error::NoSuchDevice { ordinal, count })
    }

    /// The calling thread's device.
    pub(crate) fn current(&self) -> &Device {
        &self.devices[CURRENT.get()]
    }

    pub(crate) fn set_current(&self, ordinal: i32) -> Result<(), Error> {
        CURRENT.set(self.device(ordinal)?.ordinal);
        Ok(())
    }

    /// The stream that a handle stands for; null and 1 are the default stream, 2 is the thread's own one.
    pub(crate) fn stream(&self, handle: *mut c_void) -> Result<Arc<Stream>, Error> {
        match handle as usize {
            0 | 1 => Ok(self.current().default_stream.clone()),
            2 => {
                let device = self.current();
                let stream = PER_THREAD.try_with(|streams| {
                    let new = || device.new_stream(Kind::Blocking, 0, 0);
                    streams.borrow_mut().entry(device.ordinal).or_insert_with(new).clone()
                });
                // A thread that is ending has no stream of its own any more.
                Ok(stream.unwrap_or_else(|_| device.default_stream.clone()))
            }
            _ => self.handles.get(handle),
        }
    }

    /// Waits for a stream, and for those that it keeps order with; the first fault found is the error.
    pub(crate) fn wait(&self, stream: &Stream) -> Result<(), Error> {
        self.settle(stream);
        self.take_faults(stream)
    }

    /// Waits until nothing of a stream, and of those that it keeps order with, waits for a value.
    fn settle(&self, stream: &Stream) {
        self.backlog.settle(stream);
        if stream.kind == Kind::Default {
            self.ordered(stream).iter().for_each(|stream| self.backlog.settle(stream));
        }
    }

    /// The streams that keep order with a device's default stream, and that itself.
    fn ordered(&self, stream: &Stream) -> Vec<Arc<Stream>> {
        let mut streams = self.devices[stream.device].streams();
        streams.retain(|stream| stream.kind != Kind::NonBlocking);
        streams
    }

    /// Takes the faults of a stream's work so far, and of those that it keeps order with; the first one is the error.
    pub(crate) fn take_faults(&self, stream: &Stream) -> Result<(), Error> {
        if stream.kind != Kind::Default {
            return stream.wait();
        }
        self.ordered(stream).iter().map(|stream| stream.wait()).fold(Ok(()), Result::and)
    }

    /// Whether a stream's work is done, and whether it had a fault.
    pub(crate) fn query(&self, stream: &Stream) -> Result<(), Error> {
        if self.backlog.has(stream) {
            return Err(Error::NotReady);
        }
        stream.fault()
    }

    /// Waits until nothing runs on a device, and leaves faults for whoever asks for them.
    pub(crate) fn wait_idle(&self, device: &Device) {
        for stream in device.streams() {
            self.backlog.settle(&stream);
            stream.wait_idle();
        }
    }

    /// Waits for all work of a device; the first fault found is the error, and none is kept.
    pub(crate) fn synchronize(&self, device: &Device) -> Result<(), Error> {
        device.streams().iter().for_each(|stream| self.backlog.settle(stream));
        device.streams().iter().map(|stream| stream.wait()).fold(Ok(()), Result::and)
    }

    /// Forgets everything that a device holds: memory, streams, events, modules, pending faults.
    pub(crate) fn reset(&self, device: &Device) {
        use handles::Object;
        self.backlog.forget(device.ordinal);
        drop(self.synchronize(device));
        let ordinal = device.ordinal;
        self.handles.remove_if(|object| match object {
            Object::Stream(stream) => stream.device == ordinal,
            Object::Event(event) => event.device == ordinal,
            Object::Module(module) => module.device == ordinal,
            Object::Function(function) => function.device == ordinal,
            Object::Array(array) => array.device == ordinal,
            // They are of no device, as a program sees it.
            Object::Pool(_) | Object::Graph(_) | Object::Node(_) | Object::Exec(_) | Object::Kept(_) => false,
        });
        self.registry.unload(ordinal);
        self.end_peer_access(device);
        drop(self.forget_virtual_memory(device));
        self.free_all(device);
        device.reset();
    }
}
