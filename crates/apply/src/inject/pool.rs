//! The threads that copy. They sleep when there is nothing to do.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use super::job::{Job, does_caller_fill};
use super::system::{Cpus, without_signals};

/// How long a thread looks for work before it sleeps: copies come in groups, and waking a thread takes as long as one.
const AWAKE: Duration = Duration::from_micros(100);
const STACK: usize = 128 << 10;

#[derive(Debug, Default)]
pub(super) struct Pool {
    jobs: Mutex<Jobs>,
    wake: Condvar,
    /// That copy, the calling one included if it fills slots.
    pub(super) threads: usize,
    /// False if the process has no CPU for a thread that only looks for work.
    may_spin: bool,
}

#[derive(Debug, Default)]
struct Jobs {
    open: Vec<Arc<Job>>,
    asleep: usize,
}

impl Pool {
    /// Starts as many threads as it takes for this many to copy, on these CPUs, or fewer if the system allows no more; says how many
    /// copy. `None` if none could be started.
    pub(super) fn start(threads: usize, cpus: Option<Cpus>) -> Option<(Arc<Self>, usize)> {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        let callers = usize::from(does_caller_fill(threads));
        let wanted = threads - callers;
        let pool = Arc::new(Self { threads, may_spin: wanted + 1 < all, ..Self::default() });
        let mut count = 0;
        without_signals(|| {
            for _ in 0..wanted {
                let pool = Arc::clone(&pool);
                let thread = std::thread::Builder::new().name("busbound-stage".to_owned()).stack_size(STACK);
                let started = thread.spawn(move || {
                    if let Some(cpus) = cpus {
                        cpus.bind();
                    }
                    pool.serve();
                });
                if started.is_err() {
                    break;
                }
                count += 1;
            }
        });
        (count > 0 || wanted == 0).then_some((pool, count + callers))
    }

    /// Threads work on this job until it is removed.
    pub(super) fn add(&self, job: &Arc<Job>) {
        if let Ok(mut jobs) = self.jobs.lock() {
            jobs.open.push(Arc::clone(job));
        }
    }

    pub(super) fn remove(&self, job: &Arc<Job>) {
        if let Ok(mut jobs) = self.jobs.lock() {
            jobs.open.retain(|open| !Arc::ptr_eq(open, job));
        }
    }

    /// More of a job is open.
    pub(super) fn wake(&self) {
        let is_one_asleep = self.jobs.lock().is_ok_and(|jobs| jobs.asleep > 0);
        if is_one_asleep {
            self.wake.notify_all();
        }
    }

    fn serve(&self) {
        while let Some(job) = self.next() {
            while job.work() {}
        }
    }

    /// Waits for a job with something to do.
    fn next(&self) -> Option<Arc<Job>> {
        let began = Instant::now();
        loop {
            let mut jobs = self.jobs.lock().ok()?;
            if let Some(job) = jobs.open.iter().find(|job| job.has_work()) {
                return Some(Arc::clone(job));
            }
            if self.may_spin && began.elapsed() < AWAKE {
                drop(jobs);
                for _ in 0..200 {
                    std::hint::spin_loop();
                }
                continue;
            }
            jobs.asleep += 1;
            let woken = self.wake.wait(jobs);
            woken.ok()?.asleep -= 1;
        }
    }
}
