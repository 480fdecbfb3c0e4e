//! Does the GPU wait for the next batch?

use busbound_cause::Resource;
use std::collections::BTreeMap;

use busbound_trace::{Event, EventKind, IntervalSet, NameId, TrackId};
use serde_json::json;

use super::common::copies::gaps_of;
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::analysis::facts::Facts;
use crate::analysis::input_loader::InputLoader;
use crate::quantity::{milliseconds, plural};
use crate::saving::Saving;
use crate::settings::{Proposal, Target};
use busbound_cause::idle::GapCause;

pub(super) static RULE: Rule = Rule {
    title: "Waiting for input",
    doing: "loading batches in more worker processes",
    precondition: "The host has CPU cores and memory for the workers.",
    basis: "bound: idle time inside the data loader",
    candidate: Candidate::None(
        "`workers=N` predicts a loader that moves from the training process to N workers; whether it is there now is not always visible.",
    ),
    effort: Effort::Setting,
    unless: &[],
    relieves: &[Resource::Input],
    check,
    document: Document {
        meaning: "The GPU is idle while the launching thread fetches the next batch.",
        computed: "Evidence: GPU idle time while the launching thread is inside `__next__` of a DataLoader is 3% or more of \
                   the time. Saving: 50% to 100% of that idle time. The number of workers is the time to fetch a batch over the rest \
                   of the step, with 25% to spare.",
        fix: "Load batches in worker processes (`num_workers`, `persistent_workers=True`, a higher `prefetch_factor`), and \
              move decoding out of the loop. Where decoding is the largest part of the fetching, do it on the GPU: \
              `torchvision.io.decode_jpeg(files, device=\"cuda\")` (nvJPEG), or NVIDIA DALI.",
        code: &[CODE],
        assumes: "The host has CPU cores and memory for the workers.",
    },
};

/// In [`CODE`]; the fix of a run has the number of its workers.
const EXAMPLE_WORKERS: &str = "num_workers=8";

const CODE: &str = "\
loader = DataLoader(dataset, batch_size, num_workers=8, persistent_workers=True,
                    prefetch_factor=4, pin_memory=True)";

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let idle = InputLoader::idle(facts)?;
    let (steps, unit) = (facts.steps(), facts.unit());
    let per = unit.per();
    let loader = Loader::of(facts)?;
    let (single, workers) = (loader.times.is_in_main_process, loader.times.workers());
    let (how, fix) = if single {
        (
            format!(
                " The DataLoader runs in the main process (num_workers=0) and fetches for {} of the {unit}, which takes {} without that.{}",
                milliseconds(loader.times.batch_ms),
                milliseconds(loader.times.rest_ms),
                loader.parts_text(),
            ),
            format!(
                "Use DataLoader(num_workers={workers}, persistent_workers=True, pin_memory=True): {workers} workers prepare the input of a {unit} \
                 in {}; the rest of the recorded {unit} takes {}{}.",
                milliseconds(loader.times.made_ms()),
                milliseconds(loader.times.rest_ms),
                if loader.times.made_ms() < loader.times.rest_ms {
                    ", so the GPU should no longer wait"
                } else {
                    ""
                },
            ),
        )
    } else {
        (
            String::new(),
            format!(
                "Use at least {} workers than now (num_workers; the trace does not show how many), with persistent_workers=True and a higher prefetch_factor. Move decoding out of the loop.",
                more_workers(loader.times.batch_ms / loader.times.rest_ms.max(f64::MIN_POSITIVE)),
            ),
        )
    };
    let fix = Fix::new(fix + loader.on_the_gpu()).code(CODE);
    let fix = if single {
        fix.in_code(EXAMPLE_WORKERS, format!("num_workers={workers}"))
            .doing(format!("using {workers} loader workers"))
    } else {
        fix
    };
    let mut evidence = json!({
        "gaps": idle.count,
        "idle_ms_per_step": idle.ms / steps,
        "longest_ms": idle.longest_ms,
        "single_process_loader": single,
        "fetch_ms_per_step": loader.times.batch_ms,
        "rest_of_step_ms": loader.times.rest_ms,
    });
    if single {
        evidence["workers"] = json!(workers);
    }
    for (part, ms) in &loader.parts {
        evidence[format!("fetch_{part}_ms_per_step")] = json!(ms);
    }
    Some(Draft {
        title: None,
        seen: format!(
            "{} in which the host fetches a batch: {}{per}.{how}",
            plural(idle.count, "idle gap", "idle gaps"),
            milliseconds(idle.ms / steps),
        ),
        evidence,
        saves: Saving { low: 0.5 * idle.ms / facts.gpu_steps(), high: idle.ms / facts.gpu_steps() },
        fix: if single { fix.settings(loader.proposals()) } else { fix },
        at: gaps_of(facts, GapCause::Input),
    })
}

