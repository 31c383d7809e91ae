//! Contexts: each device's primary one.

use std::cell::RefCell;
use std::ffi::{c_int, c_uint};
use std::sync::atomic::Ordering;

use super::{CURRENT, Cuda, call, cuda_functions};
use crate::api::{give, not_null};
use crate::error::Error;
use crate::types::*;

thread_local! {
    /// Devices under the current one, pushed by this thread.
    static STACK: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

fn ordinal(cuda: &Cuda, context: hipCtx_t) -> Result<c_int, Error> {
    let found = cuda.ordinal(|device| device.context.load(Ordering::Acquire) == context);
    found.filter(|_| !context.is_null()).ok_or(Error::Handle { value: context as u64, expected: "a context" })
}

fn push(cuda: &Cuda, ordinal: c_int) -> Result<(), Error> {
    let before = CURRENT.get();
    cuda.set_current(ordinal)?;
    // A thread that is ending has nothing to go back to.
    let _ = STACK.try_with(|stack| stack.borrow_mut().push(before));
    Ok(())
}

cuda_functions! {
    fn hipCtxCreate(ctx: *mut hipCtx_t, flags: c_uint, device: hipDevice_t) => |cuda| {
        let _ = flags;
        not_null("ctx", ctx)?;
        push(cuda, device)?;
        give("ctx", ctx, cuda.context(cuda.current())?)
    }

    fn hipCtxDestroy(ctx: hipCtx_t) => |cuda| { ordinal(cuda, ctx).map(drop) }

    fn hipCtxPushCurrent(ctx: hipCtx_t) => |cuda| { push(cuda, ordinal(cuda, ctx)?) }

    fn hipCtxPopCurrent(ctx: *mut hipCtx_t) => |cuda| {
        let current = cuda.context(cuda.current())?;
        let before = STACK.try_with(|stack| stack.borrow_mut().pop()).ok().flatten();
        let before = before.ok_or_else(|| Error::Unsupported("no context was pushed by this thread".to_owned()))?;
        cuda.set_current(before as c_int)?;
        if ctx.is_null() { Ok(()) } else { give("ctx", ctx, current) }
    }

    fn hipCtxSetCurrent(ctx: hipCtx_t) => |cuda| { cuda.set_current(ordinal(cuda, ctx)?) }

    fn hipCtxGetCurrent(ctx: *mut hipCtx_t) => |cuda| { give("ctx", ctx, cuda.context(cuda.current())?) }

    fn hipCtxGetDevice(device: *mut hipDevice_t) => |_| { give("device", device, CURRENT.get() as c_int) }

    fn hipCtxGetApiVersion(ctx: hipCtx_t, apiVersion: *mut c_int) => |cuda| {
        let mut version = 0;
        call!(cuda.cuCtxGetApiVersion(ctx, &mut version))?;
        give("apiVersion", apiVersion, version as c_int)
    }

    fn hipCtxGetFlags(flags: *mut c_uint) => |cuda| {
        let (mut found, mut active) = (0, 0);
        call!(cuda.cuDevicePrimaryCtxGetState(cuda.current().raw, &mut found, &mut active))?;
        give("flags", flags, found)
    }

    fn hipCtxSynchronize() => |cuda| { cuda.synchronize() }

    fn hipDevicePrimaryCtxRetain(pctx: *mut hipCtx_t, dev: hipDevice_t) => |cuda| {
        give("pctx", pctx, cuda.context(cuda.device(dev)?)?)
    }

    fn hipDevicePrimaryCtxRelease(dev: hipDevice_t) => |cuda| { cuda.device(dev).map(drop) }

    fn hipDevicePrimaryCtxReset(dev: hipDevice_t) => |cuda| { cuda.reset(cuda.device(dev)?) }

    fn hipDevicePrimaryCtxGetState(dev: hipDevice_t, flags: *mut c_uint, active: *mut c_int) => |cuda| {
        let (mut found, mut is_active) = (0, 0);
        not_null("active", active)?;
        call!(cuda.cuDevicePrimaryCtxGetState(cuda.device(dev)?.raw, &mut found, &mut is_active))?;
        give("flags", flags, found)?;
        give("active", active, is_active)
    }

    fn hipProfilerStart() => |_| { Ok(()) }

    fn hipProfilerStop() => |_| { Ok(()) }
}
