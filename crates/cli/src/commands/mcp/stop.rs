//! How does a call learn that it was canceled?

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Set when a call is canceled.
pub(super) type Stop = Arc<AtomicBool>;
