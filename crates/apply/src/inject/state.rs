//! What all parts of the library share in a process.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::system;
use crate::settings::{self, Settings};
use crate::tally::Tally;

#[derive(Debug)]
pub(super) struct State {
    pub(super) settings: Settings,
    tally: OnceLock<Option<&'static Tally>>,
    has_spoken: AtomicBool,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            settings: Settings::from_environment(),
            tally: OnceLock::new(),
            has_spoken: AtomicBool::new(false),
        }
    }

    /// Begins to count, if that is wanted. Only the one state that a process keeps does: there is one file.
    pub(super) fn count(&self) {
        let _ = self.tally.set(tally());
    }

    pub(super) fn tally(&self) -> Option<&'static Tally> {
        self.tally.get().copied().flatten()
    }

    /// Says once why copies are left to the driver.
    #[expect(clippy::print_stderr, reason = "the process has no other channel for it")]
    pub(super) fn say_once(&self, why: &str) {
        if !self.has_spoken.swap(true, Ordering::Relaxed) {
            eprintln!("busbound: process {}: copies are not staged: {why}", std::process::id());
        }
    }
}

/// The counters, if they are wanted.
fn tally() -> Option<&'static Tally> {
    let mut path = std::env::var_os(settings::TALLY)?;
    path.push(format!(".{}", std::process::id()));
    let tally = system::map_tally(&PathBuf::from(path))?;
    tally.begin();
    Some(tally)
}
