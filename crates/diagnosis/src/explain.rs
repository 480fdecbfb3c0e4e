//! What does an id in an answer mean? Findings, verdicts, idle causes, figures, limitations and what-if changes, from
//! their registries, and the few terms that answers use.

use busbound_cause::idle::GapCause;
use busbound_whatif::replay::{About, all_changes};
use serde::Serialize;

use crate::figures::FigureId;
use crate::findings::FindingId;
use crate::limits::id::LimitationId;
use crate::unit::Unit;
use crate::verdict::Bound;
use crate::words::{UnknownName, closest};

/// What can be explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    Verdict,
    Finding,
    IdleCause,
    Figure,
    Limitation,
    /// A change that `busbound whatif` predicts.
    Change,
    Term,
}

impl Topic {
    pub fn describe(self) -> &'static str {
        match self {
            Self::Verdict => "verdict",
            Self::Finding => "finding",
            Self::IdleCause => "idle cause",
            Self::Figure => "figure",
            Self::Limitation => "limitation",
            Self::Change => "what-if change",
            Self::Term => "term",
        }
    }
}

/// One part of an explanation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Section {
    pub heading: &'static str,
    pub text: String,
    /// Whether the text is a program's, to be shown as it is.
    pub is_code: bool,
}

/// What an id means, how it is computed and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    pub id: &'static str,
    pub topic: Topic,
    pub title: String,
    pub sections: Vec<Section>,
}

fn section(heading: &'static str, text: &str) -> Section {
    Section { heading, text: text.to_owned(), is_code: false }
}

/// Everything that can be explained, by topic.
pub fn explanations() -> Vec<Explanation> {
    let verdicts = Bound::ALL.iter().copied().map(of_verdict);
    let findings = FindingId::ALL.iter().copied().map(explain_finding);
    let causes = GapCause::ALL.iter().copied().map(of_cause);
    let figures = FigureId::ALL.iter().copied().map(of_figure);
    let limitations = LimitationId::ALL.iter().copied().map(of_limitation);
    let changes = all_changes().map(of_change);
    let terms = TERMS.iter().map(of_term);
    verdicts
        .chain(findings)
        .chain(causes)
        .chain(figures)
        .chain(limitations)
        .chain(changes)
        .chain(terms)
        .collect()
}

/// What this id means; several where several topics have something of this name.
///
/// # Errors
/// If nothing has this id, with the closest one that something has.
pub fn explain(id: &str) -> Result<Vec<Explanation>, UnknownName> {
    let mut all = explanations();
    // Answers show titles too: `copying only`.
    let spelled = id.to_lowercase().replace([' ', '-'], "_");
    for is_meant in [
        &(|one: &Explanation| one.id == id) as &dyn Fn(&Explanation) -> bool,
        &|one| one.title.eq_ignore_ascii_case(id),
        // Idle causes and terms have longer titles: `Idle: waiting for a launch`, `Pinned and pageable memory`.
        &|one| {
            one.topic == Topic::IdleCause
                && one.title.to_lowercase().ends_with(&format!(": {}", id.to_lowercase()))
        },
        &|one| {
            one.topic == Topic::Term
                && one.title.to_lowercase().split(' ').any(|word| word == id.to_lowercase())
        },
        &|one| one.id == spelled,
    ] {
        if all.iter().any(is_meant) {
            all.retain(is_meant);
            return Ok(all);
        }
    }
    let near = closest(id, all.iter().map(|one| one.id));
    Err(UnknownName {
        what: "finding, verdict, idle cause, figure, limitation, what-if change or term",
        given: id.to_owned(),
        closest: near,
    })
}

/// What a finding means, how it is computed and how to fix it.
pub fn explain_finding(id: FindingId) -> Explanation {
    let document = id.document();
    let mut sections = vec![
        section("What it means", document.meaning),
        section("How it is computed", document.computed),
        section("How to fix it", document.fix),
    ];
    sections.extend(document.code.iter().enumerate().map(|(i, code)| Section {
        heading: if i == 0 { "In PyTorch" } else { "Or" },
        text: (*code).to_owned(),
        is_code: true,
    }));
    sections.push(section("Assumes", document.assumes));
    let changes = id.candidate().changes().unwrap_or_default();
    if !changes.is_empty() {
        let apply: Vec<String> = changes.iter().map(ToString::to_string).collect();
        sections
            .push(section("Try it", &format!("busbound whatif PATH --apply {}", apply.join(" --apply "))));
    }
    Explanation { id: id.as_str(), topic: Topic::Finding, title: id.title().to_owned(), sections }
}

