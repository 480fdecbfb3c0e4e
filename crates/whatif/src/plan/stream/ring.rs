//! How long is one pass of many, with blocks that are streamed through a ring of slots?

/// One block of a pass.
#[derive(Debug, Clone, Copy)]
pub(in crate::plan) struct Turn {
    pub(in crate::plan) compute_ms: f64,
    /// The time of its copy; `None` if it stays on the GPU.
    pub(in crate::plan) copy_ms: Option<f64>,
}

/// Passes simulated; the last of them repeat.
const PASSES: usize = 8;
/// Passes averaged: the slots of a block may alternate from pass to pass.
const AVERAGED: usize = 4;

/// The duration of a steady pass.
pub(in crate::plan) fn pass_ms(turns: &[Turn], outside_ms: f64, slots: usize) -> f64 {
    let streamed = turns.iter().filter(|turn| turn.copy_ms.is_some()).count();
    // What fits into the ring is copied once.
    let is_copied = streamed > slots && slots > 0;
    let mut released: Vec<f64> = Vec::with_capacity(PASSES * streamed);
    let (mut now, mut copied, mut begin) = (0.0_f64, 0.0_f64, 0.0_f64);
    for pass in 0..PASSES {
        if pass == PASSES - AVERAGED {
            begin = now;
        }
        for turn in turns {
            if let Some(copy_ms) = turn.copy_ms.filter(|_| is_copied) {
                // The copy starts when the previous copy has ended and the slot's last block has run.
                let free = released.len().checked_sub(slots).map_or(0.0, |last| released[last]);
                copied = copied.max(free) + copy_ms;
                now = now.max(copied) + turn.compute_ms;
                released.push(now);
            } else {
                now += turn.compute_ms;
            }
        }
        now += outside_ms;
    }
    (now - begin) / AVERAGED as f64
}
