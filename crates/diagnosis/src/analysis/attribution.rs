//! Where does a step's time go, by the blocks that the program annotates?

use std::collections::BTreeMap;

use busbound_trace::hash::{HashMap, HashSet};
use busbound_trace::{Event, EventKind, Interval, IntervalSet, NameId, Nanos, Place, Timestamp};
use serde::Serialize;

use crate::activity::copies::is_on_bus;
use crate::activity::syncs;
use crate::analysis::blocks::Blocks;
use crate::analysis::facts::Facts;
use crate::options::{BlockChoice, DEFAULT_DEPTH};
use crate::pattern::pattern_of;
use crate::quantity::printable;

/// Time by block, in milliseconds per step.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Attribution {
    /// Whether the user chose the blocks.
    pub asked: bool,
    /// In tree order: each block before the blocks within it. Work launched in a block also counts for the
    /// blocks around it.
    pub blocks: Vec<BlockTime>,
    /// GPU work launched outside of all blocks. RunGroup with the outermost blocks, it is all GPU work.
    pub outside: BlockTime,
    /// Set if blocks end in a device synchronization: then these figures show where time goes, but not the
    /// throughput without the synchronizations.
    pub synchronized: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockTime {
    pub name: String,
    /// 0 for the outermost.
    pub depth: usize,
    /// How often it runs per step.
    pub count: f64,
    /// From its start to its end on the host.
    pub host_ms: f64,
    /// GPU work launched in it, by correlation and over all streams: the sum of the durations.
    pub gpu_ms: f64,
    pub compute_ms: f64,
    pub communication_ms: f64,
    /// Copies over the bus.
    pub copy_ms: f64,
    pub copy_bytes: f64,
    /// Bus copies not overlapped with any kernel, and communication not overlapped with compute.
    pub exposed_ms: f64,
    /// Share of the step in which work of this block ran on the device, 0 to 1. Blocks can overlap, so shares
    /// need not sum to 1.
    pub share: f64,
}

/// More siblings of one pattern than this share one row.
const SIBLINGS: usize = 24;
/// Most rows in the answer.
const ROWS: usize = 400;

/// `None` if the trace has no such annotation.
pub(crate) fn attribution(facts: &Facts<'_>, choice: &BlockChoice) -> Option<Attribution> {
    let (trace, host) = (facts.trace, &facts.host);
    let is_chosen: Vec<bool> = trace
        .names()
        .iter()
        .map(|name| match choice {
            BlockChoice::Matching(wanted) => wanted.is_match(name),
            BlockChoice::Depth(_) => !facts.marks_steps(name),
        })
        .collect();
    let blocks = Blocks::of(trace, host, |event| is_chosen[event.name_id().index()]);
    if blocks.list.is_empty() {
        return None;
    }
    let rows = Rows::of(&blocks, choice);
    let mut sums = Sums::of_host(&rows, &blocks, facts.window.host_time());
    sums.add_work(facts, &rows, &blocks);
    let order = rows.in_tree_order(&sums.rows);
    let mut of_rows: Vec<Option<Sum>> = sums.rows.into_iter().map(Some).collect();
    let list = order
        .into_iter()
        .filter_map(|row| {
            let of = &rows.rows[row];
            Some(of_rows[row].take()?.finish(&of.name, of.depth, facts))
        })
        .take(ROWS)
        .collect();
    Some(Attribution {
        asked: !matches!(choice, BlockChoice::Depth(DEFAULT_DEPTH)),
        blocks: list,
        outside: sums.outside.finish("(outside)", 0, facts),
        synchronized: synchronized(facts, &blocks),
    })
}

fn synchronized(facts: &Facts<'_>, blocks: &Blocks<'_>) -> Option<String> {
    let events = blocks.list.iter().map(|block| block.event);
    let (pattern, ended) = syncs::blocks_that_end_in_sync(&facts.syncs, events)?;
    Some(format!(
        "Blocks `{pattern}` end in a device synchronization ({ended} of them). No work overlaps across their ends, so these figures show where the time goes, but not how fast the run is without the synchronizations."
    ))
}

/// Totals of one row.
#[derive(Debug, Default)]
struct Sum {
    count: u64,
    host: Nanos,
    compute: Nanos,
    communication: Nanos,
    copy: Nanos,
    other: Nanos,
    bytes: u64,
    exposed: Nanos,
    /// When work ran on each device, and on the stream whose work is being added.
    busy: BTreeMap<i32, IntervalSet>,
    on_stream: IntervalSet,
    first: Option<Timestamp>,
}

