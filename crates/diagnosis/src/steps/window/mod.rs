//! Which steps does the trace contain, and how long are they?
//!
//! Annotations mark where steps begin ([`marks`]). Without annotations, steps are what repeats in the launches
//! ([`period`]). A host that runs ahead starts its steps earlier than the device: a step ends when the work
//! launched in it ends.
//!
//! Long because steps, the work of each and their number come from one pass over the trace.

mod lengths;
mod marks;
mod numbers;
mod outliers;
mod period;
mod times;

use std::collections::BTreeSet;
use std::ops::Range;

use busbound_machine::median;
use busbound_trace::{Event, EventId, EventKind, Interval, Nanos, Timestamp, Trace, TrackId};
use regex_lite::Regex;
use serde::{Deserialize, Serialize};

pub use outliers::{Difference, OutlierStep, StepQuantity};
pub use times::StepTimes;

use lengths::Lengths;

use crate::activity::timeline::Judged;
use crate::options::Options;
use crate::unit::Unit;
use busbound_cause::thresholds::LAUNCH_LATENCY;
use busbound_cause::{Host, StepMarks};

/// How the steps were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum StepsFound {
    /// By the expression that the user gave.
    Given,
    /// Annotations that look like steps.
    Annotation,
    /// What repeats in the sequence of launches. A step of the program may contain several of these.
    Period,
}

impl StepsFound {
    /// The name in JSON.
    pub fn id(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Annotation => "annotation",
            Self::Period => "period",
        }
    }

    /// The unit to report figures in.
    pub fn unit(self) -> Unit {
        match self {
            Self::Given | Self::Annotation => Unit::Step,
            Self::Period => Unit::Iteration,
        }
    }
}

/// Work that was done before the first step is left out if it began earlier than this share of all steps: warming up is no step,
/// and the time after it is no wait.
const SET_UP: f64 = 0.05;

/// Where steps begin on the host.
#[derive(Debug, Clone)]
pub(super) struct Beginnings {
    pub(super) found: StepsFound,
    pub(super) pattern: String,
    pub(super) starts: Vec<Timestamp>,
    /// When the host ends each step; also the end of the step if it has no GPU work.
    pub(super) ends: Vec<Timestamp>,
    /// The annotation of each step, and their thread; `None` if nothing marks them.
    pub(super) marked_by: Option<(TrackId, Vec<EventId>)>,
    /// Whether the last step is complete.
    pub(super) last_is_whole: bool,
    /// Nothing marks these steps from start to end.
    pub(super) is_inferred: bool,
    /// After this, work belongs to no step.
    pub(super) until: Option<Timestamp>,
}

/// The steps found, in time order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Window {
    /// From the end of the previous step to its own end, on the device if there is one.
    pub(crate) steps: Vec<Interval>,
    /// When the work launched in each step has ended; copies may outlast their step.
    pub(crate) work_ends: Vec<Timestamp>,
    /// From here on, copies of the last step run without the kernels of a next step beside them.
    pub(crate) drain: Option<Timestamp>,
    /// What is left out before the first step: the GPU waited for its launches, and not for those of later steps.
    fill: Nanos,
    /// The number of each step: the one in its annotation, or its index.
    pub(crate) numbers: Vec<u64>,
    /// When each step starts on the host.
    pub(crate) starts: Vec<Timestamp>,
    /// Where steps end on the host, if annotations mark them.
    ends: Option<(TrackId, Vec<(Timestamp, EventId)>)>,
    /// How many steps of work the trace contains. Exceeds the number of marked steps if the trace has work that was
    /// launched before the first step. Work without a recorded launch does not count.
    step_count: f64,
    /// How many of these steps of work were launched before the first step.
    pub(crate) early_steps: f64,
    pub(crate) pattern: Option<String>,
    pub(crate) found: Option<StepsFound>,
    /// The user's expression for steps.
    pub(crate) given: Option<Regex>,
    /// After this, work belongs to no step.
    until: Option<Timestamp>,
    /// Share of the work before the first step, 0 to 1.
    outside_share: f64,
    /// From the first work that was done before the first step to that step.
    set_up: Nanos,
    /// The step of each kernel, copy and memset, by event number, plus one; 0 for none.
    step_of_work: Vec<u32>,
    /// Where steps that nothing marks begin: a part of the trace has the same steps, and would suggest others.
    inferred: Option<Beginnings>,
}

