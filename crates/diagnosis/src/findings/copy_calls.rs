//! Do copies cost more for being issued one by one than for their bytes?

use busbound_cause::idle::GapCause;
use busbound_cause::{HostAction, HostUse, Model, Resource, Time, Work};
use busbound_machine::bench::{self, ScatterMethod};
use busbound_machine::{Blocks, HostMemory, LinkFacts, ScatterChoice, ScatterSource};
use busbound_trace::{Direction, EventId, EventKind, MemoryKind, Nanos};
use busbound_whatif::replay::Coalesce;
use serde_json::json;

use super::common::copies::{times_of, total_ms};
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::copies::Copy;
use crate::analysis::facts::Facts;
use crate::analysis::program::Program;
use crate::quantity::{bytes, count, milliseconds};
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Copies issued one by one",
    doing: "merging small copies",
    precondition: "The tensors are available at the same time.",
    basis: "bound: idle time before these copies, and exposed time beyond one copy of all bytes",
    candidate: Candidate::Changes(|| vec![Coalesce.into()]),
    effort: Effort::Restructuring,
    unless: &[],
    relieves: &[Resource::H2d, Resource::D2h, Resource::Launch],
    check,
    document: Document {
        meaning: "Many copies are issued one by one, and issuing one (call, operator, Python) takes the host longer than the \
                  bytes take on the bus. This is not only about small copies: 256 KiB take 5 µs on PCIe 5 x16, and a \
                  `copy_` in a loop 15 to 25 µs.",
        computed: "Evidence: per step at least 30 copies over the bus that take longer to issue than to run, or that the GPU \
                   is idle before for longer than they run, or pinned ones up to 1 MiB that take 1.25 times as long as their share of one large \
                   copy; their device and host time, and the bound, are at least 2% of the time. Host \
                   time is without the cost of the profiler where that is known. Reads of single values do not count. \
                   Saving: the trace replayed with `coalesce`. If that is not possible (it joins copies up to 1 MiB), a \
                   bound: idle time before them, and exposed time beyond one copy of all bytes.",
        fix: "Pack the tensors into one pinned buffer, copy it once and use views on the GPU, or scatter the rows there. \
              Create constants on the GPU. One `cudaMemcpyBatchAsync`, or a kernel that reads the pieces from pinned memory, can be \
              faster than packing: `busbound bench --suite copy,scatter` measures which, and with that profile as `--machine` \
              the answer names it.",
        code: &[CODE],
        assumes: "The tensors are available at the same time.",
    },
};

const CODE: &str = "\
flat = torch.empty(sum(t.numel() for t in small), dtype=small[0].dtype, pin_memory=True)
sent = torch.cuda.Event()    # both once; tensors of one dtype go into one buffer
for small in batches:
    sent.synchronize()       # the previous copy has read the buffer
    torch.cat([t.flatten() for t in small], out=flat)
    on_device = flat.to(device, non_blocking=True)    # one copy
    sent.record()
    parts = on_device.split([t.numel() for t in small])
    # or, for blocks of one cache: cache.index_copy_(0, slots, on_device.view(len(small), -1))";

const MANY_PER_STEP: f64 = 30.0;
/// Share of the time that these copies must take, and that the bound must save.
const WORTH_IT: f64 = 0.02;
/// Copies up to this size are merged.
const MERGED: u64 = 1 << 20;
/// Each copy begins anew: 256 KiB run at 35 GB/s where large ones reach 55 (fixtures/machines/h200.json). Chosen between this and 1 MiB.
const SLOW_FOR_ITS_SIZE: f64 = 1.25;
/// A read of one value, as `.item()` does. `sync_in_loop` reports these.
const ONE_VALUE: u64 = 16;

/// Copies that cost more to issue than to run; over all steps, in milliseconds.
struct Issued<'f, 'a> {
    copies: Vec<&'f Copy<'a>>,
    /// Host time to issue them, as recorded and without the profiler.
    recorded: f64,
    host: f64,
    /// Idle time before them, as recorded.
    waiting: f64,
}

