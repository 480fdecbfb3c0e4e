//! Everything that this crate's tests check from the outside, as one program: linking one takes a fraction of linking one per file.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should panic")]

mod cli;
mod common;
mod configuration;
mod coverage;
mod gpu_lost;
mod history;
mod jobs;
mod launched;
mod live;
#[path = "../../../fleet/tests/suite/common/mod.rs"]
mod made;
mod manual;
mod mcp;
mod mistakes;
mod nsight;
mod otlp;
mod pages;
mod plans;
mod portable;
mod ranks;
mod record;
mod terminal;
mod top;
#[path = "../../../machine/tests/common/tree.rs"]
mod tree;
mod trial;
mod walkthroughs;
mod watch;
