//! Which phase of a run does a name stand for?

use busbound_trace::EventKind;

use super::PhaseKind;

/// Ranges with this at the start of their name mark a phase; its name follows.
pub(crate) const MARK: &str = "busbound:phase=";

/// Words that stand for loading weights, in a row.
const LOADING: [&[&str]; 7] = [
    &["from", "pretrained"],
    &["load", "state", "dict"],
    &["load", "model"],
    &["load", "weights"],
    &["load", "checkpoint"],
    &["model", "loading"],
    &["weight", "loading"],
];
const SAVING: [&[&str]; 6] = [
    &["save", "checkpoint"],
    &["checkpoint", "save"],
    &["save", "pretrained"],
    &["save", "model"],
    &["save", "weights"],
    &["torch", "save"],
];
const EVALUATING: [&[&str]; 8] = [
    &["eval"],
    &["evaluate"],
    &["evaluation"],
    &["validate"],
    &["validation"],
    &["val", "step"],
    &["val", "loop"],
    &["val", "epoch"],
];

/// The functions of Python frames (`torch/serialization.py(1392): load`) that load or save, with a part of their file.
const FRAMES: [(&str, &str, PhaseKind); 8] = [
    ("", "from_pretrained", PhaseKind::Loading),
    ("", "load_state_dict", PhaseKind::Loading),
    ("torch/serialization.py", "load", PhaseKind::Loading),
    ("safetensors/", "load_file", PhaseKind::Loading),
    ("", "save_pretrained", PhaseKind::Checkpoint),
    ("", "save_checkpoint", PhaseKind::Checkpoint),
    ("torch/serialization.py", "save", PhaseKind::Checkpoint),
    ("safetensors/", "save_file", PhaseKind::Checkpoint),
];

/// The phase that a range or a function of this name is.
pub(super) fn kind_of(kind: EventKind, name: &str) -> Option<PhaseKind> {
    match kind {
        EventKind::Annotation => of_annotation(name),
        EventKind::PythonFrame => {
            let (file, function) = name.rsplit_once(": ")?;
            let is = |(of, called, _): &&(&str, &str, PhaseKind)| file.contains(of) && function == *called;
            FRAMES.iter().find(is).map(|(.., kind)| *kind)
        }
        _ => None,
    }
}

fn of_annotation(name: &str) -> Option<PhaseKind> {
    if let Some(marked) = name.strip_prefix(MARK) {
        return Some(of_mark(marked));
    }
    // Names of C++ functions: `autograd::engine::evaluate_function`.
    if name.contains("::") {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let has =
        |list: &[&[&str]]| list.iter().any(|wanted| words.windows(wanted.len()).any(|some| some == *wanted));
    match () {
        () if has(&SAVING) => Some(PhaseKind::Checkpoint),
        () if has(&LOADING) => Some(PhaseKind::Loading),
        () if has(&EVALUATING) => Some(PhaseKind::Evaluation),
        () => None,
    }
}

/// The phase that the program marked with a name.
fn of_mark(marked: &str) -> PhaseKind {
    match marked.to_ascii_lowercase().as_str() {
        "load" | "loading" => PhaseKind::Loading,
        "save" | "saving" | "checkpoint" | "checkpointing" => PhaseKind::Checkpoint,
        "eval" | "evaluation" | "validation" => PhaseKind::Evaluation,
        _ => PhaseKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_phases_are_recognized_and_others_are_not() {
        let of = |name| kind_of(EventKind::Annotation, name);
        for (name, kind) in [
            ("busbound:phase=load", PhaseKind::Loading),
            ("busbound:phase=eval", PhaseKind::Evaluation),
            ("busbound:phase=generate", PhaseKind::Other),
            ("from_pretrained", PhaseKind::Loading),
            ("Load weights", PhaseKind::Loading),
            ("[pl][profile][Strategy]SingleDeviceStrategy.validation_step", PhaseKind::Evaluation),
            ("eval", PhaseKind::Evaluation),
            ("save_checkpoint", PhaseKind::Checkpoint),
        ] {
            assert_eq!(of(name), Some(kind), "{name}");
        }
        for name in [
            "ProfilerStep#7",
            "autograd::engine::evaluate_function: AddmmBackward0",
            "CheckpointFunction",
            "[pl][profile][Callback]ModelCheckpoint.on_train_batch_end",
            "enumerate(DataLoader)",
            "load",
            "retrieval",
        ] {
            assert_eq!(of(name), None, "{name}");
        }
        let frame = |name| kind_of(EventKind::PythonFrame, name);
        assert_eq!(frame("torch/serialization.py(1392): load"), Some(PhaseKind::Loading));
        assert_eq!(frame("torch/serialization.py(930): save"), Some(PhaseKind::Checkpoint));
        assert_eq!(frame("json/__init__.py(299): load"), None);
        assert_eq!(frame("train.py(10): evaluate"), None, "frames say what loads and saves only");
        assert_eq!(kind_of(EventKind::Operator, "eval"), None);
    }
}
