//! Chart data for the page's script: one block of bytes, deflated, as base64.
//!
//! It begins with the length of a JSON header (u32, little-endian) and the header, which describes the columns that
//! follow. [`layout`] declares the header and the tables, and `web/src/layout.ts` is generated from it; [`columns`] writes
//! a table; `web/src/picture.ts` reads all of it.

mod columns;
mod layout;
mod of_picture;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod typescript;

pub(super) use layout::idle_class;
pub(super) use of_picture::{Labels, PredictedStep, encoded};
