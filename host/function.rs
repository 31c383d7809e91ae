//! Kernels on a device, and launches of them.

use crate::event::Event;
use crate::generated::Slot;
use crate::kernel::Kernel;
use crate::launch::{Resolved, Rest};
use crate::module::{Entry, Loaded};
use crate::stream::{AsStream, StreamRef};
use crate::sys::{hip, hipFunction_t, hipStream_t};
use crate::{Count, DeviceRead, DeviceWrite, Error, KernelStructure, KernelValue, LaunchConfig, Result};
use amdgpu_emulator::{KernelArg, KernelInfo};
use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::Arc;

/// The most arguments that a kernel with a typed wrapper has; launches with no more than these do not allocate.
pub(crate) const MAX_ARGS: usize = 48;

/// A kernel on a device. Copies are cheap; each keeps the module loaded.
#[derive(Clone)]
pub struct Function {
    module: Arc<Loaded>,
    /// Of `module`, which never changes its entries.
    entry: *const Entry,
}

// SAFETY: the entry belongs to the module that is kept alive beside it, and is only read.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Function {
    /// `entry` is one of `module`.
    pub(crate) fn new(module: Arc<Loaded>, entry: *const Entry) -> Function {
        Function { module, entry }
    }

    fn entry(&self) -> &Entry {
        // SAFETY: the module owns the entry, is alive, and never changes its entries.
        unsafe { &*self.entry }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.info().name
    }

    /// What the code object says about it: registers, memory, arguments.
    pub fn info(&self) -> &KernelInfo {
        self.module.info(self.entry())
    }

    /// What its Rust function states, if the module's table was given.
    pub fn kernel(&self) -> Option<&'static Kernel> {
        self.entry().kernel
    }

    /// The module that it is in.
    pub fn module(&self) -> &Arc<Loaded> {
        &self.module
    }

    /// HIP's handle (`hipFunction_t`), valid as long as this function or another of its module.
    pub fn as_raw(&self) -> *mut c_void {
        self.entry().handle()
    }

    /// The same kernel for rocm-rs; valid as long as this function or another of its module.
    #[cfg(feature = "rocm-rs")]
    pub fn to_rocm_rs(&self) -> rocm_rs::hip::Function {
        // SAFETY: the handle is one of this runtime's.
        unsafe { rocm_rs::hip::Function::from_raw(self.as_raw().cast()) }
    }

    /// The kernel's own geometry if it states one, otherwise `config`: for callers that launch by name, as Candle
    /// does, with a geometry that suits other hardware.
    pub fn own_geometry_or(&self, config: LaunchConfig) -> LaunchConfig {
        match (self.kernel().map(|kernel| &kernel.geometry), config) {
            // A workgroup is a row, and only the caller knows how many there are.
            (Some(own), LaunchConfig::Explicit { grid, .. }) if own.rows.is_some() => {
                LaunchConfig::Rows { grid }
            }
            (Some(own), _) if own.items.is_some() || own.grid.is_some() => LaunchConfig::Auto,
            (Some(own), LaunchConfig::Explicit { grid, block, .. }) => {
                own.cover(grid, block).unwrap_or(config)
            }
            _ => config,
        }
    }

    /// Launches with arguments by address, as `hipModuleLaunchKernel` takes them: each points to a value, and
    /// as many bytes are read as the kernel's parameter has. Surplus arguments are ignored.
    ///
    /// # Safety
    /// The addresses are valid, the values are what the kernel expects, and device memory that they refer to is
    /// as large as the kernel needs and lives until the kernel is done.
    ///
    /// # Errors
    /// If there are too few arguments, or the device or the kernel does not support the geometry, before anything is launched;
    /// otherwise what the runtime reports.
    pub unsafe fn launch(
        &self,
        stream: &impl AsStream,
        config: LaunchConfig,
        args: &[*const c_void],
    ) -> Result<()> {
        let stream = stream.stream_ref()?;
        self.enough(args.len())?;
        let mut values = [Count::default(); MAX_ARGS];
        let stated = self.kernel().map_or(&[][..], |kernel| kernel.args);
        for ((value, arg), &at) in values.iter_mut().zip(stated).zip(args) {
            // The lengths of memory are not known here.
            if !arg.ty.is_pointer() {
                // SAFETY: as promised by the caller, an address for each parameter.
                *value = unsafe { integer(arg.ty.element(), at) };
            }
        }
        let wave = stream.device.properties().wave_size;
        let Some(geometry) = Resolved::new(config, self.name(), self.kernel(), &values, false, wave)? else {
            return Ok(());
        };
        let geometry = self.check(geometry, &stream)?;
        let mut few = [ptr::null_mut(); MAX_ARGS];
        let mut many;
        let params: &mut [*mut c_void] = if args.len() <= MAX_ARGS {
            for (param, &at) in few.iter_mut().zip(args) {
                *param = at.cast_mut();
            }
            &mut few
        } else {
            many = args.iter().map(|&at| at.cast_mut()).collect::<Vec<_>>();
            &mut many
        };
        // SAFETY: as promised by the caller.
        unsafe { self.launch_raw(geometry, stream.raw, params) }
    }

    /// Arguments one by one, each checked for its size.
    pub fn launch_builder<'a, S: AsStream>(&'a self, stream: &'a S) -> LaunchBuilder<'a, S> {
        LaunchBuilder { function: self, stream, slots: Vec::with_capacity(self.arg_count()) }
    }

    /// How many arguments the kernel takes.
    pub fn arg_count(&self) -> usize {
        self.explicit_args().count()
    }

    fn explicit_args(&self) -> impl Iterator<Item = &KernelArg> {
        self.info().args.iter().filter(|arg| !arg.is_hidden())
    }

    fn enough(&self, given: usize) -> Result<()> {
        let need = self.arg_count();
        if given < need {
            return Err(Error::TooFewArguments { kernel: self.name().to_owned(), given, need });
        }
        Ok(())
    }

    /// The geometry, if the stream's device and the kernel support it.
    pub(crate) fn check(&self, geometry: Resolved, stream: &StreamRef<'_>) -> Result<Resolved> {
        if self.module.ordinal() != stream.device.ordinal() {
            return Err(Error::WrongDevice {
                kernel: self.name().to_owned(),
                arg: "the function itself".to_owned(),
                memory: self.module.ordinal(),
                stream: stream.device.ordinal(),
            });
        }
        let info = self.info();
        geometry.check(&info.name, &stream.device, info.max_workgroup_size, info.lds_size)
    }

    /// # Safety
    /// As for [`Function::launch`]; the geometry has been checked.
    pub(crate) unsafe fn launch_raw(
        &self,
        geometry: Resolved,
        stream: hipStream_t,
        params: &mut [*mut c_void],
    ) -> Result<()> {
        // SAFETY: as promised by the caller.
        unsafe {
            self.enqueue(geometry, stream, params)?;
            match geometry.rest {
                Some(rest) => self.launch_rest(geometry, rest, stream, params),
                None => Ok(()),
            }
        }
    }

    /// The workgroup with the rows that are left, of which the first is behind `rest.before` elements.
    ///
    /// # Safety
    /// As for [`Function::launch`].
    unsafe fn launch_rest(
        &self,
        geometry: Resolved,
        rest: Rest,
        stream: hipStream_t,
        params: &mut [*mut c_void],
    ) -> Result<()> {
        let stated = self.kernel().map_or(&[][..], |kernel| kernel.args);
        let mut addresses = [0_u64; MAX_ARGS];
        for ((param, address), arg) in params.iter_mut().zip(&mut addresses).zip(stated) {
            if arg.row_of > 0 {
                // SAFETY: as promised by the caller, a pointer is there; it need not be aligned.
                let first = unsafe { param.cast::<u64>().read_unaligned() };
                *address = first + rest.before * arg.row_of as u64;
                *param = ptr::from_mut(address).cast();
            }
        }
        let [x, y, _] = geometry.block;
        let last = Resolved { grid: [1, 1, 1], block: [x, y, rest.rows], rest: None, ..geometry };
        // SAFETY: as promised by the caller, the memory has these rows too.
        unsafe { self.enqueue(last, stream, params) }
    }

    /// # Safety
    /// As for [`Function::launch`].
    unsafe fn enqueue(
        &self,
        geometry: Resolved,
        stream: hipStream_t,
        params: &mut [*mut c_void],
    ) -> Result<()> {
        let Resolved { grid, block, lds_bytes, cooperative, .. } = geometry;
        let function: hipFunction_t = self.entry().handle();
        // SAFETY: as promised by the caller.
        unsafe {
            if cooperative {
                return hip!(hipModuleLaunchCooperativeKernel(
                    function,
                    grid[0],
                    grid[1],
                    grid[2],
                    block[0],
                    block[1],
                    block[2],
                    lds_bytes,
                    stream,
                    params.as_mut_ptr(),
                ));
            }
            hip!(hipModuleLaunchKernel(
                function,
                grid[0],
                grid[1],
                grid[2],
                block[0],
                block[1],
                block[2],
                lds_bytes,
                stream,
                params.as_mut_ptr(),
                ptr::null_mut(),
            ))
        }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function({} on device {})", self.name(), self.module.ordinal())
    }
}

