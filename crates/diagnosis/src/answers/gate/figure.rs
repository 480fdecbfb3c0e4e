//! Which figure does a name in a requirement mean? One of the catalog, or a rate that `--per-step` makes available.

use crate::answers::diagnosis::Diagnosis;
use crate::figures::FigureId;
use crate::per_step::PerStep;
use crate::unit::Unit;
use crate::words::closest;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GateFigure {
    Catalog(FigureId),
    /// E.g. `tokens_per_s`.
    PerSecond(String),
}

/// More names than this are not a hint.
const MOST_HINTS: usize = 5;

impl GateFigure {
    pub(super) fn named(name: &str, per_step: &[PerStep]) -> Option<Self> {
        let is_given = || per_step.iter().any(|given| given.figure() == name);
        FigureId::named(name)
            .map(Self::Catalog)
            .or_else(|| is_given().then(|| Self::PerSecond(name.to_owned())))
    }

    /// What to write instead of a name that no figure has.
    pub(super) fn hint(name: &str, per_step: &[PerStep]) -> String {
        let name = name.to_lowercase();
        let given: Vec<String> = per_step.iter().map(PerStep::figure).collect();
        if let Some(rate) = closest(&name, given.iter().map(String::as_str)) {
            return format!("did you mean {rate}?");
        }
        if let Some(figure) = FigureId::nearest(&name) {
            return format!("did you mean {figure}?");
        }
        if let Some(counted) = PerStep::counted_by(&name) {
            return format!("add --per-step {counted}=COUNT, with the {counted} that one step processes");
        }
        let similar: Vec<&str> = FigureId::ALL
            .iter()
            .map(|figure| figure.name())
            .filter(|known| !name.is_empty() && known.contains(&name))
            .take(MOST_HINTS)
            .collect();
        match similar.as_slice() {
            [] => "`busbound gate --help` lists them".to_owned(),
            similar => format!("did you mean {}?", similar.join(", ")),
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Catalog(figure) => figure.name(),
            Self::PerSecond(name) => name,
        }
    }

    pub(super) fn summary(&self) -> &'static str {
        match self {
            Self::Catalog(figure) => figure.summary(),
            Self::PerSecond(_) => "needs marked steps: --steps names them",
        }
    }

    /// In words: `ms per step`, `/s`.
    pub(super) fn unit(&self, unit: Unit) -> String {
        match self {
            Self::Catalog(figure) => figure.unit().phrase(unit),
            Self::PerSecond(_) => "/s".to_owned(),
        }
    }

    pub(super) fn of(&self, run: &Diagnosis) -> Option<f64> {
        match self {
            Self::Catalog(figure) => figure.of(run),
            Self::PerSecond(name) => run.throughput.iter().find(|rate| rate.name == *name)?.per_s,
        }
    }
}
