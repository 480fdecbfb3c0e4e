//! How much of a step do these bytes take on the bus?

use busbound_machine::{HostMemory, LinkFacts};
use serde::Serialize;

use super::{BadInput, ensure};

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetInputs {
    /// Per step, in one direction.
    pub bytes: f64,
    /// Size of each copy.
    pub copy_bytes: f64,
    pub step_ms: Option<f64>,
    pub link: LinkFacts,
    /// Whether to show what pageable host memory reaches.
    pub pageable: bool,
    pub observed_gbps: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Budget {
    pub inputs: BudgetInputs,
    pub copies: u64,
    pub rates: Vec<BudgetRate>,
    /// Index of the rate that the statement is about: the observed one, else pinned copies as they are issued.
    pub headline: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetRate {
    pub what: BudgetBasis,
    pub gbps: f64,
    pub ms: f64,
    /// Share of the step, 0 to 1; `null` without a step time.
    pub share: Option<f64>,
}

/// What a rate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum BudgetBasis {
    LinePeak,
    /// Copies queued one after another, without a wait in between.
    PinnedQueued,
    /// One copy at a time, each with the latency of a single copy.
    PinnedSingle,
    PageableSingle,
    Observed,
}

impl Budget {
    /// # Errors
    /// If the bytes, the step time or a rate are not above zero.
    pub fn plan(inputs: BudgetInputs) -> Result<Self, BadInput> {
        let BudgetInputs { bytes, copy_bytes, step_ms, .. } = inputs;
        ensure(bytes > 0.0 && bytes.is_finite(), "--bytes", "above zero", bytes)?;
        ensure(
            copy_bytes >= 1.0 && copy_bytes <= bytes,
            "--copy",
            "above zero and at most --bytes",
            copy_bytes,
        )?;
        ensure(step_ms.is_none_or(|ms| ms > 0.0), "--step", "above zero", step_ms.unwrap_or(0.0))?;
        let observed = inputs.observed_gbps;
        ensure(observed.is_none_or(|gbps| gbps > 0.0), "--observed", "above zero", observed.unwrap_or(0.0))?;
        let (link, copy) = (&inputs.link, copy_bytes as u64);
        let single = |memory| link.single_gbps(copy, memory);
        let copies = (bytes / copy_bytes).ceil() as u64;
        let mut rates = vec![(BudgetBasis::LinePeak, link.peak_gbps)];
        if copies > 1 {
            rates.push((BudgetBasis::PinnedQueued, link.expected_gbps(copy, HostMemory::Pinned)));
        }
        rates.push((BudgetBasis::PinnedSingle, single(HostMemory::Pinned)));
        if inputs.pageable {
            rates.push((BudgetBasis::PageableSingle, single(HostMemory::Pageable)));
        }
        rates.extend(observed.map(|gbps| (BudgetBasis::Observed, gbps)));
        let rate = |&(what, gbps): &(BudgetBasis, f64)| {
            let ms = bytes / gbps / 1e6;
            BudgetRate { what, gbps, ms, share: step_ms.map(|step| ms / step) }
        };
        let wanted = match () {
            () if observed.is_some() => BudgetBasis::Observed,
            () if inputs.pageable => BudgetBasis::PageableSingle,
            () if copies > 1 => BudgetBasis::PinnedQueued,
            () => BudgetBasis::PinnedSingle,
        };
        let headline = rates.iter().position(|(what, _)| *what == wanted).unwrap_or(0);
        Ok(Self { copies, headline, rates: rates.iter().map(rate).collect(), inputs })
    }
}

pub const FORMULAS: &[&str] = &[
    "time = bytes / rate; share = time / step",
    "rate of a copy = its size / time of a copy of that size: measured where the link is a profile of `busbound bench`, else the H200's curve scaled to the link; one at a time includes the latency of each copy",
];

#[cfg(test)]
mod tests {
    use busbound_machine::{Machine, MachineProfile};

    use super::*;

    fn inputs(bytes: f64, copy_bytes: f64, link: &str) -> BudgetInputs {
        let link = Machine::named(link).unwrap().link_of(None);
        BudgetInputs { bytes, copy_bytes, step_ms: None, link, pageable: false, observed_gbps: None }
    }

    fn of(budget: &Budget, what: BudgetBasis) -> &BudgetRate {
        budget.rates.iter().find(|rate| rate.what == what).unwrap()
    }

    #[test]
    fn forty_layers_of_168_mb_take_107_ms() {
        let step = BudgetInputs { step_ms: Some(1000.0), ..inputs(40.0 * 168e6, 168e6, "pcie5x16") };
        let budget = Budget::plan(step).unwrap();
        let peak = of(&budget, BudgetBasis::LinePeak);
        assert!((peak.ms - 106.7).abs() < 0.1 && (peak.share.unwrap() - 0.1067).abs() < 1e-4, "{peak:?}");
        assert_eq!((budget.copies, budget.rates[budget.headline].what), (40, BudgetBasis::PinnedQueued));
    }

    /// One 4 kB copy took 2.63 µs, the time of many queued ones; `bench` measures 10 µs for one at a time.
    #[test]
    fn one_copy_has_the_latency_of_one_copy() {
        let budget = Budget::plan(inputs(4096.0, 4096.0, "pcie4x16")).unwrap();
        let one = &budget.rates[budget.headline];
        assert_eq!(one.what, BudgetBasis::PinnedSingle);
        assert!((0.008..0.015).contains(&one.ms), "{}", one.ms);
        let json = include_str!("../../../../fixtures/machines/h200.json");
        let link = Machine::measured(MachineProfile::parse(json).unwrap()).link_of(None);
        let measured = Budget::plan(BudgetInputs { link, ..inputs(4096.0, 4096.0, "h200") }).unwrap();
        let one = &measured.rates[measured.headline];
        assert!((0.008..0.012).contains(&one.ms), "{}", one.ms);
    }

    /// The headline was that of pageable memory, which nobody had asked for.
    #[test]
    fn memory_is_pinned_unless_asked() {
        let pinned = Budget::plan(inputs(1e8, 1e8, "pcie5x16")).unwrap();
        assert!(pinned.rates.iter().all(|rate| rate.what != BudgetBasis::PageableSingle));
        let asked = Budget::plan(BudgetInputs { pageable: true, ..inputs(1e8, 1e8, "pcie5x16") }).unwrap();
        assert_eq!(asked.rates[asked.headline].what, BudgetBasis::PageableSingle);
        assert!(asked.rates[asked.headline].ms > 3.0 * pinned.rates[pinned.headline].ms);
    }

    #[test]
    fn invalid_input_is_rejected() {
        for wrong in [
            inputs(0.0, 1.0, "h200"),
            inputs(10.0, 20.0, "h200"),
            BudgetInputs { step_ms: Some(0.0), ..inputs(10.0, 10.0, "h200") },
            BudgetInputs { observed_gbps: Some(0.0), ..inputs(10.0, 10.0, "h200") },
        ] {
            assert!(Budget::plan(wrong).is_err());
        }
    }
}