/// Outlier steps are left out while they take less than this share of the time. Beyond it they are what the run is about.
const MUCH: f64 = 0.2;
/// A single step of this many times the length of the others, of at least as many, is an interruption: nothing shows that it recurs.
const INTERRUPTS: f64 = 10.0;
/// Detected iterations take more than the rest of the time.
const MOSTLY_A_LOOP: f64 = 0.5;
/// Fewer consecutive steps do not represent the run.
const FEWEST_STEADY: usize = 3;
/// A first step above this multiple of the median of the later ones is warm-up.
const LONGER_WARMING_UP: f64 = 1.5;

impl Window {
    /// The unit of per-step figures.
    pub(crate) fn unit(&self) -> Unit {
        self.found.map_or(Unit::Trace, StepsFound::unit)
    }

    /// From the start of the first step to the end of the last.
    pub(crate) fn hull(&self) -> Option<Interval> {
        Some(Interval::new(self.steps.first()?.start, self.steps.last()?.end))
    }

    /// `from` is when the first step begins, if the trace is a view that has no earlier steps.
    pub(crate) fn of(trace: &Trace, host: &Host<'_>, options: &Options, from: Option<Timestamp>) -> Self {
        let begin = match &options.steps {
            Some(wanted) => marks::given(trace, host, wanted),
            None => marks::likely(trace, host).or_else(|| {
                period::period(trace, host).filter(|begin| !period::are_layers(trace, host, begin))
            }),
        };
        let begin = begin.or_else(|| marks::by_optimizer(trace, host).filter(|_| options.steps.is_none()));
        begin.map_or_else(Self::default, |begin| Self::at(begin, trace, host, options, from))
    }

    /// Where the detected iterations say nothing: the steps that an optimizer ends, or none.
    pub(crate) fn by_optimizer(trace: &Trace, host: &Host<'_>, options: &Options) -> Self {
        let begin = marks::by_optimizer(trace, host);
        begin.map_or_else(Self::default, |begin| Self::at(begin, trace, host, options, None))
    }

    /// These steps that nothing marks, in the part of the trace that has only them; `None` if they were found in another way.
    pub(crate) fn of_part(
        &self,
        steps: Range<usize>,
        part: &Trace,
        host: &Host<'_>,
        options: &Options,
    ) -> Option<Self> {
        let whole = self.inferred.as_ref()?;
        let begin = Beginnings {
            starts: whole.starts.get(steps.clone())?.to_vec(),
            ends: whole.ends.get(steps.clone())?.to_vec(),
            until: whole.starts.get(steps.end).copied().or(whole.until),
            last_is_whole: true,
            ..whole.clone()
        };
        let from = self.steps.get(steps.start).map(|step| step.start);
        Some(Self::at(begin, part, host, options, from))
    }

