//! How much can a change of copies save at most? The time in which copies run, are issued or are waited for. A prediction that saves more
//! would shorten something else.

use busbound_cause::{HostAction, HostUse, Model, Time};

/// Nanoseconds per step, at most. `None` if operators are recorded: the host work of frameworks around their copies, which touches, rearranges
/// and frees memory, gets shorter too (fixtures/frameworks). Without operators, nothing shows which host work that is.
pub(super) fn time_around_copies(model: &Model) -> Option<f64> {
    let is_operator =
        |what: HostUse| what != HostUse::Input && what.is_on_data() || matches!(what, HostUse::Operator);
    if model.calls.iter().flat_map(|call| &call.since.uses).any(|(what, _)| is_operator(*what)) {
        return None;
    }
    let mut times: Vec<(Time, Time)> = Vec::new();
    for work in model.work.iter().filter(|work| work.kind.bus().is_some()) {
        times.push((work.start, work.end));
        times.extend(work.call.map(|call| (model.calls[call].start, model.calls[call].end)));
    }
    let waits = model.calls.iter().filter(|call| matches!(call.action, HostAction::Wait { .. }));
    times.extend(waits.map(|call| (call.start, call.end)));
    // At most: those of a last step that is cut off count too.
    Some(union(times) as f64 / model.whole_steps.max(1) as f64)
}

/// The length of these times together.
fn union(mut times: Vec<(Time, Time)>) -> Time {
    times.sort_unstable();
    let (mut all, mut until) = (0, Time::MIN);
    for (start, end) in times {
        all += (end - start.max(until)).max(0);
        until = until.max(end);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::union;

    #[test]
    fn times_at_the_same_time_count_once() {
        assert_eq!(union(vec![(10, 20), (0, 5), (15, 30), (16, 18)]), 25);
        assert_eq!(union(Vec::new()), 0);
    }
}
