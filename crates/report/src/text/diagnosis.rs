//! What does a diagnosis say in words?

use busbound_diagnosis::quantity::{bytes, count, gigabytes_per_second, milliseconds, milliseconds_range};
use busbound_diagnosis::{
    Bound, CopyGroup, Diagnosis, FigureId, Finding, GapCause, Limitation, LimitationId, Part, Severity,
    StepsFound, Unit,
};

use super::step_time::{self, recorded_ms};
use super::{Table, attribution, capitalized, collectives, copies, layers, path, prize};

/// The parts of a step in the order they are drawn, in milliseconds.
pub(crate) fn parts(diagnosis: &Diagnosis) -> Vec<(FigureId, f64)> {
    // Hide parts below half a percent.
    let least = 0.005 * recorded_ms(diagnosis);
    FigureId::drawn(FigureId::COARSE_PARTS, diagnosis).into_iter().filter(|(_, ms)| *ms > least).collect()
}

/// The parts of a step with idle time by its cause, those that take 1% of it; compute always.
pub(crate) fn fine_parts(diagnosis: &Diagnosis) -> Vec<(FigureId, f64)> {
    let least = 0.01 * recorded_ms(diagnosis);
    let all = FigureId::drawn(FigureId::PARTS, diagnosis).into_iter();
    all.filter(|(figure, ms)| *figure == FigureId::ComputeMs || *ms >= least).collect()
}

/// Of the host memory: pinning more than this leaves too little for everything else.
const MUCH_PINNED: f64 = 0.5;

