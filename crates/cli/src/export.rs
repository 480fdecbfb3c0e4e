//! `busbound export`.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use busbound_diagnosis::{Detail, Drawn, diagnose_and_draw, diagnose_and_itemise};
use busbound_report::{Packing, write_chrome, write_perfetto};
use busbound_tables::{Provenance, Tables, write_parquet};
use busbound_trace::Trace;

use crate::args::{ExportArgs, ExportTo, Format};
use crate::diagnose::{resolve_analysis, stem_of};
use crate::failure::Failure;
use crate::machine::resolve_machine;
use crate::output::complain;
use crate::reading::each_trace;
use crate::request::Output;

pub(crate) fn run(args: &ExportArgs) -> Result<(), Failure> {
    let output = Output::quiet_or_not(Format::Terminal, args.quiet);
    let machine = resolve_machine(args.machine.machine.as_deref())?;
    let options = resolve_analysis(&args.analysis)?;
    if args.path.is_dir() {
        let directory = args.path.display();
        return Err(Failure::Usage(anyhow::anyhow!("export takes one trace; {directory} is a directory")));
    }
    let wanted = if args.apply.is_empty() { Vec::new() } else { vec![args.apply.clone()] };
    let ending = match args.to {
        ExportTo::Perfetto => "perfetto.json.gz",
        ExportTo::Chrome => "chrome.json.gz",
        ExportTo::Parquet => "tables",
    };
    let usual = || PathBuf::from(format!("{}.{ending}", stem_of(&args.path)));
    let path = args.output.clone().unwrap_or_else(usual);
    let mut written = Ok(());
    each_trace(std::slice::from_ref(&args.path), &args.reading, &output, |trace, source| {
        written = match args.to {
            ExportTo::Perfetto => {
                let drawn = diagnose_and_draw(trace, source, &machine, &options, &wanted, Detail::All);
                write_trace(&path, trace, &drawn)
            }
            ExportTo::Chrome => write_to(&path, |file, packing| write_chrome(file, trace, packing)),
            ExportTo::Parquet => {
                let (diagnosis, items) = diagnose_and_itemise(trace, source, &machine, &options);
                let tables = Arc::new(Tables::of(trace, items));
                let written = write_parquet(&path, &tables, &Provenance::of(&diagnosis));
                written.map_err(|error| Failure::Output(error.into()))
            }
        };
    })?;
    written?;
    if !args.quiet {
        let path = path.display();
        complain(&match args.to {
            ExportTo::Perfetto | ExportTo::Chrome => format!("{path} opens in ui.perfetto.dev"),
            ExportTo::Parquet => format!("{path} holds events, copies, gaps and steps as Parquet"),
        });
    }
    Ok(())
}

/// Writes the trace with what was found, packed where the name says so.
pub(crate) fn write_trace(path: &Path, trace: &Trace, drawn: &Drawn) -> Result<(), Failure> {
    write_to(path, |file, packing| write_perfetto(file, trace, drawn, packing))
}

fn write_to(path: &Path, write: impl FnOnce(File, Packing) -> io::Result<()>) -> Result<(), Failure> {
    let packing = match path.extension() {
        Some(extension) if extension == "gz" => Packing::Gzip,
        _ => Packing::Plain,
    };
    let written = File::create(path).and_then(|file| write(file, packing));
    written.with_context(|| path.display().to_string()).map_err(Failure::Output)
}
