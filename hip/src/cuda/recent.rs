//! Kernels that may be running: a trap or a bad address ends the whole context, and the driver does not say which kernel it
//! was in.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use super::sys::Handle;

/// Launches that are remembered.
const LAUNCHES: usize = 64;
/// Names that a text has.
const NAMES: usize = 8;

/// The latest launches, apart from those that somebody has waited for.
pub(super) struct Recent {
    next: AtomicUsize,
    /// Kernel and stream of each; no kernel where its stream was waited for.
    launches: [(AtomicUsize, AtomicUsize); LAUNCHES],
    names: RwLock<HashMap<usize, String>>,
}

impl Default for Recent {
    fn default() -> Recent {
        Recent {
            next: AtomicUsize::new(0),
            launches: std::array::from_fn(|_| Default::default()),
            names: RwLock::default(),
        }
    }
}

impl Recent {
    /// Remembers a kernel's name.
    pub(super) fn name(&self, function: Handle, name: &str) {
        self.names.write().unwrap_or_else(PoisonError::into_inner).insert(function as usize, name.to_owned());
    }

    pub(super) fn name_of(&self, function: Handle) -> String {
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        names.get(&(function as usize)).cloned().unwrap_or_else(|| format!("{function:?}"))
    }

    pub(super) fn launched(&self, function: Handle, stream: Handle) {
        let (kernel, of) = &self.launches[self.next.fetch_add(1, Ordering::Relaxed) % LAUNCHES];
        of.store(stream as usize, Ordering::Relaxed);
        kernel.store(function as usize, Ordering::Relaxed);
    }

    /// What was launched to a stream, or to all of them, has run.
    pub(super) fn done(&self, stream: Option<Handle>) {
        for (kernel, of) in &self.launches {
            if stream.is_none_or(|stream| of.load(Ordering::Relaxed) == stream as usize) {
                kernel.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Which kernels may have been at fault, for the end of a text.
    pub(super) fn suspects(&self, blocking: bool) -> String {
        let next = self.next.load(Ordering::Relaxed);
        let mut names: Vec<String> = Vec::new();
        for back in 1..=LAUNCHES {
            let (kernel, _) = &self.launches[next.wrapping_sub(back) % LAUNCHES];
            let kernel = kernel.load(Ordering::Relaxed);
            if kernel != 0 {
                let name = format!("`{}`", self.name_of(kernel as Handle));
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            if blocking && !names.is_empty() {
                break;
            }
        }
        match names.as_slice() {
            [] => String::new(),
            [one] => format!("; in kernel {one}"),
            many => format!(
                "; in one of the kernels that were launched since the last synchronisation: {} (with CUDA_LAUNCH_BLOCKING=1 \
                 the launch itself fails)",
                many[..many.len().min(NAMES)].join(", ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_that_nobody_waited_for_are_suspects() {
        let recent = Recent::default();
        let [a, b, s, t] = [0x10, 0x20, 0x100, 0x200].map(|number: usize| number as Handle);
        recent.name(a, "first");
        recent.name(b, "second");
        assert_eq!(recent.suspects(false), "");
        recent.launched(a, s);
        recent.launched(b, t);
        let both = recent.suspects(false);
        assert!(both.contains("`second`, `first`"), "{both}");
        assert_eq!(recent.suspects(true), "; in kernel `second`");
        recent.done(Some(t));
        assert_eq!(recent.suspects(false), "; in kernel `first`");
        recent.done(None);
        assert_eq!(recent.suspects(false), "");
        (0..1000).for_each(|_| recent.launched(b, s));
        assert_eq!(recent.suspects(false), "; in kernel `second`");
    }
}
