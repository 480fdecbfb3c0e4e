//! How is long work stopped? The first Ctrl-C stops it cleanly, the second one immediately.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::failure::Failure;

/// A flag that the first signal sets; the second signal ends the program.
pub(crate) fn listen_for_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .map_err(Failure::output_at("cannot listen for Ctrl-C"))?;
    }
    Ok(stop)
}

/// On a signal, stops nsys, removes its directory, and ends the program as the signal would have.
#[cfg(unix)]
pub(crate) fn end_exports_on_signals() -> Result<(), Failure> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    static LISTENING: std::sync::Once = std::sync::Once::new();
    if LISTENING.is_completed() {
        return Ok(());
    }
    let mut signals =
        Signals::new([SIGINT, SIGTERM]).map_err(Failure::output_at("cannot listen for Ctrl-C"))?;
    LISTENING.call_once(|| {
        std::thread::spawn(move || {
            for signal in signals.forever() {
                busbound::end_exports();
                let _ = emulate_default_handler(signal);
            }
        });
    });
    Ok(())
}

/// On other systems Ctrl-C reaches nsys through the console; its directory stays among the temporary files.
#[cfg(not(unix))]
pub(crate) fn end_exports_on_signals() -> Result<(), Failure> {
    Ok(())
}
