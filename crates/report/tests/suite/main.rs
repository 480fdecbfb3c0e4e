//! Everything that this crate's tests check from the outside, as one program: linking one takes a fraction of linking one per file.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should panic")]

mod apart;
mod assets;
mod bench;
mod common;
mod compares;
#[cfg(feature = "dashboard")]
mod dashboard;
mod diagnoses;
mod formats;
mod gates;
mod html;
mod markdown;
mod perfetto;
mod screens;
mod surveys;
mod top;
mod trials;
mod whatif;
mod widths;
