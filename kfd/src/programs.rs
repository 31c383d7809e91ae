//! The code that a packet names.
//!
//! A packet has nothing but the address of a kernel descriptor. The runtime keeps a list of the code objects that it has loaded
//! for debuggers (`_amdgpu_r_debug`); there are the kernel's name, its bounds and its source lines. Kernels that the
//! runtime puts together itself are in no list and are read from memory.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::sync::{Mutex, PoisonError};

use amdgpu_emulator::{Allocation, CodeObject, Kernel, LoadedModule, Machine};

use crate::memory;
use crate::window::pointer;

/// Bytes of a kernel descriptor.
const DESCRIPTOR: usize = 64;
/// Bytes of code that are read of a kernel whose end nobody knows.
const MOST_BARE: u64 = 1 << 16;
/// Code objects that a list is followed for: it may change while it is read.
const MOST_OBJECTS: usize = 1 << 16;

/// The kernels that a card has run.
#[derive(Default)]
pub struct Programs {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// By the address of the descriptor.
    kernels: HashMap<u64, Resident>,
    /// By load address and the place of the file.
    modules: HashMap<(u64, String), LoadedModule>,
}

/// A kernel, and the bytes that it was found by: memory may be used again for another.
struct Resident {
    kernel: Kernel,
    /// It is in no code object that the runtime lists, or that can be read.
    is_bare: bool,
    descriptor: [u8; DESCRIPTOR],
    /// Where the code begins, and the code.
    entry: u64,
    code: Vec<u8>,
}

impl Resident {
    fn is_there(&self, machine: &Machine, descriptor: &[u8; DESCRIPTOR]) -> bool {
        self.descriptor == *descriptor && is_at(machine, self.entry, &self.code)
    }
}

/// Whether memory has these bytes.
fn is_at(machine: &Machine, address: u64, bytes: &[u8]) -> bool {
    machine.host_address(address, bytes.len() as u64).is_some_and(|there| {
        // SAFETY: the range lies within an allocation of the window, which stays mapped; a program that writes to
        // code that is about to run gets one or the other.
        unsafe { std::slice::from_raw_parts(there, bytes.len()) == bytes }
    })
}

/// Why there is no kernel.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProgramError {
    /// There is no memory at the address.
    #[error("there is no kernel at {0:#x}: the card has no memory there")]
    NoMemory(u64),
}

impl Programs {
    /// The kernel whose descriptor lies at an address.
    ///
    /// # Errors
    /// There is no memory.
    pub fn kernel(&self, machine: &Machine, address: u64) -> Result<Kernel, ProgramError> {
        let mut descriptor = [0; DESCRIPTOR];
        machine.read(address, &mut descriptor).map_err(|_| ProgramError::NoMemory(address))?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(resident) = known.kernels.get(&address)
            && resident.is_there(machine, &descriptor)
        {
            return Ok(resident.kernel.clone());
        }
        let resident = match known.listed(machine, address, descriptor) {
            Some(resident) => resident,
            None => bare(machine, address, descriptor)?,
        };
        let kernel = resident.kernel.clone();
        known.kernels.insert(address, resident);
        Ok(kernel)
    }
}

impl Programs {
    /// Whether the kernel that [`Programs::kernel`] has found at an address is one that the runtime has put together itself: it
    /// is in no code object, and in memory of the host, whereas what the runtime loads is in the card's.
    pub fn is_of_runtime(&self, machine: &Machine, address: u64) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_bare = known.kernels.get(&address).is_some_and(|resident| resident.is_bare);
        let label = |allocation: Allocation| allocation.label.is_some_and(|label| &*label == memory::HOST);
        is_bare && machine.allocation(address).is_some_and(label)
    }
}

impl Known {
    /// The kernel as part of a code object that the runtime's list has.
    fn listed(&mut self, machine: &Machine, address: u64, descriptor: [u8; DESCRIPTOR]) -> Option<Resident> {
        let mut objects = listed_objects();
        objects.retain(|(base, _)| *base <= address);
        let (base, place) = objects.into_iter().max_by_key(|(base, _)| *base)?;
        let key = (base, place);
        if let Some(module) = self.modules.get(&key)
            && let Some(resident) = kernel_of(machine, module, base, address, descriptor)
        {
            return Some(resident);
        }
        let bytes = read_place(&key.1)?;
        let object = CodeObject::parse_kept(bytes, Some(machine.gfx())).ok()?;
        let module = machine.adopt(&object, base);
        let resident = kernel_of(machine, &module, base, address, descriptor)?;
        self.modules.retain(|(other, _), _| *other != base);
        self.modules.insert(key, module);
        Some(resident)
    }
}

/// The kernel of a module that has its descriptor at an address, if memory has what the module has.
fn kernel_of(
    machine: &Machine,
    module: &LoadedModule,
    base: u64,
    address: u64,
    descriptor: [u8; DESCRIPTOR],
) -> Option<Resident> {
    let object = module.code_object();
    let at = address - base;
    let info = object.kernels().iter().find(|kernel| {
        object.symbol(&format!("{}.kd", kernel.name)).is_some_and(|symbol| symbol.address == at)
    })?;
    let start = usize::try_from(info.descriptor.entry).ok()?;
    let end = start.checked_add(usize::try_from(info.code_bytes).ok()?)?;
    let code = object.image().get(start..end)?.to_vec();
    let entry = base + info.descriptor.entry;
    let kernel = module.kernel(&info.name)?;
    is_at(machine, entry, &code).then_some(Resident { kernel, is_bare: false, descriptor, entry, code })
}

