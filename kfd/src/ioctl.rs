//! The requests to `/dev/kfd` (`kfd_ioctl.h`).
//!
//! A request's number says its kind and the size of its arguments, a structure that the caller has. Errors are the system's
//! numbers; a request that is not answered says its name, once.

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use libc::{c_int, c_ulong};

use crate::events::Waited;
use crate::memory::{Buffer, Shared, flags};
use crate::process::{Process, nanoseconds};
use crate::queue::{DOORBELL, DOORBELLS, Kind, Place, Queue};
use crate::window::{self, Window, pointer};
use crate::{aql, say};

/// The version of the interface that is answered: before shared buffers of DMA, the age of events and the runtime's debugging of
/// exceptions.
const VERSION: (u32, u32) = (1, 11);

/// Where kernels see LDS and scratch memory: the emulator's windows.
const LDS_BASE: u64 = 1 << 48;
const SCRATCH_BASE: u64 = 2 << 48;
/// Bytes of each of the two.
const APERTURE: u64 = 1 << 32;

/// What an offset into `/dev/kfd` or a render node is of, in its upper bits.
const OF_DOORBELLS: u64 = 1 << 62;
/// The page of events' slots, which is memory that the runtime has allocated.
const OF_EVENTS: u64 = 1 << 60;
/// Memory that is mapped already.
pub const OF_IMPORT: u64 = 1 << 61;

/// Queues of a process.
const MOST_QUEUES: u32 = 1024;

macro_rules! arguments {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $ty:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        struct $name { $($field: $ty),* }
    )*};
}

arguments! {
    GetVersion { major: u32, minor: u32 }
    CreateQueue {
        ring: u64, write_pointer: u64, read_pointer: u64, doorbell_offset: u64,
        ring_size: u32, gpu_id: u32, queue_type: u32, percentage: u32, priority: u32, queue_id: u32,
    }
    DestroyQueue { queue_id: u32, pad: u32 }
    UpdateQueue { ring: u64, queue_id: u32, ring_size: u32, percentage: u32, priority: u32 }
    Clocks { gpu: u64, cpu: u64, system: u64, frequency: u64, gpu_id: u32, pad: u32 }
    Apertures { lds: [u64; 2], scratch: [u64; 2], gpuvm: [u64; 2], gpu_id: u32, pad: u32 }
    GetApertures { apertures: u64, count: u32, pad: u32 }
    CreateEvent {
        page_offset: u64, trigger_data: u32, event_type: u32, auto_reset: u32, node_id: u32, event_id: u32, slot: u32,
    }
    Event { event_id: u32, pad: u32 }
    EventData { failure: [u32; 4], address: u64, gpu_id: u32, error: u32, extension: u64, event_id: u32, pad: u32 }
    WaitEvents { events: u64, count: u32, all: u32, timeout: u32, result: u32 }
    Alloc { address: u64, size: u64, handle: u64, mmap_offset: u64, gpu_id: u32, flags: u32 }
    Free { handle: u64 }
    Map { handle: u64, devices: u64, count: u32, success: u32 }
    XnackMode { enabled: i32 }
    AvailableMemory { bytes: u64, gpu_id: u32, pad: u32 }
    QueueGws { queue_id: u32, count: u32, first: u32, pad: u32 }
    TileConfig {
        tiles: u64, macro_tiles: u64, tile_count: u32, macro_tile_count: u32, gpu_id: u32, address_config: u32, banks: u32,
        ranks: u32,
    }
    IpcExport { handle: u64, share: [u32; 4], gpu_id: u32, flags: u32 }
    IpcImport { handle: u64, address: u64, mmap_offset: u64, share: [u32; 4], gpu_id: u32, flags: u32 }
}

/// The arguments of a request.
struct Request {
    at: *mut c_void,
    size: usize,
}

impl Request {
    /// The arguments as a structure; `EINVAL` if the caller's is shorter.
    fn get<'a, T: Copy>(self) -> Result<&'a mut T, c_int> {
        if self.at.is_null() || self.size < size_of::<T>() {
            return Err(libc::EINVAL);
        }
        // SAFETY: the request's number says that the caller has so many bytes there, which nobody else uses during the call;
        // the structures are plain numbers.
        Ok(unsafe { &mut *self.at.cast::<T>() })
    }
}

/// A list that the caller has.
///
/// # Safety
/// The caller has `count` elements at `address`.
unsafe fn list<'a, T>(address: u64, count: u32) -> Result<&'a mut [T], c_int> {
    if count == 0 {
        return Ok(&mut []);
    }
    if address == 0 {
        return Err(libc::EFAULT);
    }
    // SAFETY: the caller's contract.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer(address).cast(), count as usize) })
}

