//! Messages between ranks. A thread for each other rank takes what arrives, so that whoever sends never waits for whoever receives.

use super::Failure;
use crate::nccl::sys::{ncclDataType_t, ncclResult_t};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// What a message is part of, as its sender sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The call: a number of [`Call`](super::calls::Call)'s, and that of the reduction.
    pub call: u32,
    pub dtype: ncclDataType_t,
    pub root: u32,
    /// Elements, as the call counts them.
    pub count: u64,
}

/// What one rank sends another.
#[derive(Debug)]
pub struct Message {
    pub head: Head,
    pub data: Vec<u8>,
}

/// Collective calls and those between two ranks do not overtake their own kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    Collective,
    Direct,
}

/// What has arrived.
#[derive(Debug)]
struct Mailbox {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Debug)]
struct State {
    /// By sender and lane.
    queues: Vec<[VecDeque<Message>; 2]>,
    /// From whom nothing comes any more.
    gone: Vec<bool>,
    aborted: bool,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One rank's connections.
#[derive(Debug)]
pub struct Links {
    rank: usize,
    mailbox: Arc<Mailbox>,
    peers: Vec<Option<Mutex<TcpStream>>>,
}

impl Links {
    pub fn new(rank: usize, peers: Vec<Option<TcpStream>>) -> Result<Links, Failure> {
        let state = State {
            queues: peers.iter().map(|_| Default::default()).collect(),
            gone: vec![false; peers.len()],
            aborted: false,
        };
        let mailbox = Arc::new(Mailbox { state: Mutex::new(state), arrived: Condvar::new() });
        for (from, peer) in peers.iter().enumerate() {
            let Some(peer) = peer else { continue };
            let mut stream = peer.try_clone().map_err(Failure::system)?;
            let mailbox = mailbox.clone();
            let take = move || {
                while let Ok((lane, message)) = read(&mut stream) {
                    mailbox.lock().queues[from][lane as usize].push_back(message);
                    mailbox.arrived.notify_all();
                }
                mailbox.lock().gone[from] = true;
                mailbox.arrived.notify_all();
            };
            let name = format!("nccl {rank} from {from}");
            thread::Builder::new().name(name).spawn(take).map_err(Failure::system)?;
        }
        Ok(Links { rank, mailbox, peers: peers.into_iter().map(|peer| peer.map(Mutex::new)).collect() })
    }

    /// Sends a message, which has left when this returns.
    pub fn send(&self, to: usize, lane: Lane, head: Head, data: &[u8]) -> Result<(), Failure> {
        if to == self.rank {
            let message = Message { head, data: data.to_vec() };
            self.mailbox.lock().queues[to][lane as usize].push_back(message);
            self.mailbox.arrived.notify_all();
            return Ok(());
        }
        let Some(peer) = &self.peers[to] else { return Ok(()) };
        let mut stream = peer.lock().unwrap_or_else(PoisonError::into_inner);
        write(&mut stream, lane, head, data).map_err(|error| gone(to, &error.to_string()))
    }

    /// Waits for the next message of a rank.
    pub fn receive(&self, from: usize, lane: Lane) -> Result<Message, Failure> {
        let mut state = self.mailbox.lock();
        loop {
            if state.aborted {
                return Err(Failure::new(
                    ncclResult_t::ncclInvalidUsage,
                    "the communication was aborted".to_owned(),
                ));
            }
            if let Some(message) = state.queues[from][lane as usize].pop_front() {
                return Ok(message);
            }
            if state.gone[from] {
                return Err(gone(from, "it has ended the communication"));
            }
            state = self.mailbox.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends it: the others get what was sent, and whoever waits here an error.
    pub fn close(&self) {
        self.mailbox.lock().aborted = true;
        self.mailbox.arrived.notify_all();
        for peer in self.peers.iter().flatten() {
            // What arrives is still taken: to refuse it could cost the others what was sent before.
            let _ = peer.lock().unwrap_or_else(PoisonError::into_inner).shutdown(Shutdown::Write);
        }
    }
}

fn gone(rank: usize, why: &str) -> Failure {
    Failure::new(ncclResult_t::ncclRemoteError, format!("rank {rank} is gone: {why}"))
}

fn write(to: &mut TcpStream, lane: Lane, head: Head, data: &[u8]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(32 + if data.len() < 4096 { data.len() } else { 0 });
    for number in [lane as u32, head.call, head.dtype.0, head.root] {
        bytes.extend(number.to_ne_bytes());
    }
    bytes.extend(head.count.to_ne_bytes());
    bytes.extend((data.len() as u64).to_ne_bytes());
    // One packet, if it is short.
    if data.len() < 4096 {
        bytes.extend_from_slice(data);
        return to.write_all(&bytes);
    }
    to.write_all(&bytes)?;
    to.write_all(data)
}

fn read(from: &mut TcpStream) -> io::Result<(Lane, Message)> {
    let mut bytes = [0; 32];
    from.read_exact(&mut bytes)?;
    let word = |i: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|j| bytes[4 * i + j]));
    let long = |i: usize| u64::from_ne_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|j| bytes[16 + 8 * i + j]));
    let lane = if word(0) == Lane::Direct as u32 { Lane::Direct } else { Lane::Collective };
    let head = Head { call: word(1), dtype: ncclDataType_t(word(2)), root: word(3), count: long(0) };
    let mut data = Vec::new();
    // Not allocated before it is there.
    from.take(long(1)).read_to_end(&mut data)?;
    if data.len() as u64 != long(1) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok((lane, Message { head, data }))
}
