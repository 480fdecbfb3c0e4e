//! Which graph is replayed? The recorded one, or the same without the cost of recording it.

use std::sync::Arc;

use busbound_cause::Model;

/// The graph of the steps as recorded, and without the cost of recording. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Models {
    recorded: Arc<Model>,
    without: Option<Arc<Without>>,
}

/// The graph without the cost of recording: as expected, and with the most and the least cost considered.
#[derive(Debug)]
struct Without {
    expected: Model,
    fast: Model,
    slow: Model,
}

/// How much the recording cost is assumed to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordingIs {
    Expected,
    Most,
    Least,
}

impl Models {
    /// Recording cost nothing, or its cost is not known.
    pub fn recorded(recorded: impl Into<Arc<Model>>) -> Self {
        Self { recorded: recorded.into(), without: None }
    }

    /// `fast` is without the most that recording may have cost, `slow` without the least.
    pub fn unprofiled(recorded: impl Into<Arc<Model>>, expected: Model, fast: Model, slow: Model) -> Self {
        let without = Without { expected, fast, slow };
        Self { recorded: recorded.into(), without: Some(Arc::new(without)) }
    }

    pub fn as_recorded(&self) -> &Model {
        &self.recorded
    }

    /// Without the cost of recording, if that is known.
    pub fn expected(&self) -> &Model {
        self.of(RecordingIs::Expected)
    }

    pub(super) fn is_recorded(&self) -> bool {
        self.without.is_none()
    }

    pub(super) fn of(&self, recording: RecordingIs) -> &Model {
        match (&self.without, recording) {
            (None, _) => &self.recorded,
            (Some(without), RecordingIs::Expected) => &without.expected,
            (Some(without), RecordingIs::Most) => &without.fast,
            (Some(without), RecordingIs::Least) => &without.slow,
        }
    }
}
