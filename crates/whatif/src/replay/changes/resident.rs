//! `resident=N%`: keeps a share of the weights that are copied in each step on the device.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use busbound_cause::{Model, WorkId};

use super::cold::ColdCaches;
use super::edit::{Group, Hooks, OwnWaits, alike_small_copies, bytes_of, groups, is_fetched, small_copies};
use super::{About, Declared, Made, NO_SUCH_CHANGE, Terms};

/// The share that stays on the device, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resident(pub f64);

impl Declared for Resident {
    const ABOUT: About = About {
        name: "resident",
        spelling: "resident=N%",
        help: "keep this share of the weights that are copied in each step on the device",
        doing: "keeping data on the GPU",
        effort: "keep these weights on the device",
        precondition: "device memory has room for them",
        depends_on_data: false,
    };

    fn parse(value: Option<&str>) -> Result<Self, &'static str> {
        let percent = value.ok_or(NO_SUCH_CHANGE)?.trim_end_matches('%').parse::<f64>().ok();
        let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
        percent.map(|percent| Self(percent / 100.0)).ok_or("resident takes a share such as 50%")
    }

    fn apply(&self, graph: &mut Model, terms: &Terms<'_>) -> Made {
        let mut made = Made::default();
        let mut kept_of_step: BTreeMap<usize, u64> = BTreeMap::new();
        let mut groups: Vec<Group> =
            groups(graph, |id| is_fetched(graph, id)).into_iter().flatten().collect();
        groups.retain(|group| self.keeps(group.number));
        let copies: BTreeSet<WorkId> = groups.iter().flat_map(|group| &group.copies).copied().collect();
        ColdCaches::of(graph).warm(graph, terms.assumed.behind_staging, |copy| copies.contains(&copy));
        let (own, hooks) = (OwnWaits::of(graph), Hooks::of(graph));
        for group in groups {
            for &id in &group.copies {
                *kept_of_step.entry(group.step).or_default() += bytes_of(graph, id);
                hooks.drop_copy(graph, id, &own, terms.assumed.hooks);
                made.changed += 1;
            }
            hooks.shorten(graph, &group, terms.assumed.longest_gap);
            for id in small_copies(graph, &group) {
                hooks.drop_copy(graph, id, &own, terms.assumed.hooks);
            }
        }
        if self.0 >= 1.0 {
            for id in alike_small_copies(graph) {
                hooks.drop_copy(graph, id, &own, terms.assumed.hooks);
            }
        }
        hooks.drop_waits_for_nothing(graph, terms.assumed.hooks);
        made.extra_bytes = kept_of_step.values().copied().max().unwrap_or(0);
        made
    }
}

impl Resident {
    /// Spreads the resident groups evenly over a step.
    fn keeps(self, number: usize) -> bool {
        let kept_before = |number: f64| (number * self.0 + 1e-9).floor();
        kept_before(number as f64 + 1.0) > kept_before(number as f64)
    }
}

impl fmt::Display for Resident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}%", Self::ABOUT.name, (1e6 * self.0).round() / 1e4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_groups_are_spread_evenly() {
        let kept = |share: f64| (0..8).filter(|number| Resident(share).keeps(*number)).collect::<Vec<_>>();
        assert_eq!(kept(0.5), [1, 3, 5, 7]);
        assert_eq!(kept(0.25), [3, 7]);
        assert_eq!((kept(0.0).len(), kept(1.0).len()), (0, 8));
    }
}
