//! What are the names of a rank and its findings?

use std::fmt;

use busbound_diagnosis::FindingId;
use serde::{Deserialize, Serialize, Serializer};

/// `rank 5`, or the file name if no rank is known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RankName {
    Number(u32),
    File(String),
}

impl RankName {
    pub fn number(&self) -> Option<u32> {
        match self {
            Self::Number(number) => Some(*number),
            Self::File(_) => None,
        }
    }

    /// `5`, for places that already say "rank".
    pub fn short(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::File(name) => name.clone(),
        }
    }
}

impl fmt::Display for RankName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "rank {number}"),
            Self::File(name) => f.write_str(name),
        }
    }
}

impl Serialize for RankName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A finding in a summary: one that this release knows, or one from the later release that wrote the summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FindingName {
    Known(FindingId),
    Other(String),
}

impl FindingName {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(id) => id.as_str(),
            Self::Other(name) => name,
        }
    }
}

impl fmt::Display for FindingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq<FindingId> for FindingName {
    fn eq(&self, other: &FindingId) -> bool {
        *self == Self::Known(*other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_of_a_later_release_keeps_its_name() {
        for (json, wanted) in [
            ("\"slow_link\"", FindingName::Known(FindingId::SlowLink)),
            ("\"not_yet_known\"", FindingName::Other("not_yet_known".to_owned())),
        ] {
            let name: FindingName = serde_json::from_str(json).unwrap();
            assert_eq!(name, wanted);
            assert_eq!(serde_json::to_string(&name).unwrap(), json);
        }
    }
}