fn of_verdict(bound: Bound) -> Explanation {
    let (meaning, next) = match bound {
        Bound::Transfer => (
            "Copies between host and device set the pace: without them, the step gets shorter by more than without anything else. \
             Either the GPU waits for them, or they keep the link busy all the time.",
            "Pin host memory, move copies to a second stream ahead of their use, or copy fewer bytes. The findings say which.",
        ),
        Bound::Communication => (
            "Collectives set the pace: without them, the step gets shorter by more than without anything else.",
            "Overlap communication with backward, merge small collectives, and look for a straggler: \
             busbound diagnose FOLDER compares all ranks.",
        ),
        Bound::Compute => (
            "Kernels take the largest part of the step.",
            "Findings, if there are any, say what else can be saved. The rest needs faster kernels (lower precision, fusion, \
             torch.compile).",
        ),
        Bound::Launch => (
            "The GPU runs out of work because the host launches too slowly.",
            "Launch less: CUDA graphs, torch.compile, larger batches, fewer small operators.",
        ),
        Bound::Host => (
            "The GPU waits while the host does work of its own: operators on the CPU, an optimizer on the CPU, memory \
             allocation, Python.",
            "Move that work to the GPU, or beside it: to another thread, or to the time in which the GPU is busy. -v lists what \
             the host did.",
        ),
        Bound::Sync => (
            "The host waits for the GPU (.item(), .cpu(), cudaStreamSynchronize) before it launches the next work, so its own \
             time is not hidden behind the GPU's; or host syncs keep several streams from overlapping.",
            "Remove host syncs from the loop or move them to its end.",
        ),
        Bound::Input => (
            "The GPU waits for the next batch of input.",
            "Give the DataLoader more workers, prefetch further, move preprocessing to the GPU.",
        ),
        Bound::Mixed => (
            "No single resource is most of the step; the two largest are named.",
            "Work on the first finding, record again, and look at what is next.",
        ),
        Bound::Unknown => (
            "Inconclusive: the trace does not show what the GPU waited for, or too much of it is missing.",
            "Record again as the limitations in the answer say, usually with CPU and CUDA activities for whole steps.",
        ),
    };
    Explanation {
        id: bound.id(),
        topic: Topic::Verdict,
        title: bound.title().to_owned(),
        sections: vec![
            section("What it means", meaning),
            section("What to do", next),
            section(
                "How it is computed",
                "The dependency graph of the steps is run again with each resource free: compute, copies, collectives, \
                 launching, other host work, input, and host syncs that are not needed. The verdict names the one that shortens \
                 the step most. If the next one gains at least half as much, the run is mixed, unless the first one is not compute and takes \
                 45% of the step. If a sync explains at least half \
                 of what the host costs, the sync is named.",
            ),
        ],
    }
}

fn of_cause(cause: GapCause) -> Explanation {
    let meaning = match cause {
        GapCause::Copy => {
            "The GPU is idle while the host is inside a copy call: the driver stages pageable memory, or the call waits for \
             the copy to end."
        }
        GapCause::Launch => {
            "The GPU has no work queued. The host is busy launching: it is inside launch calls, or in the short work between \
             two of them."
        }
        GapCause::Synchronization => {
            "The host was still inside a call that waits for the GPU, although the GPU had finished, or waited for something \
             else."
        }
        GapCause::Input => "The host waits for the next batch from the DataLoader.",
        GapCause::Host => {
            "The host had work of its own before the next launch: operators on the CPU, memory allocation, Python, or \
             something that the profiler does not record."
        }
        GapCause::Queued => {
            "The work was launched in time and still did not start. It waited for something that this trace does not show: \
             another process, another rank, or work that was not recorded."
        }
        GapCause::KernelGap => {
            "The short gap between two kernels that are already queued. Nobody can remove it."
        }
        GapCause::Unexplained => {
            "The trace does not show what the GPU waited for: the launch of the next work is not in it, or a CUDA graph ran \
             without a record of its work."
        }
    };
    Explanation {
        id: cause.id(),
        topic: Topic::IdleCause,
        title: format!("Idle: {}", cause.describe()),
        sections: vec![section("What it means", meaning)],
    }
}