/// `one line of code; pins up to 2.01 GB of 135 GB host memory`.
pub(crate) fn cost(finding: &Finding) -> String {
    let cost = &finding.cost;
    let pinned = cost.pinned_bytes.map(|size| match cost.host_bytes {
        Some(all) if size as f64 > MUCH_PINNED * all as f64 => {
            format!("pins up to {} of {} host memory, which may be too much", bytes(size), bytes(all))
        }
        Some(all) => format!("pins up to {} of {} host memory", bytes(size), bytes(all)),
        None => format!("pins up to {} of host memory", bytes(size)),
    });
    let held = cost.gpu_bytes.map(|size| format!("{} of GPU memory", bytes(size)));
    let parts = [Some(cost.effort.describe().to_owned()), pinned, held];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// `66.7 ms (24%)`; `0.4 ms (<1%)`.
pub(crate) fn share_of(ms: f64, total: f64) -> String {
    let percent = 100.0 * ms / total;
    match percent > 0.0 && percent < 0.5 {
        true => format!("{} (<1%)", milliseconds(ms)),
        false => format!("{} ({percent:.0}%)", milliseconds(ms)),
    }
}

/// `4 steps (`step`), median 274 ms, range 262–280 ms`.
pub(crate) fn step(diagnosis: &Diagnosis) -> String {
    let Some(steps) = &diagnosis.window.steps else {
        return format!("no steps found; the trace covers {}", milliseconds(diagnosis.window.span_ms));
    };
    let pattern = match steps.found {
        StepsFound::Period => steps.pattern.clone(),
        StepsFound::Given | StepsFound::Annotation => format!("`{}`", steps.pattern),
    };
    let unit = diagnosis.unit();
    let mut text = match steps.count {
        1 => format!("1 {unit} ({pattern}), {}", milliseconds(steps.p50_ms)),
        count => format!(
            "{count} {unit}s ({pattern}), median {}, range {}",
            milliseconds(steps.p50_ms),
            milliseconds_range(steps.min_ms, steps.max_ms)
        ),
    };
    // Percentiles of a few steps are their extremes.
    if steps.count >= 20 {
        text.push_str(&format!("; p90 {}, p99 {}", milliseconds(steps.p90_ms), milliseconds(steps.p99_ms)));
    }
    if !diagnosis.phases.is_empty() && steps.outliers_dropped > 0 {
        text.push_str(&format!("; {} excluded, see phases and outliers", steps.outliers_dropped));
    } else if steps.outliers_dropped > 0 {
        text.push_str(&format!("; {} outliers excluded, listed below", steps.outliers_dropped));
    }
    match steps.warmup_dropped {
        0 => {}
        1 => text.push_str(&format!("; 1 warm-up {unit} excluded")),
        n => text.push_str(&format!("; {n} warm-up {unit}s excluded")),
    }
    if let Some(unprofiled) = step_time::unprofiled(diagnosis) {
        text.push_str(&format!("; without the profiler {unprofiled} [explain: unprofiled]"));
    }
    text
}

/// How busy the GPU is: with kernels, which is what nvidia-smi calls utilization, and with copies; `None` without GPU work.
pub(crate) fn utilization(diagnosis: &Diagnosis) -> Option<String> {
    let (busy, time) = (FigureId::BusyShare.of(diagnosis)?, &diagnosis.time);
    let kernels = (time.compute_ms + time.exposed_comm_ms) / time.analyzed_ms;
    Some(format!(
        "{:.0}% (time with a kernel, as nvidia-smi counts it); {:.0}% with copies",
        100.0 * kernels,
        100.0 * busy
    ))
}

/// Outlier steps, one line each; if there are many, the longest.
pub(crate) fn outliers(diagnosis: &Diagnosis) -> Vec<String> {
    const SHOWN: usize = 5;
    let outliers = &diagnosis.window.outliers;
    let mut longest: Vec<_> = outliers.iter().collect();
    longest.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    longest.truncate(SHOWN);
    longest.sort_by_key(|outlier| outlier.index);
    let mut lines: Vec<String> = longest.into_iter().map(|outlier| outlier.statement.clone()).collect();
    if outliers.len() > SHOWN {
        lines.push(format!("and {} more (--format json)", outliers.len() - SHOWN));
    }
    lines
}

/// What the run does apart from its steps, one line each.
pub(crate) fn phases(diagnosis: &Diagnosis) -> Vec<String> {
    diagnosis.phases.iter().map(|phase| phase.statement.clone()).collect()
}

/// Below this share of the H2D rate, the D2H rate is named too.
const UNEVEN: f64 = 0.95;

/// The links copies are analyzed against, and how they are known.
pub(crate) fn links(diagnosis: &Diagnosis) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for gpu in &diagnosis.machine.gpus {
        let how = gpu.link.source.describe();
        let name = gpu.name.as_deref().unwrap_or("unnamed GPU");
        let link = &gpu.link;
        let uneven = link.reached_d2h_gbps.zip(link.reached_gbps).filter(|(d2h, h2d)| d2h < &(UNEVEN * h2d));
        let reached =
            uneven.map(|(d2h, h2d)| format!("; copies reach {h2d:.0} GB/s H2D and {d2h:.0} GB/s D2H"));
        let line = format!(
            "{name}, {} ({how}): peak {:.1} GB/s per direction{}",
            link.name,
            link.peak_gbps,
            reached.unwrap_or_default()
        );
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// A line of facts; each format has its own separator.
pub(crate) struct FactLine(Vec<String>);

impl FactLine {
    pub(crate) fn joined(&self, separator: &str) -> String {
        self.0.join(separator)
    }
}

/// One line per kind of copy that takes time, and one for the rest.
pub(crate) fn copies(diagnosis: &Diagnosis) -> Vec<FactLine> {
    let (shown, rest): (Vec<_>, Vec<_>) =
        diagnosis.copies.iter().partition(|group| copies::matters(group, diagnosis));
    let mut lines: Vec<_> = shown.iter().map(|group| copy_line(group, diagnosis)).collect();
    if !rest.is_empty() {
        let kinds: Vec<_> = rest.iter().map(|group| group.kind()).collect();
        let time: f64 = rest.iter().map(|group| group.total_ms).sum();
        let time = milliseconds(time / diagnosis.step_count());
        let line = format!("{}: {time}/{} in total", kinds.join(", "), diagnosis.unit());
        lines.push(FactLine(vec![line]));
    }
    lines
}

fn copy_line(group: &CopyGroup, diagnosis: &Diagnosis) -> FactLine {
    let (steps, unit) = (diagnosis.step_count(), diagnosis.unit());
    let per_step = group.count as f64 / steps;
    let is_whole = (per_step - per_step.round()).abs() < 0.05;
    let number =
        if per_step >= 100.0 || is_whole { count(per_step.round() as u64) } else { format!("{per_step:.1}") };
    let copies = if number == "1" { "copy" } else { "copies" };
    let (counted, time) = (format!("{number} {copies}/{unit}"), milliseconds(group.total_ms / steps));
    if group.without_bytes == group.count {
        let counted = format!("{counted}, bytes not recorded, {time}/{unit}");
        return FactLine(vec![group.kind(), counted]);
    }
    let moved = bytes((group.bytes as f64 / steps) as u64);
    let mut rate = group.gbps.map_or("–".to_owned(), |rates| gigabytes_per_second(rates.weighted));
    let blocking = match group.blocking.count {
        0 => String::new(),
        _ => format!(", {} of host time in the calls", milliseconds(group.blocking.ms / steps)),
    };
    let Some(share) = group.utilization else {
        rate.push_str(&blocking);
        return FactLine(vec![group.kind(), counted, moved, time, rate]);
    };
    let expected = group
        .of_expected
        .map_or(String::new(), |share| format!(", {:.0}% of the expected pinned rate", 100.0 * share));
    let exposed = milliseconds(group.exposed_ms / steps);
    let of_link = format!("{:.0}% of the link{expected}; {exposed} exposed{blocking}", 100.0 * share);
    FactLine(vec![group.kind(), counted, moved, time, rate, of_link])
}

/// Where the sizes of copies and the tree of blocks are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Charted {
    /// Among the tables.
    AsTables,
    /// In charts of their own.
    Separately,
}

/// The tables with content, in display order.
pub(crate) fn tables(diagnosis: &Diagnosis, charted: Charted) -> Vec<Table> {
    let as_table = |table: fn(&Diagnosis) -> Table| match charted {
        Charted::AsTables => table(diagnosis),
        Charted::Separately => Table { titles: Vec::new(), rows: Vec::new() },
    };
    let mut tables = vec![
        as_table(copies::rates),
        as_table(copies::sizes),
        as_table(copies::histogram),
        collectives::collectives(diagnosis),
        collectives::copies_around(diagnosis),
        idle(diagnosis),
        copies::of_host(diagnosis),
        copies::sizes_of_host(diagnosis),
        copies::histogram_of_host(diagnosis),
        copies::places_of_host(diagnosis),
        collectives::of_host(diagnosis),
        as_table(attribution::blocks),
        layers::waits(diagnosis),
        path::longest(diagnosis),
        path::kernels(diagnosis),
    ];
    tables.retain(|table| !table.rows.is_empty());
    tables
}

/// What the figures cover.
pub(crate) fn analyzed(diagnosis: &Diagnosis) -> &'static str {
    match diagnosis.unit() {
        Unit::Step => "analyzed steps",
        Unit::Iteration => "analyzed iterations",
        _ => "whole trace",
    }
}

