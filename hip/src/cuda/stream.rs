//! Streams, events, and values in memory that streams wait for.

use std::ffi::{c_int, c_uint, c_void};

use super::sys::{CUresult, Handle};
use super::{Cuda, call, cuda_functions, hip_code};
use crate::api::{give, not_null, own};
use crate::error::Error;
use crate::types::*;

/// HIP's flags of events that CUDA has too: blocking wait, no timing, for other processes.
const EVENT_FLAGS: c_uint = 7;

impl Cuda {
    /// # Safety
    /// `stream` is null or valid for writing.
    unsafe fn new_stream(
        &self,
        stream: *mut hipStream_t,
        flags: c_uint,
        priority: c_int,
    ) -> Result<(), Error> {
        not_null("stream", stream)?;
        if flags > HIP_STREAM_NON_BLOCKING {
            let value = flags.to_string();
            let expected = "it must be 0 or 1 (non-blocking)";
            return Err(Error::Argument { name: "flags", value, expected });
        }
        // Out of range is cut off, as HIP has it.
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: writes both numbers; then the caller's contract.
        unsafe {
            if priority != 0 {
                call!(self.cuCtxGetStreamPriorityRange(&mut least, &mut greatest))?;
            }
            call!(self.cuStreamCreateWithPriority(stream, flags, priority.clamp(greatest, least)))
        }
    }

    /// Waits for a stream's work.
    pub(super) fn wait(&self, stream: hipStream_t) -> Result<(), Error> {
        // SAFETY: the caller of the C function passes a stream of the driver's.
        unsafe { call!(self.cuStreamSynchronize(stream))? };
        self.recent.done(Some(stream));
        Ok(())
    }

    fn stream_device(&self, stream: hipStream_t) -> Result<c_int, Error> {
        let mut context = std::ptr::null_mut();
        // SAFETY: writes the handle.
        unsafe { call!(self.cuStreamGetCtx(stream, &mut context))? };
        let found =
            self.ordinal(|device| device.context.load(std::sync::atomic::Ordering::Acquire) == context);
        found.ok_or(Error::Handle { value: stream as u64, expected: "a stream of a device's own context" })
    }

    /// # Safety
    /// The function may be called with `data`.
    unsafe fn call_back(
        &self,
        stream: hipStream_t,
        callback: hipStreamCallback_t,
        data: *mut c_void,
    ) -> Result<(), Error> {
        let callback = callback.ok_or(Error::Null("callback"))?;
        let both = Box::into_raw(Box::new((callback, data)));
        // SAFETY: the box is taken back by the call, which comes once.
        let result = unsafe { call!(self.cuStreamAddCallback(stream, called_back, both.cast(), 0)) };
        if result.is_err() {
            // SAFETY: refused, so that nobody else has it.
            drop(unsafe { Box::from_raw(both) });
        }
        result
    }

    /// # Safety
    /// The function may be called with `data`.
    unsafe fn call_host(
        &self,
        stream: hipStream_t,
        function: hipHostFn_t,
        data: *mut c_void,
    ) -> Result<(), Error> {
        let function = function.ok_or(Error::Null("fn"))?;
        // SAFETY: the caller's contract.
        unsafe { call!(self.cuLaunchHostFunc(stream, function, data)) }
    }

    /// # Safety
    /// `event` is null or valid for writing.
    unsafe fn new_event(&self, event: *mut hipEvent_t, flags: c_uint) -> Result<(), Error> {
        not_null("event", event)?;
        // SAFETY: the caller's contract.
        unsafe { call!(self.cuEventCreate(event, flags & EVENT_FLAGS)) }
    }
}

type Both = (unsafe extern "C" fn(hipStream_t, crate::hipError_t, *mut c_void), *mut c_void);

/// Calls what [`Cuda::call_back`] kept, with HIP's code.
///
/// # Safety
/// `both` is what that function boxed.
unsafe extern "C" fn called_back(stream: Handle, code: CUresult, both: *mut c_void) {
    // SAFETY: the caller's contract.
    let (callback, data) = *unsafe { Box::from_raw(both.cast::<Both>()) };
    // SAFETY: the program registered it to be called so.
    unsafe { callback(stream, hip_code(code), data) };
}

/// The mask of a wait has all bits: CUDA has no other.
fn whole(mask: u64, all: u64) -> Result<(), Error> {
    if mask & all == all {
        return Ok(());
    }
    Err(Error::Unsupported("CUDA's streams wait for a whole value, not for one behind a mask".to_owned()))
}

/// HIP's comparisons (at least, equal, a bit of it, lacks one) have CUDA's numbers.
fn comparison(flags: c_uint) -> Result<c_uint, Error> {
    if flags <= 3 {
        return Ok(flags);
    }
    Err(Error::Argument { name: "flags", value: flags.to_string(), expected: "it must be 0 to 3" })
}