    fn at(
        mut begin: Beginnings,
        trace: &Trace,
        host: &Host<'_>,
        options: &Options,
        from: Option<Timestamp>,
    ) -> Self {
        let mut work = work_of_steps(trace, host, &begin.starts, begin.until);
        begin.drop_unrecorded(&work, trace.stats().is_complete());
        begin.drop_launched_ahead(&work);
        let Lengths { mut steps, work_ends, mut drain, fill } = Lengths::of(&begin, &work, from);
        let placed = place(&work.without_launch, &steps, &mut work.step_of_work);
        let counts = StepCounts::of(&begin, &work, &placed, steps.len());
        if begin.is_last_cut() {
            steps.pop();
            drain = None;
        }
        Self {
            numbers: numbers::numbers(trace, &begin, steps.len()),
            steps,
            work_ends,
            drain,
            fill,
            ends: begin.host_ends(),
            inferred: begin.is_inferred.then(|| begin.clone()),
            starts: begin.starts,
            step_count: counts.all,
            early_steps: counts.early,
            pattern: Some(begin.pattern),
            found: Some(begin.found),
            given: options.steps.clone(),
            until: begin.until,
            outside_share: work.outside_share(&placed),
            set_up: work.set_up,
            step_of_work: work.step_of_work,
        }
    }

    /// The share of the GPU's time that is in these steps.
    pub(crate) fn share_of_work(&self, steps: &Range<usize>, trace: &Trace) -> f64 {
        let (mut inside, mut all) = (Nanos::ZERO, Nanos::ZERO);
        for event in trace.events().filter(|event| event.kind().is_gpu_work()) {
            all += event.duration();
            if self.step_of_work(&event).is_some_and(|step| steps.contains(&step)) {
                inside += event.duration();
            }
        }
        inside.as_millis() / all.as_millis().max(f64::MIN_POSITIVE)
    }

    /// Whether the figures should leave out what is outside of the steps.
    pub(crate) fn is_part_of_the_trace(&self) -> bool {
        match self.found {
            // The user asked about these steps only.
            Some(StepsFound::Given) => true,
            // Setup and what comes after the loop are no iterations.
            Some(StepsFound::Period) => {
                self.outside_share > SET_UP || self.has_set_up() || self.until.is_some()
            }
            _ => self.has_set_up(),
        }
    }

    fn has_set_up(&self) -> bool {
        self.set_up.as_millis()
            > SET_UP * self.steps.iter().map(|step| step.length().as_millis()).sum::<f64>()
    }

    /// The time that the figures cover: from the start of the first step to the end of the last. If no annotation marks the steps,
    /// it is the time of the device's work.
    pub(crate) fn judged(&self) -> Judged {
        Judged { steps: self.hull().filter(|_| self.ends.is_some()), until: self.drain }
    }

    /// Where steps begin and end on the host.
    pub(crate) fn marks(&self) -> StepMarks {
        StepMarks { starts: self.starts.clone(), ends: self.ends.clone() }
    }

    /// The thread that marks the steps.
    pub(crate) fn thread(&self) -> Option<TrackId> {
        self.ends.as_ref().map(|(thread, _)| *thread)
    }

    /// The number that the program gave a step: 12 of `ProfilerStep#12`. `None` if it does not number them one by one.
    pub(crate) fn number_of(&self, step: usize, trace: &Trace) -> Option<u64> {
        let number = |step: usize| -> Option<u64> {
            // The mark of a step is listed with its end.
            let (_, id) = self.ends.as_ref()?.1.get(step + 1)?;
            let name = trace.event(*id).name();
            name[name.trim_end_matches(|c: char| c.is_ascii_digit()).len()..].parse().ok()
        };
        let first = number(0)?;
        let is_counted = self.starts.len() > 1 && number(1) == first.checked_add(1);
        number(step).filter(|number| is_counted && Some(*number) == first.checked_add(step as u64))
    }

    /// The divisor for figures per step.
    pub(crate) fn step_count(&self) -> f64 {
        if self.steps.is_empty() { 1.0 } else { self.step_count }
    }

    /// The step in which a kernel, copy or memset was launched.
    pub(crate) fn step_of_work(&self, work: &Event<'_>) -> Option<usize> {
        (*self.step_of_work.get(work.id().index())? as usize).checked_sub(1)
    }

    /// From the start of the first step on the host to the end of the last step.
    pub(crate) fn host_time(&self) -> Option<Interval> {
        Some(Interval::new(*self.starts.first()?, self.steps.last()?.end))
    }

