//! Which figure does a name in a requirement mean? One of the catalog, or a rate that `--per-step` makes available.

use busbound_machine::spelling::did_you_mean;

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

/// Names that are suggested for a typo.
const MOST_SIMILAR: usize = 3;
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
        if let Some(counted) = PerStep::counted_by(&name) {
            let known = closest(counted, per_step.iter().map(|given| given.name.as_str()));
            return match per_step.iter().find(|given| Some(given.name.as_str()) == known) {
                Some(known) => format!("did you mean {}?", known.figure()),
                None => {
                    format!("add --per-step {counted}=COUNT, with the {counted} that one step processes")
                }
            };
        }
        if let Some(figures) =
            did_you_mean(&name, FigureId::ALL.iter().map(|figure| figure.name()), MOST_SIMILAR)
        {
            return figures;
        }
        let similar: Vec<&str> = FigureId::ALL
            .iter()
            .map(|figure| figure.name())
            .filter(|known| !name.is_empty() && known.contains(&name))
            .take(MOST_HINTS)
            .collect();
        match similar.as_slice() {
            [] => "busbound gate --help lists the figures".to_owned(),
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
    /// Next to a number: `ms`, `GB/s`; empty for counts.
    pub(super) fn symbol(&self) -> &'static str {
        match self {
            Self::Catalog(figure) => figure.unit().symbol(),
            Self::PerSecond(_) => "/s",
        }
    }

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
