//! Launches whose arguments are given one by one, or by address, and nobody knows how long their memory must be.

use super::enqueue::Admitted;
use super::geometry::{Known, LaunchGeometry};
use super::slot::{MAX_ARGS, MAX_VALUES, Slot, Values};
use crate::kernel::ArgType;
use crate::stream::AsStream;
use crate::{DeviceRead, DeviceWrite, Error, Function, KernelStructure, KernelValue, LaunchConfig, Result};
use std::ffi::c_void;

impl Function {
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
        let stated = self.kernel().map_or(&[][..], |kernel| kernel.args);
        let slot = |index: usize| {
            // Of pointers, the lengths of memory are not known here.
            let ty = stated.get(index).map_or("", |arg| match arg.ty {
                ArgType::Value(ty) => ty,
                ArgType::Pointer { .. } => "",
            });
            // SAFETY: as promised by the caller, an address for each parameter.
            Slot::at(args[index], unsafe { integer(ty, args[index]) })
        };
        let mut few = [Slot::NULL; MAX_ARGS];
        let mut many;
        let slots = match few.get_mut(..args.len()) {
            Some(few) => {
                few.iter_mut().enumerate().for_each(|(index, few)| *few = slot(index));
                few
            }
            None => {
                many = (0..args.len()).map(slot).collect::<Vec<_>>();
                &mut many[..]
            }
        };
        // SAFETY: as promised by the caller.
        unsafe { self.launch_slots(stream, config, slots) }
    }

    /// Arguments one by one, each checked for its size.
    pub fn launch_builder<'a, S: AsStream>(&'a self, stream: &'a S) -> LaunchBuilder<'a, S> {
        LaunchBuilder { function: self, stream, slots: Vec::with_capacity(self.arg_count()) }
    }

    /// Launches with arguments in slots.
    ///
    /// # Safety
    /// The arguments are what the kernel expects, and device memory that they refer to is as large as the kernel needs and lives
    /// until the kernel is done.
    pub(crate) unsafe fn launch_slots(
        &self,
        stream: &impl AsStream,
        config: LaunchConfig,
        slots: &mut [Slot<'_>],
    ) -> Result<()> {
        let (given, need) = (slots.len(), self.arg_count());
        if given < need {
            return Err(Error::TooFewArguments { kernel: self.name().to_owned(), given, need });
        }
        let stream = stream.stream_ref()?;
        let values = Values::new(slots, MAX_VALUES);
        let wave = stream.device.properties().wave_size;
        let known = Known::Arguments(&values);
        let Some(geometry) = LaunchGeometry::new(config, self.name(), self.kernel(), known, wave)? else {
            return Ok(());
        };
        // SAFETY: as promised by the caller.
        unsafe { Admitted::new(self, &stream, geometry)?.enqueue(slots) }
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
        for (index, (slot, arg)) in slots.iter().zip(function.explicit_args()).enumerate() {
            let (given, need) = (slot.size(), arg.size as usize);
            if given != need {
                return Err(Error::ArgumentSize { kernel: function.name().to_owned(), index, given, need });
            }
        }
        // SAFETY: as promised by the caller; sizes have been checked.
        unsafe { function.launch_slots(stream, config, &mut slots) }
    }
}

/// The integer at an address, `None` if the type is not an integer.
///
/// # Safety
/// The address is valid for a value of that type.
unsafe fn integer(ty: &str, at: *const c_void) -> Option<i128> {
    macro_rules! read {
        ($($t:ident)*) => {
            match ty {
                // SAFETY: as promised by the caller; it need not be aligned.
                $(stringify!($t) => unsafe { at.cast::<$t>().read_unaligned() }.integer(),)*
                _ => None,
            }
        };
    }
    read!(u8 i8 u16 i16 u32 i32 u64 i64 usize isize)
}
