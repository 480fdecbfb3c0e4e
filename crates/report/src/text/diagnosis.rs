//! What does a diagnosis say in words?

use busbound_diagnosis::quantity::{bytes, count, milliseconds};
use busbound_diagnosis::{
    AppliedFix, Bound, CopyGroup, CpuCopyClass, Diagnosis, FigureId, Finding, GapCause, Part, Severity,
    SizeClass, StepsFound, Unit,
};

use super::{Table, attribution, path};

/// The parts of a step in the order they are drawn, in milliseconds.
pub(crate) fn parts(diagnosis: &Diagnosis) -> Vec<(FigureId, f64)> {
    let value = |figure: FigureId| figure.of(diagnosis).unwrap_or(0.0);
    // What takes less than half a percent is not worth a line.
    let least = 0.005 * value(FigureId::SpanMs);
    FigureId::COARSE_PARTS
        .iter()
        .map(|&figure| (figure, value(figure)))
        .filter(|(_, ms)| *ms > least)
        .collect()
}

/// The parts of a step with idle time by its cause, those that take 1% of it; compute always.
pub(crate) fn fine_parts(diagnosis: &Diagnosis) -> Vec<(FigureId, f64)> {
    let least = 0.01 * step_ms(diagnosis);
    let value = |figure: FigureId| figure.of(diagnosis).unwrap_or(0.0);
    let all = FigureId::PARTS.iter().map(|&figure| (figure, value(figure)));
    all.filter(|(figure, ms)| *figure == FigureId::ComputeMs || *ms >= least).collect()
}

/// The time of a step that its parts sum to.
pub(crate) fn step_ms(diagnosis: &Diagnosis) -> f64 {
    FigureId::SpanMs.of(diagnosis).unwrap_or(0.0)
}

/// `66.7 ms (24%)`.
pub(crate) fn share_of(ms: f64, total: f64) -> String {
    format!("{} ({:.0}%)", milliseconds(ms), 100.0 * ms / total)
}

/// `Transfer-bound: 274 ms/step → about 81 ms (3.4x) by pinning host buffers.`; `None` where no fix gains 5%.
pub(crate) fn prize(diagnosis: &Diagnosis) -> Option<String> {
    let prize = diagnosis.prize.as_ref().filter(|prize| prize.speedup >= 1.05)?;
    let doing: Vec<&str> = prize.fixes.iter().flat_map(|fix| fix.doing.iter().copied()).collect();
    let doing = match doing.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        [only] => (*only).to_owned(),
        _ => return None,
    };
    Some(format!(
        "{}: {}/{} → about {} ({:.1}x) by {doing}.",
        diagnosis.verdict.bound.title(),
        milliseconds(prize.step_ms),
        diagnosis.unit(),
        milliseconds(prize.fixed_ms),
        prize.speedup
    ))
}

/// ` (274 → 104 ms)` where the fix of a finding is part of the prize.
pub(crate) fn before_and_after(finding: &Finding, diagnosis: &Diagnosis) -> String {
    let fixes = diagnosis.prize.iter().flat_map(|prize| &prize.fixes);
    fixes
        .filter(|fix| fix.finding == finding.id)
        .map(|fix| format!(" ({} → {})", milliseconds(fix.before_ms), milliseconds(fix.after_ms)))
        .collect()
}

/// Fixes that pay once the findings are fixed: what they are, and what they gain then.
pub(crate) fn follow_ups(diagnosis: &Diagnosis) -> Vec<String> {
    let is_found = |fix: &&AppliedFix| diagnosis.findings.iter().any(|finding| finding.id == fix.finding);
    let fixes = diagnosis.prize.iter().flat_map(|prize| &prize.fixes).filter(|fix| !is_found(fix));
    fixes
        .map(|fix| {
            format!(
                "{}: {} → {} (busbound whatif --apply {})  [explain: {}]",
                fix.doing.join(", "),
                milliseconds(fix.before_ms),
                milliseconds(fix.after_ms),
                fix.apply.join(","),
                fix.finding
            )
        })
        .collect()
}

