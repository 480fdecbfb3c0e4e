//! The sentences about the last recorded window of each rank.

use busbound_diagnosis::quantity::{milliseconds, plural, printable};
use busbound_diagnosis::{Bound, FigureId, Phase};
use busbound_machine::live::{RankWindow, Snapshot, WindowChange};

/// A phase with a smaller share is not listed.
const LEAST_SHARE: f64 = 0.005;
/// A smaller change of the step is shown as none.
const LEAST_CHANGE: f64 = 0.005;

/// How many ranks have which verdict; `None` without windows.
pub(crate) fn statement(snapshot: &Snapshot) -> Option<String> {
    let stale = snapshot.windows.iter().filter(|window| window.is_stale).count();
    let fresh = snapshot.windows.len() - stale;
    let count = |bound: &Bound| {
        let is_it = |window: &&RankWindow| !window.is_stale && window.verdict == bound.id();
        (snapshot.windows.iter().filter(is_it).count(), bound.title().to_lowercase())
    };
    let mut counts: Vec<(usize, String)> =
        Bound::ALL.iter().map(count).filter(|(ranks, _)| *ranks > 0).collect();
    counts.sort_by_key(|(ranks, _)| std::cmp::Reverse(*ranks));
    let ranks = plural(fresh as u64, "rank", "ranks");
    let said = match counts.as_slice() {
        [] => None,
        [(_, verdict)] => Some(format!("Last windows: {ranks} {verdict}")),
        several => {
            let each: Vec<String> =
                several.iter().map(|(count, verdict)| format!("{count} {verdict}")).collect();
            Some(format!("Last windows: {ranks}, {}", each.join(", ")))
        }
    };
    match (said, stale) {
        (None, 0) => None,
        (None, stale) => {
            Some(format!("The last windows of {} are stale.", plural(stale as u64, "rank", "ranks")))
        }
        (Some(said), 0) => Some(said + "."),
        (Some(said), stale) => Some(format!("{said}; {stale} stale.")),
    }
}

/// The last windows, what is fresh first: there may be thousands.
pub(crate) fn fresh_first(snapshot: &Snapshot) -> Vec<&RankWindow> {
    let mut all: Vec<&RankWindow> = snapshot.windows.iter().collect();
    all.sort_by_key(|window| window.is_stale);
    all
}

/// `rank 3`, `job7 rank 3`, or the process if no rank is known.
pub(crate) fn who(window: &RankWindow) -> String {
    let who = match (window.rank, &window.process) {
        (Some(rank), _) => format!("rank {rank}"),
        (None, Some(process)) => printable(&process.name),
        (None, None) => "unknown rank".to_owned(),
    };
    if window.run.is_empty() { who } else { format!("{} {who}", printable(&window.run)) }
}

/// Everything about a window, in parts that fit on a line each.
pub(crate) fn details(window: &RankWindow) -> Vec<String> {
    let mut lines = vec![format!("{}; {}", verdict_and_step(window), when(window))];
    lines.extend(Some(phases(window)).filter(|phases| !phases.is_empty()));
    lines.push(change(window));
    lines
}

/// The same on one line.
pub(crate) fn line(window: &RankWindow) -> String {
    let mut parts = vec![verdict_and_step(window)];
    parts.extend(window.change.as_ref().map(|earlier| short_change(window, earlier)));
    parts.extend(Some(phases(window)).filter(|phases| !phases.is_empty()));
    parts.push(when(window));
    format!("{}: {}", who(window), parts.join("; "))
}

/// The same for a screen, the most important first: what does not fit is cut.
#[cfg(feature = "dashboard")]
pub(crate) fn short_line(window: &RankWindow) -> String {
    let when = match (window.ahead_s, window.age_s) {
        (Some(ahead), _) => format!("dated {} ahead", duration(ahead)),
        (None, Some(age)) if window.is_stale => format!("stale, {} ago", duration(age)),
        (None, Some(age)) => format!("{} ago", duration(age)),
        (None, None) => "at an unknown time".to_owned(),
    };
    let mut parts = vec![format!("{} {when}", title(&window.verdict))];
    if let Some(ms) = window.steps.as_ref().and_then(|_| window.figures.get(FigureId::SpanMs.name())) {
        let change = window.change.as_ref().and_then(|change| Some((change.span_change?, change.before_s)));
        let change = change.map_or(String::new(), |(change, before)| {
            format!(" ({:+.0}% in {})", change * 100.0, duration(before))
        });
        parts.push(format!("{} {}{change}", printable(&window.unit), milliseconds(*ms)));
    }
    parts.extend(Some(phases(window)).filter(|phases| !phases.is_empty()));
    format!("{}: {}", who(window), parts.join(", "))
}