/// What a data loader does per step.
/// This share more: `40% more`, `3x as many`.
fn more_workers(share: f64) -> String {
    match share {
        s if s < 0.95 => format!("{:.0}% more", (10.0 * s).ceil().max(1.0) * 10.0),
        s => format!("{:.0}x more", s.ceil()),
    }
}

struct Loader {
    times: InputLoader,
    /// What the fetch consists of, as far as operators show it.
    parts: Vec<(&'static str, f64)>,
}

impl Loader {
    fn of(facts: &Facts<'_>) -> Option<Self> {
        let times = InputLoader::of(facts)?;
        let mut parts: BTreeMap<&'static str, f64> = BTreeMap::new();
        for (track, times) in facts.host.launching_threads() {
            add_parts(facts, track, &times.input, &mut parts);
        }
        Some(Self { times, parts: parts.into_iter().map(|(part, ms)| (part, ms / facts.steps())).collect() })
    }

    /// Whether batches are copied from pageable memory is another finding's question.
    fn proposals(&self) -> [Proposal; 3] {
        [
            Proposal::new(Target::DataLoader, "num_workers", self.times.workers()),
            Proposal::new(Target::DataLoader, "persistent_workers", true),
            // Each worker has one batch ready while it makes the next: more only uses memory, if batches take about as long.
            Proposal::new(Target::DataLoader, "prefetch_factor", 2_u32),
        ]
    }

    /// What takes decoding to the GPU, if it is the largest part of the fetching.
    fn on_the_gpu(&self) -> &'static str {
        let of = |wanted: &dyn Fn(&str) -> bool| {
            self.parts.iter().filter(|(part, _)| wanted(part)).map(|(_, ms)| *ms).fold(0.0, f64::max)
        };
        let decode_ms = of(&|part| part == DECODE);
        if decode_ms < DECODES_MOSTLY * self.times.batch_ms || decode_ms < of(&|part| part != DECODE) {
            return "";
        }
        " Decoding is the largest part of it, and the GPU can do that: torchvision.io.decode_jpeg(files, device=\"cuda\") (nvJPEG) \
         in the training process, or a pipeline of NVIDIA DALI; videos with torchcodec's VideoDecoder(path, device=\"cuda\")."
    }

    fn parts_text(&self) -> String {
        let known: f64 = self.parts.iter().map(|(_, ms)| ms).sum();
        if self.parts.is_empty() || known < 0.05 * self.times.batch_ms {
            return String::new();
        }
        let mut parts: Vec<String> =
            self.parts.iter().map(|(part, ms)| format!("{part} {}", milliseconds(*ms))).collect();
        let is_apart = self.parts.iter().any(|(part, _)| [READ, DECODE].contains(part));
        let rest = if is_apart { "other (outside torch)" } else { "read and decode (outside torch)" };
        parts.push(format!("{rest} {}", milliseconds((self.times.batch_ms - known).max(0.0))));
        format!(" Of the fetching: {}.", parts.join(", "))
    }
}

