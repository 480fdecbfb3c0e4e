//! What did work wait for, other than the work before it on its stream?

use super::{Graph, NodeId, Rule, WorkId};

/// An edge from the end of device work to the call or work that waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    pub(super) on: NodeId,
    pub rule: Rule,
}

impl Wait {
    pub(super) fn new(on: WorkId, rule: Rule) -> Self {
        Self { on: NodeId::of(on), rule }
    }

    pub fn on(self) -> WorkId {
        self.on.get()
    }
}

/// Work on other streams that work waited for: mostly none. [`Graph::waits_of`] has them.
#[derive(Debug, Clone, Copy)]
pub(super) enum Waits {
    None,
    One(Wait),
    /// The position in the list of the graph.
    Several(u32),
}

impl Graph {
    /// Work on other streams that the work waited for.
    pub fn waits_of(&self, work: WorkId) -> &[Wait] {
        match &self.work[work].waits {
            Waits::None => &[],
            Waits::One(wait) => std::slice::from_ref(wait),
            Waits::Several(several) => &self.several_waits[*several as usize],
        }
    }

    /// Adds an edge, unless it exists or would go backward in time.
    pub(super) fn add_wait(&mut self, work: WorkId, on: WorkId, rule: Rule) -> bool {
        // Work never waits for work that started at the same time or later: waits must not form a cycle.
        if self.work[on].start >= self.work[work].start {
            return false;
        }
        if self.waits_of(work).iter().any(|known| known.on() == on) {
            return true;
        }
        let wait = Wait::new(on, rule);
        match self.work[work].waits {
            Waits::None => self.work[work].waits = Waits::One(wait),
            Waits::One(first) => {
                self.work[work].waits = Waits::Several(self.several_waits.len() as u32);
                self.several_waits.push(vec![first, wait]);
            }
            Waits::Several(several) => self.several_waits[several as usize].push(wait),
        }
        true
    }
}
