//! In which unit is a number among a finding's evidence? Its key says so.
//!
//! A key is words joined by `_`. One of them names the unit (`host_blocked_ms_per_step`) or what is counted
//! (`copies_per_step`); [`UNITS`] lists all of them. Numbers with `_per_step` at the end are per step.

/// The unit of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvidenceUnit {
    Milliseconds,
    Microseconds,
    /// 10⁹ bytes per second.
    GigabytesPerSecond,
    Bytes,
    /// From 0 to 1.
    Share,
    Count,
}

/// The words that name a unit, then those that name what is counted or numbered.
const UNITS: &[(&str, EvidenceUnit)] = &[
    ("ms", EvidenceUnit::Milliseconds),
    ("us", EvidenceUnit::Microseconds),
    ("gbps", EvidenceUnit::GigabytesPerSecond),
    ("bytes", EvidenceUnit::Bytes),
    ("share", EvidenceUnit::Share),
    ("blocks", EvidenceUnit::Count),
    ("calls", EvidenceUnit::Count),
    ("collectives", EvidenceUnit::Count),
    ("copies", EvidenceUnit::Count),
    ("faults", EvidenceUnit::Count),
    ("gaps", EvidenceUnit::Count),
    ("kernels", EvidenceUnit::Count),
    ("launches", EvidenceUnit::Count),
    ("migrations", EvidenceUnit::Count),
    ("pairs", EvidenceUnit::Count),
    ("runs", EvidenceUnit::Count),
    ("stream", EvidenceUnit::Count),
    ("stretches", EvidenceUnit::Count),
    ("syncs", EvidenceUnit::Count),
    ("turns", EvidenceUnit::Count),
];

impl EvidenceUnit {
    /// The unit of the number with this key; `None` if the key names none.
    pub fn of(key: &str) -> Option<Self> {
        let has = |unit: &str| key.split('_').any(|word| word == unit);
        UNITS.iter().find(|(word, _)| has(word)).map(|(_, unit)| *unit)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Keys of text, lists and booleans, which have no unit.
    const WITHOUT_UNIT: &[&str] = &[
        "account",
        "comparisons",
        "cpu_nodes",
        "direction",
        "first_place",
        "framework",
        "frames_recorded",
        "garbage_collection",
        "inferred",
        "gpu_nodes",
        "host_place",
        "kernel",
        "link",
        "link_source",
        "longest_call",
        "memory_nodes",
        "most",
        "operators",
        "other_places",
        "pattern",
        "place",
        "scatter_method",
        "scatter_source",
        "second_place",
        "single_process_loader",
    ];

    /// The keys in the `json!` literals of a source: a short text before a colon.
    fn keys(source: &str) -> Vec<&str> {
        let texts: Vec<&str> = source.split('"').collect();
        let is_key =
            |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        texts
            .windows(2)
            .filter(|pair| is_key(pair[0]) && pair[1].starts_with(": "))
            .map(|pair| pair[0])
            .collect()
    }

    #[test]
    fn every_key_of_evidence_names_its_unit() {
        let findings = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/findings");
        let folders = [findings.clone(), findings.join("common")];
        let mut found = 0;
        for file in folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap()) {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|end| end != "rs") {
                continue;
            }
            for key in keys(&fs::read_to_string(&path).unwrap()) {
                let has_unit = EvidenceUnit::of(key).is_some() != WITHOUT_UNIT.contains(&key);
                assert!(has_unit, "{}: in which unit is {key}? Name one of UNITS in it", path.display());
                found += 1;
            }
        }
        assert!(found > 80, "only {found} keys were found in the sources");
    }

    #[test]
    fn a_unit_is_one_of_the_words() {
        assert_eq!(EvidenceUnit::of("kernel_ms_beside_faults_per_step"), Some(EvidenceUnit::Milliseconds));
        assert_eq!(EvidenceUnit::of("share_of_the_commonest_size"), Some(EvidenceUnit::Share));
        assert_eq!(EvidenceUnit::of("copies_per_step"), Some(EvidenceUnit::Count));
        assert_eq!(EvidenceUnit::of("items"), None);
    }
}
