//! Which block is used next? Learned from what was used before.
//!
//! The order repeats from pass to pass, so the prediction is what followed the last time. A pass that skips blocks,
//! repeats them or turns around (backward) is found again in the history.

/// A block is used in the forward pass, or its weights are needed by the backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Forward,
    Backward,
}

type Access = (u32, Phase);

/// Accesses compared when a position is searched in the history: enough to tell repeated blocks apart.
const CONTEXT: usize = 8;
/// Accesses looked through for the blocks that come next; a block may be used many times in a row.
const FARTHEST: usize = 64;

/// The history of accesses and the position in it that the present repeats.
#[derive(Debug, Clone)]
pub(super) struct Order {
    blocks: Vec<u32>,
    history: Vec<Access>,
    next: usize,
}

impl Order {
    pub(super) fn new(blocks: Vec<u32>) -> Self {
        // Before anything is known, blocks are used in the order of the model.
        let history = blocks.iter().map(|block| (*block, Phase::Forward)).collect();
        Self { blocks, history, next: 0 }
    }

    /// A block is used.
    pub(super) fn saw(&mut self, block: u32, phase: Phase) {
        let access = (block, phase);
        if self.history.get(self.next) == Some(&access) {
            self.next += 1;
        } else {
            self.next = self.found(access) + 1;
        }
        self.history.push(access);
        if self.next > 16 * self.blocks.len() + 256 {
            let cut = self.next - 2 * self.blocks.len() - CONTEXT;
            self.history.drain(..cut);
            self.next -= cut;
        }
    }

    /// The blocks that are used next, with repetitions.
    pub(super) fn ahead(&self) -> impl Iterator<Item = u32> + '_ {
        self.history[self.next..].iter().take(FARTHEST).map(|(block, _)| *block)
    }

    pub(super) fn len(&self) -> usize {
        self.history.len()
    }

    /// The position in the history that this access repeats.
    fn found(&mut self, access: Access) -> usize {
        let (history, at) = (&self.history, self.next);
        // Some blocks are skipped.
        let near = history.len().min(at + 2 * self.blocks.len() + 2);
        if let Some(position) = (at + 1..near).find(|position| history[*position] == access) {
            return position;
        }
        // The program turned to something it did before: the position with the longest common past, the latest first.
        let mut best: Option<(usize, usize)> = None;
        for position in (0..history.len()).rev().filter(|position| history[*position] == access) {
            let length = self.common_past(position);
            if best.is_none_or(|(_, longest)| length > longest) {
                best = Some((position, length));
            }
            if length == CONTEXT {
                break;
            }
        }
        best.map_or_else(|| self.imagined(access), |(position, _)| position)
    }

    fn common_past(&self, position: usize) -> usize {
        let past = self.history[..position].iter().rev();
        past.zip(self.history.iter().rev()).take(CONTEXT).take_while(|(then, now)| then == now).count()
    }

    /// Something new: backward goes through the blocks in reverse, and the next pass begins at the first.
    fn imagined(&mut self, (block, phase): Access) -> usize {
        let at = self.history.len();
        let before = self.blocks.iter().position(|each| *each == block).unwrap_or(0);
        self.history.push((block, phase));
        self.history.extend(self.blocks[..before].iter().rev().map(|earlier| (*earlier, phase)));
        self.history.extend(self.blocks.iter().map(|each| (*each, Phase::Forward)));
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_blocks_are_distinguished_by_what_was_before() {
        let mut order = Order::new(vec![0, 1, 2]);
        let pass = [0, 1, 0, 1, 2];
        for number in 0..6 {
            for (at, block) in pass.into_iter().enumerate() {
                assert!(number < 3 || order.ahead().next() == Some(block), "pass {number}, use {at}");
                order.saw(block, Phase::Forward);
            }
        }
    }

    #[test]
    fn the_history_of_a_long_run_is_short() {
        let mut order = Order::new((0..4).collect());
        for number in 0..100_000_u32 {
            order.saw(number.wrapping_mul(2_654_435_761) >> 30, Phase::Forward);
            assert!(order.len() < 40 * 4 + 1000, "{} after {number} uses", order.len());
        }
    }
}
