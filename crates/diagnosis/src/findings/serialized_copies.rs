//! Are pinned copies serialized with compute, because they share a stream with kernels?

use busbound_cause::Resource;
use busbound_trace::{Direction, MemoryKind};
use busbound_whatif::replay::{Async, Prefetch};
use serde_json::json;

use super::common::copies::{bytes_moved, times_of, total_ms};
use super::common::frameworks::{FSDP_PREFETCH_CODE, Framework, Hooks};
use super::common::prefetch::{OFFLOAD_CODE, PREFETCH_CODE};
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::copies::Copy;
use crate::analysis::facts::Facts;
use crate::quantity::{bytes, milliseconds, plural};
use crate::saving::Saving;
use crate::settings::offload::{Offloading, prefetching};

pub(super) static RULE: Rule = Rule {
    title: "Copies serialized with compute",
    doing: "prefetching on a second stream",
    precondition: "The data to copy is known before it is needed: the next layer's weights, the next batch.",
    basis: "bound: exposed copy time that can overlap with compute and with copies in the other direction; the low end allows for a GPU that clocks down when it is always busy",
    candidate: Candidate::Changes(|| vec![Prefetch(1).into()]),
    effort: Effort::Restructuring,
    unless: &[],
    relieves: &[Resource::H2d, Resource::D2h],
    check,
    document: Document {
        meaning: "Pinned copies run on a stream that also runs kernels. Work on one stream runs in order, so these copies are \
                  serialized with compute: they never overlap with kernels of that stream, pinned or not.",
        computed: "Evidence: pinned copies of 1 MiB or more on a stream with kernels, exposed for at least half of their own \
                   time and 3% of the run. Saving: the trace replayed with `prefetch=1`, or with \
                   `async` if most bytes go to the host. If that is not possible, a \
                   bound: the exposed time that can overlap with compute and with copies in the other direction. The \
                   low end is 40% of it, because a GPU that is always busy clocks down.",
        fix: "Issue copies on a second stream, one layer or batch ahead. Let the compute stream, not the host, wait for an event. \
              If the copies are the weights of a PyTorch model, `busbound.offload(model, gpu_memory=…)` does this. FSDP2 does it \
              after `set_modules_to_forward_prefetch`. D2H copies go into pinned buffers, and wait for nothing but the result.",
        code: &[PREFETCH_CODE, OUT_CODE, FSDP_PREFETCH_CODE, OFFLOAD_CODE],
        assumes: "The data to copy is known before it is needed, and the GPU has memory for one more group.",
    },
};

const OUT_CODE: &str = "\
out = [torch.empty_like(tensor, device=\"cpu\", pin_memory=True) for tensor in tensors]    # once
copies, done = torch.cuda.Stream(), torch.cuda.Event()
copies.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(copies):
    for host, tensor in zip(out, tensors):
        host.copy_(tensor, non_blocking=True)
        tensor.record_stream(copies)
    done.record()
...                                             # work that does not change them
torch.cuda.current_stream().wait_event(done)    # before `tensors` change
done.synchronize()                              # before the host reads `out`";

/// Pinned copies on a stream that also runs kernels.
fn serialized<'f, 'a>(facts: &'f Facts<'a>) -> Vec<&'f Copy<'a>> {
    let is = |copy: &&Copy<'_>| {
        copy.host_memory() == Some(MemoryKind::Pinned)
            && copy.is_large()
            && facts.shares_stream_with_kernels(copy) == Some(true)
    };
    facts.issued_copies().filter(is).collect()
}

/// At best, kernels and both directions of the link overlap, and the longest of the three determines the time. The first
/// copy of a step has nothing to overlap with.
fn hidden_at_best(facts: &Facts<'_>, copies: &[&Copy<'_>], exposed: f64) -> f64 {
    let in_direction = |direction: Direction| -> f64 {
        let these = copies.iter().filter(|copy| copy.transfer.direction == direction);
        these.map(|copy| copy.event.duration().as_millis()).sum()
    };
    let compute = facts.time.compute_ms;
    let longest =
        compute.max(in_direction(Direction::HostToDevice)).max(in_direction(Direction::DeviceToHost));
    let per_step = copies.len() as f64 / facts.steps();
    let but_the_first = if per_step > 1.0 { (per_step - 1.0) / per_step } else { 1.0 };
    exposed.min(compute + exposed - longest).max(0.0) * but_the_first
}

