//! In which environment did a process run? Versions, variables, GPUs and CPUs, and what differs between several.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// What a trace says about the environment of its process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Environment {
    /// By the name used in the trace: `torch`, `python`, `cuda_runtime_version`.
    pub versions: BTreeMap<String, String>,
    /// Variables that change how PyTorch, CUDA and NCCL run. `null` if not recorded, which is not the same as unset.
    pub variables: Option<BTreeMap<String, String>>,
    /// GPUs that the process sees, by name.
    pub gpus: Vec<String>,
    /// CPUs that the process may run on; `null` if not recorded.
    pub cpus: Option<u32>,
    /// Bytes of host memory that the process may use; `null` if not recorded.
    pub memory: Option<u64>,
    /// Of the GPUs that the process used: `PCIe link`, `clock limit`, `power limit`, as far as recorded.
    pub hardware: BTreeMap<String, String>,
}

/// How a variable that is not there is called.
const UNSET: &str = "unset";

impl Environment {
    /// What differs between processes, each with what to call it: `rank 4: NCCL_P2P_DISABLE=1, others unset`. What is not
    /// recorded does not differ.
    pub fn differences(all: &[(String, &Self)]) -> Vec<String> {
        let names: BTreeSet<String> = all.iter().flat_map(|(_, one)| one.facts().into_keys()).collect();
        names.iter().flat_map(|name| difference(name, all)).collect()
    }

    fn facts(&self) -> BTreeMap<String, String> {
        let mut facts: BTreeMap<String, String> = self.versions.clone();
        facts.extend(self.hardware.clone());
        facts.extend(self.variables.iter().flatten().map(|(name, value)| (name.clone(), value.clone())));
        facts.extend(self.cpus.map(|cpus| ("CPUs".to_owned(), cpus.to_string())));
        facts.extend(
            self.memory.map(|memory| ("host memory".to_owned(), format!("{:.0} GB", memory as f64 / 1e9))),
        );
        if let Some(first) = self.gpus.first() {
            let are_alike = self.gpus.iter().all(|gpu| gpu == first);
            let gpus =
                if are_alike { format!("{} × {first}", self.gpus.len()) } else { self.gpus.join(", ") };
            facts.insert("GPUs".to_owned(), gpus);
        }
        facts
    }

    /// `None` if it is not recorded.
    fn fact(&self, name: &str, is_variable: bool) -> Option<String> {
        let found = self.facts().remove(name);
        found.or_else(|| (is_variable && self.variables.is_some()).then(|| UNSET.to_owned()))
    }
}

/// One sentence for each value that is not the most frequent one.
fn difference(name: &str, all: &[(String, &Environment)]) -> Vec<String> {
    let is_variable =
        all.iter().any(|(_, one)| one.variables.as_ref().is_some_and(|known| known.contains_key(name)));
    // In the order given, so that the first one's value is the usual one if none is more frequent.
    let mut values: Vec<(String, Vec<&str>)> = Vec::new();
    for (who, one) in all {
        let Some(value) = one.fact(name, is_variable) else { continue };
        match values.iter_mut().find(|(known, _)| *known == value) {
            Some((_, with)) => with.push(who),
            None => values.push((value, vec![who])),
        }
    }
    let most = values.iter().map(|(_, with)| with.len()).max().unwrap_or(0);
    let Some(usual) = values.iter().position(|(_, with)| with.len() == most) else { return Vec::new() };
    let (usual_value, usual_with) = values.remove(usual);
    let rest = if all.len() == 2 { usual_with[0].to_owned() } else { "others".to_owned() };
    let sentence = |(value, with): &(String, Vec<&str>)| {
        let value = if value == UNSET { format!("{name} is unset") } else { format!("{name}={value}") };
        format!("{}: {value}, {rest} {usual_value}", some_of(with))
    };
    values.iter().map(sentence).collect()
}

/// The first few.
fn some_of(names: &[&str]) -> String {
    const NAMED: usize = 4;
    match names.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names[..NAMED].join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(version: &str, variables: Option<&[(&str, &str)]>) -> Environment {
        let pairs =
            |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Environment {
            versions: pairs(&[("torch", version)]),
            variables: variables.map(pairs),
            ..Environment::default()
        }
    }

    fn differences(all: &[(&str, Environment)]) -> Vec<String> {
        let all: Vec<(String, &Environment)> =
            all.iter().map(|(who, one)| ((*who).to_owned(), one)).collect();
        Environment::differences(&all)
    }

    #[test]
    fn what_differs_is_named_once() {
        let p2p: &[(&str, &str)] = &[("NCCL_P2P_DISABLE", "1")];
        let ranks = [
            ("rank 0", with("2.11.0", Some(&[]))),
            ("rank 1", with("2.11.0", Some(&[]))),
            ("rank 4", with("2.10.0", Some(p2p))),
        ];
        assert_eq!(
            differences(&ranks),
            ["rank 4: NCCL_P2P_DISABLE=1, others unset", "rank 4: torch=2.10.0, others 2.11.0"]
        );
        assert_eq!(differences(&ranks[..2]), [""; 0]);
        let two = [("before", with("2.11.0", Some(p2p))), ("after", with("2.10.0", Some(&[])))];
        assert_eq!(
            differences(&two),
            ["after: NCCL_P2P_DISABLE is unset, before 1", "after: torch=2.10.0, before 2.11.0"]
        );
    }

    #[test]
    fn what_is_not_recorded_does_not_differ() {
        let p2p: &[(&str, &str)] = &[("NCCL_P2P_DISABLE", "1")];
        let runs = [("before", with("2.11.0", None)), ("after", with("2.11.0", Some(p2p)))];
        assert_eq!(differences(&runs), [""; 0]);
        let unknown = [("before", Environment::default()), ("after", with("2.11.0", None))];
        assert_eq!(differences(&unknown), [""; 0]);
    }
}
