//! Contexts, the driver's older name for a device that a thread works with. Each device has one, which is always
//! there, so making one is taking it.

use std::cell::RefCell;
use std::ffi::{c_int, c_uint};

use super::{give, not_null};
use crate::emulated::Runtime;
use crate::error::Error;
use crate::types::*;

/// Contexts are numbered from here, away from null and from other handles.
const FIRST: usize = 0x100;

thread_local! {
    /// Devices under the current one, pushed by this thread.
    static STACK: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

fn context(ordinal: usize) -> hipCtx_t {
    (FIRST + ordinal) as hipCtx_t
}

fn ordinal(runtime: &Runtime, context: hipCtx_t) -> Result<c_int, Error> {
    let ordinal = (context as usize).wrapping_sub(FIRST);
    if ordinal >= runtime.devices.len() {
        return Err(Error::Handle { value: context as u64, expected: "a context" });
    }
    Ok(ordinal as c_int)
}

fn push(runtime: &Runtime, ordinal: c_int) -> Result<(), Error> {
    let before = runtime.current().ordinal;
    runtime.set_current(ordinal)?;
    // A thread that is ending has nothing to go back to.
    let _ = STACK.try_with(|stack| stack.borrow_mut().push(before));
    Ok(())
}

hip_functions! {
    /// Takes a device's context and makes it current.
    fn hipCtxCreate(ctx: *mut hipCtx_t, flags: c_uint, device: hipDevice_t) => |runtime| {
        let _ = flags;
        not_null("ctx", ctx)?;
        push(runtime, device)?;
        give("ctx", ctx, context(device as usize))
    }

    /// Lets go of a context; the device keeps it.
    fn hipCtxDestroy(ctx: hipCtx_t) => |runtime| { ordinal(runtime, ctx).map(drop) }

    /// Makes a context current, and remembers the one before.
    fn hipCtxPushCurrent(ctx: hipCtx_t) => |runtime| { push(runtime, ordinal(runtime, ctx)?) }

    /// Gives the current context, and goes back to the one before.
    fn hipCtxPopCurrent(ctx: *mut hipCtx_t) => |runtime| {
        let current = runtime.current().ordinal;
        let before = STACK.try_with(|stack| stack.borrow_mut().pop()).ok().flatten();
        let before = before.ok_or_else(|| Error::Unsupported("no context was pushed by this thread".to_owned()))?;
        runtime.set_current(before as c_int)?;
        if ctx.is_null() { Ok(()) } else { give("ctx", ctx, context(current)) }
    }

    /// Makes a context current.
    fn hipCtxSetCurrent(ctx: hipCtx_t) => |runtime| { runtime.set_current(ordinal(runtime, ctx)?) }

    /// The current context.
    fn hipCtxGetCurrent(ctx: *mut hipCtx_t) => |runtime| { give("ctx", ctx, context(runtime.current().ordinal)) }

    /// The current context's device.
    fn hipCtxGetDevice(device: *mut hipDevice_t) => |runtime| {
        give("device", device, runtime.current().ordinal as c_int)
    }

    /// The version of a context's interface.
    fn hipCtxGetApiVersion(ctx: hipCtx_t, apiVersion: *mut c_int) => |runtime| {
        if !ctx.is_null() {
            ordinal(runtime, ctx)?;
        }
        give("apiVersion", apiVersion, 4)
    }

    /// Flags of the current context.
    fn hipCtxGetFlags(flags: *mut c_uint) => |runtime| {
        give("flags", flags, runtime.current().flags.load(std::sync::atomic::Ordering::Relaxed) as c_uint)
    }

    /// Waits for all work of the current context's device.
    fn hipCtxSynchronize() => |runtime| {
        runtime.refuse_device_wait()?;
        runtime.synchronize(runtime.current())
    }

    /// A device's context.
    fn hipDevicePrimaryCtxRetain(pctx: *mut hipCtx_t, dev: hipDevice_t) => |runtime| {
        give("pctx", pctx, context(runtime.device(dev)?.ordinal))
    }

    /// Lets go of a device's context.
    fn hipDevicePrimaryCtxRelease(dev: hipDevice_t) => |runtime| { runtime.device(dev).map(drop) }

    /// Frees everything that a device holds.
    fn hipDevicePrimaryCtxReset(dev: hipDevice_t) => |runtime| {
        runtime.reset(runtime.device(dev)?);
        Ok(())
    }

    /// Flags of a device's context, and whether it is there: it always is.
    fn hipDevicePrimaryCtxGetState(dev: hipDevice_t, flags: *mut c_uint, active: *mut c_int) => |runtime| {
        let found = runtime.device(dev)?;
        not_null("active", active)?;
        give("flags", flags, found.flags.load(std::sync::atomic::Ordering::Relaxed) as c_uint)?;
        give("active", active, 1)
    }

    /// Starts a profiler: there is none to start.
    fn hipProfilerStart() => |_| { Ok(()) }

    /// Stops a profiler: there is none to stop.
    fn hipProfilerStop() => |_| { Ok(()) }
}
