//! Two passes at once. The answer does not depend on it: passes share nothing but the trace.

use std::thread::{self, ScopedJoinHandle};

/// Runs both, one of them on another thread.
pub fn join<A: Send, B>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B) -> (A, B) {
    beside(a, |a| {
        let b = b();
        (a.wait(), b)
    })
}

/// Runs `b` while `a` runs on another thread. What `a` gives can be had where it is needed.
pub fn beside<A: Send, B>(a: impl FnOnce() -> A + Send, b: impl FnOnce(Pending<'_, A>) -> B) -> B {
    thread::scope(|scope| b(Pending(scope.spawn(a))))
}

/// What a pass on another thread will give.
#[derive(Debug)]
pub struct Pending<'s, T>(ScopedJoinHandle<'s, T>);

impl<T> Pending<'_, T> {
    /// Waits for it. If the pass panics, so does this.
    pub fn wait(self) -> T {
        match self.0.join() {
            Ok(value) => value,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}
