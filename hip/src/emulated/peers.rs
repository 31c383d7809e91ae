//! Which devices may access which others' memory.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use amdgpu_emulator::Machine;

use super::Runtime;
use super::device::Device;
use crate::error::Error;

/// Pairs of devices: the first may access the second's memory.
#[derive(Default)]
pub(crate) struct Peers {
    pairs: Mutex<BTreeSet<(usize, usize)>>,
}

impl Runtime {
    /// Whether one device can be given access to another's memory: any can, but for itself.
    pub(crate) fn can_access(&self, from: &Device, to: &Device) -> bool {
        from.ordinal != to.ordinal
    }

    /// The devices whose memory a device may access.
    pub(crate) fn peers_of(&self, device: usize) -> Vec<usize> {
        let pairs = self.peers.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        pairs.range((device, 0)..=(device, usize::MAX)).map(|&(_, to)| to).collect()
    }

    /// Lets the current device access another's memory, or ends that.
    pub(crate) fn set_peer_access(&self, peer: i32, on: bool) -> Result<(), Error> {
        let (from, to) = (self.current(), self.device(peer)?);
        if !self.can_access(from, to) {
            return Err(Error::NoPeerAccess { device: to.ordinal });
        }
        let pair = (from.ordinal, to.ordinal);
        let mut pairs = self.peers.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        let is_changed = if on { pairs.insert(pair) } else { pairs.remove(&pair) };
        drop(pairs);
        match (is_changed, on) {
            (false, true) => return Err(Error::PeerAccessEnabled { from: pair.0, to: pair.1 }),
            (false, false) => return Err(Error::PeerAccessNotEnabled { from: pair.0, to: pair.1 }),
            _ => {}
        }
        // What runs may still use what it had.
        self.wait_idle(from);
        self.apply_peers(from);
        Ok(())
    }

    /// Ends all access of and to a device.
    pub(crate) fn end_peer_access(&self, device: &Device) {
        let ordinal = device.ordinal;
        let mut pairs = self.peers.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        let before = pairs.len();
        pairs.retain(|&(from, to)| from != ordinal && to != ordinal);
        let is_changed = pairs.len() != before;
        drop(pairs);
        if is_changed {
            self.devices.iter().for_each(|device| self.apply_peers(device));
        }
    }

    fn apply_peers(&self, device: &Device) {
        let peers = self.peers_of(device.ordinal);
        let machines: Vec<&Machine> = peers.iter().map(|&peer| &*self.devices[peer].machine).collect();
        device.machine.set_peers(&machines);
    }

    /// After a launch on a device: it may have written to its peers' memory.
    pub(crate) fn note_peer_writes(&self, device: usize) {
        for peer in self.peers_of(device) {
            self.devices[peer].machine.mark_all_written();
        }
    }
}
