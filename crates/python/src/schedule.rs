//! The contents of `busbound.offload`'s ring, as Python uses it. The planner simulates with the same.

use std::sync::{Mutex, MutexGuard, PoisonError};

use busbound::whatif::plan::stream::{NoSlot, Phase, Schedule};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

/// Which block is in which slot, and what is copied when.
#[pyclass(frozen, module = "busbound._native", name = "Schedule")]
#[derive(Debug)]
pub(crate) struct PySchedule(Mutex<Schedule>);

impl PySchedule {
    /// Nothing is left half done: a panic would be a bug, and would not change what is in the ring.
    fn lock(&self) -> MutexGuard<'_, Schedule> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PySchedule {
    #[new]
    fn new(blocks: Vec<u32>, slots: usize) -> Self {
        Self(Mutex::new(Schedule::new(blocks, slots)))
    }

    /// A block is used until `leave`. Its slot, and whether it must be copied there now. Phases are 0 for forward, 1 for
    /// backward. An `IndexError` if all slots are in use.
    #[pyo3(signature = (block, phase = 0))]
    fn enter(&self, block: u32, phase: u32) -> PyResult<(u32, bool)> {
        let phase = if phase == 0 { Phase::Forward } else { Phase::Backward };
        self.lock().enter(block, phase).map_err(|NoSlot| PyIndexError::new_err("all slots are in use"))
    }

    /// A use of the slot ended.
    fn leave(&self, slot: u32) {
        self.lock().leave(slot);
    }

    /// What to copy now: blocks and the slots for them.
    fn ahead(&self) -> Vec<(u32, u32)> {
        self.lock().ahead().into_iter().map(|fetch| (fetch.block, fetch.slot)).collect()
    }

    /// Where a block is or is being copied to.
    fn slot_of(&self, block: u32) -> Option<u32> {
        self.lock().slot_of(block)
    }

    #[getter]
    fn slots(&self) -> usize {
        self.lock().slots()
    }

    /// Blocks that were in no slot when they were used.
    #[getter]
    fn misses(&self) -> u64 {
        self.lock().misses()
    }

    /// Uses of blocks that it remembers.
    #[getter]
    fn remembered(&self) -> usize {
        self.lock().remembered()
    }
}
