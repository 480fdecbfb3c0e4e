//! How does long work let others run, and stop at Ctrl-C?
//!
//! It goes on a thread of its own that knows nothing of Python. The caller's thread lets go of the interpreter and looks now and then whether
//! somebody has pressed Ctrl-C; then the call ends at once, and the work as soon as it looks at its flag.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::failure::failed;

/// As long as nobody notices waiting for it.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Set when the answer is no longer wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Does the work and waits for it.
pub(crate) fn attend<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> PyResult<T> {
    let stop = Stop::default();
    let (done, mut answer) = mpsc::channel();
    let worker = thread::Builder::new().name("busbound".to_owned()).spawn({
        let stop = stop.clone();
        move || {
            // Nobody listens any more where the call was interrupted.
            let _ = done.send(work(&stop));
        }
    });
    let worker = worker.map_err(|error| failed(format!("no thread could be started: {error}")))?;
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
                Ok(()) => return Err(failed("the work ended without an answer")),
            },
        }
    }
}
