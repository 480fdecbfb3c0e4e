//! The first line: how many ranks, what bounds them, and who is out of line.

use busbound_diagnosis::quantity::{count, milliseconds, plural};
use busbound_diagnosis::{Bound, Unit};

use crate::answer::{FleetAnswer, is_compared};
use crate::name::RankName;
use crate::spread::median;
use crate::stragglers::why_not;
use crate::summary::RankSummary;

pub(crate) fn statement(answer: &FleetAnswer) -> String {
    let ranks = answer.ranks.len();
    if let Some(why) = &answer.not_one_run {
        let runs = plural(ranks as u64, "summary", "summaries");
        return format!("Not one run: {why}; {runs}: {}{}.", bounds(answer), read_badly(answer));
    }
    let of = answer.world_size.filter(|world| *world as usize > ranks);
    let number = match of {
        Some(world) => format!("{} of {} ranks", count(ranks as u64), count(u64::from(world))),
        None => plural(ranks as u64, "rank", "ranks"),
    };
    let mut clauses = vec![format!("{number}: {}", bounds(answer))];
    clauses.extend(pace(answer));
    clauses.extend(slowest(answer));
    if let Some(uplink) = answer.uplinks.iter().find(|uplink| uplink.is_tight()) {
        clauses.push(format!(
            "{} ranks share a way to the host that is too narrow for all at once",
            uplink.ranks.len()
        ));
    }
    format!("{}{}.", clauses.join("; "), read_badly(answer))
}

/// `; 1 rank read in part; 2 files could not be read`.
fn read_badly(answer: &FleetAnswer) -> String {
    let mut text = String::new();
    let in_part = answer.ranks.iter().filter(|rank| !rank.complete).count();
    if in_part > 0 {
        text.push_str(&format!("; {} read in part", plural(in_part as u64, "rank", "ranks")));
    }
    if !answer.unread.is_empty() {
        let files = plural(answer.unread.len() as u64, "file", "files");
        text.push_str(&format!("; {files} could not be read"));
    }
    text
}

/// `transfer-bound on all`, `6 compute-bound, 2 transfer-bound`.
fn bounds(answer: &FleetAnswer) -> String {
    match answer.verdicts.as_slice() {
        [] => "nothing could be read".to_owned(),
        [all] if answer.ranks.len() == 1 => word(all.bound).to_owned(),
        [all] if all.bound == Bound::Unknown => {
            let idle: Vec<f64> = answer.ranks.iter().filter_map(idle_share).collect();
            let idle = if idle.is_empty() {
                String::new()
            } else {
                format!(", idle {:.0} % of the time", 100.0 * median(&idle))
            };
            format!("the traces do not tell what bounds them{idle}")
        }
        [all] => format!("{} on all", word(all.bound)),
        several => {
            let one = |count: &crate::answer::VerdictCount| format!("{} {}", count.ranks, word(count.bound));
            several.iter().map(one).collect::<Vec<_>>().join(", ")
        }
    }
}

fn idle_share(rank: &RankSummary) -> Option<f64> {
    (rank.time.span_ms > 0.0).then(|| rank.time.idle_ms / rank.time.span_ms)
}

fn word(bound: Bound) -> &'static str {
    match bound {
        Bound::Transfer => "transfer-bound",
        Bound::Communication => "communication-bound",
        Bound::Compute => "compute-bound",
        Bound::Launch => "launch-bound",
        Bound::Sync => "synchronisation-bound",
        Bound::Input => "input-bound",
        Bound::Mixed => "mixed",
        Bound::Unknown => "not told",
    }
}

/// `a step takes 301 ms (298 to 305 ms by rank)`.
fn pace(answer: &FleetAnswer) -> Option<String> {
    let steps = answer.figures.first().filter(|_| answer.unit != Unit::Trace)?;
    let unit = answer.unit;
    let (min, max) = (milliseconds(steps.min), milliseconds(steps.max));
    Some(if min == max {
        format!("a {unit} takes {min}")
    } else {
        format!("a {unit} takes {} ({min} to {max} by rank)", milliseconds(steps.p50))
    })
}

