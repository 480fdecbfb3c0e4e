//! What is the verdict without GPU events? Only what the host's own times support.

use busbound_machine::LinkSource;
use busbound_trace::{Event, EventKind};

use crate::analysis::cpu_copies::{CpuCopies, CpuCopyClass};
use crate::analysis::facts::Facts;
use crate::analysis::on_cpu::OnCpu;
use crate::answers::survey::Survey;
use crate::answers::survey::other_profiler::other_profiler;
use crate::quantity::{bytes, milliseconds, plural, printable};
use crate::verdict::{Bound, Verdict};

pub(crate) fn verdict(facts: &Facts<'_>, survey: &Survey, copies: &[CpuCopies]) -> Verdict {
    let unknown = |because: &str| Verdict::of(Bound::Unknown, 0.0, because);
    match (survey.source.events, survey.source.complete) {
        (0, false) => {
            return unknown(
                "the file is damaged, and no event in it can be read. Copy it again, or record the run again",
            );
        }
        (0, true) => return unknown("the trace has no events"),
        _ => {}
    }
    if let Some((what, _)) = other_profiler(facts.trace) {
        return unknown(&format!("the file is {what}, whose GPU activity cannot be read"));
    }
    let of = |class| copies.iter().find(|sum| sum.class == class);
    let span_ms = match (facts.window.steps.first(), facts.window.steps.last(), survey.span) {
        (Some(first), Some(last), _) => (last.end - first.start).as_millis(),
        (_, _, Some(span)) => span.length_ns.as_millis(),
        _ => 0.0,
    };
    let unit = facts.unit();
    let step = span_ms / facts.steps();
    if let Some(bus) = of(CpuCopyClass::BusTransfer).filter(|bus| bus.host_ms > 0.1 * span_ms) {
        let share = bus.host_ms / span_ms;
        let gbps = bus.gbps.unwrap_or(0.0);
        let because = format!(
            "no GPU activity was recorded. Blocking copies keep the host waiting for {:.0}% of each {} {unit} \
             ({} at {gbps:.1} GB/s, {:.0}% of {}), which looks transfer-bound",
            100.0 * share,
            milliseconds(step),
            bytes((bus.bytes as f64 / facts.steps()) as u64),
            100.0 * gbps / facts.link.peak_gbps,
            match facts.link.source {
                LinkSource::Assumed => format!("{}, assumed", facts.link.name),
                _ => facts.link.name.clone(),
            },
        );
        return Verdict::of(Bound::Unknown, share, &because);
    }
    if let Some(launched) = of(CpuCopyClass::AsynchronousLaunch) {
        return unknown(&format!(
            "no GPU activity was recorded, and the host only launched {} ({}) with non_blocking; how long they took is not visible in this trace",
            plural(launched.count, "copy", "copies"),
            bytes(launched.bytes),
        ));
    }
    if let Some(on_cpu) = facts.on_cpu() {
        return unknown(&computes_on_cpu(facts, on_cpu));
    }
    let launches = facts.host.launches().len() as u64;
    if launches > 0 {
        return unknown(&format!(
            "no GPU activity was recorded, although the host launched {}",
            plural(launches, "kernel", "kernels"),
        ));
    }
    // The calls of a program on the GPU are part of such a recording.
    if facts.trace.origin().format.id == RECORDS_CALLS {
        return unknown(&no_work(facts));
    }
    unknown(
        "no GPU activity was recorded, and host events alone do not show whether any copy crossed the bus",
    )
}

/// The format whose recordings have the calls of every program that uses a GPU.
const RECORDS_CALLS: &str = "nsys-sqlite";

/// Nothing ran on a GPU, and no call launched or copied anything.
fn no_work(facts: &Facts<'_>) -> String {
    let is_call = |event: &Event<'_>| matches!(event.kind(), EventKind::RuntimeCall | EventKind::DriverCall);
    match facts.trace.events().filter(is_call).count() as u64 {
        0 => "no CUDA call and no GPU activity was recorded".to_owned(),
        calls => format!(
            "no GPU activity was recorded, and none of the {} launches or copies anything",
            plural(calls, "recorded CUDA call", "recorded CUDA calls")
        ),
    }
}

fn computes_on_cpu(facts: &Facts<'_>, on_cpu: &OnCpu) -> String {
    let although = match facts.trace.origin().gpus.first() {
        Some(gpu) => format!(", although this machine has a GPU: {}", printable(&gpu.name)),
        None => String::new(),
    };
    format!(
        "the program computes on the CPU ({} takes {}), and no GPU activity was recorded{although}",
        printable(&on_cpu.operator),
        milliseconds(on_cpu.ms)
    )
}
