//! How does long work release the GIL and stop on Ctrl-C?
//!
//! It runs on a separate thread that does not use Python. The caller's thread releases the GIL and checks regularly for
//! Ctrl-C. On Ctrl-C the call returns immediately, and the work stops as soon as it checks its flag.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::failure::failed;

/// Short enough to feel immediate.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Set when the result is no longer needed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs the work and waits for its result.
pub(crate) fn attend<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> PyResult<T> {
    let stop = Stop::default();
    let (done, mut answer) = mpsc::channel();
    let worker = thread::Builder::new().name("busbound".to_owned()).spawn({
        let stop = stop.clone();
        move || {
            // Fails only if the call was interrupted, and then nobody needs the result.
            let _ = done.send(work(&stop));
        }
    });
    let worker = worker.map_err(|error| failed(format!("cannot start a thread: {error}")))?;
    loop {
        let received;
        (answer, received) = py.detach(move || {
            let received = answer.recv_timeout(LOOK_EVERY);
            (answer, received)
        });
        match received {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(interrupt) = py.check_signals() {
                    stop.0.store(true, Ordering::Relaxed);
                    return Err(interrupt);
                }
            }
            Err(RecvTimeoutError::Disconnected) => match worker.join() {
                Err(panic) => resume_unwind(panic),
                Ok(()) => return Err(failed("the work ended without a result")),
            },
        }
    }
}
