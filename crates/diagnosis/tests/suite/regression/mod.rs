//! Does any wrong answer that was fixed come back? One test per bug in a diagnosis or comparison.

mod advice;
mod blocks;
mod claims;
mod compared;
mod copies;
pub(crate) mod events;
mod foreign;
mod loading;
mod no_gpu;
mod odd_traces;
mod one_off;
mod operands;
mod overstated;
mod predictions;
mod recordings;
mod resources;
mod steps;
mod unseen;
mod waits;
