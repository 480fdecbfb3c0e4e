//! The first line: how many ranks, what bounds them, and which are stragglers.

use busbound_diagnosis::quantity::{count, milliseconds, plural, range};
use busbound_diagnosis::{Bound, Unit};

use crate::answer::{FleetAnswer, VerdictCount};
use crate::list::some_of;
use crate::name::RankName;
use crate::spread::median;
use crate::stragglers::why_not;
use crate::summary::RankSummary;

pub(crate) fn statement(answer: &FleetAnswer) -> String {
    let ranks = answer.ranks.len();
    if let Some(why) = &answer.not_one_run {
        let runs = plural(ranks as u64, "summary", "summaries");
        return format!("Not one run: {why}; {runs}: {}{}.", bounds(answer), read_errors(answer));
    }
    let of = answer.world_size.filter(|world| *world as usize > ranks);
    let number = match of {
        Some(world) => format!("{} of {} ranks", count(ranks as u64), count(u64::from(world))),
        None => plural(ranks as u64, "rank", "ranks"),
    };
    let mut clauses: Vec<String> = overlap(answer).into_iter().collect();
    clauses.push(format!("{number}: {}", bounds(answer)));
    clauses.extend(pace(answer));
    clauses.extend(slowest(answer));
    if let Some(uplink) = answer.uplinks.iter().find(|uplink| uplink.is_tight()) {
        clauses.push(format!(
            "{} ranks share a PCIe uplink that is too slow if all copy at the same time",
            uplink.ranks.len()
        ));
    }
    format!("{}{}.", clauses.join("; "), read_errors(answer))
}

/// How much the stages of a pipeline overlap, where nothing else is known: then it is what was asked for.
fn overlap(answer: &FleetAnswer) -> Option<String> {
    let is_unknown = answer.verdicts.iter().all(|count| count.bound == Bound::Unknown);
    let pipeline = answer.pipeline.as_ref().filter(|_| is_unknown)?;
    Some(pipeline.statement.split(". ").next()?.trim_end_matches('.').to_owned())
}

/// `; 1 rank only partly read; 2 files could not be read`.
fn read_errors(answer: &FleetAnswer) -> String {
    let mut text = String::new();
    let in_part = answer.ranks.iter().filter(|rank| !rank.complete).count();
    if in_part > 0 {
        text.push_str(&format!("; {} only partly read", plural(in_part as u64, "rank", "ranks")));
    }
    if !answer.unread.is_empty() {
        let files = plural(answer.unread.len() as u64, "file", "files");
        text.push_str(&format!("; {files} could not be read"));
    }
    text
}

/// `transfer-bound on all`, `6 compute-bound, 2 transfer-bound`.
fn bounds(answer: &FleetAnswer) -> String {
    // Of some of the ranks, "all" is those that were read.
    let (read, world) = (answer.ranks.len(), answer.world_size);
    let all_ranks = match world.is_some_and(|world| world as usize > read) {
        true => format!("all {read}"),
        false => "all".to_owned(),
    };
    match answer.verdicts.as_slice() {
        [] => "no file could be read".to_owned(),
        [all] if answer.ranks.len() == 1 => word(all.bound).to_owned(),
        [all] if all.bound == Bound::Unknown => {
            let idle: Vec<f64> = answer.ranks.iter().filter_map(idle_share).collect();
            let idle = if idle.is_empty() {
                String::new()
            } else {
                format!(", GPU idle {:.0}% of the time", 100.0 * median(&idle))
            };
            format!("inconclusive on {all_ranks}{idle}")
        }
        [all] => format!("{} on {all_ranks}", word(all.bound)),
        several => {
            let one = |count: &VerdictCount| format!("{} {}", count.ranks, word(count.bound));
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
        Bound::Host => "host-bound",
        Bound::Sync => "synchronization-bound",
        Bound::Input => "input-bound",
        Bound::Mixed => "mixed",
        Bound::Unknown => "inconclusive",
    }
}

/// `301 ms/step (298–305 ms across ranks)`.
fn pace(answer: &FleetAnswer) -> Option<String> {
    let steps = answer.figures.first().filter(|_| answer.unit != Unit::Trace)?;
    let unit = answer.unit;
    let (min, max) = (milliseconds(steps.min), milliseconds(steps.max));
    Some(if min == max {
        format!("{min}/{unit}")
    } else {
        format!("{}/{unit} ({} across ranks)", milliseconds(steps.p50), range(&min, &max))
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
                format!(": {} +{more}{because}", difference.part)
            });
            return Some(match one.others_wait_ms {
                Some(ms) => {
                    format!("the other ranks wait {}/{unit} for {}{why}", milliseconds(ms), one.rank)
                }
                None => format!("{} is slower{why}", one.rank),
            });
        }
        several => {
            let mut labels: Vec<RankName> = several.iter().map(|one| one.rank.clone()).collect();
            labels.sort_by_key(|label| label.number().unwrap_or(u32::MAX));
            let (first, most) = (&several[0], milliseconds(several[0].excess_ms));
            let verb = if first.others_wait_ms.is_some() { "delay the other ranks" } else { "are slower" };
            return Some(format!(
                "{} {verb}, {} the most ({most}/{unit} more outside communication)",
                some_of(&labels),
                first.rank
            ));
        }
    }
    if let Some(late) = answer.job.iter().find(|scenario| scenario.cause.is_none()) {
        let waits = milliseconds(late.now_ms - late.step_ms);
        return Some(format!(
            "the other ranks wait {waits}/{unit} for {} ({} without its delay)",
            late.rank,
            milliseconds(late.step_ms)
        ));
    }
    let compared: Vec<&RankSummary> =
        answer.ranks.iter().filter(|rank| rank.is_compared(answer.unit)).collect();
    match compared.as_slice() {
        [] | [_] => None,
        several if why_not(several, answer.unit).is_some() => None,
        [a, b] => {
            let (less, more) = if a.time.own_ms() <= b.time.own_ms() { (a, b) } else { (b, a) };
            let (low, high) = (less.time.own_ms(), more.time.own_ms());
            Some(if high < 1.03 * low {
                "both ranks spend the same time outside communication".to_owned()
            } else {
                let idle = milliseconds(more.time.idle_ms);
                let idle =
                    if more.time.idle_ms > 0.03 * high { format!(" ({idle} idle)") } else { String::new() };
                format!(
                    "{} spends more time outside communication: {}/{unit}{idle} vs. {}",
                    more.label(),
                    milliseconds(high),
                    milliseconds(low)
                )
            })
        }
        _ => Some("no stragglers".to_owned()),
    }
}
