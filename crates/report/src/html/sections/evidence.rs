//! A finding's evidence as rows: label and unit come from the key, see [`EvidenceUnit`].

use busbound_diagnosis::quantity::{bytes, count, milliseconds};
use busbound_diagnosis::{EvidenceUnit, Unit};
use serde_json::{Map, Value};

pub(super) struct Evidence {
    pub(super) what: String,
    pub(super) value: String,
}

/// Numbers, strings and booleans; lists are only in the JSON.
pub(super) fn rows(evidence: &Map<String, Value>, unit: Unit) -> Vec<Evidence> {
    evidence
        .iter()
        .filter_map(|(name, value)| {
            let value = match value {
                Value::Number(number) => quantity(name, number.as_f64()?),
                Value::String(text) => text.clone(),
                Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
                _ => return None,
            };
            Some(Evidence { what: words(name, unit), value })
        })
        .collect()
}

fn quantity(name: &str, value: f64) -> String {
    match EvidenceUnit::of(name) {
        Some(EvidenceUnit::Milliseconds) => milliseconds(value),
        Some(EvidenceUnit::Microseconds) => milliseconds(value / 1e3),
        Some(EvidenceUnit::GigabytesPerSecond) => format!("{value:.2} GB/s"),
        Some(EvidenceUnit::Bytes) => bytes(value as u64),
        Some(EvidenceUnit::Share) => format!("{:.0}%", 100.0 * value),
        Some(EvidenceUnit::Count) | None if value.fract() == 0.0 && value >= 0.0 => count(value as u64),
        Some(EvidenceUnit::Count) | None => format!("{value:.1}"),
    }
}

/// `host_blocked_ms_per_step` is `host blocked per step`; the unit is next to the value.
fn words(name: &str, unit: Unit) -> String {
    let (name, each) = match name.strip_suffix("_per_step") {
        Some(name) => (name, format!(" per {unit}")),
        None => (name, String::new()),
    };
    let kept = name.split('_').filter(|word| !matches!(*word, "ms" | "us"));
    let kept: Vec<&str> = kept.map(|word| if word == "gbps" { "rate" } else { word }).collect();
    // `ms_per_step` has no other word.
    let what = if kept.is_empty() { "time".to_owned() } else { kept.join(" ") };
    format!("{what}{each}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn units_come_from_names() {
        let Value::Object(map) = json!({
            "copies": 4800, "ms_per_step": 205.2, "pinned_gbps": 55.4, "bytes": 167_772_160, "place": null,
            "median_kernel_us": 3.1, "share_of_the_commonest_size": 1.0, "copies_per_step": 12.5, "operators": ["a"]
        }) else {
            unreachable!()
        };
        let rows: Vec<String> =
            rows(&map, Unit::Iteration).iter().map(|row| format!("{}: {}", row.what, row.value)).collect();
        for wanted in [
            "copies: 4,800",
            "time per iteration: 205 ms",
            "pinned rate: 55.40 GB/s",
            "bytes: 168 MB",
            "median kernel: 3.10 µs",
            "share of the commonest size: 100%",
            "copies per iteration: 12.5",
        ] {
            assert!(rows.iter().any(|row| row == wanted), "{wanted}: {rows:?}");
        }
        assert_eq!(rows.len(), 7, "{rows:?}");
    }
}
