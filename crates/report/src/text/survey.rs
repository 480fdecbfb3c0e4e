//! The sentences and tables of a survey.

use std::collections::BTreeMap;

use busbound_diagnosis::{Device, LostPart, Process, RankOrigin, SourceFacts, StepPattern, Stream, Survey};
use busbound_trace::{Direction, RecordedLink};

use crate::text::Table;

use busbound_diagnosis::quantity::{bytes, count, printable, rate, time};

/// Facts about the whole file, each with its label.
pub(crate) fn facts(survey: &Survey) -> Vec<(&'static str, String)> {
    let source = &survey.source;
    let size = if !busbound_trace::format(source.format).is_some_and(|format| format.is_json) {
        bytes(source.file_bytes)
    } else if !source.compressed {
        format!("{} of JSON", bytes(source.json_bytes))
    } else {
        format!("{} compressed, {} of JSON", bytes(source.file_bytes), bytes(source.json_bytes))
    };
    let objects = format!("{} events, {} kept", count(source.objects), count(source.events));
    let mut facts = vec![("file", format!("{} ({size}; {objects})", source.path))];
    facts.push(("written by", producer(survey)));
    facts.push((
        "rank",
        match &survey.rank {
            None => "not recorded".to_owned(),
            Some(rank) => {
                let of = rank.world_size.map(|n| format!(" of {n}")).unwrap_or_default();
                let backend = rank.backend.as_ref().map(|b| format!(", {b}")).unwrap_or_default();
                let origin = match rank.origin {
                    RankOrigin::DistributedInfo => "",
                    RankOrigin::FileName => " (from the file name)",
                };
                format!("{}{of}{backend}{origin}", rank.rank)
            }
        },
    ));
    facts.push(("GPUs", gpus(survey)));
    if let Some(span) = survey.span {
        let gpu = match survey.gpu_span {
            Some(gpu) => format!(", GPU events over {}", time(gpu.length_ns)),
            None => String::new(),
        };
        facts.push(("time span", format!("{}{gpu}", time(span.length_ns))));
    }
    facts.push(("recorded", recorded(survey)));
    facts.push(("steps", steps(&survey.steps)));
    facts
}

fn producer(survey: &Survey) -> String {
    let named = |key: &str| survey.versions.get(key);
    let profiler = busbound_trace::format(survey.source.format).map(|format| format.profiler);
    let mut parts: Vec<String> = profiler.map(str::to_owned).into_iter().collect();
    if let Some(schema) = named("schemaVersion") {
        parts.push(format!("schema {schema}"));
    }
    for (key, what) in [("cuda_runtime_version", "CUDA runtime"), ("cuda_driver_version", "driver for CUDA")]
    {
        if let Some(version) = named(key).and_then(|v| v.parse::<u32>().ok()) {
            parts.push(format!("{what} {}.{}", version / 1000, version % 1000 / 10));
        }
    }
    let shown = ["schemaVersion", "cuda_runtime_version", "cuda_driver_version"];
    for (key, version) in survey.versions.iter().filter(|(key, _)| !shown.contains(&key.as_str())) {
        parts.push(format!("{} {version}", key.trim_end_matches("_version")));
    }
    parts.join(", ")
}

fn gpus(survey: &Survey) -> String {
    if survey.gpus.is_empty() {
        return "not listed in the trace".to_owned();
    }
    let mut models: BTreeMap<String, u32> = BTreeMap::new();
    for gpu in &survey.gpus {
        let link = |link: RecordedLink| {
            let RecordedLink { generation, lanes, most_generation, most_lanes } = link;
            format!("PCIe {generation} x{lanes} (max {most_generation} x{most_lanes})")
        };
        let facts = [
            Some(gpu.name.clone()),
            gpu.memory.map(|memory| bytes(memory.get())),
            gpu.link.map(link),
            gpu.limits.clock_mhz.map(|clock| format!("up to {clock} MHz")),
            gpu.limits.power_watts.map(|power| format!("up to {power} W")),
        ];
        let model = facts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        *models.entry(model).or_default() += 1;
    }
    models.into_iter().map(|(model, n)| format!("{n} × {model}")).collect::<Vec<_>>().join("; ")
}