cuda_functions! {
    fn hipStreamCreate(stream: *mut hipStream_t) => |cuda| { cuda.new_stream(stream, 0, 0) }

    fn hipStreamCreateWithFlags(stream: *mut hipStream_t, flags: c_uint) => |cuda| { cuda.new_stream(stream, flags, 0) }

    fn hipStreamCreateWithPriority(stream: *mut hipStream_t, flags: c_uint, priority: c_int) => |cuda| {
        cuda.new_stream(stream, flags, priority)
    }

    fn hipStreamDestroy(stream: hipStream_t) => |cuda| {
        not_null("stream", stream)?;
        call!(cuda.cuStreamDestroy_v2(stream))
    }

    fn hipStreamSynchronize(stream: hipStream_t) => |cuda| { cuda.wait(stream) }

    fn hipStreamSynchronize_spt(stream: hipStream_t) => |cuda| { cuda.wait(own(stream)) }

    fn hipStreamQuery(stream: hipStream_t) => |cuda| { call!(cuda.cuStreamQuery(stream)) }

    fn hipStreamQuery_spt(stream: hipStream_t) => |cuda| { call!(cuda.cuStreamQuery(own(stream))) }

    fn hipStreamWaitEvent(stream: hipStream_t, event: hipEvent_t, flags: c_uint) => |cuda| {
        not_null("event", event)?;
        call!(cuda.cuStreamWaitEvent(stream, event, flags))
    }

    fn hipStreamWaitEvent_spt(stream: hipStream_t, event: hipEvent_t, flags: c_uint) => |cuda| {
        not_null("event", event)?;
        call!(cuda.cuStreamWaitEvent(own(stream), event, flags))
    }

    fn hipStreamGetFlags(stream: hipStream_t, flags: *mut c_uint) => |cuda| {
        not_null("flags", flags)?;
        call!(cuda.cuStreamGetFlags(stream, flags))
    }

    fn hipStreamGetFlags_spt(stream: hipStream_t, flags: *mut c_uint) => |cuda| {
        not_null("flags", flags)?;
        call!(cuda.cuStreamGetFlags(own(stream), flags))
    }

    fn hipStreamGetPriority(stream: hipStream_t, priority: *mut c_int) => |cuda| {
        not_null("priority", priority)?;
        call!(cuda.cuStreamGetPriority(stream, priority))
    }

    fn hipStreamGetPriority_spt(stream: hipStream_t, priority: *mut c_int) => |cuda| {
        not_null("priority", priority)?;
        call!(cuda.cuStreamGetPriority(own(stream), priority))
    }

    fn hipStreamGetDevice(stream: hipStream_t, device: *mut hipDevice_t) => |cuda| {
        give("device", device, cuda.stream_device(stream)?)
    }

    fn hipStreamAddCallback(stream: hipStream_t, callback: hipStreamCallback_t, userData: *mut c_void, flags: c_uint) => |cuda| {
        let _ = flags;
        cuda.call_back(stream, callback, userData)
    }

    fn hipStreamAddCallback_spt(stream: hipStream_t, callback: hipStreamCallback_t, userData: *mut c_void, flags: c_uint) => |cuda| {
        let _ = flags;
        cuda.call_back(own(stream), callback, userData)
    }

    fn hipLaunchHostFunc(stream: hipStream_t, r#fn: hipHostFn_t, userData: *mut c_void) => |cuda| {
        cuda.call_host(stream, r#fn, userData)
    }

    fn hipLaunchHostFunc_spt(stream: hipStream_t, r#fn: hipHostFn_t, userData: *mut c_void) => |cuda| {
        cuda.call_host(own(stream), r#fn, userData)
    }

    fn hipStreamWaitValue32(stream: hipStream_t, ptr: *mut c_void, value: u32, flags: c_uint, mask: u32) => |cuda| {
        whole(mask.into(), u32::MAX.into())?;
        call!(cuda.cuStreamWaitValue32_v2(stream, ptr as u64, value, comparison(flags)?))
    }

    fn hipStreamWaitValue64(stream: hipStream_t, ptr: *mut c_void, value: u64, flags: c_uint, mask: u64) => |cuda| {
        whole(mask, u64::MAX)?;
        call!(cuda.cuStreamWaitValue64_v2(stream, ptr as u64, value, comparison(flags)?))
    }

    fn hipStreamWriteValue32(stream: hipStream_t, ptr: *mut c_void, value: u32, flags: c_uint) => |cuda| {
        let _ = flags;
        call!(cuda.cuStreamWriteValue32_v2(stream, ptr as u64, value, 0))
    }

    fn hipStreamWriteValue64(stream: hipStream_t, ptr: *mut c_void, value: u64, flags: c_uint) => |cuda| {
        let _ = flags;
        call!(cuda.cuStreamWriteValue64_v2(stream, ptr as u64, value, 0))
    }

    fn hipEventCreate(event: *mut hipEvent_t) => |cuda| { cuda.new_event(event, 0) }

    fn hipEventCreateWithFlags(event: *mut hipEvent_t, flags: c_uint) => |cuda| { cuda.new_event(event, flags) }

    fn hipEventDestroy(event: hipEvent_t) => |cuda| {
        not_null("event", event)?;
        call!(cuda.cuEventDestroy_v2(event))
    }

    fn hipEventRecord(event: hipEvent_t, stream: hipStream_t) => |cuda| {
        not_null("event", event)?;
        call!(cuda.cuEventRecord(event, stream))
    }

    fn hipEventRecord_spt(event: hipEvent_t, stream: hipStream_t) => |cuda| {
        not_null("event", event)?;
        call!(cuda.cuEventRecord(event, own(stream)))
    }

    fn hipEventRecordWithFlags(event: hipEvent_t, stream: hipStream_t, flags: c_uint) => |cuda| {
        not_null("event", event)?;
        call!(cuda.cuEventRecordWithFlags(event, stream, flags))
    }

    fn hipEventSynchronize(event: hipEvent_t) => |cuda| {
        not_null("event", event)?;
        call!(cuda.cuEventSynchronize(event))
    }

    fn hipEventQuery(event: hipEvent_t) => |cuda| {
        not_null("event", event)?;
        call!(cuda.cuEventQuery(event))
    }

    fn hipEventElapsedTime(ms: *mut f32, start: hipEvent_t, stop: hipEvent_t) => |cuda| {
        not_null("ms", ms)?;
        not_null("start", start)?;
        not_null("stop", stop)?;
        call!(cuda.cuEventElapsedTime(ms, start, stop))
    }
}
