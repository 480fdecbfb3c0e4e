//! Everything that this crate's tests check from the outside, as one program: linking one takes a fraction of linking one per file.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should panic")]

mod cases;
mod collectives;
mod common;
mod compare;
mod consistency;
mod documentation;
mod every;
mod figures;
mod gate;
mod host_only;
mod host_work;
mod impossible;
mod job;
mod kernel_findings;
mod layers;
mod managed;
mod missing_records;
mod nccl_ranges;
mod nsight;
mod nsight_losses;
mod peers;
mod phases;
mod races;
mod recorded_programs;
mod regression;
mod staged;
mod steps;
mod sums;
mod verdicts;
mod xplane;
mod zero_copy;
