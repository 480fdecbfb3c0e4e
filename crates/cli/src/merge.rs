//! `busbound merge`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use busbound_fleet::{Fleet, Unread};
use busbound_machine::topology::{GpuPlace, gpu_places};
use busbound_report::{fleet_as_json, fleet_as_markdown, fleet_as_terminal, markdown_as_html};

use crate::args::Format;
use crate::args_fleet::{MergeArgs, TopologyArgs};
use crate::failure::Failure;
use crate::output::{complain, write_answer, write_page};
use crate::request::{expand, resolve_output};

pub(crate) fn run(args: &MergeArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output);
    let wiring = resolve_topology(&args.topology)?;
    let mut saved = Vec::new();
    let mut unread = Vec::new();
    for path in summaries_of(&args.paths).map_err(Failure::Unreadable)? {
        let named = path.display().to_string();
        let parsed = fs::read_to_string(&path).map_err(|error| format!("{named}: {error}"));
        match parsed.and_then(|text| Fleet::parse(&text).map_err(|error| format!("{named} {error}"))) {
            Ok(more) => saved.push(more),
            Err(why) => unread.push(Unread::new(named, why)),
        }
    }
    let fleet: Fleet = saved.into_iter().collect();
    if fleet.is_empty()
        && let Some(last) = unread.pop()
    {
        return Err(Failure::Unreadable(anyhow::anyhow!("{}", last.why)));
    }
    for file in &unread {
        complain(&format!("passed over: {}", file.why));
    }
    let answer = fleet.with_unread(unread).answer(wiring.as_deref());
    let text = match output.format {
        Format::Terminal => fleet_as_terminal(&answer, output.width),
        Format::Markdown => fleet_as_markdown(&answer),
        Format::Json => fleet_as_json(&answer).map_err(|error| Failure::Output(error.into()))?,
        Format::Html => {
            let page = markdown_as_html(&answer.statement, &fleet_as_markdown(&answer));
            return write_page(&page, Path::new("fleet.html"), &output);
        }
    };
    write_answer(&text, &output)
}

/// How the machine is wired, where that is given.
pub(crate) fn resolve_topology(args: &TopologyArgs) -> Result<Option<Vec<GpuPlace>>, Failure> {
    args.topology.as_deref().map(read_topology).transpose()
}

/// How a machine is wired, by a file that `busbound topo` or NCCL wrote.
///
/// # Errors
/// If it cannot be read.
pub fn read_topology(path: &Path) -> Result<Vec<GpuPlace>, Failure> {
    let text =
        fs::read_to_string(path).with_context(|| path.display().to_string()).map_err(Failure::Unreadable)?;
    let places = gpu_places(&text);
    places.map_err(|error| Failure::Unreadable(anyhow::anyhow!("{} {error}", path.display())))
}

/// The files that the paths stand for: of a directory, everything below it that is named like a summary.
fn summaries_of(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        match expand(path)? {
            Some(found) => files.extend(found),
            None if path.is_dir() => {
                let before = files.len();
                below(path, &mut files).with_context(|| path.display().to_string())?;
                anyhow::ensure!(
                    files.len() > before,
                    "{} holds no summary: nothing in it ends in .rank.json or .fleet.json; busbound summarize makes them of traces",
                    path.display()
                );
            }
            None => files.push(path.clone()),
        }
    }
    Ok(files)
}

fn below(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Links to directories are not followed: they may lead in a circle.
            if entry.file_type()?.is_dir() {
                directories.push(entry.path());
            } else if name.ends_with(".rank.json") || name.ends_with(".fleet.json") {
                files.push(entry.path());
            }
        }
    }
    Ok(())
}
