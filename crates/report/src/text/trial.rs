//! What did a program gain from staged copies, in words and rows?

use busbound_diagnosis::quantity::{bytes, count, milliseconds};
use busbound_diagnosis::{TimeOf, Trial, TrialOutcome, TrialSide};

/// The answer in one sentence.
pub(crate) fn statement(trial: &Trial) -> String {
    if trial.outcome == TrialOutcome::NotLoaded {
        return "Not compared: no process made a CUDA copy with the library loaded. Programs that are linked statically, or that \
                drop LD_PRELOAD, cannot be changed this way."
            .to_owned();
    }
    let Some((after, speedup)) = trial.after.as_ref().zip(trial.speedup) else {
        return "Nothing to gain: this program makes no large copies of pageable memory.".to_owned();
    };
    let change = format!("{} → {}", time(trial.before.ms, trial.time_of), time(after.ms, trial.time_of));
    match trial.outcome {
        TrialOutcome::Faster => format!("{}: {change}; {}.", faster(speedup), rates(trial, after)),
        TrialOutcome::Slower => {
            format!(
                "{} slower with staged copies: {change}. Do not use it for this program.",
                percent(1.0 / speedup)
            )
        }
        TrialOutcome::Same => format!("No difference beyond the noise: {change}."),
        TrialOutcome::NotComparable => {
            "Not comparable: the runs copied different amounts. Let each run do the same work (input, checkpoints, seeds).".to_owned()
        }
        TrialOutcome::NothingStaged | TrialOutcome::NothingToStage | TrialOutcome::NotLoaded => {
            format!("No copy could be staged: {change}. The line above says why.")
        }
    }
}

fn faster(speedup: f64) -> String {
    if speedup >= 1.2 { format!("{speedup:.1}x faster") } else { format!("{} faster", percent(speedup)) }
}

fn percent(ratio: f64) -> String {
    format!("{:.0}%", (ratio - 1.0) * 100.0)
}

fn time(ms: f64, time_of: TimeOf) -> String {
    match time_of {
        TimeOf::Step => format!("{}/step", milliseconds(ms)),
        TimeOf::SinceFirstCopy | TimeOf::Run => seconds(ms),
    }
}

fn seconds(ms: f64) -> String {
    if ms < 1000.0 { milliseconds(ms) } else { format!("{:.2} s", ms / 1000.0) }
}

/// How the copies changed.
fn rates(trial: &Trial, after: &TrialSide) -> String {
    // Staged, a recording shows copies of pinned memory: the program's own are those before.
    let moved = match trial.before.bytes_per_step {
        Some(step) => format!("{}/step", bytes(step)),
        None => format!("{} of copies per run", bytes(after.bytes_per_run())),
    };
    match (trial.before.gbps, after.gbps) {
        (Some(before), Some(now)) => format!("{moved} now at {now:.0} GB/s instead of {before:.0}"),
        _ => moved,
    }
}

/// What the times are of.
pub(crate) fn basis(trial: &Trial) -> String {
    let what = match trial.time_of {
        TimeOf::Step => "the steps that the program marks",
        TimeOf::SinceFirstCopy => "from the first large copy of pageable memory to the end of the program",
        TimeOf::Run => "the whole run",
    };
    let runs = trial.before.runs.len();
    match trial.noise {
        Some(noise) => format!(
            "{what}; {} runs each, alternating, which differ by up to {:.0}%",
            count(runs as u64),
            noise * 100.0
        ),
        None if trial.after.is_some() => {
            format!(
                "{what}; one run each, so the noise is not known, and less than 20% does not count: --runs 3 shows it"
            )
        }
        None => what.to_owned(),
    }
}

pub(crate) const TITLES: [&str; 6] = ["", "time", "range", "copies", "bytes per run", "rate in the call"];

/// One row for each kind of run.
pub(crate) fn table(trial: &Trial) -> Vec<Vec<String>> {
    let sides = [("as it is", Some(&trial.before)), ("staged", trial.after.as_ref())];
    sides.into_iter().filter_map(|(name, side)| Some(row(name, side?, trial.time_of))).collect()
}

fn row(name: &str, side: &TrialSide, time_of: TimeOf) -> Vec<String> {
    let runs = side.runs.len().max(1) as u64;
    vec![
        name.to_owned(),
        time(side.ms, time_of),
        format!("{} to {}", seconds(side.low_ms), seconds(side.high_ms)),
        count(side.runs.iter().map(|run| run.copies).sum::<u64>() / runs),
        bytes(side.bytes_per_run()),
        side.gbps.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1} GB/s")),
    ]
}

/// What to do now.
pub(crate) fn next(trial: &Trial) -> Vec<String> {
    let mut next = Vec::new();
    if trial.outcome == TrialOutcome::Faster {
        next.push("keep it: busbound run -- CMD runs the program this way, without comparing".to_owned());
    }
    if let [before, after] = trial.recordings.as_slice() {
        next.push(format!("what changed: busbound compare {before} {after}"));
    }
    next
}
