//! Which trace may be read next? As many at once as are wanted and as fit into the memory.
//!
//! What a trace will take is estimated from its size. One alone is always let in, whatever its size: how much of it is
//! kept is then the reader's bound.

use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use busbound_trace::unpacked_size;

use crate::inputs::Input;

/// Memory of reading and diagnosing a trace, in bytes for each byte of its JSON: 0.2 to 0.3 is what torch.profiler's files
/// took, 0.6 the same events without white space and without what is not kept.
const OF_SIZE: f64 = 0.7;
/// What a trace takes however small it is: buffers of the stretches under way.
const LEAST: u64 = 12 << 20;
/// Columns and everything made of them, over the columns alone.
const OVER_COLUMNS: u64 = 3;

/// What reading and diagnosing a trace of so many bytes will take, about.
pub fn memory_for(unpacked: u64) -> u64 {
    LEAST + (unpacked as f64 * OF_SIZE) as u64
}

fn estimate(input: &Input) -> u64 {
    memory_for(match input {
        Input::File(path) => size_of(path),
        // Nobody knows how long a stream is.
        Input::Stdin => 1 << 30,
    })
}

/// A file that cannot be opened takes nothing; whoever reads it says so.
fn size_of(path: &Path) -> u64 {
    unpacked_size(path).unwrap_or(0)
}

/// The gate that those who read pass one by one.
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

/// Leave to read one input; what it takes is given back when this is dropped.
pub(crate) struct Admitted<'a> {
    gate: &'a Admission,
    pub(crate) input: usize,
    takes: u64,
    /// How much its columns may take. The same for any number of traces read at once, so that the answer is.
    pub(crate) columns: u64,
}

impl Admission {
    pub(crate) fn new(bound: u64) -> Self {
        Self { bound, state: Mutex::new(State { next: 0, taken: 0, running: 0 }), left: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panicked has changed nothing by halves; the panic goes on where its thread is joined.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next input, in order, as soon as there is room for it; `None` when there is none.
    pub(crate) fn next<'a>(&'a self, inputs: &[Input]) -> Option<Admitted<'a>> {
        let mut state = self.state();
        loop {
            let input = state.next;
            let takes = estimate(inputs.get(input)?).min(self.bound);
            if state.running == 0 || state.taken + takes <= self.bound {
                state.next += 1;
                state.taken += takes;
                state.running += 1;
                // Events may be shorter than those of any trace seen yet; then they take more than estimated.
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
    fn one_is_always_let_in_and_more_only_where_there_is_room() {
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
