//! `busbound export`.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context;
use busbound_diagnosis::{Detail, Drawn, diagnose_and_draw};
use busbound_report::{Packing, write_perfetto};
use busbound_trace::Trace;

use crate::args::{ExportArgs, ExportTo, Format};
use crate::diagnose::{resolve_analysis, resolve_machine, stem_of};
use crate::failure::Failure;
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
    let ExportTo::Perfetto = args.to;
    let path = args
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("{}.perfetto.json.gz", stem_of(&args.path))));
    let mut written = Ok(());
    each_trace(std::slice::from_ref(&args.path), &args.reading, &output, |trace, source| {
        let drawn = diagnose_and_draw(trace, source, &machine, &options, &wanted, Detail::All);
        written = write_trace(&path, trace, &drawn);
    })?;
    written?;
    if !args.quiet {
        complain(&format!("{} opens in ui.perfetto.dev", path.display()));
    }
    Ok(())
}

/// Writes the trace with what was found, packed where the name says so.
pub(crate) fn write_trace(path: &Path, trace: &Trace, drawn: &Drawn) -> Result<(), Failure> {
    let packing = match path.extension() {
        Some(extension) if extension == "gz" => Packing::Gzip,
        _ => Packing::Plain,
    };
    let write = || write_perfetto(File::create(path)?, trace, drawn, packing);
    write().with_context(|| path.display().to_string()).map_err(Failure::Output)
}
