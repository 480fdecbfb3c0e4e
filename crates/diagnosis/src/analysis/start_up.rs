//! Does a trace show the start of a program instead of its steps?

use std::cmp::Reverse;

use crate::analysis::facts::Facts;
use crate::limits::id::LimitationId;
use crate::quantity::milliseconds;
use crate::unit::Unit;
use crate::verdict::Withheld;

/// A call of this length that takes this share of a trace without steps initializes CUDA or loads modules. Real allocations take
/// microseconds to a few milliseconds.
const INITIALIZES_MS: f64 = 100.0;
const INITIALIZES_SHARE: f64 = 0.3;
/// Two steps whose lengths differ by more than this factor do not say what a third one takes.
const UNLIKE: f64 = 5.0;

/// Why nothing can be said about later steps; `None` for other traces.
pub(crate) fn reason(facts: &Facts<'_>) -> Option<Withheld> {
    let why = initialization(facts).or_else(|| two_unlike_steps(facts))?;
    Some(Withheld { id: LimitationId::StartUp, why, remedy: "record several steps after a warm-up" })
}

fn initialization(facts: &Facts<'_>) -> Option<String> {
    if facts.unit() != Unit::Trace {
        return None;
    }
    let longest = facts.host.rare_calls().max_by_key(|call| (call.duration(), Reverse(call.id())))?;
    let (ms, all) = (longest.duration().as_millis(), facts.time.analyzed_ms);
    (ms >= INITIALIZES_MS && ms >= INITIALIZES_SHARE * all).then(|| {
        format!(
            "one {} call takes {} of the {} in this trace, which is initialization",
            longest.name(),
            milliseconds(ms),
            milliseconds(all)
        )
    })
}

fn two_unlike_steps(facts: &Facts<'_>) -> Option<String> {
    let [a, b] = facts.window.steps[..] else { return None };
    let (a, b) = (a.length().as_millis(), b.length().as_millis());
    (a.max(b) > UNLIKE * a.min(b))
        .then(|| format!("the only two steps in this trace take {} and {}", milliseconds(a), milliseconds(b)))
}