fn recorded(survey: &Survey) -> String {
    let r = &survey.recorded;
    let all = [
        ("GPU activity", r.gpu_activity),
        ("operators", r.operators),
        ("runtime calls", r.runtime_calls),
        ("shapes", r.shapes),
        ("stacks", r.stacks),
        ("memory", r.memory),
        ("synchronizations", r.synchronizations),
        ("collective sizes", r.collective_sizes),
    ];
    let list = |on: bool| {
        let words: Vec<_> = all.iter().filter(|(_, has)| *has == on).map(|(word, _)| *word).collect();
        if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
    };
    format!("{}; not recorded: {}", list(true), list(false))
}

fn steps(patterns: &[StepPattern]) -> String {
    if patterns.is_empty() {
        return "none annotated".to_owned();
    }
    let one = |p: &StepPattern| format!("{} × `{}` (median {})", count(p.count), p.pattern, time(p.p50_ns));
    patterns.iter().take(4).map(one).collect::<Vec<_>>().join(", ")
}

pub(crate) fn kinds(survey: &Survey) -> Table {
    let rows = survey
        .kinds
        .iter()
        .map(|total| vec![total.kind.label().to_owned(), count(total.count), time(total.total_ns)])
        .collect();
    Table { titles: vec!["events", "count", "sum of durations"], rows }
}

pub(crate) fn copies(survey: &Survey) -> Table {
    let rows = survey
        .copies
        .iter()
        .map(|class| {
            let known = class.count > class.without_bytes;
            let size = if known { bytes(class.bytes.get()) } else { "not recorded".to_owned() };
            let speed = if known && class.without_bytes == 0 {
                rate(class.bytes.get(), class.total_ns)
            } else {
                "–".to_owned()
            };
            let what =
                format!("{}, {} to {}", direction(class.direction), class.src.word(), class.dst.word());
            vec![what, count(class.count), size, time(class.total_ns), speed]
        })
        .collect();
    Table { titles: vec!["copies", "count", "bytes", "time", "mean rate"], rows }
}

pub(crate) fn streams(survey: &Survey) -> Table {
    let row = |device: &Device, stream: &Stream| {
        let place = match stream.id {
            -1 => format!("GPU {}, whole device", device.id),
            id => format!("GPU {} stream {id}", device.id),
        };
        vec![
            place,
            count(stream.kernels),
            count(stream.copies),
            count(stream.memsets),
            count(stream.synchronizations),
            time(stream.work_ns),
        ]
    };
    let rows = survey.devices.iter().flat_map(|d| d.streams.iter().map(move |s| row(d, s))).collect();
    Table { titles: vec!["streams", "kernels", "copies", "memsets", "syncs", "work"], rows }
}

pub(crate) fn threads(survey: &Survey) -> Table {
    let row = |process: &Process| {
        let name = process.name.as_ref().map(|n| format!(" ({n})")).unwrap_or_default();
        let busiest = process.threads.iter().max_by_key(|thread| thread.events);
        let busiest = busiest.map_or(String::new(), |t| t.id.clone());
        let events = process.threads.iter().map(|thread| thread.events).sum();
        vec![format!("{}{name}", process.id), count(process.threads.len() as u64), count(events), busiest]
    };
    let rows = survey.processes.iter().map(row).collect();
    Table { titles: vec!["processes", "threads", "events", "busiest thread"], rows }
}

/// What was lost and where; empty for a complete file.
pub(crate) fn lost(source: &SourceFacts) -> Vec<String> {
    let gzip = source.compressed;
    source.lost.iter().map(|part| lost_part(part, gzip)).collect()
}

