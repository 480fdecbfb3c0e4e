//! A prediction simulates several cases, which share nothing: on as many threads as there are cores.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use busbound_cause::Model;

use super::assumed::Assumed;
use super::models::RecordingIs;
use super::{Change, Ran, Replay};

/// Fewer kernels and copies are simulated in less time than a thread takes to start.
const FEW: usize = 1_000;

impl Replay {
    /// What each of these cases gives, in their order; equal ones are simulated once.
    pub(super) fn run_cases<const N: usize>(&self, changes: &[Change], cases: [Assumed; N]) -> [Ran; N] {
        let cases = cases.map(|case| self.as_recorded(case));
        let first = |case: &Assumed| cases.iter().position(|one| one == case).unwrap_or(0);
        let ran: [OnceLock<Ran>; N] = std::array::from_fn(|_| OnceLock::new());
        let next = AtomicUsize::new(0);
        let work = || {
            let mut graph = Model::default();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(case) = cases.get(at) else { break };
                if first(case) == at {
                    ran[at].get_or_init(|| self.run(&mut graph, changes, *case));
                }
            }
        };
        let few = self.models.expected().work.len() < FEW;
        let cores = if few { 1 } else { thread::available_parallelism().map_or(1, usize::from) };
        thread::scope(|scope| {
            for _ in 1..cores.min(N) {
                scope.spawn(work);
            }
            work();
        });
        cases.map(|case| *ran[first(&case)].get_or_init(|| self.run(&mut Model::default(), changes, case)))
    }

    /// Where recording cost nothing, its uncertainty makes no other case.
    fn as_recorded(&self, case: Assumed) -> Assumed {
        match self.models.is_recorded() {
            true => Assumed { recording: RecordingIs::Expected, ..case },
            false => case,
        }
    }
}