    /// The step that the host was in.
    pub(crate) fn step_at(&self, at: Timestamp) -> Option<usize> {
        self.starts.partition_point(|&start| start <= at).checked_sub(1)
    }

    /// Steps that took much longer, in order, and what each did differently.
    pub(crate) fn outliers(&self, trace: &Trace, host: &Host<'_>) -> Vec<OutlierStep> {
        outliers::outliers(self, trace, host)
    }

    /// The trace of these steps only: the work launched in them, and what the host did meanwhile.
    pub(crate) fn only(&self, steps: Range<usize>, trace: &Trace) -> Option<Trace> {
        let (&from, first) = (self.starts.get(steps.start)?, self.steps.get(steps.start)?);
        let last = self.steps.get(steps.end - 1)?;
        let until = self.starts.get(steps.end).copied().or(self.until);
        Some(trace.part(|event| {
            if !event.kind().is_gpu_work() {
                // The synchronization that waits for the last step comes after it.
                let until = until.map(|until| until.max(last.end));
                return event.end() > from && until.is_none_or(|until| event.start() < until);
            }
            match self.step_of_work(event) {
                Some(of) => steps.contains(&of),
                None => event.start() >= first.start && event.start() < last.end,
            }
        }))
    }

    /// The longest sequence of steps after the warm-up without an outlier; all of them if outliers take much of the time. Steps
    /// that load, compile or capture are start-up, however long they take; steps `apart`, which evaluate or save, are not like the
    /// others, unless hardly any others are left.
    pub(crate) fn steady(&self, warm_up: usize, outliers: &[OutlierStep], apart: &[usize]) -> Range<usize> {
        let warm = warm_up..self.steps.len();
        let whole: f64 = self.steps[warm.clone()].iter().map(|step| step.length().as_millis()).sum();
        let is_apart = |outlier: &&OutlierStep| apart.binary_search(&outlier.index).is_ok();
        // A detected iteration that launches more is not one: there, the program does something else. If that is most of the time, the
        // iteration says little about the run.
        let more = outliers.iter().filter(|outlier| outlier.launches_more());
        let is_loop = self.found == Some(StepsFound::Period)
            && more.map(|outlier| outlier.ms).sum::<f64>() < MOSTLY_A_LOOP * whole;
        let is_other = |outlier: &OutlierStep| outlier.is_start_up() || is_loop && outlier.launches_more();
        let recurring: Vec<f64> =
            (outliers.iter().filter(|outlier| !is_other(outlier) && !is_apart(outlier)))
                .map(|outlier| outlier.ms)
                .collect();
        let others = (whole - recurring.iter().sum::<f64>()) / warm.len().saturating_sub(1).max(1) as f64;
        let is_once =
            recurring.len() == 1 && warm.len() as f64 > INTERRUPTS && recurring[0] > INTERRUPTS * others;
        let is_much = recurring.iter().sum::<f64>() >= MUCH * whole && !is_once;
        let left_out = outliers.iter().filter(|outlier| !is_much || is_other(outlier));
        let apart_after = apart.iter().copied().filter(|step| warm.contains(step));
        let ends: BTreeSet<usize> = left_out.map(|outlier| outlier.index).chain(apart_after).collect();
        let mut sequences = Vec::new();
        let mut from = warm.start;
        for end in ends.into_iter().chain([warm.end]) {
            sequences.push(from..end);
            from = end + 1;
        }
        let longest = sequences.into_iter().rev().max_by_key(|sequence| sequence.len());
        match longest.filter(|sequence| sequence.len() >= FEWEST_STEADY) {
            Some(longest) => longest,
            None if apart.is_empty() => warm,
            None => self.steady(warm_up, outliers, &[]),
        }
    }

