//! Modules on a device: loaded once, their kernels looked up by name.

use crate::error_slot::DeviceErrorSlot;
use crate::kernel::{Kernel, Module, NVPTX};
use crate::legacy;
use crate::ptx::Text;
use crate::sys::{self, hip, hipFunction_t, hipModule_t};
use crate::{Device, Error, Function, Result};
use amdgpu_emulator::{CodeObject, Features, Gfx, KernelInfo, ObjectError, retarget};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::CString;
use std::fmt;
use std::ptr;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// The modules that a device has loaded, by the address of their table of code objects.
#[derive(Default)]
pub(crate) struct Modules(RwLock<HashMap<usize, Arc<LoadedModule>>>);

impl Modules {
    /// The module, loaded if necessary. The lock is held meanwhile, so that it is loaded once.
    pub(crate) fn get_or_load(&self, device: &Device, module: &Module) -> Result<Arc<LoadedModule>> {
        let key = module.objects().as_ptr() as usize;
        if let Some(loaded) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(loaded.clone());
        }
        let object = module.object_for(device.arch())?;
        let mut modules = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = modules.get(&key) {
            return Ok(loaded.clone());
        }
        // The build's own objects need no copy.
        if object.gfx == NVPTX {
            let mut loaded = LoadedModule::from_text(
                device,
                module.name(),
                Cow::Borrowed(object.bytes),
                module.kernels(),
            )?;
            loaded.selection = module.selection();
            let loaded = Arc::new(loaded);
            modules.insert(key, loaded.clone());
            return Ok(loaded);
        }
        let mut loaded = if object.gfx == device.arch() {
            let code = CodeObject::parse_kept(object.bytes, None);
            LoadedModule::from_parsed(device, module.name(), object.bytes, code, module.kernels())?
        } else {
            let refuse = |reason: String| Error::BadCodeObject { module: module.name().to_owned(), reason };
            let gfx = Gfx::from_name(device.arch()).map_err(|e| refuse(e.to_string()))?;
            let bytes = retarget(object.bytes, gfx).map_err(|e| refuse(e.to_string()))?;
            let code = CodeObject::parse(&bytes);
            LoadedModule::from_parsed(device, module.name(), &bytes, code, module.kernels())?
        };
        loaded.selection = module.selection();
        let loaded = Arc::new(loaded);
        modules.insert(key, loaded.clone());
        Ok(loaded)
    }
}

/// A module on a device.
pub struct LoadedModule {
    name: String,
    ordinal: usize,
    code: Code,
    /// One for each kernel of the code, in its order.
    entries: Vec<Entry>,
    by_name: HashMap<String, usize>,
    /// [`Module::selection`]
    selection: &'static str,
}

/// The kernels' code.
enum Code {
    /// A code object, loaded as a whole.
    Object(Box<LoadedObject>),
    /// PTX, from which kernels are compiled one by one.
    Text { text: Text, infos: Vec<KernelInfo> },
}

struct LoadedObject {
    handle: hipModule_t,
    code: CodeObject,
    /// What the runtime was given, if that is not the caller's: some releases go on using it.
    _adapted: Option<Vec<u8>>,
    /// Where its kernels record errors: freed after the module is unloaded.
    _fault: Option<Arc<DeviceErrorSlot>>,
}

/// A kernel of a loaded module.
pub(crate) struct Entry {
    /// What its Rust function states, if that is known.
    pub(crate) kernel: Option<&'static Kernel>,
    handle: OnceLock<Handle>,
}

struct Handle(hipFunction_t);

