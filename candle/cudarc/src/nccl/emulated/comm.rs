//! One rank's part in a communication.

use super::Failure;
use super::bootstrap::{self, Joining};
use super::link::{Head, Lane, Links, Message};
use crate::nccl::sys::{ncclDataType_t, ncclRedOp_t, ncclResult_t, ncclUniqueId};
use std::ffi::c_char;
use std::sync::{Mutex, OnceLock, PoisonError};

/// What a [`ncclComm_t`](crate::nccl::sys::ncclComm_t) points to.
#[derive(Debug)]
pub struct Comm {
    pub rank: usize,
    pub size: usize,
    /// The number of its device.
    pub device: usize,
    links: OnceLock<Links>,
    factors: Mutex<Vec<Option<Factor>>>,
    failed: Mutex<Option<ncclResult_t>>,
}

/// What this rank's elements are multiplied by before they are added.
#[derive(Clone, Debug)]
pub struct Factor {
    pub dtype: ncclDataType_t,
    /// Its bytes; of one in memory of the device, as many zeros.
    pub bytes: Vec<u8>,
    /// Where it is, if it is in memory of the device.
    pub address: Option<usize>,
}

impl Comm {
    pub fn new(rank: usize, size: usize, device: usize) -> Comm {
        let (links, factors, failed) = (OnceLock::new(), Mutex::default(), Mutex::default());
        Comm { rank, size, device, links, factors, failed }
    }

    /// Begins to join the others.
    pub fn join(&self, id: &ncclUniqueId) -> Result<Joining, Failure> {
        Joining::begin(id, self.rank, self.size, self.device)
    }

    /// Ends it, with all others there.
    pub fn joined(&self, joining: Joining) -> Result<(), Failure> {
        let links = Links::new(self.rank, joining.accept()?)?;
        // It joins once.
        let _ = self.links.set(links);
        Ok(())
    }

    pub fn links(&self) -> Result<&Links, Failure> {
        self.links.get().ok_or_else(|| {
            Failure::new(
                ncclResult_t::ncclInvalidUsage,
                "the communication has not begun: end the group".to_owned(),
            )
        })
    }

    /// This rank's part in a communication among those of the same color, in the order of the key, and that one's id. None if the
    /// color is negative.
    pub fn split(&self, color: i32, key: i32) -> Result<Option<(Comm, ncclUniqueId)>, Failure> {
        let links = self.links()?;
        let head = Head { call: SPLIT, dtype: ncclDataType_t::ncclInt32, root: 0, count: 2 };
        let own = [color.to_ne_bytes(), key.to_ne_bytes()].concat();
        let others = || (0..self.size).filter(|&peer| peer != self.rank);
        others().try_for_each(|peer| links.send(peer, Lane::Collective, head, &own))?;
        let mut members = Vec::new();
        for peer in 0..self.size {
            let theirs = match peer == self.rank {
                true => own.clone(),
                false => expect(links.receive(peer, Lane::Collective)?, head, 8)?,
            };
            let word = |i: usize| i32::from_ne_bytes([0, 1, 2, 3].map(|j| theirs[4 * i + j]));
            if word(0) == color {
                members.push((word(1), peer));
            }
        }
        if color < 0 {
            return Ok(None);
        }
        members.sort_unstable();
        let rank = members.iter().position(|&(_, peer)| peer == self.rank).unwrap_or(0);
        let head = Head { call: SPLIT, dtype: ncclDataType_t::ncclInt8, root: 0, count: 128 };
        let id = if rank == 0 {
            let id = bootstrap::new_id()?;
            let bytes = id.internal.map(|c| c as u8);
            members[1..]
                .iter()
                .try_for_each(|&(_, peer)| links.send(peer, Lane::Collective, head, &bytes))?;
            id
        } else {
            let bytes = expect(links.receive(members[0].1, Lane::Collective)?, head, 128)?;
            let mut internal = [0; 128];
            internal.iter_mut().zip(bytes).for_each(|(to, from)| *to = from as c_char);
            ncclUniqueId { internal }
        };
        Ok(Some((Comm::new(rank, members.len(), self.device), id)))
    }

    /// Ends it.
    pub fn close(&self) {
        if let Some(links) = self.links.get() {
            links.close();
        }
    }

    /// The result of the first call that failed after it was accepted.
    pub fn failed(&self) -> Option<ncclResult_t> {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn fail(&self, result: ncclResult_t) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(result);
    }

    /// A new operation, by its number.
    pub fn add_factor(&self, factor: Factor) -> ncclRedOp_t {
        let mut factors = self.factors.lock().unwrap_or_else(PoisonError::into_inner);
        factors.push(Some(factor));
        let last = u32::try_from(factors.len() - 1).unwrap_or(u32::MAX);
        ncclRedOp_t(ncclRedOp_t::ncclNumOps.0.saturating_add(last))
    }

    pub fn factor(&self, op: ncclRedOp_t) -> Result<Factor, Failure> {
        let mut factors = self.factors.lock().unwrap_or_else(PoisonError::into_inner);
        entry(&mut factors, op).and_then(|factor| factor.clone()).ok_or_else(|| unknown(op))
    }

    pub fn remove_factor(&self, op: ncclRedOp_t) -> Result<(), Failure> {
        let mut factors = self.factors.lock().unwrap_or_else(PoisonError::into_inner);
        entry(&mut factors, op).and_then(Option::take).map(drop).ok_or_else(|| unknown(op))
    }
}

/// The call of a split, which is none of the operations.
const SPLIT: u32 = 255;

/// The data of a message that must be part of a split.
fn expect(message: Message, head: Head, len: usize) -> Result<Vec<u8>, Failure> {
    if message.head == head && message.data.len() == len {
        return Ok(message.data);
    }
    Err(Failure::new(
        ncclResult_t::ncclInvalidUsage,
        "another rank does not split the communication".to_owned(),
    ))
}

fn entry(factors: &mut [Option<Factor>], op: ncclRedOp_t) -> Option<&mut Option<Factor>> {
    factors.get_mut(op.0.checked_sub(ncclRedOp_t::ncclNumOps.0)? as usize)
}

fn unknown(op: ncclRedOp_t) -> Failure {
    Failure::new(ncclResult_t::ncclInvalidArgument, format!("{op:?} is no operation of this communication"))
}
