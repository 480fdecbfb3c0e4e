//! How long did a device wait for one kind of host work? Shared by the findings about host work.

use busbound_cause::HostUse;
use busbound_cause::idle::{GapCause, Piece};
use busbound_trace::{Event, Interval, Nanos};
use serde_json::{Value, json};

use crate::analysis::facts::Facts;
use crate::quantity::milliseconds;
use crate::saving::Saving;

/// Share of the time. Host work that the devices wait for less is not reported.
pub(in crate::findings) const WORTH_IT: f64 = 0.03;

/// Idle time in which the host did its own work.
pub(in crate::findings) struct HostIdle {
    /// Milliseconds per step.
    pub(in crate::findings) ms: f64,
    /// What took the time, most first.
    pub(in crate::findings) operators: Vec<String>,
    pub(in crate::findings) at: Vec<Interval>,
}

impl HostIdle {
    /// `None` if it is less than this share of the time.
    pub(in crate::findings) fn of(facts: &Facts<'_>, what: HostUse, share: f64) -> Option<Self> {
        let work = facts.host_work().iter().find(|work| work.what == what)?;
        let is_worth_it = work.ms >= share * facts.step_ms();
        is_worth_it.then(|| Self {
            ms: work.ms,
            operators: work.operators.clone(),
            at: host_gaps(facts, what).map(|gap| gap.interval).collect(),
        })
    }

    /// Drops pieces that are shorter than this.
    pub(in crate::findings) fn keep_longer(&mut self, facts: &Facts<'_>, least: Nanos) {
        self.at.retain(|gap| gap.length() >= least);
        let total = self.at.iter().map(|gap| gap.length()).sum::<Nanos>();
        self.ms = facts.breakdown.averaged(total.as_millis()).unwrap_or(0.0);
    }

    /// `1.80 ms/step (aten::index_select, aten::copy_)`.
    pub(in crate::findings) fn describe(&self, facts: &Facts<'_>) -> String {
        let names = self.operators.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
        format!("{}/{} ({names})", milliseconds(self.ms), facts.unit())
    }

    pub(in crate::findings) fn evidence(&self) -> Value {
        json!({ "idle_ms_per_step": self.ms, "operators": self.operators, "gaps": self.at.len() })
    }

    /// A part of this idle time.
    pub(in crate::findings) fn saving(&self, low: f64) -> Saving {
        Saving { low: low * self.ms, high: self.ms }
    }
}

/// How many calls these are, and how long they take.
pub(in crate::findings) fn number_and_ms<'c>(calls: impl Iterator<Item = Event<'c>>) -> (u64, f64) {
    calls.fold((0, 0.0), |(number, ms), call| (number + 1, ms + call.duration().as_millis()))
}

/// Idle time in which the host did this.
pub(in crate::findings) fn host_gaps(facts: &Facts<'_>, what: HostUse) -> impl Iterator<Item = Piece> {
    facts.gaps.pieces().filter(move |gap| gap.cause == GapCause::Host && gap.host == Some(what))
}
