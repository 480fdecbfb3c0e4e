//! Does a trace show the start of a program, or too little, instead of its steps?

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use busbound_cause::idle::Gap;
use busbound_trace::{Call, Event, EventKind, Interval, IntervalSet, NameId, Nanos, TrackId};

use crate::activity::gaps::{CallTimes, call_times};
use crate::analysis::facts::Facts;
use crate::limits::id::LimitationId;
use crate::quantity::{milliseconds, plural};
use crate::unit::Unit;
use crate::verdict::Withheld;

/// A call of this length creates the context of a process. Real allocations take microseconds to a few milliseconds.
const INITIALIZES_MS: f64 = 100.0;
/// From this share of the time on, what a process does once is what a trace shows.
const INITIALIZES_SHARE: f64 = 0.3;
/// The same where kernels are loaded for the first time up to the last part of the trace.
const STILL_LOADING_SHARE: f64 = 0.1;
/// The last part of a trace.
const LATE: f64 = 0.1;
/// Where the host is the reason that the device is idle for this share of the time, a context that was created just before says why.
const HOST_SHARE: f64 = 0.5;
/// The first launch of a kernel that takes this long loads it. A launch takes microseconds; in traces of programs that load kernels at
/// their first use, the calls that do so take 1 to 1,300 ms.
const LOADS_MS: f64 = 1.0;
/// More steps than this show by themselves which of them are start-up.
const FEW_STEPS: usize = 2;
/// As many iterations do not say what another one takes, if the longest takes this many times as long as the others.
const FEW_UNLIKE: usize = 4;
const UNLIKE: f64 = 5.0;
/// A few kernels and copies that take a smaller share of the recording say nothing about it.
const LITTLE: f64 = 0.05;
/// As many kernels and copies are still few: a loop has more, and a program that runs each of its kernels once has fewer.
const FEW_EVENTS: usize = 10;
/// As many are few if most of them run only once.
const FEW_DISTINCT: usize = 50;
const MOSTLY_ONCE: usize = 2;
/// In a smaller share of the recording the GPU hardly ran, with any number of kernels that do not repeat.
const HARDLY: f64 = 0.001;
/// Where there is this much work, and the same runs this often on average, libraries and memory were set up long before most of it.
const MUCH_WORK: usize = 100;
const REPEATS: usize = 10;
/// A part below this share of the initialization is not named.
const WORTH_NAMING: f64 = 0.2;

/// Why nothing can be said about later steps: the trace shows a start, or too little. `None` for other traces.
pub(crate) fn reason(facts: &Facts<'_>) -> Option<Withheld> {
    let why = initialization(facts)
        .or_else(|| context_before(facts))
        .or_else(|| few_unlike_steps(facts))
        .or_else(|| recaptures(facts))
        .or_else(|| only_few(facts))?;
    Some(Withheld { id: LimitationId::StartUp, why, remedy: "record several steps after a warm-up" })
}

/// A detected iteration in which a CUDA graph is captured: a program captures before its loop.
fn recaptures(facts: &Facts<'_>) -> Option<String> {
    if facts.unit() != Unit::Iteration {
        return None;
    }
    let begins = |call: &Event<'_>| {
        facts.host.call_kind(call) == Call::Capture && call.name().contains("BeginCapture")
    };
    let captures = facts.host.rare_calls().filter(begins).count();
    (captures as f64 >= facts.steps()).then(|| {
        "the program captures a CUDA graph in each detected iteration, which it does once per graph"
            .to_owned()
    })
}

/// Idle time of the device while the host does what a process does once.
fn initialization(facts: &Facts<'_>) -> Option<String> {
    if facts.window.steps.len() > FEW_STEPS {
        return None;
    }
    let loads = Loads::of(facts);
    let parts = parts(facts, &loads);
    let all = facts.time.analyzed_ms;
    let total = idle_ms(facts, &union(parts.iter().map(|part| &part.times)));
    let enough = if is_still_loading(facts, &loads) { STILL_LOADING_SHARE } else { INITIALIZES_SHARE };
    if total < enough * all {
        return None;
    }
    let mut named: Vec<(&Part, f64)> = parts.iter().map(|part| (part, idle_ms(facts, &part.times))).collect();
    named.sort_by(|a, b| b.1.total_cmp(&a.1));
    let within = match facts.unit() {
        Unit::Trace => "in this trace",
        _ => "analyzed",
    };
    // Each device waits for the host.
    let devices = facts.timelines.len().max(1) as f64;
    let milliseconds = |ms: f64| milliseconds(ms / devices);
    let (total, all) = (milliseconds(total), milliseconds(all));
    let names: Vec<String> = named
        .iter()
        .filter(|(_, ms)| *ms > WORTH_NAMING * named[0].1)
        .map(|(part, ms)| format!("{} {}", part.what, milliseconds(*ms)))
        .collect();
    Some(match (names.len(), named.first()) {
        (1, Some((part, ms))) => {
            format!(
                "{} takes {} of the {all} {within}, which is initialization",
                part.subject,
                milliseconds(*ms)
            )
        }
        _ => format!("initialization takes {total} of the {all} {within} ({})", names.join(", ")),
    })
}

