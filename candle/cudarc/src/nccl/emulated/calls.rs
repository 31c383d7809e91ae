//! The operations: each first sends what this rank has, then waits for the others, so that those of a group are sent before any
//! waits.

use super::Failure;
use super::comm::{Comm, Factor};
use super::link::{Head, Lane, Links, Message};
use super::number::{self, Reduction};
use crate::nccl::sys::{ncclDataType_t, ncclRedOp_t, ncclResult_t};
use candle_amdgpu::{DeviceView, DeviceViewMut, Stream};
use std::sync::Arc;

/// Which operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    AllReduce,
    Reduce,
    ReduceScatter,
    Broadcast,
    AllGather,
    Send,
    Recv,
}

/// How the elements of all ranks become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    reduction: Reduction,
    /// Whether the sum is divided by the number of ranks.
    mean: bool,
}

/// A call with its arguments.
pub struct Operation {
    pub comm: Arc<Comm>,
    pub call: Call,
    pub send: usize,
    pub recv: usize,
    /// Elements, as the call counts them.
    pub count: usize,
    pub dtype: ncclDataType_t,
    pub op: ncclRedOp_t,
    /// The root, or the other rank.
    pub root: usize,
    pub stream: Stream,
}

/// A call whose part of this rank is sent.
pub struct Posted {
    operation: Operation,
    plan: Plan,
    /// This rank's elements, multiplied by its factor, if it has one.
    own: Vec<u8>,
}

impl Operation {
    /// Elements that are read and written.
    fn lengths(&self) -> (usize, usize) {
        let (count, all) = (self.count, self.count.saturating_mul(self.comm.size));
        let at_root = self.comm.rank == self.root;
        match self.call {
            Call::AllReduce => (count, count),
            Call::Reduce => (count, if at_root { count } else { 0 }),
            Call::ReduceScatter => (all, count),
            Call::Broadcast => (if at_root { count } else { 0 }, count),
            Call::AllGather => (count, all),
            Call::Send => (count, 0),
            Call::Recv => (0, count),
        }
    }

    /// Checks what can be without the others.
    pub fn check(&self) -> Result<(), Failure> {
        let wrong = |text: String| Err(Failure::new(ncclResult_t::ncclInvalidArgument, text));
        let (read, written) = self.lengths();
        let size = number::size(self.dtype)?;
        if read.max(written).checked_mul(size).is_none_or(|bytes| isize::try_from(bytes).is_err()) {
            return wrong(format!("{} elements are too many", self.count));
        }
        if read > 0 && self.send == 0 || written > 0 && self.recv == 0 {
            return wrong(format!("{:?} has no memory", self.call));
        }
        if self.root >= self.comm.size {
            return wrong(format!("there is no rank {} among {}", self.root, self.comm.size));
        }
        if self.stream.device().ordinal() != self.comm.device {
            let (stream, comm) = (self.stream.device().ordinal(), self.comm.device);
            return wrong(format!("the stream is on device {stream}, the communication on device {comm}"));
        }
        self.plan().map(drop)
    }

    fn plan(&self) -> Result<(Plan, Option<Vec<u8>>), Failure> {
        let plain = |reduction| Ok((Plan { reduction, mean: false }, None));
        match self.op {
            ncclRedOp_t::ncclSum => plain(Reduction::Sum),
            ncclRedOp_t::ncclProd => plain(Reduction::Prod),
            ncclRedOp_t::ncclMax => plain(Reduction::Max),
            ncclRedOp_t::ncclMin => plain(Reduction::Min),
            ncclRedOp_t::ncclAvg => {
                let factor = number::reciprocal(self.dtype, self.comm.size)?;
                Ok((Plan { reduction: Reduction::Sum, mean: factor.is_none() }, factor))
            }
            other => {
                let Factor { dtype, bytes, address } = self.comm.factor(other)?;
                if dtype != self.dtype {
                    let text = format!("the factor is of {dtype:?}, the elements are of {:?}", self.dtype);
                    return Err(Failure::new(ncclResult_t::ncclInvalidArgument, text));
                }
                let factor = match address {
                    // SAFETY: the caller of `ncclRedOpCreatePreMulSum` promised an element there.
                    Some(address) => unsafe { self.read(address, bytes.len())? },
                    None => bytes,
                };
                Ok((Plan { reduction: Reduction::Sum, mean: false }, Some(factor)))
            }
        }
    }

    /// What the others must see, too.
    fn head(&self, plan: Plan) -> Head {
        let call = match self.call {
            Call::Recv => Call::Send,
            call => call,
        };
        let root = match self.call {
            Call::Reduce | Call::Broadcast => self.root,
            _ => 0,
        };
        let reduction = match self.call {
            Call::AllReduce | Call::Reduce | Call::ReduceScatter => {
                1 + plan.reduction as u32 + 8 * u32::from(plan.mean)
            }
            _ => 0,
        };
        Head {
            call: call as u32 + 256 * reduction,
            dtype: self.dtype,
            root: u32::try_from(root).unwrap_or(u32::MAX),
            count: self.count as u64,
        }
    }

    /// # Safety
    /// There are so many bytes.
    unsafe fn read(&self, address: usize, bytes: usize) -> Result<Vec<u8>, Failure> {
        // SAFETY: as promised by the caller; `DeviceView` waits for the stream.
        let view = unsafe { DeviceView::<u8>::from_raw_parts(address as *const u8, bytes, &self.stream) };
        view.to_vec().map_err(Failure::device)
    }

