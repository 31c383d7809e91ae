//! Launches that take long.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::machine::Watch;

/// The clock of a launch that is watched.
pub(super) struct Clock<'a> {
    watch: &'a Watch,
    start: Instant,
    /// Nanoseconds from the start to the next message.
    due: AtomicU64,
    /// Workgroups that have ended.
    pub ended: AtomicU64,
}

impl<'a> Clock<'a> {
    pub fn new(watch: &'a Watch) -> Clock<'a> {
        let due = AtomicU64::new(nanoseconds(watch.after));
        Clock { watch, start: Instant::now(), due, ended: AtomicU64::new(0) }
    }

    /// The receiver of the next message, if one is due. Only one of several threads gets it.
    pub fn is_due(&self) -> Option<(&'a Watch, Duration)> {
        let elapsed = self.start.elapsed();
        let (now, due) = (nanoseconds(elapsed), self.due.load(Ordering::Relaxed));
        if now < due {
            return None;
        }
        let next = now.saturating_mul(2).max(1);
        let was_first = self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        was_first.then_some((self.watch, elapsed))
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
