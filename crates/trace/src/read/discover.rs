//! Which files does a path stand for, and which rank is each? A directory stands for all traces in it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::registry::{readers, suffixes};

/// The trace files that `path` stands for: itself, or for a directory all files below it that are named like a trace,
/// ordered by rank and name.
pub fn discover(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    let mut directories = vec![path.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            // Links to directories are not followed: they may form a cycle.
            if entry.file_type()?.is_dir() {
                directories.push(path);
            } else if is_named_like_a_trace(&path) {
                files.push(path);
            }
        }
    }
    leave_out_superseded(&mut files);
    by_rank(&mut files);
    Ok(files)
}

/// Sorts files by the rank in their names, then by name.
pub fn by_rank(files: &mut [PathBuf]) {
    files.sort_by_cached_key(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (rank_in_name(&name), file.clone())
    });
}

fn is_named_like_a_trace(path: &Path) -> bool {
    let name = name_of(path);
    // A summary by `busbound summarize` is not a trace.
    !name.ends_with(".rank.json") && suffixes().any(|suffix| name.ends_with(suffix))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase()
}

/// If two files contain the same run, like a report and its export, one is skipped.
fn leave_out_superseded(files: &mut Vec<PathBuf>) {
    let mut superseded = BTreeSet::new();
    for format in readers().iter().map(|reader| reader.format()) {
        for file in &*files {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let stem = format.suffixes.iter().find_map(|suffix| name.strip_suffix(suffix));
            let Some(stem) = stem else { continue };
            superseded
                .extend(format.supersedes.iter().map(|other| file.with_file_name(format!("{stem}{other}"))));
        }
    }
    files.retain(|file| !superseded.contains(file));
}

/// The rank in a file name: `rank-3.pt.trace.json`, `trace_rank_12.json.gz`, `rank3_…`.
pub fn rank_in_name(name: &str) -> Option<u32> {
    let name = name.to_ascii_lowercase();
    let mut rest = name.as_str();
    while let Some(at) = rest.find("rank") {
        rest = &rest[at + 4..];
        let digits = rest.trim_start_matches(['-', '_', '=', '.', ' ', ':']);
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        if let Ok(rank) = digits[..end].parse() {
            return Some(rank);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_found_in_usual_names() {
        for (name, rank) in [
            ("rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", Some(0)),
            ("trace_8_rank_1.json", Some(1)),
            ("sampled_rank-17.json.gz", Some(17)),
            ("rank3_trace.json", Some(3)),
            ("rank_non_gpu.json.gz", None),
            ("worker0.1623143089861.pt.trace.json.gz", None),
            ("frank.rank=2.json", Some(2)),
        ] {
            assert_eq!(rank_in_name(name), rank, "{name}");
        }
    }
}
