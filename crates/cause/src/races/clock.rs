//! What is done before a moment? The number of copies on each stream that copies.

/// How many copies of each stream are done, and whether more may be than is recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Clock {
    /// By the number of the stream among those that copy; those that are missing have none.
    done: Vec<u32>,
    is_unknown: bool,
}

impl Clock {
    /// After a wait for something that is not recorded.
    pub(super) fn unknown() -> Self {
        Self { done: Vec::new(), is_unknown: true }
    }

    /// Whether more may be done than is recorded.
    pub(super) fn is_unknown(&self) -> bool {
        self.is_unknown
    }

    /// Whether a copy of this number is done.
    pub(super) fn has(&self, lane: usize, number: u32) -> bool {
        self.done.get(lane).is_some_and(|done| *done >= number)
    }

    /// After a wait for what the other knows to be done.
    pub(super) fn join(&mut self, other: &Self) {
        if self.done.len() < other.done.len() {
            self.done.resize(other.done.len(), 0);
        }
        for (mine, its) in self.done.iter_mut().zip(&other.done) {
            *mine = (*mine).max(*its);
        }
        self.is_unknown |= other.is_unknown;
    }

    /// After one more copy.
    pub(super) fn add(&mut self, lane: usize, number: u32) {
        if self.done.len() <= lane {
            self.done.resize(lane + 1, 0);
        }
        self.done[lane] = self.done[lane].max(number);
    }
}
