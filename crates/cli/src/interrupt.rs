//! How is long work left? The first Ctrl-C ends it in order, the second at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;

use crate::failure::Failure;

/// Set when somebody wants the work to end; the second signal ends the program, whatever it does.
pub(crate) fn listen_for_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let registered = signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)));
        registered.context("cannot listen for Ctrl-C").map_err(Failure::Output)?;
    }
    Ok(stop)
}
