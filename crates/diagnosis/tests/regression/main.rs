//! Every wrong sentence found in a diagnosis or comparison, by what was wrong.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod blocks;
mod compared;
mod copies;
mod events;
mod odd_traces;
mod recordings;
mod steps;
mod waits;
