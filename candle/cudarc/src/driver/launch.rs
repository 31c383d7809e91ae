//! Launches.

use super::guard::Guarded;
use super::sys::CUevent_flags;
use super::{
    CudaEvent, CudaFunction, CudaSlice, CudaStream, CudaView, CudaViewMut, DeviceRepr, DeviceSlice,
    DriverError,
};
use std::ffi::c_void;
use std::ptr;

/// The most arguments of a launch that needs no allocation.
const FEW: usize = 32;

/// Grid and workgroup of a launch, as the caller asks for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Workgroups in x, y and z.
    pub grid_dim: (u32, u32, u32),
    /// Work-items of a workgroup in x, y and z.
    pub block_dim: (u32, u32, u32),
    /// Bytes of workgroup memory (LDS).
    pub shared_mem_bytes: u32,
}

impl LaunchConfig {
    /// One lane for each of `n` elements, in workgroups of 1,024.
    pub fn for_num_elems(n: u32) -> LaunchConfig {
        LaunchConfig { grid_dim: (n.div_ceil(1024), 1, 1), block_dim: (1024, 1, 1), shared_mem_bytes: 0 }
    }

    /// For this kernel: the geometry that it states for itself, if it states one.
    fn resolve(self, function: &candle_amdgpu::Function) -> candle_amdgpu::LaunchConfig {
        let [grid, block] = [self.grid_dim, self.block_dim].map(|(x, y, z)| [x, y, z]);
        let config = candle_amdgpu::LaunchConfig::explicit(grid, block, self.shared_mem_bytes);
        function.own_geometry_or(config)
    }
}

/// The arguments of a launch, given one by one.
pub struct LaunchArgs<'a> {
    stream: &'a CudaStream,
    function: &'a CudaFunction,
    /// Where each argument's value is.
    few: [*const c_void; FEW],
    count: usize,
    /// All of them, once they are more than `few` holds.
    many: Vec<*const c_void>,
    /// Bytes of the memory that the first argument is.
    first: usize,
    /// Other queues whose memory is used.
    owners: Vec<&'a CudaStream>,
    /// Of the events before and after the launch, if there are to be any.
    events: Option<CUevent_flags>,
    /// Why the launch will be an error.
    refused: Option<DriverError>,
}

