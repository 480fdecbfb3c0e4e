//! Two passes at once. The answer does not depend on it: passes share nothing but the trace.

use std::thread;

/// Runs both, one of them on another thread. If one of them panics, so does this.
pub fn join<A: Send, B>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let a = scope.spawn(a);
        let b = b();
        match a.join() {
            Ok(a) => (a, b),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