fn lost_part(part: &LostPart, gzip: bool) -> String {
    if !part.what.has_offset() {
        let times = if part.count > 1 { format!(", {} times", count(part.count)) } else { String::new() };
        let table = part.table.as_ref().map(|table| format!(" in table {table}")).unwrap_or_default();
        return format!("{}{table}{times}", part.text);
    }
    let place = match (part.in_compressed_bytes, gzip) {
        (true, _) => " of the compressed file",
        (false, true) => " of the JSON",
        (false, false) => "",
    };
    let times =
        if part.count > 1 { format!("in {} places, first ", count(part.count)) } else { String::new() };
    let skipped = if part.bytes > 0 { format!("; {} skipped", bytes(part.bytes)) } else { String::new() };
    format!("{}: {times}at byte {}{place}{skipped}", part.text, part.first_offset)
}

/// What was repaired, not kept or not recognized, and what dumps beside the trace say.
pub(crate) fn remarks(survey: &Survey) -> Vec<String> {
    let mut remarks = survey.flight_recorder.clone();
    if !survey.repairs.is_empty() {
        let list = survey.repairs.iter().map(|(repair, n)| format!("{} {}", count(*n), repair.describe()));
        remarks.push(format!("Repaired: {}.", list.collect::<Vec<_>>().join(", ")));
    }
    if !survey.not_kept.is_empty() {
        let list = survey.not_kept.iter().map(|(what, n)| format!("{} {}", count(*n), printable(what)));
        remarks.push(format!("Not kept: {}.", list.collect::<Vec<_>>().join(", ")));
    }
    if !survey.unknown_categories.is_empty() {
        let list =
            survey.unknown_categories.iter().map(|(what, n)| format!("{} {}", count(*n), printable(what)));
        remarks.push(format!("Unknown categories: {}.", list.collect::<Vec<_>>().join(", ")));
    }
    for message in &survey.profiler_messages {
        remarks.push(format!("Profiler message: {}", printable(message)));
    }
    remarks
}

/// The headline for several inputs.
pub(crate) fn overview(surveys: &[Survey]) -> String {
    let whole = surveys.iter().filter(|survey| survey.source.complete).count();
    let mut ranks: Vec<u32> = surveys.iter().filter_map(|s| s.rank.as_ref()).map(|r| r.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let world = surveys.iter().filter_map(|s| s.rank.as_ref()?.world_size).max();
    let ranks = match (ranks.as_slice(), world) {
        ([], _) => "no ranks recorded".to_owned(),
        (ranks, Some(world)) => format!("{} of {world} ranks", ranks.len()),
        (ranks, None) => format!("{} ranks", ranks.len()),
    };
    let events: u64 = surveys.iter().map(|s| s.source.events).sum();
    let state = if whole == surveys.len() { "all complete".to_owned() } else { format!("{whole} complete") };
    format!("{} traces, {state}: {ranks}, {} events.", surveys.len(), count(events))
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::HostToDevice => "host to device",
        Direction::DeviceToHost => "device to host",
        Direction::DeviceToDevice => "within the device",
        Direction::PeerToPeer => "device to device",
        Direction::HostToHost => "host to host",
        Direction::Unknown => "direction not recorded",
    }
}

/// The tables that are not empty.
pub(crate) fn worth_showing(survey: &Survey) -> impl Iterator<Item = Table> {
    [kinds(survey), copies(survey), streams(survey), threads(survey)]
        .into_iter()
        .filter(|table| !table.rows.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_reports_what_where_and_how_often() {
        let part = LostPart {
            what: busbound_trace::LossKind::DamagedEvent,
            text: "event is not valid JSON",
            table: None,
            first_offset: 4096,
            in_compressed_bytes: false,
            count: 3,
            bytes: 1500,
        };
        assert_eq!(
            lost_part(&part, true),
            "event is not valid JSON: in 3 places, first at byte 4096 of the JSON; 1.50 kB skipped"
        );
    }
}