impl<'a> LaunchArgs<'a> {
    pub(super) fn new(stream: &'a CudaStream, function: &'a CudaFunction) -> LaunchArgs<'a> {
        let (few, many, owners) = ([ptr::null(); FEW], Vec::new(), Vec::new());
        LaunchArgs { stream, function, few, count: 0, many, first: 0, owners, events: None, refused: None }
    }

    /// Makes [`LaunchArgs::launch`] return an event before and one after the kernel.
    pub fn record_kernel_launch(&mut self, flags: CUevent_flags) -> &mut Self {
        self.events = Some(flags);
        self
    }

    /// Launches, and returns before the kernel has run.
    ///
    /// # Safety
    /// The arguments are what the kernel expects, and memory is as large as it needs.
    ///
    /// # Errors
    /// If there are too few arguments, or the device or the kernel does not support the geometry.
    pub unsafe fn launch(
        &mut self,
        config: LaunchConfig,
    ) -> Result<Option<(CudaEvent, CudaEvent)>, DriverError> {
        let resolved = config.resolve(&self.function.function);
        // SAFETY: as promised by the caller.
        unsafe { self.launch_as(config, resolved) }
    }

    /// The same with exactly this geometry, for workgroups that may wait for each other: all of them run at the same time.
    ///
    /// # Safety
    /// As for [`LaunchArgs::launch`].
    ///
    /// # Errors
    /// If there are too few arguments, the device or the kernel does not support the geometry, or the device has no room for all
    /// workgroups at once.
    pub unsafe fn launch_cooperative(
        &mut self,
        config: LaunchConfig,
    ) -> Result<Option<(CudaEvent, CudaEvent)>, DriverError> {
        let [grid, block] = [config.grid_dim, config.block_dim].map(|(x, y, z)| [x, y, z]);
        let lds_bytes = config.shared_mem_bytes;
        let together = candle_amdgpu::LaunchConfig::Cooperative { grid, block, lds_bytes };
        // SAFETY: as promised by the caller.
        unsafe { self.launch_as(config, together) }
    }

    /// # Safety
    /// As for [`LaunchArgs::launch`].
    unsafe fn launch_as(
        &mut self,
        asked: LaunchConfig,
        config: candle_amdgpu::LaunchConfig,
    ) -> Result<Option<(CudaEvent, CudaEvent)>, DriverError> {
        if let Some(error) = self.refused.take() {
            return Err(error);
        }
        let function = &self.function.function;
        let args = if self.many.is_empty() { &self.few[..self.count] } else { &self.many[..] };
        if let candle_amdgpu::LaunchConfig::Explicit { grid, .. } | candle_amdgpu::LaunchConfig::Rows { grid } =
            config
            && grid.contains(&0)
        {
            return Ok(None);
        }
        for owner in &self.owners {
            self.stream.order(owner);
        }
        let event = || self.events.map(|flags| self.stream.record_event(Some(flags))).transpose();
        let before = event()?;
        // SAFETY: as promised by the caller; the values are borrowed as long as `self` lives.
        let launched = unsafe {
            Guarded::new(self.stream, function, asked, args, self.first).and_then(|guarded| {
                let mut room = Vec::new();
                function.launch(self.stream.stream(), config, guarded.args(args, &mut room))
            })
        };
        for owner in &self.owners {
            owner.order(self.stream);
        }
        self.stream.checked(launched)?;
        Ok(before.zip(event()?))
    }

    fn push(&mut self, value: *const c_void) -> &mut Self {
        if self.count < FEW {
            self.few[self.count] = value;
        } else {
            if self.many.is_empty() {
                self.many.extend(self.few);
            }
            self.many.push(value);
        }
        self.count += 1;
        self
    }

    /// The queue that it is launched on.
    pub(super) fn stream(&self) -> &'a CudaStream {
        self.stream
    }

    /// An argument that the launch must not have, if it is an error.
    pub(super) fn refuse(&mut self, argument: Result<(), DriverError>) -> &mut Self {
        self.refused = self.refused.take().or(argument.err());
        self
    }

    pub(super) fn memory(&mut self, address: &u64, bytes: usize, owner: &'a CudaStream) -> &mut Self {
        if self.count == 0 {
            self.first = bytes;
        }
        if owner != self.stream && self.stream.context().is_event_tracking() && !self.owners.contains(&owner)
        {
            self.owners.push(owner);
        }
        self.push(ptr::from_ref(address).cast())
    }
}

/// What can be an argument of a launch.
///
/// # Safety
/// The argument that is pushed is one that a kernel can take.
pub unsafe trait PushKernelArg<A> {
    /// The next argument.
    fn arg(&mut self, arg: A) -> &mut Self;
}

// SAFETY: the value lives as long as the arguments, and the device's type has its layout.
unsafe impl<'a, 'b: 'a, T: DeviceRepr> PushKernelArg<&'b T> for LaunchArgs<'a> {
    fn arg(&mut self, arg: &'b T) -> &mut Self {
        self.push(ptr::from_ref(arg).cast())
    }
}

// SAFETY: an address, which lives as long as the arguments.
unsafe impl<'a, 'b: 'a, T> PushKernelArg<&'b CudaSlice<T>> for LaunchArgs<'a> {
    fn arg(&mut self, arg: &'b CudaSlice<T>) -> &mut Self {
        self.memory(&arg.address, arg.num_bytes(), &arg.stream)
    }
}

// SAFETY: as above.
unsafe impl<'a, 'b: 'a, T> PushKernelArg<&'b mut CudaSlice<T>> for LaunchArgs<'a> {
    fn arg(&mut self, arg: &'b mut CudaSlice<T>) -> &mut Self {
        self.memory(&arg.address, arg.num_bytes(), &arg.stream)
    }
}

// SAFETY: as above.
unsafe impl<'a, 'b: 'a, 'c: 'b, T> PushKernelArg<&'b CudaView<'c, T>> for LaunchArgs<'a> {
    fn arg(&mut self, arg: &'b CudaView<'c, T>) -> &mut Self {
        self.memory(&arg.address, arg.num_bytes(), arg.stream)
    }
}

// SAFETY: as above.
unsafe impl<'a, 'b: 'a, 'c: 'b, T> PushKernelArg<&'b mut CudaViewMut<'c, T>> for LaunchArgs<'a> {
    fn arg(&mut self, arg: &'b mut CudaViewMut<'c, T>) -> &mut Self {
        self.memory(&arg.address, arg.num_bytes(), arg.stream)
    }
}
