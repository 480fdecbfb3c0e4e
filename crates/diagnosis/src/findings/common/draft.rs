//! What does a check return when it finds evidence?

use busbound_trace::Interval;
use busbound_whatif::replay::Change;
use serde_json::Value;

use crate::saving::Saving;
use crate::settings::{Proposal, Target, Value as SettingValue};

/// What is specific to the run; the rest is in the [`Rule`](super::Rule).
#[derive(Debug)]
pub(crate) struct Draft {
    /// Replaces the rule's title.
    pub(crate) title: Option<String>,
    /// The evidence, in one or two sentences.
    pub(crate) seen: String,
    /// The figures behind the evidence, as a JSON object.
    pub(crate) evidence: Value,
    pub(crate) saves: Saving,
    pub(crate) fix: Fix,
    /// When it happens.
    pub(crate) at: Vec<Interval>,
}

/// The fix for this run.
#[derive(Debug)]
pub(crate) struct Fix {
    pub(super) text: String,
    /// Replaces the rule's.
    pub(super) doing: Option<String>,
    pub(super) code: Option<&'static str>,
    /// What the code has in place of a part of it: figures of the run.
    pub(super) in_code: Option<(&'static str, String)>,
    pub(super) settings: Vec<Proposal>,
    /// The what-if changes of this fix, where the rule has none.
    pub(super) changes: Option<Vec<Change>>,
    /// Whether it is known what the fix saves.
    pub(super) saving_known: bool,
    /// Whether the fix gains anything in this run, alone or after others.
    pub(super) gains: bool,
}

impl Fix {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            doing: None,
            code: None,
            in_code: None,
            settings: Vec::new(),
            changes: None,
            saving_known: true,
            gains: true,
        }
    }

    /// What the fix does in a few words, to follow "by", with figures of the run.
    pub(crate) fn doing(mut self, doing: impl Into<String>) -> Self {
        self.doing = Some(doing.into());
        self
    }

    /// For a fix that helps by an unknown amount: its saving is no number, and not zero.
    pub(crate) fn saving_known(mut self, is_known: bool) -> Self {
        self.saving_known = is_known;
        self
    }

    /// The fix in PyTorch. It must be one of the snippets in the documentation.
    pub(crate) fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// Puts a figure of the run in place of this part of the code.
    pub(crate) fn in_code(mut self, example: &'static str, own: String) -> Self {
        self.in_code = Some((example, own));
        self
    }

    /// The code of the fix, with the figures of the run.
    pub(super) fn own_code(&self) -> Option<String> {
        let code = self.code?;
        Some(match &self.in_code {
            Some((example, own)) => code.replace(example, own),
            None => code.to_owned(),
        })
    }

    /// What-if changes that make this fix, for a rule whose fixes differ.
    pub(crate) fn replayed_as(mut self, changes: Vec<Change>) -> Self {
        self.changes = Some(changes);
        self
    }

    /// For a fix that gains nothing in this run, whatever its draft says it saves: it is not replayed.
    pub(crate) fn gains_nothing(mut self) -> Self {
        self.gains = false;
        self
    }

    /// A launch setting that applies the fix, or part of it.
    pub(crate) fn setting(self, target: Target, key: &str, value: impl Into<SettingValue>) -> Self {
        self.settings([Proposal::new(target, key, value)])
    }

    pub(crate) fn settings(mut self, proposals: impl IntoIterator<Item = Proposal>) -> Self {
        self.settings.extend(proposals);
        self
    }
}
