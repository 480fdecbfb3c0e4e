//! How much of a step do these bytes take on the bus?

use serde::Serialize;

use super::{BadInput, ensure};

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Budget {
    pub bytes: f64,
    pub step_ms: Option<f64>,
    pub rates: Vec<BudgetRate>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetRate {
    /// What the rate is, such as the line peak or the observed rate.
    pub what: String,
    pub gbps: f64,
    pub ms: f64,
    /// Share of the step, 0 to 1; `null` without a step time.
    pub share: Option<f64>,
}

impl Budget {
    /// # Errors
    /// If the bytes, the step time or a rate are not above zero.
    pub fn plan(bytes: f64, step_ms: Option<f64>, rates: &[(&str, f64)]) -> Result<Self, BadInput> {
        ensure(bytes > 0.0 && bytes.is_finite(), "--bytes", "above zero", bytes)?;
        ensure(step_ms.is_none_or(|ms| ms > 0.0), "--step", "above zero", step_ms.unwrap_or(0.0))?;
        let rate = |(what, gbps): &(&str, f64)| {
            ensure(*gbps > 0.0 && gbps.is_finite(), "the rate", "above zero", gbps)?;
            let ms = bytes / gbps / 1e6;
            Ok(BudgetRate { what: (*what).to_owned(), gbps: *gbps, ms, share: step_ms.map(|step| ms / step) })
        };
        Ok(Self { bytes, step_ms, rates: rates.iter().map(rate).collect::<Result<_, BadInput>>()? })
    }
}

pub const FORMULAS: &[&str] = &["time = bytes / rate; share = time / step"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forty_layers_of_168_mb_take_107_ms() {
        let budget = Budget::plan(40.0 * 168e6, Some(1000.0), &[("line peak", 63.0)]).unwrap();
        assert!((budget.rates[0].ms - 106.7).abs() < 0.1);
        assert!((budget.rates[0].share.unwrap() - 0.1067).abs() < 1e-4);
        assert!(Budget::plan(0.0, None, &[]).is_err());
        assert!(Budget::plan(1.0, Some(0.0), &[]).is_err());
    }
}