fn of_figure(figure: FigureId) -> Explanation {
    let unit = figure.unit().phrase(Unit::Step);
    let mut sections = vec![
        section("What it is", figure.definition()),
        section("Unit", &unit),
        section("Better", figure.better().word()),
        section("Use it", &format!("busbound gate PATH --require '{}<…'", figure.name())),
    ];
    sections.retain(|section| !section.text.is_empty());
    let (id, title) = (figure.name(), figure.label().to_owned());
    Explanation { id, topic: Topic::Figure, title, sections }
}

fn of_change(about: About) -> Explanation {
    let apply = format!("busbound whatif PATH --apply {}", about.spelling);
    let mut sections = vec![
        section("What it predicts", about.help),
        section("What to do", about.effort),
        section("Assumes", about.precondition),
    ];
    if about.depends_on_data {
        sections.push(section(
            "Check",
            "Which work needs which result is not visible in a trace: check that what moves does not need what it then runs beside.",
        ));
    }
    sections.push(section("Try it", &apply));
    Explanation { id: about.name, topic: Topic::Change, title: format!("What if: {}", about.doing), sections }
}

fn of_limitation(id: LimitationId) -> Explanation {
    Explanation {
        id: id.as_str(),
        topic: Topic::Limitation,
        title: id.meaning().split(". ").next().unwrap_or_default().trim_end_matches('.').to_owned(),
        sections: vec![section("What it means", id.meaning())],
    }
}

/// A word that answers use: its id, its title, what it means and how it is computed.
struct Term {
    id: &'static str,
    title: &'static str,
    meaning: &'static str,
    computed: &'static str,
    next: &'static str,
}

