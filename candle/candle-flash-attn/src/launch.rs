//! Which kernel computes an attention, and its launch.

use std::ffi::c_void;
use std::ptr;

use candle_amdgpu::{DeviceBuffer, Error, LaunchConfig, Module, Result, Stream};

use crate::kernels::decode::MODULE as DECODE;
use crate::kernels::forward::MODULE as FORWARD;
use crate::kernels::forward::Problem;

/// The type of Q, K, V and the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `f16`
    F16,
    /// `bf16`
    Bf16,
}

impl Type {
    fn name(self) -> &'static str {
        match self {
            Type::F16 => "f16",
            Type::Bf16 => "bf16",
        }
    }
}

/// Which kernels to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// Those that suit the sizes.
    #[default]
    Auto,
    /// Those for many queries.
    Forward,
    /// Those for few queries, with the keys in so many parts.
    Split(u32),
}

/// An attention: memory on the device, and what is to be computed.
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    /// The type of elements.
    pub ty: Type,
    /// Queries.
    pub q: *const c_void,
    /// Keys, or their pages.
    pub k: *const c_void,
    /// Values, or their pages.
    pub v: *const c_void,
    /// The output.
    pub out: *mut c_void,
    /// Logarithms of the sums of exponentials, or null.
    pub lse: *mut f32,
    /// Slopes of the heads, or null.
    pub slopes: *const f32,
    /// Where each sequence of queries begins and the last ends, or null.
    pub starts_q: *const i32,
    /// The same of keys.
    pub starts_k: *const i32,
    /// Pages of the sequences, or null.
    pub table: *const i32,
    /// Ranges of positions that see each other, or null.
    pub ranges: *const i32,
    /// Sizes, strides and masks.
    pub problem: Problem,
    /// Heads of K and V.
    pub kv_heads: u32,
    /// Sequences.
    pub batch: u32,
}

/// The head dimensions that there are kernels for.
const DIMENSIONS: [u32; 7] = [32, 64, 96, 128, 192, 256, 512];

/// Rows of a workgroup of the kernels for few queries.
const FEW_ROWS: u32 = 16;

/// Up to so many rows for each head of K and V, queries count as few.
const FEW: u32 = 2 * FEW_ROWS;

/// Keys of which a part has at least as many.
const PART: u32 = 256;

/// Most parts.
const MOST_PARTS: u32 = 128;

/// Into how many parts the keys are divided, so that each compute unit has two workgroups.
fn parts(stream: &Stream, attention: &Attention, rows: u32) -> u32 {
    let wanted = 2 * stream.device().properties().compute_units();
    let there = rows.div_ceil(FEW_ROWS) * attention.kv_heads * attention.batch;
    wanted.div_ceil(there.max(1)).min(attention.problem.keys.div_ceil(PART)).clamp(1, MOST_PARTS)
}

/// Launches the kernels on a stream.
///
/// # Safety
/// The memory is on the stream's device, as large as the problem says, and lives until the kernels are done. Rows of Q, K, V and the
/// output are aligned to 16 bytes; the cumulative lengths and the table name positions and pages that exist.
///
/// # Errors
/// If no kernel has the dimension, or what the launch reports.
pub unsafe fn run(stream: &Stream, attention: &Attention, way: Way) -> Result<()> {
    let Attention { ty, problem, kv_heads, batch, .. } = *attention;
    let dimension =
        DIMENSIONS.into_iter().find(|&d| problem.dim <= d).filter(|_| problem.dim.is_multiple_of(8));
    let Some(dimension) = dimension else {
        return Err(Error::BadShape {
            kernel: "flash_forward".to_owned(),
            arg: "q".to_owned(),
            shape: vec![problem.queries as usize, (problem.group * kv_heads) as usize, problem.dim as usize],
            reason: "heads have 8 to 512 elements, a multiple of 8".to_owned(),
        });
    };
    let rows = problem.queries * problem.group;
    if rows == 0 || kv_heads == 0 || batch == 0 || problem.dim == 0 {
        return Ok(());
    }
    let splits = match way {
        Way::Auto if rows <= FEW => Some(parts(stream, attention, rows)),
        Way::Auto | Way::Forward => None,
        Way::Split(splits) => Some(splits.clamp(1, MOST_PARTS)),
    };
    let a = attention;
    let memory = [arg(&a.q), arg(&a.k), arg(&a.v), arg(&a.out), arg(&a.lse)];
    let masks = [arg(&a.slopes), arg(&a.starts_q), arg(&a.starts_k), arg(&a.table), arg(&a.ranges)];
    let sizes = [arg(&problem), arg(&rows), arg(&kv_heads), arg(&batch)];
    let Some(splits) = splits else {
        let name = format!("flash_forward_{}_{dimension}", ty.name());
        let args = [&sizes[..], &memory, &masks].concat();
        // SAFETY: as promised by the caller.
        return unsafe { launch(stream, &FORWARD, &name, &args) };
    };
    let all = rows as usize * kv_heads as usize * batch as usize * splits as usize;
    let many = if splits > 1 { all } else { 0 };
    let mut parts = DeviceBuffer::<f32>::alloc(stream, many * dimension as usize)?;
    let mut logs = DeviceBuffer::<f32>::alloc(stream, many)?;
    let (parts_at, logs_at) = (parts.as_mut_ptr(), logs.as_mut_ptr());
    let workspace = [arg(&splits), arg(&parts_at), arg(&logs_at)];
    let name = format!("flash_decode_{}_{dimension}", ty.name());
    let args = [&sizes[..], &memory, &masks, &workspace].concat();
    // SAFETY: as promised by the caller.
    unsafe { launch(stream, &DECODE, &name, &args)? };
    if splits > 1 {
        let name = format!("flash_combine_{}", ty.name());
        let args = [
            &sizes[..],
            &[arg(&dimension), arg(&splits), arg(&parts_at), arg(&logs_at)],
            &memory[3..],
            &masks[1..2],
        ];
        // SAFETY: as promised by the caller; the parts are freed on the stream, behind the kernel.
        unsafe { launch(stream, &DECODE, &name, &args.concat())? };
    }
    Ok(())
}

/// Launches a kernel with its own geometry.
///
/// # Safety
/// Each argument is the address of a value of the parameter's type; device memory is as large as the kernel needs.
unsafe fn launch(stream: &Stream, module: &Module, name: &str, args: &[*const c_void]) -> Result<()> {
    let function = stream.device().get_or_load_func(name, module)?;
    // SAFETY: as promised by the caller.
    unsafe { function.launch(stream, LaunchConfig::auto(), args) }
}

/// The address of an argument's value.
fn arg<T>(value: &T) -> *const c_void {
    ptr::from_ref(value).cast()
}
