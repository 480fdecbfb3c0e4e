//! Is the GPU waiting for the bus, where, and why? The whole answer.

use std::cell::LazyCell;
use std::ops::Deref;

use busbound_cause::parallel::join;
use busbound_machine::{LinkFacts, LinkSource, Machine};
use busbound_trace::{Environment, Trace};
use serde::Serialize;

use crate::activity::collectives::CollectiveGroup;
use crate::activity::compiled;
use crate::activity::contention::Contention;
use crate::activity::copies::CopyGroup;
use crate::activity::gaps::IdleCause;
use crate::activity::launches::Launches;
use crate::activity::links::gpu_name;
use crate::activity::syncs::SyncTotal;
use crate::activity::timeline::{self, DeviceTimeline, Overlaps};
use crate::analysis::arrivals::{CollectiveTimes, collective_times};
use crate::analysis::attribution::{self, Attribution};
use crate::analysis::bounds::{Asked, ResourceBound, resource_bounds};
use crate::analysis::breakdown::StepBreakdown;
use crate::analysis::confidential;
use crate::analysis::copies_around::{CopiesAround, copies_around};
use crate::analysis::cpu_collectives::{self, CpuCollective};
use crate::analysis::cpu_copies::{self, CpuCopies};
use crate::analysis::cpu_only;
use crate::analysis::critical::{self, CriticalPath};
use crate::analysis::facts::Facts;
use crate::analysis::host_work::HostWork;
use crate::analysis::kernel_totals::{KernelTotal, kernel_totals};
use crate::analysis::kernels::{self, Kernels};
use crate::analysis::layer_waits::{LayerWaits, layer_waits};
use crate::analysis::phases::{RunPhase, phases};
use crate::analysis::rank_lanes::{RankLanes, rank_lanes};
use crate::analysis::stages::{self, RankStage, StageAnswer, Stages};
use crate::analysis::start_up;
use crate::analysis::throughput::{Throughput, throughput};
use crate::analysis::times::Times;
use crate::analysis::unprofiled::Unprofiled;
use crate::answers::survey::withheld::why_incomplete;
use crate::answers::survey::{RankedAs, Source, SourceFacts, Survey, survey};
use crate::findings::{self, Finding, Prize, Severity};
use crate::limits::{self, Limitation};
use crate::misfits::{Misfit, misfits};
use crate::options::Options;
use crate::saving::Saving;
use crate::steps::basis::Basis;
use crate::steps::steady::{LeftOut, steady};
use crate::steps::window::{OutlierStep, StepTimes};
use crate::unit::Unit;
use crate::verdict::{self, Bound, Verdict, Withheld};

pub const DIAGNOSIS_SCHEMA: &str = "busbound.diagnosis/2";