/// One kernel, copy or memset, as it counts in a row.
struct GpuWork {
    interval: Interval,
    class: Class,
    exposed: Nanos,
}

enum Class {
    Compute,
    Communication,
    BusCopy { bytes: u64 },
    Other,
}

impl GpuWork {
    fn of(work: &Event<'_>, device: i32, facts: &Facts<'_>) -> Self {
        let interval = work.interval();
        let bus_copy = work.transfer().filter(|transfer| is_on_bus(transfer.direction));
        let class = match work.kind() {
            EventKind::Kernel if facts.communication.contains(work.name_id()) => Class::Communication,
            EventKind::Kernel => Class::Compute,
            EventKind::Copy => bus_copy.map_or(Class::Other, |transfer| Class::BusCopy {
                bytes: transfer.bytes.map_or(0, |bytes| bytes.get()),
            }),
            _ => Class::Other,
        };
        let timeline = facts.timelines.iter().find(|timeline| timeline.device == device);
        let exposed = timeline.map_or(Nanos::ZERO, |timeline| match class {
            Class::Communication => timeline.exposed_communication(interval),
            Class::BusCopy { .. } => timeline.exposed_copy(interval),
            Class::Compute | Class::Other => Nanos::ZERO,
        });
        Self { interval, class, exposed }
    }
}

impl Sum {
    fn add(&mut self, work: &GpuWork) {
        let length = work.interval.length();
        match work.class {
            Class::Compute => self.compute += length,
            Class::Communication => self.communication += length,
            Class::BusCopy { bytes } => {
                self.copy += length;
                self.bytes = self.bytes.saturating_add(bytes);
            }
            Class::Other => self.other += length,
        }
        self.exposed += work.exposed;
        self.on_stream.push(work.interval);
    }

    /// All work of a stream was added, in order.
    fn end_stream(&mut self, device: i32) {
        if !self.on_stream.is_empty() {
            let busy = self.busy.entry(device).or_default();
            *busy = busy.union(&std::mem::take(&mut self.on_stream));
        }
    }

    fn finish(self, name: &str, depth: usize, facts: &Facts<'_>) -> BlockTime {
        let (steps, span) = (facts.steps(), facts.time.analyzed_ms);
        let busy: Nanos = self.busy.values().map(IntervalSet::length).sum();
        let per_step = |time: Nanos| time.as_millis() / steps;
        BlockTime {
            name: name.to_owned(),
            depth,
            count: self.count as f64 / steps,
            host_ms: per_step(self.host),
            gpu_ms: per_step(self.compute + self.communication + self.copy + self.other),
            compute_ms: per_step(self.compute),
            communication_ms: per_step(self.communication),
            copy_ms: per_step(self.copy),
            copy_bytes: self.bytes as f64 / steps,
            exposed_ms: per_step(self.exposed),
            share: if span > 0.0 { busy.as_millis() / span } else { 0.0 },
        }
    }
}

/// Totals of all rows.
struct Sums {
    rows: Vec<Sum>,
    /// Work launched outside of all blocks.
    outside: Sum,
}

impl Sums {
    /// Host time in the blocks of each row. A block around the steps may have started long before them: only the time
    /// within the window counts.
    fn of_host(rows: &Rows, blocks: &Blocks<'_>, window: Option<Interval>) -> Self {
        let mut sums = Self { rows: Vec::new(), outside: Sum::default() };
        sums.rows.resize_with(rows.rows.len(), Sum::default);
        for (block, row) in blocks.list.iter().zip(&rows.of_block) {
            let Some(sum) = row.and_then(|row| sums.rows.get_mut(row)) else { continue };
            let time = block.event.interval();
            let within = window.map_or(time, |window| time.intersect(window));
            // Blocks of other steps, as of the last one whose end is not known, are not runs of these.
            if within.length() > Nanos::ZERO || time.length() == Nanos::ZERO {
                sum.count += 1;
            }
            sum.host += within.length();
            sum.first = Some(sum.first.map_or(time.start, |first| first.min(time.start)));
        }
        sums
    }

