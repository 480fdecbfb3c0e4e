//! A small real trace for experiments.

use busbound_diagnosis::Source;
use busbound_trace::{ReadOptions, read};

use crate::error::Error;
use crate::run::Run;

/// A run of twelve groups of matrix products with weights in pageable memory, recorded on an H200; see
/// fixtures/README.md. A copy of the fixture, because a published crate contains only files from its own folder.
const TRACE: &[u8] = include_bytes!("../demo/off_block_pageable_c4.json.gz");
const PATH: &str = "fixtures/off_block_pageable_c4.json.gz";

/// The trace that `busbound demo` shows: small, real and included in the library.
///
/// # Errors
/// None in practice: a test reads it.
pub fn demo() -> Result<Run, Error> {
    let trace = read(TRACE, PATH.as_ref(), &ReadOptions::default())?;
    Ok(Run::of(trace, Source::named(PATH)))
}
