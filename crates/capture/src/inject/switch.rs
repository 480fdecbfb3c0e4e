//! What does recording cost? Turns it on and off in the calling process, as `busbound record` does, and keeps nothing.

use std::ffi::c_void;
use std::fmt;
use std::path::PathBuf;

use super::cupti::Cupti;
use super::{buffer_requested, find, keep, taken_back, waits};

/// How much is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The launch calls, without the work that they start.
    Calls,
    /// Everything that `busbound record` records.
    Everything,
}

/// CUPTI in this process, for measurements; recording is off at first.
pub struct Switch {
    cupti: Cupti,
    /// Where CUPTI was found.
    pub place: String,
    is_on: bool,
}

impl Switch {
    /// Loads CUPTI; also searches these folders.
    ///
    /// # Errors
    /// With a message if it is not found or lacks functions.
    pub fn find(also: &[PathBuf]) -> Result<Self, String> {
        let found = find::cupti(also)?;
        let cupti = Cupti::of(&found.library)
            .ok_or_else(|| format!("{} lacks functions that recording needs", found.place))?;
        Ok(Self { cupti, place: found.place, is_on: false })
    }

    /// Starts recording.
    ///
    /// # Errors
    /// With a message if another profiler uses CUPTI, or if it does not record what was asked for.
    pub fn on(&mut self, extent: Extent) -> Result<(), String> {
        self.off();
        self.cupti.take(buffer_requested, discard, waits::called)?;
        self.is_on = true;
        let refused = match extent {
            Extent::Calls => self.cupti.begin_calls(),
            Extent::Everything => self.cupti.begin(waits::calls(&self.cupti), false),
        };
        match refused.first() {
            None => Ok(()),
            Some(kind) => {
                self.off();
                Err(format!("CUPTI does not record activity kind {kind} here"))
            }
        }
    }

    /// Stops recording, forgets what was recorded, and detaches CUPTI. The process must not use CUDA on another thread
    /// meanwhile.
    pub fn off(&mut self) {
        if !std::mem::take(&mut self.is_on) {
            return;
        }
        waits::end(&self.cupti);
        self.cupti.flush(true);
        self.cupti.release();
        self.cupti.detach();
        waits::take();
    }
}

impl fmt::Debug for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Switch")
            .field("place", &self.place)
            .field("is_on", &self.is_on)
            .finish_non_exhaustive()
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.off();
    }
}

extern "C" fn discard(_: *mut c_void, _: u32, buffer: *mut u8, size: usize, _: usize) {
    if let Some(memory) = taken_back(buffer, size) {
        keep(memory);
    }
}
