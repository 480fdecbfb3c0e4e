//! The text of a history: what changed when, on which ranks, and which part of the step explains it.

use std::time::{Duration, UNIX_EPOCH};

use busbound_diagnosis::quantity::{count, milliseconds, milliseconds_range};
use busbound_fleet::{History, HistoryChange, JobHistory};

use super::plural;

/// Parts that explain a change.
const PARTS: usize = 3;
/// Ranks that are named.
const RANKS: usize = 8;

pub(crate) fn statement(history: &History) -> String {
    let recordings: usize = history.jobs.iter().map(|job| job.recordings).sum();
    let ranks: usize = history.jobs.iter().map(|job| job.ranks).sum();
    let of = format!(
        "{} of {}",
        plural(recordings as u64, "recording", "recordings"),
        plural(ranks as u64, "rank", "ranks")
    );
    let steps: Vec<&HistoryChange> = history.changes.iter().filter(|change| change.is_step()).collect();
    match steps.iter().max_by(|a, b| relative(a).abs().total_cmp(&relative(b).abs())) {
        None if recordings == 0 => "No recordings to compare.".to_owned(),
        None => format!("No change of the step time in {of}."),
        Some(largest) => format!(
            "{} of the step time in {of}; the largest: {}",
            plural(steps.len() as u64, "change", "changes"),
            sentence(largest)
        ),
    }
}

fn relative(change: &HistoryChange) -> f64 {
    (change.after_ms - change.before_ms) / change.before_ms.max(1e-9)
}

/// `2026-11-03 14:00: step 100 ms → 112 ms (+12%, by 11.0–13.0 ms) on ranks 4, 5; copying only 20.0 ms → 31.5 ms.`
pub(crate) fn sentence(change: &HistoryChange) -> String {
    let mut text = format!(
        "{}: {} {} → {} ({}, by {}) on {}",
        time(change.after_unix_ms),
        change.label(),
        milliseconds(change.before_ms),
        milliseconds(change.after_ms),
        percent(change),
        range(change),
        ranks(change)
    );
    let parts: Vec<String> = change
        .parts
        .iter()
        .take(PARTS)
        .map(|part| {
            format!("{} {} → {}", part.label, milliseconds(part.before_ms), milliseconds(part.after_ms))
        })
        .collect();
    if !parts.is_empty() {
        text.push_str(&format!("; {}", parts.join(", ")));
    }
    text.push('.');
    text
}

fn percent(change: &HistoryChange) -> String {
    if change.before_ms <= 0.0 { "new".to_owned() } else { format!("{:+.0}%", 100.0 * relative(change)) }
}

/// How much longer or shorter, without its sign.
fn range(change: &HistoryChange) -> String {
    let (low, high) =
        (change.low_ms.abs().min(change.high_ms.abs()), change.low_ms.abs().max(change.high_ms.abs()));
    milliseconds_range(low, high)
}

fn ranks(change: &HistoryChange) -> String {
    let numbers: Option<Vec<String>> =
        change.ranks.iter().map(|rank| rank.number().map(|number| number.to_string())).collect();
    let names = numbers.clone().unwrap_or_else(|| change.ranks.iter().map(ToString::to_string).collect());
    let more = names.len().saturating_sub(RANKS);
    let listed = names.iter().take(RANKS).cloned().collect::<Vec<_>>().join(", ");
    let word = match (numbers.is_some(), names.len()) {
        (false, _) => "",
        (true, 1) => "rank ",
        (true, _) => "ranks ",
    };
    if more > 0 {
        format!("{word}{listed} and {} more", count(more as u64))
    } else {
        format!("{word}{listed}")
    }
}

pub(crate) const TITLES: [&str; 7] = ["job", "ranks", "recordings", "from", "to", "first step", "last step"];

pub(crate) fn jobs(history: &History) -> Vec<Vec<String>> {
    let row = |job: &JobHistory| {
        vec![
            job.job.clone(),
            count(job.ranks as u64),
            count(job.recordings as u64),
            time(job.from_unix_ms),
            time(job.to_unix_ms),
            milliseconds(job.first_ms),
            milliseconds(job.last_ms),
        ]
    };
    history.jobs.iter().map(row).collect()
}

/// Every change, with what to run next.
pub(crate) fn changes(history: &History) -> Vec<String> {
    let named = history.jobs.len() > 1;
    let one = |change: &HistoryChange| {
        let job = if named { format!("{}, ", change.job) } else { String::new() };
        let before = time(change.before_unix_ms);
        format!("{job}{} Last recording before: {before}. {}", sentence(change), next(change))
    };
    history.changes.iter().map(one).collect()
}

/// What to look at now, of what is there.
fn next(change: &HistoryChange) -> String {
    let mut next = match &change.compare {
        Some([before, after]) => format!("Compare: busbound compare {before} {after}"),
        None => {
            let keep =
                if change.is_of_windows() { " `record --every` keeps them with `--keep`." } else { "" };
            let (before, after) = (&change.trace_before, &change.trace_after);
            format!("Not found, so nothing to compare: {before} and {after}.{keep}")
        }
    };
    if let [first, rest @ ..] = change.dumps.as_slice() {
        let more = match rest.len() {
            0 => String::new(),
            more => format!(" (and {} more)", count(more as u64)),
        };
        let end = if next.ends_with('.') { "" } else { "." };
        next.push_str(&format!("{end} Dumped between the two{more}: busbound diagnose {first}"));
    }
    next
}

/// What was left out, and what could not be read.
pub(crate) fn notes(history: &History) -> Vec<String> {
    let unread = history.unread.iter().map(|file| format!("Not read: {}", file.why));
    let notes = history.limitations.iter().cloned().chain(unread);
    notes.map(|note| format!("{}.", note.trim_end_matches('.'))).collect()
}

/// `2026-11-03 14:00`, in UTC.
fn time(unix_ms: i64) -> String {
    let since = Duration::from_millis(u64::try_from(unix_ms).unwrap_or(0));
    let Some(at) = UNIX_EPOCH.checked_add(since) else { return "unknown".to_owned() };
    // The year 10000 is the end of what can be written.
    if since.as_secs() >= 253_402_300_800 {
        return "unknown".to_owned();
    }
    let text = humantime::format_rfc3339_seconds(at).to_string();
    text.get(..16).unwrap_or(&text).replace('T', " ")
}

pub(crate) const HOW: &str = "Times are UTC. A change is a new level of the median of up to 24 recordings, 3% or more and beyond the noise.";