/// The kernel as memory has it.
fn bare(machine: &Machine, address: u64, descriptor: [u8; DESCRIPTOR]) -> Result<Resident, ProgramError> {
    let offset = i64::from_le_bytes(std::array::from_fn(|n| descriptor[16 + n]));
    let entry = address.wrapping_add_signed(offset);
    let allocation = machine.allocation(entry).ok_or(ProgramError::NoMemory(entry))?;
    let base = if allocation.base <= address { address.min(entry) } else { entry };
    let mut code = vec![0; allocation.end().min(entry + MOST_BARE).saturating_sub(base) as usize];
    machine.read(base, &mut code).map_err(|_| ProgramError::NoMemory(base))?;
    let name = format!("kernel at {address:#x}");
    let object = CodeObject::bare(machine.gfx(), &name, code.clone(), &descriptor, entry - base);
    let kernel = machine.adopt(&object, base).kernel(&name).ok_or(ProgramError::NoMemory(address))?;
    Ok(Resident { kernel, is_bare: true, descriptor, entry: base, code })
}

/// Load address and place of each code object in the runtime's list.
fn listed_objects() -> Vec<(u64, String)> {
    // SAFETY: the names are C strings. The library is not loaded if it is not there yet.
    let list = unsafe {
        let library = libc::dlopen(c"libhsa-runtime64.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        let library = if library.is_null() { libc::RTLD_DEFAULT } else { library };
        libc::dlsym(library, c"_amdgpu_r_debug".as_ptr())
    };
    let mut found = Vec::new();
    if list.is_null() {
        return found;
    }
    // `struct r_debug` has a version and then the first element; `struct link_map` has address, name, a pointer, and the next.
    let word = |address: u64| read(address).map(u64::from_le_bytes);
    let mut next = word(crate::window::address(list) + 8);
    while let Some(element) = next.filter(|&element| element != 0 && found.len() < MOST_OBJECTS) {
        if let (Some(base), Some(name)) = (word(element), word(element + 8).and_then(read_text)) {
            found.push((base, name));
        }
        next = word(element + 24);
    }
    found
}

/// Bytes of the process's memory, which need not be there.
fn read<const N: usize>(address: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    (read_into(address, &mut bytes) == N).then_some(bytes)
}

/// How many bytes of the process's memory were there.
fn read_into(address: u64, into: &mut [u8]) -> usize {
    let to = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let from = libc::iovec { iov_base: pointer(address).cast::<c_void>(), iov_len: into.len() };
    // SAFETY: `into` is as long as it says; the system checks the other side.
    let count = unsafe { libc::process_vm_readv(libc::getpid(), &raw const to, 1, &raw const from, 1, 0) };
    if count >= 0 {
        return count as usize;
    }
    // Where a process may not read its own memory so, the runtime's list has to be trusted.
    if std::io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT) {
        return 0;
    }
    // SAFETY: the list is the runtime's, which changes it only while it loads and unloads code.
    unsafe { pointer(address).copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
    into.len()
}

fn read_text(address: u64) -> Option<String> {
    let mut bytes = vec![0; 4096];
    let count = read_into(address, &mut bytes);
    bytes.truncate(count);
    let text = CStr::from_bytes_until_nul(&bytes).ok()?;
    Some(text.to_str().ok()?.to_owned())
}

/// The bytes of a code object, from the place that the list names: `file://PATH` or `memory://PROCESS`, and behind it
/// `#offset=N&size=N`.
fn read_place(place: &str) -> Option<Vec<u8>> {
    let (place, range) = place.split_once('#').or(place.split_once('?')).unwrap_or((place, ""));
    let value = |name: &str| {
        let text = range.split('&').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))?;
        match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => text.parse().ok(),
        }
    };
    if place.starts_with("memory://") {
        let mut bytes = vec![0; usize::try_from(value("size")?).ok()?];
        let count = read_into(value("offset")?, &mut bytes);
        return (count == bytes.len()).then_some(bytes);
    }
    let bytes = std::fs::read(percent_decoded(place.strip_prefix("file://")?)).ok()?;
    let start = usize::try_from(value("offset").unwrap_or(0)).ok()?;
    let size =
        value("size").map_or(Some(bytes.len().saturating_sub(start)), |size| usize::try_from(size).ok())?;
    Some(bytes.get(start..start.checked_add(size)?)?.to_vec())
}

fn percent_decoded(text: &str) -> std::ffi::OsString {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        let bytes = [1u8, 2, 3, 4, 5];
        let at = crate::window::address(bytes.as_ptr().cast());
        let place = format!("memory://{}#offset={at:#x}&size=4", std::process::id());
        assert_eq!(read_place(&place).unwrap(), [1, 2, 3, 4]);
        assert_eq!(read_place("memory://1#offset=16&size=4"), None);
        let file = std::env::temp_dir().join(format!("candle amdgpu {}", std::process::id()));
        std::fs::write(&file, bytes).unwrap();
        let place = format!("file://{}#offset=1&size=3", file.display()).replace(' ', "%20");
        assert_eq!(read_place(&place).unwrap(), [2, 3, 4]);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(read_place("ftp://x"), None);
    }
}
