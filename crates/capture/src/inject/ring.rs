//! The last part of a run, in bounded memory: chunks of events, the oldest of which are forgotten.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// What a ring holds at most, with the definitions: half of the 64 MB that recording may take in all. CUPTI's buffers
/// and a chunk that is being written take the rest.
const LARGEST: usize = 32 << 20;

struct Held {
    /// When its first and its last events arrived, about.
    from: Instant,
    to: Instant,
    generation: u64,
    bytes: Vec<u8>,
}

pub(super) struct Ring {
    last: Duration,
    largest: usize,
    chunks: VecDeque<Held>,
    bytes: usize,
    /// The end of the last chunk.
    pushed: Instant,
    /// When a chunk last had to go before its time.
    crowded: Option<Instant>,
}

impl Ring {
    pub(super) fn new(last: Duration, now: Instant) -> Self {
        Self { last, largest: LARGEST, chunks: VecDeque::new(), bytes: 0, pushed: now, crowded: None }
    }

    /// Adds a chunk of events that arrived since the last one and use definitions of `generation`.
    pub(super) fn push(&mut self, now: Instant, generation: u64, bytes: Vec<u8>) {
        self.bytes += bytes.len();
        let from = std::mem::replace(&mut self.pushed, now);
        self.chunks.push_back(Held { from, to: now, generation, bytes });
    }

    /// Forgets what is too old, and the oldest of what is too much. `beside` is what definitions take.
    pub(super) fn trim(&mut self, now: Instant, beside: usize) {
        while let Some(oldest) = self.chunks.front() {
            let is_old = now.saturating_duration_since(oldest.to) > self.last;
            let is_much = self.bytes + beside > self.largest;
            if !is_old && !is_much {
                break;
            }
            if !is_old {
                self.crowded = Some(now);
            }
            self.bytes -= oldest.bytes.len();
            self.chunks.pop_front();
        }
    }

    pub(super) fn oldest_generation(&self) -> Option<u64> {
        self.chunks.front().map(|held| held.generation)
    }

    pub(super) fn chunks(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.chunks.iter().map(|held| &held.bytes)
    }

    /// What a dump says about its contents.
    pub(super) fn describe(&self, now: Instant) -> String {
        let covered =
            self.chunks.front().map_or(Duration::ZERO, |oldest| now.saturating_duration_since(oldest.from));
        let seconds = covered.as_secs_f64();
        let asked = self.last.as_secs_f64();
        let is_crowded = self.crowded.is_some_and(|at| now.saturating_duration_since(at) <= self.last);
        match is_crowded {
            true => format!(
                "it has the last {seconds:.1} s and not {asked:.0} s, because {} MB hold no more events of this program",
                self.largest >> 20
            ),
            false => format!("it has the last {seconds:.1} s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(begin: Instant, ms: u64) -> Instant {
        begin + Duration::from_millis(ms)
    }

    #[test]
    fn old_chunks_are_forgotten_first() {
        let begin = Instant::now();
        let mut ring = Ring::new(Duration::from_secs(2), begin);
        for number in 0..10u8 {
            let now = at(begin, 500 * u64::from(number));
            ring.push(now, u64::from(number) / 4, vec![number]);
            ring.trim(now, 0);
        }
        let kept: Vec<u8> = ring.chunks().map(|chunk| chunk[0]).collect();
        assert_eq!(kept, [5, 6, 7, 8, 9]);
        assert_eq!(ring.oldest_generation(), Some(1));
        assert_eq!(ring.describe(at(begin, 4500)), "it has the last 2.5 s");
    }

    #[test]
    fn a_flood_stays_within_the_bound() {
        let begin = Instant::now();
        let mut ring = Ring::new(Duration::from_secs(60), begin);
        for number in 0..5_000u64 {
            let now = at(begin, number);
            ring.push(now, 0, vec![0; 32 << 10]);
            ring.trim(now, 1 << 20);
            assert!(ring.bytes + (1 << 20) <= LARGEST);
        }
        assert_eq!(ring.chunks().count(), (LARGEST - (1 << 20)) / (32 << 10));
        let text = ring.describe(at(begin, 4_999));
        assert_eq!(
            text,
            "it has the last 1.0 s and not 60 s, because 32 MB hold no more events of this program"
        );
    }
}
