//! Kernels and variables that a program was compiled with.
//!
//! A program built by hipcc or clang carries its device code as fat binaries. Its constructors register them, and
//! each kernel and variable with the host address that stands for it. A device's code object is loaded when the
//! device first uses something of it.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Runtime;
use super::device::Device;
use super::memory::{BlockKind, Blocks};
use super::module::{Function, Module};
use crate::error::Error;
use crate::image::bytes_at;

/// `HIPF`, which the wrapper of a fat binary starts with.
const WRAPPER_MAGIC: u32 = 0x4849_5046;

/// What the compiler puts around a fat binary.
#[repr(C)]
pub(crate) struct Wrapper {
    magic: u32,
    version: u32,
    binary: *const c_void,
    unused: *const c_void,
}

/// A kernel or variable: which fat binary it is of, and its name there.
#[derive(Clone)]
struct Symbol {
    binary: usize,
    name: String,
    kind: SymbolKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SymbolKind {
    Kernel,
    Variable,
    /// A variable in managed memory; the code object has a pointer to it.
    Managed {
        address: u64,
    },
}

#[derive(Default)]
struct Contents {
    next: usize,
    /// Addresses of the fat binaries, by handle.
    binaries: HashMap<usize, usize>,
    /// By host address.
    symbols: HashMap<usize, Symbol>,
    /// By fat binary and device.
    modules: HashMap<(usize, usize), Arc<Module>>,
    /// By host address and device.
    functions: HashMap<(usize, usize), Arc<Function>>,
    /// Handles of functions that were asked for, by the same.
    handles: HashMap<(usize, usize), usize>,
}

/// Everything that was registered.
#[derive(Default)]
pub(crate) struct Registry {
    contents: Mutex<Contents>,
}

impl Registry {
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a fat binary; the result is its handle.
    ///
    /// # Safety
    /// `wrapper` is what the compiler passes to `__hipRegisterFatBinary`.
    pub(crate) unsafe fn add_binary(&self, wrapper: *const Wrapper) -> Result<usize, Error> {
        if wrapper.is_null() {
            return Err(Error::Null("data"));
        }
        // SAFETY: the caller's contract.
        let Wrapper { magic, version, binary, .. } = unsafe { wrapper.read() };
        if magic != WRAPPER_MAGIC || version != 1 {
            return Err(Error::Load(format!(
                "the fat binary's wrapper starts with {magic:#x}, version {version}; {WRAPPER_MAGIC:#x}, version 1 is expected"
            )));
        }
        let mut contents = self.contents();
        contents.next += 1;
        let handle = contents.next;
        contents.binaries.insert(handle, binary as usize);
        Ok(handle)
    }

    /// Forgets a fat binary and everything of it.
    pub(crate) fn remove_binary(&self, handle: usize) {
        let mut contents = self.contents();
        contents.binaries.remove(&handle);
        let gone: Vec<usize> = contents
            .symbols
            .iter()
            .filter(|(_, symbol)| symbol.binary == handle)
            .map(|(host, _)| *host)
            .collect();
        contents.symbols.retain(|_, symbol| symbol.binary != handle);
        contents.functions.retain(|(host, _), _| !gone.contains(host));
        contents.handles.retain(|(host, _), _| !gone.contains(host));
        contents.modules.retain(|(binary, _), _| *binary != handle);
    }

    /// Forgets what a device has loaded.
    pub(crate) fn unload(&self, device: usize) {
        let mut contents = self.contents();
        contents.functions.retain(|(_, of), _| *of != device);
        contents.handles.retain(|(_, of), _| *of != device);
        contents.modules.retain(|(_, of), _| *of != device);
    }

    fn add(&self, host: *const c_void, binary: usize, name: &str, kind: SymbolKind) {
        let symbol = Symbol { binary, name: name.to_owned(), kind };
        self.contents().symbols.insert(host as usize, symbol);
    }

    pub(crate) fn add_kernel(&self, host: *const c_void, binary: usize, name: &str) {
        self.add(host, binary, name, SymbolKind::Kernel);
    }