/// Idle time while the host is in these times: the thread that ended the gap, or any at the end of a step, where nothing does.
fn idle_ms(facts: &Facts<'_>, times: &CallTimes) -> f64 {
    let inside = |gap: Gap<'_>| {
        let of = |times: &IntervalSet| times.length_within(gap.interval);
        match gap.call {
            Some(call) => times.get(&call.track_id()).map(of),
            None => times.values().map(of).max(),
        }
    };
    facts.gaps.iter().filter_map(|(gap, _)| inside(gap)).sum::<Nanos>().as_millis()
}

/// What a process does once, and when.
struct Part {
    /// `cudaFree`, as one of several.
    what: String,
    /// `one cudaFree call`, alone.
    subject: String,
    times: CallTimes,
}

fn parts(facts: &Facts<'_>, loads: &Loads<'_>) -> Vec<Part> {
    let named = |what: &str, times| Part { what: what.to_owned(), subject: what.to_owned(), times };
    let is_long = |call: &Event<'_>| call.duration().as_millis() >= INITIALIZES_MS;
    let short = loads.calls.iter().filter(|call| !is_long(call));
    let mut parts = vec![
        named(
            "loading kernels at their first use",
            call_times(loads.first_uses.iter().chain(short).copied()),
        ),
        named("capturing CUDA graphs", captures(facts)),
        named("compiling", compilations(facts)),
    ];
    // In steps, calls that allocate may recur.
    let is_once = |call: &Event<'_>| facts.host.call_kind(call) == Call::Load || facts.unit() == Unit::Trace;
    let mut calls: BTreeMap<&str, Vec<Event<'_>>> = BTreeMap::new();
    for call in facts.host.rare_calls().filter(|call| is_long(call) && is_once(call)) {
        calls.entry(call.name()).or_default().push(call);
    }
    parts.extend(calls.into_iter().map(|(name, calls)| Part {
        what: name.to_owned(),
        subject: match calls.len() {
            1 => format!("one {name} call"),
            n => format!("{n} {name} calls"),
        },
        times: call_times(calls),
    }));
    parts
}

/// Whether the device mostly waits for the host, and kernels are loaded for the first time up to the end: nothing shows what the program does
/// once it has started.
fn is_still_loading(facts: &Facts<'_>, loads: &Loads<'_>) -> bool {
    let hulls = facts.timelines.iter().filter_map(|line| line.busy.hull());
    let Some(all) = hulls.reduce(Interval::hull).filter(|_| facts.unit() == Unit::Trace) else {
        return false;
    };
    let idle: f64 = facts.idle.iter().map(|cause| cause.ms).sum();
    let late = (1.0 - LATE) * all.length().as_millis();
    let is_late = |call: &Event<'_>| (call.start() - all.start).as_millis() >= late;
    idle >= HOST_SHARE * facts.time.analyzed_ms && loads.first_uses.iter().chain(&loads.calls).any(is_late)
}

/// Calls that load kernels, each at least [`LOADS_MS`] long.
struct Loads<'f> {
    /// Launches that load their kernel: the first of it.
    first_uses: Vec<Event<'f>>,
    /// Calls for loading.
    calls: Vec<Event<'f>>,
}

impl<'f> Loads<'f> {
    fn of(facts: &'f Facts<'_>) -> Self {
        let is_long = |call: &Event<'_>| call.duration().as_millis() >= LOADS_MS;
        let is_load = |call: &Event<'_>| facts.host.call_kind(call) == Call::Load && is_long(call);
        let launches = first_kernels(facts).filter_map(|kernel| facts.host.call_behind(&kernel));
        Self {
            first_uses: launches.filter(is_long).collect(),
            calls: facts.host.rare_calls().filter(is_load).collect(),
        }
    }
}

/// The first kernel of each name.
fn first_kernels<'f>(facts: &'f Facts<'_>) -> impl Iterator<Item = Event<'f>> {
    let mut first: Vec<Option<Event<'_>>> = vec![None; facts.trace.names().len()];
    for kernel in facts.trace.events().filter(|event| event.kind() == EventKind::Kernel) {
        let known = &mut first[kernel.name_id().index()];
        if known.is_none_or(|known| kernel.start() < known.start()) {
            *known = Some(kernel);
        }
    }
    first.into_iter().flatten()
}

/// Launches into a graph that is captured run nothing.
fn captures(facts: &Facts<'_>) -> CallTimes {
    on_launching_threads(facts, &facts.host.captures())
}

fn compilations(facts: &Facts<'_>) -> CallTimes {
    on_launching_threads(facts, &IntervalSet::from_unsorted(facts.host.compilations()))
}

fn on_launching_threads(facts: &Facts<'_>, times: &IntervalSet) -> CallTimes {
    if times.is_empty() {
        return CallTimes::new();
    }
    facts.host.launching_threads().map(|(thread, _)| (thread, times.clone())).collect()
}