impl<'f, 'a> Issued<'f, 'a> {
    fn of(facts: &'f Facts<'a>) -> Option<Self> {
        let (model, recorded) = (facts.model()?, facts.recorded_model()?);
        let mut by_event: Vec<&Copy<'a>> = facts.issued_copies().collect();
        by_event.sort_by_key(|copy| copy.event.id());
        let waiting = waiting(facts, &by_event);
        let mut issued = Self { copies: Vec::new(), recorded: 0.0, host: 0.0, waiting: 0.0 };
        for (work, as_recorded) in model.work.iter().zip(&recorded.work) {
            let Some(place) = place_of(work.event, &by_event) else { continue };
            let (copy, waited) = (by_event[place], waiting[place]);
            if !is_candidate(copy) {
                continue;
            }
            let Some(host) = issuing(model, work) else { continue };
            let took = copy.event.duration();
            if host > took.get() || waited > took || is_slow_for_its_size(copy, &facts.link) {
                issued.copies.push(copy);
                issued.host += Nanos::new(host).as_millis();
                issued.recorded += Nanos::new(issuing(recorded, as_recorded).unwrap_or(host)).as_millis();
                issued.waiting += waited.as_millis();
            }
        }
        (!issued.copies.is_empty()).then_some(issued)
    }

    /// Idle time before them without the profiler: it slows the host down, and so lengthens the gaps.
    fn own_waiting(&self) -> f64 {
        if self.recorded > 0.0 { self.waiting * (self.host / self.recorded).min(1.0) } else { self.waiting }
    }
}

fn is_candidate(copy: &Copy<'_>) -> bool {
    let is_read = copy.transfer.direction == Direction::DeviceToHost;
    copy.is_on_bus() && copy.bytes().is_some_and(|bytes| !is_read || bytes > ONE_VALUE)
}

/// Whether a pinned copy up to 1 MiB takes longer than its share of one large copy.
fn is_slow_for_its_size(copy: &Copy<'_>, link: &LinkFacts) -> bool {
    let bytes = copy.bytes().filter(|bytes| *bytes <= MERGED);
    let is_pinned = copy.host_memory() == Some(MemoryKind::Pinned);
    let as_part = bytes.filter(|_| is_pinned).map(|bytes| bytes as f64 / link.reachable_gbps());
    as_part.is_some_and(|as_part| copy.event.duration().get() as f64 > SLOW_FOR_ITS_SIZE * as_part)
}

/// Host time to issue a copy: the call, and the short host work before it. A call that stages or waits is not all issuing.
fn issuing(model: &Model, work: &Work) -> Option<Time> {
    let call = &model.calls[work.call?];
    let own = match call.action {
        HostAction::IssueBlocking(_) => call.cost.min(model.copy_call),
        _ => call.cost,
    };
    Some(own + call.since.of(HostUse::Launching))
}

/// Where the copy of an event is among copies in the order of their events.
fn place_of(event: EventId, copies: &[&Copy<'_>]) -> Option<usize> {
    copies.binary_search_by_key(&event, |copy| copy.event.id()).ok()
}

/// Idle time before each copy while the host issued it. Idle time while a copy is staged belongs to its memory.
fn waiting(facts: &Facts<'_>, copies: &[&Copy<'_>]) -> Vec<Nanos> {
    let mut waiting = vec![Nanos::ZERO; copies.len()];
    for piece in facts.gaps.pieces() {
        if !matches!(piece.cause, GapCause::Launch | GapCause::Copy) {
            continue;
        }
        let work = facts.gaps.gap_of(&piece).work.filter(|work| work.kind() == EventKind::Copy);
        let Some(place) = work.and_then(|work| place_of(work.id(), copies)) else { continue };
        if piece.cause == GapCause::Launch || copies[place].blocked == Nanos::ZERO {
            waiting[place] += piece.interval.length();
        }
    }
    waiting
}