/// What the copies carry, and who issues them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Results that go to the host.
    Out,
    /// The modules that FSDP offloads.
    Fsdp,
    Ahead,
}

impl Kind {
    fn of(facts: &Facts<'_>, copies: &[&Copy<'_>]) -> Self {
        let [out, up] = [Direction::DeviceToHost, Direction::HostToDevice]
            .map(|direction| bytes_moved(copies, direction));
        match Hooks::issuing(facts, copies) {
            _ if out > up => Self::Out,
            Some(Framework::Fsdp) => Self::Fsdp,
            _ => Self::Ahead,
        }
    }

    fn title(self) -> Option<String> {
        (self == Self::Out).then(|| "D2H copies serialized with compute".to_owned())
    }

    fn fix(self) -> Fix {
        let ahead = prefetching(Offloading { depth: 1, resident: 0.0, layer_bytes: None });
        match self {
            Self::Out => Fix::new(
                "Copy out on a second stream that first waits for the current one (copy_stream.wait_stream(…)), into a pinned \
                 buffer, with non_blocking=True. Record an event, and wait for it only before the tensor changes or the buffer is read.",
            )
            .doing("copying out on a second stream")
            .code(OUT_CODE)
            .replayed_as(vec![Async.into()]),
            Self::Fsdp => Fix::new("Prefetch the next module: block.set_modules_to_forward_prefetch([following]).")
                .code(FSDP_PREFETCH_CODE)
                .settings(ahead),
            Self::Ahead => Fix::new(
                "Issue copies on a second stream before they are needed (one layer or batch ahead), with non_blocking=True. Let the \
                 compute stream, not the host, wait for them (wait_event): kernels and launches then run during the copies.",
            )
            .code(PREFETCH_CODE)
            .settings(ahead),
        }
    }
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let copies = serialized(facts);
    let (first, kind) = (copies.first()?, Kind::of(facts, &copies));
    let (steps, unit) = (facts.steps(), facts.unit());
    let per = unit.per();
    let (exposed, total) = (facts.exposed_ms(copies.iter().copied()), total_ms(&copies));
    if exposed < 0.03 * facts.time.analyzed_ms || exposed < 0.5 * total {
        return None;
    }
    let high = hidden_at_best(facts, &copies, exposed);
    if high < 0.01 * facts.time.analyzed_ms {
        return None;
    }
    let waited: f64 = copies.iter().map(|copy| (copy.waited_after + copy.blocked).as_millis()).sum();
    let per_step = copies.len() as f64 / steps;
    let moved: u64 = copies.iter().filter_map(|copy| copy.bytes()).sum();
    let origin = first.call.map(|call| facts.host.around(&call)).unwrap_or_default();
    let wait = if waited > 0.5 * total {
        let waited = milliseconds(waited / steps);
        format!(" The host waits for each copy ({waited}{per}), so it cannot queue work behind it.")
    } else {
        String::new()
    };
    Some(Draft {
        title: kind.title(),
        seen: format!(
            "{} of {} per {unit} at {:.1} GB/s{}, on a stream that also runs kernels: {} of {} not overlapped with any kernel.{wait}",
            plural(per_step.round().max(1.0) as u64, "copy", "copies"),
            bytes(moved / copies.len() as u64),
            moved as f64 / 1e6 / total,
            origin.clause(),
            milliseconds(exposed / steps),
            milliseconds(total / steps),
        ),
        evidence: json!({
            "copies": copies.len(),
            "copies_per_step": per_step,
            "bytes": moved,
            "stream": first.stream,
            "kernels_on_stream": facts.kernels_on_stream.get(&(first.device, first.stream)),
            "ms_per_step": total / steps,
            "exposed_ms_per_step": exposed / steps,
            "host_waits_ms_per_step": waited / steps,
            "place": origin.describe(),
        }),
        saves: Saving { low: 0.4 * high / facts.gpu_steps(), high: high / facts.gpu_steps() },
        fix: kind.fix(),
        at: times_of(&copies),
    })
}
