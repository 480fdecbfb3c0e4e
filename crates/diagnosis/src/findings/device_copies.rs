//! Is time spent copying within the device, which is really a change of layout?

use busbound_trace::Direction;
use serde_json::json;

use super::{Draft, Saving, times_of};
use crate::activity::copies::Copy;
use crate::analysis::facts::Facts;
use crate::quantity::{count, milliseconds};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Draft> {
    let inside: Vec<&Copy<'_>> =
        facts.issued_copies().filter(|copy| copy.transfer.direction == Direction::DeviceToDevice).collect();
    let exposed = facts.exposed_ms(inside.iter().copied());
    if inside.is_empty() || exposed < 0.05 * facts.time.span_ms {
        return Vec::new();
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let mut places = std::collections::BTreeMap::<String, f64>::new();
    for copy in inside.iter().take(500) {
        if let Some(place) = copy.call.and_then(|call| facts.host.around(&call).operator) {
            *places.entry(place).or_default() += copy.event.duration().as_millis();
        }
    }
    let place = places.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(place, _)| place);
    let by = place.as_ref().map(|place| format!(", most of them by {place}")).unwrap_or_default();
    vec![Draft {
        at: times_of(&inside),
        id: "device_copies",
        title: "Copies within the device".to_owned(),
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
        precondition: "The copy changes layout or joins tensors, and its consumer can take the original.",
        saves: Saving { low: 0.0, high: exposed / steps },
        basis: "bound: their exposed time",
        fix: "Look for .contiguous(), .clone() and torch.cat on the path; keep one memory format throughout."
            .to_owned(),
    }]
}