/// Answers a request. The result is 0, or an error's number.
pub fn answer(process: &'static Process, request: c_ulong, at: *mut c_void) -> Result<(), c_int> {
    // Whoever asks for something may have rung a doorbell before.
    process.watcher.nudge();
    let arguments = Request { at, size: (request >> 16 & 0x3fff) as usize };
    match request as u8 {
        0x01 => {
            let version = arguments.get::<GetVersion>()?;
            (version.major, version.minor) = VERSION;
            Ok(())
        }
        0x02 => create_queue(process, arguments.get()?),
        0x03 => destroy_queue(process, arguments.get()?),
        0x07 => update_queue(process, arguments.get()?),
        // Cache policies, CU masks, trap handlers and the base of scratch memory: nothing depends on them.
        0x04 | 0x11 | 0x13 | 0x1a => Ok(()),
        0x05 => clocks(process, arguments.get()?),
        0x08 => create_event(process, arguments.get()?),
        0x09 => event(arguments.get()?, |id| process.events.destroy(id)),
        0x0a => event(arguments.get()?, |id| process.events.set(id, true)),
        0x0b => event(arguments.get()?, |id| process.events.set(id, false)),
        0x0c => wait_events(process, arguments.get()?),
        0x12 => {
            let config = arguments.get::<TileConfig>()?;
            let device = process.device(config.gpu_id).ok_or(libc::EINVAL)?;
            (config.tile_count, config.macro_tile_count) = (0, 0);
            config.address_config = process.devices[device].card.address_config();
            (config.banks, config.ranks) = (0, 0);
            Ok(())
        }
        0x14 => apertures(process, arguments.get()?),
        0x15 => Ok(()),
        0x16 => allocate(process, arguments.get()?),
        0x17 => {
            let free = arguments.get::<Free>()?;
            let freed = process.memory.free(&process.devices, &process.window, free.handle);
            freed.map(drop).map_err(|error| error.errno())
        }
        0x18 | 0x19 => map(process, arguments.get()?, request as u8 == 0x18),
        0x1e => {
            let gws = arguments.get::<QueueGws>()?;
            gws.first = 0;
            Ok(())
        }
        0x21 => {
            let mode = arguments.get::<XnackMode>()?;
            // A negative number asks what it is; page faults are never retried.
            match mode.enabled {
                1.. => Err(libc::EPERM),
                _ => {
                    mode.enabled = 0;
                    Ok(())
                }
            }
        }
        0x23 => {
            let memory = arguments.get::<AvailableMemory>()?;
            let device = process.device(memory.gpu_id).ok_or(libc::EINVAL)?;
            memory.bytes = process.memory.available(&process.devices, device);
            Ok(())
        }
        0x80 => import(process, arguments.get()?),
        0x81 => {
            let export = arguments.get::<IpcExport>()?;
            let buffer = process.memory.buffer(export.handle).filter(|buffer| buffer.host.is_none());
            export.share = Shared::of(&process.window, &buffer.ok_or(libc::EINVAL)?).0;
            Ok(())
        }
        // The runtime asks whether exceptions can be debugged, and does without.
        0x82 => Err(libc::EINVAL),
        number => {
            let name = match number {
                0x06 => "AMDKFD_IOC_GET_PROCESS_APERTURES",
                0x0d..=0x10 => "AMDKFD_IOC_DBG_…",
                0x1b => "AMDKFD_IOC_GET_QUEUE_WAVE_STATE",
                0x1c => "AMDKFD_IOC_GET_DMABUF_INFO",
                0x1d => "AMDKFD_IOC_IMPORT_DMABUF",
                0x1f => "AMDKFD_IOC_SMI_EVENTS",
                0x20 => "AMDKFD_IOC_SVM",
                0x22 => "AMDKFD_IOC_CRIU_OP",
                0x24 => "AMDKFD_IOC_EXPORT_DMABUF",
                0x83 => "AMDKFD_IOC_CROSS_MEMORY_COPY",
                0x84 => "AMDKFD_IOC_RLC_SPM",
                _ => "an ioctl that this release does not know",
            };
            say_once(number, name);
            Err(libc::ENOTTY)
        }
    }
}

/// Says that a request is not supported.
fn say_once(number: u8, name: &str) {
    static SAID: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
    let bit = 1 << (number % 64);
    if SAID[usize::from(number / 64)].fetch_or(bit, Ordering::Relaxed) & bit == 0 {
        say(format_args!("{name} ({number:#04x}) is not supported"));
    }
}