/// From this share of the fetching on, decoding is what to change.
const DECODES_MOSTLY: f64 = 0.4;

const READ: &str = "read";
const DECODE: &str = "decode";

/// Whether the name of a Python frame, an operator or an annotation says that it reads or decodes.
fn reads_or_decodes(name: &str) -> Option<&'static str> {
    const DECODES: [&str; 8] = [
        "decode",
        "pil/imagefile.py",
        "pil/jpegimageplugin.py",
        "pil/pngimageplugin.py",
        "pil_loader",
        "cv2.imread",
        "decord/",
        "torchvision/io/video",
    ];
    const READS: [&str; 4] = ["read_file", "built-in method read of", "built-in function open", "npyio"];
    let name = name.to_ascii_lowercase();
    let has_one_of = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    let opens_image = name.contains("pil/image.py") && name.ends_with(": open");
    match () {
        () if has_one_of(&DECODES) => Some(DECODE),
        // An annotation of the program's own.
        () if has_one_of(&READS) || opens_image || name == READ || name.starts_with("read ") => Some(READ),
        () => None,
    }
}

/// What a tensor operator does for a batch.
fn part_of(name: &str) -> &'static str {
    match name {
        "aten::stack" | "aten::cat" => "collate",
        "aten::pin_memory" | "aten::_pin_memory" => "pin",
        "aten::copy_" | "aten::to" | "aten::_to_copy" | "aten::clone" => "copy",
        _ => "transform",
    }
}

/// Adds the time of the outermost operators, and of annotations and frames that read or decode, while a thread fetches a batch.
fn add_parts(
    facts: &Facts<'_>,
    track: TrackId,
    input: &IntervalSet,
    parts: &mut BTreeMap<&'static str, f64>,
) {
    let mut until = None;
    // A name is looked at once.
    let mut known: BTreeMap<NameId, Option<&'static str>> = BTreeMap::new();
    let mut by_name =
        |event: &Event<'_>| *known.entry(event.name_id()).or_insert_with(|| reads_or_decodes(event.name()));
    for event in facts.trace.track(track).events() {
        let is_inner = until.is_some_and(|until| event.start() < until);
        if is_inner || !input.covers(event.start()) {
            continue;
        }
        let part = match event.kind() {
            // The loader's own range is an operator too.
            EventKind::Operator if event.name().starts_with("enumerate(DataLoader)") => None,
            EventKind::Operator => Some(by_name(&event).unwrap_or_else(|| part_of(event.name()))),
            EventKind::Annotation | EventKind::PythonFrame => by_name(&event),
            _ => None,
        };
        if let Some(part) = part {
            until = Some(event.end());
            *parts.entry(part).or_default() += event.duration().as_millis();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DECODE, READ, reads_or_decodes};

    #[test]
    fn names_say_what_reads_and_what_decodes() {
        for name in [
            "read",
            "read shard",
            "image::read_file",
            "<built-in method read of _io.BufferedReader object at 0x7f>",
        ] {
            assert_eq!(reads_or_decodes(name), Some(READ), "{name}");
        }
        for name in [
            "decode",
            "image::decode_jpeg",
            "PIL/ImageFile.py(199): load",
            "torchvision/io/image.py(139): decode_jpeg",
        ] {
            assert_eq!(reads_or_decodes(name), Some(DECODE), "{name}");
        }
        assert_eq!(reads_or_decodes("PIL/Image.py(3280): open"), Some(READ));
        for name in ["cv2.imdecode", "<built-in method cv2.imread>", "decord/video_reader.py(80): get_batch"]
        {
            assert_eq!(reads_or_decodes(name), Some(DECODE), "{name}");
        }
        for name in ["PIL/Image.py(2200): resize", "aten::stack", "thread", "dataset.py(20): __getitem__"] {
            assert_eq!(reads_or_decodes(name), None, "{name}");
        }
    }
}
