//! Which ranks changed at the same time? One event in the machine or in the program changes several of them.

use super::HistoryChange;

/// Changes of the same figure in the same direction whose times overlap become one, with the times of the rank that
/// changed the most.
pub(super) fn together(mut changes: Vec<HistoryChange>) -> Vec<HistoryChange> {
    changes
        .sort_by(|a, b| (a.after_unix_ms, &a.figure, &a.ranks).cmp(&(b.after_unix_ms, &b.figure, &b.ranks)));
    let mut joined: Vec<HistoryChange> = Vec::new();
    for change in changes {
        let same = joined.iter_mut().find(|other| is_same(other, &change));
        let Some(other) = same else {
            joined.push(change);
            continue;
        };
        let mut ranks = std::mem::take(&mut other.ranks);
        let mut change = change;
        ranks.append(&mut change.ranks);
        ranks.sort();
        if change.difference().abs() > other.difference().abs() {
            *other = change;
        }
        other.ranks = ranks;
    }
    joined
}

fn is_same(one: &HistoryChange, other: &HistoryChange) -> bool {
    let overlaps = one.before_unix_ms <= other.after_unix_ms && other.before_unix_ms <= one.after_unix_ms;
    let is_new = other.ranks.iter().all(|rank| !one.ranks.contains(rank));
    let is_alike = one.figure == other.figure && (one.difference() > 0.0) == (other.difference() > 0.0);
    overlaps && is_new && is_alike
}