    /// Adds GPU work to the row of the block it was launched in, and to the rows of the blocks around it.
    fn add_work(&mut self, facts: &Facts<'_>, rows: &Rows, blocks: &Blocks<'_>) {
        // By row: the event it last counted, so that a block nested in one of the same name counts it only once.
        let (mut number, mut counted) = (0u64, vec![0u64; rows.rows.len()]);
        for stream in facts.trace.streams() {
            let Place::Stream { device, .. } = stream.place() else { continue };
            for event in stream.events().filter(|event| event.kind().is_gpu_work()) {
                let work = GpuWork::of(&event, device, facts);
                let mut at = facts.host.call_behind(&event).and_then(|call| blocks.around(&call));
                if at.is_none() {
                    self.outside.add(&work);
                }
                number += 1;
                while let Some(block) = at {
                    if let Some(row) = rows.of_block[block.index()].filter(|&row| counted[row] != number) {
                        counted[row] = number;
                        self.rows[row].add(&work);
                    }
                    at = blocks.list[block.index()].parent;
                }
            }
            self.rows.iter_mut().chain([&mut self.outside]).for_each(|sum| sum.end_stream(device));
        }
    }
}

/// The rows of the table: one for all blocks of the same name under the same parent.
struct Rows {
    rows: Vec<Row>,
    of_block: Vec<Option<usize>>,
}

struct Row {
    name: String,
    parent: Option<usize>,
    depth: usize,
}

impl Rows {
    fn of(blocks: &Blocks<'_>, choice: &BlockChoice) -> Self {
        let deepest = match choice {
            BlockChoice::Matching(_) => usize::MAX,
            BlockChoice::Depth(depth) => *depth,
        };
        let labels = Labels::of(blocks);
        let mut by_place: HashMap<(Option<usize>, usize), usize> = HashMap::default();
        let (mut rows, mut of_block): (Vec<Row>, Vec<Option<usize>>) = (Vec::new(), Vec::new());
        let mut depth_of: Vec<usize> = Vec::new();
        for block in &blocks.list {
            let depth = block.parent.map_or(0, |parent| depth_of[parent.index()] + 1);
            depth_of.push(depth);
            if depth >= deepest {
                of_block.push(None);
                continue;
            }
            let parent = block.parent.and_then(|parent| of_block[parent.index()]);
            let label = labels.of_name[&block.event.name_id()];
            let row = *by_place.entry((parent, label)).or_insert_with(|| {
                rows.push(Row { name: labels.list[label].clone(), parent, depth });
                rows.len() - 1
            });
            of_block.push(Some(row));
        }
        Self { rows, of_block }
    }

    /// Parents before children; siblings in the order in which they first ran.
    fn in_tree_order(&self, sums: &[Sum]) -> Vec<usize> {
        let mut children: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
        for (row, of) in self.rows.iter().enumerate() {
            children.entry(of.parent).or_default().push(row);
        }
        for list in children.values_mut() {
            // Reversed, because they are popped from the end.
            list.sort_by_key(|&row| std::cmp::Reverse((sums[row].first, row)));
        }
        let mut order = Vec::with_capacity(self.rows.len());
        let mut next = children.remove(&None).unwrap_or_default();
        while let Some(row) = next.pop() {
            order.push(row);
            next.extend(children.remove(&Some(row)).unwrap_or_default());
        }
        order
    }
}

/// The labels of blocks in the table, computed once per name.
struct Labels {
    list: Vec<String>,
    of_name: HashMap<NameId, usize>,
}

impl Labels {
    fn of(blocks: &Blocks<'_>) -> Self {
        let mut by_pattern: BTreeMap<String, BTreeMap<NameId, &str>> = BTreeMap::new();
        let mut seen: HashSet<NameId> = HashSet::default();
        for event in blocks.list.iter().map(|block| block.event) {
            if seen.insert(event.name_id()) {
                by_pattern.entry(pattern_of(event.name())).or_default().insert(event.name_id(), event.name());
            }
        }
        let mut labels = Self { list: Vec::new(), of_name: HashMap::default() };
        for (pattern, names) in by_pattern {
            // Too many names for one row each.
            if names.len() > SIBLINGS {
                labels.of_name.extend(names.into_keys().map(|name| (name, labels.list.len())));
                labels.list.push(pattern);
                continue;
            }
            for (name, text) in names {
                labels.of_name.insert(name, labels.list.len());
                labels.list.push(printable(text));
            }
        }
        labels
    }
}