/// Why the GPU was idle.
fn idle(diagnosis: &Diagnosis) -> Table {
    let per_step = |cause| diagnosis.breakdown.per_step_ms(|part| part == Part::Idle(cause)).unwrap_or(0.0);
    let rows = diagnosis
        .idle
        .iter()
        .filter(|idle| idle.cause != GapCause::KernelGap && idle.ms > 0.01 * diagnosis.time.analyzed_ms)
        .map(|idle| {
            let place =
                idle.places.first().map_or(String::new(), |place| format!(" (mostly {})", place.place));
            vec![
                format!("{}{place}", idle.cause.describe()),
                count(idle.count),
                milliseconds(per_step(idle.cause)),
                milliseconds(idle.longest_ms),
                format!("[explain: {}]", idle.cause.id()),
            ]
        })
        .collect();
    let each = match diagnosis.unit() {
        Unit::Step => "per step",
        Unit::Iteration => "per iteration",
        Unit::Trace => "total",
    };
    Table { titles: vec!["idle cause", "gaps", each, "longest piece", ""], rows }
}

/// The pipeline stages in a sentence.
pub(crate) fn stages(diagnosis: &Diagnosis) -> Option<&str> {
    diagnosis.stages.as_ref().map(|stages| stages.statement.as_str())
}

/// Whether host copies and collectives slow each other down.
pub(crate) fn contention(diagnosis: &Diagnosis) -> Option<String> {
    if diagnosis.overlap.host_copy_comm_ms <= 0.0 {
        return None;
    }
    let together = milliseconds(diagnosis.overlap.host_copy_comm_ms / diagnosis.step_count());
    let unit = diagnosis.unit();
    // A slowdown with evidence comes before a larger one that may be noise.
    let worst = diagnosis
        .contention
        .iter()
        .max_by(|a, b| a.is_evident().cmp(&b.is_evident()).then(a.slower_pct.total_cmp(&b.slower_pct)));
    Some(match worst {
        None => format!(
            "Host copies overlap with communication for {together}/{unit}. Too few comparable copies run both with and without overlap to see a slowdown."
        ),
        Some(c) if c.is_evident() => format!(
            "Host copies overlap with communication for {together}/{unit}: {} take {:.0}% longer while {} run ({:.0}–{:.0}%).",
            c.what, c.slower_pct, c.other, c.low_pct, c.high_pct
        ),
        Some(c) => format!(
            "Host copies overlap with communication for {together}/{unit}. No clear slowdown: {} while {} run {:+.0}% ({:+.0}% to {:+.0}%).",
            c.what, c.other, c.slower_pct, c.low_pct, c.high_pct
        ),
    })
}