const TERMS: [Term; 8] = [
    Term {
        id: "step",
        title: "Step",
        meaning: "One pass of the program's loop: a training step, a batch, a token. Figures are per step.",
        computed: "In this order: the annotation given with --steps; the annotations that the program marks steps with \
                   (ProfilerStep#, NVTX ranges); else a pattern of launches that repeats, called an iteration. If there is none, \
                   figures are for the whole trace.",
        next: "If the answer counts something else as a step, name its annotation: --steps train_step.",
    },
    Term {
        id: "phases",
        title: "Phases",
        meaning: "Loading of weights, evaluation and checkpoints: what a run does apart from its steps. They are listed with their time and what they copy; \
                  loading also with what bounds it: the link, copies below its rate, the disk, the page cache, deserialization, operators or other code on the CPU, or inconclusive.",
        computed: "Ranges named busbound:phase=NAME; else ranges named like from_pretrained, load_state_dict, evaluate, validation or save_checkpoint, and \
                   the functions of torch.load, torch.save, transformers and safetensors where Python stacks are recorded; else eight or more copies of 256 MiB in all \
                   before the first step, with hardly a kernel and hardly a byte back. Forward passes that follow each other between training steps, with no backward pass and no optimizer, \
                   are evaluation (inferred). A step with a tenth of its time in a phase is left out of the other figures, if at least \
                   three others in a row are left. Recordings of busbound record tell disk, page cache and CPU apart; in other traces they look the same, and the answer is inconclusive.",
        next: "Mark phases: with busbound.phase(\"load\"): in Python, or an NVTX range busbound:phase=load. Names with a meaning are load, eval and checkpoint.",
    },
    Term {
        id: "pinned",
        title: "Pinned and pageable memory",
        meaning: "Pinned (page-locked) host memory stays where it is, so the GPU copies it at the full rate of the link while the \
                  host continues. Pageable memory is all other host memory: the driver first copies it into pinned buffers of its \
                  own (staging), which is several times slower, and the call returns only when that is done.",
        computed: "The profiler records the kind of memory with each copy.",
        next: "pin_memory() once, for buffers that are reused; DataLoader(pin_memory=True) for batches.",
    },
    Term {
        id: "critical_path",
        title: "Critical path",
        meaning: "The chain of work that a step cannot be shorter than: each piece waits for the one before it. Work beside the \
                  chain can get slower, up to a point, without changing the step.",
        computed: "From the end of each step backward, always to what the work waited for last. Dependencies are recorded (stream \
                   order, events, syncs) or inferred from timing.",
        next: "Shares of the path say where the step's end comes from. The verdict asks what the step gains without a resource, \
               which can be another one: busbound explain bounds.",
    },
    Term {
        id: "headroom",
        title: "Headroom",
        meaning: "What a step takes now minus what it would take if what bounds it took no time.",
        computed: "As `bounds`, for all resources of the verdict together.",
        next: "The findings say what each fix gains: less if it removes only a part, more if it also removes host work or waits around it.",
    },
    Term {
        id: "bounds",
        title: "If it took no time",
        meaning: "What a step would take if one resource took no time and everything else stayed the same. A resource bounds a \
                  step if making it faster makes the step shorter. A resource that is busy all the time but hidden behind \
                  another one gains nothing. Resources: compute (kernels, and copies within the GPU), H2D, D2H and peer \
                  copies, collectives, launches (launch calls and the short host work between them), host work (operators on \
                  the CPU, allocation, Python), input (waiting for the next batch) and host syncs that the program could do \
                  without.",
        computed: "The dependency graph of the analyzed steps is run again once with the resource 10% faster and once with it \
                   free. Times start from the step without the profiler, where that is known. Gains do not add up: two \
                   resources that hide each other gain nothing alone, and much together. `then compute-bound` is the same question \
                   again, with what bounds the step free.",
        next: "Work on the resource with the largest gain. A change that affects only this resource gains less. One that affects \
               several can gain more: CUDA graphs remove launches and the host work between them. A finding says what its fix gains.",
    },
    Term {
        id: "unprofiled",
        title: "Without the profiler",
        meaning: "A profiler slows down the host, so a recorded step takes longer than the same step without it. Where the two \
                  differ by more than 3%, the answer shows both. Verdicts and predictions start from the step without the \
                  profiler; the bar and its parts show the recorded one.",
        computed: "In this order: the time given with --wall; steps that busbound.profiler_handler timed while nothing was \
                   recorded (measured); else the recorded step minus what each recorded event costs (estimated). The cost per \
                   event is measured by `busbound bench` if --machine has its profile, else it is a usual one, and the range \
                   allows for about two thirds and four thirds of that cost.",
        next: "Time a few steps without the profiler and give the result with --wall 31.8ms, or record with \
               busbound.profiler_handler, which times them itself.",
    },
    Term {
        id: "exposed",
        title: "Exposed",
        meaning: "Not overlapped with kernels: a copy is exposed while no kernel runs on its GPU, communication while no \
                  compute kernel runs.",
        computed: "The union of the copies minus the union of the kernels, per GPU, averaged over steps.",
        next: "Exposed time is what the GPU loses at most. What a step gains can be less, because something else may take its \
               place: busbound explain bounds.",
    },
];

fn of_term(term: &Term) -> Explanation {
    Explanation {
        id: term.id,
        topic: Topic::Term,
        title: term.title.to_owned(),
        sections: vec![
            section("What it means", term.meaning),
            section("How it is computed", term.computed),
            section("What to do", term.next),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_has_an_explanation_with_words() {
        for one in explanations() {
            assert!(!one.sections.is_empty() && one.sections.iter().all(|s| !s.text.is_empty()), "{one:?}");
            assert!(explain(one.id).unwrap().contains(&one));
        }
    }

    #[test]
    fn a_typo_names_the_closest_id() {
        assert_eq!(explain("pagable_copies").unwrap_err().closest, Some("pageable_copies"));
        assert_eq!(explain("zzz").unwrap_err().closest, None);
    }
}