/// What `mmap` of `/dev/kfd` or a render node is to do. The result is whether the offset was the driver's.
pub fn mmap(process: &Process, address: u64, size: u64, offset: u64) -> Result<(), c_int> {
    if !Window::contains(address, size) {
        return Err(libc::EINVAL);
    }
    let system = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::ENOMEM);
    if offset & OF_DOORBELLS != 0 {
        let device = process.devices.get((offset >> 32 & 0xffff) as usize).ok_or(libc::EINVAL)?;
        process.window.restore(address, size).map_err(system)?;
        // SAFETY: a range of the window, which nobody knows as doorbells yet.
        unsafe { pointer(address).write_bytes(0xff, size as usize) };
        device.doorbells.store(address, Ordering::Release);
        return Ok(());
    }
    match offset {
        offset if offset & OF_IMPORT != 0 => Ok(()),
        offset if offset.checked_add(size).is_none_or(|end| end > window::SIZE) => Err(libc::EINVAL),
        offset => process.window.alias(address, size, offset).map_err(system),
    }
}

fn create_queue(process: &'static Process, queue: &mut CreateQueue) -> Result<(), c_int> {
    let device = process.device(queue.gpu_id).ok_or(libc::EINVAL)?;
    let kind = match queue.queue_type {
        1 | 3 => Kind::Sdma,
        2 => Kind::Aql,
        _ => {
            say("queues of PM4 packets are not supported");
            return Err(libc::EINVAL);
        }
    };
    let index = |address: u64| address.is_multiple_of(8) && Window::contains(address, 8);
    let is_right = Window::contains(queue.ring, queue.ring_size.into())
        && queue.ring.is_multiple_of(256)
        && index(queue.read_pointer)
        && index(queue.write_pointer)
        && (kind == Kind::Sdma || aql::is_whole(queue.read_pointer));
    if !is_right {
        return Err(libc::EINVAL);
    }
    let mut queues = process.queues.lock().unwrap_or_else(PoisonError::into_inner);
    let is_free = |id: &u32| !queues.contains_key(id);
    let id = (0..MOST_QUEUES).find(is_free).ok_or(libc::ENOMEM)?;
    let taken =
        |doorbell: &u32| queues.values().any(|other| other.device == device && other.doorbell == *doorbell);
    let doorbell = (0..DOORBELLS).find(|doorbell| !taken(doorbell)).ok_or(libc::ENOMEM)?;
    let page = process.devices[device].doorbells.load(Ordering::Acquire);
    if page != 0 {
        // SAFETY: a doorbell that no queue has.
        unsafe { AtomicU64::from_ptr(pointer(page + u64::from(doorbell) * DOORBELL).cast()) }
            .store(u64::MAX, Ordering::Release);
    }
    let place = Place {
        ring: queue.ring,
        size: queue.ring_size,
        read_pointer: queue.read_pointer,
        write_pointer: queue.write_pointer,
        doorbell,
    };
    let started = Queue::start(process, id, device, kind, place);
    let started = started.map_err(|error| error.raw_os_error().unwrap_or(libc::EAGAIN))?;
    queues.insert(id, started);
    queue.queue_id = id;
    queue.doorbell_offset = OF_DOORBELLS | (device as u64) << 32 | (u64::from(doorbell) * DOORBELL);
    Ok(())
}

fn destroy_queue(process: &Process, given: &mut DestroyQueue) -> Result<(), c_int> {
    let queue = process.queues.lock().unwrap_or_else(PoisonError::into_inner).remove(&given.queue_id);
    queue.ok_or(libc::EINVAL)?.destroy();
    Ok(())
}

fn update_queue(process: &Process, given: &mut UpdateQueue) -> Result<(), c_int> {
    let queues = process.queues.lock().unwrap_or_else(PoisonError::into_inner);
    let queue = queues.get(&given.queue_id).ok_or(libc::EINVAL)?;
    let runs = given.percentage != 0 && given.ring != 0 && given.ring_size != 0;
    if runs {
        if !Window::contains(given.ring, given.ring_size.into()) {
            return Err(libc::EINVAL);
        }
        queue.ring.store(given.ring, Ordering::Relaxed);
        queue.size.store(given.ring_size, Ordering::Relaxed);
    }
    queue.active.store(runs, Ordering::Release);
    queue.wake();
    Ok(())
}

fn clocks(process: &Process, clocks: &mut Clocks) -> Result<(), c_int> {
    // The processor's node has no clock of a card.
    clocks.gpu = if process.device(clocks.gpu_id).is_some() { Process::ticks() } else { 0 };
    clocks.cpu = nanoseconds(libc::CLOCK_MONOTONIC_RAW);
    clocks.system = nanoseconds(libc::CLOCK_BOOTTIME);
    clocks.frequency = 1_000_000_000;
    Ok(())
}