pub(crate) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::High => "high",
        Severity::Medium => "medium",
        Severity::Low => "low",
    }
}

/// What the trace does not show, one sentence each, with where it is explained.
pub(crate) fn limitations(diagnosis: &Diagnosis) -> Vec<String> {
    let sentence = |one: &Limitation| format!("{} [explain: {}]", capitalized(&one.text), one.id);
    diagnosis.limitations.iter().map(sentence).collect()
}

/// What to know of a file that could only be read in part, where there is room for one sentence.
pub(crate) fn cut_off(diagnosis: &Diagnosis) -> Option<&'static str> {
    let sentence = "The file is damaged or cut off: this is of what could be read.";
    (!diagnosis.source.complete).then_some(sentence)
}

/// The sentence in place of findings if there are none.
pub(crate) fn nothing_to_fix(diagnosis: &Diagnosis) -> Option<&'static str> {
    (diagnosis.findings.is_empty() && !diagnosis.devices.is_empty()).then(|| nothing(diagnosis))
}

/// The same where every finding saves too little for a line.
pub(crate) fn nothing_worth_fixing(diagnosis: &Diagnosis) -> Option<&'static str> {
    let saves_little = |finding: &Finding| {
        finding.saving_known
            && !finding.id.is_about_correctness()
            && (finding.saves_ms_per_step.high <= 0.0 || prize::is_small(finding, diagnosis))
    };
    let first = diagnosis.findings.first()?;
    (prize::is_small(first, diagnosis) && diagnosis.findings.iter().all(saves_little))
        .then(|| nothing(diagnosis))
}

fn nothing(diagnosis: &Diagnosis) -> &'static str {
    match diagnosis.verdict.bound {
        Bound::Compute if is_much_unexplained(diagnosis) => {
            "No findings: this trace does not show what the GPU waits for when it is idle."
        }
        Bound::Compute if is_of_a_part(diagnosis) => {
            "Nothing to fix between host and GPU within these iterations."
        }
        Bound::Compute => "Nothing to fix between host and GPU.",
        Bound::Transfer if diagnosis.verdict.is_overlapped() => {
            "Nothing to fix: copies and kernels already overlap. Fewer bytes, or faster kernels and copies, would help."
        }
        _ => "No findings: this trace does not show what to change.",
    }
}

/// Whether detected iterations leave out much of what the GPU did.
fn is_of_a_part(diagnosis: &Diagnosis) -> bool {
    diagnosis.limitations.iter().any(|limitation| limitation.id == LimitationId::Coverage)
}

/// From this share of the time on, idle time without a visible cause may have a fix.
const MUCH_UNEXPLAINED: f64 = 0.1;

fn is_much_unexplained(diagnosis: &Diagnosis) -> bool {
    let is_unexplained = |cause| matches!(cause, GapCause::Queued | GapCause::Unexplained);
    let unexplained = diagnosis.idle.iter().filter(|idle| is_unexplained(idle.cause));
    unexplained.map(|idle| idle.ms).sum::<f64>() >= MUCH_UNEXPLAINED * diagnosis.time.analyzed_ms
}

/// The first sentence for several inputs.
pub(crate) fn overview(all: &[Diagnosis]) -> String {
    let mut bounds: Vec<(String, usize)> = Vec::new();
    for diagnosis in all {
        let word = diagnosis.verdict.bound.title().to_lowercase();
        match bounds.iter_mut().find(|(known, _)| *known == word) {
            Some((_, n)) => *n += 1,
            None => bounds.push((word, 1)),
        }
    }
    bounds.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let list: Vec<_> = bounds.iter().map(|(word, n)| format!("{n} {word}")).collect();
    let runs = if all.len() == 1 { "run" } else { "runs" };
    let mut text = format!("{} {runs}: {}.", all.len(), list.join(", "));
    if all.len() > 1 {
        text.push_str(" Each is analyzed on its own clock; timestamps are not compared across runs.");
    }
    if all.iter().any(|diagnosis| diagnosis.stages.is_some()) {
        text.push_str(
            " Stages are followed within each process only: the clocks of two ranks are not aligned, so overlap between stages of different ranks is not visible.",
        );
    }
    text
}
