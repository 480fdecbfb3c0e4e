//! Asks CUPTI for its buffers on a thread of its own. While the GPU hangs, or a thread that crashed holds CUPTI's locks, this may
//! never return; the writer thread must go on.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::cupti::Cupti;
use super::signals;

/// A request that takes longer means that CUPTI is stuck.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) struct Flusher {
    requests: Sender<bool>,
    done: Receiver<()>,
    /// When the request was made that has no answer yet.
    asked: Option<Instant>,
}

impl Flusher {
    /// `None` if the thread cannot be started.
    pub(super) fn start(cupti: Cupti) -> Option<Self> {
        let (requests, asked) = channel::<bool>();
        let (answer, done) = channel();
        let run = move || {
            for all in asked {
                cupti.flush(all);
                if answer.send(()).is_err() {
                    return;
                }
            }
        };
        signals::spawn("busbound-flush", run).ok().map(|()| Self { requests, done, asked: None })
    }

    /// Asks for complete buffers, with `all` also for incomplete ones, and does not wait.
    pub(super) fn ask(&mut self, all: bool) {
        self.look(Duration::ZERO);
        if self.asked.is_none() && self.requests.send(all).is_ok() {
            self.asked = Some(Instant::now());
        }
    }

    /// The same, and waits a bounded time for the buffers.
    pub(super) fn flush(&mut self, all: bool, patience: Duration) {
        self.look(patience);
        self.ask(all);
        self.look(patience);
    }

    /// Whether CUPTI does not answer: then it must not be called.
    pub(super) fn is_stuck(&mut self) -> bool {
        self.look(Duration::ZERO);
        self.asked.is_some_and(|at| at.elapsed() > PATIENCE)
    }

    fn look(&mut self, patience: Duration) {
        if self.asked.is_some() && self.done.recv_timeout(patience).is_ok() {
            self.asked = None;
        }
    }
}