fn apertures(process: &Process, given: &mut GetApertures) -> Result<(), c_int> {
    if given.apertures != 0 {
        // SAFETY: the caller says that it has so many there.
        let into = unsafe { list::<Apertures>(given.apertures, given.count)? };
        for (into, device) in into.iter_mut().zip(&process.devices) {
            *into = Apertures {
                lds: [LDS_BASE, LDS_BASE + APERTURE - 1],
                scratch: [SCRATCH_BASE, SCRATCH_BASE + APERTURE - 1],
                // Less than 47 bits: the runtime then reserves all of it, at this place.
                gpuvm: [window::BASE, window::BASE + window::SIZE - 1],
                gpu_id: device.gpu_id,
                pad: 0,
            };
        }
    }
    given.count = process.devices.len() as u32;
    Ok(())
}

fn create_event(process: &Process, event: &mut CreateEvent) -> Result<(), c_int> {
    if event.page_offset != 0
        && let Some(buffer) = process.memory.buffer(event.page_offset)
    {
        process.events.set_page(buffer.address);
    }
    let (id, slot) = process.events.create(event.event_type, event.auto_reset != 0).ok_or(libc::ENOMEM)?;
    event.event_id = id;
    event.trigger_data = id;
    // Without an offset the runtime takes the event for one that no packet can set.
    event.page_offset = if slot.is_some() { OF_EVENTS } else { 0 };
    event.slot = slot.unwrap_or(u32::MAX);
    Ok(())
}

fn event(event: &mut Event, change: impl FnOnce(u32) -> bool) -> Result<(), c_int> {
    if change(event.event_id) { Ok(()) } else { Err(libc::EINVAL) }
}

fn wait_events(process: &Process, wait: &mut WaitEvents) -> Result<(), c_int> {
    const FOREVER: u32 = u32::MAX;
    // SAFETY: the caller says that it has so many there.
    let data = unsafe { list::<EventData>(wait.events, wait.count)? };
    let ids: Vec<u32> = data.iter().map(|event| event.event_id).collect();
    let timeout = (wait.timeout != FOREVER).then(|| Duration::from_millis(wait.timeout.into()));
    wait.result = match process.events.wait(&ids, wait.all != 0, timeout) {
        Waited::Done(faults) => {
            for (data, fault) in data.iter_mut().zip(faults) {
                let Some(fault) = fault else { continue };
                data.failure = [u32::from(!fault.read_only), u32::from(fault.read_only), 0, 0];
                (data.address, data.gpu_id, data.error) = (fault.address, fault.gpu_id, 0);
            }
            0
        }
        Waited::Timeout => 1,
        Waited::NoEvent => return Err(libc::EINVAL),
    };
    Ok(())
}

fn allocate(process: &Process, given: &mut Alloc) -> Result<(), c_int> {
    let device = process.device(given.gpu_id).ok_or(libc::EINVAL)?;
    let is_elsewhere = given.flags & flags::USERPTR != 0 && given.mmap_offset != given.address;
    let buffer = Buffer {
        address: given.address,
        size: given.size,
        device,
        flags: given.flags,
        imported: false,
        host: is_elsewhere.then_some(given.mmap_offset),
        mapped: BTreeSet::new(),
    };
    given.handle = process.memory.allocate(&process.devices, buffer).map_err(|error| error.errno())?;
    if given.flags & flags::USERPTR == 0 {
        given.mmap_offset = Window::offset(given.address);
    }
    Ok(())
}

fn map(process: &Process, given: &mut Map, on: bool) -> Result<(), c_int> {
    // SAFETY: the caller says that it has so many there.
    let ids = unsafe { list::<u32>(given.devices, given.count)? };
    for (n, id) in ids.iter().enumerate().skip(given.success as usize) {
        let device = process.device(*id).ok_or(libc::EINVAL)?;
        let done = match on {
            true => process.memory.map(&process.devices, given.handle, device),
            false => process.memory.unmap(&process.devices, given.handle, device),
        };
        done.map_err(|error| error.errno())?;
        given.success = n as u32 + 1;
    }
    Ok(())
}

fn import(process: &Process, given: &mut IpcImport) -> Result<(), c_int> {
    let device = process.device(given.gpu_id).ok_or(libc::EINVAL)?;
    let share = Shared(given.share);
    if !Window::contains(given.address, share.size()) {
        return Err(libc::EINVAL);
    }
    share.import(&process.window, given.address).map_err(|error| error.errno())?;
    let buffer = Buffer {
        address: given.address,
        size: share.size(),
        device,
        flags: flags::VRAM,
        imported: true,
        host: None,
        mapped: BTreeSet::new(),
    };
    given.handle = process.memory.allocate(&process.devices, buffer).map_err(|error| error.errno())?;
    given.mmap_offset = OF_IMPORT;
    given.flags = flags::VRAM;
    Ok(())
}

/// Whether a number is that of a request to the driver.
pub fn is_ours(request: c_ulong) -> bool {
    request >> 8 & 0xff == c_ulong::from(b'K')
}
