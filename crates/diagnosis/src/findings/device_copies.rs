//! Does the GPU spend time in D2D copies, mostly to change layouts?

use busbound_cause::Resource;
use busbound_trace::Direction;
use serde_json::json;

use super::common::copies::times_of;
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::copies::Copy;
use crate::activity::route::CopyRoute;
use crate::analysis::breakdown::Part;
use crate::analysis::facts::Facts;
use crate::quantity::{milliseconds, plural};
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "D2D copies within the GPU",
    doing: "avoiding D2D copies (layout changes, clones)",
    precondition: "The copy changes the layout or concatenates tensors, and its consumer can use the original.",
    basis: "bound: exposed time of these copies",
    candidate: Candidate::None(
        "No what-if change removes D2D copies: the trace does not show which of them their consumers need.",
    ),
    effort: Effort::FewLines,
    unless: &[],
    relieves: &[Resource::Compute],
    check,
    document: Document {
        meaning: "Copies from GPU memory to the same GPU, mostly to change the layout. They do not cross the bus.",
        computed: "Evidence: such copies are exposed for at least 5% of the time. Saving: at most their exposed time.",
        fix: "Look for `.contiguous()`, `.clone()` and `torch.cat` on the hot path. Use one memory format throughout.",
        code: &[],
        assumes: "The copy changes the layout or concatenates tensors, and its consumer can use the original.",
    },
};

/// How many copies are traced back to their operator. The first ones are enough to name the main one.
const SAMPLED: usize = 500;

/// The operator behind most of the copy time.
fn operator_of(facts: &Facts<'_>, copies: &[&Copy<'_>]) -> Option<String> {
    let mut places = std::collections::BTreeMap::<String, f64>::new();
    for copy in copies.iter().take(SAMPLED) {
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
    if inside.is_empty() || exposed < 0.05 * facts.time.analyzed_ms {
        return None;
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let is_own = |part| part == Part::Copy(CopyRoute::WithinDevice);
    let place = operator_of(facts, &inside);
    let by = place.as_ref().map(|place| format!(", mostly by {place}")).unwrap_or_default();
    Some(Draft {
        title: None,
        seen: format!(
            "{} per {unit} within the GPU{by}: {} not overlapped with any kernel. They do not cross the bus.",
            plural((inside.len() as f64 / steps).round() as u64, "D2D copy", "D2D copies"),
            milliseconds(exposed / steps),
        ),
        evidence: json!({
            "copies_per_step": inside.len() as f64 / steps,
            "exposed_ms_per_step": exposed / steps,
            "place": place,
        }),
        // The bar counts time in which other copies run too for those: a saving is not more than its own part.
        saves: Saving { low: 0.0, high: exposed.min(facts.part_ms(is_own)) / facts.gpu_steps() },
        fix: Fix::new(
            "Look for .contiguous(), .clone() and torch.cat on the hot path. Use one memory format throughout.",
        ),
        at: times_of(&inside),
    })
}