/// `4 steps (`step`), median 274 ms, 262 to 280 ms`.
pub(crate) fn step(diagnosis: &Diagnosis) -> String {
    let Some(steps) = &diagnosis.window.steps else {
        return format!("no steps found; {} of device time", milliseconds(diagnosis.window.span_ms));
    };
    let pattern = match steps.found {
        StepsFound::Period => steps.pattern.clone(),
        StepsFound::Given | StepsFound::Annotation => format!("`{}`", steps.pattern),
    };
    let unit = diagnosis.unit();
    let mut text = match steps.count {
        1 => format!("1 {unit} ({pattern}), {}", milliseconds(steps.p50_ms)),
        count => format!(
            "{count} {unit}s ({pattern}), median {}, {} to {}",
            milliseconds(steps.p50_ms),
            milliseconds(steps.min_ms),
            milliseconds(steps.max_ms)
        ),
    };
    // Quantiles of a handful are its extremes.
    if steps.count >= 20 {
        text.push_str(&format!("; p90 {}, p99 {}", milliseconds(steps.p90_ms), milliseconds(steps.p99_ms)));
    }
    if steps.outliers_dropped > 0 {
        text.push_str(&format!("; {} others left out, see outliers", steps.outliers_dropped));
    }
    match steps.warmup_dropped {
        0 => {}
        1 => text.push_str(&format!("; 1 {unit} before them left out as warm-up")),
        n => text.push_str(&format!("; {n} {unit}s before them left out as warm-up")),
    }
    text
}

/// Steps that took clearly longer, one line each; of many, the longest.
pub(crate) fn outliers(diagnosis: &Diagnosis) -> Vec<String> {
    const TOLD: usize = 5;
    let outliers = &diagnosis.window.outliers;
    let mut longest: Vec<_> = outliers.iter().collect();
    longest.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    longest.truncate(TOLD);
    longest.sort_by_key(|outlier| outlier.index);
    let mut lines: Vec<String> = longest.into_iter().map(|outlier| outlier.statement.clone()).collect();
    if outliers.len() > TOLD {
        lines.push(format!("and {} more, see --format json", outliers.len() - TOLD));
    }
    lines
}

/// The links copies are judged against, and how they are known.
pub(crate) fn links(diagnosis: &Diagnosis) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for gpu in &diagnosis.machine.gpus {
        let how = gpu.link.source.describe();
        let name = gpu.name.as_deref().unwrap_or("GPU not named in the trace");
        let line = format!("{name}, {} ({how}): peak {:.1} GB/s each way", gpu.link.name, gpu.link.peak_gbps);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// A line of a few facts, which each output separates in its own way.
pub(crate) struct FactLine(Vec<String>);

impl FactLine {
    pub(crate) fn joined(&self, separator: &str) -> String {
        self.0.join(separator)
    }
}

/// One line for each kind of copies that takes time; the rest in one.
pub(crate) fn copies(diagnosis: &Diagnosis) -> Vec<FactLine> {
    let (shown, rest): (Vec<_>, Vec<_>) =
        diagnosis.copies.iter().partition(|group| matters(group, diagnosis));
    let mut lines: Vec<_> = shown.iter().map(|group| copy_line(group, diagnosis)).collect();
    if !rest.is_empty() {
        let kinds: Vec<_> = rest.iter().map(|group| group.kind()).collect();
        let time: f64 = rest.iter().map(|group| group.total_ms).sum();
        let time = milliseconds(time / diagnosis.step_count());
        let line = format!("{}: {time} a {} in all", kinds.join(", "), diagnosis.unit());
        lines.push(FactLine(vec![line]));
    }
    lines
}

/// Whether a group of copies, or its host side, takes half a percent of the time.
fn matters(group: &CopyGroup, diagnosis: &Diagnosis) -> bool {
    group.total_ms.max(group.blocking.ms) > 0.005 * diagnosis.time.span_ms
}

fn copy_line(group: &CopyGroup, diagnosis: &Diagnosis) -> FactLine {
    let (steps, unit) = (diagnosis.step_count(), diagnosis.unit());
    let per_step = group.count as f64 / steps;
    let number = if per_step >= 10.0 || per_step.fract() == 0.0 {
        count(per_step.round() as u64)
    } else {
        format!("{per_step:.1}")
    };
    let copies = if number == "1" { "copy" } else { "copies" };
    let (counted, time) = (format!("{number} {copies}/{unit}"), milliseconds(group.total_ms / steps));
    if group.without_bytes == group.count {
        let counted = format!("{counted}, bytes not recorded, {time}/{unit}");
        return FactLine(vec![group.kind(), counted]);
    }
    let moved = bytes((group.bytes as f64 / steps) as u64);
    let mut rate = format!("{:.1} GB/s", group.gbps.map_or(0.0, |rates| rates.weighted));
    let blocking = match group.blocking.count {
        0 => String::new(),
        _ => format!(", {} of host time inside the calls", milliseconds(group.blocking.ms / steps)),
    };
    let Some(share) = group.utilization else {
        rate.push_str(&blocking);
        return FactLine(vec![group.kind(), counted, moved, time, rate]);
    };
    let expected = group.of_expected.map_or(String::new(), |share| {
        format!(", {:.0} % of what pinned copies of these sizes reach", 100.0 * share)
    });
    let exposed = milliseconds(group.exposed_ms / steps);
    let of_link = format!("{:.0} % of the link{expected}; {exposed} exposed{blocking}", 100.0 * share);
    FactLine(vec![group.kind(), counted, moved, time, rate, of_link])
}

/// Whether the tree of blocks stands among the tables.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blocks {
    Within,
    Apart,
}

