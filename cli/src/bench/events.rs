//! Times between events of a stream.

use crate::launch_args::Ready;
use anyhow::{Context, Result, bail};
use candle_amdgpu::{DeviceBuffer, Stream};
use serde::Serialize;
use std::ffi::c_void;

/// Seconds that a round should take, so that the events' resolution does not matter.
const ROUND: f64 = 0.02;
/// Launches of a round at most.
const MOST: u32 = 1000;

/// What events say of a kernel.
#[derive(Serialize)]
pub struct Times {
    /// Of one launch.
    pub seconds: f64,
    /// Launches in each round.
    pub launches: u32,
    /// Bytes of the kernel's buffers, each once, per second.
    pub bandwidth: f64,
    /// Bytes per second, read and written, of a copy within the device that moves as many bytes.
    pub copy_bandwidth: f64,
}

/// The fastest of this many rounds.
pub fn measure(ready: &mut Ready, rounds: u32) -> Result<Times> {
    if let Some(error) = ready.launch()? {
        return Err(error.into());
    }
    let stream = ready.stream().clone();
    let (seconds, launches) = fastest(&stream, rounds, &mut || Ok(ready.enqueue()?))?;
    let bytes = ready.memory_bytes().max(2);
    let half = usize::try_from(bytes / 2).context("the buffers' size")?;
    let from = DeviceBuffer::<u8>::zeros(&stream, half)?;
    let mut into = DeviceBuffer::<u8>::zeros(&stream, half)?;
    let (copy, _) = fastest(&stream, rounds, &mut || Ok(into.copy_from(&from.view())?))?;
    Ok(Times {
        seconds,
        launches,
        bandwidth: bytes as f64 / seconds,
        copy_bandwidth: 2.0 * half as f64 / copy,
    })
}

/// Seconds of one piece of work in the fastest round, and how often a round does it.
fn fastest(stream: &Stream, rounds: u32, work: &mut dyn FnMut() -> Result<()>) -> Result<(f64, u32)> {
    let (start, end) = (Event::new()?, Event::new()?);
    let mut round = |times: u32| -> Result<f64> {
        start.record(stream)?;
        for _ in 0..times {
            work()?;
        }
        end.record(stream)?;
        // The resolution is half a microsecond: a round of no time at all would be a bandwidth without limit.
        Ok(start.until(&end)?.max(5e-7) / f64::from(times))
    };
    let first = round(1)?;
    let times = (ROUND / first).clamp(1.0, f64::from(MOST)) as u32;
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        best = best.min(round(times)?);
    }
    Ok((best, times))
}

/// An event that takes the time.
struct Event(*mut c_void);

fn call(code: amdhip64::hipError_t, what: &str) -> Result<()> {
    if code != amdhip64::hipSuccess {
        match amdhip64::last_error().filter(|error| error.code == code) {
            Some(error) => bail!("{what} failed: {}", error.text),
            None => bail!("{what} failed with hipError_t {code}"),
        }
    }
    Ok(())
}

impl Event {
    fn new() -> Result<Event> {
        let mut event = std::ptr::null_mut();
        // SAFETY: writes the handle.
        call(unsafe { amdhip64::hipEventCreate(&mut event) }, "hipEventCreate")?;
        Ok(Event(event))
    }

    fn record(&self, stream: &Stream) -> Result<()> {
        // SAFETY: both handles are live.
        call(unsafe { amdhip64::hipEventRecord(self.0, stream.as_raw()) }, "hipEventRecord")
    }

    /// Waits for both; seconds between them.
    fn until(&self, end: &Event) -> Result<f64> {
        let mut milliseconds = 0.0;
        // SAFETY: both handles are live; the result is valid for writing.
        unsafe {
            call(amdhip64::hipEventSynchronize(end.0), "hipEventSynchronize")?;
            call(amdhip64::hipEventElapsedTime(&mut milliseconds, self.0, end.0), "hipEventElapsedTime")?;
        }
        Ok(f64::from(milliseconds) / 1e3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the handle is ours.
        unsafe { amdhip64::hipEventDestroy(self.0) };
    }
}
