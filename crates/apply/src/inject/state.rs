//! What all parts of the library share in a process.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::system;
use crate::settings::{self, Settings};
use crate::tally::Tally;

#[derive(Debug)]
pub(super) struct State {
    pub(super) settings: Settings,
    pub(super) tally: Option<&'static Tally>,
    /// Pinned memory in use, in bytes.
    pub(super) pinned: AtomicUsize,
    has_spoken: AtomicBool,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            settings: Settings::from_environment(),
            tally: tally(),
            pinned: AtomicUsize::new(0),
            has_spoken: AtomicBool::new(false),
        }
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
    tally.begin(system::now());
    Some(tally)
}
