//! Which launch settings does a diagnosis or a plan support?
//!
//! Each setting has its reason and its condition. Settings without evidence are left out.

mod of_diagnosis;
mod of_plan;
mod of_topology;

use serde::Serialize;

pub use of_diagnosis::advice_of_diagnosis;
pub use of_plan::{advice_of_ddp, advice_of_offload};
pub use of_topology::advice_of_topology;

use crate::settings::{Proposal, Target, Value};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting {
    pub target: Target,
    pub key: String,
    pub value: Value,
    /// The measurement or estimate that supports it.
    pub why: String,
    /// When it is worth it.
    pub when: String,
}

/// Settings, and their source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    pub from: String,
    /// The verdict, or the plan's answer.
    pub statement: String,
    pub settings: Vec<Setting>,
    /// What was found, with and without settings.
    pub remedies: Vec<Remedy>,
}

/// A fix, and where settings apply it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remedy {
    pub title: String,
    pub fix: String,
    pub targets: Vec<Target>,
}

impl Advice {
    /// The settings of one target.
    pub fn of(&self, target: Target) -> impl Iterator<Item = &Setting> {
        self.settings.iter().filter(move |setting| setting.target == target)
    }

    /// What this target has no settings for.
    pub fn without(&self, target: Target) -> impl Iterator<Item = &Remedy> {
        self.remedies.iter().filter(move |remedy| !remedy.targets.contains(&target))
    }
}

/// Collects settings with one reason.
struct Because<'a> {
    settings: &'a mut Vec<Setting>,
    why: String,
    when: String,
}

impl Because<'_> {
    fn set(&mut self, target: Target, key: &str, value: impl Into<Value>) -> &mut Self {
        self.take([Proposal::new(target, key, value)]);
        self
    }

    fn take(&mut self, proposals: impl IntoIterator<Item = Proposal>) {
        for Proposal { target, key, value } in proposals {
            // The first reason is the stronger one: findings are sorted by savings.
            if !self.settings.iter().any(|setting| setting.target == target && setting.key == key) {
                let (why, when) = (self.why.clone(), self.when.clone());
                self.settings.push(Setting { target, key, value, why, when });
            }
        }
    }
}