    /// # Safety
    /// There is room for the bytes.
    unsafe fn write(&self, data: &[u8]) -> Result<(), Failure> {
        let to = self.recv as *mut u8;
        // SAFETY: as promised by the caller.
        let mut view = unsafe { DeviceViewMut::<u8>::from_raw_parts(to, data.len(), &self.stream) };
        view.copy_from_slice(data).map_err(Failure::device)
    }

    /// Sends what this rank has.
    ///
    /// # Safety
    /// Memory is as long as the call needs.
    pub unsafe fn post(self) -> Result<Posted, Failure> {
        let (plan, factor) = self.plan()?;
        let links = self.comm.links()?;
        let size = number::size(self.dtype)?;
        let (read, _) = self.lengths();
        // SAFETY: as promised by the caller.
        let mut own = if read == 0 { Vec::new() } else { unsafe { self.read(self.send, read * size)? } };
        let reduces = matches!(self.call, Call::AllReduce | Call::Reduce | Call::ReduceScatter);
        if let Some(factor) = factor.filter(|_| reduces) {
            number::scale(self.dtype, &mut own, &factor)?;
        }
        let (head, rank) = (self.head(plan), self.comm.rank);
        let others = || (0..self.comm.size).filter(move |&peer| peer != rank);
        match self.call {
            Call::AllReduce | Call::AllGather => {
                others().try_for_each(|peer| links.send(peer, Lane::Collective, head, &own))?;
            }
            Call::Reduce if rank != self.root => links.send(self.root, Lane::Collective, head, &own)?,
            Call::Broadcast if rank == self.root => {
                others().try_for_each(|peer| links.send(peer, Lane::Collective, head, &own))?;
            }
            Call::ReduceScatter => others().try_for_each(|peer| {
                let part = &own[peer * self.count * size..][..self.count * size];
                links.send(peer, Lane::Collective, head, part)
            })?,
            Call::Send => links.send(self.root, Lane::Direct, head, &own)?,
            Call::Reduce | Call::Broadcast | Call::Recv => {}
        }
        Ok(Posted { operation: self, plan, own })
    }
}

impl Posted {
    /// Waits for the others, and writes the result.
    ///
    /// # Safety
    /// Memory is as long as the call needs.
    pub unsafe fn complete(self) -> Result<(), Failure> {
        let Posted { operation, plan, mut own } = self;
        let links = operation.comm.links()?;
        let (rank, size, root) = (operation.comm.rank, operation.comm.size, operation.root);
        let bytes = operation.count * number::size(operation.dtype)?;
        let result = match operation.call {
            Call::Send => return Ok(()),
            Call::Reduce if rank != root => return Ok(()),
            Call::Recv => operation.receive(links, root, Lane::Direct, plan, bytes)?,
            Call::Broadcast if rank == root && operation.send == operation.recv => return Ok(()),
            Call::Broadcast if rank == root => own,
            Call::Broadcast => operation.receive(links, root, Lane::Collective, plan, bytes)?,
            Call::AllGather => {
                let mut all = Vec::with_capacity(bytes * size);
                for peer in 0..size {
                    match peer == rank {
                        true => all.extend_from_slice(&own),
                        false => {
                            all.extend(operation.receive(links, peer, Lane::Collective, plan, bytes)?);
                        }
                    }
                }
                all
            }
            Call::AllReduce | Call::Reduce | Call::ReduceScatter => {
                if operation.call == Call::ReduceScatter {
                    own = own[rank * bytes..][..bytes].to_vec();
                }
                let mut sum: Option<Vec<u8>> = None;
                for peer in 0..size {
                    let part = match peer == rank {
                        true => std::mem::take(&mut own),
                        false => operation.receive(links, peer, Lane::Collective, plan, bytes)?,
                    };
                    match &mut sum {
                        None => sum = Some(part),
                        Some(sum) => number::reduce(operation.dtype, sum, &part, plan.reduction)?,
                    }
                }
                let mut sum = sum.unwrap_or_default();
                if plan.mean {
                    number::divide(operation.dtype, &mut sum, size)?;
                }
                sum
            }
        };
        // SAFETY: as promised by the caller.
        unsafe { operation.write(&result) }
    }
}

impl Operation {
    /// The part of another rank, which must have made the same call.
    fn receive(
        &self,
        links: &Links,
        from: usize,
        lane: Lane,
        plan: Plan,
        bytes: usize,
    ) -> Result<Vec<u8>, Failure> {
        let Message { head, data } = links.receive(from, lane)?;
        let own = self.head(plan);
        if head != own || data.len() != bytes {
            let text = format!(
                "rank {} calls {}, rank {from} calls {}",
                self.comm.rank,
                described(own),
                described(head)
            );
            return Err(Failure::new(ncclResult_t::ncclInvalidUsage, text));
        }
        Ok(data)
    }
}

fn described(head: Head) -> String {
    let calls =
        [Call::AllReduce, Call::Reduce, Call::ReduceScatter, Call::Broadcast, Call::AllGather, Call::Send];
    let call = calls.into_iter().find(|&call| call as u32 == head.call % 256);
    let call = call.map_or_else(|| "nothing known".to_owned(), |call| format!("{call:?}"));
    let reductions = [Reduction::Sum, Reduction::Prod, Reduction::Max, Reduction::Min];
    let reduction = (head.call / 256 % 8).checked_sub(1).and_then(|i| reductions.get(i as usize));
    let reduction = match (reduction, head.call / 256 >= 8) {
        (None, _) => String::new(),
        (Some(_), true) => " (mean)".to_owned(),
        (Some(reduction), false) => format!(" ({reduction:?})"),
    };
    format!("{call}{reduction} of {} × {:?} with root {}", head.count, head.dtype, head.root)
}
