//! Does any wrong answer that was fixed come back? One test per bug in a diagnosis or comparison.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should panic")]

mod blocks;
mod compared;
mod copies;
mod events;
mod odd_traces;
mod predictions;
mod recordings;
mod steps;
mod waits;
