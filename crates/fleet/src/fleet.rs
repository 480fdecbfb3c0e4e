//! A set of ranks: order and grouping of merges do not matter.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use busbound_trace::rank_in_name;
use serde::{Deserialize, Serialize};

use crate::summary::{RANK_SCHEMA, RankSummary};

pub const FLEET_SCHEMA: &str = "busbound.fleet/2";

/// The ranks known so far, and the files that could not be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fleet {
    ranks: Vec<RankSummary>,
    unread: BTreeSet<Unread>,
}

/// A file that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unread {
    /// The rank in the file name.
    pub rank: Option<u32>,
    pub path: String,
    pub why: String,
}

impl Unread {
    pub fn new(path: impl Into<String>, why: impl Into<String>) -> Self {
        let path = path.into();
        let rank = rank_in_name(path.rsplit(['/', '\\']).next().unwrap_or_default());
        Self { rank, path, why: why.into() }
    }
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedError {
    #[error("is damaged, or not a rank summary: write it again with `busbound summarize` ({0})")]
    Json(#[from] serde_json::Error),
    #[error("is not a rank summary: its schema is {0}; `busbound summarize` writes {RANK_SCHEMA}")]
    OtherSchema(String),
    #[error("is not a rank summary; `busbound summarize` creates one from a trace")]
    NoSchema,
}

/// The output of an earlier `busbound merge --format json`: the parts needed to merge again.
#[derive(Serialize, Deserialize)]
struct SavedFleet {
    schema: String,
    ranks: Vec<RankSummary>,
    #[serde(default)]
    others: Vec<RankSummary>,
    #[serde(default)]
    unread: Vec<Unread>,
}

#[derive(Deserialize)]
struct Schema {
    schema: Option<String>,
}

impl Fleet {
    pub fn of(ranks: impl IntoIterator<Item = RankSummary>) -> Self {
        let mut ranks: Vec<RankSummary> = ranks.into_iter().collect();
        ranks.sort_by(in_order);
        // Two identical summaries are one rank.
        ranks.dedup();
        Self { ranks, unread: BTreeSet::new() }
    }

    /// Adds files that could not be read.
    pub fn with_unread(mut self, unread: impl IntoIterator<Item = Unread>) -> Self {
        self.unread.extend(unread);
        self
    }

    /// Merges two fleets, in any order.
    pub fn merge(self, other: Self) -> Self {
        [self, other].into_iter().collect()
    }

    /// Reads a saved rank, or a saved fleet.
    ///
    /// # Errors
    /// If the text is neither.
    pub fn parse(text: &str) -> Result<Self, SavedError> {
        let Schema { schema } = serde_json::from_str(text)?;
        match schema.as_deref() {
            Some(RANK_SCHEMA) => Ok(Self::of([serde_json::from_str(text)?])),
            Some(FLEET_SCHEMA) => {
                let saved: SavedFleet = serde_json::from_str(text)?;
                Ok(Self::of(saved.ranks.into_iter().chain(saved.others)).with_unread(saved.unread))
            }
            Some(other) => Err(SavedError::OtherSchema(other.to_owned())),
            None => Err(SavedError::NoSchema),
        }
    }

    /// The ranks without conclusions, to be merged elsewhere: what [`parse`](Self::parse) reads.
    ///
    /// # Errors
    /// If a summary cannot be written as JSON.
    pub fn save(self) -> serde_json::Result<String> {
        let unread = self.unread.into_iter().collect();
        let (schema, ranks) = (FLEET_SCHEMA.to_owned(), self.ranks);
        serde_json::to_string(&SavedFleet { schema, ranks, others: Vec::new(), unread })
    }

    /// Sorted by rank.
    pub fn ranks(&self) -> &[RankSummary] {
        &self.ranks
    }

    pub fn unread(&self) -> impl Iterator<Item = &Unread> {
        self.unread.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }
}

/// Merges all of them, in any order.
impl FromIterator<Fleet> for Fleet {
    fn from_iter<T: IntoIterator<Item = Self>>(fleets: T) -> Self {
        let (mut ranks, mut unread) = (Vec::new(), BTreeSet::new());
        for fleet in fleets {
            ranks.extend(fleet.ranks);
            unread.extend(fleet.unread);
        }
        Self { unread, ..Self::of(ranks) }
    }
}

/// By rank, then host and path; summaries without a rank last.
fn in_order(a: &RankSummary, b: &RankSummary) -> Ordering {
    let key = |of: &RankSummary| of.rank.as_ref().map_or(u64::MAX, |rank| u64::from(rank.rank));
    // Summaries that differ only in figures still need a defined order.
    let text = |of: &RankSummary| serde_json::to_string(of).unwrap_or_default();
    (key(a), &a.host, &a.path).cmp(&(key(b), &b.host, &b.path)).then_with(|| text(a).cmp(&text(b)))
}
