//! What Candle's launches leave out, or get wrong, and what a kernel cannot see: checked here, before the launch.

use super::{LaunchConfig, sys::CUstreamCaptureStatus};
use crate::driver::CudaStream;
use candle_amdgpu::{DeviceBuffer, Error, Function, Result, check_ids, ids_below};
use std::ffi::c_void;
use std::ptr;

/// Elements that Candle allocates behind quantized weights.
const PADDING: usize = 512;

/// What a launch needs as long as it is being made: arguments in place of the caller's.
pub(super) struct Guarded {
    ids: Option<Replaced>,
}

struct Replaced {
    /// Which argument.
    index: usize,
    address: *const u32,
    _buffer: DeviceBuffer<u32>,
}

impl Guarded {
    /// Checks a launch with these arguments; `weights` is the size in bytes of the memory that the first one is.
    ///
    /// # Safety
    /// As for the launch.
    pub(super) unsafe fn new(
        stream: &CudaStream,
        function: &Function,
        config: LaunchConfig,
        args: &[*const c_void],
        weights: usize,
    ) -> Result<Guarded> {
        let name = function.name();
        let args = Args(args);
        // SAFETY: as promised by the caller, the arguments are the kernel's.
        unsafe {
            if name.starts_with("gather_") {
                fits(name, args)?;
            } else if name.starts_with("get_rows_") {
                if let Some(rows) = Rows::of_embedding(config, args, weights) {
                    return rows.checked(stream, name);
                }
            } else if name.starts_with("indexed_moe_forward_")
                && let Some(rows) = Rows::of_experts(name, args, weights)
            {
                return rows.below(stream);
            }
        }
        Ok(Guarded { ids: None })
    }

    /// The arguments to launch with.
    pub(super) fn args<'a>(
        &'a self,
        args: &'a [*const c_void],
        room: &'a mut Vec<*const c_void>,
    ) -> &'a [*const c_void] {
        let Some(Replaced { index, address, .. }) = &self.ids else { return args };
        room.extend_from_slice(args);
        room[*index] = ptr::from_ref(address).cast();
        room
    }
}

/// The arguments of a launch, by the addresses of their values.
#[derive(Clone, Copy)]
struct Args<'a>(&'a [*const c_void]);

impl Args<'_> {
    /// The value of one, if it is there.
    ///
    /// # Safety
    /// It is of that type.
    unsafe fn get<T: Copy>(self, index: usize) -> Option<T> {
        // SAFETY: as promised by the caller; it need not be aligned.
        self.0.get(index).map(|at| unsafe { at.cast::<T>().read_unaligned() })
    }
}

/// Candle passes the source's size behind the dimension, also where that of the ids is smaller.
///
/// # Safety
/// The arguments are those of a `gather_*`.
unsafe fn fits(name: &str, args: Args<'_>) -> Result<()> {
    // SAFETY: as promised by the caller.
    let size = |index| unsafe { args.get::<usize>(index) };
    let (Some(numel), Some(left), Some(ids_dim), Some(right)) = (size(0), size(4), size(6), size(7)) else {
        return Ok(());
    };
    let all = left.saturating_mul(ids_dim).saturating_mul(right);
    // With nothing behind the dimension, fewer ids are fewer of the first rows.
    if numel == 0 || numel == all || right == 1 && numel < all && numel.is_multiple_of(ids_dim.max(1)) {
        return Ok(());
    }
    Err(Error::Requirement {
        kernel: name.to_owned(),
        requirement: "numel == left_size * ids_dim_size * right_size".to_owned(),
        values: format!(
            "numel = {numel}, left_size = {left}, ids_dim_size = {ids_dim}, right_size = {right}; ids and source must have the \
             same sizes apart from the dimension that is gathered along: `narrow` the source, and make it contiguous"
        ),
    })
}

/// Rows of quantized weights, and the ids that choose some of them.
struct Rows {
    weights: *const c_void,
    /// How many there are.
    size: usize,
    /// Which argument the ids are.
    index: usize,
    ids: *const u32,
    count: usize,
}

impl Rows {
    /// # Safety
    /// The arguments are those of a `get_rows_*`.
    unsafe fn of_embedding(config: LaunchConfig, args: Args<'_>, bytes: usize) -> Option<Rows> {
        // SAFETY: as promised by the caller.
        unsafe {
            let (elements, stride) = (args.get::<i64>(3)?, args.get::<usize>(4)?);
            let elements = usize::try_from(elements).ok().filter(|&n| n > 0)?;
            let size = bytes.saturating_sub(PADDING * stride / elements).checked_div(stride)?;
            let (weights, ids) = (args.get(0)?, args.get(1)?);
            Some(Rows { weights, size, index: 1, ids, count: config.grid_dim.0 as usize })
        }
    }

    /// # Safety
    /// The arguments are those of an `indexed_moe_forward_*`.
    unsafe fn of_experts(name: &str, args: Args<'_>, bytes: usize) -> Option<Rows> {
        let (elements, block) = match name.strip_prefix("indexed_moe_forward_")?.strip_suffix("_q8_1")? {
            "q8_0" => (32, 34),
            "q2k" => (256, 84),
            "q3k" => (256, 110),
            "q4k" => (256, 144),
            "q5k" => (256, 176),
            "q6k" => (256, 210),
            _ => return None,
        };
        // SAFETY: as promised by the caller.
        let number = |index| unsafe { args.get::<i32>(index) }.and_then(|n| usize::try_from(n).ok());
        let expert = number(4)?.checked_mul(number(5)? / elements)?.checked_mul(block)?;
        let size = bytes.saturating_sub(PADDING / elements * block).checked_div(expert)?;
        let count = number(6)?.checked_mul(number(7)?)?;
        // SAFETY: as above.
        unsafe { Some(Rows { weights: args.get(0)?, size, index: 2, ids: args.get(2)?, count }) }
    }

    /// Waits for the ids, so that the error can name the kernel. A stream that records a graph cannot wait.
    ///
    /// # Safety
    /// The ids are as many.
    unsafe fn checked(self, stream: &CudaStream, name: &str) -> Result<Guarded> {
        let status = stream.capture_status();
        if status == Ok(CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE) {
            // SAFETY: as promised by the caller.
            return unsafe { self.below(stream) };
        }
        // SAFETY: as promised by the caller.
        unsafe { check_ids(stream.stream(), name, self.ids, self.count, self.size)? };
        Ok(Guarded { ids: None })
    }

    /// Puts ids of rows that there are in place of the others, without waiting: models choose experts many times for each
    /// token.
    ///
    /// # Safety
    /// The ids are as many, and the weights have so many rows.
    unsafe fn below(self, stream: &CudaStream) -> Result<Guarded> {
        let Rows { weights, size, index, ids, count } = self;
        // SAFETY: as promised by the caller; a row has at least a byte.
        let buffer = unsafe { ids_below(stream.stream(), ids, count, weights, size)? };
        let address = buffer.as_ptr();
        Ok(Guarded { ids: Some(Replaced { index, address, _buffer: buffer }) })
    }
}
