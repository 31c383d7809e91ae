//! What whoever waits for a build sees of it.
//!
//! Cargo keeps what a build script prints until the script has ended, and kernels take minutes. So lines go to the terminal,
//! if there is one, above cargo's own line.

use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What takes less comes from the cache, or is too short to be told.
const WORTH_TELLING: Duration = Duration::from_secs(1);

/// The steps of a build.
pub struct Progress {
    terminal: Option<File>,
    start: Instant,
    done: AtomicUsize,
    all: usize,
}

impl Progress {
    /// For so many steps.
    pub fn new(all: usize) -> Self {
        let is = |name: &str, value: &str| std::env::var_os(name).is_some_and(|set| set == value);
        let hidden =
            is("TERM", "dumb") || is("CARGO_TERM_QUIET", "true") || is("CARGO_TERM_PROGRESS_WHEN", "never");
        let terminal = File::options().write(true).open("/dev/tty").ok().filter(|_| !hidden);
        Self { terminal, start: Instant::now(), done: AtomicUsize::new(0), all }
    }

    /// Does one step.
    pub fn step<T>(&self, what: impl Display, step: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = step();
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if start.elapsed() >= WORTH_TELLING
            && let Some(mut terminal) = self.terminal.as_ref()
        {
            let line = line(&what.to_string(), start.elapsed(), done, self.all, self.start.elapsed());
            // Nothing depends on it.
            let _ = terminal.write_all(format!("\r\x1b[K{line}\n").as_bytes());
        }
        result
    }
}

/// In the form of cargo's own lines.
fn line(what: &str, took: Duration, done: usize, all: usize, since: Duration) -> String {
    let (took, since) = (took.as_secs(), since.as_secs());
    format!("     Kernels {what}: {took} s ({done} of {all} steps after {since} s)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_was_done_how_long_it_took_and_how_far_the_build_is() {
        let seconds = Duration::from_secs;
        assert_eq!(
            line("unary for gfx1100", seconds(12), 7, 39, seconds(80)),
            "     Kernels unary for gfx1100: 12 s (7 of 39 steps after 80 s)"
        );
    }

    #[test]
    fn a_step_gives_its_result_and_is_counted() {
        let progress = Progress::new(2);
        assert_eq!(progress.step("fill", || 3), 3);
        assert_eq!(progress.done.into_inner(), 1);
    }
}
