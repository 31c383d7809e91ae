//! Values in memory that streams wait for and write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::Runtime;
use super::stream::StreamFault;
use crate::codes::hipErrorIllegalAddress;
use crate::error::Error;
use crate::types::*;

/// How a value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compare {
    /// At least the wanted one.
    AtLeast,
    Equal,
    /// A bit of the wanted one.
    And,
    /// A bit that is neither its nor the wanted one's.
    Nor,
}

impl Compare {
    pub(crate) fn new(flags: u32) -> Result<Compare, Error> {
        match flags {
            0 => Ok(Compare::AtLeast),
            1 => Ok(Compare::Equal),
            2 => Ok(Compare::And),
            3 => Ok(Compare::Nor),
            other => Err(Error::Argument {
                name: "flags",
                value: other.to_string(),
                expected: "it must be 0 (at least), 1 (equal), 2 (and) or 3 (nor)",
            }),
        }
    }
}

/// One wait or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValueOp {
    /// How to compare, where it waits.
    pub(crate) wait: Option<Compare>,
    pub(crate) address: u64,
    pub(crate) value: u64,
    pub(crate) mask: u64,
    /// Bytes: 4 or 8.
    pub(crate) size: u32,
}

impl ValueOp {
    /// Whether the value that is there is the one to wait for.
    fn is_met_by(&self, found: u64) -> bool {
        let all = if self.size == 4 { u64::from(u32::MAX) } else { u64::MAX };
        let (found, mask, value) = (found & self.mask & all, self.mask & all, self.value & all);
        match self.wait {
            None => true,
            Some(Compare::AtLeast) => found >= value,
            Some(Compare::Equal) => found == value,
            Some(Compare::And) => found & value != 0,
            Some(Compare::Nor) => !(found | value & mask) & all != 0,
        }
    }

    /// As a program's list of them has it: the words of `hipStreamBatchMemOpParams`.
    fn words(&self) -> [u64; 6] {
        let operation = match (self.wait, self.size) {
            (Some(_), 4) => HIP_STREAM_MEM_OP_WAIT_VALUE_32,
            (Some(_), _) => HIP_STREAM_MEM_OP_WAIT_VALUE_64,
            (None, 4) => HIP_STREAM_MEM_OP_WRITE_VALUE_32,
            (None, _) => HIP_STREAM_MEM_OP_WRITE_VALUE_64,
        };
        let flags = match self.wait {
            None | Some(Compare::AtLeast) => 0,
            Some(Compare::Equal) => 1,
            Some(Compare::And) => 2,
            Some(Compare::Nor) => 3,
        };
        [operation.into(), self.address, self.value, flags, 0, 0]
    }
}

/// Several of them, one behind the other.
#[derive(Clone)]
pub(crate) struct Values {
    pub(crate) ops: Arc<[ValueOp]>,
    words: Arc<[[u64; 6]]>,
}

impl Values {
    pub(crate) fn new(ops: Vec<ValueOp>) -> Values {
        let words = ops.iter().map(ValueOp::words).collect();
        Values { ops: ops.into(), words }
    }

    /// The list as a program has it, valid for as long as this, or a clone of it, is there.
    pub(crate) fn params(&self) -> *mut hipStreamBatchMemOpParams {
        self.words.as_ptr().cast::<hipStreamBatchMemOpParams>().cast_mut()
    }
}

impl Runtime {
    /// Checks that an operation's address is memory of a device, or memory that devices see.
    pub(crate) fn check_value_op(&self, op: &ValueOp) -> Result<(), Error> {
        if op.address == 0 {
            return Err(Error::Null("ptr"));
        }
        if !op.address.is_multiple_of(op.size.into()) {
            let value = format!("{:#x}", op.address);
            return Err(Error::Argument {
                name: "ptr",
                value,
                expected: "it must be a multiple of the value's size",
            });
        }
        self.range("ptr", op.address, op.size.into()).map(drop)
    }

    /// Whether what an operation waits for is there. Memory that has been freed holds nobody up.
    pub(super) fn is_value_met(&self, op: &ValueOp) -> bool {
        if op.wait.is_none() || self.range("ptr", op.address, op.size.into()).is_err() {
            return true;
        }
        // SAFETY: the address is aligned, and lies within memory that is mapped: a device's own always is, and the program
        // keeps what it has registered. Others write it while this looks, hence atomics.
        let found = unsafe {
            match op.size {
                4 => u64::from(AtomicU32::from_ptr(op.address as *mut u32).load(Ordering::Acquire)),
                _ => AtomicU64::from_ptr(op.address as *mut u64).load(Ordering::Acquire),
            }
        };
        op.is_met_by(found)
    }

    pub(super) fn write_value(&self, op: &ValueOp) -> Result<(), StreamFault> {
        let block = self.range("ptr", op.address, op.size.into());
        let block = block.map_err(|error| StreamFault::of(hipErrorIllegalAddress, error.to_string()))?;
        let bytes = &op.value.to_le_bytes()[..op.size as usize];
        let written = self.devices[block.device].machine.write(op.address, bytes);
        written.map_err(|error| StreamFault::of(hipErrorIllegalAddress, error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_behind_the_mask() {
        let op = |wait, value, mask, size| ValueOp { wait: Some(wait), address: 0, value, mask, size };
        // (how, wanted, mask, bytes), a value that is it, one that is not.
        for (op, met, unmet) in [
            (op(Compare::AtLeast, 5, u64::MAX, 4), 5, 4),
            (op(Compare::AtLeast, 1 << 31, u64::MAX, 4), 1 << 31, 1),
            (op(Compare::AtLeast, 5, 0xf, 8), 0x16, 0x14),
            (op(Compare::Equal, 5, 0xff, 4), 0x105, 0x106),
            (op(Compare::Equal, 1 << 40, u64::MAX, 8), 1 << 40, 0),
            (op(Compare::And, 0b110, u64::MAX, 4), 0b010, 0b001),
            (op(Compare::And, 0b110, 0b100, 4), 0b100, 0b010),
            (op(Compare::Nor, 0xffff_fffe, u64::MAX, 4), 0, 1),
            (op(Compare::Nor, u64::MAX << 1, u64::MAX, 8), 0, 1),
        ] {
            assert!(op.is_met_by(met) && !op.is_met_by(unmet), "{op:?}");
        }
    }
}
