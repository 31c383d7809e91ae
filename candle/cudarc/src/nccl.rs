//! Communication between devices by NCCL's names: a [`Comm`] for each device, with collective operations on all of them.
//!
//! On AMD GPUs it is RCCL (`librccl.so`), which has NCCL's functions by name, and on NVIDIA GPUs NCCL (`libnccl.so.2`). Both are loaded
//! when the first function is called. Between emulated devices the operations are this crate's own, for threads of one process and for
//! processes of one machine. There:
//!
//! - A call returns when the operation is done, and so does [`group_end`]. Ranks in one thread need a group, as NCCL asks for.
//! - Sums and products are in the order of the ranks, and each is rounded to the type. RCCL and NCCL round each too, but begin with
//!   another rank for each part of the data, so that sums of more than two floats may differ from theirs in the last bits.
//! - [`ReduceOp::Avg`] multiplies floats by 1/n in their type before they are added, and divides integers' sums, towards zero.
//! - Of a number and NaN, [`ReduceOp::Max`] and [`ReduceOp::Min`] take the number.
//! - Calls that do not fit together (another operation, type, count or root) are `ncclInvalidUsage` where NCCL would hang or mix up
//!   data. A rank whose `Comm` is dropped too early is `ncclRemoteError` for those that wait for it.
//! - A stream that is recorded into a graph cannot take part.

mod emulated;
mod library;
pub mod result;
pub mod safe;
pub mod sys;

pub use safe::*;
