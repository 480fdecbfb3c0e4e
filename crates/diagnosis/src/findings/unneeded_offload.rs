//! Does the program copy data to the GPU every step that would fit there?

use busbound_cause::Resource;
use busbound_trace::Direction;
use serde_json::json;

use super::common::copies::times_of;
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::analysis::device_memory::DeviceMemory;
use crate::analysis::facts::Facts;
use crate::quantity::bytes;
use crate::saving::Saving;
use crate::settings::offload::no_offloading;

pub(super) static RULE: Rule = Rule {
    title: "Offloaded data that fits on the GPU",
    doing: "keeping the data on the GPU",
    precondition: "The data is the same every step (weights), and nothing else on this GPU needs the memory.",
    basis: "bound: exposed time of these copies",
    candidate: Candidate::None(
        "`resident=100%` is closest, but it removes whole groups of copies and cannot distinguish weights from batches, \
         which must be copied every step.",
    ),
    effort: Effort::Setting,
    unless: &[],
    relieves: &[Resource::H2d, Resource::D2h, Resource::Host, Resource::Launch],
    check,
    document: Document {
        meaning: "Data is copied to the GPU every step although the GPU has enough free memory to keep it.",
        computed: "Evidence: at least 100 MB are copied to the GPU every step, allocator samples (`profile_memory=True`) show \
                   that they fit into 90% of the free memory, and the copies are exposed for at least 2% of the time. \
                   Without samples, this is not reported. Saving: 70% to 100% of the exposed time of the copies.",
        fix: "Keep the data on the GPU: move it once, before the loop.",
        code: &[CODE],
        assumes: "The data is the same every step, and nothing else needs the memory.",
    },
};

const CODE: &str = "\
weights = [weight.to(device) for weight in weights]    # once, before the loop";

/// Bytes per step. More than this is weights, not batches.
const WORTH_IT: f64 = 100e6;

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let steps = facts.steps();
    let inbound: Vec<_> =
        facts.issued_copies().filter(|copy| copy.transfer.direction == Direction::HostToDevice).collect();
    let moved = inbound.iter().filter_map(|copy| copy.bytes()).sum::<u64>() as f64 / steps;
    let device = inbound.first()?.device;
    if moved < WORTH_IT || facts.window.steps.len() < 2 {
        return None;
    }
    let memory = DeviceMemory::of(facts, device)?;
    let (reserved, total) = (memory.reserved?, memory.total);
    let exposed = facts.exposed_ms(inbound.iter().copied());
    if !memory.has_room_for(moved as u64) || exposed < 0.02 * facts.time.analyzed_ms {
        return None;
    }
    Some(Draft {
        title: None,
        seen: format!(
            "{} are copied to the GPU every step, but the allocator reserved at most {} of {}.",
            bytes(moved as u64),
            bytes(reserved),
            bytes(total),
        ),
        evidence: json!({
            "bytes_per_step": moved,
            "reserved_bytes": reserved,
            "total_bytes": total,
            "exposed_ms_per_step": exposed / steps,
        }),
        saves: Saving { low: 0.7 * exposed / facts.gpu_steps(), high: exposed / facts.gpu_steps() },
        fix: Fix::new("Keep the data on the GPU: move it once, before the loop.")
            .code(CODE)
            .settings(no_offloading()),
        at: times_of(&inbound),
    })
}
