//! Are batches converted from uint8 to float on the host, and copied as float?

use std::collections::BTreeMap;

use busbound_cause::Resource;
use busbound_trace::{CopyOperator, Direction, Event, EventKind, NameId};
use serde_json::json;

use super::common::copies::{times_of, total_ms};
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::copies::Copy;
use crate::analysis::cpu_copies::copy_operators;
use crate::analysis::facts::Facts;
use crate::quantity::{bytes, milliseconds};
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Input copied as float instead of uint8",
    doing: "copying the input as uint8",
    precondition: "The transforms after the conversion (scaling, normalizing) can run on the GPU.",
    basis: "bound: three quarters of the exposed time of these copies",
    candidate: Candidate::None("No what-if change makes copies smaller: the program decides what it copies."),
    effort: Effort::FewLines,
    unless: &[],
    relieves: &[Resource::H2d],
    check,
    document: Document {
        meaning: "Batches are converted from uint8 to float on the host and copied to the GPU as float: four times as many bytes. \
                  The GPU converts them faster than the host does.",
        computed: "Evidence: operators with recorded shapes and dtypes (`record_shapes=True`) convert uint8 to float on the host, \
                   without a launch, and float copies to the device of 1 MiB or more have as many elements as these, or a \
                   multiple (a batch of samples). They are exposed for at least 5% of the time. Without shapes, and with \
                   conversions in worker processes, it is not visible. Saving: up to three quarters of the exposed time of these \
                   copies, without the time that the host gains.",
        fix: "Keep uint8 until the batch is on the GPU, then convert and normalize there.",
        code: &[CODE],
        assumes: "The values before the conversion are whole numbers from 0 to 255, as in images.",
    },
};

const CODE: &str = "\
batch = batch.to(device, non_blocking=True)    # uint8, from pinned memory
batch = batch.float().div_(255)                # on the GPU
batch = (batch - mean) / std";

/// Share of the time in which these copies must be exposed.
const WORTH_IT: f64 = 0.05;
/// What uint8 saves of the bytes of float32.
const SAVED: f64 = 0.75;
/// Conversions of fewer elements are not part of a batch.
const FEWEST_ELEMENTS: u64 = 1024;
/// The conversions must account for this share of the elements copied.
const ACCOUNTED: f64 = 0.9;

/// Kineto's names of dtypes.
const UINT8: &str = "unsigned char";
const FLOAT: &str = "float";

/// Conversions on the host: how many of each number of elements.
fn conversions(facts: &Facts<'_>) -> BTreeMap<u64, u64> {
    let is = |name: NameId, dtype: &str| facts.trace.names().get(name) == dtype;
    let mut sizes = BTreeMap::new();
    for event in copy_operators(facts.trace) {
        let Some(CopyOperator { elements: Some(elements), src_dtype, dst_dtype, .. }) = event.copy_operator()
        else {
            continue;
        };
        if *elements >= FEWEST_ELEMENTS
            && is(*src_dtype, UINT8)
            && is(*dst_dtype, FLOAT)
            && !launches(facts, &event)
        {
            *sizes.entry(*elements).or_insert(0) += 1;
        }
    }
    sizes
}

/// Whether an operator calls the runtime: then it converts on the GPU.
fn launches(facts: &Facts<'_>, operator: &Event<'_>) -> bool {
    let within = facts.trace.track(operator.track_id()).events_between(operator.start(), operator.end());
    within
        .filter(|event| event.start() >= operator.start() && event.end() <= operator.end())
        .any(|event| matches!(event.kind(), EventKind::RuntimeCall | EventKind::DriverCall))
}

/// The number of float elements that a copy to the device moves.
fn float_elements(facts: &Facts<'_>, copy: &Copy<'_>) -> Option<u64> {
    let operator = facts.host.operator_around(copy.call.as_ref()?)?;
    let copied = operator.copy_operator()?;
    let is_float = facts.trace.names().get(copied.src_dtype) == FLOAT;
    copied.elements.filter(|elements| is_float && copy.bytes() == elements.checked_mul(4))
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let sizes = conversions(facts);
    if sizes.is_empty() {
        return None;
    }
    let is_converted = |elements: u64| sizes.keys().any(|size| elements.is_multiple_of(*size));
    let inbound = facts
        .issued_copies()
        .filter(|copy| copy.transfer.direction == Direction::HostToDevice && copy.is_large());
    let batches: Vec<(&Copy<'_>, u64)> = inbound
        .filter_map(|copy| Some((copy, float_elements(facts, copy)?)))
        .filter(|(_, elements)| is_converted(*elements))
        .collect();
    let copied: u64 = batches.iter().map(|(_, elements)| elements).sum();
    let converted: u64 = sizes.iter().map(|(size, count)| size.saturating_mul(*count)).sum();
    let copies: Vec<&Copy<'_>> = batches.into_iter().map(|(copy, _)| copy).collect();
    let exposed = facts.exposed_ms(copies.iter().copied());
    if copies.is_empty()
        || (converted as f64) < ACCOUNTED * copied as f64
        || exposed < WORTH_IT * facts.time.analyzed_ms
    {
        return None;
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let moved = copied as f64 * 4.0 / steps;
    Some(Draft {
        title: None,
        seen: format!(
            "The host converts uint8 to float, and {} per {unit} are copied as float ({}, {} exposed); uint8 would be {}.",
            bytes(moved as u64),
            milliseconds(total_ms(&copies) / steps),
            milliseconds(exposed / steps),
            bytes((moved * (1.0 - SAVED)) as u64),
        ),
        evidence: json!({
            "copies_per_step": copies.len() as f64 / steps,
            "bytes_per_step": moved,
            "copy_ms_per_step": total_ms(&copies) / steps,
            "exposed_ms_per_step": exposed / steps,
        }),
        saves: Saving {
            low: 0.5 * SAVED * exposed / facts.gpu_steps(),
            high: SAVED * exposed / facts.gpu_steps(),
        },
        fix: Fix::new("Copy the batch as uint8, then convert and normalize it on the GPU.").code(CODE),
        at: times_of(&copies),
    })
}
