//! Which trace may be read next? As many in parallel as requested, if they fit into memory.
//!
//! The memory for a trace is estimated from its size. A single trace is always admitted, whatever its size: the reader's
//! own limit then decides how much of it is kept.

use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use busbound_trace::unpacked_size;

use crate::inputs::Input;

/// Memory for reading and diagnosing a trace, in bytes per byte of its JSON. Files of torch.profiler took 0.2–0.3; the
/// same events without white space and without skipped events took 0.6.
const OF_SIZE: f64 = 0.7;
/// The minimum for any trace: buffers of the blocks being read.
const LEAST: u64 = 12 << 20;
/// Total memory, including everything derived from the columns, over the columns alone.
const OVER_COLUMNS: u64 = 3;

/// Approximate memory for reading and diagnosing a trace of this uncompressed size.
pub fn memory_for(unpacked: u64) -> u64 {
    LEAST + (unpacked as f64 * OF_SIZE) as u64
}

fn estimate(input: &Input) -> u64 {
    memory_for(match input {
        Input::File(path) => size_of(path),
        // The length of a stream is unknown.
        Input::Stdin => 1 << 30,
    })
}

/// A file that cannot be opened needs no memory; reading it reports the error.
fn size_of(path: &Path) -> u64 {
    unpacked_size(path).unwrap_or(0)
}

/// Admits inputs in order, within the memory limit.
pub(crate) struct Admission {
    bound: u64,
    state: Mutex<State>,
    left: Condvar,
}

struct State {
    next: usize,
    taken: u64,
    running: usize,
}

/// Permission to read one input; dropping it releases its memory.
pub(crate) struct Admitted<'a> {
    gate: &'a Admission,
    pub(crate) input: usize,
    takes: u64,
    /// Memory limit for its columns. Does not depend on how many traces are read in parallel, so that the answer does not
    /// either.
    pub(crate) columns: u64,
}

impl Admission {
    pub(crate) fn new(bound: u64) -> Self {
        Self { bound, state: Mutex::new(State { next: 0, taken: 0, running: 0 }), left: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic cannot leave the state half changed, and it resumes where the thread is joined.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next input, as soon as enough memory is free; `None` if no input is left.
    pub(crate) fn next<'a>(&'a self, inputs: &[Input]) -> Option<Admitted<'a>> {
        let mut state = self.state();
        loop {
            let input = state.next;
            let takes = estimate(inputs.get(input)?).min(self.bound);
            if state.running == 0 || state.taken + takes <= self.bound {
                state.next += 1;
                state.taken += takes;
                state.running += 1;
                // Events may be smaller than in any trace measured so far; they then take more than estimated.
                let columns = self.bound.min(4 * takes) / OVER_COLUMNS;
                return Some(Admitted { gate: self, input, takes, columns });
            }
            state = self.left.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        state.taken -= self.takes;
        state.running -= 1;
        self.gate.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_input_is_always_admitted_and_more_only_if_they_fit() {
        let inputs = vec![Input::Stdin; 3];
        let each = estimate(&inputs[0]);
        let narrow = Admission::new(1);
        assert!(narrow.next(&inputs).is_some());
        let gate = Admission::new(2 * each);
        let (first, second) = (gate.next(&inputs), gate.next(&inputs));
        assert_eq!((first.as_ref().map(|a| a.input), second.as_ref().map(|a| a.input)), (Some(0), Some(1)));
        std::thread::scope(|scope| {
            let third = scope.spawn(|| gate.next(&inputs).map(|admitted| admitted.input));
            drop(first);
            assert_eq!(third.join().ok().flatten(), Some(2));
        });
        drop(second);
        assert_eq!(gate.state().taken, 0);
    }
}
