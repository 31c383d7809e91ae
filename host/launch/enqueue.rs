//! The end of every launch: limits, order with other streams, and the call of the runtime.

use super::geometry::{LaunchGeometry, Rest};
use super::slot::{MAX_ARGS, Slot};
use crate::event::Event;
use crate::stream::StreamRef;
use crate::sys::hip;
use crate::{Error, Function, Result};
use amdgpu_emulator::geometry::PACKET_ITEMS;
use amdgpu_emulator::{Geometry, GeometryError, Limits};
use std::ffi::c_void;
use std::ptr;

/// A launch that the stream's device and the kernel support.
pub(super) struct Admitted<'a> {
    function: &'a Function,
    stream: &'a StreamRef<'a>,
    geometry: LaunchGeometry,
}

impl<'a> Admitted<'a> {
    /// # Errors
    /// If the function is of another device, or the geometry passes a limit of the device or of the code object.
    pub(super) fn new(
        function: &'a Function,
        stream: &'a StreamRef<'a>,
        geometry: LaunchGeometry,
    ) -> Result<Admitted<'a>> {
        if function.module().ordinal() != stream.device.ordinal() {
            return Err(Error::WrongDevice {
                kernel: function.name().to_owned(),
                arg: "the function itself".to_owned(),
                memory: function.module().ordinal(),
                stream: stream.device.ordinal(),
            });
        }
        let properties = stream.device.properties();
        let limits = Limits {
            grid: properties.max_grid,
            block: properties.max_workgroup_dimensions,
            grid_items: PACKET_ITEMS,
            work_items: properties.max_workgroup_size,
            lds: properties.max_lds_bytes,
        };
        let info = function.info();
        match geometry.size.check(&limits, info.max_workgroup_size, info.lds_size) {
            Ok(()) => Ok(Admitted { function, stream, geometry }),
            Err(error) => Err(refusal(error, geometry.size, function, &limits)),
        }
    }

    /// Launches after what the owners of memory have enqueued on other streams, and before what they enqueue from now on.
    ///
    /// # Safety
    /// The arguments are what the kernel expects, and device memory that they refer to is as large as the kernel needs and lives
    /// until the kernel is done.
    pub(super) unsafe fn enqueue(self, slots: &mut [Slot<'_>]) -> Result<()> {
        let raw = self.stream.raw;
        let mut is_ordered = false;
        for owner in owners(slots, self.stream) {
            is_ordered = true;
            Event::record(owner.device(), owner.as_raw())?.precedes(raw)?;
        }
        let mut few = [ptr::null_mut(); MAX_ARGS];
        let mut many;
        let params = match few.get_mut(..slots.len()) {
            Some(few) => few,
            None => {
                many = vec![ptr::null_mut(); slots.len()];
                &mut many[..]
            }
        };
        for (param, slot) in params.iter_mut().zip(slots.iter_mut()) {
            *param = slot.address();
        }
        // SAFETY: as promised by the caller; there is a parameter for each argument.
        unsafe {
            self.launch(self.geometry.size, params)?;
            if let Some(rest) = self.geometry.rest {
                self.launch_rest(rest, params)?;
            }
        }
        if is_ordered {
            let done = Event::record(&self.stream.device, raw)?;
            for owner in owners(slots, self.stream) {
                done.precedes(owner.as_raw())?;
            }
        }
        Ok(())
    }

    /// The workgroup with the rows that are left, of which the first is `rest.before` elements after the memory's first.
    ///
    /// # Safety
    /// As for [`enqueue`](Self::enqueue).
    unsafe fn launch_rest(&self, rest: Rest, params: &mut [*mut c_void]) -> Result<()> {
        let stated = self.function.kernel().map_or(&[][..], |kernel| kernel.args);
        let mut addresses = [0_u64; MAX_ARGS];
        for ((param, address), arg) in params.iter_mut().zip(&mut addresses).zip(stated) {
            if arg.row_of > 0 {
                // SAFETY: as promised by the caller, a pointer is there; it need not be aligned.
                let first = unsafe { param.cast::<u64>().read_unaligned() };
                *address = first + rest.before * arg.row_of as u64;
                *param = ptr::from_mut(address).cast();
            }
        }
        let Geometry { block: [x, y, _], dynamic_lds, .. } = self.geometry.size;
        let last = Geometry { grid: [1, 1, 1], block: [x, y, rest.rows], dynamic_lds };
        // SAFETY: as promised by the caller, the memory has these rows too.
        unsafe { self.launch(last, params) }
    }

    /// # Safety
    /// As for [`enqueue`](Self::enqueue).
    unsafe fn launch(&self, size: Geometry, params: &mut [*mut c_void]) -> Result<()> {
        let Geometry { grid: [grid_x, grid_y, grid_z], block: [block_x, block_y, block_z], dynamic_lds } =
            size;
        let (function, stream) = (self.function.handle(), self.stream.raw);
        let params = params.as_mut_ptr();
        // SAFETY: as promised by the caller.
        unsafe {
            if self.geometry.is_cooperative {
                return hip!(hipModuleLaunchCooperativeKernel(
                    function,
                    grid_x,
                    grid_y,
                    grid_z,
                    block_x,
                    block_y,
                    block_z,
                    dynamic_lds,
                    stream,
                    params,
                ));
            }
            let extra = ptr::null_mut();
            hip!(hipModuleLaunchKernel(
                function,
                grid_x,
                grid_y,
                grid_z,
                block_x,
                block_y,
                block_z,
                dynamic_lds,
                stream,
                params,
                extra,
            ))
        }
    }
}

/// The streams that own the arguments' memory, but the one that the launch is on.
fn owners<'s>(slots: &[Slot<'s>], stream: &StreamRef<'_>) -> impl Iterator<Item = &'s crate::Stream> {
    let raw = stream.raw;
    slots.iter().filter_map(Slot::stream).filter(move |owner| owner.as_raw() != raw)
}

fn refusal(error: GeometryError, size: Geometry, function: &Function, limits: &Limits) -> Error {
    let Geometry { grid, block, .. } = size;
    let kernel = function.name().to_owned();
    match error {
        GeometryError::Zero => Error::ZeroDimension { kernel, grid, block },
        GeometryError::Grid => {
            let limit = format!("{:?} workgroups at most on this device", limits.grid);
            Error::GridTooLarge { kernel, grid, block, limit }
        }
        GeometryError::GridItems => {
            let limit = format!("{} work-items at most in each dimension", limits.grid_items);
            Error::GridTooLarge { kernel, grid, block, limit }
        }
        GeometryError::Block => {
            let limit = format!("{:?} at most on this device", limits.block);
            Error::WorkgroupTooLarge { kernel, block, limit }
        }
        GeometryError::WorkItems => {
            let limit = format!("{} work-items at most on this device", limits.work_items);
            Error::WorkgroupTooLarge { kernel, block, limit }
        }
        GeometryError::Compiled => {
            let limit = format!(
                "the kernel is compiled for {} work-items at most",
                function.info().max_workgroup_size
            );
            Error::WorkgroupTooLarge { kernel, block, limit }
        }
        GeometryError::Lds { bytes } => Error::LdsTooLarge { kernel, asked: bytes, limit: limits.lds.into() },
    }
}
