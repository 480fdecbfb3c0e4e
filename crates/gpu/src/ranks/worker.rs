//! What a rank does when it is asked, on a thread of its own: a call of NCCL may never return.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::message::{Answer, Command};

/// The questions for a worker, and the way of its answers.
pub(crate) struct Asked<'a> {
    commands: Receiver<Command>,
    answer: &'a dyn Fn(Answer),
}

impl Asked<'_> {
    /// The next question; `None` if nobody asks any more.
    pub(crate) fn next(&self) -> Option<Command> {
        self.commands.recv().ok()
    }

    pub(crate) fn answer(&self, answer: Answer) {
        (self.answer)(answer);
    }
}

/// What the worker's side says, to whom it may concern.
pub(super) enum Said {
    Answer(Answer),
    /// Nothing more will come.
    Gone,
}

/// A rank of this process.
pub(super) struct Worker(Sender<Command>);

impl Worker {
    /// Starts `work`, which answers what it is asked, and gives its reason if it fails.
    pub(super) fn start(
        work: impl FnOnce(&Asked<'_>) -> Result<(), String> + Send + 'static,
        said: impl Fn(Said) + Send + 'static,
    ) -> Self {
        let (to, commands) = channel();
        thread::spawn(move || {
            let last = Last(said);
            let answer = |answer| (last.0)(Said::Answer(answer));
            if let Err(why) = work(&Asked { commands, answer: &answer }) {
                answer(Answer::Failed(why));
            }
        });
        Self(to)
    }

    /// If it is gone, that is heard, not noticed here.
    pub(super) fn ask(&self, command: Command) {
        let _ = self.0.send(command);
    }
}

/// Says that nothing more will come, also after a panic.
struct Last<F: Fn(Said)>(F);

impl<F: Fn(Said)> Drop for Last<F> {
    fn drop(&mut self) {
        (self.0)(Said::Gone);
    }
}