/// A launch whose arguments are given one by one.
pub struct LaunchBuilder<'a, S> {
    function: &'a Function,
    stream: &'a S,
    slots: Vec<Slot<'a>>,
}

impl<'a, S: AsStream> LaunchBuilder<'a, S> {
    /// The next argument, by value.
    #[must_use]
    pub fn value(mut self, value: impl KernelValue) -> Self {
        self.slots.push(Slot::value(value));
        self
    }

    /// The next argument, a structure by value.
    #[must_use]
    pub fn structure(mut self, structure: &'a impl KernelStructure) -> Self {
        self.slots.push(Slot::structure(structure));
        self
    }

    /// The next argument: memory to read.
    #[must_use]
    pub fn memory<T>(mut self, memory: &'a impl DeviceRead<T>) -> Self {
        self.slots.push(Slot::read(memory));
        self
    }

    /// The next argument: memory to write.
    #[must_use]
    pub fn memory_mut<T>(mut self, memory: &'a mut impl DeviceWrite<T>) -> Self {
        self.slots.push(Slot::write(memory));
        self
    }

    /// The next argument: a null pointer.
    #[must_use]
    pub fn null(mut self) -> Self {
        self.slots.push(Slot::NULL);
        self
    }

    /// Launches.
    ///
    /// # Safety
    /// The arguments are what the kernel expects, and the memory is as large as it needs.
    ///
    /// # Errors
    /// If the number or the sizes of the arguments are not those of the kernel, or the device or the kernel does not support
    /// the geometry, before anything is launched; otherwise what the runtime reports.
    pub unsafe fn launch(self, config: LaunchConfig) -> Result<()> {
        let LaunchBuilder { function, stream, mut slots } = self;
        function.enough(slots.len())?;
        for (index, (slot, arg)) in slots.iter().zip(function.explicit_args()).enumerate() {
            if slot.size() != arg.size as usize {
                return Err(Error::ArgumentSize {
                    kernel: function.name().to_owned(),
                    index,
                    given: slot.size(),
                    need: arg.size as usize,
                });
            }
        }
        let stream = stream.stream_ref()?;
        let values: Vec<Count> = slots.iter().map(Slot::count).collect();
        let wave = stream.device.properties().wave_size;
        let Some(geometry) = Resolved::new(config, function.name(), function.kernel(), &values, false, wave)?
        else {
            return Ok(());
        };
        let geometry = function.check(geometry, &stream)?;
        let order = Order::before(&slots, &stream)?;
        let mut params: Vec<*mut c_void> = slots.iter_mut().map(Slot::address).collect();
        // SAFETY: as promised by the caller; sizes have been checked.
        unsafe { function.launch_raw(geometry, stream.raw, &mut params)? };
        order.after(&slots, &stream)
    }
}

