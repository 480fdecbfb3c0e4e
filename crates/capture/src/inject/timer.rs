//! Is it time to do something again?

use std::time::{Duration, Instant};

/// When something was last done.
pub(super) struct Timer {
    every: Duration,
    last: Instant,
}

impl Timer {
    pub(super) fn new(every: Duration) -> Self {
        Self { every, last: Instant::now() }
    }

    pub(super) fn is_due(&mut self) -> bool {
        let is_due = self.last.elapsed() >= self.every;
        if is_due {
            self.last = Instant::now();
        }
        is_due
    }
}