    /// Steps at the beginning that are much longer than those after them: caches fill, kernels are loaded and
    /// compiled.
    pub(crate) fn warm_up(&self) -> usize {
        let mut lengths: Vec<f64> = self.steps.iter().map(|step| step.length().as_millis()).collect();
        lengths.iter_mut().take(1).for_each(|first| *first += self.fill.as_millis());
        // At most a quarter: a run that is slow for longer is not warming up.
        let most = lengths.len() / 4;
        let Some(usual) = median(lengths[most..].iter().copied()) else { return 0 };
        lengths[..most].iter().take_while(|length| **length > LONGER_WARMING_UP * usual).count()
    }
}

impl Beginnings {
    /// Profilers write GPU events last. If the file is cut off within them, the last host steps have no GPU events, and
    /// the step before those has only some.
    fn drop_unrecorded(&mut self, work: &Work, is_complete: bool) {
        let recorded = work.hulls.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        if !is_complete && (1..self.starts.len()).contains(&recorded) {
            self.starts.truncate(recorded);
            self.last_is_whole = false;
        }
    }

    /// A host that only launches runs ahead of the GPU, until its queue is full or something waits. Without GPU events, the last
    /// step then seems to end when the host has launched it.
    fn drop_launched_ahead(&mut self, work: &Work) {
        const MUCH_SHORTER: f64 = 0.5;
        if work.hulls.iter().any(Option::is_some) || self.starts.len() < 3 {
            return;
        }
        let periods = self.starts.windows(2).map(|pair| (pair[1] - pair[0]).as_millis());
        let (Some(usual), Some(start), Some(end)) =
            (median(periods), self.starts.last(), self.ends.get(self.starts.len() - 1))
        else {
            return;
        };
        if (*end - *start).as_millis() < MUCH_SHORTER * usual {
            self.last_is_whole = false;
        }
    }

    /// Where the host ends each step: where the next one begins. The first entry is where the first step begins.
    fn host_ends(&self) -> Option<(TrackId, Vec<(Timestamp, EventId)>)> {
        let (thread, marks) = self.marked_by.as_ref()?;
        let next = self.starts.iter().copied().chain(self.ends.get(self.starts.len() - 1).copied());
        let ids = marks.first().into_iter().chain(marks).copied();
        Some((*thread, next.zip(ids).collect()))
    }

    /// Whether the last step is dropped because it is incomplete.
    fn is_last_cut(&self) -> bool {
        !self.last_is_whole && self.starts.len() > 1
    }
}

/// How many steps of work the trace contains.
struct StepCounts {
    all: f64,
    /// How many of them were launched before the first step.
    early: f64,
}

impl StepCounts {
    /// `steps` includes the last step, complete or not.
    fn of(begin: &Beginnings, work: &Work, placed: &Placed, steps: usize) -> Self {
        let inside: u64 = work.launched.iter().sum();
        if begin.is_last_cut() {
            let whole = steps - 1;
            let each = work.launched[..whole].iter().sum::<u64>() as f64 / whole as f64;
            let all = if each > 0.0 { inside as f64 / each } else { whole as f64 };
            return Self { all, early: 0.0 };
        }
        // A profiler that starts while the host is ahead records work whose launches it has not seen. If launches are also
        // missing later, they were lost, and nothing shows when that work was launched.
        let unseen = if placed.early > placed.inside { placed.early } else { 0 };
        // Not if as much work is before the steps as in them; and work before a detected period is usually setup.
        let is_period = begin.found == StepsFound::Period;
        let more = match work.before + unseen {
            more if inside > more && !is_period => more as f64 / inside as f64,
            _ => 0.0,
        };
        let early = steps as f64 * more;
        Self { all: steps as f64 + early, early }
    }
}

