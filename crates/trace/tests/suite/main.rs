//! Everything that this crate's tests check from the outside, as one program: linking one takes a fraction of linking one per file.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should panic")]

mod capture;
mod damage;
mod interrupted;
mod made;
mod nsight;
mod nsight_damage;
mod peers;
mod regression;
mod same_on_any_threads;
mod truncation;
mod xplane;
