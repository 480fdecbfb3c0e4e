//! Is a CUDA graph being captured? While one is, every copy goes to the driver: whether it is allowed then is the driver's
//! answer.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Captures that have begun and not ended, in any thread.
static CAPTURES: AtomicUsize = AtomicUsize::new(0);

/// Called before the driver's own function: another thread may copy while that one runs.
pub(super) fn begin() {
    CAPTURES.fetch_add(1, Relaxed);
}

/// A capture that failed or was never begun must not make the count wrap.
pub(super) fn end() {
    let _ = CAPTURES.fetch_update(Relaxed, Relaxed, |captures| captures.checked_sub(1));
}

pub(super) fn is_any() -> bool {
    CAPTURES.load(Relaxed) > 0
}