/// `Transfer-bound, step 41.2 ms (20 steps, marked)`.
fn verdict_and_step(window: &RankWindow) -> String {
    let incomplete = if window.complete { "" } else { ", incomplete recording" };
    let Some(ms) = window.figures.get(FigureId::SpanMs.name()) else {
        return format!("{}, no GPU work{incomplete}", title(&window.verdict));
    };
    let step = match &window.steps {
        Some(steps) => {
            let found = match steps.found.as_deref() {
                Some("annotation") => ", marked by the program",
                Some("given") => ", selected with --steps",
                Some("period") => ", detected in the launches",
                _ => "",
            };
            let unit = printable(&window.unit);
            let count = plural(steps.count as u64, &unit, &format!("{unit}s"));
            format!("{unit} {} ({count}{found})", milliseconds(*ms))
        }
        None => format!("no steps found, {} of GPU work", milliseconds(*ms)),
    };
    format!("{}, {step}{incomplete}", title(&window.verdict))
}

/// A verdict of a later release keeps its name.
fn title(verdict: &str) -> String {
    let known = Bound::ALL.iter().find(|bound| bound.id() == verdict);
    known.map_or_else(|| printable(verdict), |bound| bound.title().to_owned())
}

fn when(window: &RankWindow) -> String {
    if let Some(ahead) = window.ahead_s {
        return format!("dated {} in the future: check the clocks", duration(ahead));
    }
    let Some(age) = window.age_s.map(duration) else { return "recorded at an unknown time".to_owned() };
    match window.every_s {
        Some(every) if window.is_stale => {
            format!("stale: recorded {age} ago, although there is one window every {}", duration(every))
        }
        _ => format!("recorded {age} ago"),
    }
}

/// The largest first: `transfer 61%, compute 30%, host 6%`.
fn phases(window: &RankWindow) -> String {
    let share = |phase: &Phase| Some((*phase, *window.phases.get(phase.as_str())?));
    let mut phases: Vec<(Phase, f64)> = Phase::ALL.iter().filter_map(share).collect();
    phases.retain(|(_, share)| *share >= LEAST_SHARE);
    phases.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let words = phases.iter().map(|(phase, share)| format!("{phase} {:.0}%", share * 100.0));
    words.collect::<Vec<_>>().join(", ")
}

fn change(window: &RankWindow) -> String {
    let Some(earlier) = &window.change else { return "no earlier window to compare with".to_owned() };
    let then = earlier.span_ms.map_or(String::new(), |ms| format!(" (then {})", milliseconds(ms)));
    short_change(window, earlier) + &then
}

/// `step 12% longer than 58 min before, when it was compute-bound`.
fn short_change(window: &RankWindow, earlier: &WindowChange) -> String {
    let before = format!("{} before", duration(earlier.before_s));
    let verdict = title(&earlier.verdict).to_lowercase();
    let is_same = earlier.verdict == window.verdict;
    let Some(change) = earlier.span_change else {
        return format!("{before}, it was {}{verdict}", if is_same { "also " } else { "" });
    };
    let percent = format!("{:.0}%", change.abs() * 100.0);
    let step = match change {
        change if change.abs() < LEAST_CHANGE => "as long as".to_owned(),
        change if change > 0.0 => format!("{percent} longer than"),
        _ => format!("{percent} shorter than"),
    };
    let verdict = if is_same { String::new() } else { format!(", when it was {verdict}") };
    format!("{} {step} {before}{verdict}", printable(&window.unit))
}

/// Two digits are enough to see whether it is recent.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.0} h", s / 3600.0),
    }
}