fn fix(facts: &Facts<'_>, fastest: &str) -> Fix {
    if facts.program == Program::Cuda {
        return Fix::new(format!(
            "Pack the pieces into one pinned buffer that is reused, copy it once, and address the pieces in it on the GPU.{fastest}"
        ));
    }
    Fix::new(format!(
        "Pack the tensors into one pinned buffer (torch.cat into a pinned tensor that is reused), copy it once, and use views of it on the GPU. Create constants on the GPU.{fastest}"
    ))
    .code(CODE)
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let issued = Issued::of(facts)?;
    let (copies, steps, unit) = (&issued.copies, facts.steps(), facts.unit());
    let (device, per_step) = (total_ms(copies), copies.len() as f64 / steps);
    if per_step < MANY_PER_STEP || device + issued.host < WORTH_IT * facts.time.analyzed_ms {
        return None;
    }
    let moved: u64 = copies.iter().filter_map(|copy| copy.bytes()).fold(0, u64::saturating_add);
    let exposed = facts.exposed_ms(copies.iter().copied());
    let as_one = moved as f64 / 1e6 / facts.link.reachable_gbps();
    let waiting = issued.own_waiting();
    let high = facts.breakdown.averaged(waiting + (exposed - as_one).max(0.0))?.min(facts.own_step_ms());
    if high < WORTH_IT * facts.own_step_ms() {
        return None;
    }
    let fastest = fastest(copies, steps, &facts.link);
    let together = fastest.as_ref().and_then(|(_, choice)| choice.together());
    let place = copies[0].call.and_then(|call| facts.host.around(&call).describe());
    Some(Draft {
        title: None,
        seen: format!(
            "{} copies per {unit}, {} on average, {} in total: {} on the GPU, {} of host time to issue them, and {} of GPU idle time before them.",
            count(per_step.round() as u64),
            bytes(moved / copies.len() as u64),
            bytes((moved as f64 / steps) as u64),
            milliseconds(device / steps),
            milliseconds(issued.host / steps),
            milliseconds(waiting / steps),
        ),
        evidence: json!({
            "copies_per_step": per_step,
            "bytes_per_step": moved as f64 / steps,
            "device_ms_per_step": device / steps,
            "host_ms_per_step": issued.host / steps,
            "exposed_ms_per_step": exposed / steps,
            "idle_before_them_ms_per_step": waiting / steps,
            "place": place,
            "scatter_method": together.map(|cost| cost.method),
            "scatter_us": together.map(|cost| cost.us),
            "scatter_source": fastest.as_ref().map(|(_, choice)| choice.source),
        }),
        saves: Saving { low: 0.5 * high, high },
        fix: fix(facts, &fastest.as_ref().map_or(String::new(), |(blocks, choice)| words(blocks, choice))),
        at: times_of(copies),
    })
}

/// The copies of one step as blocks that lie apart, of the direction and memory that most of them have.
fn fastest(copies: &[&Copy<'_>], steps: f64, link: &LinkFacts) -> Option<(Blocks, ScatterChoice)> {
    let kind = |copy: &Copy<'_>| {
        let direction = match copy.transfer.direction {
            Direction::HostToDevice => bench::Direction::H2d,
            Direction::DeviceToHost => bench::Direction::D2h,
            _ => return None,
        };
        let memory = match copy.host_memory()? {
            MemoryKind::Pinned => HostMemory::Pinned,
            MemoryKind::Pageable => HostMemory::Pageable,
            _ => return None,
        };
        Some((direction, memory))
    };
    let mut kinds: Vec<(_, u64, u64)> = Vec::new();
    for copy in copies {
        let (Some(kind), Some(bytes)) = (kind(copy), copy.bytes()) else { continue };
        match kinds.iter_mut().find(|(known, ..)| *known == kind) {
            Some((_, number, sum)) => (*number, *sum) = (*number + 1, sum.saturating_add(bytes)),
            None => kinds.push((kind, 1, bytes)),
        }
    }
    let ((direction, memory), number, sum) = kinds.into_iter().max_by_key(|(_, number, _)| *number)?;
    let blocks = (number as f64 / steps).round().max(1.0) as u64;
    let blocks = Blocks { direction, memory, block_bytes: (sum / number).max(1), blocks };
    let choice = link.scatter(&blocks);
    Some((blocks, choice))
}

/// Which method is fastest without a call per block, if that was measured on this machine.
fn words(blocks: &Blocks, choice: &ScatterChoice) -> String {
    let is_measured = choice.source == ScatterSource::Measured;
    let Some(cost) = choice.together().filter(|_| is_measured) else { return String::new() };
    let method = match cost.method {
        ScatterMethod::Batch => "one `cudaMemcpyBatchAsync`",
        ScatterMethod::Kernel => "a kernel that accesses them in pinned memory",
        ScatterMethod::Loop | ScatterMethod::Staged => "one packed copy",
    };
    let (number, size) = (count(blocks.blocks), bytes(blocks.block_bytes));
    let time = milliseconds(cost.us / 1e3);
    format!(" Fastest on this machine for {number} pieces of {size} is {method}: {time}, measured.")
}
