//! What the library keeps in a process, made when the first copy comes.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use super::context::Contexts;
use super::state::State;
use super::system;
use crate::settings::Mode;

#[derive(Debug)]
pub(super) struct Process {
    pub(super) state: State,
    pub(super) contexts: Contexts,
}

/// Of this process; a forked child makes its own, because it has none of the threads.
static PROCESS: AtomicPtr<Process> = AtomicPtr::new(null_mut());
/// The smallest copy of interest, so that small ones cost one comparison.
static SMALLEST: AtomicUsize = AtomicUsize::new(0);

impl Process {
    /// `None` if copies of this size are not of interest.
    pub(super) fn for_copy_of(bytes: usize) -> Option<&'static Self> {
        if bytes < SMALLEST.load(Ordering::Relaxed) {
            return None;
        }
        let process = Self::get();
        (bytes >= process.state.settings.smallest.max(1) && process.state.settings.mode != Mode::Off)
            .then_some(process)
    }

    fn get() -> &'static Self {
        let known = PROCESS.load(Ordering::Acquire);
        if !known.is_null() {
            // SAFETY: made by `Box::leak`, never freed.
            return unsafe { &*known };
        }
        let made = Box::leak(Box::new(Self { state: State::new(), contexts: Contexts::default() }));
        match PROCESS.compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => made.begin(),
            // Another thread was faster; this one is small and stays unused.
            // SAFETY: as above.
            Err(other) => unsafe { &*other },
        }
    }

    fn begin(&'static self) -> &'static Self {
        let is_off = self.state.settings.mode == Mode::Off;
        if !is_off {
            self.state.count();
        }
        SMALLEST.store(if is_off { usize::MAX } else { self.state.settings.smallest }, Ordering::Relaxed);
        static WATCHING: AtomicBool = AtomicBool::new(false);
        if !WATCHING.swap(true, Ordering::Relaxed) {
            system::at_fork(forget);
        }
        self
    }
}

/// In a forked child: locks may be held by threads that it does not have, so nothing of the old state is touched.
extern "C" fn forget() {
    PROCESS.store(null_mut(), Ordering::Release);
    SMALLEST.store(0, Ordering::Relaxed);
}
