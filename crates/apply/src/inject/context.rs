//! One CUDA context of the process: its pinned memory, and the threads near its GPU.

use std::sync::{Arc, Mutex};

use super::driver::{Driver, Stream};
use super::pool::Pool;
use super::ring::Ring;
use super::sizing::{self, Gpu};
use super::state::State;

/// Those that the process uses.
#[derive(Debug, Default)]
pub(super) struct Contexts {
    all: Mutex<Vec<Arc<Context>>>,
    /// One per NUMA node that has GPUs in use.
    pools: Mutex<Vec<(Option<u32>, Arc<Pool>)>>,
}

#[derive(Debug)]
pub(super) struct Context {
    /// The handle, and the number that tells it from a later context at the same address.
    key: (usize, u64),
    pub(super) ring: Mutex<Ring>,
    /// `None` if copies are better left to the driver.
    pub(super) pool: Option<Arc<Pool>>,
}

impl Contexts {
    /// The current one, if the stream belongs to it and runs what it is given.
    pub(super) fn current(&self, state: &State, driver: &Driver, stream: Stream) -> Option<Arc<Context>> {
        let key = driver.current_context()?;
        if !stream.is_default() && driver.context_of(stream)? != key.0 {
            return None;
        }
        if !driver.runs(stream) {
            return None;
        }
        let mut contexts = self.all.lock().ok()?;
        if let Some(known) = contexts.iter().find(|context| context.key == key) {
            return Some(Arc::clone(known));
        }
        // Another context at the same address has ended.
        contexts.retain(|context| {
            let has_ended = context.key.0 == key.0;
            if has_ended && let Ok(mut ring) = context.ring.lock() {
                ring.release(driver);
            }
            !has_ended
        });
        let made = Arc::new(self.begin(state, driver, key)?);
        contexts.push(Arc::clone(&made));
        Some(made)
    }

    fn begin(&self, state: &State, driver: &Driver, key: (usize, u64)) -> Option<Context> {
        let (bus_id, shares_page_tables) = driver.current_gpu()?;
        let gpu = Gpu::at(&bus_id);
        let pool = if shares_page_tables {
            state.say_once("this GPU reads the host's memory directly");
            None
        } else {
            self.pool(state, &gpu)
        };
        Some(Context { key, ring: Mutex::new(Ring::new(gpu.node)), pool })
    }

    /// The threads near this GPU.
    fn pool(&self, state: &State, gpu: &Gpu) -> Option<Arc<Pool>> {
        let mut pools = self.pools.lock().ok()?;
        if let Some((_, pool)) = pools.iter().find(|(node, _)| *node == gpu.node) {
            return Some(Arc::clone(pool));
        }
        let Some(threads) = sizing::threads(&state.settings, gpu) else {
            state.say_once("the process may use one CPU here, and the driver needs as much of it");
            return None;
        };
        let Some((pool, copying)) = Pool::start(threads, gpu.cpus) else {
            state.say_once("the system starts no more threads for this process");
            return None;
        };
        if let Some(tally) = state.tally() {
            tally.set_threads(copying);
        }
        pools.push((gpu.node, Arc::clone(&pool)));
        Some(pool)
    }
}
