//! Is time spent copying within the device, which is really a change of layout?

use busbound_trace::Direction;
use serde_json::json;

use super::common::copies::times_of;
use super::common::{Candidate, Document, Draft, Fix, Rule};
use crate::activity::copies::Copy;
use crate::analysis::facts::Facts;
use crate::quantity::{count, milliseconds};
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Copies within the device",
    precondition: "The copy changes layout or joins tensors, and its consumer can take the original.",
    basis: "bound: their exposed time",
    candidate: Candidate::None(
        "No change removes copies within the device: which of them a consumer could do without is not in the trace.",
    ),
    unless: &[],
    check,
    document: Document {
        meaning: "Copies from device memory to the same device, mostly changes of layout. They do not cross the bus.",
        computed: "Evidence: such copies are exposed for 5% of the time or more. Saving: their exposed time at most.",
        fix: "Look for `.contiguous()`, `.clone()` and `torch.cat` on the path; keep one memory format throughout.",
        code: &[],
        assumes: "The copy changes layout or joins tensors, and its consumer can take the original.",
    },
};

/// Copies that are asked where they come from: of many, the first say enough.
const ASKED: usize = 500;

/// The operator behind most of their time.
fn operator_of(facts: &Facts<'_>, copies: &[&Copy<'_>]) -> Option<String> {
    let mut places = std::collections::BTreeMap::<String, f64>::new();
    for copy in copies.iter().take(ASKED) {
        if let Some(place) = copy.call.and_then(|call| facts.host.around(&call).operator) {
            *places.entry(place).or_default() += copy.event.duration().as_millis();
        }
    }
    places.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(place, _)| place)
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let inside: Vec<&Copy<'_>> =
        facts.issued_copies().filter(|copy| copy.transfer.direction == Direction::DeviceToDevice).collect();
    let exposed = facts.exposed_ms(inside.iter().copied());
    if inside.is_empty() || exposed < 0.05 * facts.time.span_ms {
        return None;
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let place = operator_of(facts, &inside);
    let by = place.as_ref().map(|place| format!(", most of them by {place}")).unwrap_or_default();
    Some(Draft {
        title: None,
        seen: format!(
            "{} copies a {unit} from device memory to the same device{by}: {} with no kernel beside them. They do not cross the bus.",
            count((inside.len() as f64 / steps).round() as u64),
            milliseconds(exposed / steps),
        ),
        evidence: json!({
            "copies_per_step": inside.len() as f64 / steps,
            "exposed_ms_per_step": exposed / steps,
            "place": place,
        }),
        saves: Saving { low: 0.0, high: exposed / steps },
        fix: Fix::new(
            "Look for .contiguous(), .clone() and torch.cat on the path; keep one memory format throughout.",
        ),
        at: times_of(&inside),
    })
}