fn union<'t>(all: impl Iterator<Item = &'t CallTimes>) -> CallTimes {
    let mut by_thread: BTreeMap<TrackId, Vec<Interval>> = BTreeMap::new();
    for (thread, times) in all.flatten() {
        by_thread.entry(*thread).or_default().extend(times.iter());
    }
    by_thread.into_iter().map(|(thread, times)| (thread, IntervalSet::from_unsorted(times))).collect()
}

/// The context was created just before the first work, took longer than all of that, and the device mostly waits for the host:
/// libraries and memory are set up then.
fn context_before(facts: &Facts<'_>) -> Option<String> {
    if facts.unit() != Unit::Trace || repeats(facts) {
        return None;
    }
    let hulls = facts.timelines.iter().filter_map(|line| line.busy.hull());
    let (begin, all) = (hulls.map(|hull| hull.start).min()?, facts.time.analyzed_ms);
    let idle: f64 = facts.idle.iter().map(|cause| cause.ms).sum();
    let before = facts.host.rare_calls().filter(|call| call.end() <= begin);
    let longest = before.max_by_key(|call| (call.duration(), Reverse(call.id())))?;
    let ms = longest.duration().as_millis();
    (ms >= INITIALIZES_MS && ms >= all && idle >= HOST_SHARE * all).then(|| {
        format!(
            "the {} of GPU work in this trace come after one {} call of {}, which is initialization",
            milliseconds(all),
            longest.name(),
            milliseconds(ms)
        )
    })
}

/// Whether the same kernels and copies run again and again.
fn repeats(facts: &Facts<'_>) -> bool {
    let mut known = vec![false; facts.trace.names().len()];
    let (mut all, mut distinct) = (0, 0);
    for work in facts.trace.events().filter(|event| event.kind().is_gpu_work()) {
        all += 1;
        distinct += usize::from(!std::mem::replace(&mut known[work.name_id().index()], true));
    }
    all >= MUCH_WORK.max(REPEATS * distinct)
}

/// A few kernels and copies take little of the recording, however much of the time between the first and the last of them.
fn only_few(facts: &Facts<'_>) -> Option<String> {
    if facts.unit() != Unit::Trace {
        return None;
    }
    let work: Vec<Event<'_>> = facts.trace.events().filter(|event| event.kind().is_gpu_work()).collect();
    let names: BTreeSet<NameId> = work.iter().map(Event::name_id).collect();
    let is_few =
        work.len() <= FEW_EVENTS || work.len() <= FEW_DISTINCT && work.len() <= MOSTLY_ONCE * names.len();
    if work.is_empty() || !is_few && repeats(facts) {
        return None;
    }
    let recorded = facts.trace.events().map(|event| event.interval()).reduce(Interval::hull)?.length();
    let took = IntervalSet::from_unsorted(work.iter().map(|event| event.interval())).length();
    let (took, recorded) = (took.as_millis(), recorded.as_millis());
    if took >= if is_few { LITTLE } else { HARDLY } * recorded {
        return None;
    }
    let (took, recorded) = (milliseconds(took), milliseconds(recorded));
    Some(match work.len() {
        1 => format!("one {} of {took} is the only GPU work in this recording of {recorded}", kinds(&work)),
        _ => format!(
            "{}, {took} in total, are the only GPU work in this recording of {recorded}",
            kinds(&work)
        ),
    })
}

/// `kernel`, or `2 kernels and 3 copies`.
fn kinds(work: &[Event<'_>]) -> String {
    let of = |one: &str, several: &str, is: fn(EventKind) -> bool| {
        let count = work.iter().filter(|event| is(event.kind())).count() as u64;
        (count > 0).then(|| if work.len() == 1 { one.to_owned() } else { plural(count, one, several) })
    };
    let parts = [
        of("kernel", "kernels", |kind| kind == EventKind::Kernel),
        of("copy", "copies", |kind| kind == EventKind::Copy),
        of("memset", "memsets", |kind| !matches!(kind, EventKind::Kernel | EventKind::Copy)),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.split_last() {
        Some((last, before @ [_, ..])) => format!("{} and {last}", before.join(", ")),
        _ => parts.concat(),
    }
}

fn few_unlike_steps(facts: &Facts<'_>) -> Option<String> {
    let mut lengths: Vec<f64> = facts.window.steps.iter().map(|step| step.length().as_millis()).collect();
    // Steps that the program marks are its own, however they differ.
    let most = if facts.unit() == Unit::Iteration { FEW_UNLIKE } else { FEW_STEPS };
    if lengths.len() > most {
        return None;
    }
    lengths.sort_by(f64::total_cmp);
    let longest = lengths.pop()?;
    let usual = lengths.get(lengths.len() / 2)?;
    let (shortest, longest_ms) = (milliseconds(lengths[0]), milliseconds(longest));
    (longest > UNLIKE * usual).then(|| match lengths.len() {
        1 => format!("the only two {}s in this trace take {shortest} and {longest_ms}", facts.unit()),
        others => {
            format!("the only {} {}s in this trace take {shortest} to {longest_ms}", others + 1, facts.unit())
        }
    })
}