/// The tables that have something to say, in the order in which they are laid out.
pub(crate) fn tables(diagnosis: &Diagnosis, blocks: Blocks) -> Vec<Table> {
    let mut tables = vec![
        sizes(diagnosis),
        idle(diagnosis),
        cpu_copies(diagnosis),
        match blocks {
            Blocks::Within => attribution::blocks(diagnosis),
            Blocks::Apart => Table { titles: Vec::new(), rows: Vec::new() },
        },
        path::longest(diagnosis),
        path::kernels(diagnosis),
    ];
    tables.retain(|table| !table.rows.is_empty());
    tables
}

/// Copies on the bus by size, against what the link gives for the size.
fn sizes(diagnosis: &Diagnosis) -> Table {
    let row = |group: &CopyGroup, class: &SizeClass| {
        vec![
            format!("{}, {}", group.kind(), class.label),
            count(class.count),
            bytes(class.bytes),
            milliseconds(class.ms),
            format!("{:.2} GB/s", class.gbps),
            class.expected_gbps.map_or("–".to_owned(), |gbps| format!("{gbps:.2} GB/s")),
        ]
    };
    let on_bus =
        diagnosis.copies.iter().filter(|group| group.utilization.is_some() && matters(group, diagnosis));
    let rows = on_bus.flat_map(|group| group.sizes.iter().map(move |class| row(group, class))).collect();
    let title = match diagnosis.unit() {
        Unit::Step => "copies by size, judged steps",
        Unit::Iteration => "copies by size, judged rounds",
        _ => "copies by size, whole trace",
    };
    Table { titles: vec![title, "count", "bytes", "time", "rate", "pinned gives"], rows }
}

/// Why the device was idle.
fn idle(diagnosis: &Diagnosis) -> Table {
    let per_step = |cause| diagnosis.breakdown.per_step_ms(|part| part == Part::Idle(cause)).unwrap_or(0.0);
    let rows = diagnosis
        .idle
        .iter()
        .filter(|idle| idle.cause != GapCause::Turnaround && idle.ms > 0.01 * diagnosis.time.span_ms)
        .map(|idle| {
            let place =
                idle.places.first().map_or(String::new(), |place| format!(" (most: {})", place.place));
            vec![
                format!("{}{place}", idle.cause.describe()),
                count(idle.count),
                milliseconds(per_step(idle.cause)),
                milliseconds(idle.longest_ms),
            ]
        })
        .collect();
    let each = match diagnosis.unit() {
        Unit::Step => "per step",
        Unit::Iteration => "per round",
        Unit::Trace => "in all",
    };
    Table { titles: vec!["idle because", "gaps", each, "longest"], rows }
}