// SAFETY: HIP's handles may be used from any thread; `LoadedModule` never changes them.
unsafe impl Send for LoadedModule {}
// SAFETY: as above.
unsafe impl Sync for LoadedModule {}
// SAFETY: as above.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl LoadedModule {
    pub(crate) fn from_bytes(device: &Device, name: &str, bytes: &[u8]) -> Result<LoadedModule> {
        if device.arch() == NVPTX {
            return LoadedModule::from_text(device, name, Cow::Owned(bytes.to_vec()), &[]);
        }
        // Of a bundle, the code object for this device; one that the emulator does not know has an ELF file only.
        let parsed = match Gfx::from_name(device.arch()) {
            Ok(gfx) => CodeObject::parse_for(bytes, gfx),
            Err(_) => CodeObject::parse(bytes),
        };
        LoadedModule::from_parsed(device, name, bytes, parsed, &[])
    }

    fn from_text(
        device: &Device,
        name: &str,
        bytes: Cow<'static, [u8]>,
        kernels: &'static [Kernel],
    ) -> Result<LoadedModule> {
        let (text, infos) = Text::read(device, bytes, kernels)
            .map_err(|reason| Error::BadCodeObject { module: name.to_owned(), reason })?;
        Ok(LoadedModule::new(device, name, Code::Text { text, infos }, kernels))
    }

    fn from_parsed(
        device: &Device,
        name: &str,
        bytes: &[u8],
        parsed: std::result::Result<CodeObject, ObjectError>,
        kernels: &'static [Kernel],
    ) -> Result<LoadedModule> {
        let code =
            parsed.map_err(|e| Error::BadCodeObject { module: name.to_owned(), reason: e.to_string() })?;
        // Of a device that the emulator does not know, only the name is known.
        let covers = match Gfx::from_name(device.arch()) {
            Ok(gfx) => code.target().covers(gfx),
            Err(_) => code.target().name() == device.arch(),
        };
        let has = &device.properties().target;
        if !covers || !code.features().fit(Features::from_name(has)) {
            let reason = format!("it is for {}{}, the device is a {has}", code.target(), code.features());
            return Err(Error::BadCodeObject { module: name.to_owned(), reason });
        }
        amdhip64::check_image(bytes)
            .map_err(|e| Error::BadCodeObject { module: name.to_owned(), reason: e.to_string() })?;
        device.make_current()?;
        let adapted = match sys::real_runtime() {
            Some(version) => legacy::adapt(bytes, version),
            None => Cow::Borrowed(bytes),
        };
        let mut handle = ptr::null_mut();
        // SAFETY: `adapted` is a whole ELF file or bundle: `bytes` was checked just now.
        unsafe { hip!(hipModuleLoadData(&mut handle, adapted.as_ptr().cast()))? };
        // From here on the module is unloaded if something fails.
        let adapted = match adapted {
            Cow::Owned(bytes) => Some(bytes),
            Cow::Borrowed(_) => None,
        };
        let mut object = LoadedObject { handle, code, _adapted: adapted, _fault: None };
        object._fault = device.error_slots().register(handle)?;
        Ok(LoadedModule::new(device, name, Code::Object(Box::new(object)), kernels))
    }

    fn new(device: &Device, name: &str, code: Code, kernels: &'static [Kernel]) -> LoadedModule {
        let infos = match &code {
            Code::Object(object) => object.code.kernels(),
            Code::Text { infos, .. } => infos,
        };
        let entry = |info: &KernelInfo| {
            let kernel = kernels.iter().find(|kernel| kernel.name == info.name);
            Entry { kernel, handle: OnceLock::new() }
        };
        let entries = infos.iter().map(entry).collect();
        let by_name = infos.iter().enumerate().map(|(index, info)| (info.name.clone(), index)).collect();
        let (name, ordinal) = (name.to_owned(), device.ordinal());
        LoadedModule { name, ordinal, code, entries, by_name, selection: "" }
    }

    /// The kernel of that name. One of PTX is compiled by the driver at the first call.
    ///
    /// # Errors
    /// If there is none, or the driver does not compile it.
    pub fn function(self: &Arc<Self>, name: &str) -> Result<Function> {
        let Some(&index) = self.by_name.get(name) else { return Err(self.unknown(name)) };
        let entry = self.entry(index);
        if entry.handle.get().is_none() {
            let handle = self.resolve(name)?;
            // Another thread may have been first; both have the same handle.
            let _ = entry.handle.set(Handle(handle));
        }
        Ok(Function::new(self.clone(), index))
    }

    /// Names of its kernels, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.by_name.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The code object; PTX is none.
    pub fn code(&self) -> Option<&CodeObject> {
        match &self.code {
            Code::Object(object) => Some(&object.code),
            Code::Text { .. } => None,
        }
    }

    /// The packed PTX that it was loaded from, with the records of its kernels' signatures, if it was.
    pub fn packed_ptx(&self) -> Option<&[u8]> {
        match &self.code {
            Code::Object(_) => None,
            Code::Text { text, .. } => text.packed(),
        }
    }

    /// Number of the device that it is on.
    pub fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// HIP's handle (`hipModule_t`), valid as long as this module. Null for PTX that is compiled kernel by kernel, and for
    /// other PTX before its first kernel is asked for.
    pub fn as_raw(&self) -> *mut std::ffi::c_void {
        match &self.code {
            Code::Object(object) => object.handle,
            Code::Text { text, .. } => text.handle(),
        }
    }

    pub(crate) fn info(&self, index: usize) -> &KernelInfo {
        match &self.code {
            Code::Object(object) => &object.code.kernels()[index],
            Code::Text { infos, .. } => &infos[index],
        }
    }

    pub(crate) fn entry(&self, index: usize) -> &Entry {
        &self.entries[index]
    }

    fn resolve(&self, name: &str) -> Result<hipFunction_t> {
        let object = match &self.code {
            Code::Object(object) => object,
            Code::Text { text, .. } => return text.function(name),
        };
        let text = CString::new(name).map_err(|_| self.unknown(name))?;
        let mut function = ptr::null_mut();
        // SAFETY: the module is loaded, the name ends with a zero byte.
        unsafe { hip!(hipModuleGetFunction(&mut function, object.handle, text.as_ptr()))? };
        Ok(function)
    }

    fn unknown(&self, name: &str) -> Error {
        Error::unknown_kernel(&self.name, name, self.names().into_iter(), self.selection)
    }
}

impl Entry {
    /// HIP's handle; `LoadedModule::function` has set it before anyone sees the entry.
    pub(crate) fn handle(&self) -> hipFunction_t {
        self.handle.get().map_or(ptr::null_mut(), |handle| handle.0)
    }
}

impl fmt::Debug for LoadedModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoadedModule({}, {} kernels on device {})", self.name, self.entries.len(), self.ordinal)
    }
}

impl Drop for LoadedObject {
    fn drop(&mut self) {
        // SAFETY: the handle is ours; functions keep the module alive.
        unsafe { sys::hipModuleUnload(self.handle) };
    }
}