/// The output of `busbound diagnose` for one trace. Renderers use nothing else.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diagnosis {
    pub schema: &'static str,
    pub source: SourceFacts,
    /// The rank of this process; `null` if neither the trace nor its file name has it.
    pub rank: Option<RankedAs>,
    pub machine: MachineFacts,
    /// Versions, variables, GPUs and CPUs of the process, as far as the trace has them.
    pub environment: Environment,
    pub window: WindowFacts,
    /// Loading, evaluation, checkpoints and what the program marks as a phase, in time order. Steps in them are not part of the
    /// other figures, if enough others are left.
    pub phases: Vec<RunPhase>,
    pub verdict: Verdict,
    /// What the step would take if each resource were faster, or free; empty if the trace cannot say.
    pub bounds: Vec<ResourceBound>,
    /// What the run would take with its findings fixed; `null` if no fix can be replayed, or none gains.
    pub prize: Option<Prize>,
    /// Where the time of a step goes.
    #[serde(skip)]
    pub breakdown: StepBreakdown,
    pub time: Times,
    /// The part of `time.compute_ms` in which kernels wait for host memory: memory that they access over the bus, or pages of
    /// managed memory.
    pub kernel_waits_ms: f64,
    pub overlap: Overlaps,
    pub devices: Vec<DeviceFacts>,
    pub copies: Vec<CopyGroup>,
    /// Communication between GPUs by operation, message and process group, most time first.
    pub collectives: Vec<CollectiveGroup>,
    /// Copies next to collectives, such as those of FSDP with CPU offload; empty if there are none.
    pub copies_around: Vec<CopiesAround>,
    /// Some of the collectives that all ranks have to arrive at, to compare ranks.
    #[serde(skip)]
    pub collective_times: CollectiveTimes,
    /// When it copied, exchanged data and computed, to put ranks side by side.
    #[serde(skip)]
    pub rank_lanes: RankLanes,
    /// Copy operators of a trace without GPU events.
    pub cpu_copies: Vec<CpuCopies>,
    /// Collectives that the host issued in a trace without GPU events.
    pub cpu_collectives: Vec<CpuCollective>,
    pub idle: Vec<IdleCause>,
    /// Host work that the GPU waited for, most first.
    pub host: Vec<HostWork>,
    pub contention: Vec<Contention>,
    /// Where a step's time goes, by the blocks that the program annotates; `null` without annotations.
    pub attribution: Option<Attribution>,
    /// The stages of a pipeline; `null` if none are given and none annotated.
    pub stages: Option<Stages>,
    /// The stages that this process runs, also if it is only one.
    #[serde(skip)]
    pub rank_stages: Vec<RankStage>,
    /// Which layer waited how long for its copies; `null` without steps, or if fewer than two layers waited.
    pub layer_waits: Option<LayerWaits>,
    /// `null` without GPU work.
    pub critical_path: Option<CriticalPath>,
    /// The kernels that take the most time, if the run is compute-bound or Nsight Compute measured them.
    pub kernels: Option<Kernels>,
    /// Every kernel by name.
    #[serde(skip)]
    pub kernel_totals: Vec<KernelTotal>,
    /// What the run processes per second; empty if it is not given how much a step processes.
    pub throughput: Vec<Throughput>,
    pub launches: Launches,
    pub synchronizations: Vec<SyncTotal>,
    pub findings: Vec<Finding>,
    pub limitations: Vec<Limitation>,
    /// The options that do not fit this trace.
    #[serde(skip)]
    pub misfits: Vec<Misfit>,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineFacts {
    pub gpus: Vec<GpuLink>,
    /// GPUs that the trace lists, used in it or not.
    pub listed: usize,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuLink {
    pub device: i32,
    pub name: Option<String>,
    pub link: LinkFacts,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowFacts {
    /// From the first to the last work of any GPU.
    pub span_ms: f64,
    /// `null` if no steps are found; figures "per step" are then for the whole trace.
    pub steps: Option<StepTimes>,
    /// All steps after the warm-up, if `steps` leaves some of them out.
    pub with_outliers: Option<StepTimes>,
    /// Steps that took much longer than the others, and what they did differently; only the longest if there are many.
    pub outliers: Vec<OutlierStep>,
    pub outlier_count: usize,
    /// The divisor for figures per step: the number of steps, plus a fraction for recorded work that was launched
    /// before the first step; 1 if there are no steps.
    pub step_count: f64,
    /// Milliseconds of the step that `bounds`, `verdict.headroom` and `prize` start from: without the profiler where that is
    /// known.
    pub baseline_ms: f64,
    /// The step without the profiler, also if no steps are found.
    #[serde(skip)]
    pub unprofiled: Option<Unprofiled>,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceFacts {
    pub device: i32,
    pub time: Times,
    pub overlap: Overlaps,
}

/// Diagnoses one trace against a machine.
pub fn diagnose(trace: &Trace, source: &Source, machine: &Machine, options: &Options) -> Diagnosis {
    diagnose_and(trace, source, machine, options, |_| ()).0
}

/// What a diagnosis is computed from.
pub(crate) struct AnalysisScope<'a, 't> {
    whole: &'a dyn Deref<Target = Facts<'t>>,
    /// Of the steps that the figures cover.
    pub(crate) facts: &'a Facts<'a>,
    /// Whether they are only a part of the trace.
    pub(crate) is_part: bool,
    pub(crate) left_out: &'a LeftOut,
    pub(crate) diagnosis: &'a Diagnosis,
}

impl<'t> AnalysisScope<'_, 't> {
    /// Of the whole trace.
    pub(crate) fn whole(&self) -> &Facts<'t> {
        self.whole
    }
}

/// Like [`diagnose`], and applies `more` to the same facts.
pub(crate) fn diagnose_and<T>(
    trace: &Trace,
    source: &Source,
    machine: &Machine,
    options: &Options,
    more: impl FnOnce(&AnalysisScope<'_, '_>) -> T,
) -> (Diagnosis, T) {
    let (survey, (basis, part, left_out)) = join(
        || survey(trace, source),
        || {
            let mut basis = Basis::of(trace, options);
            let (part, left_out) = steady(&mut basis, options);
            (basis, part, left_out)
        },
    );
    let left_out = &left_out;
    let rank = |diagnosis: &Diagnosis| diagnosis.rank.as_ref().map(|ranked| ranked.rank);
    let Some(part) = part else {
        let facts = &Facts::on(basis, machine, options);
        let mut diagnosis = answer(facts, survey, options, left_out);
        diagnosis.phases = phases(&left_out.phases, trace, &facts.host, link_gbps(&diagnosis));
        let rank = rank(&diagnosis);
        let launches = &mut diagnosis.launches;
        launches.compiled =
            std::mem::take(&mut launches.compiled).with_log(options.compile_log.as_ref(), rank);
        let more =
            more(&AnalysisScope { whole: &facts, facts, is_part: false, left_out, diagnosis: &diagnosis });
        return (diagnosis, more);
    };
    let facts = &Facts::on(basis.of_part(&part, options, &left_out.steady), machine, options);
    let mut diagnosis = answer(facts, survey, options, left_out);
    diagnosis.phases = phases(&left_out.phases, trace, &basis.host, link_gbps(&diagnosis));
    // Compilation mostly happens in steps that the figures leave out.
    diagnosis.launches.compiled =
        compiled::compiled(trace, &basis.host).with_log(options.compile_log.as_ref(), rank(&diagnosis));
    // Only callers that show the whole trace need all of its facts.
    let whole = &LazyCell::new(|| Facts::on(basis, machine, options));
    let more = more(&AnalysisScope { whole, facts, is_part: true, left_out, diagnosis: &diagnosis });
    (diagnosis, more)
}

fn answer(facts: &Facts<'_>, survey: Survey, options: &Options, left_out: &LeftOut) -> Diagnosis {
    let parts = || {
        // The findings need it soon.
        facts.host_work();
        let stages = FoundStages::of(facts, options);
        let attribution = attribution::attribution(facts, &options.blocks);
        (stages, attribution, critical::critical_path(facts), layer_waits(facts))
    };
    let (judgment, parts) = judge(facts, &survey, options, parts);
    let (FoundStages { stages, why_none, of_rank }, attribution, critical_path, layer_waits) = parts;
    let limitations = limits::limitations(&limits::Scope {
        facts,
        survey: &survey,
        options,
        left_out,
        cpu_copies: &judgment.cpu_copies,
        is_incomplete: judgment.is_incomplete,
        start_up: judgment.start_up.as_ref(),
        no_stages: why_none.as_deref(),
        has_blocks: attribution.is_some(),
    });
    let measured = options.measured_kernels.as_deref();
    // While the GPU waits for something else, its kernels do not matter.
    let kernels = (judgment.verdict.bound == Bound::Compute || measured.is_some())
        .then(|| kernels::kernels(facts, measured))
        .flatten();
    let window = window_facts(facts, left_out);
    let is_host_only = facts.timelines.is_empty();
    let cpu_collectives = if is_host_only {
        cpu_collectives::cpu_collectives(facts.trace, facts.window.hull())
    } else {
        Vec::new()
    };
    Diagnosis {
        schema: DIAGNOSIS_SCHEMA,
        throughput: throughput(&options.per_step, window.every_step()),
        kernel_totals: kernel_totals(facts),
        machine: machine_facts(facts, survey.gpus.len()),
        environment: facts.trace.origin().environment_with(|gpu| facts.runs_on(gpu)),
        source: survey.source,
        rank: survey.rank,
        window,
        phases: Vec::new(),
        verdict: judgment.verdict,
        bounds: judgment.bounds,
        prize: judgment.prize,
        breakdown: facts.breakdown.clone(),
        time: facts.time,
        kernel_waits_ms: verdict::kernel_waits_ms(facts),
        overlap: facts.overlap,
        devices: device_facts(facts),
        cpu_copies: judgment.cpu_copies,
        cpu_collectives,
        findings: judgment.findings,
        limitations,
        misfits: misfits(facts, options, left_out, || attribution.is_some()),
        attribution,
        stages,
        rank_stages: of_rank,
        layer_waits,
        critical_path,
        kernels,
        copies: facts.groups.clone(),
        collectives: facts.collective_groups.clone(),
        copies_around: copies_around(facts),
        collective_times: collective_times(facts),
        rank_lanes: rank_lanes(facts),
        idle: facts.idle.clone(),
        host: facts.host_work().to_vec(),
        contention: facts.contention.clone(),
        launches: facts.launches.clone(),
        synchronizations: facts.syncs.totals.clone(),
    }
}

/// What bounds the run and what to change.
struct Judgment {
    verdict: Verdict,
    bounds: Vec<ResourceBound>,
    prize: Option<Prize>,
    findings: Vec<Finding>,
    cpu_copies: Vec<CpuCopies>,
    is_incomplete: bool,
    start_up: Option<Withheld>,
}

/// The verdict, the findings and what they promise. The findings take longest: everything else runs beside them.
fn judge<T: Send>(
    facts: &Facts<'_>,
    survey: &Survey,
    options: &Options,
    others: impl FnOnce() -> T + Send,
) -> (Judgment, T) {
    let trace = facts.trace;
    let has_gpu = !facts.timelines.is_empty();
    let (link, limits, edges) = (&facts.link, &options.cpu_copies, &options.histogram_edges);
    let within = facts.window.hull();
    let terms = cpu_copies::Terms { link, limits, edges, within };
    // Copies of a program that computes on the CPU stay in host memory.
    let no_bus = has_gpu || facts.on_cpu().is_some();
    let cpu_copies = if no_bus { Vec::new() } else { cpu_copies::cpu_copies(trace, terms) };
    let start_up = start_up::reason(facts).filter(|_| has_gpu);
    let incomplete = why_incomplete(trace, survey).or_else(|| start_up.clone());
    let asked = match has_gpu && incomplete.is_none() {
        // Findings need the replay.
        true => join(|| facts.replay(), || Asked::of(facts)).1,
        false => None,
    };
    let verdict = || match &incomplete {
        Some(why) => Verdict::inconclusive(why, has_gpu),
        None if has_gpu => verdict::verdict(facts, asked.as_ref()),
        None => cpu_only::verdict(facts, survey, &cpu_copies),
    };
    let bounds = || asked.as_ref().map_or_else(Vec::new, |asked| resource_bounds(facts, asked));
    let ((others, verdict, bounds), mut findings) = join(
        || (others(), verdict(), bounds()),
        || if has_gpu { findings::findings(facts, asked.as_ref()) } else { Vec::new() },
    );
    if confidential::is_on(trace) {
        confidential::retain(&mut findings);
    }
    if verdict.bound != Bound::Compute && !verdict.between.contains(&Bound::Compute) {
        findings.retain(|finding| !finding.id.is_about_kernels());
    }
    findings::explaining_first(&mut findings, verdict.bound.resources(), facts.own_step_ms());
    let is_unknown = verdict.bound == Bound::Unknown;
    if is_unknown {
        findings::limit_to_visible(facts, &mut findings);
    }
    if incomplete.is_some() {
        // The lost work may have run during what looks like idle time.
        findings.retain(|finding| !finding.id.is_about_idle_time());
        for finding in findings.iter_mut().filter(|finding| !finding.id.is_about_correctness()) {
            finding.severity = Severity::Low;
            finding.saves_ms_per_step.low = 0.0;
            // What-ifs predict nothing for the start of a program.
            if start_up.is_some() && finding.saves_ms_per_step.high > 0.0 {
                (finding.saves_ms_per_step, finding.saving_known) = (Saving::NONE, false);
                finding.predicted = None;
            }
        }
    }
    // Promise nothing for a run with much missing, or whose time nobody can explain.
    let prize = if is_unknown { None } else { findings::prize(facts, &findings) };
    let is_incomplete = incomplete.is_some();
    (Judgment { verdict, bounds, prize, findings, cpu_copies, is_incomplete, start_up }, others)
}

/// The stages that the user gave or the program annotates.
struct FoundStages {
    stages: Option<Stages>,
    /// Why they cannot be analyzed.
    why_none: Option<String>,
    of_rank: Vec<RankStage>,
}

impl FoundStages {
    fn of(facts: &Facts<'_>, options: &Options) -> Self {
        let is_given = !options.stages.is_empty();
        let named = if is_given { Vec::new() } else { stages::likely(facts.trace, &facts.host) };
        let chosen = if is_given { &options.stages } else { &named };
        let of_rank = stages::rank_stages(facts, chosen);
        // Names that only look like stages do not all run equally often.
        let is_likely =
            of_rank.len() == chosen.len() && of_rank.windows(2).all(|pair| pair[0].items == pair[1].items);
        let answer = (chosen.len() > 1 && (is_given || is_likely)).then(|| stages::stages(facts, chosen));
        let (stages, why_none) = match answer {
            Some(StageAnswer::Stages(stages)) => (Some(stages), None),
            Some(StageAnswer::Nothing(why)) => (None, Some(why)),
            None => (None, None),
        };
        Self { stages, why_none, of_rank }
    }
}

/// The peak of the first GPU's link, unless it is assumed.
fn link_gbps(diagnosis: &Diagnosis) -> Option<f64> {
    let first = diagnosis.machine.gpus.first()?;
    (first.link.source != LinkSource::Assumed).then_some(first.link.peak_gbps)
}

fn machine_facts(facts: &Facts<'_>, listed: usize) -> MachineFacts {
    let trace = facts.trace;
    let link = |timeline: &DeviceTimeline| {
        let device = timeline.device;
        let name = gpu_name(trace, Some(device)).map(str::to_owned);
        GpuLink { device, name, link: facts.links.of(device).clone() }
    };
    MachineFacts { gpus: facts.timelines.iter().map(link).collect(), listed }
}

fn window_facts(facts: &Facts<'_>, left_out: &LeftOut) -> WindowFacts {
    WindowFacts {
        span_ms: timeline::whole(&facts.timelines).map_or(0.0, |whole| whole.length().as_millis()),
        steps: facts.window.times().map(|times| StepTimes {
            warmup_dropped: left_out.warm_up,
            outliers_dropped: left_out.others,
            unprofiled_ms: facts.unprofiled(),
            ..times
        }),
        with_outliers: left_out.with_outliers.clone(),
        outlier_count: left_out.outlier_count,
        outliers: left_out.outliers.clone(),
        step_count: facts.window.step_count(),
        baseline_ms: facts.own_step_ms(),
        unprofiled: facts.unprofiled(),
    }
}

fn device_facts(facts: &Facts<'_>) -> Vec<DeviceFacts> {
    let device = |(timeline, &(time, overlap)): (&DeviceTimeline, &(Times, Overlaps))| DeviceFacts {
        device: timeline.device,
        time,
        overlap,
    };
    facts.timelines.iter().zip(&facts.device_times).map(device).collect()
}

impl WindowFacts {
    /// All steps after the warm-up, including outliers.
    pub fn every_step(&self) -> Option<&StepTimes> {
        self.with_outliers.as_ref().or(self.steps.as_ref())
    }
}

impl Diagnosis {
    /// The number of steps that figures are divided by.
    pub fn step_count(&self) -> f64 {
        self.window.step_count
    }

    /// The unit of per-step figures.
    pub fn unit(&self) -> Unit {
        self.window.steps.as_ref().map_or(Unit::Trace, |steps| steps.found.unit())
    }
}