/// Orders a launch with the streams that own its memory, if they are other streams.
pub(crate) struct Order {
    needed: bool,
}

impl Order {
    /// The launch begins after what those streams have enqueued.
    pub(crate) fn before(slots: &[Slot<'_>], stream: &StreamRef<'_>) -> Result<Order> {
        let mut needed = false;
        for owner in slots.iter().filter_map(Slot::stream).filter(|owner| owner.as_raw() != stream.raw) {
            needed = true;
            Event::record(owner.device(), owner.as_raw())?.precedes(stream.raw)?;
        }
        Ok(Order { needed })
    }

    /// What those streams do from now on begins after the launch.
    pub(crate) fn after(self, slots: &[Slot<'_>], stream: &StreamRef<'_>) -> Result<()> {
        if !self.needed {
            return Ok(());
        }
        let done = Event::record(&stream.device, stream.raw)?;
        for owner in slots.iter().filter_map(Slot::stream).filter(|owner| owner.as_raw() != stream.raw) {
            done.precedes(owner.as_raw())?;
        }
        Ok(())
    }
}

/// The integer at an address, 0 if the type is not an integer.
///
/// # Safety
/// The address is valid for a value of that type.
unsafe fn integer(ty: &str, at: *const c_void) -> Count {
    macro_rules! read {
        ($($t:ident)*) => {
            match ty {
                // SAFETY: as promised by the caller; it need not be aligned.
                $(stringify!($t) => unsafe { at.cast::<$t>().read_unaligned() }.integer(),)*
                _ => None,
            }
        };
    }
    Count(read!(u8 i8 u16 i16 u32 i32 u64 i64 usize isize).unwrap_or(0))
}
