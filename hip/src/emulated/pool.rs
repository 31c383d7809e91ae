//! Memory pools: names for the device's one allocator, with the attributes that programs set and read back.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::error::Error;

/// `hipMemPoolAttr`: the release threshold, the one attribute with 64 bits that a program sets.
const RELEASE_THRESHOLD: u32 = 4;
/// Attributes 1 to 3 are switches, all on unless a program turns them off.
const SWITCHES: std::ops::RangeInclusive<u32> = 1..=3;
/// Attributes 5 to 8 count bytes.
const COUNTERS: std::ops::RangeInclusive<u32> = 5..=8;

/// A pool of one device.
pub(crate) struct Pool {
    pub(crate) device: usize,
    attributes: Mutex<HashMap<u32, u64>>,
}

/// Width of an attribute's value in a caller's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    Int,
    Long,
}

impl Pool {
    pub(crate) fn new(device: usize) -> Pool {
        Pool { device, attributes: Mutex::default() }
    }

    pub(crate) fn width(attribute: u32) -> Result<Width, Error> {
        match attribute {
            a if SWITCHES.contains(&a) => Ok(Width::Int),
            a if a == RELEASE_THRESHOLD || COUNTERS.contains(&a) => Ok(Width::Long),
            a => Err(Error::Argument {
                name: "attr",
                value: a.to_string(),
                expected: "a memory pool has attributes 1 to 8",
            }),
        }
    }

    /// `used` is the number of bytes that the device has given out.
    pub(crate) fn get(&self, attribute: u32, used: u64) -> u64 {
        let attributes = self.attributes.lock().unwrap_or_else(PoisonError::into_inner);
        match attribute {
            a if SWITCHES.contains(&a) => attributes.get(&a).copied().unwrap_or(1),
            a if COUNTERS.contains(&a) => used,
            a => attributes.get(&a).copied().unwrap_or(0),
        }
    }

    pub(crate) fn set(&self, attribute: u32, value: u64) {
        // Setting a counter resets its high-water mark; there is none to keep.
        self.attributes.lock().unwrap_or_else(PoisonError::into_inner).insert(attribute, value);
    }
}