/// Copy operators of a trace without GPU events.
pub(crate) fn cpu_copies(diagnosis: &Diagnosis) -> Table {
    let rows = diagnosis
        .cpu_copies
        .iter()
        .map(|sum| {
            let what = match sum.class {
                CpuCopyClass::BusTransfer => "blocking, long and slow enough for the bus",
                CpuCopyClass::GpuInternal => "too fast for a bus: within one memory",
                CpuCopyClass::AsynchronousLaunch => "asynchronous: launch cost only",
                CpuCopyClass::Undecided => "undecided",
            };
            let rate = sum.gbps.map_or("–".to_owned(), |gbps| format!("{gbps:.2} GB/s"));
            vec![what.to_owned(), count(sum.count), bytes(sum.bytes), milliseconds(sum.host_ms), rate]
        })
        .collect();
    Table { titles: vec!["copy operators", "count", "bytes", "host time", "rate"], rows }
}

/// What the stages of a pipeline come to.
pub(crate) fn stages(diagnosis: &Diagnosis) -> Option<&str> {
    diagnosis.stages.as_ref().map(|stages| stages.statement.as_str())
}

/// What copies and collectives do to each other, as far as the run shows.
pub(crate) fn contention(diagnosis: &Diagnosis) -> Option<String> {
    if diagnosis.overlap.host_copy_comm_ms <= 0.0 {
        return None;
    }
    let together = milliseconds(diagnosis.overlap.host_copy_comm_ms / diagnosis.step_count());
    let unit = diagnosis.unit();
    // An established slow-down counts before a larger one that may be chance.
    let worst = diagnosis
        .contention
        .iter()
        .max_by(|a, b| a.is_evident().cmp(&b.is_evident()).then(a.slower_pct.total_cmp(&b.slower_pct)));
    Some(match worst {
        None => format!(
            "Host copies and communication run at once for {together} a {unit}; whether they slow each other: no evidence (too few of the same with and without company)."
        ),
        Some(c) if c.is_evident() => format!(
            "Host copies and communication run at once for {together} a {unit}: {} take {:.0} % longer beside {} ({:.0} to {:.0} %).",
            c.what, c.slower_pct, c.beside, c.low_pct, c.high_pct
        ),
        Some(c) => format!(
            "Host copies and communication run at once for {together} a {unit}; no slow-down is established ({} beside {}: {:+.0} %, {:+.0} to {:+.0} %).",
            c.what, c.beside, c.slower_pct, c.low_pct, c.high_pct
        ),
    })
}

/// `saves 171 ms/step (144 to 171)`.
pub(crate) fn saving(finding: &Finding, unit: Unit) -> String {
    let saves = finding.saves_ms_per_step;
    if saves.high <= 0.0 {
        return "saves nothing by itself".to_owned();
    }
    if saves.low < 0.01 * saves.high {
        return format!("saves up to {} a {unit}", milliseconds(saves.high));
    }
    format!("saves {} to {} a {unit}", milliseconds(saves.low), milliseconds(saves.high))
}

pub(crate) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::High => "high",
        Severity::Medium => "medium",
        Severity::Low => "low",
    }
}

/// The sentence where findings would stand, if there are none.
pub(crate) fn nothing_to_fix(diagnosis: &Diagnosis) -> Option<&'static str> {
    if !diagnosis.findings.is_empty() || diagnosis.devices.is_empty() {
        return None;
    }
    Some(match diagnosis.verdict.bound {
        Bound::Compute => "Nothing to fix on the way to the GPU.",
        _ => "No finding: nothing in this trace shows what to change.",
    })
}

/// For several inputs: the sentence above the rest.
pub(crate) fn overview(all: &[Diagnosis]) -> String {
    let mut bounds: Vec<(String, usize)> = Vec::new();
    for diagnosis in all {
        let word = format!("{:?}", diagnosis.verdict.bound).to_lowercase();
        match bounds.iter_mut().find(|(known, _)| *known == word) {
            Some((_, n)) => *n += 1,
            None => bounds.push((word, 1)),
        }
    }
    bounds.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let list: Vec<_> = bounds.iter().map(|(word, n)| format!("{n} {word}")).collect();
    let mut text = format!(
        "{} runs: {}. Each is judged by its own clock; nothing is laid across them.",
        all.len(),
        list.join(", ")
    );
    if all.iter().any(|diagnosis| diagnosis.stages.is_some()) {
        text.push_str(
            " Stages are followed within each process alone: the clocks of two ranks are not aligned, so whether a stage of one runs beside a stage of another cannot be read from their times.",
        );
    }
    text
}