struct Work {
    /// First start and last end of the GPU work launched in each step.
    hulls: Vec<Option<Interval>>,
    /// The same for its kernels.
    kernels: Vec<Option<Interval>>,
    /// Nanoseconds of the work launched in each step. By time and not by number: what remains of a step when the profiler
    /// starts rarely has copies and kernels in the usual proportion.
    launched: Vec<u64>,
    /// Nanoseconds of the work launched before the first step that was not yet done when it began.
    before: u64,
    /// Nanoseconds of the work that was done before it, and the time from the first of it to that step.
    done: u64,
    set_up: Nanos,
    /// Work without a recorded launch.
    without_launch: Vec<Unlaunched>,
    step_of_work: Vec<u32>,
    /// Whether the first work of the first step waited behind work that is not in the trace.
    first_was_queued: bool,
}

impl Work {
    /// Share of the work before the first step, 0 to 1.
    fn outside_share(&self, placed: &Placed) -> f64 {
        let inside = self.launched.iter().sum::<u64>() + placed.inside;
        let outside = self.before + self.done + placed.early;
        outside as f64 / (inside + outside).max(1) as f64
    }
}

struct Unlaunched {
    id: EventId,
    start: Timestamp,
    /// Nanoseconds; 0 for migrations, which the driver starts without a launch.
    weight: u64,
}

/// How much of the work without a launch is in steps, and how much before the first one, in nanoseconds.
struct Placed {
    inside: u64,
    early: u64,
}

/// Work without a recorded launch belongs to the step during which it starts on the device.
fn place(work: &[Unlaunched], steps: &[Interval], step_of_work: &mut [u32]) -> Placed {
    let mut placed = Placed { inside: 0, early: 0 };
    for event in work {
        let step = steps.partition_point(|step| step.end <= event.start);
        // Each step begins where the previous one ends, so work outside of steps is before the first or after the last.
        match steps.get(step) {
            Some(of) if of.start <= event.start => {
                step_of_work[event.id.index()] = u32::try_from(step + 1).unwrap_or(0);
                placed.inside += event.weight;
            }
            Some(_) => placed.early += event.weight,
            None => {}
        }
    }
    placed
}

fn work_of_steps(trace: &Trace, host: &Host<'_>, starts: &[Timestamp], until: Option<Timestamp>) -> Work {
    let mut hulls: Vec<Option<Interval>> = vec![None; starts.len()];
    let mut kernels = hulls.clone();
    let mut step_of_work = vec![0; trace.numbers()];
    let mut launched = vec![0; starts.len()];
    let mut without_launch = Vec::new();
    let (mut before, mut done, mut set_up) = (0, 0, Nanos::ZERO);
    let mut first: Option<(Timestamp, Timestamp)> = None;
    for event in trace.events().filter(|event| event.kind().is_gpu_work()) {
        let weight = event.duration().get().max(1).cast_unsigned();
        let Some(call) = host.call_behind(&event) else {
            let weight = if event.migration().is_some() { 0 } else { weight };
            without_launch.push(Unlaunched { id: event.id(), start: event.start(), weight });
            continue;
        };
        if until.is_some_and(|until| call.start() >= until) {
            continue;
        }
        let Some(step) = starts.partition_point(|&start| start <= call.start()).checked_sub(1) else {
            match starts.first().filter(|start| event.end() < **start) {
                Some(start) => (done, set_up) = (done + weight, set_up.max(*start - event.start())),
                None => before += weight,
            }
            continue;
        };
        launched[step] += weight;
        step_of_work[event.id().index()] = u32::try_from(step + 1).unwrap_or(0);
        let own = event.interval();
        let widen = |hull: &mut Option<Interval>| {
            *hull = Some(hull.map_or(own, |known| known.hull(own)));
        };
        widen(&mut hulls[step]);
        if step == 0 && first.is_none_or(|(start, _)| own.start < start) {
            first = Some((own.start, call.end()));
        }
        if event.kind() == EventKind::Kernel {
            widen(&mut kernels[step]);
        }
    }
    let first_was_queued = first.is_some_and(|(start, called)| (start - called).get() > LAUNCH_LATENCY);
    Work { hulls, kernels, launched, before, done, set_up, without_launch, step_of_work, first_was_queued }
}