fn slowest(answer: &FleetAnswer) -> Option<String> {
    let unit = answer.unit;
    match answer.stragglers.as_slice() {
        [] => {}
        [one] => {
            let why = one.differences.first().map_or(String::new(), |difference| {
                let because =
                    difference.because.first().map_or(String::new(), |why| format!(", {}", why.seen));
                let more = milliseconds(difference.ms - difference.median_ms);
                format!(" by {more} more {}{because}", difference.part)
            });
            return Some(match one.others_wait_ms {
                Some(ms) => {
                    format!("the others wait {} a {unit} for {}, held up{why}", milliseconds(ms), one.rank)
                }
                None => format!("{} is slower{why}", one.rank),
            });
        }
        several => {
            let mut labels: Vec<RankName> = several.iter().map(|one| one.rank.clone()).collect();
            labels.sort_by_key(|label| label.number().unwrap_or(u32::MAX));
            let (first, most) = (&several[0], milliseconds(several[0].excess_ms));
            let verb = if first.others_wait_ms.is_some() { "hold the others up" } else { "are slower" };
            return Some(format!(
                "{} {verb}, {} most ({most} more of its own a {unit})",
                some_of(&labels),
                first.rank
            ));
        }
    }
    let compared: Vec<&RankSummary> =
        answer.ranks.iter().filter(|rank| is_compared(rank, answer.unit)).collect();
    match compared.as_slice() {
        [] | [_] => None,
        several if why_not(several, answer.unit).is_some() => None,
        [a, b] => {
            let (less, more) = if a.time.own_ms() <= b.time.own_ms() { (a, b) } else { (b, a) };
            let (low, high) = (less.time.own_ms(), more.time.own_ms());
            Some(if high < 1.03 * low {
                "both spend as much time outside communication".to_owned()
            } else {
                let idle = milliseconds(more.time.idle_ms);
                let idle = if more.time.idle_ms > 0.03 * high {
                    format!(" (of it idle {idle})")
                } else {
                    String::new()
                };
                format!(
                    "{} spends more time outside communication: {} a {unit}{idle} against {}",
                    more.label(),
                    milliseconds(high),
                    milliseconds(low)
                )
            })
        }
        _ => Some("no rank is out of line".to_owned()),
    }
}

/// So many are told, of more their number.
pub(crate) const TOLD: usize = 6;

/// `3`, `3, 4` or `3 to 5`.
pub(crate) fn row(&(first, last): &(u32, u32)) -> String {
    match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    }
}

/// `rank 3, rank 5 and 14 more`; numbers in a row as `ranks 2 to 127`.
pub(crate) fn some_of(labels: &[RankName]) -> String {
    let numbers: Option<Vec<u32>> = labels.iter().map(RankName::number).collect();
    let Some(numbers) = numbers.filter(|numbers| !numbers.is_empty() && numbers.is_sorted()) else {
        let more = labels.len().saturating_sub(TOLD);
        let told = labels.iter().take(TOLD).map(RankName::to_string).collect::<Vec<_>>().join(", ");
        return if more > 0 { format!("{told} and {more} more") } else { told };
    };
    let mut rows: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match rows.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => rows.push((number, number)),
        }
    }
    let more: usize = rows.iter().skip(TOLD).map(|(first, last)| (last - first) as usize + 1).sum();
    let told = rows.iter().take(TOLD).map(row).collect::<Vec<_>>().join(", ");
    let word = if labels.len() == 1 { "rank" } else { "ranks" };
    if more > 0 { format!("{word} {told} and {more} more") } else { format!("{word} {told}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_told_in_rows() {
        let labels = |numbers: &[u32]| numbers.iter().map(|n| RankName::Number(*n)).collect::<Vec<_>>();
        assert_eq!(some_of(&labels(&[5])), "rank 5");
        assert_eq!(some_of(&labels(&[2, 3, 4, 7, 9, 10])), "ranks 2 to 4, 7, 9, 10");
        assert_eq!(some_of(&labels(&[0, 2, 4, 6, 8, 10, 12, 13])), "ranks 0, 2, 4, 6, 8, 10 and 2 more");
        assert_eq!(some_of(&labels(&[u32::MAX, u32::MAX])), "ranks 4294967295, 4294967295");
        assert_eq!(some_of(&[RankName::File("a.json".to_owned()), RankName::Number(1)]), "a.json, rank 1");
    }
}