    pub(crate) fn add_variable(&self, host: *const c_void, binary: usize, name: &str) {
        self.add(host, binary, name, SymbolKind::Variable);
    }
}

impl Contents {
    fn symbol(&self, host: *const c_void) -> Result<Symbol, Error> {
        self.symbols.get(&(host as usize)).cloned().ok_or(Error::NotRegisteredSymbol(host as u64))
    }

    /// The code object of a fat binary on a device, loaded on first use.
    fn module(&mut self, binary: usize, device: &Device, blocks: &Arc<Blocks>) -> Result<Arc<Module>, Error> {
        if let Some(module) = self.modules.get(&(binary, device.ordinal)) {
            return Ok(module.clone());
        }
        let image = self.binaries.get(&binary).copied().unwrap_or_default();
        // SAFETY: the compiler put a whole offload bundle there, and it is part of the program.
        let bytes = unsafe { bytes_at(image as *const c_void)? };
        let module = Arc::new(Module::load(device, bytes, blocks)?);
        // Where a managed variable is has to be written into each code object that uses it.
        for symbol in self.symbols.values().filter(|symbol| symbol.binary == binary) {
            if let SymbolKind::Managed { address } = symbol.kind
                && let Ok((pointer, _)) = module.global(&symbol.name)
            {
                let written = device.machine.write(pointer, &address.to_ne_bytes());
                written.map_err(|error| device.memory_error(error))?;
            }
        }
        self.modules.insert((binary, device.ordinal), module.clone());
        Ok(module)
    }
}

impl Runtime {
    /// The kernel that a host address stands for, on a device.
    pub(crate) fn registered_kernel(
        &self,
        host: *const c_void,
        device: &Device,
    ) -> Result<Arc<Function>, Error> {
        let mut contents = self.registry.contents();
        let key = (host as usize, device.ordinal);
        if let Some(function) = contents.functions.get(&key) {
            return Ok(function.clone());
        }
        let symbol = contents.symbol(host).map_err(|_| Error::NotRegisteredKernel(host as u64))?;
        let function =
            Arc::new(contents.module(symbol.binary, device, &self.blocks)?.function(&symbol.name)?);
        contents.functions.insert(key, function.clone());
        Ok(function)
    }

    /// The handle of the kernel that a host address stands for, the same one each time.
    pub(crate) fn registered_handle(
        &self,
        host: *const c_void,
        device: &Device,
    ) -> Result<*mut c_void, Error> {
        let function = self.registered_kernel(host, device)?;
        let mut contents = self.registry.contents();
        let handle = contents.handles.entry((host as usize, device.ordinal));
        Ok(*handle.or_insert_with(|| self.handles.insert(function) as usize) as *mut c_void)
    }

    /// Address and size of the variable that a host address stands for, on the current device.
    pub(crate) fn registered_variable(&self, host: *const c_void) -> Result<(u64, u64), Error> {
        let mut contents = self.registry.contents();
        let symbol = contents.symbol(host)?;
        match symbol.kind {
            SymbolKind::Kernel => Err(Error::NotRegisteredSymbol(host as u64)),
            SymbolKind::Variable => {
                contents.module(symbol.binary, self.current(), &self.blocks)?.global(&symbol.name)
            }
            SymbolKind::Managed { address } => {
                let size = self.blocks.find(address).map_or(0, |block| block.size);
                Ok((address, size))
            }
        }
    }

    /// Puts a managed variable into memory that host and device share. The host's accesses go through `pointer`, and
    /// start before the program chooses a device, so it is on the first one.
    ///
    /// # Safety
    /// `pointer` is valid for writing, `initial` for reading `size` bytes.
    pub(crate) unsafe fn add_managed(
        &self,
        binary: usize,
        pointer: *mut *mut c_void,
        initial: *const c_void,
        name: &str,
        size: usize,
    ) -> Result<(), Error> {
        let address = self.allocate(size, BlockKind::Managed)?;
        // SAFETY: the new memory and the initial value are both of `size` bytes, and apart.
        unsafe {
            std::ptr::copy_nonoverlapping(initial.cast::<u8>(), address as *mut u8, size);
            pointer.write(address as *mut c_void);
        }
        self.registry.add(pointer.cast(), binary, name, SymbolKind::Managed { address });
        Ok(())
    }
}
