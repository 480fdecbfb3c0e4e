//! The diagnosis of a file, with the defaults of the command line.

use std::path::{Path, PathBuf};

use busbound_diagnosis::{Diagnosis, Options, Source, diagnose};
use busbound_machine::Machine;
use busbound_trace::{ReadOptions, open};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn diagnosis_of(path: &Path) -> Diagnosis {
    let trace = open(path, &ReadOptions::default()).unwrap();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    diagnose(&trace, &Source::named(name), &Machine::default(), &Options::default())
}
