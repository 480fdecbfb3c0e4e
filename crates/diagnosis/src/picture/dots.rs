//! Every copy as a dot: its size and the rate it reached.

use std::collections::BTreeMap;

use busbound_trace::{Direction, MemoryKind};

use super::links::{CopyKey, CopyLinks, PieceId};
use crate::activity::copies::kind_of;
use crate::analysis::facts::Facts;

/// Copies of one direction between the same kinds of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DotKind {
    /// `H2D pageable`, `D2D`.
    pub label: String,
    pub direction: Direction,
    /// The kind of host memory, if one end is on the host.
    pub memory: Option<MemoryKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dot {
    /// By number, in [`Picture::dot_kinds`](super::Picture::dot_kinds).
    pub kind: u32,
    pub bytes: u64,
    /// How long it took.
    pub ns: i64,
    /// From the picture's start; of the first copy, if merged.
    pub start: i64,
    /// Number of copies it represents.
    pub count: u32,
    /// Where the copy is in the lanes, if drawn there; of the first copy, if merged.
    pub piece: Option<PieceId>,
}

/// Above this number, dots that would cover each other are merged.
const DOTS: usize = 40_000;
/// When merging, the number of bins per doubling of size or time.
const BINS: f64 = 24.0;

pub(super) fn dots(facts: &Facts<'_>, origin: i64, links: &CopyLinks<'_>) -> (Vec<DotKind>, Vec<Dot>, u64) {
    let mut kinds: Vec<DotKind> = Vec::new();
    let mut known: BTreeMap<(Direction, MemoryKind, MemoryKind), u32> = BTreeMap::new();
    let mut dots = Vec::new();
    let mut unplaced = 0;
    for copy in &facts.copies {
        let key = (copy.transfer.direction, copy.transfer.src, copy.transfer.dst);
        let kind = *known.entry(key).or_insert_with(|| {
            kinds.push(DotKind { label: kind_of(key), direction: key.0, memory: copy.host_memory() });
            u32::try_from(kinds.len() - 1).unwrap_or(0)
        });
        match (copy.bytes(), copy.event.duration().get()) {
            (Some(bytes @ 1..), ns @ 1..) => {
                let (device, stream) = (copy.device, copy.stream);
                let start = copy.event.start().as_nanos();
                let piece = links.piece(CopyKey { device, stream, start });
                dots.push(Dot { kind, bytes, ns, start: start - origin, count: 1, piece });
            }
            _ => unplaced += 1,
        }
    }
    let dots = if dots.len() > DOTS { merged(dots) } else { dots };
    (kinds, dots, unplaced)
}

fn merged(dots: Vec<Dot>) -> Vec<Dot> {
    let bin = |value: f64| (value.log2() * BINS).round() as i64;
    let mut by_bin: BTreeMap<(u32, i64, i64), Dot> = BTreeMap::new();
    for dot in dots {
        let key = (dot.kind, bin(dot.bytes as f64), bin(dot.ns as f64));
        let one = by_bin.entry(key).or_insert(Dot { count: 0, ..dot });
        one.count += 1;
        if dot.start < one.start {
            (one.start, one.piece) = (dot.start, dot.piece);
        }
    }
    by_bin.into_values().collect()
}
