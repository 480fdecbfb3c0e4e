//! What the library keeps in a process, made when the first copy comes.

use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::context::Context;
use super::pool::Pool;
use super::system;
use crate::settings::{self, Mode, Settings};
use crate::tally::Tally;

#[derive(Debug)]
pub(super) struct State {
    pub(super) settings: Settings,
    pub(super) tally: Option<&'static Tally>,
    pub(super) contexts: Mutex<Vec<Arc<Context>>>,
    /// One per NUMA node that has GPUs in use.
    pub(super) pools: Mutex<Vec<(Option<u32>, Arc<Pool>)>>,
    /// Pinned memory in use, in bytes.
    pub(super) pinned: AtomicUsize,
    has_spoken: AtomicBool,
}

/// Of this process; a forked child makes its own, because it has none of the threads.
static STATE: AtomicPtr<State> = AtomicPtr::new(null_mut());
/// The smallest copy of interest, so that small ones cost one comparison.
static SMALLEST: AtomicUsize = AtomicUsize::new(0);

impl State {
    /// `None` if copies of this size are not of interest.
    pub(super) fn for_copy_of(bytes: usize) -> Option<&'static Self> {
        if bytes < SMALLEST.load(Ordering::Relaxed) {
            return None;
        }
        let state = Self::get();
        (bytes >= state.settings.smallest.max(1) && state.settings.mode != Mode::Off).then_some(state)
    }

    fn get() -> &'static Self {
        let known = STATE.load(Ordering::Acquire);
        if !known.is_null() {
            // SAFETY: made by `Box::leak`, never freed.
            return unsafe { &*known };
        }
        let made = Box::leak(Box::new(Self::new()));
        match STATE.compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => made.begin(),
            // Another thread was faster; this one is small and stays unused.
            // SAFETY: as above.
            Err(other) => unsafe { &*other },
        }
    }

    fn new() -> Self {
        Self {
            settings: Settings::from_environment(),
            tally: tally(),
            contexts: Mutex::default(),
            pools: Mutex::default(),
            pinned: AtomicUsize::new(0),
            has_spoken: AtomicBool::new(false),
        }
    }

    fn begin(&'static self) -> &'static Self {
        let smallest = if self.settings.mode == Mode::Off { usize::MAX } else { self.settings.smallest };
        SMALLEST.store(smallest, Ordering::Relaxed);
        static WATCHING: AtomicBool = AtomicBool::new(false);
        if !WATCHING.swap(true, Ordering::Relaxed) {
            system::at_fork(forget);
        }
        self
    }

    /// Says once why copies are left to the driver.
    #[expect(clippy::print_stderr, reason = "the process has no other channel for it")]
    pub(super) fn say_once(&self, why: &str) {
        if !self.has_spoken.swap(true, Ordering::Relaxed) {
            eprintln!("busbound: process {}: copies are not staged: {why}", std::process::id());
        }
    }
}

/// In a forked child: locks may be held by threads that it does not have, so nothing of the old state is touched.
extern "C" fn forget() {
    STATE.store(null_mut(), Ordering::Release);
    SMALLEST.store(0, Ordering::Relaxed);
}

/// The counters, if they are wanted.
fn tally() -> Option<&'static Tally> {
    let mut path = std::env::var_os(settings::TALLY)?;
    path.push(format!(".{}", std::process::id()));
    let tally = system::map_tally(&PathBuf::from(path))?;
    tally.begin(system::now());
    Some(tally)
}
